"""Cramér–Rao limits against closed forms, quadrature and rejection."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

import halfseen as hs
from benchmarks import comparison, limits, one_factor

# Standard errors that a statistical comparison may be off by: 1 in 16 000, were they known.
ALLOWED = 4.0


def problem(kind, d, n=1000, **numbers):
    size = comparison.problems.Size(d, n, 1)
    return limits.Problem("test", "a test", kind, size, {"correlation": 0.5, **numbers})


def complete_limits(truth, n=1000):
    """Return the limits of complete data, in closed form."""
    d, S = truth.dimension, truth.covariance
    variance = np.diag(S)
    entries = np.sqrt((np.outer(variance, variance) + S**2) / n)
    return limits.Limit(
        np.sqrt(variance / n), entries, math.sqrt(d / n), math.sqrt(d * (d + 1) / n)
    )


def assert_same(comp, ref, rtol):
    for name, value in vars(ref).items():
        np.testing.assert_allclose(getattr(comp, name), value, rtol=rtol, err_msg=name)


def equicorrelated(d, rho=0.5):
    return hs.Gaussian(np.zeros(d), (1.0 - rho) * np.eye(d) + rho)


def by_shape(information, truth):
    """Squared limits: averages over μ_i, over Σ_ii and over Σ_ij; for the mean, for the covariance."""
    found = limits.Limit.of(np.linalg.inv(information), truth)
    pairs = found.covariance[np.tril_indices(truth.dimension, -1)]
    parts = (found.mean, np.diag(found.covariance), pairs, found.mahalanobis, found.frobenius)
    return np.array([np.mean(np.square(part)) for part in parts])


def jackknife(parts, figure):
    """A figure of the mean of parts, less its bias of first order, and its standard error."""
    parts = np.asarray(parts)
    count, total = len(parts), parts.sum(axis=0)
    without = np.array([figure((total - part) / (count - 1)) for part in parts])
    center = without.mean(axis=0)
    error = np.sqrt((count - 1) * ((without - center) ** 2).mean(axis=0))
    return count * figure(total / count) - (count - 1) * center, error


def one_factor_estimate(d, rho, shares, rows, parts=40):
    blocks = [
        np.mean(
            [
                one_factor.missing_blocks(d, rho, *share, rows, np.random.default_rng([seed, k]))
                for k, share in enumerate(shares)
            ],
            axis=0,
        )
        for seed in range(parts)
    ]
    return jackknife(blocks, lambda missing: one_factor.symmetric_limits(missing, d, rho))


def sides(Y, below, above):
    """1: seen, 0: hidden below, 2: hidden above."""
    return 1 - (ndtri(below) > Y) + (ndtri(1.0 - above) < Y)


@pytest.mark.parametrize("d", [3, 4, 10, 100])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_nothing_hidden_gives_the_limits_of_complete_data(d, rho, monkeypatch):
    monkeypatch.setattr(limits, "ROWS", 50)
    task = problem("limits", d, correlation=rho)
    assert_same(limits.cramer_rao(task), complete_limits(task.truth), 1e-11)


@pytest.mark.parametrize(
    "shares",
    [[(0.3, 0.0)], [(0.15, 0.25)], [(0.1, 0.0), (0.3, 0.0), (0.5, 0.0)]],
    ids=["left", "both", "by row"],
)
def test_one_factor_agrees_with_rejection(shares):
    d, rho = 3, 0.5
    truth = equicorrelated(d, rho)

    def information(seed):
        return np.mean(
            [
                limits.information_by_rejection(
                    truth,
                    lambda Y, share=share: sides(Y, *share),
                    3000,
                    np.random.default_rng([seed, k]),
                )
                for k, share in enumerate(shares)
            ],
            axis=0,
        )

    parts = [information(seed) for seed in range(40)]
    ref, ref_error = jackknife(parts, lambda mean: by_shape(mean, truth))
    comp, comp_error = one_factor_estimate(d, rho, shares, 3000)
    error = np.hypot(ref_error, comp_error)
    assert (error < 0.015 * ref).all()
    assert (abs(comp - ref) < ALLOWED * error).all()


def information_by_halves(truth, limit, rows, draws, seed):
    """Information of rows censored below a limit, from averages of scores over many draws.

    The expected score of a row is the average over draws of its hidden part; two halves of them give
    the information without squared noise.
    """
    rng = np.random.default_rng(seed)
    Y = truth.sample(rows, rng)
    p = truth.dimension * (truth.dimension + 3) // 2
    total = np.zeros((p, p))
    for y in Y:
        hidden = y < limit
        halves = []
        for _ in range(2):
            Z = np.tile(y, (draws // 2, 1))
            if hidden.any():
                Z[:, hidden] = _conditional_draws(truth, y, hidden, limit, draws // 2, rng)
            halves.append(limits.scores(truth, Z).mean(axis=0))
        total += 0.5 * (np.outer(*halves) + np.outer(*halves[::-1]))
    return total / rows


def _conditional_draws(truth, y, hidden, limit, count, rng):
    law = truth if hidden.all() else truth.condition(np.flatnonzero(~hidden), y[~hidden])
    kept, have, batch = [], 0, 256
    while have < count:
        Z = law.mean + rng.standard_normal((batch, law.dimension)) @ law.cholesky.T
        Z = Z[(limit > Z).all(axis=1)]
        kept.append(Z)
        have += len(Z)
        batch = min(2 * batch, 2**17)
    return np.concatenate(kept)[:count]


def test_one_factor_agrees_with_averaged_scores():
    """Two halves of draws need neither the information of complete rows nor the missing one."""
    d, rho, share = 3, 0.5, 0.4
    truth = equicorrelated(d, rho)
    parts = [information_by_halves(truth, ndtri(share), 150, 40, seed) for seed in range(30)]
    ref, ref_error = jackknife(parts, lambda mean: by_shape(mean, truth))
    comp, comp_error = one_factor_estimate(d, rho, [(share, 0.0)], 3000)
    assert (ref_error < 0.06 * ref).all()
    assert (abs(comp - ref) < ALLOWED * np.hypot(ref_error, comp_error)).all()


@pytest.mark.parametrize("d", [3, 4, 5])
def test_blocks_are_the_whole_matrix_averaged_over_orders(d):
    rho, truth = 0.3, equicorrelated(d, 0.3)
    R, U, D, q = one_factor.missing_scores(truth.sample(30, 0), rho, 0.3, 0.2)
    H = U @ D @ U.transpose(0, 2, 1) - q[:, :, None] * np.eye(d)
    i, j = np.tril_indices(d)
    total = 0.0
    orders = list(itertools.permutations(range(d)))
    for order in orders:
        permuted = H[:, order][:, :, order]
        s = np.hstack([R[:, order], np.where(i == j, 0.5, 1.0) * permuted[:, i, j]])
        total = total + s.T @ s / len(R) / len(orders)
    # A part of it, so that what is left is positive definite with as few rows.
    ref = limits.Limit.of(np.linalg.inv(limits.complete_information(truth) - 0.1 * total), truth)
    missing = 0.1 * one_factor.symmetric_blocks(R, U, D, q)
    mean, variance, pair, *distances = np.sqrt(one_factor.symmetric_limits(missing, d, rho))
    entries = np.where(np.eye(d, dtype=bool), variance, pair)
    assert_same(limits.Limit(np.full(d, mean), entries, *distances), ref, 1e-10)


def test_missing_scores_are_those_of_the_moments_given_what_is_seen():
    rho, truth = 0.7, equicorrelated(6, 0.7)
    Y = truth.sample(50, 0)
    mean, side, between, variance = one_factor.given_seen(Y, rho, 0.3, 0.2)
    R, U, D, q = one_factor.missing_scores(Y, rho, 0.3, 0.2)
    P = truth.precision
    for row, (y, m) in enumerate(zip(Y, mean, strict=True)):
        indicator = side[:, row].astype(float)
        covariance = indicator.T @ between[row] @ indicator + np.diag(variance[row])
        ref = P @ (np.outer(y, y) - np.outer(m, m) - covariance) @ P
        np.testing.assert_allclose(U[row] @ D[row] @ U[row].T - np.diag(q[row]), ref, atol=1e-11)
        np.testing.assert_allclose(R[row], P @ (y - m), atol=1e-12)


def test_moments_given_what_is_seen_agree_with_rejection():
    """Means and covariances of rows in which cells are hidden on both sides."""
    rho, below, above, draws = 0.6, 0.4, 0.3, 20_000
    truth = equicorrelated(4, rho)
    Y = np.array([[-1.0, -0.8, 0.1, 1.3], [-1.0, 0.2, 0.9, 1.5], [-2.0, -1.0, -0.7, 2.0]])
    mean, side, between, variance = one_factor.given_seen(Y, rho, below, above)
    for row, y in enumerate(Y):
        Z = limits.redraw(
            truth,
            lambda rows: sides(rows, below, above),
            np.tile(y, (draws, 1)),
            np.random.default_rng(row),
        )
        indicator = side[:, row].astype(float)
        covariance = indicator.T @ between[row] @ indicator + np.diag(variance[row])
        # No moment here has a larger standard deviation than 1, that of a whole column.
        np.testing.assert_allclose(mean[row], Z.mean(axis=0), atol=ALLOWED / math.sqrt(draws))
        np.testing.assert_allclose(covariance, np.cov(Z.T), atol=ALLOWED / math.sqrt(draws))


def test_a_finer_grid_changes_nothing(monkeypatch):
    Y = equicorrelated(20, 0.9).sample(200, 0)
    ref = one_factor.given_seen(Y, 0.9, 0.3, 0.2)
    winner = limits.winner_information(np.array([0.0, 1.0, -1.0]), np.array([1.0, 0.2, 4.0]))
    for module in (one_factor, limits):
        monkeypatch.setattr(module, "STEP", 0.2)
    for fine, coarse in zip(one_factor.given_seen(Y, 0.9, 0.3, 0.2), ref, strict=True):
        np.testing.assert_allclose(fine, coarse, atol=1e-11)
    finer = limits.winner_information(np.array([0.0, 1.0, -1.0]), np.array([1.0, 0.2, 4.0]))
    np.testing.assert_allclose(finer, winner, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("d", [3, 30])
def test_more_hidden_is_less_exact(d, monkeypatch):
    monkeypatch.setattr(limits, "ROWS", 5000)
    found = []
    for share in (0.0, 0.1, 0.3, 0.5, 0.7):
        limit = limits.cramer_rao(problem("limits", d, below=share))
        entries = (limit.mean[0], *limit.covariance[0, :2])
        found.append([*entries, limit.mahalanobis, limit.frobenius])
    assert (np.diff(found, axis=0) > 0.0).all()


def test_both_sides_are_mirrored(monkeypatch):
    monkeypatch.setattr(limits, "ROWS", 20_000)
    below = limits.cramer_rao(problem("limits", 5, below=0.3))
    # Noise of a variance is √(14/20 000) m/(1−m) at most, where m is at most 0.4: half of that for a
    # standard deviation, √2 for two of them.
    allowed = ALLOWED * 0.5 * math.sqrt(14.0 / 20_000) * 0.67 * math.sqrt(2.0)
    assert_same(limits.cramer_rao(problem("limits", 5, above=0.3)), below, allowed)
    assert_same(limits.cramer_rao(problem("limits by row", 5, below=[0.3, 0.3])), below, allowed)


def test_rows_with_limits_of_their_own_are_averaged(monkeypatch):
    """Of information, not of limits: and in the same draws, so exactly."""
    monkeypatch.setattr(limits, "ROWS", 2000)
    task = problem("limits by row", 4, n=1, below=[0.1, 0.6])
    comp, spread = limits.cramer_rao(task), task.truth.standard_deviations
    rng = np.random.default_rng(0)
    missing = [one_factor.missing_blocks(4, 0.5, below, 0.0, 1000, rng) for below in (0.1, 0.6)]
    ref = np.sqrt(one_factor.symmetric_limits((missing[0] + missing[1]) / 2.0, 4, 0.5))
    entries = comp.covariance[0, :2] / spread[0] / spread[:2]
    found = [comp.mean[0] / spread[0], *entries, comp.mahalanobis, comp.frobenius]
    np.testing.assert_allclose(found, ref, rtol=1e-12)


@pytest.mark.parametrize(("d", "rho"), [(2, 0.5), (3, -0.1), (3, 1.0)])
def test_what_one_factor_cannot_do_is_said(d, rho):
    with pytest.raises(ValueError, match="expected d >= 3 and 0 <= correlation < 1"):
        limits.cramer_rao(problem("limits", d, correlation=rho, below=0.3))


def test_rejection_with_nothing_hidden_is_exact(three):
    found = limits.information_by_rejection(
        three, lambda Y: np.isfinite(Y), 100, np.random.default_rng(0)
    )
    assert_same(limits.Limit.of(np.linalg.inv(found), three), complete_limits(three, 1), 1e-11)


def test_anchors_of_linear_thresholds_are_as_exact_as_complete_columns(monkeypatch):
    """Nothing hides them, and other columns cannot add to them: so exactly, with any rows drawn."""
    monkeypatch.setattr(limits, "ROWS", 4000)
    task = problem("linear threshold", 10)
    comp, ref = limits.cramer_rao(task), complete_limits(task.truth)
    np.testing.assert_allclose(comp.mean[:3], ref.mean[:3], rtol=1e-9)
    np.testing.assert_allclose(comp.covariance[:3, :3], ref.covariance[:3, :3], rtol=1e-9)
    assert (comp.mean[3:] > 1.01 * ref.mean[3:]).all()
    assert (np.diag(comp.covariance)[3:] > 1.01 * np.diag(ref.covariance)[3:]).all()


def test_redrawn_rows_keep_what_is_seen():
    truth, rule = limits.linear_threshold()
    Y = truth.sample(2000, 1)
    Z = limits.redraw(truth, rule.seen, Y, np.random.default_rng(2))
    seen = rule.seen(Y)
    assert (rule.seen(Z) == seen).all()
    assert (Z[seen] == Y[seen]).all()
    assert (Z[~seen] != Y[~seen]).all()


WINNER = {"mean": [0.0, 0.5, -0.3], "variance": [1.0, 0.6, 2.0]}


@pytest.mark.parametrize("winner", range(3))
def test_winner_score_is_the_derivative_of_its_log_density(winner):
    def log_density(theta, x):
        parts = [
            (stats.norm.logpdf if k == winner else stats.norm.logcdf)(
                x, theta[k], math.sqrt(theta[3 + k])
            )
            for k in range(3)
        ]
        return np.sum(parts, axis=0)

    theta = np.array(WINNER["mean"] + WINNER["variance"])
    x, h = np.linspace(-2.0, 4.0, 25), 1e-5
    found, score = limits.winner_score(x, winner, theta[:3], theta[3:])
    np.testing.assert_allclose(found, log_density(theta, x), rtol=1e-12)
    for k, step in enumerate(h * np.eye(6)):
        slope = (log_density(theta + step, x) - log_density(theta - step, x)) / (2.0 * h)
        # Rounding of differences, 1e-16 · 10 / h, and their third derivative, h² · 10.
        np.testing.assert_allclose(score[k], slope, atol=1e-8)


def test_winner_information_agrees_with_drawn_rows():
    """And densities of all winners make up the whole, or no average would fit."""
    truth = hs.Gaussian(WINNER["mean"], np.diag(WINNER["variance"]))
    Y = truth.sample(200_000, 0)
    variance = np.diag(truth.covariance)
    parts = []
    for winner in range(3):
        x = Y[Y.argmax(axis=1) == winner, winner]
        parts.append(limits.winner_score(x, winner, truth.mean, variance)[1].T)
    drawn = np.vstack(parts)
    products = drawn[:, :, None] * drawn[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(drawn))
    comp = limits.winner_information(truth.mean, variance)
    assert (abs(comp - products.mean(axis=0)) < ALLOWED * error).all()
    # Scores have the mean zero only under the right density.
    assert (abs(drawn.mean(axis=0)) < ALLOWED * drawn.std(axis=0) / math.sqrt(len(drawn))).all()


def test_winner_knows_that_columns_are_independent():
    task = problem("winner", 3, **WINNER)
    comp, ref = limits.cramer_rao(task), complete_limits(task.truth)
    assert (np.isnan(comp.covariance) == ~np.eye(3, dtype=bool)).all()
    assert (comp.mean > ref.mean).all()
    variance, spread = task.truth.standard_deviations**2, np.diag(comp.covariance)
    assert (spread > np.diag(ref.covariance)).all()
    # Errors of the entries that are not told, in units of the truth.
    assert comp.mahalanobis == pytest.approx(math.sqrt((comp.mean**2 / variance).sum()))
    assert comp.frobenius == pytest.approx(math.sqrt((spread**2 / variance**2).sum()))


def test_truncation_to_everything_gives_the_limits_of_complete_data(monkeypatch):
    monkeypatch.setitem(
        comparison.problems.SETS, "everything", lambda rows: np.ones(len(rows), dtype=bool)
    )
    task = problem("truncated", 3, set="everything")
    # What a best estimate averages has a kurtosis of at most 15, that of a square: a variance has the
    # relative error √(14/rows), a standard deviation half of it.
    allowed = ALLOWED * 0.5 * math.sqrt(14.0 / limits.TRUNCATED)
    assert_same(limits.cramer_rao(task), complete_limits(task.truth), allowed)


def test_truncation_to_a_box_agrees_with_quadrature():
    rows = 400_000
    task = problem("truncated", 2, set="box")
    nodes, weights = np.polynomial.legendre.leggauss(80)
    x, w = 4.0 * (nodes + 1.0), 4.0 * weights
    points = np.array(list(itertools.product(x, x)))
    density = np.outer(w, w).ravel() * np.exp(task.truth.logpdf(points))
    s = limits.scores(task.truth, points)
    information = np.cov(s.T, aweights=density, ddof=0)
    # The error of a variance uᵀ I⁻¹ u comes from the spread of (uᵀ I⁻¹ s)².
    inverse = np.linalg.inv(information)
    influence = ((s - np.average(s, axis=0, weights=density)) @ inverse) ** 2
    spread = np.sqrt(np.average((influence - np.diag(inverse)) ** 2, axis=0, weights=density))
    rng = np.random.default_rng(0)
    found = limits.truncated_information(task.truth, comparison.problems.SETS["box"], rows, rng)
    error = spread / math.sqrt(rows)
    assert (error < 0.02 * np.diag(inverse)).all()
    assert (abs(np.diag(np.linalg.inv(found) - inverse)) < ALLOWED * error).all()


@pytest.mark.parametrize(
    ("kind", "d", "numbers"),
    [
        ("limits", 4, {"below": 0.3}),
        ("linear threshold", 10, {}),
        ("winner", 3, WINNER),
        ("truncated", 2, {"set": "two shells"}),
    ],
)
def test_four_times_the_rows_halve_every_limit(kind, d, numbers, monkeypatch):
    monkeypatch.setattr(limits, "ROWS", 3000)
    monkeypatch.setattr(limits, "TRUNCATED", 3000)
    few, many = (limits.cramer_rao(problem(kind, d, n, **numbers)) for n in (100, 400))
    assert_same(limits.Limit(*(2.0 * part for part in vars(many).values())), few, 1e-12)
    assert few.mean.shape == (d,)
    np.testing.assert_array_equal(few.covariance, few.covariance.T)


def test_distances_are_those_of_errors_with_this_covariance(three):
    """Mean squares of distances from the metrics, over draws from the inverse of some information."""
    rng, draws = np.random.default_rng(0), 4000
    inverse = np.linalg.inv(limits.complete_information(three)) * 1e-6
    inverse[:, :3] *= 2.0
    inverse[:3] *= 2.0
    limit = limits.Limit.of(inverse, three)
    i, j = np.tril_indices(3)
    squares = []
    for off in rng.multivariate_normal(np.zeros(9), inverse, draws):
        S = three.covariance.copy()
        S[i, j] = S[j, i] = S[i, j] + off[3:]
        squares.append(
            [
                hs.metrics.mahalanobis_error(three.mean + off[:3], three) ** 2,
                hs.metrics.relative_frobenius_error(S, three) ** 2,
            ]
        )
    error = np.std(squares, axis=0) / math.sqrt(draws)
    found = np.array([limit.mahalanobis**2, limit.frobenius**2])
    assert (abs(np.mean(squares, axis=0) - found) < ALLOWED * error).all()
