import io

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.data.csv_files import to_cells
from halfseen.data.names import split_name
from halfseen.data.readers import from_frame, read_csv

# That 1 in X_cen marks limits is said each time.
NOTED = pytest.mark.filterwarnings("ignore:flags are read by the names:halfseen.AssumptionWarning")


def read(text, **kwargs):
    return read_csv(io.StringIO(text), **kwargs)


def cells(text, **kwargs):
    return [row[0] for row in to_cells(read(text, **kwargs))]


def test_flags_turn_values_into_limits():
    data = read("lead,lead_flag,zinc\n0.05,U,5\n0.7,,6\n,U,7\n90,>,8\n0.4,=,9\n0.1,<,10\n")
    assert data.names == ("lead", "zinc")
    assert to_cells(data) == [
        ["<0.05", "5"],
        ["0.7", "6"],
        ["ND", "7"],
        [">90", "8"],
        ["0.4", "9"],
        ["<0.1", "10"],
    ]


@pytest.mark.parametrize("flag", ["U", "u", "<", "ND", "n.d.", "BDL", "<LOD", " U "])
def test_words_for_not_detected(flag):
    assert cells(f"lead;lead_qual\n0.05;{flag}\n") == ["<0.05"]


@pytest.mark.parametrize("flag", ["", "=", "false", "0", "NA"])
def test_words_for_seen(flag):
    assert cells(f"lead;lead_qual\n0.05;{flag}\n") == ["0.05"]


@pytest.mark.parametrize(
    "name",
    [
        "lead_flag",
        "lead_qualifier",
        "lead_qual",
        "lead_q",
        "LEAD.Flag",
        "lead flag",
        "Lead-Q",
        "lead_nd",
    ],
)
def test_names_of_flag_columns(name):
    assert cells(f"lead,{name}\n0.05,U\n0.7,\n") == ["<0.05", "0.7"]


def test_names_with_odd_bases():
    assert split_name("lead (µg/L) flag") == ("lead (µg/L)", "flag")
    assert split_name("lead__flag") == ("lead", "flag")
    assert split_name("lead_flagged") == split_name("_flag") == split_name("flag") == ("", "")
    assert split_name("leadflag") == ("", "")
    assert split_name("_" * 100_000 + "1") == ("", "")


@NOTED
@pytest.mark.parametrize("suffix", ["censored", "cen", "nd"])
@pytest.mark.parametrize(
    ("yes", "no"), [("true", "false"), ("1", "0"), ("Yes", "No"), ("TRUE", "")]
)
def test_censored_columns_say_yes_for_below(suffix, yes, no):
    assert cells(f"lead,lead_{suffix}\n0.05,{yes}\n0.7,{no}\n,{yes}\n") == ["<0.05", "0.7", "ND"]


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("1", "0"), ("Y", "N")])
def test_detected_columns_say_it_the_other_way_round(yes, no):
    assert cells(f"lead,lead_detected\n0.05,{no}\n0.7,{yes}\n,{no}\n0.8,\n") == [
        "<0.05",
        "0.7",
        "ND",
        "0.8",
    ]


def test_a_flag_and_a_cell_that_agree():
    assert cells("lead,lead_q\n<0.05,U\n>9,>\nND,U\n<0.05,\n0.2..0.5,\n") == [
        "<0.05",
        ">9",
        "ND",
        "<0.05",
        "0.2..0.5",
    ]
    # Detected is less than exact: it only rules out what lies below a limit.
    assert cells("lead,lead_detected\n>9,true\n0.2..0.5,true\n") == [">9", "0.2..0.5"]


@pytest.mark.parametrize(
    ("cell", "name", "flag"),
    [
        ("<0.05", "lead_q", ">"),
        (">9", "lead_q", "U"),
        ("0.2..0.5", "lead_q", "U"),
        ("<0.05", "lead_q", "="),
        ("<0.05", "lead_q", "J"),
        ("ND", "lead_q", "="),
        ("<0.05", "lead_censored", "0"),
        (">9", "lead_censored", "0"),
        ("<0.05", "lead_detected", "1"),
        ("ND", "lead_detected", "1"),
    ],
)
def test_a_flag_and_a_cell_that_contradict_each_other(cell, name, flag):
    with pytest.raises(hs.InputError, match=f"line 3, column lead: '{cell}' contradicts its flag"):
        read(f"lead,{name}\n1,\n{cell},{flag}\n")


def test_a_saturated_value_needs_its_limit():
    with pytest.raises(
        hs.InputError, match=r"line 2.*has the flag '>' in lead_q, but no limit beside"
    ):
        read("lead,lead_q\n,>\n1,\n")


