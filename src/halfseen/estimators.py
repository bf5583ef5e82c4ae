"""The scikit-learn face: thin, over ``halfseen.fit``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from halfseen import solvers
from halfseen.data.moments import PairMoments
from halfseen.data.rounding import Rounded
from halfseen.data.table import Table
from halfseen.errors import InputError, NotIdentifiedError, warn
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.results import Fit
from halfseen.seeds import RandomState
from halfseen.solvers.prepared_table import prepared_table, read_moments
from halfseen.solvers.structures import Structure

# Methods that see the data through moments alone, which chunks can add to.
_STREAMING = ("auto", "pairwise", "truncation")


class CensoredGaussian(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Mean and covariance of a Gaussian from data in which values are missing because of what they are.

    Parameters
    ----------
    missingness : Missingness, optional
        What hides a value. None: nothing does, and NaN is missing at random.
    method : str
        As in ``halfseen.fit``; "auto" is ``full``, and ``pairwise`` for ``partial_fit``.
    covariance : array-like of shape (d, d), structure or str, optional
        The covariance, where it is known, or what it may be: "diagonal", "shrinkage", "sparse", or a
        structure such as ``Factor(2)``.
    options : dict, optional
        Further arguments of the method's own function in ``halfseen.solvers``.
    random_state : int, Generator or None
        Seed of the methods that sample.
    n_jobs : int or None
        Threads; None for all cores. The answer does not depend on it.
    transforms : str, dict or sequence, optional
        The scale on which columns are normal, as in ``halfseen.fit``. The mean and the covariance are
        on that scale; ``transform`` and ``score`` are in original units.

    Attributes
    ----------
    mean_ : array of shape (d,)
    covariance_ : array of shape (d, d)
    precision_ : array of shape (d, d)
    fit_ : Fit
        The whole result, with status and notes.
    n_features_in_ : int
    feature_names_in_ : array of str
        Where the data had names.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([0.5], [[1.0]]), rule, 5000)
    >>> model = hs.CensoredGaussian(rule).fit(X)
    >>> bool(abs(model.mean_[0] - 0.5) < 0.1)
    True
    """

    def __init__(
        self,
        missingness: Missingness | None = None,
        method: str = "auto",
        covariance: ArrayLike | str | Structure | None = None,
        options: dict[str, Any] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        transforms: Any = None,
    ) -> None:
        self.missingness = missingness
        self.method = method
        self.covariance = covariance
        self.options = options
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.transforms = transforms

    def fit(self, X: Any, y: Any = None) -> CensoredGaussian:
        """Learn from a table; NaN where a value is hidden.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        CensoredGaussian
            The estimator itself.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([0.5, 1.0], [[1.0, 0.6], [0.6, 1.0]]), rule, 1000)
        >>> model = hs.CensoredGaussian(rule, random_state=0).fit(X)
        >>> abs(model.mean_ - [0.5, 1.0]) < 0.2
        array([ True,  True])
        >>> model.fit_.status.name
        'CONVERGED'
        """
        X = self._validated(X, reset=True)
        self._moments: PairMoments | None = None
        if not self._streams():
            return self._learn(X)
        if self.method != "auto":
            self._moments = self._moments_of(X)
            return self._learn(self._moments)
        self._learn(X)
        with warnings.catch_warnings():
            # What is to be said about the table was said above; the moments are for later chunks.
            warnings.simplefilter("ignore")
            self._moments = self._moments_of(X)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> CensoredGaussian:
        """Learn from a chunk of rows in addition to those seen before.

        The answer is that of ``fit`` on all rows together. Only for the methods ``pairwise`` and
        ``truncation``, with the same limits in every row. While the rows so far do not determine every
        parameter, there is a warning instead of an answer.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        CensoredGaussian
            The estimator itself.

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([0.5, 1.0], [[1.0, 0.6], [0.6, 1.0]]), rule, 1000)
        >>> import numpy as np
        >>> whole = hs.CensoredGaussian(rule, method="pairwise").fit(X)
        >>> chunks = hs.CensoredGaussian(rule, method="pairwise")
        >>> for chunk in np.array_split(X, 4):
        ...     chunks = chunks.partial_fit(chunk)
        >>> bool(np.allclose(chunks.covariance_, whole.covariance_))
        True
        """
        if self.method not in _STREAMING:
            raise InputError(
                f"partial_fit works with the methods {', '.join(_STREAMING)}; got {self.method!r}."
            )
        before: PairMoments | None = getattr(self, "_moments", None)
        X = self._validated(X, reset=before is None, fewest=1)
        if not self._streams():
            raise InputError(
                "partial_fit needs the same rule in every row (SelfCensoring, or DetectionLimits by "
                "column), and no transforms; use fit with the whole table."
            )
        chunk = self._moments_of(X)
        moments = chunk if before is None else before.merge(chunk)
        self._moments = moments
        try:
            return self._learn(moments)
        except NotIdentifiedError as error:
            warn(f"{moments.rows} rows do not determine every parameter yet: {error}")
            return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Fill each hidden cell with its mean, given what is seen of its row and the rule.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        array of shape (n, d)

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([0.5, 1.0], [[1.0, 0.6], [0.6, 1.0]]), rule, 1000)
        >>> model = hs.CensoredGaussian(rule, random_state=0).fit(X)
        >>> filled = model.transform(X)
        >>> bool((filled[X != X] < 0.0).all())  # below the limit, where they were hidden
        True
        """
        check_is_fitted(self)
        return self.fit_.impute(self._validated(X, reset=False, fewest=1), self.missingness)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the average log-likelihood of what is seen of a row.

        Parameters
        ----------
        X : array-like of shape (n, d)
        y : ignored

        Returns
        -------
        float

        Examples
        --------
        >>> import halfseen as hs
        >>> rule = hs.DetectionLimits(lower=0.0)
        >>> X = hs.simulate(hs.Gaussian([0.5, 1.0], [[1.0, 0.6], [0.6, 1.0]]), rule, 1000)
        >>> full = hs.CensoredGaussian(rule, random_state=0).fit(X)
        >>> apart = hs.CensoredGaussian(rule, covariance="diagonal", random_state=0).fit(X)
        >>> full.score(X) > apart.score(X)
        True
        """
        check_is_fitted(self)
        rows = self._validated(X, reset=False, fewest=1)
        return float(self.fit_.score_rows(rows, self.missingness).mean())

    def _streams(self) -> bool:
        """Whether the method and the rule allow rows to be added later."""
        rule = self._rule()
        uniform = isinstance(rule, ColumnwiseMissingness) and not rule.varies_by_row
        plain = self.transforms is None
        return plain and self.method in _STREAMING and (rule is None or uniform)

    def _moments_of(self, X: NDArray[np.float64]) -> PairMoments:
        return read_moments(prepared_table(Table(X, self._names()), self.missingness, self.n_jobs))

    def _rule(self) -> Missingness | None:
        """Return the rule for the columns: what kind it is may be known only then."""
        if isinstance(self.missingness, Rounded):
            raise InputError(
                "CensoredGaussian takes rules that hide values; of rounded values learn with "
                "halfseen.fit(X, rounded(...))."
            )
        return None if self.missingness is None else self.missingness.for_columns(self._names())

    def _validated(self, X: Any, reset: bool, fewest: int = 2) -> NDArray[np.float64]:
        try:
            # What a double cannot hold becomes infinite, and is told as such.
            with np.errstate(over="ignore"):
                return validate_data(
                    self,
                    # scikit-learn would read what lies under a mask.
                    np.ma.filled(X.astype(float), np.nan) if np.ma.isMaskedArray(X) else X,
                    reset=reset,
                    dtype=[np.float64, np.float32],
                    ensure_all_finite="allow-nan",
                    ensure_min_samples=fewest,
                )
        except OverflowError:
            raise InputError("values must be finite; one is too large for a double.") from None

    def _names(self) -> tuple[str, ...]:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return tuple(f"x{i}" for i in range(self.n_features_in_))
        return tuple(map(str, names))

    def _learn(self, data: NDArray[np.float64] | PairMoments) -> CensoredGaussian:
        result = solvers.fit(
            data,
            self.missingness,
            self.method,
            covariance=self.covariance,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            names=self._names(),
            transforms=self.transforms,
            **(self.options or {}),
        )
        self.fit_: Fit = result
        self.mean_ = result.gaussian.mean.copy()
        self.covariance_ = result.gaussian.covariance.copy()
        self.precision_ = result.gaussian.precision.copy()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
