import sys

import numpy as np
import pytest
from scipy.special import ndtri

import halfseen as hs
from halfseen.seeds import Purpose, keyed_generator

# The package shows the function under the name of its module.
module = sys.modules["halfseen.simulate"]


def test_hidden_shares_are_those_of_the_model(three):
    limits = three.mean + ndtri([0.2, 0.5, 0.7]) * three.standard_deviations
    X = hs.simulate(three, hs.DetectionLimits(lower=limits), 50_000, 1)
    # Five standard errors of a share.
    assert np.abs(np.isnan(X).mean(axis=0) - [0.2, 0.5, 0.7]).max() < 5 * 0.5 / np.sqrt(50_000)


def test_complete_rows_are_those_that_were_hidden_from(three):
    rule = hs.DetectionLimits(lower=0.0)
    X, Y = hs.simulate(three, rule, 100, 2, return_complete=True)
    np.testing.assert_array_equal(X, np.where(Y >= 0, Y, np.nan))
    np.testing.assert_array_equal(X, hs.simulate(three, rule, 100, 2))


def test_rows_come_from_generators_keyed_by_block(three, monkeypatch):
    rule = hs.SelfCensoring(hs.everything)
    monkeypatch.setattr(module, "BLOCK_ROWS", 10)
    X = hs.simulate(three, rule, 35, 7)
    np.testing.assert_array_equal(X[20:30], three.sample(10, keyed_generator(7, Purpose.ROWS, 2)))
    np.testing.assert_array_equal(hs.simulate(three, rule, 20, 7), X[:20])


def test_streams_never_meet():
    places = [(p, *rest) for p in Purpose for rest in ((), (0,), (0, 0), (0, 1), (1,), (1, 0))]
    draws = {keyed_generator(5, *place).integers(2**63) for place in places}
    assert len(draws) == len(places)
    assert keyed_generator(5, Purpose.ROWS, 0).integers(2**63) != np.random.default_rng(5).integers(
        2**63
    )


def test_seeds(three):
    rule = hs.SelfCensoring(hs.everything)
    assert (hs.simulate(three, rule, 5, None) != hs.simulate(three, rule, 5, None)).any()
    rng = np.random.default_rng(0)
    assert (hs.simulate(three, rule, 5, rng) != hs.simulate(three, rule, 5, rng)).any()


@pytest.mark.parametrize("n", [-1, 2.5, True, "3"])
def test_bad_n(three, n):
    with pytest.raises(hs.InputError, match="number of rows"):
        hs.simulate(three, hs.SelfCensoring(hs.everything), n)


def test_wrong_width(three):
    with pytest.raises(hs.InputError, match="for 2 columns"):
        hs.simulate(three, hs.SelfCensoring([hs.everything] * 2), 3)


def test_no_rows(three):
    assert hs.simulate(three, hs.SelfCensoring(hs.everything), 0).shape == (0, 3)
