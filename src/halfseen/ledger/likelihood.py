"""The population likelihood under linear thresholds: its minimum, its curvature, and where that ends.

With two columns, one of which is always seen, everything is an integral over the seen value of closed
forms in the hidden one. Two identities do the work, with Δ = μ − μ* and (A, x) drawn at μ*:

    ℓ(μ) − ℓ(μ*) = ½‖Δ‖²_Σ − E KL(hidden part at μ* ‖ hidden part at μ)
    ∇²ℓ(μ)       = Σ⁻¹ − Σ⁻¹ E[Cov_μ(y | A, x)] Σ⁻¹    (the appendix to section 4)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import Problem, joint_share, limits_along
from halfseen.ledger.harness import ALLOWED, Curve, Floats, Measured, average, claim
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import Gibbs
from halfseen.simulate import simulate
from halfseen.solvers.conditionals import Conditionals
from halfseen.solvers.sample_gradient import gradient_of_row

# The trapezoidal rule over ±10 deviations: for smooth integrands it is exact to rounding long before
# 801 nodes, and what lies beyond has mass 1e-23.
NODES = np.linspace(-10.0, 10.0, 801)
WEIGHTS = np.exp(-0.5 * NODES**2) / math.sqrt(2.0 * math.pi) * (NODES[1] - NODES[0])
# How far μ is moved, in Mahalanobis distance, and in how many directions.
DISTANCES = (0.0, 0.5, 1.0, 2.0, 4.0)
DIRECTIONS = 12
ACROSS = "distance of μ from μ*, in Mahalanobis norm"
# Standard errors that the largest of about thirty may be off by.
MANY = 4.5


def designs() -> dict[str, Problem]:
    """Two rules, each with several covariances: condition numbers 1 to 535, correlations ±0.9."""
    covariances = {
        "I": np.eye(2),
        "κ = 100": np.diag([10.0, 0.1]),
        "ρ = 0.9": np.array([[1.0, 0.9], [0.9, 1.0]]),
        "ρ = −0.9, κ = 535": np.array([[10.0, -0.9], [-0.9, 0.1]]),
    }
    out = {}
    for name, covariance in covariances.items():
        truth = Gaussian([0.3, -0.2], covariance)
        out[f"the larger of two, {name}"] = Problem(truth, LinearThreshold.larger_of(0, 1, 2))
        # Column 1 is shown in 30 % of the rows, by a sum in which both columns take part.
        v = np.array([0.5, 1.0])
        limits = limits_along(truth, v[None], 0.3)
        out[f"an anchor, {name}"] = Problem(truth, LinearThreshold.anchored([0], [v], limits))
    return out


def half_line(low: Floats, high: Floats) -> tuple[Floats, Floats, Floats]:
    """Log-mass, mean and variance of a standard normal on (low, high), one of which is infinite."""
    # Mirrored to (low, ∞), where ratios in log space do not cancel.
    mirrored = np.isinf(low)
    t = np.where(mirrored, -high, low)
    log_mass = log_ndtr(-t)
    ratio = np.exp(-0.5 * t * t - 0.5 * math.log(2.0 * math.pi) - log_mass)
    return log_mass, np.where(mirrored, -ratio, ratio), 1.0 - ratio * (ratio - t)


@dataclass(frozen=True)
class Slice:
    """One pattern, k seen and j hidden, at every node of the seen value.

    Attributes
    ----------
    j, k : int
        The hidden and the seen coordinate.
    x : array
        Seen values.
    weight : array
        Density of the pattern and the value at μ*, times the width of a node.
    low, high : arrays
        The hidden region.
    """

    j: int
    k: int
    x: Floats
    weight: Floats
    low: Floats
    high: Floats

    def conditional(self, g: Gaussian) -> tuple[Floats, float]:
        """Mean and deviation of the hidden coordinate given the seen one, before the region."""
        S = g.covariance
        gain = S[self.j, self.k] / S[self.k, self.k]
        deviation = math.sqrt(S[self.j, self.j] - gain * S[self.k, self.j])
        return g.mean[self.j] + gain * (self.x - g.mean[self.k]), deviation

    def moments(self, g: Gaussian) -> tuple[Floats, Floats, Floats]:
        """Log-mass, mean and variance of the hidden coordinate in its region."""
        m, s = self.conditional(g)
        log_mass, mean, variance = half_line((self.low - m) / s, (self.high - m) / s)
        return log_mass, m + s * mean, s * s * variance


def slices(design: Problem) -> Iterator[Slice]:
    """Give the patterns in which one coordinate is hidden."""
    truth, rule = design.truth, design.rule
    for k, j in ((0, 1), (1, 0)):
        if rule.always_seen[j]:
            continue
        x = truth.mean[k] + truth.standard_deviations[k] * NODES
        low, high = np.full(x.size, -np.inf), np.full(x.size, np.inf)
        # Hidden: V[j]·y > b[j]; seen: V[k]·y <= b[k], the same half-line for both rules here.
        edge = (rule.b[j] - rule.V[j, k] * x) / rule.V[j, j]
        if rule.V[j, j] > 0:
            low = edge
        else:
            high = edge
        part = Slice(j, k, x, WEIGHTS, low, high)
        mass = np.exp(part.moments(truth)[0])
        yield Slice(j, k, x, WEIGHTS * mass, low, high)


def excess(design: Problem, mean: Floats) -> float:
    """ℓ(μ) − ℓ(μ*), by the first identity above."""
    truth, g = design.truth, Gaussian(mean, design.truth.covariance)
    gap = mean - truth.mean
    total = 0.5 * float(gap @ truth.precision @ gap)
    for part in slices(design):
        m, s = part.conditional(truth)
        other = part.conditional(g)[0]
        log_mass, expected, _ = part.moments(truth)
        # KL of N(m, s²) from N(other, s²), both on the same region
        divergence = part.moments(g)[0] - log_mass
        divergence += (m - other) * (expected - 0.5 * (m + other)) / s**2
        total -= float(part.weight @ divergence)
    return total


def hessian(design: Problem, mean: Floats) -> Floats:
    """∇²ℓ(μ), by the second identity above."""
    g = Gaussian(mean, design.truth.covariance)
    hidden = np.zeros((2, 2))
    for part in slices(design):
        hidden[part.j, part.j] += float(part.weight @ part.moments(g)[2])
    return np.asarray(g.precision - g.precision @ hidden @ g.precision)


def around(truth: Gaussian, distance: float, directions: int = DIRECTIONS) -> list[Floats]:
    """Means at a Mahalanobis distance from the truth, in evenly spread directions."""
    angles = 2.0 * math.pi * np.arange(directions if distance else 1) / directions
    circle = distance * np.column_stack([np.cos(angles), np.sin(angles)])
    return list(truth.mean + circle @ truth.cholesky.T)


def slope_of(design: Problem, mean: Floats, step: float = 1e-4) -> Floats:
    """∇ℓ(μ) by central differences, which are off by about step²."""
    E = step * np.eye(2)
    return np.array([excess(design, mean + e) - excess(design, mean - e) for e in E]) / (2 * step)


def sampled_gradient(design: Problem, mean: Floats, n: int, seed: int) -> tuple[Floats, Floats]:
    """Average of Algorithm 5's gradients over n rows, drawn by Gibbs, and its standard errors."""
    X = np.asarray(simulate(design.truth, design.rule, n, seed))
    known = Gaussian([0.0, 0.0], design.truth.covariance)
    rows = Conditionals(known.covariance, design.rule, X, ("a", "b"))
    rng, sampler = np.random.default_rng(seed), Gibbs()
    starts = rows.feasible_points(mean)
    g = np.array(
        [gradient_of_row(rows, r, mean, known, starts[r], sampler, rng)[0] for r in range(n)]
    )
    return average(g)


