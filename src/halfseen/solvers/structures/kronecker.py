"""Several outcomes at several times: the covariance of outcomes, times that of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.errors import InputError
from halfseen.solvers.full_information.m_step import CovarianceStructure, Diagonal, Free, with_floor
from halfseen.solvers.structures.base import Structure, in_words, read_part
from halfseen.theta import entries, symmetric

Floats = NDArray[np.float64]

# Rounds of one side after the other, and when neither moves any more.
MOST_ROUNDS, CLOSE_ENOUGH = 1000, 1e-13


@in_words
@dataclass(frozen=True, repr=False)
class Kronecker(Structure):
    """Outcomes that were measured several times: Σ = A ⊗ B.

    A is the covariance of the outcomes, and B that of the times. Only their product is known: B is
    stated so that its diagonal is 1 on average. As a text "kronecker(2, 4)" or
    "kronecker(2, 4, of_times=ar1)".

    Parameters
    ----------
    outcomes, times : int
        How many there are of each.
    of_outcomes, of_times : structure or str
        What A and B may be: "free", "diagonal", and structures of repeated measures.
    times_first : bool
        The order of the columns: the outcomes of the first time, then those of the second, and so on. By
        default all times of the first outcome come first.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> lags = abs(np.subtract.outer(np.arange(3), np.arange(3)))
    >>> truth = hs.Gaussian(np.zeros(6), np.kron([[1.0, 0.5], [0.5, 2.0]], 0.6**lags))
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(truth, rule, 500)
    >>> fit = hs.fit(X, rule, covariance=hs.Kronecker(2, 3, of_times="ar1"), random_state=0)
    >>> fit.parameters, fit.structure["outcomes"].value.shape
    (10, (2, 2))
    """

    outcomes: int
    times: int
    of_outcomes: Any = "free"
    of_times: Any = "free"
    times_first: bool = False
    word: ClassVar[str] = "kronecker"
    plain: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "outcomes", whole_number("outcomes", self.outcomes))
        object.__setattr__(self, "times", whole_number("times", self.times))
        if not isinstance(self.times_first, bool):
            raise InputError(f"times_first must be True or False; got {self.times_first!r}.")
        for name, d in (("of_outcomes", self.outcomes), ("of_times", self.times)):
            side = read_part(getattr(self, name), name)
            if isinstance(side, Structure):
                side = side.for_columns([f"{name} {k}" for k in range(d)])
            object.__setattr__(self, name, side)

    @property
    def scale_free(self) -> bool:
        """Never: columns of one outcome share its units."""
        return False

    @property
    def _sides(self) -> tuple[CovarianceStructure, CovarianceStructure]:
        return self.of_outcomes, self.of_times

    @property
    def words(self) -> str:
        """What it is, in the words of a methods section."""
        one, other = (
            side.words if isinstance(side, Structure) else side.name for side in self._sides
        )
        return f"{self.outcomes} outcomes ({one}) ⊗ {self.times} times ({other})"

    def for_columns(self, names: Sequence[str]) -> Structure:
        """Count the columns."""
        if len(names) != self.outcomes * self.times:
            raise InputError(
                f"{self.outcomes} outcomes at {self.times} times are {self.outcomes * self.times} "
                f"columns; got {len(names)}."
            )
        return self

    def count(self, d: int) -> int:
        """Both sides have a scale, of which the product is known alone."""
        return self.of_outcomes.count(self.outcomes) + self.of_times.count(self.times) - 1

    def _cube(self, S: Floats) -> Floats:
        """Return S by outcome and time of its row, and then of its column."""
        if self.times_first:
            shape = self.times, self.outcomes, self.times, self.outcomes
            return S.reshape(shape).transpose(1, 0, 3, 2)
        return S.reshape(self.outcomes, self.times, self.outcomes, self.times)

    def _joined(self, A: Floats, B: Floats) -> Floats:
        return np.asarray(np.kron(B, A) if self.times_first else np.kron(A, B))

    def _parts(self, covariance: Floats) -> tuple[Floats, Floats]:
        """Return A and B, the diagonal of B being 1 on average."""
        cube = self._cube(covariance)
        A = np.einsum("atbt->ab", cube) / self.times
        B = np.einsum("atas->ts", cube) / np.trace(A)
        return A, B

    def solve(self, S: Floats, rows: int) -> Floats:
        """Find each side given the other, in turn."""
        S = with_floor(S)
        cube = self._cube(S)
        A, B = self._parts(S)
        B = self.of_times.solve(B, rows)
        for _ in range(MOST_ROUNDS):
            before = A, B
            A = self.of_outcomes.solve(
                np.einsum("atbs,ts->ab", cube, np.linalg.inv(B)) / self.times, rows
            )
            B = self.of_times.solve(
                np.einsum("atbs,ab->ts", cube, np.linalg.inv(A)) / self.outcomes, rows
            )
            scale = np.trace(B) / self.times
            A, B = A * scale, B / scale
            moved = [
                np.abs(x - y).max() / np.abs(x).max() for x, y in zip((A, B), before, strict=True)
            ]
            if max(moved) < CLOSE_ENOUGH:
                break
        return self._joined(A, B)

    def basis(self, covariance: Floats) -> Floats:
        """Move one side, or the other; B but for its scale, which A has already."""
        A, B = self._parts(covariance)
        of_outcomes = symmetric(self.of_outcomes.basis(A).T, self.outcomes)
        slopes = self.of_times.basis(B)
        own = np.linalg.lstsq(slopes, entries(B), rcond=None)[0]
        # The last rows of V' are orthogonal to the direction of B itself.
        across = np.linalg.svd(own[None])[2][1:]
        of_times = symmetric(across @ slopes.T, self.times)
        moves = [self._joined(one, B) for one in of_outcomes]
        moves += [self._joined(A, one) for one in of_times]
        return entries(np.array(moves)).T

    def learned(self, covariance: Floats) -> dict[str, Floats]:
        """Return A and B, and what their own structures learned."""
        A, B = self._parts(covariance)
        out = {"outcomes": A, "times": B}
        for name, side, part in (("outcomes", self.of_outcomes, A), ("times", self.of_times, B)):
            if not isinstance(side, Free | Diagonal):
                more = side.learned(part)
                out |= {
                    f"{key} of {name}": value for key, value in more.items() if "correlation" in key
                }
        return out

    def edges(self, covariance: Floats, names: Sequence[str]) -> list[str]:
        """Ask each side."""
        out = []
        for side, part in zip(self._sides, self._parts(covariance), strict=True):
            if isinstance(side, Structure):
                out += side.edges(part, names)
        return out
