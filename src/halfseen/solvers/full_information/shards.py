"""A piece of a table for ``full`` as named arrays, and what it is asked where it is kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.missingness.holes import SEEN, Holes, Inequalities, whole_line
from halfseen.missingness.resolve import SetTable
from halfseen.scaling.engine import Arrays
from halfseen.solvers.full_information.expectation import (
    Parameters,
    Sampling,
    add_in_order,
    count_sampled,
    lay_out,
    several_pieces,
)
from halfseen.solvers.full_information.feasible import check_feasible
from halfseen.solvers.full_information.problem import Problem, silent_columns

Floats = NDArray[np.float64]

_SETS = ("start", "lower", "upper", "node_start", "node", "weight", "hidden_weight", "log_weight")


class Census(NamedTuple):
    """What is counted over all pieces."""

    hidden: Floats
    silent: NDArray[np.bool_]
    convex: bool
    bound: bool
    sampled: int
    several: NDArray[np.intp]

    def __add__(self, other: Census) -> Census:  # type: ignore[override]
        return Census(
            self.hidden + other.hidden,
            self.silent | other.silent,
            self.convex and other.convex,
            self.bound or other.bound,
            self.sampled + other.sampled,
            np.union1d(self.several, other.several),
        )


def to_arrays(problem: Problem, first_row: int) -> Arrays:
    """Return a piece as arrays."""
    holes = problem.holes
    out = {
        "Y": np.where(problem.hidden, 0.0, problem.Y),
        "index": holes.index,
        "set_column": holes.set_column,
        "silent": silent_columns(problem),
        "first_row": np.array(first_row),
    }
    out |= {f"sets.{name}": getattr(holes.sets, name) for name in _SETS}
    bound = holes.inequalities
    if bound is not None:
        out |= {"V": bound.V, "b": bound.b, "sign": bound.sign, "owner": bound.owner}
    return out


def holes_of(fixed: Arrays, change: Callable[[Holes], Holes] | None = None) -> Holes:
    """Return the holes of a piece, or others that are made of them."""
    bound = None
    if "V" in fixed:
        bound = Inequalities(fixed["V"], fixed["b"], fixed["sign"], fixed["owner"])
    sets = SetTable(**{name: fixed[f"sets.{name}"] for name in _SETS})
    holes = Holes(fixed["index"], sets, fixed["set_column"], bound)
    return holes if change is None else change(holes)


def count(fixed: Arrays) -> Census:
    """Count the hidden cells of a piece."""
    holes = holes_of(fixed)
    hidden = (holes.index != SEEN).sum(axis=0).astype(float)
    return Census(
        hidden,
        fixed["silent"],
        holes.is_convex,
        holes.inequalities is not None,
        count_sampled(holes),
        several_pieces(holes),
    )


def seen_moments(fixed: Arrays, names: tuple[str, ...], like: PairMoments | None) -> PairMoments:
    """Return moments of the seen values of a piece, in standardised units."""
    return PairMoments.of_chunk(np.where(fixed["index"] == SEEN, fixed["Y"], np.nan), names, like)


def checksums(fixed: Arrays) -> list[int]:
    """Checksum of everything that a piece holds, however its sets are numbered."""
    total, used = 0, only_used(holes_of(fixed))
    fixed = fixed | {"index": used.index, "set_column": used.set_column}
    fixed |= {f"sets.{name}": getattr(used.sets, name) for name in _SETS}
    for name in sorted(fixed):
        array = np.ascontiguousarray(fixed[name])
        total = zlib.crc32(f"{name}{array.shape}{array.dtype.str}".encode(), total)
        total = zlib.crc32(array.reshape(-1).view(np.uint8).data, total)
    return [total]


def ask_piece(
    fixed: Arrays,
    work: Callable[..., Any],
    at: Parameters,
    sampling: Sampling,
    common: tuple[Any, ...],
    change: Callable[[Holes], Holes] | None = None,
) -> Any:
    """Add up what some work says of each block of a piece."""
    layout = lay_out(holes_of(fixed, change), int(fixed["first_row"]))
    Y, confines = fixed["Y"], layout.confines
    return add_in_order(work(Y, block, confines, at, sampling, *common) for block in layout.blocks)


def look_at(
    fixed: Arrays,
    work: Callable[..., Any],
    common: tuple[Any, ...],
    change: Callable[[Holes], Holes] | None = None,
) -> Any:
    """Return what some work says of a piece as a whole."""
    return work(fixed["Y"], holes_of(fixed, change), *common)


def check_piece(fixed: Arrays, names: tuple[str, ...]) -> int:
    """Raise where a row contradicts its inequalities; return how many were looked at."""
    check_feasible(fixed["Y"], holes_of(fixed), names, int(fixed["first_row"]))
    return len(fixed["Y"])


def take_rows(
    fixed: Arrays, rows: NDArray[np.intp], change: Callable[[Holes], Holes] | None = None
) -> tuple[Floats, Holes]:
    """Return those rows of a piece that are asked for, of the whole table's."""
    first = int(fixed["first_row"])
    own = rows[(rows >= first) & (rows < first + len(fixed["Y"]))] - first
    return fixed["Y"][own], only_used(holes_of(fixed, change).take(own))


def only_used(holes: Holes) -> Holes:
    """Return the same holes without sets that no cell lies in."""
    hidden = holes.index != SEEN
    used, place = np.unique(holes.index[hidden], return_inverse=True)
    index = np.full(holes.index.shape, SEEN, dtype=np.int32)
    index[hidden] = place
    return Holes(index, holes.sets.take(used), holes.set_column[used], holes.inequalities)


def join_rows(parts: list[tuple[Floats, Holes]]) -> tuple[Floats, Holes]:
    """Put rows of several pieces under each other."""
    kept = [holes for Y, holes in parts if len(Y)]
    offset, index = 0, []
    for holes in kept:
        index.append(np.where(holes.index == SEEN, SEEN, holes.index + offset).astype(np.int32))
        offset += len(holes.sets)
    bound = kept[0].inequalities
    if bound is not None:
        sign = np.concatenate([h.inequalities.sign for h in kept if h.inequalities is not None])
        bound = Inequalities(bound.V, bound.b, sign, bound.owner)
    tables = [h.sets for h in kept if len(h.sets)]
    columns = np.concatenate([h.set_column for h in kept]).astype(np.intp)
    Y = np.concatenate([Y for Y, _ in parts if len(Y)])
    if not tables:
        # Kernels want a set to look at, even where no cell lies in it.
        tables, columns = [whole_line()], np.zeros(1, dtype=np.intp)
    return Y, Holes(np.concatenate(index), SetTable.join(tables), columns, bound)