@claim("likelihood/global-minimum", "Section 4.1, lemma on ℓ(μ) >= ℓ(μ*)")
def global_minimum(quick: bool) -> Measured:
    """Compare ℓ around the truth with ℓ at it, and slopes with sampled gradients.

    Says: The population negative log-likelihood ℓ is least at μ*, where its gradient is zero.

    Experiment: ℓ by quadrature under two rules and four covariances, at 12 directions and 4 distances;
    gradients of Algorithm 5, averaged over rows, against slopes of ℓ at μ* and away from it.

    Tolerance: ℓ(μ) > ℓ(μ*) everywhere; slope at μ* below 1e-6 (differences with steps of 1e-4 are off by
    about step²/6 · λ_min^-1.5 = 6e-7); each of 32 components within 4.5 standard errors of its slope
    (one strays further, by chance, in 1 of 4 600 runs).
    """
    n, table, steepest, off = 1_000 if quick else 10_000, designs(), 0.0, 0.0
    least = [
        min(excess(d, m) for d in table.values() for m in around(d.truth, distance))
        for distance in DISTANCES[1:]
    ]
    for seed, design in enumerate(table.values()):
        steepest = max(steepest, float(np.abs(slope_of(design, design.truth.mean)).max()))
        away = design.truth.mean + design.truth.cholesky @ np.array([0.6, -0.8])
        for mean in (design.truth.mean, away):
            found, error = sampled_gradient(design, mean, n, seed)
            off = max(off, float(np.abs((found - slope_of(design, mean)) / error).max()))
    lines = {"least of all designs": least}
    claimed = {"complete data, ½ distance²": [0.5 * r * r for r in DISTANCES[1:]]}
    return Measured(
        f"ℓ(μ) − ℓ(μ*) is at least {least[0]:.3f} at a distance of ½ and {least[-1]:.2g} at 4; slope at "
        f"μ* {steepest:.0e}; sampled gradients at most {off:.1f} standard errors from slopes of ℓ.",
        bool(min(least) > 0.0 and steepest < 1e-6 and off <= MANY),
        Curve(DISTANCES[1:], lines, ACROSS, "ℓ(μ) − ℓ(μ*)", claimed),
    )


