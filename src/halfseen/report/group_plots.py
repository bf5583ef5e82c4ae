"""Figures of groups with Matplotlib: the same content and colours as their page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report.plots import INK, QUIET, RECOVERED, _axes, _tidy, plain
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from halfseen.grouped import GroupedFit

Floats = NDArray[np.float64]

# Longest name beside an axis, and height of a row in inches.
LONGEST, HEIGHT = 40, 0.3


class GroupPlots:
    """Figures of groups.

    Each method draws into ``ax`` and returns it; without one it makes a figure of its own. Columns are
    told by position or by name.

    Parameters
    ----------
    fit : GroupedFit

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> from halfseen.report import GroupPlots
    >>> X = np.random.default_rng(0).normal(size=(40, 1))
    >>> fit = hs.fit(X, by=["A", "B"] * 20, names=["lead"])
    >>> GroupPlots(fit).means("lead").get_xlabel()
    'mean of lead'
    """

    def __init__(self, fit: GroupedFit) -> None:
        self.fit = fit

    def means(self, column: int | str = 0, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw the mean (or median) of each group with its interval."""
        j, found = self.fit.pooled.column(column), self.fit.means(level)
        ends = found.median[:, j], found.median_lower[:, j], found.median_upper[:, j]
        word = "mean" if self.fit.pooled.transforms is None else "median"
        names = [str(label) for label in self.fit.groups]
        ax = _rows(ax, names, *ends, np.ones(len(names), dtype=bool))
        return _finished(ax, f"{word} of {self.fit.names[j]}", self._is_ratio(j))

    def differences(
        self, column: int | str = 0, level: float = 0.95, ax: Axes | None = None
    ) -> Axes:
        """Draw the differences of all pairs with family-wise intervals; dots are full where clear."""
        j, found = self.fit.pooled.column(column), self.fit.differences(level)
        ends = found.estimate[:, j], found.lower[:, j], found.upper[:, j]
        ratio = self._is_ratio(j)
        names = [f"{first} {'/' if ratio else '−'} {second}" for first, second in found.pairs]
        ax = _rows(ax, names, *ends, found.p_value[:, j] < 1.0 - level)
        ax.axvline(1.0 if ratio else 0.0, color=QUIET, linewidth=1.0, linestyle=":", zorder=0)
        word = "ratio of medians" if ratio else found.scales[j]
        return _finished(ax, f"{word}, {self.fit.names[j]}", ratio)

    def _is_ratio(self, j: int) -> bool:
        scales = self.fit.pooled.transforms
        return scales is not None and scales[j].name.startswith("log")


def _rows(
    ax: Axes | None, names: list[str], value: Floats, low: Floats, high: Floats, clear: Any
) -> Axes:
    """Draw dots with intervals, one below the other."""
    ax = _axes(ax, (6.4, 1.2 + HEIGHT * len(names)))
    for k in np.flatnonzero(~np.isnan(value)):
        ax.plot([low[k], high[k]], [k, k], color=RECOVERED, linewidth=2.0)
        face = RECOVERED if clear[k] else "white"
        ax.plot(value[k], k, "o", color=RECOVERED, markerfacecolor=face, markersize=6)
    ax.set_yticks(range(len(names)), [plain(shorten(name, LONGEST)) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    return ax


def _finished(ax: Axes, label: str, logarithmic: bool) -> Axes:
    if logarithmic:
        ax.set_xscale("log")
    ax.set_xlabel(plain(shorten(label, 60)))
    _tidy(ax)
    ax.tick_params(axis="y", labelcolor=INK, length=0)
    return ax
