"""The numbers of the page, against slow and obvious ones."""

import dataclasses
import json

import numpy as np
import pytest

import halfseen as hs
from halfseen.report import content as content_module
from halfseen.report import report_content
from halfseen.report.marginals import ticks_in_units
from halfseen.report.numbers import percent
from halfseen.report.words import in_words
from halfseen.solvers.result import Note, Status
from halfseen.solvers.summary import monte_carlo_share
from tests.report.conftest import quietly

ODD = [
    "no errors", "seen values only", "both sides", "selection", "thresholds", "descent", "probability",
    "whole rows", "all seen", "one column", "two columns", "too few steps", "no table", "neither",
]  # fmt: skip


def test_naive_numbers_are_those_of_the_seen_cells(plain):
    content = report_content(plain)
    X = plain.source.X.values
    for j, column in enumerate(content["columns"]):
        seen = X[~np.isnan(X[:, j]), j]
        assert column["naive"]["mean"] == pytest.approx(seen.mean(), rel=1e-12)
        assert column["naive"]["deviation"] == pytest.approx(seen.std(), rel=1e-12)
        assert column["hidden_share"] == pytest.approx(np.isnan(X[:, j]).mean())
    both = X[~np.isnan(X[:, [0, 2]]).any(axis=1)]
    # Rounded to five digits.
    assert content["pairs"]["naive"][1] == pytest.approx(
        np.corrcoef(both[:, 0], both[:, 2])[0, 1], rel=1e-4
    )
    assert content["pairs"]["together"][1] == len(both)


def test_the_naive_ellipse_is_that_of_the_rows_with_both(odd):
    fit = odd["thresholds"]
    content = report_content(fit)
    X = fit.source.X.values
    for k, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        both = X[~np.isnan(X[:, [i, j]]).any(axis=1)][:, [i, j]]
        mean, deviation = both.mean(axis=0), both.std(axis=0)
        found = content["pairs"]["ellipses"][k]
        # Means are kept to a hundredth of the deviation, deviations to three digits.
        assert found[::2] == pytest.approx(mean, abs=0.01 * deviation.max())
        assert found[1::2] == pytest.approx(deviation, rel=5e-3)
    # Column 1 is hidden where column 0 is large: in the rows with both, column 0 is smaller.
    assert abs(content["pairs"]["ellipses"][0][0] - np.nanmean(X[:, 0])) > 0.1


def test_recovered_numbers_are_those_of_the_fit(plain):
    content = report_content(plain)
    interval = plain.confidence_interval(0.95)
    for j, column in enumerate(content["columns"]):
        found = column["recovered"]
        assert found["mean"] == pytest.approx(plain.gaussian.mean[j], rel=1e-12)
        ends = [interval.mean.lower[j], interval.mean.upper[j]]
        assert found["mean_interval"] == pytest.approx(ends, rel=1e-12)
        ends = [interval.standard_deviation.lower[j], interval.standard_deviation.upper[j]]
        assert found["deviation_interval"] == pytest.approx(ends, rel=1e-12)
    assert content["pairs"]["upper"][2] == pytest.approx(interval.correlation.upper[1, 2], rel=1e-4)


def test_half_the_limit_is_put_in_original_units(plain, logs):
    X = plain.source.X.values
    patched = np.where(np.isnan(X), 0.5 * np.array([1.5, 0.5, 2.5]), X)
    # Brought to the scale of the fit and back, a value may lose its last digits.
    for column, values in zip(report_content(plain)["columns"], patched.T, strict=True):
        assert column["substituted"]["mean"] == pytest.approx(values.mean(), rel=1e-9)
    X = logs.source.original.values
    lead = np.log(np.where(np.isnan(X[:, 0]), 1.5, X[:, 0]))
    zinc = np.log10(np.where(np.isnan(X[:, 1]), 1.0, X[:, 1]))
    columns = report_content(logs)["columns"]
    assert columns[0]["substituted"]["mean"] == pytest.approx(lead.mean(), rel=1e-9)
    assert columns[1]["substituted"]["deviation"] == pytest.approx(zinc.std(), rel=1e-9)
    assert columns[0]["original"]["substituted"] == pytest.approx(np.exp(lead.mean()), rel=1e-9)


