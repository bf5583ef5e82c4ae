"""The page on the paper is made of the rows as they are now, by a full run."""

import re
from pathlib import Path

from halfseen.ledger import CLAIMS, Entry
from halfseen.ledger.harness import FAILS
from halfseen.ledger.page import anchor, figure_name

PAGE = Path(__file__).parents[2] / "docs" / "paper.md"


def test_the_page_of_the_documentation_is_of_these_rows_and_of_a_full_run():
    text = PAGE.read_text(encoding="utf-8")
    assert "--quick --page" not in text
    assert "Made by `halfseen reproduce --page docs/paper.md`" in text
    assert re.findall(r"^### (\S+)$", text, re.MULTILINE) == list(CLAIMS)
    assert FAILS not in text
    plain = re.sub(r"\\(.)", r"\1", text)
    for row in CLAIMS.values():
        for part in (row.says, row.experiment, row.tolerance):
            assert part in plain, f"{row.name} was changed: halfseen reproduce --page docs/paper.md"
        assert f"#{anchor(row.name)}" in text
    for figure in re.findall(r"\(figures/(paper-[^)]+)\)", text):
        assert (PAGE.parent / "figures" / figure).exists()
    known = {figure_name(Entry(row, "", True, 0.0)) for row in CLAIMS.values()}
    assert {path.name for path in (PAGE.parent / "figures").glob("paper-*")} <= known


def test_the_ladder_of_the_readme_is_that_of_the_page():
    text = PAGE.read_text(encoding="utf-8").replace("\\_", "_").split("Mean, covariance: ")[1]
    readme = (PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| .+ \| (\d\.\d{3}) \| (\d\.\d{3}) \|$", readme, re.MULTILINE)
    assert told == re.findall(r"(\d\.\d{3}), (\d\.\d{3})", text)
    assert len(told) == 6
    assert "TODO" not in readme
