"""What a fit is, and can do: the numbers of a solver, with all that can be asked of them."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.checks import share
from halfseen.errors import InputError
from halfseen.limits.find import find_limits
from halfseen.limits.table import LimitTable
from halfseen.parallel import interrupts_as_such
from halfseen.solvers.inference.bootstrap import Bootstrap, bootstrap
from halfseen.solvers.inference.compared_structures import (
    USUAL,
    ComparedStructures,
    compare_structures,
)
from halfseen.solvers.inference.confidence import (
    Profile,
    confidence_interval,
    function_interval,
    profile,
)
from halfseen.solvers.inference.imputation import draw_imputations, impute
from halfseen.solvers.inference.likelihood import LogLikelihood, seen_log_likelihoods
from halfseen.solvers.inference.original_scale import OriginalScale, original_scale
from halfseen.solvers.inference.profile import Surface
from halfseen.solvers.inference.robust import robust_errors
from halfseen.solvers.inference.sensitivity import Sensitivity, sensitivity
from halfseen.solvers.inference.simulate_like import simulate_like
from halfseen.solvers.result import Estimate
from halfseen.solvers.saving import save
from halfseen.solvers.structures.learned import LearnedStructure, learned_structure, structure_of
from halfseen.solvers.summary import as_dict, summarise

if TYPE_CHECKING:
    from halfseen.missingness.base import Missingness
    from halfseen.report import Plots
    from halfseen.seeds import RandomState
    from halfseen.solvers.inference.intervals import Intervals, Limits
    from halfseen.solvers.inference.uncertainty import StandardErrors

P = ParamSpec("P")


@dataclass(frozen=True, eq=False)
class Graph:
    """Which columns depend on each other given all others.

    Attributes
    ----------
    names : tuple of str
    adjacency : boolean array of shape (d, d)
    partial_correlation : array of shape (d, d)
        Zero where there is no edge.
    """

    names: tuple[str, ...]
    adjacency: NDArray[np.bool_]
    partial_correlation: NDArray[np.float64]

    @property
    def edges(self) -> list[tuple[str, str, float]]:
        """The pairs that are joined, with their partial correlations, strongest first."""
        i, j = np.nonzero(np.triu(self.adjacency))
        strength = self.partial_correlation[i, j]
        order = np.argsort(-np.abs(strength), kind="stable")
        return [(self.names[i[k]], self.names[j[k]], float(strength[k])) for k in order]

    def __repr__(self) -> str:
        return f"Graph({len(self.names)} columns, {len(self.edges)} edges)"


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Estimate):
    """What was learned from a table with hidden values.

    Attributes
    ----------
    gaussian : Gaussian
        The recovered distribution.
    method : str
        Which solver ran.
    status : Status
        How it ended; the most serious of the notes.
    notes : tuple of Note
        What to know, each with the columns concerned.
    names : tuple of str
        Names of the columns.
    rows : int
        Number of rows in the data.
    seen_share : array of shape (d,)
        Share of the cells of each column that are seen.
    history : mapping
        What the solver recorded on its way. Of ``full``: ``steps``; ``gain_left``, what is estimated to
        be left to be gained in log-likelihood (at most a quarter of a unit where it converged);
        ``log_likelihoods``, ``gains`` (the same estimate) and ``trace`` (the means), one for each step;
        ``covariance_structure``; ``likelihoods_of_starts`` where there were several, with
        ``other_tops``, the Gaussians at lower tops that they led to; ``penalty`` of a sparse covariance.
        Log-likelihoods here are of standardised columns, and from the few points of a
        step where rows are sampled: ``log_likelihood`` is that of the table.
    source : Source or None
        The table that was fitted and the rule behind it, which imputation and likelihood need.
    uncertainty : StandardErrors or None
        Where the method gives them; ``standard_errors`` explains where it does not.
    monte_carlo_errors : MonteCarloErrors or None
        What sampling adds to the error, where the method samples.
    parameters : int
        Number of free parameters.
    precision : array of shape (d, d) or None
        The sparse precision matrix, with its zeros, where one was asked for.
    transforms : tuple of Transform or None
        The scale of each column, where columns were transformed. Mean, covariance and standard errors
        are on these scales; imputations, quantiles and likelihoods are in original units.
    powers : tuple of LearnedPower or None
        For each column whose power was learned: ``power``, ``standard_error`` and ``interval(level)``.
        None for others, and where no power was learned.
    frame : str or None
        The library of data frames that the table came from. With "pandas", vectors are labelled
        Series and matrices DataFrames.
    tails : Tails or None
        Of a fit with ``errors="t"``: its degrees of freedom. ``mean`` and ``covariance`` are then the
        location and the scatter matrix of a t distribution; the covariance of the values is
        ``tails.inflation`` times as large.
    loss : Loss or None
        Shares of values that were lost beside the rule, known or learned, where ``loss=`` was given.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> fit
    Fit(method='full', status=CONVERGED, columns=2, rows=500)
    >>> fit.names, fit.rows, fit.seen_share.round(1)
    (('lead', 'zinc'), 500, array([0.8, 0.7]))
    >>> abs(fit.mean - [1.0, 0.5]) < 0.2
    array([ True,  True])
    >>> fit.status.value
    'The solver settled on an answer inside its domain.'
    """

    def robust_standard_errors(self, clusters: ArrayLike | None = None) -> StandardErrors:
        """Return standard errors from the scatter of the rows, not from the model (a sandwich).

        They hold where rows are not quite Gaussian, as far as the estimate itself does: means and
        covariances of columns that are mostly seen. A warning says which differ much from the model's.

        Parameters
        ----------
        clusters : array-like of shape (n,), optional
            The cluster of each row, where rows belong together: samples of one well, visits of one
            patient. Rows of different clusters are independent.

        Returns
        -------
        StandardErrors

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, random_state=0)
        >>> ratio = fit.robust_standard_errors().mean / fit.standard_errors.mean
        >>> bool((abs(ratio - 1.0) < 0.2).all())  # the model is right
        True
        """
        return robust_errors(self, clusters)

    @overload
    def confidence_interval(
        self,
        level: float = ...,
        kind: str = ...,
        *,
        replicates: int = ...,
        random_state: RandomState = ...,
    ) -> Intervals: ...

    @overload
    def confidence_interval(
        self, level: float = ..., kind: str = ..., *, of: Callable[..., ArrayLike]
    ) -> Limits: ...

    def confidence_interval(
        self,
        level: float = 0.95,
        kind: str = "auto",
        of: Callable[..., ArrayLike] | None = None,
        replicates: int = 400,
        random_state: RandomState = 0,
    ) -> Intervals | Limits:
        """Confidence intervals for means, standard deviations, covariances and correlations.

        Student's t, chi-square and Fisher's transform take account of small numbers of rows.

        Parameters
        ----------
        level : float
            Probability that an interval holds what it is for.
        kind : {"auto", "wald", "profile", "bootstrap"}
            From standard errors ("wald"), or from how the likelihood falls ("profile"), which is right
            where it is lopsided, and may have no end. "auto" takes standard errors where as much is
            known as from 100 complete rows, or where the profile agrees with them, and the profile
            elsewhere; ``methods`` of the answer says which. It needs the table, no more than 42
            columns, and no more than 60 parameters of one kind to look at, in some seconds; else it
            is "wald".
            "bootstrap" refits tables that are simulated from the fit (rows drawn anew, where no rule is
            stated), and takes how far estimates are off in their own standard errors (studentised).
        of : callable, optional
            ``of(mean, covariance)`` returns a number or an array; intervals are then for that.
        replicates : int
            Tables of the bootstrap.
        random_state : int, Generator or None
            Seed of the bootstrap.

        Returns
        -------
        Intervals
            ``mean``, ``standard_deviation``, ``covariance`` and ``correlation``, each with ``lower`` and
            ``upper``. With ``of``: ``lower`` and ``upper`` alone.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, random_state=0)
        >>> interval = fit.confidence_interval(0.99)
        >>> bool(interval.mean.lower[0] < 1.0 < interval.mean.upper[0])
        True
        >>> low, high = fit.confidence_interval(of=lambda mean, covariance: mean[0] - mean[1])
        >>> bool(low < 0.5 < high)
        True
        """
        if of is None:
            how = kind, replicates, random_state
            if kind == "bootstrap":
                return confidence_interval(self, level, *how)
            key = share("level", level), str(kind)
            if key not in self._intervals:
                self._intervals[key] = confidence_interval(self, level, *how)
            return self._intervals[key]
        return function_interval(self, of, level, kind)

    def profile(
        self, of: str | Callable[..., ArrayLike], *columns: int | str, level: float = 0.95
    ) -> Profile:
        """Follow the likelihood as one number moves, with everything else at its best.

        ``fit.plot.profile`` draws it.

        Parameters
        ----------
        of : {"mean", "standard_deviation", "covariance", "correlation"} or callable
            What moves; or ``of(mean, covariance)`` that returns a number.
        *columns : int or str
            One column, or two, by name or position.
        level : float
            Of the interval.

        Returns
        -------
        Profile
            ``at``, ``log_likelihood`` (less the top), ``interval`` and what it takes to draw them.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 60)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> profile = fit.profile("correlation", "lead", "zinc")
        >>> profile.name
        'correlation of lead and zinc'
        >>> bool(profile.interval.lower < 0.6 < profile.interval.upper)
        True
        """
        return profile(self, of, columns, level)

    @cached_property
    def _intervals(self) -> dict[tuple[float, str], Intervals]:
        """Intervals that were asked for: they take time, and the summary and the page want them too."""
        return {}

    @cached_property
    def surface(self) -> Surface:
        """The likelihood around the estimate, which profiles go along."""
        return Surface.of(self)

    @cached_property
    def log_likelihood(self) -> LogLikelihood:
        """Log-likelihood of what is seen, with the standard error of its estimate.

        Exact where no row has more than two cells that a rule hides, with no inequality between them.
        Elsewhere points are added until the standard error is below a quarter of a unit, up to a
        thousand points a row: ``standard_error`` says what was reached.
        """
        return LogLikelihood.of(self)

    def score_rows(
        self, X: Any = None, missingness: Missingness | None = None, missing_at_random: Any = None
    ) -> NDArray[np.float64]:
        """Log-likelihood of what is seen of each row, of the fitted table or of another one.

        Parameters
        ----------
        X, missingness, missing_at_random
            As in ``impute``.

        Returns
        -------
        array of shape (n,)

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> scores = fit.score_rows()
        >>> scores.shape, bool(abs(scores.sum() - fit.log_likelihood.value) < 1e-9)
        ((500,), True)
        >>> usual, odd = fit.score_rows([[1.0, 0.5], [5.0, 0.1]])
        >>> bool(odd < usual - 5)
        True
        """
        return seen_log_likelihoods(self, X, missingness, missing_at_random)[0]

    @property
    def aic(self) -> float:
        """Akaike's criterion, −2·log-likelihood + 2·parameters."""
        return -2.0 * self.log_likelihood.value + 2.0 * self._parameters()

    @property
    def bic(self) -> float:
        """Schwarz' criterion, −2·log-likelihood + log(rows)·parameters."""
        return -2.0 * self.log_likelihood.value + float(np.log(self.rows)) * self._parameters()

    def _parameters(self) -> int:
        if self.parameters is None:
            raise InputError(f'the criteria need a fit by method="full"; this is {self.method!r}.')
        return self.parameters

    def impute(
        self, X: Any = None, missingness: Missingness | None = None, missing_at_random: Any = None
    ) -> NDArray[np.float64]:
        """Return a table with each hidden cell at its mean given what is seen of its row.

        The mean is taken over the region that the rule leaves, in original units; where a set has
        several pieces and the mean falls between them, it is the mean of the likeliest piece. Averages
        of such a table are right unless that happened, but its variances are too small: use
        ``draw_imputations`` for anything but single values.

        Parameters
        ----------
        X : array-like of shape (n, d), data frame or IntervalData, optional
            By default the table that was fitted.
        missingness : Missingness, optional
            The rule of ``X``; that of the fit by default.
        missing_at_random : boolean array, optional
            Cells of ``X`` that are simply missing.

        Returns
        -------
        array of shape (n, d)

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 2000), rule, random_state=0)
        >>> filled = fit.impute()
        >>> bool((filled[fit.source.X.values != fit.source.X.values] < 0.0).all())
        True
        """
        return impute(self, X, missingness, missing_at_random)

    def draw_imputations(
        self,
        X: Any = None,
        m: int = 20,
        random_state: RandomState = None,
        missingness: Missingness | None = None,
        missing_at_random: Any = None,
    ) -> NDArray[np.float64]:
        """Return m completed tables, drawn with the uncertainty of the parameters (proper imputation).

        Each table has parameters of its own: drawn from the normal approximation to their
        distribution, or, where that is not known (regularised fits, many columns), refitted to rows
        drawn with replacement. Analyse each table, and combine the answers with ``halfseen.pool``.

        Parameters
        ----------
        X, missingness, missing_at_random
            As in ``impute``.
        m : int
            Number of tables.
        random_state : int, Generator or None

        Returns
        -------
        array of shape (m, n, d)

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> tables = fit.draw_imputations(m=5, random_state=1)
        >>> tables.shape
        (5, 500, 2)
        >>> hidden = X != X
        >>> bool((tables[:, hidden] < 0.0).all())  # where the rule says that they are
        True
        >>> pooled = hs.pool(tables.mean(axis=1), tables.var(axis=1) / 500)
        >>> bool(abs(pooled.estimate[1] - 0.5) < 0.2)
        True
        """
        return draw_imputations(self, X, m, random_state, missingness, missing_at_random)

    def bootstrap(
        self,
        replicates: int = 200,
        kind: str = "rows",
        statistic: Callable[..., ArrayLike] | None = None,
        random_state: RandomState = None,
    ) -> Bootstrap:
        """Refit tables drawn anew, each started from this fit.

        Parameters
        ----------
        replicates : int
        kind : {"rows", "parametric"}
            Rows drawn with replacement, or rows simulated from the fit and hidden by its rule.
        statistic : callable, optional
            ``statistic(mean, covariance)`` is kept for each replicate too.
        random_state : int, Generator or None

        Returns
        -------
        Bootstrap
            With ``standard_error(of)`` and ``interval(of, level)``.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 500), rule, random_state=0)
        >>> errors = fit.bootstrap(20, random_state=0).standard_error("mean")
        >>> bool(0.02 < errors[0] < 0.1)
        True
        """
        return bootstrap(self, replicates, kind, statistic, random_state)

    def sensitivity(
        self,
        shares: Sequence[float] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5),
        factors: Sequence[float] = (0.5, 0.7, 1.0, 1.4, 2.0),
    ) -> Sensitivity:
        """Refit with limits that are off, and with hidden cells that were hidden for other reasons.

        ``fit.plot.sensitivity`` draws it.

        Parameters
        ----------
        shares : sequence of float
            Shares of the hidden cells of every column with a rule that are taken to be values lost for
            reasons that have nothing to do with any value.
        factors : sequence of float
            Factors of all limits of hidden cells, in original units, where they are positive; seen
            values stay as they are.

        Returns
        -------
        Sensitivity
            ``sentences()``, ``bounds(share=0.3)`` and ``moves()``, and all estimates.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=[0.5, 0.5])
        >>> X = hs.simulate(hs.Gaussian([1.0, 1.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> print(fit.sensitivity().sentences()[0])
        The sign of the correlation of lead and zinc holds up to a share of 50 %, the most looked at.
        """
        return sensitivity(self, shares, factors)

    @cached_property
    def structure(self) -> LearnedStructure | None:
        """Parameters of the structure of the covariance, by name; None where it has none of its own.

        ``fit.structure["correlation"]`` has ``value`` and ``standard_error``.
        """
        structure = structure_of(self.history, self.names)
        if structure is None:
            return None
        whole = self.uncertainty is not None and self.uncertainty.parameters is not None
        errors = self.uncertainty.of if whole and self.uncertainty is not None else None
        return learned_structure(structure, self.gaussian.covariance, errors)

    def compare_structures(self, structures: Sequence[Any] = USUAL) -> ComparedStructures:
        """Fit the same table with several structures of the covariance, and compare them.

        Parameters
        ----------
        structures : sequence of structures or texts
            By default free, diagonal, and those of repeated measures.

        Returns
        -------
        ComparedStructures
            ``rows`` with parameters, log-likelihood, AIC and BIC of each; ``best()``; printed as a
            table.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rule = hs.DetectionLimits(lower=-0.5)
        >>> X = hs.simulate(hs.Gaussian(np.zeros(4), 0.6 + 0.4 * np.eye(4)), rule, 300)
        >>> fit = hs.fit(X, rule, random_state=0)
        >>> fit.compare_structures(["free", hs.AR1(), "compound_symmetry"]).best()
        'compound_symmetry'
        """
        return compare_structures(self, structures)

    def graph(self) -> Graph:
        """Conditional-independence graph of a fit with ``covariance="sparse"``.

        Two columns without an edge are independent given all others.

        Returns
        -------
        Graph
            ``adjacency``, ``partial_correlation`` and ``edges``.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> chain = np.linalg.inv([[1.0, -0.5, 0.0], [-0.5, 1.3, -0.5], [0.0, -0.5, 1.0]])
        >>> rule = hs.DetectionLimits(lower=-0.5)
        >>> X = hs.simulate(hs.Gaussian([0.0, 0.0, 0.0], chain), rule, 1000)
        >>> fit = hs.fit(X, rule, covariance="sparse", names=["a", "b", "c"], random_state=0)
        >>> sorted(edge[:2] for edge in fit.graph().edges)
        [('a', 'b'), ('b', 'c')]
        """
        if self.precision is None:
            raise InputError(
                'a graph needs a sparse precision matrix: fit with covariance="sparse".'
            )
        scale = np.sqrt(np.diag(self.precision))
        partial = -self.precision / np.outer(scale, scale)
        np.fill_diagonal(partial, 1.0)
        adjacency = self.precision != 0.0
        np.fill_diagonal(adjacency, False)
        return Graph(
            self.names,
            adjacency,
            np.where(adjacency | np.eye(len(scale), dtype=bool), partial, 0.0),
        )

    def simulate(
        self,
        n: int,
        missingness: Missingness | None = None,
        random_state: RandomState = 0,
    ) -> Any:
        """Draw a table like the one that was fitted, in its units; hidden cells are NaN.

        Parameters
        ----------
        n : int
            Number of rows.
        missingness : Missingness, optional
            What hides a value, in original units; that of the fit by default. Nothing is hidden where
            there is none.
        random_state : int, Generator or None

        Returns
        -------
        array of shape (n, d), or a frame of the library that the table came from

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 500), rule, random_state=0)
        >>> fit.simulate(3, hs.DetectionLimits(lower=-9.0)).shape
        (3, 1)
        """
        return simulate_like(self, n, missingness, random_state)

    def original_scale(
        self,
        level: float = 0.95,
        probabilities: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
        labels: bool = True,
        kind: str = "auto",
    ) -> OriginalScale:
        """Medians, means and quantiles of each column in the units of the table, with intervals.

        Parameters
        ----------
        level : float
            Of the confidence intervals.
        probabilities : sequence of float
            Which quantiles.
        labels : bool
            Whether to label results with names where the table was a pandas frame.
        kind : {"auto", "wald", "profile"}
            Of the intervals, as in ``confidence_interval``.

        Returns
        -------
        OriginalScale
            ``median`` (the geometric mean of columns that were fitted as logarithms), ``mean``,
            ``quantiles`` and the ends of their intervals.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> x = np.exp(np.random.default_rng(0).normal(size=(2000, 1)))
        >>> x[x < 0.5] = np.nan
        >>> fit = hs.fit(x, hs.DetectionLimits(lower=0.5), transforms="log", random_state=0)
        >>> found = fit.original_scale()
        >>> bool(found.median_lower[0] < 1.0 < found.median_upper[0])
        True
        """
        found = original_scale(self, level, probabilities, kind)
        return found.labelled() if labels and self.frame == "pandas" else found

    def limits(
        self,
        level: float = 0.95,
        coverage: float = 0.95,
        next_values: int = 1,
        probabilities: Sequence[float] = (0.5, 0.95),
        replicates: int = 500,
        random_state: RandomState = 0,
    ) -> LimitTable:
        """One-sided limits that are reported: UCL95 of means, UTL 95-95, prediction limits.

        In the units of the table, each with its method; beside them the Kaplan-Meier mean and
        regression on order statistics (ROS). Where no method holds, a word says why. See docs/limits.md.

        Parameters
        ----------
        level : float
            Confidence of each limit by itself, above a half.
        coverage : float
            Share of all values that lie below the upper tolerance limit, and above the lower one.
        next_values : int
            How many further values all lie below the upper prediction limit, or above the lower one.
        probabilities : sequence of float
            Quantiles.
        replicates : int
            Simulated columns behind the limits of log-normal means.
        random_state : int, Generator or None
            Their seed.

        Returns
        -------
        LimitTable
            ``found["lead", "mean"].upper`` is the UCL, ``found["lead", "tolerance 0.95"].upper`` the
            UTL, ``found["lead", "next 1"].upper`` the prediction limit; ``rows()`` for a data frame.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> x = np.exp(np.random.default_rng(0).normal(size=(40, 1)))
        >>> x[x < 0.5] = np.nan
        >>> rule = hs.DetectionLimits(lower=0.5)
        >>> fit = hs.fit(x, rule, names=["lead"], transforms="log", random_state=0)
        >>> found = fit.limits()
        >>> found["lead", "mean"].method, bool(found["lead", "mean"].upper > np.exp(0.5))
        ('calibrated root', True)
        """
        return find_limits(
            self, level, coverage, next_values, probabilities, replicates, random_state
        )

    def summary(self, most_columns: int = 40, level: float = 0.95) -> str:
        """Return a table of what was learned, in 80 columns of text.

        Parameters
        ----------
        most_columns : int
            As many are listed.
        level : float
            Of the intervals.

        Returns
        -------
        str

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> print(fit.summary()[:55])
        Multivariate normal distribution of 2 columns, 500 rows
        """
        return summarise(self, most_columns, share("level", level))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything that was learned as plain data, by names of columns; None where not known.

        An end of an interval that is None is no end: the interval goes on for ever.

        This is what ``halfseen fit --json`` prints.

        Parameters
        ----------
        level : float
            Of the intervals.

        Returns
        -------
        dict

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> told = fit.to_dict()
        >>> told["method"], told["rows"], told["columns"]
        ('full', 500, ['lead', 'zinc'])
        >>> round(told["mean"]["lead"], 1)
        1.0
        """
        return as_dict(self, level)

    @property
    def plot(self) -> Plots:
        """Figures of the fit: ``plot.pair(i, j)``, ``.marginal(i)``, ``.correlation()``, ``.trace()``.

        And ``.profile(of, i)`` and ``.sensitivity()``. Each returns Matplotlib axes.
        """
        from halfseen.report import Plots

        return Plots(self)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        diagnosis: Any = None,
        call: str | None = None,
        title: str | None = None,
        limits: LimitTable | None = None,
    ) -> Path:
        """Write one page of HTML that shows what was learned, and needs nothing else to be read.

        Parameters
        ----------
        path : path
        diagnosis : Diagnosis, optional
            What ``halfseen.diagnose`` said, to be shown with the assumptions.
        call : str, optional
            How to repeat the fit, where it is not told by the fit itself.
        title : str, optional
        limits : LimitTable, optional
            What ``fit.limits()`` found, for a section of its own.

        Returns
        -------
        Path

        Examples
        --------
        >>> import tempfile, halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
        >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = fit.report(f"{folder}/lead.html", title="Lead and zinc")
        ...     page.name, "Lead and zinc" in page.read_text(encoding="utf-8")
        ('lead.html', True)
        """
        from halfseen.report import write_report

        return write_report(self, path, diagnosis=diagnosis, call=call, title=title, limits=limits)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to one file, which ``halfseen.load`` reads to the last bit.

        The table is not written, and neither is a rule that is known only as a function: a file holds
        no code. docs/saved-fits.md describes the file.

        Parameters
        ----------
        path : path of the file
            It is written whole or not at all. ``.hsfit`` is a usual ending.

        Examples
        --------
        >>> import tempfile, halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> fit = hs.fit(hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 500), rule, random_state=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/lead.hsfit")
        ...     hs.load(f"{folder}/lead.hsfit").gaussian == fit.gaussian
        True
        """
        save(self, path)


def as_fit(estimate: Estimate) -> Fit:
    """Return a fit with the numbers of a solver."""
    return Fit(**{field.name: getattr(estimate, field.name) for field in fields(estimate)})


def returning_fits(solver: Callable[P, Estimate], module: str) -> Callable[P, Fit]:
    """Turn what a solver finds into a fit, which more can be asked of.

    ``module`` is where the new function will be found, by its name, when it is unpickled.
    """

    @functools.wraps(solver)
    def run(*args: P.args, **kwargs: P.kwargs) -> Fit:
        with interrupts_as_such():
            return as_fit(solver(*args, **kwargs))

    run.__module__ = module
    run.__annotations__ = {**solver.__annotations__, "return": Fit}
    signature = inspect.signature(solver).replace(return_annotation=Fit)
    run.__signature__ = signature  # type: ignore[attr-defined]
    return run
