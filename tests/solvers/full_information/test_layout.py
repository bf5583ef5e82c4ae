"""Kernels see one layout of memory, whatever that of the table: for another they are compiled anew."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.solvers.full_information.expectation import lattice, lay_out
from halfseen.solvers.full_information.problem import read_problem

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


def test_the_lattice_is_evenly_spread():
    points = lattice(500, 6)
    assert points.shape == (500, 6)
    assert ((points >= 0.0) & (points < 1.0)).all()
    np.testing.assert_allclose(points[0], np.sqrt([2, 3, 5, 7, 11, 13]) % 1.0, atol=1e-15)
    # Every tenth of every axis has its share; of 50 independent points it would be off by 7.
    for axis in points.T:
        counts = np.histogram(axis, 10, (0.0, 1.0))[0]
        assert np.abs(counts - 50).max() <= 5
