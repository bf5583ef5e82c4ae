import copy
import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import halfseen as hs
from halfseen.missingness.grammar import LONGEST_RULE, read_rule
from halfseen.missingness.named_rules import Rules, rules
from halfseen.missingness.rule_parts import RuleError, quoted

# The rule, the character at which it goes wrong, and a fragment of what would be right.
WRONG = [
    # Numbers.
    ("lead: >=0,5", 9, "decimals are written with a point: 0.5"),
    ("lead: 0,5..3", 7, "decimals are written with a point: 0.5"),
    ("lead: >= 1,000.5", 10, "numbers are written without commas: 1000.5"),
    ("lead: >= 5%", 10, "percent signs are not read"),
    ("lead: >= 0.5 mg/L", 13, "numbers have no units"),
    ("lead: >=", 8, "a number after >="),
    ("lead: >= -", 10, "a number after -"),
    ("lead: >= --5", 10, "a number after -"),
    ("lead: >= five", 9, "to compare with a column write both sides"),
    ("lead: >= nan", 9, "nan is no limit"),
    ("lead: nan..5", 6, "nan is no limit"),
    ("lead: >= 1e400", 9, "1e400 is too large"),
    ("lead: <= 1e-400", 9, "1e-400 is too small"),
    ("lead: >= " + "1" * 101, 9, "at most 100 characters"),
    ("lead: > inf", 8, "write always if every value is shown"),
    ("lead: lead >= -inf", 14, "a finite number"),
    ("lead: 1e300*1e300*lead >= 1", 12, "between 1e-307 and 1e308"),
    ("lead: 1e308*a + 1e308*a >= 1", 6, "between 1e-307 and 1e308"),
    ("lead: 1e-300*lead >= 1e300", 6, "a limit below 1e308"),
    # Comparisons.
    ("lead: => 5", 6, "write >="),
    ("lead: =< 5", 6, "write <="),
    ("lead: > = 5", 8, "write >= without a space"),
    ("lead: == 5", 6, "probability zero"),
    ("lead: lead = 5", 11, "probability zero"),
    ("lead: != 5", 6, "write > and < with |"),
    ("lead: >=0 & <=5", 10, "write a range such as 0..5"),
    ("lead: >=0 and <=5", 10, "write a range such as 0..5"),
    ("lead: <0 or >5", 9, "write | between the pieces"),
    ("lead: <0 || >5", 9, "write | between the pieces"),
    ("lead: not >5", 6, "say where the column is shown"),
    ("lead: >=0 <=5", 10, "write a range such as 0..5"),
    ("lead: 0 <= lead >= 5", 16, "in the direction of the first"),
    ("lead: 0 <= lead <= 5 <= 6", 21, "a double comparison is written as"),
    ("lead: 5 <= lead <= 0", 19, "limits with something between them"),
    ("lead: 0 <= hours <= 5", 6, "a condition on 'lead' alone"),
    ("lead: hours >= 0 | lead >= 3", 6, "a condition on 'lead' alone"),
    ("lead: lead >= 3 | hours <= 0", 18, "a condition on 'lead' alone"),
    ("a, b: a < 0 | a > 5", 6, "a condition on 'b' alone"),
    # Ranges and pieces.
    ("lead: 5..3", 9, "for the range from 3 to 5 write 3..5"),
    ("lead: 5..5", 9, "a number above 5"),
    ("lead: inf..5", 11, "a number above inf"),
    ("lead: 0..", 9, "write >= 5 or 5..inf"),
    ("lead: ..5", 6, "write <= 5 or -inf..5"),
    ("lead: 0...5", 7, "a range is written with two points"),
    ("lead: 0-5", 9, "a range is written with two points"),
    ("lead: 0 to 5", 8, "a range is written with two points"),
    ("lead: [0, 5]", 6, "a range is written with two points"),
    ("lead: 0…5", 7, "a range is written with two points"),
    ("lead: a+1..5", 6, "a plain number or inf before .."),
    ("lead: 5", 7, "a number alone says nothing"),
    ("lead: 0..1 |", 12, "a condition such as"),
    ("lead: | 0..1", 6, "a condition such as"),
    ("lead: 0..1, 3..5", 10, "join pieces with |"),
    ("lead: <0 | >0", 6, "a set that hides something"),
    ("lead: sometimes", 6, "always, everything, largest, smallest or a comparison"),
    ("lead: lead", 6, "lead alone says nothing"),
    # Linear rules.
    ("wage: 2*(hours - kids) >= 1", 8, "write the products out"),
    ("wage: 2(hours) >= 1", 7, "parentheses are not read"),
    ("wage: hours*kids >= 1", 12, "or the rule is not linear"),
    ("wage: 1/hours >= 1", 8, "or the rule is not linear"),
    ("wage: hours/0 >= 1", 12, "a number other than 0"),
    ("wage: hours^2 >= 1", 11, "put the power into a column"),
    ("wage: hours**2 >= 1", 11, "put the power into a column"),
    ("wage: log(hours) >= 1", 6, "functions such as log(...) are not read"),
    ("wage: 2 hours >= 1", 8, "a product is written with *"),
    ("wage: 2hours >= 1", 7, "a product is written with *"),
    ("wage: hours kids >= 1", 12, "a comparison such as >= or <="),
    ("wage: hours - >= 1", 14, "a number or a column after -"),
    ("wage: hours >= ", 14, "a number or a column after >="),
    ("wage: hours + inf >= 1", 14, "inf may only end a range"),
    ("wage: hours - hours >= 1", 6, "never true"),
    ("wage: hours - hours <= 1", 6, "always true"),
    ("wage: 0.1*a + 0.2*a >= 0.3*a", 6, "its columns cancel, so this is always true"),
    ("wage: 3 >= 1", 6, "a condition that depends on a column"),
    ("wage: 'hours' >= 1", 6, "quote a name with"),
    # Names.
    ("", 0, "this one is empty"),
    ("   ", 0, "this one is empty"),
    ("lead", 4, "say after a colon where the column is shown"),
    ("lead:", 5, "a condition such as >= 0.5, 0..5 or always after :"),
    (": >= 5", 0, "the name of a column"),
    ("a,: >= 5", 2, "the name of a column after ,"),
    ("lead >= 5", 5, "say first which column is shown: lead: lead >= 5"),
    ("blood lead: >= 5", 6, 'one with a space is quoted: "blood lead": >= 5'),
    ("blood lead >= 5", 6, 'one with a space is quoted: "blood lead"'),
    ("PM-10: >= 5", 2, 'a name with odd characters is quoted: write "PM-10": >= 5'),
    ("PM-10", 2, "a name with odd characters is quoted, as in"),
    ("As (ug/L): >=0.05", 3, 'a name with odd characters is quoted: write "As (ug/L)": >=0.05'),
    ("a, As (g,L): >=5", 6, 'is quoted: write a, "As (g,L)": >=5'),
    ("As (g), b: >= 5", 3, 'is quoted: write "As (g)", b: >= 5'),
    ("(As): >= 5", 0, 'is quoted: write "(As)": >= 5'),
    ("As (g): >= 5; b: >= 1", 3, "a name with odd characters is quoted, as in"),
    ("2nd: >= 5", 0, 'a name that begins with a digit is quoted: write "2nd": >= 5'),
    (
        "hours - 2*kids >= 25",
        6,
        "say first which column is shown, as in wage: hours - 2*kids >= 25",
    ),
    (
        "2*kids + hours >= 25",
        0,
        "say first which column is shown, as in wage: 2*kids + hours >= 25",
    ),
    ("0 <= lead <= 5", 0, "say first which column is shown, as in lead: 0 <= lead <= 5"),
    ("inf: >= 5", 0, 'such a name is quoted: "inf"'),
    ('"": >= 5', 0, "a name may not be empty"),
    ('"lead: >= 5', 0, "the quote is not closed"),
    ('lead: "blood lead >= 5', 6, "the quote is not closed"),
    ("a, b, a: >= 5", 6, "'a' stands here twice"),
    ("lead: lead: >= 5", 10, "a rule has one colon"),
    ("a: >= 5; b: >= 5", 7, "give several rules as a list"),
    ("a: >= 5\nb: >= 5", 8, "give several rules as a list"),
    ("bid: largest", 5, "two or more columns before the colon"),
    ("a, b: largest | 0..1", 6, "largest stands alone"),
    ("a, b: largest of all", 14, "a comparison such as >= or <="),
]


