"""The ledger as a whole: every row holds, and is told fully."""

import re

import pytest

from halfseen.ledger import CLAIMS, check_claim, choose
from halfseen.ledger.page import TITLES


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_every_row_holds_quickly(name):
    entry = check_claim(CLAIMS[name], quick=True)
    assert entry.holds, f"{entry.claim.tolerance}\n{entry.measured}"
    assert re.search(r"\d", entry.measured), "figures are told"


@pytest.mark.parametrize("name", CLAIMS)
def test_every_row_is_told_in_sentences(name):
    row = CLAIMS[name]
    for text in (row.says, row.experiment, row.tolerance):
        assert text.endswith("."), text
        assert "  " not in text, text
    assert row.where
    assert name.split("/")[0] in TITLES
    assert re.fullmatch(r"[a-z0-9.-]+/[a-z0-9-]+", name)


def test_rows_of_a_group_stand_together():
    groups = [name.split("/")[0] for name in CLAIMS]
    assert list(dict.fromkeys(groups)) == [
        group for k, group in enumerate(groups) if k == 0 or groups[k - 1] != group
    ]
    assert len(choose(["theorem-1.2"])) == groups.count("theorem-1.2") > 3
