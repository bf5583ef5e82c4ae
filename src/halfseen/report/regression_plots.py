"""Figures of a regression with Matplotlib: the same content and colours as its page."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.report.plots import (
    HIDDEN,
    INK,
    NAIVE,
    POINT,
    QUIET,
    RECOVERED,
    SEEN,
    _axes,
    _finished,
    plain,
)
from halfseen.report.regression_content import (
    RegressionRead,
    cells_of,
    drawn_rows,
    equation_of,
    variables_of,
)
from halfseen.solvers.result import name_some
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]

# Longest name beside an axis.
LONGEST = 40
# Apart from each other: coefficients of one term, points of one category.
APART, JITTER = 0.22, 0.4
# As many different values of a number are drawn like categories.
FEW_VALUES = 25


class RegressionPlots:
    """Figures of a regression.

    Each method draws into ``ax`` and returns it; without one it makes a figure of its own. Outcomes are
    told by position or by name.

    Parameters
    ----------
    fit : RegressionFit

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> from halfseen.report import RegressionPlots
    >>> rng = np.random.default_rng(0)
    >>> data = {"age": rng.uniform(20, 70, 300)}
    >>> lead = 0.02 * data["age"] + rng.normal(size=300)
    >>> fit = hs.regress("lead ~ age", {**data, "lead": lead}, random_state=0)
    >>> RegressionPlots(fit).effect("age").get_xlabel()
    'age'
    """

    def __init__(self, fit: RegressionFit) -> None:
        self.fit = fit
        self._read = RegressionRead(fit)

    @cached_property
    def _rows(self) -> NDArray[np.intp]:
        return drawn_rows(self._read, 1)

    def _place(self, which: int | str) -> int:
        """Return the position of an outcome that is told by position or by name."""
        names = self.fit.outcomes
        if isinstance(which, str) and which in names:
            place = names.index(which)
        elif isinstance(which, int | np.integer) and not isinstance(which, bool):
            place = int(which) + len(names) * (which < 0)
        else:
            place = -1
        if not 0 <= place < len(names):
            raise InputError(
                f"there is no outcome {which!r}; the outcomes are {name_some(list(names), 8)}."
            )
        return place

    def coefficients(self, outcome: int | str = 0, ax: Axes | None = None) -> Axes:
        """Draw the coefficients of an outcome with their intervals, and the naive ones, pale.

        The intercept is left out where there are other terms.

        Parameters
        ----------
        outcome : int or str
        ax : Axes, optional
        """
        equation = equation_of(self._read, self._place(outcome))
        terms = [one for one in equation["terms"] if one["name"] != "Intercept"] or equation[
            "terms"
        ]
        ax = _axes(ax, (6.4, 1.4 + 0.32 * len(terms)))
        at = np.arange(len(terms))
        ax.axvline(0.0, color=QUIET, linewidth=0.9, linestyle=":", zorder=0)
        ways = (("naive", "o", "seen rows", APART), ("half", "D", "half limit", 1.7 * APART))
        for key, marker, word, shift in ways:
            x = _known(one[key] for one in terms)
            if np.isfinite(x).any():
                ax.scatter(
                    x, at + shift, s=34, marker=marker, label=word, alpha=0.5, facecolors="#f0d8c6",
                    edgecolors=NAIVE,
                )  # fmt: skip
        x, low, high = (_known(one[key] for one in terms) for key in ("estimate", "lower", "upper"))
        ax.hlines(at, low, high, color=RECOVERED, linewidth=2.0)
        learned = np.array([one["learned"] for one in terms])
        for chosen, face, word in ((learned, RECOVERED, "recovered"), (~learned, "white", "given")):
            if chosen.any():
                ax.scatter(
                    x[chosen],
                    at[chosen],
                    s=36,
                    color=RECOVERED,
                    facecolors=face,
                    label=word,
                    zorder=3,
                )
        ax.set_yticks(at, [plain(shorten(one["name"], LONGEST)) for one in terms])
        ax.set_ylim(len(terms) - 0.4, -0.6)
        latent = "" if equation["kind"] == "continuous" else "latent "
        ax.set_xlabel(f"coefficient, {latent}{plain(shorten(equation['name'], LONGEST))}")
        _finished(ax)
        ax.tick_params(axis="y", length=0, labelcolor=INK)
        ax.spines["left"].set_visible(False)
        return ax

    def residuals(self, outcome: int | str = 0, ax: Axes | None = None) -> Axes:
        """Draw quantile residuals against those of a normal sample, with a band of 95 %.

        Parameters
        ----------
        outcome : int or str
        ax : Axes, optional
        """
        place = self._place(outcome)
        content = self._read.residuals
        if content is None:
            raise InputError("residuals need the table, which this fit does not hold.")
        ax = _axes(ax, (5.2, 4.8))
        found = {k: np.array(v, dtype=float) for k, v in content["quantiles"][place].items()}
        many = content["envelope"]["refitted"]
        word = f"of {many} simulated tables" if many else "95 % of normal samples"
        ax.fill_between(
            found["normal"], found["lower"], found["upper"], color=RECOVERED, alpha=0.16, linewidth=0,
            label=word,
        )  # fmt: skip
        ends = found["normal"][[0, -1]] if found["normal"].size else np.zeros(2)
        ax.plot(ends, ends, color=RECOVERED, linewidth=1.0)
        ax.scatter(
            found["normal"], found["residual"], s=9, color=POINT, linewidths=0, label="residuals"
        )
        ax.set(xlabel="normal quantile", ylabel="quantile residual")
        ax.set_title(plain(shorten(self.fit.outcomes[place], 60)), fontsize="medium", color=INK)
        return _finished(ax, loc="upper left")

    def effect(
        self, variable: str | None = None, outcome: int | str = 0, ax: Axes | None = None
    ) -> Axes:
        """Draw predictions along one variable, the others at their means or reference categories.

        Parameters
        ----------
        variable : str, optional
            A column of the data; the first that is a number by default.
        outcome : int or str
        ax : Axes, optional
        """
        j, variables = self._place(outcome), variables_of(self._read, self._rows)
        names = [one["name"] for one in variables]
        if not names or self.fit.source is None:
            raise InputError("effects need the table, which this fit does not hold.")
        if variable is not None and variable not in names:
            raise InputError(f"there is no variable {variable!r}; there are {name_some(names, 8)}.")
        k = 0 if variable is None else names.index(variable)
        ax = _axes(ax, (6.4, 4.4))
        along, curves = variables[k], self._read.effects[j][k]
        equation, point = equation_of(self._read, j), cells_of(self._read, j, self._rows)
        x = _jittered(along)
        kind = equation["kind"]
        if kind == "continuous":
            _cells(ax, point["cells"], x)
            _curve(ax, along, curves, "seen", NAIVE, "--", "values that are seen", 0.08)
            _curve(ax, along, curves, "latent", RECOVERED, "-", "all values", -0.08)
            ax.set_ylabel(plain(shorten(equation["name"], LONGEST)))
        elif kind == "binary":
            second = plain(shorten(equation["categories"][1][0], LONGEST))
            _rugs(ax, point["codes"], x)
            _curve(ax, along, curves, "seen", RECOVERED, "-", f"probability of {second}", 0.0)
            ax.set(ylabel=f"probability of {second}", ylim=(-0.07, 1.07))
        else:
            _curve(ax, along, curves, "latent", RECOVERED, "-", "latent number", 0.0)
            for i, cut in enumerate(equation["cuts"]):
                ax.axhline(
                    cut["estimate"], color=INK, linewidth=0.9, linestyle=":",
                    label=None if i else "cut points",
                )  # fmt: skip
            ax.set_ylabel(f"latent {plain(shorten(equation['name'], LONGEST))}")
        ax.set_xlabel(plain(shorten(along["name"], 60)))
        if along["levels"] is not None:
            labels = [plain(shorten(level, 16)) for level in along["levels"]]
            ax.set_xticks(range(len(labels)), labels)
        else:
            low, high = along["grid"][0], along["grid"][-1]
            room = max(0.02 * ((high - low) or 1.0), 0.6 * JITTER * _gap(along))
            ax.set_xlim(low - room, high + room)
        return _finished(ax)


def _known(values: Any) -> Floats:
    return np.array([np.nan if one is None else one for one in values], dtype=float)


def _gap(along: dict[str, Any]) -> float:
    """Return how far values are from each other; 0 where they are too many to be drawn apart."""
    if along["levels"] is not None:
        return 1.0
    distinct = np.unique(_known(along["values"]))
    return float(np.diff(distinct).min()) if 1 < distinct.size <= FEW_VALUES else 0.0


def _jittered(along: dict[str, Any]) -> Floats:
    """Return where rows are drawn: a little apart from each other where there are few values."""
    x = _known(along["values"])
    golden = np.arange(x.size) * 0.6180339887 % 1.0
    return np.asarray(x + JITTER * _gap(along) * (golden - 0.5))


def _curve(
    ax: Axes,
    along: dict[str, Any],
    curves: dict[str, Any],
    key: str,
    color: str,
    style: str,
    word: str,
    shift: float,
) -> None:
    """Draw a prediction with its band; points with intervals for categories."""
    if key not in curves:
        return
    x, y = np.array(along["grid"], dtype=float), _known(curves[key])
    ends = [
        _known(curves[f"{key}_{end}"]) for end in ("lower", "upper") if f"{key}_{end}" in curves
    ]
    if along["levels"] is not None:
        half = [y - ends[0], ends[1] - y] if ends else None
        marker = "o" if style == "-" else "D"
        ax.errorbar(x + shift, y, half, fmt=marker, color=color, capsize=3, label=word, zorder=3)
        return
    if ends:
        ax.fill_between(x, ends[0], ends[1], color=color, alpha=0.16, linewidth=0)
    ax.plot(x, y, color=color, linewidth=2.2, linestyle=style, label=word)


def _cells(ax: Axes, cells: dict[str, Any], x: Floats) -> None:
    """Draw seen values as dots, hidden ones as ticks at their limits or at the lower edge."""
    kind, at = np.array(list(cells["kind"])), _known(cells["at"])
    seen, limited = kind == "s", np.isin(kind, list("bai"))
    loose = ~seen & ~limited
    alpha = 0.75 if seen.sum() <= 600 else 0.45
    if seen.any():
        ax.scatter(x[seen], at[seen], s=14, color=SEEN, alpha=alpha, linewidths=0, label="seen")
    tick: dict[str, Any] = {
        "s": 42,
        "marker": "|",
        "color": HIDDEN,
        "linewidths": 0.9,
        "alpha": 0.7,
    }
    if limited.any():
        ax.scatter(x[limited], at[limited], label="hidden, at the limit", **tick)
    if loose.any():
        known = at[seen | limited]
        low = known.min() - 0.05 * np.ptp(known) if known.size else 0.0
        ax.scatter(x[loose], np.full(int(loose.sum()), low), label="not seen", **tick)


def _rugs(ax: Axes, codes: list[int | None], x: Floats) -> None:
    """Draw rows of either category at the edges of a probability."""
    code = _known(codes)
    for one, at in ((0, -0.035), (1, 1.035)):
        own = code == one
        ax.scatter(
            x[own],
            np.full(int(own.sum()), at),
            s=42,
            marker="|",
            color=HIDDEN,
            linewidths=0.9,
            alpha=0.5,
        )
