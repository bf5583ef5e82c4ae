import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfseen as hs
from halfseen.data.transforms import read_transforms
from halfseen.missingness.named_rules import rules
from halfseen.missingness.rule_parts import RuleError, quoted

NAMES = ["a", "b", "c", "blood lead", "e.1"]


def _rows(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_a_dict_a_list_and_a_text_say_the_same():
    wanted = repr(hs.SelfCensoring([hs.at_least(0.5), hs.everything, hs.at_least(0.5)]))
    names = ["a", "b", "c"]
    for told in (
        {"a": ">=0.5", "c": ">= 0.5"},
        {("a", "c"): ">=0.5"},
        ["a: >=0.5", "c: >=0.5"],
        ("a: >=0.5", "c: >=0.5"),
        (text for text in ("a: >=0.5", "c: >=0.5")),
        "a, c: >=0.5",
        np.array(["a: >=0.5", "c: >=0.5"]),
    ):
        assert repr(rules(told).for_columns(names)) == wanted


def test_columns_given_now_or_later_make_the_same_rule():
    told = {"lead": ">=0.5", "temp": "-40..85"}
    names = ("temp", "ph", "lead")
    now, later = rules(told, columns=names), rules(told).for_columns(names)
    assert repr(now) == repr(later)
    assert isinstance(now, hs.SelfCensoring)
    Y = _rows(50, 3) * 60
    np.testing.assert_array_equal(
        now.seen(Y), np.c_[abs(Y[:, 0] - 22.5) <= 62.5, np.ones(50), Y[:, 2] >= 0.5]
    )


def test_the_repr_reads_as_the_call():
    told = {"lead": ">=0.5", ("a", "b"): "largest"}
    rule = rules(told)
    assert repr(rule) == "rules({'lead': '>=0.5', ('a', 'b'): 'largest'})"
    told["lead"] = "always"
    assert "'>=0.5'" in repr(rule)
    assert repr(rules("a: >= 0")) == "rules('a: >= 0')"
    assert repr(rules(("a: >= 0",))) == "rules(['a: >= 0'])"


def test_a_rule_without_names_says_how_to_give_them():
    rule = rules("a: >= 0")
    X = np.zeros((2, 1))
    for ask in (
        lambda: rule.seen(X),
        lambda: rule.hidden_region(X),
        lambda: rule.holes(X, None),
        lambda: rule.check_width(1),
        lambda: hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 3),
    ):
        with pytest.raises(hs.InputError, match=r"columns=names"):
            ask()
    assert rule.width is None


def test_check_matches_the_names_itself():
    with pytest.raises(hs.ContradictionError, match="row 1, column a"):
        rules("a: >= 0").check(np.array([[1.0, 0.0], [-1.0, 0.0]]), ["a", "b"])


def test_a_transformed_rule_is_that_of_the_sets():
    log = read_transforms({"a": "log"}, ["b", "a"])
    rule = rules({"a": ">= 2", "b": "0..1"}).transformed(log, ["b", "a"])
    assert rule.column_set(0) == hs.between(0, 1)
    assert rule.column_set(1).lower == np.log(2.0)


def test_a_copy_is_as_good_as_the_rule():
    # scikit-learn clones an estimator with all of its parameters.
    rule = copy.deepcopy(rules("a: b >= 0"))
    np.testing.assert_array_equal(rule.for_columns(["a", "b"]).seen([[0, -1.0]]), [[False, True]])


# Every combination of kinds, and what it must become.
KINDS = [
    ("a: >= 0", hs.SelfCensoring),
    ("a: always", hs.SelfCensoring),
    ("a: 2*a >= 1", hs.SelfCensoring),
    (["a: 0..1 | >2", "b: <= 3"], hs.SelfCensoring),
    ("a, b: largest", hs.SelfSelection),
    (["a, b: smallest", "c: always"], hs.SelfSelection),
    (["a, b: largest", "c, d: largest"], hs.SelfSelection),
    (["a, b: largest", "c, d: smallest"], hs.Combined),
    (["a, b: largest", "c: >= 0"], hs.Combined),
    ("a: b >= 0", hs.LinearThreshold),
    (["a: b >= 0", "b: >= 1", "c: always"], hs.LinearThreshold),
    (["a: b >= 0", "b: c >= d"], hs.LinearThreshold),
    (["a: b >= 0", "c: d <= 0"], hs.Combined),
    (["a: b >= 0", "c: 0..1"], hs.Combined),
    (["a: b >= 0", "c, d: largest"], hs.Combined),
]


@pytest.mark.parametrize(("told", "kind"), KINDS, ids=[str(told) for told, _ in KINDS])
def test_the_simplest_rule_is_made(told, kind):
    assert type(rules(told, columns=["a", "b", "c", "d"])) is kind


def test_groups_choose_among_the_listed_columns():
    rule = rules(["c, a: smallest", "d, b: largest"], columns=["a", "b", "c", "d", "e"])
    Y = _rows(40, 5)
    a, b, c, d, _ = Y.T
    np.testing.assert_array_equal(rule.seen(Y), np.c_[a < c, b > d, c < a, d > b, np.ones(40)])


