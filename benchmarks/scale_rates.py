"""How fast one core does each thing that a large fit is made of: the rates of ``scale_plan``."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtri

import halfseen as hs
from halfseen.data.moments import PairMoments
from halfseen.data.table import cache_rows, chunk_rows
from halfseen.missingness.holes import SEEN
from halfseen.parallel import single_blas_thread
from halfseen.scaling.engine import Arrays
from halfseen.solvers.correlations import PAIRS_PER_PIECE, _cells
from halfseen.solvers.full_information.expectation import Parameters, Sampling, sums_of_block
from halfseen.solvers.full_information.problem import standardise
from halfseen.solvers.full_information.shards import ask_piece, to_arrays
from halfseen.solvers.prepared_table import prepare

HIDDEN, CORRELATION = 0.3, 0.5
# Points for each row in a step: the fewest, which large tables climb with.
POINTS = 16
LIMIT = float(ndtri(HIDDEN))


def processor_seconds(work: Callable[[], Any], least: float = 0.3, most: int = 20) -> float:
    """Return processor seconds of one call, the least of several.

    Others may use the machine: time of the clock would count them. The least, since what they do to the
    caches only ever adds.
    """
    work()
    times: list[float] = []
    while len(times) < 2 or (sum(times) < least and len(times) < most):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def table(rows: int, d: int) -> np.ndarray:
    """Return equally correlated columns of which 30 % is hidden."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(rows, 1))
    X = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * rng.normal(size=(rows, d))
    X[X < LIMIT] = np.nan
    return X


def names(d: int) -> tuple[str, ...]:
    """Return names of columns."""
    return tuple(f"x{j}" for j in range(d))


# Cells of the piece whose moments are timed: seconds at 10 000 columns.
MOST_CELLS = 2**24


@dataclass(frozen=True)
class Gemm:
    """Flops a second of a bare product AᵀB of a block, as moments need them, and of a whole piece."""

    bare: float
    moments: float
    rows_per_second: float


def moments_rate(d: int) -> Gemm:
    """Moments of one piece: four products, 8 n d² flops; next to one bare product of its shape."""
    # Of many columns a part of a piece: some thousand rows are as good for BLAS.
    n = min(chunk_rows(d), MOST_CELLS // d)
    X, units = table(n, d), names(d)
    first = PairMoments.of_chunk(X, units)
    A, B = np.ones((n, d)), np.ones((n, d))
    with single_blas_thread():
        bare = processor_seconds(lambda: A.T @ B)
        whole = processor_seconds(lambda: PairMoments.of_chunk(X, units, first))
    return Gemm(2.0 * n * d * d / bare, 8.0 * n * d * d / whole, n / whole)


def reading_rate(d: int = 100, pieces: int = 12) -> tuple[float, float]:
    """Bytes of files, and rows, that one core reads in a second; the files are in memory already."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = chunk_rows(d)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.parquet")
        X = table(n, d)
        columns = [pa.array(column, from_pandas=True) for column in X.T]
        part = pa.table(columns, names=list(names(d)))
        with pq.ParquetWriter(path, part.schema) as file:
            for _ in range(pieces):
                file.write_table(part)
        blocks = hs.scan_parquet(path)

        def read() -> None:
            for piece in blocks.pieces:
                piece.read()

        seconds = processor_seconds(read, most=4)
        return path.stat().st_size / seconds, pieces * n / seconds


def pair_rate(d: int) -> float:
    """Processor seconds of a pair by ``pairwise``, with all that is done for it but not the moments."""
    moments = PairMoments.from_array(table(max(4 * d, 2000), d), n_jobs=1)
    rule = hs.DetectionLimits(lower=LIMIT)

    def solve() -> None:
        hs.solvers.pairwise(moments, rule, n_jobs=1)

    return processor_seconds(solve, most=3) / (d * (d - 1) / 2)


def counting_seconds(d: int) -> float:
    """Processor seconds in which the client counts who is hidden, for one of the pairs of an item."""
    rule = hs.DetectionLimits(lower=LIMIT)
    data = prepare(PairMoments.from_array(table(200, d), n_jobs=1), rule, "pairwise", 1)
    i, j = np.zeros(PAIRS_PER_PIECE, dtype=np.intp), np.arange(1, PAIRS_PER_PIECE + 1) % d
    return (
        processor_seconds(lambda: _cells(data.moments, data.columns, i, j, True)) / PAIRS_PER_PIECE
    )


def kept_piece(rows: int, d: int) -> tuple[Arrays, tuple[Any, ...]]:
    """Return what an engine keeps of a piece, and the arguments of a step."""
    X, rule = table(rows, d), hs.DetectionLimits(lower=LIMIT)
    zero, one = np.zeros(d), np.ones(d)
    fixed = to_arrays(standardise(X, names(d), rule, None, zero, one), 0)
    r = CORRELATION
    at = Parameters.of(zero, (1 - r) * np.eye(d) + r)
    return fixed, (sums_of_block, at, Sampling(POINTS, 0), ())


def hidden_in(fixed: Arrays) -> int:
    """Count the hidden cells of a piece."""
    return int((fixed["index"] != SEEN).sum())


def step_rate(d: int, rows: int | None = None) -> float:
    """Processor seconds of a hidden cell in one step."""
    fixed, common = kept_piece(cache_rows(d) if rows is None else rows, d)
    with single_blas_thread():
        seconds = processor_seconds(lambda: ask_piece(fixed, *common), most=8)
    return seconds / hidden_in(fixed)


def m_step_seconds(d: int) -> tuple[float, float]:
    """Processor seconds of the client in a step of ``full``, and of the eigenvalues of ``pairwise``.

    A step inverts the covariance, and factors the new one.
    """
    # Some matrix with eigenvalues that differ: equal ones are found faster.
    A = np.random.default_rng(0).normal(size=(d, 2 * d))
    S = A @ A.T / (2 * d)

    def step() -> None:
        Parameters.of(S[0], S)
        np.linalg.cholesky(S)

    with single_blas_thread():
        return processor_seconds(step, most=3), processor_seconds(
            lambda: np.linalg.eigh(S), 0.0, most=2
        )