def test_unknown_flags_are_refused():
    with pytest.raises(
        hs.InputError, match="line 3, column lead: '2' has the flag 'R' in column lead_q"
    ):
        read("lead,lead_q\n1,\n2,R\n")
    # What 1 means under this name is anybody's guess.
    with pytest.raises(hs.InputError, match=r"if 1 marks what was not detected.*'lead_q:1'"):
        read("lead,lead_q\n1,1\n2,0\n")
    assert cells("lead,lead_q\n1,1\n2,0\n", flags={"lead": "lead_q:1"}) == ["<1", "2"]


def test_estimated_values_are_seen_with_one_warning():
    with pytest.warns(hs.AssumptionWarning, match="J marks estimated values") as caught:
        data = read("lead,lead_q,zinc\n1,J,2 J\n2,J,3\n0.5,UJ,4\n,J,5\n")
    assert len(caught) == 1
    assert "3 in lead, 1 in zinc" in str(caught[0].message)
    assert to_cells(data) == [["1", "2"], ["2", "3"], ["<0.5", "4"], ["", "5"]]


@pytest.mark.parametrize("flag", ["N", "n", "F", "f", "no", "No"])
def test_letters_that_laboratories_use_are_no_word_for_seen(flag):
    with pytest.raises(hs.InputError, match=f"has the flag '{flag}' in column lead_qual, which is"):
        read(f"lead,lead_qual\n0.05,{flag}\n1,\n")
    # Where the name says that the answer is yes or no, they are an answer.
    assert cells(f"lead,lead_cen\n0.05,{flag}\n") == ["0.05"]
    assert cells(f"lead,lead_detected\n0.05,{flag}\n") == ["<0.05"]


def test_several_flag_columns_are_put_together():
    text = "lead,lead_q,lead_detected\n0.05,U,false\n0.7,,true\n0.1,,false\n90,>,true\n0.5,=,true\n"
    assert cells(text) == ["<0.05", "0.7", "<0.1", ">90", "0.5"]


@pytest.mark.parametrize("first", ["lead_q", "lead_detected"])
@pytest.mark.parametrize("value", ["0.6", "", "<0.6"])
def test_flags_that_contradict_each_other_are_refused_in_either_order(first, value):
    names = ["lead_q", "lead_detected"] if first == "lead_q" else ["lead_detected", "lead_q"]
    flag = {"lead_q": "U", "lead_detected": "1"}
    text = f"lead,{','.join(names)}\n{value},{','.join(flag[name] for name in names)}\n1,,\n"
    told = ", ".join(f"'{flag[name]}' in {name}" for name in names)
    with pytest.raises(hs.InputError, match=f"has flags that contradict each other: {told}"):
        read(text)


# What two flags say together, as a cell; "" where they contradict each other.
TOGETHER = {
    "J": {"J": "1", "=": "1", "U": "", "UJ": "", ">": "", "": "1"},
    "=": {"=": "1", "U": "", "UJ": "", ">": "", "": "1"},
    "U": {"U": "<1", "UJ": "<1", ">": "", "": "<1"},
    "UJ": {"UJ": "<1", ">": "", "": "<1"},
    ">": {">": ">1", "": ">1"},
}


@pytest.mark.parametrize(
    ("one", "other", "cell"), [(a, b, cell) for a, of in TOGETHER.items() for b, cell in of.items()]
)
@pytest.mark.filterwarnings("ignore:the qualifier J marks:halfseen.errors.AssumptionWarning")
def test_what_two_flags_say_together(one, other, cell):
    for a, b in ((one, other), (other, one)):
        text = f"lead,lead_q,lead_flag\n1,{a},{b}\n"
        if cell:
            assert cells(text) == [cell]
        else:
            with pytest.raises(hs.InputError, match="contradict each other"):
                read(text)


@NOTED
@pytest.mark.parametrize("name", ["qualifier", "Flag", "Q", "detected", "nd"])
def test_a_bare_flag_speaks_of_the_only_column_of_values(name):
    no, yes = {"detected": ("0", "1"), "nd": ("1", "0")}.get(name, ("U", ""))
    text = f"sample,result,{name}\nA,0.5,{no}\nB,0.7,{yes}\n"
    for kwargs in ({"index": "sample"}, {"columns": "result"}):
        data = read(text, **kwargs)
        assert (data.names, to_cells(data)) == (("result",), [["<0.5"], ["0.7"]])
    frame = pd.DataFrame({"result": [0.5, 0.7], "detected": [False, True]})
    assert to_cells(from_frame(frame)) == [["<0.5"], ["0.7"]]


