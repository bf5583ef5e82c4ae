"""Fits of t distributions against direct optimisation, and what such fits can do."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import optimize, stats

import halfseen as hs
from halfseen.errors import ConvergenceWarning, InputError
from halfseen.solvers.inference.refits import refits
from tests import naive

LIMIT = -0.4
RULE = hs.DetectionLimits(lower=LIMIT)
BOUNDS = [(-5.0, 5.0), (-3.0, 3.0), (0.01, 1.0)]
TRUTH = hs.Gaussian([0.2, 0.0], [[1.0, 0.6], [0.6, 1.5]])


def heavy(n, nu, seed=0, truth=TRUTH, rule=RULE):
    return hs.simulate(truth, rule, n, seed, degrees_of_freedom=nu)


@pytest.fixture(scope="module")
def line():
    """One column: the exact likelihood is SciPy's."""
    X = heavy(400, 3.0, 1, hs.Gaussian([0.2], [[1.0]]))

    def log_likelihood(parameters):
        mu, log_sigma, kappa = parameters
        law = stats.t(1.0 / kappa, mu, math.exp(log_sigma))
        hidden = np.isnan(X)
        return law.logpdf(X[~hidden]).sum() + hidden.sum() * law.logcdf(LIMIT)

    near = optimize.minimize(
        lambda p: -log_likelihood(p), [0.2, 0.0, 0.3], method="Nelder-Mead", bounds=BOUNDS
    )
    at, V = naive.maximum_likelihood(log_likelihood, near.x, [2e-3, 2e-3, 2e-3])
    return X, at, V, log_likelihood


def test_one_column_is_direct_optimisation(line):
    X, at, V, log_likelihood = line
    fit = hs.fit(X, RULE, errors="t", random_state=0)
    errors = np.sqrt(np.diag(V))
    found = [fit.mean[0], 0.5 * math.log(fit.covariance[0, 0]), 1.0 / fit.degrees]
    # κ is left where a hundredth of a standard error is to be gained, others follow it.
    assert np.abs((found - at) / errors).max() < 0.03
    assert fit.log_likelihood.value == pytest.approx(log_likelihood(at), abs=1e-3)
    assert fit.log_likelihood.standard_error == 0.0
    # Standard errors that count the degrees of freedom: differences are good to a part in a thousand.
    assert fit.standard_errors.mean[0] == pytest.approx(errors[0], rel=0.01)
    log_error = fit.standard_errors.standard_deviation[0] / fit.gaussian.standard_deviations[0]
    assert log_error == pytest.approx(errors[1], rel=0.01)
    tails = fit.tails
    assert tails.learned
    assert tails.standard_error * tails.degrees**-2 == pytest.approx(errors[2], rel=0.02)
    assert tails.lower < 3.0 < tails.upper
    assert fit.parameters == 3


def test_given_degrees_of_freedom_add_nothing_to_errors(line):
    X, at, _, log_likelihood = line
    nu = 1.0 / at[2]
    fit = hs.fit(X, RULE, errors="t", degrees_of_freedom=nu, random_state=0)
    two, V = naive.maximum_likelihood(lambda p: log_likelihood([*p, 1 / nu]), at[:2], [2e-3, 2e-3])
    # Found by Newton's steps to 1e-6 of log-likelihood: a thousandth of a standard error.
    assert abs(fit.mean[0] - two[0]) < 2e-3 * math.sqrt(V[0, 0])
    assert fit.standard_errors.mean[0] == pytest.approx(math.sqrt(V[0, 0]), rel=1e-3)
    assert fit.tails == hs.solvers.Tails(nu)
    assert (fit.tails.lower, fit.tails.upper, fit.parameters) == (nu, nu, 2)


