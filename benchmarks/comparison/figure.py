"""Draw errors against time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.comparison.pages import thousands
from benchmarks.figures import CARD, CHAIN, INK, NAIVE, OURS, QUIET, plt, save_on_card

TASK, COLUMNS = "left", (3, 10, 50)
# Who is drawn how: ours, those who model the limits, those who do not, the oracle.
LOOKS = {
    "ours": (OURS, "o"),
    "peer": (CHAIN, "s"),
    "written": (CHAIN, "s"),
    "baseline": (NAIVE, "^"),
    "oracle": (INK, "D"),
}
SHORT = {
    "halfseen, auto": "auto",
    "halfseen, pairwise": "pairwise",
    "halfseen, truncation": "truncation",
    "halfseen, truncation_psgd": "truncation_psgd",
    "IterativeImputer (scikit-learn)": "IterativeImputer",
    "NumPyro, NUTS": "NUTS",
    "NumPyro, HMCGibbs": "HMCGibbs",
}
LEAST_SECONDS = 1e-4
# In points: half a marker, a letter of a name, and its height.
REACH, LETTER, HEIGHT = 4.0, 4.5, 9.0
# Seconds, error, name, colour, and whether it is large.
Point = tuple[float, float, str, str, bool]


def comparison(path: Path) -> None:
    """Draw the error of the covariance against seconds, for some numbers of columns."""
    sizes = {size["d"]: size for size in results.read()[TASK]["sizes"]}
    figure, panels = plt.subplots(
        1, len(COLUMNS), figsize=(9.6, 4.1), sharex=True, sharey=True, layout="constrained"
    )
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.1)
    shown = [_panel(axes, sizes[d]) for axes, d in zip(panels, COLUMNS, strict=True)]
    panels[0].set_ylabel("error of the covariance / Cramér–Rao limit", fontsize=9, color=QUIET)
    panels[1].set_xlabel("seconds for one table", fontsize=9, color=QUIET)
    highest = max(y for points in shown for _, y, *_ in points)
    panels[0].set_ylim(0.55, 1.4 * highest)
    # Names are placed where the layout has put the panels.
    figure.draw_without_rendering()
    for axes, points in zip(panels, shown, strict=True):
        _label(axes, points)
    save_on_card(figure, path)


def _panel(axes: Any, size: dict[str, Any]) -> list[Point]:
    """Draw the points of one size, and return them for their names."""
    shown = [tool for tool in size["tools"] if "covariance" in tool]
    axes.axhline(1.0, color=QUIET, linewidth=0.8, linestyle=(0, (4, 3)))
    points = []
    for tool in shown:
        colour, marker = LOOKS[tool["group"]]
        x, y = max(tool["seconds"], LEAST_SECONDS), tool["covariance"]
        large = tool["tool"] == "auto"
        axes.scatter(x, y, s=70 if large else 26, color=colour, marker=marker, zorder=3)
        points.append((x, y, SHORT.get(tool["title"], tool["title"]), colour, large))
    axes.set(xscale="log", yscale="log", facecolor="none")
    axes.set_xlim(LEAST_SECONDS / 2, 600.0)
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.set_yticks([], minor=True)
    axes.set_xticks([1e-3, 1e-1, 1e1], ["1 ms", "0.1 s", "10 s"])
    axes.set_xticks([], minor=True)
    axes.tick_params(labelsize=8, colors=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    title = f"{size['d']} columns, {thousands(size['n'])} rows"
    axes.set_title(title, fontsize=10, loc="left", color=INK)
    return points


def _label(axes: Any, points: list[Point]) -> None:
    """Write each name beside its point, or where there is room, with a line to it."""
    points_per_pixel = 72.0 / axes.figure.dpi
    at = axes.transData.transform([point[:2] for point in points]) * points_per_pixel
    panel = axes.bbox.extents * points_per_pixel
    taken = [(x - REACH, y - REACH, x + REACH, y + REACH) for x, y in at]
    for (x, y), (*where, name, colour, large) in zip(at, points, strict=True):
        width = LETTER * len(name)
        for dx, dy in _places(width):
            box = (x + dx, y + dy - HEIGHT / 2, x + dx + width, y + dy + HEIGHT / 2)
            inside = panel[0] <= box[0] and box[2] <= panel[2] + 8 and panel[1] <= box[1]
            if inside and not any(_overlap(box, other) for other in taken):
                break
        taken.append(box)
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3}
        axes.annotate(
            name, where, xytext=(dx, dy), textcoords="offset points", fontsize=7.5, va="center",
            color=colour, weight="bold" if large else "normal",
            arrowprops=line if abs(dy) > HEIGHT else None, zorder=2,
            bbox={"facecolor": CARD, "edgecolor": "none", "pad": 0.4},
        )  # fmt: skip


def _places(width: float) -> list[tuple[float, float]]:
    """List where a name may stand next to its point, the best places first."""
    rises = [0.0, *(sign * rise for rise in np.arange(8.0, 90.0, 8.0) for sign in (1.0, -1.0))]
    return [(side, rise) for rise in rises for side in (6.0, -6.0 - width, -width / 2)]


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
