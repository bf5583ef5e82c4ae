"""Structures of the covariance: coverage, errors, time; factors of wide tables; few subjects."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.factor_limits import FactorLaw, climbed, limits_of_covariance
from benchmarks.hard_running import many
from benchmarks.hard_tables import HardTable, hide, visits
from benchmarks.registry import Row, task

Floats = NDArray[np.float64]

# By the law that tables are drawn from: with this correlation between neighbours, or between any two.
CORRELATION, VISITS = 0.77 / 1.11, 8
STRUCTURES = ("compound_symmetry", "ar1", "free")
COVERED, RATIO = (0.93, 0.97), 0.1
# A table of 72 subjects and 8 visits takes at most so many seconds.
SECONDS = 0.5
# Of tables with common factors: columns, rows, factors, and the share hidden of each column.
WIDE = (100, 500, 3, 0.4)
ERROR, RIGHT = 1.1, 0.9
# Rows over which the information of such tables is averaged, and steps to the exact top: after 5 of them
# one more moves a covariance by less than 1e-3 of its error.
LIMIT_ROWS, EXACT_STEPS = 1000, 10


class Visited(NamedTuple):
    """What one table says: whether intervals hold the truth, estimates and errors, and seconds."""

    means: Floats
    deviations: Floats
    correlation: bool | None
    estimates: Floats
    errors: Floats
    seconds: float


def lags() -> Floats:
    return np.abs(np.subtract.outer(np.arange(VISITS), np.arange(VISITS))).astype(float)


def table_of(structure: str, n: int, seed: int) -> HardTable:
    """Return visits whose covariance has the structure; compound symmetry is that of ``visits``."""
    table = visits(n, seed)
    if structure != "ar1":
        return table
    covariance = 1.11 * CORRELATION ** lags()
    rng = np.random.default_rng([seed, 12])
    noise = rng.normal(size=(n, VISITS)) @ np.linalg.cholesky(covariance).T
    Y = table.mean + noise
    return hide(table.names, Y, table.limit, table.at_random, table.mean, covariance)


def fit_of(table: HardTable, structure: str) -> hs.Fit:
    """Fit a table on one thread; what the fit warns of, its status says too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        data = hs.IntervalData(table.lower, table.upper, table.names)
        return hs.fit(data, covariance=structure, random_state=0, n_jobs=1)


def visited(item: tuple[str, int, int]) -> Visited | None:
    """Fit one table; None where the likelihood has no top."""
    structure, n, seed = item
    table = table_of(structure, n, seed)
    begun = time.process_time()
    fit = fit_of(table, structure)
    seconds = time.process_time() - begun
    if fit.uncertainty is None:
        return None
    ends = fit.confidence_interval(0.95, kind="wald")
    deviation = np.sqrt(np.diag(table.covariance))
    held: bool | None = None
    if fit.structure is not None:
        # That of neighbours is the parameter.
        low, high = (float(end[1, 0]) for end in (ends.correlation.lower, ends.correlation.upper))
        held = low < CORRELATION < high
    return Visited(
        (ends.mean.lower < table.mean) & (table.mean < ends.mean.upper),
        (ends.standard_deviation.lower < deviation) & (deviation < ends.standard_deviation.upper),
        held,
        np.concatenate([fit.mean, np.log(fit.gaussian.standard_deviations)]),
        np.concatenate(
            [
                fit.standard_errors.mean,
                fit.standard_errors.standard_deviation / fit.gaussian.standard_deviations,
            ]
        ),
        seconds,
    )


@task
def structures_visits(quick: bool) -> Iterator[Row]:
    """Fit repeated measures: coverage, and standard errors beside the scatter of estimates."""
    for n in (72, 200):
        for structure in STRUCTURES:
            # Intervals of variances and correlations are one number a table under a structure: of 200
            # tables the share that holds has a standard error of 1.5 %, of 1000 one of 0.7 %.
            count = 10 if quick else 200 if structure == "free" else 1000
            found = many(visited, [(structure, n, s) for s in range(count)])
            inside = [one for one in found if one is not None]
            where = f"visits, n = {n}, {structure}, {len(inside)} of {count} tables with a top"
            if inside:
                yield from _visit_rows(where, inside, n, judged=not quick and len(inside) == count)