@pytest.mark.parametrize(("text", "position", "right"), WRONG, ids=[w[0][:30] for w in WRONG])
def test_a_wrong_rule_is_marked_where_it_goes_wrong(text, position, right):
    with pytest.raises(RuleError) as caught:
        rules(text)
    error = caught.value
    assert (error.text, error.position) == (text, position)
    assert right in error.expected
    assert isinstance(error, hs.InputError)


def test_the_message_shows_the_rule_with_a_mark_under_the_character():
    with pytest.raises(RuleError) as caught:
        rules({"lead": ">=0,5"})
    assert str(caught.value) == (
        "this rule cannot be used:\n"
        "lead: >=0,5\n"
        "         ^\n"
        "position 9: expected the end of the rule after 0; decimals are written with a point: 0.5"
    )


@pytest.mark.parametrize(
    ("text", "looks_like"),
    [
        ("a:\t>=\n0,5", "a: >= 0"),  # tab and newline are shown as one space each
        ("铅: >=0,5", "xx: >=0"),  # a wide character takes two columns
        ("`e\u0301`: >=0,5", "`e`: >=0"),  # a combining accent takes none
    ],
)
def test_the_mark_stands_under_the_character_on_a_terminal(text, looks_like):
    with pytest.raises(RuleError) as caught:
        rules(text)
    _, line, mark, _ = str(caught.value).split("\n")
    assert mark == " " * len(looks_like) + "^"
    assert "\t" not in line


