"""Inputs that nobody should write: files, rules and damaged saves, as strategies of hypothesis."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.fuzz.targets import NAMES


def examples(count: int) -> settings:
    """Return settings for so many inputs, the same on every run and without a limit of time."""
    return settings(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


# ---- files of separated values ------------------------------------------------------------------

COLUMN_NAMES = (
    *("lead", "zinc", "Lead", "lead_flag", "lead_censored", "lead_detected", "lead-nd", "zinc.q"),
    *(
        "lead_lower",
        "lead_upper",
        "lead lo",
        "lead hi",
        "lower",
        "upper",
        "flag",
        "detected",
        "value",
    ),
    *("site", "column", "", " ", "1", "0.5", "<0.5", "a,b", 'say ""x""', "sep=;", "\x00", "\ufeff"),
    *("ſ", "İ", "\ud800", "_flag", "__lower", "_upper", "x" * 200),
)
CELLS = (
    *("1", "0.31", "-2.5", "1e5", "<0.05", "< 0.05", "<=0.05", ">100", "≥3", "0.2..0.5", "0.2-0.5"),
    *(
        "5-3",
        "-3 to -1",
        "ND",
        "nd",
        "ND(0.05)",
        "ND<0.05",
        "0.05 U",
        "3 J",
        "3 (UJ)",
        "U",
        "J",
        "=",
    ),
    *(
        "NA",
        "",
        " ",
        "-",
        "--",
        "nan",
        "inf",
        "-inf",
        "∞",
        "null",
        "<LOD",
        ">LOQ",
        "true",
        "no",
        "y",
    ),
    *(
        "1e400",
        "-1e400",
        "1e-400",
        "<1e999",
        "1" * 400,
        "0" * 400,
        "1,5",
        "1.234,5",
        "1,234",
        "1'000",
    ),
    *(
        "1_000",
        "1 000",
        "12 34",
        "0x1F",
        "5%",
        "5 mg/l",
        "2020-01-01",
        "5-Jan",
        "03-04",
        "=SUM(A1)",
    ),
    *(
        "１２",
        "٣",
        "−5",
        "–5",
        "1...5",
        "1..",
        "..1",
        "1e",
        "e5",
        "+",
        ".",
        "<",
        ">",
        "<>",
        "≤",
        "'1",
    ),
    *(
        "\u200b3",
        "3\ufeff",
        "\x00",
        "\x1c",
        "\x85",
        "\u2028",
        "\ud800",
        "a",
        "trace",
        "-999",
        "A",
        "B",
    ),
)
SEPARATORS = (",", ";", "\t", "|", " ", "::", "")
LINE_ENDS = ("\n", "\r\n", "\r", "\n\r", "\n\n", "\x85", "")
QUOTES = ("", '"', '""', "'", '"""')
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-be", "latin-1", "utf-32", "cp037")


def _texts(known: tuple[str, ...]) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(known), st.sampled_from(known), st.text(max_size=8))


PLAIN_CELLS = CELLS[:24]
# Files of limits by column, by row and by label, and some that are none.
LIMITS_HEADS = (
    *(["column", "lower"], ["column", "upper", "lower"], ["lead", "zinc"], ["zinc_upper", "lead"]),
    *(
        ["site", "lead"],
        ["site", "zinc", "lead_upper"],
        ["lead", "lead_lower"],
        ["column", "nobody"],
    ),
    *(["0.5", "1"], ["column"], ["upper", "lower"]),
)
LIMITS_CELLS = ("0.1", "5", "", "", "1e5", "-3", "NA", "<0.5", "ND", "x", "1e400")


