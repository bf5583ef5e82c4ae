"""A piece of a table for ``full`` as named arrays, and what is done to it where it is kept.

What never changes (rows, sets, inequalities) is kept apart from the two values of each hidden cell,
which every sweep replaces.
"""

from __future__ import annotations

import weakref
import zlib
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.data.moments import PairMoments
from halfseen.missingness.holes import SEEN, Holes, Inequalities, whole_line
from halfseen.missingness.resolve import SetTable
from halfseen.parallel import map_in_order
from halfseen.scaling.engine import Arrays
from halfseen.solvers.full_information.completion import (
    Block,
    Completion,
    Sums,
    add_in_order,
    make_blocks,
)
from halfseen.solvers.full_information.filling import fill
from halfseen.solvers.full_information.problem import Problem, silent_columns

Floats = NDArray[np.float64]

_SETS = ("start", "lower", "upper", "node_start", "node", "weight", "hidden_weight")


class Census(NamedTuple):
    """What is counted over all pieces."""

    hidden: Floats
    silent: NDArray[np.bool_]
    convex: bool
    bound: bool

    def __add__(self, other: Census) -> Census:  # type: ignore[override]
        return Census(
            self.hidden + other.hidden,
            self.silent | other.silent,
            self.convex and other.convex,
            self.bound or other.bound,
        )


class Drawing(NamedTuple):
    """Which random numbers a sweep draws."""

    seed: int
    chain: int
    sweeps: int


def to_arrays(problem: Problem, first_row: int, first_block: int) -> Arrays:
    """Return what never changes of a piece."""
    holes = problem.holes
    out = {
        "Y": np.where(problem.hidden, 0.0, problem.Y),
        "index": holes.index,
        "set_column": holes.set_column,
        "silent": silent_columns(problem),
        "first_row": np.array(first_row),
        "first_block": np.array(first_block),
    }
    out |= {f"sets.{name}": getattr(holes.sets, name) for name in _SETS}
    bound = holes.inequalities
    if bound is not None:
        out |= {"V": bound.V, "b": bound.b, "sign": bound.sign, "owner": bound.owner}
    return out


def holes_of(fixed: Arrays) -> Holes:
    """Return the holes of a piece."""
    bound = None
    if "V" in fixed:
        bound = Inequalities(fixed["V"], fixed["b"], fixed["sign"], fixed["owner"])
    sets = SetTable(**{name: fixed[f"sets.{name}"] for name in _SETS})
    return Holes(fixed["index"], sets, fixed["set_column"], bound)


def count(fixed: Arrays) -> Census:
    """Count the hidden cells of a piece."""
    holes = holes_of(fixed)
    hidden = (holes.index != SEEN).sum(axis=0).astype(float)
    return Census(hidden, fixed["silent"], holes.is_convex, holes.inequalities is not None)


def hidden_cells(fixed: Arrays) -> list[int]:
    """Count the hidden cells of a piece."""
    return [int((fixed["index"] != SEEN).sum())]


def seen_moments(fixed: Arrays, names: tuple[str, ...], like: PairMoments | None) -> PairMoments:
    """Return moments of the seen values of a piece, in standardised units."""
    return PairMoments.of_piece(np.where(fixed["index"] == SEEN, fixed["Y"], np.nan), names, like)


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


def fill_cells(
    state: Arrays,
    fixed: Arrays,
    mean: Floats,
    deviations: Floats,
    drawing: Drawing,
    names: tuple[str, ...],
) -> tuple[Arrays, None]:
    """Give the hidden cells of a piece their first values, whatever they had before."""
    Y, holes = fixed["Y"].copy(), holes_of(fixed)
    place = int(fixed["first_block"]), int(fixed["first_row"])
    fill(Y, holes, mean, deviations, drawing.seed, names, drawing.chain, 1, *place)
    rows = Completion(Y, holes, drawing.seed, drawing.chain, 1, place[0], _blocks_of(fixed, holes))
    return cells_of(rows), None


def sweep_cells(
    state: Arrays,
    fixed: Arrays,
    mean: Floats,
    precision: Floats,
    factor: Floats | None,
    drawing: Drawing,
) -> tuple[Arrays, Sums]:
    """Draw the hidden cells of a piece anew; return them, and sums of expected moments."""
    rows = filled(fixed, state, drawing)
    parts = (
        rows.sweep_block(number, mean, precision, factor) for number in range(len(rows.blocks))
    )
    sums = add_in_order(parts)
    return cells_of(rows), sums


def filled(fixed: Arrays, state: Arrays, drawing: Drawing) -> Completion:
    """Return a piece with the values that its hidden cells have."""
    holes = holes_of(fixed)
    blocks = _blocks_of(fixed, holes)
    first_block = int(fixed["first_block"])
    rows = Completion(fixed["Y"].copy(), holes, drawing.seed, drawing.chain, 1, first_block, blocks)
    rows.set_cells(state["plain"], state["mirrored"])
    rows.sweeps = drawing.sweeps
    return rows


def cells_of(rows: Completion) -> Arrays:
    """Return both values of every hidden cell."""
    return {"plain": np.concatenate(rows.plain()), "mirrored": np.concatenate(rows.mirrored)}


def take_rows(state: Arrays, fixed: Arrays, rows: NDArray[np.intp]) -> tuple[Floats, Holes]:
    """Return those rows of a piece that are asked for, of the whole table's."""
    first = int(fixed["first_row"])
    own = rows[(rows >= first) & (rows < first + len(fixed["Y"]))] - first
    holes = holes_of(fixed)
    if not own.size:
        return np.empty((0, fixed["Y"].shape[1])), only_used(holes.take(own))
    # Cells have no values yet where a chain that had ended was taken from a checkpoint.
    Y = filled(fixed, state, Drawing(0, 0, 0)).Y if state else fixed["Y"]
    return Y[own], only_used(holes.take(own))


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


# Blocks of pieces that stay in memory, by the array of their rows: listing hidden cells takes a tenth of
# the time of sweeping them. Six bytes for each, of so many cells at most in all: they count as no memory
# of an engine.
MOST_LISTED = 2**23
_listed: dict[int, tuple[weakref.ref[NDArray[np.float64]], list[Block]]] = {}


def _blocks_of(fixed: Arrays, holes: Holes) -> list[Block]:
    Y = fixed["Y"]
    found = _listed.get(id(Y))
    if found is not None and found[0]() is Y:
        return found[1]
    blocks = make_blocks(holes)
    count = sum(block.hidden for _, found in tuple(_listed.values()) for block in found)
    if count + sum(block.hidden for block in blocks) > MOST_LISTED:
        return blocks
    key = id(Y)
    _listed[key] = weakref.ref(Y, lambda _: _listed.pop(key, None)), blocks
    return blocks


def sweep_all(
    pieces: list[Completion],
    mean: Floats,
    precision: Floats,
    factor: Floats | None,
    n_jobs: int | None,
) -> list[Sums]:
    """Sweep pieces that are all in memory, by threads; return the sums of each."""
    places = [(k, b) for k, piece in enumerate(pieces) for b in range(len(piece.blocks))]

    def work(place: tuple[int, int]) -> Sums:
        return pieces[place[0]].sweep_block(place[1], mean, precision, factor)

    found = map_in_order(work, places, n_jobs)
    return [add_in_order(next(found) for _ in piece.blocks) for piece in pieces]
