"""The chain of Algorithm 5: how fast it forgets, what bias is left, and what it converges to.

Why the checks below are sharp. Two chains with the same noise come closer by 1 − η/2 in each step,
since a projection on a convex set brings no two points further apart. So z⁽ᴹ⁾ comes within (1 − η/2)ᴹ
of the first distance to the chain's own limit, in Wasserstein distance, which bounds that of means.
The limit differs from the truncated Gaussian near a wall, where the chain is a random walk with steps
√η, held at zero: the largest value of such a walk falls short of that of Brownian motion by
−ζ(½)/√(2π) · √η on average (Asmussen, Glynn and Pitman, 1995). So the limit is close to the Gaussian
truncated that much further out, with what lies beyond the wall moved on to it (``half_line_limit``).
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import kstest, wasserstein_distance

from halfseen.ledger.designs import legendre_nodes
from halfseen.ledger.harness import (
    ALLOWED,
    Curve,
    Floats,
    Kind,
    Measured,
    average,
    claim,
    listed,
    slope,
)
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import ProjectedLangevin, Region
from halfseen.solvers.sample_gradient import sample_gradient

# −ζ(½)/√(2π): how far beyond a wall a random walk is on average when it crosses it, in its steps.
OVERSHOOT = 1.4603545088095868 / math.sqrt(2.0 * math.pi)
# The example of the errata: N(−½, 1) on z > 0.
CENTRE = -0.5
HALF_LINE = Region(np.array([CENTRE]), np.array([[-1.0]]), np.array([0.0]))
# A wedge of 63°: u₁ >= 0 and u₂ >= ½u₁, around a mean outside.
WEDGE_SLOPE = 0.5
WEDGE = Region(
    np.array([0.2, -0.4]),
    np.array([[-1.0, 0.0], np.array([WEDGE_SLOPE, -1.0]) / math.hypot(1.0, WEDGE_SLOPE)]),
    np.zeros(2),
)
# Whitened time after which less than one per cent of the start is left.
TIME = 10.0
# sup |F_n − F| exceeds this over √n with probability 1e-4 (Dvoretzky, Kiefer, Wolfowitz, Massart).
DKW = math.sqrt(0.5 * math.log(2.0 / 1e-4))


def half_line_limit(wall: Floats | float, step_size: float) -> Floats:
    """Mean of the chain's limit for N(0, 1) above a wall, to first order in √η."""
    t = np.asarray(wall, dtype=float)
    # E max(t, z) − t for z beyond the wall pushed out: the part above the wall, over the mass beyond.
    part = np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) - t * ndtr(-t)
    return np.asarray(t + part / ndtr(OVERSHOOT * math.sqrt(step_size) - t))


def run_chains(
    region: Region, sampler: ProjectedLangevin, points: Floats, rng: np.random.Generator
) -> Floats:
    """Move independent chains, one for each row of ``points``, by one draw of the sampler."""
    return np.array(
        [sampler.step(region, sampler.init(region, u, rng), rng)[0].point for u in points]
    )


def chains_for(step_size: float, time: float = TIME) -> ProjectedLangevin:
    """Return the sampler with these steps, for this whitened time; its drift is the default."""
    return ProjectedLangevin(step_size=step_size, steps=max(1, round(time / step_size)))


def tail_mean(wall: float, variance: float = 1.0) -> float:
    """Mean of N(−½, variance) above a wall."""
    s = math.sqrt(variance)
    t = (wall - CENTRE) / s
    return CENTRE + s * math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi) / float(ndtr(-t))


def predicted_mean(step_size: float, drift: float = 0.5) -> float:
    """Mean of the chain's limit on the half-line of the example, to first order in √η.

    A drift other than ½ samples a Gaussian of variance ½/drift.
    """
    s = math.sqrt(0.5 / drift)
    return CENTRE + s * float(half_line_limit(-CENTRE / s, step_size / s**2))


def wedge_mean() -> Floats:
    """Mean of the Gaussian truncated to the wedge: quadrature in u₁, closed form in u₂."""
    # Twelve deviations hold all but 1e-32.
    u, w = legendre_nodes(0.0, 12.0, 200)
    m1, m2 = WEDGE.mean
    t = WEDGE_SLOPE * u - m2
    mass = np.exp(-0.5 * (u - m1) ** 2) * ndtr(-t)
    second = np.exp(-0.5 * (u - m1) ** 2) * (
        m2 * ndtr(-t) + np.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
    )
    return np.array([w @ (mass * u), w @ second]) / float(w @ mass)


