"""``impute``, ``check``, ``simulate`` and ``plan``."""

import csv
import io
import json
import re

import numpy as np
import pytest

import halfseen as hs


def _rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_imputed_tables_lie_where_values_were_hidden_and_pool_to_the_fit(halfseen, laboratory):
    path, _ = laboratory
    result = halfseen("impute", path, "--log", "--index", "sample", "--draws", 20)
    assert result.exit_code == 0, result.output
    data = hs.read_csv(path, index="sample")
    rows = _rows(result.stdout)
    tables = np.array([[float(row[name]) for name in data.names] for row in rows])
    tables = tables.reshape(20, *data.shape)
    assert [row["sample"] for row in rows[:500]] == list(data.labels)
    # No value where it would have been seen, and seen ones to the last bit.
    assert ((tables >= data.lower) & (tables <= data.upper)).all()
    assert (tables > 0.0).all()
    assert (tables[:, data.seen] == data.values[data.seen]).all()
    fit = hs.fit(data, transforms="log", random_state=0)
    logs = np.log(tables)
    pooled = hs.pool(logs.mean(axis=1), logs.var(axis=1, ddof=1) / len(data))
    # Between 20 tables the mean moves by √(missing information/20) standard errors: 4 of these.
    assert (
        np.abs(pooled.estimate - fit.gaussian.mean) < 4 * fit.uncertainty.mean / np.sqrt(20)
    ).all()


def test_a_single_imputation_has_each_hole_at_its_mean(halfseen, laboratory, tmp_path):
    path, _ = laboratory
    result = halfseen("impute", path, "--log", "--index", "sample", "-o", "filled.csv")
    assert result.exit_code == 0, result.output
    filled = hs.read_csv(tmp_path / "filled.csv", index="sample")
    data = hs.read_csv(path, index="sample")
    expected = hs.fit(data, transforms="log", random_state=0).impute()
    assert (filled.values == expected).all()
    assert "cells filled" in result.stderr


