import sys
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import halfseen as hs
from halfseen import parallel
from halfseen.parallel import (
    PIECES_AHEAD,
    interrupts_as_such,
    is_interrupt,
    map_in_order,
    resolve_jobs,
    single_blas_thread,
)


def test_results_come_in_order_whatever_the_speed():
    def work(k):
        time.sleep(0.002 * (5 - k % 5))
        return k * k

    for jobs in (1, 2, 4):
        assert list(map_in_order(work, range(30), jobs)) == [k * k for k in range(30)]


def test_few_pieces_are_under_way_at_a_time():
    taken = []

    def pieces():
        for k in range(100):
            taken.append(k)
            yield k

    results = map_in_order(lambda k: k, pieces(), 2)
    assert next(results) == 0
    # Two threads, two pieces ahead for each, and the one that was just handed out.
    assert len(taken) <= 2 * PIECES_AHEAD + 1
    assert list(results) == list(range(1, 100))


def test_errors_come_through():
    def work(k):
        raise ValueError(f"piece {k}")

    with pytest.raises(ValueError, match="piece 0"):
        list(map_in_order(work, range(3), 2))


@pytest.mark.parametrize("jobs", [0, -2, 1.5, True, "2"])
def test_bad_jobs(jobs):
    with pytest.raises(hs.InputError, match="n_jobs"):
        resolve_jobs(jobs)


class TestInterrupts:
    """Ctrl-C at any moment is Ctrl-C, and BLAS has its threads back."""

    def test_out_of_compiled_code(self):
        # What Numba raises where a signal comes while it makes the object that it returns.
        def broken():
            try:
                try:
                    raise KeyboardInterrupt
                except KeyboardInterrupt as error:
                    raise SystemError("returned a result with an exception set") from error
            except SystemError as error:
                raise SystemError("returned a result with an exception set") from error

        with pytest.raises(KeyboardInterrupt), interrupts_as_such():
            broken()
        with pytest.raises(SystemError, match="other"), interrupts_as_such():
            raise SystemError("other")
        assert not is_interrupt(ValueError())

    @pytest.mark.parametrize("step", range(1, 60))
    def test_threads_of_blas_come_back(self, step):
        """Interrupted before each line of entering and of leaving, one after the other."""
        before = threads()
        lines = 0

        def trace(frame, event, argument):
            nonlocal lines
            if frame.f_code.co_filename != parallel.__file__:
                return None
            if event == "line":
                lines += 1
                if lines == step:
                    raise KeyboardInterrupt
            return trace

        with threadpool_limits(2, user_api="blas"):
            wanted = threads()
            sys.settrace(trace)
            try:
                with single_blas_thread():
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(None)
            assert threads() == wanted
            assert not parallel._BLAS_LIMIT._inside
        assert threads() == before


def threads():
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
