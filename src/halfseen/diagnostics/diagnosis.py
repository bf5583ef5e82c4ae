"""What ``diagnose`` returns."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from halfseen.diagnostics.checked_table import Contradiction
from halfseen.diagnostics.findings import LEVELS, Finding, Level, shown
from halfseen.diagnostics.marks import Mark
from halfseen.diagnostics.normality import Normality
from halfseen.diagnostics.together import Losses
from halfseen.solvers.result import name_some
from halfseen.solvers.summary import shorten

Floats = NDArray[np.float64]

# Columns that the text lists.
MOST_COLUMNS = 40
# Characters of a line, and of the names in the table.
WIDTH, LEAST_NAME, MOST_NAME = 79, 12, 22
WORDS = {"ok": "ok", "look": "look at", "problem": "problem"}


def clopper_pearson(
    hits: NDArray[np.int_], rows: int, tail: float = 0.025
) -> tuple[Floats, Floats]:
    """Return limits of shares of rows, beyond each of which lies ``tail``: quantiles of beta laws."""
    lower, upper = np.zeros(hits.shape), np.ones(hits.shape)
    some, gaps = hits > 0, hits < rows
    lower[some] = betaincinv(hits[some], rows - hits[some] + 1, tail)
    upper[gaps] = betaincinv(hits[gaps] + 1, rows - hits[gaps], 1.0 - tail)
    return lower, upper


@dataclass(frozen=True)
class Share:
    """A share of rows, with a 95 % confidence interval (Clopper and Pearson).

    Attributes
    ----------
    value : float
    lower, upper : float
        Ends of the interval.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
    >>> found = hs.diagnose(X, rule).alpha
    >>> found.lower < found.value < found.upper
    True
    """

    value: float
    lower: float
    upper: float

    @classmethod
    def of(cls, hits: int, rows: int, level: float = 0.95) -> Share:
        """Share of ``hits`` among ``rows``."""
        lower, upper = clopper_pearson(np.array([hits]), rows, 0.5 * (1.0 - level))
        return cls(hits / rows, float(lower[0]), float(upper[0]))

    def __str__(self) -> str:
        return f"{self.value:.3f} (95 % interval {self.lower:.3f} to {self.upper:.3f})"


class PairShares(NamedTuple):
    """Share of rows in which two columns are both seen, with 95 % limits (Clopper and Pearson).

    Attributes
    ----------
    value : array of shape (d, d)
    lower, upper : arrays of shape (d, d)
        Ends of the intervals.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
    >>> shares = hs.diagnose(X, rule).pair_alpha
    >>> bool(shares.value[0, 1] == (X == X).all(axis=1).mean())
    True
    """

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the data say about the assumptions: those of the paper, the rule, and normality.

    Attributes
    ----------
    rows : int
    subset_size : int
        βd, the number of columns that are to be seen together.
    alpha : Share
        Least share of rows in which ``subset_size`` columns are seen together.
    subset : tuple of str
        The columns with that share.
    every_subset : bool
        Whether all subsets were looked at, or a sample of them.
    anchors : tuple of str
        Columns that are seen in every row, and by the rule always are.
    gamma : float or None
        Upper bound on the least probability of a pattern given the anchors: that of the rarest pattern
        in simulations, or of the rarest single event, whichever is less. None without a covariance and
        a mean, or without anchors.
    strong_convexity : float or None
        αβ/λ_max(Σ), where the covariance is known.
    start_distance : float or None
        Bound √(2 λ_max/β · log 1/α) on the distance from the mean of what ``initialize`` converges to.
    names : tuple of str
    hidden, blank : arrays of shape (d,)
        Share of the cells of each column that are hidden by the rule or beyond a limit, and that are
        missing at random.
    limits : tuple of pairs of arrays
        Distinct lower and upper limits of each column.
    pair_alpha : PairShares
        Three arrays of shape (d, d): the share of rows in which both columns of a pair are seen, and
        its 95 % limits.
    rare_pairs : tuple of (str, str, int)
        Pairs that are seen together in fewer than 10 rows, and in how many.
    contradictions : tuple of Contradiction
        (column, count, row, value, text) of seen values that the rule would hide.
    mechanism : tuple of Mark
        Marks that another rule than the stated one would leave.
    losses : Losses
        Whether the rule explains the holes (``p_value``), and the share of each column that looks lost
        for other reasons.
    normality : Normality
        Tests by column (``columns``) and of all together (``overall``), and one p-value of all
        (``p_value``).
    suggested_transform : dict
        By column, a scale on which it looks normal, or nearer to it.
    findings : tuple of Finding
        All of this in plain words, the most serious first.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
    >>> found = hs.diagnose(X, rule)
    >>> found.worst, found.subset
    ('ok', ('x0', 'x1'))
    >>> import numpy as np
    >>> hs.diagnose(np.exp(X)).suggested_transform["x0"]
    'log'
    """

    rows: int
    subset_size: int
    alpha: Share
    subset: tuple[str, ...]
    every_subset: bool
    anchors: tuple[str, ...]
    gamma: float | None
    strong_convexity: float | None
    start_distance: float | None
    names: tuple[str, ...]
    hidden: Floats
    blank: Floats
    limits: tuple[tuple[Floats, Floats], ...]
    pair_alpha: PairShares
    rare_pairs: tuple[tuple[str, str, int], ...]
    contradictions: tuple[Contradiction, ...]
    mechanism: tuple[Mark, ...]
    losses: Losses
    normality: Normality
    suggested_transform: dict[str, str]
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Level:
        """The most serious level among the findings."""
        return max((f.level for f in self.findings), key=LEVELS.index, default="ok")

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, words and lists, fit for JSON; NaN becomes None.

        Returns
        -------
        dict

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 300)
        >>> told = hs.diagnose(X, rule).to_dict()
        >>> told["rows"], told["worst"], [finding["level"] for finding in told["findings"]][:1]
        (300, 'ok', ['ok'])
        """
        return {
            **{name: plain(getattr(self, name)) for name in self.__dataclass_fields__},
            "worst": self.worst,
        }

    def __str__(self) -> str:
        return "\n".join(
            [f"rows: {self.rows}", "", *self._table(), "", *self._found(), "", *self._constants()]
        )

    def _constants(self) -> list[str]:
        looked = "all subsets" if self.every_subset else "a sample of subsets"
        together = "is seen" if self.subset_size == 1 else "are seen together"
        columns = "column" if self.subset_size == 1 else "columns"
        lines = [
            f"alpha: {self.alpha}, for {name_some(_short(self.subset), 6)}. Least share of rows in "
            f"which {self.subset_size} {columns} {together}, among {looked}.",
            f"anchors: {name_some(_short(self.anchors), 6) or 'none'}. Columns that are always seen.",
        ]
        if self.gamma is not None:
            lines.append(
                f"gamma: at most {self.gamma:.2g}. Least probability of a pattern of seen and hidden "
                "cells, given the anchors."
            )
        if self.strong_convexity is not None:
            lines.append(
                f"strong convexity: at least {self.strong_convexity:.3g}. How sharply the likelihood "
                "peaks: the larger, the faster the descent."
            )
        if self.start_distance is not None:
            lines.append(
                f"bias of the start: at most {self.start_distance:.3g}. How far from the mean the "
                "descent begins."
            )
        wrapped = [line for text in lines for line in _wrapped(text, "  ", "    ")]
        return ["Constants of the theory", *wrapped]

    def _table(self) -> list[str]:
        names = self.names[:MOST_COLUMNS]
        better = [self.suggested_transform.get(name, "") for name in names]
        limits = [_range(*pair) for pair in self.limits[:MOST_COLUMNS]]
        # What is left of a line is for names and limits; names need some of it to be told apart.
        room = WIDTH - 31 - max([3, *map(len, better)])
        wide = min(max([6, *map(len, limits)]), room - LEAST_NAME)
        name_wide = min(room - wide, MOST_NAME)
        lines = [
            f"{'':<{name_wide}} {'':>6} {'':>6} {'at':>6}",
            f"{'column':<{name_wide}} {'unseen':>6} {'hidden':>6} {'random':>6} {'limits':>{wide}} "
            f"{'normal':>6}  try",
            "-" * WIDTH,
        ]
        for j, name in enumerate(names):
            p = self.normality.columns[j].adjusted
            limit = shorten(limits[j], wide) if limits[j] else ""
            lines.append(
                f"{shorten(_one_line(name), name_wide):<{name_wide}} "
                f"{self.hidden[j] + self.blank[j]:>6.1%} {self.hidden[j]:>6.1%} {self.blank[j]:>6.1%} "
                f"{limit:>{wide}} {_in_table(p):>6}  "
                f"{better[j]}".rstrip()
            )
        if len(self.names) > MOST_COLUMNS:
            lines.append(f"… and {len(self.names) - MOST_COLUMNS} more columns")
        overall = self.normality.overall
        if overall is not None:
            lines.append(
                f"{'all together':<{name_wide + wide + 22}} {_in_table(overall.adjusted):>6}"
            )
        else:
            lines += _wrapped(f"all together: {self.normality.overall_reason}", "", "  ")
        lines.append(
            "unseen = hidden (by the rule, or beyond a limit) + at random; normal: p-value,"
        )
        lines.append("adjusted for the number of tests")
        return [*lines, "", *self._questions()]

    def _questions(self) -> list[str]:
        """Two questions, with one p-value each."""
        losses, normal = self.losses, self.normality.p_value
        asked = []
        if not losses.reason:
            asked.append(("Does the rule explain the holes?", losses.p_value))
        if not math.isnan(normal):
            asked.append(("Is it a Gaussian, on these scales?", normal))
        return [f"{question:<36}{shown(p)}" for question, p in asked]

    def _found(self) -> list[str]:
        lines: list[str] = []
        for finding in self.findings:
            where = "" if finding.column is None else f"{shorten(_one_line(finding.column), 40)}: "
            text = f"[{WORDS[finding.level]}] {where}{finding.title}. {_one_line(finding.text)}"
            lines += _wrapped(text, "", "    ")
        return lines


def _in_table(p: float) -> str:
    return "-" if math.isnan(p) else "<0.001" if p < 1e-3 else f"{p:.3f}"


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=first if rest is None else rest
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _short(names: tuple[str, ...]) -> list[str]:
    return [shorten(_one_line(name), 30) for name in names]


def _range(lower: Floats, upper: Floats) -> str:
    """Write the limits of a column."""
    if min(lower.size, upper.size) > 0 and lower.size + upper.size > 2:
        return f"{lower.size} lower, {upper.size} upper"
    if lower.size and upper.size:
        return f"{lower[0]:.4g}..{upper[0]:.4g}"
    for sign, word, limits in ((">", "", lower), ("<", "upper ", upper)):
        if limits.size == 1:
            return f"{sign}{limits[0]:.4g}"
        if limits.size:
            return f"{limits.size} {word}limits, {limits[0]:.2g} to {limits[-1]:.2g}"
    return ""


def plain(item: Any) -> Any:
    """Turn values into what JSON knows."""
    if isinstance(item, np.ndarray):
        return plain(item.tolist())
    if hasattr(item, "_asdict"):
        return plain(item._asdict())
    if is_dataclass(item) and not isinstance(item, type):
        return plain(asdict(item))
    if isinstance(item, dict):
        return {str(key): plain(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [plain(value) for value in item]
    if isinstance(item, np.generic):
        return plain(item.item())
    if isinstance(item, float) and not math.isfinite(item):
        return None
    return item