def test_two_columns_are_direct_optimisation():
    X, nu = heavy(60, 4.0, 3), 4.0
    X[::7, 1] = np.nan
    blank = np.zeros(X.shape, dtype=bool)
    blank[::7, 1] = True

    def given(x, i, mean, S):
        """One cell given the other, x: t with ν + 1 degrees of freedom."""
        off, j = x - mean[i], 1 - i
        scale = (nu + off**2 / S[i, i]) / (nu + 1) * (S[j, j] - S[i, j] ** 2 / S[i, i])
        return stats.t(nu + 1, mean[j] + S[i, j] / S[i, i] * off, math.sqrt(scale))

    def row(x, free, mean, S):
        alone = [stats.t(nu, mean[j], math.sqrt(S[j, j])) for j in range(2)]
        if free[1]:
            return alone[0].logcdf(LIMIT) if np.isnan(x[0]) else alone[0].logpdf(x[0])
        if not np.isnan(x).any():
            return stats.multivariate_t(mean, S, nu).logpdf(x)
        i = int(np.isnan(x[0]))
        return alone[i].logpdf(x[i]) + given(x[i], i, mean, S).logcdf(LIMIT)

    def log_likelihood(p):
        mean, S = p[:2], np.array([[p[2], p[3]], [p[3], p[4]]])
        both = np.isnan(X).all(axis=1) & ~blank.any(axis=1)
        # Rows in which both are hidden are all the same.
        nothing, below = np.full(2, np.nan), ((-math.inf, LIMIT),)
        alike = naive.t_log_likelihood(nothing, lambda r, k: below, mean, S, nu)
        return both.sum() * alike + sum(row(X[r], blank[r], mean, S) for r in np.flatnonzero(~both))

    fit = hs.fit(
        X, RULE, errors="t", degrees_of_freedom=nu, missing_at_random=blank, random_state=0
    )
    top = np.array([*fit.mean, *fit.covariance[np.tril_indices(2)]])
    V, h = fit.standard_errors.parameters, 0.05
    steps = h * np.sqrt(np.diag(V))
    values = np.array([
        [log_likelihood(top + sign * e) for sign in (-1, 0, 1)] for e in np.diag(steps)
    ])  # fmt: skip
    assert fit.log_likelihood.value == pytest.approx(values[0, 1], abs=1e-4)
    # The slope along each parameter by itself, over its curvature: how far off it is in its own errors,
    # those with the others held fixed. Differences of 0.05 err by 0.05²/6 of them.
    slope = (values[:, 2] - values[:, 0]) / (2 * h)
    curvature = -(values[:, 0] - 2 * values[:, 1] + values[:, 2]) / h**2
    assert np.abs(slope / np.sqrt(curvature)).max() < 0.01
    # The information's diagonal, in the same units.
    scale = np.sqrt(np.diag(V))
    assert np.diag(np.linalg.inv(V)) * scale**2 == pytest.approx(curvature, rel=0.01)


def test_complete_rows():
    Y = heavy(300, 5.0, 4, rule=hs.DetectionLimits(lower=-1e9))
    fit = hs.fit(Y, errors="t", random_state=0)
    # The weights at the top: μ and Σ are weighted moments (Lange, Little and Taylor 1989).
    nu, off = fit.degrees, Y - fit.gaussian.mean
    square = np.einsum("ri,ij,rj->r", off, np.linalg.inv(fit.gaussian.covariance), off)
    w = (nu + 2) / (nu + square)
    np.testing.assert_allclose(w @ off / len(Y), 0.0, atol=1e-5)
    np.testing.assert_allclose((w * off.T) @ off / len(Y), fit.gaussian.covariance, rtol=1e-4)
    values = [
        stats.multivariate_t(fit.gaussian.mean, fit.gaussian.covariance, one).logpdf(Y).sum()
        for one in (0.98 * nu, nu, 1.02 * nu)
    ]
    assert values[1] > max(values[0], values[2]) - 1e-3
    assert values[1] == pytest.approx(fit.log_likelihood.value, abs=1e-8)


