"""The rows that ``full`` asks: of a table in memory, with values lost or not, or kept elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen.errors import InputError, argument
from halfseen.missingness.base import Missingness
from halfseen.solvers.full_information.learn_losses import LossyTable
from halfseen.solvers.full_information.problem import read_problem
from halfseen.solvers.full_information.rows import HeldRows, KeptRows, Rows
from halfseen.solvers.prepared_table import PreparedTable, prepared_table
from halfseen.solvers.result import Source


def read_rows(
    X: Any, missingness: Missingness | None, missing_at_random: Any, loss: Any, n_jobs: int | None
) -> tuple[Rows, PreparedTable, LossyTable | None]:
    """Return rows that can be asked, the table that they are of, and what was said of its losses."""
    if isinstance(X, KeptRows):
        if loss is not None:
            raise InputError(
                f"{argument('loss')} of rows that are kept elsewhere is an argument of fit."
            )
        # Moments of them are enough for a start; whoever keeps them says where they are from.
        assert X.moments is not None
        nothing = Source(None, None, None, 0, n_jobs, {})
        return X, PreparedTable(X.moments, X.overview.missingness, nothing, n_jobs), None
    data = prepared_table(X, missingness, n_jobs)
    problem = read_problem(data, None, missing_at_random, held=loss is not None)
    if loss is None:
        return HeldRows(problem, n_jobs), data, None
    lossy = LossyTable.read(problem, data.table, data.stated, missing_at_random, loss)
    return HeldRows(lossy.problem(np.nan_to_num(lossy.asked.share)), n_jobs), data, lossy