def on_the_wedge(points: Floats) -> Floats:
    """Project points on the wedge: on a wall where that lies in the wedge, else on its tip."""
    out, done = points.copy(), (points @ WEDGE.A.T <= 0.0).all(axis=1)
    for wall, other in (WEDGE.A, WEDGE.A[::-1]):
        beyond = np.maximum(points @ wall, 0.0)
        foot = points - beyond[:, None] * wall
        here = ~done & (beyond > 0.0) & (foot @ other <= 0.0)
        out[here] = foot[here]
        done |= here
    out[~done] = 0.0
    return out


def wedge_limit(step_size: float) -> Floats:
    """Mean of the chain's limit in the wedge, to first order in √η.

    As on a half-line: both walls pushed out, and what lies beyond the true ones projected on the wedge.
    Quadrature over the pushed wedge, along its two edges.
    """
    tip = np.linalg.solve(WEDGE.A, np.full(2, OVERSHOOT * math.sqrt(step_size)))
    edges = np.array([[0.0, 1.0], [1.0, WEDGE_SLOPE] / np.hypot(1.0, WEDGE_SLOPE)])
    t, w = legendre_nodes(0.0, 12.0, 200)
    u = (tip + t[:, None, None] * edges[0] + t[:, None] * edges[1]).reshape(-1, 2)
    weight = np.outer(w, w).ravel() * np.exp(-0.5 * ((u - WEDGE.mean) ** 2).sum(axis=1))
    return np.asarray(weight @ on_the_wedge(u) / weight.sum())


def tail_quantiles(n: int) -> Floats:
    """Return n evenly spread quantiles of N(−½, 1) above zero."""
    p = (np.arange(n) + 0.5) / n
    return np.asarray(CENTRE - ndtri((1.0 - p) * ndtr(CENTRE)))


def length_and_error(points: Floats, centre: Floats) -> tuple[float, float]:
    """How far the average of points is from a centre, and a bound on its standard error."""
    gap = points.mean(axis=0) - centre
    return float(np.linalg.norm(gap)), math.sqrt(points.var(axis=0).sum() / len(points))


@claim("sample-gradient/langevin-steps", "Section 4.3, theorem on z⁽ᴹ⁾")
def langevin_steps(quick: bool) -> Measured:
    """Follow distances as chains run.

    Says: Polynomially many steps bring z⁽ᴹ⁾ as near to its target as wanted.

    Experiment: Chains started 4 deviations away, η = 0.05: Wasserstein distance to N(−½, 1) on z > 0,
    and distance of means in a wedge of 63°, against M.

    Tolerance: At most (1 − η/2)ᴹ of the first distance, plus the floor (the last value, after M·η = 20),
    plus 4 standard errors: projections on convex sets bring chains together at that rate. The floor on
    the half-line at most the predicted shift of the mean, η for the next order, and 4 standard errors.
    """
    n, eta = (5_000 if quick else 100_000), 0.05
    times = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 20.0)
    rng = np.random.default_rng(21)
    quantiles, centre = tail_quantiles(n), wedge_mean()
    line, wedge = np.full((n, 1), 4.0), np.tile([2.0, 3.5], (n, 1))
    first = wasserstein_distance(line[:, 0], quantiles), length_and_error(wedge, centre)[0]
    rows = []
    for before, time in pairwise((0.0, *times)):
        chain = chains_for(eta, time - before)
        line, wedge = run_chains(HALF_LINE, chain, line, rng), run_chains(WEDGE, chain, wedge, rng)
        found, error = length_and_error(wedge, centre)
        rows.append(
            [wasserstein_distance(line[:, 0], quantiles), found, line.std() / n**0.5, error]
        )
    measured, noise = np.hsplit(np.array(rows), 2)
    steps = np.round(np.array(times) / eta)
    left = (1.0 - eta / 2.0) ** steps
    floor, noise = measured[-1], ALLOWED * noise
    allowed = left[:, None] * (np.array(first) + floor) + floor + noise
    predicted = tail_mean(0.0) - predicted_mean(eta)
    held = (measured <= allowed).all() and floor[0] <= predicted + eta + noise[-1, 0]
    names, up = ("half-line, Wasserstein", "wedge, means"), "distance to the truncated Gaussian"
    lines = dict(zip(names, measured.T.tolist(), strict=True))
    claimed = {"half-line, at most": (allowed - noise)[:, 0].tolist()}
    return Measured(
        f"Half-line: {first[0]:.2f} at the start, {measured[1, 0]:.2f} at M·η = 2, "
        f"{measured[-2, 0]:.3f} at 10, floor {floor[0]:.3f} (predicted {predicted:.3f}); wedge: "
        f"{first[1]:.2f}, {measured[1, 1]:.2f}, {measured[-2, 1]:.3f}, floor {floor[1]:.3f}; at "
        f"most {(measured / allowed).max():.2f} of what is allowed.",
        bool(held),
        Curve(steps.tolist(), lines, "steps M (η = 0.05)", up, claimed, linear="x"),
    )


