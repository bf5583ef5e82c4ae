import numpy as np
import pytest

import halfseen as hs


def _rule(rng, d=4):
    return hs.LinearThreshold(rng.normal(size=(d, d)), rng.normal(size=d))


def test_seen_is_the_inequality(rng):
    rule = _rule(rng)
    Y = rng.normal(size=(50, 4))
    ref = [[rule.V[i] @ y <= rule.b[i] for i in range(4)] for y in Y]
    np.testing.assert_array_equal(rule.seen(Y), ref)


def test_polyhedra_hold_exactly_the_rows_with_the_same_pattern(rng):
    rule = _rule(rng)
    Y = rng.normal(size=(200, 4))
    X = np.where(rule.seen(Y), Y, np.nan)
    region = rule.hidden_region(X)
    assert region.contains(Y).all()
    for row in range(20):
        where, A, c = region.row(row)
        if where.size == 0:
            continue
        for _ in range(20):
            other = Y[row].copy()
            other[where] += rng.normal(size=where.size)
            same = (rule.seen(other[None])[0] == rule.seen(Y[row : row + 1])[0]).all()
            assert (A @ other[where] <= c).all() == same
            complete = Y.copy()
            complete[row] = other
            assert region.contains(complete)[row] == same


def test_rows_of_zeros_are_always_or_never_seen():
    rule = hs.LinearThreshold(np.zeros((3, 3)), [0.0, 1.0, -1.0])
    assert rule.always_seen.tolist() == [True, True, False]
    assert rule.never_seen.tolist() == [False, False, True]
    assert rule.seen([[1, 2, 3]]).tolist() == [[True, True, False]]


def test_larger_of_shows_the_larger():
    rule = hs.LinearThreshold.larger_of(0, 2, 3)
    np.testing.assert_array_equal(
        rule.seen([[3, 9, 1], [1, 9, 3]]), [[True, True, False], [False, True, True]]
    )


def test_heckman_shows_the_outcome_when_the_index_is_positive():
    rule = hs.LinearThreshold.heckman(2, [1.0, -2.0, 0.5], intercept=0.25)
    Y = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_array_equal(rule.seen(Y)[:, 2], Y @ [1, -2, 0.5] + 0.25 >= 0)
    assert rule.seen(Y)[:, :2].all()


