"""Figures that pages quote from the benchmarks are those that were measured.

A table row whose last cell is ``make bench BENCH=task`` quotes that task: every number in its cell
"measured" must be there. So does a sentence that says "task `task`": all of its numbers must be.
"""

import json
import re

import pytest

from benchmarks.results import section
from tests.docs.commands import ROOT
from tests.docs.test_pages import PAGES

RESULTS = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w])")
ROW = re.compile(r"^\|(?P<cells>.*)\| *`make bench BENCH=(?P<task>\w+)` *\|$", re.MULTILINE)
SENTENCE = re.compile(r"[^.;:]*(?:\.\d[^.;:]*)*task\s+`(?P<task>\w+)`")


def numbers(text):
    """List the numbers of a text: 2 000 is one, and ``BENCH=…`` or d10 are none."""
    text = re.sub(r"(?<=\d)[ \u00a0](?=\d{3}\b)", "", text)
    text = re.sub(r"(?<=\d)(?:s|ns|%|x)(?=\W|$)", " ", text)
    return NUMBER.findall(text)


def measured(task):
    """Return the numbers in the tables of a task, also as shares of a hundred."""
    lines = [line for line in section(task, RESULTS[task]) if line.startswith("|")]
    said = {n for line in lines for n in numbers(line)}
    return said | {
        f"{100 * float(n):.{max(len(n.split('.')[1]) - 2, 0)}f}" for n in said if "." in n
    }


def quotes(text):
    """List (task, numbers) of what a page quotes."""
    found = [(m["task"], numbers(m["cells"].split("|")[-1])) for m in ROW.finditer(text)]
    prose = re.sub(r"^\|.*$", "", text, flags=re.MULTILINE)
    return found + [(m["task"], numbers(m[0])) for m in SENTENCE.finditer(prose)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_quoted_figures_were_measured(page):
    for task, quoted in quotes(page.read_text(encoding="utf-8")):
        assert task in RESULTS, f"{page.name} quotes the task {task}, which has no results"
        wrong = [n for n in quoted if n not in measured(task)]
        assert not wrong, f"{page.name}: {', '.join(wrong)} is not in the results of {task}"


def test_performance_quotes_many_tasks_and_each_row_a_figure():
    found = quotes((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"))
    assert len({task for task, _ in found}) >= 15
    assert all(quoted for _, quoted in found)


def test_a_wrong_figure_is_found():
    text = "| rows saved | 28.1 times | `make bench BENCH=rows_saved` |\nIt is 4.6 (task `rows_saved`)."
    wrong = [n for task, quoted in quotes(text) for n in quoted if n not in measured(task)]
    assert wrong == ["28.1", "4.6"]


def test_right_hand_sides_for_users_of_r_are_run():
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    section = text.split("## From R to here")[1]
    table, _, blocks = section.partition("```python")
    run = blocks.replace(", random_state=0", "")
    for row in re.findall(r"^\| `.*\|$", table, re.MULTILINE):
        for code in re.findall(r"`((?:hs|fit)\.[^`]*)`", row.split(" | ")[-1]):
            assert code in run, f"compare.md does not run {code}"
