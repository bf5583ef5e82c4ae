"""The descent as it comes, with chains that go on: it has no floor."""

from __future__ import annotations

import math

import numpy as np

from halfseen.ledger.descent import fixed_point
from halfseen.ledger.harness import (
    ALLOWED,
    Curve,
    Kind,
    Measured,
    claim,
    exponent,
    heights,
    listed,
)
from halfseen.ledger.likelihood import hessian
from halfseen.ledger.linear_thresholds import one_threshold
from halfseen.metrics import mahalanobis_error
from halfseen.samplers import ProjectedLangevin
from halfseen.simulate import simulate
from halfseen.solvers.missing_descent import missing_descent


@claim("persistent-descent/rows", "Algorithm 3, with chains that go on in exact moves", Kind.BEYOND)
def rows(quick: bool) -> Measured:
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