def test_rows_that_are_sampled():
    truth = hs.Gaussian(np.zeros(4), 0.5 + 0.5 * np.eye(4))
    X = heavy(300, 4.0, 5, truth, hs.DetectionLimits(lower=0.0))
    fits = [
        hs.fit(X, hs.DetectionLimits(lower=0.0), errors="t", random_state=seed) for seed in (0, 1)
    ]
    for fit in fits:
        assert fit.status is hs.Status.CONVERGED
        # Four standard errors.
        assert np.abs(fit.mean / fit.standard_errors.mean).max() < 4.0
        assert fit.tails.lower < 4.0 < fit.tails.upper
    # What is asked for: sampling adds a tenth of a standard error to each.
    apart = np.abs(fits[0].mean - fits[1].mean) / fits[0].standard_errors.mean
    assert apart.max() < 0.3


def test_a_gaussian_is_found_to_be_one():
    X = hs.simulate(TRUTH, RULE, 300, 0)
    fit, plain = (hs.fit(X, RULE, random_state=0, **more) for more in ({"errors": "t"}, {}))
    assert math.isinf(fit.degrees)
    assert fit.tails.p_value == 1.0
    assert 5.0 < fit.tails.lower < math.inf
    assert fit.tails.upper == math.inf
    np.testing.assert_allclose(fit.mean, plain.mean, atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors.mean, plain.standard_errors.mean, rtol=1e-3)
    assert "no heavier tails" in " ".join(fit.summary().split())


def test_the_test_of_a_gaussian_keeps_its_level():
    """Of 40 Gaussian tables, 2 are expected below 5 %; 7 or more come up once in 300 times."""
    p_values = [
        hs.fit(hs.simulate(TRUTH, RULE, 150, seed), RULE, errors="t", random_state=0).tails.p_value
        for seed in range(40)
    ]
    assert np.sum(np.array(p_values) < 0.05) < 7


def test_tails_as_heavy_as_may_be():
    X = np.random.default_rng(0).standard_t(0.4, size=(200, 1))
    with pytest.warns(ConvergenceWarning, match="1 degree of freedom"):
        fit = hs.fit(X, errors="t", random_state=0)
    assert fit.status is hs.Status.ON_DOMAIN_EDGE
    assert fit.degrees == pytest.approx(1.0)


def test_outliers_move_a_gaussian_and_not_a_t_distribution():
    X = hs.simulate(TRUTH, RULE, 300, 2)
    X[:6] = 60.0
    plain, heavy_fit = (hs.fit(X, RULE, random_state=0, **m) for m in ({}, {"errors": "t"}))
    # By 6·60/300 in complete rows; limits pull the other way.
    assert np.abs(plain.mean - TRUTH.mean).max() > 0.3
    assert np.abs(heavy_fit.mean - TRUTH.mean).max() < 0.2


def test_units_do_not_matter():
    X = heavy(200, 3.0, 6)
    a, b = np.array([3.0, 1e-3]), np.array([10.0, -2.0])
    one = hs.fit(X, RULE, errors="t", random_state=0)
    rule = hs.DetectionLimits(lower=LIMIT * a + b)
    other = hs.fit(X * a + b, rule, errors="t", random_state=0)
    assert other.degrees == pytest.approx(one.degrees, rel=1e-4)
    np.testing.assert_allclose(other.mean, one.mean * a + b, rtol=1e-5)
    np.testing.assert_allclose(other.covariance, one.covariance * np.outer(a, a), rtol=1e-4)


@pytest.mark.parametrize(
    "structure", [{"covariance": "diagonal"}, {"correlation": [[1.0, 0.5], [0.5, 1.0]]}]
)
def test_structures(structure):
    X = heavy(200, 4.0, 7)
    fit = hs.fit(X, RULE, errors="t", random_state=0, **structure)
    free = hs.fit(X, RULE, errors="t", random_state=0)
    assert fit.log_likelihood.value < free.log_likelihood.value
    assert fit.parameters < free.parameters
    assert hs.likelihood_ratio_test(fit, free).p_value < 1.0


@pytest.fixture(scope="module")
def fit():
    return hs.fit(heavy(150, 3.0, 8), RULE, errors="t", names=["lead", "zinc"], random_state=0)


