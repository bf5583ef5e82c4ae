"""Climbs that some of the rows go first: how often all are asked, and that they end at the same top."""

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import Interrupted
from halfseen.missingness.holes import Scan
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information import learn
from halfseen.solvers.full_information.ascent import POLISHED, Ascent
from halfseen.solvers.full_information.m_step import Free, MStep
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.full_information.starts import available_start
from halfseen.theta import pack
from tests.solvers.full_information.held import held, table

ROWS = 24_000
FOUR = hs.Gaussian(
    [0.2, -0.1, 0.4, 0.0],
    [[1.0, 0.5, -0.3, 0.2], [0.5, 1.5, 0.4, 0.1], [-0.3, 0.4, 0.8, 0.3], [0.2, 0.1, 0.3, 0.6]],
)
SAMPLED = hs.DetectionLimits(lower=[-0.2, -0.3, 0.3, -0.2])
EXACT = hs.DetectionLimits(lower=[0.3, 0.4, np.nan, np.nan])


@pytest.fixture
def asked(monkeypatch):
    """How many rows each question was put to."""
    sizes = []
    expect = HeldRows.expect

    def counted(self, *args):
        sizes.append(self.overview.shape[0])
        return expect(self, *args)

    monkeypatch.setattr(HeldRows, "expect", counted)
    return sizes


def vector(fit):
    return pack(fit.mean, fit.covariance)


def both(rule, monkeypatch):
    """Fit with some of the rows first, and without."""
    X = hs.simulate(FOUR, rule, ROWS, 0)
    first = hs.fit(X, rule, "full", random_state=0)
    monkeypatch.setattr(learn, "MANY_MORE", np.inf)
    return X, first, hs.fit(X, rule, "full", random_state=0)


def test_all_rows_are_asked_a_few_times(asked, monkeypatch):
    # Intervals are started from far below: columns by themselves, and rows that show both of a pair.
    X = hs.simulate(FOUR, SAMPLED, ROWS, 0)
    hidden = np.isnan(X)
    data = hs.IntervalData(np.where(hidden, -np.inf, X), np.where(hidden, SAMPLED.lower, X))
    hs.fit(data, random_state=0)
    # An information from 4000 rows is known to a seventeenth (√(14/4000)), so that two steps leave some
    # 42/17⁴ = 5e-4 of the 42 units by which their top is below that of all: a question
    # where these rows came to, one after each step, and two more shifts for the average.
    guided = asked.count(ROWS)
    asked.clear()
    monkeypatch.setattr(learn, "MANY_MORE", np.inf)
    hs.fit(data, random_state=0)
    assert guided <= 5
    assert guided < asked.count(ROWS) / 2.0


def test_sampled_rows_end_at_the_same_top(monkeypatch):
    _, guided, plain = both(SAMPLED, monkeypatch)
    assert guided.status is plain.status is hs.Status.CONVERGED
    # Each is below its top by the noise of its averages: a gain g is √(2 g) standard errors.
    left = guided.history["gain_left"] + plain.history["gain_left"]
    gaps = np.abs(vector(guided) - vector(plain)) / plain.standard_errors.vector()
    assert gaps.max() < 3.0 * np.sqrt(2.0 * left)
    error = np.hypot(guided.log_likelihood.standard_error, plain.log_likelihood.standard_error)
    assert float(guided.log_likelihood) > float(plain.log_likelihood) - 2.0 * left - 4.0 * error


def test_integrated_rows_end_at_the_same_top(monkeypatch):
    X, guided, plain = both(EXACT, monkeypatch)
    gaps = np.abs(vector(guided) - vector(plain)) / plain.standard_errors.vector()
    assert gaps.max() < 2.0 * np.sqrt(2.0 * POLISHED)
    np.testing.assert_allclose(
        guided.standard_errors.vector(), plain.standard_errors.vector(), rtol=1e-4
    )
    # Columns that are never hidden have the closed forms of all rows, not of some.
    np.testing.assert_allclose(guided.mean[2:], X[:, 2:].mean(axis=0), rtol=0, atol=1e-10)
    errors = X[:, 2:].std(axis=0) / np.sqrt(ROWS)
    np.testing.assert_allclose(guided.standard_errors.mean[2:], errors, rtol=1e-8)


def test_rows_that_say_nothing_of_a_direction_do_not_guide():
    rows = held(*table(FOUR, SAMPLED, ROWS))
    assert _guide(rows) is not None
    X = FOUR.sample(ROWS, 0)
    # A pair is seen together in 10 rows, of which some 2 are among those that would go first.
    first = np.arange(ROWS) % 2 == 0
    first[:10] = X[10:, 0].max() < 0.0
    X[first, 0] = np.nan
    X[10:][~first[10:], 1] = np.nan
    rule = hs.DetectionLimits(lower=[np.nan, np.nan, 0.6, 0.2])
    X = np.where(rule.seen(X), X, np.nan)
    holes = rule.holes(X, Scan(FOUR.mean, np.ones(4), np.full(4, 40.0)))
    assert _guide(held(X, holes)) is None


def _guide(rows):
    settings = learn.Settings(0.1, 200, True, 0, False, 1)
    with single_blas_thread():
        return learn.guided(rows, MStep(Free()), available_start(rows), settings)


def test_threads_change_no_bit():
    X = hs.simulate(FOUR, SAMPLED, ROWS, 0)
    one, two = (hs.fit(X, SAMPLED, "full", random_state=0, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(vector(one), vector(two))
    np.testing.assert_array_equal(one.standard_errors.vector(), two.standard_errors.vector())


@pytest.mark.parametrize("stop", [1, 3])
def test_a_run_that_was_stopped_ends_at_the_same_bits(stop, monkeypatch, tmp_path):
    X = hs.simulate(FOUR, SAMPLED, ROWS, 0)
    whole = hs.fit(X, SAMPLED, "full", random_state=0)
    take, made = Ascent.step, []

    def step(self, state):
        if not self.scouting:
            if len(made) == stop:
                raise Interrupted("stopped")
            made.append(state)
        return take(self, state)

    options = {"random_state": 0, "checkpoint": tmp_path / "c", "every": 0.0}
    with monkeypatch.context() as patch:
        patch.setattr(Ascent, "step", step)
        with pytest.raises(Interrupted):
            hs.fit(X, SAMPLED, "full", **options)
    again = hs.fit(X, SAMPLED, "full", resume=True, **options)
    np.testing.assert_array_equal(vector(whole), vector(again))
    np.testing.assert_array_equal(whole.standard_errors.vector(), again.standard_errors.vector())
