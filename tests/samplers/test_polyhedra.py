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


@pytest.mark.parametrize("mean", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("width", [0.05, 3e-8])
def test_feasible_points_of_thin_regions_are_near_the_mean(mean, width, monkeypatch):
    # Strips thinner than the margin of the relaxation, and than the least margin of the projection, so
    # that the linear programme is asked.
    asked = []
    original = Region.chebyshev_ball
    monkeypatch.setattr(Region, "chebyshev_ball", lambda self: asked.append(1) or original(self))
    A = np.array([[1.0, -1.0], [-1.0, 1.0]]) / np.sqrt(2)
    thin = Region(np.full(2, mean), A, np.array([width, 0.0]))
    point = thin.feasible_point()
    assert bool(asked) == (width < 1e-6)
    assert thin.contains(point)
    assert np.linalg.norm(point - mean) < 0.06
    wide = Region(np.zeros(2), A, np.array([2.0, 0.0]))
    asked.clear()
    assert wide.contains(wide.feasible_point())
    assert not asked


def test_feasible_points_in_a_wedge_are_near_the_mean_and_not_where_it_is_wide():
    # A row of a table. A large ball fits into this wedge only hundreds of standard deviations out.
    A = np.array(
        [
            [0.90013051, -0.23489869, 0.36686193],
            [-0.89096288, 0.40695183, -0.20143325],
            [-0.03262319, -0.73303389, 0.67940934],
            [-0.88246005, 0.1110703, -0.45708603],
        ]
    )
    c = np.array([0.55925427, 0.13415567, 0.70436491, -0.63812524])
    wedge = Region(np.array([0.42, -0.45, -0.22]), A, c)
    point = wedge.feasible_point()
    assert (A @ point < c).all()
    # Its nearest point is 1.08 away; one more standard deviation is allowed.
    assert np.linalg.norm(point - wedge.mean) < 2.08


@pytest.mark.parametrize("width", [0.07, 0.35])
def test_gibbs_runs_the_length_of_a_strip(width):
    A = np.array([[1.0, -1.0], [-1.0, 1.0]]) / np.sqrt(2)
    strip = Region(np.zeros(2), A, np.array([width, 0.0]))
    draws = _draws(Gibbs(), strip, 3000)
    # Across the strip a truncated normal, along it a standard one.
    across, along = draws @ [1, -1] / np.sqrt(2), draws @ [1, 1] / np.sqrt(2)
    law = stats.truncnorm(0.0, width)
    assert stats.kstest(across, law.cdf).pvalue > 1e-3
    assert stats.kstest(along, "norm").pvalue > 1e-3


@pytest.mark.parametrize(
    "make",
    [
        lambda: ProjectedLangevin(step_size=-1),
        lambda: ProjectedLangevin(step_size=np.nan),
        lambda: ProjectedLangevin(steps=0),
        lambda: ProjectedLangevin(radius=-1.0),
        lambda: Gibbs(0),
        lambda: Gibbs(2.5),
    ],
)
def test_bad_settings_get_a_sentence(make):
    with pytest.raises(hs.InputError, match="must be"):
        make()


def test_an_empty_region_has_no_point():
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
