"""``halfseen fit --by``: from a laboratory's file to differences between wells in one command."""

import json
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs


@pytest.fixture
def wells(tmp_path):
    rng = np.random.default_rng(3)
    rows = ["Sample,Well,lead,zinc"]
    for well, shift in (("W1", 0.0), ("W10", 1.5), ("W2", 0.0)):
        for k in range(15):
            pair = np.exp(rng.multivariate_normal([shift, 2.0], [[0.5, 0.3], [0.3, 0.5]]))
            cells = [f"<{c}" if x < c else f"{x:.4g}" for x, c in zip(pair, (0.8, 5), strict=True)]
            rows.append(",".join([f"{well}-{k}", well, *cells]))
    (tmp_path / "wells.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return "wells.csv", "--by", "Well", "--index", "Sample"


def test_one_command_makes_a_table_of_differences(wells, halfseen):
    result = halfseen("fit", *wells, "--log", "--report", "wells.html", "-o", "wells.json")
    assert result.exit_code == 0, result.output
    assert "W1 / W10" in result.stdout
    assert "45 rows, 2 columns" in result.output
    answer = json.loads(Path("wells.json").read_text(encoding="utf-8"))
    assert answer["groups"] == ["W1", "W2", "W10"]
    data = hs.read_csv("wells.csv", index="Sample", keep="Well")
    fit = hs.fit(data, by="Well", transforms="log", random_state=0)
    assert answer["differences"] == json.loads(json.dumps(fit.differences().rows()))
    assert answer["tests"][0]["p_value"] < 1e-4
    page = Path("wells.html").read_text(encoding="utf-8")
    assert "--by Well" in page


def test_figures_for_machines(wells, halfseen):
    answer = json.loads(halfseen("fit", *wells, "--json").stdout)
    assert answer["by"] == "Well"
    assert answer["columns"] == ["lead", "zinc"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--by", "well"), "did you mean 'Well'?"),
        (("--by", "Sample", "--index", "Well"), "as many groups as rows"),
        (("--by", "Well", "--index", "Sample", "--save", "x.hsfit"), "--by makes several"),
        (("--by", "Well", "--index", "Sample", "--errors", "t"), "normal errors"),
        (("--by", "Well", "--index", "Sample", "--loss", "0.1"), "does not go with --by"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(wells, halfseen, words, sentence):
    result = halfseen("fit", "wells.csv", *words)
    assert result.exit_code == 2
    assert sentence in " ".join(result.output.split())


def test_a_blank_label_is_refused_with_its_line(wells, halfseen, tmp_path):
    path = tmp_path / "wells.csv"
    path.write_text(path.read_text(encoding="utf-8") + "S,,1.0,2.0\n", encoding="utf-8")
    result = halfseen("fit", *wells)
    assert result.exit_code == 2
    assert "the row has no group" in " ".join(result.output.split())
    assert "line 47" in result.output
