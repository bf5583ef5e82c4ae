import json
import re

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from tests.regression.tables import FORMULAS, SELECTION, heckman

N = 200
RNG = np.random.default_rng(3)
AGE = RNG.uniform(20.0, 70.0, N).round(1)
SITE = RNG.choice(["mill", "well", "yard"], N)
E = RNG.multivariate_normal([0.0, 0.0], [[0.25, 0.1], [0.1, 0.25]], N)
LEAD, ZINC = ((0.02 * AGE + 0.3 * (SITE == "well"))[:, None] + E).T.round(4)
GRADE = np.array(["low", "mid", "high"])[np.digitize(ZINC, [0.7, 1.2])]
SICK = np.where(LEAD > 1.0, "true", "false")
FORMULA = "lead + zinc ~ age + C(site)"
FRAME = pd.DataFrame(
    {"lead": np.where(LEAD >= 0.5, LEAD, np.nan), "zinc": ZINC, "age": AGE, "site": SITE}
)
WAGES = pd.DataFrame(heckman(300)[0])


@pytest.fixture
def run(halfseen, tmp_path):
    """Write tables, and run the command on them."""
    cells = ["<0.5" if x < 0.5 else str(x) for x in LEAD]
    mixed = FRAME.assign(lead=cells, grade=GRADE, sick=SICK, sick01=1 * (LEAD > 1.0))
    mixed.to_csv(tmp_path / "cells.csv", index=False)
    FRAME.assign(grade=GRADE, sick=SICK, block=np.arange(N) // 5).to_csv(
        tmp_path / "data.csv", index=False
    )
    WAGES.assign(works=1 * WAGES["works"]).to_csv(tmp_path / "wages.csv", index=False)

    def regress(*words, **more):
        return halfseen("regress", *words, **more)

    return regress


def flat(result):
    return re.sub(r"\s+", " ", result.output)


def answer(result, code=0):
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_the_answer_is_that_of_the_python_interface(run):
    told = answer(run("data.csv", FORMULA, "--seen", "lead: >=0.5", "--json"))
    fit = hs.regress(FORMULA, FRAME, {"lead": ">=0.5"}, random_state=0)
    assert told == fit.to_dict()
    slope = told["outcomes"]["lead"]["coefficients"]["age"]
    assert abs(slope["estimate"] - 0.02) < 4.5 * slope["standard_error"]


def test_cells_say_their_limits(run):
    told = answer(run("cells.csv", FORMULA, "--json"))
    ruled = answer(run("data.csv", FORMULA, "--seen", "lead: >=0.5", "--json"))
    for name in ("lead", "zinc"):
        for term, one in told["outcomes"][name]["coefficients"].items():
            other = ruled["outcomes"][name]["coefficients"][term]
            assert one["estimate"] == pytest.approx(other["estimate"], rel=1e-6)


def test_flags_and_ends_are_read_and_are_no_regressors(run, tmp_path):
    low = LEAD < 0.5
    beside = FRAME.assign(lead=np.where(low, 0.5, LEAD), lead_flag=np.where(low, "<", ""))
    beside.drop(columns="site").to_csv(tmp_path / "flags.csv", index=False)
    ends = {"lead_lower": np.where(low, np.nan, LEAD), "lead_upper": np.where(low, 0.5, LEAD)}
    FRAME.drop(columns=["lead", "site"]).assign(**ends).to_csv(tmp_path / "ends.csv", index=False)
    expected = answer(run("cells.csv", "lead + zinc ~ age", "--json"))
    for file in ("flags.csv", "ends.csv"):
        # The dot stands for all columns but outcomes, and what speaks of them is none.
        told = answer(run(file, "lead + zinc ~ .", "--json"))
        assert told["outcomes"] == expected["outcomes"], file


