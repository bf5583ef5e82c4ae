import threading
import time

import pytest

import halfseen as hs
from halfseen.parallel import map_in_order, resolve_jobs


def test_results_come_in_order_whatever_the_speed():
    def work(k):
        time.sleep(0.002 * (5 - k % 5))
        return k * k

    for jobs in (1, 2, 4):
        assert list(map_in_order(work, range(30), jobs)) == [k * k for k in range(30)]


def test_few_pieces_are_under_way_at_a_time():
    started = []
    gate = threading.Event()

    def work(k):
        started.append(k)
        gate.wait(5)
        return k

    results = map_in_order(work, range(100), 2)
    thread = threading.Thread(target=lambda: next(results))
    thread.start()
    time.sleep(0.1)
    assert len(started) <= 2
    gate.set()
    thread.join()
    assert list(results) == list(range(1, 100))


def test_errors_come_through():
    def work(k):
        raise ValueError(f"piece {k}")

    with pytest.raises(ValueError, match="piece 0"):
        list(map_in_order(work, range(3), 2))


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "2"])
def test_bad_jobs(jobs):
    with pytest.raises(hs.InputError, match="n_jobs"):
        resolve_jobs(jobs)
