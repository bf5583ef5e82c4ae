"""Long files and rounded values on the command line, as a new user has them."""

import csv
import io
import json
import re
import shlex

import numpy as np
import pytest

import halfseen as hs

HOW = ("--id", "Sample", "--variable", "Analyte", "--value", "Result")
LIMITS = {"lead": 0.5, "zinc": 2.0}


def mean(out):
    """Return the means that a fit printed with --json."""
    assert out.exit_code == 0, out.stderr
    return list(json.loads(out.stdout)["mean"].values())


@pytest.fixture(scope="module")
def export():
    """A laboratory's export: 40 samples of two wells, a zinc of every eighth sample never measured."""
    Y = np.exp(hs.Gaussian([0.0, 1.0], [[1.0, 0.6], [0.6, 1.0]]).sample(40, random_state=2))
    lines = ["Sample,Well,Depth,Analyte,Result,Qualifier,Unit"]
    for k, row in enumerate(Y):
        for (name, limit), y in zip(LIMITS.items(), row, strict=True):
            cell = f"<{limit},U" if y < limit else f"{y:.4g},"
            if not (name == "zinc" and k % 8 == 3):
                lines.append(f"S{k},{'AB'[k % 2]},{3 + k % 4},{name},{cell},ug/L")
    return "\n".join(lines) + "\n"


@pytest.fixture
def lab(halfseen, tmp_path, export):
    (tmp_path / "long.csv").write_text(export)
    return halfseen


def test_one_command_from_an_export_to_an_answer(lab, export):
    out = lab("fit", "long.csv", *HOW, "--log", "--json")
    assert out.exit_code == 0, out.stderr
    data = hs.read_long(io.StringIO(export), id="Sample", variable="Analyte", value="Result")
    assert mean(out) == hs.fit(data, transforms="log", random_state=0).mean.tolist()
    shown = lab("fit", "long.csv", *HOW, "--log")
    assert "long.csv: 40 rows, 2 columns" in shown.stderr
    assert "note: 5 cells have no row in the file, and are missing at random." in shown.stderr
    assert "state the rule" not in shown.stderr


def test_the_command_that_the_error_says_works_as_it_stands(lab):
    out = lab("fit", "long.csv")
    assert out.exit_code == 2
    words = shlex.split(re.search(r"halfseen (fit .*)", out.stderr)[1])
    assert words == ["fit", "long.csv", *HOW]
    assert lab(*words, "--log").exit_code == 0
    # Following the other advice is not silent.
    assert (
        "looks like a long table"
        in lab("check", "long.csv", "--columns", "Result", "--quick").stderr
    )


def test_a_long_command_stands_on_one_line(lab, tmp_path):
    name = "analyte as it is named in the contract"
    text = (tmp_path / "long.csv").read_text().replace("Analyte", name)
    (tmp_path / "long.csv").write_text(text)
    told = lab("fit", "long.csv").stderr
    assert f"  halfseen fit long.csv --id Sample --variable '{name}' --value Result\n" in told


def test_columns_that_are_kept_and_covariates(lab):
    out = lab("fit", "long.csv", *HOW, "--keep", "Well", "--covariates", "Depth", "--json")
    assert [*json.loads(out.stdout)["mean"]] == ["Depth", "lead", "zinc"]
    assert lab("check", "long.csv", *HOW, "--log", "--quick").exit_code == 0


def test_a_long_file_comes_back_filled_in_its_shape(lab, export):
    out = lab("impute", "long.csv", *HOW, "--log", "--marks", "--columns", "zinc")
    assert out.exit_code == 0, out.stderr
    before = list(csv.DictReader(io.StringIO(export)))
    after = list(csv.DictReader(io.StringIO(out.stdout)))
    assert list(after[0]) == [
        *("Sample", "Well", "Depth", "Analyte", "Result", "Qualifier_original", "Unit"),
        "Result_filled",
    ]
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        hidden = old["Analyte"] == "zinc" and old["Result"].startswith("<")
        assert new["Result_filled"] == "01"[hidden]
        if hidden:
            assert 0 < float(new["Result"]) < LIMITS["zinc"]
        else:
            # What was not read stays as it is, also "<0.5".
            assert new["Result"] == str(old["Result"])
    draws = lab("impute", "long.csv", *HOW, "--log", "--draws", "2").stdout.splitlines()
    assert len(draws) == 1 + 2 * len(before)


