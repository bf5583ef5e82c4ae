import operator
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import InputError
from halfseen.scaling import cluster
from halfseen.scaling.cluster import ClusterEngine, ClusterError, label_of
from halfseen.scaling.dask_blocks import dask_blocks, is_dask
from halfseen.scaling.local import LocalEngine
from tests.scaling.toys import (
    BLOCKS,
    assert_same_bits,
    die,
    die_once,
    make_rows,
    power,
    refuse,
    run,
    sleep_and_note,
)

distributed = pytest.importorskip("distributed")
# One group: all of it runs in one process of pytest, with one cluster.
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture(scope="module")
def reference():
    with LocalEngine() as engine:
        return run(engine, steps=20)


def kill_one(client):
    """Kill one of the workers with SIGKILL."""
    pids = client.run(os.getpid)
    os.kill(pids[min(pids)], signal.SIGKILL)


def test_the_same_bits_as_here(two_workers, reference):
    with ClusterEngine(two_workers) as engine:
        assert_same_bits(run(engine, steps=20), reference)


# One; two in a row, the second before the first is replaced; one after the other.
@pytest.mark.parametrize("moments", [(3,), (5, 6), (8, 14)])
def test_the_same_bits_when_workers_are_killed(two_workers, reference, moments):
    def before_step(moment):
        if moment in moments:
            kill_one(two_workers)

    with ClusterEngine(two_workers) as engine:
        assert_same_bits(run(engine, steps=20, before_step=before_step), reference)


def test_the_same_bits_when_a_worker_is_killed_within_a_step(two_workers, reference):
    timers = []

    def before_step(moment):
        if moment == 4:
            pid = min(two_workers.run(os.getpid).values())
            timers.append(threading.Timer(0.01, os.kill, (pid, signal.SIGKILL)))
            timers[0].start()

    with ClusterEngine(two_workers) as engine:
        assert_same_bits(run(engine, steps=20, before_step=before_step), reference)


def test_only_what_died_is_computed_again(two_workers, tmp_path):
    """The dead worker's blocks are made again, and nothing of the questions before is asked again."""
    steps, killed_before = 8, 5
    with ClusterEngine(two_workers) as engine:
        rows = engine.make(make_rows, [50] * BLOCKS, range(BLOCKS), 1.0)
        for moment in range(steps):
            if moment == killed_before:
                kill_one(two_workers)
            engine.total(sleep_and_note, rows, common=(str(tmp_path), 0.03), combine=operator.add)
    # At most every block starts the question under way again.
    assert 0 <= len(list(tmp_path.iterdir())) - steps * BLOCKS <= BLOCKS


def test_a_task_that_dask_gave_up_is_tried_again(two_workers, tmp_path, monkeypatch):
    # None may die with it: Dask gives it up at the first death.
    two_workers.run_on_scheduler(allow_no_deaths)
    try:
        with ClusterEngine(two_workers) as engine:
            assert list(engine.map(die_once, [1], str(tmp_path / "died"))) == [2]
            monkeypatch.setattr(cluster, "TRIES", 1)
            with pytest.raises(ClusterError, match=r"died again and again.*smaller pieces"):
                list(engine.map(die, [1]))
    finally:
        two_workers.run_on_scheduler(allow_deaths)


def allow_no_deaths(dask_scheduler):
    dask_scheduler.allowed_failures = 0


def allow_deaths(dask_scheduler):
    dask_scheduler.allowed_failures = 3


def test_errors_of_the_work_come_through(two_workers):
    with ClusterEngine(two_workers) as engine, pytest.raises(ValueError, match="item 0"):
        list(engine.map(refuse, range(5)))


def test_an_interrupt_cancels_what_is_under_way(two_workers, tmp_path):
    with ClusterEngine(two_workers) as engine:
        rows = engine.make(make_rows, [50] * BLOCKS, range(BLOCKS), 1.0)
        timer = threading.Timer(0.6, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            engine.total(sleep_and_note, rows, common=(str(tmp_path), 0.5), combine=operator.add)
    time.sleep(1.2)
    done = len(list(tmp_path.iterdir()))
    time.sleep(1.0)
    assert len(list(tmp_path.iterdir())) == done < BLOCKS


def test_a_cluster_without_workers(monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as local,
        distributed.Client(local) as client,
        ClusterEngine(client) as engine,
        pytest.raises(ClusterError, match="no workers for 1 seconds"),
    ):
        list(engine.map(power, [1], 2))


def test_nothing_is_left_on_the_cluster(two_workers):
    with ClusterEngine(two_workers) as engine:
        run(engine, steps=2)
    until = time.monotonic() + 5.0
    while two_workers.run_on_scheduler(count_tasks, name=engine._name) and time.monotonic() < until:
        time.sleep(0.05)
    assert two_workers.run_on_scheduler(count_tasks, name=engine._name) == 0


def count_tasks(name, dask_scheduler):
    return sum(name in str(key) for key in dask_scheduler.tasks)


def test_names_for_the_dashboard():
    assert label_of(power) == "power"
    assert label_of(partial(make_rows, scale=2)) == "make-rows"
    assert label_of(lambda x: x) == "work"
    assert distributed.utils.key_split("halfseen-make-rows-0a1b2c3d-7-12") == "halfseen-make-rows"


def test_no_client():
    with pytest.raises(hs.InputError, match=r"client must be a dask.distributed.Client.*'tcp"):
        ClusterEngine("tcp://localhost:8786")


def test_no_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        hs.InputError, match=r'Scaling out needs Dask: pip install "halfseen\[dask\]"'
    ):
        ClusterEngine(None)


