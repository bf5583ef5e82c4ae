"""Marks that another rule than the stated one leaves in a column."""

from __future__ import annotations

from dataclasses import dataclass

# A mark with a smaller p-value, adjusted for the number of columns, is told.
UNLIKELY = 0.01
# Fewest seen values for a statement about the shape of a column.
FEWEST_SEEN = 20


@dataclass(frozen=True)
class Mark:
    """Something in a column that the stated rule would not leave there.

    Attributes
    ----------
    kind : str
        "on the limit", "substituted", "gap", "limits only where hidden", "other limits", "nothing
        hidden", "at random", "hidden too often" or "cut off".
    column : str
    level : {"ok", "look", "problem"}
    p_value : float or None
        How often the rule and the column's own normal distribution would leave as much or more,
        adjusted for the number of columns; None where no probability is meant.
    text : str

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.maximum(np.random.default_rng(0).normal(size=(300, 1)), -0.5)  # a sensor that clips
    >>> mark = hs.diagnose(x, hs.DetectionLimits(lower=-0.5)).mechanism[0]
    >>> mark.kind, mark.level
    ('on the limit', 'problem')
    """

    kind: str
    column: str
    level: str
    p_value: float | None
    text: str


@dataclass(frozen=True)
class Candidate:
    """A mark that counts only if its p-value is small enough for the number of columns.

    ``log_likelihood`` is that of the explanation it offers, in units of the seen values.
    """

    kind: str
    column: str
    p_value: float
    text: str
    log_likelihood: float = 0.0
