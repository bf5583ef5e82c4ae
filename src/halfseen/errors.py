"""Typed errors and warnings, how what to try is spelled, and where a warning points.

An error says what was expected, what came (row, column, value) and what to try. Whoever reads a table
from elsewhere may count its rows otherwise, so the place of a cell is kept beside the sentence.
"""

from __future__ import annotations

import inspect
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class HalfseenError(Exception):
    """Base of every error that halfseen raises on purpose.

    Parameters
    ----------
    sentence : str
        What is wrong, and what to try.
    row : int, optional
        Row of the table that it is about, counted from 0.
    column : str, optional
        Name of the column that it is about, where a row is given.

    Attributes
    ----------
    where : str
        What the row is called: ``"row 7"``, or ``"row 7 (line 9)"`` where it was read from a file.
    """

    def __init__(
        self, sentence: str = "", row: int | None = None, column: str | None = None
    ) -> None:
        super().__init__(sentence)
        self.sentence, self.column = sentence, column
        self.row = None if row is None else int(row)
        self.where = "" if row is None else f"row {row}"

    def __str__(self) -> str:
        if self.row is None:
            return self.sentence
        column = "" if self.column is None else f", column {self.column}"
        return f"{self.where}{column}: {self.sentence}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def count_from(self, first: int) -> None:
        """Count the row from the first of a table of which only a part was looked at."""
        if self.row is not None:
            self.row += first
            self.where = f"row {self.row}"


class InputError(HalfseenError, ValueError):
    """The arguments or the data cannot be used as they are."""


class ContradictionError(InputError):
    """The data contain something that the stated missingness model rules out."""


class NotIdentifiedError(InputError):
    """The data say nothing about a parameter that was asked for."""


class RarelyHitError(HalfseenError, RuntimeError):
    """A set was hit too rarely by the sampler for a gradient to be estimated."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C was pressed, and how far the work had come was written down first."""


class HalfseenWarning(UserWarning):
    """Base of every warning of halfseen."""


class ConvergenceWarning(HalfseenWarning):
    """A solver stopped before, or at the edge of, what it was asked to reach."""


class AssumptionWarning(HalfseenWarning):
    """Something in the input was read in one of several possible ways."""


class ApproximationWarning(HalfseenWarning):
    """A result is less exact than usual, and the message says by how much."""


# Whether people are spoken to in options of the command line.
_in_options = False
# Options that are not named like the arguments.
_OPTIONS = {
    "missing_at_random=": "--blank random",
    "transforms=": "--transform",
    "client=": "--scheduler",
    "companions=False": "--no-companions",
    "resume=True": "--resume",
    "flags=": "--flag",
    "limits=": "--limit",
}


@contextmanager
def told_in_options() -> Iterator[None]:
    """Spell what to try as options of the command line, until the end of the block."""
    global _in_options
    before, _in_options = _in_options, True
    try:
        yield
    finally:
        _in_options = before


def spelled(python: str, option: str) -> str:
    """Choose between two ways of spelling the same, for whoever reads the message."""
    return option if _in_options else python


def argument(name: str, *value: Any) -> str:
    """Spell an argument, with or without a value, for whoever reads the message.

    Examples
    --------
    >>> from halfseen.errors import argument, told_in_options
    >>> argument("index", "site"), argument("companions", False)
    ("index='site'", 'companions=False')
    >>> with told_in_options():
    ...     argument("index", "site"), argument("companions", False)
    ('--index site', '--no-companions')
    """
    python = f"{name}={', '.join(map(repr, value))}"
    plain = _OPTIONS.get(f"{name}=", f"--{name.replace('_', '-')}")
    option = " ".join([plain, *(shlex.quote(str(one)) for one in value)])
    return spelled(python, _OPTIONS.get(python, option))


def warn(text: str, category: type[HalfseenWarning] = AssumptionWarning) -> None:
    """Warn whoever called into the package: of how the input was read, unless it is something else."""
    depth, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("halfseen."):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, category, stacklevel=depth)
