"""Whether the rows determine every coefficient: before a climb that would not end, and after it.

The likelihood of an equation grows for ever along a direction of its coefficients that changes no
prediction of a row whose value is seen, and moves those of all others deeper into where they hide: a
regressor that separates the categories of a binary outcome, or a category of which everything lies below
the limit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from halfseen.data.triangles import lengths_of, triangle_of
from halfseen.errors import NotIdentifiedError
from halfseen.solvers.full_information.information import Information
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.regression.facts import (
    Equation,
    Several,
    mills_ratio,
    mills_triangle,
    some_moves,
    triangles_of,
    wrong_moves,
)
from halfseen.solvers.regression.model import Model, Setup
from halfseen.solvers.regression.places import Place, bounds_of
from halfseen.solvers.result import Note, Status, name_some

Floats = NDArray[np.float64]

# Singular values and moves, of columns of unit length, that count as zero.
ZERO = 1e-9
# Rows of a piece that are looked at first, to see whether its regressors tell coefficients apart.
SOME_ROWS = 2000
# Rows that are looked at first, drawn at a stride; those that contradict a direction join them.
FIRST_ROWS, MORE_ROWS, MOST_ROUNDS = 2000, 500, 50
# Terms with a share of the largest move of a direction that are named.
NAMED = 1e-3
# Correlations of residuals beyond this are as good as 1.
AS_GOOD_AS_ONE = 0.999
# Share of the variance of a Mills ratio that the regressors of the outcome have too, beyond which
# nothing but the normal law of the residuals tells selection from them: a variance inflation of 20.
COLLINEAR = 0.95
# Share of what complete rows would say that is missing along a direction, beyond which it is hardly
# determined, over and above what blank cells take from an outcome. And the same in rows.
HARDLY_KNOWN, FEWEST_KNOWN = 0.97, 2.0


def check_identified(model: Model, setup: Setup) -> None:
    """Raise a ``NotIdentifiedError`` where a coefficient has no estimate, or no finite one."""
    free, q = model.mask & np.isnan(model.fixed), len(model.outcomes.names)
    rows, T = setup.rows, setup.equations.T
    # Of unit length.
    T = T / (np.sqrt(rows.overview.shape[0]) * np.maximum(lengths_of(T), np.finfo(float).tiny))
    of_terms = [np.flatnonzero(own) for own in free]
    equations = tuple(
        Equation(j, q, T[:, of_terms[j]], setup.cuts.get(outcome))
        for j, outcome in enumerate(model.outcomes.names)
    )
    some: Several = rows.look(triangles_of, equations, SOME_ROWS)
    for equation, told in zip(equations, some.each, strict=True):
        j, terms = equation.outcome, of_terms[equation.outcome]
        if not (_has_full_rank(told.known) and _has_full_rank(told.pinned)):
            # Some of the rows do not settle it.
            (told,) = rows.look(triangles_of, (equation,), None).each
        outcome = model.outcomes.names[j]
        _check_rows(told.rows, told.known, outcome, [model.terms[t] for t in terms])
        direction = endless_direction(rows, equation, told.pinned)
        if direction is not None:
            found = _endless_terms(rows, equation, direction)
            names = [model.terms[terms[t]] for t in found if t < terms.size]
            raise NotIdentifiedError(_sentence(outcome, names, bool(model.outcomes.latent[j])))


def _has_full_rank(triangle: Floats) -> bool:
    """Whether no direction leaves these rows where they are."""
    return not triangle.shape[1] or not _directions_left(triangle).shape[1]


def _directions_left(triangle: Floats) -> Floats:
    """Return the directions that leave rows where they are, by the triangle of these."""
    _, sizes, directions = np.linalg.svd(triangle, full_matrices=True)
    rank = int((sizes > ZERO * max(sizes.max(initial=0.0), ZERO)).sum())
    return np.asarray(directions[rank:].T)


def _endless_terms(rows: Rows, equation: Equation, direction: Floats) -> list[int]:
    """Return the term that does it by itself, with a constant beside it, or all that take part."""
    moves = np.abs(direction)
    order = [int(t) for t in np.argsort(-moves, kind="stable") if moves[t] > NAMED * moves.max()]
    constant = np.flatnonzero((equation.T[1:] == 0.0).all(axis=0))
    for t in order:
        if t in constant or t >= equation.T.shape[1]:
            continue
        own = equation.take(np.union1d(constant, [t]).astype(np.intp))
        (told,) = rows.look(triangles_of, (own,), None).each
        if endless_direction(rows, own, told.pinned) is not None:
            return [t]
    return order


def _check_rows(rows: int, triangle: Floats, outcome: str, terms: Sequence[str]) -> None:
    """Raise where the rows of which something is known do not tell the terms apart."""
    if not terms:
        return
    if rows < len(terms):
        raise NotIdentifiedError(
            f"{outcome}: {len(terms)} terms, but only {rows} rows of which something is known. Leave "
            "terms out, or add rows."
        )
    sizes, directions = np.linalg.svd(triangle, full_matrices=False)[1:]
    if sizes[-1] <= ZERO * sizes[0]:
        last = np.abs(directions[-1])
        names = [terms[t] for t in np.argsort(-last, kind="stable") if last[t] > NAMED * last.max()]
        raise NotIdentifiedError(
            f"{outcome}: among the rows of which something is known, the terms "
            f"{name_some(names, 6)} are "
            "combinations of each other. Leave one of them out."
        )


def _sentence(outcome: str, names: Sequence[str], latent: bool) -> str:
    """Say which coefficients have no finite estimate, and what to try."""
    several = len(names) > 1
    what = (
        "a combination of them says without exception in which category a row is"
        if several
        else "it says without exception in which category a row is, where it says anything"
    )
    if not latent:
        what = "where they differ, every value is hidden on the same side"
    fixed = f"fixed={{{outcome!r}: {{{names[0]!r}: 0.0}}}}"
    return (
        f"{outcome}: the coefficient{'s' * several} of {name_some(list(names), 6)} "
        f"{'have' if several else 'has'} no finite estimate: {what}. Leave "
        f"{'one of them' if several else 'it'} out, put categories together, or give "
        f"{'one' if several else 'it'}: {fixed}."
    )


def endless_direction(rows: Rows, equation: Equation, pinned: Floats) -> Floats | None:
    """Return a direction that moves no pinned row, and no other to the wrong side; None without one.

    Found by linear programming on some of the rows, which those that contradict it join. ``pinned``
    is the triangle of the others.
    """
    if _has_full_rank(pinned):
        return None
    left = _directions_left(pinned)
    part = rows.look(some_moves, equation, left, FIRST_ROWS).moves
    if not len(part):
        return None
    for _ in range(MOST_ROUNDS):
        scale = max(np.abs(part).max(initial=0.0), 1e-300)
        found = linprog(
            -part.sum(axis=0), A_ub=-part / scale, b_ub=np.zeros(len(part)), bounds=(-1, 1)
        )
        if found.fun is None or not found.success or -found.fun <= ZERO * scale * len(part):
            return None
        direction = np.asarray(found.x)
        asked = equation, left, direction, ZERO * scale, MORE_ROWS
        wrong = rows.look(wrong_moves, *asked).moves
        if not len(wrong):
            return np.asarray(left @ direction)
        part = np.unique(np.vstack([part, wrong]), axis=0)
    return None


def never_together(together: Floats) -> list[tuple[int, int]]:
    """Return pairs of outcomes of which no row says something of both: what binds them is not known."""
    return [(int(i), int(j)) for i, j in np.argwhere(np.tril(together == 0.0, -1))]


def note_of_zeros(names: Sequence[str]) -> Note:
    """Say that residuals vanish, so that the likelihood has no top."""
    text = (
        f"The residuals of {name_some(list(names), 6)} are as good as zero, next to what is seen: "
        "coefficients explain every row, or lie within every interval, and the likelihood grows "
        "for ever. "
        "Leave terms out, add rows, see whether a regressor is the outcome in other words, or subtract "
        "what is known from the outcome."
    )
    return Note(Status.ON_DOMAIN_EDGE, text)


def note_of_singular(names: Sequence[str]) -> Note:
    """Say that residuals are combinations of each other, so that the likelihood has no top."""
    text = (
        f"The residuals of {name_some(list(names), 6)} are as good as combinations of each other: "
        "there are too few rows for so many outcomes and terms, or outcomes repeat each other. "
        "Leave some "
        "out, add rows, or take covariance='diagonal'."
    )
    return Note(Status.ON_DOMAIN_EDGE, text)


def notes_of_residuals(
    model: Model, scale: Floats, place: Place, never: list[tuple[int, int]]
) -> list[Note]:
    """Say which residuals are as good as the same, and which were never seen together."""
    names = model.outcomes.names
    residual = place.residual * np.outer(scale, scale)
    deviation = np.sqrt(np.diag(residual))
    notes = []
    for i, j in never:
        if model.free[i, j]:
            low, high = bounds_of(residual, i, j)
            ends = low / (deviation[i] * deviation[j]), high / (deviation[i] * deviation[j])
            text = (
                f"No row says anything of both {names[j]} and {names[i]}, so the correlation of their "
                f"residuals is not determined; the others allow {ends[0]:.2f} to {ends[1]:.2f}."
            )
            notes.append(Note(Status.WEAKLY_IDENTIFIED, text))
    R = residual / np.outer(deviation, deviation)
    for i, j in np.argwhere(np.tril(np.abs(R) > AS_GOOD_AS_ONE, -1)):
        if model.free[i, j] and (int(i), int(j)) not in never:
            text = (
                f"The residuals of {names[j]} and {names[i]} are as good as the same (correlation "
                f"{R[i, j]:.4f}): the likelihood grows towards the edge. Leave terms out, look for a "
                "regressor of one equation alone, or fix the covariance."
            )
            notes.append(Note(Status.ON_DOMAIN_EDGE, text))
    return notes


def notes_of_selection(model: Model, setup: Setup, coefficients: Floats) -> list[Note]:
    """Say where the Mills ratio of a selection is all but a combination of the outcome's regressors."""
    notes, names = [], model.outcomes.names
    T, q = setup.equations.T[:, : len(model.terms)], len(names)
    for one in model.outcomes.selections:
        by, sign = one.index, 1.0 if one.when else -1.0
        index = T @ coefficients[by]
        for j in one.places:
            if not model.free[j, by]:
                continue
            equation = Equation(j, q, T[:, model.mask[j]])
            share = explained(setup.rows.look(mills_triangle, equation, index, sign).R)
            own = model.mask[by] & ~model.mask[j]
            if share > COLLINEAR:
                why = (
                    f"no regressor of {names[by]} is left out of {names[j]}"
                    if not own.any()
                    else f"what {names[by]} has of its own says little"
                )
                text = (
                    f"{names[j]}: {share:.1%} of the variance of the Mills ratio of {names[by]} "
                    "is that of "
                    f"the regressors ({why}), so selection is told from them by the normal law of the "
                    f"residuals alone. A regressor that moves {names[by]} and not {names[j]} would help."
                )
                notes.append(Note(Status.WEAKLY_IDENTIFIED, text))
    return notes


