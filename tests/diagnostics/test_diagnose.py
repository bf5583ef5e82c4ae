"""Every kind of table and rule, the findings, and how they are written down."""

import ast
import importlib
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import halfseen as hs
from halfseen.diagnostics import Finding
from halfseen.errors import told_in_options
from halfseen.solvers.result import Note

inf, nan = np.inf, np.nan
FAST = {"simulations": 39}


@pytest.fixture
def table(rng):
    Y = rng.multivariate_normal([0.0, 1.0, -1.0], np.eye(3) + 0.5, size=150)
    rule = hs.DetectionLimits(lower=[-0.5, 0.5, -1.5])
    return np.where(rule.seen(Y), Y, nan), rule


def levels(found):
    return {(finding.level, finding.title) for finding in found.findings}


def check_text_and_json(found):
    assert max(map(len, str(found).splitlines())) <= 80
    data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert data["worst"] == found.worst
    assert data["names"] == list(found.names)
    assert len(data["findings"]) == len(found.findings)


def test_a_good_table_is_called_good(table):
    found = hs.diagnose(*table, **FAST)
    assert found.worst == "ok"
    assert {title for _, title in levels(found)} == {
        "No contradictions",
        "Pairs are seen together",
        "Hidden as stated",
        "Columns look normal",
    }
    assert found.hidden == pytest.approx(np.isnan(table[0]).mean(axis=0))
    assert (found.blank == 0.0).all()
    assert [lower.tolist() for lower, _ in found.limits] == [[-0.5], [0.5], [-1.5]]
    check_text_and_json(found)


def test_pairs_have_clopper_pearson_intervals(table):
    X, rule = table
    found = hs.diagnose(X, rule, **FAST)
    seen = ~np.isnan(X)
    for i in range(3):
        for j in range(3):
            both = int((seen[:, i] & seen[:, j]).sum())
            ref = stats.binomtest(both, 150).proportion_ci(0.95, "exact")
            value, lower, upper = (part[i, j] for part in found.pair_alpha)
            assert value == both / 150
            assert (lower, upper) == pytest.approx((ref.low, ref.high))
    assert found.rare_pairs == ()


def test_rare_pairs_are_named():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[5:, 0], X[:20, 1], X[20:, 2] = nan, nan, nan
    found = hs.diagnose(X, **FAST)
    assert found.rare_pairs == (("x0", "x1", 0), ("x0", "x2", 5), ("x1", "x2", 0))
    assert ("problem", "Pairs never seen together") in levels(found)
    assert ("look", "Pairs seen together in fewer than 10 rows") in levels(found)
    assert ("look", "Cells are hidden without a rule") in levels(found)


def test_contradictions_are_reported_by_column_and_do_not_stop_the_rest(table):
    X, rule = table
    X = X.copy()
    X[7, 1], X[9, 1] = 0.1, 0.2
    found = hs.diagnose(X, rule, **FAST)
    (only,) = found.contradictions
    assert only[:4] == ("x1", 2, 7, 0.1)
    assert "row 7, column x1: the value 0.1 is seen" in only.text
    assert found.worst == "problem"
    first = found.findings[0]
    assert (first.level, first.column) == ("problem", "x1")
    assert not np.isnan([test.p_value for test in found.normality.columns]).any()
    # Wherever the value comes from, it lies below the limit.
    assert found.hidden[1] == (np.isnan(X[:, 1]).sum() + 2) / 150


def test_rules_that_bind_columns_report_their_sentence():
    X = np.random.default_rng(0).normal(size=(50, 2))
    found = hs.diagnose(X, hs.SelfSelection(), **FAST)
    (only,) = found.contradictions
    assert only.column is None
    assert "shows only the largest" in only.text
    assert all(test.basis == "none" for test in found.normality.columns)
    parts = hs.Combined(
        [([0], hs.DetectionLimits(lower=0.0)), ([1], hs.DetectionLimits(lower=0.0))]
    )
    by_part = hs.diagnose(X, parts, **FAST)
    assert [c.column for c in by_part.contradictions] == ["x0", "x1"]
    check_text_and_json(found)


