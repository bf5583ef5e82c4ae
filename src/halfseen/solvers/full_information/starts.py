"""Where ``full`` starts from: never from anywhere, since its likelihood need not be concave."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.data.table import TableKind
from halfseen.errors import NotIdentifiedError
from halfseen.missingness.base import ColumnwiseMissingness
from halfseen.solvers.full_information.expectation import Sampling
from halfseen.solvers.full_information.m_step import correlation_of, with_floor
from halfseen.solvers.full_information.rows import Rows
from halfseen.solvers.pairwise import pairwise_gaussian
from halfseen.solvers.prepared_table import PreparedTable

Floats = NDArray[np.float64]

# Rows that a start is made from, where there are more: a climb forgets what they got wrong.
START_ROWS = 20_000
# Steps of expectation maximisation for each column by itself.
COLUMN_STEPS, SMALLEST_VARIANCE = 4, 1e-6
# The same where columns keep what is found, which is then good to a small share of a standard error.
MARGIN_STEPS = 15
# Correlations of the rows in which a pair is seen, with weight n/(n + this): few rows say little.
PRIOR_ROWS = 20.0
# Smallest eigenvalue of the correlations that are started from.
EIGENVALUE_FLOOR = 0.05
# Eigenvalues that correlations of pairs are tried with, and the rows and points that judge.
FLOORS, FLOOR_ROWS, FLOOR_POINTS = (0.001, 0.01, 0.05), 1000, 16
# Where to start on the sides of what is seen, in its spreads; and most starts there.
SIDE, MOST_SIDES = 2.0, 14
# The sign of a correlation is settled by rows that show both values, if it is so many standard errors
# from zero there; one that is as far from zero where to start is worth turning. And most turns.
SETTLED_SIGN, WORTH_TURNING, MOST_TURNS = 3.0, 2.0, 14


def start_from(data: PreparedTable, rows: Rows, n_jobs: int | None) -> tuple[Floats, Floats]:
    """Return the first mean and covariance, in standardised units.

    For rules by column that of ``pairwise``, where it exists. Else each column by itself, and the
    correlations of the values that are seen together. ``data`` is the table, or moments of it, which
    were found to agree with the rule.
    """
    about = rows.overview
    rule = about.missingness
    if (
        isinstance(rule, ColumnwiseMissingness)
        and not about.simply_missing
        # Moments do not tell rows with different limits apart.
        and not (rule.varies_by_row and data.kind is TableKind.MOMENTS)
    ):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = pairwise_gaussian(data, n_jobs)
            place = about.from_units(start.mean, start.covariance)
            return _likeliest_floor(rows, *place)
        except NotIdentifiedError:
            # A pair is never seen together: pairs cannot be started from.
            pass
    return available_start(rows)


def _likeliest_floor(rows: Rows, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """Keep correlations put together from pairs off singular ones, if rows are likelier for it."""
    scale = np.sqrt(np.diag(covariance))
    smallest = float(np.linalg.eigvalsh(covariance / np.outer(scale, scale))[0])
    places = [(mean, covariance)]
    for floor in FLOORS:
        if smallest < floor:
            R = correlation_of(with_floor(correlation_of(covariance), floor))
            places.append((mean, R * np.outer(scale, scale)))
    if len(places) == 1:
        return places[0]
    some = rows.sample(FLOOR_ROWS, 0)
    values = [some.expect(*place, Sampling(FLOOR_POINTS, 0))[1] for place in places]
    return places[int(np.argmax(values))]


def margins(rows: Rows) -> tuple[Floats, Floats] | None:
    """Return means and variances of the columns by themselves, in standardised units.

    None where inequalities bind columns together. With few rows each keeps its own: a hidden cell that
    is filled by noisy correlations with many columns spreads too far, and variances grow with it.
    """
    return None if rows.overview.bound else _columns(rows, MARGIN_STEPS)


def available_start(rows: Rows) -> tuple[Floats, Floats]:
    """Start from the columns one by one, and from the rows in which pairs are seen."""
    rows = rows.sample(START_ROWS, 0)
    moments = rows.seen_moments()
    d = rows.overview.shape[1]
    mean, variance = np.zeros(d), np.ones(d)
    if not rows.overview.bound:
        mean, variance = _columns(rows)
    R = seen_correlations(moments) * moments.counts / (moments.counts + PRIOR_ROWS)
    np.fill_diagonal(R, 1.0)
    R = correlation_of(with_floor(R, EIGENVALUE_FLOOR))
    return mean, R * np.sqrt(np.outer(variance, variance))


def seen_correlations(moments: PairMoments) -> Floats:
    """Return the correlation of each pair in the rows that show both; 0 where these do not say."""
    with np.errstate(invalid="ignore", divide="ignore"):
        first = moments.first / moments.counts
        centred = moments.cross / moments.counts - first * first.T
        spread = moments.second / moments.counts - first * first
        R = centred / np.sqrt(spread * spread.T)
    return np.where(np.isfinite(R), np.clip(R, -1.0, 1.0), 0.0)


def _columns(rows: Rows, steps: int = COLUMN_STEPS) -> tuple[Floats, Floats]:
    """Censored maximum likelihood of each column by itself: expectation maximisation.

    Cells that are independent are integrated, not sampled.
    """
    d = rows.overview.shape[1]
    mean, variance = np.zeros(d), np.ones(d)
    for _ in range(steps):
        moments, _ = rows.expect(mean, np.diag(variance), Sampling(1, 0))
        mean = moments.first
        variance = np.maximum(np.diag(moments.about(mean)), SMALLEST_VARIANCE)
    return mean, variance


def other_starts(mean: Floats, covariance: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield starts around a first one: independent columns, and wider ones."""
    variance = np.diag(covariance)
    yield mean, np.diag(variance)
    yield mean, np.diag(2.0 * variance)
    yield mean, 2.0 * covariance


