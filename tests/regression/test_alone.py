"""Where regressions start: outcomes by themselves, against direct optimisation; and some of the rows."""

import numpy as np
import pytest
from scipy.special import log_ndtr

import halfseen as hs
from benchmarks.regression_tables import many_censored
from halfseen.data.interval_data import IntervalData
from halfseen.seeds import Purpose
from halfseen.solvers.full_information import learn
from halfseen.solvers.full_information.expectation import Parameters, Sampling
from halfseen.solvers.full_information.rows import HeldRows
from halfseen.solvers.regression import learn_regression
from halfseen.solvers.regression.alone import Known, log_mass, starts_alone
from halfseen.solvers.regression.model import Model, Setup
from halfseen.solvers.regression.outcomes import read_outcomes
from halfseen.solvers.regression.step import RegressionChart
from tests import naive_regression as naive
from tests.regression.tables import (
    FORMULAS,
    INF,
    SELECTION,
    ends_of,
    heckman,
    regressors,
    residuals,
)


def _setup(columns, W, fixed=None, free=None, given_errors=None, weights=None, **options):
    outcomes = read_outcomes(columns, **options)
    q, k = len(columns), W.shape[1]
    free = np.ones((q, q), dtype=bool) if free is None else free
    fixed = np.full((q, k), np.nan) if fixed is None else fixed
    given_errors = np.eye(q) if given_errors is None else given_errors
    latent = outcomes.latent
    free[latent, latent] = False
    terms = tuple(f"w{j}" for j in range(k))
    model = Model(
        outcomes,
        terms,
        W,
        np.ones((q, k), dtype=bool),
        fixed,
        free,
        given_errors,
        row_weights=weights,
    )
    return model, Setup.of(model, 1)


def _alone(*args, **options):
    """Coefficients, deviations and cut points of each outcome, in the units of the table."""
    _, setup = _setup(*args, **options)
    found = starts_alone(setup, 0)
    if found is None:
        return None
    scale = setup.equations.scale
    return (
        setup.equations.coefficients(found.place),
        np.sqrt(np.diag(found.place.residual)) * scale,
        found.cuts,
    )


def _column(lower, upper, name="y"):
    return IntervalData(lower[:, None], upper[:, None], [name])


def _mixed(seed, n=60):
    """Values, cells below and above an end, and between two, of every width down to 1e-7."""
    rng = np.random.default_rng(seed)
    Z = regressors(rng, n, 2)
    y = Z @ [0.3, 1.0, -0.5] + rng.normal(size=n)
    width = 10.0 ** rng.uniform(-7.0, 0.5, n)
    kind = rng.integers(0, 4, n)
    lower = np.where(kind == 1, -INF, np.where(kind == 3, y - 0.4 * width, y))
    upper = np.where(kind == 2, INF, np.where(kind == 3, y + 0.6 * width, y))
    return Z, lower, upper, kind == 0


def _differences(one, at, step):
    """Gradient from differences of values, and minus the Hessian from differences of gradients."""
    k = at.slopes.size
    vector = np.concatenate(at)
    slope, fall = np.empty(vector.size), np.empty((vector.size, vector.size))
    for j, unit in enumerate(step * np.eye(vector.size)):
        low, high = (one.look(type(at)(v[:k], v[k:])) for v in (vector - unit, vector + unit))
        slope[j] = (high[0] - low[0]) / (2.0 * step)
        fall[j] = (low[1] - high[1]) / (2.0 * step)
    return slope, fall


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["measured", "ordered"])
@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives_are_those_of_the_likelihood(seed, kind, weighted):
    n = 60 if kind == "measured" else 200
    counts = np.random.default_rng(seed).uniform(0.2, 3.0, n) if weighted else None
    if kind == "measured":
        Z, lower, upper, seen = _mixed(seed)
        one = Known(Z, np.zeros(len(Z)), seen, lower, upper, counts).measured(np.nan)
        at = one.first._replace(slopes=np.array([0.2, 0.7, -0.1]), own=np.array([1.3]))
    else:
        rng = np.random.default_rng(seed)
        Z = regressors(rng, 200, 2)
        code = np.digitize(Z @ [0.3, 1.0, -0.5] + rng.normal(size=200), [-0.5, 0.4, 1.0])
        ends = np.array([-INF, 0.0, 0.8, 1.7, INF])
        lower, upper = ends[code], ends[code + 1]
        lower[::7], upper[::7] = -INF, INF
        nowhere = np.zeros(200, dtype=bool)
        one = Known(Z, 0.1 * Z[:, 1], nowhere, lower, upper, counts).graded(ends[1:-1])
        at = one.first._replace(slopes=np.array([0.2, 0.7, -0.1]))
    _, slope, fall = one.look(at)
    by_differences = _differences(one, at, 1e-5)
    scale = np.sqrt(np.diag(fall))
    # Differences of values lose 1e-16 · |value| / 1e-5 to rounding, and those of log-masses of cells
    # that are 1e-7 wide some 1e-16 · 1e7 / 1e-5 of a unit.
    np.testing.assert_allclose((slope - by_differences[0]) / scale, 0.0, atol=1e-4)
    np.testing.assert_allclose((fall - by_differences[1]) / np.outer(scale, scale), 0.0, atol=1e-4)
    assert np.linalg.eigvalsh(fall)[0] > 0.0


