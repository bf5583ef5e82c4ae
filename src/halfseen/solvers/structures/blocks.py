"""Groups of columns that have nothing to do with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.solvers.full_information.m_step import Diagonal, Free
from halfseen.solvers.structures.base import Structure, in_words, read_part
from halfseen.theta import entries, symmetric

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]


@in_words
@dataclass(frozen=True, repr=False)
class BlockDiagonal(Structure):
    """Groups of columns; columns of different groups are independent.

    As a text "block_diagonal([2, 3])" or "block_diagonal([['lead', 'zinc'], ['ph']])".

    Parameters
    ----------
    groups : sequence of int, or of sequences of column names or positions
        Sizes of groups of neighbours; or which columns each group has.
    within : structure or str
        What the covariance of each group may be.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> truth = hs.Gaussian(np.zeros(3), [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> X = hs.simulate(truth, rule, 500)
    >>> fit = hs.fit(X, rule, covariance=hs.BlockDiagonal([2, 1]), random_state=0)
    >>> fit.parameters, bool(fit.covariance[2, 0] == 0.0)
    (7, True)
    """

    groups: Any
    within: Any = "free"
    word: ClassVar[str] = "block_diagonal"
    plain: ClassVar[int] = 1

    def __post_init__(self) -> None:
        given = list(self.groups) if _is_list(self.groups) else []
        if not given or not (_all_whole(given) or all(_is_group(one) for one in given)):
            raise InputError(
                "groups must be sizes of groups of columns, such as [2, 3], or groups of names or "
                f"positions of columns, such as [['lead', 'zinc'], ['ph']]; got {self.groups!r}."
            )
        if _all_whole(given):
            if min(given) < 1:
                raise InputError(f"sizes of groups must be at least 1; got {list(given)!r}.")
            groups: Any = tuple(int(one) for one in given)
        else:
            groups = tuple(
                tuple(one if isinstance(one, str) else int(one) for one in g) for g in given
            )
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "within", read_part(self.within, "within"))

    @property
    def scale_free(self) -> bool:
        """Whether it says the same whatever the units of each column are."""
        return isinstance(self.within, Free | Diagonal) or bool(self.within.scale_free)

    @property
    def words(self) -> str:
        """What it is, in the words of a methods section."""
        within = self.within
        more = (
            "" if isinstance(within, Free) else f", {getattr(within, 'words', within.name)} in each"
        )
        return f"{len(self.groups)} independent groups of columns{more}"

    def for_columns(self, names: Sequence[str]) -> BlockDiagonal:
        """Return the same with positions of columns."""
        d, groups = len(names), self.groups
        if _all_whole(groups):
            ends = np.cumsum([0, *groups])
            found = [list(range(a, b)) for a, b in pairwise(ends)]
        else:
            found = [[_position(one, list(names)) for one in group] for group in groups]
        flat = [j for group in found for j in group]
        if sorted(flat) != list(range(d)):
            raise InputError(
                f"groups must have each of the {d} columns once; they have {len(flat)}"
                + (" with repetitions." if len(set(flat)) < len(flat) else ".")
            )
        for group in found:
            if isinstance(self.within, Structure):
                self.within.for_columns([names[j] for j in group])
        return BlockDiagonal(found, self.within)

    @property
    def _blocks(self) -> list[Integers]:
        if _all_whole(self.groups):
            ends = np.cumsum([0, *self.groups])
            return [np.arange(a, b) for a, b in pairwise(ends)]
        return [np.array(group, dtype=np.intp) for group in self.groups]

    def mask(self) -> NDArray[np.bool_]:
        """Return which entries are not zero.

        Examples
        --------
        >>> import halfseen as hs
        >>> hs.BlockDiagonal([2, 1]).mask()
        array([[ True,  True, False],
               [ True,  True, False],
               [False, False,  True]])
        """
        owner = np.empty(sum(one.size for one in self._blocks), dtype=int)
        for k, block in enumerate(self._blocks):
            owner[block] = k
        return np.asarray(owner[:, None] == owner)

    def count(self, d: int) -> int:
        """Add up what is free in each group."""
        return sum(self.within.count(one.size) for one in self._blocks)

    def solve(self, S: Floats, rows: int) -> Floats:
        """Each group by itself."""
        out = np.zeros_like(S)
        for block in self._blocks:
            own = np.ix_(block, block)
            out[own] = self.within.solve(S[own], rows)
        return out

    def basis(self, covariance: Floats) -> Floats:
        """Each group by itself."""
        d, moves = len(covariance), []
        for block in self._blocks:
            own = np.ix_(block, block)
            for one in symmetric(self.within.basis(covariance[own]).T, block.size):
                whole = np.zeros((d, d))
                whole[own] = one
                moves.append(entries(whole))
        return np.array(moves).T

    def learned(self, covariance: Floats) -> dict[str, Floats]:
        """Return what each group learned."""
        if isinstance(self.within, Free | Diagonal):
            return {}
        out: dict[str, Floats] = {}
        for k, block in enumerate(self._blocks):
            more = self.within.learned(covariance[np.ix_(block, block)])
            out |= {f"{key} of group {k + 1}": value for key, value in more.items()}
        return out

    def edges(self, covariance: Floats, names: Sequence[str]) -> list[str]:
        """Ask each group."""
        if not isinstance(self.within, Structure):
            return []
        return [
            sentence
            for block in self._blocks
            for sentence in self.within.edges(
                covariance[np.ix_(block, block)], [names[j] for j in block]
            )
        ]


def _is_list(given: Any) -> bool:
    if isinstance(given, np.ndarray):
        return given.ndim > 0
    return isinstance(given, Sequence) and not isinstance(given, str | bytes)


def _is_whole(given: Any) -> bool:
    return isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)


def _all_whole(given: Any) -> bool:
    return all(map(_is_whole, given))


def _is_group(given: Any) -> bool:
    """Whether this is a list of names or positions."""
    return (
        _is_list(given)
        and len(given) > 0
        and all(isinstance(one, str) or _is_whole(one) for one in given)
    )


def _position(column: str | int, names: list[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            raise InputError(
                f"there is no column {column!r}; the columns are {', '.join(names[:8])}."
            )
        return names.index(column)
    if not 0 <= column < len(names):
        raise InputError(f"a column has a position below {len(names)}; got {column}.")
    return column
