"""Algorithm 3: its error against rows, rare patterns, condition number and dimension, and its traps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import (
    Problem,
    correlation_for,
    decaying,
    equicorrelated,
    random_thresholds,
)
from halfseen.ledger.registry import (
    Curve,
    Kind,
    Measured,
    claim,
    expected_relative_error,
    power_law_from,
    root_mean_square,
    slope,
    slope_error,
)
from halfseen.metrics import mahalanobis_error
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.planning import parameters_for_missing_descent
from halfseen.samplers import Gibbs, ProjectedLangevin, Sampler
from halfseen.simulate import simulate
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.result import Fit

Floats = NDArray[np.float64]

# Standard errors that an exponent may be off by.
WIDTH = 3.0
# The rate of projected descent is √((1 + log T)/T): over a factor 16 the logarithm bends a slope by
# 0.06.
LOGARITHM = 0.06


def autoregressive(d: int, anchors: int) -> Problem:
    """Return d columns with correlations 0.5^|i − j|, of which thresholds hide 40 %."""
    truth = decaying(d, mean=np.random.default_rng(3).normal(size=d))
    return truth, random_thresholds(truth, anchors, 0.4, 4)


def learn(
    problem: Problem, n: int, seed: int, sampler: Sampler, radius: float | None = None
) -> Fit:
    """Simulate rows and run Algorithm 3 on them, with its own λ."""
    truth, rule = problem
    X = simulate(truth, rule, n, seed)
    return missing_descent(
        X, rule, truth.covariance, sampler=sampler, projection_radius=radius, random_state=seed
    )


def error(problem: Problem, n: int, repeats: int, sampler: Sampler | None = None) -> float:
    """Root mean square of the Mahalanobis error over several tables."""
    chosen = Gibbs() if sampler is None else sampler
    return root_mean_square(
        [
            mahalanobis_error(learn(problem, n, seed, chosen).mean, problem[0])
            for seed in range(repeats)
        ]
    )


@claim(
    "theorem-1.5/rows",
    where="Theorem 1.5; lemma on projected descent",
    says="poly(1/ε) rows are enough for an error of ε; the lemma on descent has ε like √((1 + "
    "log n)/n).",
    experiment="Mahalanobis error against n, four columns, two anchors, 40 % hidden: with Gibbs "
    "draws, and with Langevin draws as they come (η = 0.02), which leave a bias.",
    tolerance="Slope with Gibbs −0.5 within 0.06 (the logarithm) and 3 standard errors. With "
    "Langevin at no n more than 2 · 0.58 √η above Gibbs (two hidden values, each shifted by less "
    "than a wall's 0.58 √η) and 3 standard errors.",
)
def rows(quick: bool) -> Measured:
    """Follow the error as rows are added."""
    sizes = (200, 800, 3_200) if quick else (500, 2_000, 8_000)
    k, few = (4, 2) if quick else (16, 6)
    problem = autoregressive(4, 2)
    gibbs = [error(problem, n, k) for n in sizes]
    langevin = [error(problem, n, few, ProjectedLangevin()) for n in sizes]
    found = slope(sizes, gibbs)
    spread = slope_error(sizes, expected_relative_error(k, 4))
    walls = 2.0 * 0.5826 * math.sqrt(ProjectedLangevin().step_size)
    noise = WIDTH * expected_relative_error(few, 4)
    held = abs(found + 0.5) <= LOGARITHM + WIDTH * spread and all(
        a <= (b + walls) * (1.0 + noise) for a, b in zip(langevin, gibbs, strict=True)
    )
    return Measured(
        f"Slope {found:.2f} ± {spread:.2f} with Gibbs, errors "
        f"{', '.join(f'{e:.3f}' for e in gibbs)} at n = {', '.join(map(str, sizes))} (complete "
        f"data √(d/n): {math.sqrt(4 / sizes[-1]):.3f} at the last); Langevin "
        f"{', '.join(f'{e:.3f}' for e in langevin)}.",
        bool(held),
        Curve(
            sizes,
            {"Gibbs": gibbs, "Langevin, η = 0.02": langevin},
            "rows n",
            "Mahalanobis error",
            {"√(d/n), complete data": [math.sqrt(4.0 / n) for n in sizes]},
        ),
    )


def rarely_shown(gamma: float) -> Problem:
    """Return an anchor, and a column apart from it that is shown in a share γ of the rows."""
    truth = Gaussian([0.0, 0.0], np.eye(2))
    return truth, LinearThreshold.anchored([0], [[0.0, -1.0]], [-float(ndtri(1.0 - gamma))])


# Share in which the first column of the slab is shown.
SHOWN = 0.35


def thin_slab(gamma: float) -> Problem:
    """Return an anchor, and two columns that are hidden together only in a slab of mass γ.

    Column 1 is shown in its lowest 35 %, column 2 where column 1 is above the slab that comes next: α is
    0.35 for every γ up to 0.3.
    """
    truth = Gaussian([0.0, 0.0, 0.0], [[1.0, 0.0, 0.3], [0.0, 1.0, 0.6], [0.3, 0.6, 1.0]])
    low, high = (float(ndtri(p)) for p in (SHOWN, SHOWN + gamma))
    return truth, LinearThreshold.anchored([0], [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], [low, -high])


@claim(
    "theorem-1.5/gamma",
    where="Theorem 1.5, with Assumptions 1.3 and 1.4",
    says="Rows grow at most polynomially in 1/γ, one over the rarest pattern given the anchors.",
    experiment="Error at fixed n while one pattern becomes rare: a column that is shown in a "
    "share γ of the rows (so α = γ), and a thin slab, of mass γ, in which two columns are hidden "
    "at once (α stays 0.35).",
    tolerance="Exponent of the error in 1/γ at most 1, which the lemma on descent gives through "
    "λ = αβ/λ_max, where α = γ; at most 0 for the slab, where λ stays and less is hidden; each "
    "with 3 standard errors.",
)
def gamma(quick: bool) -> Measured:
    """Follow the error as a pattern becomes rare."""
    gammas = (0.3, 0.1, 0.03) if quick else (0.3, 0.1, 0.03, 0.01)
    n, k = (800, 4) if quick else (3_000, 8)
    inverse = [1.0 / g for g in gammas]
    lines: dict[str, Sequence[float]] = {}
    exponents, held = [], True
    designs: tuple[tuple[str, Callable[[float], Problem], float, int], ...] = (
        ("rarely shown", rarely_shown, 1.0, 2),
        ("thin slab", thin_slab, 0.0, 3),
    )
    for name, make, most, d in designs:
        lines[name] = [error(make(g), n, k) for g in gammas]
        spread = slope_error(inverse, expected_relative_error(k, d))
        exponents.append((slope(inverse, lines[name]), spread))
        held &= exponents[-1][0] <= most + WIDTH * spread
    first = lines["rarely shown"][0]
    return Measured(
        "Exponent in 1/γ "
        + ", ".join(
            f"{e:.2f} ± {s:.2f} ({name})" for name, (e, s) in zip(lines, exponents, strict=True)
        )
        + f"; errors at γ = {gammas[-1]:g}: "
        + ", ".join(f"{line[-1]:.3f}" for line in lines.values())
        + ".",
        bool(held),
        Curve(
            inverse,
            lines,
            "1 / γ",
            f"Mahalanobis error, n = {n}",
            {"exponent 1": power_law_from(inverse, first, 1.0)},
        ),
    )


def equally_correlated(condition: float) -> Problem:
    """Return three columns, one anchor, with equal correlations that give this condition number."""
    truth = equicorrelated(3, correlation_for(condition, 3), [0.5, -0.5, 1.0])
    return truth, random_thresholds(truth, 1, 0.4, 6)


def claimed_exponent(x: Sequence[float], plan: Callable[[float], float]) -> float:
    """Exponent of the error that the analysis allows: half of that of its number of rows."""
    return 0.5 * slope(x, [plan(v) for v in x])


@claim(
    "theorem-1.5/condition",
    where="Theorem 1.5",
    says="Rows grow at most polynomially in the condition number of Σ.",
    experiment="Error at fixed n for three equally correlated columns with condition numbers 1 "
    "to 64; the same table in other units, columns multiplied by 1, 1 000 and 0.01.",
    tolerance="Exponent of the error at most half that of the rows in planning (one over λ², R² "
    "and λ_min), and 3 standard errors; in other units the answer is the same to 1e-6 (rounding, "
    "magnified by steps of 1/λ).",
)
def condition(quick: bool) -> Measured:
    """Follow the error as Σ becomes worse conditioned."""
    numbers = (1.0, 4.0, 16.0, 64.0)
    n, k = (1_000, 4) if quick else (4_000, 8)
    found = [error(equally_correlated(c), n, k) for c in numbers]
    exponent, spread = slope(numbers, found), slope_error(numbers, expected_relative_error(k, 3))

    def needed(c: float) -> float:
        # Only the ratio of the eigenvalues counts: they are those of a correlation matrix.
        low = 3.0 / (c + 2.0)
        return parameters_for_missing_descent(3, 0.1, 0.6, 1 / 3, 0.1, low, c * low).descent_steps

    most = claimed_exponent(numbers, needed)
    drift = change_of_units(equally_correlated(4.0), np.array([1.0, 1e3, 1e-2]), 300)
    return Measured(
        f"Errors {', '.join(f'{e:.3f}' for e in found)} at κ = "
        f"{', '.join(f'{c:g}' for c in numbers)}: exponent {exponent:.2f} ± {spread:.2f}, where "
        f"the analysis allows {most:.2f}; in other units the answer differs by {drift:.0e}.",
        bool(exponent <= most + WIDTH * spread and drift <= 1e-6),
        Curve(
            numbers,
            {"missing_descent": found},
            "condition number κ",
            f"Mahalanobis error, n = {n}",
            {f"exponent {most:.2f}": power_law_from(numbers, found[0], most)},
        ),
    )


def change_of_units(problem: Problem, units: Floats, n: int) -> float:
    """Largest relative change of the mean when columns are multiplied by ``units``."""
    truth, rule = problem
    X = np.asarray(simulate(truth, rule, n, 0))
    plain = missing_descent(X, rule, truth.covariance, sampler=Gibbs(), random_state=0).mean
    other = missing_descent(
        X * units,
        LinearThreshold(rule.V / units, rule.b),
        truth.covariance * np.outer(units, units),
        sampler=Gibbs(),
        random_state=0,
    ).mean
    return float(np.abs(np.asarray(other) / units - np.asarray(plain)).max())


@claim(
    "theorem-1.5/poly-dimension",
    where="Theorem 1.5",
    says="Rows grow at most polynomially in d.",
    experiment="Error at fixed n for 4, 8 and 16 columns, a quarter of them anchors, 40 % of the "
    "others hidden.",
    tolerance="Exponent of the error at most half that of the rows in planning (β = 1/d enters "
    "squared), and 3 standard errors; complete data have an exponent of ½.",
)
def dimension(quick: bool) -> Measured:
    """Follow the error as columns are added."""
    sizes = (4, 8, 16) if quick else (4, 8, 16, 32)
    n, k = (1_000, 3) if quick else (4_000, 4)
    found = [error(autoregressive(d, d // 4), n, k) for d in sizes]
    exponent, spread = slope(sizes, found), slope_error(sizes, expected_relative_error(k, sizes[0]))

    def needed(d: float) -> float:
        return parameters_for_missing_descent(
            int(d), 0.1, 0.6, 1.0 / d, 0.1, 1 / 3, 3
        ).descent_steps

    most = claimed_exponent(sizes, needed)
    return Measured(
        f"Errors {', '.join(f'{e:.3f}' for e in found)} at d = {', '.join(map(str, sizes))}, n = "
        f"{n}: exponent {exponent:.2f} ± {spread:.2f}, where the analysis allows {most:.2f} and "
        "complete data have 0.5.",
        bool(exponent <= most + WIDTH * spread),
        Curve(
            sizes,
            {"missing_descent": found},
            "columns d",
            f"Mahalanobis error, n = {n}",
            {"√(d/n), complete data": [math.sqrt(d / n) for d in sizes]},
        ),
    )


@claim(
    "missing-descent/forgets",
    where="Algorithm 5, M_grad and η; erratum 7",
    says="How long chains must run is left to constants; in practice they forget their start "
    "like exp(−M·η/2), so M·η = 10 is enough and M·η = 1 is not.",
    experiment="Error of the descent on ten columns, η = 0.02, with chains of M·η = 1, 3, 10 and 20.",
    tolerance="Error at M·η = 1 (61 % of the start left) above that at 10 (0.7 % left) by more "
    "than 3 standard errors; at 20 within 3 standard errors of that at 10.",
    kind=Kind.TRAP,
)
def forgets(quick: bool) -> Measured:
    """Follow the error as chains run longer."""
    n, k = (1_500, 2) if quick else (4_000, 6)
    problem, eta = autoregressive(10, 3), ProjectedLangevin().step_size
    times = (1.0, 3.0, 10.0, 20.0)
    found = [error(problem, n, k, ProjectedLangevin(steps=round(t / eta))) for t in times]
    # Of a difference of two such errors.
    noise = WIDTH * expected_relative_error(k, 10) * math.sqrt(2.0)
    held = found[0] > found[2] * (1.0 + noise) and abs(found[3] / found[2] - 1.0) <= noise
    return Measured(
        f"Errors {', '.join(f'{e:.3f}' for e in found)} at M·η = "
        f"{', '.join(f'{t:g}' for t in times)} (n = {n}; relative standard error "
        f"{expected_relative_error(k, 10):.2f}; complete data {math.sqrt(10 / n):.3f}).",
        bool(held),
        Curve(
            times,
            {"missing_descent": found},
            "whitened time M·η of a chain",
            "Mahalanobis error",
            {"√(d/n), complete data": [math.sqrt(10.0 / n)] * len(times)},
            linear="xy",
        ),
    )


# Iterates that are shown.
MOMENTS = (1, 3, 10, 30, 100, 300, 1_000)


@cache
def descent(projected: bool, n: int) -> tuple[Fit, Floats]:
    """Ten columns, with the default domain or practically none, and each iterate's distance."""
    problem = autoregressive(10, 3)
    fit = learn(problem, n, 0, Gibbs(), None if projected else 1e6)
    gaps = np.asarray(fit.history["iterates"]) - problem[0].mean
    return fit, np.asarray(np.linalg.norm(np.linalg.solve(problem[0].cholesky, gaps.T), axis=0))