def test_half_of_a_negative_limit_is_no_substitute(complete):
    X = complete - 3.0
    fit = quietly(np.where(X >= -1.0, X, np.nan), hs.DetectionLimits(lower=-1.0))
    assert all(column["substituted"] is None for column in report_content(fit)["columns"])


def test_original_units_come_back_from_the_modelled_scale(logs):
    lead, zinc, copper = report_content(logs)["columns"]
    mean = logs.gaussian.mean
    ends = logs.confidence_interval().mean
    assert (lead["label"], lead["original"]["word"]) == ("log(lead)", "geometric mean")
    assert lead["original"]["recovered"] == pytest.approx(np.exp(mean[0]), rel=1e-9)
    assert lead["original"]["interval"] == pytest.approx(
        [np.exp(ends.lower[0]), np.exp(ends.upper[0])], rel=1e-9
    )
    assert zinc["original"]["recovered"] == pytest.approx(10.0 ** mean[1], rel=1e-9)
    assert zinc["original"]["limits"] == pytest.approx([2.0], rel=1e-9)
    assert copper["transform"] is None
    assert "original" not in copper
    positions, texts = lead["ticks"]
    assert np.log([float(t) for t in texts]) == pytest.approx(positions, rel=1e-12)


def test_means_and_high_quantiles_in_original_units(logs):
    found = logs.original_scale(0.95, (0.95,), labels=False)
    X = logs.source.original.values
    for j, column in enumerate(report_content(logs)["columns"]):
        units = column["units"]
        assert units["mean"] == pytest.approx(found.mean[j], rel=1e-9)
        ends = [found.mean_lower[j], found.mean_upper[j]]
        assert units["mean_interval"] == pytest.approx(ends, rel=1e-9)
        assert units["high"] == pytest.approx(found.quantiles[j, 0], rel=1e-9)
        ends = [found.quantiles_lower[j, 0], found.quantiles_upper[j, 0]]
        assert units["high_interval"] == pytest.approx(ends, rel=1e-9)
        assert units["naive"] == pytest.approx(np.nanmean(X[:, j]), rel=1e-9)
        half = np.where(np.isnan(X[:, j]), 0.5 * np.array([3.0, 2.0, 10.0])[j], X[:, j])
        assert units["substituted"] == pytest.approx(half.mean(), rel=1e-9)


def test_without_a_transformation_there_are_no_other_units(plain, odd):
    assert all(column["units"] is None for column in report_content(plain)["columns"])
    assert report_content(plain)["scale"] is None
    assert report_content(odd["no errors"])["columns"][0]["units"] is None


def test_a_scale_of_all_columns_is_said_once(same_scale, logs):
    content = report_content(same_scale)
    assert content["scale"] == "log"
    assert [c["short"] for c in content["columns"]] == ["lead", "zinc", "copper"]
    assert content["columns"][0]["label"] == "log(lead)"
    mixed = report_content(logs)
    assert mixed["scale"] is None
    assert [c["short"] for c in mixed["columns"]] == ["log(lead)", "log10(zinc)", "copper"]


def areas(h):
    return h["width"] * sum(h["seen"]), h["width"] * sum(h["hidden"])


def test_bars_have_the_areas_of_their_shares(plain, lab, intervals):
    for fit in (plain, lab, intervals):
        for column in report_content(fit)["columns"]:
            hidden, missing = column["hidden_share"], column["missing_share"]
            # Of the cells of which something is known, so that they compare with a density of area 1.
            known = 1.0 - missing
            # Heights are rounded to four digits, each by at most one part in 2000.
            assert areas(column["histogram"]) == pytest.approx(
                ((known - hidden) / known, hidden / known), rel=5e-4, abs=1e-9
            )


def test_hidden_and_missing_are_told_apart(intervals, thirty, odd):
    c = report_content(intervals)["columns"][2]
    assert c["missing_share"] == pytest.approx(20 / intervals.rows)
    assert c["hidden_share"] == pytest.approx(c["kinds"]["above a limit"] / intervals.rows)
    content = report_content(thirty)
    X = thirty.source.original
    blank = np.isneginf(X.lower) & np.isposinf(X.upper)
    for column, share in zip(content["columns"], blank.mean(axis=0), strict=True):
        assert column["missing_share"] == pytest.approx(share)
    assert (
        f"and {percent(blank.mean())} of the cells are missing at random" in content["learned"][0]
    )
    # What is hidden by chance is hidden by a rule, though it may be anywhere.
    (chance, *_) = report_content(odd["probability"])["columns"]
    assert chance["missing_share"] == 0.0
    assert list(chance["kinds"]) == ["anywhere, by chance"]


