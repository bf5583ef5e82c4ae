"""``halfseen fit --ucl``: limits to report, in the terminal, for machines and on the page."""

import json
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs


@pytest.fixture
def lead(tmp_path):
    rng = np.random.default_rng(5)
    x = np.exp(rng.normal(size=(40, 2)))
    rows = [",".join(f"<{0.5}" if v < 0.5 else f"{v:.4g}" for v in row) for row in x]
    wells = [f"W{k % 2},{row}" for k, row in enumerate(rows)]
    (tmp_path / "lead.csv").write_text(
        "\n".join(["well,lead,zinc", *wells]) + "\n", encoding="utf-8"
    )
    return "lead.csv", "--log"


def test_limits_in_the_terminal_for_machines_and_on_the_page(lead, halfseen):
    shown = halfseen("fit", *lead, "--exclude", "well", "--ucl", "--report", "page.html")
    assert shown.exit_code == 0, shown.output
    assert "Limits at 95 %, each one-sided" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    told = halfseen(
        "fit",
        *lead,
        "--exclude",
        "well",
        "--ucl",
        "--json",
        "--level",
        "0.99",
        "--next-values",
        "4",
    )
    record = json.loads(told.stdout)["limits"]
    data = hs.read_csv("lead.csv", exclude="well")
    fit = hs.fit(data, transforms="log", random_state=0)
    assert record == json.loads(json.dumps(fit.limits(0.99, next_values=4).to_dict()))
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Limits to report" in page
    assert "tolerance 0.95" in page
    plain = halfseen("fit", *lead, "--exclude", "well", "--json")
    assert "limits" not in json.loads(plain.stdout)


def test_limits_of_groups(lead, halfseen):
    told = halfseen("fit", *lead, "--by", "well", "--ucl", "--json", "--report", "page.html")
    assert told.exit_code == 0, told.output
    assert "the page of groups has no limits" in told.stderr
    record = json.loads(told.stdout)["limits"]
    assert record["by"] == "well"
    assert {row["well"] for row in record["rows"]} == {"W0", "W1"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--ucl", "--coverage", "95"),
            "--coverage must be a share between 0 and 1",
        ),
        (("--ucl", "--level", "0.05"), "--level must be above 0.5 with --ucl"),
        (("--coverage", "0.9"), "--coverage and --next-values are of the limits that --ucl prints"),
    ],
)
def test_mistakes_are_named_before_any_work(lead, halfseen, options, sentence):
    result = halfseen("fit", *lead, *options)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())
