import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.samplers import Gibbs, ProjectedLangevin, Region, Rejection


def _draws(sampler, region, count, seed=0):
    start = region.feasible_point()
    rng = np.random.default_rng(seed)
    return np.array(
        [sampler.step(region, sampler.init(region, start, rng), rng)[0].point for _ in range(count)]
    )


WEDGE = Region(np.array([0.3, -0.2]), np.array([[-1.0, 0.0], [0.6, 0.8]]), np.array([0.1, 0.4]))


@pytest.mark.parametrize("sampler", [Gibbs(), ProjectedLangevin(step_size=0.002, steps=5000)])
def test_chains_agree_with_rejection(sampler):
    ref, comp = _draws(Rejection(), WEDGE, 4000, 1), _draws(sampler, WEDGE, 2000, 2)
    assert (comp @ WEDGE.A.T <= WEDGE.c + 1e-9).all()
    noise = np.sqrt(ref.var(axis=0) / len(ref) + comp.var(axis=0) / len(comp))
    # Four standard errors, and O(√η) = 0.02 for Langevin's bias at the boundary.
    bias = 0.0 if isinstance(sampler, Gibbs) else 0.5 * np.sqrt(0.002)
    assert (np.abs(ref.mean(axis=0) - comp.mean(axis=0)) < 4 * noise + bias).all()
    assert (np.abs(ref.std(axis=0) / comp.std(axis=0) - 1) < 0.1).all()


def test_gibbs_on_a_half_line_is_exact():
    region = Region(np.array([-0.5]), np.array([[-1.0]]), np.array([0.0]))
    draws = _draws(Gibbs(1), region, 4000)[:, 0]
    law = stats.truncnorm(0.5, np.inf, loc=-0.5)
    assert stats.kstest(draws, law.cdf).pvalue > 1e-3


def test_the_drift_of_the_listing_is_wrong_and_the_bias_shrinks_with_the_step():
    # DESIGN's example: N(−0.5, 1) on z > 0 has mean 0.641; the listing's drift gives about 0.40.
    region = Region(np.array([-0.5]), np.array([[-1.0]]), np.array([0.0]))
    exact = stats.truncnorm.mean(0.5, np.inf, loc=-0.5)
    means = {}
    for name, sampler in (
        ("right", ProjectedLangevin(step_size=0.01, steps=1000)),
        ("fine", ProjectedLangevin(step_size=0.001, steps=10_000)),
        ("printed", ProjectedLangevin(step_size=0.01, steps=1000, drift=1.0)),
    ):
        draws = _draws(sampler, region, 4000)
        means[name] = draws.mean()
    # 4 000 draws with a spread of 0.48: a standard error of 0.008.
    assert abs(means["fine"] - exact) < 4 * 0.008 + 0.011
    assert abs(means["right"] - exact) < 4 * 0.008 + 0.042
    assert means["printed"] < exact - 0.15


def test_feasible_points_come_from_relaxation_or_the_linear_programme(monkeypatch):
    # A thin wedge far away: relaxation with few sweeps fails, the programme does not.
    A = np.array([[1.0, 0.001], [-1.0, 0.001], [0.0, -1.0]])
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    inside = np.array([20.0, 30.0])
    thin = Region(np.zeros(2), A, A @ inside + 1e-4)
    point = thin.feasible_point()
    assert thin.contains(point)
    assert thin.contains(thin.chebyshev_centre())
    empty = Region(np.zeros(1), np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]))
    assert empty.feasible_point() is None


def test_rejection_gives_up_with_a_sentence():
    far = Region(np.array([-30.0]), np.array([[-1.0]]), np.array([0.0]))
    rng = np.random.default_rng(0)
    with pytest.raises(hs.RarelyHitError, match="too rare"):
        Rejection().step(far, Rejection().init(far, np.ones(1), rng), rng)


def test_acceptance_falls_exponentially_while_chains_do_not_mind():
    A, c = np.array([[-1.0]]), np.array([0.0])
    shares = []
    for distance in (0.0, 1.0, 2.0, 3.0):
        region = Region(np.array([-distance]), A, c)
        assert (_draws(Gibbs(), region, 50) >= 0).all()
        shares.append(stats.norm.sf(distance))
        rng = np.random.default_rng(0)
        found = [
            Rejection().step(region, Rejection().init(region, np.ones(1), rng), rng)[1].acceptance
            for _ in range(200)
        ]
        # The harmonic mean of shares that stop at the first hit estimates the mass.
        assert 1 / np.mean(1 / np.array(found)) == pytest.approx(shares[-1], rel=0.6)
