"""Whether the rule explains the holes: hidden cells against their probability given all else of the row.

In the model of losses a value that would be seen is lost with probability ε. Given all else that is
known of the row, the other columns with it, a cell is then hidden with probability P + ε (1 − P), where
P is that of lying where the rule hides. The score in ε at zero is (hidden − P)/P: (1 − P)/P for a
hidden cell and −1 for a seen one, the locally most powerful test. Where other columns tell much, P can
be next to nothing, and the score has tails so heavy that its variance is infinite (in a pair of columns
as soon as the correlation is above √½). So the weight is that of the score at ε₀,

    u = (hidden − P) / (P + ε₀ (1 − P)),

which has mean zero under the rule just the same, and lies between −1 and 1/ε₀. P is the ratio of two
likelihoods of the row: with the cell hidden by the rule, and with the cell missing at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.diagnostics.fitted_rows import Ground, Rows
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.expectation import Parameters

Floats = NDArray[np.float64]

# The share of losses ε₀ against which weights are best: about the smallest that so many rows tell.
LEAST_SHARE, MOST_SHARE, SHARE_BY_ROWS = 0.1, 0.5, 3.0
# Draws of the largest of several normal numbers, and how many of them a p-value rests on at least.
LARGEST_DRAWS, FEWEST_BEYOND = 20_000, 20
# Stream of random numbers, beside those of ``fitted_rows``.
LARGEST = 9


@dataclass(frozen=True)
class Losses:
    """A test of whether the rule explains the holes, against cells that were lost for other reasons.

    How many were lost, ``fit(..., loss="learn")`` estimates.

    Attributes
    ----------
    p_value : float
        One for all columns: how often the largest of the standardised scores, those of the columns and
        of their sum, would be as large if the rule and the fitted normal distribution were right. NaN
        where there is no test.
    names : tuple of str
        Columns that were looked at.
    adjusted : array
        The p-value of each of them, allowing for their number; none is below ``p_value``, but the sum
        of all columns may be what is significant.
    untested : dict
        By column, why its holes cannot be tested.
    reason : str
        Why there is no test; empty where there is one.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.7], [0.7, 1.0]])
    >>> X = hs.simulate(truth, rule, 500)
    >>> hs.diagnose(hs.fit(X, rule, random_state=0)).losses.p_value > 0.05
    True
    >>> X[np.random.default_rng(0).random(500) < 0.2, 0] = np.nan  # a fifth of a column is lost
    >>> losses = hs.diagnose(hs.fit(X, rule, random_state=0)).losses
    >>> losses.names, losses.p_value < 0.001, bool(losses.adjusted.argmin() == 0)
    (('x0', 'x1'), True, True)
    """

    p_value: float
    names: tuple[str, ...]
    adjusted: Floats
    untested: dict[str, str]
    reason: str = ""

    @classmethod
    def absent(cls, reason: str) -> Losses:
        """Return a test that was not made."""
        return cls(float("nan"), (), np.empty(0), {}, reason)


def judge_losses(ground: Ground, seed: int) -> Losses:
    """Test whether the rule explains the holes of a table."""
    rows, untested, columns = ground.seen, {}, []
    for j, name in enumerate(ground.names):
        reason = _why_not(ground, j)
        if not reason:
            columns.append(j)
        elif (rows.hidden & ~rows.blank)[:, j].any():
            untested[name] = reason
    if not columns:
        reason = "; ".join(dict.fromkeys(untested.values())) or "no cell is hidden by a rule"
        return Losses(**{**vars(Losses.absent(reason)), "untested": untested})
    at, weight = ground.at, weighted_for(ground.rows)
    P, simulated = (hidden_probabilities(r, columns, at) for r in (rows, ground.simulated))
    found = loss_scores(P, rows.hidden[:, columns], weight).sum(axis=0)
    terms = loss_scores(simulated, ground.simulated.hidden[:, columns], weight)
    # Of several columns the sum of all scores too: a little in each of them.
    sums = np.vstack([np.eye(len(columns)), np.ones((int(len(columns) > 1), len(columns)))])

    def again(rows: Rows, at: Parameters) -> Floats:
        P = hidden_probabilities(rows, columns, at)
        return sums @ loss_scores(P, rows.hidden[:, columns], weight).sum(axis=0)

    n = len(rows.Y)
    left = ground.residuals(terms)
    # Where only some of the rows are looked at, the estimates know less of them.
    part = n / ground.rows
    covariance = n * (part * left.T @ left + (1.0 - part) * terms.T @ terms) / len(terms)
    of_sums = sums @ covariance @ sums.T
    scale = np.sqrt(np.diag(of_sums))
    mean, stretch = ground.corrections(terms @ sums.T, again)
    z = straightened((sums @ found - mean) / (scale * stretch), skewness(left @ sums.T, n))
    adjusted = largest_p_values(z, of_sums / np.outer(scale, scale), seed)
    return Losses(
        float(adjusted.min()),
        tuple(ground.names[j] for j in columns),
        adjusted[: len(columns)],
        untested,
    )


def _why_not(ground: Ground, j: int) -> str:
    """Say why the holes of a column cannot be tested; empty where they can."""
    if not ground.own[j]:
        return "other columns take part in hiding it"
    ruled = ground.seen.ruled(j)
    hidden = ground.seen.hidden[:, j] & ruled
    if not hidden.any():
        return "the rule hides nothing of it"
    return "no value of it is seen" if hidden.sum() == ruled.sum() else ""


def weighted_for(n: int) -> float:
    """Return ε₀ for so many rows: with few, far smaller shares could not be found with any weights."""
    return float(np.clip(SHARE_BY_ROWS / np.sqrt(n), LEAST_SHARE, MOST_SHARE))


def hidden_probabilities(rows: Rows, columns: list[int], at: Parameters) -> Floats:
    """Return P of each row for each of some columns; NaN where the rule does not speak of a cell."""
    out = np.empty((len(rows.Y), len(columns)))
    for k, j in enumerate(columns):
        hidden, free = (
            rows.log_likelihoods(holes, at, at) for holes in (rows.hiding(j), rows.losing(j))
        )
        out[:, k] = np.where(rows.ruled(j), np.exp(np.minimum(hidden - free, 0.0)), np.nan)
    return out


def loss_scores(P: Floats, hidden: NDArray[np.bool_], share: float) -> Floats:
    """Return u of cells; zero where the rule does not speak of them."""
    u = (hidden - P) / np.maximum(P + share * (1.0 - P), np.finfo(float).tiny)
    return np.where(np.isnan(P), 0.0, u)


def skewness(terms: Floats, n: int) -> Floats:
    """Skewness of sums of n terms."""
    centred = terms - terms.mean(axis=0)
    return np.asarray((centred**3).mean(axis=0) / (centred**2).mean(axis=0) ** 1.5 / np.sqrt(n))


def straightened(z: Floats, skewed: Floats) -> Floats:
    """Bring numbers of a law with some skewness to a nearly normal one (Cornish and Fisher 1938).

    z − γ (z² − 1)/6, continued by its tangent from half the way to where it would turn back.
    """
    inner = np.minimum(z, 1.5 / np.maximum(skewed, 1e-6))
    slope = 1.0 - skewed * inner / 3.0
    return np.asarray(inner - skewed * (inner * inner - 1.0) / 6.0 + slope * (z - inner))


def largest_p_values(z: Floats, correlation: Floats, seed: int) -> Floats:
    """Return, for each number, how often the largest of normal ones would be as large.

    Where draws are too few to say, the sum of all probabilities is a bound, and close to it.
    """
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rng = keyed_generator(seed, Purpose.DIAGNOSE, LARGEST)
    largest = (rng.standard_normal((LARGEST_DRAWS, z.size)) @ root.T).max(axis=1)
    beyond = (largest[:, None] >= z).sum(axis=0)
    bound = np.minimum(z.size * ndtr(-z), 1.0)
    drawn = (1.0 + beyond) / (1.0 + LARGEST_DRAWS)
    return np.where(beyond < FEWEST_BEYOND, np.minimum(bound, drawn), drawn)
