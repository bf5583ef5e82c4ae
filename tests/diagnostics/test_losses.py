"""Whether the rule explains the holes: scores, their law, and what is found."""

import numpy as np
import pytest
from scipy import integrate, stats

import halfseen as hs
from halfseen.diagnostics.fitted_rows import FittedTable, Ground, complete_scores, stand_on
from halfseen.diagnostics.together import (
    hidden_probabilities,
    judge_losses,
    largest_p_values,
    loss_scores,
    standard_scores,
    weighted_for,
)
from halfseen.parallel import single_blas_thread

LIMIT = -0.4


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices: threads of BLAS would only wait for each other."""
    with single_blas_thread():
        yield


def table(d=2, n=300, seed=0, lost=0.0, columns=None, correlation=0.6):
    """Values below a limit are hidden, and a share of all, or of some columns, is lost."""
    R = np.full((d, d), correlation) + (1.0 - correlation) * np.eye(d)
    rule = hs.DetectionLimits(lower=LIMIT)
    X = hs.simulate(hs.Gaussian(np.zeros(d), R), rule, n, seed)
    gone = np.random.default_rng(seed).random(X.shape) < lost
    gone[:, [j for j in range(d) if columns is not None and j not in columns]] = False
    X[gone] = np.nan
    return X, rule


def fitted(X, rule, **options):
    return hs.fit(X, rule, random_state=0, n_jobs=1, **options)


def log_likelihood(x, j, share, mean, S):
    """Log-likelihood of a row if values of column j that would be seen are lost with a probability."""
    k = 1 - j if len(x) == 2 else None
    if k is None:
        below = stats.norm.cdf(LIMIT, mean[0], S[0, 0] ** 0.5)
        if np.isnan(x[0]):
            return np.log(below + share * (1.0 - below))
        return np.log(1.0 - share) + stats.norm.logpdf(x[0], mean[0], S[0, 0] ** 0.5)
    if np.isnan(x).all():
        both = stats.multivariate_normal.cdf([LIMIT, LIMIT], mean, S)
        other = stats.norm.cdf(LIMIT, mean[k], S[k, k] ** 0.5)
        return np.log(both + share * (other - both))
    if not np.isnan(x).any():
        return np.log(1.0 - share) + stats.multivariate_normal.logpdf(x, mean, S)
    hidden, seen = (j, k) if np.isnan(x[j]) else (k, j)
    centre = mean[hidden] + S[hidden, seen] / S[seen, seen] * (x[seen] - mean[seen])
    spread = (S[hidden, hidden] - S[hidden, seen] ** 2 / S[seen, seen]) ** 0.5
    below = stats.norm.cdf(LIMIT, centre, spread)
    known = stats.norm.logpdf(x[seen], mean[seen], S[seen, seen] ** 0.5)
    if hidden == j:
        return known + np.log(below + share * (1.0 - below))
    return known + np.log(1.0 - share) + np.log(below)


@pytest.mark.parametrize("d", [1, 2])
def test_the_score_at_zero_is_the_derivative_of_the_likelihood_with_losses(d):
    X, rule = table(d, 40)
    fit = fitted(X, rule)
    ground = stand_on(FittedTable(fit), 0)
    assert isinstance(ground, Ground)
    columns = list(range(d))
    P = hidden_probabilities(ground.seen, columns, ground.at)
    found = loss_scores(P, ground.seen.hidden, 0.0)
    # Of all patterns there are some.
    assert len(np.unique(np.isnan(X), axis=0)) == 2**d
    step = 1e-6
    for j in columns:
        exact = [
            (log_likelihood(x, j, step, fit.mean, fit.covariance)
             - log_likelihood(x, j, 0.0, fit.mean, fit.covariance)) / step
            for x in X
        ]  # fmt: skip
        # A forward difference is off by step/2 times the second derivative, the square of the score;
        # SciPy's bivariate probability by 1e-5 or so.
        assert found[:, j] == pytest.approx(exact, rel=1e-3, abs=1e-4)


def test_weights_have_mean_zero_and_are_bounded():
    P = np.array([1e-12, 0.01, 0.3, 0.9])
    for share in (0.1, 0.5):
        hidden, seen = (loss_scores(P, np.full(4, value), share) for value in (True, False))
        assert P * hidden + (1.0 - P) * seen == pytest.approx(0.0, abs=1e-12)
        assert hidden.max() <= 1.0 / share
        assert seen.min() >= -1.0
    assert loss_scores(np.array([np.nan]), np.array([True]), 0.1).tolist() == [0.0]
    assert weighted_for(10_000) == 0.1
    assert weighted_for(20) == 0.5
    assert 0.1 < weighted_for(300) < 0.5


def test_scores_of_complete_rows_are_derivatives_of_the_density():
    S = np.array([[1.0, 0.4], [0.4, 1.0]])
    z = np.array([0.7, -1.2])

    def density(p):
        return stats.multivariate_normal.logpdf(z, p[:2], [[p[2], p[3]], [p[3], p[4]]])

    at, step = np.array([0.0, 0.0, 1.0, 0.4, 1.0]), 1e-6
    exact = [(density(at + step * e) - density(at - step * e)) / (2.0 * step) for e in np.eye(5)]
    assert complete_scores(z[None], np.linalg.inv(S))[0] == pytest.approx(exact, abs=1e-7)


def test_the_variance_of_a_sum_of_scores_is_that_of_the_efficient_score():
    n = 1000
    X, rule = table(1, n)
    fit = fitted(X, rule)
    ground = stand_on(FittedTable(fit), 0)
    share = weighted_for(n)
    P = hidden_probabilities(ground.simulated, [0], ground.at)
    terms = loss_scores(P, ground.simulated.hidden, share)
    found = n * (ground.residuals(terms) ** 2).mean()
    # In one column: u and the scores of mean and variance by quadrature, of rows with the fitted law.
    m, s = fit.mean[0], fit.covariance[0, 0] ** 0.5
    below = stats.norm.cdf(LIMIT, m, s)
    c, density = (LIMIT - m) / s, stats.norm.pdf((LIMIT - m) / s)
    hidden = np.array([
        (1.0 - below) / (below + share * (1.0 - below)),
        -density / below / s,
        -c * density / below / (2.0 * s * s),
    ])  # fmt: skip

    def product(x, i, j):
        z = (x - m) / s
        row = [-below / (below + share * (1.0 - below)), z / s, (z * z - 1.0) / (2.0 * s * s)]
        return row[i] * row[j] * stats.norm.pdf(x, m, s)

    J = np.array([
        [integrate.quad(product, LIMIT, m + 12.0 * s, args=(i, j))[0] for j in range(3)]
        for i in range(3)
    ]) + below * np.outer(hidden, hidden)  # fmt: skip
    exact = n * (J[0, 0] - J[0, 1:] @ np.linalg.solve(J[1:, 1:], J[1:, 0]))
    # Of 2 000 simulated rows a variance has a relative error of √((kurtosis − 1)/2000), 0.1 for a
    # kurtosis of 20. Without projection it is several times as large.
    assert found == pytest.approx(exact, rel=0.3)
    assert n * (terms**2).mean() > 3.0 * exact


def p_values_of(tables, **options):
    out = []
    for seed in range(tables):
        ground = stand_on(FittedTable(fitted(*table(seed=seed, **options))), seed)
        out.append(judge_losses(ground, seed).p_value)
    return np.array(out)


@pytest.mark.parametrize("n", [60, 250])
def test_p_values_hold_their_level_where_the_rule_is_right(n):
    tables = 24
    p = p_values_of(tables, n=n)
    # Binomial counts leave these bands once in a thousand, each.
    for level in (0.05, 0.5):
        low, high = stats.binom.ppf([0.0005, 0.9995], tables, level)
        assert low <= (p <= level).sum() <= high, level


def test_scores_of_small_tables_are_standard_normal_where_the_rule_is_right():
    squares = []
    for seed in range(30):
        X, rule = table(5, 50, seed, correlation=0.7)
        ground = stand_on(FittedTable(fitted(X, rule)), seed)
        squares.append(standard_scores(ground, list(range(5)))[0] ** 2)
    # Of 30 tables; their own spread says how well the mean is known. A mean square of a third to a
    # half, as of scores that are brought down by what refits of so few rows seem to say, is far below.
    means = np.mean(squares, axis=1)
    assert np.mean(means) == pytest.approx(1.0, abs=3.0 * np.std(means) / 30**0.5)


def test_losses_are_found():
    p = p_values_of(12, d=3, n=300, lost=0.3)
    # With a power of 0.9 fewer than 8 of 12 are found with probability 0.0005; columns by themselves
    # find fewer than half.
    assert (p < 0.05).sum() >= 8


def test_the_column_is_named():
    X, rule = table(3, 800, 1, 0.25, [1])
    found = hs.diagnose(fitted(X, rule), simulations=19)
    losses = found.losses
    assert losses.p_value < 1e-3
    assert losses.names == ("x0", "x1", "x2")
    assert losses.adjusted.argmin() == 1
    (finding,) = (f for f in found.findings if f.title == "More is hidden than the limits explain")
    assert (finding.level, finding.column) == ("look", "x1")
    assert "loss='learn'" in finding.text
    assert "Does the rule explain the holes?    p < 0.001" in str(found)
    assert found.to_dict()["losses"]["p_value"] == losses.p_value
    # One answer to one question.
    assert not any(mark.kind == "hidden too often" for mark in found.mechanism)


def test_cells_that_are_missing_at_random_take_no_part():
    X, rule = table(2, 400, 2)
    blank = np.random.default_rng(0).random(X.shape) < 0.3
    fit = fitted(np.where(blank, np.nan, X), rule, missing_at_random=blank)
    ground = stand_on(FittedTable(fit), 0)
    P = hidden_probabilities(ground.seen, [0, 1], ground.at)
    assert (np.isnan(P) == blank).all()
    assert judge_losses(ground, 0).p_value > 0.01
    # Were they not excused, they would be found out.
    told = fitted(np.where(blank, np.nan, X), rule)
    assert judge_losses(stand_on(FittedTable(told), 0), 0).p_value < 0.05


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring(hs.between(-0.8, 1.2)),
        hs.SelfCensoring(hs.at_most(-0.5) | hs.at_least(0.3)),
        hs.DetectionLimits(lower=np.resize([-1.0, -0.2, 0.3], (400, 1)) * np.ones(2)),
        hs.DetectionLimits(lower=[-0.5, -np.inf]),
    ],
)
def test_every_rule_by_column_can_be_tested(rule):
    truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.7], [0.7, 1.0]])
    X = hs.simulate(truth, rule, 400, 3)
    right = hs.diagnose(fitted(X, rule), simulations=19).losses
    assert right.p_value > 0.01
    X[np.random.default_rng(1).random(400) < 0.3, 0] = np.nan
    wrong = hs.diagnose(fitted(X, rule), simulations=19).losses
    assert wrong.p_value < 0.05
    assert right.names == wrong.names


def test_what_cannot_be_tested_is_said():
    X, rule = table(2, 200)
    assert "no fit" in hs.diagnose(X, rule, simulations=19).losses.reason
    data = hs.IntervalData(np.where(np.isnan(X), -np.inf, X), np.where(np.isnan(X), LIMIT, X))
    fit = hs.fit(data, random_state=0, n_jobs=1)
    assert "tell their own limits" in hs.diagnose(fit, simulations=19).losses.reason
    heckman = hs.LinearThreshold.heckman(1, [1.0, 0.0])
    truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    bound = hs.fit(
        hs.simulate(truth, heckman, 300), heckman, covariance=truth.covariance, random_state=0
    )
    losses = hs.diagnose(bound, simulations=19).losses
    # What hides it is seen in every row: given that, it is missing at random.
    assert losses.reason == "no cell is hidden by a rule"
    assert np.isnan(losses.p_value)
    by_pairs = hs.fit(X, rule, "pairwise")
    assert "pairwise" in hs.diagnose(by_pairs, simulations=19).losses.reason


def test_the_largest_of_several_is_judged_by_its_own_law():
    # Independent: 1 − Φ(z)^k. Equal ones count once.
    z = np.array([1.8, 0.0, -1.0])
    exact = 1.0 - stats.norm.cdf(z) ** 3
    # 20 000 draws: a standard error of 0.0035 at most.
    assert largest_p_values(z, np.eye(3), 0) == pytest.approx(exact, abs=0.014)
    once = largest_p_values(np.full(3, 1.8), np.ones((3, 3)), 0)
    assert once == pytest.approx(stats.norm.sf(1.8), abs=0.014)
    # Beyond all draws the bound of Bonferroni.
    far = largest_p_values(np.array([7.0, 0.0]), np.eye(2), 0)
    assert far[0] == pytest.approx(2.0 * stats.norm.sf(7.0))


def test_fits_that_model_more_say_so():
    X, rule = table(2, 200, 0, 0.1, [0])
    heavy = hs.fit(X, rule, errors="t", degrees_of_freedom=5, random_state=0)
    assert "normal errors" in hs.diagnose(heavy, simulations=19).losses.reason
    lossy = hs.fit(X, rule, loss=0.1, random_state=0)
    assert "losses in its model" in hs.diagnose(lossy, simulations=19).losses.reason
