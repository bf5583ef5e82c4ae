"""Hard tables by the hundred: how often intervals hold the truth, and what imputations are good for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.hard_running import counted, fitted, many
from benchmarks.hard_tables import PEOPLE, HardTable, half_hidden, laboratories, survey, visits
from benchmarks.registry import Row, task
from halfseen.solvers.full_information import information

Floats = NDArray[np.float64]

# Of 95 % intervals, and what the mean of an estimate may be off by, in its standard errors.
REACH, BIAS = 0.02, 0.1
FAMILIES = ("means", "standard deviations", "correlations")
# What the blood pressure of a survey rises with its first analyte.
SLOPE = 1.5
DRAWS = 20


class Design(NamedTuple):
    """A kind of table, and the first of the columns whose intervals are judged."""

    title: str
    make: Callable[..., HardTable]
    first: int = 0


DESIGNS = {
    # The people's columns are not Gaussian, so that their intervals promise nothing.
    "survey": Design(
        "survey, n = 2000, 12 analytes", partial(survey, 2000, analytes=12), len(PEOPLE)
    ),
    "visits": Design("visits, n = 200", partial(visits, 200)),
    **{
        f"half{d}": Design(f"half hidden, d = {d}, n = 400", partial(half_hidden, 400, d=d))
        for d in (20, 30, 31, 40)
    },
    "laboratories": Design("two laboratories in turn, d = 5, n = 4096", laboratories),
}


class Inside(NamedTuple):
    """Shares of the intervals of one table that hold the truth, by family; NaN without intervals."""

    status: str
    shares: Floats
    counts: tuple[int, ...]


@task
def hard_coverage(quick: bool) -> Iterator[Row]:
    """Count how often 95 % intervals hold what they are for."""
    tables = 20 if quick else 200
    for name, design in DESIGNS.items():
        found = many(partial(coverage, name), range(tables))
        yield from _coverage_rows(f"{design.title}, {tables} tables", found, quick)


def coverage(name: str, seed: int) -> Inside:
    """Fit one table of a design, and look which truths lie in their intervals."""
    design = DESIGNS[name]
    table = design.make(seed=seed)
    fit = fitted(table, seed)
    judged = len(table.names) - design.first
    counts = judged, judged, judged * (judged - 1) // 2
    return Inside(fit.status.name, shares_inside(fit, table, design.first), counts)


def shares_inside(fit: hs.Fit, table: HardTable, first: int) -> Floats:
    """Shares of true means, standard deviations and correlations in their 95 % intervals."""
    try:
        intervals = fit.confidence_interval(0.95)
    except hs.InputError:  # an estimate as good as singular has none
        return np.full(len(FAMILIES), np.nan)
    deviation = np.sqrt(np.diag(table.covariance))
    R = table.covariance / np.outer(deviation, deviation)
    pairs = tuple(first + part for part in np.tril_indices(len(R) - first, -1))
    own = slice(first, None)
    shares = []
    for limits, truth, part in (
        (intervals.mean, table.mean, own),
        (intervals.standard_deviation, deviation, own),
        (intervals.correlation, R, pairs),
    ):
        lower, upper = (np.asarray(end)[part] for end in limits)
        shares.append(np.mean((lower <= truth[part]) & (truth[part] <= upper)))
    return np.array(shares)


def _coverage_rows(where: str, found: list[Inside], quick: bool) -> Iterator[Row]:
    shares = np.array([one.shares for one in found])
    judged = shares[~np.isnan(shares).any(axis=1)]
    for k, family in enumerate(FAMILIES):
        what = f"{where}: 95 % intervals that hold their {family}"
        yield _share_row(what, judged[:, k], found[0].counts[k], quick)
    without = len(shares) - len(judged)
    yield Row(
        f"{where}: how fits ended",
        counted(one.status for one in found)
        + (f"; {without} without intervals" if without else ""),
        "",
    )


def _share_row(what: str, shares: Floats, entries: int, quick: bool) -> Row:
    """Judge a coverage; entries of one table go together, so that errors come from whole tables."""
    share = float(shares.mean()) if len(shares) else float("nan")
    error = float(shares.std(ddof=1) / len(shares) ** 0.5) if len(shares) > 1 else float("nan")
    # Few tables may all agree by chance: errors are at least those of independent entries.
    least = (0.95 * 0.05 / max(1, entries * len(shares))) ** 0.5
    reach = max(REACH, 4.0 * np.fmax(error, least)) if quick else REACH
    return Row(
        what,
        f"{share:.3f} ± {error:.3f}",
        f"{0.95 - reach:.2f} to {min(1.0, 0.95 + reach):.2f}",
        bool(abs(share - 0.95) <= reach),
    )


@task
def hard_pair_errors(quick: bool) -> Iterator[Row]:
    """Divide standard errors from pairs of columns by those from the whole information."""
    n = 200 if quick else 400
    for title, make in {
        "half hidden, correlations 0.5, d = 20": partial(half_hidden, n),
        "half hidden, correlations 0.9, d = 20": partial(half_hidden, n, rho=0.9),
        "survey, 12 analytes": partial(survey, 5 * n, analytes=12),
    }.items():
        table = make(seed=0)
        with mock.patch.object(information, "MOST_PARAMETERS", 0):
            pairs = _by_family(fitted(table))
        for family, one, whole in zip(FAMILIES, pairs, _by_family(fitted(table)), strict=True):
            ratio = one / whole
            yield Row(
                f"{title}, n = {len(table.seen)}: standard errors of {family}, from pairs / from all "
                "parameters, median (smallest to largest)",
                f"{np.median(ratio):.2f} ({ratio.min():.2f} to {ratio.max():.2f})",
                "",
            )


def _by_family(fit: hs.Fit) -> tuple[Floats, Floats, Floats]:
    errors = fit.standard_errors
    pairs = np.tril_indices(len(fit.mean), -1)
    return errors.mean, errors.standard_deviation, errors.correlation[pairs]


class Slope(NamedTuple):
    """A slope from imputed tables, with its standard error, and the one from the complete table."""

    estimate: float
    error: float
    inside: bool
    complete: float


@task
def hard_imputation(quick: bool) -> Iterator[Row]:
    """Regress pressure on an analyte and on people, in tables that were filled in many times."""
    tables, n = (20 if quick else 200), 1500
    found = many(partial(imputed_slope, n), range(tables))
    where = f"survey, n = {n}, 8 analytes, {tables} tables, {DRAWS} imputations each"
    # The complete tables' slopes have mean 1.5; that they vary too is no fault of the imputations.
    error = float(np.sqrt(np.mean([one.error**2 for one in found])))
    gaps = np.array([one.estimate - one.complete for one in found]) / error
    bias, noise = float(gaps.mean()), float(gaps.std(ddof=1) / len(gaps) ** 0.5)
    reach = max(BIAS, 4.0 * noise) if quick else BIAS
    yield Row(
        f"{where}: slope less that of the complete table, mean, in standard errors",
        f"{bias:.3f} ± {noise:.3f}",
        f"{-reach:.2f} to {reach:.2f}",
        abs(bias) <= reach,
    )
    inside = np.array([one.inside for one in found], dtype=float)
    yield _share_row(f"{where}: 95 % intervals that hold {SLOPE}", inside, 1, quick)
    spread = float(np.std([one.estimate for one in found], ddof=1))
    yield Row(f"{where}: standard error / spread of the estimates", f"{error / spread:.2f}", "")


def imputed_slope(n: int, seed: int) -> Slope:
    """Pool the slopes from imputations of one survey by Rubin's rules."""
    table = survey(n, seed, analytes=8)
    drawn = fitted(table, seed).draw_imputations(m=DRAWS, random_state=seed)
    slopes = np.array([least_squares_slope(filled, table.names) for filled in drawn])
    pooled = hs.pool(slopes[:, 0], slopes[:, 1], degrees_of_freedom=n - 5)
    lower, upper = pooled.interval(0.95)
    return Slope(
        float(pooled.estimate),
        float(pooled.standard_error),
        bool(lower <= SLOPE <= upper),
        least_squares_slope(table.complete, table.names)[0],
    )


def least_squares_slope(Y: Floats, names: tuple[str, ...]) -> tuple[float, float]:
    """Slope of pressure on the first analyte, given age, bmi and male, and its squared error."""
    columns = [names.index(name) for name in ("analyte1", "age", "bmi", "male")]
    # Centred columns and no intercept: the same slopes, and better conditioned.
    A = Y[:, columns] - Y[:, columns].mean(axis=0)
    y = Y[:, names.index("pressure")]
    inverse = np.linalg.inv(A.T @ A)
    b = inverse @ (A.T @ (y - y.mean()))
    residual = y - y.mean() - A @ b
    variance = residual @ residual / (len(Y) - len(columns) - 1)
    return float(b[0]), float(variance * inverse[0, 0])
