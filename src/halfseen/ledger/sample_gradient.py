"""Gradients by Algorithm 5: their bias and second moment, against the corollary of section 4.3."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from halfseen.gaussian import Gaussian
from halfseen.ledger.designs import exact_draws
from halfseen.ledger.langevin import OVERSHOOT, chains_for
from halfseen.ledger.registry import ALLOWED, Curve, Measured, claim
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.samplers.projected_langevin import RADIUS_BEYOND_ROOT
from halfseen.solvers.conditionals import Conditionals
from halfseen.solvers.sample_gradient import sample_gradient

Floats = NDArray[np.float64]


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
    at = np.array([0.2, -0.1, 0.4])
    out = {}
    for name, covariance in (("κ = 3.5", mild), ("κ = 42", harsh)):
        truth = Gaussian(at, covariance)
        away = at - truth.cholesky @ np.array([0.0, 0.9, 1.2])
        out[f"one hidden, {name}"] = Case(one, np.array([0.4, -0.3, math.nan]), at, truth)
        out[f"two hidden, {name}"] = Case(two, np.array([0.4, math.nan, math.nan]), at, truth)
        out[f"two hidden, {name}, off"] = Case(
            two, np.array([0.4, math.nan, math.nan]), away, truth
        )
        out[f"one hidden, {name}, beyond anchors"] = Case(
            two, np.array([0.4, -0.9 * truth.standard_deviations[1], math.nan]), at, truth
        )
    return out


@dataclass(frozen=True)
class Moments:
    """Bias and second moment of a gradient, with standard errors and what the corollary allows.

    Attributes
    ----------
    bias, bias_error, bias_bound : float
        ‖E ĝ − g‖ and ε √λ_max/λ_min (R + √(2 log 1/γ)).
    wall_bound : float
        What walls alone make of it: pushing a wall with unit normal a out by 0.58 √η moves no point of a
        half-line further than that, so a gradient by at most 0.58 √η ‖Σ⁻¹Wa‖; η more for the next order.
    excess, excess_error, excess_bound : float
        E‖ĝ‖² less that of exact draws, and ε R²/λ_min.
    length, length_error : float
        √E‖ĝ‖² less that of exact draws: walls move it by no more than ``wall_bound`` either.
    second : float
        E‖ĝ‖² over (d + R²)/λ_min, what planning takes it to be at most.
    """

    bias: float
    bias_error: float
    bias_bound: float
    wall_bound: float
    excess: float
    excess_error: float
    excess_bound: float
    length: float
    length_error: float
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
    eps = max(two_sample(z @ direction, u @ direction) for direction in directions)
    moved = known.precision[:, hidden] @ rows.pattern(0).W
    radius = math.sqrt(len(hidden)) + RADIUS_BEYOND_ROOT
    low, *_, high = np.linalg.eigvalsh(known.covariance)
    lengths, exact_lengths = (drawn**2).sum(axis=1), (g**2).sum(axis=1)
    excess_error = math.sqrt(lengths.var() / n + exact_lengths.var() / len(g))
    root, exact_root = math.sqrt(lengths.mean()), math.sqrt(exact_lengths.mean())
    return Moments(
        float(np.linalg.norm(drawn.mean(axis=0) - g.mean(axis=0))),
        math.sqrt(drawn.var(axis=0).sum() / n + g.var(axis=0).sum() / len(g)),
        eps * math.sqrt(high) / low * (radius + math.sqrt(2.0 * math.log(1.0 / gamma))),
        (OVERSHOOT * math.sqrt(step_size) + step_size)
        * float(np.linalg.norm(region.A @ moved.T, axis=1).sum()),
        float(lengths.mean() - exact_lengths.mean()),
        excess_error,
        eps * radius**2 / low,
        root - exact_root,
        excess_error / (root + exact_root),
        float(lengths.mean()) / ((3.0 + radius**2) / low),
    )


def two_sample(first: Floats, second: Floats) -> float:
    """Kolmogorov distance of two samples."""
    at = np.concatenate([first, second])
    shares = [
        np.searchsorted(np.sort(part), at, side="right") / len(part) for part in (first, second)
    ]
    return float(np.abs(shares[0] - shares[1]).max())


MOMENT_STEPS = (0.32, 0.08, 0.02)


@cache
def moment_table(quick: bool) -> dict[str, list[Moments]]:
    """Return the comparison for every case and step size; both rows below read it."""
    n = 1_000 if quick else 8_000
    return {
        name: [moments(case, eta, n, seed) for eta in MOMENT_STEPS]
        for seed, (name, case) in enumerate(cases().items())
    }


@claim(
    "sample-gradient/bias",
    where="Section 4.3, corollary, first bound, and its proof",
    says="‖E ĝ − g‖ <= ε √λ_max/λ_min (R + O(√(log 1/γ))) when the chain is within ε of its "
    "target, where γ is the mass of 𝒦 given all that is seen (rejection/mass-at-truth).",
    experiment="Gradients of eight observations (one or two hidden values, only anchors seen or "
    "more, μ at the truth or 1.5 deviations off, condition numbers 3.5 and 42) at three step "
    "sizes, against exact draws by rejection.",
    tolerance="Bias at most the bound with √2 for O(·) (by relative entropy) and 4 standard "
    "errors; ε is the largest Kolmogorov distance along axes and walls, as counted (up to 2.2/√n "
    "too large). That bound is wide and can hardly fail; what can is the next: at most (0.58 √η + "
    "η) ‖Σ⁻¹Wa‖, summed over walls with normals a, which the random walk at a wall gives.",
)
def bias(quick: bool) -> Measured:
    """Compare biases with the corollary."""
    table = moment_table(quick)
    every = [m for line in table.values() for m in line]
    largest = max(m.bias / m.bias_bound for m in every)
    at_walls = max(m.bias / m.wall_bound for m in every)
    worst = [max(line[i].bias for line in table.values()) for i in range(len(MOMENT_STEPS))]
    kinds = dict.fromkeys(name.split(",")[0] for name in table)
    # Of each kind the gradient that is off most, with what its own walls account for.
    shown = {
        kind: [
            max(
                (line[i] for name, line in table.items() if name.startswith(kind)),
                key=lambda m: m.bias,
            )
            for i in range(len(MOMENT_STEPS))
        ]
        for kind in kinds
    }
    return Measured(
        f"Bias at most {largest:.3f} of the corollary's bound and {at_walls:.2f} of what walls "
        f"account for (standard errors up to "
        f"{max(m.bias_error / m.wall_bound for m in every):.2f} of it); the worst of "
        f"{len(table)} gradients is off by {', '.join(f'{b:.2f}' for b in worst)} at η = "
        f"{', '.join(f'{e:g}' for e in MOMENT_STEPS)}.",
        all(m.bias <= min(m.bias_bound, m.wall_bound) + ALLOWED * m.bias_error for m in every),
        Curve(
            MOMENT_STEPS,
            {kind: [m.bias for m in line] for kind, line in shown.items()},
            "step size η",
            "‖E ĝ − g‖, the worst of its kind",
            {f"{kind}, walls": [m.wall_bound for m in line] for kind, line in shown.items()},
        ),
    )


@claim(
    "sample-gradient/second-moment",
    where="Section 4.3, corollary, second bound, and its proof",
    says="E‖ĝ‖² is at most that of exact draws plus ε R²/λ_min, so polynomial.",
    experiment="The gradients of the row above: E‖ĝ‖² against exact draws, and against (d + "
    "R²)/λ_min, which planning takes for ρ².",
    tolerance="Excess at most ε R²/λ_min and 4 standard errors, with ε as in the row above; E‖ĝ‖² "
    "at most (d + R²)/λ_min. Both are so wide that hardly anything breaks them; what can fail is "
    "that √E‖ĝ‖² is that of exact draws to what walls account for and 4 standard errors.",
)
def second_moment(quick: bool) -> Measured:
    """Compare second moments with the corollary."""
    table = moment_table(quick)
    every = [m for line in table.values() for m in line]
    return Measured(
        f"√E‖ĝ‖² differs from that of exact draws by at most "
        f"{max(abs(m.length) / m.wall_bound for m in every):.2f} of what walls account for (standard "
        f"errors up to {max(m.length_error / m.wall_bound for m in every):.2f} of it); excess at most "
        f"{max(m.excess / m.excess_bound for m in every):.3f} of ε R²/λ_min; E‖ĝ‖² at most "
        f"{max(m.second for m in every):.3f} of (d + R²)/λ_min.",
        all(
            m.excess <= m.excess_bound + ALLOWED * m.excess_error
            and m.second <= 1.0
            and abs(m.length) <= m.wall_bound + ALLOWED * m.length_error
            for m in every
        ),
    )