class TestDaskBlocks:
    @pytest.fixture
    def table(self, rng):
        Y = rng.normal(size=(100, 4))
        Y[3, 2] = np.nan
        return Y

    @staticmethod
    def rows(blocks):
        pieces = [one.result() if hasattr(one, "result") else one for one in blocks.pieces]
        parts = [piece.read() for piece in pieces]
        assert [len(part) for part in parts] == list(blocks.sizes)
        return np.vstack(parts)

    @pytest.mark.parametrize("with_client", [False, True])
    def test_arrays(self, table, two_workers, with_client):
        da = pytest.importorskip("dask.array")
        client = two_workers if with_client else None
        X = da.from_array(table, chunks=(30, 2))
        blocks = dask_blocks(X, client)
        assert blocks.names == ("x0", "x1", "x2", "x3")
        assert blocks.sizes == (30, 30, 30, 10)
        np.testing.assert_array_equal(self.rows(blocks), table)
        # Numbers of rows that Dask does not know, an empty chunk, and other types.
        some = dask_blocks(X[X[:, 0] > 0.0], client, names="abcd")
        assert some.names == ("a", "b", "c", "d")
        np.testing.assert_array_equal(self.rows(some), table[table[:, 0] > 0.0])
        gap = dask_blocks(da.concatenate([X, X[:0], X[:1]]), client)
        assert gap.sizes == (30, 30, 30, 10, 1)
        assert self.rows(dask_blocks(X.astype("f4"), client)).dtype == np.float32
        assert self.rows(dask_blocks((X > 0).astype(int), client)).dtype == np.float64

    @pytest.mark.parametrize("with_client", [False, True])
    def test_frames(self, table, two_workers, with_client):
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        frame = pd.DataFrame(table, columns=list("abcd"))
        frame["e"] = pd.array([1, None] * 50, dtype="Int64")
        blocks = dask_blocks(
            dd.from_pandas(frame, npartitions=3), two_workers if with_client else None
        )
        assert blocks.names == tuple("abcde")
        assert blocks.shape == (100, 5)
        np.testing.assert_array_equal(self.rows(blocks), frame.to_numpy(float, na_value=np.nan))

    def test_what_is_no_table_of_numbers(self, table):
        dask = pytest.importorskip("dask")
        da = pytest.importorskip("dask.array")
        pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
        X = da.from_array(table, chunks=(30, 2))
        f = dd.from_pandas(pd.DataFrame(table, columns=list("abcd")), npartitions=3)
        for wrong, message in [
            (X[:, 0], r"got 1 dimension, shape \(100,\); reshape"),
            (da.zeros((3, 3, 3)), "got 3 dimensions"),
            (X[:, :0], r"no columns \(shape \(100, 0\)\)"),
            (X.astype(complex), "Complex data not supported"),
            (X.astype(object), "the Dask array has dtype object"),
            (X[:1], "at least 2 rows are needed; got n_samples = 1"),
            (f.a, "got a Dask series"),
            (f[[]], "no columns"),
            (f.assign(t="x"), "column t has dtype"),
            (f.assign(t=1j), "column t: Complex"),
            (dask.delayed(3), "a Dask array or data frame is needed; got"),
        ]:
            assert is_dask(wrong)
            with pytest.raises(hs.InputError, match=message):
                dask_blocks(wrong)
        with pytest.raises(hs.InputError, match="names must be 4"):
            dask_blocks(X, names=["a"])

    def test_others_are_not_of_dask(self, table):
        for other in (table, None, [1.0], Path("x")):
            assert not is_dask(other)


def test_a_worker_with_another_version_is_named_at_once(two_workers, monkeypatch):
    monkeypatch.setattr(cluster, "__version__", "9.9")
    sentence = (
        rf"worker tcp://\S+ has halfseen {hs.__version__}, and this process has halfseen 9\.9"
    )
    with pytest.raises(InputError, match=sentence):
        ClusterEngine(two_workers)


def test_a_worker_without_halfseen_is_named_at_once(two_workers):
    def hide():
        sys.modules["halfseen.version"] = None

    def show():
        del sys.modules["halfseen.version"]

    two_workers.run(hide)
    try:
        with pytest.raises(InputError, match=r"worker tcp://\S+ has no halfseen"):
            ClusterEngine(two_workers)
    finally:
        two_workers.run(show)