def test_anchored_fills_in_the_anchors():
    rule = hs.LinearThreshold.anchored([1], [[1, 0, 0], [0, 0, 1]], [0.1, 0.2])
    assert rule.always_seen.tolist() == [False, True, False]
    assert rule.b.tolist() == [0.1, 0.0, 0.2]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.LinearThreshold(np.zeros((2, 3)), 0), "one row and one column"),
        (lambda: hs.LinearThreshold(np.zeros((2, 2)), [0, 1, 2]), "b must have 2 entries"),
        (lambda: hs.LinearThreshold([[np.nan]], [0]), "must be finite"),
        (lambda: hs.LinearThreshold("V", 0), "arrays of numbers"),
        (lambda: hs.LinearThreshold.larger_of(0, 0, 2), "got 0 twice"),
        (lambda: hs.LinearThreshold.larger_of(0, 5, 2), "from 0 to 1; got 5"),
        (lambda: hs.LinearThreshold.heckman(0, [0.0, 0.0]), "may not all be zero"),
        (lambda: hs.LinearThreshold.heckman(0, "ab"), "weights must be a vector of numbers"),
        (lambda: hs.LinearThreshold.heckman(0, np.eye(2)), "weights must be a vector; got shape"),
        (lambda: hs.LinearThreshold.larger_of(0, 1, 2.0), "d must be a whole number"),
        (lambda: hs.LinearThreshold.anchored(0, [[1.0, 0.0]], [0.0]), "anchors must be a list"),
        (lambda: hs.LinearThreshold.anchored([0], [["a", 0]], [0.0]), "array of numbers"),
        (lambda: hs.LinearThreshold([[1.0]], 0).seen([["a"]]), "arrays of numbers"),
        (lambda: hs.LinearThreshold.anchored([0], np.ones((2, 2)), [0, 0]), "V needs 1 rows"),
    ],
)
def test_bad_thresholds_get_a_sentence(make, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        make()


def test_rows_that_contradict_through_seen_values_are_named():
    rule = hs.LinearThreshold([[0, 0], [1, 0]], [0, 0.5])
    names = ("a", "b")
    rule.check(np.array([[0.4, 1.0], [0.6, np.nan]]), names)
    with pytest.raises(hs.ContradictionError, match=r"row 0, column b: the value is seen"):
        rule.check(np.array([[0.6, 1.0]]), names)
    with pytest.raises(hs.ContradictionError, match=r"row 0, column b: the value is hidden"):
        rule.check(np.array([[0.4, np.nan]]), names)
    with pytest.raises(hs.ContradictionError, match=r"column a: the value is hidden"):
        rule.check(np.array([[np.nan, np.nan]]), names)


NAMES = ("hours", "kids", "wage")


def _contradiction(rule, X, names=NAMES):
    with pytest.raises(hs.ContradictionError) as caught:
        rule.for_columns(names).check(np.array(X, dtype=float), names)
    return str(caught.value)


def test_contradictions_are_told_in_the_words_of_the_rule():
    rule = hs.rules("wage: hours - 2*kids >= 30")
    assert _contradiction(rule, [[40, 1, 5], [33.88, 2, 6], [10, 0, 7]]) == (
        "row 1, column wage: the value is seen, but hours - 2*kids is 29.88, and it is shown only where "
        "that is at least 30 (2 such rows). Correct the rule, or the row."
    )
    assert _contradiction(rule, [[40, 1, np.nan]]) == (
        "row 0, column wage: the value is hidden, but hours - 2*kids is 38, and it is hidden only where "
        "that is below 30 (1 such rows). Correct the rule, or the row, or state that such cells are "
        "missing at random."
    )
    rule = hs.rules("wage: hours + 0.12345678*kids <= 30")
    assert "hours + 0.123457*kids is 31, and it is shown only where that is at most 30 (" in (
        _contradiction(rule, [[31, 0, 5]])
    )
    assert "and it is hidden only where that is above 30 (" in _contradiction(
        rule, [[3, 0, np.nan]]
    )


def test_contradictions_of_columns_without_a_threshold():
    rule = hs.LinearThreshold(np.zeros((2, 2)), [1.0, -1.0])
    names = ("a", "b")
    assert "hidden, but the rule never hides this" in _contradiction(rule, [[np.nan] * 2], names)
    assert "seen, but the rule never shows this" in _contradiction(rule, [[1, 2]], names)


def test_digits_tell_a_value_from_its_limit():
    rule = hs.rules("wage: hours >= 30")
    assert "hours is 29.999999, and" in _contradiction(rule, [[30 - 1e-6, 0, 1]])
    # Without the sign that turning the inequality round gives to zero.
    rule = hs.rules("wage: hours >= 0")
    assert "is -1, and it is shown only where that is at least 0 (" in _contradiction(
        rule, [[-1, 0, 1]]
    )


def test_long_sums_and_odd_names_in_contradictions():
    names = tuple(f"column {k}" for k in range(9))
    V = np.zeros((9, 9))
    V[8] = -np.arange(1, 10)
    message = _contradiction(hs.LinearThreshold(V, -1.0 * (np.arange(9) == 8)), [[0.0] * 9], names)
    assert (
        'but "column 0" + 2*"column 1" + 3*"column 2" + 4*"column 3" + … (9 columns) is 0, and it is '
        "shown only where that is at least 1 (" in message
    )


def test_cells_missing_at_random_are_not_held_against_the_threshold():
    rule = hs.LinearThreshold([[0, 0], [1, 0]], [0, 0.5])
    X = np.array([[0.4, np.nan], [np.nan, np.nan], [0.7, np.nan]])
    mask = np.array([[False, True], [True, False], [False, False]])
    rule.check(X, ("a", "b"), mask)
    mask[0, 1] = False
    with pytest.raises(hs.ContradictionError, match=r"row 0, column b: .*\(1 such rows\)"):
        rule.check(X, ("a", "b"), mask)
    with pytest.raises(hs.ContradictionError, match=r"row 0, column b: the value is seen"):
        rule.check(np.array([[0.6, 1.0]]), ("a", "b"), np.array([[False, True]]))
