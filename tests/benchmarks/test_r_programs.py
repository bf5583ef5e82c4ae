"""Programs in R, where it is installed: they read the tables as we wrote them, and agree with us."""

import numpy as np
import pytest

import halfseen as hs
from benchmarks.comparison.problems import Size, task_of
from benchmarks.comparison.processes import run, tools
from benchmarks.comparison.programs.harness import Table

TOOLS = {tool.name: tool for tool in tools() if tool.in_r}


def answers(name, task, folder, size):
    """What a tool in R says, or a skipped test where it is not installed."""
    tool = TOOLS[name]
    if tool.lacks():
        pytest.skip(tool.lacks())
    task_of(task, size).write(folder)
    outcome = run(tool, folder, 120.0)
    assert outcome.trouble is None
    return outcome.answers


def test_columns_by_themselves_are_those_of_survreg(tmp_path):
    (told,) = answers("survreg", "both", tmp_path, Size(d=3, n=400, tables=1))
    table = Table.of(tmp_path, 0)
    lower, upper = table.array("lower"), table.array("upper")
    for j in range(3):
        fit = hs.fit(hs.IntervalData(lower[:, [j]], upper[:, [j]]), random_state=0)
        # Both are likeliest values of a smooth function, to the last digits of an optimiser.
        assert told["mean"][j] == pytest.approx(fit.mean[0], abs=1e-4 * fit.standard_errors.mean[0])
        assert told["covariance"][j][j] == pytest.approx(fit.covariance[0, 0], rel=1e-4)
    assert told["covariance"][0][1] is None


def test_openmx_has_the_same_likeliest_values(tmp_path):
    (told,) = answers("openmx", "left", tmp_path, Size(d=3, n=300, tables=1))
    table = Table.of(tmp_path, 0)
    data = hs.IntervalData(table.array("lower"), table.array("upper"))
    fit = hs.fit(data, random_state=0)
    # The stopping rule of full: its Monte-Carlo error is some tenth of a standard error. Twice that.
    off = np.abs(np.array(told["mean"]) - fit.mean) / fit.standard_errors.mean
    assert off.max() < 0.2
    off = np.abs(np.array(told["covariance"]) - fit.covariance) / fit.standard_errors.covariance
    assert off.max() < 0.2


def test_an_error_in_r_is_told_with_its_message(tmp_path):
    tool = TOOLS["survreg"]
    if tool.lacks():
        pytest.skip(tool.lacks())
    problem = task_of("left", Size(d=3, n=50, tables=1))
    problem.write(tmp_path)
    (tmp_path / "0" / "lower.f64").unlink()
    outcome = run(tool, tmp_path, 60.0)
    assert outcome.answers == []
    assert outcome.trouble.startswith("failed: Error")
