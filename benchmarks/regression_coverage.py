"""How often intervals of regressions hold the truth, and how far estimates are from it on average."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.hard_running import counted
from benchmarks.registry import Row, task
from benchmarks.regression_tables import (
    RegressionTable,
    clustered,
    heckman,
    many_censored,
    probits_and_tobit,
    roy,
    two_selected,
    uneven,
)
from benchmarks.two_stages import TABLES, Share, TwoStages

Floats = NDArray[np.float64]

# Of 95 % intervals: what is asked of a family, and of each parameter by itself (of 200 tables a share
# has a standard error of 0.015).
ALL, EACH = (0.93, 0.97), (0.92, 0.97)
# Seconds for one table of wages.
FAST = 0.3
# Rows from which the regression is learned that uneven residuals come nearest to.
LIMIT_ROWS = 300_000


class Design(NamedTuple):
    """A kind of table, and how its errors are made."""

    title: str
    make: Callable[..., RegressionTable]
    robust: str = ""
    each: bool = False


DESIGNS = {
    "heckman": Design("heckman, n = 750", partial(heckman, 750), each=True),
    "five": Design(
        "five outcomes, limits by row, n = 500",
        lambda seed: many_censored(500, 5, 3, seed),
    ),
    "two selected": Design(
        "two outcomes selected by one index, n = 800", partial(two_selected, 800)
    ),
    "Roy": Design("Roy, with an exclusion, n = 1500", partial(roy, 1500)),
    "probits": Design(
        "two probits and a censored outcome, n = 600", partial(probits_and_tobit, 600)
    ),
    "uneven": Design("uneven residuals, robust errors, n = 600", partial(uneven, 600), "rows"),
    "sites": Design("80 sites of 8 rows, clustered errors", partial(clustered, 80, 8), "sites"),
}


class Found(NamedTuple):
    """What one table came to, for each parameter: coefficients, deviations, then correlations.

    ``plain`` has which of them lie in intervals that believe the model, where others are judged.
    """

    status: str
    names: tuple[str, ...]
    gap: Floats
    error: Floats
    inside: NDArray[np.bool_]
    plain: NDArray[np.bool_]


@task
def regression_coverage(quick: bool) -> Iterator[Row]:
    """Count how often 95 % intervals of regressions hold what they are for."""
    tables = 12 if quick else TABLES
    for name, design in DESIGNS.items():
        if name == "uneven":
            even_weights()
        stages = TwoStages(partial(answer, name, _limit_of(name)), tables)
        yield from _rows(f"{design.title}, {tables} tables", design, stages, quick)
    yield from time_rows()


def _limit_of(name: str) -> Floats | None:
    return even_weights() if name == "uneven" else None


@cache
def even_weights() -> Floats:
    """Return what estimates go to where residuals are uneven: coefficients, deviations, correlation."""
    fit = quiet(uneven(LIMIT_ROWS, 10_000), standard_errors=False)
    return numbers(fit)


def numbers(fit: hs.RegressionFit) -> Floats:
    """Return coefficients, deviations and correlations of residuals, in a row."""
    residual = np.asarray(fit.residual)
    deviation = np.sqrt(np.diag(residual))
    pairs = np.tril_indices(len(residual), -1)
    R = residual / np.outer(deviation, deviation)
    return np.concatenate([np.asarray(fit.weights)[fit.free], deviation, R[pairs]])


def quiet(table: RegressionTable, **options: bool) -> hs.RegressionFit:
    """Fit a table; what the fit warns of, its status says too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return table._replace(options={**table.options, **options}).fit()


def answer(name: str, limit: Floats | None, seed: int) -> Found:
    """Fit one table of a design, and look which truths lie in their intervals."""
    design = DESIGNS[name]
    table = design.make(seed=seed)
    fit = quiet(table)
    truth = limit if limit is not None else truth_of(table, fit)
    plain = inside_of(fit, truth)
    judged = fit
    if design.robust:
        judged = fit.robust(table.clusters)
    learned = _learned(fit, truth)
    return Found(
        fit.status.name,
        tuple(np.array(_names(fit))[learned]),
        (numbers(fit) - truth)[learned],
        errors_of(judged)[learned],
        inside_of(judged, truth)[learned],
        plain[learned],
    )


def truth_of(table: RegressionTable, fit: hs.RegressionFit) -> Floats:
    """Return the truth in the order of ``numbers``; NaN where there is nothing to learn."""
    S = table.residual
    deviation = np.sqrt(np.diag(S))
    R = S / np.outer(deviation, deviation)
    pairs = np.tril_indices(len(S), -1)
    return np.concatenate([table.weights.T[fit.free], deviation, R[pairs]])


def errors_of(fit: hs.RegressionFit) -> Floats:
    """Return standard errors in the same order."""
    told, q = fit.standard_errors, len(fit.outcomes)
    pairs = np.tril_indices(q, -1)
    return np.concatenate([told.weights[fit.free], told.deviations, told.correlations[pairs]])


