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
    ],
)
def test_what_is_wrong_is_said(text, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        _read(text)
