"""What stands beside a regression on its page: residuals, Mills ratios, and what people do otherwise.

Quantile residuals, with how far from a line they would lie if the model were right; what selection does
to the mean of what is seen; least squares where values are seen, or with half the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from halfseen.data.interval_data import IntervalData
from halfseen.errors import HalfseenError
from halfseen.missingness.truncation import RowTruncation
from halfseen.parallel import single_blas_thread
from halfseen.report.marginals import number, numbers
from halfseen.report.shown_table import Kind, ShownColumn
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.ascent import NEAR_THE_TOP
from halfseen.solvers.full_information.learn import Settings, climb
from halfseen.solvers.regression.facts import mills_ratio
from halfseen.solvers.regression.identification import COLLINEAR, mills_share
from halfseen.solvers.regression.model import Setup
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.regression.places import Place, split
from halfseen.solvers.regression.prediction import drawn_outcomes, predictor

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]
NONE: dict[str, Any] = {"seen": None, "half": None, "rows": None, "deviation": np.nan}
# The least and the largest of so many tables hold a point with 95 %: 1 - 2/40.
TABLES = 39
# Tables with more cells than this (rows times outcomes and terms) are not simulated and fitted again,
# and a climb has so many steps.
MOST_REFITTED, MOST_STEPS = 30_000, 8
# Points of a quantile plot, and how many of them are the most extreme of either side.
MOST_POINTS, EXTREME = 500, 50
# Of more outcomes than this there are fewer.
MANY_OUTCOMES, FEWER_POINTS = 8, 150


def mills(fit: RegressionFit, rows: NDArray[np.intp], shown: int) -> list[dict[str, Any]]:
    """Return for each selected outcome what selection adds to its mean where it is seen.

    Of those selected, the mean of the residual is Cov(e_j, e_by) λ, where λ = φ(η)/Φ(η) is the Mills
    ratio of the predictor η of the index; and with the other signs where the index must not be positive.
    """
    if fit.source is None:
        return []
    model, out = fit.source.model, []
    for one in model.outcomes.selections:
        by, sign = one.index, 1.0 if one.when else -1.0
        index = model.W @ fit.weights[by]
        ratio = mills_ratio(index, sign)
        for j in one.places:
            if j >= shown:
                continue
            selected = ~model.outcomes.unselected()[:, j]
            added = sign * fit.residual[j, by] * ratio
            drawn = rows[selected[rows]]
            own = model.mask[by] & ~model.mask[j]
            out.append(
                {
                    "outcome": j,
                    "by": by,
                    "index": fit.outcomes[by],
                    "name": fit.outcomes[j],
                    "when": bool(one.when),
                    "share": number(mills_share(model, j, index, one.when)),
                    "collinear": COLLINEAR,
                    "own": [fit.terms[t] for t in np.flatnonzero(own)],
                    "covariance": number(fit.residual[j, by]),
                    "average": number(added[selected].mean()) if selected.any() else None,
                    "selected": int(selected.sum()),
                    "predictor": numbers((model.W[drawn] @ fit.weights[j]), 5),
                    "ratio": numbers(ratio[drawn], 5),
                    "added": numbers(added[drawn], 5),
                }
            )
    return out


def naive_coefficients(
    fit: RegressionFit, columns: Sequence[ShownColumn] | None
) -> list[dict[str, Any]]:
    """Return naive coefficients of each outcome, all terms in a row; None where there are none.

    Least squares over the rows in which the outcome is seen, the residuals' deviation with it; and the
    same after the usual patch: half the limit in place of what lies below it. Of latent outcomes
    there is nothing of the kind.
    """
    if columns is None:
        return [NONE] * len(fit.outcomes)
    with single_blas_thread():
        return [
            _of_outcome(fit, j, cells) if kind == "continuous" else NONE
            for j, (kind, cells) in enumerate(zip(fit.kinds, columns, strict=True))
        ]


def _of_outcome(fit: RegressionFit, j: int, cells: ShownColumn) -> dict[str, Any]:
    seen = cells.kind == Kind.SEEN
    coefficients, deviation = _least_squares(fit, j, np.where(seen, cells.lower, np.nan))
    patched = with_half_the_limit(cells)
    half = None if patched is None else _least_squares(fit, j, patched)[0]
    return {"seen": coefficients, "half": half, "rows": int(seen.sum()), "deviation": deviation}


def with_half_the_limit(cells: ShownColumn) -> Floats | None:
    """Return the values after the usual patch, NaN where it says nothing.

    Values above a limit are set to it, and those between limits to the middle. None where nothing lies
    below a limit, or where half of a limit is no smaller than the limit.
    """
    kind = cells.kind
    below = kind == Kind.BELOW
    if not below.any() or (kind == Kind.EITHER).any():
        return None
    if not ((cells.upper[below] > 0.0).all() and (cells.seen >= 0.0).all()):
        return None
    values = np.where(kind == Kind.SEEN, cells.lower, np.nan)
    values[below] = 0.5 * cells.upper[below]
    above, between = kind == Kind.ABOVE, kind == Kind.BETWEEN
    values[above] = cells.lower[above]
    values[between] = 0.5 * (cells.lower[between] + cells.upper[between])
    return values


def _least_squares(fit: RegressionFit, j: int, y: Floats) -> tuple[Floats | None, float]:
    """Return coefficients over the rows with a value, and the deviation of the residuals.

    Coefficients that are given stay as they are. None where the rows do not determine the others.
    """
    assert fit.source is not None
    W, rows, free = fit.source.model.W, ~np.isnan(y), fit.free[j]
    left = y[rows] - W[np.ix_(rows, ~free)] @ fit.weights[j, ~free]
    own, out = W[np.ix_(rows, free)], fit.weights[j].copy()
    if rows.sum() <= free.sum():
        return None, np.nan
    counts = fit.source.model.row_weights
    if counts is not None:
        root = np.sqrt(counts[rows])
        own, left = own * root[:, None], left * root
    # In units of the columns, so that the rank does not depend on them.
    size = np.sqrt((own * own).sum(axis=0))
    found, _, rank, _ = np.linalg.lstsq(own / np.where(size > 0.0, size, 1.0), left, rcond=None)
    if rank < free.sum():
        return None, np.nan
    out[free] = found / size
    rest = left - own @ out[free]
    return out, float(np.sqrt(rest @ rest / (rows.sum() - free.sum())))


def residual_content(fit: RegressionFit) -> dict[str, Any]:
    """Return residuals, their quantiles with an envelope, and words on what the envelope is."""
    values = np.asarray(fit.residuals(), dtype=float)
    tables, why = simulated_residuals(fit)
    most = MOST_POINTS if values.shape[1] <= MANY_OUTCOMES else FEWER_POINTS
    quantiles = [
        _quantiles(values[:, j], None if tables is None else tables[:, :, j], most)
        for j in range(values.shape[1])
    ]
    envelope = {"refitted": 0 if tables is None else len(tables), "why": why}
    return {"values": values, "quantiles": quantiles, "envelope": envelope}


def normal_scores(n: int) -> Floats:
    """Return where a standard normal is expected to have its order statistics (Blom).

    Examples
    --------
    >>> normal_scores(3).round(2)
    array([-0.87,  0.  ,  0.87])
    """
    return np.asarray(ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25)))


def order_statistics(n: int, at: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return between which values each order statistic of n normal numbers lies with 95 %.

    The k-th of n uniform numbers is Beta(k, n + 1 - k).
    """
    k = at + 1.0
    low, high = (ndtri(betaincinv(k, n + 1.0 - k, p)) for p in (0.025, 0.975))
    return np.asarray(low), np.asarray(high)


