"""Regressions by us and by others: the same tables, each tool in a process of its own.

Tables are written and answers read as in the comparison of means and covariances. An answer's ``mean``
are coefficients, regressor by regressor of each outcome in turn (then cut points, where outcomes are
ordered), its ``covariance`` that of residuals. Errors are over Cramér–Rao limits: roots of the mean,
over tables and parameters, of squared errors over what the limit allows.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.comparison.judge import multiple
from benchmarks.comparison.processes import Outcome, Tool, run
from benchmarks.registry import Row, task
from benchmarks.regression_limits import heckman_limits, ordered_limits, tobit_limits
from benchmarks.regression_tables import equicorrelated

Floats = NDArray[np.float64]
HERE = Path(__file__).parent
LEVEL = 0.95
CAP, QUICK_CAP = 300.0, 20.0
# From so many outcomes on, the fastest peer that maximises the same likelihood takes so many times as
# long at least.
FASTER, FROM_OUTCOMES = 20.0, 3
# Nobody is sharper by more than this, on the same tables.
NEAR = 1.03
# Rows of the population from which limits and shares are computed.
POPULATION = 20_000


@dataclass(frozen=True)
class Design(ABC):
    """A kind of regression at one size: ``d`` outcomes, ``n`` rows, and how many tables."""

    d: int
    n: int
    tables: int

    kind = ""

    @property
    def known(self) -> dict[str, Any]:
        """What tools are told, beside the tables."""
        return {"kind": self.kind, "d": self.d, "n": self.n, "tables": self.tables, "level": LEVEL}

    @property
    @abstractmethod
    def truth(self) -> tuple[Floats, Floats]:
        """True coefficients, in a row, and covariance of residuals."""

    @cached_property
    @abstractmethod
    def limit(self) -> tuple[Floats, Floats]:
        """Cramér–Rao limits of both, of n rows; NaN for what is known."""

    @abstractmethod
    def arrays(self, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table."""

    def write(self, folder: Path) -> None:
        """Write the tables, and what tools may know of them."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "task.json").write_text(json.dumps(self.known), encoding="utf-8")
        for number in range(self.tables):
            rng = np.random.default_rng([self.d, self.n, number, 30])
            path = folder / str(number)
            path.mkdir(exist_ok=True)
            for name, array in self.arrays(rng).items():
                np.asfortranarray(array).ravel(order="F").tofile(path / f"{name}.f64")


def regressors(rng: np.random.Generator, n: int) -> Floats:
    """Draw a normal regressor, a skewed one and one of 0 and 1, with an intercept before them."""
    X = rng.normal(size=(n, 3))
    X[:, 1], X[:, 2] = np.exp(0.5 * X[:, 1]), X[:, 2] > 0.4
    return np.column_stack([np.ones(n), X])


class Tobit(Design):
    """Outcomes that go together, hidden below limits: 20 % of the first to 50 % of the last."""

    kind = "tobit"

    @property
    def truth(self) -> tuple[Floats, Floats]:
        """Coefficients that differ by outcome, and correlations of one half."""
        B = np.random.default_rng(self.d).normal(size=(self.d, 4)) / 2.0
        return B.ravel(), equicorrelated(self.d, 0.5)

    @cached_property
    def limits(self) -> Floats:
        """Where each outcome is no longer seen."""
        rng = np.random.default_rng([self.d, 31])
        W = regressors(rng, POPULATION)
        Y = W @ self.truth[0].reshape(self.d, 4).T + rng.normal(size=(POPULATION, self.d))
        shares = np.linspace(0.2, 0.5, self.d) if self.d > 1 else [0.35]
        return np.array([np.quantile(y, share) for y, share in zip(Y.T, shares, strict=True)])

    @property
    def known(self) -> dict[str, Any]:
        """What tools are told: limits too."""
        return {**super().known, "limits": self.limits.tolist()}

    @cached_property
    def limit(self) -> tuple[Floats, Floats]:
        """Of a best unbiased estimate."""
        rng = np.random.default_rng([self.d, 32])
        B = self.truth[0].reshape(self.d, 4)
        return tobit_limits(B, 0.5, self.limits, regressors(rng, POPULATION), self.n, rng)

    def arrays(self, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table."""
        B, S = self.truth
        W = regressors(rng, self.n)
        Y = W @ B.reshape(self.d, 4).T + rng.normal(size=(self.n, self.d)) @ np.linalg.cholesky(S).T
        return {"regressors": W[:, 1:], "values": np.where(self.limits > Y, np.nan, Y)}