def joint_shares(design: Problem) -> dict[int, float]:
    """α for blocks of one column and of two: how rarely any so many are seen together."""
    hidden = np.zeros(2)
    for part in slices(design):
        hidden[part.j] += float(part.weight.sum())
    return {1: 1.0 - float(hidden.max()), 2: 1.0 - float(hidden.sum())}


def ratio_to_bound(design: Problem, mean: Floats) -> float:
    """Smallest eigenvalue of ∇²ℓ over the largest αβ/λ_max that the lemma gives."""
    top = float(np.linalg.eigvalsh(design.truth.covariance)[-1])
    bound = max(alpha * c / 2.0 / top for c, alpha in joint_shares(design).items())
    return float(np.linalg.eigvalsh(hessian(design, mean))[0]) / bound


def one_column_ratio(alpha: float, distance: float) -> float:
    """Return the same for a single column shown above a limit, μ moved into the hidden half.

    There ∇²ℓ = 1 − (1 − α)·Var_μ(hidden), and the bound is α.
    """
    limit = ndtri(1.0 - alpha) + distance
    _, _, variance = half_line(np.array([-np.inf]), np.array([limit]))
    return float(1.0 - (1.0 - alpha) * variance[0]) / alpha


def hidden_covariances(
    truth: Gaussian, rule: LinearThreshold, mean: Floats, n: int, draws: int, seed: int
) -> tuple[Floats, Floats]:
    """Return n rows, and of each Cov_μ(y | A, x), estimated without bias from so many Gibbs draws."""
    d, rng, sampler = truth.mean.size, np.random.default_rng(seed), Gibbs()
    X = np.asarray(simulate(truth, rule, n, seed))
    rows = Conditionals(truth.covariance, rule, X, tuple(map(str, range(d))))
    covariances = np.zeros((n, d, d))
    for r, start in enumerate(rows.feasible_points(mean)):
        if start.size:
            region = rows.region(r, mean)
            state, points = sampler.init(region, start, rng), []
            for _ in range(draws):
                state = sampler.step(region, state, rng)[0]
                points.append(rows.complete(r, state.point))
            covariances[r] = np.cov(np.array(points).T)
    return X, covariances


def sampled_ratio(n: int, draws: int, seed: int) -> tuple[float, float]:
    """Return the ratio for a random rule on four columns at a random μ, and its standard error."""
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(4, 6))
    truth = Gaussian(rng.normal(size=4), B @ B.T / 6.0)
    V = rng.normal(size=(4, 4))
    rule = LinearThreshold(V, limits_along(truth, V, rng.uniform(0.3, 0.7, 4)))
    mean = truth.mean + truth.cholesky @ rng.normal(size=4)
    X, covariances = hidden_covariances(truth, rule, mean, n, draws, seed)
    P = truth.precision
    values, vectors = np.linalg.eigh(P - P @ covariances.mean(axis=0) @ P)
    along = P @ vectors[:, 0]
    error = np.einsum("i,rij,j->r", along, covariances, along).std() / math.sqrt(n)
    seen = ~np.isnan(X)
    top = float(np.linalg.eigvalsh(truth.covariance)[-1])
    bounds = [joint_share(seen, c) * c / 4 / top for c in range(1, 5)]
    return float(values[0] / max(bounds)), float(error / max(bounds))


def drawn_against_quadrature(n: int, draws: int) -> float:
    """Hidden variances by draws, summed over rows, against quadrature: most standard errors apart.

    For each design at μ* and a deviation away from it.
    """
    off = 0.0
    for seed, design in enumerate(designs().values()):
        away = design.truth.mean + design.truth.cholesky @ np.array([-0.6, 0.8])
        for mean in (design.truth.mean, away):
            _, drawn = hidden_covariances(design.truth, design.rule, mean, n, draws, seed)
            g = Gaussian(mean, design.truth.covariance)
            for part in slices(design):
                expected = float(part.weight @ part.moments(g)[2])
                found = drawn[:, part.j, part.j]
                off = max(off, abs(found.mean() - expected) * math.sqrt(n) / found.std())
    return off


