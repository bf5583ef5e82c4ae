import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs

Y = np.array([[0.5, 1.5, -1.0], [-0.5, 3.0, 2.0], [0.0, -2.0, 0.0]])


def test_self_censoring_shows_values_in_their_sets():
    rule = hs.SelfCensoring([hs.at_least(0), hs.between(-1, 1) | hs.at_least(2), hs.everything])
    ref = [[True, False, True], [False, True, True], [True, False, True]]
    np.testing.assert_array_equal(rule.seen(Y), ref)
    np.testing.assert_array_equal(hs.SelfCensoring(hs.at_least(0)).seen(Y), Y >= 0)


@pytest.mark.parametrize("lower", [0.0, [0.0, 0.0, 0.0], np.zeros((3, 3))])
def test_detection_limits_may_be_a_number_a_row_or_a_table(lower):
    np.testing.assert_array_equal(hs.DetectionLimits(lower=lower).seen(Y), Y >= 0)
    both = hs.DetectionLimits(lower=lower, upper=2.0)
    np.testing.assert_array_equal(both.seen(Y), (Y >= 0) & (Y <= 2))


def test_nan_means_no_limit():
    rule = hs.DetectionLimits(lower=[np.nan, 2.0, np.nan])
    assert rule.seen(Y)[:, [0, 2]].all()


def test_row_limits_are_grouped_by_distinct_values():
    rule = hs.DetectionLimits(lower=[[0.1], [0.5], [0.1], [np.nan]])
    column = rule.column_rule(0)
    assert column.lower.tolist() == [-np.inf, 0.1, 0.5]
    assert column.group.tolist() == [1, 2, 1, 0]


def test_truncation_shows_whole_rows():
    rule = hs.RowTruncation(lambda rows: rows.sum(axis=1) > 0)
    np.testing.assert_array_equal(rule.seen(Y), np.repeat(Y.sum(axis=1) > 0, 3).reshape(3, 3))


def test_probability_shows_with_that_probability():
    rule = hs.SelfCensoring(hs.Probability(expit))
    x = np.repeat([-1.0, 0.0, 2.0], 40_000)[:, None]
    share = rule.seen(x, 0)[:, 0].reshape(3, -1).mean(axis=1)
    # Five standard errors of a share of 40 000.
    assert np.abs(share - expit([-1, 0, 2])).max() < 5 * 0.5 / 200
    np.testing.assert_array_equal(rule.seen(x, 0), rule.seen(x, 0))


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring([hs.at_least(0), hs.between(-1, 1), hs.everything]),
        hs.DetectionLimits(lower=-0.5, upper=1.0),
        hs.DetectionLimits(lower=np.array([[0, 1, 2.0], [0, 0, 0], [-1, -1, -1]])),
        hs.SelfCensoring(hs.Predicate(lambda x: abs(x) > 0.7)),
    ],
)
def test_hidden_region_holds_what_was_hidden(rule):
    X = np.where(rule.seen(Y), Y, np.nan)
    region = rule.hidden_region(X)
    np.testing.assert_array_equal(region.hidden, np.isnan(X))
    assert region.contains(Y).all()
    row, column = np.argwhere(region.hidden)[0]
    wrong = Y.copy()
    candidates = np.linspace(-3, 3, 61)
    shown = rule.cell_set(row, column).contains(candidates)
    wrong[row, column] = candidates[shown][0]
    assert not region.contains(wrong)[row]


def test_a_cell_that_the_rule_would_show_may_be_anything():
    rule = hs.SelfCensoring([hs.everything, hs.at_least(0)])
    region = rule.hidden_region([[np.nan, np.nan]])
    assert region.cell(0, 0) == hs.everything
    assert region.contains([[5.0, -1.0]]).all()


def test_contradictions_name_row_column_value_and_set():
    rule = hs.SelfCensoring([hs.at_least(0.5), hs.everything])
    X = np.array([[1.0, 2.0], [0.25, 1.0], [0.1, 3.0], [2.0, 1.0]])
    with pytest.raises(hs.ContradictionError) as error:
        hs.fit(X, rule, names=["lead", "zinc"])
    for part in ("row 1", "lead", "0.25", "at_least(0.5)", "2 such values"):
        assert part in str(error.value)