def test_tables_of_intervals(rng):
    x = rng.normal(size=(200, 2))
    lower, upper = np.where(x < -0.5, -inf, x), np.where(x < -0.5, -0.5, x)
    upper[:20, 1], lower[:20, 1] = inf, -inf
    found = hs.diagnose(hs.IntervalData(lower, upper, ["lead", "zinc"]), **FAST)
    assert found.names == ("lead", "zinc")
    assert found.blank == pytest.approx([0.0, 0.1])
    assert found.limits[0][0].tolist() == [-0.5]
    assert found.worst == "ok"
    assert found.contradictions == ()


def test_cells_that_were_not_detected_need_a_rule(rng):
    x = rng.normal(size=(200, 1))
    low = x < -0.5
    data = hs.IntervalData(np.where(low, -inf, x), np.where(low, inf, x), not_detected=low)
    silent = hs.diagnose(data, **FAST)
    assert ("problem", "The table needs a rule") in levels(silent)
    assert "limit" in silent.normality.columns[0].reason
    # The same as if the limit stood in each cell, or the table had NaN there.
    told = hs.diagnose(hs.IntervalData(np.where(low, -inf, x), np.where(low, -0.5, x)), **FAST)
    ruled = hs.diagnose(data, hs.DetectionLimits(lower=-0.5), **FAST)
    plain = hs.diagnose(np.where(low, nan, x), hs.DetectionLimits(lower=-0.5), **FAST)
    for other in (ruled, plain):
        assert other.worst == "ok"
        assert other.hidden == told.hidden
        # The same cells; the phase of the hidden scores comes from the same stream.
        ref = told.normality.columns[0].statistic
        assert other.normality.columns[0].statistic == pytest.approx(ref, rel=1e-9)
    either = hs.diagnose(data, hs.DetectionLimits(lower=-0.5, upper=9.0), **FAST)
    assert either.normality.columns[0].basis == "cells"


def test_a_seen_value_that_contradicts_the_rule_of_intervals(rng):
    x = np.maximum(rng.normal(size=(100, 1)), -0.4)
    data = hs.IntervalData(x, x)
    found = hs.diagnose(data, hs.DetectionLimits(lower=-0.2), **FAST)
    assert found.contradictions[0].count == (x < -0.2).sum()
    assert found.normality.columns[0].basis == "cells"


def test_a_fit_brings_its_table_rule_and_scales(rng):
    Y = np.exp(rng.multivariate_normal([0.0, 0.0], np.eye(2) + 0.5, size=200))
    rule = hs.DetectionLimits(lower=0.6)
    X = np.where(Y < 0.6, nan, Y)
    fit = hs.fit(X, rule, transforms="log", random_state=0)
    by_fit = hs.diagnose(fit, **FAST)
    assert by_fit.normality.overall is not None
    assert by_fit.worst == "ok"
    # In the units of the table, not of the logarithms.
    assert by_fit.limits[0][0].tolist() == [0.6]
    beside = hs.diagnose(X, rule, fit=fit, **FAST)
    assert beside.normality == by_fit.normality
    plain = hs.diagnose(X, rule, **FAST)
    assert plain.worst == "problem"
    assert plain.normality.overall is None
    alone = hs.diagnose(X, rule, transforms="log", **FAST).normality.columns
    # But for there being a test of the whole too, the same.
    for one, both in zip(alone, by_fit.normality.columns, strict=True):
        assert replace(both, adjusted=one.adjusted) == one


def test_a_fit_gives_mean_and_covariance(three):
    rule = hs.LinearThreshold.heckman(1, [1.0, 0.0, 0.0])
    fit = hs.fit(
        hs.simulate(three, rule, 300, 0), rule, covariance=three.covariance, random_state=0
    )
    found = hs.diagnose(fit, **FAST)
    assert found.gamma is not None
    assert found.strong_convexity is not None
    check_text_and_json(found)