def test_a_bin_ends_at_the_limit(plain):
    for column, limit in zip(report_content(plain)["columns"], (1.5, 0.5, 2.5), strict=True):
        h = column["histogram"]
        left = h["start"] + h["width"] * np.arange(len(h["seen"]))
        below = left + 0.5 * h["width"] < limit
        assert not np.array(h["seen"])[below].any()
        assert not np.array(h["hidden"])[~below].any()
        assert [(x["side"], round(x["at"], 9)) for x in column["limits"]] == [("below", limit)]
        assert h["texts"][0]["share"] == pytest.approx(column["hidden_share"])


def test_a_seen_value_on_its_limit_is_right_of_it():
    rng = np.random.default_rng(0)
    X = np.log10(np.round(10.0 ** rng.normal(0.4, 0.2, (200, 1)), 1))
    limit = np.log10(1.6)
    assert (limit == X).any()
    fit = quietly(np.where(limit <= X, X, np.nan), hs.DetectionLimits(lower=limit))
    h = report_content(fit)["columns"][0]["histogram"]
    left = h["start"] + h["width"] * (np.arange(len(h["seen"])) + 0.5)
    assert not np.array(h["counts"])[left < limit].any()


def test_hidden_cells_with_limits_by_row_are_spread_one_by_one(lab):
    column = report_content(lab)["columns"][0]
    h = column["histogram"]
    edges = h["start"] + h["width"] * np.arange(len(h["seen"]) + 1)
    X, limits = lab.source.X.values[:, 0], lab.source.missingness.lower[:, 0]
    slow = np.zeros(len(h["seen"]))
    for limit in limits[np.isnan(X)]:
        for k in range(len(slow)):
            inside = max(0.0, min(edges[k + 1], limit) - edges[k])
            slow[k] += inside / (limit - edges[0])
    # Heights are rounded to four digits.
    assert h["hidden"] == pytest.approx(slow / (len(X) * h["width"]), rel=1e-3, abs=1e-6)
    assert [round(x["at"], 9) for x in column["limits"]] == [0.8, 1.2, 1.7]
    counts = [int((limits[np.isnan(X)] == at).sum()) for at in (0.8, 1.2, 1.7)]
    assert [x["count"] for x in column["limits"]] == counts


def test_many_limits_become_a_range(lab):
    column = report_content(lab)["columns"][2]
    X, limits = lab.source.X.values[:, 2], lab.source.missingness.lower[:, 2]
    own = limits[np.isnan(X)]
    assert column["limits"] == []
    assert column["limit_range"]["many"] == len(own)
    assert column["limit_range"]["from"] == pytest.approx(own.min(), rel=1e-9)


def test_every_kind_of_cell_is_told_apart(intervals, complete):
    a, b, c = report_content(intervals)["columns"]
    assert a["kinds"] == {"between two limits": 60}
    assert b["kinds"] == {"below a limit": int((complete[:, 1] < 0.5).sum())}
    above = int((complete[:-20, 2] > 3.5).sum())
    assert c["kinds"] == {"above a limit": above}
    assert a["cells"]["kind"][:60] == "i" * 60
    assert c["cells"]["kind"][-1] == "n"
    assert c["cells"]["at"][-1] is None
    middle, half = a["cells"]["at"][3], a["cells"]["half"]["3"]
    assert (middle - half, middle + half) == pytest.approx(
        (np.floor(complete[3, 0]), np.floor(complete[3, 0]) + 1.0), abs=1e-4
    )


def test_cells_that_a_linear_rule_hides_are_not_anywhere(incomes):
    income, wage, _ = report_content(incomes)["columns"]
    hidden = int((~incomes.source.X.seen[:, 1]).sum())
    assert wage["kinds"] == {"where the rule and other columns allow": hidden}
    assert set(wage["cells"]["kind"]) == {"s", "t"}
    assert set(income["kinds"]) == {"above a limit"}
    assert wage["not_drawn"] == hidden