@claim("sample-gradient/langevin-step-size", "Section 4.3, theorem on z⁽ᴹ⁾; erratum 2")
def langevin_step_size(quick: bool) -> Measured:
    """Measure the floor at several step sizes.

    Says: Smaller steps bring the chain's limit nearer to its target; what is left is of order √η.

    Experiment: Shift of the mean after M·η = 10 against η, on a half-line and in a wedge of 63°. The
    random walk at a wall predicts both, with no free constant: the Gaussian truncated 0.58 √η further
    out, with what lies beyond the walls projected on them.

    Tolerance: Every coordinate within 4 standard errors of the prediction, and η/4 for its next order
    (less than a third of the shift at the largest η). The prediction falls like √η as η goes to zero,
    and more slowly here.
    """
    n = 6_000 if quick else 50_000
    etas = (0.16, 0.08, 0.04, 0.02) if quick else (0.16, 0.08, 0.04, 0.02, 0.01, 0.005)
    rng, starts = np.random.default_rng(22), (np.array([tail_mean(0.0)]), wedge_mean())
    lines: dict[str, list[float]] = {"half-line": [], "wedge": []}
    claimed: dict[str, list[float]] = {f"{name}, predicted": [] for name in lines}
    off = 0.0
    for eta in etas:
        limits = np.array([predicted_mean(eta)]), wedge_limit(eta)
        for name, region, start, limit in zip(
            lines, (HALF_LINE, WEDGE), starts, limits, strict=True
        ):
            points = run_chains(region, chains_for(eta), np.tile(start, (n, 1)), rng)
            mean, error = average(points)
            off = max(off, float((np.abs(mean - limit) / (ALLOWED * error + eta / 4.0)).max()))
            lines[name].append(float(np.linalg.norm(mean - start)))
            claimed[f"{name}, predicted"].append(float(np.linalg.norm(limit - start)))
    (line, wedge), (on_line, in_wedge) = lines.values(), claimed.values()
    return Measured(
        f"Half-line: shift {line[0]:.3f} at η = {etas[0]:g}, {line[-1]:.3f} at {etas[-1]:g} "
        f"(predicted {on_line[0]:.3f}, {on_line[-1]:.3f}), slope {slope(etas, line):.2f} (predicted "
        f"{slope(etas, on_line):.2f}); wedge {wedge[0]:.3f}, {wedge[-1]:.3f} (predicted "
        f"{in_wedge[0]:.3f}, {in_wedge[-1]:.3f}), slope {slope(etas, wedge):.2f} (predicted "
        f"{slope(etas, in_wedge):.2f}); at most {off:.2f} of what is allowed.",
        off <= 1.0,
        Curve(etas, lines, "step size η", "shift of the mean", claimed),
    )


def hidden_draws(sampler: ProjectedLangevin | None, n: int, seed: int) -> Floats:
    """Draw the hidden value of the example by ``sample_gradient``: z = μ − g, where Σ = 1."""
    rule = LinearThreshold([[1.0]], [0.0])
    g = sample_gradient(
        [math.nan], [CENTRE], [[1.0]], rule, draws=n, sampler=sampler, random_state=seed
    )
    return np.asarray(CENTRE - g[:, 0])