def test_comparisons_and_half_lines_of_one_block_become_thresholds():
    rule = rules(["wage: hours - 2*kids >= 10", "hours: <= 60", "kids: > 0.5"], columns=[
        "kids", "age", "wage", "hours"])  # fmt: skip
    assert isinstance(rule, hs.LinearThreshold)
    np.testing.assert_array_equal(
        rule.V, [[-1, 0, 0, 0], [0, 0, 0, 0], [2, 0, 0, -1], [0, 0, 0, 1]]
    )
    np.testing.assert_array_equal(rule.b, [-0.5, 0, -10, 60])


def test_blocks_grow_together_through_shared_columns():
    names = list("abcdef")
    # a-b and c-d are apart until d ties b to them.
    rule = rules(["a: b >= 0", "c: d >= 0", "d: b <= 1", "e: 0..1"], columns=names)
    assert [list(columns) for columns, _ in rule.parts] == [[4], [0, 1, 2, 3]]


def test_a_comparison_shared_by_columns_is_a_set_for_its_own_and_a_threshold_for_the_others():
    rule = rules("a, b, c: a >= 0.5", columns=["a", "b", "c"])
    Y = _rows(30, 3)
    np.testing.assert_array_equal(rule.seen(Y), np.repeat(Y[:, :1] >= 0.5, 3, axis=1))


def test_mixed_rules_agree_with_conditions_by_hand():
    names = ["lead", "hours", "x", "bid1", "wage", "bid2", "kids", "z", "u"]
    rule = rules(
        {
            "lead": ">0.5",
            "x": "-1..0 | >=1",
            "wage": "hours - 2*kids >= 0.3",
            "hours": "<= 1",
            ("bid1", "bid2"): "largest",
            "u": "z/2 < 1 - u",
        },
        columns=names,
    )
    assert isinstance(rule, hs.Combined)
    Y = _rows(500, len(names), seed=4)
    lead, hours, x, bid1, _, bid2, kids, z, u = Y.T
    ones = np.ones(len(Y), dtype=bool)
    np.testing.assert_array_equal(
        rule.seen(Y),
        np.c_[
            lead > 0.5,
            hours <= 1,
            ((x >= -1) & (x <= 0)) | (x >= 1),
            bid1 > bid2,
            hours - 2 * kids >= 0.3,
            bid2 > bid1,
            ones,
            ones,
            z / 2 + u < 1,
        ],
    )


coefficients = st.integers(-40, 40).map(lambda k: k / 8)


@st.composite
def expressions(draw):
    """Draw a sum of terms as text, with its weights and its constant."""
    weights, constant, text = np.zeros(len(NAMES)), 0.0, ""
    for _ in range(draw(st.integers(1, 4))):
        sign = draw(st.sampled_from("+-"))
        k = draw(st.integers(0, len(NAMES) - 1))
        factor = abs(draw(coefficients))
        name = quoted(NAMES[k])
        form = draw(st.integers(0, 4))
        term = (name, f"{factor}*{name}", f"{name} * {factor}", f"{name}/4", f"{factor}")[form]
        size = (1.0, factor, factor, 0.25, factor)[form] * (1 if sign == "+" else -1)
        if form == 4:
            constant += size
        else:
            weights[k] += size
        # A leading plus may be left out.
        text += term if not text and sign == "+" and draw(st.booleans()) else f" {sign} {term}"
    return text, weights, constant


@given(expressions(), st.sampled_from([">=", ">", "<=", "<", "≥", "≤"]), expressions())
def test_linear_rules_agree_with_direct_evaluation(left, compare, right):
    weights, constant = left[1] - right[1], left[2] - right[2]
    text = f"target: {left[0]} {compare} {right[0]}"
    if not weights.any():
        with pytest.raises(RuleError, match=r"true$"):
            rules(text)
        return
    names = [*NAMES, "target"]
    Y = _rows(60, len(names), seed=1)
    # All coefficients are eighths, so they are exact; what is left is rounding of sums of at most 9
    # terms below 5 * 4 in size: 9 * 20 * 2**-52 < 1e-13.
    value = Y[:, :-1] @ weights + constant
    clear = np.abs(value) > 1e-12
    wanted = value >= 0 if compare in (">=", ">", "≥") else value <= 0
    found = rules(text, columns=names).seen(Y)
    np.testing.assert_array_equal(found[clear, -1], wanted[clear])
    assert found[:, :-1].all()


@given(expressions(), st.sampled_from([">=", "<"]), st.permutations([*NAMES, "target"]))
def test_the_order_of_the_columns_changes_nothing(left, compare, order):
    if not left[1].any():
        return
    names = [*NAMES, "target"]
    rule = rules([f"target: {left[0]} {compare} 0.1"])
    Y = _rows(20, len(names), seed=2)
    place = [names.index(name) for name in order]
    np.testing.assert_array_equal(
        rule.for_columns(order).seen(Y[:, place]), rule.for_columns(names).seen(Y)[:, place]
    )