@st.composite
def limits_files(draw: st.DrawFn) -> bytes:
    """Draw a file of limits for a table of the columns lead and zinc, and the rows A, B and C."""
    head = draw(st.sampled_from(LIMITS_HEADS))
    labels: list[str] = []
    if head[0] in ("column", "site"):
        known = ["lead", "zinc"] if head[0] == "column" else ["A", "B", "C"]
        labels = draw(st.permutations(known)) + draw(st.sampled_from(([], [], [], ["A"], [""])))
    count = len(labels) or draw(st.sampled_from((3, 3, 3, 2, 0)))
    width = len(head) - bool(labels)
    line = st.lists(st.sampled_from(LIMITS_CELLS), min_size=width, max_size=width)
    body = draw(st.lists(line, min_size=count, max_size=count))
    rows = [head] + [[*labels[k : k + 1], *cells] for k, cells in enumerate(body)]
    separator = draw(st.sampled_from(SEPARATORS[:4]))
    content = "".join(separator.join(row) + "\n" for row in rows).encode()
    return draw(changed(content)) if draw(st.sampled_from((False, False, True))) else content


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """Draw a file that is nearly a table: a plain one, one of odd cells, or one that is odd all over."""
    kind = draw(st.sampled_from(("plain", "cells", "odd")))
    width = draw(st.integers(1, 4))
    separator = draw(st.sampled_from(SEPARATORS[:4]))
    end = draw(st.sampled_from(LINE_ENDS[:3]))
    cells = _texts(CELLS) if kind != "plain" else st.sampled_from(PLAIN_CELLS)
    titles = _texts(COLUMN_NAMES) if kind == "odd" else st.sampled_from(COLUMN_NAMES)
    rows = [draw(st.lists(titles, min_size=width, max_size=width, unique=kind != "odd"))]
    row = st.lists(cells, min_size=width, max_size=width)
    rows += draw(st.lists(row, min_size=kind != "odd", max_size=4))
    if kind != "odd":
        text = "".join(separator.join(line) + end for line in rows)
        return text.encode("utf-8", "surrogatepass")
    return _odd_file(draw, rows, separator)


def _odd_file(draw: st.DrawFn, rows: list[list[str]], separator: str) -> bytes:
    """Write rows in a way of which each part may be odd."""
    pieces = [draw(st.sampled_from(("", "\ufeff", "sep=;\n", "\n", "#")))]
    for line in rows:
        quote = draw(st.sampled_from(QUOTES))
        more = draw(st.sampled_from(([], [], [""], ["1", "2"])))
        mark = draw(st.sampled_from((separator, separator, *SEPARATORS)))
        quoted = [quote + cell + quote for cell in line] + more
        pieces.append(mark.join(quoted) + draw(st.sampled_from(LINE_ENDS)))
    encoding = draw(st.sampled_from(ENCODINGS))
    errors = "surrogatepass" if encoding.startswith("utf") else "replace"
    content = "".join(pieces).encode(encoding, errors)
    return draw(changed(content)) if draw(st.booleans()) else content


# ---- rules --------------------------------------------------------------------------------------

WORDS = (
    *("lead", "zinc", "hours", '"PM-10"', "`PM-10`", "nobody", "always", "everything", "largest"),
    *(
        "smallest",
        "inf",
        "-inf",
        "∞",
        "nan",
        "and",
        "or",
        "not",
        '""',
        '"',
        "`",
        "0",
        "0.5",
        ".5",
        "5.",
    ),
    *(
        "2e-3",
        "1e308",
        "1e-320",
        "1e999",
        "0e999999999",
        "1" * 101,
        "9" * 99,
        "−1",
        "-",
        "+",
        "*",
        "/",
    ),
    *(
        ":",
        ":",
        ",",
        "|",
        "..",
        "...",
        ">=",
        ">",
        "<=",
        "<",
        "≥",
        "≤",
        "==",
        "=",
        "=>",
        "(",
        ")",
        "[",
        "^",
    ),
    *("%", ";", "&&", "||", "!", "\n", "\x00", "\ud800", "é", "名", "١", "\u0301", " "),
)
NUMBERS = ("0", "1", "0.5", "-2", "3e2", "1e308", "-1e-307", "5", "inf", "-inf")


def _sentences() -> st.SearchStrategy[str]:
    """Draw rules that are nearly right."""
    name = st.sampled_from(("lead", "zinc", "hours", '"PM-10"', "nobody"))
    number = st.sampled_from(NUMBERS)
    compare = st.sampled_from((">=", ">", "<=", "<", "≥"))
    term = st.one_of(
        number,
        name,
        st.builds("{}*{}".format, number, name),
        st.builds("{}/{}".format, name, number),
    )
    expression = st.one_of(
        term,
        st.builds("{} - {}".format, term, term),
        st.builds("{} + {} - {}".format, term, term, term),
    )
    piece = st.one_of(
        st.builds("{} {}".format, compare, number),
        st.builds("{}..{}".format, number, number),
        st.builds("{} {} {}".format, expression, compare, expression),
        st.builds("{} {} {} {} {}".format, expression, compare, expression, compare, expression),
        st.sampled_from(("always", "largest", "smallest")),
    )
    names = st.lists(name, min_size=1, max_size=3).map(", ".join)
    condition = st.lists(piece, min_size=1, max_size=3).map(" | ".join)
    return st.builds("{}: {}".format, names, condition)


def rule_texts() -> st.SearchStrategy[str]:
    """Draw rules: right, nearly right, and no rules at all."""
    jumble = st.lists(st.sampled_from(WORDS), max_size=12)
    joined = st.builds(lambda mark, words: mark.join(words), st.sampled_from(("", " ")), jumble)
    return st.one_of(_sentences(), _sentences(), joined, st.text(max_size=40))


