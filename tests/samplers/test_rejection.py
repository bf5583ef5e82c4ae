import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.samplers.rejection import draw_by_rejection


def _normal(m, rng):
    return rng.standard_normal((m, 1))


def test_accepted_rows_follow_the_truncated_law():
    rng = np.random.default_rng(1)
    rows, share = draw_by_rejection(_normal, lambda Z, _: Z[:, 0] > 0.7, 20_000, rng)
    assert rows.shape == (20_000, 1)
    # The share of 80 000 proposals or so, within five standard errors.
    assert share == pytest.approx(stats.norm.sf(0.7), abs=5 * 0.5 / np.sqrt(80_000))
    test = stats.kstest(
        rows[:, 0], lambda z: (stats.norm.cdf(z) - stats.norm.cdf(0.7)) / stats.norm.sf(0.7)
    )
    assert test.pvalue > 1e-3


def test_a_set_that_is_never_hit_ends_in_a_sentence():
    with pytest.raises(hs.RarelyHitError, match=r"hit 0 times in \d+ draws"):
        draw_by_rejection(_normal, lambda Z, _: Z[:, 0] > 100, 5, np.random.default_rng(0))


def test_a_rare_set_is_still_drawn_from():
    rows, share = draw_by_rejection(
        _normal, lambda Z, _: Z[:, 0] > 3, 300, np.random.default_rng(0)
    )
    assert len(rows) == 300
    assert 5e-4 < share < 3e-3


def test_enough_hits_are_enough():
    # One in 50 000: too rare for many draws, but the one that was asked for is there.
    rows, share = draw_by_rejection(
        _normal, lambda Z, _: Z[:, 0] > 4.107, 1, np.random.default_rng(0), guess=1e-7
    )
    assert len(rows) == 1
    assert share < 1e-3


def test_the_same_generator_gives_the_same_rows():
    first, second = (
        draw_by_rejection(_normal, lambda Z, _: Z[:, 0] > 1, 500, np.random.default_rng(7))[0]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
