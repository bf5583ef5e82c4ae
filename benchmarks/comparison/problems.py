"""The tasks: what is true, what hides values, and how large the tables are.

Each file in ``tasks/`` is one task. Its ``kind`` says what hides values; the rest are the numbers of
it. Where the kind is "limits", columns are natural logarithms of concentrations, with different means
and standard deviations, and one correlation for all pairs. Limits lie at the given shares of each
column: up to units the task is the same for every column, from which the Cramér–Rao limits of a
hundred columns are computed.
"""

from __future__ import annotations

import json
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import halfseen as hs

Floats = NDArray[np.float64]
TASKS = Path(__file__).with_name("tasks")
LEVEL = 0.95
# Standard deviations of the logarithms of concentrations: from half a unit, a factor of 1.6 either
# way, to two units, a factor of 7. What is put in for hidden values is right for one of them at best:
# with 30 % hidden, half the limit near 1.1, the limit over √2 near 0.55.
SPREADS = 0.5, 2.0
# Columns under linear thresholds, how many of them are always seen, and what share the others hide.
DIMENSION, ANCHORS, HIDDEN = 10, 3, 0.4


def linear_threshold(seed: int = 3) -> tuple[hs.Gaussian, hs.LinearThreshold]:
    """Ten columns, three anchors, seven thresholds in random directions that hide 40 % each."""
    rng = np.random.default_rng(seed)
    lags = np.subtract.outer(np.arange(DIMENSION), np.arange(DIMENSION))
    truth = hs.Gaussian(rng.normal(size=DIMENSION), 0.5 ** np.abs(lags))
    V = rng.normal(size=(DIMENSION - ANCHORS, DIMENSION))
    spread = np.sqrt(np.einsum("ij,jk,ik->i", V, truth.covariance, V))
    b = V @ truth.mean + spread * ndtri(1.0 - HIDDEN)
    return truth, hs.LinearThreshold.anchored(range(ANCHORS), V, b)


@dataclass(frozen=True)
class Size:
    """How large a task's tables are, and how many of them there are."""

    d: int
    n: int
    tables: int


@dataclass(frozen=True)
class Problem:
    """A task at one size."""

    name: str
    title: str
    kind: str
    size: Size
    numbers: dict[str, Any]

    @cached_property
    def truth(self) -> hs.Gaussian:
        """The Gaussian behind the tables."""
        return KINDS[self.kind].truth(self)

    @property
    def known(self) -> dict[str, Any]:
        """What tools are told, beside the tables."""
        more = KINDS[self.kind].known(self)
        return {"kind": self.kind, **vars(self.size), "level": LEVEL, **more}

    def write(self, folder: Path) -> None:
        """Write the tables, and what tools may know of them."""
        kind = KINDS[self.kind]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "task.json").write_text(json.dumps(self.known), encoding="utf-8")
        for number in range(self.size.tables):
            rng = np.random.default_rng([self.size.d, self.size.n, number])
            path = folder / str(number)
            path.mkdir(exist_ok=True)
            for name, array in kind.arrays(self, rng).items():
                np.asfortranarray(array).ravel(order="F").tofile(path / f"{name}.f64")