def told_rules() -> st.SearchStrategy[Any]:
    """Draw what may be passed to ``rules``: texts, lists, dicts, and things that are none of these."""
    text = rule_texts()
    key = st.one_of(
        st.sampled_from(NAMES), st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), st.text()
    )
    wrong = st.sampled_from(
        (None, 5, b"lead: > 1", [None], [5], {}, [], {1: "> 0"}, {"lead": 1}, [[]])
    )
    after_colon = text.map(lambda rule: rule.partition(":")[2])
    return st.one_of(
        text,
        text,
        st.lists(text, max_size=4),
        st.dictionaries(key, after_colon, max_size=3),
        wrong,
    )


def told_columns() -> st.SearchStrategy[Any]:
    """Draw names of columns to match rules with; None leaves it for later."""
    names = st.lists(st.sampled_from(NAMES), max_size=4)
    return st.one_of(st.none(), st.just(NAMES), names, st.sampled_from(("lead", 5, [1, 2], [None])))


# ---- saved files --------------------------------------------------------------------------------

TOKENS = (
    *(
        b"null",
        b"1e999",
        b"-1",
        b"NaN",
        b"Infinity",
        b'""',
        b"[]",
        b"{}",
        b"[[",
        b"true",
        b"9" * 5000,
    ),
    *(
        b"\xff",
        b"\x00",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"\x93NUMPY",
    ),
    *(b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff\xff\xff\xff\xff", b"\n", b'"', b",", b";", b"\r"),
)


@st.composite
def changed(draw: st.DrawFn, original: bytes) -> bytes:
    """Change a file: flip, cut, double, move or overwrite a few of its bytes."""
    content = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        size = len(content)
        at = draw(st.integers(0, size))
        kind = draw(st.sampled_from(("flip", "cut", "truncate", "double", "insert", "overwrite")))
        length = draw(st.integers(1, 16))
        if kind == "flip" and at < size:
            content[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del content[at : at + length]
        elif kind == "truncate":
            del content[at:]
        elif kind == "double":
            content[at:at] = content[at : at + length]
        elif kind == "insert":
            content[at:at] = draw(st.sampled_from(TOKENS))
        elif kind == "overwrite":
            token = draw(st.sampled_from(TOKENS))
            content[at : at + len(token)] = token
    return bytes(content)


def saved_files(originals: list[bytes]) -> st.SearchStrategy[bytes]:
    """Draw files that were saved and then damaged, and bytes that never were saved."""
    return st.one_of(*(changed(original) for original in originals), st.binary(max_size=200))


ODD_VALUES = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        10**30,
        0.5,
        -0.0,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "full",
    ),
    *("x" * 300, "\x00", "\ud800", [], [[]], {}, {"a": 1}, [None], [1.0], [1.0, 2.0], ["a", "b"]),
    [0] * 1000,
)


def _odd_arrays() -> tuple[np.ndarray, ...]:
    return (
        *(np.empty(0), np.zeros((0, 2)), np.zeros(1), np.zeros(2), np.full(2, np.nan), np.eye(2)),
        *(
            np.full((2, 2), np.inf),
            np.zeros((2, 2)),
            -np.eye(2),
            np.zeros((2, 2, 2)),
            np.array(1.0),
        ),
        *(np.zeros(2, dtype=np.int8), np.ones((2, 2), dtype=bool), np.full((30, 2), -(2**62))),
    )


@st.composite
def rewritten(draw: st.DrawFn, originals: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Draw the content of a saved fit with a few places changed, and arrays taken away or replaced."""
    content, arrays = draw(st.sampled_from(originals))
    content, arrays = copy.deepcopy(content), dict(arrays)
    for _ in range(draw(st.integers(1, 3))):
        if arrays and draw(st.sampled_from((True, False, False))):
            name = draw(st.sampled_from(sorted(arrays)))
            kind = draw(st.sampled_from(("replace", "replace", "drop", "rename")))
            array = arrays.pop(name)
            if kind == "replace":
                arrays[name] = draw(st.sampled_from(_odd_arrays()))
            elif kind == "rename":
                arrays["other"] = array
            continue
        place: Any = content
        while True:
            keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.sampled_from((True, True, False))):
                place = place[key]
                continue
            if draw(st.sampled_from((True, True, True, False))):
                place[key] = copy.deepcopy(draw(st.sampled_from(ODD_VALUES)))
            else:
                del place[key]
            break
    return content, arrays
