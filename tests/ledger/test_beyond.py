"""What is open, and beyond the paper: the information against quadrature, and rows that can fail."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.stats import ks_2samp, multivariate_normal, norm

from halfseen.gaussian import Gaussian
from halfseen.ledger import beyond
from halfseen.simulate import simulate
from tests.ledger.broken import run_row

LIMITS = np.array([-0.2, 0.3])
TRUTH = Gaussian([0.1, -0.3], [[1.2, 0.5], [0.5, 0.9]])


def row_log_likelihood(theta, y):
    """Log-likelihood of one censored row, through SciPy's distributions."""
    mean, S = theta[:2], np.array([[theta[2], theta[3]], [theta[3], theta[4]]])
    hidden = y < LIMITS
    if hidden.all():
        return np.log(multivariate_normal(mean, S).cdf(LIMITS))
    if not hidden.any():
        return multivariate_normal(mean, S).logpdf(y)
    j = int(np.flatnonzero(hidden)[0])
    i = 1 - j
    centre = mean[j] + S[i, j] / S[i, i] * (y[i] - mean[i])
    scale = np.sqrt(S[j, j] - S[i, j] ** 2 / S[i, i])
    seen = norm(mean[i], np.sqrt(S[i, i])).logpdf(y[i])
    return seen + norm(centre, scale).logcdf(LIMITS[j])


def naive_information(truth, limits):
    """Information of a censored row of two columns: −E of second differences of its log-likelihood.

    Taken as E of the product of slopes, over a grid for seen values and SciPy's masses for hidden ones.
    """
    theta, step = beyond.parameters(truth), 1e-4

    def score(y):
        return np.array(
            [
                (row_log_likelihood(theta + e, y) - row_log_likelihood(theta - e, y)) / (2 * step)
                for e in step * np.eye(5)
            ]
        )

    t, w = np.polynomial.legendre.leggauss(24)
    total = np.zeros((5, 5))
    deep = limits - 1.0
    for hidden in itertools.product((False, True), repeat=2):
        axes = []
        for k in range(2):
            half = 0.5 * (truth.mean[k] + 6.0 - limits[k])
            axes.append(
                [(deep[k], 1.0)]
                if hidden[k]
                else list(zip(limits[k] + half * (t + 1), half * w, strict=True))
            )
        for (a, wa), (b, wb) in itertools.product(*axes):
            y = np.array([a, b])
            s = score(y)
            total += wa * wb * np.exp(row_log_likelihood(theta, y)) * np.outer(s, s)
    return total


def test_information_of_censored_rows_agrees_with_quadrature():
    comp, noise = beyond.information_of_a_row(TRUTH, LIMITS, 400_000)
    ref = naive_information(TRUTH, LIMITS)
    # The trace in units of the information is what the row rests on.
    assert np.trace(np.linalg.solve(ref, comp)) / 5 == pytest.approx(1.0, abs=4 * noise + 1e-3)
    # Products of scores of order 1, whose spread is a few, over √400 000.
    np.testing.assert_allclose(comp, ref, atol=0.03)


def test_redrawn_rows_keep_what_is_seen_and_the_law_of_what_is_not(rng):
    Y = TRUTH.sample(20_000, rng)
    Z = beyond.redraw(TRUTH, LIMITS, Y, rng)
    seen = LIMITS <= Y
    np.testing.assert_array_equal(Z[seen], Y[seen])
    assert (Z[~seen] < np.broadcast_to(LIMITS, Y.shape)[~seen]).all()
    assert ks_2samp(Z[:, 0], Y[:, 0]).pvalue > 1e-4
    # Given what is seen the second row is as correlated with it as the first.
    ref, comp = np.cov(Y.T), np.cov(Z.T)
    assert comp == pytest.approx(ref, abs=4 * 1.7 / np.sqrt(len(Y)))


def test_nothing_hidden_gives_the_information_of_complete_rows():
    comp, _ = beyond.information_of_a_row(TRUTH, np.full(2, -30.0), 200_000)
    # Cov(Σ̂_ij, Σ̂_kl) = Σ_ik Σ_jl + Σ_il Σ_jk for one row.
    S, pairs = TRUTH.covariance, [(0, 0), (1, 0), (1, 1)]
    spread = [[S[i, k] * S[j, m] + S[i, m] * S[j, k] for k, m in pairs] for i, j in pairs]
    ref = np.zeros((5, 5))
    ref[:2, :2], ref[2:, 2:] = TRUTH.precision, np.linalg.inv(spread)
    # Fourth moments of scores of order 1, over √200 000.
    np.testing.assert_allclose(comp, ref, atol=0.03)