def test_a_long_rule_is_shown_around_the_mark_alone():
    with pytest.raises(RuleError) as caught:
        rules("a: " + " + ".join(["b"] * 500) + " ? " + " + ".join(["b"] * 500))
    _, line, mark, _ = str(caught.value).split("\n")
    assert len(line) < 120
    assert line[len(mark) - 1] == "?"
    assert line[0] == line[-1] == "…"


def test_the_error_can_be_copied_and_so_sent_between_processes():
    error = RuleError("a: >=", 5, "a number")
    again = copy.copy(error)
    assert (again.text, again.position, again.expected) == ("a: >=", 5, "a number")
    assert str(again) == str(error)


# Each would be slow or deep if the parser called itself, or wrote numbers out.
LONG = [
    "a: " + "(" * 9_000,
    "a: " + "-" * 9_000,
    "a: " + "|" * 9_000,
    "a: " + "." * 9_000,
    "a: " + "x+" * 4_900,
    '"' * 9_999,
    '"' + 'a""' * 3_000,
    "a " * 5_000,
    "a" * 2_000_000,
    "a: >= " + "9" * 9_000,
    "a: x >= 1e999999999",
    "a: x >= 1e-999999999",
    "a: x*" + "*".join(["1e300"] * 1_000) + " >= 1",
    "a: x*" + "/".join(["1e300"] * 1_000) + " >= 1",
]


@pytest.mark.parametrize("text", LONG, ids=range(len(LONG)))
def test_long_and_deep_texts_fail_cleanly(text):
    with pytest.raises(RuleError) as caught:
        rules(text)
    assert len(str(caught.value)) < 500
    assert caught.value.position <= LONGEST_RULE


def test_a_zero_with_a_huge_exponent_is_zero():
    assert rules("a: >= 0e999999999", columns=["a"]).column_set(0) == hs.at_least(0)


def test_long_sums_are_read():
    names = [f"column_{k}" for k in range(500)]
    text = "y: " + " + ".join(f"{k + 1}*{name}" for k, name in enumerate(names)) + " >= 1"
    (inequality,) = read_rule(text).pieces[0].inequalities
    assert inequality.weights == {name: k + 1 for k, name in enumerate(names)}


def _refused(text):
    """Return the error that a text makes, if it makes one; any other kind of error is raised."""
    try:
        Rules(text)
    except RuleError as error:
        return error
    return None


@given(st.text(max_size=60))
@example("a: .5..1")
@example("a: 1.e5")
@example("a: ∞")
@example("a: x²>=1")
@example("٣: >= ٣")
def test_any_text_is_read_or_refused(text):
    error = _refused(text)
    if error is not None:
        assert 0 <= error.position <= len(text)
        assert error.text == text


pieces_of_text = st.sampled_from(
    [
        *("a", "b", "`c d`", '"', "inf", "nan", "always", "largest", "and", "log"),
        *("0", "0.5", "2e3", "1e999", ".5", "5."),
        *(">=", "<=", ">", "<", "≥", "≤", "=", "..", "|", ":", ",", "+", "-", "−", "*", "/"),
        *("(", ")", "%", "^", " ", "\n"),
    ]
)


@given(st.lists(pieces_of_text, max_size=12).map("".join))
@pytest.mark.filterwarnings("ignore::halfseen.AssumptionWarning")
def test_any_order_of_words_is_read_or_refused(condition):
    error = _refused("a: " + condition)
    if error is not None:
        # 2: the end of a condition that is only space.
        assert 2 <= error.position <= len(condition) + 3


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5).map(float)


