"""Every fenced block of README.md, CONTRIBUTING.md and docs/**/*.md runs, or is declared as output.

The rules, for those who write pages:

- A fence has a language: ``python``, ``console`` or ``text``. Any other, or none, fails.
  Sphinx directives such as ``{note}`` or ``{tab-item}`` are read for fences inside of them;
  ``{math}``, ``{eval-rst}`` and ``{toctree}`` are not looked into; ``{code-block}`` and its like fail.
- ``python`` blocks are run in order, all of a page in one namespace, in a temporary folder. A block that
  has a ``>>>`` is a doctest: printed output must be as stated, where ``...`` stands for anything and
  white space for any other; an exception is stated as ``Traceback (most recent call last):``, an
  indented ``...``, and its last line. No blank line is needed before the closing fence. Any other
  block is executed.
- A warning is an error, unless a comment in the block names its class (``# AssumptionWarning: ...``);
  then it must come.
- ``console`` blocks: each line is a command (``halfseen``, ``make``, ``pip install``, ``python -m``);
  where one line of the block begins with ``$ ``, only such lines are, and the others are output.
  Comments follow `` # ``; a line may end in a backslash and go on in the next.
  ``halfseen ...`` is run in the folder of the page, and must end with exit code 0, or with that of a
  comment ``# exits with 1``; ``> file`` at the end keeps what it prints. A comment that speaks of
  ``minutes`` says that it takes too long for a test: its arguments are read, and it is not run.
  ``make X`` must be a target, the extra of ``pip install ".[X]"`` and the module of
  ``python -m X`` must exist, with benchmarks also the task.
- ``text`` blocks are output, and are not run.
- Within a line, the command and the options of `` `halfseen ...` `` must exist, and so must an option
  that stands alone, `` `--option` `` (that of another program is told with the program).
- ``python`` and ``console`` blocks run in the order of the page, so that one may use the files of
  another. The folder holds what ``tests/docs/conftest.py`` writes: wine.csv (``halfseen demo --write``),
  lab.csv (sample, lead, zinc, ph), limits.csv and limits_by_sample.csv, which are for lab.csv, and
  results.csv, wells.csv, survey.csv and visits.csv.
"""

import re
from pathlib import Path

import pytest

from tests.docs.commands import ROOT, options_of_commands, run_console
from tests.docs.fences import blocks_of
from tests.docs.python_blocks import run_python

MADE = {"_build", "auto_examples", "_static", "_templates", "generated"}
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in DOCS.rglob("*.md") if not MADE & set(p.relative_to(DOCS).parts)),
]


def run_page(page: Path) -> None:
    """Run all blocks of a page in the present folder."""
    names = {"__name__": "__main__"}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(block, page, names)
        elif block.language == "console":
            run_console(block)


@pytest.mark.usefixtures("folder_of_pages")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_runs(page):
    run_page(page)


def unknown_options(text: str) -> list[str]:
    """List commands and options that are named within a line and do not exist."""
    options = options_of_commands()
    wrong = []
    for code in re.findall(r"`([^`\n]+)`", text):
        words = code.split()
        if words[0] == "halfseen" and len(words) > 1:
            name = "" if words[1].startswith("-") or words[1].isupper() else words[1]
            if name not in options:
                wrong.append(code)
                continue
        elif words[0].startswith("--"):
            name = ""
        else:
            continue
        named = [word.split("=")[0].rstrip(",") for word in words if word.startswith("--")]
        wrong += [code for option in named if option not in options[name]]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_named_on_a_page_exist(page):
    assert unknown_options(page.read_text(encoding="utf-8")) == []
