"""Draw the figures of the documentation: ``python -m benchmarks.figures``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import halfseen as hs
from halfseen.samplers import Gibbs, ProjectedLangevin, Region

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import Ellipse, FancyBboxPatch

Floats = NDArray[np.float64]

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
DISTANCES = np.linspace(0.0, 5.0, 11)
NAIVE, OURS, CHAIN = "#b5482a", "#2a6fb5", "#3a8f4d"
INK, QUIET, HIDDEN = "#222222", "#666666", "#e9e6df"
# A card of its own, so that figures read the same on white and on dark pages.
CARD = "#fbfaf7"


def save_on_card(figure: Any, path: Path) -> None:
    """Save a figure on a card with round corners; outside of them it is transparent."""
    width, height = figure.get_size_inches()
    card = FancyBboxPatch(
        (0.0, 0.0),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.12",
        transform=figure.dpi_scale_trans,
        facecolor=CARD,
        edgecolor="none",
        zorder=-10,
    )
    figure.add_artist(card)
    figure.savefig(path, dpi=200, facecolor="none")
    plt.close(figure)


# --- The picture of the README ---------------------------------------------------------------------

NAMES = ("lead", "zinc")
TRUTH = hs.Gaussian([0.3, 1.2], [[0.16, 0.084], [0.084, 0.09]])
SHARES_HIDDEN = np.array([0.5, 0.4])
ROWS = 400
# A contour that holds nine rows of ten: -2 log(0.1) is the 0.9 quantile of chi-square with two degrees.
INSIDE = 0.9


def available_cases(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and covariance of what is seen: each column's own, and the rows with both."""
    mean, deviation = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    rho = np.corrcoef(X[~np.isnan(X).any(axis=1)].T)
    return mean, rho * np.outer(deviation, deviation)


def ellipse(mean: Floats, covariance: Floats, **look: Any) -> Ellipse:
    """Return the contour of a Gaussian that holds a share ``INSIDE`` of it."""
    values, vectors = np.linalg.eigh(covariance)
    axes = 2.0 * np.sqrt(values * -2.0 * np.log1p(-INSIDE))
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    return Ellipse((mean[0], mean[1]), axes[1], axes[0], angle=angle, fill=False, **look)


def ellipses(path: Path, stacked: bool = False) -> None:
    """Draw what a table with detection limits shows and, beside or below it, what is learned from it."""
    limits = TRUTH.mean + TRUTH.standard_deviations * ndtri(SHARES_HIDDEN)
    rule = hs.DetectionLimits(lower=limits)
    Y = TRUTH.sample(ROWS, random_state=4)
    X = np.where(rule.seen(Y), Y, np.nan)
    fit = hs.fit(X, rule, names=NAMES, random_state=0)
    shape, size = ((2, 1), (4.3, 7.9)) if stacked else ((1, 2), (8.4, 4.0))
    figure, panels = plt.subplots(
        *shape, figsize=size, sharex=True, sharey=True, layout="constrained"
    )
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1, wspace=0.03)
    centre, spread = TRUTH.mean, TRUTH.standard_deviations
    low, high = centre - 3.3 * spread, centre + 3.3 * spread
    for axes in panels:
        _hide(axes, limits, low, high)
    _what_the_table_shows(panels[0], X, limits, low)
    _what_is_learned(panels[1], X, Y, fit)
    save_on_card(figure, path)


def _hide(axes: Any, limits: Floats, low: Floats, high: Floats) -> None:
    """Shade where values are hidden, and label the axes."""
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), facecolor="none")
    axes.axvspan(low[0], limits[0], color=HIDDEN, zorder=0, linewidth=0)
    axes.axhspan(low[1], limits[1], color=HIDDEN, zorder=0, linewidth=0)
    axes.set_xlabel(f"{NAMES[0]}, log10", fontsize=9, color=QUIET)
    axes.set_ylabel(f"{NAMES[1]}, log10", fontsize=9, color=QUIET)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.label_outer()