def mills_share(model: Model, j: int, index: Floats, when: bool) -> float:
    """Return the share of the variance of the Mills ratio that the regressors of an outcome have too."""
    shown = ~model.outcomes.at_random[:, j]
    ratio = mills_ratio(index[shown], 1.0 if when else -1.0)
    W = model.W[shown][:, model.mask[j]]
    return explained(triangle_of(np.column_stack([np.ones(len(W)), W, ratio])))


def explained(triangle: Floats) -> float:
    """Return the share of the variance of the last column that those between the first and it explain.

    The first is the constant.
    """
    W, last = triangle[:, :-1], triangle[:, -1]
    left = last - W @ np.linalg.lstsq(W, last, rcond=None)[0]
    total = float(last[1:] @ last[1:])
    return 1.0 if total <= 0.0 else 1.0 - float(left @ left) / total


def notes_of_information(model: Model, setup: Setup, known: Information, never: int) -> list[Note]:
    """Say where the data say next to nothing about a direction of the parameters.

    ``never`` directions are those of residuals that are never seen together, which have notes of
    their own.
    """
    n = setup.rows.overview.shape[0]
    most_blank = float(1.0 - (np.diag(setup.together) / n).min(initial=1.0))
    kept = np.sort(1.0 - np.minimum(known.missing, 1.0))[never:]
    rows = kept * n
    few = rows < FEWEST_KNOWN
    # Of a latent outcome complete rows would show the number itself: most of that is always lost.
    if not model.outcomes.latent.any():
        few |= kept < (1.0 - HARDLY_KNOWN) * (1.0 - most_blank)
    hardly = int(few.sum())
    if not hardly:
        return []
    text = (
        f"{hardly} of {kept.size} directions among the parameters have lost more than "
        f"{HARDLY_KNOWN:.0%} of "
        "what complete rows would say, or are known as from less than two rows."
    )
    return [Note(Status.WEAKLY_IDENTIFIED, text)]
