from itertools import pairwise

import numpy as np
import pytest

import halfseen as hs

NAMES = ("lead", "zinc", "iron", "gold", "tin")
# A chain: each column depends on its neighbours alone.
PRECISION = np.eye(5) + np.diag([-0.4, 0.45, -0.45, 0.4], 1) + np.diag([-0.4, 0.45, -0.45, 0.4], -1)
CHAIN = hs.Gaussian(np.zeros(5), np.linalg.inv(PRECISION))
RULE = hs.DetectionLimits(lower=-0.8)


def _sparse(n=600, scale=1.0, **options):
    X = hs.simulate(CHAIN, RULE, n, 0) * scale
    rule = hs.DetectionLimits(lower=-0.8 * scale * np.ones(5))
    return hs.fit(
        X, rule, "full", covariance="sparse", names=NAMES, random_state=0, n_jobs=1, **options
    )


def test_a_chain_is_found():
    fit = _sparse()
    graph = fit.graph()
    # Partial correlations of 0.4 are ten standard errors, 1/√600, from zero. The lasso keeps some
    # edges that are not there, but weakly: three standard errors at most, less what it shrinks.
    expected = PRECISION != 0
    np.fill_diagonal(expected, False)
    strength = np.abs(graph.partial_correlation)
    assert strength[expected].min() > 0.25
    assert strength[~expected & ~np.eye(5, dtype=bool)].max() < 3 / np.sqrt(600)
    assert graph.names == NAMES
    strongest = {frozenset(edge[:2]) for edge in graph.edges[:4]}
    assert strongest == {frozenset(p) for p in pairwise(NAMES)}
    strengths = [abs(edge[2]) for edge in graph.edges]
    assert strengths == sorted(strengths, reverse=True)
    # The lasso pulls them towards zero, but not across it.
    sign = {frozenset(edge[:2]): np.sign(edge[2]) for edge in graph.edges}
    assert [sign[frozenset(p)] for p in pairwise(NAMES)] == [1, -1, 1, -1]
    assert f"5 columns, {len(graph.edges)} edges" in repr(graph)


def test_partial_correlations_are_those_of_the_precision():
    fit = _sparse(200)
    graph = fit.graph()
    T = fit.precision
    for i in range(5):
        for j in range(5):
            ref = 1.0 if i == j else -T[i, j] / np.sqrt(T[i, i] * T[j, j])
            assert graph.partial_correlation[i, j] == pytest.approx(ref, abs=1e-12)
            assert graph.adjacency[i, j] == (i != j and T[i, j] != 0)
    np.testing.assert_array_equal(T == 0, T.T == 0)
    # The covariance is the inverse; the lasso's own precision is 1e-4 on the scale of correlations.
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(T), rtol=0.02, atol=5e-3)


def test_units_do_not_change_the_graph():
    scale = np.array([1e4, 1.0, 1e-3, 10.0, 1e6])
    ref, comp = _sparse(200), _sparse(200, scale)
    np.testing.assert_array_equal(comp.graph().adjacency, ref.graph().adjacency)
    np.testing.assert_allclose(
        comp.graph().partial_correlation, ref.graph().partial_correlation, atol=1e-5
    )


def test_the_penalty_says_how_sparse():
    none, some, all_ = (_sparse(200, penalty=p) for p in (0.95, 0.1, 1e-3))
    assert none.graph().edges == []
    assert len(some.graph().edges) >= 4
    assert len(all_.graph().edges) == 10
    assert none.parameters < some.parameters < all_.parameters == 20
    assert some.history["penalty"] == 0.1


def test_one_column_has_no_edges():
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), RULE, 60, 0)
    fit = hs.fit(X, RULE, covariance="sparse", random_state=0)
    assert fit.graph().edges == []
    assert fit.covariance[0, 0] == pytest.approx(
        hs.fit(X, RULE, random_state=0).covariance[0, 0], rel=0.1
    )


def test_nothing_hidden_gives_the_graphical_lasso():
    from sklearn.covariance import graphical_lasso

    Y = CHAIN.sample(300, 0)
    fit = hs.fit(Y, covariance="sparse", penalty=0.1, random_state=0)
    R, s = np.corrcoef(Y.T), Y.std(axis=0)
    _, ref = graphical_lasso(R, 0.1, tol=1e-6, enet_tol=1e-10, max_iter=500)
    # Both solve the same convex problem; the looser one stops 1e-4 short of it.
    np.testing.assert_allclose(fit.precision * np.outer(s, s), ref, atol=5e-3)
    assert (fit.graph().adjacency == ((ref != 0) & ~np.eye(5, dtype=bool))).all()


def test_other_fits_have_no_graph():
    X = hs.simulate(CHAIN, RULE, 60, 0)
    with pytest.raises(hs.InputError, match='fit with covariance="sparse"'):
        hs.fit(X, RULE, random_state=0).graph()
