"""Steps of the parameters against brute-force maximisation of the expected log-likelihood."""

import numpy as np
import pytest
from scipy import optimize

import halfseen as hs
from halfseen.solvers.full_information.expectation import Moments
from halfseen.solvers.full_information.m_step import (
    SMALLEST_EIGENVALUE,
    Diagonal,
    Free,
    Known,
    KnownCorrelation,
    MStep,
    Shrinkage,
    Sparse,
    correlation_of,
    graphical_lasso,
    singular,
    with_floor,
)

D = 3
CORRELATION = np.array([[1.0, 0.5, -0.3], [0.5, 1.0, 0.2], [-0.3, 0.2, 1.0]])


def _moments(seed=0, n=40, d=D):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
    return Moments(Y.mean(axis=0), Y.T @ Y / n)


def _loss(moments, mean, covariance):
    """Less the expected log-likelihood of a row, up to a constant."""
    return 0.5 * (
        np.linalg.slogdet(covariance)[1]
        + np.trace(np.linalg.solve(covariance, moments.about(mean)))
    )


def _minimise(loss, start):
    found = optimize.minimize(loss, start, method="BFGS", options={"gtol": 1e-9})
    # A second run from where the first stopped for rounding.
    return optimize.minimize(loss, found.x, method="Nelder-Mead", options={"fatol": 1e-14}).x


def _from_cholesky(p):
    L = np.zeros((D, D))
    L[np.tril_indices(D)] = p
    return L @ L.T


def _from_logs(p):
    return np.diag(np.exp(p))


def _from_scales(p):
    return CORRELATION * np.exp(p[:, None] + p)


