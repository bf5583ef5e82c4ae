"""Who is run on what, in which order, and what is left out."""

import threading
from dataclasses import replace

import pytest

from benchmarks.comparison import compare
from benchmarks.comparison.problems import Size, task_of
from benchmarks.comparison.processes import Outcome, Tool

TOOL = Tool("t", "T", "peer", "no_program", ("limits",), "As it comes.")
ANSWER = {"table": 0, "seconds": 1.0, "mean": [0.0], "covariance": [[1.0]]}


def sizes(*pairs, name="left"):
    return [task_of(name, Size(d, n, 1)) for d, n in pairs]


def run_in_turn(monkeypatch, wanted, fails, tool=TOOL):
    """List (d, n, trouble) as a tool goes through problems; it fails on those of some sizes."""
    folders = {number: (problem.size.d, problem.size.n) for number, problem in enumerate(wanted)}

    def run(tool, folder, cap, core):
        return Outcome(trouble="no answer in 9 s") if folder in fails else Outcome([ANSWER])

    monkeypatch.setattr(compare, "run", run)
    said = []
    found = compare._in_turn(tool, wanted, folders, 9.0, 0, said.append)
    return [(*folders[number], outcome.trouble) for number, outcome in found], said


def test_small_problems_come_first_and_larger_ones_of_the_kind_are_left_out(monkeypatch):
    wanted = sizes((20, 500), (3, 500), (10, 500), (10, 100), (5, 900))
    found, said = run_in_turn(monkeypatch, wanted, {(5, 900), (10, 500)})
    why = "not started: no answer in 9 s in `left`, d = 10, n = 500"
    assert found == [
        (3, 500, None),
        (5, 900, "no answer in 9 s"),
        (10, 100, None),
        (10, 500, "no answer in 9 s"),  # larger than (5, 900) in columns, not in rows
        (20, 500, why),
    ]
    assert said[0].startswith("  left, d = 3, n = 500: T: ")


def test_other_kinds_are_not_left_out(monkeypatch):
    wanted = [*sizes((5, 500)), *sizes((5, 500), name="by_row")]
    tool = replace(TOOL, kinds=("limits", "limits by row"))
    folders = {0: "left", 1: "by_row"}
    monkeypatch.setattr(
        compare,
        "run",
        lambda tool, folder, cap, core: Outcome([] if folder == "left" else [ANSWER], trouble=None),
    )
    found = dict(compare._in_turn(tool, wanted, folders, 9.0, 0, lambda line: None))
    assert found[1].answers


def test_a_tool_that_is_not_there_is_not_run(monkeypatch):
    tool = replace(TOOL, needs=("no-such-distribution",))
    found, _ = run_in_turn(monkeypatch, sizes((3, 10), (4, 10)), set(), tool)
    assert [trouble for *_, trouble in found] == ["no-such-distribution not installed"] * 2


def test_a_tool_is_not_tried_where_it_is_known_to_be_hopeless(monkeypatch):
    tool = replace(TOOL, most_columns=4, beyond="no answer in an hour")
    found, _ = run_in_turn(monkeypatch, sizes((4, 10), (5, 10)), set(), tool)
    assert [trouble for *_, trouble in found] == [None, "not started: no answer in an hour"]


def test_tasks_that_a_tool_cannot_do_are_not_its_own(monkeypatch):
    assert run_in_turn(monkeypatch, sizes((3, 10), name="by_row"), set())[0] == []


def test_quick_runs_leave_large_tables_out_and_take_few():
    (small,) = sizes((10, 2000))
    assert compare._small(replace(small, size=Size(5, 2000, 9))).size == Size(5, 2000, 2)
    assert compare._small(replace(small, size=Size(6, 2000, 1))) is None
    assert compare._small(replace(small, size=Size(3, 10_000, 1))) is None


def test_an_interruption_stops_what_is_running_and_starts_nothing_more(monkeypatch):
    """Ctrl-C reaches the main thread, while others wait for a process."""
    running, killed, started = threading.Event(), threading.Event(), []

    def run(tool, folder, cap, core):
        started.append(tool.name)
        running.set()
        killed.wait(30.0)
        return Outcome(trouble="killed")

    class Waiting:
        """A future on which the main thread is interrupted."""

        def result(self):
            running.wait(30.0)
            raise KeyboardInterrupt

    class Pool(compare.ThreadPoolExecutor):
        def submit(self, *given):
            super().submit(*given)
            return Waiting()

    monkeypatch.setattr(compare, "run", run)
    monkeypatch.setattr(compare, "kill_all", killed.set)
    monkeypatch.setattr(compare, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(compare, "tools", lambda: [TOOL])
    wanted = sizes((3, 10), (4, 10), (5, 5))
    with pytest.raises(KeyboardInterrupt):
        compare._run_all(wanted, {0: 0, 1: 1, 2: 2}, 9.0, lambda line: None)
    assert killed.is_set()
    assert started == ["t"]
