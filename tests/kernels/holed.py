"""Rows with holes of every kind, as the kernels want them."""

import math

import numpy as np
from scipy.special import expit

import halfseen as hs
from halfseen.kernels.paths import law_of
from halfseen.missingness.holes import SEEN, Holes, Inequalities
from halfseen.missingness.resolve import SetTable, resolve, union_of_intervals
from halfseen.solvers.full_information.expectation import at_random, confines_of, grouped

INF = math.inf
LINE = [(-INF, INF)]


def hidden_with(slope):
    """A set in which x is hidden with probability 1/(1 + exp(slope·x))."""
    return resolve(hs.Probability(lambda x: expit(slope * x)), 0.0, 1.5, 12.0).complement()


def set_table(pieces):
    """A set from a list of intervals."""
    if isinstance(pieces, SetTable):
        return pieces
    return union_of_intervals(*(np.array(ends, dtype=float) for ends in zip(*pieces, strict=True)))


def holes_of(rows, d, V=None, b=None, sign=None):
    """Holes of rows; each is a dict of the sets of its hidden cells by column."""
    index = np.full((len(rows), d), SEEN, dtype=np.int32)
    tables, columns = [], []
    for r, cells in enumerate(rows):
        for column, pieces in cells.items():
            index[r, column] = len(tables)
            tables.append(set_table(pieces))
            columns.append(column)
    bound = None
    if V is not None:
        signs = np.broadcast_to(np.array(sign, dtype=np.int8), (len(rows), len(b)))
        bound = Inequalities(
            np.array(V, dtype=float),
            np.array(b, dtype=float),
            signs,
            np.zeros(len(b), dtype=np.intp),
        )
    tables = tables or [set_table(LINE)]
    return Holes(index, SetTable.join(tables), np.array(columns or [0]), bound)


def confines(*sets):
    """The sets of the cells of one row, which are numbered as they come."""
    return confines_of(holes_of([dict(enumerate(sets))], len(sets)))


def fill_of(confines, A, c):
    """The kernel that samples cells so confined, between inequalities of a row."""
    return law_of(confines._replace(V=np.ascontiguousarray(A.T), b=c)).fill


def groups(holes):
    """Rows by pattern, and their sets."""
    return grouped(holes, at_random(holes)), confines_of(holes)