STRUCTURES = {
    "free": (Free(), _from_cholesky, np.eye(D)[np.tril_indices(D)]),
    "diagonal": (Diagonal(), _from_logs, np.zeros(D)),
    "known correlation": (KnownCorrelation(CORRELATION), _from_scales, np.zeros(D)),
}


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("known_mean", [False, True])
def test_structures_maximise_the_expected_log_likelihood(name, known_mean):
    structure, covariance_of, start = STRUCTURES[name]
    moments = _moments()
    given = np.array([0.3, -0.2, 0.5]) if known_mean else None
    mean, covariance = MStep(structure, given).solve(moments, 40)

    def loss(p):
        free = given if known_mean else p[start.size :]
        return _loss(moments, free, covariance_of(p[: start.size]))

    first = start if known_mean else np.concatenate([start, np.zeros(D)])
    ref = _minimise(loss, first)
    # The loss is flat to rounding (1e-16) within its root, 1e-8, of the top; Nelder-Mead stops at 1e-7.
    np.testing.assert_allclose(covariance, covariance_of(ref[: start.size]), rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(mean, given if known_mean else ref[start.size :], atol=2e-5)
    assert _loss(moments, mean, covariance) <= loss(ref) + 1e-12


def test_a_known_covariance_does_not_move():
    known = CORRELATION * 2.0
    step = MStep(Known(known))
    mean, covariance = step.solve(_moments(), 40)
    assert covariance is known
    np.testing.assert_array_equal(mean, _moments().first)
    assert step.count(D) == D


def test_scales_of_a_known_correlation_far_apart():
    # Columns of very different spreads, and correlations near 1: the derivative of the loss vanishes.
    R = np.full((4, 4), 0.98)
    np.fill_diagonal(R, 1.0)
    rng = np.random.default_rng(3)
    Y = rng.normal(size=(50, 4)) * np.array([1e-4, 1.0, 30.0, 1e5])
    S = Y.T @ Y / 50
    found = KnownCorrelation(R).solve(S, 50)
    np.testing.assert_allclose(correlation_of(found), R, atol=1e-12)
    w = 1.0 / np.sqrt(np.diag(found))
    # w ∘ (R⁻¹∘S) w = 1
    np.testing.assert_allclose(w * ((np.linalg.inv(R) * S) @ w), 1.0, atol=1e-7)


@pytest.mark.parametrize("name", STRUCTURES)
def test_a_basis_holds_the_derivatives(name):
    structure, covariance_of, start = STRUCTURES[name]
    rng = np.random.default_rng(1)
    p = start + 0.2 * rng.normal(size=start.size)
    covariance = covariance_of(p)
    basis = structure.basis(covariance)
    lower = np.tril_indices(D)
    steps = np.array(
        [
            (covariance_of(p + h) - covariance_of(p - h))[lower] / 2e-6
            for h in 1e-6 * np.eye(start.size)
        ]
    ).T
    # Both span the directions in which the structure moves.
    assert basis.shape == steps.shape
    coefficients, *_ = np.linalg.lstsq(basis, steps, rcond=None)
    np.testing.assert_allclose(basis @ coefficients, steps, atol=1e-8)
    assert np.linalg.matrix_rank(basis) == start.size
    if name == "known correlation":
        # In log scales, exactly.
        np.testing.assert_allclose(basis, steps, atol=1e-8)


def test_a_basis_of_all_parameters():
    step = MStep(Diagonal())
    basis = step.basis(np.eye(2))
    ref = np.zeros((5, 4))
    # μ₀, μ₁, Σ₀₀, Σ₁₁ move (0, 1, 2, 4); Σ₁₀ does not.
    ref[[0, 1, 2, 4], [0, 1, 2, 3]] = 1.0
    np.testing.assert_array_equal(basis, ref)
    assert step.count(2) == 4
    assert MStep(Diagonal(), np.zeros(2)).count(2) == 2
    assert MStep(Free()).count(4) == 14
    assert MStep(Known(np.eye(2)), np.zeros(2)).count(2) == 0


# Regularised structures -----------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "d"), [(6, 12), (3, 40), (200, 5)])
def test_shrinkage_keeps_variances_and_is_positive_definite(rows, d):
    rng = np.random.default_rng(4)
    S = np.cov(rng.normal(size=(rows, d)).T * np.geomspace(0.01, 100.0, d)[:, None], bias=True)
    found = Shrinkage().solve(S, rows)
    np.testing.assert_allclose(np.diag(found), np.diag(S), rtol=1e-12)
    share = Shrinkage().share_for(S, rows)
    assert 0.0 < share <= 1.0
    assert np.linalg.eigvalsh(correlation_of(found))[0] > 0.9 * share
    off = ~np.eye(d, dtype=bool)
    np.testing.assert_allclose(found[off], (1.0 - share) * S[off], rtol=1e-10, atol=1e-300)


def test_the_share_is_the_oracle_approximating_one():
    # scikit-learn's oas, given standardised rows, uses the same formula.
    from sklearn.covariance import oas

    rng = np.random.default_rng(5)
    Y = rng.normal(size=(25, 8)) @ rng.normal(size=(8, 8))
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    _, ref = oas(Y, assume_centered=True)
    # It leaves out the terms 2/p of the paper's Eq. (23), which stand here.
    d, n, square = 8, 25, float((correlation_of(Y.T @ Y) ** 2).sum())
    full = ((1 - 2 / d) * square + d**2) / ((n + 1 - 2 / d) * (square - d))
    found = Shrinkage().share_for(7.0 * (Y.T @ Y), 25)
    assert found == pytest.approx(full, rel=1e-12)
    assert found == pytest.approx(ref, rel=0.1)
    assert Shrinkage(0.3).share_for(Y.T @ Y, 25) == 0.3
    # Nothing to shrink: the identity is the target itself.
    assert Shrinkage().share_for(np.eye(4), 100) == 1.0


def test_a_share_of_nothing_and_of_all():
    S = _moments().about(np.zeros(D))
    np.testing.assert_allclose(Shrinkage(0.0).solve(S, 40), S, rtol=1e-12)
    np.testing.assert_allclose(Shrinkage(1.0).solve(S, 40), np.diag(np.diag(S)), rtol=1e-12)


def _chain_graph(d=6, n=400, seed=6):
    """Second moments of a Markov chain: its precision matrix has one diagonal beside the main one."""
    rng = np.random.default_rng(seed)
    S = 0.6 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    Y = rng.multivariate_normal(np.zeros(d), S, n)
    return Y.T @ Y / n


def test_the_graphical_lasso_solves_its_optimality_conditions():
    S, penalty = _chain_graph(), 0.15
    covariance, precision = graphical_lasso(S, penalty)
    np.testing.assert_allclose(covariance @ precision, np.eye(6), atol=1e-6)
    scale = np.sqrt(np.diag(S))
    R, W = correlation_of(S), covariance / np.outer(scale, scale)
    T = precision * np.outer(scale, scale)
    off = ~np.eye(6, dtype=bool)
    zero = off & (precision == 0.0)
    assert zero.sum() > 10
    assert (off & ~zero).sum() >= 10
    np.testing.assert_allclose(precision, precision.T, rtol=1e-9)
    # W − R = penalty · sign(T) off the diagonal where T is not zero, and no more elsewhere. The solver
    # stops at a duality gap of 1e-4; the objective is strongly convex, so that entries are off by less
    # than the root of it, 1e-2, and here by half of that.
    gap = W - R
    np.testing.assert_allclose(np.diag(gap), 0.0, atol=2e-3)
    move = off & ~zero
    np.testing.assert_allclose(gap[move], penalty * np.sign(T[move]), atol=5e-3)
    assert np.abs(gap[zero]).max() < penalty + 5e-3


def test_the_graphical_lasso_moves_with_the_units():
    S = _chain_graph()
    units = np.array([1e-3, 1.0, 7.0, 1e4, 0.5, 30.0])
    one, other = Sparse(0.1).solve(S, 400), Sparse(0.1).solve(S * np.outer(units, units), 400)
    np.testing.assert_allclose(other / np.outer(units, units), one, rtol=1e-6, atol=1e-9)
    zeros = [graphical_lasso(M, 0.1)[1] == 0.0 for M in (S, S * np.outer(units, units))]
    np.testing.assert_array_equal(*zeros)


def test_a_large_penalty_leaves_independent_columns():
    S = _chain_graph()
    covariance, precision = graphical_lasso(S, 1.0)
    off = ~np.eye(6, dtype=bool)
    assert (precision[off] == 0.0).all()
    np.testing.assert_allclose(covariance, np.diag(np.diag(S)), rtol=1e-9, atol=1e-12)


def test_the_graphical_lasso_of_fewer_rows_than_columns():
    rng = np.random.default_rng(8)
    Y = rng.normal(size=(10, 25))
    covariance, precision = graphical_lasso(Y.T @ Y / 10, 0.3)
    assert np.linalg.eigvalsh(covariance)[0] > 0.0
    assert np.isfinite(precision).all()


# Odds and ends --------------------------------------------------------------------------------------


def test_a_floor_leaves_good_matrices_alone_and_lifts_singular_ones():
    good = np.diag([1e-6, 4.0, 1e8]) + 0.0
    np.testing.assert_array_equal(with_floor(good), good)
    scale = np.array([1e-3, 1.0, 1e4])
    v = np.array([1.0, 2.0, -1.0]) * scale
    lifted = with_floor(np.outer(v, v))
    values = np.linalg.eigvalsh(correlation_of(lifted))
    assert values[0] == pytest.approx(SMALLEST_EIGENVALUE, rel=1e-3)
    np.testing.assert_allclose(np.diag(lifted), v**2, rtol=3.0 * SMALLEST_EIGENVALUE)
    assert (lifted == lifted.T).all()
    np.linalg.cholesky(with_floor(np.array([[1.0, 1.2], [1.2, 1.0]])))


def test_starts_are_admitted():
    S = _moments().about(np.zeros(D))
    mean = np.array([1.0, 2.0, 3.0])
    for structure in (Free(), Shrinkage(), Sparse(1.0)):
        np.testing.assert_allclose(MStep(structure).admit(mean, S)[1], S)
    np.testing.assert_allclose(MStep(Diagonal()).admit(mean, S)[1], np.diag(np.diag(S)))
    known = MStep(Known(CORRELATION), np.zeros(D)).admit(mean, S)
    np.testing.assert_array_equal(known[0], np.zeros(D))
    np.testing.assert_array_equal(known[1], CORRELATION)
    scaled = MStep(KnownCorrelation(CORRELATION)).admit(mean, S)[1]
    np.testing.assert_allclose(correlation_of(scaled), CORRELATION, atol=1e-12)


@pytest.mark.parametrize(
    "structure",
    [Free(), Diagonal(), Known(np.eye(4)), KnownCorrelation(np.eye(4)), Shrinkage(), Sparse(0.1)],
    ids=lambda structure: structure.name,
)
@pytest.mark.parametrize("mean", [None, np.zeros(4)])
def test_count_is_the_width_of_the_basis(structure, mean):
    # It is counted without the basis, which has as many numbers as the fourth power of the columns.
    step = MStep(structure, mean)
    assert step.count(4) == step.basis(np.eye(4)).shape[1]


def test_a_fit_keeps_a_known_correlation():
    # Hidden on both sides, so that there are several starts.
    R = np.array([[1.0, 0.6], [0.6, 1.0]])
    rule = hs.DetectionLimits(lower=-0.8, upper=0.9)
    X = hs.simulate(hs.Gaussian([0.1, 0.0], R * np.outer([1.0, 1.5], [1.0, 1.5])), rule, 400, 0)
    fit = hs.fit(X, rule, correlation=R, random_state=0)
    assert len(fit.history["likelihoods_of_starts"]) > 1
    np.testing.assert_allclose(fit.correlation, R, atol=1e-9)


def test_singular_is_a_correlation_matrix_at_the_floor():
    v = np.array([1.0, 2.0, -1.0])
    assert singular(with_floor(np.outer(v, v)))
    assert not singular(np.diag([1e-8, 1.0, 1e8]))
    assert not singular(np.array([[1.0, 0.9999], [0.9999, 1.0]]))


def test_moments_about_a_point():
    Y = np.random.default_rng(5).normal(1.0, 2.0, (30, D))
    point = np.array([1.0, -2.0, 0.5])
    moments = Moments(Y.mean(axis=0), Y.T @ Y / 30)
    np.testing.assert_allclose(moments.about(point), (Y - point).T @ (Y - point) / 30, atol=1e-12)
