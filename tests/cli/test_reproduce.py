import json
from pathlib import Path

import pytest

from halfseen.ledger import harness
from halfseen.ledger.harness import Claim, Curve, Kind, Measured
from halfseen.samplers import ProjectedLangevin

ROOT = Path(__file__).parents[2]


@pytest.fixture
def row(monkeypatch):
    """Put rows of the test's own into an empty ledger."""
    monkeypatch.setattr(harness, "CLAIMS", {})

    def add(name, found, kind=Kind.CLAIM, says="It is so."):
        def run(quick):
            if isinstance(found, Exception):
                raise found
            return found

        harness.CLAIMS[name] = Claim(name, "Section 9", says, "Looked.", "Any.", kind, run)

    return add


def test_a_row_that_holds_is_told_with_its_claim_and_figures(halfseen):
    done = halfseen("reproduce", "--quick", "rejection/distance")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 79
    assert lines[0].startswith("rejection/distance")
    assert "holds, " in lines[0]
    assert "proposals at μ*" in " ".join(done.output.split())
    assert lines[-1].startswith("1 row in ")
    assert lines[-1].endswith("1 holds; none fails.")


def test_breaking_the_drift_fails_its_row_and_the_command(halfseen, monkeypatch):
    assert halfseen("reproduce", "--quick", "sample-gradient/drift").exit_code == 0
    # Algorithm 5 as printed: the drift is η, not η/2.
    whole = ProjectedLangevin.__init__

    def as_printed(self, *args, **options):
        whole(self, *args, **{"drift": 1.0, **options})

    monkeypatch.setattr(ProjectedLangevin, "__init__", as_printed)
    done = halfseen("reproduce", "--quick", "sample-gradient/drift", "lemmas/frobenius")
    assert done.exit_code == 1
    assert "FAILS" in done.output
    assert "1 holds; 1 fails" in done.output


def test_a_row_that_breaks_is_a_row_that_fails_and_the_others_go_on(halfseen, row):
    row("one/breaks", ZeroDivisionError("nothing to divide by"))
    row("two/holds", Measured("2.00", True))
    row("two/corrected", Measured("3.00", True), Kind.ERRATUM)
    done = halfseen("reproduce")
    assert done.exit_code == 1
    assert "stopped by ZeroDivisionError: nothing to divide by" in done.output
    assert "1 holds; 1 holds as corrected; 1 fails" in done.output
    assert halfseen("reproduce", "two").exit_code == 0


def test_json_has_every_part_of_a_row(halfseen, row):
    row("one/holds", Measured("2.00", True, Curve([1.0, 2.0], {"a": [3.0, 4.0]}, "n", "error")))
    found = json.loads(halfseen("reproduce", "--json").output)
    assert found["quick"] is False
    (told,) = found["rows"]
    assert told["row"] == "one/holds"
    assert (told["says"], told["measured"], told["verdict"]) == ("It is so.", "2.00", "holds")
    assert told["curve"]["lines"] == {"a": [3.0, 4.0]}
    assert told["seconds"] >= 0.0


def test_the_page_escapes_shows_its_figures_and_links_its_rows(halfseen, row):
    curve = Curve([1.0, 2.0], {"a": [3.0, 4.0]}, "n", "error", {"n": [3.0, 3.0]})
    row("one/holds", Measured("a|b <script> *x* $y$", True, curve), says="If a|b, then. It is so.")
    done = halfseen("reproduce", "one/holds", "--page", "paper.md")
    assert done.exit_code == 0, done.output
    text = Path("paper.md").read_text(encoding="utf-8")
    assert "a|b \\<script> \\*x\\* \\$y\\$" in text
    assert "| If a\\|b, then | holds |" in text
    assert "[one/holds](#row-one-holds)" in text
    assert "Made by `halfseen reproduce one/holds --page paper.md`" in text
    assert "(row-one-holds)=" in text
    assert "](figures/paper-one-holds.png)" in text
    assert Path("figures/paper-one-holds.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_get_a_sentence_before_any_work(halfseen, row):
    row("one/breaks", AssertionError("must not run"))
    unknown = halfseen("reproduce", "theorem-9")
    assert unknown.exit_code == 2
    assert "no row or group 'theorem-9'" in unknown.output
    assert "one" in unknown.output
    nowhere = halfseen("reproduce", "--page", "nowhere/paper.md")
    assert nowhere.exit_code == 2
    assert "there is no folder nowhere" in nowhere.output
    Path("figures").write_text("in the way")
    blocked = halfseen("reproduce", "--page", "paper.md")
    assert blocked.exit_code == 2
    assert "figures is not a folder" in blocked.output
    partly = halfseen("reproduce", "one/breaks", "theorem-9")
    assert "stopped by" not in partly.output


def test_the_list_has_every_row(halfseen):
    done = halfseen("reproduce", "--list")
    assert done.exit_code == 0
    assert [line.split()[0] for line in done.output.splitlines()] == list(harness.CLAIMS)
