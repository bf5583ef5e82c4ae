import io

import pytest
from rich.console import Console

from halfseen.solvers import loop


class Count:
    """A solver that counts to ten, and says so halfway."""

    name, steps = "count", 10

    def init(self):
        return 0

    def step(self, state):
        return state + 1, {"at": state, "expected_steps": 6}

    def done(self, state):
        return state >= 6


@pytest.fixture
def terminal(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console",
        lambda **_: Console(file=screen, force_terminal=True, width=80, color_system=None),
    )
    return screen


def test_a_solver_stops_when_it_is_done():
    state, history = loop.iterate(Count())
    assert state == 6
    assert [info["at"] for info in history] == list(range(6))


def test_short_work_shows_no_bar(terminal):
    loop.iterate(Count(), progress=True)
    assert terminal.getvalue() == ""


def test_long_work_shows_a_bar_with_the_time_left(terminal, monkeypatch):
    clock = iter(range(0, 1000))
    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(clock)))
    loop.iterate(Count(), progress=True)
    shown = terminal.getvalue()
    assert "count" in shown
    assert "left" in shown


def test_without_a_terminal_nothing_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(loop, "SHOW_AFTER", 0.0)
    loop.iterate(Count(), progress=True)
    assert capsys.readouterr().err == ""


def test_the_bar_follows_the_expected_number_of_steps(terminal, monkeypatch):
    monkeypatch.setattr(loop, "SHOW_AFTER", 0.0)
    with loop.progress_bar("work", 100, True) as advance:
        for _ in range(5):
            advance(total=5)
        bar = advance.__self__
        assert bar._bar.tasks[0].percentage == 100.0