def test_names_mean_what_they_mean_to_fit(table):
    X, _ = table
    names = ["lead", "zinc", "tin"]
    rule = hs.DetectionLimits(lower={"tin": -1.5, "lead": -0.5, "zinc": 0.5})
    ref = hs.diagnose(pd.DataFrame(X, columns=names), rule, **FAST)
    told = hs.IntervalData(np.where(np.isnan(X), -inf, X), np.where(np.isnan(X), inf, X))
    for data in (X, X.tolist(), pd.DataFrame(X, columns=["a", "b", "c"]), told):
        found = hs.diagnose(data, rule, names=names, **FAST)
        assert found.names == tuple(names) == hs.fit(X, rule, "pairwise", names=names).names
        assert found.to_dict() == ref.to_dict()
    fit = hs.fit(X, rule, names=names, random_state=0)
    assert hs.diagnose(X, rule, fit=fit, names=names, **FAST).normality.overall is not None
    other = hs.diagnose(X, hs.DetectionLimits(lower=-9), fit=fit, names=["a", "b", "c"], **FAST)
    assert other.names == ("a", "b", "c")
    assert "has a column 'lead' where X has 'a'" in other.normality.overall_reason


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["lead", "zinc"], "names must be 3, one for each column; got 2"),
        (["lead", "zinc", "lead"], "columns need names of their own; 'lead' stands twice"),
    ],
)
def test_names_are_checked_as_by_fit(table, names, sentence):
    X, rule = table
    told = hs.IntervalData(np.nan_to_num(X), np.nan_to_num(X))
    for ask in (hs.fit, hs.diagnose):
        for data, stated in ((X, rule), (told, None)):
            with pytest.raises(hs.InputError, match=sentence):
                ask(data, stated, names=names)
        if len(names) == 3:
            with pytest.raises(hs.InputError, match=sentence):
                ask(pd.DataFrame(X, columns=names), rule)


def test_a_fit_brings_its_names(table):
    fit = hs.fit(*table, random_state=0)
    with pytest.raises(hs.InputError, match="a fit brings the names"):
        hs.diagnose(fit, names=["a", "b", "c"])


def test_frames_names_and_odd_names(table):
    X, rule = table
    names = ["<script>alert(1)</script>" * 3, "two\nlines", "quote \"'"]
    found = hs.diagnose(pd.DataFrame(X, columns=names), rule, **FAST)
    assert found.names == tuple(names)
    check_text_and_json(found)


def test_columns_of_which_nothing_can_be_learned():
    X = np.random.default_rng(0).normal(size=(30, 4))
    X[:, 1], X[:, 2], X[3:, 3] = nan, 2.0, nan
    found = hs.diagnose(X, hs.DetectionLimits(lower=-9.0), **FAST)
    by_column = {(f.column, f.title) for f in found.findings if f.column}
    assert {("x1", "Never seen"), ("x2", "Constant"), ("x3", "Mostly hidden")} <= by_column
    assert "a test needs 8" in found.normality.columns[3].reason
    check_text_and_json(found)


def test_a_scale_that_values_do_not_allow_is_a_problem(table):
    found = hs.diagnose(*table, transforms="log", **FAST)
    assert ("problem", "Not tested for normality") in levels(found)
    assert "log is for values above 0" in found.normality.columns[0].reason


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring(hs.Probability(lambda x: np.full_like(x, 0.5))),
        hs.RowTruncation(lambda Y: Y[:, 0] < 99.0),
        hs.LinearThreshold([[0, 0], [1, 0]], [0, 99.0]),
        hs.SelfCensoring(hs.Predicate(lambda x: x > -99.0)),
        None,
    ],
)
def test_every_rule_has_an_answer(rule):
    X = np.random.default_rng(0).normal(size=(60, 2))
    check_text_and_json(hs.diagnose(X, rule, **FAST))


def test_columns_are_adjusted_for_their_number():
    X = np.random.default_rng(2).normal(size=(100, 12))
    found = hs.diagnose(X, **FAST)
    p = np.array([test.tail_p_value for test in found.normality.columns])
    adjusted = np.array([test.adjusted for test in found.normality.columns])
    assert p.min() * 12 == pytest.approx(adjusted.min())
    text = next(f.text for f in found.findings if f.title == "Columns look normal")
    assert "12 columns (Holm)" in text


def test_nothing_is_warned_of_and_seeds_repeat(table):
    X, _ = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = hs.diagnose(X, None, **FAST, random_state=5)
    two = hs.diagnose(X, None, **FAST, random_state=5)
    assert one.to_dict() == two.to_dict()


