"""Coordinates go there and back, scores are slopes, and remembered steps are the curvature."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.solvers.full_information.charts import Chart, Curvature, conjugate_pairs
from halfseen.solvers.full_information.expectation import Sampling
from halfseen.solvers.full_information.m_step import (
    Diagonal,
    Free,
    Known,
    KnownCorrelation,
    MStep,
)
from halfseen.theta import pack
from tests import naive
from tests.solvers.full_information.held import held, table

MEAN = np.array([0.2, -0.1, 0.4])
COVARIANCE = np.array([[1.0, 0.5, -0.3], [0.5, 1.5, 0.4], [-0.3, 0.4, 0.8]])
SCALE = np.sqrt(np.diag(COVARIANCE))
CORRELATION = COVARIANCE / np.outer(SCALE, SCALE)
TRUTH = hs.Gaussian(MEAN, COVARIANCE)
N = 150
STEPS = {
    "free": (MStep(Free()), COVARIANCE),
    "known mean": (MStep(Free(), MEAN), COVARIANCE),
    "diagonal": (MStep(Diagonal()), np.diag(SCALE**2)),
    "known covariance": (MStep(Known(COVARIANCE)), COVARIANCE),
    "known correlation": (MStep(KnownCorrelation(CORRELATION)), COVARIANCE),
    "variances alone": (MStep(Diagonal(), MEAN), np.diag(SCALE**2)),
}


def _chart(name):
    m_step, covariance = STEPS[name]
    return Chart(m_step, MEAN, covariance, N)


@pytest.mark.parametrize("name", STEPS)
def test_coordinates_go_there_and_back(name):
    chart = _chart(name)
    size = chart.m_step.count(3)
    step = 0.1 * np.random.default_rng(0).normal(size=size)
    mean, covariance = chart.moved(step)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-15)
    np.testing.assert_allclose(chart.coordinates(mean, covariance), step, atol=1e-12)
    at = chart.moved(np.zeros(size))
    np.testing.assert_allclose(pack(*at), pack(chart.mean, chart.covariance), atol=1e-15)
    # Coordinates are linear: `spread` takes steps to those of (μ, Σ_ij for i >= j).
    change = pack(mean, covariance) - pack(chart.mean, chart.covariance)
    np.testing.assert_allclose(chart.spread(step[None])[0], change, atol=1e-12)


def test_whitened_coordinates_are_those_of_a_factor():
    chart = _chart("free")
    L = np.linalg.cholesky(COVARIANCE)
    a, B = np.array([0.1, -0.2, 0.3]), np.array([[0.2, 0.1, 0], [0.1, -0.1, 0.05], [0, 0.05, 0.3]])
    mean, covariance = chart.moved(pack(a, B))
    np.testing.assert_allclose(mean, MEAN + L @ a, atol=1e-14)
    np.testing.assert_allclose(covariance, L @ (np.eye(3) + B) @ L.T, atol=1e-14)


@pytest.mark.parametrize("name", STEPS)
def test_complete_rows_say_what_they_say_in_other_coordinates(name):
    chart = _chart(name)
    whole = N * naive.complete_information(np.linalg.inv(chart.covariance))
    J = chart.spread(np.eye(chart.m_step.count(3)))
    comp = np.diag(chart.complete) if chart.complete.ndim == 1 else chart.complete
    np.testing.assert_allclose(comp, J @ whole @ J.T, rtol=1e-10, atol=1e-9)
    direction = np.arange(1.0, len(comp) + 1.0)
    np.testing.assert_allclose(chart.information_times(direction), comp @ direction, rtol=1e-12)


RULES = {
    "limits": hs.DetectionLimits(lower=[0.0, -0.2, 0.3]),
    "two sides": hs.SelfCensoring(hs.between(-1.0, 0.9)),
    "thresholds": hs.LinearThreshold([[0, 0, 0], [-1.0, 0.5, 0], [0.5, 0, 1.0]], [0, 0.3, 0.6]),
    "selection": hs.SelfSelection(),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("rule", RULES)
def test_a_score_is_the_slope_of_the_log_likelihood(rule, name):
    # At the origin and away from it. Rows with three confined cells are sampled: expected moments and
    # log-masses are averages over the same paths, whose derivatives agree to the noise of 512 points.
    # Paths in unions jump where a point goes over to another piece, so that slopes are taken over ways
    # on which many of them do.
    rows, chart = held(*table(TRUTH, RULES[rule], N)), _chart(name)
    size = chart.m_step.count(3)
    sampling = Sampling(512, 3)
    jumps = rule == "two sides" and not np.array_equal(chart.covariance, np.diag(SCALE**2))
    curved = not chart.m_step.structure.linear

    def place(x):
        # Steps leave a curved structure, and are brought back to it.
        return chart.m_step.admit(*chart.moved(x)) if curved else chart.moved(x)

    for at in (np.zeros(size), 0.05 * np.random.default_rng(1).normal(size=size)):
        moments, _ = rows.expect(*place(at), sampling)
        score = chart.score(moments, *place(at))
        h, ref, comp = 0.03 if jumps else 1e-4, np.empty(size), np.empty(size)
        for k in range(size):
            sides = [place(at + sign * h * np.eye(size)[k]) for sign in (1, -1)]
            up, down = (rows.expect(*side, sampling)[1] for side in sides)
            ref[k] = (up - down) / (2.0 * h)
            one, other = (chart.coordinates(*side) for side in sides)
            comp[k] = score @ (one - other) / (2.0 * h)
        # h² = 1e-8 of third derivatives of order 10·150, and rounding, 1e-13/h. Sampled rows know a
        # score to 1/100 of its spread, √150 in whitened coordinates. Over 0.03 slopes are off by 0.03²/6
        # of third derivatives, up to 60·150, and by the noise of jumps.
        tolerance = (2.0 if jumps else 0.15) if rows.overview.sampled else 1e-4
        np.testing.assert_allclose(comp, ref, rtol=1e-5, atol=tolerance)


def test_a_score_vanishes_at_the_moments_of_complete_rows():
    rows = held(*table(TRUTH, hs.DetectionLimits(lower=-1e6), N))
    Y = TRUTH.sample(N, 0)
    mean, covariance = Y.mean(axis=0), np.cov(Y.T, bias=True)
    moments, value = rows.expect(mean, covariance, Sampling(4, 0))
    chart = Chart(MStep(Free()), MEAN, COVARIANCE, N)
    np.testing.assert_allclose(chart.score(moments, mean, covariance), 0.0, atol=1e-9)
    assert value == pytest.approx(hs.Gaussian(mean, covariance).logpdf(Y).sum(), rel=1e-12)


# Curvature ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["diagonal", "matrix"])
def test_steps_along_all_directions_solve_a_quadratic(first):
    # Exact steps along conjugate directions: what is remembered is then the inverse itself.
    rng = np.random.default_rng(2)
    A = rng.normal(size=(6, 6))
    H = A @ A.T + np.eye(6)
    start = np.ones(6) if first == "diagonal" else np.eye(6)
    x, top, pairs = np.zeros(6), rng.normal(size=6), []
    for _ in range(6):
        score = H @ (top - x)
        direction = Curvature(start, pairs) @ score
        # The top along the direction.
        step = direction * (direction @ score) / (direction @ H @ direction)
        pairs = [*pairs, (step, H @ step)]
        x = x + step
    np.testing.assert_allclose(x, top, atol=1e-8)
    score = rng.normal(size=6)
    curvature = Curvature(start, pairs)
    np.testing.assert_allclose(curvature @ score, np.linalg.solve(H, score), atol=1e-7)
    # ½ g' H⁻¹ g is how far below its top the quadratic is.
    assert curvature.gain(score) == pytest.approx(0.5 * score @ np.linalg.solve(H, score), rel=1e-7)


def test_the_last_step_is_always_solved():
    # The secant condition: what the score fell by asks for the step that was taken.
    rng = np.random.default_rng(3)
    pairs = []
    for _ in range(4):
        step = rng.normal(size=5)
        pairs.append((step, step * rng.uniform(0.5, 2.0, 5)))
    curvature = Curvature(rng.uniform(0.5, 2.0, 5), pairs)
    np.testing.assert_allclose(curvature @ pairs[-1][1], pairs[-1][0], rtol=1e-10)
    # And the estimate is symmetric.
    M = np.array([curvature @ e for e in np.eye(5)])
    np.testing.assert_allclose(M, M.T, atol=1e-12)
    assert np.linalg.eigvalsh(M)[0] > 0.0


def _lost(shares):
    """An information of which some shares are lost, in directions of its own, and a score."""
    rng = np.random.default_rng(4)
    turn = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    return turn @ np.diag(1.0 - np.asarray(shares)) @ turn.T, rng.normal(size=12)


def test_directions_that_a_score_asks_for_show_what_is_lost():
    # Three shares, and no more than as many directions: conjugate gradients end after as many steps.
    information, score = _lost([0.98] * 2 + [0.7] * 4 + [0.0] * 6)
    first = Curvature(np.ones(12))
    pairs = conjugate_pairs(first, score, lambda v: information @ v, 20, 1e-12)
    assert len(pairs) == 3
    curvature = Curvature(first.first, pairs)
    np.testing.assert_allclose(curvature @ score, np.linalg.solve(information, score), rtol=1e-9)
    # Steps along them are conjugate, as those of a search would be.
    cross = np.array([[a @ fall for _, fall in pairs] for a, _ in pairs])
    np.testing.assert_allclose(cross - np.diag(np.diag(cross)), 0.0, atol=1e-9 * cross.max())


def test_directions_end_where_little_is_promised_and_where_there_is_no_hill():
    information, score = _lost(np.linspace(0.0, 0.95, 12))
    first = Curvature(np.ones(12))
    gain = 0.5 * score @ np.linalg.solve(information, score)
    gains, counts = [], []
    for enough in (0.5, 0.1, 0.001):
        pairs = conjugate_pairs(first, score, lambda v: information @ v, 20, enough)
        gains.append(Curvature(first.first, pairs).gain(score))
        counts.append(len(pairs))
    assert counts[0] < counts[1] < counts[2] < 12
    assert gains[0] < gains[1] < gains[2] < gain
    assert gains[2] == pytest.approx(gain, rel=0.01)
    assert len(conjugate_pairs(first, score, lambda v: information @ v, 2, 0.0)) == 2
    # More than all is lost in a direction of a score: the rows say that this is no top.
    information, score = _lost([1.2] * 12)
    assert conjugate_pairs(first, score, lambda v: information @ v, 20, 0.1) == []
    assert conjugate_pairs(first, np.zeros(12), lambda v: information @ v, 20, 0.1) == []


def test_without_steps_the_first_estimate_stands():
    score = np.array([1.0, -2.0])
    np.testing.assert_array_equal(Curvature(np.array([0.5, 2.0])) @ score, [0.5, -4.0])
    M = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_array_equal(Curvature(M) @ score, M @ score)


@pytest.mark.parametrize("mean", [None, MEAN], ids=["all", "known mean"])
def test_what_steps_showed_means_the_same_in_other_coordinates(mean, rng):
    A = rng.normal(size=(3, 3))
    m_step = MStep(Free(), mean)
    charts = [Chart(m_step, MEAN, S, N) for S in (COVARIANCE, A @ A.T + np.eye(3))]
    step, other, fall = rng.normal(size=(3, m_step.count(3)))
    moved, fallen = charts[0].carried((step, fall), charts[1])
    # The same change of mean and covariance, and the same product with any step.
    np.testing.assert_allclose(
        charts[1].spread(moved[None]), charts[0].spread(step[None]), atol=1e-12
    )
    again = charts[0].carried((other, fall), charts[1])[0]
    assert fallen @ again == pytest.approx(fall @ other, rel=1e-10)


def _on_the_edge(held):
    """Five columns, some of which repeat others but for eigenvalues of 1e-6 or less."""
    of = [0, 0, 1, 1, 2] if held == 2 else [0, 0, 1, 2, 3]
    R = (0.4 + 0.6 * np.eye(4))[np.ix_(of, of)]
    for k in range(held):
        R[2 * k, 2 * k + 1] = R[2 * k + 1, 2 * k] = 1.0 - 1e-6 / (1.0 + k)
    return R * np.outer(*[10.0 ** np.arange(5)] * 2)


@pytest.mark.parametrize("held", [1, 2])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_scores_on_the_edge_do_not_lead_beyond_it(held, sign, rng):
    d, S = 5, _on_the_edge(held)
    chart = Chart(MStep(Free()), np.zeros(d), S, N)
    scale = np.sqrt(np.diag(S))

    def smallest(step):
        """Relative change of the held eigenvalues of the correlations."""
        C = chart.moved(step)[1]
        values = [
            np.linalg.eigvalsh(M / np.sqrt(np.outer(np.diag(M), np.diag(M))))[:held] for M in (C, S)
        ]
        return values[0] / values[1] - 1.0

    # A score that pushes the held eigenvalues down, or up, and says much else.
    i, j = np.tril_indices(d)
    vectors = np.linalg.eigh(S / np.outer(scale, scale))[1][:, :held]
    W = chart.factor.T @ (vectors / scale[:, None])
    push = pack(np.zeros(d), sign * 1e7 * W @ W.T)
    push[d:] *= np.where(i == j, 1.0, 2.0)
    score = push + rng.normal(size=push.size)
    along = chart.along_edge(score, chart.beyond_edge(score, S))
    if sign > 0.0:
        # Away from the edge: nothing is taken out.
        np.testing.assert_allclose(along, score, rtol=1e-9, atol=1e-9 * abs(score).max())
        return
    h = 1e-3
    step = h * along / chart.complete / np.abs(along / chart.complete).max()
    # Second order in the step; the score itself changes them at first order.
    assert np.abs(smallest(step)).max() < 50.0 * h * h
    full = h * score / chart.complete / np.abs(score / chart.complete).max()
    assert np.abs(smallest(full)).max() > 0.1 * h
    # A projection: of the mean nothing goes, and a second time nothing.
    np.testing.assert_array_equal(along[:d], score[:d])
    again = chart.along_edge(along, chart.beyond_edge(score, S))
    np.testing.assert_allclose(again, along, atol=1e-9 * abs(score).max())
    assert np.linalg.norm(along) > 0.5 * np.linalg.norm(score - push)


def test_inside_the_domain_a_score_stays_as_it_is(rng):
    chart, score = _chart("free"), rng.normal(size=9)
    assert chart.along_edge(score, chart.beyond_edge(score, COVARIANCE)) is score


def test_only_what_leads_beyond_the_edge_is_taken_out(rng):
    # One held eigenvalue is pushed down, the other up.
    S, score = _on_the_edge(2), np.zeros(20)
    chart, scale = Chart(MStep(Free()), np.zeros(5), S, N), np.sqrt(np.diag(S))
    pushes = []
    for k, sign in enumerate((-1.0, 1.0)):
        v = np.zeros(5)
        v[[2 * k, 2 * k + 1]] = 1.0, -1.0
        w = chart.factor.T @ (v / scale)
        push = pack(np.zeros(5), sign * np.outer(w, w) / (w @ w))
        push[5:] *= np.where(np.equal(*np.tril_indices(5)), 1.0, 2.0)
        pushes.append(push)
    score = sum(pushes)
    beyond = chart.beyond_edge(score, S)
    assert beyond.shape == (20, 1)
    # The slope of the first, which is not quite its push (variances change too), and of no other.
    slope = chart.beyond_edge(pushes[0], S)
    np.testing.assert_allclose(abs(beyond.T @ slope), 1.0, atol=1e-6)
    up = chart.along_edge(pushes[1], chart.beyond_edge(pushes[1], S))
    np.testing.assert_allclose(up, pushes[1], atol=1e-9)