def test_cells_missing_at_random_are_anywhere_beside_a_linear_rule(complete):
    rule = hs.LinearThreshold([[0, 0, 0], [1, 0, 0], [0, 0, 0]], [0, 2.0, 0])
    X = np.where(rule.seen(complete, 0), complete, np.nan)
    blank = np.zeros(X.shape, dtype=bool)
    blank[:30, 2] = True
    X[blank] = np.nan
    columns = report_content(quietly(X, rule, missing_at_random=blank))["columns"]
    assert columns[2]["kinds"] == {}
    assert columns[2]["missing_share"] == pytest.approx(0.1)
    assert list(columns[1]["kinds"]) == ["where the rule and other columns allow"]


def rule_text(fit):
    (found,) = [a for a in report_content(fit)["assumptions"] if a["title"] == "The rule"]
    return found["text"], found.get("lines"), found.get("code")


def test_the_rule_is_told_in_words(incomes, logs, lab, intervals, odd):
    text, lines, code = rule_text(incomes)
    own = int((np.isfinite(incomes.source.X.lower) & ~incomes.source.X.seen).sum())
    assert text.startswith(f"{own} cells say their own limits")
    assert (lines, code) == (["wage: shown where hours ≥ 30."], None)
    assert rule_text(logs)[1] == [
        "lead: shown at 3 and above.",
        "zinc: shown at 2 and above.",
        "copper: shown at 10 and above.",
    ]
    text, (line,), _ = rule_text(lab)
    assert line == "lead, zinc, copper: shown beyond limits that differ by row."
    assert "listed under “Column by column”" in text
    text, lines, code = rule_text(intervals)
    assert lines is code is None
    assert "cells say their own limits" in text
    assert "Blank cells are believed to be missing at random" in text
    assert rule_text(odd["all seen"]) == ("No rule was given.", None, None)
    assert "does not hold" in rule_text(odd["no table"])[0]
    (line,) = rule_text(odd["selection"])[1]
    assert line == "Of x0, x1 and x2, only the largest of a row is shown."


def test_a_rule_without_words_is_written_as_code(odd):
    assert "Rows are shown if" in rule_text(odd["whole rows"])[0]
    for name in ("whole rows", "probability"):
        _, lines, code = rule_text(odd[name])
        assert lines is None
        assert " at 0x" not in code
        assert len(code) <= 500


@pytest.mark.parametrize(
    ("rule", "lines"),
    [
        (hs.DetectionLimits(lower=0.5, upper=2.5), ["a, b, c: shown from 0.5 to 2.5."]),
        (
            hs.SelfCensoring([hs.everything, hs.at_most(0) | hs.at_least(2), hs.everything]),
            ["a, c: always shown.", "b: shown at 0 and below, and at 2 and above."],
        ),
        (
            hs.LinearThreshold.larger_of(0, 1, 3),
            ["a: shown where b ≤ a.", "b: shown where a ≤ b."],
        ),
        (
            hs.LinearThreshold([[0, 0, 0], [-2, 0, 0.5], [0, 0, 0]], [0, -1, -1]),
            ["b: shown where 2 × a − 0.5 × c ≥ 1.", "c: never shown."],
        ),
        (
            hs.Combined([(["c"], hs.DetectionLimits(upper=9.0)), (["a", "b"], hs.SelfSelection())]),
            ["c: shown at 9 and below.", "Of a and b, only the largest of a row is shown."],
        ),
        (hs.Selection("b", by="a"), ["b: shown where the index behind a is positive."]),
    ],
)
def test_rules_in_words(rule, lines):
    assert in_words(rule, ["a", "b", "c"]) == lines


def test_many_conditions_are_not_a_flood():
    rule = hs.DetectionLimits(lower=np.arange(1.0, 31.0))
    lines = in_words(rule, [f"x{k}" for k in range(30)])
    assert len(lines) == 12
    assert lines[-1] == "… and 19 more conditions."


def test_notes_do_not_repeat_the_status(odd, plain):
    fit = odd["thresholds"]
    assert "" in [note.text for note in fit.notes]
    assert fit.status.value not in report_content(fit)["status"]["notes"]
    worse = (Note(Status.NOT_CONVERGED, "Too few."), Note(Status.NO_GLOBAL_GUARANTEE, ""))
    found = report_content(dataclasses.replace(plain, notes=worse))["status"]
    # What the status does not say is kept.
    assert found["notes"] == ["Too few.", Status.NO_GLOBAL_GUARANTEE.value]


