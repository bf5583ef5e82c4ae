"""Why a chain, and not rejection, draws the hidden part of a row."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import exact_draws
from halfseen.ledger.langevin import half_line_limit, run_chains
from halfseen.ledger.registry import ALLOWED, Curve, Kind, Measured, claim
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers import ProjectedLangevin, Region
from halfseen.simulate import simulate
from halfseen.solvers.conditionals import Conditionals

Floats = NDArray[np.float64]

# The quadrant {z₁, z₂ ≥ ½}, and how far the mean moves away from it along the diagonal.
CORNER = 0.5
DISTANCES = (0.0, 0.75, 1.5, 2.25)


def quadrant(distance: float) -> Region:
    """Return the quadrant as a region around a mean this many standard deviations further out."""
    return Region(np.full(2, -distance / math.sqrt(2)), -np.eye(2), np.full(2, -CORNER))


def proposals_for_a_draw(region: Region, draws: int, rng: np.random.Generator) -> float:
    """Return how many proposals rejection needs for one draw, on average."""
    return 1.0 / exact_draws(region, draws, rng)[1]


@claim(
    "rejection/distance",
    where="Appendix, on gradient estimation",
    says="A draw by rejection costs one over the mass of its region, which falls exponentially as "
    "μ moves away from μ*; as many steps of projected Langevin are enough everywhere.",
    experiment="Proposals for a draw in a quadrant while μ moves up to 2.25 standard deviations "
    "away, against 1/mass in closed form; means of draws after 500 Langevin steps from the nearest "
    "corner, at the same places, against the chain's limit.",
    tolerance="Proposals within 4 standard errors of 1/mass (a share of k hits has a relative "
    "error below 1/√k); more than tenfold for every 1.5 deviations. Means of Langevin draws within "
    "4 standard errors of the limit, η/4 for its next order, and the exp(−M·η/2) of the distance "
    "that are left.",
)
def rejection_against_langevin(quick: bool) -> Measured:
    """Count proposals, and see where chains of one length arrive, as the mean moves away."""
    draws = 400 if quick else 4_000
    chain, rng = ProjectedLangevin(), np.random.default_rng(11)
    costs, claimed, arrived, off = [], [], [], 0.0
    for distance in DISTANCES:
        region = quadrant(distance)
        costs.append(proposals_for_a_draw(region, draws, rng))
        claimed.append(float(ndtr(region.mean[0] - CORNER) ** -2))
        # Coordinates are independent, in the region and in the chain: a half-line each.
        points = run_chains(region, chain, np.full((draws, 2), CORNER), rng).ravel()
        limit = region.mean[0] + half_line_limit(CORNER - region.mean[0], chain.step_size)
        left = math.exp(-0.5 * chain.steps * chain.step_size) * (limit - CORNER)
        allowed = ALLOWED * points.std() / math.sqrt(points.size) + chain.step_size / 4.0 + left
        off = max(off, abs(points.mean() - limit) / allowed)
        arrived.append((points.mean() - CORNER, limit - CORNER))
    ratio = np.abs(np.array(costs) / claimed - 1.0).max() * math.sqrt(draws)
    growth = costs[2] / costs[0], costs[3] / costs[1]
    return Measured(
        f"{costs[0]:.0f} proposals at μ*, {costs[-1]:.0f} at {DISTANCES[-1]:g} deviations (at most "
        f"{ratio:.1f} standard errors from 1/mass); {min(growth):.0f} times as many for every "
        f"{DISTANCES[2] - DISTANCES[0]:g}; "
        f"{chain.steps} Langevin steps end {', '.join(f'{a:.3f}' for a, _ in arrived)} inside the walls "
        f"on average (limits {', '.join(f'{b:.3f}' for _, b in arrived)}).",
        bool(ratio <= ALLOWED and min(growth) > 10.0 and off <= 1.0),
        Curve(
            DISTANCES,
            {"rejection": costs, "projected Langevin": [float(chain.steps)] * len(DISTANCES)},
            "distance of μ, in standard deviations",
            "proposals, or steps, for a draw",
            {"1 / mass": claimed},
            linear="x",
        ),
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
    where="Appendix: cost of rejection, lemma on a ball inside 𝒦, theorem on z⁽ᴹ⁾, corollary",
    says="At μ* a draw costs 1/γ at most, it is argued, since y_A = x implies y_C = x_C. But γ "
    "bounds masses given y_C, not given all of y_A: for some rows 𝒦 has any mass. On average over "
    "rows the bound holds, since E[1/mass | y_C] is at most the number of patterns, which is at "
    "most 1/γ.",
    experiment="Three independent columns; column 2 is hidden where ½y₁ + y₂ > ½, the others are "
    "always seen; C = {0}. Proposals for hidden rows at μ*, against 1/mass in closed form.",
    tolerance="Mean cost in each of 5 groups of rows by y₁ within 4 standard errors of 1/mass; "
    "rows with the lowest y₁ cost more than 1/γ by more than 4. Over all rows of the table hidden "
    "ones cost 1 proposal on average (their pattern is possible at every y₁), within 4 standard "
    "errors.",
    kind=Kind.ERRATUM,
)
def mass_at_truth(quick: bool) -> Measured:
    """Compare costs of rows with γ, each and on average."""
    n = 6_000 if quick else 60_000
    gamma = float(ndtr(-LEVEL / math.hypot(1.0, WEIGHT)))
    costs, seen = costs_of_rows(n, 7)
    exact = 1.0 / mass_of_row(seen)
    groups = np.array_split(np.argsort(seen), 5)
    errors = [costs[g].std() / math.sqrt(g.size) for g in groups]
    off = max(abs((costs[g] - exact[g]).mean()) / e for g, e in zip(groups, errors, strict=True))
    dearest = float(costs[groups[0]].mean())
    average, spread = costs.sum() / n, math.sqrt((costs**2).sum()) / n
    at = np.array([-5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0])
    return Measured(
        f"γ = {gamma:.2f}, 1/γ = {1 / gamma:.1f}: {(exact > 1 / gamma).mean():.0%} of the hidden rows "
        f"have less mass than γ, the fifth with the lowest y₁ took {dearest:.1f} ± {errors[0]:.1f} "
        f"proposals (one of them {costs.max():.0f}), and at y₁ = −5 it is "
        f"{1.0 / mass_of_row(at)[0]:.0f}; groups at most {off:.1f} standard errors from 1/mass; for a "
        f"row of the table {average:.2f} ± {spread:.2f} on average.",
        bool(
            off <= ALLOWED
            and dearest > 1.0 / gamma + ALLOWED * errors[0]
            and abs(average - 1.0) <= ALLOWED * spread
        ),
        Curve(
            at.tolist(),
            {"1 / mass given all that is seen": (1.0 / mass_of_row(at)).tolist()},
            "y₁, seen but no anchor",
            "proposals for a draw at μ*",
            {"1 / γ": [1.0 / gamma] * at.size},
            linear="x",
        ),
    )