def test_selection_with_a_formula_for_each_outcome(run):
    words = "wages.csv", "wage ~ educ", "works ~ educ + kids"
    told = answer(run(*words, "--select", "wage: works", "--json"))
    data = WAGES.assign(works=1.0 * WAGES["works"])
    assert told == hs.regress(FORMULAS, data, SELECTION, random_state=0).to_dict()
    other = answer(
        run(
            "wages.csv", "wage ~ educ", "idle ~ educ + kids", "--select", "wage: not idle", "--json"
        )
    )
    idle = other["outcomes"]["idle"]["coefficients"]["kids"]["estimate"]
    kids = told["outcomes"]["works"]["coefficients"]["kids"]["estimate"]
    assert idle == pytest.approx(-kids, rel=1e-4)


def test_thresholds_that_go_with_a_covariate(run, tmp_path):
    shown = ZINC >= 0.02 * AGE - 0.3
    frame = FRAME.assign(zinc=np.where(shown, ZINC, np.nan))
    frame.to_csv(tmp_path / "line.csv", index=False)
    rule = "zinc: zinc - 0.02*age >= -0.3"
    told = answer(run("line.csv", "zinc ~ site", "--seen", rule, "--json"))
    assert told == hs.regress("zinc ~ site", frame, hs.rules(rule), random_state=0).to_dict()
    wrong = run("line.csv", "zinc ~ site", "--seen", rule.replace("age", "aeg"))
    assert wrong.exit_code == 2
    assert "did you mean 'age'" in flat(wrong)


def test_truths_have_no_blank_cells_to_speak_of(run):
    result = run("data.csv", "sick ~ age")
    assert result.exit_code == 0, result.output
    assert "blank" not in flat(result)


def test_kinds(run):
    told = answer(run("data.csv", "grade + lead ~ age", "--kind", "grade: low < mid < high", "--seen",
                      "lead: >=0.5", "--json"))  # fmt: skip
    assert told["outcomes"]["grade"]["categories"] == ["low", "mid", "high"]
    assert told["outcomes"]["grade"]["kind"] == "ordered"
    by_words = answer(run("cells.csv", "sick ~ age", "--json"))
    by_numbers = answer(run("cells.csv", "sick01 ~ age", "--kind", "sick01: binary", "--json"))
    listed = answer(run("cells.csv", "sick01 ~ age", "--kind", "sick01: 0 < 1", "--json"))
    for name, one in (("sick", by_words), ("sick01", by_numbers), ("sick01", listed)):
        assert one["outcomes"][name]["kind"] == "binary"
        assert one["log_likelihood"] == by_words["log_likelihood"]
    plain = answer(run("cells.csv", "sick01 ~ age", "--kind", "sick01: continuous", "--json"))
    assert plain["outcomes"]["sick01"]["kind"] == "continuous"


def test_errors_of_rows_and_of_clusters(run):
    words = "data.csv", FORMULA, "--seen", "lead: >=0.5", "--json"
    assert answer(run(*words, "--cluster", "block"))["clusters"] == N // 5
    assert answer(run(*words, "--robust"))["robust"]
    weighted = answer(run(*words, "--weights", "age"))
    assert weighted["robust"]
    assert weighted["weighted"]
    assert weighted["aic"] is None
    pulled = answer(run(*words, "--penalty", "lasso", "--strength", "0.2"))
    assert pulled["penalty"] == {"kind": "lasso", "strength": 0.2}
    refused = run(*words, "--penalty", "lasso", "--robust")
    assert refused.exit_code == 2
    assert "without" in flat(refused)
    alone = answer(run(*words, "--diagonal", "--level", "0.9"))
    assert alone["residual_covariance"]["lead"]["zinc"] == 0.0
    assert alone["level"] == 0.9


