"""Climbs: closed forms, expectation maximisation by plain loops, and steps that never lead down."""

import warnings

import numpy as np
import pytest

import halfseen as hs
from benchmarks.hard_tables import half_hidden, visits
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information import information
from halfseen.solvers.full_information.ascent import (
    AIMED,
    SETTLED,
    Ascent,
    complete_errors,
    with_columns,
)
from halfseen.solvers.full_information.expectation import Moments, Sampling
from halfseen.solvers.full_information.m_step import (
    SINGULAR,
    Free,
    MStep,
    Shrinkage,
)
from halfseen.solvers.full_information.starts import available_start
from halfseen.solvers.loop import iterate
from halfseen.theta import pack
from tests import naive
from tests.solvers.full_information.held import held, table

FOUR = hs.Gaussian(
    [0.2, -0.1, 0.4, 0.0],
    [[1.0, 0.5, -0.3, 0.2], [0.5, 1.5, 0.4, 0.1], [-0.3, 0.4, 0.8, 0.3], [0.2, 0.1, 0.3, 0.6]],
)
LIMITS = hs.DetectionLimits(lower=[0.3, 0.4, 0.6, 0.2])


# Columns that are never hidden ----------------------------------------------------------------------


@pytest.mark.parametrize("lower", [[np.nan, np.nan, 0.5, np.nan], [np.nan, 0.0, 0.3, 0.1]])
def test_columns_that_are_never_hidden_have_their_own_moments(lower):
    rule = hs.DetectionLimits(lower=lower)
    X = hs.simulate(FOUR, rule, 400, 0)
    fit = hs.fit(X, rule, "full", random_state=0)
    whole = np.flatnonzero(np.isnan(lower))
    Y = X[:, whole]
    np.testing.assert_allclose(fit.mean[whole], Y.mean(axis=0), rtol=0, atol=1e-10)
    S = np.cov(Y.T, bias=True).reshape(whole.size, -1)
    np.testing.assert_allclose(fit.covariance[np.ix_(whole, whole)], S, rtol=0, atol=1e-10)
    # Their standard errors are those of complete rows: √(σ_ii/n) and √((σ_ii σ_jj + σ_ij²)/n).
    errors = fit.standard_errors
    v = np.diag(S)
    np.testing.assert_allclose(errors.mean[whole], np.sqrt(v / 400), rtol=1e-8)
    ref = np.sqrt((np.outer(v, v) + S**2) / 400)
    np.testing.assert_allclose(errors.covariance[np.ix_(whole, whole)], ref, rtol=1e-8)


def test_columns_are_given_their_moments_and_others_their_regression():
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    moments = Moments(Y.mean(axis=0), Y.T @ Y / 50)
    columns, rest = np.array([0, 2]), np.array([1, 3])
    mean, S = with_columns(FOUR.mean, FOUR.covariance, columns, moments)
    np.testing.assert_allclose(mean[columns], Y.mean(axis=0)[columns], atol=1e-14)
    own = np.cov(Y.T, bias=True)[np.ix_(columns, columns)]
    np.testing.assert_allclose(S[np.ix_(columns, columns)], own, atol=1e-12)
    np.testing.assert_array_equal(S, S.T)

    def regression(mean, S):
        slopes = np.linalg.solve(S[np.ix_(columns, columns)], S[np.ix_(columns, rest)]).T
        left = S[np.ix_(rest, rest)] - slopes @ S[np.ix_(columns, rest)]
        return mean[rest] - slopes @ mean[columns], slopes, left

    for comp, ref in zip(regression(mean, S), regression(FOUR.mean, FOUR.covariance), strict=True):
        np.testing.assert_allclose(comp, ref, atol=1e-12)


# Missing at random ----------------------------------------------------------------------------------


def _monotone(rng, n):
    # Columns end one after the other.
    last = rng.integers(1, 4, n)
    return np.arange(3) >= last[:, None]


def _scattered(rng, n):
    mask = rng.random((n, 3)) < 0.3
    mask[mask.all(axis=1)] = False
    return mask


def _cycle(rng, n):
    # Three pairs of columns, each seen together in a third of the rows, never all three.
    return np.arange(3) == rng.integers(3, size=n)[:, None]


