"""``truncation_psgd``: the paper's Algorithm 1, ``Truncation_PSGD``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import TableKind
from halfseen.errors import InputError
from halfseen.gaussian import Gaussian
from halfseen.missingness.base import Missingness, RuleKind
from halfseen.missingness.sets import Probability, SeenSet
from halfseen.parallel import single_blas_thread
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.correlations import EIGENVALUE_FLOOR, assemble
from halfseen.solvers.loop import progress_bar
from halfseen.solvers.prepared_table import ByColumn, Needs, joint_row_notes, prepare
from halfseen.solvers.result import Estimate, Note, projection_notes
from halfseen.solvers.truncated_sgd import ACCURACY, REPEATS, Floats, learn_truncated

NEEDS_ROWS = "truncation_psgd samples rows, so it needs the table, not its moments."
NEEDS_ONE_SET = (
    "truncation_psgd needs one set for each column, but the limits differ by row. Use "
    'method="truncation" or "pairwise", which allow that.'
)
NEEDS = Needs(
    {TableKind.VALUES: {RuleKind.BY_COLUMN}},
    believes=False,
    refuses={
        (TableKind.MOMENTS, RuleKind.BY_COLUMN): NEEDS_ROWS,
        (TableKind.VALUES, RuleKind.BY_ROW): NEEDS_ONE_SET,
    },
)


def truncation_psgd(
    X: Any,
    missingness: Missingness | None = None,
    *,
    accuracy: float = ACCURACY,
    repeats: int = REPEATS,
    eigenvalue_floor: float = EIGENVALUE_FLOOR,
    random_state: RandomState = None,
    progress: bool = False,
) -> Estimate:
    """Learn a Gaussian from seen values by the paper's Algorithm 1.

    A univariate truncated problem for each column gives μ̂_i and Σ̂_ii (lines 1 and 2), a bivariate one
    for each pair gives Σ̂^{ij}_12 (lines 3 to 5), both by projected SGD with nothing but membership
    queries. It works for every kind of set; ``truncation`` solves the same problems exactly.

    Parameters
    ----------
    X : array-like of shape (n, d) or data frame
        NaN where a value is hidden.
    missingness : SelfCensoring or DetectionLimits with the same limits in every row
    accuracy : float
        Monte-Carlo error of each problem, as a share of its statistical error.
    repeats : int
        Independent runs of each problem, for boosting.
    eigenvalue_floor : float
        Smallest eigenvalue of the assembled correlation matrix.
    random_state : int, Generator or None
    progress : bool
        Whether to show a bar.

    Returns
    -------
    Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> rule = hs.SelfCensoring(hs.at_least(-0.5))
    >>> X = hs.simulate(truth, rule, 3000)
    >>> fit = hs.solvers.truncation_psgd(X, rule, random_state=0)
    >>> bool(abs(fit.correlation[0, 1] - 0.5) < 0.2)
    True
    """
    data = prepare(X, missingness, "truncation_psgd", integrate=False)
    if data.values is None:
        raise InputError(NEEDS_ROWS)
    if data.missingness.varies_by_row:
        raise InputError(NEEDS_ONE_SET)
    seed = seed_of(random_state)
    d = len(data.names)
    problems = [(i,) for i in range(d)] + [(i, j) for i in range(d) for j in range(i + 1, d)]

    answers = []
    # One thread: the oracle is the user's Python, and two threads would only wait for each other.
    with single_blas_thread(), progress_bar("truncation_psgd", len(problems), progress) as advance:
        for columns in problems:
            answers.append(_learn(data, columns, accuracy, repeats, seed))
            advance()
    mean = np.array([float(g.mean[0]) for g, _, _ in answers[:d]])
    deviation = np.array([float(g.standard_deviations[0]) for g, _, _ in answers[:d]])
    i, j = np.triu_indices(d, 1)
    covariances = np.array([float(g.covariance[0, 1]) for g, _, _ in answers[d:]])
    rho = covariances / (deviation[i] * deviation[j])
    covariance, before, projected = assemble(deviation, rho, eigenvalue_floor)
    notes = joint_row_notes(data.moments) + [note for _, found, _ in answers for note in found]
    notes += projection_notes(covariance, before, projected, eigenvalue_floor)
    history = {
        "seed": seed,
        "disagreement": [history["disagreement"] for _, _, history in answers],
        "covariance_before_projection": before,
    }
    return Estimate(
        Gaussian(mean, covariance),
        "truncation_psgd",
        data.names,
        data.moments.rows,
        data.columns.share,
        tuple(notes),
        history,
    )


def _learn(
    data: ByColumn, columns: tuple[int, ...], accuracy: float, repeats: int, seed: int
) -> tuple[Gaussian, list[Note], dict[str, Any]]:
    """Solve one univariate or bivariate truncated problem."""
    assert data.values is not None
    part = np.asarray(data.values[:, list(columns)], dtype=float)
    rows = part[~np.isnan(part).any(axis=1)]
    sets = [data.missingness.cell_set(0, column) for column in columns]
    return learn_truncated(
        rows,
        _product_oracle(sets),
        len(rows) / len(part),
        tuple(data.names[column] for column in columns),
        accuracy=accuracy,
        repeats=repeats,
        seed=seed,
        # Distinct for every problem: (i, i) for a column, (i, j) for a pair.
        place=(columns[0], columns[-1]),
    )


def _product_oracle(
    sets: list[SeenSet],
) -> Callable[[Floats, np.random.Generator], NDArray[np.bool_]]:
    """Membership of S_i × S_j; a coin is thrown where a value is shown only sometimes."""
    if any(isinstance(seen_set, Probability) for seen_set in sets):

        def accept(Y: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
            shown = np.prod([s.probability(Y[:, k]) for k, s in enumerate(sets)], axis=0)
            return rng.random(len(Y)) < shown

    else:

        def accept(Y: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
            inside = sets[0].contains(Y[:, 0])
            for k, seen_set in enumerate(sets[1:], start=1):
                inside &= seen_set.contains(Y[:, k])
            return inside

    return accept