@pytest.mark.parametrize(
    ("told", "names", "position", "message"),
    [
        ("leed: >= 1", ["lead", "temp"], 0, r"no 'leed'\. Did you mean 'lead'\?"),
        ("a: 2*hour >= 1", ["a", "hours"], 5, r"Did you mean 'hours'\?"),
        ("a: b >= Hours", ["a", "b", "hours"], 8, r"Did you mean 'hours'\?"),
        ("zebra: >= 1", ["a", "b"], 0, "which are a, b; there is no 'zebra'$"),
        ("a, zz: largest", ["a", "b"], 3, "there is no 'zz'"),
        ("a: b - b + a >= 1", ["a"], 3, "there is no 'b'"),
        ("a: >= 1", ["a", "b", "a"], 0, "the data have 2 columns 'a'"),
    ],
)
def test_an_unknown_column_is_marked_and_the_nearest_named(told, names, position, message):
    with pytest.raises(RuleError, match=message) as caught:
        rules(told).for_columns(names)
    assert caught.value.position == position


def test_a_column_may_have_only_one_rule():
    with pytest.raises(RuleError, match="'a' has one before") as caught:
        rules(["a: >= 0", "b, a: <= 1"])
    assert (caught.value.text, caught.value.position) == ("b, a: <= 1", 3)
    with pytest.raises(RuleError, match="'a' has one before"):
        rules({"a": ">= 0", ("a", "b"): "largest"})


@pytest.mark.parametrize(
    ("told", "text", "position", "message"),
    [
        (["a: b >= 0", "b: 0..1"], "b: 0..1", 3, "'b' is compared with a, .* Keep the limit"),
        (["b: <0 | >1", "a: b + c >= 0"], "b: <0 | >1", 3, "compared with a, c"),
        (["a: b >= 0", "b, c: largest"], "b, c: largest", 0, "a choice together with comparisons"),
    ],
)
def test_what_cannot_be_combined_says_so(told, text, position, message):
    # Already without the names of the table.
    with pytest.raises(RuleError, match=message) as caught:
        rules(told)
    assert (caught.value.text, caught.value.position) == (text, position)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ([], "at least one rule"),
        ({}, "at least one rule"),
        (None, "got None"),
        (5, "got 5"),
        (b"a: >= 0", "got b'a"),
        ([">= 0", 5], "rule 1 must be a text"),
        ({"a": 0.5}, "rule of 'a' must be a text .*got 0.5"),
        ({0: ">= 0.5"}, "a key of rules is the name of a column"),
        ({(): ">= 0.5"}, "a key of rules is the name of a column"),
    ],
)
def test_what_is_no_rule_at_all_is_refused(told, message):
    with pytest.raises(hs.InputError, match=message):
        rules(told)


def test_columns_must_be_a_list_of_names():
    for wrong in ("abc", 3):
        with pytest.raises(hs.InputError, match="columns must be the names"):
            rules("a: >= 0", columns=wrong)


def test_odd_names_work_as_keys_and_in_quotes():
    names = ["blood lead", 'a "b"', "x:y", "1st", "inf", "Ölüm²", "largest"]
    rule = rules({name: f">= {k}" for k, name in enumerate(names)}, columns=names)
    assert [rule.column_set(k) for k in range(7)] == [hs.at_least(k) for k in range(7)]
    rule = rules('`blood lead`: "a ""b""" - 2*`inf` >= 1', columns=names)
    np.testing.assert_array_equal(rule.V[0], [0, -1, 0, 0, 2, 0, 0])


def test_rules_are_a_part_of_combined():
    told = rules("a: >= 0.5")
    by_name = hs.Combined([(["a"], told), (["b", "c"], hs.SelfSelection())])
    by_place = hs.Combined([([0], told), ([1, 2], hs.SelfSelection())])
    Y = _rows(20, 3)
    wanted = np.c_[Y[:, 0] >= 0.5, Y[:, 1] > Y[:, 2], Y[:, 2] > Y[:, 1]]
    for rule in (by_name, by_place):
        np.testing.assert_array_equal(rule.for_columns(["a", "b", "c"]).seen(Y), wanted)


def test_a_rule_in_words_fits_as_the_rule_it_stands_for():
    truth = hs.Gaussian([0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]])
    told = rules({"a": ">= -0.5", "b": "<= 2"}, columns=["a", "b"])
    built = hs.SelfCensoring([hs.at_least(-0.5), hs.at_most(2)])
    X = hs.simulate(truth, built, 2_000, random_state=3)
    found, wanted = (hs.fit(X, rule, "pairwise") for rule in (told, built))
    np.testing.assert_array_equal(found.gaussian.mean, wanted.gaussian.mean)
    np.testing.assert_array_equal(found.gaussian.covariance, wanted.gaussian.covariance)
