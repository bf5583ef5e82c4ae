"""The figure of a row: what was measured as points and lines, what is claimed as dashes."""

from __future__ import annotations

import io
from itertools import cycle
from typing import TYPE_CHECKING

from halfseen.errors import InputError
from halfseen.ledger.registry import Curve

if TYPE_CHECKING:
    from matplotlib.axis import Axis

COLOURS = ("#1f5fa8", "#b4530a", "#3a7d44", "#6a4c93", "#8a6d00", "#5b6570")
INK, QUIET = "#1c2126", "#565e68"


def draw_curve(curve: Curve) -> bytes:
    """Return the figure as PNG."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError('Figures need Matplotlib: pip install "halfseen[report]".') from None
    figure = Figure(figsize=(6.8, 3.2), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    for (label, values), colour in zip(curve.lines.items(), cycle(COLOURS), strict=False):
        axes.plot(curve.x, values, color=colour, marker="o", markersize=4, label=label)
    for (label, values), dash in zip(
        (curve.claimed or {}).items(), cycle(("--", ":", "-.")), strict=False
    ):
        axes.plot(curve.x, values, color=INK, linestyle=dash, linewidth=1.2, label=label)
    for axis, name, values in (
        (axes.xaxis, "x", list(curve.x)),
        (axes.yaxis, "y", [v for line in curve.lines.values() for v in line]),
    ):
        if name not in curve.linear:
            _logarithmic(axis, name, values)
    axes.set_xlabel(curve.across, color=QUIET)
    axes.set_ylabel(curve.up, color=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, colors=QUIET)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    buffer = io.BytesIO()
    # Without the version of Matplotlib in it, the same figure is the same file.
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _logarithmic(axis: Axis, name: str, values: list[float]) -> None:
    """Make an axis logarithmic, with labels that do not collide however short it is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axis.axes, f"set_{name}scale")("log")
    if max(values) / min(values) < 100.0:
        # Less than two decades: 1, 2 and 5 of each, in plain numbers.
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}".replace(",", " ")))
    axis.set_minor_formatter(NullFormatter())
