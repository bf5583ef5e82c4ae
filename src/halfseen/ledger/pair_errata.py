"""Two traps of Algorithm 1: its matrix need not be a covariance, its likelihood may have no maximum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import equicorrelated
from halfseen.ledger.registry import Curve, Kind, Measured, claim, root_mean_square
from halfseen.ledger.self_censoring import fits, half_line
from halfseen.simulate import simulate
from halfseen.solvers import truncation
from halfseen.solvers.assemble import EIGENVALUE_FLOOR
from halfseen.solvers.result import Status

Floats = NDArray[np.float64]


@claim(
    "theorem-1.2/positive-definite",
    where="Algorithm 1, last lines; section 3, lemma on the covariance",
    says="The matrix put together from pairs need not be a covariance. Projecting it on the positive "
    "definite matrices never increases its Frobenius error, so the lemma holds for what is returned.",
    experiment="Five columns, correlations 0.9, 300 rows: smallest eigenvalue of Algorithm 1's "
    "matrix; its Frobenius error before and after eigenvalues are raised to the floor; and after "
    "the solver's own projection, which is made on the scale of correlations so that units do not "
    "matter.",
    tolerance="More than a quarter of the tables have a negative eigenvalue; the projection "
    "increases the error in none (exact, but for rounding: 1e-12); the solver's own does not in "
    "root mean square.",
    kind=Kind.ERRATUM,
)
def positive_definite(quick: bool) -> Measured:
    """Look at the eigenvalues of the matrix of Algorithm 1, and at what projecting does."""
    truth = equicorrelated(5, 0.9)
    before, after, own, negative = [], [], [], 0
    for fit in fits(truth, half_line(5), 300, 60 if quick else 400, 30):
        raw = fit.history["covariance_before_projection"]
        values, vectors = np.linalg.eigh(raw)
        negative += int(values[0] < 0.0)
        nearest = (vectors * np.maximum(values, EIGENVALUE_FLOOR)) @ vectors.T
        before.append(float(np.linalg.norm(raw - truth.covariance)))
        after.append(float(np.linalg.norm(nearest - truth.covariance)))
        own.append(float(np.linalg.norm(fit.gaussian.covariance - truth.covariance)))
    worst = max(b - a for a, b in zip(before, after, strict=True))
    worse = sum(b > a + 1e-12 for a, b in zip(before, own, strict=True))
    part = negative / len(before)
    errors = [root_mean_square(some) for some in (before, after, own)]
    return Measured(
        f"{part:.0%} of {len(before)} tables have a negative eigenvalue; error {errors[0]:.3g} "
        f"before, {errors[1]:.3g} after, larger in none; {errors[2]:.3g} by the solver's own, "
        f"larger in {worse}.",
        part > 0.25 and worst <= 1e-12 and errors[2] <= errors[0],
    )


def profile_loss(x: Floats, sigma: float) -> float:
    """Least mean loss over μ of a normal truncated to x ≥ 0, at this σ.

    With ν = μ/σ² the loss is mean(x²)/(2σ²) − ν x̄ + log ∫₀^∞ exp(νz − z²/(2σ²)) dz, convex in ν.
    """
    first, second = x.mean(), (x * x).mean()

    def loss(v: float) -> float:
        # ν = −v/x̄: for σ → ∞ the best v is 1, the exponential distribution.
        t = -v * sigma / first
        mass = 0.5 * t * t + log_ndtr(t) + math.log(sigma * math.sqrt(2.0 * math.pi))
        return float(0.5 * second / sigma**2 + v + mass)

    far = 2.0 + (first / sigma) ** 2 * 40.0
    return float(minimize_scalar(loss, bounds=(-far, far), method="bounded").fun)


@claim(
    "theorem-1.2/existence",
    where="Algorithm 1, Uni_SGD_trunc",
    says="The likelihood of truncated values need not have a maximum: where the seen values lie above a "
    "limit with a coefficient of variation above 1, it rises for ever as σ does. The bounded domain of "
    "the algorithm is what gives an answer, on its edge.",
    experiment="Values of N(−2, 1) seen above 0, 2.3 % of 600 rows: for each table the likelihood, "
    "at its best μ, as σ doubles from 2 to 1 024 times the seen mean; and the solver's answer with "
    "its status.",
    tolerance="Exact: with a coefficient above 1.02 (in at least one table of ten) the likelihood "
    "rises at every doubling and the answer is finite, with status ON_DOMAIN_EDGE; below 0.98 it "
    "falls at the last. In between the sign is of the order of the next term of an expansion in "
    "1/σ.",
    kind=Kind.TRAP,
)
def existence(quick: bool) -> Measured:
    """Follow the likelihood of a truncated normal to infinity."""
    truth, rule = Gaussian([-2.0], [[1.0]]), half_line(1, 0.0)
    tables, doublings = 60 if quick else 300, np.arange(1, 11)
    gains: dict[bool, list[Floats]] = {True: [], False: []}
    edges, deviations = [], []
    for seed in range(tables):
        X = simulate(truth, rule, 600, random_state=seed)
        x = X[~np.isnan(X)]
        variation = float(x.std() / x.mean())
        if abs(variation - 1.0) <= 0.02:
            continue
        runs_away = variation > 1.0
        losses = [profile_loss(x, float(x.mean()) * 2.0**k) for k in doublings]
        gains[runs_away].append(losses[0] - np.array(losses))
        if runs_away:
            fit = truncation(X, rule)
            edges.append(fit.status is Status.ON_DOMAIN_EDGE)
            deviations.append(float(fit.gaussian.standard_deviations[0]))
    rising = [bool((np.diff(gain) > 0.0).all()) for gain in gains[True]]
    falling = [bool(gain[-1] < gain[-2]) for gain in gains[False]]
    enough = len(rising) >= 0.1 * tables
    return Measured(
        f"{len(rising)} of {tables} tables above 1: {sum(rising)} rise for ever, {sum(edges)} end "
        f"on the edge, with σ̂ of at most {max(deviations, default=math.nan):.2g} (truth 1); "
        f"{len(falling)} below 1: {sum(falling)} turn.",
        bool(
            enough and all(rising) and all(edges) and all(falling) and np.isfinite(deviations).all()
        ),
        Curve(
            [float(2.0**k) for k in doublings],
            {
                name: [float(v) for v in np.mean(gains[key], axis=0)]
                for key, name in ((True, "coefficient above 1"), (False, "below 1"))
                if gains[key]
            },
            "σ, in units of the mean of the seen values",
            "gain in mean log-likelihood since σ = 2",
            linear="y",
        ),
    )
