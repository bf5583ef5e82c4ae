import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs
from halfseen.data.cells import CellFormat, print_cell, read_cell, shorten

INF = math.inf
PLAIN = CellFormat()
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def ends(text, **kwargs):
    cell = read_cell(text, CellFormat(**kwargs))
    assert not cell.problem, (text, cell.problem)
    assert not cell.not_detected
    return cell.lower, cell.upper


def problem(text, **kwargs):
    cell = read_cell(text, CellFormat(**kwargs))
    # What cannot be read says nothing.
    assert (cell.lower, cell.upper, cell.not_detected) == (-INF, INF, False)
    return cell.problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3.2", 3.2),
        ("-1e-5", -1e-5),
        ("1e-5", 1e-5),
        ("1E+5", 1e5),
        ("+5", 5.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("007", 7.0),
        ("−4", -4.0),
        ("1e−5", 1e-5),
        ("\u00a03.5\u2009", 3.5),
        ("\u3000 3.5\u202f\t", 3.5),
        ("\u200b3.5\ufeff", 3.5),
        ("9007199254740993", 9007199254740992.0),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("5e-324", 5e-324),
        ("0e999", 0.0),
    ],
)
def test_values(text, value):
    assert ends(text) == (value, value)


@pytest.mark.parametrize(
    "text",
    [
        "<0.05",
        "< 0.05",
        "<=0.05",
        "<= 0.05",
        "≤ 0.05",
        "≤0.05",
        "＜0.05",
        "<\xa00.05",
        "ND(0.05)",
        "ND (0.05)",
        "nd( 0.05 )",
        "ND<0.05",
        "ND < 0.05",
        "ND 0.05",
        "N.D.(<0.05)",
        "U 0.05",
        "0.05 U",
        "0.05U",
        "0.05u",
        "<0.05 U",
        "<0.05U",
        "0.05 ND",
        "0.05 (U)",
        "<LOD (0.05)",
    ],
)
def test_below_a_limit(text):
    assert ends(text) == (-INF, 0.05)


@pytest.mark.parametrize("text", [">100", "> 100", "≥ 100", ">=100", ">1e2", "＞100"])
def test_above_a_limit(text):
    assert ends(text) == (100.0, INF)


@pytest.mark.parametrize(
    ("text", "lower", "upper"),
    [
        ("0.2-0.5", 0.2, 0.5),
        ("0.2 - 0.5", 0.2, 0.5),
        ("0.2–0.5", 0.2, 0.5),
        ("0.2 — 0.5", 0.2, 0.5),
        ("0.2..0.5", 0.2, 0.5),
        ("0.2 .. .5", 0.2, 0.5),
        ("-3--1", -3.0, -1.0),
        ("−3–−1", -3.0, -1.0),
        ("-3 to -1", -3.0, -1.0),
        ("-3 TO 1", -3.0, 1.0),
        ("1e-5-2e-5", 1e-5, 2e-5),
        ("-1e-5--1e-6", -1e-5, -1e-6),
        ("1e-5..2", 1e-5, 2.0),
        ("0-5", 0.0, 5.0),
        ("4..4", 4.0, 4.0),
    ],
)
def test_intervals(text, lower, upper):
    assert ends(text) == (lower, upper)


@pytest.mark.parametrize(
    "text",
    [
        "ND",
        "N.D.",
        "nd",
        "Nd ",
        "<LOD",
        "< LOD",
        "<LOQ",
        "<DL",
        "<MDL",
        "<RL",
        "<mrl",
        "BDL",
        "bql",
        "not detected",
        "Not\xa0 Detected",
        "non-detect",
        "U",
        "below detection limit",
    ],
)
def test_not_detected_without_a_limit(text):
    cell = read_cell(text, PLAIN)
    assert cell == (-INF, INF, True, False, "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "\xa0",
        "NA",
        "n/a",
        "N/A",
        "#N/A",
        "NaN",
        "nan",
        "null",
        "NULL",
        "None",
        "<NA>",
        ".",
        "-",
        "--",
        "—",
        "−",
    ],
)
def test_missing(text):
    assert ends(text) == (-INF, INF)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("5-3", r"reversed: 5 is above 3; an interval is written 3\.\.5"),
        ("5..3", "reversed"),
        ("-1--3", "reversed: -1 is above -3"),
        ("2020-01-05", "a date"),
        ("05/01/2020", "a date"),
        ("1.5.2020", "a date"),
        ("2020-01-05 12:30", "a date"),
        ("5-Jan", "a date"),
        ("2020-01", "part of a date"),
        ("05-2020", "part of a date"),
        ("1_000", "underscore"),
        ("0x10", "decimal digits"),
        ("inf", "infinite"),
        ("-Infinity", "infinite"),
        ("<inf", "infinite"),
        ("1.2.3", "more than one"),
        ("1...5", "three points"),
        ("12 mg/L", "'mg/L' after the number.*name of the column"),
        ("<12mg/L", "'mg/L' after the number"),
        ("12 µg", "'µg' after the number"),
        ("5%", "percent"),
        ("<5 %", "percent"),
        ("'5", "apostrophe"),
        ("=5", "formula"),
        ("0,5", "pass decimal=','"),
        ("<0,5", "pass decimal=','"),
        ("0,2-0,5", "pass decimal=','"),
        ("1,234.5", "thousands=','"),
        ("1 234", "thousands="),
        ("1e999", "too large"),
        ("-1e999", "too large"),
        ("<1e999", "too large"),
        ("1..1e999", "too large"),
        ("9" * 400, "too large"),
        ("1e-999", "would become 0"),
        ("3 -5", r"two numbers or an interval.*3\.\.5"),
        ("-3 -1", "two numbers or an interval"),
        ("–5", "minus sign"),
        ("１２", "other than 0 to 9"),
        ("٣", "other than 0 to 9"),
        (">LOQ", "above a limit that is not said"),
        (">5 U", "contradicts itself"),
        ("<5 J", "contradicts itself"),
        ("0.05 (U", "no number"),
        ("true", "true or false"),
        ("A12", "no number"),
        ("<", "no number"),
        ("<<5", "no number"),
        ("5-", "no number"),
        ("1-2-3-4", "no number"),
        ("(5)", "no number"),
        ("U05", "no number"),
        ("<script>", "no number"),
    ],
)
def test_what_cannot_be_read_says_why(text, says):
    assert re.search(says, problem(text)), problem(text)


