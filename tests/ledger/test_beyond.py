import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from halfseen.gaussian import Gaussian
from halfseen.ledger import beyond
from halfseen.ledger.registry import CLAIMS, check_claim

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


@pytest.mark.parametrize("y", [[1.0, 1.5], [-1.0, 0.8], [0.4, -0.9], [-2.0, -1.0]])
def test_scores_are_slopes_of_the_log_likelihood(y):
    y, theta = np.array(y), beyond.parameters(TRUTH)
    step = 1e-4
    ref = [
        (row_log_likelihood(theta + e, y) - row_log_likelihood(theta - e, y)) / (2 * step)
        for e in step * np.eye(5)
    ]
    # SciPy's distribution function of two dimensions is good to 1e-5 or so.
    np.testing.assert_allclose(beyond.censored_scores(TRUTH, LIMITS, y[None])[0], ref, atol=2e-3)


def test_nothing_hidden_gives_the_information_of_complete_rows():
    comp = beyond.information_of_a_row(TRUTH, np.full(2, -30.0), 200_000)
    # Cov(Σ̂_ij, Σ̂_kl) = Σ_ik Σ_jl + Σ_il Σ_jk for one row.
    S, pairs = TRUTH.covariance, [(0, 0), (1, 0), (1, 1)]
    spread = [[S[i, k] * S[j, m] + S[i, m] * S[j, k] for k, m in pairs] for i, j in pairs]
    ref = np.zeros((5, 5))
    ref[:2, :2], ref[2:, 2:] = TRUTH.precision, np.linalg.inv(spread)
    # Fourth moments of scores of order 1, over √200 000.
    np.testing.assert_allclose(comp, ref, atol=0.03)


def test_an_estimator_that_is_a_tenth_of_a_deviation_off_is_not_at_the_limit(monkeypatch):
    right = beyond.fit

    def wrong(*args, **options):
        found = right(*args, **options).gaussian

        class Off:
            gaussian = Gaussian(found.mean + 0.1, found.covariance)

        return Off()

    monkeypatch.setattr(beyond, "fit", wrong)
    assert not check_claim(CLAIMS["beyond/cramer-rao"], quick=True).holds


def test_a_rung_that_is_worse_than_the_one_below_breaks_the_ladder(monkeypatch):
    right = beyond.errors

    def wrong(truth, rule, rung, n, seeds):
        if rung == "truncation_psgd":
            return right(truth, rule, "truncation", n, seeds)
        return right(truth, rule, rung, n, seeds) * (3.0 if rung == "pairwise" else 1.0)

    monkeypatch.setattr(beyond, "errors", wrong)
    assert not check_claim(CLAIMS["beyond/ladder"], quick=True).holds


def test_equal_rungs_do_not_rise():
    same = np.array([[1.0, 2.0], [1.5, 1.0], [0.5, 1.2]])
    assert beyond.largest_rise(same, same) == 0.0
    assert beyond.largest_rise(same, same + np.array([0.0, 1.0])) > 4.0
