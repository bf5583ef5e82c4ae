"""From outcomes and regressors to coefficients that are pulled towards 0, and how strongly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import positive_number
from halfseen.errors import InputError
from halfseen.parallel import single_blas_thread
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.expectation import Sampling
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression.entries import Entries
from halfseen.solvers.regression.estimate import Regressed, RegressionEstimate
from halfseen.solvers.regression.identification import check_identified, never_together
from halfseen.solvers.regression.model import PENALTIES, Model, Penalty, Setup
from halfseen.solvers.regression.penalised import Climbed, PenalisedClimb, Predicted
from halfseen.solvers.regression.places import Place
from halfseen.solvers.result import Note, Status

Floats = NDArray[np.float64]

# Parts of the rows, of which each is held out once; and strengths that are tried.
FOLDS, STRENGTHS = 5, 20
# Strengths that may be worse than the best before no more are tried.
PATIENCE = 3
# Strengths of the ridge, as shares of the largest variance of a direction of the regressors: from where
# nothing is left of any coefficient to where next to nothing is taken.
RIDGE_FIRST, RIDGE_LAST = 30.0, 1e-4
# Of the lasso the first is the least that leaves nothing, and the last this share of it: with many
# regressors for the rows it would take ever more of them in, and fit them to noise.
LASSO_SHARE, LASSO_SHARE_WIDE = 1e-3, 1e-2
# The gain of a step at the end of a climb, in log-likelihood; and on the way there.
ENOUGH, ENOUGH_ON_THE_WAY = 1e-10, 1e-4
# Shifts of the points of rows that are sampled, for the log-likelihood, and points of each.
REPLICATES, VALUE_POINTS = 4, 256
# A pull under which no slope is left, whatever the rows say.
ALL = 1e8


def learn_penalised(model: Model, settings: Settings) -> RegressionEstimate:
    """Climb to the top of the penalised likelihood, at a strength that is given or chosen."""
    penalty = model.penalty
    assert penalty is not None
    _check_model(model, penalty.kind)
    with single_blas_thread():
        setup = Setup.of(model, settings.n_jobs)
        # What is pulled has an estimate. Intercepts are not.
        constant = np.ptp(model.W, axis=0) == 0.0
        check_identified(replace(model, mask=model.mask & constant), setup)
        assert isinstance(setup.rows, HeldRows)
        problem, errors = setup.rows.problem, setup.step.parts[1]
        rows = Predicted(problem, setup.equations, errors, settings.n_jobs)
        null, history = without_slopes(rows), dict[str, Any]()
        if penalty.strength is not None:
            found = _at(rows, penalty, null, ENOUGH)
        else:
            found, penalty, history = _chosen(rows, penalty.kind, null, settings.seed)
        return _describe(model, setup, rows, found, penalty, history, settings)


def without_slopes(rows: Predicted) -> Place:
    """Return intercepts and residuals, were there no regressors but those whose slopes are given."""
    q = rows.q
    start = Place(rows.equations.terms.offset.copy(), np.eye(q))
    if isinstance(rows.errors, Entries):
        # Given entries are there from the beginning.
        start = start._replace(residual=rows.errors.solve(np.eye(q), 1))
    climb = PenalisedClimb(rows, Penalty("lasso", ALL), rows.order_at(start))
    return climb.climb(start, ENOUGH_ON_THE_WAY).place


def _at(rows: Predicted, penalty: Penalty, start: Place, enough: float) -> Climbed:
    return PenalisedClimb(rows, penalty, rows.order_at(start)).climb(start, enough)


def strengths_of(rows: Predicted, kind: str, null: Place) -> Floats:
    """Return the strengths that are tried, the strongest first."""
    n, p = rows.X.shape
    if kind == "ridge":
        largest = float(np.linalg.eigvalsh(rows.ww[1:, 1:]).max(initial=0.0)) or 1.0
        return np.geomspace(RIDGE_FIRST * largest, RIDGE_LAST * largest, STRENGTHS)
    climb = PenalisedClimb(rows, Penalty("lasso", ALL), rows.order_at(null))
    least = climb.least_without_slopes(null) or 1.0
    last = LASSO_SHARE if n > 2 * p else LASSO_SHARE_WIDE
    return np.geomspace(least, last * least, STRENGTHS)


def _chosen(
    rows: Predicted, kind: str, null: Place, seed: int
) -> tuple[Climbed, Penalty, dict[str, Any]]:
    """Choose the strength at which rows that were held out are likeliest, and climb with all."""
    strengths = strengths_of(rows, kind, null)
    held_out = held_out_likelihoods(rows, kind, strengths, null, seed)
    strengths, best = strengths[: len(held_out)], int(np.argmax(held_out))
    place, path = null, []
    for strength in strengths:
        place = _at(rows, Penalty(kind, float(strength)), place, ENOUGH_ON_THE_WAY).place
        path.append(place)
    chosen = Penalty(kind, float(strengths[best]))
    history: dict[str, Any] = {
        "strengths": strengths,
        "held_out": held_out,
        "path": np.array([_coefficients(rows, one) for one in path]),
    }
    return _at(rows, chosen, path[best], ENOUGH), chosen, history


def held_out_likelihoods(
    rows: Predicted, kind: str, strengths: Floats, null: Place, seed: int
) -> Floats:
    """Return the log-likelihood of a row that was held out, on average, at each strength.

    From the strongest on, each climb from where the last one ended, until none has been better for a
    while: weak penalties take longest, and fit noise.
    """
    n, order = len(rows.X), rows.order_at(null)
    parts = folds_of(n, seed)
    learned = [rows.take(np.setdiff1d(np.arange(n), part)) for part in parts]
    kept, places = [rows.take(part) for part in parts], [null] * len(parts)
    out: list[float] = []
    for strength in strengths:
        penalty, total = Penalty(kind, float(strength)), 0.0
        for k, part in enumerate(parts):
            places[k] = _at(learned[k], penalty, places[k], ENOUGH_ON_THE_WAY).place
            values = kept[k].ask(places[k], order, Sampling(VALUE_POINTS, 0)).values
            total += float(rows.shares[part] @ values)
        out.append(total)
        if len(out) - int(np.argmax(out)) > PATIENCE:
            break
    return np.array(out)


def folds_of(n: int, seed: int) -> list[NDArray[np.intp]]:
    """Cut the rows, in an order of the seed, into parts; each part in the order of the table."""
    order = keyed_generator(seed, Purpose.FOLDS).permutation(n)
    return [np.sort(part) for part in np.array_split(order, FOLDS)]


def _coefficients(rows: Predicted, place: Place) -> Floats:
    """Return coefficients in the units of the table; a slope that is 0 is so to the last bit."""
    equations = rows.equations
    out = equations.coefficients(place)
    for t in np.flatnonzero(equations.T[1:].any(axis=0)):
        column = 1 + np.abs(equations.T[1:, t]).argmax()
        out[equations.free[:, t] & (place.coefficients[:, column] == 0.0), t] = 0.0
    return out


def _log_likelihood(setup: Setup, rows: Predicted, place: Place) -> tuple[float, float]:
    """Return the log-likelihood in the units of the table, and its Monte-Carlo error."""
    n, order = len(rows.X), rows.order_at(place)
    sampled = setup.rows.overview.sampled
    asked = [
        n * float(rows.shares @ rows.ask(place, order, Sampling(VALUE_POINTS, 0, k)).values)
        for k in range(REPLICATES if sampled else 1)
    ]
    error = float(np.std(asked, ddof=1)) / math.sqrt(REPLICATES) if sampled else 0.0
    return float(np.mean(asked)) - float(setup.seen @ np.log(setup.equations.scale)), error


def _describe(
    model: Model,
    setup: Setup,
    rows: Predicted,
    found: Climbed,
    penalty: Penalty,
    history: dict[str, Any],
    settings: Settings,
) -> RegressionEstimate:
    """Put an estimate together, in the units of the table."""
    equations, scale, outcomes = setup.equations, setup.equations.scale, model.outcomes
    k = len(model.terms)
    value, error = _log_likelihood(setup, rows, found.place)
    weights = _coefficients(rows, found.place)[:, :k]
    free = equations.free[:, :k]
    learned = int((weights[free] != 0.0).sum()) + rows.errors.count(rows.q)
    notes = []
    if not found.settled:
        text = f"The penalised likelihood still rose after {found.steps} steps."
        notes.append(Note(Status.NOT_CONVERGED, text))
    if history:
        # In the units of the table, as the log-likelihood.
        history["path"] = history["path"][..., :k]
        history["held_out"] = history["held_out"] - setup.seen @ np.log(scale) / len(model.W)
    return RegressionEstimate(
        outcomes.names,
        model.terms,
        weights,
        found.place.residual * np.outer(scale, scale),
        model.mask,
        free,
        {},
        outcomes.kinds,
        outcomes.categories,
        None,
        value,
        error,
        learned,
        len(model.W),
        setup.seen / len(model.W),
        tuple(notes),
        {
            **history,
            "steps": found.steps,
            "undetermined": [[i, j] for i, j in never_together(setup.together) if model.free[i, j]],
        },
        equations,
        found.place,
        Regressed(model, settings.seed, settings.n_jobs),
        is_weighted=model.row_weights is not None,
        penalty=penalty,
    )


def read_penalty(kind: Any, strength: Any, robust: bool, truncated: bool) -> Penalty | None:
    """Read which penalty is wanted, and how strong; None without one."""
    if kind is None:
        if strength is not None:
            raise InputError(
                "strength is that of a penalty: add penalty='ridge' or penalty='lasso'."
            )
        return None
    if not isinstance(kind, str) or kind not in PENALTIES:
        raise InputError(f"penalty must be 'ridge' or 'lasso'; got {kind!r}.")
    if robust:
        raise InputError(
            "robust and clustered standard errors are for fits without penalty=, which have standard "
            "errors. Leave robust= and cluster= out."
        )
    if truncated:
        raise InputError(
            "rows that are not in the table are for a regression without penalty=. Leave truncated= or "
            "penalty= out."
        )
    return Penalty(kind, None if strength is None else positive_number("strength", strength))


def _check_model(model: Model, kind: str) -> None:
    """Raise where coefficients of such a model cannot be pulled."""
    outcomes = model.outcomes
    if kind == "lasso" and model.ties is not None:
        raise InputError(
            "equal= says that coefficients are the same, which the lasso cannot keep. Take "
            "penalty='ridge', or leave equal= out."
        )
    if "ordered" in outcomes.kinds:
        raise InputError(
            f"{outcomes.names[outcomes.kinds.index('ordered')]} is ordered, and cut points are not "
            "learned beside a penalty. Leave penalty= out, or make two categories of it."
        )
    learned = model.mask & np.isnan(model.fixed)
    if not (learned & (np.ptp(model.W, axis=0) > 0.0)).any():
        raise InputError(
            "a penalty pulls coefficients of regressors, and none is to be learned. Leave penalty= out."
        )
    if len(model.W) < 2 * FOLDS:
        raise InputError(
            f"a penalty is for many rows or many regressors: at least {2 * FOLDS} rows are needed; got "
            f"{len(model.W)}."
        )