def test_wrong_arguments_are_named(table):
    X, rule = table
    fit = hs.fit(X, rule, "pairwise")
    with pytest.raises(hs.InputError, match="simulations must be a whole number of at least 19"):
        hs.diagnose(X, rule, simulations=5)
    with pytest.raises(hs.InputError, match="fit must be what"):
        hs.diagnose(X, rule, fit="full")
    with pytest.raises(hs.InputError, match="two fits"):
        hs.diagnose(fit, fit=hs.fit(X, rule, "pairwise"))
    with pytest.raises(hs.InputError, match="the fit has 3 columns, but X has 2"):
        hs.diagnose(X[:, :2], fit=fit)
    with pytest.raises(hs.InputError, match="missing_at_random must be a boolean array"):
        hs.diagnose(X, rule, missing_at_random=np.ones(3))
    with pytest.raises(hs.InputError, match="row 0, column x0: the cell is said to be missing"):
        hs.diagnose(np.ones((3, 1)), missing_at_random=np.ones((3, 1), dtype=bool))


def test_progress_reaches_its_end(table, monkeypatch):
    steps = []

    class Bar:
        def __init__(self, title, total, show):
            steps.append((total, show))

        def __enter__(self):
            return lambda: steps.append(None)

        def __exit__(self, *exception):
            pass

    # The function hides the module of the same name.
    module = importlib.import_module("halfseen.diagnostics.diagnose")
    monkeypatch.setattr(module, "progress_bar", Bar)
    hs.diagnose(hs.fit(*table, "pairwise"), **FAST, progress=True)
    assert steps[0] == (3 + 39, True)
    assert len(steps) == 1 + 3 + 39


def test_findings_come_with_the_worst_first(table):
    X, rule = table
    X = X.copy()
    X[0, 0] = -5.0
    found = hs.diagnose(X, rule, **FAST)
    order = [("ok", "look", "problem").index(f.level) for f in found.findings]
    assert order == sorted(order, reverse=True)
    assert all(isinstance(f, Finding) for f in found.findings)


def test_columns_that_fail_alike_are_told_of_together():
    X = np.exp(np.random.default_rng(0).normal(size=(300, 4)))
    names = ["a", "b", "c", "d"]
    found = hs.diagnose(pd.DataFrame(X, columns=names))
    (finding,) = (f for f in found.findings if f.title == "Not normal")
    assert finding.text.startswith("4 columns: a, b, c, d.")
    assert "On the scale log they look better" in finding.text
    assert finding.column is None
    scale = "{'a': 'log', 'b': 'log', 'c': 'log', 'd': 'log'}"
    assert finding.text.endswith(f"use transforms={scale}.")
    two = hs.diagnose(pd.DataFrame(X[:, :2], columns=names[:2]), simulations=19)
    assert {f.column for f in two.findings if f.title == "Not normal"} == {"a", "b"}


def test_columns_that_are_always_seen_need_not_be_normal(rng):
    male = (rng.random(300) < 0.5).astype(float)
    lead = 1.0 + male + rng.normal(size=300)
    rule = hs.DetectionLimits(lower=[nan, 0.5])
    X = np.column_stack([male, np.where(lead < 0.5, nan, lead)])
    found = hs.diagnose(X, rule, names=["male", "lead"], **FAST)
    assert ("ok", "Always seen") in levels(found)
    assert not any(f.title == "Not normal" and f.column == "male" for f in found.findings)
    # Where nothing is hidden in the table, it is what the table is asked about.
    alone = hs.diagnose(male[:, None], names=["male"], **FAST)
    assert ("problem", "Not normal") in levels(alone)


def test_advice_names_columns_and_scales_in_words_of_the_shell():
    X = np.exp(np.random.default_rng(0).normal(size=(100, 1)))
    with told_in_options():
        found = hs.diagnose(pd.DataFrame(X, columns=["lead"]))
    (finding,) = (f for f in found.findings if f.title == "Not normal")
    assert finding.text.endswith("use --transform 'lead: log'.")


