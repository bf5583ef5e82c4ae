import io
import json
import re
import sys

import numpy as np
import pytest

import halfseen as hs

VALUES = np.exp(np.random.default_rng(0).normal(size=(80, 2))).round(3)
RULED = "lead,zinc\n" + "\n".join(f"{'' if a < 0.5 else a},{b}" for a, b in VALUES)


def test_the_answer_is_that_of_the_python_interface(halfseen, laboratory):
    path, truth = laboratory
    result = halfseen("fit", path, "--log", "--index", "sample", "--seed", 3, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    data = hs.read_csv(path, index="sample")
    fit = hs.fit(data, transforms="log", random_state=3)
    assert told == fit.to_dict()
    assert told["rows"] == 500
    # And it is a right one: every mean within 4.5 standard errors (8 of them).
    for j, name in enumerate(told["columns"]):
        error = told["standard_errors"]["mean"][name]
        assert abs(told["mean"][name] - truth.mean[j]) < 4.5 * error


def test_text_fits_in_80_columns_and_files_are_named(halfseen, laboratory, tmp_path):
    path, _ = laboratory
    result = halfseen(
        "fit", path, "--log", "--index", "sample", "-o", "fit.json", "--report", "r.html"
    )
    assert result.exit_code == 0, result.output
    assert max(map(len, result.output.splitlines())) <= max(80, len(str(path)) + 80)
    assert "geometric mean" in result.stdout
    assert "wrote r.html" in result.stderr
    saved = json.loads((tmp_path / "fit.json").read_text())
    assert saved["method"] == "full"
    page = (tmp_path / "r.html").read_text()
    assert "--log" in page
    assert len(page.encode()) < 1_500_000


def test_problems_on_the_page_are_named_on_the_screen(halfseen, laboratory, tmp_path):
    path, _ = laboratory
    result = halfseen("fit", path, "--index", "sample", "--report", "r.html")
    assert "the checks found problems: Not normal" in _flat(result)
    page = (tmp_path / "r.html").read_text()
    status = page[page.index('<div class="status">') : page.index("<nav")]
    assert "badge problem" in status
    assert "Not normal" in status


def test_rules_limits_and_blanks(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(RULED)
    (tmp_path / "limits.csv").write_text("column,lower\nlead,0.5\n")
    told = halfseen("fit", "data.csv", "--seen", "lead: >=0.5", "--log", "--json")
    by_file = halfseen("fit", "data.csv", "--limits", "limits.csv", "--log", "--json")
    assert told.exit_code == by_file.exit_code == 0, told.output + by_file.output
    a, b = json.loads(told.stdout), json.loads(by_file.stdout)
    assert a["mean"]["lead"] == pytest.approx(b["mean"]["lead"], rel=1e-9)
    random = json.loads(
        halfseen(
            "fit", "data.csv", "--seen", "lead: >=0.5", "--blank", "random", "--log", "--json"
        ).stdout
    )
    assert random["mean"]["lead"] > a["mean"]["lead"] + 2.0 * a["standard_errors"]["mean"]["lead"]
    assert "taken to be hidden by the rule, in column lead" in _flat(told)
    with pytest.warns(hs.AssumptionWarning, match="taken to be hidden by the rule"):
        fit = hs.fit(
            hs.read_csv(io.StringIO(RULED)),
            hs.rules({"lead": ">=0.5"}),
            transforms="log",
            random_state=0,
        )
    assert a == fit.to_dict()
    other = halfseen("fit", "data.csv", "--seen", "lead: >=0.5", "--method", "pairwise", "--json")
    assert json.loads(other.stdout)["method"] == "pairwise"


def test_values_that_were_lost(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(RULED)
    words = "fit", "data.csv", "--seen", "lead: >=0.5", "--log", "--json"
    known = json.loads(halfseen(*words, "--loss", "0.2").stdout)
    assert known["loss"]["lead"]["share"] == 0.2
    assert known["loss"]["lead"]["learned"] is False
    assert list(known["loss"]) == ["lead"]
    plain = json.loads(halfseen(*words).stdout)
    assert plain["loss"] is None
    assert known["mean"]["lead"] > plain["mean"]["lead"]
    learned = json.loads(halfseen(*words, "--loss", "learn").stdout)["loss"]["lead"]
    assert 0.0 <= learned["lower"] <= learned["share"] <= learned["upper"] <= 1.0
    refused = halfseen(*words, "--loss", "some")
    assert refused.exit_code == 2
    assert "must be a share from 0 to below 1" in refused.stderr


def test_limits_by_cell_and_rules_for_the_rest(halfseen, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 3))
    L = rng.uniform(-1.5, 0.0, size=100).round(3)
    lines = ["a,b,c"] + [
        f"{'' if a < low else a},{'' if b > 1 else b},{c}"
        for (a, b, c), low in zip(X, L, strict=True)
    ]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    (tmp_path / "limits.csv").write_text("\n".join(["a", *map(str, L)]))
    result = halfseen("fit", "data.csv", "--limits", "limits.csv", "--seen", "b: <=1", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert abs(told["mean"]["a"]) < 4.5 * told["standard_errors"]["mean"]["a"]
    assert abs(told["mean"]["b"]) < 4.5 * told["standard_errors"]["mean"]["b"]
    twice = halfseen("fit", "data.csv", "--limits", "limits.csv", "--seen", "a: >=0")
    assert twice.exit_code == 2
    assert "--seen may not speak of columns that have a limit in --limits" in _flat(twice)


def test_scales_for_all_and_for_some(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(RULED)
    words = ["fit", "data.csv", "--seen", "lead: >=0.5", "--json"]
    told = json.loads(halfseen(*words, "--log", "--transform", "zinc: sqrt").stdout)
    assert told["transforms"] == {"lead": "log", "zinc": "sqrt"}
    told = json.loads(halfseen(*words, "--transform", "log10").stdout)
    assert told["transforms"] == {"lead": "log10", "zinc": "log10"}
    told = json.loads(halfseen(*words, "--transform", "lead, zinc: boxcox(0.5)").stdout)
    assert told["transforms"] == {"lead": "boxcox(0.5)", "zinc": "boxcox(0.5)"}
    for wrong, sentence in (
        (["--log", "--transform", "sqrt"], "give one scale for all columns"),
        (["--transform", "lead: log", "--transform", "lead: sqrt"], "names column 'lead' twice"),
        (["--transform", "laed: log"], "did you mean 'lead'?"),
        (["--transform", "ln"], "'ln' is no transform"),
    ):
        result = halfseen(*words, *wrong)
        assert result.exit_code == 2
        assert sentence in _flat(result)


def test_standard_input_and_parquet(halfseen, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    by_pipe = halfseen("fit", "-", "--seen", "lead: >=0.5", "--json", input=RULED)
    data = hs.read_csv(io.StringIO(RULED))
    columns = {name: data.values[:, j] for j, name in enumerate(data.names)}
    pq.write_table(pa.table(columns, schema=None), tmp_path / "data.parquet")
    by_parquet = halfseen("fit", "data.parquet", "--seen", "lead: >=0.5", "--json")
    assert json.loads(by_pipe.stdout) == json.loads(by_parquet.stdout)


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["absent.csv"], 2, "absent.csv cannot be read"),
        (["data.csv", "--seen", "lead: >=0,5"], 2, "lead: >=0,5\n         ^\nposition 9"),
        (["data.csv", "--seen", "zinc: >=1"], 3, "(line 2), column zinc"),
        (["data.csv", "--columns", "lead,zinx"], 2, "--columns: there is no column 'zinx'"),
        (["data.csv", "--columns", "lead,,zinc"], 2, "names are separated by commas"),
        (["data.csv", "--blank", "hidden"], 2, "none is stated; use --seen or --limits"),
        (["data.csv", "--report", "no/r.html"], 2, "there is no folder no"),
        (["data.csv", "--output", "."], 2, "is a folder"),
        (["data.csv", "--limits", "absent.csv"], 2, "absent.csv cannot be read"),
        (["data.csv", "--method", "guess"], 2, "method must be one of"),
        (["one.csv"], 4, "column b has 1 distinct value"),
        (["text.csv"], 2, "make it the row labels with --index site"),
        (["nd.csv"], 2, "State the limit, as in --seen 'a: >=0.5'"),
    ],
)
def test_mistakes_get_a_sentence_and_an_exit_code(halfseen, tmp_path, words, code, sentence):
    (tmp_path / "data.csv").write_text("lead,zinc\n0.6,0.5\n,2.5\n0.9,1.25\n1.5,3.0\n2.5,1.0\n")
    (tmp_path / "one.csv").write_text("a,b\n1,2\n2,2\n3,2\n")
    (tmp_path / "text.csv").write_text("site,b\nA,2\nB,3\nC,4\n")
    (tmp_path / "nd.csv").write_text("a,b\n1,2\nND,3\n3,4\n")
    result = halfseen("fit", *words)
    assert result.exit_code == code, result.output
    text = result.stderr if "\n" in sentence else _flat(result)
    assert sentence in text
    assert "Traceback" not in result.output
    assert not list(tmp_path.glob("*.html"))


def test_an_answer_that_needs_a_look_has_exit_code_1(halfseen, tmp_path):
    # Only the largest of three is seen: their covariance is hardly determined.
    X = hs.simulate(hs.Gaussian(np.zeros(3), np.eye(3)), hs.SelfSelection(), 300, 0)
    lines = [",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in X]
    (tmp_path / "data.csv").write_text("a,b,c\n" + "\n".join(lines) + "\n")
    result = halfseen("fit", "data.csv", "--seen", "a, b, c: largest")
    assert result.exit_code == 1, result.output
    assert "hardly determined" in _flat(result)


def test_an_interrupt_leaves_no_file(halfseen, tmp_path, monkeypatch):
    (tmp_path / "data.csv").write_text(RULED)

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    # The package has the function of that name where its module would be.
    monkeypatch.setattr(sys.modules["halfseen.cli.fit"], "run_fit", stop)
    result = halfseen("fit", "data.csv", "--seen", "lead: >=0.5", "-o", "fit.json")
    assert result.exit_code == 130
    assert not (tmp_path / "fit.json").exists()


def test_advice_is_told_in_options(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text("site,lead\nmill,1\nwell,2\n")
    told = _flat(halfseen("fit", "data.csv"))
    assert "leave it out with --exclude site, or make it the row labels with --index site." in told


def test_names_and_cells_are_quoted_as_they_are(halfseen, tmp_path):
    """What looks like a row or an argument, but is a name or a cell, is left alone."""
    (tmp_path / "data.csv").write_text("row 7,missing=5\n1.5,1\n0.1,2\n2.5,missing=5\n")
    told = _flat(halfseen("fit", "data.csv"))
    assert "line 4, column missing=5: 'missing=5' is no number" in told
    (tmp_path / "data.csv").write_text("row 7\n1.5\n0.1\n2.5\n")
    told = _flat(halfseen("fit", "data.csv", "--seen", '"row 7": >=0.5'))
    assert "row 1 (line 3), column row 7: the value 0.1 is seen" in told


def test_losses_by_column(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(RULED)
    words = ("fit", "data.csv", "--seen", "lead: >=0.5", "--log", "--json", "--loss")
    one, all_of_them = (json.loads(halfseen(*words, loss).stdout) for loss in ("lead=0.1", "0.1"))
    assert one["mean"] == all_of_them["mean"]
    refused = halfseen(*words, "tin=0.1")
    assert refused.exit_code == 2
    assert "tin" in refused.stderr


def test_rows_are_told_by_the_line_where_they_start(halfseen, tmp_path):
    """Also where cells go over several lines."""
    (tmp_path / "data.csv").write_text('note,lead\n"one\ntwo",1.5\n"three\n\nfour",0.1\nfive,2.5\n')
    told = _flat(halfseen("fit", "data.csv", "--columns", "lead", "--seen", "lead: >=0.5"))
    assert "row 1 (line 4), column lead: the value 0.1 is seen" in told


def test_help_shows_every_option_and_the_exit_codes(halfseen):
    for command in ("fit", "impute", "check", "simulate", "plan", "demo"):
        result = halfseen(command, "--help", env={"TERM": "dumb", "COLUMNS": "80"})
        assert result.exit_code == 0
        assert "Exit codes" in result.output
        assert max(map(len, result.output.splitlines())) <= 80
    assert "completion" in halfseen("--help").output


def _flat(result):
    return re.sub(r"\s+", " ", result.output)


def test_clipped_sensors_and_columns_that_only_look_like_flags(halfseen, tmp_path):
    X = np.clip(np.random.default_rng(2).normal(size=(120, 2)), -1.0, 0.8).round(3)
    lines = "\n".join(f"{a},{b}" for a, b in X)
    (tmp_path / "data.csv").write_text(f"temp,level\n{lines}\n")
    words = ["fit", "data.csv", "--seen", "temp, level: -1..0.8"]
    told = halfseen(*words, "--saturated", "--json")
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    for name in ("temp", "level"):
        assert abs(found["mean"][name]) < 4.5 * found["standard_errors"]["mean"][name]
        assert found["hidden"][name] > 0.3
    bare = halfseen("fit", "data.csv", "--saturated")
    assert bare.exit_code == 2
    assert "needs the limits" in bare.stderr
    (tmp_path / "data.csv").write_text(f"temp,temp_upper\n{lines}\n")
    assert halfseen("fit", "data.csv", "--no-companions", "--json").exit_code == 0


NADA = "Pb,PbCen,Zn,D_Zn,batch\n" + "\n".join(
    f"{max(a, 0.5)},{int(a < 0.5)},{max(b, 0.4)},{int(b >= 0.4)},{k // 40}"
    for k, (a, b) in enumerate(VALUES)
)


@pytest.mark.parametrize("put", [0.25, 0.0, -0.5])
def test_what_seems_to_stand_for_values_that_were_not_detected_is_told(halfseen, tmp_path, put):
    lead = np.where(VALUES[:, 0] < 0.5, put, VALUES[:, 0])
    lines = [f"{a},{b},{row}" for row, (a, b) in enumerate(zip(lead, VALUES[:, 1], strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(["lead,zinc,age", *lines]))
    result = halfseen("fit", "t.csv", "--columns", "lead,zinc")
    said = " ".join(result.stderr.split())
    many = int((lead == put).sum())
    assert f"warning: lead: the value {put:g} stands {many} times" in said
    assert "set these cells to NaN and state the limit" in said
    assert "warning: zinc" not in said
    regressed = halfseen("regress", "t.csv", "lead ~ age")
    assert f"the value {put:g} stands {many} times" in " ".join(regressed.stderr.split())
    # Who states the limit has said what the values are.
    ruled = halfseen("regress", "t.csv", "lead ~ age", "--seen", "lead: >=0.5", "--saturated")
    assert "stands" not in ruled.stderr
    if put <= 0.0:
        refused = halfseen("fit", "t.csv", "--columns", "lead,zinc", "--log")
        assert "not detected, set them to NaN" in " ".join(refused.output.split())


def test_many_columns_of_substitutes_are_one_warning(halfseen, tmp_path):
    table = np.random.default_rng(1).normal(size=(60, 5)).clip(min=-0.5)
    np.savetxt(
        tmp_path / "t.csv", table, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.6f"
    )
    said = " ".join(halfseen("fit", "t.csv").stderr.split())
    assert said.count("stands") == 2
    assert "warning: values of c, d, e look so too" in said


def test_scales_behind_a_comma_are_refused(halfseen, tmp_path):
    (tmp_path / "t.csv").write_text(RULED)
    result = halfseen("fit", "t.csv", "--transform", "lead: log, zinc: sqrt")
    assert result.exit_code == 2
    assert "--transform says one scale" in result.stderr


def test_flags_are_declared_and_columns_left_out(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(NADA)
    asked = halfseen("fit", "data.csv")
    assert asked.exit_code == 2
    assert "leave it out with --exclude batch" in _flat(asked)
    words = ["fit", "data.csv", "--exclude", "batch", "--transform", "*: log", "--json"]
    noted = halfseen(*words)
    assert noted.exit_code == 0, noted.output
    assert "1 in PbCen marks values of Pb that are limits; 0 in D_Zn marks" in _flat(noted)
    told = halfseen(*words, "--flag", "Pb=PbCen", "--flag", "*=D_*:0")
    assert told.stderr == ""
    assert told.stdout == noted.stdout
    cells = "a,b\n" + "\n".join(
        f"{'<0.5' if a < 0.5 else a},{'<0.4' if b < 0.4 else b}" for a, b in VALUES
    )
    (tmp_path / "cells.csv").write_text(cells)
    plain = json.loads(halfseen("fit", "cells.csv", "--log", "--json").stdout)
    assert list(json.loads(told.stdout)["mean"].values()) == list(plain["mean"].values())


def test_limits_in_a_column_and_values_on_them(halfseen, tmp_path):
    rows = "\n".join(f"{max(a, 0.5) if a >= 0.5 else 0.25},0.5" for a, _ in VALUES)
    (tmp_path / "data.csv").write_text(f"Pb,Pb_RL\n{rows}\n")
    asked = halfseen("fit", "data.csv")
    assert asked.exit_code == 2
    assert "--limit Pb=Pb_RL --saturated; if they are measured" in _flat(asked)
    told = halfseen("fit", "data.csv", "--limit", "Pb=Pb_RL", "--saturated", "--log", "--json")
    (tmp_path / "cells.csv").write_text(
        "Pb\n" + "\n".join("<0.5" if a < 0.5 else str(a) for a, _ in VALUES)
    )
    assert told.stdout == halfseen("fit", "cells.csv", "--log", "--json").stdout


def test_the_level_of_intervals(halfseen, tmp_path):
    (tmp_path / "data.csv").write_text(RULED)
    words = ["fit", "data.csv", "--seen", "lead: >=0.5", "--log"]
    text = halfseen(*words, "--level", "0.9")
    assert text.stdout.count("90 % interval") == 2
    assert "95 % interval" not in text.stdout
    wide, narrow = (
        json.loads(halfseen(*words, "--json", "--level", level).stdout)["intervals"]
        for level in ("0.95", "0.9")
    )
    assert narrow["level"] == 0.9
    assert narrow["mean"]["lower"]["lead"] > wide["mean"]["lower"]["lead"]
    assert halfseen(*words, "--level", "1").exit_code == 2


def test_heavy_tails(halfseen, tmp_path):
    X = np.random.default_rng(0).standard_t(3.0, size=(120, 1)).round(4)
    lines = "\n".join("" if x < -0.5 else str(x) for (x,) in X)
    (tmp_path / "t.csv").write_text(
        "lead\n" + "\n".join(f'"{x}"' for x in lines.split("\n")) + "\n"
    )
    words = "fit", "t.csv", "--seen", "lead: >=-0.5", "--errors", "t"
    told = json.loads(halfseen(*words, "--json").stdout)
    assert told["tails"]["learned"]
    assert told["tails"]["lower"] < 3.0
    given = halfseen(*words, "--degrees-of-freedom", 3)
    assert "3 degrees of freedom, as given" in " ".join(given.stdout.split())
    wrong = halfseen(*words, "--degrees-of-freedom", 0.5)
    assert wrong.exit_code == 2
    assert "--degrees-of-freedom must be a number, at least 1" in " ".join(wrong.stderr.split())
    alone = halfseen(*words[:4], "--degrees-of-freedom", 3)
    assert "--degrees-of-freedom is for --errors t" in " ".join(alone.stderr.split())


def test_a_structure_is_told_as_a_text(halfseen, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(RULED, encoding="utf-8")
    words = ("fit", path, "--seen", "lead: >=0.5", "--json")
    told = json.loads(halfseen(*words, "--covariance", "ar1h").stdout)
    assert told["structure"]["name"] == "ar1(heteroscedastic=True)"
    assert "correlation" in told["structure"]["parameters"]
    result = halfseen(*words, "--covariance", "ar2")
    assert result.exit_code == 2
    assert "compound_symmetry" in result.stderr
