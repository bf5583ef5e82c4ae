"""Theorem 1.2: learning from seen values under self-censoring."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import correlation_for, decaying, equicorrelated, legendre_nodes
from halfseen.ledger.registry import (
    ALLOWED,
    Curve,
    Measured,
    claim,
    exponent,
    heights,
    power_law,
    power_law_from,
    root_mean_square,
    slope,
)
from halfseen.metrics import mahalanobis_error, relative_frobenius_error, total_variation
from halfseen.missingness import Probability, SelfCensoring, at_least
from halfseen.simulate import simulate
from halfseen.solvers import truncation, truncation_psgd
from halfseen.solvers.result import Fit

Floats = NDArray[np.float64]
Solver = Callable[[Floats, SelfCensoring], Fit]

# A value is seen from half a standard deviation below its mean: 69 % of a column.
LIMIT = -0.5
CORRELATION = 0.4
# Nodes of each axis of the quadrature for the information, up to this many deviations.
NODES, REACH = 120, 9.0
# Draws for each total variation, whose relative standard error is then below 1/√draws, 1 %.
DRAWS = 10_000

SLOPE_TEXT = (
    "within 4 standard errors, from the spread of squared errors over the tables (delta method)"
)


def half_line(d: int, limit: float = LIMIT) -> SelfCensoring:
    """Show every coordinate from a limit upwards."""
    return SelfCensoring([at_least(limit)] * d)


def thinned(d: int, share: float) -> SelfCensoring:
    """Show a coordinate above the limit with this probability: S_i : R → [0, 1] of one shape."""

    def probability(x: Floats) -> Floats:
        return np.where(x >= LIMIT, share, 0.0)

    return SelfCensoring([Probability(probability)] * d)


def solve_paper(X: Floats, rule: SelfCensoring) -> Fit:
    """Solve the problems of Algorithm 1 exactly: five free parameters for each pair."""
    return truncation(X, rule, form="paper")


def fits(
    truth: Gaussian,
    rule: SelfCensoring,
    n: int,
    tables: int,
    seed: int,
    solve: Solver = solve_paper,
    known: SelfCensoring | None = None,
) -> list[Fit]:
    """Fit tables drawn under ``rule``; ``known`` is what the solver is told, where it is less."""
    told = rule if known is None else known
    seeds = np.random.SeedSequence([seed, n]).generate_state(tables)
    return [solve(simulate(truth, rule, n, random_state=int(s)), told) for s in seeds]


def mean_errors(found: Sequence[Fit], truth: Gaussian) -> Floats:
    """‖Σ*^-½(μ̂ − μ*)‖ of each table."""
    return np.array([mahalanobis_error(fit.gaussian.mean, truth) for fit in found])


def covariance_errors(found: Sequence[Fit], truth: Gaussian) -> Floats:
    """‖I − Σ*^-½ Σ̂ Σ*^-½‖_F of each table."""
    return np.array([relative_frobenius_error(fit.gaussian.covariance, truth) for fit in found])


def distances(found: Sequence[Fit], truth: Gaussian) -> Floats:
    """Total variation between truth and answer of each table."""
    return np.array([total_variation(fit.gaussian, truth, DRAWS).value for fit in found])


@cache
def constants(rho: float, limit: float) -> tuple[float, float, float, float]:
    """Return α and the constants c of μ̂_i, Σ̂_ii and Σ̂_ij: the standard error is c over √(rows seen).

    In natural parameters the covariance H of the sufficient statistics over the seen part is the
    information of a seen row. At μ = 0 and unit variances dμ = dν, dΣ = −Σ dT Σ.
    """
    x, w = legendre_nodes(limit, REACH, NODES)
    weight = w * np.exp(-0.5 * x * x)
    line = np.linalg.inv(np.cov(np.stack([x, -0.5 * x * x]), aweights=weight, ddof=0))
    a, b = (grid.ravel() for grid in np.meshgrid(x, x))
    density = np.exp(-0.5 * (a * a - 2 * rho * a * b + b * b) / (1 - rho**2))
    mass = np.outer(w, w).ravel() * density / (2 * np.pi * math.sqrt(1 - rho**2))
    statistics = np.stack([a, b, -0.5 * a * a, -a * b, -0.5 * b * b])
    plane = np.linalg.inv(np.cov(statistics, aweights=mass, ddof=0))
    direction = np.array([0.0, 0.0, rho, 1.0 + rho**2, rho])
    cross = math.sqrt(direction @ plane @ direction)
    return float(mass.sum()), math.sqrt(line[0, 0]), math.sqrt(line[1, 1]), cross


@claim(
    "theorem-1.2/rows",
    where="Theorem 1.2",
    says="Under self-censoring the errors of mean, covariance and distribution fall as one over the "
    "square root of the number of rows.",
    experiment="Four columns, correlations 0.4, each seen above −½ standard deviation; the convex "
    "problems of Algorithm 1 solved exactly; root mean square over tables as n grows fourfold.",
    tolerance=f"The slope of each error in n is −½ {SLOPE_TEXT}.",
)
def rows(quick: bool) -> Measured:
    """Errors against the number of rows, by the exact solution."""
    sizes = [1_000 * 4**k for k in range(4 if quick else 5)]
    truth, rule = equicorrelated(4, CORRELATION), half_line(4)
    tables = [fits(truth, rule, n, 12 if quick else 40, 21) for n in sizes]
    return against_rows(sizes, tables, truth)


def against_rows(sizes: Sequence[int], tables: Sequence[list[Fit]], truth: Gaussian) -> Measured:
    """Compare the slopes of the three errors of Theorem 1.2 with −½."""
    lines: dict[str, Sequence[float]] = {}
    claimed: dict[str, Sequence[float]] = {}
    words, holds = [], True
    for name, measure in (
        ("mean", mean_errors),
        ("covariance", covariance_errors),
        ("total variation", distances),
    ):
        errors = [measure(found, truth) for found in tables]
        power, spread = exponent(sizes, errors)
        holds &= abs(power + 0.5) <= ALLOWED * spread
        lines[name] = heights(errors)
        claimed[f"{name}, n^-½"] = power_law(sizes, lines[name], -0.5)
        words.append(f"{name} n^{power:.2f} (± {spread:.2f}), {lines[name][-1]:.2g} at the end")
    text = f"n = {sizes[0]:,} to {sizes[-1]:,}: " + "; ".join(words) + "."
    return Measured(text, holds, Curve(sizes, lines, "rows", "error", claimed))


@claim(
    "theorem-1.2/rows-psgd",
    where="Theorem 1.2, Algorithm 1",
    says="Projected SGD with nothing but membership queries has these errors too.",
    experiment="Two columns as above, solved by Truncation_PSGD, one run for each problem; and beside "
    "it the exact solution on the same tables.",
    tolerance=f"The slope of each error in n is −½ {SLOPE_TEXT}; and, as few tables make that wide, "
    "what SGD adds to the mean is at most half of the statistical error (its number of draws is "
    "set for a fifth), which is 12 % more in all.",
)
def rows_psgd(quick: bool) -> Measured:
    """Errors against the number of rows, by the algorithm itself."""
    sizes, count = ([500, 2_800, 16_000], 4) if quick else ([500, 2_000, 8_000, 32_000], 12)
    truth, rule = equicorrelated(2, CORRELATION), half_line(2)
    sgd: Solver = partial(truncation_psgd, repeats=1, random_state=0)
    tables = [fits(truth, rule, n, count, 22, sgd) for n in sizes]
    found = against_rows(sizes, tables, truth)
    exact = [fits(truth, rule, n, count, 22) for n in sizes]
    added, statistical = [], []
    for n, ours, best in zip(sizes, tables, exact, strict=True):
        for a, b in zip(ours, best, strict=True):
            # × √n: all sizes weigh the same.
            gap = truth.whiten(truth.mean + a.gaussian.mean - b.gaussian.mean)
            added.append(math.sqrt(n) * float(np.linalg.norm(gap)))
            statistical.append(math.sqrt(n) * mahalanobis_error(b.gaussian.mean, truth))
    share = root_mean_square(added) / root_mean_square(statistical)
    text = f"{found.text} SGD adds {share:.2f} of the statistical error."
    return Measured(text, found.holds and share <= 0.5, found.curve)


@claim(
    "theorem-1.2/share",
    where="Theorem 1.2, and the footnote on sets S_i : R → [0, 1]",
    says="The number of rows needed is proportional to 1/α, α the least probability that a pair is "
    "seen: at a fixed n errors grow at most as α^-½.",
    experiment="Four independent columns, values above the limit shown with probability p only, "
    "down to 0.2, where still 1 500 rows show a pair. That thins rows and leaves the shape of what "
    "is seen, and so the information of a seen pair, as it is: α alone moves. Thinning drops out "
    "of the problem of the seen values; on one table the solver is told p and gives the same "
    "answer. Limits that move instead are a matter of information: from its matrix.",
    tolerance=f"The error of the covariances goes as α^-½ {SLOPE_TEXT}; the exponents of "
    "the mean and of the whole covariance are at least −½ less 4 of theirs; both answers agree to 1e-6.",
)
def share(quick: bool) -> Measured:
    """Errors against α, at one shape of the seen set."""
    d, n, shares = 4, 80_000, (1.0, 0.5, 0.3, 0.2)
    truth = equicorrelated(d, 0.0)
    alphas = [p**2 * constants(0.0, LIMIT)[0] for p in shares]
    tables = [
        fits(truth, thinned(d, p), n, 12 if quick else 60, 23, known=half_line(d)) for p in shares
    ]
    X = simulate(truth, thinned(d, shares[-1]), n, random_state=23)
    told, plain = solve_paper(X, thinned(d, shares[-1])), solve_paper(X, half_line(d))
    gap = float(np.abs(told.gaussian.covariance - plain.gaussian.covariance).max())
    off = ~np.eye(d, dtype=bool)
    errors = {
        "covariances": [
            np.array([np.linalg.norm(f.gaussian.covariance[off]) for f in found])
            for found in tables
        ],
        "whole covariance": [covariance_errors(found, truth) for found in tables],
        "mean": [mean_errors(found, truth) for found in tables],
    }
    powers = {name: exponent(alphas, some) for name, some in errors.items()}
    power, spread = powers["covariances"]
    holds = abs(power + 0.5) <= ALLOWED * spread and gap <= 1e-6
    holds &= all(found >= -0.5 - ALLOWED * error for found, error in powers.values())
    moved = [constants(0.0, limit) for limit in (-1.0, -0.5, 0.0, 0.5)]
    steep = slope([a for a, *_ in moved], [c / math.sqrt(a) for a, *_, c in moved])
    words = "; ".join(f"{name} α^{p:.2f} (± {e:.2f})" for name, (p, e) in powers.items())
    lines: dict[str, Sequence[float]] = {n: heights(some) for n, some in errors.items()}
    return Measured(
        f"α = {alphas[0]:.2f} to {alphas[-1]:.3f}: {words}; a column is seen more often than a pair, so "
        f"means fare better. Told p: {gap:.0e} apart. A limit moved from −1 to ½ also takes information "
        f"from each seen pair: α^{steep:.1f}, which Õ(1/α) hides in constants that depend on α.",
        bool(holds),
        Curve(
            alphas,
            lines,
            "α, probability that a pair is seen",
            "error",
            {"covariances, α^-½": power_law(alphas, lines["covariances"], -0.5)},
        ),
    )


def growth(
    x: Sequence[float], tables: Sequence[list[Fit]], truths: Sequence[Gaussian], across: str
) -> Measured:
    """Compare the growth of both errors along x with the first power, the theorem's worst case."""
    lines: dict[str, Sequence[float]] = {}
    claimed: dict[str, Sequence[float]] = {}
    words, holds = [], True
    for name, measure in (("mean", mean_errors), ("covariance", covariance_errors)):
        errors = [measure(found, truth) for found, truth in zip(tables, truths, strict=True)]
        power, spread = exponent(x, errors)
        holds &= power <= 1.0 + ALLOWED * spread
        lines[name] = heights(errors)
        claimed[f"{name}, at most"] = power_law_from(x, lines[name][0], 1.0)
        words.append(
            f"{name} {lines[name][0]:.2g} to {lines[name][-1]:.2g}, power {power:.2f} (± {spread:.2f})"
        )
    text = f"{across} {x[0]:g} to {x[-1]:g}: " + "; ".join(words) + "."
    return Measured(text, holds, Curve(x, lines, across, "error", claimed))