def _printed(interval):
    """Write an interval of column ``a`` as a piece."""
    low, high = interval.lower, interval.upper
    left, right = "<=" if interval.closed_lower else "<", "<=" if interval.closed_upper else "<"
    if interval == hs.everything:
        return "always"
    if high == math.inf:
        return f"{'>=' if interval.closed_lower else '>'} {low!r}"
    if low == -math.inf:
        return f"{right} {high!r}"
    if interval.closed_lower and interval.closed_upper:
        return f"{low!r}..{high!r}"
    return f"{low!r} {left} a {right} {high!r}"


@st.composite
def sets(draw):
    """Draw a set of one to four intervals that do not touch."""
    cuts = sorted(draw(st.sets(numbers, min_size=1, max_size=8)))
    first = draw(st.booleans())
    ends = ([-math.inf] if first else []) + cuts
    ends += [math.inf] if len(ends) % 2 else []
    closed = draw(st.lists(st.booleans(), min_size=len(ends), max_size=len(ends)))
    return [
        hs.Interval(a, b, c or math.isinf(a), d or math.isinf(b))
        for a, b, c, d in zip(ends[::2], ends[1::2], closed[::2], closed[1::2], strict=True)
    ]


@given(sets(), st.randoms(use_true_random=False))
def test_a_set_that_is_printed_reads_back(intervals, random):
    shuffled = list(intervals)
    random.shuffle(shuffled)
    text = " | ".join(map(_printed, shuffled))
    found = rules({"a": text}, columns=["a"]).column_set(0)
    assert found.pieces == tuple(intervals)


@given(st.text(min_size=1, max_size=20))
@example('5"`"')
@example("a..b")
@example("nan")
@example("Inf")
def test_a_name_that_is_quoted_reads_back(name):
    rule = read_rule(f"{quoted(name)}: 2*{quoted(name)} >= 1")
    assert [found.text for found in (*rule.targets, *rule.others)] == [name, name]
    backticks = "`" + name.replace("`", "``") + "`"
    assert read_rule(f"{backticks}: >= 1").targets[0].text == name


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (">=0.5", hs.at_least(0.5)),
        ("> .5", hs.Interval(0.5, math.inf, closed_lower=False)),
        ("≤ −1e-3", hs.at_most(-1e-3)),
        ("< +2.", hs.Interval(-math.inf, 2, closed_upper=False)),
        ("-inf..3", hs.at_most(3)),
        ("3..+inf", hs.at_least(3)),
        ("-inf..inf", hs.everything),
        ("-∞..3", hs.at_most(3)),
        ("always", hs.everything),
        ("everything", hs.everything),
        ("0..1|3..5", hs.between(0, 1) | hs.between(3, 5)),
        ("0..1 | 1..2", hs.between(0, 2)),
        ("0..1 | always", hs.everything),
        ("a >= 0.5", hs.at_least(0.5)),
        ("0.5 <= a", hs.at_least(0.5)),
        ("2*a >= 1", hs.at_least(0.5)),
        ("a/2 >= 1", hs.at_least(2)),
        ("2*a/3 + 1 >= 7 - a", hs.at_least(3.6)),
        ("-a >= -5", hs.at_most(5)),
        ("a*-2 < 1", hs.Interval(-0.5, math.inf, closed_lower=False)),
        ("a + b - b >= 1", hs.at_least(1)),
        ("0 < a <= 5", hs.Interval(0, 5, closed_lower=False)),
        ("5 >= a > 0", hs.Interval(0, 5, closed_lower=False)),
        ("0 <= `a` <= 5", hs.between(0, 5)),
        ("a < 0 | a > 5", hs.Interval(-math.inf, 0, True, False) | hs.Interval(5, math.inf, False)),
        ("3*a >= 1", hs.at_least(1 / 3)),
    ],
)
def test_what_a_condition_means(condition, expected):
    assert rules({"a": condition}, columns=["a", "b"]).column_set(0) == expected


def test_overlapping_pieces_are_joined_with_a_warning():
    with pytest.warns(hs.AssumptionWarning, match="overlap between 1 and 2"):
        rule = rules("a: 0..2 | 1..3", columns=["a"])
    assert rule.column_set(0) == hs.between(0, 3)


def test_words_of_the_grammar_may_be_columns_where_nothing_else_makes_sense():
    rule = read_rule("a: always - 2*largest >= everything")
    assert [name.text for name in rule.others] == ["always", "largest", "everything"]


def test_all_comes_to_one_side_exactly():
    (inequality,) = read_rule("y: 0.1*a - b/3 < c + 0.3").pieces[0].inequalities
    assert inequality.strict
    assert inequality.constant == Fraction(3, 10)
    assert inequality.weights == {"a": Fraction(-1, 10), "b": Fraction(1, 3), "c": 1}