def test_pairwise_in_the_place_of_full_is_not_at_the_limit(monkeypatch):
    right = beyond.fit

    def lesser(X, rule, method, **options):
        return right(X, rule, "pairwise" if method == "full" else method, **options)

    monkeypatch.setattr(beyond, "fit", lesser)
    entry = run_row("beyond/cramer-rao")
    assert not entry.holds
    assert "times the limit" in entry.measured


def test_an_estimator_that_is_a_tenth_of_a_deviation_off_is_not_at_the_limit(monkeypatch):
    right = beyond.fit

    def wrong(X, rule, method, **options):
        # pairwise, for speed: what is tested is the row.
        found = right(X, rule, "pairwise", **options).gaussian

        class Off:
            gaussian = Gaussian(found.mean + 0.1, found.covariance)

        return Off()

    monkeypatch.setattr(beyond, "fit", wrong)
    assert not run_row("beyond/cramer-rao").holds


def test_a_rung_that_is_worse_than_the_one_below_breaks_the_ladder(monkeypatch):
    right = beyond.errors

    def wrong(truth, rule, rung, n, seeds):
        if rung == "truncation_psgd":
            return right(truth, rule, "truncation", n, seeds)
        return right(truth, rule, rung, n, seeds) * (3.0 if rung == "pairwise" else 1.0)

    monkeypatch.setattr(beyond, "errors", wrong)
    assert not run_row("beyond/ladder").holds


def test_rows_that_were_promised_but_not_given_are_noticed(monkeypatch):
    right, kept = beyond.errors, {}

    def stingy(truth, rule, rung, *rest):
        # More rows are the first ones again. pairwise in the place of full, for speed.
        if rung not in kept:
            kept[rung] = right(truth, rule, "pairwise" if rung == "full" else rung, *rest)
        return kept[rung]

    monkeypatch.setattr(beyond, "errors", stingy)
    entry = run_row("beyond/rows-saved")
    assert not entry.holds
    assert "Given so many" in entry.measured


def test_equal_rungs_do_not_rise():
    same = np.array([[1.0, 2.0], [1.5, 1.0], [0.5, 1.2]])
    assert beyond.largest_rise(same, same) == 0.0
    assert beyond.largest_rise(same, same + np.array([0.0, 1.0])) > 4.0


def test_thresholds_hide_what_they_should():
    truth, rule = beyond.anchored_problem()
    hidden = np.isnan(simulate(truth, rule, 20_000, 0)).mean(axis=0)
    assert (hidden[: beyond.ANCHORS] == 0.0).all()
    # Binomial standard error 0.0035.
    assert np.abs(hidden[beyond.ANCHORS :] - beyond.BESIDE).max() < 4 * 0.0035


def test_a_fit_that_stays_where_it_started_fails(monkeypatch):
    right, kept = beyond.full, []

    def lazy(X, rule, *, start=None, **options):
        if start is None:
            kept.append(right(X, rule, **options))
            return kept[-1]
        return dataclasses.replace(kept[-1], gaussian=start)

    monkeypatch.setattr(beyond, "full", lazy)
    assert not run_row("open-problem/starts").holds


def test_leaving_hidden_cells_out_fails(monkeypatch):
    class Naive:
        def __init__(self, X, rule, random_state):
            rows = X[~np.isnan(X).any(axis=1)]
            self.gaussian = Gaussian(rows.mean(axis=0), np.cov(rows.T))

    monkeypatch.setattr(beyond, "fit", Naive)
    assert not run_row("open-problem/rows").holds


def test_starts_that_are_not_listened_to_fail(monkeypatch):
    right, kept = beyond.full, {}

    def deaf(X, rule, *, start=None, random_state, **options):
        # Of one table, fits from any start are then the same fit.
        if random_state not in kept:
            kept[random_state] = right(X, rule, random_state=random_state, **options)
        return kept[random_state]

    monkeypatch.setattr(beyond, "full", deaf)
    assert not run_row("open-problem/starts").holds
