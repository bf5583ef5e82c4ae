import operator
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import halfseen as hs
from halfseen.parallel import Tree, single_blas_thread
from halfseen.scaling.engine import Kept, combine_by_level, keepable
from halfseen.scaling.local import LOCK, PREFIX, InFile, InMemory, LocalEngine
from tests.scaling.toys import (
    BLOCKS,
    ROWS,
    assert_same_bits,
    keep,
    make_rows,
    make_weights,
    refuse,
    run,
)

ROOT = Path(__file__).parents[2]


def scratch_in(folder):
    return list(Path(folder).glob(PREFIX + "*"))


def child(code, *arguments, **how):
    """Start a Python process that knows this source and these tests."""
    path = os.pathsep.join([str(Path(hs.__file__).parents[1]), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


class TestTree:
    @pytest.mark.parametrize("n", range(1, 34))
    def test_one_by_one_and_level_by_level_give_the_same_bits(self, n, rng):
        # Sums of numbers of very different sizes depend on the order.
        numbers = rng.normal(size=n) * 10.0 ** rng.integers(-12, 12, n)
        tree = Tree(operator.add)
        for number in numbers:
            tree.add(number)
        levels = combine_by_level(numbers, lambda a, b: [x + y for x, y in zip(a, b, strict=True)])
        assert tree.root() == levels

    def test_its_shape(self):
        def shape(names):
            tree = Tree("({}{})".format)
            for name in names:
                tree.add(name)
            return tree.root()

        assert shape("a") == "a"
        assert shape("abcde") == "(((ab)(cd))e)"
        assert shape("abcdefg") == "(((ab)(cd))((ef)g))"

    def test_the_order_matters_for_these_numbers(self, rng):
        numbers = rng.normal(size=33) * 10.0 ** rng.integers(-12, 12, 33)
        tree = Tree(operator.add)
        for number in numbers:
            tree.add(number)
        assert tree.root() != sum(numbers)

    def test_nothing_to_combine(self):
        with pytest.raises(ValueError, match="no results"):
            Tree(operator.add).root()
        with pytest.raises(ValueError, match="no results"):
            combine_by_level([], lambda a, b: [])


class TestKeepable:
    def test_arrays_come_in_one_form(self):
        large = np.zeros((100, 100))
        frozen = np.arange(3)
        frozen.flags.writeable = False
        kept = keepable(
            {"F": large.T, "part": large[:2], "zero": np.float64(3.0), "frozen": frozen}
        )
        for array in kept.values():
            assert array.flags.c_contiguous
            assert array.flags.writeable
        assert kept["part"].base is None
        assert kept["zero"].shape == ()

    def test_what_needs_no_copy_is_not_copied(self):
        array = np.zeros((4, 5))
        assert keepable({"a": array})["a"] is array

    def test_objects_are_refused(self):
        with pytest.raises(TypeError, match="'a' has dtype object"):
            keepable({"a": np.array([None])})


class TestSameBits:
    @pytest.mark.parametrize("jobs", [1, 3])
    # All in files; the first blocks in memory and the rest in files.
    @pytest.mark.parametrize("memory", [1, 250_000])
    def test_in_memory_and_in_files(self, tmp_path, jobs, memory):
        with LocalEngine() as engine:
            reference = run(engine)
        with LocalEngine(tmp_path, jobs, memory) as engine:
            assert_same_bits(run(engine), reference)

    def test_both_places_are_used(self, tmp_path):
        with LocalEngine(tmp_path, 1, 250_000) as engine:
            kept = engine.make(make_rows, [ROWS] * BLOCKS, range(BLOCKS), 1.0)
            assert {type(slot) for slot in kept.slots} == {InMemory, InFile}

    def test_every_kind_of_array_comes_back(self, tmp_path):
        values = {
            "float": np.arange(6.0).reshape(2, 3),
            "bool": np.array([True, False]),
            "small": np.arange(-3, 3, dtype=np.int8),
            "half": np.ones(3, dtype=np.float16),
            "zero": np.array(7, dtype=np.int32),
            "none": np.empty((3, 0)),
            "nan": np.array([np.nan, -0.0, np.inf]),
        }
        with LocalEngine(tmp_path, 1, 1) as engine:
            (back,) = engine.each(dict, keep(engine, [values]))
        assert list(back) == list(values)
        for name, array in values.items():
            assert back[name].dtype == array.dtype
            assert back[name].shape == array.shape
            assert back[name].tobytes() == array.tobytes()


class TestWork:
    def test_values_in_memory_are_not_copied(self):
        array = np.zeros(3)
        with LocalEngine() as engine:
            (seen,) = engine.each(dict, keep(engine, [{"x": array}]))
        assert seen["x"] is array

    def test_errors_come_through(self):
        with LocalEngine(n_jobs=2) as engine, pytest.raises(ValueError, match="item 0"):
            list(engine.map(refuse, range(5)))

    def test_few_results_are_in_memory_at_a_time(self):
        started = []
        with LocalEngine(n_jobs=2) as engine:
            kept = keep(engine, ({"k": np.array(k)} for k in range(50)))
            results = engine.each(lambda value: started.append(int(value["k"])), kept)
            next(results)
            time.sleep(0.05)
            assert len(started) <= 4
            results.close()


class TestScratch:
    def test_it_goes_when_the_engine_is_closed_or_forgotten(self, tmp_path):
        engine = LocalEngine(tmp_path, 1, 1)
        assert not scratch_in(tmp_path), "nothing is made before it is needed"
        keep(engine, [{"x": np.zeros(3)}])
        assert scratch_in(tmp_path)
        engine.close()
        engine.close()
        assert not scratch_in(tmp_path)
        engine = LocalEngine(tmp_path, 1, 1)
        keep(engine, [{"x": np.zeros(3)}])
        del engine
        assert not scratch_in(tmp_path)

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_it_goes_with_an_error(self, tmp_path, error):
        def fail(values):
            raise error

        with pytest.raises(error), LocalEngine(tmp_path, 2, 1) as engine:  # noqa: PT012
            kept = keep(engine, ({"x": np.zeros(3)} for _ in range(5)))
            engine.total(fail, kept, combine=operator.add)
        assert not scratch_in(tmp_path)

    CHILD = """
    import sys, time
    import numpy as np
    from halfseen.scaling.local import LocalEngine
    engine = LocalEngine(sys.argv[1], 1, 1)
    engine.make(lambda *piece: {"x": np.zeros(3)}, [0], [0])
    print("made", flush=True)
    time.sleep(float(sys.argv[2]))
    """

    def test_it_goes_with_the_interpreter(self, tmp_path):
        process = child(self.CHILD, tmp_path, 0)
        process.communicate()
        assert process.returncode == 0
        assert not scratch_in(tmp_path)

    def test_it_goes_on_an_interrupt(self, tmp_path):
        process = child(self.CHILD, tmp_path, 60)
        assert process.stdout.readline() == "made\n"
        assert scratch_in(tmp_path)
        process.send_signal(signal.SIGINT)
        process.communicate()
        assert not scratch_in(tmp_path)

    def test_what_a_killed_process_left_goes_next_time_and_a_living_one_keeps_its_own(
        self, tmp_path
    ):
        killed, living = child(self.CHILD, tmp_path, 60), child(self.CHILD, tmp_path, 60)
        try:
            for process in (killed, living):
                assert process.stdout.readline() == "made\n"
            assert len(scratch_in(tmp_path)) == 2
            killed.kill()
            killed.communicate()
            with LocalEngine(tmp_path, 1, 1) as engine:
                keep(engine, [{"x": np.zeros(3)}])
                assert len(scratch_in(tmp_path)) == 2
            (left,) = scratch_in(tmp_path)
            assert (left / LOCK).exists()
        finally:
            living.kill()
            living.communicate()

    def test_a_full_disk_is_a_sentence_before_anything_is_written(self, tmp_path, monkeypatch):
        usage = shutil.disk_usage(tmp_path)._replace(free=50_000)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
        message = r"need 88000 bytes \(88 kB\) in .*, where 50000 \(50 kB\) are free. Try"
        with LocalEngine(tmp_path, 1, 1) as engine, pytest.raises(hs.InputError, match=message):
            engine.make(make_weights, [1000] * 11, range(11))

    def test_a_folder_that_is_not_there(self, tmp_path):
        engine = LocalEngine(tmp_path / "nowhere", 1, 1)
        with pytest.raises(hs.InputError, match="no scratch folder can be made in"):
            keep(engine, [{"x": np.zeros(3)}])

    def test_a_file_that_was_cut_short(self, tmp_path):
        with LocalEngine(tmp_path, 1, 1) as engine:
            kept = keep(engine, [{"x": np.zeros(3)}])
            kept.slots[0].path.write_bytes(b"short")
            with pytest.raises(hs.InputError, match="cut short"):
                list(engine.each(dict, kept))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from Linux")
def test_memory_stays_within_the_budget(tmp_path):
    # 50 blocks of 8 MB with 150 MB to spare; the work has as much again at a time.
    process = child(
        """
        import re, sys
        import numpy as np
        from halfseen.scaling.local import LocalEngine
        from halfseen.memory import resident_bytes

        def make(piece, number):
            return {"x": np.random.default_rng(number).random(10**6)}

        def shifted(values, shift):
            return (values["x"] + shift).sum()

        def add(a, b):
            return a + b

        np.random.default_rng(0).random(10)
        base = resident_bytes()
        with LocalEngine(sys.argv[1], 2, 150 * 10**6) as engine:
            kept = engine.make(make, [None] * 50, range(50))
            for k in range(3):
                engine.total(shifted, kept, common=(k,), combine=add)
            for values in engine.each(dict, kept):
                pass
            held = sum(slot.size for slot in kept.slots)
        peak = re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())
        print(held, 1024 * int(peak[1]) - base)
        """,
        tmp_path,
    )
    out, err = process.communicate()
    assert process.returncode == 0, err
    held, most = map(int, out.split())
    assert held == 400 * 10**6
    assert most < 150 * 10**6
    assert not scratch_in(tmp_path)


class TestOneBlasThread:
    @pytest.fixture(autouse=True)
    def two_threads(self):
        """All tests have one, so that there would be nothing to limit."""
        with threadpool_limits(2, user_api="blas"):
            assert self.threads() == {2}
            yield

    @staticmethod
    def threads():
        return {info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"}

    def test_the_last_to_leave_lifts_the_limit(self):
        before = self.threads()
        inside, leave = threading.Event(), threading.Event()

        def stay():
            with single_blas_thread():
                inside.set()
                leave.wait(10)

        with single_blas_thread():
            other = threading.Thread(target=stay)
            other.start()
            inside.wait(10)
        # The first is out, the other is still in.
        assert self.threads() == {1}
        leave.set()
        other.join()
        assert self.threads() == before

    def test_many_threads_that_come_and_go(self):
        before = self.threads()
        seen = set()

        def visit():
            for _ in range(30):
                with single_blas_thread():
                    seen.update(self.threads())

        visitors = [threading.Thread(target=visit) for _ in range(4)]
        for one in visitors:
            one.start()
        for one in visitors:
            one.join()
        assert seen == {1}
        assert self.threads() == before


def test_kept_values_know_their_number():
    kept = Kept([1, 2, 3])
    assert len(kept) == 3
    kept.forget()
    with pytest.raises(RuntimeError, match="forgotten when their engine was closed"):
        len(kept)