def test_rows_keep_their_labels(intervals):
    assert report_content(intervals)["drawn_rows"][5] == "site 5"


def test_two_limits_of_one_column(odd):
    column = report_content(odd["both sides"])["columns"][0]
    assert [(x["side"], round(x["at"], 9)) for x in column["limits"]] == [
        ("below", 0.5),
        ("above", 2.5),
    ]
    h = column["histogram"]
    centre = h["start"] + h["width"] * (np.arange(len(h["seen"])) + 0.5)
    inside = (centre > 0.5) & (centre < 2.5)
    assert not np.array(h["counts"])[~inside].any()
    assert not np.array(h["hidden"])[inside].any()
    assert areas(h)[1] == pytest.approx(column["hidden_share"], rel=1e-3)


@pytest.mark.parametrize("name", ODD)
def test_whatever_is_lacking_the_content_is_plain_json(odd, name):
    content = report_content(odd[name])
    assert json.loads(json.dumps(content, allow_nan=False)) == json.loads(json.dumps(content))
    assert content["learned"]
    assert len(content["columns"]) == odd[name].gaussian.dimension


def test_what_is_not_known_is_none(odd):
    content = report_content(odd["no errors"])
    assert content["columns"][0]["recovered"]["mean_interval"] is None
    assert set(content["pairs"]["lower"]) == {None}
    assert content["trace"] is None
    assert content["monte_carlo"] is None
    none = report_content(odd["no table"])
    assert none["columns"][0]["naive"]["mean"] is None
    assert none["columns"][0]["histogram"] is None
    assert report_content(odd["one column"])["pairs"] is None


def test_monte_carlo_errors_that_are_not_finite(plain):
    errors = plain.monte_carlo_errors
    unknown = dataclasses.replace(
        plain,
        monte_carlo_errors=type(errors)(
            np.full_like(errors.mean, np.inf), np.full_like(errors.covariance, np.nan)
        ),
    )
    assert report_content(unknown)["monte_carlo"]["mean"] == [None] * 3
    known = report_content(plain)["monte_carlo"]
    share = errors.mean / plain.uncertainty.mean
    # Three digits are kept.
    assert known["mean"] == pytest.approx(share, rel=5e-3)
    assert known["most"] == pytest.approx(monte_carlo_share(plain), rel=1e-3)


def test_the_trace_is_in_standard_errors_from_the_end(plain):
    trace = report_content(plain)["trace"]
    whole = plain.history["trace"]
    moved = (whole - plain.gaussian.mean) / plain.uncertainty.mean
    assert trace["all_steps"] == len(whole)
    assert len(whole) == plain.history["steps"]
    # Four digits are kept.
    assert pytest.approx(moved, rel=1e-3, abs=1e-12) == np.array(trace["columns"]).T


def test_what_is_left_is_that_of_each_step(plain):
    climb = report_content(plain)["climb"]
    gains, values = (plain.history[key] for key in ("gains", "log_likelihoods"))
    assert climb["steps"] == list(range(1, len(gains) + 1))
    # Four digits are kept.
    assert climb["estimated"] == pytest.approx(np.maximum(gains, 1e-6), rel=1e-3)
    gained = values[-1] - values
    assert climb["gained"][-1] is None
    for told, right in zip(climb["gained"], gained, strict=True):
        if right < 1e-6:
            assert told is None
        else:
            assert told == pytest.approx(right, rel=1e-3)


def test_gains_that_are_nothing_do_not_stretch_the_axis(plain):
    history = {
        **plain.history,
        "gains": np.array([3.0, 1e-12, 0.0]),
        "log_likelihoods": np.zeros(3),
    }
    climb = report_content(dataclasses.replace(plain, history=history))["climb"]
    assert climb["estimated"] == [3.0, 1e-6, 1e-6]
    assert climb["gained"] == [None] * 3


def test_an_unknown_gain_is_left_out(plain):
    history = {**plain.history, "gains": np.array([np.inf, 2.0]), "log_likelihoods": np.zeros(2)}
    assert report_content(dataclasses.replace(plain, history=history))["climb"]["estimated"] == [
        None,
        2.0,
    ]


@pytest.mark.parametrize(
    "changed",
    [{"gains": None}, {"gains": np.ones(3)}, {"gains": np.ones((2, 2))}, {"log_likelihoods": None}],
)
def test_no_climb_without_its_numbers(plain, changed):
    history = {**plain.history, "gains": np.ones(2), "log_likelihoods": np.ones(2), **changed}
    assert report_content(dataclasses.replace(plain, history=history))["climb"] is None


