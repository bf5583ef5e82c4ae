"""The harness of the ledger: claims by name, what they measure, the slopes and bounds that decide."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from halfseen.errors import InputError

Floats = NDArray[np.float64]
Lines = Mapping[str, Sequence[float]]


class Kind(enum.Enum):
    """Whose claim it is, and what is said of it when the experiment agrees."""

    CLAIM = "holds"
    ERRATUM = "holds as corrected"
    TRAP = "holds, a trap"
    BEYOND = "holds, beyond the paper"


FAILS = "FAILS"
# Standard errors that a measured figure may be off by: one false alarm in 16 000 for a normal.
ALLOWED = 4.0


@dataclass(frozen=True)
class Curve:
    """What was measured along an axis, for the figure of a row.

    Attributes
    ----------
    x : sequence of float
    lines : mapping of str to sequence of float
        Measured values by label.
    across, up : str
        Words for the axes.
    claimed : mapping of str to sequence of float
        What the claim says at the same places, drawn as dashes.
    linear : str
        Axes that are not logarithmic: "", "x", "y" or "xy".
    """

    x: Sequence[float]
    lines: Lines
    across: str
    up: str
    claimed: Lines | None = None
    linear: str = ""


@dataclass(frozen=True)
class Measured:
    """What an experiment found: in words, whether that is within the tolerance, and the curve."""

    text: str
    holds: bool
    curve: Curve | None = None


Experiment = Callable[[bool], Measured]


@dataclass(frozen=True)
class Claim:
    """One row of the ledger.

    Attributes
    ----------
    name : str
        ``group/row``; a group can be run by its name.
    where : str
        Where the paper says it.
    says : str
        The claim, in our words.
    experiment : str
        What is done to check it.
    tolerance : str
        What decides, and why it is that wide.
    kind : Kind
    run : callable
        ``run(quick)`` makes the experiment.
    """

    name: str
    where: str
    says: str
    experiment: str
    tolerance: str
    kind: Kind
    run: Experiment


@dataclass(frozen=True)
class Entry:
    """A claim with what was measured, the verdict and the time."""

    claim: Claim
    measured: str
    holds: bool
    seconds: float
    curve: Curve | None = None

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        return self.claim.kind.value if self.holds else FAILS


CLAIMS: dict[str, Claim] = {}


def claim(
    name: str, where: str, kind: Kind = Kind.CLAIM, words: Mapping[str, str] | None = None
) -> Callable[[Experiment], Experiment]:
    """Make a row of the ledger of a function: its docstring has the claim.

    After the first line the docstring has paragraphs that begin with ``Says:``, ``Experiment:`` and
    ``Tolerance:``. ``{name}`` in them stands for the word of that name, for what rows share.
    """

    def register(run: Experiment) -> Experiment:
        if name in CLAIMS:
            raise ValueError(f"two rows are called {name}")
        text = run.__doc__ or ""  # none under python -OO
        for key, word in (words or {}).items():
            text = text.replace(f"{{{key}}}", word)
        paragraphs = [" ".join(part.split()).partition(": ") for part in text.split("\n\n")]
        parts = {head: rest for head, _, rest in paragraphs}
        says, experiment, tolerance = (
            parts.get(head, "") for head in ("Says", "Experiment", "Tolerance")
        )
        CLAIMS[name] = Claim(name, where, says, experiment, tolerance, kind, run)
        return run

    return register


def choose(names: Sequence[str]) -> list[Claim]:
    """Return the rows of these names or groups, in the order of the ledger; all for no names."""
    groups = {name.split("/")[0] for name in CLAIMS}
    for name in names:
        if name not in CLAIMS and name not in groups:
            raise InputError(
                f"there is no row or group {name!r} in the ledger. Groups: "
                f"{', '.join(sorted(groups))}; halfseen reproduce --list shows every row."
            )
    wanted = set(names)
    return [
        row
        for name, row in CLAIMS.items()
        if not wanted or name in wanted or name.split("/")[0] in wanted
    ]


def check_claim(row: Claim, quick: bool = False) -> Entry:
    """Make the experiment of a row. One that breaks is a row that fails, with the error as text."""
    start = time.perf_counter()
    try:
        found = row.run(quick)
    except Exception as error:
        found = Measured(f"stopped by {type(error).__name__}: {error}", False)
    return Entry(row, found.text, bool(found.holds), time.perf_counter() - start, found.curve)


def listed(values: Iterable[float], form: str = ".3f") -> str:
    """Return figures as text, with commas between them."""
    return ", ".join(format(value, form) for value in values)


class Estimated(NamedTuple):
    """A figure with its standard error."""

    value: float
    error: float

    def near(self, expected: float, slack: float = 0.0) -> bool:
        """Whether it is what is expected, within ``ALLOWED`` standard errors and a slack."""
        return abs(self.value - expected) <= ALLOWED * self.error + slack

    def at_most(self, limit: float) -> bool:
        """Whether it is not above a limit by more than ``ALLOWED`` standard errors."""
        return self.value <= limit + ALLOWED * self.error

    def __str__(self) -> str:
        return f"{self.value:.2f} (± {self.error:.2f})"


def average(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean of draws along the first axis, and its standard error."""
    return values.mean(axis=0), values.std(axis=0) / math.sqrt(len(values))


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the exponent of a power law: the least-squares slope of log y against log x."""
    return float(np.polyfit(np.log(np.asarray(x)), np.log(np.asarray(y)), 1)[0])


def slope_error(x: Sequence[float], relative: float | Sequence[float]) -> float:
    """Return the standard error of that slope from the relative standard error of each y, or of all."""
    t = np.log(np.asarray(x, dtype=float))
    weight = (t - t.mean()) / ((t - t.mean()) ** 2).sum()
    return float(np.sqrt(((weight * np.asarray(relative)) ** 2).sum()))


def root_mean_square(values: ArrayLike) -> float:
    """Return √(mean of squares), whose relative error is 1/√(2k) for k independent normals."""
    return float(np.sqrt(np.mean(np.square(values))))


def relative_error(values: ArrayLike) -> float:
    """Return the relative standard error of the root mean square of these errors, from their spread."""
    squares = np.square(values)
    return float(squares.std(ddof=1) / math.sqrt(squares.size) / (2.0 * squares.mean()))


def ratio(values: ArrayLike) -> Estimated:
    """Return the root mean square of errors over their predicted sizes, which should be one."""
    return Estimated(root_mean_square(values), relative_error(values))


def heights(errors: Sequence[ArrayLike]) -> list[float]:
    """Return the root mean square of the errors at each place."""
    return [root_mean_square(some) for some in errors]


def exponent(x: Sequence[float], errors: Sequence[ArrayLike]) -> Estimated:
    """Return the exponent of the root mean square of ``errors`` in ``x``."""
    error = slope_error(x, [relative_error(some) for some in errors])
    return Estimated(slope(x, heights(errors)), error)


def power_law(x: Sequence[float], y: Sequence[float], power: float) -> list[float]:
    """Return the curve of this power through the middle of y, for a figure."""
    level = np.exp(np.mean(np.log(y)) - power * np.mean(np.log(x)))
    return [float(level * value**power) for value in x]


def power_law_from(x: Sequence[float], first: float, power: float) -> list[float]:
    """Return the curve of this power through the first place, for a figure."""
    return [first * (value / x[0]) ** power for value in x]


@dataclass(frozen=True)
class Sweep:
    """Errors of several tables at each place of an axis, by name: a power law each.

    Attributes
    ----------
    x : sequence of float
    errors : mapping of str to sequence of array
    """

    x: Sequence[float]
    errors: Mapping[str, Sequence[ArrayLike]]

    @property
    def lines(self) -> dict[str, list[float]]:
        """Root mean square errors along the axis."""
        return {name: heights(some) for name, some in self.errors.items()}

    @property
    def powers(self) -> dict[str, Estimated]:
        """The exponents of these lines."""
        return {name: exponent(self.x, some) for name, some in self.errors.items()}

    def all_near(self, power: float) -> bool:
        """Whether every exponent is this one."""
        return all(found.near(power) for found in self.powers.values())

    def told(self, form: str) -> str:
        """Put each into words: ``form`` has {name}, {power}, and {first} and {last} of its line."""
        return "; ".join(
            form.format(name=name, power=power, first=line[0], last=line[-1])
            for (name, line), power in zip(self.lines.items(), self.powers.values(), strict=True)
        )
