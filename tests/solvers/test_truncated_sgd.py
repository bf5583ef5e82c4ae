import warnings

import numpy as np
import pytest

import halfseen as hs
from tests import naive

TRUTH = hs.Gaussian([0.3, -0.5], [[1.0, 0.5], [0.5, 1.44]])


def test_one_dimension_reaches_the_exact_optimum():
    rule = hs.SelfCensoring(hs.at_least(-0.2))
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 6000, 0)
    x = X[~np.isnan(X)]
    oracle = hs.RowTruncation(lambda Y: Y[:, 0] >= -0.2)
    fit = hs.solvers.truncated_sgd(X, oracle, random_state=1)
    mu, sigma = naive.truncated_line_mle(x, [(-0.2, 60.0)])
    # The default accuracy is a fifth of the statistical error, in the metric of the information.
    information = _information(mu, sigma, x)
    gap = np.array([fit.mean[0] - mu, fit.gaussian.standard_deviations[0] - sigma])
    statistical = np.sqrt(2 / len(x))
    assert np.sqrt(gap @ information @ gap) < 3 * 0.2 * statistical


def _information(mu, sigma, x):
    """Observed information of (mu, sigma) per row, by differences of the truncated likelihood."""
    step = 1e-4

    def loss(m, s):
        mass = 1 - naive.cdf(-0.2, m, s)
        return (0.5 * ((x - m) / s) ** 2).mean() + np.log(s) + np.log(mass)

    points = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
    cross = sum(a * b * loss(mu + a * step, sigma + b * step) for a, b in points) / (4 * step**2)
    middle = loss(mu, sigma)
    one = (loss(mu + step, sigma) - 2 * middle + loss(mu - step, sigma)) / step**2
    two = (loss(mu, sigma + step) - 2 * middle + loss(mu, sigma - step)) / step**2
    return np.array([[one, cross], [cross, two]])


@pytest.mark.parametrize(
    "contains",
    [
        lambda Y: (Y**2).sum(axis=1) > 1,
        lambda Y: Y[:, 0] * Y[:, 1] > 0,
        lambda Y: np.sin(3 * Y[:, 0]) + np.cos(2 * Y[:, 1]) > 0,
    ],
    ids=["ring", "quadrants", "waves"],
)
def test_odd_sets_in_the_plane_are_learned(contains):
    rule = hs.RowTruncation(contains)
    X = hs.simulate(TRUTH, rule, 20_000, 3)
    fit = hs.fit(X, rule, random_state=0)
    seen = X[~np.isnan(X[:, 0])]
    naive_error = hs.metrics.relative_frobenius_error(np.cov(seen.T), TRUTH)
    error = hs.metrics.relative_frobenius_error(fit.covariance, TRUTH)
    # Truncation inflates the error over that of complete data, √(3·2/n) = 0.02, but not tenfold.
    assert error < 0.15
    assert error < naive_error
    assert hs.metrics.mahalanobis_error(fit.mean, TRUTH) < 0.1
    assert fit.status is hs.Status.CONVERGED


