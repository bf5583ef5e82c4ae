"""A regression of one outcome on a table in which rows are missing altogether."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.resolve import resolve
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.full_information.problem import REACH
from halfseen.solvers.regression.estimate import Regressed, RegressionEstimate
from halfseen.solvers.regression.model import Model, Setup
from halfseen.solvers.regression.truncated import TruncatedRegression, truncated_regression
from halfseen.solvers.result import Note, Status

Floats = NDArray[np.float64]


def ends_of(rule: Missingness, y: Floats, name: str) -> tuple[Floats, Floats]:
    """Return the ends of the set in which each row is in the table, of shape (n, pieces)."""
    if not isinstance(rule, ColumnwiseMissingness):
        raise InputError(
            f"truncated must say a set for {name}, such as '>=0' or between(0, 10); got {rule!r}."
        )
    own = rule.column_rule(0)
    if own.seen_set is None:
        assert own.group is not None
        if own.group.size != y.size:
            raise InputError(
                f"the limits of {name} are given for {own.group.size} rows, but the data have {y.size}."
            )
        return own.lower[own.group][:, None], own.upper[own.group][:, None]
    spread = float(y.std()) or 1.0
    pieces = resolve(own.seen_set, float(y.mean()), spread, REACH)
    if pieces.node.size:
        raise InputError(
            f"rows with {name} in a set are in the table, or not; a Probability is no such set."
        )
    return np.tile(pieces.lower, (y.size, 1)), np.tile(pieces.upper, (y.size, 1))


def learn_truncated(model: Model, settings: Settings) -> RegressionEstimate:
    """Learn a regression of one outcome whose rule says which rows are in the table."""
    outcomes = model.outcomes
    (name,), rule = outcomes.names, outcomes.rule
    assert rule is not None
    y = outcomes.data.values[:, 0]
    lower, upper = ends_of(rule, y, name)
    terms = np.flatnonzero(model.mask[0])
    found = truncated_regression(
        y,
        model.W[:, terms],
        lower,
        upper,
        weights=model.row_weights,
        fixed=model.fixed[0, terms],
        sigma=None if model.free[0, 0] else float(np.sqrt(model.given[0, 0])),
        names=[model.terms[t] for t in terms],
        n_jobs=settings.n_jobs,
    )
    setup = Setup.of(model, settings.n_jobs)
    weights = np.zeros(model.mask.shape)
    weights[0, terms] = found.coefficients
    free = setup.equations.free
    learned = int(free.sum()) + int(model.free[0, 0])
    covariance = into_variance(found, free[0, terms]) if settings.standard_errors else None
    scores = _scores(found, free[0, terms])
    return RegressionEstimate(
        outcomes.names,
        model.terms,
        weights,
        np.array([[found.sigma**2]]),
        model.mask,
        free,
        {},
        outcomes.kinds,
        outcomes.categories,
        covariance,
        found.log_likelihood,
        0.0,
        learned,
        len(y),
        np.ones(1),
        _notes(outcomes.names[0], found),
        {"steps": found.steps},
        setup.equations,
        None,
        Regressed(model, settings.seed, settings.n_jobs, scores, covariance),
        (lower, upper),
        is_weighted=model.row_weights is not None,
    )


def _notes(name: str, found: TruncatedRegression) -> tuple[Note, ...]:
    """Say what was out of the ordinary, in terms of what ``regress`` can be told."""
    if not found.on_edge:
        return found.notes
    text = (
        f"The rows do not determine how far the missing ones of {name} are: the likelihood grows to "
        f"where one in a hundred is in the table (standard deviation {found.sigma:.3g}). Check the set "
        "and its units; of a skewed outcome take logarithms, and those of its limits. Where the "
        "variance is known, covariance=[[...]] says it; more rows would help."
    )
    return (Note(Status.ON_DOMAIN_EDGE, text),)


def into_variance(found: TruncatedRegression, free: NDArray[np.bool_]) -> Floats | None:
    """Return the covariance of the free coefficients and the variance of residuals."""
    if found.on_edge:
        return None
    kept = np.append(free, True)
    units = np.append(np.ones(int(free.sum())), 2.0 * found.sigma)
    return np.asarray(found.covariance[np.ix_(kept, kept)] * np.outer(units, units))


def _scores(found: TruncatedRegression, free: NDArray[np.bool_]) -> Floats:
    """Return derivatives of each row's log-likelihood in free coefficients and the variance."""
    kept = np.append(free, True)
    units = np.append(np.ones(int(free.sum())), 2.0 * found.sigma)
    return np.asarray(found.scores[:, kept] / units)


def quantile_residuals(fit: RegressionEstimate) -> Floats:
    """Return residuals that are standard normal if the model is right: by their place in the set."""
    assert fit.source is not None
    assert fit.truncation is not None
    model = fit.source.model
    eta, sigma = model.W @ fit.weights[0], float(np.sqrt(fit.residual[0, 0]))
    y = model.outcomes.data.values[:, 0]
    lower, upper = fit.truncation
    z = ((y - eta) / sigma)[:, None]
    low, high = (lower - eta[:, None]) / sigma, (upper - eta[:, None]) / sigma
    # Both tails, each from the side on which it is small; NaN are pieces that a row does not have.
    below = np.nansum(_mass(low, np.clip(z, low, high)), axis=1)
    above = np.nansum(_mass(np.clip(z, low, high), high), axis=1)
    total = below + above
    return np.where(below < above, ndtri(below / total), -ndtri(above / total))


def _mass(a: Floats, b: Floats) -> Floats:
    """Return Φ(b) − Φ(a), from the side on which both are small."""
    return np.where(a > 0.0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
