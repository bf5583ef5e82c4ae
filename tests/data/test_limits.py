import io

import numpy as np
import pytest

import halfseen as hs

DATA = hs.read_csv(io.StringIO("lead,zinc\n0.3,ND\nND,7\n0.4,8\n"))


def _read(text, **options):
    return hs.read_limits(io.StringIO(text), DATA, **options)


def test_a_limit_for_each_column():
    limits = _read("column,upper,lower\nzinc,9,5\n")
    assert limits.lower.tolist() == [-np.inf, 5.0]
    assert limits.upper.tolist() == [np.inf, 9.0]
    assert not limits.varies_by_row
    assert _read("column;lower\nlead;0,1\n", decimal=",").lower.tolist() == [0.1, -np.inf]


def test_a_limit_for_each_cell():
    limits = _read("zinc,zinc_upper\n5,\n,9\n6,10\n")
    assert limits.lower[:, 1].tolist() == [5.0, -np.inf, 6.0]
    assert limits.upper[:, 1].tolist() == [np.inf, 9.0, 10.0]
    assert np.isneginf(limits.lower[:, 0]).all()


LABELLED = hs.read_csv(io.StringIO("site,lead,zinc\nA,0.3,ND\nB,ND,7\nC,0.4,8\n"), index="site")


def _labelled(text, data=LABELLED, index="site"):
    return hs.read_limits(io.StringIO(text), data, index=index)


def test_rows_are_matched_by_label():
    limits = _labelled("lead,site,zinc_upper\n3,C,9\n1,A,\n,B,8\n")
    assert limits.lower[:, 0].tolist() == [1.0, -np.inf, 3.0]
    assert limits.upper[:, 1].tolist() == [np.inf, 8.0, 9.0]


def test_limits_by_column_need_no_labels():
    assert _labelled("column,lower\nlead,0.1\n").lower.tolist() == [0.1, -np.inf]
    assert _labelled("column,lower\nlead,0.1\n", index="column").lower.tolist() == [0.1, -np.inf]
    # Labels in a column of that name are labels where limits by cell stand beside them.
    limits = _labelled("column,lead\nB,2\nA,1\nC,3\n", index="column")
    assert limits.lower[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_rows_without_labels_are_matched_by_position_with_a_warning():
    with pytest.warns(
        hs.AssumptionWarning, match="no column 'site': its rows are matched .* by pos"
    ):
        assert _labelled("lead\n1\n2\n3\n").lower[:, 0].tolist() == [1.0, 2.0, 3.0]


TWICE = hs.IntervalData([[1.0], [2.0]], [[1.0], [2.0]], ["lead"], labels=["A", "A"])


@pytest.mark.parametrize(
    ("text", "data", "sentence"),
    [
        (
            "site,lead\nA,1\nB,2\nC,3\nD,4\n",
            LABELLED,
            r"rows that the data do not have: 'D' \(column 'site'\)",
        ),
        ("site,lead\nA,1\n", LABELLED, "has no row for some rows of the data: 'B', 'C'"),
        (
            "site,lead\nA,1\nB,2\nC,3\nB,3\n",
            LABELLED,
            "'B' stands more than once among .* the open",
        ),
        ("site,lead\nA,1\nB,2\n", TWICE, "'A' stands more than once among the labels of the data"),
        ("site,lead\nA,1\nB,2\nC,3\n", DATA, "in column 'site', but the data have none"),
    ],
)
def test_labels_that_do_not_match_are_told(text, data, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        _labelled(text, data)


def test_a_column_of_labels_is_refused_with_advice_that_can_be_followed():
    for text in ("site,lead\nA,1\nB,2\nC,3\n", "site,lead\n1,1\n2,2\n3,3\n"):
        with pytest.raises(hs.InputError, match="index='site'"):
            hs.read_limits(io.StringIO(text), LABELLED)
    with pytest.raises(hs.InputError, match="tell with index="):
        hs.read_limits(io.StringIO("lead\n1\n"), LABELLED)


@pytest.mark.parametrize(
    "text", ["lead,8\n", "lead,8\nzinc,2\n", "lead;8,5\nzinc;2,5\n", '"lead",8']
)
def test_a_file_without_names_is_told(text):
    with pytest.raises(
        hs.InputError, match=r"first line .* must be column,lower,upper, or the names"
    ):
        _read(text, decimal="," if "8,5" in text else ".")


def test_numbers_may_be_names_of_the_data():
    data = hs.IntervalData([[1.0, 1.0]], [[1.0, 1.0]], ["400", "lead"])
    limits = hs.read_limits(io.StringIO("400,lead\n0.5,0.6\n"), data)
    assert limits.lower.tolist() == [[0.5, 0.6]]


def test_from_a_path(tmp_path):
    path = tmp_path / "limits.csv"
    path.write_text("column,lower\nlead,0.2\n")
    assert hs.read_limits(path, DATA).lower[0] == 0.2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "column,lower\ntin,1\n",
            "given for column 'tin', but the columns of the data are lead, zinc",
        ),
        ("column,lower\nlead,1\nlead,2\n", "given twice for column 'lead'"),
        ("column,limit\nlead,1\n", "has the columns column, lower and upper; got 'limit'"),
        ("column,lower\nlead,<1\n", "row 0, column lower of the file of limits is no number"),
        ("lead\n1\n2\n", "a row for each row of the data, 3; the file has 2"),
        ("tin\n1\n2\n3\n", "has a column 'tin', but the columns of the data"),
        ("column,lower,upper\nlead,3,1\n", "lower must be below upper"),
        ("lead\n1\nx\n3\n", "line 3, column lead"),
        (
            "lead,lead_lower\n1,1\n1,1\n1,1\n",
            "the lower limits of column 'lead' twice, in 'lead' and in 'lead_lower'",
        ),
    ],
)
def test_what_is_wrong_is_said(text, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        _read(text)
