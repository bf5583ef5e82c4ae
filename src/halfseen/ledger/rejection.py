"""Why a chain, and not rejection, draws the hidden part of a row."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from halfseen.ledger.designs import exact_draws
from halfseen.ledger.registry import Curve, Measured, claim
from halfseen.samplers import ProjectedLangevin, Region

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
    says="A draw by rejection costs one over the mass of its region, which falls exponentially as μ "
    "moves away from μ*; the steps of projected Langevin stay as many.",
    experiment="Proposals for a draw in a quadrant while μ moves up to 2.25 standard deviations away, "
    "against 1/mass in closed form; steps of a chain at the same places.",
    tolerance="Proposals within 4 standard errors of 1/mass (a share of k hits has a relative error "
    "below 1/√k); more than tenfold for every 1.5 deviations; as many steps everywhere.",
)
def rejection_against_langevin(quick: bool) -> Measured:
    """Count proposals and steps as the mean moves away."""
    draws = 400 if quick else 4_000
    chain, rng = ProjectedLangevin(), np.random.default_rng(11)
    costs, claimed, steps = [], [], set()
    for distance in DISTANCES:
        region = quadrant(distance)
        start = region.feasible_point()
        assert start is not None, "a quadrant is not empty"
        costs.append(proposals_for_a_draw(region, draws, rng))
        claimed.append(float(ndtr(region.mean[0] - CORNER) ** -2))
        steps.add(chain.step(region, chain.init(region, start, rng), rng)[1].steps)
    off = np.abs(np.array(costs) / claimed - 1.0).max() * math.sqrt(draws)
    growth = costs[2] / costs[0], costs[3] / costs[1]
    return Measured(
        f"{costs[0]:.0f} proposals at μ*, {costs[-1]:.0f} at {DISTANCES[-1]:g} deviations (at most "
        f"{off:.1f} standard errors from 1/mass); {min(growth):.0f} times as many for every 1.5; "
        f"Langevin {', '.join(map(str, sorted(steps)))} steps everywhere.",
        bool(off <= 4.0 and min(growth) > 10.0 and len(steps) == 1),
        Curve(
            DISTANCES,
            {"rejection": costs, "projected Langevin": [float(max(steps))] * len(DISTANCES)},
            "distance of μ, in standard deviations",
            "proposals, or steps, for a draw",
            {"1 / mass": claimed},
            linear="x",
        ),
    )
