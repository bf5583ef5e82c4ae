import builtins
import contextlib
import datetime as dt
import io
import re
import sys
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs
from halfseen.data.csv_files import to_cells, write_csv
from halfseen.data.readers import UnreadableError, from_frame, read_csv, read_parquet

INF = np.inf


def read(text, **kwargs):
    return read_csv(io.StringIO(text, newline=""), **kwargs)


def refused(text, **kwargs):
    """Return the sentence with which a text is refused."""
    with pytest.raises(hs.InputError) as caught:
        read(text, **kwargs)
    return str(caught.value)


# --- writing and reading back -------------------------------------------------------------------

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
# Everything that a file can hold but lone surrogates; odd marks come often.
TEXTS = st.text(
    st.one_of(
        st.sampled_from("\"'<>;,|\t\n\r= &_-\ufeff\0é\u2028"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=8,
)
NAMES = st.one_of(
    TEXTS, st.sampled_from(["<script>alert(1)</script>", 'a "b"', "a, b", "x_q", "x", "1"])
)


@st.composite
def tables(draw):
    n, d = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    names = draw(st.lists(NAMES.filter(str.strip), min_size=d, max_size=d, unique=True))
    labels = draw(st.none() | st.lists(TEXTS, min_size=n, max_size=n))
    lower, upper = np.full((n, d), -INF), np.full((n, d), INF)
    not_detected = np.zeros((n, d), dtype=bool)
    for cell in np.ndindex(n, d):
        kind = draw(st.sampled_from(["seen", "below", "above", "between", "ND", "NA"]))
        a, b = sorted((draw(NUMBERS), draw(NUMBERS)))
        lower[cell] = a if kind in ("seen", "above", "between") else -INF
        upper[cell] = {"seen": a, "below": b, "between": b}.get(kind, INF)
        not_detected[cell] = kind == "ND"
    return hs.IntervalData(lower, upper, names, labels=labels, not_detected=not_detected)


@given(tables(), st.sampled_from([".", ","]), st.sampled_from([None, ";", "\t", "|"]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_tables_are_written_and_read_back_bit_for_bit(tmp_path_factory, data, decimal, separator):
    path = tmp_path_factory.mktemp("back") / "table.csv"
    index = "label of the row"
    write_csv(data, path, decimal=decimal, separator=separator, index=index)
    with warnings.catch_warnings():
        # Names that are numbers are doubted, and rightly.
        warnings.simplefilter("ignore", hs.AssumptionWarning)
        back = read_csv(
            path,
            decimal=decimal,
            index=None if data.labels is None else index,
            companions=False,
        )
    # As bytes: -0.0 and 0.0 are different.
    assert back.lower.tobytes() == data.lower.tobytes()
    assert back.upper.tobytes() == data.upper.tobytes()
    np.testing.assert_array_equal(back.not_detected, data.not_detected)
    assert back.names == data.names
    assert back.labels == data.labels
    assert to_cells(back) == to_cells(data)


def test_spaces_and_marks_at_the_ends_are_kept(tmp_path):
    data = hs.IntervalData(
        np.ones((2, 3)), np.ones((2, 3)), ["\ufeffa", " b", " c "], labels=[" x", "\u00a0"]
    )
    for index in (" i", "\ufeff"):
        write_csv(data, tmp_path / "t.csv", index=index)
        back = read_csv(tmp_path / "t.csv", index=index)
        assert (back.names, back.labels) == (data.names, data.labels)
    write_csv(hs.IntervalData(data.lower, data.upper, data.names), tmp_path / "t.csv")
    assert read_csv(tmp_path / "t.csv").names == data.names


def test_canonical_texts_print_back_as_they_are(tmp_path):
    text = "site,lead,zinc\nA,0.31,<0.05\nB,>100,-3..-1\nC,ND,\nD,1e-05,0.2..0.5\n"
    write_csv(read(text, index="site"), tmp_path / "out.csv", index="site")
    assert (tmp_path / "out.csv").read_text() == text


def test_writing_is_refused_with_a_sentence(tmp_path):
    data = hs.IntervalData([[1.0]], [[1.0]], ["a"], labels=["x"])
    with pytest.raises(hs.InputError, match="a column 'a', because the table has one"):
        write_csv(data, tmp_path / "x.csv", index="a")
    with pytest.raises(hs.InputError, match="separator must be"):
        write_csv(data, tmp_path / "x.csv", separator=",", decimal=",")
    with pytest.raises(hs.InputError, match="decimal must be"):
        write_csv(data, tmp_path / "x.csv", decimal=":")
    with pytest.raises(hs.InputError, match="cannot be written: No such file"):
        write_csv(data, tmp_path / "nowhere" / "x.csv")
    with pytest.raises(hs.InputError, match="no character"):
        write_csv(hs.IntervalData([[1.0]], [[1.0]], ["\ud800"]), tmp_path / "x.csv")
    with pytest.raises(hs.InputError, match="data must be IntervalData"):
        write_csv([[1.0]], tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == []


@given(st.lists(st.lists(st.text(max_size=6), min_size=2, max_size=2), min_size=1, max_size=4))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_arbitrary_cells_raise_nothing_but_input_errors(rows):
    frame = pd.DataFrame(rows, columns=["a", "b"])
    with contextlib.suppress(hs.InputError):
        from_frame(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.AssumptionWarning)
        try:
            assert from_frame(frame, unreadable="missing").shape == frame.shape
        except hs.InputError as error:
            # Rows of units are refused whatever is done with cells, and nothing else is.
            if "holds units" not in str(error):
                raise


@given(st.text(st.sampled_from('ab,;|\t\n\r "<5.-\0\ufeffND'), max_size=40))
@settings(max_examples=600, deadline=None, derandomize=True)
def test_arbitrary_files_raise_nothing_but_input_errors(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.AssumptionWarning)
        with contextlib.suppress(hs.InputError):
            read(text)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found(separator, end):
    text = end.join(["site a,lead,zinc", "A,0.31,<0.05", "B,ND,7..9", ""]).replace(",", separator)
    data = read(text, index="site a")
    assert data.labels == ("A", "B")
    assert to_cells(data) == [["0.31", "<0.05"], ["ND", "7..9"]]


def test_the_separator_is_found_beside_decimal_commas():
    assert to_cells(read("a;b\n0,5;1,2\n1;2\n", decimal=",")) == [["0.5", "1.2"], ["1", "2"]]
    # Both marks split all lines alike, but only one leaves numbers.
    assert to_cells(read("a,g;b,g\n0,5;1,2\n", decimal=",")) == [["0.5", "1.2"]]
    assert to_cells(read('a,b\n"0,5","1,2"\n', decimal=",")) == [["0.5", "1.2"]]
    assert to_cells(read("x\n0,5\n<1,2\n", decimal=",")) == [["0.5"], ["<1.2"]]
    assert "pass decimal=','" in refused("x\n0,5\n1,2\n")
    assert "pass decimal=','" in refused("a;b\n0,5;1,2\n")


def test_a_first_line_that_tells_the_separator():
    text = "sep=;\r\nlead;zinc\r\n1;2\r\n3;x\r\n"
    assert to_cells(read(text, missing="x")) == [["1", "2"], ["3", ""]]
    assert "line 4, column zinc: 'x'" in refused(text)
    assert "line 2 is empty" in refused("sep=;\n")


def test_a_separator_that_cannot_be_found_is_asked_for():
    assert "separated by semicolon or bar; tell it with separator=" in refused("a;b|c\n1;2|3\n")
    assert read("a;b|c\n1;2\n", separator=";").names == ("a", "b|c")


def test_the_separator_is_found_in_long_files():
    # Longer than what is looked at, and cut within a row.
    rows = "".join(f'"A;{k}";{k},5;<0,{k}1\n' for k in range(10_000))
    data = read("site;lead;zinc\n" + rows, index="site", decimal=",")
    assert data.shape == (10_000, 2)
    assert (data.lower[-1, 0], data.labels[-1]) == (9999.5, "A;9999")


def test_quotes_newlines_and_byte_order_marks():
    text = '\ufeff"lead ""total"", mg\n/L",zinc\r\n"0.5",<1\r\n'
    data = read(text)
    assert data.names == ('lead "total", mg\n/L', "zinc")
    assert to_cells(data) == [["0.5", "<1"]]


def test_lines_are_counted_as_an_editor_does():
    text = 'site,"lead\nmg/L",zinc\n"A\nA",1,2\nB,x,3\nC,4,y\n'
    with pytest.raises(UnreadableError) as caught:
        read(text, index="site")
    assert [(c.row, c.line, c.column, c.text) for c in caught.value.cells] == [
        (1, 5, "lead\nmg/L", "x"),
        (2, 6, "zinc", "y"),
    ]
    assert "line 6, column zinc: 'y'" in str(caught.value)


def test_spaces_after_separators():
    data = read('site, lead, "zinc, mg"\nA, 0.5, <1\n', index="site")
    assert data.names == ("lead", "zinc, mg")
    assert to_cells(data) == [["0.5", "<1"]]
    # Elsewhere a space belongs to the name.
    assert read('a," b",c\n1,2,3\n').names == ("a", " b", "c")
    assert read("a, b,c\n1,2,3\n").names == ("a", " b", "c")


def test_open_files_bytes_and_paths(tmp_path):
    path = tmp_path / "lead.csv"
    path.write_bytes("lead,zinc\n≤0.5,−1\n".encode("utf-8-sig"))
    for source in (path, str(path), io.BytesIO(path.read_bytes())):
        assert to_cells(read_csv(source)) == [["<0.5", "-1"]]
    with path.open(encoding="utf-8-sig") as file:
        assert to_cells(read_csv(file)) == [["<0.5", "-1"]]


def test_encodings(tmp_path):
    path = tmp_path / "lead.csv"
    path.write_bytes("site,blé\nA,1\nB,2 µ\n".encode("latin-1"))
    with pytest.raises(
        hs.InputError, match=r"lead\.csv, line 1: byte 0xe9 .* try encoding='latin-1'"
    ):
        read_csv(path)
    assert read_csv(path, encoding="latin-1", columns=["blé"], missing="2 µ").names == ("blé",)
    path.write_bytes("a,b\n1,2\n".encode("utf-16"))
    with pytest.raises(hs.InputError, match="try encoding='utf-16'"):
        read_csv(path)
    assert read_csv(path, encoding="utf-16").names == ("a", "b")
    with pytest.raises(hs.InputError, match="encoding 'klingon' is not known"):
        read_csv(path, encoding="klingon")


def test_empty_lines():
    assert read("a,b\n1,2\n\n\n  \n").shape == (1, 2)
    assert read("a\n1\n\n").shape == (1, 1)
    assert "line 3: the line is empty, and rows follow it" in refused("a,b\n1,2\n\n3,4\n")
    assert "line 3: the line is empty" in refused("a\n1\n\n3\n")
    # A row of separators is a row.
    assert to_cells(read("a,b\n1,2\n,\n3,4\n")) == [["1", "2"], ["", ""], ["3", "4"]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the open file is empty; the first line must hold the names"),
        ("\n \n", "is empty"),
        ("\na,b\n1,2\n", "line 1 is empty"),
        ("a,b\n", "holds the names of 2 columns, but no rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 cell, but the first line names 2 columns"),
        ("a,b\n1,2\n3,4,5\n", "line 3: 3 cells, but the first line names 2"),
        ("a,b,a\n1,2,3\n", "2 columns are named 'a'"),
        ("a,,b\n1,2,3\n", r"column 2 has no name.*index=''"),
        ('a,b\n1,"2\n3,4\n', r'line 2: a quote \("\) is opened and never closed'),
        ('a,b\n1,"2"3\n', "line 2: a closing quote"),
        ("a,b\n1," + "2" * 200_000 + "\n", "line 2: a cell has more than 131072 characters"),
    ],
)
def test_broken_files_get_a_sentence(text, sentence):
    assert re.search(sentence, refused(text)), refused(text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(hs.InputError, match=r"no\.csv cannot be read: No such file"):
        read_csv(tmp_path / "no.csv")
    with pytest.raises(hs.InputError, match="Is a directory"):
        read_csv(tmp_path)
    with pytest.raises(hs.InputError, match="path must be the path of a file"):
        read_csv(5)
    with pytest.raises(hs.InputError, match="is no path"):
        read_csv("a\0b")
    with pytest.raises(hs.InputError, match="there is no such file"):
        read_parquet(tmp_path / "no.parquet")


def test_numbers_in_the_first_line_are_doubted():
    with pytest.warns(hs.AssumptionWarning, match=r"first line holds numbers \(1\.2, 3\.4\)"):
        assert read("1.2,3.4\n1,2\n").names == ("1.2", "3.4")
    # Whoever names them knows that they are names.
    assert read("400,410\n1,2\n", columns=["400", "410"]).shape == (1, 2)


# --- choosing columns ---------------------------------------------------------------------------

TABLE = "site,lead,zinc\nA,1,2\nB,3,4\n"


def test_columns_are_chosen_in_order():
    data = read(TABLE, columns=["zinc", "lead"], index="site")
    assert (data.names, data.labels) == (("zinc", "lead"), ("A", "B"))
    np.testing.assert_array_equal(data.values, [[2, 1], [4, 3]])
    assert read(TABLE, columns="zinc").names == ("zinc",)
    # What is not read may be anything.
    assert read("site,lead,,\nA,1,x,y\n", columns=["lead"]).names == ("lead",)


def test_a_column_without_a_name_can_hold_the_labels():
    assert read(",lead\nA,1\nB,2\n", index="").labels == ("A", "B")


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"columns": ["Led"]}, "columns=: there is no column 'Led'; did you mean 'lead'?"),
        ({"columns": ["LEAD"]}, "did you mean 'lead'?"),
        ({"columns": ["xyzzy"]}, "the table has 'site', 'lead', 'zinc'"),
        ({"index": "sites"}, "index=: there is no column 'sites'; did you mean 'site'?"),
        ({"columns": []}, "columns= names no column"),
        ({"columns": ["lead", "lead"]}, "columns= names 'lead' more than once"),
        ({"columns": ["lead"], "index": "lead"}, "in columns= and in index="),
        ({"unreadable": "drop"}, "unreadable must be 'refuse' or 'missing'; got 'drop'"),
        ({"separator": "ab"}, "separator must be one character"),
        ({"separator": '"'}, "separator may not be"),
    ],
)
def test_bad_arguments_get_a_sentence(kwargs, sentence):
    assert sentence in refused(TABLE, **kwargs)


# --- cells that cannot be read ------------------------------------------------------------------


def test_a_column_of_words_is_told_as_such():
    message = refused(TABLE)
    assert (
        "column site holds no numbers ('A', 'B'): leave it out with exclude='site', or make it the row "
        "labels with index='site'." in message
    )
    assert "cannot be read" not in message
    assert "column day holds dates ('2020-01-05'" in refused(
        "day,lead\n2020-01-05,1\n2020-01-06,2\n"
    )


@pytest.mark.parametrize("words", [["FL", "ND", "NC", "NA"], ["no", "primary", "secondary", "yes"]])
def test_words_of_which_some_mean_something_elsewhere_are_words(words):
    message = refused("place,lead\n" + "".join(f"{word},{k}.5\n" for k, word in enumerate(words)))
    assert f"column place holds no numbers ('{words[0]}'" in message
    assert "cannot be read" not in message


def test_a_column_that_is_only_written_otherwise_is_not_a_column_of_words():
    assert "pass decimal=','" in refused("a;b\n0,5;1\n0,7;2\n")


def test_all_unreadable_cells_are_collected():
    rows = "".join(f"{'x' if k % 2 else k},{'12 mg/L' if k % 5 == 0 else k}\n" for k in range(20))
    with pytest.raises(UnreadableError) as caught:
        read("lead,zinc\n" + rows)
    message = str(caught.value)
    assert len(caught.value.cells) == 14
    assert "14 cells cannot be read" in message
    assert message.count("\n  line ") == 8
    assert "and 6 more: 5 in lead, 1 in zinc" in message
    assert "line 2, column zinc: '12 mg/L' has 'mg/L' after the number" in message
    # In the order of the file.
    assert [c.line for c in caught.value.cells] == sorted(c.line for c in caught.value.cells)


def test_unreadable_cells_can_be_taken_as_missing():
    with pytest.warns(
        hs.AssumptionWarning, match="3 cells cannot be read and are taken as missing"
    ) as w:
        data = read("lead,zinc\n1,x\ny,2\nz,3\n", unreadable="missing")
    assert "1 in zinc, 2 in lead" in str(w[0].message)
    assert "line 2, column zinc: 'x'" in str(w[0].message)
    assert to_cells(data) == [["1", ""], ["", "2"], ["", "3"]]
    assert not data.not_detected.any()


def test_limits_that_nothing_can_lie_below_are_told():
    text = "lead,zinc,zinc_q,tin,temp\n<0,0,U,<0,<0\n1,0,ND,<-1,-2\n2,3,,,3\n"
    with pytest.warns(
        hs.AssumptionWarning, match=r"limit of 0 or less \(1 in lead, 2 in zinc\)"
    ) as w:
        data = read(text)
    # A limit of tin is negative, and temp is.
    assert len(w) == 1
    for column in ("<0\n0\n2\n", "<0\n<0.5\n", "<=0\n3\n"):
        with pytest.warns(hs.AssumptionWarning, match="taken to be negative"):
            read("lead\n" + column)
    assert to_cells(data)[0] == ["<0", "<0", "<0", "<0"]
    assert to_cells(read("lead\n<0.1\n1\n>0\n-1..0\n")) == [["<0.1"], ["1"], [">0"], ["-1..0"]]


def test_long_cells_are_cut_in_messages():
    assert len(refused("lead\n1\n" + "x" * 5000 + "\n")) < 500


def test_words_of_ones_own():
    data = read("a,b\ntrace,-999\n1,2\n", not_detected=["Trace"], missing=[-999])
    assert to_cells(data) == [["ND", ""], ["1", "2"]]
    data = read("a,b\n-999.0,0\n1,2\n", missing="-999", not_detected=0)
    assert to_cells(data) == [["", "ND"], ["1", "2"]]
    frame = pd.DataFrame({"a": [np.inf, 1.0, -99.0, 0.0]})
    data = from_frame(frame, missing=[np.inf, "-99"], not_detected=0)
    assert to_cells(data) == [[""], ["1"], [""], ["ND"]]


def test_plain_columns_are_read_as_the_others():
    # The same cells in a column of plain numbers, and beside a cell that is none.
    for cell in ("1e-5", "-0", "1e999", "1e-999", "+.5", "5.", "--", "1-2", "-", "007", "1e", "e5"):
        plain = refused_or_read(f"a\n1\n{cell}\n")
        mixed = refused_or_read(f"a\n1\n{cell}\n>3\n")
        assert plain == (mixed if isinstance(mixed, str) else mixed[:2]), cell


def test_plain_columns_take_no_liberties():
    # Python's float would take these.
    for cell, says in (
        ("1_000", "underscore"),
        ("inf", "infinite"),
        ("1e-999", "would become 0"),
        ("1e999", "too large"),
        ("１", "other than 0 to 9"),
    ):
        assert says in refused(f"a\n1\n{cell}\n"), cell
        assert says in refused(f"a\n1\n{cell}\n>3\n"), cell
    assert to_cells(read("a,b\n1,1\nnan, 2 \n")) == [["1", "1"], ["", "2"]]


def refused_or_read(text):
    try:
        return to_cells(read(text))
    except UnreadableError as error:
        return error.cells[0].reason


# --- frames -------------------------------------------------------------------------------------

EXPECTED = [["1", "<0.5", "1.5"], ["", "", ""], ["3", "ND", "2"]]


@pytest.mark.parametrize(
    ("frame", "library"),
    [
        (
            pd.DataFrame(
                {
                    "a": pd.array([1, None, 3], dtype="Int64"),
                    "b": ["<0.5", None, "ND"],
                    "c": [1.5, np.nan, 2.0],
                }
            ),
            "pandas",
        ),
        (
            pd.DataFrame(
                {
                    "a": [1, pd.NA, "3"],
                    "b": pd.Categorical(["<0.5", None, "ND"]),
                    "c": pd.array([Decimal("1.5"), None, np.float32(2)], dtype=object),
                }
            ),
            "pandas",
        ),
        (
            pd.DataFrame(
                {
                    "a": pd.Categorical([1, None, 3]),
                    "b": pd.array(["<0.5", None, "ND"], dtype="string"),
                    "c": pd.array([1.5, None, 2.0], dtype="double[pyarrow]"),
                }
            ),
            "pandas",
        ),
        (
            pl.DataFrame({"a": [1, None, 3], "b": ["<0.5", None, "ND"], "c": [1.5, None, 2.0]}),
            "polars",
        ),
        (
            pl.DataFrame(
                {"a": [1, None, 3], "b": ["<0.5", None, "ND"], "c": [1.5, float("nan"), 2.0]},
                schema={"a": pl.UInt8, "b": pl.Categorical, "c": pl.Float32},
            ),
            "polars",
        ),
        (
            pa.table(
                {
                    "a": pa.array([1, None, 3], pa.int16()),
                    "b": pa.array(["<0.5", None, "ND"]).dictionary_encode(),
                    "c": pa.array([Decimal("1.5"), None, Decimal("2")]),
                }
            ),
            "pyarrow",
        ),
    ],
)
def test_frames_of_every_library_are_read_alike(frame, library):
    data = from_frame(frame)
    assert to_cells(data) == EXPECTED
    assert (data.names, data.labels, data.frame) == (("a", "b", "c"), None, library)


def test_columns_of_nothing():
    for frame in (
        pl.DataFrame({"a": [1, 2], "n": [None, None]}),
        pa.table({"a": [1, 2], "n": pa.nulls(2)}),
    ):
        assert to_cells(from_frame(frame)) == [["1", ""], ["2", ""]]


def test_numbers_keep_their_bits():
    values = np.random.default_rng(0).normal(size=50) * 10.0 ** np.arange(-25, 25)
    for frame in (
        pd.DataFrame({"a": values}),
        pl.DataFrame({"a": values}),
        pa.table({"a": values}),
    ):
        assert from_frame(frame).lower.tobytes() == values.tobytes()


def test_the_index_of_pandas_becomes_labels():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "s": ["x", "y", "z"]})
    assert from_frame(frame[["a"]]).labels is None
    assert from_frame(frame[["a"]][1:]).labels == ("1", "2")
    assert from_frame(frame.set_index("s")).labels == ("x", "y", "z")
    assert from_frame(frame, index="s").labels == ("x", "y", "z")
    two = frame.assign(k=[1, 2, 3]).set_index(["s", "k"])
    assert from_frame(two).labels == ("x, 1", "y, 2", "z, 3")


