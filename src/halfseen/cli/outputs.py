"""What a command gives: an answer that is printed, and files.

Files are looked at before the work, and written after the answer is printed: whatever goes wrong with
one costs neither the answer nor the others.
"""

from __future__ import annotations

import json
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from halfseen.data.parquet_blocks import files_to_read, is_parquet
from halfseen.data.table import printable
from halfseen.errors import HalfseenError, HalfseenWarning, InputError
from halfseen.files import try_writing, write_text_whole

WIDTH = 79
# How a line begins that is a command by itself, which is never folded.
COMMAND = "  halfseen "
Writer = Callable[[Path], Any]


class Outputs:
    """Files that a command will write, by their options; a checkpoint is read too.

    Parameters
    ----------
    inputs : iterable of paths or None
        What the command reads: an output may not take the place of any.
    folder : bool
        Whether the outputs are folders, which were looked at already.
    **paths : path or None
        Where each option wants its file; None where it was not given.
    """

    def __init__(
        self, inputs: Iterable[Any] = (), folder: bool = False, **paths: Path | None
    ) -> None:
        self.paths = {option: path for option, path in paths.items() if path is not None}
        files = {} if folder else self.paths
        for option, path in files.items():
            _check_place(f"--{option} {path}", path)
        self._refuse_same([str(one) for one in inputs if one is not None])
        for option, path in files.items():
            try:
                try_writing(path)
            except OSError as error:
                raise _cannot(option, path, error) from None

    def _refuse_same(self, inputs: list[str]) -> None:
        read = [file for name in inputs for file in _files_read(name)]
        before: dict[str, Path] = {}
        for option, path in self.paths.items():
            for name in read:
                if _same(path, Path(name)):
                    raise InputError(
                        f"--{option} {path} is the file {name}, which is read: it would be replaced. "
                        "Name another file."
                    )
            for other, there in before.items():
                if _same(path, there):
                    raise InputError(
                        f"--{other} {there} and --{option} {path} are the same file, and one would "
                        "replace the other. Name two files."
                    )
            before[option] = path

    def deliver(self, answer: Callable[[], Any], **writers: Writer) -> None:
        """Print an answer, then write the files that are wanted; raise at the end what went wrong.

        A writer is given the path, and may return what is said of the file.
        """
        wrong: list[Exception] = []
        try:
            with printing():
                answer()
        except NotPrinted as error:
            wrong.append(error)
        left = {option: self.paths[option] for option in writers if option in self.paths}
        try:
            for option, path in list(left.items()):
                try:
                    with warnings_as_lines():
                        told = writers[option](path)
                    say(f"wrote {path}: {told}" if isinstance(told, str) else f"wrote {path}")
                except OSError as error:
                    wrong.append(_cannot(option, path, error))
                except HalfseenError as error:
                    wrong.append(error)
                except Exception as error:
                    error.add_note(f"--{option} {path} was not written.")
                    wrong.append(error)
                del left[option]
        except KeyboardInterrupt:
            names = ", ".join(f"--{option} {path}" for option, path in left.items())
            say(f"not written: {names}")
            raise
        for another in wrong[1:]:
            say(f"halfseen: {another}")
        if wrong:
            raise wrong[0]


def _check_place(told: str, path: Path) -> None:
    """Raise an ``InputError`` where no file can be."""
    try:
        if path.is_dir():
            raise InputError(f"{told} is a folder; a file name is needed.")
        if not path.parent.is_dir():
            raise InputError(f"{told}: there is no folder {path.parent}.")
    except OSError as error:
        raise InputError(f"{told} cannot be written: {error.strerror or error}.") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{told} is no path of a file.") from None


def _cannot(option: str, path: Path, error: OSError) -> InputError:
    return InputError(f"--{option} {path} cannot be written: {error.strerror or error}.")


def _files_read(name: str) -> list[str]:
    """Return the files that are read under a name; none where there is none, which is told later."""
    if name == "-":
        return []
    if os.path.isfile(name) or not is_parquet(name):
        return [name]
    try:
        return files_to_read(name)
    except InputError:
        return []


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, which may not be there yet; devices do no harm."""
    try:
        if one.exists() and other.exists():
            return one.is_file() and one.samefile(other)
        return one.resolve() == other.resolve()
    except (OSError, ValueError):
        return False


# What is printed.


class NotPrinted(Exception):
    """Standard output did not take the answer; the cause says why."""


@contextmanager
def printing() -> Iterator[None]:
    """Tell errors of standard output from others."""
    try:
        yield
    except OSError as error:
        # Python would try once more at its end, and complain.
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        raise NotPrinted(
            f"standard output cannot be written: {error.strerror or error}."
        ) from error


def show(text: str) -> None:
    """Print an answer. Names come from files: what would steer a terminal is replaced."""
    with printing():
        typer.echo("\n".join(map(printable, text.split("\n"))))


def show_table(text: str) -> None:
    """Print a table as it is, which somebody will read again: no letter of it may be replaced."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.start + 1]
        raise InputError(
            f"the table holds {wrong!a}, which the encoding of the output ({encoding}) has not. Write "
            "it to a file with --output, or set PYTHONIOENCODING=utf-8."
        ) from None
    typer.echo(text, nl=False)


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


def as_json_text(content: dict[str, Any]) -> str:
    """Return plain data for machines."""
    return json.dumps(content, indent=2, allow_nan=False)


def json_writer(content: dict[str, Any]) -> Writer:
    """Return who writes plain data to a file."""
    return lambda path: write_text_whole(path, as_json_text(content) + "\n")
