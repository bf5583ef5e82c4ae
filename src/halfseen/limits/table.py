"""The table of limits: numbers of columns with their method, or the word why there are none."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.errors import InputError
from halfseen.solvers.summary import WIDTH, number_of, shorten

# What each method is, in a line.
METHODS = {
    "Student's t": "exact for a complete normal sample",
    "noncentral t": "exact for a complete normal sample",
    "generalised pivot": "Krishnamoorthy and Mathew (2003), for a complete log-normal sample",
    "matching posterior": "the column's own cells, with a prior under which one-sided limits hold",
    "calibrated root": "signed root of the likelihood, held against simulated columns",
    "joint likelihood": "all columns: the likelihood falls as far as at the limit from the column alone",
    "Kaplan–Meier": "product-limit mean ± Student's t times Greenwood's error; for comparison",
    "ROS": "regression on order statistics, a mean without limits; for comparison",
}
LINE = "─" * WIDTH


@dataclass(frozen=True)
class Limit:
    """One number of a column, with its one-sided limits.

    Attributes
    ----------
    column : str
    quantity : str
        "mean", "quantile 0.95", "tolerance 0.95", "next 1"; "KM mean", "KM s.d.", "ROS mean", "ROS s.d."
    estimate, lower, upper : float
        In the units of the table. NaN where there is none, infinite where a limit has no end.
    method : str
        What limits come from; empty where there are none.
    remark : str
        Why there is no number, or what to know about it.
    group : object
        The group of rows, where there are several.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=(30, 1))
    >>> mean = hs.fit(x, names=["lead"]).limits()["lead", "mean"]
    >>> mean.method, mean.remark, bool(mean.lower < mean.estimate < mean.upper)
    ("Student's t", '', True)
    """

    column: str
    quantity: str
    estimate: float
    lower: float
    upper: float
    method: str
    remark: str = ""
    group: Any = None


@dataclass(frozen=True, repr=False)
class LimitTable:
    """One-sided limits of every column; ``fit.limits()`` returns it.

    Attributes
    ----------
    limits : tuple of Limit
    level : float
        Confidence of each limit by itself: lower and upper together hold 2·level − 1.
    coverage : float
        Share of all values that lie below the upper tolerance limit, and above the lower one.
    by : str or None
        What groups are by, where there are several.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=(30, 1))
    >>> found = hs.fit(x, names=["lead"]).limits()
    >>> print(f"{found['lead', 'mean'].upper:.2f}, {found['lead', 'tolerance 0.95'].upper:.2f}")
    5.13, 6.71
    >>> found.rows()[0]["method"]
    "Student's t"
    """

    limits: tuple[Limit, ...]
    level: float
    coverage: float
    by: str | None = None

    def __getitem__(self, key: tuple[Any, ...]) -> Limit:
        for one in self.limits:
            if key == self._key(one):
                return one
        raise InputError(
            f"there is no limit {key!r}; ask for one such as {self._key(self.limits[0])!r}. There are "
            f"{', '.join(dict.fromkeys(one.quantity for one in self.limits))} of "
            f"{', '.join(dict.fromkeys(one.column for one in self.limits))}."
        )

    def _key(self, one: Limit) -> tuple[Any, ...]:
        """Return what a limit is asked for by."""
        own = (one.column, one.quantity)
        return own if self.by is None else (one.group, *own)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each limit, as plain data: ``pandas.DataFrame(found.rows())``.

        Numbers that are not there are None, and so are limits without an end; ``remark`` tells which.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=(30, 1))
        >>> list(hs.fit(x, names=["lead"]).limits().rows()[0])
        ['column', 'quantity', 'estimate', 'lower', 'upper', 'method', 'remark']
        """
        return [
            ({} if self.by is None else {self.by: one.group})
            | {"column": one.column, "quantity": one.quantity}
            | {name: number_of(getattr(one, name)) for name in ("estimate", "lower", "upper")}
            | {"method": one.method, "remark": one.remark}
            for one in self.limits
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, as ``halfseen fit --ucl --json`` prints it.

        Returns
        -------
        dict

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> x = np.random.default_rng(0).normal(5.0, 1.0, size=(30, 1))
        >>> list(hs.fit(x, names=["lead"]).limits().to_dict())
        ['level', 'coverage', 'by', 'rows', 'notes']
        """
        return {
            "level": self.level,
            "coverage": self.coverage,
            "by": self.by,
            "rows": self.rows(),
            "notes": [*self._methods(), *self._remarks()],
        }

    def _heading(self) -> str:
        """Say what the limits are, in a line."""
        return (
            f"Limits at {100 * self.level:g} %, each one-sided; tolerance limits cover "
            f"{100 * self.coverage:g} %"
        )

    def __repr__(self) -> str:
        lines = [
            self._heading(),
            LINE,
            f"{'Column':<14} {'Limits of':<15} {'estimate':>9} {'lower':>9} {'upper':>9} Method",
            LINE,
        ]
        last: tuple[Any, str | None] = None, None
        for one in self.limits:
            if self.by is not None and one.group != last[0]:
                lines.append(shorten(f"{self.by} {one.group}", WIDTH))
            shown = "" if (one.group, one.column) == last else shorten(one.column, 14)
            last = one.group, one.column
            head = f"{shown:<14} {one.quantity:<15}"
            numbers = " ".join(f"{_shown(x):>9}" for x in (one.estimate, one.lower, one.upper))
            rest = f"{numbers} {one.method}" if one.method else f"none: {one.remark}"
            lines.append(f"{head} {rest}")
        lines.append(LINE)
        for text in (*self._methods(), *self._remarks()):
            lines += textwrap.wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ")
        return "\n".join(lines)

    def _methods(self) -> list[str]:
        """Say of each method what it is."""
        used = dict.fromkeys(one.method for one in self.limits if one.method)
        return [f"{name}: {METHODS[name]}." for name in used]

    def _remarks(self) -> list[str]:
        """Say what there is to know about numbers, by remark."""
        held: dict[str, list[str]] = {}
        for one in self.limits:
            if one.method and one.remark:
                name = one.column if self.by is None else f"{one.group}: {one.column}"
                held.setdefault(one.remark, []).append(f"{name} ({one.quantity})")
        return [
            f"{remark}: {', '.join(names[:4])}{f' and {len(names) - 4} more' if names[4:] else ''}."
            for remark, names in held.items()
        ]


def _shown(value: float) -> str:
    """Print four digits; a dash for what is not there."""
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "no end"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:.0f}"
    return f"{value:#.4g}".rstrip(".")