@claim(
    "sample-gradient/drift", "Algorithm 5, line 8, against the appendix; erratum 1", Kind.ERRATUM
)
def drift(quick: bool) -> Measured:
    """Compare what our sampler does by itself with the printed listing.

    Says: The drift is printed as η; it must be η/2, as in the appendix. With η the chain samples a
    Gaussian of half the variance.

    Experiment: N(−½, 1) on z > 0, mean 0.641: draws by sample_gradient as it comes, with finer steps and
    the drift as it comes, and with the printed drift.

    Tolerance: Each mean within 4 standard errors of the chain's limit, and η for the next order of √η.
    The two limits, 0.641 and 0.416 as η goes to zero, are 0.2 apart, which nothing here bridges.
    """
    n, etas, coarse = 800 if quick else 15_000, (0.08, 0.02, 0.005), ProjectedLangevin().step_size
    default, error = average(hidden_draws(None, 2 * n, 23))
    held = abs(default - predicted_mean(coarse)) <= ALLOWED * error + coarse
    lines: dict[str, list[float]] = {"drift as it comes": [], "drift as printed": []}
    for seed, eta in enumerate(etas):
        make = partial(ProjectedLangevin, step_size=eta, steps=round(TIME / eta))
        # Only the second chain is told its drift: the first is to be right by itself.
        chains = ((0.5, make()), (1.0, make(drift=1.0)))
        for line, (factor, sampler) in zip(lines.values(), chains, strict=True):
            mean, error = average(hidden_draws(sampler, n, seed))
            held &= abs(mean - predicted_mean(eta, factor)) <= ALLOWED * error + eta
            line.append(float(mean))
    (ours, printed), limits = lines.values(), (tail_mean(0.0), tail_mean(0.0, 0.5))
    names = "N(−½, 1) on z > 0", "N(−½, ½) on z > 0"
    claimed = {name: [limit] * len(etas) for name, limit in zip(names, limits, strict=True)}
    return Measured(
        f"Mean {default:.3f} as it comes (η = {coarse:g}; limit {predicted_mean(coarse):.3f}); at η = "
        f"{etas[-1]:g}: {ours[-1]:.3f}, and {printed[-1]:.3f} with the printed drift (standard error "
        f"{error:.3f}); as η goes to zero {limits[0]:.3f} and {limits[1]:.3f}.",
        bool(held),
        Curve(etas, lines, "step size η", "mean of the draws", claimed, linear="y"),
    )


@claim("sample-gradient/target", "Section 4.3, theorem on z⁽ᴹ⁾; erratum 3", Kind.ERRATUM)
def target(quick: bool) -> Measured:
    """Measure the distance to both laws.

    Says: The law that z⁽ᴹ⁾ approaches is printed as the whole Gaussian; it is the Gaussian truncated to
    𝓛.

    Experiment: Kolmogorov distance (which total variation is never below) of chains on a half-line to
    both, after M·η = 10, as η falls.

    Tolerance: To the whole Gaussian never below its mass outside 𝓛, 0.691, which no chain in 𝓛 can get
    under. To the truncated one at most f(0)·√(η/2), the share of a random walk's time on the wall, with
    η for the next order and 2.2/√n of sampling noise (exceeded in 1 of 10 000 runs).
    """
    n, etas, rng = 5_000 if quick else 50_000, (0.16, 0.04, 0.01), np.random.default_rng(25)
    outside = float(ndtr(-CENTRE))
    density = math.exp(-0.5 * CENTRE**2) / math.sqrt(2.0 * math.pi) / (1.0 - outside)
    near, far = [], []
    for eta in etas:
        z = run_chains(HALF_LINE, chains_for(eta), np.full((n, 1), tail_mean(0.0)), rng)[:, 0]
        whole = ndtr(z - CENTRE)
        near.append(kolmogorov((whole - outside) / (1.0 - outside)))
        far.append(kolmogorov(whole))
    walls = [density * math.sqrt(eta / 2.0) for eta in etas]
    held = min(far) >= outside - 1e-9 and all(
        d <= c + eta + DKW / math.sqrt(n) for d, c, eta in zip(near, walls, etas, strict=True)
    )
    lines = {"to the truncated Gaussian": near, "to the whole Gaussian": far}
    claimed = {"time on the wall": walls, "mass outside the region": [outside] * len(etas)}
    return Measured(
        f"To the truncated Gaussian {listed(near)} at η = {listed(etas, 'g')} (walls alone: "
        f"{listed(walls)}); to the whole one {listed(far)}.",
        held,
        Curve(etas, lines, "step size η", "Kolmogorov distance", claimed),
    )


def kolmogorov(levels: Floats) -> float:
    """Return sup |F_n − F| from F at the draws; ties, as on a wall, count as one jump."""
    return float(kstest(levels, "uniform", method="asymp").statistic)