def _visit_rows(where: str, found: list[Visited], n: int, judged: bool) -> Iterator[Row]:
    low, high = COVERED
    kinds: dict[str, Any] = {
        "means": np.mean([one.means for one in found]),
        "standard deviations": np.mean([one.deviations for one in found]),
    }
    if found[0].correlation is not None:
        kinds["correlation"] = np.mean([one.correlation for one in found])
    for kind, share in kinds.items():
        met = bool(low <= share <= high)
        yield Row(
            f"{where}: 95 % intervals of {kind} that hold the truth",
            f"{share:.1%}", f"{low:.0%} to {high:.0%}", met if judged else None,
        )  # fmt: skip
    spread = np.std([one.estimates for one in found], axis=0, ddof=1)
    errors = np.sqrt(np.mean([one.errors**2 for one in found], axis=0))
    for kind, part in (("means", slice(0, VISITS)), ("standard deviations", slice(VISITS, None))):
        ratio = float(np.sqrt(np.mean((errors[part] / spread[part]) ** 2)))
        yield Row(
            f"{where}: standard errors of {kind} / scatter of estimates over tables",
            f"{ratio:.2f}", f"{1 - RATIO:.1f} to {1 + RATIO:.1f}",
            bool(abs(ratio - 1.0) <= RATIO) if judged else None,
        )  # fmt: skip
    seconds = float(np.median([one.seconds for one in found]))
    if n == 72:
        yield Row(
            f"{where}: processor seconds, median",
            f"{seconds:.2f}",
            f"at most {SECONDS}",
            seconds <= SECONDS,
        )


def wide_law(rng: np.random.Generator) -> FactorLaw:
    d, _, k, _ = WIDE
    return FactorLaw(np.zeros(d), 0.6 * rng.normal(size=(d, k)), rng.uniform(0.4, 1.2, d))


def wide_table(seed: int) -> tuple[Floats, Floats, Floats, FactorLaw]:
    """Return all values, those that are seen, the limits, and the law behind them."""
    d, n, k, hidden = WIDE
    rng = np.random.default_rng([seed, 13])
    law = wide_law(rng)
    Y = rng.normal(size=(n, k)) @ law.loadings.T + rng.normal(size=(n, d)) * np.sqrt(law.noise)
    limit = np.quantile(Y, hidden, axis=0)
    return Y, np.where(limit > Y, np.nan, Y), limit, law


def wide_fit(X: Floats, limit: Floats, structure: hs.Factor) -> hs.Fit:
    rule = hs.DetectionLimits(lower=limit)
    return hs.fit(X, rule, covariance=structure, random_state=0, n_jobs=1, standard_errors=False)


def wide_errors(seed: int) -> tuple[float, float, float]:
    """Return errors of a fit and of factor analysis on complete data (Frobenius), and seconds."""
    from sklearn.decomposition import FactorAnalysis

    Y, X, limit, law = wide_table(seed)
    begun = time.process_time()
    fit = wide_fit(X, limit, hs.Factor(WIDE[2]))
    seconds = time.process_time() - begun
    complete = FactorAnalysis(WIDE[2], tol=1e-6, max_iter=5000).fit(Y).get_covariance()
    errors = [float(np.linalg.norm(one - law.covariance)) for one in (fit.covariance, complete)]
    return errors[0], errors[1], seconds


def wide_limits(seed: int) -> tuple[float, float]:
    """Return the least expected squared errors of the covariance of one row: with holes, and without."""
    limit, law = wide_table(seed)[2:]
    return limits_of_covariance(law, limit, LIMIT_ROWS, np.random.default_rng([seed, 14]))


