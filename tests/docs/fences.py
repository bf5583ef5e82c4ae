"""Fenced blocks of a Markdown page: their languages, their texts, and where they begin."""

import re
from dataclasses import dataclass

LANGUAGES = ("python", "console", "text")
# Directives that would show code without running it: a plain fence says the same, and is run.
SHOWING = ("code", "code-block", "code-cell", "sourcecode", "doctest", "testcode")
# What these hold is no Markdown, so there are no fences in it.
OPAQUE = ("math", "eval-rst", "toctree", "raw")

_FENCE = re.compile(r"^(?P<indent>[ >]*)(?P<mark>`{3,}|~{3,})\s*(?P<info>[^`]*)$")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; ``line`` is where its text begins, counted from one."""

    language: str
    text: str
    line: int


class PageError(AssertionError):
    """Something on a page that the rules of the harness do not allow."""


def blocks_of(markdown: str, first_line: int = 1) -> list[Block]:
    """List the blocks that are to be run or are declared as output, in order.

    Fences within a directive (a tab, a note) are read as well.
    """
    lines = markdown.splitlines()
    found: list[Block] = []
    k = 0
    while k < len(lines):
        opening = _FENCE.match(lines[k])
        if opening is None:
            k += 1
            continue
        end = _end(lines, k, opening["mark"], first_line)
        indent = len(opening["indent"])
        text = "\n".join(line[indent:] for line in lines[k + 1 : end])
        found += _read(opening["info"].strip(), text, first_line + k + 1)
        k = end + 1
    return found


def _end(lines: list[str], start: int, mark: str, first_line: int) -> int:
    closing = re.compile(rf"^[ >]*{re.escape(mark[0])}{{{len(mark)},}}\s*$")
    for k in range(start + 1, len(lines)):
        if closing.match(lines[k]):
            return k
    raise PageError(f"line {first_line + start}: a fence that is not closed")


def _read(info: str, text: str, line: int) -> list[Block]:
    directive = re.match(r"\{([\w:-]+)\}", info)
    if directive is None:
        if info not in LANGUAGES:
            raise PageError(
                f"line {line - 1}: a fence of language {info or '(none)'!r}; it must be one of "
                f"{', '.join(LANGUAGES)}: python and console are run, text is output"
            )
        return [Block(info, text, line)]
    name = directive[1]
    if name in SHOWING:
        raise PageError(
            f"line {line - 1}: {{{name}}} shows code that is not run; use a plain fence"
        )
    return [] if name in OPAQUE else blocks_of(text, line)