@claim(
    "missing-descent/first-steps",
    where="Algorithm 3, lines 4 and 7; erratum 8",
    says="Steps of 1/(λi) with λ = αβ/λ_max are enormous at first: the projection is what holds them.",
    experiment="Distance of iterates from the truth on ten columns, with the default radius and "
    "with a million in its place; the same rows and draws.",
    tolerance="Without the projection an iterate leaves the ball (radius and start together); "
    "with it none does (1e-9 for rounding); the averages differ to its advantage.",
    kind=Kind.TRAP,
)
def first_steps(quick: bool) -> Measured:
    """Follow iterates with and without the projection."""
    n, truth = (2_000 if quick else 8_000), autoregressive(10, 3)[0]
    (held_fit, held), (free_fit, free) = descent(True, n), descent(False, n)
    radius = float(held_fit.history["projection_radius"])
    reach = radius + mahalanobis_error(held_fit.history["start"], truth)
    errors = mahalanobis_error(held_fit.mean, truth), mahalanobis_error(free_fit.mean, truth)
    return Measured(
        f"λ = {held_fit.history['strong_convexity']:.3f}: the furthest iterate is "
        f"{held.max():.1f} from the truth with the projection (at most {reach:.1f}), "
        f"{free.max():.0e} without; errors of the averages {errors[0]:.3f} and {errors[1]:.3f}.",
        bool(held.max() <= reach + 1e-9 and free.max() > reach and errors[0] < errors[1]),
        Curve(
            MOMENTS,
            {
                "with the projection": [float(held[i - 1]) for i in MOMENTS],
                "without": [float(free[i - 1]) for i in MOMENTS],
            },
            "iterate i",
            "distance from the truth",
            {"edge of the ball": [reach] * len(MOMENTS)},
        ),
    )


