import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfseen as hs
from halfseen.data.table import Table
from halfseen.data.transforms import (
    BoxCox,
    Identity,
    Log,
    SquareRoot,
    YeoJohnson,
    back_to_units,
    log_derivatives,
    parse_transform,
    read_transforms,
    transform_rule,
    transform_table,
)

POSITIVE = [Identity(), Log(), Log(10), SquareRoot(), BoxCox(0.3), BoxCox(0.0), BoxCox(-0.5)]
ANYWHERE = [Identity(), YeoJohnson(0.0), YeoJohnson(0.7), YeoJohnson(2.0), YeoJohnson(2.5)]
CASES = [(t, True) for t in POSITIVE] + [(t, False) for t in ANYWHERE]


@pytest.mark.parametrize(("transform", "positive"), CASES, ids=str)
def test_there_and_back_and_the_derivative(transform, positive):
    x = np.geomspace(1e-3, 50.0, 60)
    if not positive:
        x = np.concatenate([-x[::-1], x])
    z = transform.forward(x)
    assert (np.diff(z) > 0.0).all()
    # Rounding of z, relative to x: up to 1e-16 times the steepness of the way back.
    np.testing.assert_allclose(transform.inverse(z), x, rtol=1e-9)
    h = 1e-6 * np.abs(x)
    slope = (transform.forward(x + h) - transform.forward(x - h)) / (2.0 * h)
    # Central differences: error of the order h² = 1e-12, rounding 1e-16/1e-6.
    np.testing.assert_allclose(transform.log_derivative(x), np.log(slope), atol=1e-7)


def test_box_cox_and_yeo_johnson_are_those_of_scipy_and_scikit_learn():
    from scipy import stats
    from sklearn.preprocessing import PowerTransformer

    x = np.array([0.2, 1.0, 3.0, 8.0])
    np.testing.assert_allclose(BoxCox(0.3).forward(x), stats.boxcox(x, 0.3), rtol=1e-14)
    y = np.array([-3.0, -0.5, 0.0, 2.0])
    np.testing.assert_allclose(YeoJohnson(0.7).forward(y), stats.yeojohnson(y, 0.7), rtol=1e-13)
    peer = PowerTransformer(standardize=False).fit(y[:, None])
    ours = YeoJohnson(float(peer.lambdas_[0])).forward(y)
    np.testing.assert_allclose(ours, peer.transform(y[:, None])[:, 0], rtol=1e-12)


def test_limits_are_transformed_with_the_values():
    assert Log().end(0.05) == np.log(0.05)
    assert Log().end([-np.inf, -1.0, 0.0, np.inf]).tolist() == [-np.inf] * 3 + [np.inf]
    assert SquareRoot().end(0.0) == 0.0
    assert SquareRoot().end(-1.0) == -np.inf
    assert YeoJohnson(1.0).end(-3.0) == pytest.approx(-3.0)


def test_the_way_back_from_beyond_the_range():
    assert SquareRoot().inverse(-2.0) == 0.0
    assert BoxCox(0.5).inverse(-3.0) == 0.0
    assert BoxCox(-0.5).inverse(2.5) == np.inf
    assert YeoJohnson(-1.0).inverse(2.0) == np.inf
    assert YeoJohnson(3.0).inverse(-2.0) == -np.inf


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("log", Log()), ("Log10 ", Log(10)), ("none", Identity()), ("sqrt", SquareRoot()),
        ("boxcox", BoxCox()), ("Box-Cox(0.3)", BoxCox(0.3)), ("boxcox( -1 )", BoxCox(-1.0)),
        ("Yeo-Johnson", YeoJohnson()), ("yeojohnson(1.5)", YeoJohnson(1.5)),
    ],
)  # fmt: skip
def test_transforms_are_written_in_words(text, expected):
    assert parse_transform(text) == expected


@given(st.floats(-5.0, 5.0))
def test_a_power_survives_its_name(power):
    assert parse_transform(BoxCox(power).name) == BoxCox(power)


@pytest.mark.parametrize(
    "text", ["ln", "", "boxcox()", "boxcox(1.2.3)", "boxcox(inf)", "log(2)", "box"]
)
def test_what_is_no_transform_is_named(text):
    with pytest.raises(hs.InputError, match=r"is no transform; choose none, log, log10"):
        parse_transform(text)


def test_transforms_for_all_for_each_and_by_name():
    names = ("lead", "ph")
    assert read_transforms("log", names) == (Log(), Log())
    assert read_transforms(["log", "none"], names) == (Log(), Identity())
    assert read_transforms({"ph": Log(10)}, names) == (Identity(), Log(10))
    with pytest.raises(hs.InputError, match=r"given for 'laed'.*did you mean 'lead'"):
        read_transforms({"laed": "log"}, names)
    with pytest.raises(hs.InputError, match="must be 2, one for each column; got 1"):
        read_transforms(["log"], names)
    for wrong in (3, [3, 4]):
        with pytest.raises(hs.InputError, match="a word such as 'log'"):
            read_transforms(wrong, names)