def test_the_index_of_pandas_is_kept_as_it_is():
    days = pd.date_range("2020-01-01", periods=3, name="day")
    frame = pd.DataFrame({"a": ["1", "<2", "3"], "s": ["x", "y", "z"]}, index=days)
    data = from_frame(frame, columns=["a"])
    pd.testing.assert_index_equal(data.index, days)
    pd.testing.assert_index_equal(data.take(slice(1, 3)).index, days[1:])
    assert data.labels[0] == "2020-01-01 00:00:00"
    # Labels from a column go before those of the frame.
    assert from_frame(frame, index="s").index is None
    assert from_frame(pl.DataFrame({"a": [1.0]})).index is None


def test_messages_of_frames_name_row_and_label():
    frame = pd.DataFrame({"lead": [1, "5 mg"]}, index=["S1", "S2"])
    with pytest.raises(UnreadableError, match=r"row 1 \(S2\), column lead: '5 mg'") as caught:
        from_frame(frame)
    assert caught.value.cells[0][:3] == (1, None, "lead")
    with pytest.raises(UnreadableError, match="row 1, column lead: 'inf' is infinite"):
        from_frame(pd.DataFrame({"lead": [1.0, np.inf]}))


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (pd.DataFrame({"a": [True, False]}), "column a holds true and false"),
        (
            pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}),
            "column a holds true and false",
        ),
        (pl.DataFrame({"a": [True, None]}), "column a holds true and false"),
        (pd.DataFrame({"a": [True, None]}, dtype=object), "column a holds true and false"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "column a holds dates or times"),
        (pl.DataFrame({"a": [dt.date(2020, 1, 1)]}), "column a holds dates or times"),
        (pa.table({"a": [dt.datetime(2020, 1, 1)]}), "column a holds dates or times"),
        (pl.DataFrame({"a": [[1], [2]]}), "column a holds values of type List"),
        (pd.DataFrame({"a": [1 + 2j]}), "column a holds no numbers"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "2 columns are named 'a'"),
        (pa.table([[1], [2]], names=["a", "a"]), "2 columns are named 'a'"),
        (pd.DataFrame({"a": []}), "has no rows"),
        (pd.DataFrame(index=[1, 2]), "has no columns"),
        (pl.DataFrame({"a": [1]}).lazy(), r"pass frame\.collect\(\)"),
        (np.ones((2, 2)), r"got numpy\.ndarray"),
        (pd.Series([1.0]), "got pandas.*Series"),
        (None, "got builtins.NoneType"),
    ],
)
def test_frames_that_cannot_be_read_get_a_sentence(frame, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        from_frame(frame)


def test_true_and_false_are_no_cells_to_give_up():
    with pytest.raises(hs.InputError, match="column a holds true and false"):
        from_frame(pl.DataFrame({"a": [True, False]}), unreadable="missing")


def test_frames_are_not_changed():
    frame = pd.DataFrame({0: [1, 2], "b": ["<1", "2"]})
    before = frame.copy()
    assert from_frame(frame).names == ("0", "b")
    assert from_frame(frame, columns=[0]).names == from_frame(frame, columns=0).names == ("0",)
    pd.testing.assert_frame_equal(frame, before)


def test_columns_may_be_named_like_attributes_of_other_libraries():
    frame = pd.DataFrame({"column_names": [1.0, 2.0], "columns": ["<1", "2"]})
    assert from_frame(frame).names == ("column_names", "columns")


def test_parquet(tmp_path):
    path = tmp_path / "lead.parquet"
    pd.DataFrame({"lead": [0.31, 0.05], "lead_nd": [False, True], "zinc": ["<1", "2"]}).set_axis(
        ["A", "B"]
    ).to_parquet(path)
    data = read_parquet(path)
    assert (data.names, data.labels, data.frame) == (("lead", "zinc"), ("A", "B"), None)
    assert to_cells(data) == [["0.31", "<1"], ["<0.05", "2"]]
    assert read_parquet(path, columns=["zinc"], index="lead").labels == ("0.31", "0.05")
    # The saved index is no column of the table, unless it is asked for.
    other = read_parquet(path, index="zinc")
    assert (other.names, other.labels) == (("lead",), ("<1", "2"))
    frame = pd.DataFrame({"lead": [1.0, 2.0]}, index=pd.Index([7, 9], name="day"))
    frame.to_parquet(path)
    assert read_parquet(path).labels == read_parquet(path, index="day").labels == ("7", "9")
    assert read_parquet(path, columns=["day"]).values.tolist() == [[7.0], [9.0]]
    frame.reset_index(drop=True).to_parquet(path)
    assert read_parquet(path).labels is None
    path.write_text("no parquet")
    with pytest.raises(hs.InputError, match="is no Parquet file"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("missing", "call", "sentence"),
    [
        ("narwhals", lambda: from_frame(pd.DataFrame({"a": [1]})), "needs narwhals: pip install"),
        (
            "pyarrow",
            lambda: read_parquet("x.parquet"),
            r"needs pyarrow: pip install \"halfseen\[parquet\]\"",
        ),
    ],
)
def test_missing_libraries_are_named_with_how_to_get_them(monkeypatch, missing, call, sentence):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hs.InputError, match=sentence):
        call()


def test_csv_needs_no_library_of_frames(monkeypatch):
    for name in ("pandas", "polars", "pyarrow", "narwhals"):
        monkeypatch.setitem(sys.modules, name, None)
    assert to_cells(read("a,b\n1,<2\n")) == [["1", "<2"]]
