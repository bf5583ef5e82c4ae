"""``halfseen fit`` on Parquet in pieces, and its checkpoints and saved fits."""

import json

import numpy as np
import pytest

import halfseen as hs
from halfseen.cli import inputs

RULE = "x0, x1: >=0"


@pytest.fixture
def folder(halfseen, tmp_path):
    result = halfseen(
        "simulate", "--rows", 6000, "--seen", RULE, "--columns", "x0,x1,x2", "--seed", 4,
        "--format", "parquet", "--part-rows", 2000, "--output", "data",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return tmp_path / "data"


@pytest.mark.parametrize("method", ["pairwise", "full"])
def test_a_folder_is_fitted_as_in_python(halfseen, folder, method):
    told = [
        halfseen("fit", data, "--method", method, "--seen", RULE, "--seed", 2, "--json", *more)
        for data, more in ((folder, ()), (f"{folder}/part-*.parquet", ("--memory", "2GB")))
    ]
    assert [one.exit_code for one in told] == [0, 0], told[0].output + told[1].output
    fit = hs.fit(folder, hs.rules([RULE]), method, random_state=2)
    assert json.loads(told[0].stdout) == json.loads(told[1].stdout) == fit.to_dict()
    # Standard errors are below 2/√n here; five of them, for 3 means.
    assert np.abs(fit.mean).max() < 5 * 2.0 / np.sqrt(6000)


def test_how_it_is_read_is_said(halfseen, folder):
    result = halfseen("fit", folder, "--method", "pairwise", "--seen", RULE)
    said = f"{folder}: 6,000 rows, 3 columns, read in 3 pieces"
    assert said in " ".join(result.stderr.split())
    assert "6000 rows" in result.stdout
    chosen = halfseen("fit", folder, "--columns", "x2,x0", "--seen", "x0: >=0", "--json")
    assert json.loads(chosen.stdout)["columns"] == ["x2", "x0"]


def test_a_long_path_stays_whole(halfseen, folder):
    name = "-".join(["long"] * 25)
    folder.rename(folder.with_name(name))
    result = halfseen("fit", name, "--method", "pairwise", "--seen", RULE)
    assert f"{name}:" in result.stderr.splitlines()[0]


def test_one_file_is_read_whole_until_it_is_large(halfseen, folder, monkeypatch):
    one = folder / "part-00000.parquet"
    words = ("fit", one, "--method", "pairwise", "--seen", RULE, "--json")
    whole = halfseen(*words)
    monkeypatch.setattr(inputs, "LARGE", 1000)
    assert "in 1 piece" in " ".join(halfseen(*words[:-1]).stderr.split())
    told = json.loads(halfseen(*words).stdout)
    for name, value in json.loads(whole.stdout)["mean"].items():
        assert told["mean"][name] == pytest.approx(value, rel=1e-9, abs=1e-12)


def test_blanks_at_random_leave_the_rule_nothing_to_say(halfseen, folder):
    result = halfseen(
        "fit", folder, "--method", "truncation", "--seen", RULE, "--blank", "random", "--json"
    )
    with pytest.warns(hs.AssumptionWarning):
        fit = hs.fit(folder, None, "truncation")
    assert json.loads(result.stdout) == fit.to_dict()


def test_limits_of_columns_come_from_a_file(halfseen, folder, tmp_path):
    (tmp_path / "limits.csv").write_text("column,lower\nx0,0\nx1,0\n")
    words = ("fit", folder, "--method", "pairwise", "--json")
    told = halfseen(*words, "--limits", "limits.csv")
    assert told.exit_code == 0, told.output
    assert told.stdout == halfseen(*words, "--seen", RULE).stdout


def test_a_saved_fit_is_the_one_that_was_printed(halfseen, folder, tmp_path):
    result = halfseen("fit", folder, "--seen", RULE, "--save", "a.fit", "--json")
    assert result.exit_code == 0, result.output
    fit = hs.load(tmp_path / "a.fit")
    assert fit.to_dict() == json.loads(result.stdout)
    filled = fit.impute([[np.nan, 1.0, 0.5]])
    assert filled[0, 0] < 0.0


def test_a_finished_checkpoint_is_gone_on_from(halfseen, folder):
    words = ("fit", folder, "--seen", RULE, "--json", "--checkpoint", "run.ckpt", "--every", 0)
    first = halfseen(*words)
    assert first.exit_code == 0, first.output
    again = halfseen(*words)
    assert again.exit_code == 2
    assert "run.ckpt is there already. Pass --resume" in " ".join(again.stderr.split())
    assert halfseen(*words, "--resume").stdout == first.stdout
    other = halfseen(*words, "--resume", "--seed", 5)
    assert other.exit_code == 2
    assert "another random_state" in " ".join(other.stderr.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none.parquet",), "none.parquet cannot be read"),
        (("none/*.parquet",), "no Parquet files match none/*.parquet"),
        (("table.csv", "--memory", "1GB"), "--memory is for Parquet files"),
        (("-", "--scheduler", "tcp://127.0.0.1:1"), "--scheduler is for Parquet files"),
        (("data", "--memory", "tiny"), "memory must be a positive amount"),
        (("data", "--memory", "1MB"), "is too little: this process already holds"),
        (("data", "--report", "r.html"), "--report needs the table in memory"),
        (("data", "--saturated"), "--saturated is not for tables that are read in pieces"),
        (("data", "--index", "x0"), "--index is not for tables that are read in pieces"),
        (("data", "--transform", "boxcox"), "the power of boxcox is learned"),
        (("data", "--resume"), "give --checkpoint"),
        (("data", "--method", "pairwise", "--checkpoint", "c"), "does not take the option 'checkpoint'"),
        (("data", "--seen", "x9: >=0"), "x9"),
    ],
)  # fmt: skip
def test_mistakes_get_a_sentence(halfseen, folder, words, says):
    result = halfseen("fit", *words)
    assert result.exit_code == 2, result.output
    assert says in " ".join(result.stderr.split())


def test_no_cluster_there(halfseen, folder, monkeypatch):
    monkeypatch.setattr("halfseen.scaling.cluster.PATIENCE", 2.0)
    result = halfseen("fit", folder, "--scheduler", "tcp://127.0.0.1:1")
    assert result.exit_code == 2
    assert "no cluster of Dask answers at 'tcp://127.0.0.1:1'" in " ".join(result.stderr.split())