def _rare_pair(rng, n):
    # Columns 0 and 2 are seen together in four rows alone.
    mask = np.zeros((n, 3), dtype=bool)
    mask[4 : n // 2, 0] = mask[n // 2 :, 2] = True
    return mask


@pytest.mark.parametrize("pattern", [_monotone, _scattered, _cycle, _rare_pair])
def test_tables_missing_at_random_are_those_of_plain_loops(pattern):
    n = 120
    X = hs.Gaussian(FOUR.mean[:3], FOUR.covariance[:3, :3]).sample(n, 3)
    X[pattern(np.random.default_rng(4), n)] = np.nan
    fit = _fit_at_random(X)
    mean, S = naive.plain_em(X, 1e-11)
    ref = np.sqrt(np.diag(np.linalg.inv(naive.observed_information_at_random(X, mean, S))))
    # The climb ends where its estimate of what is left to be gained is below 1e-4: √2e-4 = 0.014
    # standard errors. Newton steps square what is left, so that most end much nearer.
    gap = np.abs(pack(fit.mean, fit.covariance) - pack(mean, S)) / ref
    assert gap.max() < 0.014
    here, top = (
        naive.log_likelihood_at_random(X, *at) for at in ((fit.mean, fit.covariance), (mean, S))
    )
    assert top - here < 1e-4
    assert fit.log_likelihood.value == pytest.approx(here, rel=1e-10)
    assert fit.log_likelihood.standard_error == 0.0
    # Standard errors at the fit's own place.
    own = naive.observed_information_at_random(X, fit.mean, fit.covariance)
    own = np.sqrt(np.diag(np.linalg.inv(own)))
    np.testing.assert_allclose(fit.standard_errors.vector(), own, rtol=1e-4)
    assert not np.any(pack(*fit.monte_carlo_errors))


def _fit_at_random(X):
    with pytest.warns(hs.HalfseenWarning, match="missing at random"):
        return hs.fit(X, None, "full", random_state=0)


# Steps ----------------------------------------------------------------------------------------------


def _climb(rule, n=300, seed=0, accuracy=0.1, structure=None, truth=FOUR, **options):
    rows = held(*table(truth, rule, n))
    m_step = MStep(structure or Free())
    with single_blas_thread():
        start = m_step.admit(*available_start(rows))
        solver = Ascent(rows, m_step, *start, accuracy, 200, True, seed, **options)
        state, history = iterate(solver, False, None)
    return rows, solver, state, history


RULES = {
    "limits": LIMITS,
    "two of them": hs.DetectionLimits(lower=[0.3, 0.4, np.nan, np.nan]),
    "two sides": hs.DetectionLimits(lower=-0.6, upper=0.9),
    "thresholds": hs.LinearThreshold.anchored(
        [0, 1], [[1.0, 0.5, 0.5, 0.0], [-0.5, 1.0, 0.0, 0.5]], [0.4, 0.6]
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_log_likelihoods_never_fall_along_a_climb(rule):
    _, solver, state, history = _climb(RULES[rule])
    assert solver.done(state)
    for phase in ("climbing", "polishing"):
        values = np.array([info["value"] for info in history if info["phase"] == phase])
        if phase == "polishing":
            # The step that ended the climb, with fewer points.
            values = values[1:]
        # Steps are compared to 1e-5 of a unit; those that are taken back leave the value as it was.
        assert (np.diff(values) >= -2e-5).all()
    assert state.gain <= 0.25
    assert state.ratio <= 0.1


@pytest.mark.parametrize("rule", ["limits", "thresholds"])
def test_the_top_has_no_slope(rule):
    rows, solver, state, _ = _climb(RULES[rule], accuracy=0.05)
    # By other points, and many: ½ g' I⁻¹ g is the gain that is left. A score from 2048 points errs by
    # hundredths of a standard error for each of 14 parameters.
    moments, _ = rows.expect(state.mean, state.covariance, Sampling(2048, 99))
    score = solver.chart(state).score(moments, state.mean, state.covariance)
    assert state.information is not None
    assert 0.5 * score @ state.information.inverse() @ score < 0.05


def test_seeds_agree_to_their_monte_carlo_errors():
    found = [_climb(LIMITS, seed=seed) for seed in (1, 2)]
    (_, one, here, _), (_, two, there, _) = found
    noise = np.hypot(one.errors(here), two.errors(there))
    gap = np.abs(pack(here.mean, here.covariance) - pack(there.mean, there.covariance))
    assert gap.max() > 0.0
    # 14 parameters, whose noise is estimated from a few shifts: five of their standard errors, and what
    # the last steps leave, a hundredth of a statistical one.
    assert (gap < 5.0 * noise + 0.01 * one.standard_errors(here)).all()
    assert (noise > 0.0).all()


def test_rows_that_are_integrated_do_not_ask_the_seed():
    rule = hs.DetectionLimits(lower=[0.3, 0.4, np.nan, np.nan])
    found = [_climb(rule, seed=seed) for seed in (1, 2)]
    assert found[0][0].overview.sampled == 0
    np.testing.assert_array_equal(found[0][2].mean, found[1][2].mean)
    np.testing.assert_array_equal(found[0][2].covariance, found[1][2].covariance)
    assert not found[0][1].errors(found[0][2]).any()


def test_threads_change_no_bit_of_a_climb(monkeypatch):
    monkeypatch.setattr("halfseen.data.table.CACHE_CELLS", 2**9)
    X, holes = table(FOUR, LIMITS, 600)
    found = []
    for jobs in (1, 2):
        rows = held(X, holes, jobs)
        with single_blas_thread():
            solver = Ascent(rows, MStep(Free()), *available_start(rows), 0.3, 60, True, 0)
            found.append(iterate(solver, False, None)[0])
    np.testing.assert_array_equal(found[0].mean, found[1].mean)
    np.testing.assert_array_equal(found[0].covariance, found[1].covariance)


def test_a_climb_alone_ends_before_the_polish():
    _, solver, state, history = _climb(LIMITS, climb_only=True)
    assert solver.done(state)
    assert state.information is None
    assert {info["phase"] for info in history} <= {"climbing", "ended"}


def test_a_start_far_away_ends_at_the_same_top():
    rule = hs.DetectionLimits(lower=[0.3, 0.4, np.nan, np.nan])
    rows, _, state, _ = _climb(rule)
    with single_blas_thread():
        far = Ascent(rows, MStep(Free()), np.full(4, 6.0), 30.0 * np.eye(4), 0.1, 300, True, 0)
        other, _ = iterate(far, False, None)
    assert far.done(other)
    assert other.value == pytest.approx(state.value, abs=1e-3)
    errors = far.standard_errors(other)
    gap = pack(other.mean, other.covariance) - pack(state.mean, state.covariance)
    assert (np.abs(gap) < 0.03 * errors).all()


def test_settling_ends_where_expectation_maximisation_stands_still():
    rule = hs.DetectionLimits(lower=[0.3, 0.4, np.nan, np.nan])
    rows, solver, state, history = _climb(rule, 60, structure=Shrinkage())
    assert solver.done(state)
    assert {info["phase"] for info in history} <= {"settling", "ended"}
    moments, _ = rows.expect(state.mean, state.covariance, Sampling(16, 0))
    again = solver.m_step.solve(moments, 60)
    gap = np.abs(pack(*again) - pack(state.mean, state.covariance))
    # A next step would gain less than SETTLED, as one of complete rows: √(2·SETTLED) standard errors.
    assert (gap < np.sqrt(2.0 * SETTLED) * complete_errors(state.covariance, 60)).all()


def test_errors_of_complete_rows():
    S = FOUR.covariance
    ref = np.concatenate(
        [np.diag(S), [S[i, i] * S[j, j] + S[i, j] ** 2 for i in range(4) for j in range(i + 1)]]
    )
    np.testing.assert_allclose(complete_errors(S, 50), np.sqrt(ref / 50), rtol=1e-12)


# Wide tables ----------------------------------------------------------------------------------------


def test_many_parameters_at_strong_correlations_end_at_one_top(monkeypatch):
    # Of 152 parameters most is lost in some directions. With more of them there is no information to
    # step by, and the curvature of complete rows promises too little: it ends half a unit lower.
    seen = half_hidden(400, 0, 16, 0.97)
    data = hs.IntervalData(seen.lower, seen.upper)
    one = hs.fit(data, random_state=0)
    monkeypatch.setattr(information, "MOST_PARAMETERS", 0)
    other = hs.fit(data, random_state=0)
    assert one.status is other.status is hs.Status.CONVERGED
    assert max(fit.history["gain_left"] for fit in (one, other)) <= AIMED
    # Each is expected to be so much below the top. That is ½ χ² in as many directions as have noise, at
    # worst in one, and then above five times that in one of forty fits.
    apart = one.score_rows().sum() - other.score_rows().sum()
    assert abs(apart) < 5.0 * AIMED


# The edge of the domain -----------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(6))
def test_without_a_top_all_seeds_end_at_the_same_place_on_the_edge(number):
    # Eight visits of forty people, of which the last happened to ten: likelihoods grow without end.
    seen = visits(40, number)
    data = hs.IntervalData(seen.lower, seen.upper)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fits = [hs.fit(data, random_state=seed) for seed in range(2)]
    assert {fit.status for fit in fits} == {hs.Status.ON_DOMAIN_EDGE}
    np.testing.assert_array_equal(fits[0].mean, fits[1].mean)
    np.testing.assert_array_equal(fits[0].covariance, fits[1].covariance)
    assert np.linalg.eigvalsh(fits[0].correlation)[0] < SINGULAR


@pytest.mark.parametrize(("n", "number"), [(90, 24), (110, 3)])
def test_a_slow_way_to_the_edge_is_gone_to_its_end(n, number):
    # A score by itself promises less than its noise there. Averages promise more, but one step is not
    # enough: fits that ended with it were 12 and 13 units lower.
    seen = visits(n, number)
    with pytest.warns(hs.ConvergenceWarning):
        fit = hs.fit(hs.IntervalData(seen.lower, seen.upper), random_state=0)
    assert fit.status is hs.Status.ON_DOMAIN_EDGE


def test_a_direction_that_leads_out_of_all_covariances_is_not_taken():
    X, holes = table(FOUR, LIMITS, 200)
    solver = Ascent(held(X, holes), MStep(Free()), FOUR.mean, FOUR.covariance, 0.1, 50, False)
    state, _ = solver.step(solver.init())
    state.direction = np.full(state.score.size, -1e30)
    (mean, S), length = solver._target(state)
    assert length == 0.0
    ref_mean, ref = MStep(Free()).solve(state.moments, 200)
    np.testing.assert_array_equal(mean, ref_mean)
    np.testing.assert_array_equal(S, ref)
