"""Long tables: layouts of laboratories, orders of visits, what is refused, and round trips."""

import io
import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs
from halfseen.data.cells import CellFormat
from halfseen.data.csv_files import to_cells
from halfseen.data.long_tables import order_visits

INF = np.inf
LAB = {"id": "Sample", "variable": "Analyte", "value": "Result"}
VISITS = {"id": "Subject", "time": "Week", "value": "Conc"}


def read(text, **options):
    return hs.read_long(io.StringIO(text), **options)


def refused(text, **options):
    with pytest.raises(hs.InputError) as caught:
        read(text, **options)
    return str(caught.value)


def rows(*lines):
    return "\n".join(lines) + "\n"


# --- layouts -------------------------------------------------------------------------------------

# The same four values, as laboratories write them: lead below 0.5 and 0.7, zinc 12 and 9.
SAME = (("lead", "zinc"), [["<0.5", "12"], ["0.7", "9"]])
LAYOUTS = {
    "cells with <": rows(
        "Sample,Analyte,Result", "W1,lead,<0.5", "W1,zinc,12", "W2,zinc,9", "W2,lead,0.7"
    ),
    "U in a qualifier": rows(
        "Sample,Analyte,Result,Qualifier",
        *("W1,lead,0.5,U", "W1,zinc,12,", "W2,lead,0.7,", "W2,zinc,9,="),
    ),
    "a flag after the value's name": rows(
        "Sample,Analyte,Result,Result_flag,Lab_q",
        *("W1,lead,0.5,<,1", "W1,zinc,12,,2", "W2,lead,0.7,,3", "W2,zinc,9,,4"),
    ),
    "detected or not, with numbers and texts beside": rows(
        "Sample,Depth,Method,Analyte,Result,Detected",
        *("W1,3.5,M1,lead,0.5,N", "W1,3.5,M2,zinc,12,Y", "W2,9,M1,lead,0.7,Y", "W2,9,M2,zinc,9,Y"),
    ),
    "blank where not detected, with a reporting limit": rows(
        "Sample,Analyte,Result,Qual,RL",
        *("W1,lead,,U,0.5", "W1,zinc,12,,1", "W2,lead,0.7,,0.5", "W2,zinc,9,,1"),
    ),
    "ND, with a detection limit": rows(
        "Sample;Analyte;Result;Detection Limit",
        *("W1;lead;ND;0.5", "W1;zinc;12;1", "W2;lead;0.7;0.5", "W2;zinc;9;1"),
    ),
    "0 where not detected, with two kinds of limits of which one is empty": rows(
        "Sample,Analyte,Result,Qual,MDL,PQL",
        *("W1,lead,0,U,0.5,", "W1,zinc,12,,1,", "W2,lead,0.7,,0.5,", "W2,zinc,9,,1,"),
    ),
    "units that are the same within a variable": rows(
        "Sample,Analyte,Result,Unit",
        *("W1,lead,<0.5,ug/L", "W1,zinc,12,mg/L", "W2,lead,0.7,µg/l", "W2,zinc,9,mg/L"),
    ),
    "names in one word, a decimal comma and two limits": rows(
        "Sample;Place;Analyte;Result;ResultQualifier;MDL;PQL;Remark",
        *("W1;Mill;lead;;U;0,5;;x", "W1;Mill;zinc;12,0;;1;;", "W2;Dam;lead;0,7;;0,5;;y"),
        "W2;Dam;zinc;9;;1;;",
    ),
    "lower and upper ends": rows(
        "Sample,Analyte,Result_lower,Result_upper",
        *("W1,lead,,0.5", "W1,zinc,12,12", "W2,lead,0.7,0.7", "W2,zinc,9,9"),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_laboratories(layout):
    data = read(LAYOUTS[layout], **LAB, decimal="," if "comma" in layout else ".")
    assert (data.names, to_cells(data)) == SAME
    assert data.labels == ("W1", "W2")


def test_j_is_a_value_with_a_warning():
    text = rows("Sample,Analyte,Result,Qual", "W1,lead,0.3,J", "W2,lead,0.5,UJ")
    with pytest.warns(hs.AssumptionWarning, match="J marks estimated values"):
        data = read(text, **LAB)
    assert to_cells(data) == [["0.3"], ["<0.5"]]


def test_flags_and_limits_that_are_named():
    text = rows(
        "Sample,Analyte,Result,Remark,Reported,MDL,RL",
        *("W1,lead,0.2,U,x,0.1,0.5", "W2,lead,0.7,,y,0.1,0.5"),
    )
    # Flags that nobody named are not left unread.
    assert "holds flags such as 'U'. If they are those of Result, say flags='Remark'" in refused(
        text, **LAB
    )
    assert to_cells(read(text, **LAB, companions=False)) == [["0.2"], ["0.7"]]
    assert to_cells(read(text, **LAB, flags="Remark")) == [["<0.2"], ["0.7"]]
    with pytest.warns(hs.AssumptionWarning, match=r"line 2: 0.2, where the limit is 0.5"):
        data = read(text, **LAB, flags={"Result": "Remark"}, limits="RL")
    assert to_cells(data) == [["<0.5"], ["0.7"]]
    both = text.replace("0.2,U", "ND,")
    assert "may be those of MDL or RL; say which, as in limits='MDL'" in refused(both, **LAB)
    assert to_cells(read(both, **LAB, limits={"Result": "RL"})) == [["<0.5"], ["0.7"]]
    assert to_cells(read(both, **LAB, companions=False)) == [["ND"], ["0.7"]]
    assert "goes with Result" in refused(text, **LAB, flags={"Zinc": "Remark"})
    wrong = rows("Sample,Analyte,Result,RL", "W1,lead,ND,low", "W2,lead,0.7,0.5")
    assert "line 2, column RL: a limit is a number; got 'low'" in refused(wrong, **LAB)


def test_visits_with_absent_ones_and_a_covariate():
    text = rows(
        "Subject,Week,Conc,arm,age",
        *("7,0,3,drug,40", "7,10,<2,drug,40", "7,2,5,,40.0", "3,2,1,placebo,35", "3,0,NA,placebo,"),
    )
    data = read(text, **VISITS, keep="arm", covariates=["age"])
    assert data.names == ("age", "Week_0", "Week_2", "Week_10")
    assert data.labels == ("7", "3")
    assert data.kept == {"arm": ("drug", "placebo")}
    assert to_cells(data) == [["40", "3", "5", "<2"], ["35", "", "1", ""]]
    assert data.take([1]).kept == {"arm": ("placebo",)}


def test_a_variable_at_each_time_and_a_choice_of_columns():
    text = rows(
        "Subject,Visit,Analyte,Conc",
        *("a,week 2,lead,1", "a,baseline,lead,2", "a,week 10,zinc,3", "b,week 2,copper,x"),
    )
    options = {"id": "Subject", "time": "Visit", "variable": "Analyte", "value": "Conc"}
    data = read(text, **options, columns=["zinc", "lead_baseline"])
    assert data.names == ("zinc_week 10", "lead_baseline")
    assert to_cells(data) == [["3", "2"]]
    # What is not wanted is not read: the copper of b is no number.
    assert "line 5, column Conc: 'x'" in refused(text, **options)
    assert "did you mean 'zinc'" in refused(text, **options, columns="zink")
    assert "names a column twice" in refused(text, **options, columns=["zinc", "zinc_week 10"])


# --- orders --------------------------------------------------------------------------------------

ORDERS = [
    (["10", "9", "-1", "2.50"], ["-1", "2.5", "9", "10"]),
    (["week 10", "Week 2", "week 1"], ["week 1", "Week 2", "week 10"]),
    (["screening", "D15", "D1", "follow-up"], ["screening", "D1", "D15", "follow-up"]),
    (["first", "third", "second"], ["first", "third", "second"]),
    (["2024-10-01", "2024-9-30", "2023-12-31"], ["2023-12-31", "2024-9-30", "2024-10-01"]),
    (["13/02/2024", "03/03/2024", "01/01/2024"], ["01/01/2024", "13/02/2024", "03/03/2024"]),
    (["2/13/2024", "3/3/2024", "12/31/2023"], ["12/31/2023", "2/13/2024", "3/3/2024"]),
    (["01.03.2024", "02.01.2024"], ["02.01.2024", "01.03.2024"]),
    (["01MAR2024", "2 Jan 2024"], ["2 Jan 2024", "01MAR2024"]),
    (["2024-01-02 00:00:00", "2024-01-01 00:00:00"], ["2024-01-01", "2024-01-02"]),
    (["2024-01-02 08:00", "2024-01-01 00:00"], ["2024-01-01 00:00", "2024-01-02 08:00"]),
]


@pytest.mark.parametrize(("texts", "expected"), ORDERS)
def test_times_are_sorted_as_people_expect(texts, expected):
    visits = order_visits(texts, "when", CellFormat())
    assert visits.names == expected
    assert set(visits.places) == set(texts)


def test_dates_that_nobody_can_put_in_order_are_refused():
    with pytest.raises(hs.InputError, match="whether the day or the month stands first"):
        order_visits(["01/02/2024", "02/01/2024"], "when", CellFormat())
    # Where both readings say the same, it does not matter.
    assert order_visits(["01/02/2024", "03/04/2024"], "when", CellFormat()).names[0] == "01/02/2024"


def test_categories_of_frames_keep_their_order():
    size = ["big", "small", "mid"]
    frame = pd.DataFrame({"id": [1, 1, 2], "size": size, "x": [1.0, 2.0, 3.0]})
    how = {"id": "id", "variable": "size", "value": "x"}
    for levels, ordered in itertools.product([["small", "mid", "big"]], [True, False]):
        frame["size"] = pd.Categorical(size, levels, ordered=ordered)
        expected = ("small", "mid", "big") if ordered else ("big", "small", "mid")
        assert hs.read_long(frame, **how).names == expected
        assert hs.read_long(pa.Table.from_pandas(frame), **how).names == expected
    table = pl.DataFrame({"id": [1, 1, 2], "x": [1.0, 2.0, 3.0]})
    enum = table.with_columns(size=pl.Series(size, dtype=pl.Enum(["small", "mid", "big"])))
    assert hs.read_long(enum, **how).names == ("small", "mid", "big")


def test_frames_and_files_say_the_same(tmp_path):
    text = rows("k,week,x,flag", "1,2,0.5,<", "1,10,3.5,", "2,2,1.5,")
    frame = pd.read_csv(io.StringIO(text))
    how = {"id": "k", "time": "week", "value": "x"}
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "long.parquet")
    (tmp_path / "long.csv").write_text(text)
    sources = [
        *(frame, pl.from_arrow(pa.Table.from_pandas(frame)), pa.Table.from_pandas(frame)),
        *(tmp_path / "long.parquet", str(tmp_path / "long.csv"), io.StringIO(text)),
    ]
    for source in sources:
        data = hs.read_long(source, **how)
        assert (data.names, data.labels) == (("week_2", "week_10"), ("1", "2"))
        assert to_cells(data) == [["<0.5", "3.5"], ["1.5", ""]]
    pandas = hs.read_long(frame, **how)
    assert pandas.frame == "pandas"
    assert pandas.index.tolist() == [1, 2]
    assert pandas.index.name == "k"


# --- what is refused -----------------------------------------------------------------------------

HEAD = "Sample,Analyte,Result"
REFUSED = [
    (rows(HEAD, "a,x,1", "a,x,<2"), {},
     "Sample 'a' has two rows for x: line 2 and line 3, with '1' and '<2'"),
    (rows(HEAD + ",rep", "a,x,1,1", "a,x,<2,2"), {}, "They differ in rep. Keep one of them"),
    (rows(HEAD, "a,x,1", "a,x,<2"), {}, "name the column that tells them apart with time="),
    (rows(HEAD, "a,x,1", ",y,2", " ,y,2"), {}, "line 3, column Sample: the cell is blank"),
    (rows(HEAD, "a,x,1", "NA,y,2"), {}, "(1 such row)"),
    (rows(HEAD, "a,x,1", "b,,2"), {}, "line 3, column Analyte: the cell is blank"),
    (rows(HEAD, "a,x,1", "b,x,2"), {"value": "Results"},
     "value=: there is no column 'Results'; did you mean 'Result'?"),
    (rows(HEAD, "a,x,1", "b,x,2"), {"variable": None}, "says when, time=, or of what, variable="),
    (rows(HEAD, "a,x,1", "b,x,2"), {"time": "Analyte"}, "it can be one"),
    (rows(HEAD, "a,x,1", "b,x,2"), {"value": "Sample"}, "column Sample is in id= and in value="),
    (rows(HEAD, "a,x,1", "b,x,5%"), {}, "line 3, column Result: '5%' has a percent sign"),
    (rows(HEAD + ",Unit", "a,x,1,ug/L", "b,x,2,mg/L"), {},
     "x is given in 'ug/L' (line 2) and in 'mg/L' (line 3)"),
    (rows(HEAD + ",scale", "a,x,1,A", "b,x,2,B"), {"unit": "scale"}, "given in 'A'"),
    (rows(HEAD + ",age", "a,x,1,4", "a,y,2,5"), {"keep": "age"},
     "differs within Sample 'a': '4' in line 2, '5' in line 3"),
    (rows(HEAD + ",age", "a,x,1,young", "a,y,2,"), {"covariates": "age"},
     "a covariate is a number; of column age the cell 'young'"),
    (rows(HEAD + ",x", "a,x,1,4", "b,x,2,5"), {"covariates": "x"}, "names 'x', as a variable is called"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "sentence"), REFUSED)
def test_what_cannot_be_is_refused_with_its_rows(text, options, sentence):
    assert sentence in refused(text, **(LAB | options))


def test_rows_of_frames_are_told_by_their_labels():
    frame = pd.DataFrame({"s": ["a", "a"], "v": ["x", "x"], "y": [1.0, 2.0]}, index=["p", "q"])
    with pytest.raises(hs.InputError, match=r"row 0 \(p\) and row 1 \(q\), with '1.0' and '2.0'"):
        hs.read_long(frame, id="s", variable="v", value="y")


def test_names_that_differ_in_case_are_doubted_and_wards_are_no_units():
    with pytest.warns(hs.AssumptionWarning, match="read as two variables"):
        data = read(rows(HEAD, "a,Lead,1", "b,lead,2"), **LAB)
    assert data.names == ("Lead", "lead")
    assert read(rows(HEAD + ",Unit", "a,x,1,ICU", "b,x,2,A3"), **LAB).shape == (2, 1)


# --- round trips ---------------------------------------------------------------------------------

NUMBERS = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)


