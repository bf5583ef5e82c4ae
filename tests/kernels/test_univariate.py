import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from halfseen.kernels import univariate
from tests import naive
from tests.kernels.calling import called

INTERVALS = [
    (-math.inf, math.inf),
    (0.0, 1.0),
    (-0.5, 2.0),
    (-1e-3, 2e-3),
    (3.0, 3.0 + 1e-9),
    (-3.0, math.inf),
    (-9.0, math.inf),
    (-math.inf, 5.0),
    (-4.0, 7.0),
    (5.0, 6.0),
    (37.0, 38.0),
    (40.0, math.inf),
    (40.0, 41.0),
    (40.0, 40.001),
    (-math.inf, -40.0),
    (-41.0, -40.0),
    (-12.0, -1.0),
]


@pytest.mark.parametrize(("a", "b"), INTERVALS)
def test_log_mass_and_moments_match_mpmath(a, b):
    ref_log, ref = naive.mp_truncated_moments(a, b)
    comp = np.empty(5)
    comp_log = called(univariate.moments)(0.0, 1.0, a, b, comp)
    for log_mass in (comp_log, called(univariate.log_mass)(a, b)):
        assert abs(log_mass - ref_log) <= 1e-10 * abs(ref_log) + mp.mpf("1e-30")
    for k in range(5):
        assert abs(comp[k] - ref[k]) <= 1e-10 * abs(ref[k]) + mp.mpf("1e-15"), k


def test_odd_moments_of_wide_intervals_keep_their_digits():
    _, ref = naive.mp_truncated_moments(-9.0, 10.0)
    comp = np.empty(5)
    called(univariate.moments)(0.0, 1.0, -9.0, 10.0, comp)
    assert comp[1] == pytest.approx(float(ref[1]), rel=1e-10)
    assert comp[3] == pytest.approx(float(ref[3]), rel=1e-10)


def test_moments_move_with_location_and_scale():
    z, x = np.empty(5), np.empty(5)
    ref = called(univariate.moments)(0.0, 1.0, -0.3, 1.7, z)
    comp = called(univariate.moments)(5.0, 2.0, 5.0 - 0.6, 5.0 + 3.4, x)
    assert comp == pytest.approx(ref, rel=1e-13)
    assert x[1] == pytest.approx(5 + 2 * z[1], rel=1e-13)
    assert x[4] == pytest.approx(
        625 + 4 * 125 * 2 * z[1] + 6 * 25 * 4 * z[2] + 4 * 5 * 8 * z[3] + 16 * z[4], rel=1e-13
    )


# Both sides of where closed forms begin (0.1 wide, 35 out), and both tails.
CLOSED = [
    *INTERVALS, (0.0, 0.101), (0.0, 0.099), (-0.051, 0.05), (2.0, 2.2), (-2.2, -2.0), (5.0, math.inf),
    (-math.inf, -5.0), (-math.inf, 0.7), (0.7, math.inf), (30.0, math.inf), (-30.2, -30.0),
    (34.9, 36.0), (35.1, math.inf), (-math.inf, -34.9), (-40.0, 3.0),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), CLOSED)
def test_closed_forms_on_intervals_match_mpmath(a, b):
    ref_log, ref = naive.mp_truncated_moments(a, b)
    comp = np.empty(5)
    comp_log = called(univariate.interval)(a, b, comp)
    # A mass near 1 is known to rounding, and so is its logarithm.
    assert abs(comp_log - ref_log) <= 1e-10 * abs(ref_log) + mp.mpf("1e-15")
    # What the recursion loses where the interval is narrow, 3/width² of the last digits.
    for k in range(5):
        assert abs(comp[k] - ref[k]) <= 1e-9 * abs(ref[k]) + mp.mpf("2e-15"), k


@pytest.mark.parametrize(
    ("a", "b"),
    [(-1.0, 0.4), (-0.4, 1.0), (0.5, 3.0), (-3.0, -0.5), (1.5, math.inf), (-math.inf, -1.5)],
)
def test_closed_forms_have_the_moments_of_scipy(a, b):
    ref, comp = stats.truncnorm(a, b), np.empty(5)
    assert called(univariate.interval)(a, b, comp) == pytest.approx(
        math.log(stats.norm.cdf(b) - stats.norm.cdf(a)), rel=1e-12
    )
    # SciPy finds higher moments by recursion too, to some 1e-9.
    np.testing.assert_allclose(comp, [1.0, *(ref.moment(k) for k in range(1, 5))], rtol=1e-8)
    mirrored = np.empty(5)
    called(univariate.interval)(-b, -a, mirrored)
    np.testing.assert_allclose(mirrored, comp * [1, -1, 1, -1, 1], rtol=1e-11)


def test_empty_intervals_have_no_mass():
    assert called(univariate.interval)(2.0, 1.0, np.empty(5)) == -math.inf
    assert called(univariate.log_mass)(1.0, 1.0) == -math.inf
    assert called(univariate.moments)(0.0, 1.0, 2.0, 1.0, np.empty(5)) == -math.inf


@pytest.mark.parametrize(("a", "b"), [i for i in INTERVALS if i[1] - i[0] > 1e-8])
@pytest.mark.parametrize("u", [1e-12, 0.1, 0.5, 0.9, 1 - 1e-12])
def test_draws_match_the_inverse_cdf_of_mpmath(a, b, u):
    if math.isinf(a) and math.isinf(b):
        with mp.workdps(40):
            ref = mp.sqrt(2) * mp.erfinv(2 * mp.mpf(u) - 1)
    else:
        ref = naive.mp_inverse_cdf(a, b, u)
    comp = called(univariate.draw)(a, b, u)
    assert a <= comp <= b
    assert abs(comp - ref) <= 1e-10 * max(abs(ref), 1)


def test_draws_at_the_ends_stay_inside():
    for a, b in [(0.0, 1.0), (40.0, math.inf), (-math.inf, -40.0), (-1.0, 2.0)]:
        for u in (0.0, 1e-300, 1.0 - 2**-53):
            z = called(univariate.draw)(a, b, u)
            assert a <= z <= b
            assert not math.isnan(z)


def test_the_array_form_agrees_with_the_scalar_one(rng):
    a = rng.normal(size=50)
    b = a + rng.exponential(size=50)
    ref = [called(univariate.log_mass)(*t) for t in zip(a, b, strict=True)]
    np.testing.assert_array_equal(univariate.log_masses(a, b), ref)