class TestWhatAFitCanDo:
    def test_it_is_told(self, fit):
        text = " ".join(fit.summary().split())
        assert "Multivariate t distribution" in text
        assert "location" in text
        told = json.loads(json.dumps(fit.to_dict(), allow_nan=False))
        assert told["tails"]["degrees"] == fit.degrees
        assert told["tails"]["learned"] is True

    def test_it_is_saved(self, fit, tmp_path):
        fit.save(tmp_path / "a.hsfit")
        again = hs.load(tmp_path / "a.hsfit")
        assert again.tails == fit.tails
        X = heavy(5, 3.0, 9)
        np.testing.assert_array_equal(again.impute(X), fit.impute(X))
        np.testing.assert_array_equal(again.score_rows(X), fit.score_rows(X))

    def test_filled_cells_are_where_they_can_be(self, fit):
        hidden = np.isnan(fit.source.X.values)
        assert (fit.impute()[hidden] < LIMIT).all()
        tables = fit.draw_imputations(m=2, random_state=0)
        assert (tables[:, hidden] < LIMIT).all()

    def test_simulated_tables_have_its_tails(self, fit):
        """Of distances δ/d ~ F(d, ν), whichever way they lie."""
        Y = fit.simulate(4000, hs.DetectionLimits(lower=-1e9), random_state=0) - fit.gaussian.mean
        square = np.einsum("ri,ij,rj->r", Y, np.linalg.inv(fit.gaussian.covariance), Y)
        assert stats.kstest(0.5 * square, stats.f(2, fit.degrees).cdf).pvalue > 1e-3

    @pytest.mark.parametrize("kind", ["rows", "parametric"])
    def test_refits_have_tails_too(self, fit, kind):
        found = list(refits(fit, 2, kind, 0))
        assert [one.tails.learned for one in found] == [True, True]
        # Half as many degrees of freedom, or twice as many: two standard errors of log ν.
        assert all(0.4 < one.degrees / fit.degrees < 2.5 for one in found)

    def test_what_it_cannot(self, fit):
        with pytest.raises(InputError, match="degrees of freedom were learned"):
            fit.profile("mean", 0)
        assert set(fit.confidence_interval().methods["mean"]) == {"wald"}
        with pytest.raises(InputError, match="robust standard errors are for Gaussian fits"):
            fit.robust_standard_errors()

    def test_the_original_scale(self):
        X = np.exp(heavy(200, 4.0, 10))
        fit = hs.fit(
            X,
            hs.DetectionLimits(lower=math.exp(LIMIT)),
            transforms="log",
            errors="t",
            random_state=0,
        )
        found = fit.original_scale(probabilities=(0.5, 0.95))
        np.testing.assert_allclose(found.median, np.exp(fit.mean))
        upper = stats.t(fit.degrees).ppf(0.95) * fit.gaussian.standard_deviations
        np.testing.assert_allclose(found.quantiles[:, 1], np.exp(fit.mean + upper))
        # exp of a t distribution has no mean.
        assert np.isnan(found.mean).all()
        assert "location" in fit.summary()
        with pytest.raises(InputError, match="draw_imputations"):
            fit.impute()
        assert (fit.draw_imputations(m=1, random_state=0) > 0.0).all()


def test_profiles_where_degrees_are_given():
    fit = hs.fit(heavy(40, 3.0, 11), RULE, errors="t", degrees_of_freedom=3, random_state=0)
    low, high = fit.confidence_interval(kind="profile").mean
    surface = fit.surface
    assert surface.rows.degrees == 3.0
    assert (low < fit.mean).all()
    assert (fit.mean < high).all()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"errors": "cauchy"}, 'errors must be "normal" or "t"; got'),
        ({"errors": None}, 'errors must be "normal" or "t"; got'),
        ({"degrees_of_freedom": 4}, "degrees_of_freedom= is for errors='t'"),
        ({"errors": "t", "degrees_of_freedom": 0.9}, "at least 1"),
        ({"errors": "t", "degrees_of_freedom": "many"}, "at least 1"),
        ({"errors": "t", "degrees_of_freedom": math.nan}, "at least 1"),
        ({"errors": "t", "degrees_of_freedom": True}, "at least 1"),
        ({"errors": "t", "covariance": "sparse"}, r"pulled towards something \(sparse\)"),
    ],
)
def test_bad_options(options, text):
    with pytest.raises(InputError, match=text):
        hs.fit(heavy(50, 3.0), RULE, **options)