@st.composite
def wide_tables(draw):
    n, d = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    lower, upper = np.full((n, d), -INF), np.full((n, d), INF)
    not_detected = np.zeros((n, d), dtype=bool)
    for cell in np.ndindex(n, d):
        kind = draw(st.sampled_from(["seen", "below", "above", "between", "ND", "NA"]))
        a, b = sorted((draw(NUMBERS), draw(NUMBERS)))
        lower[cell] = a if kind in ("seen", "above", "between") else -INF
        upper[cell] = {"seen": a, "below": b, "between": b}.get(kind, INF)
        not_detected[cell] = kind == "ND"
    return lower, upper, not_detected


@given(wide_tables(), st.booleans(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_wide_to_long_and_back(table, with_rows_of_blanks, random):
    n, d = table[0].shape
    weeks = sorted(random.sample(range(40), d))
    data = hs.IntervalData(
        *table[:2],
        [f"week_{week}" for week in weeks],
        labels=[f"s{k}" for k in range(n)],
        not_detected=table[2],
    )
    cells = to_cells(data)
    lines = [f"s{k},{weeks[j]},{cells[k][j]}" for k in range(n) for j in range(d)]
    if not with_rows_of_blanks:
        # One row must be left for each subject and week to be known.
        keep = {lines[k * d] for k in range(n)} | {lines[j] for j in range(d)}
        lines = [line for line in lines if line in keep or not line.endswith(",")]
    random.shuffle(lines)
    with warnings.catch_warnings():
        # Positive values beside limits below 0 are doubted, and rightly.
        warnings.simplefilter("ignore", hs.AssumptionWarning)
        back = read(rows("id,week,x", *lines), id="id", time="week", value="x")
    assert back.names == data.names
    order = [back.labels.index(f"s{k}") for k in range(n)]
    assert back.lower[order].tobytes() == data.lower.tobytes()
    assert back.upper[order].tobytes() == data.upper.tobytes()
    np.testing.assert_array_equal(back.not_detected[order], data.not_detected)


# --- a long table that is read as a wide one -----------------------------------------------------

LONG = rows(
    "Sample,Analyte,Result,Qual,Depth",
    *(f"W{k},{a},{k + j + 0.5},{'U' if k == j else ''},{k % 3}"
      for k in range(8) for j, a in enumerate(["lead", "zinc (total)", "copper"])),
)  # fmt: skip
TELLS = "read_long({}, id='Sample', variable='Analyte', value='Result')"


def test_a_long_file_is_recognised_in_the_error(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(LONG)
    for work, source in (
        (lambda: hs.read_csv(path), repr(str(path))),
        (lambda: hs.read_csv(io.StringIO(LONG)), "file"),
        (lambda: hs.read_csv(io.StringIO(LONG), index="Sample"), "file"),
        (lambda: hs.from_frame(pd.read_csv(path)), "frame"),
        (lambda: hs.from_frame(pl.read_csv(path)), "frame"),
    ):
        with pytest.raises(hs.InputError) as caught:
            work()
        assert TELLS.format(source) in str(caught.value)
    assert hs.read_long(path, id="Sample", variable="Analyte", value="Result").shape == (8, 3)
    german = LONG.replace(",", ";").replace(".", ",").replace("Qual", "ResultQualifier")
    with pytest.raises(hs.InputError, match=r"value='Result', decimal=','\)"):
        hs.read_csv(io.StringIO(german), decimal=",")


COWS = rows(
    "protein,Time,Cow,Diet",
    *(f"3.{k}{t},{t},B0{k},{'barley' if k < 3 else 'lupins'}" for k in range(6) for t in (1, 2, 3)),
)
GIRLS = rows(
    "distance,age,Subject,Sex",
    *(f"2{k}.{a},{a},M0{k},{'Male' if k % 2 else 'Female'}" for k in range(6) for a in (8, 10)),
)


@pytest.mark.parametrize(("text", "subject"), [(COWS, "Cow"), (GIRLS, "Subject")])
def test_subjects_are_no_variables_of_what_they_belong_to(text, subject):
    with pytest.raises(hs.InputError, match=f"column {subject} holds no numbers"):
        hs.read_csv(io.StringIO(text))


@pytest.mark.parametrize("index", ["Analyte", "Sample", None])
def test_following_the_message_to_leave_words_out_is_warned_of(index):
    with pytest.warns(hs.AssumptionWarning) as caught:
        data = hs.read_csv(io.StringIO(LONG), columns="Result", index=index)
    assert data.shape == (24, 1)
    assert any(TELLS.format("file") in str(one.message) for one in caught)


def test_columns_may_be_patterns():
    text = rows(
        "Sample,Analyte,Result", *(f"{k},{a},1.5" for k in "ab" for a in ("PCB28", "lead", "PCB52"))
    )
    assert read(text, **LAB, columns="PCB*").names == ("PCB28", "PCB52")
    assert read(text, **LAB, columns=["lead", "*"]).names == ("lead", "PCB28", "PCB52")
    assert "no column is named like 'Zn*'" in refused(text, **LAB, columns="Zn*")


def test_flags_of_0_and_1_are_read_by_their_kind():
    text = rows("Sample,Analyte,Result,D_Result", "a,lead,0.5,0", "a,zinc,3,1", "b,lead,0.7,1")
    with pytest.warns(hs.AssumptionWarning, match="0 in D_Result marks values of Result"):
        assert to_cells(read(text, **LAB))[0] == ["<0.5", "3"]
    assert to_cells(read(text, **LAB, flags="D_Result:1")) == [["0.5", "<3"], ["<0.7", ""]]


def test_columns_that_are_left_out_are_not_what_is_refused():
    text = rows(
        "Sample,Analyte,Result", *(f"S{k // 2},{('Pb', 'Zn')[k % 2]},{k + 0.5}" for k in range(8))
    )
    out = ["Sample", "Analyte"]
    with pytest.warns(hs.AssumptionWarning, match="looks like a long table"):
        assert hs.read_csv(io.StringIO(text), exclude=out).names == ("Result",)
    with pytest.raises(hs.InputError, match="looks like a long table"):
        hs.read_csv(io.StringIO(text))


def test_visits_in_numbers_are_warned_of():
    text = rows(
        "SubjectID,Week,Conc", *(f"{k},{w},{k * w + 0.3}" for k in range(6) for w in (0, 2))
    )
    with pytest.warns(hs.AssumptionWarning, match=r"id='SubjectID', time='Week', value='Conc'"):
        hs.read_csv(io.StringIO(text))
    visits = text.replace(",0,", ",baseline,").replace(",2,", ",end,")
    with pytest.raises(hs.InputError, match=r"id='SubjectID', time='Week', value='Conc'"):
        hs.read_csv(io.StringIO(visits))


RNG = np.random.default_rng(0)
WIDE = {
    "sites and sexes": (
        rows("id,site,sex,lead,zinc", *(f"{k},{'ABC'[k % 3]},{'MF'[k % 2]},{x:.3f},{2 * x:.3f}"
             for k, x in enumerate(RNG.random(30)))), ["lead", "zinc"]),
    "one measurement of a site": (
        rows("sample,site,lead", *(f"{k},{'ABC'[k % 3]},{x:.3f}"
             for k, x in enumerate(RNG.random(30)))), ["lead"]),
    "years of sites": (
        rows("site,year,lead,zinc", *(f"{s},{y},{RNG.random():.3f},{RNG.random():.3f}"
             for s in "ABC" for y in range(2000, 2010))), ["lead", "zinc"]),
    "one measurement by site and year": (
        rows("site,year,lead", *(f"{s},{y},{RNG.random():.3f}"
             for s in "ABC" for y in range(2000, 2010))), ["lead"]),
    "plots of a field": (
        rows("block,variety,yield", *(f"{b},{v},{RNG.random():.3f}"
             for b in range(6) for v in "WXYZ")), ["yield"]),
    "visits of men and women": (
        rows("patient,sex,lead,zinc", *(f"p{k // 3},{'MF'[k // 3 % 2]},{x:.3f},{1 + x:.3f}"
             for k, x in enumerate(RNG.random(30)))), ["lead", "zinc"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WIDE)
def test_ordinary_wide_tables_are_left_alone(name):
    """Warnings are errors here; and without a choice of columns the words are what is wrong."""
    text, columns = WIDE[name]
    assert hs.read_csv(io.StringIO(text), columns=columns).shape[1] == len(columns)
    if name != "plots of a field":
        with pytest.raises(hs.InputError, match="holds no numbers"):
            hs.read_csv(io.StringIO(text))
