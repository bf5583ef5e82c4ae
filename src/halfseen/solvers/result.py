"""What a solver returns: the Gaussian, how it went in a sentence, and what to know about it."""

from __future__ import annotations

import enum
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness
from halfseen.solvers.inference.uncertainty import Intervals, StandardErrors


class Status(enum.Enum):
    """How a fit ended, from best to worst. The value is a sentence for people."""

    CONVERGED = "The solver settled on an answer inside its domain."
    NO_GLOBAL_GUARANTEE = (
        "The likeliest of several starts was followed to its end, but the likelihood of a covariance "
        "under linear thresholds may have more than one peak: no theorem says that this is the highest."
    )
    REGULARISED = (
        "There are no more rows than columns, so correlations were pulled towards zero to make the "
        "covariance usable."
    )
    PROJECTED = (
        "The pairs did not fit together to a positive definite covariance; the nearest one was "
        "taken. More rows would help."
    )
    TOO_FEW_JOINT_ROWS = (
        "Some pairs of columns are seen together in so few rows that their correlation is hardly "
        "known."
    )
    WEAKLY_IDENTIFIED = (
        "Some parameters are hardly determined by what is seen; their standard errors say how little."
    )
    ON_DOMAIN_EDGE = (
        "Part of the estimate lies on the edge of the domain that the seen share allows: the data "
        "do not determine it. Check the limits and their units, and look for columns that repeat "
        "each other; more rows would help."
    )
    CHAINS_DISAGREE = (
        "Two chains that started at different ends of the hidden sets did not come to the same answer: "
        "hidden values may move too rarely from one end to the other."
    )
    NOT_CONVERGED = "The solver stopped at its limit of steps before its objective settled."

    @property
    def severity(self) -> int:
        """0 for the best, growing."""
        return list(Status).index(self)


@dataclass(frozen=True)
class Note:
    """One thing to know about a fit: its kind, and a sentence that names columns."""

    status: Status
    text: str


class MonteCarloErrors(NamedTuple):
    """Standard errors that sampling adds, of the mean and of the covariance."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Source:
    """What a fit came from, as it was given to the solver.

    The table is not copied: imputations of a table that was changed since are those of the changed one.
    """

    X: Any
    missingness: Missingness | None
    missing_at_random: Any
    seed: int
    n_jobs: int | None
    options: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Fit:
    """What was learned from a table with hidden values.

    Attributes
    ----------
    gaussian : Gaussian
        The recovered distribution.
    method : str
        Which solver ran.
    status : Status
        How it ended; the most serious of the notes.
    notes : tuple of Note
        What to know, each with the columns concerned.
    names : tuple of str
        Names of the columns.
    rows : int
        Number of rows in the data.
    seen_share : array of shape (d,)
        Share of the cells of each column that are seen.
    history : mapping
        What the solver recorded on its way.
    source : Source or None
        The table that was fitted and the rule behind it, which imputation and likelihood need.
    uncertainty : StandardErrors or None
        Where the method gives them; ``standard_errors`` explains where it does not.
    monte_carlo_errors : MonteCarloErrors or None
        What sampling adds to the error, where the method samples.
    parameters : int
        Number of free parameters.
    precision : array of shape (d, d) or None
        The sparse precision matrix, with its zeros, where one was asked for.
    """

    gaussian: Gaussian
    method: str
    names: tuple[str, ...]
    rows: int
    seen_share: NDArray[np.float64]
    notes: tuple[Note, ...] = ()
    history: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    source: Source | None = None
    uncertainty: StandardErrors | None = None
    monte_carlo_errors: MonteCarloErrors | None = None
    parameters: int | None = None
    precision: NDArray[np.float64] | None = None

    @property
    def status(self) -> Status:
        """The most serious of the notes, or ``CONVERGED``."""
        return max(
            (note.status for note in self.notes),
            key=lambda status: status.severity,
            default=Status.CONVERGED,
        )

    @property
    def mean(self) -> NDArray[np.float64]:
        """Recovered mean."""
        return self.gaussian.mean

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Recovered covariance."""
        return self.gaussian.covariance

    @property
    def correlation(self) -> NDArray[np.float64]:
        """Recovered correlation matrix."""
        return self.gaussian.correlation

    def summary(self, most_columns: int = 40) -> str:
        """Return a table of what was learned, in 80 columns of text."""
        title = f"Gaussian of {len(self.names)} columns from {self.rows} rows"
        lines = [title, f"method: {self.method}", f"status: {self.status.name.lower()}"]
        lines += textwrap.wrap(self.status.value, 78, initial_indent="  ", subsequent_indent="  ")
        for note in self.notes:
            lines += textwrap.wrap(note.text, 78, initial_indent="  - ", subsequent_indent="    ")
        lines += ["", f"{'column':<30} {'seen':>7} {'mean':>14} {'std. dev.':>14}", "-" * 68]
        deviations = self.gaussian.standard_deviations
        for i, name in enumerate(self.names[:most_columns]):
            lines.append(
                f"{shorten(name, 30):<30} {self.seen_share[i]:>7.1%} {self.mean[i]:>14.6g} "
                f"{deviations[i]:>14.6g}"
            )
        if len(self.names) > most_columns:
            lines.append(f"… and {len(self.names) - most_columns} more columns")
        return "\n".join(lines + self._strongest_correlations())

    def _strongest_correlations(self, most: int = 8) -> list[str]:
        d = len(self.names)
        if d < 2:
            return []
        i, j = np.triu_indices(d, 1)
        r = self.correlation[i, j]
        order = np.argsort(-np.abs(r), kind="stable")[:most]
        head = "correlations" if len(r) <= most else f"the {most} strongest correlations"
        pairs = [
            f"{shorten(self.names[i[k]], 27)} ~ {shorten(self.names[j[k]], 27)}" for k in order
        ]
        return ["", head, "-" * 68] + [
            f"{pair:<58} {r[k]:>9.3f}" for pair, k in zip(pairs, order, strict=True)
        ]

    def __repr__(self) -> str:
        return (
            f"Fit(method={self.method!r}, status={self.status.name}, columns={len(self.names)}, "
            f"rows={self.rows})"
        )


def projection_notes(
    covariance: NDArray[np.float64],
    before: NDArray[np.float64],
    projected: bool,
    floor: float,
) -> list[Note]:
    """Note how far a covariance moved to become positive definite."""
    if not projected:
        return []
    scale = np.sqrt(np.diag(before))
    moved = np.abs((covariance - before) / np.outer(scale, scale)).max()
    text = (
        f"The covariance was moved, by at most {moved:.2g} on the scale of correlations, to become "
        f"positive definite (smallest eigenvalue {floor:g})."
    )
    return [Note(Status.PROJECTED, text)]


def shorten(name: str, width: int) -> str:
    """Cut a name to a width."""
    return name if len(name) <= width else name[: width - 1] + "…"


def name_some(items: list[str], most: int = 3) -> str:
    """Join a few names, and say how many more there are."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
