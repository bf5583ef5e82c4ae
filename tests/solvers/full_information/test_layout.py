"""Kernels see one layout of memory, whatever that of the table: for another they are compiled anew."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.solvers.full_information.completion import make_block
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
        block = make_block(holes, slice(0, len(X)))
        for array in (problem.Y, block.index, *block.cells):
            assert array.flags.c_contiguous