@claim(
    "planning/constants",
    where="Appendix, proof of the theorem on z⁽ᴹ⁾; erratum 6",
    says="The analysis has M ~ R⁶ max(…)¹²/ε¹²: polynomial, and astronomically more than is needed.",
    experiment="Langevin steps that planning computes for ten columns with the α, β and "
    "eigenvalues of a table, for ε from 0.1 to 0.8; error of the descent on that table with 500 "
    "steps.",
    tolerance="More than 10²⁰ times as many steps as the 500 that gave an error below the "
    "largest ε; exponent in 1/ε from 12 to 12 + 18/R: R grows like log(1/ε) and enters with at "
    "most its 18th power.",
    kind=Kind.TRAP,
)
def constants(quick: bool) -> Measured:
    """Compare the analysis with what was enough."""
    n, problem, sampler = (2_000 if quick else 8_000), autoregressive(10, 3), ProjectedLangevin()
    fit = learn(problem, n, 1, sampler)
    reached = mahalanobis_error(fit.mean, problem[0])
    used = fit.history["defaults"]
    low, *_, high = map(float, np.linalg.eigvalsh(problem[0].correlation))
    wanted = (0.8, 0.4, 0.2, 0.1)
    plans = [
        parameters_for_missing_descent(10, eps, used.alpha, used.beta, 0.05, low, high)
        for eps in wanted
    ]
    steps = [plan.langevin_steps for plan in plans]
    exponent = slope([1.0 / eps for eps in wanted], steps)
    most = 12.0 + 18.0 / plans[0].langevin_radius
    return Measured(
        f"{steps[0]:.0e} steps for ε = {wanted[0]:g}, {steps[-1]:.0e} for {wanted[-1]:g}, "
        f"exponent {exponent:.1f} in 1/ε; {sampler.steps} steps and {n} rows gave an error of "
        f"{reached:.3f} (the analysis asks for {plans[-1].descent_steps:.0e} rows at "
        f"{wanted[-1]:g}).",
        bool(
            min(steps) > 1e20 * sampler.steps and reached < max(wanted) and 12.0 <= exponent <= most
        ),
        Curve(
            [1.0 / eps for eps in wanted],
            {"by the analysis": steps, "used here": [float(sampler.steps)] * len(wanted)},
            "1 / ε",
            "Langevin steps for a gradient",
        ),
    )