def test_a_bare_flag_beside_several_columns_is_a_question():
    text = "depth,result,qualifier\n1,0.5,U\n2,0.7,\n"
    with pytest.raises(
        hs.InputError,
        match=r"column qualifier holds flags such as 'U', .*: say of which with "
        r"flags={'depth': 'qualifier'} or flags={'result': 'qualifier'}; .*leave it out with "
        r"exclude='qualifier'",
    ):
        read(text)
    with pytest.raises(hs.InputError, match="column qualifier holds flags such as 'U'"):
        read(text, columns=["result", "qualifier"])
    # Limits would pass as seen values.
    with pytest.warns(hs.AssumptionWarning, match=r"say of which .*qualifier'\}. It is not read"):
        assert to_cells(read(text, columns="result")) == [["0.5"], ["0.7"]]
    assert read(text, companions=False).names == ("depth", "result", "qualifier")
    assert to_cells(read(text, index="depth")) == [["<0.5"], ["0.7"]]
    with pytest.raises(hs.InputError, match=r"flags=\{'X': 'flag'\}"):
        read("lower,upper,flag\n1,2,U\n")


def test_a_flag_whose_column_has_another_name_is_a_question():
    text = "lead_mg_L,lead_flag,zinc\n1,U,5\n2,,6\n"
    with pytest.raises(
        hs.InputError,
        match="lead_flag holds flags such as 'U', but there is no column lead: say of which with "
        r"flags=\{'lead_mg_L': 'lead_flag'\}",
    ):
        read(text)
    with pytest.warns(hs.AssumptionWarning, match="lead_flag holds flags.*It is not read"):
        read(text, columns=["lead_mg_L"])
    # Nothing hints that it speaks of zinc.
    assert to_cells(read(text, columns=["zinc"])) == [["5"], ["6"]]
    # One word that is not known does not make measurements of the others.
    with pytest.raises(hs.InputError, match="lead_flag holds flags such as 'U'"):
        read("zinc,lead_flag\n1,U\n2,R\n", unreadable="missing")


def test_measurements_under_the_name_of_flags_stay_measurements():
    for other in ("3.5", "<4", "2..3"):
        assert to_cells(read(f"temp,q\n1,{other}\n2,ND\n")) == [["1", other], ["2", "ND"]]
        assert to_cells(read(f"temp,flow_q\n1,{other}\n2,1\n")) == [["1", other], ["2", "1"]]


def test_a_flag_column_without_its_base_is_a_column():
    with pytest.raises(hs.InputError, match="column lead_flag holds no numbers"):
        read("zinc,lead_flag\n1,a\n2,b\n")


def test_flags_come_with_their_column_and_not_without_it():
    text = "lead,lead_q,zinc\n0.05,U,5\n"
    assert to_cells(read(text, columns=["lead"])) == [["<0.05"]]
    assert to_cells(read(text, columns=["zinc"])) == [["5"]]
    assert read(text, columns=["zinc", "lead"]).names == ("zinc", "lead")


def test_a_flag_column_that_is_asked_for_is_refused_where_it_flags():
    with pytest.raises(hs.InputError, match="lead_q holds the flags of lead, and is read with it"):
        read("lead,lead_q\n0.05,U\n", columns=["lead", "lead_q"])
    with pytest.raises(
        hs.InputError, match=r"Pb_flag looks like the flags of Pb.*: write Pb in col"
    ):
        read("Zn,Pb,Pb_flag\n1,2,J\n2,3,U\n", columns=["Zn", "Pb_flag"])
    # Zeros and ones would pass as numbers, and limits as seen values.
    with pytest.raises(hs.InputError, match="holds the flags of lead"):
        read("lead,lead_cen\n0.05,1\n", columns=["lead", "lead_cen"])


def test_numbers_under_the_name_of_flags():
    text = "river,river_q\n1,3.5\n2,<4\n"
    with pytest.raises(
        hs.InputError, match=r"river_q is named like the flags of river.*such as 3\.5"
    ):
        read(text)
    with pytest.warns(hs.AssumptionWarning, match="river_q looks like flags"):
        assert to_cells(read(text, columns=["river"])) == [["1"], ["2"]]
    assert to_cells(read(text, columns=["river", "river_q"])) == [["1", "3.5"], ["2", "<4"]]
    assert to_cells(read(text, companions=False)) == [["1", "3.5"], ["2", "<4"]]


def test_the_case_of_names_decides_between_two():
    assert read("lead,LEAD,LEAD_q\n1,2,U\n").upper.tolist() == [[1.0, 2.0]]
    assert to_cells(read("lead,LEAD,LEAD_q\n1,2,U\n")) == [["1", "<2"]]
    with pytest.raises(hs.InputError, match="may hold the flags of 'lead' or 'LEAD'"):
        read("lead,LEAD,Lead_q\n1,2,U\n")