def inside_of(fit: hs.RegressionFit, truth: Floats) -> NDArray[np.bool_]:
    """Tell which truths lie in their intervals."""
    found, pairs = fit.confidence_interval(0.95), np.tril_indices(len(fit.outcomes), -1)
    ends = [
        np.concatenate(
            [
                np.asarray(getattr(found.coefficients, end)).T[fit.free],
                np.asarray(getattr(found.residual_deviations, end)),
                np.asarray(getattr(found.residual_correlation, end))[pairs],
            ]
        )
        for end in ("lower", "upper")
    ]
    return np.asarray((ends[0] <= truth) & (truth <= ends[1]))


def _learned(fit: hs.RegressionFit, truth: Floats) -> NDArray[np.bool_]:
    """Tell which parameters are to be learned: neither known, nor beyond what the rows can say."""
    of_terms, q = int(fit.free.sum()), len(fit.outcomes)
    latent = np.array([kind != "continuous" for kind in fit.kinds])
    known = np.zeros(truth.size, dtype=bool)
    known[of_terms : of_terms + q] = latent
    return np.isfinite(truth) & ~known


def _names(fit: hs.RegressionFit) -> list[str]:
    at = np.argwhere(fit.free)
    terms = [f"{fit.outcomes[j]}: {fit.terms[k]}" for j, k in at]
    deviations = [f"deviation of {name}" for name in fit.outcomes]
    pairs = zip(*np.tril_indices(len(fit.outcomes), -1), strict=True)
    return [
        *terms,
        *deviations,
        *(f"correlation {fit.outcomes[i]}, {fit.outcomes[j]}" for i, j in pairs),
    ]


def _rows(where: str, design: Design, stages: TwoStages[Found], quick: bool) -> Iterator[Row]:
    found = stages.first
    names = np.array(found[0].names)
    families = {
        "coefficients": np.char.find(names, ":") >= 0,
        "deviations of residuals": np.char.startswith(names, "deviation"),
        "correlations of residuals": np.char.startswith(names, "correlation"),
    }
    for family, own in families.items():
        if own.any():
            what = f"{where}: 95 % intervals that hold their {family}"
            yield stages.row(what, partial(_share, own, quick), ALL)
    if design.each:
        for name in names:
            what = f"{where}: 95 % intervals that hold {name}"
            yield stages.row(what, partial(_share, names == name, quick), EACH)
    else:
        shares = np.mean([one.inside for one in found], axis=0)
        low, high = int(shares.argmin()), int(shares.argmax())
        said = f"{shares[low]:.3f} ({names[low]}) to {shares[high]:.3f} ({names[high]})"
        yield Row(f"{where}: the same for each parameter, least and most", said, "")
    yield from _bias_rows(where, names, found)
    if design.robust:
        plain = np.array([one.plain for one in found], dtype=float).mean(axis=0)
        k = int(plain.argmin())
        what = f"{where}: intervals that believe the model, least of all parameters"
        yield Row(what, f"{plain[k]:.3f} ({names[k]})", "")
    yield Row(f"{where}: how fits ended", counted(one.status for one in found), "")


def _bias_rows(where: str, names: NDArray[np.str_], found: list[Found]) -> Iterator[Row]:
    """Say how far estimates are off on average, and whether standard errors are as large as spreads."""
    gap, error = (np.array([getattr(one, key) for one in found]) for key in ("gap", "error"))
    spread = gap.std(axis=0, ddof=1)
    bias, noise = gap.mean(axis=0) / spread, 1.0 / np.sqrt(len(found))
    k = int(np.abs(bias).argmax())
    yield Row(
        f"{where}: bias in standard errors, root mean square (largest)",
        f"{np.sqrt(np.mean(bias**2)):.2f} ({bias[k]:+.2f} ± {noise:.2f}, {names[k]})",
        "",
    )
    ratio = np.sqrt((error**2).mean(axis=0)) / spread
    low, high = int(ratio.argmin()), int(ratio.argmax())
    yield Row(
        f"{where}: standard error / spread of estimates, middle (least, most)",
        f"{np.median(ratio):.2f} ({ratio[low]:.2f} {names[low]}, {ratio[high]:.2f} {names[high]})",
        "",
    )


def _share(own: NDArray[np.bool_], quick: bool, found: list[Found]) -> Share:
    """Count intervals of some parameters; those of one table go together, so errors are of tables."""
    shares = np.array([one.inside[own].mean() for one in found])
    error = float(shares.std(ddof=1) / len(shares) ** 0.5)
    # Few tables may all agree by chance: errors are at least those of independent entries.
    least = (0.95 * 0.05 / (own.sum() * len(shares))) ** 0.5
    slack = 4.0 * max(error, float(least)) if quick else 0.0
    return Share(float(shares.mean()), f" ± {error:.3f}", slack)


def time_rows() -> Iterator[Row]:
    """Time one table of wages, after one that compiles."""
    table = heckman(750, 0)
    quiet(table)
    seconds, processor = [], []
    for _ in range(9):
        start = time.perf_counter(), time.process_time()
        quiet(table)
        seconds.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    load = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else np.nan
    least = min(processor)
    yield Row(
        "heckman, n = 750: processor time of one table, least (median) of nine",
        f"{least:.2f} s ({np.median(processor):.2f} s; {np.median(seconds):.2f} s by the clock, at a "
        f"load of {load:.1f} for each core)",
        f"below {FAST:g} s",
        least < FAST,
    )