@claim("likelihood/strong-convexity", "Section 4.1, lemma on strong convexity")
def strong_convexity(quick: bool) -> Measured:
    """Compare curvatures with the lemma.

    Says: ℓ is αβ/λ_max-strongly convex, for every block size βd and at every μ.

    Experiment: Smallest eigenvalue of ∇²ℓ by quadrature, at μ* and up to 4 deviations away, for two
    rules and four covariances; by Gibbs draws for random rules on four columns; in closed form for one
    column. Variances of hidden values by the same draws against quadrature.

    Tolerance: The ratio to the largest αβ/λ_max is at least 1 at every μ, to 1e-9 for quadrature and to
    4 standard errors for draws; for one column it comes down to 1 within 1 %, so no larger constant
    holds. Each of 24 variances by draws within 4.5 standard errors of quadrature (one strays further, by
    chance, in 1 of 6 000 runs).
    """
    table = designs()
    least = {
        rule: [
            min(
                ratio_to_bound(design, mean)
                for name, design in table.items()
                if name.startswith(rule)
                for mean in around(design.truth, distance)
            )
            for distance in DISTANCES
        ]
        for rule in ("the larger of two", "an anchor")
    }
    least["one column, 30 % seen"] = [one_column_ratio(0.3, r) for r in DISTANCES]
    smallest = min(map(min, least.values()))
    tight = least["one column, 30 % seen"][-1]
    drawn = [sampled_ratio(500 if quick else 1_000, 8, k) for k in range(4 if quick else 10)]
    worst = min(drawn)
    off = drawn_against_quadrature(400 if quick else 2_000, 8)
    above = smallest >= 1.0 - 1e-9 and all(r + ALLOWED * e >= 1.0 for r, e in drawn)
    claimed, up = {"the lemma": [1.0] * len(DISTANCES)}, "least eigenvalue / (αβ/λ_max)"
    return Measured(
        f"∇²ℓ is at least {smallest:.3f} times αβ/λ_max in two columns and one (largest at μ*: "
        f"{max(line[0] for line in least.values()):.1f}); {worst[0]:.1f} ± {worst[1]:.2f} times "
        f"in four; one column with μ 4 deviations off {tight:.4f} times, so the lemma cannot be "
        f"improved there; variances by draws at most {off:.1f} standard errors from quadrature.",
        bool(above and tight <= 1.01 and off <= MANY),
        Curve(DISTANCES, least, ACROSS, up, claimed, linear="xy"),
    )


def interval_curvature(low: float, high: float, mu: Floats) -> Floats:
    """ℓ''(μ) for one column with μ* = 0, shown on [low, high]: 1 − P*(hidden)·Var_μ(y | hidden).

    Moments outside are those of the whole line less those inside.
    """
    hidden_at_truth = 1.0 - (ndtr(high) - ndtr(low))
    a, b = low - mu, high - mu
    finite = np.isfinite(b)
    end = np.where(finite, b, 0.0)
    density_a = np.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    density_b = np.where(finite, np.exp(-0.5 * end * end) / math.sqrt(2.0 * math.pi), 0.0)
    hidden = ndtr(a) + ndtr(-b)
    first = (density_b - density_a) / hidden
    second = 1.0 + (end * density_b - a * density_a) / hidden
    return np.asarray(1.0 - hidden_at_truth * (second - first**2))


@claim("likelihood/counterexample", "Section 4.1, remark after the lemmas")
def counterexample(quick: bool) -> Measured:
    """Look for negative curvature, with an interval and with half-lines.

    Says: Convexity can fail when the rule is no linear threshold: one column, μ* = 0, shown on [2, 4].

    Experiment: ℓ'' in closed form on a grid of μ from −4 to 8; the same for shown half-lines [t, ∞).

    Tolerance: ℓ'' is below zero somewhere for [2, 4], and at least α everywhere for half-lines, as the
    lemma says (1e-9 for rounding).
    """
    mu = np.linspace(-4.0, 8.0, 121)
    interval = interval_curvature(2.0, 4.0, mu)
    limits = (-1.0, 0.0, 1.0, 2.0)
    margins = [interval_curvature(t, math.inf, mu).min() - ndtr(-t) for t in limits]
    negative = mu[interval < 0.0]
    at = mu[::3]
    lines = {
        "shown on [2, 4]": interval[::3].tolist(),
        "shown on [2, ∞)": interval_curvature(2.0, math.inf, at).tolist(),
    }
    where = f"for μ from {negative[0]:.1f} to {negative[-1]:.1f}" if negative.size else "nowhere"
    return Measured(
        f"Shown on [2, 4], ℓ'' is below zero {where}, {interval.min():.2f} at μ = "
        f"{mu[interval.argmin()]:.1f}; for half-lines its least value is α "
        f"{min(margins):+.0e}.",
        bool(negative.size > 0 and min(margins) >= -1e-9),
        Curve(at.tolist(), lines, "μ", "ℓ''(μ)", {"convex above": [0.0] * at.size}, linear="xy"),
    )
