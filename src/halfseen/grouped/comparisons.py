"""Means of groups and their differences, in the units in which people read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.transforms import Identity, Log, Transform
from halfseen.errors import InputError
from halfseen.solvers.groups.differences import Family, contrasts, quantile
from halfseen.solvers.summary import number_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """The mean of each group and column, with an interval for each by itself.

    Attributes
    ----------
    by : str
    groups : tuple
        Labels.
    names : tuple of str
        Columns.
    estimate, standard_error, lower, upper : arrays of shape (groups, columns)
        On the scale of the model, with equal covariances; NaN where nothing says where a mean is.
    median, median_lower, median_upper : arrays of shape (groups, columns)
        The same in the units of the table: medians, where columns are transformed.
    level : float

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
    >>> means = hs.fit(X, by=["A", "B"] * 30).means()
    >>> means.estimate.round().ravel()
    array([-0.,  5.])
    """

    by: str
    groups: tuple[Any, ...]
    names: tuple[str, ...]
    estimate: Floats
    standard_error: Floats
    lower: Floats
    upper: Floats
    median: Floats
    median_lower: Floats
    median_upper: Floats
    level: float

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each group and column, as plain data: ``pandas.DataFrame(means.rows())``.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
        >>> fit = hs.fit(X, by=["A", "B"] * 30, names=["lead"])
        >>> first = fit.means().rows()[0]
        >>> first["group"], first["column"], bool(first["lower"] < 0.0 < first["upper"])
        ('A', 'lead', True)
        """
        values = (
            "estimate", "standard_error", "lower", "upper", "median", "median_lower", "median_upper",
        )  # fmt: skip
        return [
            {self.by: label, "column": name}
            | {value: number_of(getattr(self, value)[g, j]) for value in values}
            for g, label in enumerate(self.groups)
            for j, name in enumerate(self.names)
        ]


@dataclass(frozen=True, eq=False)
class GroupDifferences:
    """Differences of all pairs of groups, as one family.

    Attributes
    ----------
    pairs : list of (label, label)
        The second is taken from the first.
    names : tuple of str
        Columns.
    scales : tuple of str
        Of each column: "difference" in its units, "ratio" of medians where logarithms were fitted, or
        the name of the scale on which the difference is.
    estimate, lower, upper : arrays of shape (pairs, columns)
        Differences or ratios, with family-wise intervals; NaN where a mean is not known.
    standard_error : array
        On the scale of the model.
    p_value : array
        Adjusted for the family.
    p_single : array
        Of each difference by itself.
    level : float
    comparisons : int
        Size of the family.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
    >>> apart = hs.fit(X, by=["A", "B"] * 30).differences()
    >>> apart.pairs, apart.estimate.round(), bool(apart.p_value[0, 0] < 1e-9)
    ([('A', 'B')], array([[-5.]]), True)
    """

    pairs: list[tuple[Any, Any]]
    names: tuple[str, ...]
    scales: tuple[str, ...]
    estimate: Floats
    lower: Floats
    upper: Floats
    standard_error: Floats
    p_value: Floats
    p_single: Floats
    level: float
    comparisons: int

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each pair and column, as plain data: ``pandas.DataFrame(found.rows())``.

        Returns
        -------
        list of dict

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
        >>> fit = hs.fit(X, by=["A", "B"] * 30, names=["lead"])
        >>> only = fit.differences().rows()[0]
        >>> only["first"], only["second"], bool(only["lower"] < -5.0 < only["upper"])
        ('A', 'B', True)
        """
        values = ("estimate", "lower", "upper", "standard_error", "p_value", "p_single")
        return [
            {"first": pair[0], "second": pair[1], "column": name, "scale": self.scales[j]}
            | {value: number_of(getattr(self, value)[k, j]) for value in values}
            for k, pair in enumerate(self.pairs)
            for j, name in enumerate(self.names)
            if not np.isnan(self.p_single[k, j])
        ]


def means_of(
    family: Family,
    by: str,
    groups: tuple[Any, ...],
    names: tuple[str, ...],
    transforms: Sequence[Transform] | None,
    level: float,
) -> GroupMeans:
    """Put intervals around the means of groups."""
    G, d = family.means.shape
    error = np.sqrt(np.diag(family.covariance)).reshape(G, d)
    half = quantile(0.5 + 0.5 * level, family.freedom) * error
    ends = family.means, family.means - half, family.means + half
    scales = [Identity()] * d if transforms is None else transforms
    mean, low, high = (
        np.column_stack([t.inverse(end[:, j]) for j, t in enumerate(scales)]) for end in ends
    )
    return GroupMeans(by, groups, names, ends[0], error, ends[1], ends[2], mean, low, high, level)


def differences_of(
    family: Family,
    groups: tuple[Any, ...],
    names: tuple[str, ...],
    transforms: Sequence[Transform] | None,
    level: float,
    which: str,
) -> GroupDifferences:
    """Compare all pairs of groups; ``which`` says what is one family."""
    d = len(names)
    if which not in ("all", "column"):
        raise InputError(
            f"family must be 'all' (every pair and column) or 'column' (the pairs of one column); got "
            f"{which!r}."
        )
    families = [None] if which == "all" else [[j] for j in range(d)]
    parts = [contrasts(family, columns) for columns in families]
    shape = parts[0].estimate.shape
    estimate, error, half, adjusted, single = (np.full(shape, np.nan) for _ in range(5))
    for part in parts:
        own = ~np.isnan(part.estimate)
        estimate[own], error[own] = part.estimate[own], part.standard_error[own]
        half[own] = part.critical(level) * part.standard_error[own]
        adjusted[own], single[own] = part.adjusted()[own], part.p_values()[own]
    scales, ends = [], [estimate, estimate - half, estimate + half]
    for j in range(d):
        scale = Identity() if transforms is None else transforms[j]
        if isinstance(scale, Log):
            for end in ends:
                end[:, j] = scale.inverse(end[:, j])
        named = {Identity: "difference", Log: "ratio"}
        scales.append(named.get(type(scale), f"difference of {scale.name}"))
    labels = [(groups[a], groups[b]) for a, b in parts[0].pairs]
    largest = max(part.family for part in parts)
    return GroupDifferences(
        labels,
        names,
        tuple(scales),
        ends[0],
        ends[1],
        ends[2],
        error,
        adjusted,
        single,
        level,
        largest,
    )