def test_estimated_values_are_marked():
    assert read_cell("0.07 J", PLAIN) == (0.07, 0.07, False, True, "")
    assert read_cell("0.05 UJ", PLAIN) == (-INF, 0.05, False, True, "")
    assert not read_cell("0.05 U", PLAIN).estimated


def test_decimal_comma():
    assert ends("0,5", decimal=",") == (0.5, 0.5)
    assert ends("-1,5e-3", decimal=",") == (-1.5e-3, -1.5e-3)
    assert ends("<0,5", decimal=",") == (-INF, 0.5)
    assert ends("0,2..0,5", decimal=",") == (0.2, 0.5)
    assert ends("7", decimal=",") == (7.0, 7.0)
    assert "decimal='.'" in problem("0.5", decimal=",")
    assert "thousands='.'" in problem("1.234,5", decimal=",")


def test_thousands_only_where_they_belong():
    assert ends("1,234.5", thousands=",") == (1234.5, 1234.5)
    assert ends("12,345,678", thousands=",") == (12345678.0,) * 2
    assert ends("1234.5", thousands=",") == (1234.5, 1234.5)
    assert ends("<1,000", thousands=",") == (-INF, 1000.0)
    assert ends("1,000-2,000", thousands=",") == (1000.0, 2000.0)
    assert ends("1.234,5", decimal=",", thousands=".") == (1234.5, 1234.5)
    assert ends("1\u202f234", thousands=" ") == (1234.0, 1234.0)
    assert ends("1’234", thousands="'") == (1234.0, 1234.0)
    for wrong in ("12,34", "1,2345", ",123", "0,123", "1,23,456", "1.5,000"):
        assert "thousands=','" in problem(wrong, thousands=","), wrong
    assert "thousands='.'" in problem("0.5", decimal=",", thousands=".")


def test_words_of_ones_own_go_first():
    assert read_cell("Trace", CellFormat(not_detected="trace")).not_detected
    assert ends("nd", missing=["ND"]) == (-INF, INF)
    assert ends("-999.0", missing=[-999]) == (-INF, INF)
    assert ends("-999.0", missing="-999") == (-INF, INF)
    assert ends("-998", missing="-999") == (-998.0, -998.0)
    assert read_cell("0", CellFormat(not_detected=[0])).not_detected
    assert ends("1e999", missing="1e999") == (-INF, INF)


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"decimal": ";"}, r"decimal must be '\.' or ','; got ';'"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are both ','"),
        ({"missing": ["x"], "not_detected": ["X"]}, "'x' is in not_detected= and in missing="),
        ({"missing": [True]}, "missing must be words or numbers; got True"),
    ],
)
def test_bad_formats_get_a_sentence(kwargs, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        CellFormat(**kwargs)


@given(NUMBERS, NUMBERS, st.sampled_from([".", ","]))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_printed_cells_read_back_bit_for_bit(a, b, decimal):
    a, b = min(a, b), max(a, b)
    form = CellFormat(decimal=decimal)
    for lower, upper in ((a, a), (a, b), (-INF, b), (a, INF), (-INF, INF)):
        text = print_cell(lower, upper, decimal=decimal)
        cell = read_cell(text, form)
        assert not cell.problem
        # repr tells -0.0 from 0.0.
        assert (repr(cell.lower), repr(cell.upper)) == (repr(lower), repr(upper)), text
        assert print_cell(cell.lower, cell.upper, decimal=decimal) == text


def test_zeros_of_both_signs_are_kept():
    assert print_cell(-0.0, 0.0) == "-0..0"
    assert [math.copysign(1, end) for end in ends("-0..0")] == [-1.0, 1.0]


@pytest.mark.parametrize(
    "text", ["3.2", "<0.05", ">100", "0.2..0.5", "-3..-1", "", "1e-05", "1e+16", "<-0.1", "0"]
)
def test_canonical_texts_print_back_as_they_are(text):
    cell = read_cell(text, PLAIN)
    assert print_cell(cell.lower, cell.upper, cell.not_detected) == text


@given(st.text(alphabet=st.sampled_from("0123456789.,-–+eE<>=≤ UNDJ()_%'to…"), max_size=14))
@settings(max_examples=1500, deadline=None, derandomize=True)
def test_any_text_is_an_interval_or_a_problem(text):
    for form in (PLAIN, CellFormat(decimal=",", thousands="."), CellFormat(thousands=" ")):
        cell = read_cell(text, form)
        assert cell.lower <= cell.upper
        assert cell.lower < INF
        assert cell.upper > -INF
        if cell.problem:
            assert (cell.lower, cell.upper) == (-INF, INF)


@pytest.mark.parametrize("piece", ["1", "1,234", "-", "1-", " ", "e", "<", ".", "_", "'", "1e-5-"])
def test_long_cells_end(piece):
    # Each pattern runs along the text once; one that tried all ways would not come back.
    for form in (PLAIN, CellFormat(thousands=",")):
        assert read_cell(piece * 20_000, form) is not None


def test_long_texts_are_cut_in_messages():
    assert len(shorten("x" * 1000)) < 50
    assert shorten("abc") == "'abc'"
