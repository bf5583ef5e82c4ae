import math

import pytest

import halfseen as hs
from halfseen.planning import samples_for_self_censoring


def test_rows_follow_the_rate_of_the_theorem():
    base = samples_for_self_censoring(4, 0.1, 0.5, 2.0, 0.05)
    ref = math.log((4 + 6) / 0.05) * (4 * 2.0 / 0.1) ** 2 / 0.5
    assert base.rows == math.ceil(ref)
    halved = samples_for_self_censoring(4, 0.05, 0.5, 2.0, 0.05)
    assert halved.rows == pytest.approx(4 * base.rows, rel=1e-3)
    rarer = samples_for_self_censoring(4, 0.1, 0.25, 2.0, 0.05)
    assert rarer.rows == pytest.approx(2 * base.rows, rel=1e-3)
    worse = samples_for_self_censoring(4, 0.1, 0.5, 4.0, 0.05)
    assert worse.rows == pytest.approx(4 * base.rows, rel=1e-3)


@pytest.mark.parametrize("arguments", [(5, 1e-170, 0.5), (5, 0.1, 1e-320), (5, 0.1, 0.5, 1e200)])
def test_more_rows_than_can_be_counted(arguments):
    with pytest.raises(hs.InputError, match="more rows than can be counted"):
        samples_for_self_censoring(*arguments)


def test_it_says_what_it_is():
    text = str(samples_for_self_censoring(4, 0.1, 0.5))
    assert "10 problems" in text
    assert "not a guarantee" in text


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 0.1, 0.5), "d"),
        ((2.5, 0.1, 0.5), "d"),
        ((2, 0.0, 0.5), "eps"),
        ((2, math.inf, 0.5), "eps"),
        ((2, 0.1, 0.0), "alpha"),
        ((2, 0.1, 1.5), "alpha"),
        ((2, 0.1, 0.5, 0.5), "condition_number"),
        ((2, 0.1, 0.5, 1.0, 1.0), "delta"),
        ((2, 0.1, math.nan), "alpha"),
        (("a", 0.1, 0.5), "d"),
        ((math.nan, 0.1, 0.5), "d"),
    ],
)
def test_bad_input_gets_a_sentence(arguments, name):
    with pytest.raises(hs.InputError, match=f"^{name} must"):
        samples_for_self_censoring(*arguments)
