"""Marks that another rule than the stated one leaves in a table."""

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.data.transforms import Identity
from halfseen.diagnostics import mechanism
from halfseen.diagnostics.checked_table import read
from halfseen.diagnostics.mechanism import fit_excess
from halfseen.parallel import single_blas_thread


def kinds(X, rule, **options):
    found = hs.diagnose(X, rule, simulations=19, **options).mechanism
    return {mark.kind for mark in found if mark.level != "ok"}


def hidden_below(limit, n=300, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 1))
    return np.where(x < limit, np.nan, x)


def test_a_table_hidden_as_stated_has_no_marks():
    assert kinds(hidden_below(-0.5), hs.DetectionLimits(lower=-0.5)) == set()


def test_values_on_the_limit_are_found():
    x = hidden_below(-0.5)
    x[np.isnan(x)] = -0.5
    found = hs.diagnose(x, hs.DetectionLimits(lower=-0.5), simulations=19)
    mark = next(m for m in found.mechanism if m.kind == "on the limit")
    assert mark.level == "problem"
    assert "-0.5 stands" in mark.text
    assert "mark such cells as <-0.5, or use IntervalData.saturated(rule)" in mark.text
    # Where values stand in their place, it is no news that nothing is hidden.
    assert "nothing hidden" not in {m.kind for m in found.mechanism}


def clipped():
    return np.clip(np.random.default_rng(0).normal(5.0, 4.0, size=(400, 1)), 0.0, 10.0)


@pytest.mark.parametrize("told", [False, True])
def test_piles_on_both_limits_are_told_with_their_counts(told):
    x = clipped()
    X = hs.IntervalData(x, x) if told else x
    found = hs.diagnose(X, hs.DetectionLimits(lower=0.0, upper=10.0), simulations=19)
    mark = next(m for m in found.mechanism if m.kind == "on the limit")
    low, high = (x == 0.0).sum(), (x == 10.0).sum()
    assert f"0 stands {low} times, 10 stands {high} times" in mark.text
    assert "mark such cells as <0 or >10" in mark.text
    assert "IntervalData.saturated(rule)" in mark.text


def test_piles_at_both_ends_are_found_without_a_rule():
    x = clipped()
    (mark,) = hs.diagnose(x, simulations=19).mechanism
    assert (mark.kind, mark.level) == ("substituted", "look")
    assert f"0 stands {(x == 0.0).sum()} times, 10 stands {(x == 10.0).sum()} times" in mark.text
    assert "state the rule 0..10" in mark.text
    # A limit that is stated on one side leaves the other to be found.
    low = np.where(x == 0.0, np.nan, x)
    marks = hs.diagnose(low, hs.DetectionLimits(lower=0.0), simulations=19).mechanism
    assert "It is the largest" in next(m.text for m in marks if m.kind == "substituted")


def test_codes_have_ends_without_piles():
    x = np.random.default_rng(0).choice([0.0, 1.0, 2.0], size=(200, 1), p=[0.6, 0.1, 0.3])
    assert kinds(x, None) == set()


@pytest.mark.parametrize("share", [0.5, np.sqrt(0.5)])
def test_substitutes_are_found_with_and_without_a_rule(share):
    x = np.exp(np.random.default_rng(0).normal(size=(200, 1)))
    put = np.where(x < 0.8, 0.8 * share, x)
    stated = hs.diagnose(put, hs.DetectionLimits(lower=0.8), simulations=19)
    assert "substituted" in {mark.kind for mark in stated.mechanism}
    assert stated.contradictions[0].count == (x < 0.8).sum()
    silent = hs.diagnose(put, simulations=19)
    mark = next(m for m in silent.mechanism if m.kind == "substituted")
    assert mark.level == "look"
    assert "of 0.8)" in mark.text


def test_substitutes_of_several_limits_are_found():
    rng = np.random.default_rng(0)
    x = np.exp(rng.normal(size=(300, 1)))
    limits = rng.choice([0.5, 1.0, 1.5], size=x.shape)
    found = hs.diagnose(
        np.where(x < limits, limits / 2.0, x), hs.DetectionLimits(lower=limits), simulations=19
    )
    mark = next(m for m in found.mechanism if m.kind == "substituted")
    assert "half the limit of 0.5" in mark.text
    assert "3 in all" in mark.text


def test_saturated_values_are_found():
    x = np.minimum(np.random.default_rng(0).normal(size=(200, 1)), 0.7)
    found = hs.diagnose(x, simulations=19)
    assert "state the limit 0.7" in found.mechanism[0].text


def test_rounded_values_are_not_taken_for_substitutes():
    x = np.round(np.random.default_rng(0).normal(size=(500, 1)), 1)
    assert kinds(x, None) == set()


@pytest.mark.parametrize("sign", [1, -1])
def test_a_gap_tells_the_true_limit(sign):
    X = sign * hidden_below(-0.2)
    stated = {"lower" if sign > 0 else "upper": -1.0 * sign}
    found = hs.diagnose(X, hs.DetectionLimits(**stated), simulations=19)
    mark = next(m for m in found.mechanism if m.kind == "gap")
    nearest = np.nanmin(sign * X) * sign
    assert f"looks like {nearest:.4g} rather than {-sign:g}" in mark.text
    assert mark.p_value < 1e-6
    # One mark explains the rest, and no scale is suggested for a wrong limit.
    assert {m.kind for m in found.mechanism if m.level != "ok"} == {"gap"}
    assert found.suggested_transform == {}