def _what_the_table_shows(axes: Any, X: Floats, limits: Floats, low: Floats) -> None:
    x, y = X.T
    both, only_x, only_y = ~np.isnan(x + y), np.isnan(y) & ~np.isnan(x), np.isnan(x) & ~np.isnan(y)
    axes.scatter(x[both], y[both], s=9, color=INK, linewidth=0, alpha=0.75)
    # One coordinate is known, the other lies somewhere along a line.
    line = {"color": INK, "linewidth": 0.5, "alpha": 0.22}
    axes.vlines(x[only_x], low[1], limits[1], **line)
    axes.hlines(y[only_y], low[0], limits[0], **line)
    axes.set_title("What the table shows", fontsize=11, loc="left", color=INK, weight="bold")
    neither = int(np.isnan(x + y).sum() - only_x.sum() - only_y.sum())
    words = {"fontsize": 8.5, "color": INK, "va": "center", "ha": "center", "linespacing": 1.3}
    axes.text(limits[0] + 1.0, limits[1] + 0.12, f"both are seen:\n{both.sum()} rows", **words)
    words["bbox"] = {"facecolor": HIDDEN, "edgecolor": "none", "pad": 2.5}
    middle = 0.5 * (low + limits)
    axes.text(*middle, f"neither is seen:\n{neither} rows of {len(X)}", **words)
    axes.text(middle[0], limits[1] + 0.4, f"{NAMES[0]} < limit:\n{only_y.sum()} rows", **words)
    axes.text(limits[0] + 0.8, middle[1], f"{NAMES[1]} < limit:\n{only_x.sum()} rows", **words)


def _what_is_learned(axes: Any, X: Floats, Y: Floats, fit: hs.Fit) -> None:
    hidden = np.isnan(X).any(axis=1)
    axes.scatter(*Y[~hidden].T, s=9, color=INK, linewidth=0, alpha=0.35)
    axes.scatter(*Y[hidden].T, s=9, facecolor="none", edgecolor=INK, linewidth=0.5, alpha=0.35)
    mean, covariance = available_cases(X)
    found = fit.gaussian
    axes.add_patch(ellipse(mean, covariance, color=NAIVE, linewidth=2.2))
    axes.add_patch(ellipse(found.mean, found.covariance, color=OURS, linewidth=2.4))
    axes.add_patch(
        ellipse(TRUTH.mean, TRUTH.covariance, color="black", linewidth=1.6, linestyle=(0, (4, 2.5)))
    )
    axes.set_title("What is learned from it", fontsize=11, loc="left", color=INK, weight="bold")
    naive = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    lines = (
        ("correlation", None, QUIET),
        ("truth", TRUTH.correlation[0, 1], "black"),
        ("halfseen", found.correlation[0, 1], OURS),
        ("hidden cells left out", naive, NAIVE),
    )
    for k, (name, rho, colour) in enumerate(lines):
        words = name if rho is None else f"{name}  {rho:.2f}"
        axes.text(
            0.97, 0.27 - 0.072 * k, words, color=colour, fontsize=9.5, ha="right", va="center",
            weight="normal" if rho is None else "bold", transform=axes.transAxes,
        )  # fmt: skip


# --- Which method ----------------------------------------------------------------------------------

NO_METHOD = "no method here"
# Each question leads on where the answer is no, and out to the right where it is yes.
QUESTIONS = (
    (
        "Are cells simply missing,\nand nothing hid them?",
        "fit(X), with no rule",
        "missing at random: every seen value\nis used; mice and norm2 do this too",
    ),
    (
        "Is the rule that hides values\nunknown?",
        NO_METHOD,
        "say what you could assume, and vary it;\nsee How it compares",
    ),
    (
        "Were rows dropped whole,\nso that nobody counted them?",
        'RowTruncation: "truncated_sgd"',
        "only whole rows are left; alpha= says how\nmuch of the distribution, at least",
    ),
    (
        "Were cells also lost by pure\nchance, and nobody can tell\nwhich?",
        'method="truncation"',
        "for rules by column; where you can tell\nwhich: missing_at_random=mask, and go on",
    ),
    (
        "Do rows come only once, or is one\npass all there is time for?",
        'method="pairwise"',
        "moments of chunks add up; rules by column\nonly, the same in all rows",
    ),
)
LAST = (
    'method="full"',
    'what "auto" takes: every value, every hole,\nstandard errors',
)


