"""Tools run in processes of their own: what they answer, and what becomes of those that fail."""

import json
import os
import sys
import textwrap
import time
from dataclasses import dataclass, replace

import numpy as np
import pytest

from benchmarks.comparison.problems import KINDS, Size, problems
from benchmarks.comparison.processes import HERE, Tool, last_words, run, tools
from benchmarks.comparison.programs.simple import available_cases


@dataclass(frozen=True)
class Script(Tool):
    """A tool that is a few lines of Python."""

    code: str = ""

    def command(self, folder, answers):
        return [sys.executable, "-c", textwrap.dedent(self.code), str(folder), str(answers)]


def script(code):
    return Script("s", "S", "peer", "", ("limits",), "", code=code)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    problem = next(problem for problem in problems() if problem.name == "both")
    path = tmp_path_factory.mktemp("task")
    replace(problem, size=Size(d=3, n=300, tables=2)).write(path)
    return path


def test_a_tool_that_runs_out_of_time_keeps_what_it_said_and_is_stopped_with_its_children(
    folder, tmp_path
):
    told = tmp_path / "pids"
    code = f"""
        import json, os, subprocess, sys, time
        child = subprocess.Popen(["sleep", "600"])
        open({str(told)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
        with open(sys.argv[2], "w") as lines:
            lines.write(json.dumps({{"table": 0, "seconds": 1.0}}) + "\\n")
            lines.write('{{"table": 1, "sec')
        time.sleep(600)
    """
    start = time.monotonic()
    outcome = run(script(code), folder, 6.0)
    assert time.monotonic() - start < 60.0
    assert [answer["table"] for answer in outcome.answers] == [0]
    assert outcome.trouble == "no answer in 6 s"
    for pid in map(int, told.read_text().split()):
        assert _is_gone(pid)


def _is_gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().split()[2] == "Z":  # dead, and waiting for whoever adopted it
                return True
        time.sleep(0.05)
    return False


def test_a_tool_that_fails_is_shown_with_its_last_words(folder):
    outcome = run(script("raise ValueError('no <b>such</b>\\x1b[31m | thing')"), folder, 30.0)
    assert outcome.answers == []
    assert outcome.trouble == "failed: ValueError: no <b>such</b> [31m | thing"


def test_a_tool_that_fails_in_silence_is_shown_with_its_exit_code(folder):
    assert run(script("raise SystemExit(3)"), folder, 30.0).trouble == "failed: exit code 3"


def test_a_tool_that_is_killed_or_ends_too_early_is_shown_so(folder):
    killed = run(script("import os; os.kill(os.getpid(), 9)"), folder, 30.0)
    assert killed.trouble == "failed: killed by SIGKILL"
    assert run(script("pass"), folder, 30.0).trouble == "failed: it ended without a word"


def test_long_last_words_are_cut(tmp_path):
    path = tmp_path / "stderr"
    path.write_text("first\n" + "x" * 500 + "\nExecution halted\n\n")
    assert last_words(path) == "x" * 159 + "…"


def test_what_is_not_installed_is_named():
    tool = replace(tools()[0], needs=("numpy", "no-such-distribution"))
    assert tool.lacks() == "no-such-distribution not installed"
    assert replace(tool, needs=("numpy",)).lacks() is None


def test_rscript_is_asked_for_only_where_it_is_needed(monkeypatch):
    monkeypatch.setenv("PATH", "")
    for tool in tools():
        assert (tool.lacks() == "Rscript is not there") == tool.in_r


def test_our_program_answers_every_table_as_fit_does(folder):
    import halfseen as hs

    tool = next(tool for tool in tools() if tool.name == "auto")
    outcome = run(tool, folder, 120.0)
    assert outcome.trouble is None
    assert [answer["table"] for answer in outcome.answers] == [0, 1]
    lower, upper = (
        np.fromfile(folder / "1" / f"{end}.f64").reshape(3, 300).T for end in ("lower", "upper")
    )
    fit = hs.fit(hs.IntervalData(lower, upper), random_state=1)
    answer = outcome.answers[1]
    np.testing.assert_array_equal(answer["mean"], fit.mean)
    np.testing.assert_array_equal(answer["covariance"], fit.covariance)
    inside = fit.confidence_interval(0.95)
    np.testing.assert_array_equal(answer["mean_interval"], list(inside.mean))
    assert answer["peak"] > 2**20
    assert set(outcome.versions) == {"numba", "halfseen"}


def test_available_cases_are_what_pandas_has(folder):
    import pandas as pd

    X = np.fromfile(folder / "0" / "values.f64").reshape(3, 300).T
    answer = available_cases(X)
    frame = pd.DataFrame(X)
    np.testing.assert_allclose(answer.mean, frame.mean(), rtol=1e-12)
    np.testing.assert_allclose(answer.covariance, frame.cov(), rtol=1e-10)


def test_tables_say_of_each_cell_where_it_lies(folder):
    complete, values, lower, upper = (
        np.fromfile(folder / "0" / f"{name}.f64").reshape(3, 300).T
        for name in ("complete", "values", "lower", "upper")
    )
    known = json.loads((folder / "task.json").read_text())
    below, above = complete < known["lower_limits"], complete > known["upper_limits"]
    assert 0.05 < below.mean() < 0.25
    assert 0.05 < above.mean() < 0.25
    np.testing.assert_array_equal(np.isnan(values), below | above)
    assert ((lower <= complete) & (complete <= upper)).all()
    np.testing.assert_array_equal(np.isneginf(lower), below)
    np.testing.assert_array_equal(np.isposinf(upper), above)


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool.name)
def test_a_tool_has_a_program_and_kinds_of_tasks_that_exist(tool):
    program = tool.program if tool.in_r else f"{tool.program}.py"
    assert (HERE / "programs" / program).exists()
    assert tool.kinds
    assert set(tool.kinds) <= set(KINDS)
    assert tool.setup.endswith(".")
    assert tool.group in ("ours", "oracle", "peer", "written", "baseline")


def test_every_task_is_for_auto_and_for_someone_else():
    for problem in problems():
        able = {tool.name for tool in tools() if tool.takes(problem.kind, problem.numbers)}
        assert "auto" in able
        assert len(able) >= 2, problem.name


def test_sizes_that_were_asked_for_are_there():
    by_name = {}
    for problem in problems():
        by_name.setdefault(problem.name, []).append(problem.size)
    for name in ("left", "both", "half_hidden"):
        assert [size.d for size in by_name[name]] == [3, 10, 20, 50, 100]
    assert max(size.n for sizes in by_name.values() for size in sizes) == 1_000_000
