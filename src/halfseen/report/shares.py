"""Where the hidden share is written in a figure of one column: not on the curve, nor on a bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report.words import percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Width of a letter and height of a line, in units of the size of the letters.
LETTER, LINE = 0.58, 1.6
SIZE = 8.5
# The middle of the hidden stretch is left only for a place that is so much lower.
MUCH_LOWER = 1.3


def write_shares(ax: Axes, column: dict[str, Any], curve: tuple[Floats, Floats]) -> None:
    """Write each hidden share above bars and curve, or at an end of the axis where that is lower."""
    first, last = ax.get_xlim()
    box = ax.get_window_extent()
    point = ax.figure.dpi / 72.0 * SIZE
    highest = ax.get_ylim()[1]
    letter, line = LETTER * point * (last - first) / box.width, LINE * point * highest / box.height
    taken: list[tuple[float, float, float]] = []
    for text in column["histogram"]["texts"]:
        words = f"{percent(text['share'])} {text['word']}".replace(", ", ",\n")
        lines = words.split("\n")
        wide, tall = letter * (1 + max(map(len, lines))), line * len(lines)
        places = [max(first, min(text["at"] - 0.5 * wide, last - wide))]
        places += [first] * ("l" in text["ends"]) + [last - wide] * ("r" in text["ends"])
        heights = [_height(column, curve, taken, a, a + wide) for a in places]
        # A text across a limit seems to speak of both of its sides.
        costs = [
            y + line * sum(a < limit["at"] < a + wide for limit in column["limits"])
            for a, y in zip(places, heights, strict=True)
        ]
        chosen = 0 if costs[0] <= MUCH_LOWER * min(costs) else int(np.argmin(costs))
        a, y = places[chosen], heights[chosen]
        taken.append((a, a + wide, y + tall))
        highest = max(highest, y + tall + 0.5 * line)
        ax.annotate(
            words, (a + 0.5 * wide, y), (0, 3), textcoords="offset points", ha="center",
            color="#1c2126", fontsize=SIZE,
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
        )  # fmt: skip
    ax.set_ylim(0.0, highest)


def _height(
    column: dict[str, Any],
    curve: tuple[Floats, Floats],
    taken: list[tuple[float, float, float]],
    a: float,
    b: float,
) -> float:
    """Return the highest of bars, curve and other texts between two places."""
    h = column["histogram"]
    x, density = curve
    total = np.array(h["seen"]) + np.array(h["hidden"])
    left = h["start"] + h["width"] * np.arange(total.size)
    found = [
        *density[(x >= a) & (x <= b)],
        *total[(left < b) & (left + h["width"] > a)],
        *(y for start, end, y in taken if start < b and end > a),
    ]
    return float(max(found, default=0.0))
