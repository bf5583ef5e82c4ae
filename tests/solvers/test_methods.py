"""What solvers state of themselves, and how the door matches it with what came."""

import warnings

import numpy as np
import pytest

import halfseen as hs
from halfseen.data.table import TableKind
from halfseen.missingness.base import RuleKind
from halfseen.solvers.methods import LADDER

TRUTH = hs.Gaussian([0.5, 1.0], [[1.0, 0.5], [0.5, 1.0]])
ROWS = 120
RULES = {
    RuleKind.BY_COLUMN: hs.DetectionLimits(lower=[0.0, 0.5]),
    RuleKind.BY_ROW: hs.DetectionLimits(
        lower=np.repeat([[0.0, 0.5], [0.2, 0.3]], ROWS // 2, axis=0)
    ),
    RuleKind.THRESHOLDS: hs.LinearThreshold([[-1.0, 0.0], [0.0, -1.0]], [0.0, -0.5]),
    RuleKind.WHOLE_ROWS: hs.RowTruncation(lambda Y: Y[:, 0] > -0.5),
    RuleKind.OTHER: hs.SelfSelection(),
}
OPTIONS = {
    "full": {"accuracy": 0.5, "most_steps": 20},
    "truncation_psgd": {"accuracy": 2.0, "repeats": 1},
    "truncated_sgd": {"accuracy": 2.0, "repeats": 1},
    "missing_descent": {"covariance": TRUTH.covariance},
}


def _given(table, rule):
    """Return a table of a kind, and arguments of ``fit`` that make it so."""
    X = hs.simulate(TRUTH, rule, ROWS, 0)
    if table is TableKind.INTERVALS:
        hidden = np.isnan(X)
        lower, upper = np.where(hidden, -np.inf, X), np.where(hidden, np.inf, X)
        # A hidden cell that says itself where it lies.
        upper[tuple(np.argwhere(hidden)[0])] = -1.0
        return hs.IntervalData(lower, upper), {}
    if table is TableKind.MOMENTS:
        return hs.PairMoments.from_array(X), {}
    return X, {"memory": "8GB"} if table is TableKind.PIECES else {}


def test_rules_and_tables_say_what_they_are():
    for kind, rule in RULES.items():
        assert rule.kind is kind
    assert hs.rules("a: a - b >= 0").for_columns(["a", "b"]).kind is RuleKind.THRESHOLDS
    assert hs.Combined([([0], RULES[RuleKind.OTHER])]).kind is RuleKind.OTHER
    assert hs.SelfCensoring(hs.everything).kind is RuleKind.BY_COLUMN


def test_every_rule_has_a_method_for_values():
    for kind in RuleKind:
        assert any(method.needs.met_by(TableKind.VALUES, kind) for method in LADDER)


@pytest.mark.parametrize("table", TableKind)
@pytest.mark.parametrize("kind", RuleKind)
def test_methods_take_what_they_state_and_nothing_else(table, kind):
    rule = RULES[kind]
    X, how = _given(table, rule)
    for method in LADDER:
        options = {**how, **OPTIONS.get(method.name, {})}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hs.HalfseenWarning)
            if method.needs.met_by(table, kind):
                assert hs.fit(X, rule, method.name, **options).method == method.name
            else:
                with pytest.raises(hs.InputError) as refusal:
                    hs.fit(X, rule, method.name, **options)
                assert method.name not in str(refusal.value).partition("choose ")[2]


@pytest.mark.parametrize("method", hs.solvers.METHODS)
def test_no_method_is_offered_where_none_takes_the_table(method):
    rule = RULES[RuleKind.WHOLE_ROWS]
    for table, sentence in (
        (TableKind.INTERVALS, "shows whole rows or none, so it does not go with IntervalData"),
        (TableKind.PIECES, "under RowTruncation the table is needed in memory"),
        (TableKind.MOMENTS, "RowTruncation needs the rows themselves"),
    ):
        X, how = _given(table, rule)
        with pytest.raises(hs.InputError, match=sentence) as refusal:
            hs.fit(X, rule, method, **how)
        assert "choose" not in str(refusal.value)