def test_limits_are_written_so_that_several_do_not_look_like_a_range(rng):
    x = rng.normal(size=(200, 3))
    limits = np.where(np.arange(200)[:, None] % 2, [-0.5, -9.0, nan], [-1.0, -9.0, nan])
    above = np.broadcast_to([nan, 9.0, nan], limits.shape)
    rule = hs.DetectionLimits(lower=limits, upper=above)
    text = str(hs.diagnose(np.where(rule.seen(x), x, nan), rule, **FAST))
    lines = {line.split()[0]: line for line in text.splitlines() if line.startswith("x")}
    assert " 2 limits, -1 to -0.5 " in lines["x0"]
    assert " -9..9 " in lines["x1"]
    assert lines["x2"].split()[:4] == ["x2", "0.0%", "0.0%", "0.0%"]
    assert "limits" not in lines["x2"]


def test_unseen_cells_are_the_hidden_ones_and_those_at_random(rng):
    x = rng.normal(size=(100, 1))
    lost = np.arange(100)[:, None] < 10
    X = np.where((x < -0.5) | lost, nan, x)
    found = hs.diagnose(X, hs.DetectionLimits(lower=-0.5), missing_at_random=lost, **FAST)
    lines = str(found).splitlines()
    head = next(k for k, line in enumerate(lines) if line.startswith("column"))
    assert lines[head].split()[:4] == ["column", "unseen", "hidden", "random"]
    assert lines[head - 1].split() == ["at"]
    shares = [float(word.rstrip("%")) for word in lines[head + 2].split()[1:4]]
    assert shares == pytest.approx([np.isnan(X).sum(), np.isnan(X).sum() - 10, 10])
    assert any(line.startswith("unseen = hidden") for line in lines)


def test_the_table_keeps_its_width(rng):
    X = np.exp(rng.normal(size=(300, 3)))
    limits = np.tile([[0.123], [0.2456], [0.3456]], (100, 3))
    names = ["a name that goes on and on and on", "b", "c" * 50]
    rule = hs.DetectionLimits(lower=limits)
    found = hs.diagnose(pd.DataFrame(np.where(rule.seen(X), X, nan), columns=names), rule)
    assert set(found.suggested_transform) == set(names)
    check_text_and_json(found)
    assert "3 limits, 0.12 to 0.35" in str(found)


def test_constants_of_the_theory_come_last(table):
    text = str(hs.diagnose(*table, covariance=np.eye(3), **FAST))
    before, after = text.split("Constants of the theory")
    for word in ("alpha:", "anchors:", "strong convexity:", "bias of the start:"):
        assert word in after
        assert word not in before
    assert "[ok]" not in after


@pytest.mark.parametrize("serious", [False, True])
def test_a_fit_with_a_serious_status_is_told(table, serious):
    fit = hs.fit(*table, "pairwise")
    status = hs.Status.ON_DOMAIN_EDGE if serious else hs.Status.PROJECTED
    fit = replace(fit, notes=(Note(status, "names columns"),))
    found = hs.diagnose(*table, fit=fit, **FAST)
    told = [f for f in found.findings if f.text == status.value]
    assert [f.level for f in told] == ["look"] * serious


@pytest.mark.filterwarnings("ignore:blank cells are taken:halfseen.errors.AssumptionWarning")
def test_cells_with_limits_go_with_linear_rules_and_scales(rng):
    n = 300
    kids = rng.normal(1.5, 0.7, n)
    hours = 32.0 + 2.0 * kids + rng.normal(0.0, 6.0, n)
    wage = np.exp(2.5 + 0.02 * hours + rng.normal(0.0, 0.3, n))
    income = np.exp(10.8 + 0.01 * hours + rng.normal(0.0, 0.6, n))
    values = np.stack([kids, hours, wage, income], axis=1)
    lower, upper = values.copy(), values.copy()
    away = hours - 2.0 * kids < 25.0
    lower[away, 2], upper[away, 2] = -inf, inf
    top = income > 150_000.0
    lower[top, 3], upper[top, 3] = 150_000.0, inf
    data = hs.IntervalData(lower, upper, ["kids", "hours", "wage", "income"])
    rule = hs.rules({"wage": "hours - 2*kids >= 25"})
    scales = {"wage": "log", "income": "log"}
    fit = hs.fit(data, rule, transforms=scales, random_state=0)
    found = hs.diagnose(data, rule, fit=fit, transforms=scales, **FAST)
    assert found.normality.overall_reason == ""
    assert 0.0 < found.normality.overall.p_value <= 1.0
    assert found.normality.columns[2].basis == "completed"


