"""How Algorithm 3 behaves: chains that run too short, its first steps, its projection, its constants."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.ledger.convexity import hessian
from halfseen.ledger.descent_level import learn, level_for
from halfseen.ledger.linear_thresholds import (
    autoregressive,
    fixed_point,
    one_threshold,
    pooled_means,
    standard_errors,
)
from halfseen.ledger.registry import ALLOWED, Curve, Kind, Measured, claim, slope
from halfseen.metrics import mahalanobis_error
from halfseen.planning import parameters_for_missing_descent
from halfseen.samplers import ProjectedLangevin
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Estimate

Floats = NDArray[np.float64]


@claim(
    "missing-descent/forgets",
    where="Algorithm 5, M_grad and η; erratum 7",
    says="How long chains must run is left to constants; in practice they forget their start like "
    "exp(−M·η/2), so M·η = 10 is enough and M·η = 1 is not.",
    experiment="Mean estimate of several tables, two columns, one hidden in half of the rows, with "
    "chains of M·η = 1, 3, 10 and 20 (η = 0.02), against the zero of the mean gradient with the "
    "chain's limit.",
    tolerance="With M·η = 10 (0.7 % of the start left) and 20 within 4 standard errors, and η/4 "
    "for the next order of the chain's bias; with 1 (61 % left) further away than that.",
    kind=Kind.TRAP,
)
def forgets(quick: bool) -> Measured:
    """Follow the estimate as chains run longer."""
    n, k = (2_000, 4) if quick else (4_000, 16)
    problem, eta = one_threshold(), ProjectedLangevin().step_size
    truth, limit = problem[0], fixed_point(problem, eta)
    times = (1.0, 3.0, 10.0, 20.0)
    gaps = [
        pooled_means(problem, n, k, ProjectedLangevin(steps=round(t / eta)))[1][1] - limit[1]
        for t in times
    ]
    error = float(standard_errors(problem, hessian(problem, truth.mean), n * k)[1])
    allowed = ALLOWED * error + eta / 4.0
    return Measured(
        f"Estimates {', '.join(f'{g:+.3f}' for g in gaps)} from the limit at M·η = "
        f"{', '.join(f'{t:g}' for t in times)} (standard error {error:.3f}; {allowed:.3f} are allowed).",
        bool(abs(gaps[0]) > allowed and max(map(abs, gaps[2:])) <= allowed),
        Curve(
            times,
            {"mean estimate": gaps},
            "whitened time M·η of a chain",
            "distance from the chain's limit",
            {"limit": [0.0] * len(times)},
            linear="xy",
        ),
    )


# Iterates that are shown.
MOMENTS = (1, 3, 10, 30, 100, 300, 1_000)


@cache
def descent(projected: bool, n: int) -> tuple[Estimate, Floats]:
    """Ten columns, with the default domain or practically none, and each iterate's distance."""
    problem = autoregressive(10, 3)
    fit = learn(problem, n, 0, radius=None if projected else 1e6)
    gaps = np.asarray(fit.history["iterates"]) - problem[0].mean
    return fit, np.asarray(np.linalg.norm(np.linalg.solve(problem[0].cholesky, gaps.T), axis=0))


