"""``halfseen regress`` on Parquet files in pieces, and its checkpoints."""

import json

import pytest

import halfseen as hs
from halfseen.cli import inputs
from tests.regression.tables import FORMULAS, SELECTION
from tests.regression.test_in_pieces import files, graded, selected, sites

FORMULA, RULE = "lead + zinc ~ age + site + C(code)", ("lead: >=0.5", "zinc: >=0.2")
SEEN = ("--seen", RULE[0], "--seen", RULE[1])


@pytest.fixture
def folder(halfseen, tmp_path):
    return files(tmp_path / "data", sites(), 3)


def test_a_folder_is_fitted_as_in_python(halfseen, folder):
    told = [
        halfseen("regress", data, FORMULA, *SEEN, "--seed", 2, "--json", *more)
        for data, more in ((folder, ()), (f"{folder}/*.parquet", ("--memory", "2GB")))
    ]
    assert [one.exit_code for one in told] == [0, 0], told[0].output + told[1].output
    fit = hs.regress(FORMULA, folder, hs.rules(list(RULE)), random_state=2)
    assert json.loads(told[0].stdout) == json.loads(told[1].stdout) == fit.to_dict()
    said = halfseen("regress", folder, "lead ~ age", "--seen", RULE[0], "--robust")
    assert "900 rows, read in 3 pieces" in " ".join(said.stderr.split())
    assert "robust" in said.stdout


def test_selections_and_kinds(halfseen, tmp_path):
    data = files(tmp_path / "wages", selected(), 2)
    formulas = [f"{name} ~ {right}" for name, right in FORMULAS.items()]
    told = halfseen("regress", data, *formulas, "--select", "wage: works", "--json")
    fit = hs.regress(FORMULAS, data, SELECTION, random_state=0)
    assert json.loads(told.stdout) == fit.to_dict()
    frame = graded().astype({"grade": str, "works": int})
    words = ("--kind", "grade: low < mid < high", "--kind", "works: 0 < 1", "--diagonal", "--json")
    told = halfseen("regress", files(tmp_path / "grades", frame, 2), "grade + works ~ x", *words)
    kinds = {"grade": ["low", "mid", "high"], "works": [0.0, 1.0]}
    fit = hs.regress("grade + works ~ x", frame, kinds=kinds, covariance="diagonal", random_state=0)
    cut = json.loads(told.stdout)["outcomes"]["grade"]["cut_points"][1]
    assert cut == pytest.approx(fit.cut_points["grade"][1], rel=1e-6)


def test_one_file_is_read_whole_until_it_is_large(halfseen, folder, monkeypatch):
    words = ("regress", folder / "0.parquet", "lead ~ age", "--seen", RULE[0])
    assert "piece" not in halfseen(*words).stderr
    monkeypatch.setattr(inputs, "LARGE", 1000)
    assert "in 1 piece" in " ".join(halfseen(*words).stderr.split())


def test_a_checkpoint_is_written_and_taken_up(halfseen, folder):
    words = ("regress", folder, FORMULA, *SEEN, "--checkpoint", "run.hsckpt", "--json")
    first = halfseen(*words)
    assert first.exit_code == 0, first.output
    again = halfseen(*words)
    assert again.exit_code == 2
    assert "Pass --resume" in " ".join(again.stderr.split())
    assert json.loads(halfseen(*words, "--resume").stdout) == json.loads(first.stdout)


def test_limits_by_column_and_blank_cells(halfseen, folder, tmp_path):
    (tmp_path / "limits.csv").write_text("column,lower,upper\nlead,0.5,\n", encoding="utf-8")
    words = ("regress", folder, "lead ~ age", "--json")
    by_file = halfseen(*words, "--limits", "limits.csv")
    by_rule = halfseen(*words, "--seen", RULE[0])
    assert json.loads(by_file.stdout) == json.loads(by_rule.stdout)
    random = halfseen(*words, "--seen", RULE[0], "--blank", "random")
    fit = hs.regress("lead ~ age", sites().dropna(subset="lead"), random_state=0)
    told = json.loads(random.stdout)["outcomes"]["lead"]["coefficients"]["age"]["estimate"]
    assert told == pytest.approx(fit.weights[0, 1], rel=1e-6)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("data", "lead ~ age", "--cluster", "site"), "--cluster needs the table in memory"),
        (("data", "lead ~ age", "--drop-missing"), "--drop-missing is not for tables"),
        (("data", "lead ~ age", "--saturated", "--seen", RULE[0]), "--saturated is not for tables"),
        (("data", "lead ~ agee"), "the regressor 'agee' is not in the data; did you mean 'age'?"),
        (("data", "note ~ age"), "--kind 'note: low < high'"),
        (("data", "lead ~ center(age)", "--seen", RULE[0]), "learns from all rows"),
        (("data", "lead ~ age", "--blank", "hidden"), "state it by --seen"),
        (("data", "lead ~ age", "--memory", "tiny"), "memory must be a positive amount"),
        (("table.csv", "lead ~ age", "--memory", "1GB"), "--memory is for Parquet files"),
        (("table.csv", "lead ~ age", "--scratch", "."), "--scratch is for Parquet files"),
        (("data", "lead ~ age", "--resume"), "--resume needs to know from where"),
    ],
)
def test_what_cannot_be_done_is_said(halfseen, folder, words, sentence):
    result = halfseen("regress", *words)
    assert result.exit_code == 2, result.output
    assert sentence in " ".join(result.stderr.split())
