"""What a regression is, and can do: coefficients, how sure they are, and what they say of rows."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import share, whole_number
from halfseen.data.design import Design
from halfseen.errors import InputError
from halfseen.regression.effects import (
    ConditionalRegression,
    MarginalEffects,
    conditional,
    marginal_effects,
)
from halfseen.regression.errors import RegressionErrors, RegressionIntervals, robust_covariance
from halfseen.regression.outcome_cells import outcomes_like
from halfseen.regression.saving import save
from halfseen.regression.summary import as_dict, summarise
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.solvers.inference.intervals import Limits
from halfseen.solvers.inference.uncertainty import principal_axes
from halfseen.solvers.regression.estimate import RegressionEstimate
from halfseen.solvers.regression.learn_truncated import quantile_residuals
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.regression.places import Place
from halfseen.solvers.regression.prediction import (
    category_tables,
    drawn_outcomes,
    expected_outcomes,
    place_of,
    predicted,
    predictor,
)
from halfseen.solvers.structures.learned import LearnedStructure, learned_structure, structure_of
from halfseen.theta import symmetric

if TYPE_CHECKING:
    from halfseen.report import RegressionPlots

Floats = NDArray[np.float64]

KINDS = ("latent", "seen", "hidden_probability", "given_seen", "categories")
# Those whose standard errors come from those of the parameters.
WITH_ERRORS = tuple(kind for kind in KINDS if kind != "given_seen")


@dataclass(frozen=True, eq=False, repr=False)
class RegressionFit(RegressionEstimate):
    """What a regression learned; see ``halfseen.regress``.

    Attributes
    ----------
    outcomes, terms : tuple of str
        Names of the equations, and of all regressors.
    weights : array of shape (outcomes, terms)
        Coefficients; 0 where a term does not stand in an equation.
    residual : array of shape (outcomes, outcomes)
        Covariance of residuals.
    mask, free : boolean arrays of shape (outcomes, terms)
        Which terms stand in which equation, and which coefficients were learned.
    kinds : tuple of str
        "continuous", "binary" or "ordered", for each outcome.
    categories, cut_points : dict
        Of latent outcomes, and of ordered ones. The first cut point is 0.
    log_likelihood, log_likelihood_error : float
        Of the outcomes given the regressors, and its Monte-Carlo error: 0 where every row can be
        integrated.
    parameters : int
        How many were learned.
    rows : int
    seen_share : array of shape (outcomes,)
        Share of rows in which the value of an outcome is seen.
    status : Status
        How it ended; the most serious of the notes.
    notes : tuple of Note
    history : mapping
        ``steps``, ``gain_left`` and ``log_likelihoods`` of the climb.
    truncation : pair of arrays or None
        Ends of the set in which rows are in the table at all, where others are not.
    design : Design
        How regressors are made of columns.
    clusters : int or None
        How many clusters of rows standard errors are from.
    is_robust : bool
        Whether standard errors are those of the sandwich.
    is_weighted : bool
        Whether rows have weights. Then the log-likelihood is a pseudo-log-likelihood, in which the
        weights are 1 on average.
    penalty : Penalty or None
        ``kind`` and ``strength`` of what pulled coefficients towards 0. Where the strength was chosen,
        ``history`` has ``strengths``, their ``held_out`` log-likelihoods, and the ``path`` of
        coefficients.
    covariance : array or None
        Of the estimates of all parameters, in the order of ``parameter_names``.
    data : the table that was fitted, or None
    frame : str or None
        "pandas" where tables that come out are frames.
    equations, place, source
        The same as the engine had it, and its rows; ``source`` is None in a fit that was loaded.
    kept : mapping or None
        What a fit that was loaded knows of its rows.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rng = np.random.default_rng(0)
    >>> data = {"age": rng.uniform(20, 70, 500)}
    >>> lead = 0.02 * data["age"] + rng.normal(size=500)
    >>> data["lead"] = np.where(lead >= 0.5, lead, np.nan)
    >>> fit = hs.regress("lead ~ age", data, {"lead": ">=0.5"}, random_state=0)
    >>> fit
    RegressionFit(lead; status=CONVERGED, terms=2, rows=500)
    >>> bool(abs(fit.weights[0, 1] - 0.02) < 4 * fit.standard_errors.weights[0, 1])
    True
    """

    design: Design | None = None
    data: Any = None
    frame: str | None = None
    clusters: int | None = None
    is_robust: bool = False

    def _label(self, kind: str, values: Floats) -> Any:
        """Put names on a table of coefficients, of residuals or of outcomes."""
        if self.frame != "pandas":
            return values
        import pandas as pd

        outcomes = pd.Index(list(self.outcomes))
        if kind == "outcomes":
            return pd.Series(values, index=outcomes)
        rows = pd.Index(list(self.terms)) if kind == "coefficients" else outcomes
        return pd.DataFrame(values, index=rows, columns=outcomes)

    @property
    def coefficients(self) -> Any:
        """Coefficients, of shape (terms, outcomes); NaN where a term does not stand in an equation."""
        return self._label("coefficients", np.where(self.mask, self.weights, np.nan).T)

    @property
    def residual_covariance(self) -> Any:
        """Covariance of residuals; variances of latent outcomes are 1.

        NaN for outcomes of which no row says something of both: ``confidence_interval()`` has between
        which values the others leave their correlation.
        """
        return self._label("residuals", self._known(self.residual))

    @property
    def residual_deviations(self) -> Any:
        """Standard deviations of residuals."""
        return self._label("outcomes", np.sqrt(np.diag(self.residual)))

    @property
    def residual_correlation(self) -> Any:
        """Correlations of residuals; NaN where ``residual_covariance`` is."""
        scale = np.sqrt(np.diag(self.residual))
        return self._label("residuals", self._known(self.residual / np.outer(scale, scale)))

    def _known(self, matrix: Floats) -> Floats:
        """Leave out of a matrix of residuals what no row says anything of."""
        out = np.array(matrix)
        for i, j in self.undetermined:
            out[i, j] = out[j, i] = np.nan
        return out

    @cached_property
    def standard_errors(self) -> RegressionErrors:
        """Standard errors of coefficients and residuals; ``.of(function)`` of anything smooth."""
        if self.penalty is not None:
            raise InputError(
                f"coefficients that a penalty ({self.penalty.kind}) pulled towards 0 are off on "
                "purpose, and no standard error says by how much. Fit the terms that matter without "
                "penalty=, on other rows than those that chose them, or see how they change over fits "
                "to rows drawn anew."
            )
        if self.covariance is None:
            raise InputError(
                "this regression has no standard errors: it was fitted with standard_errors=False, or "
                "its likelihood has no top."
            )
        return RegressionErrors(self, self.covariance, self.clusters, self.is_robust, self._label)

    @cached_property
    def structure(self) -> LearnedStructure | None:
        """Parameters of the structure of the covariance of residuals; None where it has none."""
        structure = structure_of(self.history, self.outcomes)
        if structure is None:
            return None
        errors = None if self.covariance is None else self.standard_errors.of
        return learned_structure(structure, self.residual, errors)

    @property
    def aic(self) -> float:
        """Akaike's information criterion; NaN where there is no likelihood to speak of."""
        if self.no_likelihood:
            return math.nan
        return 2.0 * self.parameters - 2.0 * self.log_likelihood

    @property
    def bic(self) -> float:
        """Schwarz's information criterion; NaN where there is no likelihood to speak of."""
        if self.no_likelihood:
            return math.nan
        return float(np.log(self.rows)) * self.parameters - 2.0 * self.log_likelihood

    def confidence_interval(self, level: float = 0.95) -> RegressionIntervals:
        """Return intervals of coefficients, deviations and correlations of residuals.

        Student's t for coefficients and chi-square for deviations, with as many rows as would know as
        much; exact where nothing is hidden.

        Parameters
        ----------
        level : float

        Returns
        -------
        RegressionIntervals
            Each of ``coefficients``, ``residual_deviations`` and ``residual_correlation`` has ``lower``
            and ``upper``.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(200, 1))
        >>> fit = hs.regress(2.0 * x + rng.normal(size=(200, 1)), x)
        >>> ends = fit.confidence_interval(0.99).coefficients
        >>> bool(ends.lower[1, 0] < 2.0 < ends.upper[1, 0])
        True
        """
        level, errors = share("level", level), self.standard_errors

        def named(kind: str, limits: Limits) -> Limits:
            return Limits(*(self._label(kind, end) for end in limits))

        of_terms = errors.coefficient_limits(level)
        return RegressionIntervals(
            level,
            named("coefficients", Limits(of_terms.lower.T, of_terms.upper.T)),
            named("outcomes", errors.deviation_limits(level)),
            named("residuals", errors.correlation_limits(level)),
        )

    def robust(self, clusters: Any = None) -> RegressionFit:
        """Return the same fit with standard errors that do not believe the model (the sandwich).

        Parameters
        ----------
        clusters : array-like of shape (n,) or str, optional
            What rows belong together, or the column of the data that says so. Each row by itself
            otherwise.

        Returns
        -------
        RegressionFit

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(500, 1))
        >>> y = x + np.abs(x) * rng.normal(size=(500, 1))
        >>> fit = hs.regress(y, x)
        >>> robust = fit.robust()
        >>> bool(robust.standard_errors.weights[0, 1] > 1.3 * fit.standard_errors.weights[0, 1])
        True
        """
        covariance, count = robust_covariance(self, clusters)
        return replace(self, covariance=covariance, clusters=count, is_robust=True)

    def predict(self, new: Any = None, kind: str = "latent", standard_error: bool = False) -> Any:
        """Say something of new rows, or of those that were fitted.

        Parameters
        ----------
        new : data frame, mapping or array, optional
            Rows with the columns that regressors are made of; those that were fitted otherwise.
            ``given_seen`` needs the outcomes too.
        kind : {"latent", "seen", "hidden_probability", "given_seen", "categories"}
            - ``latent``: the mean of the outcome, seen or not (Γ w).
            - ``seen``: its mean where it is seen; of a binary outcome, the probability of its second
              category.
            - ``hidden_probability``: of being hidden by the rule, or not selected.
            - ``given_seen``: the outcome where it is seen, and its mean given all that is seen of
              the row where not.
            - ``categories``: the probabilities of the categories of latent outcomes, by name.
        standard_error : bool
            Whether to return standard errors too, from those of the parameters (of all but
            ``given_seen``).

        Returns
        -------
        array of shape (m, outcomes), or a pandas frame; of ``categories`` one for each latent outcome,
        by name. A pair of them with standard errors.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 1))
        >>> y = x + rng.normal(size=(400, 1))
        >>> fit = hs.regress(np.where(y > 0, y, np.nan), x, hs.DetectionLimits(lower=0.0))
        >>> fit.predict([[-1.0], [1.0]]).round()
        array([[-1.],
               [ 1.]])
        >>> fit.predict([[-1.0], [1.0]], kind="hidden_probability").round(1)
        array([[0.9],
               [0.1]])
        """
        if not isinstance(kind, str) or kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
        if standard_error and kind not in WITH_ERRORS:
            raise InputError(
                f"there are standard errors of {', '.join(WITH_ERRORS)}; got kind={kind!r}. Leave "
                "standard_error out, or draw_imputations for what hidden outcomes can be."
            )
        W = self._regressors(new)
        index = self._index_of(new)
        if kind == "given_seen":
            outcomes = self._outcomes_of(new)
            values = expected_outcomes(self, outcomes, W)
            return self._rows(values, index)
        if kind == "categories":
            return self._categories(W, index, standard_error)

        def ask(weights: Floats, residual: Floats) -> Floats:
            return predicted(self, kind, weights, residual, W)

        said = ask(self.weights, self.residual)
        value = self._rows(said, index)
        if not standard_error:
            return value

        def of_vector(vector: Floats) -> Floats:
            weights, residual, _ = self.unpack(vector)
            return np.nan_to_num(ask(weights, residual))

        errors = self.standard_errors.of_vector(of_vector).standard_error
        return value, self._rows(np.where(np.isnan(said), np.nan, errors), index)

    def marginal_effects(
        self, variable: str, kind: str = "seen", new: Any = None
    ) -> MarginalEffects:
        """Return how a prediction changes with a variable, on average over rows, with standard errors.

        Of a number: the slope. Of a category: the change from the reference to each other one.

        Parameters
        ----------
        variable : str
            A column of the data.
        kind : {"latent", "seen", "hidden_probability", "categories"}
            Which prediction, as in ``predict``.
        new : data frame or mapping, optional
            Rows to average over; those that were fitted otherwise.

        Returns
        -------
        MarginalEffects
            ``effects`` and ``standard_errors``, a row for each change and a column for each outcome;
            with ``categories`` a column for each category of a latent outcome, "grade: low".

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> age = rng.uniform(20, 70, 500)
        >>> lead = 0.02 * age + rng.normal(size=500)
        >>> data = {"age": age, "lead": np.where(lead >= 0.5, lead, np.nan)}
        >>> fit = hs.regress("lead ~ age", data, {"lead": ">=0.5"}, random_state=0)
        >>> bool(fit.marginal_effects("age").effects[0, 0] < fit.weights[0, 1])  # limits flatten it
        True
        """
        return marginal_effects(self, variable, kind, new)

    def given(self, outcomes: str | Sequence[str]) -> ConditionalRegression:
        """Return the regression of the other outcomes on some of them, and on the regressors.

        For covariates that are hidden themselves, by limits or for no reason: put them on the left of
        the formula, beside the outcome, so that they are modelled too, and ask for the outcome given
        them. Then they must be normal, given the regressors on the right.

        Parameters
        ----------
        outcomes : str or sequence of str

        Returns
        -------
        ConditionalRegression
            ``coefficients``, ``standard_errors`` and ``residual_covariance``.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> dose = rng.normal(size=500)
        >>> lead = 2.0 * dose + rng.normal(size=500)
        >>> data = {"dose": np.where(dose > -0.5, dose, np.nan), "lead": lead}
        >>> fit = hs.regress("lead + dose ~ 1", data, {"dose": ">=-0.5"}, random_state=0)
        >>> slope = fit.given("dose")
        >>> bool(abs(slope.coefficients[1, 0] - 2.0) < 4 * slope.standard_errors[1, 0])
        True
        """
        return conditional(self, outcomes)

    def simulate(self, new: Any = None, random_state: RandomState = None) -> Any:
        """Draw complete outcomes of new rows, or of those that were fitted; latent ones as they are.

        Parameters
        ----------
        new : data frame, mapping or array, optional
        random_state : int, Generator or None

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 1))
        >>> fit = hs.regress(x + rng.normal(size=(400, 1)), x)
        >>> fit.simulate([[0.0], [5.0]], random_state=0).shape
        (2, 1)
        """
        W = self._regressors(new)
        rng = keyed_generator(seed_of(random_state), Purpose.ROWS)
        noise = (
            rng.standard_normal((len(W), len(self.outcomes))) @ np.linalg.cholesky(self.residual).T
        )
        return self._rows(predictor(self.weights, W) + noise, self._index_of(new))

    def draw_imputations(self, m: int = 20, random_state: RandomState = None) -> list[Any]:
        """Draw complete tables of outcomes: hidden cells and parameters anew for each.

        Estimates from each of the tables are pooled by Rubin's rules (``halfseen.pool``).

        Parameters
        ----------
        m : int
        random_state : int, Generator or None

        Returns
        -------
        list of m tables of shape (n, outcomes)

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 1))
        >>> y = x + rng.normal(size=(400, 1))
        >>> fit = hs.regress(np.where(y > 0, y, np.nan), x, hs.DetectionLimits(lower=0.0))
        >>> tables = fit.draw_imputations(m=3, random_state=0)
        >>> len(tables), bool((tables[0][np.isnan(y) | (y <= 0)] < 0.0).all())
        (3, True)
        """
        m, seed = whole_number("m", m), seed_of(random_state)
        outcomes, W = self._outcomes_of(None), self._regressors(None)
        index = self._index_of(None)
        return [
            self._rows(drawn_outcomes(self, outcomes, W, place, seed, k), index)
            for k, place in enumerate(self._drawn_places(m, seed))
        ]

    def residuals(self, random_state: RandomState = 0) -> Any:
        """Return standardised residuals, those of hidden outcomes drawn from where they can be.

        Standard normal if the model is right, whatever hides values: for an outcome by itself these are
        randomised quantile residuals. NaN where nothing is known of a cell.

        Parameters
        ----------
        random_state : int, Generator or None
            Of the draws.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(400, 1))
        >>> y = x + rng.normal(size=(400, 1))
        >>> fit = hs.regress(np.where(y > 0, y, np.nan), x, hs.DetectionLimits(lower=0.0))
        >>> bool(abs(fit.residuals().std() - 1.0) < 0.1)
        True
        """
        if self.truncation is not None and self._source:
            return self._rows(quantile_residuals(self)[:, None], self._index_of(None))
        outcomes, W = self._outcomes_of(None), self._regressors(None)
        drawn = drawn_outcomes(self, outcomes, W, place_of(self), seed_of(random_state), 0)
        values = (drawn - predictor(self.weights, W)) / np.sqrt(np.diag(self.residual))
        values[outcomes.at_random & ~outcomes.unselected()] = np.nan
        return self._rows(values, self._index_of(None))

    @cached_property
    def plot(self) -> RegressionPlots:
        """Figures of the fit: ``plot.coefficients()``, ``.residuals(outcome)``, ``.effect(variable)``.

        Each returns Matplotlib axes.
        """
        from halfseen.report import RegressionPlots

        return RegressionPlots(self)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str | None = None,
        call: str | None = None,
    ) -> Path:
        """Write one page of HTML that shows what was learned, and needs nothing else to be read.

        Parameters
        ----------
        path : path
        title : str, optional
        call : str, optional
            How to repeat the fit, where it is not told by the fit itself.

        Returns
        -------
        Path

        Examples
        --------
        >>> import tempfile, numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> data = {"age": rng.uniform(20, 70, 300)}
        >>> data["lead"] = 0.02 * data["age"] + rng.normal(size=300)
        >>> fit = hs.regress("lead ~ age", data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = fit.report(f"{folder}/lead.html", title="Lead and age")
        ...     page.name, "Lead and age" in page.read_text(encoding="utf-8")
        ('lead.html', True)
        """
        from halfseen.report import write_regression_report

        return write_regression_report(self, path, title=title, call=call)

    def summary(self, level: float = 0.95) -> str:
        """Return a table of what was learned, in 80 columns of text.

        Parameters
        ----------
        level : float
            Of the intervals.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(200, 1))
        >>> fit = hs.regress(2.0 * x + rng.normal(size=(200, 1)), x)
        >>> print(fit.summary()[:32])
        Regression of 1 outcome, 200 row
        """
        return summarise(self, share("level", level))

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return everything that was learned as plain data; None where not known.

        This is what ``halfseen regress --json`` prints.

        Parameters
        ----------
        level : float
            Of the intervals.

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(200, 1))
        >>> fit = hs.regress(2.0 * x + rng.normal(size=(200, 1)), x)
        >>> round(fit.to_dict()["outcomes"]["y0"]["coefficients"]["x0"]["estimate"])
        2
        """
        return as_dict(self, share("level", level))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was learned to one file, which ``halfseen.load`` reads to the last bit.

        The table is not written, and neither is a rule that is known only as a function: a file holds
        no code. docs/saved-fits.md describes the file.

        Parameters
        ----------
        path : path of the file
            It is written whole or not at all. ``.hsreg`` is a usual ending.

        Examples
        --------
        >>> import tempfile, numpy as np, halfseen as hs
        >>> rng = np.random.default_rng(0)
        >>> data = {"age": rng.uniform(20, 70, 500)}
        >>> data["lead"] = 0.02 * data["age"] + rng.normal(size=500)
        >>> fit = hs.regress("lead ~ age", data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/lead.hsreg")
        ...     again = hs.load(f"{folder}/lead.hsreg")
        >>> bool((again.predict({"age": [30, 60]}) == fit.predict({"age": [30, 60]})).all())
        True
        """
        save(self, path)

    def __repr__(self) -> str:
        return (
            f"RegressionFit({', '.join(self.outcomes)}; status={self.status.name}, "
            f"terms={len(self.terms)}, rows={self.rows})"
        )

    # What rows are asked -----------------------------------------------------------------------------

    def _regressors(self, new: Any) -> Floats:
        if new is None:
            return self._source.model.W
        assert self.design is not None
        return self.design.matrix_for(new)

    @property
    def _source(self) -> Any:
        if self.source is None:
            raise InputError(
                "this fit does not hold its table (a saved fit never does, nor one of a table in "
                "pieces); pass new rows."
            )
        return self.source

    def _outcomes_of(self, new: Any) -> Outcomes:
        if new is None:
            outcomes: Outcomes = self._source.model.outcomes
            return outcomes
        return outcomes_like(self, new)

    def _index_of(self, new: Any) -> Any:
        return getattr(self.data if new is None else new, "index", None)

    def _rows(self, values: Floats, index: Any = None) -> Any:
        """Put names on a table with a row for each row that was asked about."""
        if self.frame != "pandas":
            return values
        import pandas as pd

        index = index if isinstance(index, pd.Index) and len(index) == len(values) else None
        return pd.DataFrame(values, index=index, columns=list(self.outcomes))

    def _categories(self, W: Floats, index: Any, standard_error: bool) -> Any:
        """Return probabilities of the categories of each latent outcome, and their standard errors."""

        def ask(vector: Floats) -> dict[str, Floats]:
            return category_tables(self, vector, W)

        def named(tables: Mapping[str, Floats]) -> dict[str, Any]:
            return {name: self._category_table(name, one, index) for name, one in tables.items()}

        tables = ask(self.vector)
        if not standard_error:
            return named(tables)
        found = self.standard_errors.of_vector(lambda vector: np.hstack([*ask(vector).values()]))
        ends = np.cumsum([one.shape[1] for one in tables.values()])[:-1]
        errors = np.split(np.asarray(found.standard_error), ends, axis=1)
        return named(tables), named(dict(zip(tables, errors, strict=True)))

    def _category_table(self, name: str, table: Floats, index: Any) -> Any:
        if self.frame != "pandas":
            return table
        import pandas as pd

        index = index if isinstance(index, pd.Index) and len(index) == len(table) else None
        return pd.DataFrame(table, index=index, columns=list(self.categories[name]))

    def _drawn_places(self, m: int, seed: int) -> list[Place]:
        """Draw parameters from what the data say of them: coefficients, and residuals on a log scale."""
        errors, vector = self.standard_errors, self.vector
        lengths, axes, scale = principal_axes(errors.parameters)
        root = axes * np.sqrt(np.maximum(lengths, 0.0)) * scale[:, None]
        rng = keyed_generator(seed, Purpose.IMPUTATION)
        places = []
        for _ in range(m):
            move = root @ rng.standard_normal(lengths.size)
            weights, _, _ = self.unpack(vector + move)
            places.append(place_of(self, weights, self._moved_residual(move)))
        return places

    def _moved_residual(self, move: Floats) -> Floats:
        """Return L exp(L⁻¹ Δ L⁻ᵀ) Lᵀ, residuals after a move; latent ones keep the variance 1."""
        count, q = int(self.free.sum()), len(self.outcomes)
        change = symmetric(move[count : count + q * (q + 1) // 2], q)
        L = np.linalg.cholesky(self.residual)
        inner = np.linalg.solve(L, np.linalg.solve(L, change).T)
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
        out = L @ (vectors * np.exp(values)) @ vectors.T @ L.T
        latent = np.array([kind != "continuous" for kind in self.kinds])
        unit = np.where(latent, 1.0 / np.sqrt(np.diag(out)), 1.0)
        return np.asarray(out * np.outer(unit, unit))
