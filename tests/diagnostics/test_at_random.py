"""Cells that a rule does not explain, and blank ones that a rule would."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import halfseen as hs
from halfseen.data.transforms import Identity
from halfseen.diagnostics.checked_table import read
from halfseen.diagnostics.mechanism import _unlikely, cut_off, fit_excess
from halfseen.errors import told_in_options
from halfseen.parallel import single_blas_thread

inf, nan = np.inf, np.nan


def acidity(n=200, share=0.04, seed=0):
    """Values around 7.2 of which some are missing at random."""
    rng = np.random.default_rng(seed)
    x = rng.normal(7.2, 0.3, size=n)
    return np.where(rng.random(n) < share, nan, x)


def beside_lead(x):
    """A table of intervals in which another column has cells that tell their limits."""
    lead = np.random.default_rng(9).normal(size=x.size)
    low, blank = lead < -0.5, np.isnan(x)
    lower = np.stack([np.where(low, -inf, lead), np.where(blank, -inf, x)], axis=1)
    upper = np.stack([np.where(low, -0.5, lead), np.where(blank, inf, x)], axis=1)
    return hs.IntervalData(lower, upper, ["lead", "pH"])


@pytest.mark.parametrize("rule", ["0..14", ">=6"])
@pytest.mark.parametrize("told", [False, True])
def test_blank_cells_far_from_any_limit_look_missing_at_random(rule, told):
    x = acidity()
    X = beside_lead(x) if told else pd.DataFrame({"pH": x})
    found = hs.diagnose(X, hs.rules({"pH": rule}), simulations=99)
    first = found.findings[0]
    assert (first.level, first.column) == ("problem", "pH")
    assert first.title == "Hidden cells look missing at random"
    assert first.text.startswith(f"These {np.isnan(x).sum()} cells look missing at random")
    assert "missing_at_random=" in first.text
    with told_in_options():
        told = hs.diagnose(X, hs.rules({"pH": rule}), simulations=99).findings[0].text
    assert "Pass --blank random for them." in told
    # The rest of the column is as normal as it is without them.
    assert not any(f.title == "Not normal" for f in found.findings)
    assert found.suggested_transform == {}
    alone = hs.diagnose(x[~np.isnan(x), None], simulations=99).normality.columns[0]
    assert found.normality.columns[-1].statistic == pytest.approx(alone.statistic)
    assert found.hidden[-1] == np.isnan(x).mean()
    ends = [end.tolist() for end in found.limits[-1]]
    assert ends == ([[0.0], [14.0]] if rule == "0..14" else [[6.0], []])


def test_cells_said_to_be_missing_at_random_are_no_finding():
    x = acidity()[:, None]
    rule = hs.DetectionLimits(lower=0.0, upper=14.0)
    assert hs.diagnose(x, rule, missing_at_random=np.isnan(x), simulations=39).worst == "ok"


def test_cells_that_were_not_detected_are_not_missing_at_random():
    x = acidity()[:, None]
    lost = np.isnan(x)
    data = hs.IntervalData(np.where(lost, -inf, x), np.where(lost, inf, x), not_detected=lost)
    found = hs.diagnose(data, hs.DetectionLimits(lower=0.0), simulations=19)
    assert "at random" not in {mark.kind for mark in found.mechanism}
    assert "hidden too often" in {mark.kind for mark in found.mechanism}


def test_a_wrong_limit_is_not_taken_for_cells_missing_at_random():
    x = np.random.default_rng(0).normal(size=(300, 1))
    X = np.where(x < -0.2, nan, x)
    found = hs.diagnose(X, hs.DetectionLimits(lower=-9.0), simulations=19)
    assert {mark.kind for mark in found.mechanism if mark.level != "ok"} == {"gap"}


def test_skewed_columns_are_not_called_missing_at_random():
    # 0.6 % lie above 12, which is more than five deviations of the seen values from their mean.
    x = np.exp(np.random.default_rng(0).normal(size=(1000, 1)))
    found = hs.diagnose(np.where(x > 12.0, nan, x), hs.DetectionLimits(upper=12.0), simulations=19)
    assert {mark.kind for mark in found.mechanism} == {"hidden too often"}


def marks_of(X, rule):
    return {mark.kind for mark in _unlikely(read(X, rule, None), set(), 19, 0)}


@pytest.mark.parametrize("limit", [-1.0, -2.0, -3.0])
def test_what_a_rule_hides_is_rarely_called_missing_at_random(limit):
    tables, called = 100, 0
    with single_blas_thread():
        for k in range(tables):
            x = np.random.default_rng(k).normal(size=(100, 1))
            rule = hs.DetectionLimits(lower=limit)
            called += "at random" in marks_of(np.where(x < limit, nan, x), rule)
    # A binomial count that is exceeded once in a thousand.
    assert called <= stats.binom.ppf(0.999, tables, 0.01)


def test_the_share_hidden_for_another_reason_is_found():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 1))
    X = np.where((x < -1.0) | (rng.random(x.shape) < 0.2), nan, x)
    column = read(X, hs.DetectionLimits(lower=-1.0), None).column(0, np.arange(len(X)))
    found = fit_excess(column)
    beyond = stats.norm.cdf(-1.0)
    # The shape of 13 000 seen values tells the share to about 0.01, of which we allow four.
    assert found.share == pytest.approx(0.2, abs=0.04)
    posterior = 0.8 * beyond / (0.2 + 0.8 * beyond)
    assert found.explained == pytest.approx(posterior, abs=0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_values_that_stop_where_cells_are_blank_are_noticed(sign):
    x = np.random.default_rng(0).normal(50.0, 10.0, size=(300, 1))
    X = sign * np.where(x > 58.0, nan, x)
    found = hs.diagnose(X, simulations=99)
    finding = next(f for f in found.findings if f.title == "Values stop where cells are blank")
    assert finding.level == "look"
    end = sign * np.nanmax(sign * X)
    assert f"Values stop at {end:.6g} and {np.isnan(X).sum()} cells are blank" in finding.text
    # Neither with the rule, nor if it is said that they are missing at random.
    stated = hs.DetectionLimits(**{"upper" if sign > 0 else "lower": sign * 58.0})
    for told in ({"missingness": stated}, {"missing_at_random": np.isnan(X)}):
        marks = hs.diagnose(X, **told, simulations=19).mechanism
        assert "cut off" not in {mark.kind for mark in marks}


@pytest.mark.parametrize("draw", ["normal", "lognormal", "standard_exponential"])
def test_blank_cells_anywhere_are_rarely_called_cut_off(draw):
    tables, called = 150, 0
    with single_blas_thread():
        for k in range(tables):
            rng = np.random.default_rng(k)
            x = getattr(rng, draw)(size=100)
            found = cut_off(x, 1 + int(rng.binomial(50, 0.3)), Identity(), "x", 99, k)
            called += found is not None and found.p_value < 0.01
    # A binomial count that is exceeded once in a thousand.
    assert called <= stats.binom.ppf(0.999, tables, 0.01)