def test_visits_that_did_not_take_place_are_not_hidden_by_a_rule(halfseen, tmp_path):
    rng = np.random.default_rng(3)
    lines = ["id,week,x"]
    for k in range(60):
        for week, x in enumerate(rng.normal(size=2)):
            if week == 0 or k % 3:
                lines.append(f"{k},{week},{'' if x < -1 else round(x, 3)}")
    (tmp_path / "v.csv").write_text("\n".join(lines) + "\n")
    words = ["fit", "v.csv", "--id", "id", "--time", "week", "--value", "x", "--json"]
    rule = ["--seen", "week_0: >=-1", "--seen", "week_1: >=-1"]
    found = mean(halfseen(*words, *rule))
    # As many as 20 absent visits below -1 would take the mean of week 1 down by half a deviation.
    assert found == pytest.approx([0.0, 0.0], abs=0.35)
    (tmp_path / "limits.csv").write_text(
        "id,week_0,week_1\n" + "".join(f"{k},-1,-1\n" for k in reversed(range(60)))
    )
    assert mean(halfseen(*words, "--limits", "limits.csv")) == pytest.approx(found, abs=2e-3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--id", "Sample"], "--id is for long tables, of which --id and --value must say"),
        (["--time", "Depth"], "--time is for long tables"),
        ([*HOW, "--index", "Well"], "--index is not for long tables"),
        ([*HOW[:2], *HOW[4:]], "--time, or of what, --variable"),
        ([*HOW, "--keep", "Depht"], "--keep: there is no column 'Depht'; did you mean 'Depth'?"),
        (["--id", "Well", *HOW[2:]], "line 2 and line 6"),
        ([*HOW, "--limit", "Lmt"], "--limit: there is no column 'Lmt'"),
        ([*HOW, "--flag", "lead=Qualifier"], "--flag must name the column that goes with Result"),
        ([*HOW, "--flag", "Qualifier:Z"], "--flag: Qualifier marks no cell of Result with 'Z'"),
        ([*HOW, "--exclude", "Well"], "--exclude is not for long tables"),
        ([*HOW, "--columns", "leed"], "did you mean 'lead'?"),
        ([*HOW, "--rounded", "lead: x"], "--rounded is written as"),
    ],
)
def test_mistakes_get_a_sentence(lab, words, sentence):
    out = lab("fit", "long.csv", *words)
    assert out.exit_code == 2
    assert sentence in " ".join(out.stderr.split())


def test_flags_and_limits_are_named_alone_or_beside_the_value(halfseen, tmp_path):
    cells = ["0.5,x,0.5", "0.5,,0.5", "0.9,,0.5", "1.4,,0.5", "0.2,,0.5", "2.1,,0.5"] * 8
    lines = ["Sample,Analyte,Result,Remark,Bound"]
    lines += [f"S{k // 2},{('lead', 'zinc')[k % 2]},{cell}" for k, cell in enumerate(cells)]
    text = "\n".join(lines) + "\n"
    (tmp_path / "t.csv").write_text(text)
    how = {"id": "Sample", "variable": "Analyte", "value": "Result", "limits": "Bound"}
    flagged = hs.read_long(io.StringIO(text), flags="Remark:x", **how)
    assert str(flagged.describe()).endswith("40 seen, 8 below")
    clipped = hs.read_long(io.StringIO(text), flags="Remark:x", saturated=True, **how)
    assert str(clipped.describe()).endswith("24 seen, 24 below")
    assert (clipped.upper[~clipped.seen] == 0.5).all()
    for flag, limit in (("Remark:x", "Bound"), ("Result=Remark:x", "Result=Bound")):
        words = ("fit", "t.csv", *HOW, "--flag", flag, "--limit", limit, "--json")
        assert mean(halfseen(*words)) == hs.fit(flagged, random_state=0).mean.tolist()
        assert "24 seen, 24 below" in halfseen(*words[:-1], "--saturated").stderr


def test_parquet_and_errors_that_name_a_subject(halfseen, tmp_path, export):
    import pandas as pd

    frame = pd.read_csv(io.StringIO(export))
    frame.to_parquet(tmp_path / "long.parquet")
    out = halfseen("fit", "long.parquet", *HOW, "--log", "--json")
    assert out.exit_code == 0, out.stderr
    wide = halfseen("impute", "long.parquet", *HOW, "--log").stdout
    assert wide.startswith("Sample,lead,zinc\nS0,")
    frame.loc[0, "Result"] = "-1"
    frame.to_csv(tmp_path / "wrong.csv", index=False)
    wrong = halfseen("fit", "wrong.csv", *HOW, "--log")
    # Rows of the wide table have no line in the file.
    assert "row 0 (label 'S0'), column lead" in " ".join(wrong.stderr.split())


def test_rounded_values(halfseen, tmp_path):
    Y = hs.Gaussian([40.0, 3.0], [[100.0, 6.0], [6.0, 1.0]]).sample(200, random_state=4)
    age, dose = 5 * np.round(Y[:, 0] / 5), np.round(Y[:, 1], 1)
    cells = ["<2" if d < 2 else f"{d:.1f}" for d in dose]
    lines = ["age,dose", *(f"{a:g},{cell}" for a, cell in zip(age, cells, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    out = halfseen("fit", "t.csv", "--rounded", "age: 5, dose: 0.1", "--json")
    data = hs.read_csv(tmp_path / "t.csv")
    fit = hs.fit(data, hs.rounded({"age": 5, "dose": 0.1}), random_state=0)
    assert mean(out) == fit.mean.tolist()
    # What the cells of the file say is told, not that each stands for an interval.
    assert "seen" in halfseen("fit", "t.csv", "--rounded", "age: 5").stderr
    filled = halfseen("impute", "t.csv", "--rounded", "age: 5", "--draws", "1").stdout
    rows = np.array([row.split(",")[1:] for row in filled.splitlines()[1:]], dtype=float)
    assert (np.abs(rows[:, 0] - age) <= 2.5).all()
    assert halfseen("check", "t.csv", "--rounded", "age: 5/1", "--quick").exit_code == 0
    same = halfseen("fit", "t.csv", "--rounded", "age: 200")
    assert same.exit_code == 4
    assert "could be the same value in all" in " ".join(same.stderr.split())
