import time

import pytest

import halfseen as hs
from halfseen.parallel import PIECES_AHEAD, map_in_order, resolve_jobs


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