def from_exact_top(seed: int) -> tuple[float, float]:
    """Return how far a fit is from the top of the exact likelihood (Frobenius), and from the truth."""
    _, X, limit, law = wide_table(seed)
    fit = wide_fit(X, limit, hs.Factor(WIDE[2]))
    loadings, noise = (fit.structure[name].value for name in ("loadings", "uniquenesses"))
    top, _ = climbed(FactorLaw(fit.mean, loadings, noise), X, limit, EXACT_STEPS)
    found = fit.covariance
    return tuple(float(np.linalg.norm(found - one.covariance)) for one in (top, law))


def chosen_factors(seed: int) -> int:
    """Return how many factors are chosen."""
    _, X, limit, _ = wide_table(seed)
    return int(np.argmin(wide_fit(X, limit, hs.Factor()).history["criteria_of_factors"]))


@task
def structures_factors(quick: bool) -> Iterator[Row]:
    """Fit wide tables with common factors: beside factor analysis of complete data; how many."""
    d, n, k, hidden = WIDE
    where = f"{d} columns, {n} rows, {k} factors, {hidden:.0%} hidden"
    found = np.array(many(wide_errors, range(1 if quick else 24)))
    of_fit, of_complete = (np.sqrt(np.mean(found[:, m] ** 2)) for m in (0, 1))
    limits = np.mean(many(wide_limits, range(1 if quick else 4)), axis=0)
    least, ratio = float(np.sqrt(limits[0] / limits[1])), float(of_fit / of_complete)
    yield Row(
        f"{where}: error of the covariance / that of factor analysis of complete data, "
        f"{len(found)} tables",
        f"{ratio:.3f} (no unbiased estimate has less than {least:.3f})",
        f"at most {ERROR}", ratio <= ERROR,
    )  # fmt: skip
    beside = float(of_fit * np.sqrt(n / limits[0]))
    yield Row(
        f"{where}: error of the covariance / Cramér–Rao limit, {len(found)} tables",
        f"{beside:.3f}", "",
    )  # fmt: skip
    yield Row(f"{where}: processor seconds, median", f"{np.median(found[:, 2]):.1f}", "")
    apart = np.array(many(from_exact_top, range(1 if quick else 2)))
    yield Row(
        f"{where}: distance to the top of the exact likelihood / error, {len(apart)} tables",
        f"{(apart[:, 0] / apart[:, 1]).max():.3f}", "",
    )  # fmt: skip
    numbers = many(chosen_factors, range(1 if quick else 10))
    right = float(np.mean([one == k for one in numbers]))
    yield Row(
        f"{where}: number of factors right by BIC, {len(numbers)} tables",
        f"{right:.0%}", f"at least {RIGHT:.0%}", right >= RIGHT,
    )  # fmt: skip


def few_subjects(item: tuple[int, int]) -> tuple[float, float, float]:
    """Return variance and correlation over the truth, and the share of means that intervals hold."""
    n, seed = item
    table = visits(n, seed)
    try:
        fit = fit_of(table, "compound_symmetry")
    except hs.NotIdentifiedError:
        # Of so few subjects none may have come to the last visit.
        return np.nan, np.nan, np.nan
    if fit.uncertainty is None or fit.structure is None:
        return np.nan, np.nan, np.nan
    ends = fit.confidence_interval(0.95, kind="wald").mean
    held = np.mean((ends.lower < table.mean) & (table.mean < ends.upper))
    variance, correlation = (fit.structure[name].value for name in ("variance", "correlation"))
    return variance / table.covariance[0, 0], correlation / CORRELATION, float(held)


@task
def structures_few_subjects(quick: bool) -> Iterator[Row]:
    """Measure how far maximum likelihood is off with few subjects, where REML would not be."""
    count = 10 if quick else 400
    for n in (12, 24, 72):
        found = np.array(many(few_subjects, [(n, s) for s in range(count)]))
        known = found[np.isfinite(found).all(axis=1)]
        where = f"visits, n = {n}, compound symmetry, {len(known)} of {count} tables with a top"
        for column, kind in enumerate(("variance", "correlation")):
            yield Row(f"{where}: {kind} / truth, average", f"{known[:, column].mean():.3f}", "")
        yield Row(
            f"{where}: 95 % intervals of means that hold the truth", f"{known[:, 2].mean():.1%}", ""
        )
