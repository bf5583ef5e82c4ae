"""What every command does: errors become sentences and exit codes, warnings lines, files whole."""

from __future__ import annotations

import functools
import json
import shlex
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import typer

from halfseen.data.interval_data import IntervalData
from halfseen.data.table import printable
from halfseen.errors import (
    ContradictionError,
    HalfseenError,
    HalfseenWarning,
    InputError,
    Interrupted,
    NotIdentifiedError,
    told_in_options,
)
from halfseen.files import write_text_whole
from halfseen.missingness.rule_parts import RuleError

LOOK, UNUSABLE, CONTRADICTION, NOT_DETERMINED, INTERRUPTED = 1, 2, 3, 4, 130
WIDTH = 79
# How a line begins that is a command by itself, which is never folded.
COMMAND = "  halfseen "
F = TypeVar("F", bound=Callable[..., Any])


def guarded(command: F) -> F:
    """Turn errors of halfseen into a sentence on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            with told_in_options():
                return command(*args, **kwargs)
        except HalfseenError as error:
            _say_error(error)
            raise typer.Exit(_code(error)) from None
        except MemoryError:
            say("halfseen: there is not enough memory for this; try fewer rows.")
            raise typer.Exit(UNUSABLE) from None
        except Interrupted as error:
            say(f"halfseen: {error}")
            raise typer.Exit(INTERRUPTED) from None
        except KeyboardInterrupt:
            say("halfseen: interrupted; no result was written.")
            raise typer.Exit(INTERRUPTED) from None

    return run  # type: ignore[return-value]


def _code(error: HalfseenError) -> int:
    if isinstance(error, ContradictionError):
        return CONTRADICTION
    return NOT_DETERMINED if isinstance(error, NotIdentifiedError) else UNUSABLE


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Print warnings of halfseen to standard error, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HalfseenWarning)
        try:
            yield
        finally:
            for text in dict.fromkeys(
                str(w.message) for w in caught if issubclass(w.category, HalfseenWarning)
            ):
                say(f"warning: {text}")


def _say_error(error: HalfseenError) -> None:
    if not isinstance(error, RuleError):
        say(f"halfseen: {error}")
        return
    # The rule and the mark under it stay as they are.
    first, rule, mark, last = str(error).split("\n", 3)
    typer.echo(f"halfseen: {first}\n{rule}\n{mark}", err=True)
    say(last)


def say(text: str) -> None:
    """Print to standard error, each line folded to 80 columns between words.

    Paths, options and commands stay whole, however long, so that they can be copied.
    """
    for line in map(printable, text.splitlines()):
        indent = " " * (len(line) - len(line.lstrip()) + 2 * line.startswith(" "))
        parts = textwrap.wrap(
            line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
        if line.startswith(COMMAND):
            parts = [line]
        for part in parts or [""]:
            typer.echo(part, err=True)


@contextmanager
def rows_by_line(data: IntervalData, lines: Sequence[int] | None) -> Iterator[None]:
    """Add the line of the file, and the label, to rows that errors name."""
    with rows_told(range(len(data)), lines, data.labels):
        yield


@contextmanager
def rows_told(
    rows: Sequence[int], lines: Sequence[int] | None, labels: Sequence[str] | None
) -> Iterator[None]:
    """Say in errors which row of the table is meant, and its line and label; ``rows`` are those left."""
    try:
        yield
    except HalfseenError as error:
        if error.row is not None and error.row < len(rows):
            row = int(rows[error.row])
            told = [] if lines is None else [f"line {lines[row]}"]
            told += [] if labels is None else [f"label {labels[row]!r}"]
            error.where = f"row {row}" + (f" ({', '.join(told)})" if told else "")
        raise


def as_json_text(content: dict[str, Any]) -> str:
    """Return plain data for machines."""
    return json.dumps(content, indent=2, allow_nan=False)


def write_text(path: Path, text: str) -> None:
    """Write a file whole, or say why it cannot be."""
    try:
        write_text_whole(path, text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


def check_writable(**paths: Path | None) -> None:
    """Find out before the work whether there will be a place for its results, told by their options."""
    for option, path in paths.items():
        if path is not None and path.is_dir():
            raise InputError(f"--{option} {path} is a folder; a file name is needed.")
        if path is not None and not path.parent.is_dir():
            raise InputError(f"--{option} {path}: there is no folder {path.parent}.")


def say_written(*paths: Path | None) -> None:
    """Say which files were written."""
    for path in filter(None, paths):
        say(f"wrote {path}")


def command_line(context: typer.Context) -> str:
    """Return the command that repeats this one, with the options that were given."""
    words = ["halfseen", str(context.info_name)]
    options: list[str] = []
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if parameter.param_type_name == "argument":
            words += map(str, value) if isinstance(value, list | tuple) else [str(value)]
        elif isinstance(value, bool):
            options.append(parameter.opts[0] if value else parameter.secondary_opts[0])
        else:
            for item in value if isinstance(value, list | tuple) else [value]:
                options += [parameter.opts[0], str(getattr(item, "value", item))]
    return shlex.join(words + options)