def test_the_mass_of_an_interval_keeps_its_digits_in_both_tails():
    a = np.array([-40.0, -5.0, 3.0, 30.0, 0.1, -INF])
    b = np.array([-39.0, -4.9, INF, 30.5, 0.1 + 1e-9, -8.0])
    # By Mills' ratio far out, by the density where the interval is narrow.
    expected = naive.line(a[:4], b[:4]).log_mass
    np.testing.assert_allclose(log_mass(a, b)[:4], expected, rtol=1e-12)
    assert log_mass(a, b)[4] == pytest.approx(
        np.log(1e-9) - 0.5 * 0.01 - naive.HALF_LOG_TWO_PI, rel=1e-7
    )
    assert log_mass(a, b)[5] == log_ndtr(-8.0)
    np.testing.assert_array_equal(log_mass(-b, -a), log_mass(a, b))


@pytest.mark.parametrize("seed", range(2))
def test_measured_outcomes_are_at_their_own_tops(seed):
    rng = np.random.default_rng(seed)
    W = regressors(rng, 300, 3)
    Y = W @ rng.normal(size=(W.shape[1], 2)) + residuals(rng, 300, 2, 0.7)
    blank = rng.random(Y.shape) < 0.1
    lower, upper = ends_of(Y, lower=0.0, upper=1.5, blank=blank)
    cells = {name: _column(lower[:, j], upper[:, j], name) for j, name in enumerate("ab")}
    coefficients, deviations, _ = _alone(cells, W)
    for j in range(2):
        ref = naive.maximise(lower[:, [j]], upper[:, [j]], W, np.ones((1, W.shape[1]), dtype=bool))
        errors = np.sqrt(np.diag(ref.covariance))
        # 1e-9 of log-likelihood may be left, which is 5e-5 standard errors.
        np.testing.assert_allclose((coefficients[j] - ref.Gamma[0]) / errors[:-1], 0.0, atol=1e-4)
        assert deviations[j] == pytest.approx(np.sqrt(ref.Sigma[0, 0]), abs=1e-4 * errors[-1])


def test_rows_count_as_much_as_their_weights():
    rng = np.random.default_rng(7)
    W = regressors(rng, 200, 2)
    y = W @ [0.2, 1.0, -0.5] + rng.normal(size=200)
    lower, upper = ends_of(y, lower=0.0, upper=1.5)
    counts = rng.integers(1, 4, 200)
    weighted = _alone({"y": _column(lower, upper)}, W, weights=counts / counts.mean())
    rows = np.repeat(np.arange(200), counts)
    repeated = _alone({"y": _column(lower[rows], upper[rows])}, W[rows])
    np.testing.assert_allclose(weighted[0], repeated[0], atol=1e-6)
    np.testing.assert_allclose(weighted[1], repeated[1], atol=1e-6)


def test_what_is_given_is_kept():
    rng = np.random.default_rng(5)
    W = regressors(rng, 400, 2)
    y = W @ [0.5, 1.0, 2.0] + 1.5 * rng.normal(size=400)
    lower, upper = np.where(y < 0.0, -INF, y), np.where(y < 0.0, 0.0, y)
    fixed = np.array([[np.nan, np.nan, 2.0]])
    coefficients, deviations, _ = _alone(
        {"y": _column(lower, upper)}, W, fixed, np.zeros((1, 1), dtype=bool), np.array([[2.25]])
    )
    assert coefficients[0, 2] == pytest.approx(2.0)
    assert deviations[0] == pytest.approx(1.5)
    rest = (lower - 2.0 * W[:, 2]) / 1.5, (upper - 2.0 * W[:, 2]) / 1.5
    ref = naive.maximise(
        rest[0][:, None],
        rest[1][:, None],
        W[:, :2],
        np.ones((1, 2), dtype=bool),
        unit_variance=(0,),
    )
    errors = 1.5 * np.sqrt(np.diag(ref.covariance))
    np.testing.assert_allclose((coefficients[0, :2] - 1.5 * ref.Gamma[0]) / errors, 0.0, atol=1e-4)


