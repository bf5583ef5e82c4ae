"""What a fit of groups is, and can do."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import share, whole_number
from halfseen.errors import InputError
from halfseen.grouped.comparisons import GroupDifferences, GroupMeans, differences_of, means_of
from halfseen.grouped.summary import as_dict, summarise
from halfseen.limits.find import find_group_limits
from halfseen.limits.table import LimitTable
from halfseen.parallel import interrupts_as_such
from halfseen.results import Fit, as_fit
from halfseen.seeds import RandomState, seed_of
from halfseen.solvers.groups.by_group import ByGroup
from halfseen.solvers.groups.differences import Family
from halfseen.solvers.groups.learn_groups import Groups, learn_groups
from halfseen.solvers.groups.tests import GroupTest
from halfseen.solvers.result import Estimate, Status, name_some

if TYPE_CHECKING:
    from halfseen.report import GroupPlots

# Permutations below which no p-value of 0.05 can come about.
FEWEST_REPLICATES = 19


class GroupedFit:
    """Groups of rows side by side; ``halfseen.fit(..., by=)`` returns it.

    Attributes
    ----------
    groups : tuple
        Labels: numbers by size, texts in natural order (A2 before A10), categories of a pandas frame in
        their own order.
    by : str
        What groups are by.
    names : tuple of str
        Columns.
    pooled : Fit
        Every group having the same mean and covariance.
    fits : mapping
        By label, the fit of each group. Groups without a covariance of their own have that of all; those
        with a column of which no value is seen have no fit.
    borrowed : mapping
        By label, why a group has no covariance of its own.
    covariance : array of shape (d, d)
        The covariance within groups, where it is equal in all of them.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> wells = np.repeat(["A", "B", "C"], 40)
    >>> truth = hs.Gaussian([1.0, 2.0], [[1.0, 0.6], [0.6, 1.0]])
    >>> rule = hs.DetectionLimits(lower=[0.5, 1.5])
    >>> full = np.random.default_rng(0).multivariate_normal(truth.mean, truth.covariance, 120)
    >>> full[wells == "C"] += 1.0
    >>> X = np.where(full >= [0.5, 1.5], full, np.nan)
    >>> fit = hs.fit(X, rule, by=wells, names=["lead", "zinc"], random_state=0)
    >>> fit
    GroupedFit(3 groups, columns=2, rows=120, status=CONVERGED)
    >>> fit.tests()[0].hypothesis, bool(fit.tests()[0].p_value < 0.001)
    ('equal means', True)
    >>> fit["A"].rows
    40
    """

    def __init__(self, groups: Groups) -> None:
        self._groups = groups

    @property
    def by(self) -> str:
        """What groups are by."""
        return self._groups.grouping.name

    @property
    def groups(self) -> tuple[Any, ...]:
        """Labels of the groups."""
        return self._groups.grouping.labels

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self._groups.pooled.names

    @property
    def rows(self) -> dict[Any, int]:
        """Number of rows of each group."""
        return dict(zip(self.groups, self._groups.rows.sizes.tolist(), strict=True))

    @cached_property
    def pooled(self) -> Fit:
        """Fit of all rows, every group having the same law."""
        return as_fit(self._groups.pooled)

    @cached_property
    def fits(self) -> Mapping[Any, Fit]:
        """Fit of each group."""
        return {key: as_fit(one) for key, one in self._groups.fits.items()}

    @property
    def borrowed(self) -> Mapping[Any, str]:
        """Why some groups have no covariance of their own."""
        return dict(self._groups.borrowed)

    @property
    def covariance(self) -> Any:
        """The covariance within groups, where it is equal in all of them."""
        return self.pooled._labelled(self._groups.covariance)

    @property
    def seen(self) -> NDArray[np.intp]:
        """Number of values that are seen, of each group and column."""
        return self._groups.rows.seen

    @property
    def status(self) -> Status:
        """The most serious of all fits; that groups borrow a covariance is not counted."""
        own = [fit.status for key, fit in self.fits.items() if key not in self.borrowed]
        if not self._groups.common.top.climb.reached:
            own.append(Status.NOT_CONVERGED)
        return max([self.pooled.status, *own], key=lambda one: one.severity)

    def __getitem__(self, label: Any) -> Fit:
        # Compared rather than looked up: anything may be asked for.
        if label in self.groups:
            if label in self.fits:
                return self.fits[label]
            raise InputError(
                f"{self.by} {label} has no fit of its own, since {self.borrowed[label]}; means() has "
                "what is known of its other columns."
            )
        known = name_some([str(one) for one in self.groups], 8)
        raise InputError(f"there is no {self.by} {label!r}; there are {known}.")

    def tests(self, replicates: int = 0, random_state: RandomState = 0) -> list[GroupTest]:
        """Test equal means (covariances being equal), equal covariances (whatever the means), and both.

        Likelihood-ratio tests, with p-values for few rows: those that hold exactly, or to second order,
        where nothing is hidden (Rao's F for means, Bartlett's correction for covariances). The latter
        two compare the groups that have covariances of their own.

        Parameters
        ----------
        replicates : int
            Permutations of the groups among the rows, from which p-values are taken instead: at least
            19, or 0 for none. Each takes a fit of all models. They need no normality.
        random_state : int, Generator or None
            Seed of the permutations.

        Returns
        -------
        list of GroupTest

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> fit = hs.fit(X, by=["A", "B"] * 20)
        >>> [test.method for test in fit.tests()]
        ["Rao's F", 'chi-square after Bartlett', 'chi-square after Bartlett']
        >>> test = fit.tests(replicates=19)[0]
        >>> test.method, bool(test.p_value >= 0.05)
        ('19 permutations', True)
        """
        replicates = whole_number("replicates", replicates, 0)
        if 0 < replicates < FEWEST_REPLICATES:
            raise InputError(
                f"replicates must be 0 or at least {FEWEST_REPLICATES}, of which the smallest p-value "
                f"is 0.05; got {replicates}."
            )
        if not replicates:
            return list(self._tests)
        return self._groups.tests(replicates, seed_of(random_state))

    @cached_property
    def _tests(self) -> list[GroupTest]:
        return self._groups.tests(0, 0)

    def means(self, level: float = 0.95) -> GroupMeans:
        """Return the mean of each group and column, with an interval for each by itself.

        Covariances are taken to be equal; ``fit[label]`` has a group by itself.

        Parameters
        ----------
        level : float

        Returns
        -------
        GroupMeans

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
        >>> hs.fit(X, by=["A", "B"] * 30).means().estimate.round().ravel()
        array([-0.,  5.])
        """
        level = share("level", level)
        scales = self._groups.pooled.transforms
        return means_of(self._family, self.by, self.groups, self.names, scales, level)

    def differences(self, level: float = 0.95, family: str = "all") -> GroupDifferences:
        """Compare the means of all pairs of groups, with family-wise intervals and adjusted p-values.

        All intervals together hold the truth with the probability ``level``: they are from the joint t
        law of all differences (with one column, nothing hidden and groups of one size those of Tukey).
        Covariances are taken to be equal.

        Parameters
        ----------
        level : float
        family : {"all", "column"}
            What the level is of: every pair and column, or the pairs of one column.

        Returns
        -------
        GroupDifferences

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.exp(np.random.default_rng(0).normal([[0.0], [2.0]] * 30))
        >>> apart = hs.fit(X, by=["A", "B"] * 30, transforms="log").differences()
        >>> apart.scales, bool(apart.lower[0, 0] < np.exp(-2.0) < apart.upper[0, 0])
        (('ratio',), True)
        """
        level = share("level", level)
        scales = self._groups.pooled.transforms
        return differences_of(self._family, self.groups, self.names, scales, level, family)

    @property
    def _family(self) -> Family:
        family = self._groups.family
        if family is None:
            raise InputError(
                "there are no standard errors of the means of groups: within groups the columns are as "
                "good as combinations of each other. Leave columns out, or add rows."
            )
        return family

    def limits(
        self,
        level: float = 0.95,
        coverage: float = 0.95,
        next_values: int = 1,
        probabilities: Sequence[float] = (0.5, 0.95),
        replicates: int = 500,
        random_state: RandomState = 0,
    ) -> LimitTable:
        """One-sided limits of each group by itself, as ``Fit.limits`` has them.

        Parameters
        ----------
        level, coverage, next_values, probabilities, replicates, random_state
            As in ``Fit.limits``.

        Returns
        -------
        LimitTable
            ``found["A", "lead", "mean"].upper`` is the UCL of group A.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
        >>> found = hs.fit(X, by=["A", "B"] * 30, names=["lead"]).limits()
        >>> bool(found["A", "lead", "mean"].upper < 1.0), found["B", "lead", "mean"].method
        (True, "Student's t")
        """
        asked = {
            "level": level, "coverage": coverage, "next_values": next_values,
            "probabilities": probabilities, "replicates": replicates, "random_state": random_state,
        }  # fmt: skip
        without = {label: self.borrowed[label] for label in self.groups if label not in self.fits}
        return find_group_limits(self.by, self.fits, without, self.names, **asked)

    def summary(self, level: float = 0.95) -> str:
        """Return means, tests and differences, in 80 columns of text.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        str

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> print(hs.fit(X, by=["A", "B"] * 20).summary()[:34])
        2 groups by group, 1 column, 40 ro
        """
        return summarise(self, share("level", level))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything as plain data; None where not known. ``halfseen fit --by --json`` prints it.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        dict

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal(size=(40, 1))
        >>> told = hs.fit(X, by=["A", "B"] * 20).to_dict()
        >>> told["groups"], told["rows"], len(told["tests"])
        (['A', 'B'], [20, 20], 3)
        """
        return as_dict(self, share("level", level))

    @property
    def plot(self) -> GroupPlots:
        """Figures: ``plot.means(column)`` and ``plot.differences(column)`` return Matplotlib axes."""
        from halfseen.report import GroupPlots

        return GroupPlots(self)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        call: str | None = None,
        title: str | None = None,
    ) -> Path:
        """Write one page of HTML with the groups side by side, which needs nothing else to be read.

        ``pooled.report`` and ``fit[label].report`` write pages of the whole table, and of a group.

        Parameters
        ----------
        path : path
        call : str, optional
            How to repeat the fit.
        title : str, optional

        Returns
        -------
        Path

        Examples
        --------
        >>> import tempfile, numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal(size=(40, 2))
        >>> fit = hs.fit(X, by=["A", "B"] * 20, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.report(f"{folder}/wells.html").name
        'wells.html'
        """
        from halfseen.report import write_group_report

        return write_group_report(self, path, call=call, title=title)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Refuse: tests need the table. Save ``fits[label]`` or ``pooled``, or write ``to_dict()``.

        Parameters
        ----------
        path : path

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> fit = hs.fit(np.random.default_rng(0).normal(size=(40, 1)), by=["A", "B"] * 20)
        >>> fit.save("wells.hsfit")
        Traceback (most recent call last):
            ...
        halfseen.errors.InputError: a fit of groups is not saved as one: its tests need the table. ...
        """
        raise InputError(
            "a fit of groups is not saved as one: its tests need the table. Save fits one by one, as in "
            "fit.pooled.save(path) or fit[label].save(path), or keep to_dict()."
        )

    def __repr__(self) -> str:
        rows = int(self._groups.rows.sizes.sum())
        return (
            f"GroupedFit({len(self.groups)} groups, columns={len(self.names)}, rows={rows}, "
            f"status={self.status.name})"
        )


class Door(Protocol):
    """``fit``: with ``by`` it returns a ``GroupedFit``."""

    @overload
    def __call__(self, X: Any, *args: Any, by: None = None, **options: Any) -> Fit: ...

    @overload
    def __call__(self, X: Any, *args: Any, by: Any, **options: Any) -> GroupedFit: ...


def returning_groups(solver: Callable[..., Estimate | ByGroup], module: str) -> Door:
    """Turn what the door finds into a fit, or a fit of groups.

    ``module`` is where the new function will be found, by its name, when it is unpickled.
    """

    @functools.wraps(solver)
    def run(*args: Any, **kwargs: Any) -> Any:
        with interrupts_as_such():
            found = solver(*args, **kwargs)
            return GroupedFit(learn_groups(found)) if isinstance(found, ByGroup) else as_fit(found)

    run.__module__ = module
    run.__annotations__ = {**solver.__annotations__, "return": Fit | GroupedFit}
    signature = inspect.signature(solver).replace(return_annotation=Fit | GroupedFit)
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run