def mirrored_starts(
    mean: Floats, covariance: Floats, several: NDArray[np.intp]
) -> Iterator[tuple[Floats, Floats]]:
    """Yield starts on either side of what is seen, for columns that hide in several pieces.

    All of these columns below, all above, and each by itself on either side. In standardised units the
    seen values lie around 0, with a spread of 1.
    """
    sides = [(several, side) for side in (-SIDE, SIDE)]
    if several.size > 1:
        sides += [(several[k : k + 1], side) for k in range(several.size) for side in (-SIDE, SIDE)]
    for columns, side in sides[:MOST_SIDES]:
        moved, scale = mean.copy(), np.ones(mean.size)
        moved[columns] = side
        # So far away that a piece of a normal distribution can look like what is seen.
        scale[columns] = SIDE / np.sqrt(np.diag(covariance)[columns])
        yield moved, covariance * np.outer(scale, scale)


def turned_starts(
    mean: Floats, covariance: Floats, several: NDArray[np.intp], moments: PairMoments
) -> Iterator[tuple[Floats, Floats]]:
    """Yield starts with signs of correlations turned, for columns that hide in several pieces.

    That both values of a row are hidden is as likely with either sign, so that only the rows which show
    one of them tell the sign. Where those that show both do not settle it, each such correlation is
    turned by itself, and all those of a column together.
    """
    scale = np.sqrt(np.diag(covariance))
    R = correlation_of(covariance)
    rows = np.sqrt(np.maximum(moments.counts - 3.0, 0.0))
    # Towards the sign where to start; Fisher's scale, on which standard errors are one over the root.
    settled = np.sign(R) * np.arctanh(np.clip(seen_correlations(moments), -0.99, 0.99)) * rows
    worth = np.abs(np.arctanh(np.clip(R, -0.99, 0.99))) * np.sqrt(moments.rows) > WORTH_TURNING
    doubtful = worth & (settled < SETTLED_SIGN) & ~np.eye(len(R), dtype=bool)
    alone = np.setdiff1d(np.arange(len(R)), several)
    doubtful[np.ix_(alone, alone)] = False
    turns = []
    for j in range(len(R)):
        if doubtful[j].sum() > 1:
            turns.append([(i, j) for i in np.flatnonzero(doubtful[j])])
    pairs = np.argwhere(np.tril(doubtful))
    turns += [[(a, b)] for a, b in sorted(pairs, key=lambda pair: settled[tuple(pair)])]
    for turn in turns[:MOST_TURNS]:
        turned = R.copy()
        for a, b in turn:
            turned[a, b] = turned[b, a] = -R[a, b]
        turned = correlation_of(with_floor(turned, EIGENVALUE_FLOOR))
        yield mean, turned * np.outer(scale, scale)