def test_rows_without_covariates_are_dropped_if_that_is_said(run, tmp_path):
    frame = FRAME.copy()
    frame.loc[[3, 8], "age"] = np.nan
    frame.loc[[8, 20], "site"] = ""
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    words = "gaps.csv", FORMULA, "--seen", "lead: >=0.5"
    refused = run(*words)
    assert refused.exit_code == 2
    assert "row 3 (line 5), column age: the value is missing" in flat(refused)
    assert "(2 in age, 2 in site; 3 rows in all). Pass --drop-missing" in flat(refused)
    dropped = run(*words, "--drop-missing", "--json")
    assert "left out 3 rows of 200" in flat(dropped)
    fit = hs.regress(FORMULA, FRAME.drop(index=[3, 8, 20]), {"lead": ">=0.5"}, random_state=0)
    assert answer(dropped) == fit.to_dict()
    # What is not asked about may be missing.
    assert run("gaps.csv", "zinc ~ age", "--drop-missing").exit_code == 0
    assert "left out 2 rows" in flat(run("gaps.csv", "zinc ~ age", "--drop-missing"))


def test_rows_after_dropped_ones_are_told_by_their_line(run, tmp_path):
    frame = FRAME.assign(lead=LEAD)
    frame.loc[0, "age"] = np.nan
    frame.loc[40, "lead"] = 0.1
    frame.loc[frame["lead"] < 0.5, "lead"] = np.nan
    frame.loc[40, "lead"] = 0.1
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    found = run("gaps.csv", FORMULA, "--seen", "lead: >=0.5", "--drop-missing")
    assert found.exit_code == 3
    assert "row 40 (line 42), column lead: the value 0.1 is seen" in flat(found)


def test_limits_of_a_file_by_column_and_by_row(run, tmp_path):
    words = "data.csv", FORMULA, "--json"
    (tmp_path / "limits.csv").write_text("column,lower\nlead,0.5\n")
    by_column = answer(run(*words, "--limits", "limits.csv"))
    assert by_column == answer(run(*words, "--seen", "lead: >=0.5"))
    frame = FRAME.copy()
    frame.loc[7, "age"] = np.nan
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    (tmp_path / "rows.csv").write_text("lead\n" + "0.5\n" * N)
    by_row = answer(run("gaps.csv", *words[1:], "--limits", "rows.csv", "--drop-missing"))
    (tmp_path / "limits.csv").write_text("column,lower\nlead,0.5\n")
    other = answer(run("gaps.csv", *words[1:], "--limits", "limits.csv", "--drop-missing"))
    assert by_row["log_likelihood"] == pytest.approx(other["log_likelihood"], abs=1e-8)


def test_blank_cells(run, tmp_path):
    words = "data.csv", "lead ~ age"
    hidden = answer(run(*words, "--seen", "lead: >=0.5", "--json"))
    random = answer(run(*words, "--seen", "lead: >=0.5", "--blank", "random", "--json"))
    slopes = [
        one["outcomes"]["lead"]["coefficients"]["age"]["estimate"] for one in (hidden, random)
    ]
    assert slopes[1] < slopes[0]
    unruled = run(*words)
    assert "no rule is stated, so" in flat(unruled)
    assert "--blank hidden says that" in flat(run(*words, "--blank", "hidden"))
    frame = FRAME.assign(
        lead=[("" if k % 9 else "ND") if x < 0.5 else x for k, x in enumerate(LEAD)]
    )
    frame.to_csv(tmp_path / "nd.csv", index=False)
    assert "State the limit, as in --seen 'lead: >=0.5'" in flat(run("nd.csv", "lead ~ age"))
    some = run("nd.csv", "lead ~ age", "--seen", "lead: >=0.5", "--json")
    assert "taken to be missing at random" in flat(some)
    assert answer(some) != hidden
    whole = answer(
        run("nd.csv", "lead ~ age", "--seen", "lead: >=0.5", "--blank", "hidden", "--json")
    )
    assert whole == hidden


def test_clipped_values(run, tmp_path):
    FRAME.assign(lead=np.maximum(LEAD, 0.5)).to_csv(tmp_path / "clip.csv", index=False)
    words = "lead ~ age", "--seen", "lead: >=0.5", "--json"
    clipped = answer(run("clip.csv", *words, "--saturated"))
    blank = answer(run("data.csv", *words))
    assert clipped["log_likelihood"] == pytest.approx(blank["log_likelihood"], abs=1e-6)
    assert "--saturated needs the limits" in flat(run("clip.csv", "lead ~ age", "--saturated"))


