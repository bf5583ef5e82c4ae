"""Figures of a fit, and of groups, with Matplotlib: the same content and colours as their pages."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.errors import InputError
from halfseen.report.content import NORMAL_ELLIPSE, report_content
from halfseen.report.numbers import percent, signed
from halfseen.solvers.inference.intervals import NORMAL_95
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from halfseen.grouped.fit import GroupedFit
    from halfseen.results import Fit
    from halfseen.solvers.inference.sensitivity import Sensitivity

Floats = NDArray[np.float64]
# The colours of the page in daylight.
INK, QUIET, RULE = "#1c2126", "#565e68", "#d5d9de"
RECOVERED, NAIVE = "#1f5fa8", "#b4530a"
SEEN, POINT, HIDDEN = "#9aa4b0", "#4a5663", "#6f7883"
LOW, MIDDLE, HIGH = "#2b5c9e", "#f4f4f2", "#b4530a"
# More columns than this have no numbers in their cells, and no names beside them.
MOST_NUMBERS, MOST_NAMES = 25, 40
# Of lines that are told apart, solid first, then dashed, then dotted.
LINES, DASHES = (RECOVERED, NAIVE, INK, HIDDEN), ("-", "--", ":")
# How far down a profile is drawn, in cutoffs.
FLOOR = -1.6
# Estimates that are drawn as they move.
MOST_MOVES = 6
MARKERS = {"b": ("<", "v"), "a": (">", "^"), "i": ("D", "D")}
# Of the hidden shares that are written: width of a letter and height of a line, in units of the size of
# the letters, and this size.
LETTER, LINE, SIZE = 0.58, 1.6, 8.5
# Letters of a legend that stand side by side above a figure, those that a key takes among them.
LEGEND_LETTERS, KEY_LETTERS = 92, 6
# The middle of the hidden stretch is left only for a place that is so much lower.
MUCH_LOWER = 1.3
# Longest name beside an axis, and height of a row in inches.
LONGEST, HEIGHT = 40, 0.3


class Plots:
    """Figures of a fit.

    Each method draws into ``ax`` and returns it; without one it makes a figure of its own. Columns are
    told by position or by name.

    Parameters
    ----------
    fit : Fit

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.report import Plots
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> truth = hs.Gaussian([1.0, 1.0], [[1.0, 0.5], [0.5, 1.0]])
    >>> X = hs.simulate(truth, rule, 500, random_state=0)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> Plots(fit).pair("lead", "zinc").get_xlabel()
    'lead'
    """

    def __init__(self, fit: Fit) -> None:
        self.fit = fit

    @cached_property
    def _content(self) -> dict[str, Any]:
        return report_content(self.fit)

    def _column(self, which: int | str) -> int:
        """Position of a column that is told by position or by name."""
        position, shown = self.fit.column(which), len(self._content["columns"])
        if position >= shown:
            raise InputError(f"figures are of the first {shown} columns; got {which!r}.")
        return position

    def marginal(self, i: int | str = 0, ax: Axes | None = None) -> Axes:
        """Draw one column: what is seen, what is hidden, and the recovered density."""
        ax = _axes(ax, (6.4, 3.8))
        column = self._content["columns"][self._column(i)]
        mean, deviation = column["recovered"]["mean"], column["recovered"]["deviation"]
        h = column["histogram"]
        if h is not None:
            seen, hidden = np.array(h["seen"]), np.array(h["hidden"])
            left = h["start"] + h["width"] * np.arange(seen.size)
            bars: dict[str, Any] = {"width": h["width"], "align": "edge"}
            ax.bar(left, seen, color=SEEN, edgecolor="white", linewidth=0.5, label="seen", **bars)
            if hidden.any():
                where = hidden > 0.0
                ax.bar(
                    left[where], hidden[where], bottom=seen[where], facecolor="none",
                    edgecolor=HIDDEN, hatch="////", linewidth=0.0, label="hidden", **bars,
                )  # fmt: skip
        x = np.linspace(column["range"][0], column["range"][1], 400)
        density = _density(self._content["law"], (x - mean) / deviation) / deviation
        ax.plot(x, density, color=RECOVERED, linewidth=2.2, label="recovered density")
        for k, limit in enumerate(column["limits"]):
            text = "limit" if k == 0 else None
            ax.axvline(limit["at"], color=INK, linewidth=1.0, linestyle="--", label=text)
        if column["limit_range"] is not None:
            many = column["limit_range"]
            ax.axvspan(
                many["from"], many["to"], color=RULE, alpha=0.4, linewidth=0, zorder=0,
                label=f"{many['many']} limits",
            )  # fmt: skip
        _scale(ax, column, "x")
        ax.set_ylabel("density")
        ax.set_ylim(0.0, 1.08 * ax.get_ylim()[1])
        if h is not None:
            _write_shares(ax, column, (x, density))
        _legend(ax, ("seen", "hidden", "recovered density"))
        return ax

    def pair(self, i: int | str = 0, j: int | str = 1, ax: Axes | None = None) -> Axes:
        """Draw two columns: seen rows, hidden cells at their limits, naive and recovered ellipses."""
        if self._content["pairs"] is None:
            raise InputError("a pair needs two columns; this fit has one. Use plot.marginal().")
        a, b = self._column(i), self._column(j)
        if a == b:
            raise InputError(f"a pair needs two different columns; got {i!r} twice.")
        ax = _axes(ax, (6.4, 5.4))
        x, y = self._content["columns"][a], self._content["columns"][b]
        if self._content["has_table"]:
            _points(ax, x, y)
        r = self._of_pair(a, b)
        # The pair is held with its first column first.
        first, second = (r["ellipses"] or [None] * 4)[:2], (r["ellipses"] or [None] * 4)[2:]
        seen = [*first, *second] if a < b else [*second, *first]
        recovered = [c["recovered"][key] for c in (x, y) for key in ("mean", "deviation")]
        for name, known, color, style, radius in (
            ("seen only", [*seen, r["naive"]], NAIVE, "--", NORMAL_ELLIPSE),
            (
                "recovered",
                [*recovered, r["recovered"]],
                RECOVERED,
                "-",
                self._content["law"]["ellipse"],
            ),
        ):
            if None in known:
                continue
            ax.plot(
                *_ellipse(radius, *known), color=color, linestyle=style, linewidth=2.0,
                label=f"{name}, r = {signed(known[4])}",
            )  # fmt: skip
            ax.plot(known[0], known[2], "+", color=color, markersize=11, markeredgewidth=2)
        _scale(ax, x, "x")
        _scale(ax, y, "y")
        return _finished(ax)

    def _of_pair(self, a: int, b: int) -> dict[str, Any]:
        """Return what is known of a pair."""
        d = len(self._content["columns"])
        low, high = min(a, b), max(a, b)
        k = low * d - low * (low + 1) // 2 + high - low - 1
        return {key: values[k] for key, values in self._content["pairs"].items()}

    def correlation(self, ax: Axes | None = None) -> Axes:
        """Draw the recovered correlations as a heat map."""
        d = len(self._content["columns"])
        side = float(np.clip(0.5 * d + 2.0, 4.0, 10.0))
        ax = _axes(ax, (side + 0.8, side))
        from matplotlib.colors import LinearSegmentedColormap

        R = np.full((d, d), np.nan)
        if self._content["pairs"] is not None:
            at = np.triu_indices(d, 1)
            R[at] = np.array(self._content["pairs"]["recovered"], dtype=float)
            R.T[at] = R[at]
        colours = LinearSegmentedColormap.from_list("halfseen", [LOW, MIDDLE, HIGH])
        image = ax.imshow(np.ma.masked_invalid(R), cmap=colours, vmin=-1.0, vmax=1.0)
        if d <= MOST_NUMBERS:
            size = float(np.clip(110.0 / d, 5.0, 9.0))
            for p, q in zip(*np.nonzero(np.isfinite(R)), strict=True):
                # Dark text on light cells, light text on dark ones.
                color = INK if _lightness(colours(0.5 + 0.5 * R[p, q])) > 0.3 else "white"
                ax.text(q, p, signed(R[p, q]), ha="center", va="center", color=color, fontsize=size)
        if d <= MOST_NAMES:
            names = [plain(shorten(c["short"], 24)) for c in self._content["columns"]]
            ax.set_xticks(range(d), names, rotation=45, ha="right", rotation_mode="anchor")
            ax.set_yticks(range(d), names)
        else:
            ax.set_xticks([])
            ax.set_yticks([])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        scale = self._content["scale"]
        label = "recovered correlation" + (f"\non the {plain(scale)} scale" if scale else "")
        ax.figure.colorbar(image, ax=ax, shrink=0.7, label=label)
        return ax

    def trace(self, ax: Axes | None = None) -> Axes:
        """Draw the means over the steps of the solver, in standard errors from the estimate.

        The title says what the status is judged by: the log-likelihood that is left to be gained.
        """
        trace = self._content["trace"]
        if trace is None:
            raise InputError(
                f"this fit (method {self.fit.method!r}) kept no trace of its means; only methods that "
                'take several steps, such as method="full" where cells are hidden, have one.'
            )
        ax = _axes(ax, (6.4, 3.4))
        across = ax.get_yaxis_transform()
        ax.hlines(0.0, 0.0, 1.0, color=RULE, linewidth=1.0, zorder=0, transform=across)
        many = len(trace["columns"])
        few = many <= len(DASHES) * len(LINES)
        crowd = {"color": RECOVERED, "linewidth": 1.2, "alpha": 0.7 if many < 20 else 0.4}
        both = zip(self._content["columns"], trace["columns"], strict=True)
        for k, (column, values) in enumerate(both):
            style = {"linewidth": 1.4, **_line(k)} if few else crowd
            # A name that starts with a line below would be left out of the legend.
            label = plain("\u200b" + shorten(column["short"], 24))
            ax.plot(trace["steps"], np.array(values, dtype=float), label=label, **style)
        if self._content["climb"] is not None and self._content["steps_taken"]:
            # What the status is judged by: a last step may move means and gain next to nothing.
            ax.set_title(
                "\n".join(textwrap.wrap(self._content["steps_taken"], 62)), fontsize="small"
            )
        ax.set_xlabel("step")
        # A step is a whole number.
        ax.locator_params(axis="x", integer=True)
        ax.set_ylabel(f"mean, in {trace['unit']}\nfrom the estimate")
        return _finished(ax) if few else _tidy(ax)

    def profile(
        self,
        of: str | Callable[..., ArrayLike],
        *columns: int | str,
        level: float = 0.95,
        ax: Axes | None = None,
    ) -> Axes:
        """Draw how the likelihood falls as one number moves, with its interval; see ``Fit.profile``."""
        profile = self.fit.profile(of, *columns, level=level)
        ax = _axes(ax, (6.4, 3.8))
        ax.plot(profile.at, profile.log_likelihood, color=RECOVERED, linewidth=2.2, label="profile")
        ax.plot(
            profile.at, profile.by_error, color=NAIVE, linewidth=1.4, linestyle="--",
            label="by the standard error",
        )  # fmt: skip
        floor = FLOOR * max(profile.cutoffs)
        for end, cutoff in zip(profile.interval, profile.cutoffs, strict=True):
            if np.isfinite(end):
                ends = sorted([float(end), profile.estimate])
                ax.hlines(-cutoff, ends[0], ends[1], color=QUIET)
                ax.vlines(float(end), floor, -cutoff, color=INK, linestyle=":")
        low, high = (f"{float(e):.3g}" if np.isfinite(e) else "no end" for e in profile.interval)
        ax.set_title(f"{100 * level:g} % interval: {low} to {high}", fontsize="medium")
        ax.plot(profile.estimate, 0.0, "o", color=RECOVERED, markersize=5)
        ax.set_ylim(floor, 0.12 * max(profile.cutoffs))
        ax.set_xlabel(plain(shorten(profile.name, 60)))
        ax.set_ylabel("log-likelihood, less its top")
        return _finished(ax, loc="lower center")

    def sensitivity(
        self, by: str = "share", found: Sensitivity | None = None, ax: Axes | None = None
    ) -> Axes:
        """Draw how estimates move under other assumptions, in their standard errors.

        By the share of hidden cells that were lost for other reasons, or by the factor that limits are
        off by (``by="factor"``); of ``found``, or of ``fit.sensitivity()``. The estimates that move most
        are drawn.
        """
        found = self.fit.sensitivity() if found is None else found
        moves = sorted(found.moves(by), key=lambda move: -float(np.abs(move.in_errors).max()))
        ax = _axes(ax, (6.4, 4.2))
        at = found.shares * 100.0 if by == "share" else found.factors
        ax.axhspan(
            -NORMAL_95, NORMAL_95, color=RULE, alpha=0.4, linewidth=0, zorder=0,
            label="95 % interval of the fit",
        )  # fmt: skip
        for k, move in enumerate(moves[:MOST_MOVES]):
            name = plain(shorten(move.name, 44))
            ax.plot(at, move.in_errors, marker="o", markersize=3, label=name, **_line(k))
        ax.axhline(0.0, color=RULE, linewidth=1.0, zorder=1)
        if by == "share":
            ax.set_xlabel("hidden cells that were lost for other reasons, %")
        else:
            ax.set_xscale("log")
            ax.set_xticks(at, [f"{factor:g}" for factor in at], minor=False)
            ax.set_xticks([], minor=True)
            ax.set_xlabel("factor of all limits")
        ax.set_ylabel("change of the estimate, in standard errors")
        return _finished(ax)


def plain(text: str) -> str:
    """Return a name that Matplotlib shows as typed: no mathematics, one line."""
    return " ".join(text.split()).replace("\\", "\\\\").replace("$", r"\$")


def _lightness(rgba: Any) -> float:
    """Relative luminance of a colour, from 0 to 1."""
    linear = np.asarray(rgba[:3], dtype=float) ** 2.2
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError:
        raise InputError('Figures need Matplotlib: pip install "halfseen[report]".') from None
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _legend(ax: Axes, first: tuple[str, ...] = ()) -> None:
    """Put a legend above the axes, where nothing is drawn, with some entries before the others.

    To look for an empty place inside takes long where much is drawn, and warns of it.
    """
    entries = list(zip(*ax.get_legend_handles_labels(), strict=True))
    entries.sort(key=lambda entry: first.index(entry[1]) if entry[1] in first else 99)
    handles, words = zip(*entries, strict=True)
    columns = LEGEND_LETTERS // (max(map(len, words)) + KEY_LETTERS)
    # "lower left" of the legend stands at the upper left of the axes.
    ax.legend(
        handles, words, frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0.0, 1.0),
        ncols=min(max(columns, 1), len(words)), borderaxespad=0.2, handletextpad=0.4,
        columnspacing=1.2,
    )  # fmt: skip


def _line(k: int) -> dict[str, Any]:
    """Return the colour and the dash by which one of several lines is told apart."""
    return {"color": LINES[k % len(LINES)], "linestyle": DASHES[k // len(LINES)]}


def _finished(ax: Axes, **inside: Any) -> Axes:
    """Add a legend, above the axes or inside them, and leave out what is not needed."""
    if inside:
        ax.legend(frameon=False, fontsize="small", **inside)
    else:
        _legend(ax)
    return _tidy(ax)


def _tidy(ax: Axes) -> Axes:
    ax.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(QUIET)
    ax.tick_params(colors=QUIET)
    return ax


def _scale(ax: Axes, column: dict[str, Any], which: str) -> None:
    """Label an axis, with numbers in original units where the column was transformed."""
    label = plain(shorten(column["name"], 60))
    if column["transform"] is not None:
        label += f" (axis on the scale of {plain(shorten(column['label'], 40))})"
    ax.set(**{f"{which}label": label, f"{which}lim": column["range"]})
    if column["ticks"] is not None:
        at, texts = column["ticks"]
        (ax.set_xticks if which == "x" else ax.set_yticks)(at, texts)
    _tidy(ax)


def _ellipse(
    radius: float, mx: float, sx: float, my: float, sy: float, r: float
) -> tuple[Floats, Floats]:
    t = np.linspace(0.0, 2.0 * np.pi, 181)
    rest = np.sqrt(max(0.0, 1.0 - r * r))
    return mx + radius * sx * np.cos(t), my + radius * sy * (r * np.cos(t) + rest * np.sin(t))


def _density(law: dict[str, Any], z: Floats) -> Floats:
    """Return the density of a standard column: normal, or t."""
    nu = law["degrees"]
    if nu is None:
        return np.asarray(law["peak"] * np.exp(-0.5 * z * z))
    return np.asarray(law["peak"] * (1.0 + z * z / nu) ** (-0.5 * (nu + 1.0)))


def _points(ax: Axes, x: dict[str, Any], y: dict[str, Any]) -> None:
    """Draw seen rows as dots, and rows with a hidden cell at its limit, pointing to where it is."""
    kinds = np.array([list(c["cells"]["kind"]) for c in (x, y)])
    at = np.array([c["cells"]["at"] for c in (x, y)], dtype=float)
    loose = np.isin(kinds, ["n", "e", "t", "c"])
    for k, column in enumerate((x, y)):
        low, high = column["range"]
        at[k, loose[k]] = low + 0.012 * (high - low)
    seen = (kinds == "s").all(axis=0)
    alpha = 0.75 if seen.sum() <= 600 else 0.45
    ax.scatter(
        at[0, seen], at[1, seen], s=14, color=POINT, alpha=alpha, linewidths=0, label="both seen"
    )
    # Said once, beside the first that is drawn.
    label = iter(["one or both hidden"])
    hollow: dict[str, Any] = {"facecolors": "none", "edgecolors": HIDDEN, "linewidths": 0.9}

    def mark(chosen: NDArray[np.bool_], marker: str, **style: Any) -> None:
        if chosen.any():
            text = next(label, None)
            ax.scatter(at[0, chosen], at[1, chosen], s=26, marker=marker, label=text, **style)

    for k, column in enumerate((x, y)):
        for letter, markers in MARKERS.items():
            mark((kinds[k] == letter) & ~loose.all(axis=0), markers[k], **hollow)
        # The intervals of cells that lie between two limits.
        half = column["cells"]["half"]
        rows, width = [int(row) for row in half], np.array(list(half.values()))
        low, high = at[k, rows] - width, at[k, rows] + width
        draw = ax.hlines if k == 0 else ax.vlines
        draw(at[1 - k, rows], low, high, color=HIDDEN, linewidth=0.7, alpha=0.6)
        mark(loose[k] & (kinds[1 - k] == "s"), "_|"[k], color=HIDDEN)


def _write_shares(ax: Axes, column: dict[str, Any], curve: tuple[Floats, Floats]) -> None:
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
            color=INK, fontsize=SIZE,
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
    heights = [
        *density[(x >= a) & (x <= b)],
        *total[(left < b) & (left + h["width"] > a)],
        *(y for start, end, y in taken if start < b and end > a),
    ]
    return float(max(heights, default=0.0))


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
        return _labelled(ax, f"{word} of {self.fit.names[j]}", self._is_ratio(j))

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
        return _labelled(ax, f"{word}, {self.fit.names[j]}", ratio)

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


def _labelled(ax: Axes, label: str, logarithmic: bool) -> Axes:
    if logarithmic:
        ax.set_xscale("log")
    ax.set_xlabel(plain(shorten(label, 60)))
    _tidy(ax)
    ax.tick_params(axis="y", labelcolor=INK, length=0)
    return ax