def skewed(columns, n=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=(n, 2)) @ rng.normal(size=(2, columns))) * np.exp(
        rng.normal(size=(n, columns))
    )


def test_what_holds_for_many_columns_is_one_finding():
    X = np.log(skewed(12))
    piled = hs.diagnose(np.maximum(X, -0.5), hs.DetectionLimits(lower=-0.5))
    (problem,) = [finding for finding in piled.findings if finding.level == "problem"]
    assert problem.title == "Values pile up on the limit"
    assert problem.text.startswith("12 columns: x0, x1, x2, x3, x4, x5 and 6 more. Of x0: ")
    assert problem.column is None
    assert problem.columns == piled.names
    assert len(piled.mechanism) == 12
    # Two are told of one by one.
    two = hs.diagnose(np.maximum(X[:, :2], -0.5), hs.DetectionLimits(lower=-0.5))
    assert [finding.column for finding in two.findings if finding.level == "problem"] == [
        "x0",
        "x1",
    ]


def test_all_columns_that_need_a_scale_are_in_what_is_advised():
    Y = skewed(9)
    limits = np.quantile(Y, 0.3, axis=0)
    X = np.where(limits <= Y, Y, np.nan)
    diagnosis = hs.diagnose(X, hs.DetectionLimits(lower=limits))
    (finding,) = [one for one in diagnosis.findings if one.title == "Not normal"]
    told = re.search(r"use transforms=(\{.*\})\.$", finding.text)[1]
    assert ast.literal_eval(told) == diagnosis.suggested_transform
    assert len(diagnosis.suggested_transform) >= 8
    with told_in_options():
        (finding,) = [
            one
            for one in hs.diagnose(X, hs.DetectionLimits(lower=limits)).findings
            if one.title == "Not normal"
        ]
    assert all(
        f"{name}" in finding.text.split("--transform ", 1)[1] for name in told.split("'")[1::4]
    )


def test_a_cause_is_told_and_not_what_it_brings_about():
    Y = skewed(3)
    diagnosis = hs.diagnose(np.where(Y < 1.0, 0.5, Y), hs.DetectionLimits(lower=1.0))
    (problem,) = [finding for finding in diagnosis.findings if finding.level != "ok"]
    assert problem.title == "Values look substituted"
    assert diagnosis.contradictions
    assert "Hidden as stated" not in [finding.title for finding in diagnosis.findings]


def test_the_most_consequential_comes_first():
    Y = np.log(skewed(4))
    X = np.where(Y >= 1.5, Y, np.nan)
    X[:, 0] = np.maximum(Y[:, 0], 1.5)
    titles = [one.title for one in hs.diagnose(X, hs.DetectionLimits(lower=1.5)).findings]
    assert titles[0] == "Values pile up on the limit"
    assert "Mostly hidden" not in titles[:1]


def test_a_test_has_one_p_value_wherever_it_is_shown():
    rule = hs.DetectionLimits(lower=-0.3)
    truth = hs.Gaussian(np.zeros(3), 0.5 * np.eye(3) + 0.5)
    fit = hs.fit(hs.simulate(truth, rule, 200, random_state=3), rule, random_state=0)
    diagnosis = hs.diagnose(fit)
    tests = [*diagnosis.normality.columns, diagnosis.normality.overall]
    lines = str(diagnosis).splitlines()
    shown_in_table = [line.split()[-1] for line in lines if line[:2] in ("x0", "x1", "x2", "al")]
    expected = [f"{test.adjusted:.3f}" for test in tests]
    assert shown_in_table[:4] == expected
    least = min(tests[:3], key=lambda test: test.adjusted)
    text = str(diagnosis).replace("\n    ", " ")
    assert f"least p-value {least.adjusted:.2g}, for {least.name}" in text
    assert f"(p = {tests[3].adjusted:.2g})" in text
