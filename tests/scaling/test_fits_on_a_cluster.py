"""Fits on a cluster of real processes: the bits of one machine, whoever dies on the way."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs
from halfseen.data.table import RowBlocks
from halfseen.errors import ContradictionError
from halfseen.solvers.full_information.ascent import Ascent
from tests.scaling.test_checkpoints import Stopped, everything, in_pieces, limits, thresholds

distributed = pytest.importorskip("distributed")

# One group: all of it runs in one process of pytest, with one cluster.
pytestmark = pytest.mark.xdist_group("cluster")

ROOT = Path(__file__).parents[2]
PIECES, ROWS = 12, 250
# Seconds in which even a busy machine gets round to forgetting; what is held stays for ever.
PATIENCE = 120.0


@pytest.fixture
def client(two_workers):
    return two_workers


def tasks_of(dask_scheduler):
    return sorted(map(str, dask_scheduler.tasks))


def wait_for_none(client):
    """Names of the tasks that stay: ours, and those of the table's chunks."""
    until = time.monotonic() + PATIENCE
    while True:
        # Futures in circles go when Python collects its garbage, other threads' too.
        gc.collect()
        left = client.run_on_scheduler(tasks_of)
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.05)


@dataclass(frozen=True)
class SlowPiece:
    """Rows that take a while to read; each reading leaves a file."""

    values: np.ndarray
    folder: str
    seconds: float

    def read(self):
        Path(self.folder, str(time.time_ns())).touch()
        time.sleep(self.seconds)
        return self.values.copy()


