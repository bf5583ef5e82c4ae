"""Gradients by Algorithm 5: their bias and second moment, and why a chain draws the hidden part.

The moments are compared with the corollary of section 4.3, the chain with rejection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr
from scipy.stats import ks_2samp

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import exact_draws
from halfseen.ledger.harness import (
    ALLOWED,
    Curve,
    Estimated,
    Floats,
    Kind,
    Measured,
    average,
    claim,
    listed,
)
from halfseen.ledger.langevin import OVERSHOOT, chains_for, half_line_limit, run_chains
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import ProjectedLangevin, Region
from halfseen.samplers.projected_langevin import RADIUS_BEYOND_ROOT
from halfseen.simulate import simulate
from halfseen.solvers.conditionals import Conditionals
from halfseen.solvers.sample_gradient import sample_gradient


@dataclass(frozen=True)
class Case:
    """An observation, where its gradient is wanted, and the truth behind it."""

    rule: LinearThreshold
    row: Floats
    mean: Floats
    truth: Gaussian


def cases() -> dict[str, Case]:
    """One and two hidden values, at the truth and 1.5 deviations off; condition numbers 3.5, 42.

    In the last of each four more than the anchor is seen: column 1, which the rule could hide.
    """
    mild = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    harsh = np.diag([3.0, 1.0, 0.5]) @ mild @ np.diag([3.0, 1.0, 0.5])
    one = LinearThreshold.anchored([0, 1], [[0.5, 0.0, 1.0]], [0.3])
    two = LinearThreshold.anchored([0], [[0.3, 1.0, 0.2], [0.0, -0.4, 1.0]], [0.1, 0.2])
    at, anchor_alone = np.array([0.2, -0.1, 0.4]), np.array([0.4, math.nan, math.nan])
    out = {}
    for name, covariance in (("κ = 3.5", mild), ("κ = 42", harsh)):
        truth = Gaussian(at, covariance)
        away = at - truth.cholesky @ np.array([0.0, 0.9, 1.2])
        low = np.array([0.4, -0.9 * truth.standard_deviations[1], math.nan])
        out[f"one hidden, {name}"] = Case(one, np.array([0.4, -0.3, math.nan]), at, truth)
        out[f"two hidden, {name}"] = Case(two, anchor_alone, at, truth)
        out[f"two hidden, {name}, off"] = Case(two, anchor_alone, away, truth)
        out[f"one hidden, {name}, beyond anchors"] = Case(two, low, at, truth)
    return out


@dataclass(frozen=True)
class Moments:
    """Bias and second moment of a gradient, with standard errors and what the corollary allows.

    Attributes
    ----------
    bias : Estimated
        ‖E ĝ − g‖.
    bias_bound : float
        ε √λ_max/λ_min (R + √(2 log 1/γ)).
    wall_bound : float
        What walls alone make of it: pushing a wall with unit normal a out by 0.58 √η moves no point of a
        half-line further than that, so a gradient by at most 0.58 √η ‖Σ⁻¹Wa‖; η more for the next order.
    excess : Estimated
        E‖ĝ‖² less that of exact draws.
    excess_bound : float
        ε R²/λ_min.
    length : Estimated
        √E‖ĝ‖² less that of exact draws: walls move it by no more than ``wall_bound`` either.
    second : float
        E‖ĝ‖² over (d + R²)/λ_min, what planning takes it to be at most.
    """

    bias: Estimated
    bias_bound: float
    wall_bound: float
    excess: Estimated
    excess_bound: float
    length: Estimated
    second: float


def moments(case: Case, step_size: float, n: int, seed: int) -> Moments:
    """Compare gradients of Algorithm 5 with those of exact draws.

    ε is the largest Kolmogorov distance along an axis or a wall, as counted: total variation is at least
    the true one, which sampling makes up to 2.2/√n larger.
    """
    known, rng = Gaussian(np.zeros(3), case.truth.covariance), np.random.default_rng(seed)
    rows = Conditionals(known.covariance, case.rule, case.row[None], ("a", "b", "c"))
    region, at_truth = rows.region(0, case.mean), rows.region(0, case.truth.mean)
    gamma = exact_draws(at_truth, 2_000, rng)[1]
    u = exact_draws(region, 20 * n, rng)[0]
    exact = np.tile(case.row, (len(u), 1))
    exact[:, rows.pattern(0).hidden] = u @ rows.pattern(0).W.T
    g = (case.mean - exact) @ known.precision
    drawn = sample_gradient(
        case.row, case.mean, known.covariance, case.rule, draws=n, sampler=chains_for(step_size),
        random_state=seed,
    )  # fmt: skip
    # y = μ − Σ ĝ gives the chain's point back, in whitened coordinates.
    hidden = rows.pattern(0).hidden
    y = (case.mean - drawn @ known.covariance)[:, hidden]
    z = np.linalg.solve(rows.pattern(0).W, y.T).T
    directions = np.vstack([np.eye(len(hidden)), region.A])
    eps = max(
        float(ks_2samp(z @ direction, u @ direction, method="asymp").statistic)
        for direction in directions
    )
    moved = known.precision[:, hidden] @ rows.pattern(0).W
    radius = math.sqrt(len(hidden)) + RADIUS_BEYOND_ROOT
    low, *_, high = np.linalg.eigvalsh(known.covariance)
    lengths, exact_lengths = (drawn**2).sum(axis=1), (g**2).sum(axis=1)
    error = math.sqrt(lengths.var() / n + exact_lengths.var() / len(g))
    root, exact_root = math.sqrt(lengths.mean()), math.sqrt(exact_lengths.mean())
    return Moments(
        Estimated(
            float(np.linalg.norm(drawn.mean(axis=0) - g.mean(axis=0))),
            math.sqrt(drawn.var(axis=0).sum() / n + g.var(axis=0).sum() / len(g)),
        ),
        eps * math.sqrt(high) / low * (radius + math.sqrt(2.0 * math.log(1.0 / gamma))),
        (OVERSHOOT * math.sqrt(step_size) + step_size)
        * float(np.linalg.norm(region.A @ moved.T, axis=1).sum()),
        Estimated(float(lengths.mean() - exact_lengths.mean()), error),
        eps * radius**2 / low,
        Estimated(root - exact_root, error / (root + exact_root)),
        float(lengths.mean()) / ((3.0 + radius**2) / low),
    )


MOMENT_STEPS = (0.32, 0.08, 0.02)


@cache
def moment_table(quick: bool) -> dict[str, list[Moments]]:
    """Return the comparison for every case and step size; both rows below read it."""
    n = 1_000 if quick else 8_000
    return {
        name: [moments(case, eta, n, seed) for eta in MOMENT_STEPS]
        for seed, (name, case) in enumerate(cases().items())
    }


@claim("sample-gradient/bias", "Section 4.3, corollary, first bound, and its proof")
def bias(quick: bool) -> Measured:
    """Compare biases with the corollary.

    Says: ‖E ĝ − g‖ <= ε √λ_max/λ_min (R + O(√(log 1/γ))) when the chain is within ε of its target, where
    γ is the mass of 𝒦 given all that is seen (rejection/mass-at-truth).

    Experiment: Gradients of eight observations (one or two hidden values, only anchors seen or more, μ
    at the truth or 1.5 deviations off, condition numbers 3.5 and 42) at three step sizes, against exact
    draws by rejection.

    Tolerance: Bias at most the bound with √2 for O(·) (by relative entropy) and 4 standard errors; ε is
    the largest Kolmogorov distance along axes and walls, as counted (up to 2.2/√n too large). That bound
    is wide and can hardly fail; what can is the next: at most (0.58 √η + η) ‖Σ⁻¹Wa‖, summed over walls
    with normals a, which the random walk at a wall gives.
    """
    table = moment_table(quick)
    every = [m for line in table.values() for m in line]
    largest = max(m.bias.value / m.bias_bound for m in every)
    at_walls = max(m.bias.value / m.wall_bound for m in every)
    noise = max(m.bias.error / m.wall_bound for m in every)
    # Of each kind, and of all, the gradient that is off most, with what its own walls account for.
    worst = {
        kind: [
            max(
                (m for name, m in zip(table, some, strict=True) if name.startswith(kind)),
                key=lambda m: m.bias,
            )
            for some in zip(*table.values(), strict=True)
        ]
        for kind in dict.fromkeys(["", *(name.split(",")[0] for name in table)])
    }
    biases = {kind: [m.bias.value for m in line] for kind, line in worst.items()}
    overall = biases.pop("")
    claimed = {f"{kind}, walls": [m.wall_bound for m in worst[kind]] for kind in biases}
    return Measured(
        f"Bias at most {largest:.3f} of the corollary's bound and {at_walls:.2f} of what walls "
        f"account for (standard errors up to {noise:.2f} of it); the worst of {len(table)} gradients "
        f"is off by {listed(overall, '.2f')} at η = {listed(MOMENT_STEPS, 'g')}.",
        all(m.bias.at_most(min(m.bias_bound, m.wall_bound)) for m in every),
        Curve(MOMENT_STEPS, biases, "step size η", "‖E ĝ − g‖, the worst of its kind", claimed),
    )


@claim("sample-gradient/second-moment", "Section 4.3, corollary, second bound, and its proof")
def second_moment(quick: bool) -> Measured:
    """Compare second moments with the corollary.

    Says: E‖ĝ‖² is at most that of exact draws plus ε R²/λ_min, so polynomial.

    Experiment: The gradients of the row above: E‖ĝ‖² against exact draws, and against (d + R²)/λ_min,
    which planning takes for ρ².

    Tolerance: Excess at most ε R²/λ_min and 4 standard errors, with ε as in the row above; E‖ĝ‖² at most
    (d + R²)/λ_min. Both are so wide that hardly anything breaks them; what can fail is that √E‖ĝ‖² is
    that of exact draws to what walls account for and 4 standard errors.
    """
    every = [m for line in moment_table(quick).values() for m in line]
    off = max(abs(m.length.value) / m.wall_bound for m in every)
    noise = max(m.length.error / m.wall_bound for m in every)
    excess = max(m.excess.value / m.excess_bound for m in every)
    return Measured(
        f"√E‖ĝ‖² differs from that of exact draws by at most {off:.2f} of what walls account for "
        f"(standard errors up to {noise:.2f} of it); excess at most {excess:.3f} of ε R²/λ_min; E‖ĝ‖² "
        f"at most {max(m.second for m in every):.3f} of (d + R²)/λ_min.",
        all(
            m.excess.at_most(m.excess_bound)
            and m.second <= 1.0
            and m.length.near(0.0, m.wall_bound)
            for m in every
        ),
    )


# The quadrant {z₁, z₂ ≥ ½}, and how far the mean moves away from it along the diagonal.
CORNER = 0.5
DISTANCES = (0.0, 0.75, 1.5, 2.25)


def quadrant(distance: float) -> Region:
    """Return the quadrant as a region around a mean this many standard deviations further out."""
    return Region(np.full(2, -distance / math.sqrt(2)), -np.eye(2), np.full(2, -CORNER))


def proposals_for_a_draw(region: Region, draws: int, rng: np.random.Generator) -> float:
    """Return how many proposals rejection needs for one draw, on average."""
    return 1.0 / exact_draws(region, draws, rng)[1]


@claim("rejection/distance", "Appendix, on gradient estimation")
def rejection_against_langevin(quick: bool) -> Measured:
    """Count proposals, and see where chains of one length arrive, as the mean moves away.

    Says: A draw by rejection costs one over the mass of its region, which falls exponentially as μ moves
    away from μ*; as many steps of projected Langevin are enough everywhere.

    Experiment: Proposals for a draw in a quadrant while μ moves up to 2.25 standard deviations away,
    against 1/mass in closed form; means of draws after 500 Langevin steps from the nearest corner, at
    the same places, against the chain's limit.

    Tolerance: Proposals within 4 standard errors of 1/mass (a share of k hits has a relative error below
    1/√k); more than tenfold for every 1.5 deviations. Means of Langevin draws within 4 standard errors
    of the limit, η/4 for its next order, and the exp(−M·η/2) of the distance that are left.
    """
    draws = 400 if quick else 4_000
    chain, rng = ProjectedLangevin(), np.random.default_rng(11)
    costs, claimed, arrived, limits, off = [], [], [], [], 0.0
    for distance in DISTANCES:
        region = quadrant(distance)
        costs.append(proposals_for_a_draw(region, draws, rng))
        claimed.append(float(ndtr(region.mean[0] - CORNER) ** -2))
        # Coordinates are independent, in the region and in the chain: a half-line each.
        mean, error = average(run_chains(region, chain, np.full((draws, 2), CORNER), rng).ravel())
        limit = region.mean[0] + half_line_limit(CORNER - region.mean[0], chain.step_size)
        left = math.exp(-0.5 * chain.steps * chain.step_size) * (limit - CORNER)
        off = max(off, abs(mean - limit) / (ALLOWED * error + chain.step_size / 4.0 + left))
        arrived.append(float(mean - CORNER))
        limits.append(float(limit - CORNER))
    worst = np.abs(np.array(costs) / claimed - 1.0).max() * math.sqrt(draws)
    growth = min(costs[2] / costs[0], costs[3] / costs[1])
    lines = {"rejection": costs, "projected Langevin": [float(chain.steps)] * len(DISTANCES)}
    across, up = "distance of μ, in standard deviations", "proposals, or steps, for a draw"
    return Measured(
        f"{costs[0]:.0f} proposals at μ*, {costs[-1]:.0f} at {DISTANCES[-1]:g} deviations (at most "
        f"{worst:.1f} standard errors from 1/mass); {growth:.0f} times as many for every "
        f"{DISTANCES[2] - DISTANCES[0]:g}; {chain.steps} Langevin steps end {listed(arrived)} inside "
        f"the walls on average (limits {listed(limits)}).",
        bool(worst <= ALLOWED and growth > 10.0 and off <= 1.0),
        Curve(DISTANCES, lines, across, up, {"1 / mass": claimed}, linear="x"),
    )


# Column 2 is hidden where ½y₁ + y₂ > ½, columns are independent, and column 0 is the anchor. (With a
# weight of 1 in place of ½ the same is true, but the cost of a row has no finite variance.)
WEIGHT, LEVEL = 0.5, 0.5


def mass_of_row(seen: Floats) -> Floats:
    """Return the mass of 𝒦 at μ* given the value in column 1 of a row in which column 2 is hidden."""
    return np.asarray(ndtr(WEIGHT * seen - LEVEL))


def proposals_until_hit(region: Region, rng: np.random.Generator) -> int:
    """Count proposals of N(mean, I) up to and with the first that falls into the region."""
    tried = 0
    while True:
        u = region.mean + rng.standard_normal((64, region.mean.size))
        hits = np.flatnonzero((u @ region.A.T <= region.c).all(axis=1))
        if hits.size:
            return tried + int(hits[0]) + 1
        tried += len(u)


def costs_of_rows(n: int, seed: int) -> tuple[Floats, Floats]:
    """Proposals that each row with a hidden value takes at μ*, and the value of its column 1."""
    truth = Gaussian(np.zeros(3), np.eye(3))
    rule = LinearThreshold.anchored([0, 1], [[0.0, WEIGHT, 1.0]], [LEVEL])
    X = np.asarray(simulate(truth, rule, n, seed))
    X = X[np.isnan(X[:, 2])]
    rows = Conditionals(truth.covariance, rule, X, ("a", "b", "c"))
    rng = np.random.default_rng(seed)
    found = [proposals_until_hit(rows.region(r, truth.mean), rng) for r in range(len(X))]
    return np.array(found, dtype=float), X[:, 1]


@claim(
    "rejection/mass-at-truth",
    "Appendix: cost of rejection, lemma on a ball inside 𝒦, theorem on z⁽ᴹ⁾, corollary",
    Kind.ERRATUM,
)
def mass_at_truth(quick: bool) -> Measured:
    """Compare costs of rows with γ, each and on average.

    Says: At μ* a draw costs 1/γ at most, it is argued, since y_A = x implies y_C = x_C. But γ bounds
    masses given y_C, not given all of y_A: for some rows 𝒦 has any mass. On average over rows the bound
    holds, since E[1/mass | y_C] is at most the number of patterns, which is at most 1/γ.

    Experiment: Three independent columns; column 2 is hidden where ½y₁ + y₂ > ½, the others are always
    seen; C = {0}. Proposals for hidden rows at μ*, against 1/mass in closed form.

    Tolerance: Mean cost in each of 5 groups of rows by y₁ within 4 standard errors of 1/mass; rows with
    the lowest y₁ cost more than 1/γ by more than 4. Over all rows of the table hidden ones cost 1
    proposal on average (their pattern is possible at every y₁), within 4 standard errors.
    """
    n = 6_000 if quick else 60_000
    gamma = float(ndtr(-LEVEL / math.hypot(1.0, WEIGHT)))
    costs, seen = costs_of_rows(n, 7)
    exact = 1.0 / mass_of_row(seen)
    groups = np.array_split(np.argsort(seen), 5)
    found = [average(costs[g]) for g in groups]
    off = max(
        abs((costs[g] - exact[g]).mean()) / error
        for g, (_, error) in zip(groups, found, strict=True)
    )
    dearest, error = found[0]
    mean, spread = costs.sum() / n, math.sqrt((costs**2).sum()) / n
    at = np.array([-5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])
    lines = {"1 / mass given all that is seen": (1.0 / mass_of_row(at)).tolist()}
    claimed, up = {"1 / γ": [1.0 / gamma] * at.size}, "proposals for a draw at μ*"
    dear = dearest > 1.0 / gamma + ALLOWED * error
    return Measured(
        f"γ = {gamma:.2f}, 1/γ = {1 / gamma:.1f}: {(exact > 1 / gamma).mean():.0%} of the hidden rows "
        f"have less mass than γ, the fifth with the lowest y₁ took {dearest:.1f} ± {error:.1f} "
        f"proposals (one of them {costs.max():.0f}), and at y₁ = −5 it is "
        f"{1.0 / mass_of_row(at)[0]:.0f}; groups at most {off:.1f} standard errors from 1/mass; for a "
        f"row of the table {mean:.2f} ± {spread:.2f} on average.",
        bool(off <= ALLOWED and dear and abs(mean - 1.0) <= ALLOWED * spread),
        Curve(at.tolist(), lines, "y₁, seen but no anchor", up, claimed, linear="x"),
    )
