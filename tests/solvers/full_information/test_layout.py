"""Kernels see one layout of memory, whatever that of the table: for another they are compiled anew."""

import tracemalloc

import numpy as np
import pytest

import halfseen as hs
from halfseen.solvers.full_information.expectation import (
    Parameters,
    Sampling,
    expect,
    lattice,
    lay_out,
)
from halfseen.solvers.full_information.problem import read_problem
from halfseen.solvers.full_information.rows import HeldRows

GAUSSIAN = hs.Gaussian(np.zeros(3), 0.5 * np.eye(3) + 0.5)
RULES = {
    "limits": hs.DetectionLimits(lower=-0.3),
    "unions": hs.SelfCensoring([hs.between(-1, 1)] * 3),
    "selection": hs.SelfSelection(),
    "thresholds": hs.LinearThreshold.anchored([0], [[1, 0.5, 0], [1, 0, 0.5]], [0.2, 0.1]),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rule", RULES)
def test_rows_and_holes_lie_row_by_row(rule, order):
    X = np.array(hs.simulate(GAUSSIAN, RULES[rule], 50, 0), order=order)
    problem = read_problem(X, RULES[rule])
    for mask in (None, np.isnan(X) & (X[:, :1] > 0)):
        holes = problem.holes if mask is None else problem.holes.with_missing_at_random(mask)
        layout = lay_out(holes)
        arrays = [
            problem.Y,
            *layout.confines,
            *(a for block in layout.blocks for a in block.groups),
        ]
        for array in (*arrays, lattice(7, 3)):
            assert array.flags.c_contiguous


def test_blocks_have_every_row_once_by_pattern():
    X = hs.simulate(GAUSSIAN, RULES["limits"], 7000, 0)
    mask = np.isnan(X) & (np.random.default_rng(1).random(X.shape) < 0.4)
    holes = read_problem(X, RULES["limits"], mask).holes
    layout = lay_out(holes, 100)
    assert len(layout.blocks) > 1
    seen = []
    for block in layout.blocks:
        assert block.first_row == 100 + block.rows.start
        part, groups = mask[block.rows], block.groups
        np.testing.assert_array_equal(np.sort(groups.rows), np.arange(len(part)))
        for g, pattern in enumerate(groups.missing):
            rows = groups.rows[groups.start[g] : groups.start[g + 1]]
            assert (part[rows] == pattern).all()
            assert (np.diff(rows) > 0).all()
        assert len(np.unique(groups.missing, axis=0)) == len(groups.missing)
        seen += range(block.rows.start, block.rows.stop)
    assert seen == [*range(7000)]


def _error(points):
    """Mean square error of a shifted lattice: products of 1 + γ 2π² B₂(x), less their integral."""
    x = points
    return np.prod(1.0 + 0.03 * 2.0 * np.pi**2 * (x * x - x + 1.0 / 6.0), axis=1).mean() - 1.0


@pytest.mark.parametrize("count", [2, 16, 30])
def test_every_component_of_a_lattice_is_the_best_that_could_follow(count):
    points = lattice(count, 5)
    n = len(points)
    assert n >= count
    assert all(n % p for p in range(2, n))
    for j in range(5):
        np.testing.assert_allclose(np.sort(points[:, j]), np.arange(n) / n, atol=1e-12)
        others = [
            _error(np.column_stack([points[:, :j], np.arange(n) * z % n / n])) for z in range(1, n)
        ]
        assert _error(points[:, : j + 1]) <= min(others) * (1.0 + 1e-9)


def test_the_first_coordinates_of_a_lattice_do_not_depend_on_the_others():
    np.testing.assert_array_equal(lattice(100, 7)[:, :4], lattice(100, 4))


def test_cells_are_sampled_in_the_order_of_their_block():
    X = hs.simulate(GAUSSIAN, RULES["limits"], 80, 0)
    problem = read_problem(X, RULES["limits"])
    layout = lay_out(problem.holes)
    block = layout.blocks[0]
    at = Parameters.of(np.array([0.0, 0.5, -1.0]), GAUSSIAN.covariance)
    ordered = block.in_order(problem.Y, layout.confines, at)
    hidden = np.isnan(X)
    for r in range(80):
        columns = np.flatnonzero(hidden[r])
        assert block.groups.order[r, : columns.size].tolist() == columns.tolist()
        assert sorted(ordered.groups.order[r, : columns.size]) == columns.tolist()
        assert (ordered.groups.order[r, columns.size :] == -1).all()
    # With equal correlations and one limit the cell with the highest mean is the least likely.
    three = ordered.groups.order[hidden.all(axis=1)]
    assert len(three) > 3
    assert (three[:, 0] == 1).all()
    # An order changes the points that a row is asked at, and so its noise, but not what is integrated.
    few, many = (Sampling(points, 3, order=None) for points in (17, 4096))
    say = {
        (name, sampling.points): expect(problem.Y, one, layout.confines, at, sampling)[1]
        for name, one in {"plain": block, "ordered": ordered}.items()
        for sampling in (few, many)
    }
    same = hidden.sum(axis=1) <= 2
    np.testing.assert_allclose(say["plain", 17][same], say["ordered", 17][same], rtol=1e-12)
    assert (say["plain", 17] != say["ordered", 17])[~same].all()
    # 4 096 points of three cells: their own noise is some 1e-5.
    np.testing.assert_allclose(say["plain", 4096], say["ordered", 4096], atol=1e-3)
    order = few._replace(order=at)
    np.testing.assert_array_equal(
        expect(problem.Y, block, layout.confines, at, order)[1], say["ordered", 17]
    )


def test_rows_say_the_same_in_an_order_whatever_was_asked_before():
    X = hs.simulate(GAUSSIAN, RULES["limits"], 200, 0)
    problem = read_problem(X, RULES["limits"])
    place = np.zeros(3), GAUSSIAN.covariance
    orders = [None, *(Parameters.of(np.array(m), place[1]) for m in ([0, 0.5, -1.0], [1.0, 0, 0]))]
    samplings = [Sampling(17, 3, order=order) for order in orders]
    fresh = [HeldRows(problem).expect(*place, sampling)[1] for sampling in samplings]
    assert len(set(fresh)) == 3
    rows = HeldRows(problem)
    for k in (1, 2, 1, 0, 2):
        assert rows.expect(*place, samplings[k])[1] == fresh[k]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rule", RULES)
def test_values_that_are_standardised_when_they_are_looked_at_say_the_same(
    monkeypatch, rule, order
):
    monkeypatch.setattr("halfseen.data.table.CACHE_CELLS", 12)
    X = np.array(hs.simulate(GAUSSIAN, RULES[rule], 300, 0), order=order)
    ref, comp = (HeldRows(read_problem(X, RULES[rule], held=held)) for held in (True, False))
    assert not isinstance(comp.problem.Y, np.ndarray)
    np.testing.assert_array_equal(np.asarray(comp.problem.Y), ref.problem.Y)
    place = np.zeros(3), GAUSSIAN.covariance, Sampling(17, 3)
    (moments, value), (ref_moments, ref_value) = comp.expect(*place), ref.expect(*place)
    assert value == ref_value
    np.testing.assert_array_equal(moments.second, ref_moments.second)
    comp.check()
    assert comp.checksum() == ref.checksum()
    np.testing.assert_array_equal(comp.seen_moments().cross, ref.seen_moments().cross)
    np.testing.assert_array_equal(comp.take(np.arange(5, 9))[0], ref.problem.Y[5:9])


@pytest.mark.filterwarnings("ignore:The solver stopped")
def test_full_holds_no_second_table():
    X, rule = np.random.default_rng(0).normal(size=(40_000, 50)), hs.DetectionLimits(lower=-1.5)
    X[X < -1.5] = np.nan
    few = {"most_steps": 1, "standard_errors": False, "random_state": 0}
    hs.fit(X[:300], rule, "full", **few)
    tracemalloc.start()
    try:
        hs.fit(X, rule, "full", **few)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Half of it says where hidden cells can be; a chunk, and masks of it, are half of this table.
    assert peak < 1.3 * X.nbytes
