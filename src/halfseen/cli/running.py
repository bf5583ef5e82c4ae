"""What every command does: errors become sentences and exit codes, warnings lines, signals one thing."""

from __future__ import annotations

import codecs
import functools
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import typer

from halfseen.cli.outputs import NotPrinted, say
from halfseen.data.interval_data import IntervalData
from halfseen.data.table import printable
from halfseen.errors import (
    ContradictionError,
    HalfseenError,
    Interrupted,
    NotIdentifiedError,
    told_in_options,
)
from halfseen.missingness.rule_parts import RuleError
from halfseen.parallel import is_interrupt

LOOK, UNUSABLE, CONTRADICTION, NOT_DETERMINED, INTERNAL = 1, 2, 3, 4, 5
INTERRUPTED, READER_GONE, TERMINATED = 130, 141, 143
# What stands for letters that an output has no signs for; a question mark for all others.
IN_ASCII = {
    "─": "-", "━": "-", "│": "|", "—": "-", "–": "-", "−": "-", "‑": "-", "…": "...", "·": "*",
    "±": "+/-", "×": "x", "≤": "<=", "≥": ">=", "≈": "~", "≠": "!=", "→": "->", "∞": "inf", "′": "'",
    "ρ": "rho", "σ": "sigma", "Σ": "Sigma", "μ": "mu", "λ": "lambda", "χ": "chi", "²": "^2", "√": "sqrt",
    "“": '"', "”": '"', "‘": "'", "’": "'", "\N{REPLACEMENT CHARACTER}": "?",
}  # fmt: skip
F = TypeVar("F", bound=Callable[..., Any])


def guarded(command: F) -> F:
    """Turn errors into a sentence on standard error and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        with _signals_alike() as terminated, _signs_that_can_be_written():
            try:
                with told_in_options():
                    return command(*args, **kwargs)
            except (typer.Exit, typer.Abort, typer.BadParameter):
                raise
            except BaseException as error:
                if not isinstance(error, Exception | KeyboardInterrupt):
                    raise
                code = _tell(error)
            # Out of the except: what the error holds, scratch files too, is let go before the end.
            raise typer.Exit(TERMINATED if terminated and code == INTERRUPTED else code)

    return run  # type: ignore[return-value]


def _tell(error: BaseException) -> int:
    """Say what went wrong, and return the exit code."""
    if is_interrupt(error):
        say(f"halfseen: {error if isinstance(error, Interrupted) else 'interrupted.'}")
        return INTERRUPTED
    if isinstance(error, HalfseenError):
        _say_error(error)
        return _code(error)
    if isinstance(error, MemoryError):
        say("halfseen: there is not enough memory for this; try fewer rows.")
        return UNUSABLE
    if isinstance(error, NotPrinted):
        if isinstance(error.__cause__, BrokenPipeError):
            return READER_GONE
        say(f"halfseen: {error}")
        return UNUSABLE
    traceback.print_exception(error)
    say(
        "halfseen: this is an error of halfseen itself, not of your data; please report it with what "
        "stands above."
    )
    return INTERNAL


@contextmanager
def _signals_alike() -> Iterator[list[int]]:
    """Let SIGTERM, and the end of a terminal, do what Ctrl-C does; yield those that came."""
    came: list[int] = []

    def note(number: int, frame: Any) -> None:
        came.append(number)
        handler = signal.getsignal(signal.SIGINT)
        (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)

    ours = []
    if threading.current_thread() is threading.main_thread():
        kinds = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP")]
        ours = [kind for kind in kinds if kind and signal.getsignal(kind) is signal.SIG_DFL]
    for kind in ours:
        signal.signal(kind, note)
    try:
        yield came
    finally:
        for kind in ours:
            signal.signal(kind, signal.SIG_DFL)


@contextmanager
def _signs_that_can_be_written() -> Iterator[None]:
    """Write what the encoding of the output has not in signs that it has."""
    codecs.register_error("halfseen", _in_ascii)
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors="halfseen")
    try:
        yield
    finally:
        for stream, errors in changed:
            # A stream that cannot be flushed is told elsewhere.
            with suppress(OSError, ValueError):
                stream.reconfigure(errors=errors)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(IN_ASCII.get(letter, "?") for letter in wrong), error.end


def _code(error: HalfseenError) -> int:
    if isinstance(error, ContradictionError):
        return CONTRADICTION
    return NOT_DETERMINED if isinstance(error, NotIdentifiedError) else UNUSABLE


def _say_error(error: HalfseenError) -> None:
    if not isinstance(error, RuleError):
        say(f"halfseen: {error}")
        return
    # The rule and the mark under it stay as they are.
    first, rule, mark, last = str(error).split("\n", 3)
    for line in (f"halfseen: {first}", rule, mark):
        typer.echo(printable(line), err=True)
    say(last)


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
