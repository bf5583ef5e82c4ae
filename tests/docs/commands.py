"""Lines of ``console`` blocks: commands that are run, or at least known to exist."""

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import typer
from typer.testing import CliRunner

from halfseen.cli import app
from tests.docs.fences import Block, PageError

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
KNOWN = ("halfseen", "make", "pip", "python")
# These write into the home of whoever calls them.
COMPLETION = ("--install-completion", "--show-completion")


def run_console(block: Block) -> None:
    """Check every command of a block, in the folder of the page."""
    for line, command in commands_of(block):
        try:
            run_command(command)
        except (AssertionError, ValueError) as error:
            raise PageError(f"line {line}: {command}\n{error}") from error


def commands_of(block: Block) -> list[tuple[int, str]]:
    """List commands and their lines; with a prompt on the page, other lines are output."""
    lines = block.text.splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    found: list[tuple[int, str]] = []
    open_end = False  # the line before ended in a backslash
    for k, line in enumerate(lines, block.line):
        if open_end:
            found[-1] = (found[-1][0], found[-1][1][:-1] + line.strip())
        elif line.startswith("$ "):
            found.append((k, line[2:].strip()))
        elif not prompted and line.strip() and not line.startswith("#"):
            found.append((k, line.strip()))
        else:
            continue
        open_end = found[-1][1].endswith("\\")
    return found


def run_command(command: str) -> None:
    """Run a command of halfseen; of others, see whether what they name exists."""
    comment = command.partition(" #")[2]
    words = shlex.split(command, comments=True)
    assert words, "an empty command"
    assert words[0] in KNOWN, f"{words[0]!r} is not one of {', '.join(KNOWN)}"
    if words[0] == "halfseen":
        _halfseen(words[1:], comment)
    elif words[0] == "make":
        names = [word for word in words[1:] if "=" not in word]
        assert set(names) <= TARGETS, f"the Makefile has no target {set(names) - TARGETS}"
    elif words[0] == "pip":
        _pip(words[1:])
    else:
        _python(words[1:])


def _halfseen(words: list[str], comment: str) -> None:
    if set(words) & set(COMPLETION):
        return
    target = None
    if ">" in words:
        words, (target,) = words[: words.index(">")], words[words.index(">") + 1 :]
    if "minute" in comment:
        return _parse(words)
    wanted = int(stated[1]) if (stated := re.search(r"exits with (\d+)", comment)) else 0
    result = CliRunner().invoke(app, words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"it failed: {result.exception!r}") from result.exception
    assert result.exit_code == wanted, (
        f"it exits with {result.exit_code}, where {wanted} is stated\n{result.output}"
    )
    if target is not None:
        Path(target).write_text(result.stdout, encoding="utf-8")


def _parse(words: list[str]) -> None:
    """See that there is such a command with such options, without running it."""
    group = typer.main.get_command(app)
    assert set(words[:1]) & set(group.commands), f"there is no command {words[:1]}"
    try:
        group.commands[words[0]].make_context(words[0], words[1:]).close()
    except Exception as error:  # Typer has no public name for what its parser raises
        raise AssertionError(str(error)) from error


def options_of_commands() -> dict[str, set[str]]:
    """Return the options of each command of halfseen, and under "" those of all of them."""
    group = typer.main.get_command(app)
    found = {
        name: {text for option in command.params for text in (*option.opts, *option.secondary_opts)}
        for name, command in group.commands.items()
    }
    general = {text for option in group.params for text in option.opts} | {"--help"}
    found[""] = general.union(*found.values())
    return {name: options | {"--help"} for name, options in found.items()}


def _pip(words: list[str]) -> None:
    assert words[:1] == ["install"], "of pip, only pip install is known"
    for word in words[1:]:
        named = re.fullmatch(r"(?:halfseen|\.)(?:\[([\w,]+)\])?", word)
        assert word.startswith("-") or named, f"{word!r} is not this package"
        missing = set((named[1] or "").split(",")) - {""} - set(EXTRAS) if named else set()
        assert not missing, f"there is no extra {missing}"


def _python(words: list[str]) -> None:
    assert words[:1] == ["-m"], "of python, only python -m is known"
    assert importlib.util.find_spec(words[1]), f"there is no module {words[1]}"
    if words[1] == "benchmarks":
        from benchmarks.__main__ import TASKS

        tasks = [word for word in words[2:] if not word.startswith("-")]
        assert set(tasks) <= set(TASKS), f"there is no task {set(tasks) - set(TASKS)}"
