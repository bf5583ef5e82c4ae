"""Theorem 1.5: the error of Algorithm 3, and how it behaves on the way.

The error is followed against rows, rare patterns, α, β, condition number and columns. Exponents alone
would not notice an error that is large everywhere, so each row also compares levels with those that
``descent`` predicts. Then chains that run too short, first steps, the projection and the constants; and
the descent as it comes, with chains that go on: it has no floor.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from scipy.special import ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.descent import (
    Descents,
    allowed_exponent,
    descents,
    fixed_point,
    learn,
    level_for,
    pooled,
    standard_errors,
)
from halfseen.ledger.designs import (
    Problem,
    correlation_for,
    decaying,
    equicorrelated,
    limits_along,
    random_thresholds,
)
from halfseen.ledger.harness import (
    ALLOWED,
    Curve,
    Floats,
    Kind,
    Measured,
    claim,
    exponent,
    heights,
    listed,
    power_law_from,
    slope,
)
from halfseen.ledger.likelihood import hessian
from halfseen.metrics import mahalanobis_error
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.planning import parameters_for_missing_descent
from halfseen.samplers import Gibbs, ProjectedLangevin
from halfseen.simulate import simulate
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Estimate

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


@claim("theorem-1.5/rows", "Theorem 1.5; lemma on projected descent")
def rows(quick: bool) -> Measured:
    """Follow the error as rows are added, and what the estimate converges to.

    Says: poly(1/ε) rows are enough for an error of ε; the lemma on descent has ε like √((1 + log n)/n).

    Experiment: Mahalanobis error against n, two columns, one hidden in half of the rows, with Gibbs
    draws; mean estimates at the largest n, with Gibbs draws against the truth, with Langevin draws as
    they come (η = 0.02) against the zero of their mean gradient.

    Tolerance: Slope −0.5 within 0.06 (the logarithm) and 4 standard errors; each error within 4 of what
    the same recursion has on a quadratic with the curvature of ℓ. Mean estimates within 4 standard
    errors, with Langevin η/4 more for the next order of its bias.
    """
    sizes = (250, 1_000, 4_000) if quick else (500, 2_000, 8_000)
    k, few = (8, 4) if quick else (24, 16)
    problem, chain = one_threshold(), ProjectedLangevin()
    truth = problem.truth
    H = hessian(problem, truth.mean)
    errors, centres = zip(*(pooled(problem, n, k) for n in sizes), strict=True)
    found = Descents(sizes, sizes[-1], list(errors), [level_for(problem, n, H) for n in sizes])
    shifted = pooled(problem, sizes[-1], few, chain)[1]
    once = standard_errors(problem, H, sizes[-1])
    off = float(np.abs((centres[-1] - truth.mean) / once).max()) * math.sqrt(k)
    limit = fixed_point(problem, chain.step_size)
    gap = np.abs(shifted - limit) - ALLOWED * once / math.sqrt(few)
    claimed = {
        "predicted": [level.error for level in found.levels],
        "√(d/n), complete data": [math.sqrt(2.0 / n) for n in sizes],
    }
    held = found.power.near(-0.5, LOGARITHM) and max(map(abs, found.surpluses)) <= 1.0
    return Measured(
        f"Slope {found.power.value:.2f} ± {found.power.error:.2f}, errors {listed(heights(errors))} "
        f"at n = {listed(sizes, 'd')} (predicted {listed(claimed['predicted'])}); "
        f"mean estimate at most {off:.1f} standard errors from the truth; Langevin moves it by "
        f"{shifted[1] - truth.mean[1]:.3f} (predicted {limit[1] - truth.mean[1]:.3f}, standard error "
        f"{once[1] / math.sqrt(few):.3f}).",
        bool(held and off <= ALLOWED and (gap <= chain.step_size / 4.0).all()),
        Curve(sizes, {"Gibbs": heights(errors)}, "rows n", "Mahalanobis error", claimed),
    )


def rarely_shown(gamma: float) -> Problem:
    """Return an anchor, and a column apart from it that is shown in a share γ of the rows."""
    truth = Gaussian([0.0, 0.0], np.eye(2))
    limit = float(ndtri(1.0 - gamma))
    return Problem(truth, LinearThreshold.anchored([0], [[0.0, -1.0]], [-limit]))


# Share in which the first column of the slab is shown.
SHOWN = 0.35


def thin_slab(gamma: float) -> Problem:
    """Return an anchor, and two columns that are hidden together only in a slab of mass γ.

    Column 1 is shown in its lowest 35 %, column 2 where column 1 is above the slab that comes next: α is
    0.35 for every γ up to 0.3.
    """
    truth = Gaussian([0.0, 0.0, 0.0], [[1.0, 0.0, 0.3], [0.0, 1.0, 0.6], [0.3, 0.6, 1.0]])
    low, high = (float(ndtri(p)) for p in (SHOWN, SHOWN + gamma))
    V = [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]
    return Problem(truth, LinearThreshold.anchored([0], V, [low, -high]))


@claim("theorem-1.5/gamma", "Theorem 1.5, with Assumptions 1.3 and 1.4")
def gamma(quick: bool) -> Measured:
    """Follow the error as a pattern becomes rare.

    Says: Rows grow at most polynomially in 1/γ, one over the rarest pattern given the anchors.

    Experiment: Error at fixed n while one pattern becomes rare: a column that is shown in a share γ of
    the rows (so α = γ), and a thin slab, of mass γ, in which two columns are hidden at once (α stays
    0.35).

    Tolerance: Exponent of the error in 1/γ at most 1, which the lemma on descent gives through λ =
    αβ/λ_max, where α = γ; at most 0 for the slab, where λ stays and less is hidden; each with 4 standard
    errors. No error above that of the recursion on a quadratic by more than 4.
    """
    gammas = (0.3, 0.1, 0.03) if quick else (0.3, 0.1, 0.03, 0.01)
    n, k = (800, 8) if quick else (3_000, 12)
    inverse = [1.0 / g for g in gammas]

    def curvature(x: float) -> Floats:
        problem = rarely_shown(1.0 / x)
        return hessian(problem, problem.truth.mean)

    shown = descents(inverse, lambda x: rarely_shown(1.0 / x), n, k, curvature)
    slab = descents(inverse, lambda x: thin_slab(1.0 / x), n, k)
    lines = {"rarely shown": heights(shown.errors), "thin slab": heights(slab.errors)}
    claimed = {"exponent 1": power_law_from(inverse, lines["rarely shown"][0], 1.0)}
    held = shown.power.at_most(1.0) and slab.power.at_most(0.0)
    return Measured(
        f"Exponent in 1/γ {shown.power.value:.2f} ± {shown.power.error:.2f} (rarely shown), "
        f"{slab.power.value:.2f} ± {slab.power.error:.2f} (thin slab); errors {shown.compared()} and "
        f"{slab.compared()} at γ = {listed(gammas, 'g')}.",
        held and max(shown.surpluses + slab.surpluses) <= 1.0,
        Curve(inverse, lines, "1 / γ", f"Mahalanobis error, n = {n}", claimed),
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


def against_inverse(found: Descents, most: float, name: str) -> Measured:
    """Compare errors with their prediction, and their growth in 1/α or 1/β with what is allowed."""
    at = f"{name} = {listed((1 / x for x in found.x), 'g')}"
    law = power_law_from(found.x, heights(found.errors)[0], most)
    return Measured(
        f"{found.told(at, most, f'exponent in 1/{name}')}.",
        found.power.at_most(most) and max(map(abs, found.surpluses)) <= 1.0,
        found.curve(f"1 / {name}", {f"exponent {most:.2f}": law}),
    )


@claim("theorem-1.5/alpha", "Theorem 1.5, with Assumption 1.3")
def share(quick: bool) -> Measured:
    """Follow the error as less is seen, patterns being certain.

    Says: Rows grow at most polynomially in 1/α, also where γ stays.

    Experiment: Error at fixed n while an anchor shows a second column in ever fewer rows, from 0.5 to
    0.05: given the anchor the pattern is certain, so γ is 1.

    Tolerance: Exponent of the error at most half that of the rows in planning, and 4 standard errors;
    each error within 4 of that of the recursion on a quadratic, which ℓ is here.
    """
    inverse = [1.0 / a for a in (0.5, 0.16, 0.05)]
    found = descents(
        inverse,
        lambda x: decided_by_anchor(2, 1.0 / x),
        *((800, 16) if quick else (4_000, 16)),
        lambda x: decided_information(2, 1.0 / x),
    )
    most = allowed_exponent(inverse, lambda x: (2, 0.1, 1 / x, 0.5, 1.0, 0.5, 1.5))
    return against_inverse(found, most, "α")


@claim("theorem-1.5/beta", "Theorem 1.5, with Assumption 1.3")
def blocks(quick: bool) -> Measured:
    """Follow the error as blocks become smaller.

    Says: Rows grow at most polynomially in 1/β, one over the share of the columns in a block.

    Experiment: Error at fixed n for four columns of which an anchor shows the other three together in 40
    % of the rows, so that α is the same for β = 1, 1/2 and 1/4.

    Tolerance: Exponent of the error at most half that of the rows in planning, and 4 standard errors;
    each error within 4 of that of the recursion on a quadratic, which ℓ is here.
    """
    inverse = (1.0, 2.0, 4.0)
    found = descents(
        inverse,
        lambda x: decided_by_anchor(4, 0.4),
        *((1_000, 10) if quick else (4_000, 16)),
        lambda x: decided_information(4, 0.4),
        lambda x: 1.0 / x,
    )
    low, *_, high = map(float, np.linalg.eigvalsh(decaying(4).covariance))
    most = allowed_exponent(inverse, lambda x: (4, 0.1, 0.4, 1 / x, 1.0, low, high))
    return against_inverse(found, most, "β")


def equally_correlated(condition: float) -> Problem:
    """Return three columns, one anchor, with equal correlations that give this condition number."""
    truth = equicorrelated(3, correlation_for(condition, 3), [0.5, -0.5, 1.0])
    return Problem(truth, random_thresholds(truth, 1, 0.4, 6))


@claim("theorem-1.5/condition", "Theorem 1.5")
def condition(quick: bool) -> Measured:
    """Follow the error as Σ becomes worse conditioned.

    Says: Rows grow at most polynomially in the condition number of Σ.

    Experiment: Error at fixed n for three equally correlated columns with condition numbers 1 to 64; the
    same table in other units, columns multiplied by 1, 1 000 and 0.01.

    Tolerance: Exponent of the error at most half that of the rows in planning (one over λ², R² and
    λ_min), and 4 standard errors; no error above that of the recursion on a quadratic by more than 4. In
    other units the answer is the same to 1e-6 (rounding, magnified by steps of 1/λ).
    """
    numbers = (1.0, 4.0, 16.0, 64.0)
    found = descents(numbers, equally_correlated, *((1_000, 8) if quick else (4_000, 12)))
    # Only the ratio of the eigenvalues counts: they are those of a correlation matrix.
    low = {c: 3.0 / (c + 2.0) for c in numbers}
    most = allowed_exponent(numbers, lambda c: (3, 0.1, 0.6, 1 / 3, 0.1, low[c], c * low[c]))
    drift = change_of_units(equally_correlated(4.0), np.array([1.0, 1e3, 1e-2]), 300)
    law = power_law_from(numbers, heights(found.errors)[0], most)
    told = found.told(f"κ = {listed(numbers, 'g')}", most)
    return Measured(
        f"{told}; in other units the answer differs by {drift:.0e}.",
        found.power.at_most(most) and max(found.surpluses) <= 1.0 and drift <= 1e-6,
        found.curve("condition number κ", {f"exponent {most:.2f}": law}),
    )


def change_of_units(problem: Problem, units: Floats, n: int) -> float:
    """Largest relative change of the mean when columns are multiplied by ``units``."""
    truth, rule = problem
    X = np.asarray(simulate(truth, rule, n, 0))
    learned = partial(missing_descent, form="paper", sampler=Gibbs(), random_state=0)
    plain = np.asarray(learned(X, rule, truth.covariance).mean)
    scaled = LinearThreshold(rule.V / units, rule.b)
    other = learned(X * units, scaled, truth.covariance * np.outer(units, units)).mean
    return float(np.abs(np.asarray(other) / units - plain).max())


@claim("theorem-1.5/poly-dimension", "Theorem 1.5")
def dimension(quick: bool) -> Measured:
    """Follow the error as columns are added.

    Says: Rows grow at most polynomially in d.

    Experiment: Error at fixed n for 4, 8 and 16 columns, a quarter of them anchors, 40 % of the others
    hidden.

    Tolerance: Exponent of the error at most half that of the rows in planning (β = 1/d enters squared),
    and 4 standard errors; no error above that of the recursion on a quadratic by more than 4. Complete
    data have an exponent of ½.
    """
    sizes = (4, 8, 16) if quick else (4, 8, 16, 32)
    n, k = (1_000, 6) if quick else (4_000, 6)
    found = descents(sizes, lambda d: autoregressive(int(d), int(d) // 4), n, k)
    most = allowed_exponent(sizes, lambda d: (int(d), 0.1, 0.6, 1.0 / d, 0.1, 1 / 3, 3))
    told = found.told(f"d = {listed(sizes, 'd')}, n = {n}", most)
    return Measured(
        f"{told} and complete data have 0.5.",
        found.power.at_most(most) and max(found.surpluses) <= 1.0,
        found.curve("columns d", {"√(d/n), complete data": [math.sqrt(d / n) for d in sizes]}),
    )


@claim("missing-descent/forgets", "Algorithm 5, M_grad and η; erratum 7", Kind.TRAP)
def forgets(quick: bool) -> Measured:
    """Follow the estimate as chains run longer.

    Says: How long chains must run is left to constants; in practice they forget their start like
    exp(−M·η/2), so M·η = 10 is enough and M·η = 1 is not.

    Experiment: Mean estimate of several tables, two columns, one hidden in half of the rows, with chains
    of M·η = 1, 3, 10 and 20 (η = 0.02), against the zero of the mean gradient with the chain's limit.

    Tolerance: With M·η = 10 (0.7 % of the start left) and 20 within 4 standard errors, and η/4 for the
    next order of the chain's bias; with 1 (61 % left) further away than that.
    """
    n, k = (2_000, 4) if quick else (4_000, 16)
    problem, eta, times = one_threshold(), ProjectedLangevin().step_size, (1.0, 3.0, 10.0, 20.0)
    limit = fixed_point(problem, eta)
    gaps = [
        pooled(problem, n, k, ProjectedLangevin(steps=round(t / eta)))[1][1] - limit[1]
        for t in times
    ]
    error = float(standard_errors(problem, hessian(problem, problem.truth.mean), n * k)[1])
    allowed = ALLOWED * error + eta / 4.0
    across, up = "whitened time M·η of a chain", "distance from the chain's limit"
    return Measured(
        f"Estimates {listed(gaps, '+.3f')} from the limit at M·η = {listed(times, 'g')} (standard "
        f"error {error:.3f}; {allowed:.3f} are allowed).",
        bool(abs(gaps[0]) > allowed and max(map(abs, gaps[2:])) <= allowed),
        Curve(times, {"mean estimate": gaps}, across, up, {"limit": [0.0] * 4}, linear="xy"),
    )


# Iterates that are shown.
MOMENTS = (1, 3, 10, 30, 100, 300, 1_000)


def distances(fit: Estimate, truth: Gaussian) -> Floats:
    """Return the distance of each iterate from the truth, in Mahalanobis norm."""
    gaps = np.asarray(fit.history["iterates"]) - truth.mean
    return np.asarray(np.linalg.norm(np.linalg.solve(truth.cholesky, gaps.T), axis=0))


def late_gradients(fit: Estimate) -> Floats:
    """Squared lengths of gradients in the second half, if steps are 1/(λi): those of moves times λi."""
    iterates = np.asarray(fit.history["iterates"])
    i = np.arange(2, len(iterates) + 1)
    moves = np.diff(iterates, axis=0) * (fit.history["strong_convexity"] * i)[:, None]
    return np.asarray((moves**2).sum(axis=1)[len(iterates) // 2 :])


@claim("missing-descent/first-steps", "Algorithm 3, lines 4, 7 and 9; erratum 8", Kind.TRAP)
def first_steps(quick: bool) -> Measured:
    """Follow iterates with and without the projection.

    Says: Steps of 1/(λi) with λ = αβ/λ_max are enormous at first: the projection is what holds them.

    Experiment: Distance of iterates from the truth on ten columns, with the default radius and with a
    million in its place; the same rows and draws. Lengths of late moves, times λi.

    Tolerance: Without the projection an iterate leaves the ball (radius and start together), and the
    average is worse; with it none does (1e-9 for rounding), and the average is at most 4 standard errors
    above the recursion on a quadratic. Late moves times λi have the mean square tr Σ⁻¹ of a gradient,
    within 4 standard errors and the share 1/(λ_min λ i) that iterates add.
    """
    n, problem = (2_000 if quick else 8_000), autoregressive(10, 3)
    truth, level = problem.truth, level_for(problem, n)
    fits = [learn(problem, n, 0, projection_radius=radius) for radius in (None, 1e6)]
    (held, free), history = (distances(fit, truth) for fit in fits), fits[0].history
    errors = [mahalanobis_error(fit.mean, truth) for fit in fits]
    reach = float(history["projection_radius"]) + mahalanobis_error(history["start"], truth)
    lengths, whole = late_gradients(fits[0]), float(np.trace(truth.precision))
    low = float(np.linalg.eigvalsh(truth.covariance)[0])
    # An iterate varies by a²/(2a − 1)/i times the noise of a gradient with a = h/λ at most 1/(λ_min λ).
    added = 1.0 / (low * float(history["strong_convexity"]) * n / 2.0)
    noise = ALLOWED * float(lengths.std()) / math.sqrt(lengths.size) / whole
    lines = {
        "with the projection": [float(held[i - 1]) for i in MOMENTS],
        "without": [float(free[i - 1]) for i in MOMENTS],
    }
    claimed = {"edge of the ball": [reach] * len(MOMENTS)}
    return Measured(
        f"λ = {history['strong_convexity']:.3f}: the furthest iterate is "
        f"{held.max():.1f} from the truth with the projection (at most {reach:.1f}), "
        f"{free.max():.0e} without; errors of the averages {errors[0]:.3f} (predicted "
        f"{level.error:.3f}) and {errors[1]:.3f}; late moves times λi "
        f"{lengths.mean() / whole:.2f} of tr Σ⁻¹.",
        bool(
            held.max() <= reach + 1e-9
            and free.max() > reach
            and errors[0] < errors[1]
            and level.surplus([errors[0]]) <= 1.0
            and abs(lengths.mean() / whole - 1.0) <= noise + added
        ),
        Curve(MOMENTS, lines, "iterate i", "distance from the truth", claimed),
    )


def growth_of_distances(axis: float, pairs: int, seed: int) -> tuple[Floats, Floats]:
    """Distance to a point of the ball after Algorithm 4 over that before: Euclidean, Mahalanobis.

    The ball has half-axes ``axis`` and 1. Points are up to three radii out, in every direction; the
    first pair is (axis, 1) and the end of the long axis.
    """
    rng = np.random.default_rng(seed)
    known = Gaussian([0.0, 0.0], np.diag([axis**2, 1.0]))
    scale = known.standard_deviations
    angles = rng.uniform(0.0, 2.0 * math.pi, (2, pairs))
    lengths = np.sqrt(rng.random((2, pairs))) * np.array([[3.0], [1.0]])
    points, inside = lengths[..., None] * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    points[0], inside[0] = (1.0, 1.0), (1.0, 0.0)
    moved = np.array([project_to_domain([0.0, 0.0], p * scale, 1.0, known) for p in points]) / scale
    before, after = points - inside, moved - inside
    return (
        np.linalg.norm(after * scale, axis=1) / np.linalg.norm(before * scale, axis=1),
        np.linalg.norm(after, axis=1) / np.linalg.norm(before, axis=1),
    )


@claim(
    "missing-descent/projection",
    "Algorithm 4, and the lemma on projected descent that it serves",
    Kind.ERRATUM,
)
def projection(quick: bool) -> Measured:
    """Look for distances that grow.

    Says: The lemma on descent takes a projection, which brings no point further from any of the ball.
    Algorithm 4 scales towards the centre of a Mahalanobis ball: that is a projection in the ball's own
    norm (in whitened coordinates), but not in the Euclidean norm of the steps.

    Experiment: project_to_domain on a ball with half-axes 10 and 1: distances to points of the ball
    before and after, in both norms, for random points up to three radii out and for (10, 1), seen from
    (10, 0); then half-axes from 1 to 100.

    Tolerance: From (10, 0) the distance grows from 1 to √(10²(1 − 1/√2)² + ½), by geometry, to 1e-9; in
    the Mahalanobis norm no pair comes further apart (1e-9 for rounding), nor any in a round ball.
    """
    axes, pairs = (1.0, 3.0, 10.0, 30.0, 100.0), 500 if quick else 5_000
    found = {axis: growth_of_distances(axis, pairs, seed) for seed, axis in enumerate(axes)}
    euclidean, mahalanobis = found[10.0]
    example = math.sqrt(100.0 * (1.0 - math.sqrt(0.5)) ** 2 + 0.5)
    lines = {
        "Euclidean norm": [float(e.max()) for e, _ in found.values()],
        "Mahalanobis norm": [float(m.max()) for _, m in found.values()],
    }
    across, up = "longer half-axis of the ball", "largest growth of a distance"
    most = max(*lines["Mahalanobis norm"], lines["Euclidean norm"][0])
    return Measured(
        f"From 1 to {euclidean[0]:.3f} in the example (by geometry {example:.3f}); of {pairs} random "
        f"pairs {(euclidean > 1.0 + 1e-9).mean():.0%} come further apart in the Euclidean norm, by "
        f"up to {euclidean.max():.1f} times, {(mahalanobis > 1.0 + 1e-9).mean():.0%} in the Mahalanobis "
        "norm.",
        bool(abs(euclidean[0] - example) <= 1e-9 and most <= 1.0 + 1e-9),
        Curve(axes, lines, across, up, {"a projection": [1.0] * len(axes)}),
    )


@claim("planning/constants", "Appendix, proof of the theorem on z⁽ᴹ⁾; erratum 6", Kind.TRAP)
def constants(quick: bool) -> Measured:
    """Compare the analysis with what was enough.

    Says: The analysis has M ~ R⁶ max(…)¹²/ε¹²: polynomial, and astronomically more than is needed.

    Experiment: Langevin steps that planning computes for ten columns with the α, β and eigenvalues of a
    table, for ε from 0.1 to 0.8; error of the descent on that table with 500 steps.

    Tolerance: More than 10²⁰ times as many steps as the 500 that gave an error below the smallest ε;
    exponent in 1/ε from 12 to 12 + 18/R: R grows like log(1/ε) and enters with at most its 18th power.
    """
    n, problem, sampler = (6_000 if quick else 20_000), autoregressive(10, 3), ProjectedLangevin()
    fit = learn(problem, n, 1, sampler)
    reached = mahalanobis_error(fit.mean, problem.truth)
    used = fit.history["defaults"]
    low, *_, high = map(float, np.linalg.eigvalsh(problem.truth.correlation))
    wanted = (0.8, 0.4, 0.2, 0.1)
    plans = [
        parameters_for_missing_descent(10, eps, used.alpha, used.beta, 0.05, low, high)
        for eps in wanted
    ]
    steps, inverse = [plan.langevin_steps for plan in plans], [1.0 / eps for eps in wanted]
    power = slope(inverse, steps)
    most = 12.0 + 18.0 / plans[0].langevin_radius
    lines = {"by the analysis": steps, "used here": [float(sampler.steps)] * len(wanted)}
    enough = min(steps) > 1e20 * sampler.steps and reached < min(wanted)
    return Measured(
        f"{steps[0]:.0e} steps for ε = {wanted[0]:g}, {steps[-1]:.0e} for {wanted[-1]:g}, "
        f"exponent {power:.1f} in 1/ε; {sampler.steps} steps and {n} rows gave an error of "
        f"{reached:.3f} (the analysis asks for {plans[-1].descent_steps:.0e} rows at "
        f"{wanted[-1]:g}).",
        bool(enough and 12.0 <= power <= most),
        Curve(inverse, lines, "1 / ε", "Langevin steps for a gradient"),
    )


@claim("persistent-descent/rows", "Algorithm 3, with chains that go on in exact moves", Kind.BEYOND)
def rows_persistent(quick: bool) -> Measured:
    """Follow the error of the descent as it comes.

    Says: With a chain for each row that goes on, exact moves and steps that shrink, the descent has no
    floor: its error is that of the likeliest mean, √(tr(Σ⁻¹H⁻¹)/n), for every n.

    Experiment: missing_descent as it comes, two columns, one hidden in half of the rows: Mahalanobis
    error against n, and mean estimates at the largest n.

    Tolerance: Slope −0.5 within 4 standard errors. Root mean square errors within 4 standard errors of
    the limit with the 1/20 of the variance that draws may add; the mean of estimates within 4 standard
    errors of the truth. Projected Langevin steps would leave a floor that is known.
    """
    sizes, k = ((500, 2_000, 8_000), 12) if quick else ((1_000, 6_000, 36_000), 16)
    problem = one_threshold()
    truth, rule = problem
    inverse = np.linalg.inv(hessian(problem, truth.mean))
    means = [
        np.array(
            [
                missing_descent(
                    simulate(truth, rule, n, seed), rule, truth.covariance, random_state=seed
                ).mean
                for seed in range(k)
            ]
        )
        for n in sizes
    ]
    errors = [[mahalanobis_error(mean, truth) for mean in table] for table in means]
    limits = [math.sqrt(float(np.trace(truth.precision @ inverse)) / n) for n in sizes]
    power = exponent(sizes, errors)
    # The square of an error is a sum of normals' squares, whose weights the limit has.
    weights = np.linalg.eigvals(truth.precision @ inverse).real
    spread = math.sqrt(0.5 * float((weights**2).sum()) / k) / float(weights.sum())
    above = max(rms / limit for rms, limit in zip(heights(errors), limits, strict=True))
    below = min(rms / limit for rms, limit in zip(heights(errors), limits, strict=True))
    once = np.sqrt(1.05 * np.diag(inverse) / sizes[-1] / k)
    off = float(np.abs((means[-1].mean(axis=0) - truth.mean) / once).max())
    floor = mahalanobis_error(fixed_point(problem, ProjectedLangevin().step_size), truth)
    held = (
        power.near(-0.5)
        and above <= math.sqrt(1.05) * (1.0 + ALLOWED * spread)
        and below >= 1.0 - ALLOWED * spread
        and off <= ALLOWED
    )
    return Measured(
        f"Slope {power}, errors {listed(heights(errors))} at n = {listed(sizes, 'd')} (limit "
        f"{listed(limits)}); mean estimate {off:.1f} standard errors from the truth; projected "
        f"Langevin would stay at {floor:.3f}.",
        bool(held),
        Curve(
            sizes,
            {"missing_descent": heights(errors)},
            "rows n",
            "Mahalanobis error",
            {"limit": limits, "floor of projected Langevin": [floor] * len(sizes)},
        ),
    )