def slow(folder, seconds):
    """The same table, in pieces that are slow to read."""
    X, rule, _ = limits(4, PIECES * ROWS)
    folder.mkdir(exist_ok=True)
    parts = np.split(X, PIECES)
    pieces = tuple(SlowPiece(part, str(folder), seconds) for part in parts)
    return RowBlocks(("a", "b", "c", "d"), pieces, (ROWS,) * PIECES), rule


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one machine gives with the same pieces."""
    blocks, rule = slow(tmp_path_factory.mktemp("alone"), 0.0)
    return {
        method: everything(hs.fit(blocks, rule, method, **seed(method)))
        for method in ("pairwise", "full")
    }


def seed(method):
    return {"random_state": 5} if method == "full" else {}


class TestKilled:
    def test_in_the_middle_of_pairwise(self, client, alone, tmp_path):
        rng = np.random.default_rng(21)
        blocks, rule = slow(tmp_path / "calm", 0.0)
        calm = everything(hs.fit(blocks, rule, "pairwise", client=client))
        assert calm == alone["pairwise"]
        blocks, rule = slow(tmp_path / "read", 0.1)
        pids = sorted(client.run(os.getpid).values())
        # The first piece is read for its units, then all: half of them are under way or done.
        moment, done = int(rng.integers(3, PIECES - 2)), []

        def watch():
            while len(os.listdir(tmp_path / "read")) < moment:
                time.sleep(0.005)
            os.kill(pids[0], signal.SIGKILL)
            done.append(len(os.listdir(tmp_path / "read")))

        thread = threading.Thread(target=watch)
        thread.start()
        killed = everything(hs.fit(blocks, rule, "pairwise", client=client))
        thread.join()
        assert done[0] < 1 + PIECES, "it was killed too late"
        assert len(os.listdir(tmp_path / "read")) > 1 + PIECES, "nothing was read again"
        assert killed == alone["pairwise"]

    def test_in_the_middle_of_full(self, client, alone, tmp_path, monkeypatch):
        rng = np.random.default_rng(22)
        blocks, rule = slow(tmp_path / "read", 0.0)
        calm = hs.fit(blocks, rule, "full", client=client, **seed("full"))
        assert everything(calm) == alone["full"]
        steps = calm.history["steps"]
        # There are steps after it, for which the pieces of the dead worker are read again.
        moment, delay = int(rng.integers(2, steps)), rng.uniform(0.0, 0.05)
        take, made, killed = Ascent.step, [], []

        def step(self, state):
            made.append(1)
            if len(made) != moment:
                return take(self, state)
            held = client.has_what()
            busiest = max(held, key=lambda worker: len(held[worker]))
            pid = client.run(os.getpid, workers=[busiest])[busiest]
            timer = threading.Timer(delay, lambda: killed.append(os.kill(pid, signal.SIGKILL)))
            timer.start()
            found = take(self, state)
            timer.join()
            return found

        monkeypatch.setattr(Ascent, "step", step)
        reads = len(os.listdir(tmp_path / "read"))
        # What a worker holds is of this fit then, and the busiest has pieces of it.
        assert wait_for_none(client) == []
        again = everything(hs.fit(blocks, rule, "full", client=client, **seed("full")))
        assert killed == [None]
        # Pieces of the dead worker were read again, besides the three times of every fit.
        assert len(os.listdir(tmp_path / "read")) - reads > reads
        assert again == alone["full"]


class TestCheckpoints:
    @pytest.mark.parametrize("here_first", [True, False])
    def test_one_machine_and_a_cluster_go_on_from_each_other(
        self, client, alone, tmp_path, monkeypatch, here_first
    ):
        blocks, rule = slow(tmp_path / "read", 0.0)
        how = {"checkpoint": tmp_path / "c", "every": 0, **seed("full")}
        take, made = Ascent.step, []

        def step(self, state):
            made.append(1)
            if len(made) == 4:
                raise Stopped
            return take(self, state)

        monkeypatch.setattr(Ascent, "step", step)
        places = [{}, {"client": client}] if here_first else [{"client": client}, {}]
        with pytest.raises(Stopped):
            hs.fit(blocks, rule, "full", **how, **places[0])
        again = hs.fit(blocks, rule, "full", resume=True, **how, **places[1])
        assert everything(again) == alone["full"]

    def test_trial_starts(self, client, tmp_path, monkeypatch):
        """First climbs on some of the rows are made again, to the same bits."""
        X, rule, options = thresholds(pieces=True)
        reference = everything(fit_quietly(X, rule, **options))
        take, made = Ascent.step, []

        def step(self, state):
            made.append(1)
            if len(made) == 12:
                raise Stopped
            return take(self, state)

        monkeypatch.setattr(Ascent, "step", step)
        how = {"checkpoint": tmp_path / "c", "every": 0, **options}
        with pytest.raises(Stopped):
            fit_quietly(X, rule, **how)
        again = fit_quietly(X, rule, resume=True, client=client, **how)
        assert everything(again) == reference

    def test_an_interrupt(self, client, alone, tmp_path, monkeypatch):
        blocks, rule = slow(tmp_path / "read", 0.0)
        take, made = Ascent.step, []

        def step(self, state):
            made.append(1)
            if len(made) == 3:
                os.kill(os.getpid(), signal.SIGINT)
            return take(self, state)

        monkeypatch.setattr(Ascent, "step", step)
        how = {"checkpoint": tmp_path / "c", **seed("full")}
        with pytest.raises(hs.errors.Interrupted, match="after 3 steps"):
            hs.fit(blocks, rule, "full", client=client, **how)
        again = hs.fit(blocks, rule, "full", client=client, resume=True, **how)
        assert everything(again) == alone["full"]


def fit_quietly(X, rule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.errors.ConvergenceWarning)
        return hs.fit(X, rule, "full", random_state=5, **options)


class TestTables:
    """Whatever a table is, the cluster gives the bits of one machine."""

    X, RULE, _ = limits(3, 900)

    @pytest.mark.parametrize("method", ["pairwise", "truncation", "full"])
    def test_a_dask_array(self, client, method):
        X, rule = in_pieces(self.X, 200), self.RULE
        one = hs.fit(X, rule, method, **seed(method))
        assert everything(hs.fit(X, rule, method, client=client, **seed(method))) == everything(one)

    def test_a_dask_data_frame(self, client):
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        frame = dd.from_pandas(pd.DataFrame(self.X, columns=list("abc")), npartitions=4)
        one = hs.fit(frame, self.RULE, random_state=5)
        two = hs.fit(frame, self.RULE, random_state=5, client=client)
        assert two.names == ("a", "b", "c")
        assert everything(two) == everything(one)

    def test_an_array(self, client):
        X, rule = self.X, self.RULE
        one = hs.fit(X, rule, random_state=5, memory="8GB")
        assert everything(hs.fit(X, rule, random_state=5, client=client)) == everything(one)

    def test_a_folder_of_parquet(self, client, tmp_path):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        for k, part in enumerate(np.split(self.X, 3)):
            columns = {name: part[:, j] for j, name in enumerate("abc")}
            pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet", row_group_size=120)
        one = hs.fit(tmp_path, self.RULE, random_state=5)
        assert everything(hs.fit(tmp_path, self.RULE, random_state=5, client=client)) == everything(
            one
        )

    def test_one_worker(self):
        X, rule = in_pieces(self.X, 200), self.RULE
        how = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            distributed.LocalCluster(processes=False, **how) as local,
            distributed.Client(local) as client,
        ):
            one = everything(hs.fit(X, rule, random_state=5, client=client))
        assert one == everything(hs.fit(X, rule, random_state=5))

    def test_limits_and_masks_that_differ_by_row(self, client, rng):
        lower = rng.uniform(-1.0, 0.0, (600, 3))
        X = rng.normal(size=(600, 3))
        X[lower > X] = np.nan
        mask = rng.random((600, 3)) < 0.1
        X[mask] = np.nan
        rule = hs.DetectionLimits(lower=lower)
        how = {"random_state": 5, "missing_at_random": mask}
        one = hs.fit(in_pieces(X), rule, **how)
        assert everything(hs.fit(in_pieces(X), rule, client=client, **how)) == everything(one)

    def test_transforms(self, client):
        X, rule = in_pieces(np.exp(self.X)), hs.DetectionLimits(lower=np.exp(-0.3))
        one = hs.fit(X, rule, random_state=5, transforms="log")
        two = hs.fit(X, rule, random_state=5, transforms="log", client=client)
        assert everything(two) == everything(one)


class TestErrors:
    @pytest.mark.parametrize("method", ["pairwise", "full"])
    @pytest.mark.parametrize("transforms", [None, "log"])
    @pytest.mark.parametrize("row", [0, 450, 899])
    def test_the_row_is_that_of_the_whole_table(self, client, method, transforms, row):
        X, rule, _ = limits(3, 900)
        # A value that the rule would have hidden.
        X[row, 1] = -2.0
        if transforms:
            X, rule = np.exp(X), hs.DetectionLimits(lower=np.exp(-0.3))
        with pytest.raises(ContradictionError, match=rf"^row {row}\b.*x1") as told:
            hs.fit(in_pieces(X), rule, method, client=client, transforms=transforms)
        with pytest.raises(ContradictionError) as alone:
            hs.fit(in_pieces(X), rule, method, transforms=transforms)
        assert str(told.value) == str(alone.value)


class TestNothingIsLeft:
    @pytest.mark.parametrize("method", ["pairwise", "full"])
    def test_after_a_fit(self, client, method):
        assert wait_for_none(client) == []
        X, rule, _ = limits(3, 900)
        X = in_pieces(X)
        fit = hs.fit(X, rule, method, client=client, **seed(method))
        assert wait_for_none(client) == []
        assert fit.method == method

    def test_after_an_error_and_an_interrupt(self, client, monkeypatch):
        X, rule, _ = limits(3, 900)
        take, made = Ascent.step, []

        def step(self, state):
            made.append(1)
            if len(made) == 3:
                raise KeyboardInterrupt
            return take(self, state)

        monkeypatch.setattr(Ascent, "step", step)
        with pytest.raises(KeyboardInterrupt):
            hs.fit(in_pieces(X), rule, "full", client=client)
        assert wait_for_none(client) == []
        X[600, 1] = -2.0
        with pytest.raises(ContradictionError):
            hs.fit(in_pieces(X), rule, "full", client=client)
        assert wait_for_none(client) == []


def start(*words):
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_command_line_on_a_scheduler_elsewhere(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, _, _ = limits(2, 400)
    for k, part in enumerate(np.split(X, 2)):
        pq.write_table(pa.table({"a": part[:, 0], "b": part[:, 1]}), tmp_path / f"{k}.parquet")
    address = tmp_path / "scheduler.json"
    processes = [
        start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", 0,
              "--no-dashboard", "--scheduler-file", address),
        start("distributed.cli.dask_worker", "--scheduler-file", address, "--nthreads", 1,
              "--no-dashboard", "--no-nanny", "--local-directory", tmp_path),
    ]  # fmt: skip
    try:
        until = time.monotonic() + 60.0
        while not address.exists() and time.monotonic() < until:
            time.sleep(0.1)
        scheduler = json.loads(address.read_text())["address"]
        words = ["halfseen", "fit", tmp_path / "*.parquet", "--seen", "a, b: >=-0.3", "--seed", 3]
        here = start(*words, "--output", tmp_path / "here.json")
        there = start(*words, "--output", tmp_path / "there.json", "--scheduler", scheduler)
        for process in (here, there):
            out, _ = process.communicate(timeout=120)
            assert process.returncode == 0, out
        one, two = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("here", "there"))
        assert two == one
    finally:
        for process in processes:
            process.terminate()
            process.communicate()