def test_parquet_and_standard_input_and_other_signs(run, tmp_path):
    words = FORMULA, "--seen", "lead: >=0.5", "--json"
    expected = answer(run("data.csv", *words))
    FRAME.to_parquet(tmp_path / "data.parquet")
    assert answer(run("data.parquet", *words)) == expected
    text = (tmp_path / "data.csv").read_text()
    assert answer(run("-", *words, input=text)) == expected
    FRAME.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    assert answer(run("comma.csv", *words, "--decimal", ",")) == expected
    WAGES.to_parquet(tmp_path / "wages.parquet")
    formulas = "wage ~ educ", "works ~ educ + kids", "--select", "wage: works", "--json"
    assert answer(run("wages.parquet", *formulas))["outcomes"]["works"]["kind"] == "binary"


def test_text_files_and_saved_fits(run, tmp_path):
    result = run(
        "data.csv", FORMULA, "--seen", "lead: >=0.5", "-o", "fit.json", "--save", "fit.hsreg"
    )
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stderr.splitlines())) <= 80
    assert "data.csv: 200 rows" in flat(result)
    assert "wrote fit.json" in result.stderr
    saved = json.loads((tmp_path / "fit.json").read_text())
    fit = hs.load(tmp_path / "fit.hsreg")
    assert saved == fit.to_dict()
    assert result.stdout.strip() == fit.summary().strip()
    assert fit.predict({"age": [30.0], "site": ["mill"]}, "seen").shape == (1, 2)


def test_a_report(run, tmp_path):
    if not hasattr(hs.RegressionFit, "report"):
        pytest.skip("regressions have no page")
    result = run("data.csv", FORMULA, "--seen", "lead: >=0.5", "--report", "page.html")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "halfseen regress data.csv" in page


def test_an_answer_that_needs_a_look_has_exit_code_1(run, tmp_path):
    # Outcomes that are never seen together.
    first = np.arange(N) < N // 2
    frame = FRAME.assign(lead=np.where(first, LEAD, np.nan), zinc=np.where(first, np.nan, ZINC))
    frame.to_csv(tmp_path / "apart.csv", index=False)
    result = run("apart.csv", "lead + zinc ~ age")
    assert result.exit_code == 1, result.output
    assert "not determined" in flat(result)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["absent.csv", "a ~ b"], 2, "absent.csv cannot be read"),
        (["data.csv", "lead ~ aeg"], 2, "did you mean 'age'"),
        (["data.csv", "laed ~ age"], 2, "did you mean 'lead'"),
        (["data.csv", "lead ~ logg(age)"], 2, "logg"),
        (["data.csv", "lead"], 2, "~"),
        (["data.csv", "lead ~ age", "lead + zinc ~ site"], 2, "lead is the outcome of two formulas"),
        (["data.csv", "lead ~ age + zinc", "zinc ~ age"], 2, "among the regressors too"),
        (["data.csv", "lead ~ age", "--seen", "led: >=0.5"], 2, "did you mean 'lead'"),
        (["data.csv", "grade ~ age"], 2, "as in --kind 'grade: high < low < mid'"),
        (["cells.csv", "sick01 ~ age"], 2, "Say --kind 'sick01: binary' for a probit"),
        (["data.csv", "lead ~ age", "--kind", "led: binary"], 2, "--kind speaks of led"),
        (["data.csv", "lead ~ age", "--kind", "lead: bin"], 2, "--kind is written as"),
        (["data.csv", "lead ~ age", "--kind", "lead"], 2, "--kind is written as"),
        (["data.csv", "grade ~ age", "--kind", "grade: low < high"], 2, "grade: the value is 'mid'"),
        (["data.csv", "zinc ~ age", "--kind", "zinc: low < high"], 2, "but the column holds numbers"),
        (["wages.csv", "wage ~ educ", "--select", "wage: works"], 2, "Add a formula: 'works ~ …'"),
        (["wages.csv", "wage ~ educ", "--select", "wage"], 2, "--select is written as"),
        (["data.csv", "lead ~ age", "--cluster", "blok"], 2, "did you mean 'block'"),
        (["data.csv", "lead ~ age", "--level", "2"], 2, "--level must be a share"),
        (["data.csv", "lead ~ age", "--seen", "lead: >=0,5"], 2, "position 9"),
        (["data.csv", "zinc ~ age", "--seen", "zinc: >=1"], 3, "column zinc: the value"),
        (["data.csv", "lead ~ age", "--report", "no/r.html"], 2, "there is no folder no"),
        (["data.csv", "lead ~ age", "--index", "lab"], 2, "there is no column 'lab'"),
        (["bad.csv", "lead ~ age"], 2, "line 3, column lead: 'o.7' is no number"),
        (["wages.csv", "wage ~ educ + I(2 * educ)"], 4, "repeat each other"),
        ([".", "lead ~ age"], 2, "has no files that end in .parquet"),
    ],
)  # fmt: skip
def test_mistakes_get_a_sentence_and_an_exit_code(run, tmp_path, words, code, sentence):
    (tmp_path / "bad.csv").write_text("lead,age\n0.6,31\no.7,44\n0.9,28\n1.5,61\n")
    result = run(*words)
    assert result.exit_code == code, result.output
    assert sentence in flat(result)
    assert "Traceback" not in result.output


