"""Visits of which many did not happen: fits against a plain EM, a bootstrap, and another seed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.hard_reference import Reference, climb, is_singular
from benchmarks.hard_running import counted, fitted, many, parameters, spread_of
from benchmarks.hard_tables import hide, visits
from benchmarks.registry import Row, task

Floats = NDArray[np.float64]

# How far apart seeds of one table may end in log-likelihood.
SPREAD = 0.1
# How far below a plain EM a fit may end, in log-likelihood.
SHORT = 0.1
# Ratios of standard errors to those of a bootstrap, which is itself off by some percent.
RATIO = 0.2
EDGE = hs.Status.ON_DOMAIN_EDGE.name


class VisitFits(NamedTuple):
    """What fits of one table with two seeds came to, and what a plain EM still gains on the first."""

    number: int
    statuses: tuple[str, ...]
    spread: float
    # From the fit, and from the truth; NaN where not looked at.
    gain: float
    gain_elsewhere: float
    # Whether EM from the truth ran into a singular covariance.
    endless: bool
    # What the fit itself says that there is still to gain.
    told: float


@task
def hard_visits(quick: bool) -> Iterator[Row]:
    """Fit eight visits: against a plain EM, against a bootstrap, seed against seed."""
    tables, refits = (range(4), 40) if quick else (range(20), 200)
    for n in (72, 200):
        found = many(visit_fits, [(n, s) for s in tables])
        yield from _visit_rows(f"visits, n = {n}, {len(tables)} tables", found)
    for n in (72, 200):
        ratios = many(bootstrap_ratios, [(n, s, refits) for s in tables])
        yield from _bootstrap_rows(f"visits, n = {n}, {refits} refits", ratios, refits)


def visit_fits(item: tuple[int, int]) -> VisitFits:
    """Fit visits with two seeds, and go on by EM where the fit is not on the edge of its domain."""
    n, number = item
    table = visits(n, number)
    fits = [fitted(table, seed) for seed in (0, 1)]
    statuses = tuple(fit.status.name for fit in fits)
    reference = Reference(table)
    levels = [reference.integral(*parameters(fit)) for fit in fits]
    spread, _ = spread_of(levels)
    told = float(fits[0].history.get("gain_left", np.nan))
    if EDGE in statuses:
        return VisitFits(number, statuses, spread, np.nan, np.nan, False, told)
    gains, ends = [], []
    for start in (parameters(fits[0]), (table.mean, table.covariance)):
        # A rough way up first: points are of other rows than those that judge.
        rough = climb(Reference(table, points=32, copies=2, seed=1), start, tolerance=1e-2)
        ends.append(climb(Reference(table, points=128, seed=2), rough))
        gains.append(reference.integral(*ends[-1]).less(levels[0])[0])
    endless = is_singular(ends[1][1])
    elsewhere = np.nan if endless else gains[1]
    return VisitFits(number, statuses, spread, gains[0], elsewhere, endless, told)


def _visit_rows(where: str, found: list[VisitFits]) -> Iterator[Row]:
    edge = [one for one in found if EDGE in one.statuses]
    inside = [one for one in found if EDGE not in one.statuses]
    yield Row(
        f"{where}: how fits ended",
        counted(one.statuses[0] for one in found),
        "",
    )
    same = sum(len(set(one.statuses)) == 1 for one in found)
    what = f"{where}: both seeds end with the same status"
    yield Row(what, f"{same} of {len(found)}", "all", same == len(found))
    for title, part in (("inside the domain", inside), (f"{EDGE}, only this is looked at", edge)):
        if part:
            worst = max(one.spread for one in part)
            yield Row(
                f"{where}: difference of log-likelihoods between seeds, largest of the {len(part)} "
                f"({title})",
                f"{worst:.2f}",
                f"at most {SPREAD:g}",
                worst <= SPREAD,
            )
    if not inside:
        return
    worst = -float(np.nanmax([(one.gain, one.gain_elsewhere) for one in inside]))
    short = [one.number for one in inside if np.nanmax([one.gain, one.gain_elsewhere]) > SHORT]
    yield Row(
        f"{where}: log-likelihood less that of a plain EM, smallest of the {len(inside)} inside"
        + (f" (too low in {short})" if short else ""),
        f"{worst:.3f}",
        f"at least {-SHORT:g}",
        worst >= -SHORT,
    )
    endless = [one.number for one in inside if one.endless]
    yield Row(
        f"{where}: of these, EM from the truth runs into a singular covariance in",
        f"{len(endless)} {endless or ''}".strip(),
        "",
    )
    if np.isfinite([one.told for one in inside]).all():
        told = [one.told - one.gain for one in inside]
        what = f"{where}: gain that the fit says is left, less what EM gains from there"
        yield Row(what, f"{min(told):.3f} to {max(told):.3f}", "")


def bootstrap_ratios(item: tuple[int, int, int]) -> dict[str, Floats] | None:
    """Divide standard errors by the spread of refits to tables drawn from the fit; not on the edge.

    They are those of means, logarithms of standard deviations and Fisher's z: on these scales estimates
    are nearly normal. Spreads are half the distance between the 16th and the 84th percentile, as a refit
    may be singular.
    """
    n, number, refits = item
    table = visits(n, number)
    fit = fitted(table)
    if fit.status.name == EDGE:
        return None
    L = np.linalg.cholesky(fit.covariance)
    rng = np.random.default_rng([number, 10])
    found = []
    for seed in range(refits):
        Y = fit.mean + rng.normal(size=table.complete.shape) @ L.T
        again = hide(table.names, Y, table.limit, table.at_random, *parameters(fit))
        found.append(_nearly_normal(fitted(again, seed).gaussian))
    low, high = np.quantile(found, [0.16, 0.84], axis=0)
    pairs = np.tril_indices(len(fit.mean), -1)
    error, g = fit.standard_errors, fit.gaussian
    errors = [
        error.mean,
        error.standard_deviation / g.standard_deviations,
        error.correlation[pairs] / (1.0 - g.correlation[pairs] ** 2),
    ]
    cuts = np.cumsum([len(part) for part in errors])[:-1]
    ratios = np.split(np.concatenate(errors) / (0.5 * (high - low)), cuts)
    return dict(zip(("means", "standard deviations", "correlations"), ratios, strict=True))


def _nearly_normal(g: hs.Gaussian) -> Floats:
    z = np.arctanh(np.clip(g.correlation, -1.0 + 1e-12, 1.0 - 1e-12))
    pairs = np.tril_indices(len(g.mean), -1)
    return np.concatenate([g.mean, np.log(g.standard_deviations), z[pairs]])


def _bootstrap_rows(
    where: str, found: list[dict[str, Floats] | None], refits: int
) -> Iterator[Row]:
    """Judge each table by its median: single ratios are off by the noise of their bootstrap alone."""
    inside = [ratios for ratios in found if ratios is not None]
    where = f"{where}, {len(inside)} of {len(found)} tables (the others are {EDGE})"
    # With few refits their spread is off by more: by 0.9/√refits, and so are those of its neighbours.
    reach = RATIO if refits >= 200 else RATIO + 1.8 / refits**0.5
    for name in inside[0] if inside else ():
        middle = np.array([np.median(ratios[name]) for ratios in inside])
        every = np.concatenate([ratios[name] for ratios in inside])
        close = float(np.mean(abs(every - 1.0) <= RATIO))
        yield Row(
            f"{where}: standard errors of {name} / bootstrap, medians of tables",
            f"{middle.min():.2f} to {middle.max():.2f} ({close:.0%} of all within 20 %)",
            f"{1.0 - reach:.1f} to {1.0 + reach:.1f}",
            bool((abs(middle - 1.0) <= reach).all()),
        )
