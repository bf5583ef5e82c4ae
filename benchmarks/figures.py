"""Draw the figures of the documentation: ``python -m benchmarks.figures``."""

from __future__ import annotations

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.special import ndtr

from halfseen.samplers import Gibbs, ProjectedLangevin, Region

mpl.use("Agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
DISTANCES = np.linspace(0.0, 5.0, 11)


def rejection_against_chains(path: Path) -> None:
    """Proposals for one rejection draw, and time of one chain, as the mean moves away."""
    A, c = -np.eye(2), np.array([-0.5, -0.5])
    proposals, seconds = [], {"projected Langevin": [], "Gibbs": []}
    for distance in DISTANCES:
        offset = 0.5 + distance / np.sqrt(2)
        proposals.append(1.0 / ndtr(-offset) ** 2)
        region = Region(np.full(2, -distance / np.sqrt(2)), A, c)
        start, rng = region.feasible_point(), np.random.default_rng(0)
        for name, sampler in (("projected Langevin", ProjectedLangevin()), ("Gibbs", Gibbs())):
            times = []
            for _ in range(300):
                clock = time.perf_counter()
                sampler.step(region, sampler.init(region, start, rng), rng)
                times.append(time.perf_counter() - clock)
            seconds[name].append(np.median(times) * 1e6)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    left.semilogy(DISTANCES, proposals, color="#b5482a", marker="o", markersize=4)
    left.set_title("Rejection: proposals for one draw", fontsize=10, loc="left")
    for (name, values), colour in zip(seconds.items(), ("#2a6fb5", "#3a8f4d"), strict=True):
        right.plot(DISTANCES, values, color=colour, marker="o", markersize=4)
        right.annotate(
            name,
            (DISTANCES[-1], values[-1]),
            xytext=(0, 9),
            textcoords="offset points",
            color=colour,
            fontsize=9,
            ha="right",
        )
    right.set_ylim(0, 1.25 * max(max(v) for v in seconds.values()))
    right.set_title("Chains: microseconds for one draw", fontsize=10, loc="left")
    for axes in (left, right):
        axes.set_xlabel("distance of μ from the region, in standard deviations", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    rejection_against_chains(FOLDER / "rejection.png")