def decision(path: Path) -> None:
    """Draw the questions that lead to a method."""
    step, height = 1.02, 0.74
    rows = len(QUESTIONS)
    figure = plt.figure(figsize=(7.0, step * (rows + 1) + 0.1))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(0.0, 7.0), ylim=(-0.05, step * (rows + 1) + 0.05))
    axes.axis("off")
    for k, (question, answer, why) in enumerate(QUESTIONS):
        y = step * (rows - k + 0.5)
        _box(axes, 0.2, y, 2.55, height, "white", QUIET)
        axes.text(1.475, y, question, fontsize=9.5, color=INK, ha="center", va="center")
        _arrow(axes, (2.75, y), (3.5, y), "yes")
        _arrow(axes, (1.475, y - height / 2), (1.475, y - step + height / 2), "no")
        colour = OURS if answer != NO_METHOD else QUIET
        _box(axes, 3.5, y, 3.3, height, "#f1f5fa" if colour == OURS else HIDDEN, colour)
        _answer(axes, 5.15, y, answer, why, colour)
    y = step * 0.5
    _box(axes, 0.2, y, 3.3, height, OURS, OURS)
    _answer(axes, 1.85, y, *LAST, "white", "white")
    axes.text(
        3.7, y, 'The paper\'s own algorithms, for their own sake:\n'
        '"truncation_psgd" (values hidden by themselves),\n'
        '"missing_descent" (linear thresholds, Σ known)',
        fontsize=8.5, color=QUIET, ha="left", va="center", linespacing=1.4,
    )  # fmt: skip
    save_on_card(figure, path)


def _box(axes: Any, x: float, y: float, width: float, height: float, face: str, edge: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (x, y - height / 2),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=face,
            edgecolor=edge,
            linewidth=1.1,
        )
    )


def _answer(
    axes: Any, x: float, y: float, answer: str, why: str, colour: str, ink: str = INK
) -> None:
    words = {"ha": "center", "linespacing": 1.25}
    axes.text(
        x, y + 0.1, answer, fontsize=10, weight="bold", color=colour, va="bottom",
        family="DejaVu Sans Mono", **words,
    )  # fmt: skip
    axes.text(x, y + 0.02, why, fontsize=8.5, color=ink, va="top", **words)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], word: str) -> None:
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": QUIET, "shrinkA": 0, "shrinkB": 0}
    )
    x, y = 0.5 * (start[0] + end[0]), 0.5 * (start[1] + end[1])
    across = start[1] == end[1]
    axes.text(
        x if across else x + 0.1, y + 0.05 if across else y + 0.03, word, fontsize=9, color=QUIET,
        ha="center" if across else "left", va="bottom" if across else "center",
    )  # fmt: skip


# --- Why a chain -----------------------------------------------------------------------------------


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
            # The fastest tenth: other work on the machine only ever adds.
            seconds[name].append(np.quantile(times, 0.1) * 1e6)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)
    left.semilogy(DISTANCES, proposals, color=NAIVE, marker="o", markersize=4)
    left.set_title("Rejection: proposals for one draw", fontsize=10, loc="left")
    for (name, values), colour in zip(seconds.items(), (OURS, CHAIN), strict=True):
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
        axes.set(facecolor="none")
        axes.set_xlabel("distance of μ from the region, in standard deviations", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    save_on_card(figure, path)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    ellipses(FOLDER / "ellipses.png")
    ellipses(FOLDER / "ellipses-narrow.png", stacked=True)
    decision(FOLDER / "decision.png")
    rejection_against_chains(FOLDER / "rejection.png")
    # It shares what is defined above.
    from benchmarks.comparison.figure import comparison

    comparison(FOLDER / "comparison.png")