def test_grades_are_at_their_own_top():
    rng = np.random.default_rng(3)
    W = regressors(rng, 500, 2)
    grade = np.digitize(W @ [0.5, 1.0, -0.7] + rng.normal(size=500), [0.0, 0.6, 1.5])
    coefficients, deviations, cuts = _alone({"y": grade.astype(float)}, W, kinds={"y": "ordered"})
    ref = naive.ordered_probit(grade, W[:, 1:])
    errors = np.sqrt(np.diag(ref.covariance))
    # The oracle has no intercept, and a first cut point in its place.
    ours = np.concatenate([coefficients[0, 1:], cuts["y"] - coefficients[0, 0]])
    np.testing.assert_allclose((ours - ref.estimates) / errors, 0.0, atol=1e-4)
    assert deviations[0] == 1.0
    assert cuts["y"][0] == 0.0


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring([hs.between(-1.0, 1.0)] * 2),
        hs.LinearThreshold([[0.5, 1.0], [1.0, 0.5]], [0.5, 0.5]),
    ],
    ids=["two pieces", "bound together"],
)
def test_what_is_not_concave_is_left_to_the_engine(rule):
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(100, 2))
    values = np.where(rule.seen(Y), Y, np.nan)
    cells = {"a": values[:, 0], "b": values[:, 1]}
    assert _alone(cells, regressors(rng, 100, 1), given=rule) is None


def test_one_outcome_needs_one_question():
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    y = 0.5 * x + rng.normal(size=500)
    fit = hs.regress(
        "y ~ x", {"x": x, "y": np.where(y > 0.0, y, np.nan)}, {"y": ">=0"}, random_state=0
    )
    assert fit.history["steps"] == 1
    assert fit.history["gain_left"] < 1e-9


def test_many_rows_are_climbed_by_what_some_of_them_say(monkeypatch):
    data, _ = heckman(n=20_000, seed=2)
    asked = []
    expect = HeldRows.expect

    def counted(self, *args):
        asked.append(self.overview.shape[0])
        return expect(self, *args)

    monkeypatch.setattr(HeldRows, "expect", counted)
    guided = hs.regress(FORMULAS, data, SELECTION, random_state=0)
    questions = asked.count(20_000)
    asked.clear()
    monkeypatch.setattr(learn, "MANY_MORE", np.inf)
    plain = hs.regress(FORMULAS, data, SELECTION, random_state=0)
    # Both stop where 1e-11 of log-likelihood is left, which is 5e-6 standard errors.
    errors = np.sqrt(np.diag(plain.covariance))
    free = errors > 0.0
    np.testing.assert_allclose((guided.vector - plain.vector)[free] / errors[free], 0.0, atol=1e-4)
    np.testing.assert_allclose(guided.covariance, plain.covariance, atol=1e-6 * errors.max() ** 2)
    # From 4000 rows five standard errors are left, in the root mean square; an information that is
    # known to a sixteenth (√(9/4000) of nine parameters) takes the square of that off each step.
    assert questions < asked.count(20_000)
    assert questions <= 8


def test_many_rows_are_asked_once_for_a_log_likelihood(monkeypatch):
    asked, given = [], []
    expect, take = HeldRows.expect, learn_regression._sampled_log_likelihood

    def counted(self, mean, covariance, sampling):
        asked.append((self.overview.shape[0], sampling.purpose))
        return expect(self, mean, covariance, sampling)

    monkeypatch.setattr(HeldRows, "expect", counted)
    monkeypatch.setattr(
        learn_regression, "_sampled_log_likelihood", lambda *a: given.append(a) or take(*a)
    )
    table = many_censored(8000, 4, 2, 0)
    fit = table.fit()
    assert asked.count((8000, Purpose.LIKELIHOOD)) == 1
    assert 0.0 < fit.log_likelihood_error < 1.5 * learn_regression.ENOUGH_KNOWN
    # Other shifts, and so many points that their own error is next to nothing.
    rows, found = given[0]
    place = found.mean, found.covariance
    order = Parameters.of(*found.state.order)
    many = np.mean([rows.expect(*place, Sampling(2048, 1, k, order=order))[1] for k in range(2)])
    assert abs(take(rows, found)[0] - many) < 4.0 * fit.log_likelihood_error


def test_information_grows_with_the_rows():
    data, _ = heckman(n=400)
    known = []
    inform = RegressionChart.own_information
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            RegressionChart, "own_information", lambda *a: known.append(inform(*a)) or known[-1]
        )
        hs.regress(FORMULAS, data, SELECTION, random_state=0)
    more = known[-1].of_rows(4_000)
    np.testing.assert_allclose(more.inverse(), known[-1].inverse() / 10.0, rtol=1e-12)
    assert more.chart.rows == 4_000