def test_what_does_not_go_with_heavy_tails():
    X = np.exp(heavy(60, 3.0))
    rule = hs.DetectionLimits(lower=math.exp(LIMIT))
    with pytest.raises(InputError, match="power of column x0, x1 would be learned as if"):
        hs.fit(X, rule, transforms="boxcox", errors="t", random_state=0)
    with pytest.raises(InputError, match="loss= goes with normal errors"):
        hs.fit(heavy(60, 3.0), RULE, errors="t", loss=0.1, random_state=0)


def test_infinite_degrees_are_a_gaussian():
    X = heavy(50, 3.0)
    ref = hs.fit(X, RULE, random_state=0)
    comp = hs.fit(X, RULE, errors="t", degrees_of_freedom=math.inf, random_state=0)
    np.testing.assert_array_equal(comp.mean, ref.mean)


def test_too_few_rows():
    with pytest.raises(InputError, match="at least 2 rows for each column"):
        hs.fit(np.random.default_rng(0).normal(size=(7, 4)), errors="t")


def test_sets_on_both_sides_are_started_on_both():
    """Seen in a window far above the mean: the other side of the window is the lower top."""
    rule = hs.SelfCensoring(hs.between(1.0, 3.0))
    X = heavy(400, 5.0, 1, hs.Gaussian([0.0], [[1.0]]), rule)
    fit = hs.fit(X, rule, errors="t", random_state=0)
    given = hs.fit(X, rule, errors="t", degrees_of_freedom=fit.degrees, random_state=0)
    assert fit.log_likelihood.value == pytest.approx(given.log_likelihood.value, abs=0.01)
    mirrored = hs.Gaussian([4.0 - fit.mean[0]], fit.covariance)
    other = hs.fit(
        X, rule, errors="t", degrees_of_freedom=fit.degrees, start=mirrored, random_state=0
    )
    assert fit.log_likelihood.value > other.log_likelihood.value - 0.01


def test_checkpoints_of_other_tails_are_refused(tmp_path):
    X, place = heavy(60, 3.0), tmp_path / "run.hsckpt"
    options = {"random_state": 0, "checkpoint": place, "every": 0}
    ref = hs.fit(X, RULE, errors="t", **options)
    comp = hs.fit(X, RULE, errors="t", resume=True, **options)
    np.testing.assert_array_equal(comp.mean, ref.mean)
    assert comp.tails == ref.tails
    with pytest.raises(InputError, match="degrees_of_freedom"):
        hs.fit(X, RULE, errors="t", degrees_of_freedom=4, resume=True, **options)


def test_pieces_give_the_same_answer(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = heavy(200, 3.0, 12)
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "x.parquet")
    ref = hs.fit(X, RULE, names=["a", "b"], errors="t", degrees_of_freedom=3, random_state=0)
    comp = hs.fit(tmp_path / "x.parquet", RULE, errors="t", degrees_of_freedom=3, random_state=0)
    np.testing.assert_allclose(comp.mean, ref.mean, rtol=1e-9)
    assert comp.tails == ref.tails


def test_a_file_that_says_what_cannot_be(line, tmp_path):
    fit = hs.fit(line[0][:50], RULE, errors="t", degrees_of_freedom=3, random_state=0)
    odd = dataclasses.replace(fit, tails=hs.solvers.Tails(0.5))
    odd.save(tmp_path / "odd.hsfit")
    with pytest.raises(InputError, match="tails cannot be"):
        hs.load(tmp_path / "odd.hsfit")
