"""Rubin's rules: one answer from those of several completed tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from halfseen.checks import is_iterable, positive_number, real_array, share
from halfseen.errors import InputError
from halfseen.solvers.inference.intervals import Limits

Floats = NDArray[np.float64]

# What a function that is pooled may return.
RETURNED = (
    "a function that is pooled returns an estimate and its variance (or covariance matrix), as in "
    "(x.mean(), x.var() / len(x)), or a result with params and cov_params(), as those of statsmodels"
)
# Characters of what came that a message shows.
LONGEST_SHOWN = 60


@dataclass(frozen=True)
class Pooled:
    """An estimate from several completed tables.

    Attributes
    ----------
    estimate, standard_error : arrays
        The average, and the root of the within-variance plus (1 + 1/m) times the between-variance.
    degrees_of_freedom : array
        Of the t distribution that the estimate follows, about.
    missing_information : array
        Share of the information that the holes took.
    covariance : array or None
        Covariance matrix of a vector of estimates, where that of each table was given.
    names : tuple of str or None
        Of the estimates, where the results of the tables have names.

    Examples
    --------
    >>> import halfseen as hs
    >>> pooled = hs.pool(estimates=[1.0, 1.2, 0.8], variances=[0.04, 0.05, 0.03])
    >>> round(float(pooled.estimate), 6), round(float(pooled.standard_error), 3)
    (1.0, 0.306)
    >>> round(float(pooled.missing_information), 2)
    0.57
    """

    estimate: Floats
    standard_error: Floats
    degrees_of_freedom: Floats
    missing_information: Floats
    covariance: Floats | None = None
    names: tuple[str, ...] | None = None

    @property
    def p_value(self) -> Floats:
        """Two-sided p-value of each estimate against 0, from the t distribution."""
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.abs(self.estimate) / self.standard_error
        return np.asarray(2.0 * stdtr(self.degrees_of_freedom, -t))

    def summary(self, level: float = 0.95) -> str:
        """Return a table: estimates, standard errors, intervals, p-values, and what the holes took.

        Parameters
        ----------
        level : float

        Returns
        -------
        str

        Examples
        --------
        >>> import halfseen as hs
        >>> print(hs.pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03]).summary())
          estimate  std. error       95 % interval    d.f.        p  lost to holes
             1.000       0.306      0.256 to 1.744     6.1    0.016          57 %
        """
        level = share("level", level)
        low, high = (np.ravel(end) for end in self.interval(level))
        columns = (self.estimate, self.standard_error, self.degrees_of_freedom, self.p_value)
        flat = [np.ravel(column) for column in (*columns, self.missing_information)]
        names = self.names or ("",) * flat[0].size
        wide = max(map(len, names))
        head = f"{'estimate':>10}  {'std. error':>10}  {f'{100 * level:g} % interval':>18}"
        lines = [f"{'':{wide}}{head}  {'d.f.':>6}  {'p':>7}  lost to holes"]
        for k, (value, error, freedom, p, lost) in enumerate(zip(*flat, strict=True)):
            places = _places(error)
            ends = f"{low[k]:.{places}f} to {high[k]:.{places}f}"
            size = f"{freedom:.1f}" if freedom < 1e4 else "large"
            lines.append(
                f"{names[k]:{wide}}{value:>10.{places}f}  {error:>10.{places}f}  {ends:>18}  {size:>6}  "
                f"{'<0.001' if p < 1e-3 else f'{p:.3f}':>7}  {lost:>11.0%}".replace("%", " %")
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def interval(self, level: float = 0.95) -> Limits:
        """Confidence interval, from the t distribution.

        Parameters
        ----------
        level : float

        Returns
        -------
        Limits
            ``lower`` and ``upper``.

        Examples
        --------
        >>> import halfseen as hs
        >>> lower, upper = hs.pool([1.0, 1.2, 0.8], [0.04, 0.05, 0.03]).interval(0.9)
        >>> round(float(lower), 2), round(float(upper), 2)
        (0.41, 1.59)
        """
        level = share("level", level)
        q = stdtrit(self.degrees_of_freedom, 0.5 + 0.5 * level)
        return Limits(
            self.estimate - q * self.standard_error, self.estimate + q * self.standard_error
        )


def _places(error: float) -> int:
    """Decimals that show three digits of an error."""
    known = np.isfinite(error) and error > 0.0
    return int(np.clip(2 - np.floor(np.log10(error)), 0, 9)) if known else 3


class Answer(NamedTuple):
    """What was estimated from one table.

    Attributes
    ----------
    estimate, variance : arrays of the same shape
    covariance : array or None
    freedom : float or None
        Degrees of freedom of the analysis, where it says so.
    names : tuple of str or None
    """

    estimate: Floats
    variance: Floats
    covariance: Floats | None = None
    freedom: float | None = None
    names: tuple[str, ...] | None = None


def pool(
    estimates: ArrayLike | Callable[[Any], Any],
    variances: ArrayLike | Iterable[Any],
    degrees_of_freedom: float | None = None,
) -> Pooled:
    """Run an estimate on each of several completed tables, and combine the answers by Rubin's rules.

    ``pool(function, imputations)`` calls the function with each table; ``pool(estimates, variances)``
    takes what was estimated already.

    Parameters
    ----------
    estimates : callable, or array-like of shape (m, ...)
        A function of a completed table. It returns an estimate and its variance (or the covariance
        matrix of a vector of estimates), or a result with ``params`` and ``cov_params()``, as the models
        of statsmodels do. Or the estimates of all tables.
    variances : array-like
        The completed tables, as ``fit.draw_imputations`` makes them. Or the squared standard errors, of
        the same shape as the estimates.
    degrees_of_freedom : float, optional
        Those of the analysis of a complete table, for the small-sample rule of Barnard and
        Rubin (1999). By default ``df_resid`` of the results, where they have it; else infinite.

    Returns
    -------
    Pooled

    References
    ----------
    Rubin (1987), Multiple imputation for nonresponse in surveys, section 3.1.
    Barnard and Rubin (1999), Small-sample degrees of freedom with multiple imputation.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([0.5], [[1.0]]), rule, 500)
    >>> tables = hs.fit(X, rule, random_state=0).draw_imputations(m=10, random_state=0)
    >>> pooled = hs.pool(lambda table: (table.mean(), table.var() / len(table)), tables)
    >>> bool(abs(pooled.estimate - 0.5) < 0.2)
    True
    >>> again = hs.pool(tables.mean(axis=(1, 2)), tables.var(axis=(1, 2)) / 500)
    >>> bool(again.estimate == pooled.estimate)
    True
    """
    if callable(estimates):
        answers = _answers(estimates, variances)
        return _pooled_answers(answers, degrees_of_freedom)
    Q, U = real_array("estimates", estimates), real_array("variances", variances)
    if Q.shape != U.shape or Q.ndim == 0:
        raise InputError(
            f"estimates and variances must have the same shape; got {Q.shape} and {U.shape}."
        )
    return _combined(Q, U, degrees_of_freedom)


def _answers(function: Callable[[Any], Any], imputations: Any) -> list[Answer]:
    """Ask a function about each table."""
    one = (
        getattr(imputations, "ndim", 3) < 3 if not isinstance(imputations, list | tuple) else False
    )
    if one or isinstance(imputations, str | dict) or not is_iterable(imputations):
        came = f"an array of shape {np.shape(imputations)}" if one else f"{imputations!r:.60}"
        raise InputError(
            "pool(function, imputations) needs several completed tables, as "
            f"fit.draw_imputations(m=20) returns them; got {came}."
        )
    answers = []
    for k, table in enumerate(imputations):
        try:
            returned = function(table)
        except Exception as error:
            error.add_note(f"raised by the function given to pool, on imputation {k}.")
            raise
        answers.append(_read_answer(returned, k))
    return answers


def _read_answer(returned: Any, k: int) -> Answer:
    """Read what a function returned of imputation k."""
    where = f"on imputation {k}"
    if hasattr(returned, "params") and hasattr(returned, "cov_params"):
        return _of_result(returned, where)
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        hint = ""
        if callable(getattr(returned, "fit", None)) and not hasattr(returned, "params"):
            hint = " This is a model that was not fitted: return model.fit()."
        raise InputError(f"{RETURNED}; {where} it returned {_shown(returned)}.{hint}")
    return _of_pair(returned[0], returned[1], where)


def _shown(returned: Any) -> str:
    text = " ".join(repr(returned).split())
    text = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
    return f"{text} ({type(returned).__name__})"


def _of_pair(estimate: Any, variance: Any, where: str) -> Answer:
    """Read an estimate and its variances, or its covariance matrix."""
    index = getattr(estimate, "index", None)
    names = None if index is None or callable(index) else tuple(map(str, index))
    q = real_array(f"the estimate that the function returned {where}", estimate)
    u = real_array(f"the variance that the function returned {where}", variance)
    if q.shape == u.shape:
        return Answer(q, u, None, None, names)
    if q.ndim == 1 and u.shape == (q.size, q.size):
        return Answer(q, np.diag(u), u, None, names)
    raise InputError(
        f"{where} the function returned an estimate of shape {q.shape} and a variance of shape "
        f"{u.shape}: a variance has the shape of its estimate, or is the covariance matrix of a vector."
    )


def _of_result(result: Any, where: str) -> Answer:
    """Read a result of statsmodels, or of a library that names its parts as it does."""
    params, covariance = result.params, result.cov_params()
    answer = _of_pair(params, covariance, where)
    freedom = real_array("df_resid", getattr(result, "df_resid", np.inf))
    known = freedom.ndim == 0 and bool(np.isfinite(freedom)) and bool(freedom > 0.0)
    return answer._replace(freedom=float(freedom) if known else None)


def _pooled_answers(answers: Sequence[Answer], degrees_of_freedom: float | None) -> Pooled:
    """Combine the answers of all tables, which must be to the same question."""
    if not answers:
        raise InputError("at least 2 completed tables are needed; got 0.")
    first = answers[0]
    for k, one in enumerate(answers):
        if one.estimate.shape != first.estimate.shape or one.names != first.names:
            what, other = (
                (
                    f"estimates of shape {a.estimate.shape}"
                    if a.names is None
                    else ", ".join(a.names)
                )
                for a in (first, one)
            )
            raise InputError(
                "the function must estimate the same in each table; on imputation 0 it was "
                f"{what}, on imputation {k} {other}."
            )
    freedoms = [one.freedom for one in answers if one.freedom is not None]
    if degrees_of_freedom is None and freedoms:
        degrees_of_freedom = min(freedoms)
    Q, U = (np.stack([getattr(one, key) for one in answers]) for key in ("estimate", "variance"))
    pooled = _combined(Q, U, degrees_of_freedom)
    covariances = [one.covariance for one in answers if one.covariance is not None]
    covariance = None
    if len(covariances) == len(answers):
        moved = Q - Q.mean(axis=0)
        between = moved.T @ moved / (len(Q) - 1)
        covariance = np.mean(covariances, axis=0) + (1.0 + 1.0 / len(Q)) * between
    return replace(pooled, covariance=covariance, names=first.names)


def _combined(Q: Floats, U: Floats, degrees_of_freedom: float | None) -> Pooled:
    """Rubin's rules for estimates and variances, each along the first axis.

    The total variance is T = Ū + (1 + 1/m) B, and λ the share of the second part in it. The degrees of
    freedom are (m − 1) / λ², or with ν of the complete table the harmonic sum of these and of
    (ν + 1) / (ν + 3) · ν (1 − λ).
    """
    m = len(Q)
    if m < 2:
        raise InputError(f"at least 2 completed tables are needed; got {m}.")
    if not np.isfinite(Q).all():
        raise InputError("estimates must be finite; got NaN or infinity.")
    if not (U >= 0.0).all():
        raise InputError("variances must be at least 0, and not NaN.")
    with np.errstate(over="ignore", invalid="ignore"):
        within, between = U.mean(axis=0), Q.var(axis=0, ddof=1)
        total = within + (1.0 + 1.0 / m) * between
    if not np.isfinite(total).all():
        raise InputError(
            "estimates and variances are too large: what they come to is more than a computer can "
            "hold. Change the unit."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = np.where(total > 0.0, (1.0 + 1.0 / m) * between / total, 0.0)
        freedom = (m - 1) / missing**2
        if degrees_of_freedom is not None:
            v = positive_number("degrees_of_freedom", degrees_of_freedom)
            observed = (v + 1.0) / (v + 3.0) * v * (1.0 - missing)
            # Where all variance is between tables, the tables alone say how much there is.
            freedom = np.where(observed > 0.0, 1.0 / (1.0 / freedom + 1.0 / observed), freedom)
    return Pooled(Q.mean(axis=0), np.sqrt(total), np.asarray(freedom), np.asarray(missing))