def test_four_dimensions_with_absent_rows():
    truth = hs.Gaussian(np.zeros(4), 0.5 * np.eye(4) + 0.5)
    rule = hs.RowTruncation(lambda Y: Y.max(axis=1) < 1.5)
    X = hs.simulate(truth, rule, 20_000, 5)
    X = X[~np.isnan(X[:, 0])]
    fit = hs.fit(X, rule, random_state=0)
    seen_error = hs.metrics.mahalanobis_error(X.mean(axis=0), truth)
    assert hs.metrics.mahalanobis_error(fit.mean, truth) < 0.25 * seen_error
    assert hs.metrics.relative_frobenius_error(fit.covariance, truth) < 0.15


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    rule = hs.RowTruncation(lambda Y: Y[:, 0] > 0)
    X = hs.simulate(TRUTH, rule, 2000, 0)
    first, second, other = (hs.fit(X, rule, random_state=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.covariance, second.covariance)
    assert (first.covariance != other.covariance).any()


def test_answer_moves_with_the_units_of_the_data():
    # Powers of two round nothing, so that not one proposal changes sides.
    scale, shift = np.array([1024.0, 2.0**-10]), np.zeros(2)
    rule = hs.RowTruncation(lambda Y: Y[:, 0] + Y[:, 1] > 0)
    moved = hs.RowTruncation(lambda Y: ((Y - shift) / scale).sum(axis=1) > 0)
    X = hs.simulate(TRUTH, rule, 3000, 0)
    ref = hs.fit(X, rule, random_state=0)
    comp = hs.fit(X * scale + shift, moved, random_state=0)
    np.testing.assert_allclose(comp.mean, ref.mean * scale, rtol=1e-12)
    np.testing.assert_allclose(comp.covariance, ref.covariance * np.outer(scale, scale), rtol=1e-12)


def test_sampled_rows_reach_the_same_optimum_with_more_noise():
    rule = hs.RowTruncation(lambda Y: Y[:, 0] > 0)
    X = hs.simulate(TRUTH, rule, 10_000, 0)
    whole = hs.fit(X, rule, random_state=0)
    sampled = hs.fit(X, rule, random_state=0, data_batch=400)
    assert np.abs(whole.covariance - sampled.covariance).max() < 0.15


def test_a_set_of_tiny_mass_ends_in_a_sentence():
    # The data fill the set, but Gaussians near their moments hardly ever hit it: it is far too thin.
    x = np.random.default_rng(0).normal(size=(500, 2))
    x[:, 1] = x[:, 0] + np.random.default_rng(1).choice([-1, 1], 500) * 1e-3
    allowed = np.unique(x[:, 0])
    rule = hs.RowTruncation(lambda Y: np.isin(Y[:, 0], allowed))
    with pytest.raises(hs.RarelyHitError, match="too rare to go on"):
        hs.fit(x, rule, random_state=0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": 0.0}, "alpha must lie"),
        ({"accuracy": 0.0}, "accuracy must be above 0"),
        ({"repeats": 0}, "repeats must be at least 1"),
        ({"data_batch": 0}, "data_batch must be"),
        ({"random_state": -1}, "random_state must be at least 0"),
        ({"random_state": "seed"}, "random_state must be a whole number"),
    ],
)
def test_bad_options_get_a_sentence(options, sentence):
    rule = hs.RowTruncation(lambda Y: Y[:, 0] > -9)
    with pytest.raises(hs.InputError, match=sentence):
        hs.solvers.truncated_sgd(TRUTH.sample(50, 0), rule, **options)


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "2 rows are seen whole in 2 columns"),
        (np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 5.0], [1.0, 4.0]]), "x0 is constant"),
        (np.arange(8.0).reshape(4, 2), "lie in a subspace"),
        (np.array([[1.0, np.inf], [1.0, 3.0], [2.0, 5.0]]), "row 0, column x1: the value is inf"),
    ],
)
def test_bad_data_get_a_sentence(X, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.fit(X, hs.RowTruncation(lambda Y: np.ones(len(Y), dtype=bool)))


def _hole(Y):
    return (Y**2).sum(axis=1) > 2


@pytest.fixture(scope="module")
def around_a_hole():
    X = hs.simulate(hs.Gaussian([0.0, 0.0], np.eye(2)), hs.RowTruncation(_hole), 6000, 0)
    return X, X[~np.isnan(X[:, 0])]


# P(χ² with 2 degrees of freedom > 2) = exp(−1).
HELD = float(np.exp(-1.0))


def _said(X, contains=_hole, **options):
    """Fit; return the fit, and what was said of how it was read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", hs.AssumptionWarning)
        fit = hs.fit(X, hs.RowTruncation(contains), random_state=0, **options)
    assert all(w.filename == __file__ for w in caught)
    return fit, [str(w.message) for w in caught]


def test_an_alpha_above_what_the_set_holds_is_named_with_it(around_a_hole):
    fit, said = _said(around_a_hole[1], alpha=0.6)
    assert fit.status is hs.Status.CONVERGED
    mass, error = fit.history["mass"], fit.history["mass"] * fit.history["mass_error"]
    assert abs(mass - HELD) < 4 * error
    assert len(said) == 1
    assert f"alpha is 0.6, but the set holds {mass:.2g} of" in said[0]
    # On another scale it is the same set, and is said as well.
    rows = np.exp(around_a_hole[1])
    scaled, said = _said(rows, lambda Y: _hole(np.log(Y)), alpha=0.6, transforms="log")
    assert scaled.history["mass"] == pytest.approx(mass, rel=1e-6)
    assert len(said) == 1


def test_a_true_alpha_is_not_complained_of(around_a_hole):
    whole, rows = around_a_hole
    for X, options in ((rows, {"alpha": HELD}), (rows, {}), (whole, {}), (whole, {"alpha": 0.2})):
        assert _said(X, **options)[1] == []
    # A little above: within four standard errors, or not.
    error = _said(rows)[0].history["mass_error"]
    mass = _said(rows)[0].history["mass"]
    assert _said(rows, alpha=mass * np.exp(3.9 * error))[1] == []
    assert len(_said(rows, alpha=mass * np.exp(4.1 * error))[1]) == 1


def test_absent_rows_are_noticed(around_a_hole):
    whole, rows = around_a_hole
    some = np.concatenate([rows, whole[np.isnan(whole[:, 0])][:500]])
    (said,) = _said(some)[1]
    assert f"alpha is {len(rows) / len(some):.2g}, the share of rows that are seen" in said
    assert "may be absent" in said


def test_the_error_of_the_mass_is_that_of_repeated_tables():
    # The standard deviation of 60 z-scores is 1 ± 1/√120; four of those.
    rule, truth = hs.RowTruncation(_hole), hs.Gaussian([0.0, 0.0], np.eye(2))
    scores = []
    for seed in range(60):
        fit = hs.fit(hs.simulate(truth, rule, 1000, seed), rule, repeats=1, random_state=0)
        scores.append(np.log(fit.history["mass"] / HELD) / fit.history["mass_error"])
    assert abs(np.std(scores) - 1.0) < 4 / np.sqrt(120)


def test_progress_is_shown_when_asked(monkeypatch):
    titles = []

    class Bar:
        def __init__(self, title, total, show):
            titles.append((title, show))

        def __enter__(self):
            return lambda total=None: None

        def __exit__(self, *exception):
            pass

    monkeypatch.setattr("halfseen.solvers.loop.progress_bar", Bar)
    rule = hs.RowTruncation(lambda Y: Y[:, 0] > -9)
    hs.fit(TRUTH.sample(200, 0), rule, random_state=0, progress=True)
    assert set(titles) == {("truncated_sgd", True)}