def test_rounding_makes_no_gap():
    x = np.random.default_rng(0).normal(size=(3000, 1))
    rounded = np.round(x, 1)
    X = np.where(rounded < -0.5, np.nan, rounded)
    # No rounded value lies between -0.58 and -0.5, where a hundred would.
    assert kinds(X, hs.DetectionLimits(lower=-0.58)) == set()


def test_gaps_and_excess_have_honest_p_values():
    tables = 150
    gap, excess = [], []
    with single_blas_thread():
        for k in range(tables):
            x = np.random.default_rng(k).normal(size=(200, 1))
            reading = read(np.where(x < 0.0, np.nan, x), hs.DetectionLimits(lower=0.0), None)
            column = reading.column(0, np.arange(200))
            found = list(
                mechanism._gap(column, "x", np.array([0.0]), 1, Identity(), reading.values[:, 0])
            )
            gap += [c.p_value for c in found] or [1.0]
            excess.append(fit_excess(column).p_value)
    # A binomial count that is exceeded once in a thousand.
    for p in (gap, excess):
        assert (np.array(p) < 0.05).sum() <= stats.binom.ppf(0.999, tables, 0.05)
        # And not too few: half of the level, for what is not tested at all.
        assert (np.array(p) < 0.2).sum() >= stats.binom.ppf(0.001, tables, 0.1)


def test_cells_hidden_for_another_reason_are_noticed():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    X = np.where((x < -1.0) | (rng.random(x.shape) < 0.3), np.nan, x)
    rule = hs.DetectionLimits(lower=-1.0)
    found = hs.diagnose(X, rule, simulations=19)
    mark = next(m for m in found.mechanism if m.kind == "hidden too often")
    assert mark.p_value < 1e-3
    # Said to be missing at random, they are no surprise.
    assert kinds(X, rule, missing_at_random=np.isnan(X) & (x >= -1.0)) == set()


def test_rows_that_were_left_out_are_noticed():
    x = np.random.default_rng(0).normal(size=(400, 1))
    rule = hs.DetectionLimits(lower=-0.5)
    assert "nothing hidden" in kinds(x[x[:, 0] > -0.5], rule)
    quiet = hs.diagnose(x, hs.DetectionLimits(lower=-50.0), simulations=19).mechanism
    assert [(mark.kind, mark.level) for mark in quiet] == [("nothing hidden", "ok")]


def test_limits_only_where_values_are_hidden():
    X = hidden_below(-0.5)
    limits = np.where(np.isnan(X), -0.5, np.nan)
    assert "limits only where hidden" in kinds(X, hs.DetectionLimits(lower=limits))
    # In a table of intervals that is how it is.
    lower, upper = np.where(np.isnan(X), -np.inf, X), np.where(np.isnan(X), -0.5, X)
    assert kinds(hs.IntervalData(lower, upper), None) == set()
    assert kinds(X, hs.DetectionLimits(lower=np.full(X.shape, -0.5))) == set()


def told_below(limit, n=200):
    x = np.random.default_rng(0).normal(size=(n, 1))
    low = x < limit
    return hs.IntervalData(np.where(low, -np.inf, x), np.where(low, limit, x), ["Pb"])


def test_cells_that_state_other_limits_than_the_rule_are_told():
    data = told_below(0.8)
    found = hs.diagnose(data, hs.rules({"Pb": ">=0.1"}), simulations=19)
    mark = next(m for m in found.mechanism if m.kind == "other limits")
    hidden = int((~data.seen).sum())
    assert (mark.column, mark.level) == ("Pb", "look")
    assert mark.text.startswith(f"{hidden} cells say <0.8, but the rule says >=0.1.")
    assert "own interval goes first" in mark.text
    titles = {f.title for f in found.findings}
    assert "Cells state other limits than the rule" in titles
    assert "Hidden as stated" not in titles
    # The same limit is no other, and neither is one on a side of which the cells do not speak.
    for rule in (">=0.8", "<=9"):
        assert "other limits" not in kinds(data, hs.rules({"Pb": rule}))


def test_limits_by_row_are_compared_row_by_row():
    rng = np.random.default_rng(0)
    x, limits = rng.normal(size=(200, 1)), rng.choice([-0.5, 0.0], size=(200, 1))
    low = x < limits
    data = hs.IntervalData(np.where(low, -np.inf, x), np.where(low, limits, x))
    assert "other limits" not in kinds(data, hs.DetectionLimits(lower=limits))
    other = np.where(np.arange(200)[:, None] % 2, limits, limits - 0.25)
    marks = hs.diagnose(data, hs.DetectionLimits(lower=other), simulations=19).mechanism
    mark = next(m for m in marks if m.kind == "other limits")
    count = low[::2].sum()
    assert mark.text.startswith(
        f"{count} cells say <-0.5 to <0, but the rule says >=-0.75 to >=-0.25."
    )
