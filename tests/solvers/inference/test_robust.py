"""Standard errors from the scatter of the rows."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.errors import AssumptionWarning, InputError
from halfseen.solvers.inference.fitted_table import read_source
from halfseen.solvers.inference.robust import row_scores
from halfseen.theta import unpack

RULE = hs.DetectionLimits(lower=[0.0, 0.2, -0.1])
TRUTH = hs.Gaussian([0.5, 0.5, 0.3], [[1.0, 0.6, 0.3], [0.6, 1.5, 0.2], [0.3, 0.2, 0.8]])


@pytest.fixture(scope="module")
def fit():
    """Rows with up to three confined cells, and some that are missing at random."""
    X = hs.simulate(TRUTH, RULE, 40, 2)
    blank = np.zeros(X.shape, dtype=bool)
    blank[::5, 1] = True
    X[blank] = np.nan
    return hs.fit(X, RULE, missing_at_random=blank, names=["a", "b", "c"], random_state=0)


def test_scores_of_rows_are_derivatives_of_their_likelihoods(fit):
    problem = read_source(fit, None)
    at = problem.from_units(fit.gaussian.mean, fit.gaussian.covariance)
    comp = row_scores(problem, *at) / problem.overview.units
    # Rows with at most two confined cells have exact likelihoods; the others are sampled.
    confined = problem.hidden & ~problem.at_random
    exact = confined.sum(axis=1) <= 2
    assert 10 < exact.sum() < len(exact)
    for k in range(comp.shape[1]):
        ends = []
        for sign in (1.0, -1.0):
            move = np.zeros(comp.shape[1])
            move[k] = sign * 1e-5
            mean, covariance = unpack(move, 3)
            moved = hs.Gaussian(fit.gaussian.mean + mean, fit.gaussian.covariance + covariance)
            ends.append(dataclasses.replace(fit, gaussian=moved).score_rows())
        ref = (ends[0] - ends[1]) / 2e-5
        np.testing.assert_allclose(comp[exact, k], ref[exact], atol=1e-6)
        # 256 points: scores of one row to about a hundredth.
        np.testing.assert_allclose(comp[~exact, k], ref[~exact], atol=0.1)


def test_complete_rows_have_a_closed_form():
    Y = np.random.default_rng(0).standard_t(5, size=(200, 1))
    fit = hs.fit(Y, random_state=0)
    found = fit.robust_standard_errors()
    off = (Y - Y.mean()) ** 2 - Y.var()
    assert found.mean[0] == pytest.approx(Y.std() / np.sqrt(200))
    assert found.covariance[0, 0] == pytest.approx(np.sqrt((off**2).sum()) / 200)


@pytest.mark.filterwarnings("ignore::halfseen.errors.AssumptionWarning")  # they are copies
def test_clusters_of_copies_count_once():
    """Every row twice: errors are those of half the rows, up to the share of few clusters."""
    Y = np.random.default_rng(1).normal(size=(150, 2))
    once, twice = hs.fit(Y, random_state=0), hs.fit(np.repeat(Y, 2, axis=0), random_state=0)
    ref = once.robust_standard_errors()
    comp = twice.robust_standard_errors(np.repeat(np.arange(150), 2))
    factor = np.sqrt(150 / 149)
    np.testing.assert_allclose(comp.mean, factor * ref.mean, rtol=1e-9)
    np.testing.assert_allclose(comp.covariance, factor * ref.covariance, rtol=1e-9)
    # Without clusters they are √2 too small.
    alone = twice.robust_standard_errors()
    np.testing.assert_allclose(alone.mean, ref.mean / np.sqrt(2.0), rtol=1e-9)


def test_heavy_tails_are_said():
    Y = np.random.default_rng(2).standard_t(3, size=(400, 2))
    fit = hs.fit(Y, names=["lead", "zinc"], random_state=0)
    with pytest.warns(AssumptionWarning, match=r"differ from its own: variance of .* times\)"):
        found = fit.robust_standard_errors()
    assert (np.diag(found.covariance) > 1.5 * np.diag(fit.standard_errors.covariance)).any()


def test_a_right_model_is_not_doubted():
    """40 tables of 100 rows, five parameters each: no warning (they are errors here)."""
    rule = hs.DetectionLimits(lower=0.0)
    truth = hs.Gaussian([0.5, 0.5], [[1.0, 0.6], [0.6, 1.0]])
    ratios = []
    for seed in range(40):
        fit = hs.fit(hs.simulate(truth, rule, 100, seed), rule, random_state=0, n_jobs=1)
        ratios.append(fit.robust_standard_errors().vector() / fit.standard_errors.vector())
    # A root of an average of 100 squares of squares has an error of √(24/100)/4 = 0.12; its mean over 40
    # tables one of 0.02, and a bias of the order of 1/100.
    np.testing.assert_allclose(np.mean(ratios, axis=0), 1.0, atol=0.1)


def test_labels():
    frame = pd.DataFrame(np.random.default_rng(3).normal(size=(60, 2)), columns=["lead", "zinc"])
    found = hs.fit(frame, random_state=0).robust_standard_errors()
    assert found.mean["zinc"] > 0.0
    assert found.intervals().mean.lower["lead"] < frame["lead"].mean()


@pytest.mark.parametrize(
    ("clusters", "says"),
    [
        ([1, 2], r"each of the 40 rows; got shape \(2,\)"),
        (np.ones(40), "at least 2 clusters"),
        (np.r_[np.nan, np.arange(39.0)], "that of row 0 is missing"),
        (np.array([1, "a"] * 20, dtype=object), "all numbers or all texts"),
    ],
)
def test_mistakes_in_clusters(fit, clusters, says):
    with pytest.raises(InputError, match=says):
        fit.robust_standard_errors(clusters)


def test_it_needs_the_table_and_standard_errors(fit, tmp_path):
    fit.save(tmp_path / "fit.hsfit")
    with pytest.raises(InputError, match="does not hold its table"):
        hs.load(tmp_path / "fit.hsfit").robust_standard_errors()
    plain = hs.fit(np.random.default_rng(0).normal(size=(50, 2)), method="pairwise")
    with pytest.raises(InputError, match="has no standard errors"):
        plain.robust_standard_errors()
