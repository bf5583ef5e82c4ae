"""Intervals: exact where exact ones are known, and by profiles where the likelihood is lopsided."""

import itertools
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats
from scipy.special import log_ndtr

import halfseen as hs
from halfseen.errors import InputError
from halfseen.solvers.inference.confidence import parameter_of
from halfseen.solvers.inference.intervals import Fisher, Location, Product, Spread

LEVELS = (0.5, 0.95, 0.999)
LIMIT = 0.8


@pytest.fixture(scope="module")
def complete():
    """Twelve rows of which nothing is hidden."""
    Y = np.random.default_rng(0).normal(size=(12, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + [3.0, -1.0]
    return Y, hs.fit(Y, random_state=0)


@pytest.fixture(scope="module")
def one_sided():
    """A column of 30 rows of which a fifth is seen: (what is seen, how many are not, fit)."""
    rule = hs.DetectionLimits(lower=LIMIT)
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 30, 3)
    seen = X[~np.isnan(X)]
    return seen, 30 - seen.size, hs.fit(X, rule, names=["lead"], random_state=0)


@pytest.fixture(scope="module")
def pair():
    rule = hs.DetectionLimits(lower=[0.0, 0.3])
    X = hs.simulate(hs.Gaussian([0.5, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 40, 1)
    return hs.fit(X, rule, names=["lead", "zinc"], random_state=0)


def _reference_fall(seen, hidden, function, value, top):
    """Twice the fall of the profile of a function of (mean, log deviation) of one censored column."""

    def loss(p):
        deviation = np.exp(p[1])
        return -(
            stats.norm.logpdf(seen, p[0], deviation).sum()
            + hidden * log_ndtr((LIMIT - p[0]) / deviation)
        )

    if function is None:
        return optimize.minimize(loss, [0.0, 0.0], method="BFGS", tol=1e-10).fun
    held = {"type": "eq", "fun": lambda p: function(p[0], np.exp(p[1])) - value}
    found = optimize.minimize(
        loss, [0.0, 0.0], method="SLSQP", constraints=held, options={"ftol": 1e-12, "maxiter": 500}
    )
    return 2.0 * (found.fun - top)


# Nothing is hidden: exact intervals are known -----------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("kind", "rel"), [("wald", 1e-9), ("profile", 1e-3), ("auto", 1e-3)])
def test_complete_rows_have_the_intervals_of_textbooks(complete, level, kind, rel):
    # Ends are moved by the slope where the root is within 2 %: its square is left.
    Y, fit = complete
    n = len(Y)
    found = fit.confidence_interval(level, kind)
    ref = stats.t.interval(level, n - 1, Y.mean(axis=0), stats.sem(Y))
    np.testing.assert_allclose(found.mean, ref, rtol=rel, atol=rel)
    tails = stats.chi2.ppf([0.5 + level / 2, 0.5 - level / 2], n - 1)
    ref = np.sqrt((n - 1) * Y.var(axis=0, ddof=1) / tails[:, None])
    np.testing.assert_allclose(found.standard_deviation, ref, rtol=rel)
    z, width = np.arctanh(np.corrcoef(Y.T)[0, 1]), stats.norm.ppf(0.5 + level / 2) / np.sqrt(n - 3)
    ends = [end[0, 1] for end in found.correlation]
    np.testing.assert_allclose(ends, np.tanh([z - width, z + width]), atol=rel)
    np.testing.assert_allclose(np.diag(found.covariance.lower), found.standard_deviation.lower**2)


@pytest.mark.parametrize("family", [Location(), Spread(), Fisher(), Product()])
@pytest.mark.parametrize("level", LEVELS)
def test_many_rows_have_normal_quantiles(family, level):
    q = stats.norm.ppf(0.5 + level / 2)
    # Both go to q as 1/√n: 1e-3 at 1e7 rows, where an error of a deviation's logarithm is 1/√(2n).
    for rows in (1e7, 1e12):
        error = np.array([1.0 / np.sqrt(2 * rows if isinstance(family, Spread) else rows)])
        low, high = family.distances(error, np.array([rows]), level)
        np.testing.assert_allclose([-low[0] / error[0], high[0] / error[0]], q, rtol=2e-3)
        np.testing.assert_allclose(family.cutoffs(rows, level), q * q, rtol=4e-3)


@pytest.mark.parametrize("family", [Location(), Spread(), Fisher(), Product()])
def test_one_row_has_wide_intervals_and_no_nan(family):
    for rows in (0.0, 0.5, 1.0, 2.0, 3.0):
        ends = family.distances(np.array([1.0]), np.array([rows]), 0.95)
        assert np.isfinite(ends).all()
        assert np.isfinite(family.cutoffs(rows, 0.95)).all()


def test_what_is_known_has_an_interval_of_no_length():
    rule = hs.DetectionLimits(lower=0.0)
    X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 60)
    fit = hs.fit(X, rule, covariance=[[1.0, 0.6], [0.6, 1.0]], random_state=0)
    for kind in ("wald", "auto", "profile"):
        found = fit.confidence_interval(kind=kind)
        np.testing.assert_allclose(found.standard_deviation, 1.0)
        np.testing.assert_allclose([end[0, 1] for end in found.correlation], 0.6)
        assert (found.methods["standard_deviation"] == "known").all()
        assert (found.mean.lower < found.mean.upper).all()
    with pytest.raises(InputError, match="standard deviation of x0 is known"):
        fit.profile("standard_deviation", 0)


# Profiles against direct optimisation -------------------------------------------------------------


FUNCTIONS = {
    "mean": lambda mu, sigma: mu,
    "standard_deviation": lambda mu, sigma: np.log(sigma),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_profile_falls_as_direct_optimisation_says(one_sided, name):
    seen, hidden, fit = one_sided
    function = FUNCTIONS[name]
    top = _reference_fall(seen, hidden, None, None, 0.0)
    one = parameter_of(fit, name, (0,))
    mu, sigma = fit.mean[0], fit.gaussian.standard_deviations[0]
    at_top = function(mu, sigma)
    for move in (-1.0, -0.4, 0.3, 0.6):
        ref = _reference_fall(seen, hidden, function, at_top + move, top)
        comp = fit.surface.fall(fit.surface.moved(one.target, move / one.unit))
        # What is left to be gained when a climb stops is added: its square is 1e-4.
        assert comp == pytest.approx(ref, abs=1e-3)


def test_an_interval_ends_where_the_profile_has_fallen_to_its_cutoff(one_sided):
    seen, hidden, fit = one_sided
    top = _reference_fall(seen, hidden, None, None, 0.0)
    found = fit.confidence_interval(kind="profile")
    for name, log in (("mean", False), ("standard_deviation", True)):
        one = parameter_of(fit, name, (0,))
        cutoffs = one.numbers.family.cutoffs(30.0, 0.95)
        for end, cutoff in zip(getattr(found, name), cutoffs, strict=True):
            value = np.log(end[0]) if log else end[0]
            fall = _reference_fall(seen, hidden, FUNCTIONS[name], value, top)
            # Ends are taken where the root is within 2 %, and moved by the slope there.
            assert fall == pytest.approx(cutoff, rel=2e-3)


def test_auto_takes_the_profile_where_it_is_lopsided(one_sided):
    _, _, fit = one_sided
    found, wald = fit.confidence_interval(), fit.confidence_interval(kind="wald")
    assert found.methods["mean"].tolist() == ["profile"]
    assert wald.methods["mean"].tolist() == ["wald"]
    down, up = fit.mean[0] - found.mean.lower[0], found.mean.upper[0] - fit.mean[0]
    assert down > 2.0 * up
    assert wald.mean.upper[0] - fit.mean[0] == pytest.approx(fit.mean[0] - wald.mean.lower[0])
    assert found.mean == fit.confidence_interval(kind="profile").mean


def test_auto_takes_standard_errors_where_much_is_known():
    rule = hs.DetectionLimits(lower=-1.0)
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 2000)
    fit = hs.fit(X, rule, random_state=0)
    found, wald = fit.confidence_interval(), fit.confidence_interval(kind="wald")
    assert found.methods["mean"].tolist() == ["wald"]
    assert "surface" not in vars(fit)  # which nobody asked
    np.testing.assert_array_equal(found.mean, wald.mean)


def test_two_columns_against_direct_optimisation(pair):
    """The profile of a correlation, with exact rectangle probabilities."""
    problem = pair.surface.rows.problem
    Y, hidden = problem.Y, problem.hidden
    limits = (np.array([0.0, 0.3]) - problem.centre) / problem.scale

    def loss(p):
        mean, deviations, rho = p[:2], np.exp(p[2:4]), np.tanh(p[4])
        S = np.outer(deviations, deviations) * [[1.0, rho], [rho, 1.0]]
        total = 0.0
        for y, h in zip(Y, hidden, strict=True):
            if not h.any():
                total += stats.multivariate_normal.logpdf(y, mean, S)
            elif h.all():
                total += np.log(stats.multivariate_normal.cdf(limits, mean, S))
            else:
                i, j = (0, 1) if h[0] else (1, 0)
                slope = S[i, j] / S[j, j]
                spread = np.sqrt(S[i, i] - slope * S[i, j])
                total += stats.norm.logpdf(y[j], mean[j], deviations[j])
                total += log_ndtr((limits[i] - mean[i] - slope * (y[j] - mean[j])) / spread)
        return -total

    start = np.array([0.0, 0.0, 0.0, 0.0, np.arctanh(pair.correlation[0, 1])])
    top = optimize.minimize(loss, start, method="BFGS")
    one = parameter_of(pair, "correlation", (1, 0))
    for move in (-0.5, 0.4):
        held = optimize.minimize(
            lambda p, z=top.x[4] + move: loss(np.append(p, z)), top.x[:4], method="BFGS"
        )
        comp = pair.surface.fall(pair.surface.moved(one.target, move))
        # Gradients of the reference are differences: 1e-5 of a unit each.
        assert comp == pytest.approx(2.0 * (held.fun - top.fun), abs=2e-3)


@pytest.mark.parametrize(
    "options", [{"covariance": "diagonal"}, {"correlation": [[1, 0.6], [0.6, 1]]}]
)
def test_structures_have_profiles_of_their_own(options):
    rule = hs.DetectionLimits(lower=[0.0, 0.3])
    X = hs.simulate(hs.Gaussian([0.5, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 40, 1)
    fit = hs.fit(X, rule, random_state=0, **options)
    found, wald = fit.confidence_interval(kind="profile"), fit.confidence_interval(kind="wald")
    correlation = fit.correlation[0, 1]
    for comp, ref in zip(found.correlation, wald.correlation, strict=True):
        assert comp[0, 1] == ref[0, 1] == pytest.approx(correlation)
    # The place where a mean is held has the structure, and no other place of it is likelier.
    one = parameter_of(fit, "mean", (0,))
    x = fit.surface.top[0]
    place = fit.surface.peak(one.target, 0.3, x, [])
    mean, covariance = fit.surface.coordinates.place(place.x)
    assert mean[0] == pytest.approx(0.3, abs=1e-3)
    found = covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])
    assert found == pytest.approx(correlation, abs=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        nearby = place.x + 0.05 * rng.normal(size=place.x.size)
        moved = fit.surface.peak(one.target, 0.3, nearby, [])
        assert moved.value <= place.value + 1e-3


@pytest.mark.parametrize(
    "options",
    [{}, {"covariance": "diagonal"}, {"correlation": [[1, 0.6], [0.6, 1]]}, {"mean": [0.4, 0.6]}],
    ids=["free", "diagonal", "scales", "known mean"],
)
def test_derivatives_in_the_coordinates(options):
    """Scores and slopes of targets against central differences."""
    rule = hs.DetectionLimits(lower=[0.0, 0.3])
    X = hs.simulate(hs.Gaussian([0.5, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 40, 1)
    pair = hs.fit(X, rule, random_state=0, **options)
    surface = pair.surface
    rng = np.random.default_rng(1)
    x = 0.3 * rng.normal(size=len(surface.inverse))
    names = itertools.product(("mean", "standard_deviation"), [(0,), (1,)])
    places = [*names, ("correlation", (1, 0)), ("covariance", (1, 0))]
    for name, place in places:
        target = parameter_of(pair, name, place).target
        here = surface.ask(x, target)
        for k in range(x.size):
            ends = []
            for sign in (1.0, -1.0):
                moved = x.copy()
                moved[k] += sign * 1e-5
                ends.append(surface.ask(moved, target))
            score = (ends[0].value - ends[1].value) / 2e-5
            slope = (ends[0].target - ends[1].target) / 2e-5
            assert here.score[k] == pytest.approx(score, abs=1e-4)
            assert here.normal[k] == pytest.approx(slope, abs=1e-7)


# Functions ----------------------------------------------------------------------------------------


def test_a_function_that_is_a_parameter_has_its_profile(pair):
    low, high = pair.confidence_interval(kind="profile", of=lambda mean, S: S[0, 1])
    ref = pair.confidence_interval(kind="profile").covariance
    # Its slopes are differences.
    assert low == pytest.approx(ref.lower[0, 1], abs=1e-4)
    assert high == pytest.approx(ref.upper[0, 1], abs=1e-4)


def test_functions_of_any_shape(pair):
    both = pair.confidence_interval(of=lambda mean, S: [mean[0] - mean[1], mean.sum()])
    assert both.lower.shape == both.upper.shape == (2,)
    assert (both.lower < both.upper).all()
    constant = pair.confidence_interval(of=lambda mean, S: 3.0)
    assert constant == (3.0, 3.0)


@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_an_interval_may_have_no_end():
    """Two columns that are never seen together: nothing is known of their correlation."""
    Y = np.random.default_rng(0).normal(size=(60, 2))
    Y[:30, 0] = Y[30:, 1] = np.nan
    fit = hs.fit(Y, random_state=0)
    found = fit.confidence_interval()
    assert [end[0, 1] for end in found.correlation] == [-1.0, 1.0]
    # Those of the 30 rows that each was seen in.
    ref = stats.t.interval(0.95, 29, np.nanmean(Y, axis=0), stats.sem(Y, nan_policy="omit"))
    np.testing.assert_allclose(found.mean, ref, rtol=1e-6)
    # No covariance is larger than the product of the deviations.
    upper = found.covariance.upper[0, 1]
    assert 0.5 < upper < found.standard_deviation.upper.prod()


# What is asked for, and what comes back -------------------------------------------------------------


def test_labels(pair):
    rule = hs.DetectionLimits(lower=[0.0, 0.3])
    frame = pd.DataFrame(pair.source.X.values, columns=["lead", "zinc"])
    found = hs.fit(frame, rule, random_state=0).confidence_interval()
    assert found.mean.lower["lead"] == pair.confidence_interval().mean.lower[0]
    assert found.methods["mean"].shape == (2,)
    assert isinstance(found.without_labels().mean.lower, np.ndarray)


def test_intervals_are_made_once(pair):
    assert pair.confidence_interval(0.9) is pair.confidence_interval(0.9)
    first = pair.confidence_interval(0.9).mean
    asked = pair.surface.questions
    assert pair.confidence_interval(0.9).mean is not None
    assert pair.surface.questions == asked
    assert first == pair.confidence_interval(0.9).mean
    assert repr(pair.confidence_interval(0.9)) == "Intervals(level=0.9, kind='auto')"


def test_a_profile_of_sampled_rows_goes_to_both_sides():
    # Scores of sampled rows promise gains that are not there: a climb that followed them used up all
    # questions on one side of the top.
    truth = hs.Gaussian(np.zeros(6), 0.5 + 0.5 * np.eye(6))
    rule = hs.DetectionLimits(lower=0.0)
    fit = hs.fit(hs.simulate(truth, rule, 150, random_state=1), rule, random_state=0)
    profile = fit.profile("mean", 0)
    low, high = profile.interval
    assert profile.at[0] < low < profile.estimate < high < profile.at[-1]
    # Twelve places on either side, and some on the way to the ends: none takes more than all shorter
    # steps, twice, and a few that lead up.
    assert fit.surface.questions < 2 * 20 * 20


def test_a_profile_to_look_at(one_sided):
    _, _, fit = one_sided
    found = fit.profile("mean", "lead", level=0.9)
    assert found.name == "mean of lead"
    assert found.estimate == pytest.approx(fit.mean[0], abs=1e-6)
    assert (np.diff(found.at) > 0.0).all()
    assert found.log_likelihood.max() == 0.0
    top = int(found.log_likelihood.argmax())
    assert (np.diff(found.log_likelihood[: top + 1]) > 0.0).all()
    assert (np.diff(found.log_likelihood[top:]) < 0.0).all()
    low, high = found.interval
    falls = np.interp([low, high], found.at, found.log_likelihood)
    # Straight lines between places: the curve is above them by up to an eighth of their square.
    np.testing.assert_allclose(-falls, found.cutoffs, atol=0.05)
    error = float(fit.standard_errors.mean[0])
    np.testing.assert_allclose(found.by_error, -0.5 * ((found.at - found.estimate) / error) ** 2)
    limits = fit.confidence_interval(0.9, "profile").mean
    assert low == pytest.approx(limits.lower[0])
    assert high == pytest.approx(limits.upper[0])
    same = fit.profile(lambda mean, covariance: mean[0], level=0.9)
    assert same.estimate == pytest.approx(found.estimate)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda fit: fit.confidence_interval(kind="exact"),
            "kind must be one of auto, wald, profile",
        ),
        (lambda fit: fit.confidence_interval(kind=None), "kind must be one of"),
        (lambda fit: fit.confidence_interval(of="mean"), "of must be a function"),
        (lambda fit: fit.profile("median", 0), "of must be one of mean"),
        (lambda fit: fit.profile("mean"), "needs 1 column, such as"),
        (lambda fit: fit.profile("correlation", "lead"), "needs 2 columns, such as"),
        (lambda fit: fit.profile("correlation", "lead", 0), "two different columns"),
        (lambda fit: fit.profile("mean", "tin"), "no column 'tin'; the columns are lead, zinc"),
        (lambda fit: fit.profile("mean", 2), "a position below 2; got 2"),
        (lambda fit: fit.profile(lambda mean, S: mean), "of one number; the function returns 2"),
        (lambda fit: fit.profile(lambda mean, S: 1.0, 0), "says itself what it is of"),
    ],
)
def test_mistakes(pair, ask, says):
    with pytest.raises(InputError, match=says):
        ask(pair)


def test_a_fit_without_its_table_has_intervals_from_standard_errors(pair, tmp_path):
    pair.save(tmp_path / "pair.hsfit")
    back = hs.load(tmp_path / "pair.hsfit")
    np.testing.assert_array_equal(
        back.confidence_interval().mean, pair.confidence_interval(kind="wald").mean
    )
    assert (back.confidence_interval().methods["mean"] == "wald").all()
    with pytest.raises(
        InputError, match=r'kind="profile" cannot be had: the fit does not hold its'
    ):
        back.confidence_interval(kind="profile")
    with pytest.raises(InputError, match="does not hold its table"):
        back.profile("mean", 0)


# What cannot be followed, and tables on which profiles are of no use -----------------------------


def test_functions_that_are_not_smooth(pair):
    stepped = {"of": lambda mean, S: np.round(mean[0] * 5e3) / 5e3}
    low, high = pair.confidence_interval(**stepped)  # from standard errors
    assert low < pair.mean[0] < high
    with pytest.raises(InputError, match="not a smooth function"):
        pair.confidence_interval(kind="profile", **stepped)
    with pytest.raises(InputError, match="cannot be followed: it is not a smooth function"):
        pair.profile(stepped["of"])


def test_functions_that_are_not_known_everywhere():
    """A logarithm of a mean that may be negative, and one whose shape changes."""
    rule = hs.DetectionLimits(lower=0.0)
    X = hs.simulate(hs.Gaussian([0.6], [[1.0]]), rule, 25, 4)
    fit = hs.fit(X, rule, random_state=0)
    assert fit.mean[0] > 0.0
    low, high = fit.confidence_interval(of=lambda mean, S: math.log(mean[0]))
    assert low < math.log(fit.mean[0]) < high
    above = float(fit.mean[0]) - 0.05
    low, high = fit.confidence_interval(of=lambda mean, S: mean[mean > above])
    assert np.isfinite([low, high]).all()


@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_a_singular_correlation_that_is_known():
    r, rng = 1.0 - 1e-7, np.random.default_rng(0)
    Z = rng.normal(size=(30, 1)) @ np.ones((1, 2)) + 1e-5 * rng.normal(size=(30, 2))
    fit = hs.fit(Z, correlation=[[1.0, r], [r, 1.0]], random_state=0)
    assert (fit.confidence_interval().methods["mean"] == "wald").all()
    assert fit.to_dict()["intervals"]["mean"]["method"] == ["wald"]


def test_nothing_is_free():
    X = np.random.default_rng(0).normal(size=(20, 1))
    fit = hs.fit(X, mean=[0.0], covariance=[[1.0]], random_state=0)
    assert fit.confidence_interval().methods["mean"].tolist() == ["known"]
    with pytest.raises(InputError, match="every parameter is known"):
        fit.profile("mean", 0)
    with pytest.raises(InputError, match="every parameter is known"):
        fit.robust_standard_errors()


def test_auto_looks_at_means_where_the_covariance_is_known():
    """60 rows, 7 % seen: the mean is known as from 17 complete rows, the variance without error."""
    rule = hs.DetectionLimits(lower=2.0)
    X = hs.simulate(hs.Gaussian([0.5], [[1.0]]), rule, 60, 0)
    fit = hs.fit(X, rule, covariance=[[1.0]], random_state=0)
    found, wald = fit.confidence_interval(), fit.confidence_interval(kind="wald")
    assert found.methods["mean"].tolist() == ["profile"]
    assert found.mean.upper[0] - fit.mean[0] < wald.mean.upper[0] - fit.mean[0]


@pytest.mark.parametrize("n", [60, 100, 400])
@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_columns_that_are_never_seen_together(n):
    Y = np.random.default_rng(n).normal(size=(n, 2))
    Y[: n // 2, 0] = Y[n // 2 :, 1] = np.nan
    fit = hs.fit(Y, random_state=0)
    for kind in ("auto", "profile"):
        found = fit.confidence_interval(kind=kind)
        np.testing.assert_allclose([end[0, 1] for end in found.correlation], [-1.0, 1.0], atol=1e-6)
        widest = found.standard_deviation.upper.prod()
        assert 0.5 * widest < found.covariance.upper[0, 1] < 1.5 * widest
    # From the standard error alone: nothing is known either.
    wald = fit.confidence_interval(kind="wald").correlation
    assert wald.upper[0, 1] > 0.999999


def test_answers_cannot_be_changed_by_accident(pair):
    with pytest.raises(ValueError, match="read-only"):
        pair.confidence_interval().mean.lower[0] = -999.0


def test_intervals_can_be_pickled(pair):
    for found in (pair.standard_errors.intervals(0.9), pair.confidence_interval(0.9)):
        back = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(back.mean, found.mean)


# How often they hold --------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_intervals_of_small_tables_hold_what_they_promise():
    """A mean of which 80 % is hidden, 30 rows, 120 tables.

    Intervals from standard errors with normal quantiles hold 0.86 of the means. 0.95 has a standard
    error of 0.02 in 120 tables; three of them, up to all.
    """
    rule = hs.DetectionLimits(lower=float(stats.norm.ppf(0.8)))
    held, plain = [], []
    for seed in range(120):
        X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 30, seed)
        try:
            fit = hs.fit(X, rule, random_state=0, n_jobs=1)
        except hs.NotIdentifiedError:
            continue
        found = fit.confidence_interval().mean
        held.append(found.lower[0] <= 0.0 <= found.upper[0])
        plain.append(abs(fit.mean[0]) < 1.96 * fit.standard_errors.mean[0])
    assert len(held) > 110
    assert np.mean(held) > 0.95 - 0.06
    assert np.mean(plain) < np.mean(held) - 0.04


@pytest.fixture(scope="module")
def mirrored_fit():
    """A table that is the same with any sign turned: correlations of either sign are as likely."""
    rng = np.random.default_rng(2)
    Z = rng.standard_normal((80, 2)) @ np.linalg.cholesky([[1.0, 0.7], [0.7, 1.0]]).T
    X = np.where(np.abs(Z) < 0.7, Z, np.nan)
    both = np.isfinite(X).all(axis=1)
    X = np.vstack([X[~both][:10], X[both][:6]])
    X = np.vstack([X * [a, b] for a in (1, -1) for b in (1, -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(X, hs.SelfCensoring(hs.Interval(-0.7, 0.7)), random_state=0)


class TestSeveralTops:
    def test_an_interval_goes_around_all_of_them(self, mirrored_fit):
        fit = mirrored_fit
        (other,) = fit.history["other_tops"]
        here, there = fit.gaussian.correlation[1, 0], other.correlation[1, 0]
        assert abs(here) > 0.5
        assert there == pytest.approx(-here, abs=0.01)
        intervals = fit.confidence_interval()
        low, high = intervals.correlation.lower[1, 0], intervals.correlation.upper[1, 0]
        assert intervals.methods["correlation"][1, 0] == "profile"
        # Ends are found where the root of twice the fall is within 2 % of what was asked for, and then
        # moved by the slope: 0.005 is a tenth of a standard error.
        assert low == pytest.approx(-high, abs=0.005)
        assert high > abs(here)

    def test_a_profile_that_is_shown_has_both(self, mirrored_fit):
        profile = mirrored_fit.profile("correlation", 1, 0)
        fall = profile.log_likelihood
        assert np.sign(profile.at).min() < 0 < np.sign(profile.at).max()
        for side in (-1, 1):
            there = np.sign(profile.at) == side
            # A top on each side, as high as the other up to the distance of the places that are shown.
            assert fall[there].max() > -0.5
        assert profile.interval.lower == pytest.approx(-profile.interval.upper, abs=0.005)