def late_gradients(fit: Estimate) -> Floats:
    """Squared lengths of gradients in the second half, if steps are 1/(λi): those of moves times λi."""
    iterates = np.asarray(fit.history["iterates"])
    i = np.arange(2, len(iterates) + 1)
    moves = np.diff(iterates, axis=0) * (fit.history["strong_convexity"] * i)[:, None]
    return np.asarray((moves**2).sum(axis=1)[len(iterates) // 2 :])


@claim(
    "missing-descent/first-steps",
    where="Algorithm 3, lines 4, 7 and 9; erratum 8",
    says="Steps of 1/(λi) with λ = αβ/λ_max are enormous at first: the projection is what holds "
    "them.",
    experiment="Distance of iterates from the truth on ten columns, with the default radius and "
    "with a million in its place; the same rows and draws. Lengths of late moves, times λi.",
    tolerance="Without the projection an iterate leaves the ball (radius and start together), and "
    "the average is worse; with it none does (1e-9 for rounding), and the average is at most 4 "
    "standard errors above the recursion on a quadratic. Late moves times λi have the mean square "
    "tr Σ⁻¹ of a gradient, within 4 standard errors and the share 1/(λ_min λ i) that iterates add.",
    kind=Kind.TRAP,
)
def first_steps(quick: bool) -> Measured:
    """Follow iterates with and without the projection."""
    n, problem = (2_000 if quick else 8_000), autoregressive(10, 3)
    truth, level = problem[0], level_for(problem, n)
    (held_fit, held), (free_fit, free) = descent(True, n), descent(False, n)
    radius = float(held_fit.history["projection_radius"])
    reach = radius + mahalanobis_error(held_fit.history["start"], truth)
    errors = mahalanobis_error(held_fit.mean, truth), mahalanobis_error(free_fit.mean, truth)
    lengths, whole = late_gradients(held_fit), float(np.trace(truth.precision))
    low = float(np.linalg.eigvalsh(truth.covariance)[0])
    # An iterate varies by a²/(2a − 1)/i times the noise of a gradient with a = h/λ at most 1/(λ_min λ).
    added = 1.0 / (low * float(held_fit.history["strong_convexity"]) * n / 2.0)
    noise = ALLOWED * float(lengths.std()) / math.sqrt(lengths.size) / whole
    return Measured(
        f"λ = {held_fit.history['strong_convexity']:.3f}: the furthest iterate is "
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
    where="Algorithm 4, and the lemma on projected descent that it serves",
    says="The lemma on descent takes a projection, which brings no point further from any of the "
    "ball. Algorithm 4 scales towards the centre of a Mahalanobis ball: that is a projection in "
    "the ball's own norm (in whitened coordinates), but not in the Euclidean norm of the steps.",
    experiment="project_to_domain on a ball with half-axes 10 and 1: distances to points of the "
    "ball before and after, in both norms, for random points up to three radii out and for (10, "
    "1), seen from (10, 0); then half-axes from 1 to 100.",
    tolerance="From (10, 0) the distance grows from 1 to √(10²(1 − 1/√2)² + ½), by geometry, to "
    "1e-9; in the Mahalanobis norm no pair comes further apart (1e-9 for rounding), nor any in a "
    "round ball.",
    kind=Kind.ERRATUM,
)
def projection(quick: bool) -> Measured:
    """Look for distances that grow."""
    axes, pairs = (1.0, 3.0, 10.0, 30.0, 100.0), 500 if quick else 5_000
    found = {axis: growth_of_distances(axis, pairs, seed) for seed, axis in enumerate(axes)}
    euclidean, mahalanobis = found[10.0]
    example = math.sqrt(100.0 * (1.0 - math.sqrt(0.5)) ** 2 + 0.5)
    furthest = max(float(m.max()) for _, m in found.values())
    return Measured(
        f"From 1 to {euclidean[0]:.3f} in the example (by geometry {example:.3f}); of {pairs} random "
        f"pairs {(euclidean > 1.0 + 1e-9).mean():.0%} come further apart in the Euclidean norm, by "
        f"up to {euclidean.max():.1f} times, {(mahalanobis > 1.0 + 1e-9).mean():.0%} in the Mahalanobis "
        "norm.",
        bool(
            abs(euclidean[0] - example) <= 1e-9
            and furthest <= 1.0 + 1e-9
            and found[1.0][0].max() <= 1.0 + 1e-9
        ),
        Curve(
            axes,
            {
                "Euclidean norm": [float(found[axis][0].max()) for axis in axes],
                "Mahalanobis norm": [float(found[axis][1].max()) for axis in axes],
            },
            "longer half-axis of the ball",
            "largest growth of a distance",
            {"a projection": [1.0] * len(axes)},
        ),
    )


@claim(
    "planning/constants",
    where="Appendix, proof of the theorem on z⁽ᴹ⁾; erratum 6",
    says="The analysis has M ~ R⁶ max(…)¹²/ε¹²: polynomial, and astronomically more than is needed.",
    experiment="Langevin steps that planning computes for ten columns with the α, β and "
    "eigenvalues of a table, for ε from 0.1 to 0.8; error of the descent on that table with 500 "
    "steps.",
    tolerance="More than 10²⁰ times as many steps as the 500 that gave an error below the smallest "
    "ε; exponent in 1/ε from 12 to 12 + 18/R: R grows like log(1/ε) and enters with at most its "
    "18th power.",
    kind=Kind.TRAP,
)
def constants(quick: bool) -> Measured:
    """Compare the analysis with what was enough."""
    n, problem, sampler = (6_000 if quick else 20_000), autoregressive(10, 3), ProjectedLangevin()
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
            min(steps) > 1e20 * sampler.steps and reached < min(wanted) and 12.0 <= exponent <= most
        ),
        Curve(
            [1.0 / eps for eps in wanted],
            {"by the analysis": steps, "used here": [float(sampler.steps)] * len(wanted)},
            "1 / ε",
            "Langevin steps for a gradient",
        ),
    )