def test_values_outside_the_domain_are_named():
    X = Table(np.array([[1.0, 2.0], [np.nan, 0.0], [3.0, -1.0]]), ("a", "b"))
    with pytest.raises(
        hs.InputError, match=r"row 1, column b: log is for values above 0; got 0 \(2"
    ):
        transform_table(X, (Log(), Log()))
    with pytest.raises(hs.InputError, match=r"row 2, column b: sqrt.*got -1. .* choose yeojohnson"):
        transform_table(X, (Log(), SquareRoot()))
    with pytest.raises(hs.InputError, match=r"row 0, column a: yeojohnson.* too large"):
        transform_table(Table(np.array([[1e200], [1.0]]), ("a",)), (YeoJohnson(2.0),))


def test_intervals_are_transformed_end_by_end():
    data = hs.IntervalData(
        [[1.0, -np.inf], [-np.inf, 0.0], [2.0, -np.inf]],
        [[1.0, 0.5], [np.inf, 0.2], [np.inf, np.inf]],
        ["a", "b"],
        labels=["r1", "r2", "r3"],
        not_detected=[[False, False], [True, False], [False, False]],
        frame="pandas",
    )
    out = transform_table(data, (Log(), Log()))
    assert out.lower.tolist() == [[0.0, -np.inf], [-np.inf, -np.inf], [math.log(2.0), -np.inf]]
    assert out.upper.tolist() == [[0.0, math.log(0.5)], [np.inf, math.log(0.2)], [np.inf, np.inf]]
    assert out.labels == data.labels
    assert out.frame == "pandas"
    assert (out.not_detected == data.not_detected).all()
    below = hs.IntervalData([[-np.inf], [1.0]], [[0.0], [1.0]], ["a"])
    with pytest.raises(hs.InputError, match="row 0, column a: the cell lies below 0, but log"):
        transform_table(below, (Log(),))


def test_rules_say_the_same_on_both_scales(rng):
    names = ["a", "b", "c"]
    Y = np.exp(rng.normal(size=(500, 3)))
    transforms = (Log(), SquareRoot(), Identity())
    Z = np.stack([t.forward(Y[:, j]) for j, t in enumerate(transforms)], axis=1)
    odd = hs.Predicate(lambda x: (x > 0.5) & (x < 2.0))
    rules = [
        hs.DetectionLimits(lower=[0.5, np.nan, 0.3], upper=[np.nan, 3.0, 2.0]),
        hs.DetectionLimits(lower=0.5),
        hs.DetectionLimits(lower=rng.uniform(0.1, 1.0, size=(500, 3))),
        hs.SelfCensoring([hs.between(0.5, 1.0) | hs.at_least(2.0), odd, hs.at_least(-1.0)]),
        hs.Combined([([0], hs.DetectionLimits(lower=0.5)), ([1, 2], hs.SelfCensoring(odd))]),
        hs.RowTruncation(lambda rows: rows.sum(axis=1) < 4.0),
    ]
    for rule in rules:
        moved = transform_rule(rule, transforms, names)
        assert (moved.seen(Z) == rule.seen(Y)).all(), rule
    same = (Log(), Log(), Identity())
    selection = hs.SelfSelection([[0, 1]])
    assert (transform_rule(selection, same, names).seen(np.log(Y)) == selection.seen(Y)).all()
    chance = hs.SelfCensoring(hs.Probability(lambda x: np.clip(x / 5.0, 0.0, 1.0)))
    there = transform_rule(chance, transforms, names).shown_probability(Z)
    np.testing.assert_allclose(there, chance.shown_probability(Y), rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (hs.SelfSelection([[0, 1]]), "a and b are compared.*got log and sqrt"),
        (hs.LinearThreshold([[0, 0, 0], [1, 0, 0], [0, 0, 0]], 1.0), "column a takes part in a linear"),
        (hs.SelfCensoring(hs.at_most(-1.0)), "column a is transformed by log, and on the transformed"),
        (hs.SelfCensoring(hs.between(-3, -2) | hs.between(-1, 0)), "column a .*no value lies in"),
        (hs.DetectionLimits(upper=-2.0), "column a is transformed by log, but an upper limit of -2"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_told_on_another_scale(rule, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        transform_rule(rule, (Log(), SquareRoot(), Identity()), ["a", "b", "c"])


def test_a_threshold_leaves_other_columns_free():
    rule = hs.LinearThreshold([[0, 0, 0], [0, 0, 1], [0, 0, 0]], 1.0)
    assert transform_rule(rule, (Log(), SquareRoot(), Identity()), ["a", "b", "c"]) is rule


def test_sums_of_log_derivatives():
    X = np.array([[2.0, np.nan], [np.nan, 4.0], [1.0, 9.0]])
    out = log_derivatives(X, (Log(), SquareRoot()), ("a", "b"))
    expected = [-math.log(2.0), -math.log(4.0), -math.log(6.0)]
    np.testing.assert_allclose(out, expected, rtol=1e-14)
    with pytest.raises(hs.InputError, match="row 0, column a: sqrt is infinitely steep at 0"):
        log_derivatives(np.zeros((1, 1)), (SquareRoot(),), ("a",))


def test_back_to_units_leaves_tables_without_transforms_alone():
    Z = np.ones((2, 3))
    assert back_to_units(Z, None) is Z


def test_patterns_name_several_columns():
    scales = read_transforms({"PCB*": "log", "ph": "none"}, ["PCB28", "ph", "PCB52"])
    assert [scale.name for scale in scales] == ["log", "none", "log"]
    with pytest.raises(
        hs.InputError, match=r"no column is named like 'PAH\*'; the table has 'PCB28'"
    ):
        read_transforms({"PAH*": "log"}, ["PCB28"])
