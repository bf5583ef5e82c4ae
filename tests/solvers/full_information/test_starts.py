"""Starts where the likelihood has several tops."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.data.moments import PairMoments
from halfseen.solvers.full_information.m_step import correlation_of
from halfseen.solvers.full_information.starts import turned_starts

LIMITS = hs.DetectionLimits(lower=-0.84, upper=0.84)
TRUTH = hs.Gaussian(np.zeros(3), 0.5 + 0.5 * np.eye(3))
LOWER = np.tril_indices(3, -1)


def _signs(R, several, moments):
    return [
        tuple(np.sign(correlation_of(S)[LOWER]).astype(int))
        for _, S in turned_starts(np.zeros(3), R, np.array(several), moments)
    ]


def test_signs_that_rows_do_not_settle_are_turned(rng):
    R = TRUTH.covariance
    # Nothing to be seen of any pair: each sign by itself, and those of each column.
    nothing = PairMoments.from_array(
        np.where(np.eye(3, dtype=bool), 0.5, np.nan).repeat(20, axis=0)
    )
    pairs = [(-1, 1, 1), (1, -1, 1), (1, 1, -1)]
    columns = [(-1, -1, 1), (-1, 1, -1), (1, -1, -1)]
    assert sorted(_signs(R, [0, 1, 2], nothing)) == sorted(pairs + columns)
    # Only one column hides in several pieces: the sign between the other two stays.
    assert sorted(_signs(R, [0], nothing)) == sorted([*pairs[:2], columns[0]])
    # Sixty rows that show all are enough for correlations of 0.5: atanh(0.5)·√57 is above 4.
    rows = rng.normal(size=(60, 3))
    rows -= rows.mean(axis=0)
    exact = np.linalg.qr(rows)[0] * np.sqrt(60) @ np.linalg.cholesky(R).T
    assert _signs(R, [0, 1, 2], PairMoments.from_array(exact)) == []
    # Correlations that are hardly any are not worth it.
    assert _signs(0.99 * np.eye(3) + 0.01, [0, 1, 2], nothing) == []


@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_the_likelier_sign_is_found_where_sides_are_not_known():
    # From pairs, and from either side of what is seen, it ended 0.6 below, and said CONVERGED.
    X = hs.simulate(TRUTH, LIMITS, 30, 3)
    found = hs.fit(X, LIMITS, random_state=0, standard_errors=False)
    from_truth = hs.fit(X, LIMITS, start=TRUTH, random_state=0, standard_errors=False)
    assert float(found.log_likelihood) > float(from_truth.log_likelihood) - 0.5
    assert any(note.status is hs.Status.NO_GLOBAL_GUARANTEE for note in found.notes)