class Heckman(Design):
    """An outcome that is seen where an index is positive; one regressor stands in the index alone."""

    kind = "heckman"

    @property
    def truth(self) -> tuple[Floats, Floats]:
        """Coefficients of the outcome, then of the index."""
        beta, gamma = [1.0, 0.5, -0.3, 0.0], [0.0, 0.4, 0.2, 0.8]
        return np.array(beta[:3] + gamma), np.array([[2.25, 0.75], [0.75, 1.0]])

    @cached_property
    def limit(self) -> tuple[Floats, Floats]:
        """Of a best unbiased estimate."""
        rng = np.random.default_rng(33)
        return heckman_limits(*self.truth, regressors(rng, 10 * POPULATION), self.n, rng)

    def arrays(self, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table: of the index the sign is shown, as 0 and 1."""
        weights, S = self.truth
        W = regressors(rng, self.n)
        e = rng.normal(size=(self.n, 2)) @ np.linalg.cholesky(S).T
        wage, works = W[:, :3] @ weights[:3] + e[:, 0], W @ weights[3:] + e[:, 1] > 0.0
        values = np.column_stack([np.where(works, wage, np.nan), works])
        return {"regressors": W[:, 1:], "values": values}


class Ordered(Design):
    """Categories of a latent number, of five."""

    kind = "ordered"

    @property
    def truth(self) -> tuple[Floats, Floats]:
        """Slopes, then cut points."""
        return np.array([0.7, -0.4, 0.5, *ndtri([0.15, 0.4, 0.6, 0.85])]), np.eye(1)

    @cached_property
    def limit(self) -> tuple[Floats, Floats]:
        """Of a best unbiased estimate."""
        W = regressors(np.random.default_rng(34), 10 * POPULATION)
        return ordered_limits(self.truth[0], W[:, 1:], self.n)

    def arrays(self, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw a table: categories 0 to 4."""
        X, (weights, _) = regressors(rng, self.n)[:, 1:], self.truth
        code = np.searchsorted(weights[3:], X @ weights[:3] + rng.normal(size=self.n))
        return {"regressors": X, "values": code[:, None].astype(float)}


TABLES: dict[str, tuple[Design, ...]] = {
    "tobit": (Tobit(1, 1000, 20), Tobit(3, 1000, 6), Tobit(5, 1000, 3), Tobit(20, 1000, 3)),
    "heckman": (Heckman(2, 1000, 20), Heckman(2, 10_000, 5)),
    "ordered": (Ordered(1, 1000, 20), Ordered(1, 10_000, 5)),
}


@task
def tobit(quick: bool) -> Iterator[Row]:
    """Give tables of censored outcomes to everyone who can do something with them."""
    yield from compared("tobit", quick)


@task
def heckman(quick: bool) -> Iterator[Row]:
    """Give tables of selected outcomes to everyone."""
    yield from compared("heckman", quick)


@task
def ordered(quick: bool) -> Iterator[Row]:
    """Give tables of ordered categories to everyone."""
    yield from compared("ordered", quick)


def regression_tools(kind: str) -> list[Tool]:
    """Read the tools that can do a kind of task, ours first."""
    order = ("ours", "peer", "written", "baseline")
    found = []
    for path in sorted((HERE / "regression_tools").glob("*.toml")):
        told = tomllib.loads(path.read_text(encoding="utf-8"))
        lists = {name: tuple(told.pop(name)) for name in ("kinds", "needs") if name in told}
        found.append(Tool(path.stem, **told, **lists))
    return sorted((t for t in found if kind in t.kinds), key=lambda tool: order.index(tool.group))


def compared(kind: str, quick: bool) -> Iterator[Row]:
    """Run everyone on every size of a task, and judge the answers."""
    for design in TABLES[kind]:
        if quick:
            if design.d > 3 or design.n > 1000:
                continue
            design = type(design)(design.d, design.n, 2)
        with tempfile.TemporaryDirectory() as scratch:
            design.write(Path(scratch))
            found = {
                tool: _outcome(tool, design, Path(scratch), QUICK_CAP if quick else CAP)
                for tool in regression_tools(kind)
            }
        yield from rows_of(design, found)


def _outcome(tool: Tool, design: Design, folder: Path, cap: float) -> Outcome:
    if tool.most_columns is not None and design.d > tool.most_columns:
        return Outcome(trouble=f"not started: {tool.beyond}")
    return Outcome(trouble=tool.lacks()) if tool.lacks() else run(tool, folder, cap, 0)


@dataclass(frozen=True)
class Judged:
    """Errors over their limits, coverage of coefficients, and seconds for one table."""

    coefficients: float
    residuals: float | None
    coverage: float | None
    seconds: float


def judged(design: Design, answers: list[dict[str, Any]]) -> Judged:
    """Judge some answers."""
    (weights, S), (of_weights, of_residuals) = design.truth, design.limit
    gap = np.array([np.ravel(a["mean"]) for a in answers], dtype=float) - weights
    low = np.tril_indices(len(S))
    rest = np.array([a["covariance"] for a in answers], dtype=float)[:, *low] - S[low]
    scaled = rest / of_residuals[low]
    given = np.isfinite(scaled).all(axis=0)
    coverage = None
    if all(a.get("mean_interval") is not None for a in answers):
        ends = np.array([[np.ravel(e) for e in a["mean_interval"]] for a in answers], dtype=float)
        inside = (ends[:, 0] <= weights) & (weights <= ends[:, 1])
        coverage = float(inside[np.isfinite(ends).all(axis=1)].mean())
    return Judged(
        float(np.sqrt(np.mean((gap / of_weights) ** 2))),
        float(np.sqrt(np.mean(scaled[:, given] ** 2))) if given.any() else None,
        coverage,
        float(np.median([a["seconds"] for a in answers])),
    )


def rows_of(design: Design, found: dict[Tool, Outcome]) -> Iterator[Row]:
    """Say what became of each tool, and whether nobody is sharper and no exact peer nearly as fast."""
    where = f"{design.kind}, {design.d} outcome{'s' * (design.d > 1)}, n = {design.n}"
    ours = next(outcome for tool, outcome in found.items() if tool.group == "ours")
    exact: list[tuple[float, str]] = []
    for tool, outcome in found.items():
        what = f"{where}: {tool.title}"
        if not outcome.answers:
            yield Row(what, str(outcome.trouble), "")
            continue
        tables = {answer["table"] for answer in outcome.answers}
        one = judged(design, outcome.answers)
        # Ours of all tables: what a process does once is in the first.
        slower = one.seconds / judged(design, ours.answers).seconds if ours.answers else None
        yield Row(what, _said(tool, one, slower, len(tables), design.tables), "")
        if tool.group == "peer" and tool.uses == "the data" and slower is not None:
            exact.append((slower, tool.title))
    yield from _targets(where, design, found, ours, exact)


def _said(tool: Tool, one: Judged, slower: float | None, tables: int, of: int) -> str:
    cost = f"{one.seconds:.2g} s" if tool.group == "ours" else f"time × {multiple(slower)}"
    coverage = f", coverage {one.coverage:.2f}" if one.coverage is not None else ""
    some = f" ({tables} of {of} tables)" if tables < of else ""
    return (
        f"coefficients {multiple(one.coefficients)}, residuals {multiple(one.residuals)}"
        f"{coverage}, {cost}{some}"
    )


def _targets(
    where: str,
    design: Design,
    found: dict[Tool, Outcome],
    ours: Outcome,
    exact: list[tuple[float, str]],
) -> Iterator[Row]:
    ratios = []
    for tool, outcome in found.items():
        tables = {answer["table"] for answer in outcome.answers}
        same = [answer for answer in ours.answers if answer["table"] in tables]
        if tool.group == "peer" and same:
            mine, other = judged(design, same), judged(design, outcome.answers)
            ratios.append((mine.coefficients / other.coefficients, tool.title))
    if ratios:
        ratio, title = max(ratios)
        yield Row(
            f"{where}: our error of coefficients / the lowest of the peers ({title})",
            f"{ratio:.3f}",
            f"at most {NEAR}",
            ratio <= NEAR,
        )
    if exact:
        slower, title = min(exact)
        due = design.kind == "tobit" and design.d >= FROM_OUTCOMES
        yield Row(
            f"{where}: time of the fastest peer with the same likelihood ({title}) / ours",
            multiple(slower),
            f"at least {FASTER:.0f}" if due else "",
            slower >= FASTER if due else None,
        )
