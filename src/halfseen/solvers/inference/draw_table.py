"""A table with a draw in each hole, at given parameters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from halfseen.parallel import map_in_order
from halfseen.seeds import Purpose
from halfseen.solvers.full_information.expectation import (
    Block,
    Parameters,
    Sampling,
    drawn_rows,
    lay_out,
)
from halfseen.solvers.full_information.problem import Problem

Floats = NDArray[np.float64]

# Points for draws of a row.
DRAW_POINTS = 128


def draw_table(
    problem: Problem, at: Parameters, seed: int, number: int, n_jobs: int | None = None
) -> Floats:
    """Draw all hidden cells of a table, in standardised units."""
    sampling = Sampling(DRAW_POINTS, seed, number, Purpose.IMPUTATION)
    layout = lay_out(problem.holes)

    def work(block: Block) -> Floats:
        return drawn_rows(problem.Y, block, layout.confines, at, sampling)[0]

    return np.concatenate(list(map_in_order(work, layout.blocks, n_jobs)))