def test_flags_of_flags_are_refused():
    with pytest.raises(hs.InputError, match="both have names of flags"):
        read("x,x_q,x_q_flag\n1,U,U\n")


@pytest.mark.parametrize(
    ("low", "high"),
    [("lead_lower", "lead_upper"), ("lead.lo", "lead.hi"), ("lead LOWER", "lead Upper")],
)
def test_lower_and_upper_ends(low, high):
    data = read(f"{low},{high},zinc\n1,1,2\n,3,4\n5,,6\n,,7\n-2,-1,8\n-inf,9,1\n2,inf,1\n")
    assert data.names == ("lead", "zinc")
    assert [row[0] for row in to_cells(data)] == ["1", "<3", ">5", "", "-2..-1", "<9", ">2"]


def test_bare_lower_and_upper_make_a_column_named_value():
    data = read("site,lower,upper\nA,1,2\n", index="site")
    assert (data.names, to_cells(data)) == (("value",), [["1..2"]])
    assert read("lower,upper,zinc\n1,2,3\n", columns=["zinc", "value"]).names == ("zinc", "value")


def test_reversed_ends_are_refused():
    with pytest.raises(hs.InputError, match=r"line 3, column lead: '7\.\.6' is reversed"):
        read("lead_lower,lead_upper\n1,2\n7,6\n")


@pytest.mark.parametrize("row", ["<1,2", "inf,", ",-inf", "1,ND", "x,2"])
def test_ends_must_be_numbers(row):
    with pytest.raises(hs.InputError, match="line 3, column lead"):
        read(f"lead_lower,lead_upper\n1,2\n{row}\n")


@pytest.mark.parametrize("end", ["<5", "ND", "0.5 U"])
def test_an_end_that_is_no_number_is_not_called_reversed(end):
    with pytest.raises(hs.InputError, match=f"column lead: '{end}' must be a number, or empty"):
        read(f"lead_lower,lead_upper\n1,2\n3,{end}\n")


def test_half_a_pair_is_a_column():
    assert read("lead_lower,zinc\n1,2\n").names == ("lead_lower", "zinc")


def test_ends_can_be_read_as_columns():
    text = "lead_lower,lead_upper\n2,1\n"
    names = ["lead_lower", "lead_upper"]
    assert to_cells(read(text, columns=names)) == [["2", "1"]]
    assert read(text, companions=False).names == tuple(names)


def test_a_value_beside_its_ends_is_a_question():
    text = "lead,lead_lower,lead_upper\n2,1,3\n"
    with pytest.raises(hs.InputError, match="lead stands beside lead_lower and lead_upper"):
        read(text)
    assert to_cells(read(text, columns=["lead"])) == [["2"]]


@NOTED
def test_conventions_in_frames():
    frame = pd.DataFrame(
        {
            "lead": [0.05, 0.7, np.nan],
            "lead_nd": [True, False, True],
            "zinc_lo": [1.0, -np.inf, np.nan],
            "zinc_hi": [2.0, 3.0, np.inf],
            "tin": pd.array([1, 2, None], dtype="Int64"),
            "tin_cen": pd.array([1, 0, None], dtype="Int64"),
        }
    )
    data = from_frame(frame)
    assert data.names == ("lead", "zinc", "tin")
    assert to_cells(data) == [["<0.05", "1..2", "<1"], ["0.7", "<3", "2"], ["ND", "", ""]]


@pytest.mark.parametrize(
    "text",
    [
        "lead,lead_cen\n1.5,-1\n2,0\n3,1\n",
        "lead,lead_flag\n1.5,2\n2,0\n3,1\n",
        "lead,flag\n1,B\n2,C\n",
        "lead_lower,lead_upper,lead_flag\n1,1,U\n3,3,\n",
    ],
)
def test_flags_that_are_not_read_beside_chosen_columns_are_told(text):
    with pytest.warns(hs.AssumptionWarning, match="looks like flags of what is read"):
        hs.read_csv(io.StringIO(text), columns="lead")
    hs.read_csv(io.StringIO(text), columns=[text.split(",")[0]], companions=False)


def test_a_bare_column_of_flags_that_holds_numbers_is_refused():
    text = "lead,cen\n1.5,-1\n2,0\n3,1\n"
    with pytest.raises(hs.InputError, match="column cen is named like flags, but holds numbers"):
        hs.read_csv(io.StringIO(text))
    assert hs.read_csv(io.StringIO(text), companions=False).names == ("lead", "cen")