def test_contradictions_with_limits_by_row():
    limits = np.array([[0.5], [1.0], [0.5]])
    with pytest.raises(hs.ContradictionError, match=r"row 1.*0\.75.*at_least\(1\)"):
        hs.fit([[0.75], [0.75], [0.8]], hs.DetectionLimits(lower=limits))


def test_truncation_refuses_half_seen_rows_and_rows_outside():
    rule = hs.RowTruncation(lambda rows: rows[:, 0] > 0)
    with pytest.raises(hs.ContradictionError, match=r"row 1: it is seen in part \(column x1"):
        hs.fit([[1.0, 2.0], [3.0, np.nan], [1, 1], [2, 1]], rule)
    with pytest.raises(hs.ContradictionError, match=r"row 2: .*\(1 such rows\)"):
        hs.fit([[1.0, 2.0], [3.0, 4.0], [-1.0, 1.0], [2, 1]], rule)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.DetectionLimits(), "lower=, upper= or both"),
        (lambda: hs.DetectionLimits(2, 1), "lower must be below upper"),
        (lambda: hs.DetectionLimits([0, 5], [1, 4]), "at column 1 they are 5 and 4"),
        (lambda: hs.DetectionLimits([[0.0, 5]], [[1.0, 4]]), "at row 0, column 1"),
        (lambda: hs.DetectionLimits([0, 1], [1, 2, 3]), "must fit together"),
        (lambda: hs.DetectionLimits(np.zeros((2, 2, 2))), "got shape"),
        (lambda: hs.DetectionLimits("low"), "must be numbers"),
        (lambda: hs.DetectionLimits(lower=np.inf), "may not be inf"),
        (lambda: hs.SelfCensoring([]), "at least one set"),
        (lambda: hs.SelfCensoring(None), "takes a set, or one set for each column"),
        (
            lambda: hs.RowTruncation(lambda r: r["a"]).seen(Y),
            "function failed on an array of shape",
        ),
        (lambda: hs.SelfCensoring([hs.everything, 3]), "set of column 1"),
        (lambda: hs.SelfCensoring([hs.everything]).seen(Y), "for 1 columns, but the data have 3"),
        (lambda: hs.DetectionLimits(np.zeros((5, 3))).seen(Y), "5 rows, but the data have 3"),
        (lambda: hs.RowTruncation(3), "takes a function"),
        (lambda: hs.RowTruncation(lambda r: r).seen(Y), "True or False for each of 3 rows"),
        (lambda: hs.RowTruncation(lambda r: r[:, 0] > 0, width=2).seen(Y), "for 2 columns"),
        (lambda: hs.RowTruncation(lambda r: r[:, 0] > 0).hidden_region(Y), "cannot be described"),
    ],
)
def test_bad_rules_get_a_sentence(make, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        make()


def test_limits_by_name_may_differ_by_row():
    by_row = np.array([1.0, 2.0, np.nan])
    rule = hs.DetectionLimits(lower={"lead": by_row, "tin": 0.5}, upper={"zinc": 9.0})
    ref = hs.DetectionLimits(
        lower=np.column_stack([by_row, np.full(3, 0.5), np.full(3, np.nan)]),
        upper=[np.nan, np.nan, 9.0],
    )
    X = [[1.5, 0.4, 3.0], [1.5, 0.6, 9.5], [-7.0, 0.6, 3.0]]
    np.testing.assert_array_equal(rule.seen(X), ref.seen(X))
    assert rule.labels == ("lead", "tin", "zinc")
    with pytest.raises(hs.InputError, match=r"as many for each name; got lead \(3,\), tin \(2,\)"):
        hs.DetectionLimits(lower={"lead": by_row, "tin": [0.5, 0.6]})
    with pytest.raises(hs.InputError, match="the limits of lead"):
        hs.DetectionLimits(lower={"lead": ["a", "b"]})
