"""Ctrl-C, and processes that are killed in the middle of a fit."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs
from halfseen import archive
from halfseen.archive import read_archive
from halfseen.errors import Interrupted
from halfseen.solvers.full_information import checkpoint as module
from halfseen.solvers.full_information.ascent import Ascent
from halfseen.solvers.loop import interrupts_held
from tests.scaling.test_checkpoints import everything, limits, run

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="signals of POSIX")

ROOT = Path(__file__).parents[2]


def press():
    """Press Ctrl-C; Python calls the handler before the next instruction of the main thread."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.001)


def steps_in(path):
    with read_archive(path, module.FORMAT, module.VERSION) as found:
        return len(found.array("climb0.history.ratio"))


@pytest.fixture(autouse=True)
def the_usual_handler():
    """Whoever runs the tests may have set another; what is set by a test must be gone after it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    after = signal.signal(signal.SIGINT, before)
    assert after is signal.default_int_handler


@pytest.fixture
def during_step(monkeypatch):
    """Have something done in the middle of steps of given numbers."""
    take, made, what = Ascent.step, [], {}

    def step(self, state):
        made.append(1)
        what.get(len(made), lambda: None)()
        return take(self, state)

    monkeypatch.setattr(Ascent, "step", step)
    return what


class TestOnce:
    def test_the_state_is_written_and_the_run_goes_on_later(self, tmp_path, during_step, capsys):
        path = tmp_path / "c"
        reference = everything(run("limits"))
        during_step.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "EVERY", 3600.0)
            # Steps of the reference were counted too.
            during_step[reference_steps(reference) + 4] = press
            with pytest.raises(Interrupted, match=r"after 4 steps; .*c has the state") as told:
                run("limits", checkpoint=path, every=3600)
        assert isinstance(told.value, KeyboardInterrupt)
        assert "resume=True goes on from there" in str(told.value)
        assert "press Ctrl-C again to stop at once" in capsys.readouterr().err
        assert steps_in(path) == 4
        assert everything(run("limits", checkpoint=path, resume=True)) == reference

    def test_in_the_last_step(self, tmp_path, during_step):
        reference = everything(run("limits"))
        last = reference_steps(reference)
        during_step[2 * last] = press
        with pytest.raises(Interrupted, match=f"after {last} steps"):
            run("limits", checkpoint=tmp_path / "c")
        assert everything(run("limits", checkpoint=tmp_path / "c", resume=True)) == reference

    def test_an_error_stream_that_is_closed_costs_nothing(self, tmp_path, during_step, monkeypatch):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w", buffering=1) as broken, pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", Unwilling(broken))
            during_step[3] = press
            with pytest.raises(Interrupted, match="after 3 steps"):
                run("limits", checkpoint=tmp_path / "c")
        assert steps_in(tmp_path / "c") == 3


class Unwilling:
    """A stream whose reader is gone."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, text):
        raise BrokenPipeError(32, "Broken pipe")

    def flush(self):
        pass


def reference_steps(reference):
    return reference["history"]["trace"][1][0]


class TestTwice:
    def test_it_ends_at_once_and_the_earlier_checkpoint_is_whole(self, tmp_path, during_step):
        path = tmp_path / "c"
        during_step[4] = lambda: (press(), press())
        with pytest.raises(KeyboardInterrupt) as told:
            run("limits", checkpoint=path, every=0)
        assert not isinstance(told.value, Interrupted)
        assert steps_in(path) == 3
        assert os.listdir(tmp_path) == ["c"]
        during_step.clear()
        again = everything(run("limits", checkpoint=path, resume=True))
        assert again == everything(run("limits"))

    def test_the_second_one_in_the_middle_of_writing(self, tmp_path, during_step, monkeypatch):
        path = tmp_path / "c"
        run_to = 4
        during_step[run_to] = press
        write = archive._write_member

        def slow(file, members, *rest):
            out = write(file, members, *rest)
            # Between one array and the next, of the write that the first one asked for.
            if len(members) == 5 and path.exists():
                press()
            return out

        monkeypatch.setattr(archive, "_write_member", slow)
        during_step[1] = during_step[2] = lambda: None
        monkeypatch.setattr(module.Checkpoint, "due", property(lambda self: not path.exists()))
        with pytest.raises(KeyboardInterrupt) as told:
            run("limits", checkpoint=path)
        assert not isinstance(told.value, Interrupted)
        assert steps_in(path) == 1
        assert os.listdir(tmp_path) == ["c"]