def most_extreme(curves: Floats) -> bool:
    """Return whether the first curve is the lowest or the highest at more points than any other.

    Of curves that are alike this is as likely for each of them: one in 40, of ``TABLES`` and one more.

    Examples
    --------
    >>> most_extreme(np.array([[0.0, 3.0, 1.5], [0.5, 1.0, 3.0], [1.0, 2.0, 1.0]]))
    False
    >>> most_extreme(np.array([[0.0, 3.0, 4.0], [0.5, 1.0, 3.0], [1.0, 2.0, 2.0]]))
    True
    """
    ends = (curves == curves.min(axis=0)) | (curves == curves.max(axis=0))
    first, *others = ends.sum(axis=1).tolist()
    return bool(first > max(others))


def _quantiles(residual: Floats, tables: Floats | None, most: int) -> dict[str, Any]:
    """Return ordered residuals against normal scores, with an envelope: some of them, where many."""
    known = ~np.isnan(residual)
    ordered = np.sort(residual[known])
    n = ordered.size
    at = np.unique(np.linspace(0, max(n - 1, 0), min(n, most)).round().astype(np.intp))
    if n > most:
        ends = np.arange(min(EXTREME, most // 5))
        at = np.unique(np.concatenate([at, ends, n - 1 - ends]))
    odd = False
    if tables is None or not n:
        lower, upper = order_statistics(n, at)
    else:
        # Of each table as many as there are here: cells may be blank in other rows.
        many = [np.quantile(one[~np.isnan(one)], (at + 0.5) / n, method="hazen") for one in tables]
        lower, upper = np.min(many, axis=0), np.max(many, axis=0)
        odd = most_extreme(np.array([ordered[at], *many]))
    return {
        "count": n,
        "odd": odd,
        "normal": numbers(normal_scores(n)[at], 4),
        "residual": numbers(ordered[at], 4),
        "lower": numbers(lower, 4),
        "upper": numbers(upper, 4),
    }


def simulated_residuals(fit: RegressionFit) -> tuple[Floats | None, str | None]:
    """Return residuals of tables that the fit simulates, each fitted again; or why there are none."""
    assert fit.source is not None
    model = fit.source.model
    why = _not_simulated(fit)
    if why is None and model.W.shape[0] * sum(fit.weights.shape) > MOST_REFITTED:
        why = "the table is large"
    if why is not None:
        return None, why
    tables = []
    with single_blas_thread():
        for k in range(TABLES):
            one = _refitted(fit, k)
            if one is None:
                return None, "some simulated tables do not determine every coefficient"
            tables.append(one)
    return np.array(tables), None


def _not_simulated(fit: RegressionFit) -> str | None:
    """Say why nobody knows what a simulated table would hide; None where that is known."""
    assert fit.source is not None
    outcomes = fit.source.model.outcomes
    if fit.truncation is not None:
        return "rows are missing altogether, and nobody knows of which regressors"
    if isinstance(outcomes.rule, RowTruncation):
        return "the rule is about whole rows"
    if outcomes.carried is not None:
        return "the rule speaks of columns beside the outcomes"
    continuous = ~outcomes.latent
    data = outcomes.data
    own = ~data.seen & ~(np.isneginf(data.lower) & np.isposinf(data.upper))
    if own[:, continuous].any():
        return "cells say limits of their own, and no rule says what they would be for other values"
    return None


def hidden_alike(fit: RegressionFit, values: Floats, rng: np.random.Generator) -> Outcomes:
    """Return complete outcomes hidden by the same rule, selections and gaps as those fitted."""
    assert fit.source is not None
    old = fit.source.model.outcomes
    gaps = old.at_random & ~old.unselected() & ~old.data.seen
    seen = ~gaps
    if old.rule is None:
        # Blank cells are missing at random, where no rule says otherwise.
        seen &= old.data.seen | old.unselected() | old.latent
    else:
        seen &= old.rule.seen(values, rng) | old.latent
    unknown = np.isnan(old.codes)
    codes = np.full(values.shape, np.nan)
    at_random = gaps.copy()
    for j in np.flatnonzero(old.latent).tolist():
        cuts = np.asarray(fit.cut_points.get(old.names[j], np.zeros(1)))
        codes[:, j] = np.where(unknown[:, j], np.nan, np.searchsorted(cuts, values[:, j]))
    for one in old.selections:
        left_out = (values[:, one.index] > 0.0) != one.when
        for j in one.places:
            seen[left_out, j] = False
            at_random[left_out, j] = True
    seen[:, old.latent] = False
    data = IntervalData(np.where(seen, values, -np.inf), np.where(seen, values, np.inf), old.names)
    made = replace(old, data=data, codes=codes, at_random=at_random)
    return made.cut_at(fit.cut_points)


def _refitted(fit: RegressionFit, k: int) -> Floats | None:
    """Return residuals of one simulated table at the parameters that it is fitted with itself.

    Cut points are held where they are.
    """
    assert fit.source is not None
    model, seed = fit.source.model, fit.source.seed
    rng = keyed_generator(seed, Purpose.BOOTSTRAP, k)
    root = np.linalg.cholesky(fit.residual)
    eta = predictor(fit.weights, model.W)
    outcomes = hidden_alike(fit, eta + rng.standard_normal(eta.shape) @ root.T, rng)
    settings = Settings(NEAR_THE_TOP, MOST_STEPS, False, seed, False, fit.source.n_jobs)
    try:
        setup = Setup.of(replace(model, outcomes=outcomes), settings.n_jobs)
        equations, scale = setup.equations, setup.equations.scale
        here = Place(equations.of_coefficients(fit.weights), fit.residual / np.outer(scale, scale))
        found = climb(setup.rows, setup.step, setup.step.admit(*here.joined()), settings)
        place = split(found.mean, found.covariance, len(fit.outcomes))
        weights = equations.coefficients(place)
        residual = place.residual * np.outer(scale, scale)
        own = replace(fit, weights=weights, residual=residual, equations=equations, place=place)
        drawn = drawn_outcomes(own, outcomes, model.W, place, seed, k)
    except (HalfseenError, np.linalg.LinAlgError):
        return None
    values = (drawn - predictor(weights, model.W)) / np.sqrt(np.diag(residual))
    values[outcomes.at_random & ~outcomes.unselected()] = np.nan
    return np.asarray(values)
