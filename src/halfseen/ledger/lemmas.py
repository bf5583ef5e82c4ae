"""The facts and lemmas that the paper's proofs lean on, each tried where it could break."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import exact_draws
from halfseen.ledger.harness import (
    ALLOWED,
    Curve,
    Floats,
    Kind,
    Measured,
    Sweep,
    claim,
    power_law_from,
)
from halfseen.metrics import mahalanobis_error, relative_frobenius_error
from halfseen.missingness import RowTruncation
from halfseen.samplers import Region
from halfseen.simulate import simulate
from halfseen.solvers.truncated_sgd import truncated_sgd


@claim("lemmas/frobenius", "Section 2, fact on Frobenius norms")
def frobenius(quick: bool) -> Measured:
    """Compare norms with the bound.

    Says: Two d×d matrices whose entries differ by at most δ differ by at most δd in Frobenius norm.

    Experiment: Random pairs of matrices with d from 2 to 40, and the pair that differs by δ everywhere.

    Tolerance: The norm over δd is never above 1 and is 1 for the last pair, to rounding (1e-12).
    """
    rng = np.random.default_rng(5)
    ratios = []
    for _ in range(200 if quick else 2_000):
        d = int(rng.integers(2, 41))
        gap = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-6.0, 6.0)
        ratios.append(float(np.linalg.norm(gap) / (np.abs(gap).max() * d)))
    even = np.full((30, 30), 0.3)
    equal = float(np.linalg.norm(even) / (0.3 * 30))
    return Measured(
        f"Largest ratio {max(ratios):.3f} of {len(ratios)} pairs; {equal:.3f} where every entry "
        "differs alike.",
        max(ratios) <= 1.0 + 1e-12 and abs(equal - 1.0) <= 1e-12,
    )


def ring(Y: Floats) -> NDArray[np.bool_]:
    """Return the rows between two circles, outside of a wedge: neither convex nor connected to a box."""
    radius = np.linalg.norm(Y, axis=1)
    return (radius > 0.6) & (radius < 2.0) & ~((Y[:, 0] > 0.0) & (np.abs(Y[:, 1]) < 0.3))


@claim("lemmas/truncated-learning", "Section 3, the theorem adapted from Daskalakis et al. (2018)")
def truncated_learning(quick: bool) -> Measured:
    """Learn from a ring.

    Says: Rows that are seen whole, or not at all, by any set of mass at least α give mean and covariance
    with an error like n^(-1/2), through membership queries alone.

    Experiment: truncated_sgd on a broken ring in the plane, n = 1 000 to 16 000 rows (quick: 500 to 8
    000).

    Tolerance: Slopes −1/2 ± 4 standard errors, from the spread over tables.
    """
    truth = Gaussian([0.3, -0.2], [[1.0, 0.4], [0.4, 0.8]])
    rule = RowTruncation(ring)
    sizes, tables = ((500, 2_000, 8_000), 8) if quick else ((1_000, 4_000, 16_000), 16)
    fits = [
        [
            truncated_sgd(simulate(truth, rule, n, seed), rule, random_state=seed).gaussian
            for seed in range(tables)
        ]
        for n in sizes
    ]
    found = Sweep(
        sizes,
        {
            "mean": [[mahalanobis_error(g.mean, truth) for g in some] for some in fits],
            "covariance": [
                [relative_frobenius_error(g.covariance, truth) for g in some] for some in fits
            ],
        },
    )
    claimed = {"n^(-1/2)": power_law_from(sizes, found.lines["mean"][0], -0.5)}
    return Measured(
        found.told(f"{{name}}: slope {{power}}, {{last:.3f}} at n = {sizes[-1]}") + ".",
        found.all_near(-0.5),
        Curve(sizes, found.lines, "rows", "root mean square error", claimed),
    )


# f = ½x² on an interval of this length around its minimum, and the ρ of its gradients. Only where λ·diam
# is small do the two forms of the lemma differ much: by 1/(diam log T), once x has come off the end.
DIAMETER, RHO = 0.01, 0.1


def descend(steps: int, squared: bool, runs: int, rng: np.random.Generator) -> Floats:
    """Run projected SGD with steps 1/i from the right end; return f at the average of each run.

    Each gradient is biased towards that end by all that is allowed, of which noise takes the rest:
    ρ²/(2λ diam i), or its root where the printed ``squared`` bound is taken at its word.
    """
    x, total = np.full(runs, DIAMETER / 2.0), np.zeros(runs)
    for i in range(1, steps + 1):
        allowed = RHO**2 / (2.0 * DIAMETER * i)
        bias = min(math.sqrt(allowed) if squared else allowed, RHO - DIAMETER)
        gradient = x - bias
        noise = np.sqrt(RHO**2 - gradient**2)
        gradient = gradient + noise * rng.choice((-1.0, 1.0), runs)
        x = np.clip(x - gradient / i, -DIAMETER / 2.0, DIAMETER / 2.0)
        total += x
    return np.asarray(0.5 * (total / steps) ** 2)


@claim(
    "lemmas/projected-descent",
    "Section 4.3, lemma on projected descent (from Cherapanamjeri et al. 2022)",
    Kind.ERRATUM,
    {"diameter": f"{DIAMETER}", "rho": f"{RHO}"},
)
def projected_descent(quick: bool) -> Measured:
    """Compare what is left with the bound, for both forms of the bias.

    Says: Projected SGD with steps 1/(λi) on a λ-strongly convex function comes within ρ²(1 + log T)/(λT)
    of the minimum on average, with gradients biased by up to ρ²/(2λ diam i). The text has this as a
    bound on the square of the bias, and so it is not true.

    Experiment: ½x² on an interval of length {diameter}, ρ = {rho}, a bias away from the minimum by
    all that is allowed, in both forms; T = 1 000 to 100 000.

    Tolerance: Mended: the mean of f over runs, plus 4 standard errors, is below the bound at every T.
    Printed: less 4 standard errors, it is above the bound at the largest T.
    """
    lengths, runs = (1_000, 10_000, 100_000), 50 if quick else 500
    rng, bounds = np.random.default_rng(6), [RHO**2 * (1.0 + math.log(T)) / T for T in lengths]
    lines, errors = {}, {}
    for name, squared in (("bias as mended", False), ("bias as printed", True)):
        found = [descend(steps, squared, runs, rng) for steps in lengths]
        lines[name] = [float(values.mean()) for values in found]
        errors[name] = [ALLOWED * float(values.std(ddof=1)) / math.sqrt(runs) for values in found]
    right = zip(lines["bias as mended"], errors["bias as mended"], bounds, strict=True)
    mended = max((value + error) / bound for value, error, bound in right)
    printed = (lines["bias as printed"][-1] - errors["bias as printed"][-1]) / bounds[-1]
    return Measured(
        f"At most {mended:.2f} of the bound as mended; {printed:.1f} times the bound as printed, at "
        f"T = {lengths[-1]}.",
        mended <= 1.0 < printed,
        Curve(lengths, lines, "steps T", "f(average) − f(minimum)", {"bound": bounds}),
    )


def random_regions(count: int, rng: np.random.Generator) -> Iterator[tuple[Region, Floats]]:
    """Yield polyhedra around standard Gaussians, each with draws of the Gaussian restricted to it."""
    while count:
        k, m = int(rng.integers(1, 5)), int(rng.integers(1, 7))
        A = rng.standard_normal((m, k))
        A /= np.linalg.norm(A, axis=1, keepdims=True)
        # A point of the Gaussian itself is inside, so that no region is absurdly rare.
        c = A @ rng.standard_normal(k) + rng.exponential(0.7, m)
        region = Region(np.zeros(k), A, c)
        if (rng.standard_normal((2_000, k)) @ A.T <= c).all(axis=1).mean() > 0.02:
            yield region, exact_draws(region, 4_000, rng)[0]
            count -= 1


@claim(
    "lemmas/convex-variance", "Section 4 and its appendix, on the Hessian (Kanter and Proppe 1977)"
)
def convex_variance(quick: bool) -> Measured:
    """Look at variances in polyhedra.

    Says: Restricting a Gaussian to a convex set does not increase its variance in any direction.

    Experiment: Largest eigenvalue of the covariance of N(0, I) in random polyhedra of 1 to 4 dimensions
    with up to 6 faces; two half-lines |z| > 1, not convex, as a contrast.

    Tolerance: At most what k standard normals have from as many draws n: (1 + √(k/n))², and 4 times the
    scale of Tracy and Widom above it; more than 2 for the contrast (2.53 in closed form).
    """
    rng, largest, above = np.random.default_rng(7), 0.0, -math.inf
    for _, U in random_regions(40 if quick else 400, rng):
        variance = float(np.linalg.eigvalsh(np.atleast_2d(np.cov(U.T)))[-1])
        largest, above = max(largest, variance), max(above, variance - largest_of_normals(*U.shape))
    z = rng.standard_normal(20_000)
    contrast = float(z[np.abs(z) > 1.0].var())
    return Measured(
        f"Largest variance {largest:.3f} in polyhedra, at most {above:+.3f} from what is allowed; "
        f"{contrast:.2f} on two half-lines.",
        above <= 0.0 and contrast > 2.0,
    )


def largest_of_normals(n: int, k: int) -> float:
    """Return what the largest eigenvalue of a sample covariance of N(0, I_k) hardly ever exceeds."""
    rows, columns = math.sqrt(n), math.sqrt(k)
    scale = (rows + columns) * (1.0 / rows + 1.0 / columns) ** (1.0 / 3.0) / n
    return (1.0 + math.sqrt(k / n)) ** 2 + ALLOWED * scale


@claim("lemmas/inner-ball", "Appendix, lemma on a ball inside 𝒦")
def inner_ball(quick: bool) -> Measured:
    """Compare radii with γ/d².

    Says: A convex set of mass γ contains, within √d + O(√log 1/γ) of the mean, a ball of radius Ω(γ/d²).

    Experiment: Slabs of N(0, I), the thinnest convex sets of their mass, and random polyhedra: radius of
    the largest ball that fits, by linear programming, over γ/d².

    Tolerance: The ratio is at least √(π/2) = 1.25 for d = 1 (a slab of mass γ is γ√(π/2) wide on each
    side at least) and above a quarter of that everywhere; the O-constant is free, so a floor was chosen.
    """
    rng = np.random.default_rng(8)
    slabs = []
    for half in (1.0, 0.1, 0.01, 0.001):
        gamma = math.erf(half / math.sqrt(2.0))
        slab = Region(np.zeros(1), np.array([[1.0], [-1.0]]), np.array([half, half]))
        slabs.append(inner_radius(slab, gamma) / gamma)
    ratios = []
    for region, _ in random_regions(30 if quick else 200, rng):
        d = region.mean.size
        Z = rng.standard_normal((20_000, d))
        gamma = float((region.c >= Z @ region.A.T).all(axis=1).mean())
        ratios.append(inner_radius(region, gamma) / (gamma / d**2))
    floor = math.sqrt(math.pi / 2.0)
    return Measured(
        f"Radius over γ/d²: at least {min(slabs):.3f} for slabs, {min(ratios):.2f} for {len(ratios)} "
        "polyhedra.",
        min(slabs) >= floor - 1e-9 and min(ratios) >= 0.25 * floor,
    )


def inner_radius(region: Region, gamma: float) -> float:
    """Return the radius of the largest ball in a region, near to the mean; zero where none is."""
    ball = within(region, gamma).chebyshev_ball()
    return 0.0 if ball is None else ball[1]


def within(region: Region, gamma: float) -> Region:
    """Add the largest cube inside the ball of radius √d + √(2 log(2/γ)) around the mean."""
    d = region.mean.size
    side = (math.sqrt(d) + math.sqrt(2.0 * math.log(2.0 / gamma))) / math.sqrt(d)
    A = np.vstack([region.A, np.eye(d), -np.eye(d)])
    return Region(region.mean, A, np.append(region.c, np.full(2 * d, side)))


# The share of the mass that may lie outside of the ball, ε/16 with ε = 0.1.
OUTSIDE = 0.1 / 16.0


@claim("lemmas/outer-ball", "Appendix, lemma on the mass outside of a ball", Kind.ERRATUM)
def outer_ball(quick: bool) -> Measured:
    """Compare masses of half-spaces with both bounds, and what lies beyond the radius.

    Says: With μ up to S from μ*, at most ε/16 of the mass of 𝒦 lies further than R₂ from μ. Two slips:
    the event must be w ∈ 𝒦 outside of the ball, not w outside of ball ∩ 𝒦; and the density ratio costs
    e^(−S²/2 − S·R₁), not e^(−S²/2 − R₁).

    Experiment: Half-spaces of mass γ = 0.3 to 0.001 in d = 1 to 10 dimensions, μ moved S = 0 to 4 away.
    Mass in closed form against γ/2·e^(…) in both forms, R₁ = √d + √(2 log(2/γ)); mass beyond R₂ = √d +
    √(2 log(16/(ε γ′))) from draws.

    Tolerance: The mended bound on the mass holds everywhere, the printed one fails somewhere; no more
    than ε/16 plus 4 binomial standard errors lies beyond R₂.
    """
    draws, rng = (4_000 if quick else 40_000), np.random.default_rng(9)
    printed, mended, beyond = math.inf, math.inf, 0.0
    for gamma, d, S in itertools.product((0.3, 0.03, 0.001), (1, 4, 10), (0.0, 1.0, 2.0, 4.0)):
        # Under μ* the half-space begins this far out, under μ a further S.
        edge = -float(ndtri(gamma)) + S
        R1 = math.sqrt(d) + math.sqrt(2.0 * math.log(2.0 / gamma))
        log_mass = float(log_ndtr(-edge))
        log_bound = math.log(gamma / 2.0) - S**2 / 2.0 - S * R1
        mended = min(mended, log_mass - log_bound)
        printed = min(printed, log_mass - (log_bound + S * R1 - R1))
        R2 = math.sqrt(d) + math.sqrt(2.0 * (-log_bound - math.log(OUTSIDE)))
        Z = rng.standard_normal((draws, d))
        Z[:, 0] = -ndtri(rng.random(draws) * math.exp(log_mass))
        beyond = max(beyond, float((np.linalg.norm(Z, axis=1) > R2).mean()))
    allowed = OUTSIDE + ALLOWED * math.sqrt(OUTSIDE / draws)
    return Measured(
        f"Mass over its bound: at least {math.exp(mended):.2g} in the mended form, down to "
        f"{math.exp(printed):.1g} as printed; at most {beyond:.1g} beyond R₂ (allowed {allowed:.2g}).",
        bool(mended >= 0.0 and printed < 0.0 and beyond <= allowed),
    )