class TestWhoHolds:
    def test_without_a_checkpoint_it_is_python_as_usual(self, tmp_path, during_step, monkeypatch):
        monkeypatch.chdir(tmp_path)
        during_step[3] = press
        with pytest.raises(KeyboardInterrupt) as told:
            run("limits")
        assert not isinstance(told.value, Interrupted)
        assert not os.listdir(tmp_path)

    def test_other_threads_change_no_handler(self, tmp_path, during_step):
        seen, answers = [], []
        during_step[2] = lambda: seen.append(signal.getsignal(signal.SIGINT))

        def work():
            answers.append(everything(run("limits", checkpoint=tmp_path / "c", every=0)))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        during_step.clear()
        assert seen == [signal.default_int_handler]
        assert answers == [everything(run("limits"))]

    def test_a_handler_of_somebody_else_stays(self, tmp_path, during_step):
        pressed = []
        signal.signal(signal.SIGINT, lambda *given: pressed.append(1))
        try:
            during_step[3] = press
            run("limits", checkpoint=tmp_path / "c", every=0)
            assert pressed == [1]
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def test_the_handler_is_back_after_errors(self, tmp_path, during_step):
        def fail():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            raise ZeroDivisionError

        during_step[3] = fail
        with pytest.raises(ZeroDivisionError):
            run("limits", checkpoint=tmp_path / "c", every=0)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_one_inside_another(self):
        with interrupts_held(True) as outer:
            with interrupts_held(True) as inner:
                press()
                assert not inner(), "the outer one decides"
                assert outer()
            assert outer()
            with pytest.raises(KeyboardInterrupt):
                press()
        with interrupts_held(False) as never, pytest.raises(KeyboardInterrupt):
            press()
        assert not never()


# A fit of a second or two, which writes as often as it can.
CHILD = """
import sys
import warnings
import numpy as np
import halfseen as hs
from tests.scaling.test_interrupts import large
warnings.simplefilter("ignore")
print("started", flush=True)
large(checkpoint="c", every=float(sys.argv[1]), resume=True).save("fit")
"""


def large(**more):
    X, rule, _ = limits(4, 1500)
    # Far from the top, and more accurate than anyone needs: many steps.
    start = hs.Gaussian(np.linspace(-5.0, 5.0, 4), 4.0 * np.eye(4))
    return hs.fit(X, rule, "full", random_state=3, accuracy=0.001, start=start, n_jobs=1, **more)


def start(folder, every):
    """Start a fit whose checkpoint is ``c`` in a folder; return when it begins."""
    folder.mkdir(exist_ok=True)
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(every)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "started\n"
    return process


def test_killed_at_any_moment(tmp_path):
    """Kills at moments spread over the run, each resumed from what the one before left."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = start(whole, 0)
    begin = time.perf_counter()
    process.communicate()
    length = time.perf_counter() - begin
    assert process.returncode == 0
    rng, steps = np.random.default_rng(11), 0
    # A resumed run begins with reading and the start, which are a part of the length: a third of
    # it at most leads some fifth of the way further.
    for every in (0, 0.05, 0, 0, 0):
        process = start(killed, every)
        time.sleep(rng.uniform(0.0, 0.33) * length)
        process.kill()
        process.communicate()
        if (killed / "c").exists():
            steps = steps_at_least(killed / "c", steps)
    process = start(killed, 0)
    process.communicate()
    assert process.returncode == 0
    # What a killed writer left is gone.
    assert sorted(os.listdir(killed)) == ["c", "fit"]
    assert (killed / "fit").read_bytes() == (whole / "fit").read_bytes()


def steps_at_least(path, before):
    """Read everything in a checkpoint; a later one is no earlier."""
    with read_archive(path, module.FORMAT, module.VERSION) as found:
        for _ in found.arrays():
            pass
    now = steps_in(path)
    assert now >= before
    return now


def test_it_is_whole_at_every_moment(tmp_path):
    """Another process reads the file while it is written as fast as it can be."""
    process = start(tmp_path, 0)
    reads, steps = 0, 0
    while process.poll() is None:
        if (tmp_path / "c").exists():
            steps = steps_at_least(tmp_path / "c", steps)
            reads += 1
    process.communicate()
    assert process.returncode == 0
    assert reads > 10
    assert steps > 10