class Kind(ABC):
    """A way in which values are hidden."""

    def truth(self, problem: Problem) -> hs.Gaussian:
        """Return the Gaussian of the task."""
        d, rho = problem.size.d, problem.numbers["correlation"]
        return hs.Gaussian(np.linspace(-1.0, 1.0, d), (1.0 - rho) * np.eye(d) + rho)

    def known(self, problem: Problem) -> dict[str, Any]:
        """Return what tools are told, beside the tables."""
        return {}

    @abstractmethod
    def arrays(self, problem: Problem, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table."""


class Limits(Kind):
    """Values below or above limits; on which side is known."""

    def truth(self, problem: Problem) -> hs.Gaussian:
        """Return columns that differ in mean and spread."""
        equal, spread = super().truth(problem), np.geomspace(*SPREADS, problem.size.d)
        return hs.Gaussian(equal.mean, equal.covariance * np.outer(spread, spread))

    def known(self, problem: Problem) -> dict[str, Any]:
        """Return the limits of each column, or nothing where rows differ."""
        lower, upper = self._limits(problem, None)
        return {
            "lower_limits": None if lower is None else lower.tolist(),
            "upper_limits": None if upper is None else upper.tolist(),
        }

    def arrays(self, problem: Problem, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw complete rows, and say of each cell between what it lies."""
        Y = problem.truth.sample(problem.size.n, rng)
        return _censored(Y, *self._limits(problem, rng))

    def _limits(self, problem: Problem, rng: Any) -> tuple[Floats | None, Floats | None]:
        return (
            _quantile(problem, problem.numbers.get("below")),
            _quantile(
                problem, 1.0 - problem.numbers["above"] if "above" in problem.numbers else None
            ),
        )


class LimitsByRow(Limits):
    """Each row comes from one of several laboratories, which have limits of their own."""

    def _limits(self, problem: Problem, rng: Any) -> tuple[Floats | None, Floats | None]:
        if rng is None:
            return None, None
        shares = rng.choice(problem.numbers["below"], size=(problem.size.n, 1))
        return _quantile(problem, shares), None


def _quantile(problem: Problem, share: Any) -> Floats | None:
    """Return where each column has a share of its values below, or nothing without one."""
    if share is None:
        return None
    return problem.truth.mean + problem.truth.standard_deviations * ndtri(share)


def _censored(Y: Floats, lower: Floats | None, upper: Floats | None) -> dict[str, Floats]:
    below = np.zeros(Y.shape, dtype=bool) if lower is None else lower > Y
    above = np.zeros(Y.shape, dtype=bool) if upper is None else upper < Y
    ends = {"lower": np.where(below, -np.inf, Y), "upper": np.where(above, np.inf, Y)}
    if lower is not None:
        ends["upper"] = np.where(below, lower, ends["upper"])
    if upper is not None:
        ends["lower"] = np.where(above, upper, ends["lower"])
    return {"complete": Y, "values": np.where(below | above, np.nan, Y), **ends}


class Threshold(Kind):
    """Linear thresholds hide values; three columns are always seen."""

    def truth(self, problem: Problem) -> hs.Gaussian:
        """Return the Gaussian of the linear-threshold benchmarks."""
        return linear_threshold()[0]

    def known(self, problem: Problem) -> dict[str, Any]:
        """Return the thresholds; and the covariance, for a method that is told it."""
        truth, rule = linear_threshold()
        return {"V": rule.V.tolist(), "b": rule.b.tolist(), "covariance": truth.covariance.tolist()}

    def arrays(self, problem: Problem, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table."""
        return _hidden_by(linear_threshold()[1], problem, rng)


class Winner(Kind):
    """Only the largest value of each row is seen; columns are independent, and that is known."""

    def truth(self, problem: Problem) -> hs.Gaussian:
        """Return independent columns."""
        return hs.Gaussian(problem.numbers["mean"], np.diag(problem.numbers["variance"]))

    def arrays(self, problem: Problem, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table."""
        return _hidden_by(hs.SelfSelection(), problem, rng)


def _hidden_by(rule: Any, problem: Problem, rng: np.random.Generator) -> dict[str, Floats]:
    X, Y = hs.simulate(problem.truth, rule, problem.size.n, rng, return_complete=True)
    return {"complete": Y, "values": X}


class Truncated(Kind):
    """Rows outside a set were never written down."""

    def known(self, problem: Problem) -> dict[str, Any]:
        """Return the set's name."""
        return {"set": problem.numbers["set"]}

    def arrays(self, problem: Problem, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw rows until enough of them lie in the set."""
        contains, kept, have = SETS[problem.numbers["set"]], [], 0
        while have < problem.size.n:
            Y = problem.truth.sample(problem.size.n, rng)
            kept.append(Y[contains(Y)])
            have += len(kept[-1])
        return {"values": np.concatenate(kept)[: problem.size.n]}


def in_box(rows: Floats) -> NDArray[np.bool_]:
    """Tell which rows are positive everywhere."""
    return (rows > 0.0).all(axis=1)


def in_odd_set(rows: Floats) -> NDArray[np.bool_]:
    """Tell which rows lie in one of two shells: a set that is not convex, nor in one piece."""
    left, right = (np.linalg.norm(rows - centre, axis=1) for centre in (-1.5, 1.5))
    return ((left > 0.5) & (left < 1.5)) | ((right > 0.5) & (right < 1.5))


SETS = {"box": in_box, "two shells": in_odd_set}
KINDS: dict[str, Kind] = {
    "limits": Limits(),
    "limits by row": LimitsByRow(),
    "linear threshold": Threshold(),
    "winner": Winner(),
    "truncated": Truncated(),
}


def problems() -> Iterator[Problem]:
    """Read the tasks, kind after kind, each with its smallest tables first."""
    kinds = list(KINDS)
    tasks = [list(read(path)) for path in sorted(TASKS.glob("*.toml"))]
    for sizes in sorted(tasks, key=lambda sizes: kinds.index(sizes[0].kind)):
        yield from sizes


def task_of(name: str, size: Size) -> Problem:
    """Return a task at another size."""
    return replace(next(problem for problem in problems() if problem.name == name), size=size)


def read(path: Path) -> Iterator[Problem]:
    """Read one task: a problem for each of its sizes."""
    numbers = tomllib.loads(path.read_text(encoding="utf-8"))
    title, kind, sizes = numbers.pop("title"), numbers.pop("kind"), numbers.pop("sizes")
    for size in sizes:
        yield Problem(path.stem, title, kind, Size(**size), numbers)
