"""Benchmarks of regressions: their limits, their tables, and what is judged of answers."""

import numpy as np
import pytest

from benchmarks.comparison.processes import run
from benchmarks.comparison.programs.harness import Table
from benchmarks.comparison.regressions import Heckman, Ordered, Tobit, judged, regression_tools
from benchmarks.regression_coverage import DESIGNS, answer
from benchmarks.regression_limits import ordered_limits, tobit_limits
from benchmarks.regression_oracles import (
    CLOSE_VALUE,
    KINDS,
    gap_of_errors,
    gap_of_estimates,
    gap_of_values,
)
from benchmarks.regression_oracles import answer as beside_oracle
from tests import naive_regression as naive

SMALL = {"tobit": Tobit(2, 300, 2), "heckman": Heckman(2, 400, 2), "ordered": Ordered(1, 300, 2)}


def test_limits_of_complete_rows_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    W = np.column_stack([np.ones(4000), rng.normal(size=4000)])
    of_terms, of_residuals = tobit_limits(
        np.zeros((2, 2)), 0.5, np.full(2, -np.inf), W, 100, np.random.default_rng(1)
    )
    # Averages over 4 000 rows, of which squares have relative errors of some √(2/4000) = 0.02.
    expected = np.sqrt(np.diag(np.linalg.inv(W.T @ W / len(W))) / 100)
    np.testing.assert_allclose(of_terms, np.tile(expected, 2), rtol=0.06)
    np.testing.assert_allclose(of_residuals[0], np.sqrt([2.0 / 100, 1.25 / 100]), rtol=0.06)


def test_limits_of_one_censored_outcome_are_errors_of_many_rows():
    design = Tobit(1, 20_000, 1)
    arrays = design.arrays(np.random.default_rng(2))
    W = np.column_stack([np.ones(design.n), arrays["regressors"]])
    seen = ~np.isnan(arrays["values"])
    lower = np.where(seen, arrays["values"], -np.inf)
    upper = np.where(seen, arrays["values"], design.limits)
    ref = naive.maximise(lower, upper, W, np.ones((1, 4), dtype=bool))
    errors = np.sqrt(np.diag(ref.covariance))
    np.testing.assert_allclose(design.limit[0], errors[:4], rtol=0.06)
    np.testing.assert_allclose(design.limit[1][0, 0], errors[4], rtol=0.06)


def test_limits_of_selected_outcomes_are_errors_of_many_rows():
    design = Heckman(2, 20_000, 1)
    arrays = design.arrays(np.random.default_rng(3))
    W = np.column_stack([np.ones(design.n), arrays["regressors"]])
    wage, works = arrays["values"].T
    ref = naive.heckman(wage, works > 0.0, W[:, :3], W)
    errors = np.sqrt(np.diag(ref.covariance))
    np.testing.assert_allclose(design.limit[0], errors[:7], rtol=0.06)


def test_limits_of_ordered_outcomes_are_errors_of_many_rows():
    design = Ordered(1, 20_000, 1)
    arrays = design.arrays(np.random.default_rng(4))
    ref = naive.ordered_probit(arrays["values"][:, 0], arrays["regressors"])
    of_terms, _ = ordered_limits(design.truth[0], arrays["regressors"], design.n)
    np.testing.assert_allclose(of_terms, np.sqrt(np.diag(ref.covariance)), rtol=0.03)


@pytest.mark.parametrize("kind", SMALL)
def test_everyone_who_is_here_answers_near_the_truth(kind, tmp_path):
    design = SMALL[kind]
    design.write(tmp_path)
    assert Table.of(tmp_path, 0).array("regressors").shape == (design.n, 3)
    answered = {}
    for tool in regression_tools(kind):
        if tool.lacks():
            continue
        outcome = run(tool, tmp_path, 120.0)
        assert outcome.trouble is None, tool.title
        answered[tool.title] = tool, judged(design, outcome.answers)
    mine = next(found for tool, found in answered.values() if tool.group == "ours")
    assert mine.coefficients < 3.0
    for title, (tool, found) in answered.items():
        if tool.group == "peer" and tool.uses == "the data":
            # The same likelihood, and so the same estimates up to the rules that end a search.
            assert found.coefficients == pytest.approx(mine.coefficients, abs=0.05), title
        # What an estimate from so many rows may be off by, unless hidden values are made up.
        if tool.group != "baseline":
            assert found.coefficients < 3.0, title


@pytest.mark.parametrize("kind", KINDS)
def test_small_designs_agree_with_their_oracles(kind):
    found = beside_oracle((kind, 5))
    assert found.status in ("CONVERGED", "WEAKLY_IDENTIFIED")
    # Ordered outcomes stop where 1e-9 of log-likelihood is left: 5e-5 standard errors each way.
    assert gap_of_estimates(found) < 3e-4
    assert gap_of_values(found) < CLOSE_VALUE
    assert gap_of_errors(found) < 1e-2


@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "uneven"])
def test_estimates_are_near_the_truth_in_standard_errors(name):
    found = answer(name, None, 0)
    # Of at most 35 normal numbers one is beyond 4.5 in 4 000 tables.
    assert np.abs(found.gap / found.error).max() < 4.5
    assert found.inside.mean() > 0.6