def test_a_slip_in_a_column_of_numbers_is_told(run, tmp_path):
    frame = FRAME.astype({"age": object})
    frame.loc[5, "age"] = "3o"
    frame.to_csv(tmp_path / "slip.csv", index=False)
    told = flat(run("slip.csv", "zinc ~ age"))
    assert "column age holds 199 numbers, but line 7 has '3o'" in told
    assert run("slip.csv", "zinc ~ age", "--missing", "3o", "--drop-missing").exit_code == 0


def test_labels_are_told(run, tmp_path):
    frame = FRAME.assign(sample=[f"S{k}" for k in range(N)])
    frame.loc[2, "age"] = np.nan
    frame.to_csv(tmp_path / "named.csv", index=False)
    told = flat(run("named.csv", "zinc ~ age", "--index", "sample"))
    assert "row 2 (line 4, label 'S2'), column age" in told


def test_without_formulaic_the_install_line_is_told(run, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "formulaic", None)
    result = run("data.csv", "zinc ~ age")
    assert result.exit_code == 2
    assert 'pip install "halfseen[formulas]"' in flat(result)


def test_help_is_80_columns_wide(halfseen):
    result = halfseen("regress", "--help", env={"TERM": "dumb", "COLUMNS": "80"})
    assert result.exit_code == 0
    assert "Exit codes" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    for option in ("--select", "--kind", "--drop-missing", "--cluster", "--seen"):
        assert option in result.output
    assert "--transform" not in result.output


def test_categories_of_a_file_keep_their_order_and_their_names(run, tmp_path):
    # "none" is a category here, though elsewhere it says that a cell is missing.
    order = ["high", "none", "mid"]
    words = np.array(order)[np.digitize(ZINC, [0.7, 1.2])]
    frame = FRAME.assign(grade=pd.Categorical(words, order, ordered=True))
    frame.to_parquet(tmp_path / "grades.parquet")
    frame.to_csv(tmp_path / "grades.csv", index=False)
    plain = hs.regress("grade ~ age", frame, random_state=0)
    for words in (
        ["grades.parquet", "grade ~ age"],
        ["grades.csv", "grade ~ age", "--kind", "grade: high < none < mid"],
    ):
        found = answer(run(*words, "--json"))["outcomes"]["grade"]
        assert found["categories"] == order
        # None of them counts as missing: the estimates are those of all rows.
        np.testing.assert_allclose(found["cut_points"], plain.cut_points["grade"], rtol=1e-6)


