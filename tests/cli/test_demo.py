import json
import re

import pytest
from typer.testing import CliRunner

import halfseen as hs
from halfseen.cli import app
from halfseen.cli.demonstrate import LIMITS, run_demo

run = CliRunner().invoke


def test_demo_recovers_what_naive_loses():
    demo = run_demo()
    for naive, ours in (demo.mean_errors(), demo.deviation_errors(), demo.correlation_errors()):
        assert ours < 0.5 * naive


def test_demo_prints_every_column_and_pair_in_80_columns():
    result = run(app, ["demo"])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    for name in LIMITS:
        assert any(line.startswith(name) for line in lines)
    assert sum(" ~ " in line for line in lines) == len(LIMITS) * (len(LIMITS) - 1) // 2
    assert re.search(
        r"naive is off by [\d.]+ standard deviations, halfseen by [\d.]+", result.output
    )


def test_demo_speaks_json():
    figures = json.loads(run(app, ["demo", "--json"]).output)
    assert figures["method"] == "full"
    assert figures["mean_error"]["halfseen"] < figures["mean_error"]["naive"]


def test_a_wrong_method_is_a_sentence_and_an_exit_code():
    result = run(app, ["demo", "--method", "guess"])
    assert result.exit_code == 2
    assert "method must be one of" in result.output
    assert "Traceback" not in result.output


def test_warnings_are_printed_not_raised():
    result = run(app, ["demo", "--method", "truncation"])
    assert result.exit_code == 0
    assert "warning:" in result.output


def test_version_and_help():
    assert hs.__version__ in run(app, ["--version"]).output
    assert "demo" in run(app, ["--help"]).output


@pytest.mark.parametrize("words", [["nonsense"], ["demo", "--nonsense"]])
def test_unknown_words_exit_with_2(words):
    assert run(app, words).exit_code == 2


def test_the_demo_writes_a_file_to_try_things_on(tmp_path):
    path, page = tmp_path / "wine.csv", tmp_path / "wine.html"
    result = run(app, ["demo", "--write", str(path), "--report", str(page)])
    assert result.exit_code == 0
    data = hs.read_csv(path)
    assert data.names == tuple(LIMITS)
    # The original concentrations, to the last digit.
    from sklearn.datasets import load_wine

    wine = load_wine()
    for j, name in enumerate(data.names):
        column = wine.data[:, wine.feature_names.index(name)]
        seen = data.seen[:, j]
        assert (data.values[seen, j] == column[seen]).all()
        assert (column[~seen] < LIMITS[name]).all()
    assert "Wine chemistry" in page.read_text(encoding="utf-8")
    fit = hs.fit(data, transforms="log10", random_state=0)
    found = run_demo().fit
    assert (abs(fit.gaussian.mean - found.gaussian.mean) < 0.3 * found.uncertainty.mean).all()
