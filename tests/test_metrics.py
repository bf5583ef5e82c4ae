import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.linalg import sqrtm

import halfseen as hs
from halfseen import metrics


def _pair(rng, d):
    def one():
        A = rng.normal(size=(d, d))
        return hs.Gaussian(rng.normal(size=d), A @ A.T + np.eye(d))

    return one(), one()


def test_norms_match_their_formulas(rng):
    p, q = _pair(rng, 4)
    root = np.linalg.inv(sqrtm(q.covariance))
    assert metrics.mahalanobis_error(p.mean, q) == pytest.approx(
        np.linalg.norm(root @ (p.mean - q.mean)), rel=1e-10
    )
    assert metrics.relative_frobenius_error(p.covariance, q) == pytest.approx(
        np.linalg.norm(np.eye(4) - root @ p.covariance @ root), rel=1e-10
    )


def test_kl_matches_its_definition(rng):
    p, q = _pair(rng, 2)
    Y = p.sample(400_000, 0)
    gaps = p.logpdf(Y) - q.logpdf(Y)
    error = gaps.std() / math.sqrt(len(Y))
    assert metrics.kl_divergence(p, q) == pytest.approx(gaps.mean(), abs=5 * error)
    assert metrics.kl_divergence(p, p) == 0.0


@given(st.floats(-3, 3), st.floats(0.05, 20))
def test_total_variation_on_the_line_matches_quadrature(shift, scale):
    p, q = hs.Gaussian([0.0], [[1.0]]), hs.Gaussian([shift], [[scale**2]])

    grid = np.linspace(-12 * max(1, scale) - 3, 12 * max(1, scale) + 3, 200_001)
    values = np.abs(stats.norm.pdf(grid) - stats.norm.pdf(grid, shift, scale))
    ref = 0.5 * integrate.trapezoid(values, grid)
    comp = metrics.total_variation(p, q)
    assert comp.exact
    assert comp.value == pytest.approx(ref, abs=2e-4)
    assert comp.lower - 1e-12 <= comp.value <= comp.upper + 1e-12


def test_the_papers_pair_has_the_papers_distance():
    # P_λ and Q_λ: erf(ε / (2√2 √λ))
    eps, lam = 0.3, 0.04
    p = hs.Gaussian([0, 0], np.diag([lam, 1]))
    q = hs.Gaussian([eps, 0], np.diag([lam, 1]))
    ref = math.erf(eps / (2 * math.sqrt(2) * math.sqrt(lam)))
    assert metrics.total_variation(p, q).value == pytest.approx(ref, rel=1e-12)


@pytest.mark.parametrize("d", [2, 5])
def test_total_variation_in_the_plane_and_beyond(rng, d):
    p, q = _pair(rng, d)
    comp = metrics.total_variation(p, q)
    assert not comp.exact
    assert comp.lower <= comp.value <= comp.upper
    assert 0 < comp.standard_error < 0.005
    # TV = P(log p > log q) − Q(log p > log q), from other draws
    A, B = p.sample(200_000, 5), q.sample(200_000, 6)
    ref = (p.logpdf(A) > q.logpdf(A)).mean() - (p.logpdf(B) > q.logpdf(B)).mean()
    assert comp.value == pytest.approx(ref, abs=5 * (comp.standard_error + math.sqrt(0.5 / 2e5)))
    assert float(comp) == comp.value
    assert metrics.total_variation(p, q) == comp


def test_units_do_not_matter():
    p, q = hs.Gaussian([0, 0], np.diag([1e14, 1.0])), hs.Gaussian([0, 0], np.diag([1e14, 9.0]))
    ref = metrics.total_variation(hs.Gaussian([0], [[1.0]]), hs.Gaussian([0], [[9.0]])).value
    comp = metrics.total_variation(p, q)
    assert comp.value == pytest.approx(ref, abs=5 * comp.standard_error)
    assert not comp.exact


@pytest.mark.parametrize("gap", [1e-8, 1e-5, 1e-2])
def test_bounds_hold_for_neighbours(gap):
    p = hs.Gaussian([0.0], [[1.0]])
    for q in (hs.Gaussian([0.0], [[1.0 + gap]]), hs.Gaussian([gap], [[1.0]])):
        comp = metrics.total_variation(p, q)
        assert comp.lower <= comp.value <= comp.upper * (1 + 1e-6)


def test_identical_and_far_apart():
    p = hs.Gaussian([0, 0], np.eye(2))
    assert metrics.total_variation(p, p).value == 0.0
    far = hs.Gaussian([99, 0], 2 * np.eye(2))
    assert metrics.total_variation(p, far).value == pytest.approx(1.0)
    assert metrics.hellinger_distance(p, far) == pytest.approx(1.0)
    tiny, huge = hs.Gaussian([0], [[1e-90]]), hs.Gaussian([0], [[1e90]])
    assert metrics.total_variation(tiny, huge).value == 1.0


def test_bad_input_gets_a_sentence():
    p, q = hs.Gaussian([0], [[1]]), hs.Gaussian([0, 0], np.eye(2))
    for distance in (metrics.total_variation, metrics.kl_divergence, metrics.hellinger_distance):
        with pytest.raises(hs.InputError, match="got 1 and 2"):
            distance(p, q)
    with pytest.raises(hs.InputError, match="shape"):
        metrics.relative_frobenius_error(np.eye(2), p)
    with pytest.raises(hs.InputError, match="mean must have shape"):
        metrics.mahalanobis_error([[0.0], [1.0]], p)
    with pytest.raises(hs.InputError, match="must be finite"):
        metrics.relative_frobenius_error([[np.nan]], p)
    with pytest.raises(hs.InputError, match="draws must be at least 2"):
        metrics.total_variation(q, hs.Gaussian([0, 0], 2 * np.eye(2)), draws=1)