def test_coefficients_that_are_known_or_the_same(run, tmp_path):
    frame = pd.read_csv(tmp_path / "data.csv")
    words = ["data.csv", "lead + zinc ~ age", "--seen", "lead: >=0.5", "--json"]
    rule = {"lead": ">=0.5"}
    for more, options in (
        (["--fixed", "lead: age=0.02"], {"fixed": {"lead": {"age": 0.02}}}),
        (["--equal", "lead, zinc: age"], {"equal": [[("lead", "age"), ("zinc", "age")]]}),
        (["--equal", "lead: age = zinc: age"], {"equal": [[("lead", "age"), ("zinc", "age")]]}),
    ):
        found = answer(run(*words, *more))["outcomes"]
        fit = hs.regress("lead + zinc ~ age", frame, rule, random_state=0, **options)
        for name in ("lead", "zinc"):
            own = found[name]["coefficients"]["age"]
            assert own["estimate"] == pytest.approx(fit.coefficients.loc["age", name], abs=1e-8)
            assert own["learned"] == ("fixed" not in options or name == "zinc")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--fixed", "age=0"], "--fixed is written as 'lead: age=0.04'; got 'age=0'"),
        (["--fixed", "lead: age=none"], "a number, as in 'lead: age=0.04'; got 'none'"),
        (["--fixed", "lead: age=1", "--fixed", "lead: age=2"], "age of lead twice"),
        (["--fixed", "lead: years=1"], "lead has no term 'years'; its terms are Intercept, age"),
        (["--fixed", "tin: age=1"], "there is no outcome 'tin'"),
        (["--equal", "lead: age"], "two coefficients at least"),
        (["--equal", "lead"], "--equal is written as 'lead, zinc: age'; got 'lead'"),
        (["--truncated", ">=0"], "--truncated is written as 'wage: >=0'; got '>=0'"),
        (["--truncated", "lead: >=0"], "for a regression of one outcome; got 2"),
    ],
)
def test_what_cannot_be_said_of_coefficients(run, words, sentence):
    result = run("data.csv", "lead + zinc ~ age", "--blank", "random", *words)
    assert result.exit_code == 2
    assert sentence in flat(result)


def test_rows_that_are_not_in_the_table(run, tmp_path):
    whole = pd.read_csv(tmp_path / "data.csv").dropna()
    whole.to_csv(tmp_path / "whole.csv", index=False)
    found = answer(run("whole.csv", "lead ~ age", "--truncated", "lead: >=0.5", "--json"))
    fit = hs.regress("lead ~ age", whole, truncated={"lead": ">=0.5"}, random_state=0)
    own = found["outcomes"]["lead"]["coefficients"]["age"]
    assert own["estimate"] == pytest.approx(fit.coefficients.loc["age", "lead"], abs=1e-8)
    refused = run("data.csv", "lead ~ age", "--truncated", "lead: >=0.5")
    assert "with --truncated every row in the table shows it" in flat(refused)
    refused = run("whole.csv", "lead ~ age", "--truncated", "lead: >=0.7")
    assert refused.exit_code == 3
    assert "Leave such rows out, or correct the set." in flat(refused)


def test_saturated_values_are_described_as_they_are_fitted(run, tmp_path):
    pd.DataFrame({"lead": np.maximum(LEAD, 0.8), "age": AGE}).to_csv(
        tmp_path / "p.csv", index=False
    )
    words = ["p.csv", "lead ~ age", "--seen", "lead: >=0.8"]
    asked = flat(run(*words))
    assert "exactly on the limit: lead" in asked
    assert "pass --saturated" in asked
    told = flat(run(*words, "--saturated"))
    assert f"{(LEAD <= 0.8).sum()} below" in told
    assert "exactly on the limit" not in told