def test_other_columns_are_carried_along_and_filled_cells_can_be_marked(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(
        'site,date,a,a_flag,b\nA,2020-01-05,0.5,U,2\n"B,1",x,1,,3.5\nC,,2,,4\nD,y,4,,1.0\n'
    )
    result = halfseen("impute", "data.csv", "--columns", "a,b", "--marks")
    assert result.exit_code == 0, result.output
    rows = _rows(result.stdout)
    # The flags speak of the cells as they were, and are not to be taken for those of filled ones.
    assert list(rows[0]) == ["site", "date", "a", "a_flag_original", "b", "a_filled", "b_filled"]
    back = hs.read_csv(io.StringIO(result.stdout), columns=["a", "b"])
    assert back.seen.all()
    assert [row["site"] for row in rows] == ["A", "B,1", "C", "D"]
    assert [row["a_filled"] for row in rows] == ["1", "0", "0", "0"]
    assert float(rows[0]["a"]) < 0.5
    (tmp_path / "twice.csv").write_text("note,a,note,b\nx,<0.5,y,2\nz,1,w,3.5\nu,2,v,4\nu,4,v,1\n")
    twice = halfseen("impute", "twice.csv", "--columns", "a,b")
    assert twice.stdout.startswith("note,a,note,b\nx,")
    piped = halfseen("impute", "-", "--columns", "a,b", input=(tmp_path / "data.csv").read_text())
    assert [row["date"] for row in _rows(piped.stdout)] == ["2020-01-05", "x", "", "y"]


def test_columns_that_the_output_needs_are_not_overwritten(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text("imputation,b\n1,2\n2,3.5\n<0.5,4\n4,1\n")
    result = halfseen("impute", "data.csv", "--draws", 2)
    assert result.exit_code == 2
    assert "needs a column 'imputation' of its own" in result.stderr
    assert halfseen("impute", "data.csv").exit_code == 0


def test_check_finds_the_scale_and_contradictions(halfseen, laboratory, tmp_path):
    path, _ = laboratory
    skewed = halfseen("check", path, "--index", "sample", "--json")
    assert skewed.exit_code == 1, skewed.output
    told = json.loads(skewed.stdout)
    assert told["worst"] == "problem"
    assert "log" in told["suggested_transform"].values()
    right = halfseen("check", path, "--index", "sample", "--log")
    assert right.exit_code == 0, right.output
    assert max(map(len, right.stdout.splitlines())) <= 80
    (tmp_path / "data.csv").write_text(
        "a,b\n" + "\n".join(f"{k / 7:.3f},{k * k % 17}" for k in range(1, 40))
    )
    wrong = halfseen(
        "check", "data.csv", "--seen", "a: >=1", "--quick", "--simulations", 19, "--json"
    )
    assert wrong.exit_code == 1
    (found,) = json.loads(wrong.stdout)["contradictions"]
    assert found["column"] == "a"
    assert found["count"] == 6
    assert "Traceback" not in wrong.output


def test_simulate_writes_what_fit_reads(halfseen, tmp_path):
    words = ["--columns", "lead,zinc", "--mean", "0,1", "--sd", "1,0.5", "--correlation", 0.6]
    rule = ["--seen", "lead: >=0.5"]
    made = halfseen(
        "simulate", "--rows", 800, *words, *rule, "--log", "--seed", 5, "-o", "made.csv"
    )
    assert made.exit_code == 0, made.output
    text = (tmp_path / "made.csv").read_text()
    assert "<0.5" in text
    fit = json.loads(halfseen("fit", "made.csv", "--log", "--json").stdout)
    for name, mean, sd in (("lead", 0.0, 1.0), ("zinc", 1.0, 0.5)):
        assert abs(fit["mean"][name] - mean) < 4.5 * fit["standard_errors"]["mean"][name]
        assert (
            abs(fit["standard_deviation"][name] - sd)
            < 4.5 * (fit["standard_errors"]["standard_deviation"][name])
        )
    again = halfseen("simulate", "--rows", 800, *words, *rule, "--log", "--seed", 5)
    assert again.stdout == text
    blank = halfseen("simulate", "--rows", 50, *words, *rule, "--log", "--blanks").stdout
    assert "<" not in blank


def test_simulate_from_a_model(halfseen, tmp_path):
    halfseen("simulate", "--rows", 300, "--log", "-o", "made.csv")
    assert halfseen("fit", "made.csv", "--log", "-o", "fit.json").exit_code == 0
    drawn = halfseen("simulate", "--model", "fit.json", "--rows", 400, "--seen", "x: >=1")
    assert drawn.exit_code == 0, drawn.output
    data = hs.read_csv(io.StringIO(drawn.stdout))
    assert data.names == ("x", "y", "z")
    assert (data.upper > 0.0).all()
    assert (data.upper[~data.seen] == 1.0).all()
    hs.Gaussian([0, 5], np.eye(2)).save(tmp_path / "gaussian.json")
    plain = halfseen("simulate", "--model", "gaussian.json", "--rows", 10)
    assert plain.stdout.startswith("x0,x1\n")
    two_sided = halfseen("simulate", "--rows", 60, "--seen", "x: -0.5..0.5")
    cells = [line.split(",")[0] for line in two_sided.stdout.splitlines()[1:]]
    assert "" in cells
    assert all(cell == "" or -0.5 <= float(cell) <= 0.5 for cell in cells)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--correlation", "2"], "--correlation must lie between -0.5 and 1"),
        (["--mean", "0,1"], "--mean takes one number, or 3"),
        (["--mean", "a"], "--mean takes numbers separated by commas"),
        (["--sd", "-1"], "--sd must be above 0"),
        (["--seen", "q: >=0"], "there is no 'q'"),
        (["--model", "absent.json"], "absent.json cannot be read"),
        (["--model", "text.json"], "is not JSON"),
        (
            ["--model", "other.json"],
            "neither what halfseen fit --output writes nor a saved Gaussian",
        ),
        (["--model", "power.json"], "power.json: the power of column a is not told"),
        (["--model", "flat.json"], "flat.json cannot be used: "),
        (["-o", "no/x.csv"], "there is no folder no"),
    ],
)
def test_simulate_explains(halfseen, tmp_path, words, sentence):
    (tmp_path / "text.json").write_text("{")
    (tmp_path / "other.json").write_text('{"columns": ["a"]}')
    one = {"columns": ["a"], "mean": {"a": 0.0}, "transforms": {"a": "none"}}
    for name, changed in (
        ("power", {"covariance": {"a": {"a": 1.0}}, "transforms": {"a": "boxcox"}}),
        ("flat", {"covariance": {"a": {"a": -1.0}}}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps({**one, **changed}))
    result = halfseen("simulate", *words)
    assert result.exit_code == 2
    assert sentence in re.sub(r"\s+", " ", result.output)


def test_plan_by_the_bound_and_from_a_pilot(halfseen, laboratory):
    told = json.loads(halfseen("plan", "--width", 5, "--json").stdout)
    assert told["rows"] == hs.planning.samples_for_self_censoring(5, 0.1, 0.5).rows
    assert "36567 rows" in halfseen("plan", "--width", 5).stdout
    path, _ = laboratory
    words = ["plan", path, "--log", "--index", "sample", "--error", 0.02]
    pilot = json.loads(halfseen(*words, "--json").stdout)
    fit = hs.fit(hs.read_csv(path, index="sample"), transforms="log", random_state=0)
    largest = (fit.uncertainty.mean / fit.gaussian.standard_deviations).max()
    assert pilot["rows_for_means"] == np.ceil(500 * (largest / 0.02) ** 2)
    assert pilot["rows"] == max(pilot["rows_for_means"], pilot["rows_for_correlations"])
    assert "so" in halfseen(*words).stdout
    assert halfseen("plan").exit_code == 2
    assert halfseen("plan", path, "--index", "sample", "--error", -1).exit_code == 2
