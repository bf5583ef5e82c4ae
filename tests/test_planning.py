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


def test_missing_descent_parameters_are_astronomical_and_say_so():
    plan = hs.planning.parameters_for_missing_descent(10, 0.1, 0.5, 0.1, 0.1)
    assert plan.strong_convexity == pytest.approx(0.5 * 0.1)
    assert plan.start_distance == pytest.approx(math.sqrt(10 * math.log(2)))
    assert plan.langevin_radius == pytest.approx(
        math.sqrt(10) + plan.start_distance + math.log(100)
    )
    finer = hs.planning.parameters_for_missing_descent(10, 0.05, 0.5, 0.1, 0.1)
    # N ~ ε^-12, up to the logarithm in the radius
    assert finer.langevin_steps / plan.langevin_steps > 2**12
    assert finer.total_steps > plan.total_steps
    assert "years" in str(plan)
    assert "derived apart" in str(plan)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"d": 0}, "d"),
        ({"eps": 0}, "eps"),
        ({"alpha": 0}, "alpha"),
        ({"beta": 2}, "beta"),
        ({"gamma": -1}, "gamma"),
        ({"delta": 0}, "delta"),
        ({"smallest_eigenvalue": 2.0}, "smallest_eigenvalue"),
    ],
)
def test_bad_parameters_for_missing_descent(changes, name):
    arguments = {"d": 3, "eps": 0.1, "alpha": 0.5, "beta": 0.5, "gamma": 0.5, **changes}
    with pytest.raises(hs.InputError, match=f"^{name} must"):
        hs.planning.parameters_for_missing_descent(**arguments)