def test_a_pulled_estimate_does_not_climb(plain):
    history = {**plain.history, "covariance_structure": "shrinkage"}
    climb = report_content(dataclasses.replace(plain, history=history))["climb"]
    assert not climb["climbs"]
    assert climb["gained"] is None


def test_far_from_zero_nothing_is_rounded_away(plain):
    shift, scale = 1e6, 1e-3
    X = shift + scale * plain.source.X.values
    limits = shift + scale * np.array([1.5, 0.5, 2.5])
    fit = quietly(X, hs.DetectionLimits(lower=limits))
    column = report_content(fit)["columns"][0]
    at = np.array([v for v in column["cells"]["at"] if v is not None])
    near = report_content(plain)["columns"][0]
    # Values near 1e6 are known to 1e-10, a ten-millionth of the spread; four digits of it are kept.
    assert np.ptp(at) == pytest.approx(scale * np.ptp(near["cells"]["at"]), rel=1e-3)
    naive = (column["naive"]["mean"] - shift) / scale
    assert naive == pytest.approx(near["naive"]["mean"], rel=1e-5)


def test_rows_and_columns_are_capped_and_spread_evenly():
    d, n = 130, 2500
    truth = hs.Gaussian(np.zeros(d), np.eye(d))
    rule = hs.DetectionLimits(lower=-0.5)
    fit = quietly(hs.simulate(truth, rule, n, random_state=0), rule, method="pairwise")
    content = report_content(fit)
    assert len(content["columns"]) == content_module.MOST_COLUMNS
    assert "100 of 130 columns" in content["left_out"]
    rows = np.array([int(text.split()[1]) for text in content["drawn_rows"]])
    assert len(rows) == content_module.MOST_CELLS // content_module.MOST_COLUMNS
    steps = np.diff(rows)
    assert (rows[0], rows[-1]) == (0, n - 1)
    assert steps.max() - steps.min() <= 1
    # The drawing library takes 4.8 MB of the 6 MB that a page may have.
    assert len(json.dumps(content)) < 900_000


def test_the_call_says_rule_method_seed_and_scales(logs, odd, plain):
    assert report_content(plain)["call"] == (
        'fit = hs.fit(X, hs.DetectionLimits(lower=[1.5, 0.5, 2.5]), method="full", '
        'names=["lead", "zinc", "copper"], random_state=0)'
    )
    assert 'transforms={"lead": "log", "zinc": "log10"}' in report_content(logs)["call"]
    assert "lower=[3.0, 2.0, 10.0]" in report_content(logs)["call"]
    assert 'covariance="diagonal"' in report_content(odd["selection"])["call"]
    assert "covariance=covariance" in report_content(odd["descent"])["call"]
    assert "random_state" not in report_content(odd["no errors"])["call"]
    assert report_content(plain, call="halfseen fit x.csv")["call"] == "halfseen fit x.csv"


@pytest.mark.parametrize("sets", ["> 0.5", "< 2", "< 1 | > 1.5", "0.5..2"])
def test_the_call_makes_the_same_rule_of_open_sets(sets):
    X = np.random.default_rng(3).normal(1.0, 1.0, size=(60, 1))
    rule = hs.rules(f"x: {sets}", columns=["x"])
    X[~rule.seen(X)] = np.nan
    fit = quietly(X, rule, names=["x"])
    again = eval(report_content(fit)["call"].removeprefix("fit = "), {"hs": hs, "X": X})
    assert repr(again.source.missingness) == repr(fit.source.missingness)


def test_the_call_does_not_make_up_python_for_half_open_sets():
    X = np.random.default_rng(3).normal(1.0, 1.0, size=(60, 1))
    rule = hs.SelfCensoring([hs.Interval(0.0, 2.0, True, False)])
    X[~rule.seen(X)] = np.nan
    call = report_content(quietly(X, rule))["call"]
    assert call.startswith("# rule is SelfCensoring([[0, 2)])\nfit = hs.fit(X, rule, ")


