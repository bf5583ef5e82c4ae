"""Theorem 1.5: the error of Algorithm 3 against rows, rare patterns, α, β, condition number and columns.

Exponents alone would not notice an error that is large everywhere, so each row also compares levels with
those that ``descent_level`` predicts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.convexity import hessian, slices
from halfseen.ledger.descent_level import (
    Sweep,
    claimed_exponent,
    learn,
    level_for,
    limit_covariance,
    setting_for,
    sweep,
)
from halfseen.ledger.designs import (
    Problem,
    correlation_for,
    decaying,
    equicorrelated,
    limits_along,
    random_thresholds,
)
from halfseen.ledger.langevin import half_line_limit
from halfseen.ledger.registry import (
    ALLOWED,
    Curve,
    Measured,
    claim,
    exponent,
    heights,
    power_law_from,
)
from halfseen.metrics import mahalanobis_error
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.planning import parameters_for_missing_descent
from halfseen.samplers import Gibbs, ProjectedLangevin, Sampler
from halfseen.simulate import simulate
from halfseen.solvers.missing_descent import missing_descent

Floats = NDArray[np.float64]

# The rate of projected descent is √((1 + log T)/T): over a factor 16 the logarithm bends a slope by
# 0.06.
LOGARITHM = 0.06


def autoregressive(d: int, anchors: int) -> Problem:
    """Return d columns with correlations 0.5^|i − j|, of which thresholds hide 40 %."""
    truth = decaying(d, mean=np.random.default_rng(3).normal(size=d))
    return Problem(truth, random_thresholds(truth, anchors, 0.4, 4))


def one_threshold() -> Problem:
    """Return an anchor, and a column that a sum of both hides in half of the rows."""
    truth = decaying(2, mean=[0.3, -0.2])
    v = np.array([[0.4, 1.0]])
    return Problem(truth, LinearThreshold.anchored([0], v, limits_along(truth, v, 0.5)))


def fixed_point(problem: Problem, step_size: float) -> Floats:
    """Return where the mean gradient with Langevin draws is zero, for two columns and one anchor.

    The chain's limit on a half-line is known to first order in √η, so E ĝ(μ) is an integral over the
    seen value. E ĝ = Σ⁻¹(μ − E y): so μ₀ stays, and μ₁ is the mean of y₁ when its draws are made at μ.
    """
    truth, rule = problem
    (part,) = slices(Problem(truth, rule))
    assert np.isfinite(part.low).all(), "hidden above an edge"
    seen = truth.mean[1] - float(part.weight @ part.moments(truth)[1])
    mean = truth.mean.copy()
    # Each round leaves at most the hidden share of the gap: half of it, here.
    for _ in range(60):
        m, s = part.conditional(Gaussian(mean, truth.covariance))
        drawn = m + s * half_line_limit((part.low - m) / s, step_size)
        mean[1] = seen + float(part.weight @ drawn)
    return mean


def standard_errors(problem: Problem, H: Floats, rows: int) -> Floats:
    """Return standard errors of a mean estimate pooled over so many rows, by the formula."""
    C = limit_covariance(problem[0], H, setting_for(problem).strong_convexity)
    return np.asarray(np.sqrt(np.diag(C) / rows))


def pooled_means(
    problem: Problem, n: int, tables: int, sampler: Sampler | None = None
) -> tuple[Floats, Floats]:
    """Mahalanobis errors of several tables, and the mean of their estimates."""
    means = [learn(problem, n, seed, sampler).mean for seed in range(tables)]
    return np.array([mahalanobis_error(m, problem[0]) for m in means]), np.mean(means, axis=0)


@claim(
    "theorem-1.5/rows",
    where="Theorem 1.5; lemma on projected descent",
    says="poly(1/ε) rows are enough for an error of ε; the lemma on descent has ε like √((1 + log "
    "n)/n).",
    experiment="Mahalanobis error against n, two columns, one hidden in half of the rows, with "
    "Gibbs draws; mean estimates at the largest n, with Gibbs draws against the truth, with "
    "Langevin draws as they come (η = 0.02) against the zero of their mean gradient.",
    tolerance="Slope −0.5 within 0.06 (the logarithm) and 4 standard errors; each error within 4 "
    "of what the same recursion has on a quadratic with the curvature of ℓ. Mean estimates within "
    "4 standard errors, with Langevin η/4 more for the next order of its bias.",
)
def rows(quick: bool) -> Measured:
    """Follow the error as rows are added, and what the estimate converges to."""
    sizes = (250, 1_000, 4_000) if quick else (500, 2_000, 8_000)
    k, few = (8, 4) if quick else (24, 16)
    problem = one_threshold()
    truth, chain = problem[0], ProjectedLangevin()
    H = hessian(problem, truth.mean)
    levels = [level_for(problem, n, H) for n in sizes]
    gibbs, centres = zip(*(pooled_means(problem, n, k) for n in sizes), strict=True)
    shifted = pooled_means(problem, sizes[-1], few, chain)[1]
    found, spread = exponent(sizes, gibbs)
    once = standard_errors(problem, H, sizes[-1])
    off = float(np.abs((centres[-1] - truth.mean) / once).max()) * math.sqrt(k)
    limit = fixed_point(problem, chain.step_size)
    gap = np.abs(shifted - limit) - ALLOWED * once / math.sqrt(few)
    surplus = [level.surplus(some) for level, some in zip(levels, gibbs, strict=True)]
    line = heights(gibbs)
    return Measured(
        f"Slope {found:.2f} ± {spread:.2f}, errors {', '.join(f'{e:.3f}' for e in line)} at n = "
        f"{', '.join(map(str, sizes))} (predicted {', '.join(f'{p.error:.3f}' for p in levels)}); "
        f"mean estimate at most {off:.1f} standard errors from the truth; Langevin moves it by "
        f"{shifted[1] - truth.mean[1]:.3f} (predicted {limit[1] - truth.mean[1]:.3f}, standard error "
        f"{once[1] / math.sqrt(few):.3f}).",
        bool(
            abs(found + 0.5) <= LOGARITHM + ALLOWED * spread
            and max(map(abs, surplus)) <= 1.0
            and off <= ALLOWED
            and (gap <= chain.step_size / 4.0).all()
        ),
        Curve(
            sizes,
            {"Gibbs": line},
            "rows n",
            "Mahalanobis error",
            {
                "predicted": [level.error for level in levels],
                "√(d/n), complete data": [math.sqrt(2.0 / n) for n in sizes],
            },
        ),
    )


def rarely_shown(gamma: float) -> Problem:
    """Return an anchor, and a column apart from it that is shown in a share γ of the rows."""
    truth = Gaussian([0.0, 0.0], np.eye(2))
    return Problem(
        truth, LinearThreshold.anchored([0], [[0.0, -1.0]], [-float(ndtri(1.0 - gamma))])
    )


# Share in which the first column of the slab is shown.
SHOWN = 0.35


def thin_slab(gamma: float) -> Problem:
    """Return an anchor, and two columns that are hidden together only in a slab of mass γ.

    Column 1 is shown in its lowest 35 %, column 2 where column 1 is above the slab that comes next: α is
    0.35 for every γ up to 0.3.
    """
    truth = Gaussian([0.0, 0.0, 0.0], [[1.0, 0.0, 0.3], [0.0, 1.0, 0.6], [0.3, 0.6, 1.0]])
    low, high = (float(ndtri(p)) for p in (SHOWN, SHOWN + gamma))
    return Problem(
        truth, LinearThreshold.anchored([0], [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]], [low, -high])
    )


@claim(
    "theorem-1.5/gamma",
    where="Theorem 1.5, with Assumptions 1.3 and 1.4",
    says="Rows grow at most polynomially in 1/γ, one over the rarest pattern given the anchors.",
    experiment="Error at fixed n while one pattern becomes rare: a column that is shown in a share "
    "γ of the rows (so α = γ), and a thin slab, of mass γ, in which two columns are hidden at once "
    "(α stays 0.35).",
    tolerance="Exponent of the error in 1/γ at most 1, which the lemma on descent gives through λ "
    "= αβ/λ_max, where α = γ; at most 0 for the slab, where λ stays and less is hidden; each with "
    "4 standard errors. No error above that of the recursion on a quadratic by more than 4.",
)
def gamma(quick: bool) -> Measured:
    """Follow the error as a pattern becomes rare."""
    gammas = (0.3, 0.1, 0.03) if quick else (0.3, 0.1, 0.03, 0.01)
    n, k = (800, 8) if quick else (3_000, 12)
    inverse = [1.0 / g for g in gammas]

    def curvature(x: float) -> Floats:
        problem = rarely_shown(1.0 / x)
        return hessian(problem, problem[0].mean)

    shown = sweep(inverse, lambda x: rarely_shown(1.0 / x), n, k, curvature)
    slab = sweep(inverse, lambda x: thin_slab(1.0 / x), n, k)
    lines = {"rarely shown": heights(shown.errors), "thin slab": heights(slab.errors)}
    return Measured(
        f"Exponent in 1/γ {shown.power:.2f} ± {shown.spread:.2f} (rarely shown), {slab.power:.2f} ± "
        f"{slab.spread:.2f} (thin slab); errors {shown.compared()} and {slab.compared()} at γ = "
        f"{', '.join(f'{g:g}' for g in gammas)}.",
        bool(
            shown.grows_at_most(1.0)
            and slab.grows_at_most(0.0)
            and max(shown.surplus, slab.surplus) <= 1.0
        ),
        Curve(
            inverse,
            lines,
            "1 / γ",
            f"Mahalanobis error, n = {n}",
            {"exponent 1": power_law_from(inverse, lines["rarely shown"][0], 1.0)},
        ),
    )


def decided_by_anchor(d: int, alpha: float) -> Problem:
    """Show all other columns together, in the share α of the rows with the lowest anchor: γ is 1."""
    truth = decaying(d)
    V = np.zeros((d - 1, d))
    V[:, 0] = 1.0
    return Problem(truth, LinearThreshold.anchored([0], V, np.full(d - 1, float(ndtri(alpha)))))


def decided_information(d: int, alpha: float) -> Floats:
    """∇²ℓ for that rule, where hidden values are not restricted."""
    truth = decaying(d)
    S, P = truth.covariance, truth.precision
    hidden = np.zeros((d, d))
    hidden[1:, 1:] = S[1:, 1:] - np.outer(S[1:, 0], S[0, 1:])
    return np.asarray(P - (1.0 - alpha) * P @ hidden @ P)


def against_inverse(
    found: Sweep, inverse: Sequence[float], most: float, n: int, name: str
) -> Measured:
    """Compare errors with their prediction, and their growth in 1/α or 1/β with what is allowed."""
    line = heights(found.errors)
    return Measured(
        f"Errors {found.compared()} at {name} = {', '.join(f'{1 / x:g}' for x in inverse)}: exponent in "
        f"1/{name} {found.power:.2f} ± {found.spread:.2f}, where the analysis allows {most:.2f}.",
        bool(found.grows_at_most(most) and found.gap <= 1.0),
        Curve(
            inverse,
            {"missing_descent": line},
            f"1 / {name}",
            f"Mahalanobis error, n = {n}",
            {
                "predicted": [p.error for p in found.levels],
                f"exponent {most:.2f}": power_law_from(inverse, line[0], most),
            },
        ),
    )


@claim(
    "theorem-1.5/alpha",
    where="Theorem 1.5, with Assumption 1.3",
    says="Rows grow at most polynomially in 1/α, also where γ stays.",
    experiment="Error at fixed n while an anchor shows a second column in ever fewer rows, from "
    "0.5 to 0.05: given the anchor the pattern is certain, so γ is 1.",
    tolerance="Exponent of the error at most half that of the rows in planning, and 4 standard "
    "errors; each error within 4 of that of the recursion on a quadratic, which ℓ is here.",
)
def share(quick: bool) -> Measured:
    """Follow the error as less is seen, patterns being certain."""
    inverse = [1.0 / a for a in (0.5, 0.16, 0.05)]
    n, k = (800, 16) if quick else (4_000, 16)
    low, high = 0.5, 1.5

    def needed(x: float) -> float:
        return parameters_for_missing_descent(2, 0.1, 1 / x, 0.5, 1.0, low, high).descent_steps

    most = claimed_exponent(inverse, needed)
    found = sweep(
        inverse,
        lambda x: decided_by_anchor(2, 1.0 / x),
        n,
        k,
        lambda x: decided_information(2, 1.0 / x),
    )
    return against_inverse(found, inverse, most, n, "α")


@claim(
    "theorem-1.5/beta",
    where="Theorem 1.5, with Assumption 1.3",
    says="Rows grow at most polynomially in 1/β, one over the share of the columns in a block.",
    experiment="Error at fixed n for four columns of which an anchor shows the other three "
    "together in 40 % of the rows, so that α is the same for β = 1, 1/2 and 1/4.",
    tolerance="Exponent of the error at most half that of the rows in planning, and 4 standard "
    "errors; each error within 4 of that of the recursion on a quadratic, which ℓ is here.",
)
def blocks(quick: bool) -> Measured:
    """Follow the error as blocks become smaller."""
    inverse = (1.0, 2.0, 4.0)
    n, k = (1_000, 10) if quick else (4_000, 16)
    low, *_, high = map(float, np.linalg.eigvalsh(decaying(4).covariance))

    def needed(x: float) -> float:
        return parameters_for_missing_descent(4, 0.1, 0.4, 1 / x, 1.0, low, high).descent_steps

    most = claimed_exponent(inverse, needed)
    found = sweep(
        inverse,
        lambda x: decided_by_anchor(4, 0.4),
        n,
        k,
        lambda x: decided_information(4, 0.4),
        lambda x: 1.0 / x,
    )
    return against_inverse(found, inverse, most, n, "β")


def equally_correlated(condition: float) -> Problem:
    """Return three columns, one anchor, with equal correlations that give this condition number."""
    truth = equicorrelated(3, correlation_for(condition, 3), [0.5, -0.5, 1.0])
    return Problem(truth, random_thresholds(truth, 1, 0.4, 6))


@claim(
    "theorem-1.5/condition",
    where="Theorem 1.5",
    says="Rows grow at most polynomially in the condition number of Σ.",
    experiment="Error at fixed n for three equally correlated columns with condition numbers 1 to "
    "64; the same table in other units, columns multiplied by 1, 1 000 and 0.01.",
    tolerance="Exponent of the error at most half that of the rows in planning (one over λ², R² "
    "and λ_min), and 4 standard errors; no error above that of the recursion on a quadratic by "
    "more than 4. In other units the answer is the same to 1e-6 (rounding, magnified by steps of "
    "1/λ).",
)
def condition(quick: bool) -> Measured:
    """Follow the error as Σ becomes worse conditioned."""
    numbers = (1.0, 4.0, 16.0, 64.0)
    n, k = (1_000, 8) if quick else (4_000, 12)

    def needed(c: float) -> float:
        # Only the ratio of the eigenvalues counts: they are those of a correlation matrix.
        low = 3.0 / (c + 2.0)
        return parameters_for_missing_descent(3, 0.1, 0.6, 1 / 3, 0.1, low, c * low).descent_steps

    most = claimed_exponent(numbers, needed)
    found = sweep(numbers, equally_correlated, n, k)
    drift = change_of_units(equally_correlated(4.0), np.array([1.0, 1e3, 1e-2]), 300)
    line = heights(found.errors)
    return Measured(
        f"Errors {found.compared()} at κ = {', '.join(f'{c:g}' for c in numbers)}: exponent "
        f"{found.power:.2f} ± {found.spread:.2f}, where the analysis allows {most:.2f}; in other "
        f"units the answer differs by {drift:.0e}.",
        bool(found.grows_at_most(most) and found.surplus <= 1.0 and drift <= 1e-6),
        Curve(
            numbers,
            {"missing_descent": line},
            "condition number κ",
            f"Mahalanobis error, n = {n}",
            {
                "predicted": [p.error for p in found.levels],
                f"exponent {most:.2f}": power_law_from(numbers, line[0], most),
            },
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
    "squared), and 4 standard errors; no error above that of the recursion on a quadratic by more "
    "than 4. Complete data have an exponent of ½.",
)
def dimension(quick: bool) -> Measured:
    """Follow the error as columns are added."""
    sizes = (4, 8, 16) if quick else (4, 8, 16, 32)
    n, k = (1_000, 6) if quick else (4_000, 6)

    def needed(d: float) -> float:
        return parameters_for_missing_descent(
            int(d), 0.1, 0.6, 1.0 / d, 0.1, 1 / 3, 3
        ).descent_steps

    most = claimed_exponent(sizes, needed)
    found = sweep(sizes, lambda d: autoregressive(int(d), int(d) // 4), n, k)
    return Measured(
        f"Errors {found.compared()} at d = {', '.join(map(str, sizes))}, n = {n}: exponent "
        f"{found.power:.2f} ± {found.spread:.2f}, where the analysis allows {most:.2f} and complete "
        "data have 0.5.",
        bool(found.grows_at_most(most) and found.surplus <= 1.0),
        Curve(
            sizes,
            {"missing_descent": heights(found.errors)},
            "columns d",
            f"Mahalanobis error, n = {n}",
            {
                "predicted": [p.error for p in found.levels],
                "√(d/n), complete data": [math.sqrt(d / n) for d in sizes],
            },
        ),
    )
