"""The pages show what is in the store, whole and escaped."""

import json

from benchmarks import results
from benchmarks.comparison import pages
from benchmarks.comparison.problems import problems


def test_pages_are_made_from_the_store():
    kept = results.read()
    assert results.RESULTS.read_text(encoding="utf-8") == results.markdown(kept)
    assert results.PAGE.read_text(encoding="utf-8") == pages.comparison_page(kept)


def test_the_store_is_as_it_is_written():
    text = results.STORE.read_text(encoding="utf-8")
    assert text == json.dumps(results.read(), indent=1, ensure_ascii=False) + "\n"


def test_every_task_of_the_comparison_is_recorded_at_every_size():
    kept = results.read()
    for problem in problems():
        sizes = [(size["d"], size["n"], size["tables"]) for size in kept[problem.name]["sizes"]]
        assert (problem.size.d, problem.size.n, problem.size.tables) in sizes


TOLD = {"tool": "x", "title": "X", "group": "peer", "uses": "the data"}


def test_a_tool_that_failed_is_shown_with_its_message_and_nothing_else():
    cells = pages.cells({**TOLD, "tables": 0, "trouble": "failed: <b>|"}, 4)
    assert cells == ["X", "–", "–", "–", "–", "–", "–", "failed: <b>|"]
    assert pages._line(cells).endswith(r"| failed: &lt;b>\| |")


def test_costs_are_multiples_of_ours():
    tool = {
        **TOLD, "tables": 2, "mean": 1.234, "covariance": 12.34, "entries": 123.4, "seconds": 40.0,
        "auto_seconds": 0.5, "peak": 5e8, "auto_peak": 2e8, "mean_coverage": 0.951,
        "trouble": "no answer in 300 s",
    }  # fmt: skip
    assert pages.cells(tool, 4) == [
        "X", "1.23", "12.3", "123", "0.95", "×\u00a080.0", "×\u00a02.50",
        "2 of 4 tables, then no answer in 300 s",
    ]  # fmt: skip


def test_our_own_costs_are_seconds_and_megabytes():
    tool = {**TOLD, "tool": "auto", "tables": 1, "chosen": "full", "seconds": 0.123, "peak": 2e8}
    cells = pages.cells(tool, 1)
    assert cells[0] == "**X** (full)"
    assert cells[5:7] == ["0.12 s", "200 MB"]