@claim(
    "theorem-1.2/columns",
    where="Theorem 1.2",
    says="d² rows keep the accuracy: at a fixed n both errors grow at most linearly with the number of "
    "columns.",
    experiment="Correlations 0.4^|i−j|, whose condition number stays below 5.5; n = 5 000; d doubled.",
    tolerance=f"The power of d is at most 1, {SLOPE_TEXT}.",
)
def columns(quick: bool) -> Measured:
    """Errors against the number of columns."""
    widths = (2, 4, 8, 16)
    truths = [decaying(d, CORRELATION) for d in widths]
    tables = [
        fits(g, half_line(d), 5_000, 8 if quick else 40, 24)
        for d, g in zip(widths, truths, strict=True)
    ]
    return growth(widths, tables, truths, "columns")


@claim(
    "theorem-1.2/condition",
    where="Theorem 1.2",
    says="κ² rows keep the accuracy, κ = λ_max/λ_min: at a fixed n both errors, measured in units "
    "of Σ*, grow at most linearly with κ.",
    experiment="Three equicorrelated columns whose correlation goes to 1, so that the small eigenvalues "
    "lie across the coordinates in which values are hidden; half of what lies above the limit is shown, "
    "for otherwise errors of neighbours are alike and the small directions gain; n = 40 000.",
    tolerance=f"The power of κ is at most 1, {SLOPE_TEXT}.",
)
def condition(quick: bool) -> Measured:
    """Errors against the condition number."""
    kappas = (3.0, 10.0, 30.0, 100.0)
    truths = [equicorrelated(3, correlation_for(k, 3)) for k in kappas]
    count = 12 if quick else 60
    tables = [fits(g, thinned(3, 0.5), 40_000, count, 25, known=half_line(3)) for g in truths]
    return growth(kappas, tables, truths, "κ")