def test_the_call_does_not_say_where_a_rule_lies_in_memory(plain):
    class Own(hs.DetectionLimits):
        __repr__ = object.__repr__

    rule = Own(lower=[1.5, 0.5, 2.5])
    source = dataclasses.replace(plain.source, missingness=rule, original_rule=rule)
    fit = dataclasses.replace(plain, source=source)
    call = report_content(fit)["call"]
    assert "Own object" in call
    assert " at 0x" not in call
    assert " at 0x" not in rule_text(fit)[1]


def test_findings_of_a_diagnosis_are_taken_as_they_are(plain):
    class Finding:
        level, title, text, column = "problem", "Limits", "differ", "lead"

    class Odd:
        level, title = "dreadful", "Else"

    class Diagnosis:
        findings = (Finding(), Odd())

    found = report_content(plain, Diagnosis())["checks"]["findings"]
    assert found[0] == {
        "level": "problem", "title": "Limits", "text": "differ", "column": "lead", "columns": ["lead"]
    }  # fmt: skip
    assert found[1] == {"level": "look", "title": "Else", "text": "", "column": None, "columns": []}
    assert report_content(plain, "just words")["checks"] == {"findings": [], "text": "just words"}
    assert report_content(plain)["checks"] is None


def test_words_name_the_largest_changes(plain):
    shift, turned = report_content(plain)["learned"][1:]
    X = plain.source.X.values
    g = plain.gaussian
    moves = (np.nanmean(X, axis=0) - g.mean) / g.standard_deviations
    worst = int(np.argmax(np.abs(moves)))
    assert f"the mean of {plain.names[worst]} {moves[worst]:.2f} standard deviations above" in shift
    assert "correlation that changes most" in turned


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.5, None),
        (-2.0, 9.0, None),
        (4.5, 4.7, ["92", "96", "100", "104", "108"]),
        (-30.0, 30.0, None),
    ],
)
def test_ticks_are_round_inside_and_apart(low, high, texts):
    from halfseen.data.transforms import read_transforms

    (log,) = read_transforms("log", ["x"])
    at, words = ticks_in_units(log, low, high)
    assert 3 <= len(at) <= 8
    assert low <= at[0]
    assert at[-1] <= high
    assert np.diff(at).min() > (high - low) / 30.0
    # Three digits at most, in words such as 0.25, 104 and 1e+10.
    assert all(len(w.split("e")[0].replace(".", "").strip("0")) <= 3 for w in words)
    assert texts is None or words == texts


def test_no_ticks_where_the_scale_has_no_room():
    class Nowhere:
        inverse = staticmethod(lambda z: np.full(np.shape(z), np.nan))
        forward = staticmethod(lambda x: x)

    assert ticks_in_units(Nowhere, 0.0, 1.0) is None


def test_curves_of_heavy_tails():
    from scipy import stats

    X = hs.simulate(
        hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]),
        hs.DetectionLimits(lower=0.0),
        80,
        degrees_of_freedom=4.0,
    )
    fit = hs.fit(
        X, hs.DetectionLimits(lower=0.0), errors="t", degrees_of_freedom=4.0, random_state=0
    )
    content = report_content(fit)
    law = content["law"]
    assert law["peak"] == pytest.approx(stats.t(4.0).pdf(0.0))
    # Squared distances are twice F(2, ν).
    assert stats.f(2, 4.0).cdf(0.5 * law["ellipse"] ** 2) == pytest.approx(0.95)
    assert "t distribution (4 degrees of freedom, as given)" in " ".join(content["learned"])
    assert "multivariate t distribution" in content["assumptions"][0]["text"]
    curve = next(
        one for one in fit.plot.marginal(0).lines if one.get_label() == "recovered density"
    )
    mean, deviation = fit.gaussian.mean[0], fit.gaussian.standard_deviations[0]
    np.testing.assert_allclose(
        curve.get_ydata(), stats.t(4.0, mean, deviation).pdf(curve.get_xdata())
    )


def test_half_of_the_winning_value_is_no_substitute(odd, complete):
    assert all(c["substituted"] is None for c in report_content(odd["selection"])["columns"])
    parts = [([2], hs.DetectionLimits(lower=2.5)), ([0, 1], hs.SelfSelection())]
    rule = hs.Combined(parts)
    X = np.where(rule.seen(complete, 0), complete, np.nan)
    columns = report_content(quietly(X, rule, covariance="diagonal"))["columns"]
    assert [c["substituted"] is None for c in columns] == [True, True, False]
