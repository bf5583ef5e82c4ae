import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtri

import halfseen as hs
from halfseen.ledger.designs import Problem, decaying, random_thresholds
from halfseen.ledger.likelihood import hessian
from halfseen.ledger.linear_thresholds import one_threshold
from halfseen.samplers import Gibbs, ProjectedLangevin, Rejection
from tests import naive

SIGMA = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
MEAN = np.array([0.2, -0.1, 0.4])
# How many coordinates are hidden in the row, and the rule and row that hide them.
CASES = {
    1: (
        hs.LinearThreshold.anchored([0, 1], [[0.5, 0.0, 1.0]], [0.3]),
        np.array([0.4, -0.3, np.nan]),
    ),
    2: (
        hs.LinearThreshold.anchored([0], [[0.3, 1.0, 0.2], [0.0, -0.4, 1.0]], [0.1, 0.2]),
        np.array([0.4, np.nan, np.nan]),
    ),
    3: (
        hs.LinearThreshold([[1.0, 0.2, 0.0], [0.3, 1.0, 0.0], [0.0, -0.5, 1.0]], [-0.2, -0.3, 0.1]),
        np.array([np.nan, np.nan, np.nan]),
    ),
}


def _exact_gradient(rule, row, mean):
    """−Σ⁻¹(E[y | row] − μ), by plain rejection with a standard error."""
    hidden = np.isnan(row)
    g = hs.Gaussian(mean, SIGMA)
    if hidden.all():
        m, S = mean, SIGMA
    else:
        conditional = g.condition(np.flatnonzero(~hidden), row[~hidden])
        m, S = conditional.mean, conditional.covariance

    def inside(Z):
        Y = np.tile(row, (len(Z), 1))
        Y[:, hidden] = Z
        return (rule.seen(Y) == ~hidden).all(axis=1)

    draws = naive.truncated_draws(m, S, inside, 200_000)
    y = np.tile(row, (len(draws), 1))
    y[:, hidden] = draws
    values = -(y - mean) @ g.precision
    return values.mean(axis=0), values.std(axis=0) / np.sqrt(len(values))


@pytest.mark.parametrize("size", CASES)
@pytest.mark.parametrize(
    ("sampler", "bias"),
    [(ProjectedLangevin(0.002, 5000), 0.05), (Gibbs(), 0.0), (Rejection(), 0.0)],
    ids=["langevin", "gibbs", "rejection"],
)
def test_sample_gradient_matches_the_exact_conditional_mean(size, sampler, bias):
    rule, row = CASES[size]
    ref, ref_error = _exact_gradient(rule, row, MEAN)
    draws = hs.solvers.sample_gradient(
        row, MEAN, SIGMA, rule, draws=1500, sampler=sampler, random_state=1
    )
    error = np.sqrt(ref_error**2 + draws.var(axis=0) / len(draws))
    assert (np.abs(draws.mean(axis=0) - ref) < 4.5 * error + bias).all()


@pytest.mark.parametrize("size", CASES)
def test_the_printed_drift_does_not_match(size):
    rule, row = CASES[size]
    ref, _ = _exact_gradient(rule, row, MEAN)
    draws = hs.solvers.sample_gradient(
        row,
        MEAN,
        SIGMA,
        rule,
        draws=1500,
        sampler=ProjectedLangevin(0.002, 5000, drift=1.0),
        random_state=1,
    )
    error = draws.std(axis=0) / np.sqrt(len(draws))
    # With η for η/2 the hidden part is drawn from a narrower law: off by far more than noise and bias.
    assert np.abs((draws.mean(axis=0) - ref) / (4.5 * error + 0.05)).max() > 1


def test_a_row_with_nothing_hidden_has_the_complete_gradient():
    rule = CASES[1][0]
    row = np.array([-2.0, 0.3, 0.1])
    comp = hs.solvers.sample_gradient(row, MEAN, SIGMA, rule, random_state=0)
    np.testing.assert_allclose(comp[0], -np.linalg.solve(SIGMA, row - MEAN), rtol=1e-10)


def _small_problem():
    truth = hs.Gaussian(MEAN, SIGMA)
    return truth, CASES[2][0]


def test_the_population_gradient_is_zero_at_the_truth():
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 3000, 0)
    total = np.array(
        [
            hs.solvers.sample_gradient(
                row, MEAN, SIGMA, rule, sampler=Gibbs(), random_state=k
            ).mean(axis=0)
            for k, row in enumerate(X)
        ]
    )
    error = total.std(axis=0) / np.sqrt(len(total))
    assert (np.abs(total.mean(axis=0)) < 4.5 * error).all()
    away = MEAN + np.array([0.5, 0.0, 0.0])
    moved = np.mean(
        [
            hs.solvers.sample_gradient(row, away, SIGMA, rule, sampler=Gibbs(), random_state=k)[0]
            for k, row in enumerate(X[:1000])
        ],
        axis=0,
    )
    # Convexity: the gradient points back towards the truth.
    assert moved @ (away - MEAN) > 0


def test_the_hessian_is_at_least_the_papers_bound():
    # ∇²ℓ = Σ⁻¹ − Σ⁻¹ E[Cov(y | A, x)] Σ⁻¹, at the truth and away from it.
    truth, rule = _small_problem()
    rng = np.random.default_rng(1)
    X = hs.simulate(truth, rule, 400, 2)
    found = hs.diagnose(X, rule, covariance=SIGMA)
    for mean in (MEAN, MEAN + 0.7 * rng.normal(size=3)):
        spread = np.zeros((3, 3))
        for k, row in enumerate(X):
            if not np.isnan(row).any():
                continue
            draws = hs.solvers.sample_gradient(
                row, mean, SIGMA, rule, draws=30, sampler=Gibbs(), random_state=k
            )
            # The gradient is −Σ⁻¹(y − μ), so its covariance is the second term.
            spread += np.cov(draws.T)
        hessian = np.linalg.inv(SIGMA) - spread / len(X)
        assert np.linalg.eigvalsh(hessian)[0] > found.strong_convexity


def test_the_remarks_counterexample_is_not_convex():
    # S = [2, 4] hides everything else; the censored likelihood in mu has negative curvature somewhere.
    inside = stats.norm.cdf(4) - stats.norm.cdf(2)

    def loss(mu):
        seen = integrate.quad(
            lambda y: stats.norm.pdf(y) * -stats.norm.logpdf(y, mu), 2, 4, epsabs=1e-12
        )[0]
        mass = stats.norm.cdf(4, mu) - stats.norm.cdf(2, mu)
        return seen - (1 - inside) * np.log1p(-mass)

    grid = np.arange(-1, 7, 0.05)
    values = np.array([loss(mu) for mu in grid])
    assert np.diff(values, 2).min() < -1e-5
    # And yet the truth is its global minimum.
    assert grid[np.argmin(values)] == pytest.approx(0.0, abs=0.051)


def _ten(seed=3):
    rng = np.random.default_rng(seed)
    truth = hs.Gaussian(
        rng.normal(size=10), 0.5 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    )
    V = rng.normal(size=(7, 10))
    spread = np.sqrt(np.einsum("ij,jk,ik->i", V, truth.covariance, V))
    return truth, hs.LinearThreshold.anchored(range(3), V, V @ truth.mean + spread * ndtri(0.6))


def test_ten_columns_with_three_anchors():
    truth, rule = _ten()
    found = []
    for seed in range(4):
        X, Y = hs.simulate(truth, rule, 4000, seed, return_complete=True)
        fit = hs.fit(X, rule, "missing_descent", covariance=truth.covariance, random_state=seed)
        found.append(
            [
                hs.metrics.mahalanobis_error(m, truth)
                for m in (fit.mean, Y.mean(axis=0), np.nanmean(X, axis=0))
            ]
        )
        assert fit.method == "missing_descent"
        assert fit.status is hs.Status.CONVERGED
        assert fit.history["iterates"].shape[1] == 10
        expected = fit.history["defaults"].alpha * 0.1 / np.linalg.eigvalsh(truth.covariance)[-1]
        assert fit.history["strong_convexity"] == pytest.approx(expected)
    error, complete, available = np.mean(found, axis=0)
    # The information allows 1.1 times complete data in this design; four tables are known to 0.1 of it.
    assert error < 1.25 * complete
    assert available > 1.0


def test_the_listing_makes_a_step_of_each_row():
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 500, 0)
    fit = hs.fit(
        X, rule, "missing_descent", covariance=SIGMA, random_state=0, sampler=Gibbs(), form="paper"
    )
    assert fit.history["form"] == "paper"
    iterates = fit.history["iterates"]
    assert iterates.shape == (500, 3)
    np.testing.assert_allclose(fit.mean, iterates.mean(axis=0))


@pytest.mark.parametrize("seed", range(3))
def test_chains_that_go_on_end_at_the_likeliest_mean(seed):
    truth, rule = _ten(11 + seed)
    X = hs.simulate(truth, rule, 3000, seed)
    known = {"covariance": truth.covariance, "random_state": seed}
    comp, ref = hs.fit(X, rule, "missing_descent", **known), hs.fit(X, rule, "full", **known)
    gaps = np.abs(comp.mean - ref.mean) / ref.standard_errors.mean
    # Draws add a twentieth to the variance, 0.22 standard errors, as full may its tenth: 4 of these.
    assert gaps.max() < 4 * np.hypot(0.22, 0.1)
    assert comp.status is hs.Status.CONVERGED


def test_the_error_is_that_of_the_information_with_many_rows():
    # One column hidden in half of the rows: Langevin draws at their defaults stay 0.014 off.
    truth, rule = one_threshold()
    n, tables = 20_000, 12
    H = hessian(Problem(truth, rule), truth.mean)
    means = np.array(
        [
            hs.solvers.missing_descent(
                hs.simulate(truth, rule, n, seed), rule, truth.covariance, random_state=seed
            ).mean
            for seed in range(tables)
        ]
    )
    error = np.sqrt(np.diag(np.linalg.inv(H)) / n)
    assert (np.abs(means.mean(axis=0) - truth.mean) < 4.5 * error * np.sqrt(1.05 / tables)).all()
    # The sum of squares in units of the limit is χ² with 24 degrees of freedom, by draws 1.05 of it.
    gaps = (means - truth.mean) @ np.linalg.cholesky(H) * np.sqrt(n)
    assert (gaps**2).sum() < 1.05 * stats.chi2.ppf(0.9999, 2 * tables)


@pytest.mark.parametrize("hidden", [0.6, 0.9])
def test_rounds_go_on_until_draws_are_not_heard(hidden):
    problem = _mostly_hidden(hidden)
    X = hs.simulate(*problem, 2000, 1)
    known = {"covariance": problem.truth.covariance, "random_state": 1}
    comp, ref = (
        hs.fit(X, problem.rule, "missing_descent", **known),
        hs.fit(X, problem.rule, **known),
    )
    rounds = len(comp.history["iterates"]) // 20
    assert rounds == 10 if hidden < 0.7 else rounds > 15
    gaps = np.abs(comp.mean - ref.mean) / ref.standard_errors.mean
    assert gaps.max() < 4 * np.hypot(0.22, 0.1)


def _mostly_hidden(share):
    truth = decaying(6, mean=np.random.default_rng(3).normal(size=6))
    return Problem(truth, random_thresholds(truth, 2, share, 4))


def test_short_chains_do_not_forget_their_start():
    truth, rule = _ten()
    X = hs.simulate(truth, rule, 2000, 0)
    short, long = (
        hs.fit(
            X,
            rule,
            "missing_descent",
            covariance=truth.covariance,
            random_state=0,
            sampler=ProjectedLangevin(steps=steps),
            form="paper",
        )
        for steps in (25, 500)
    )
    errors = [hs.metrics.mahalanobis_error(f.mean, truth) for f in (short, long)]
    assert errors[0] > 3 * errors[1]


def test_the_larger_of_two_outcomes():
    truth = hs.Gaussian([0.0, 0.3], [[1.0, 0.2], [0.2, 1.0]])
    rule = hs.LinearThreshold.larger_of(0, 1, 2)
    errors = []
    for n in (400, 8000):
        runs = []
        for seed in range(5):
            X = hs.simulate(truth, rule, n, seed)
            fit = hs.fit(X, rule, "missing_descent", covariance=truth.covariance, random_state=seed)
            runs.append(hs.metrics.mahalanobis_error(fit.mean, truth))
        errors.append(np.mean(runs))
    assert errors[1] < 0.5 * errors[0]
    assert np.abs(np.nanmean(X, axis=0) - truth.mean).max() > 0.5


@pytest.mark.parametrize("form", ["persistent", "paper"])
def test_batches_threads_and_seeds(form):
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 600, 0)
    common = {"covariance": SIGMA, "random_state": 5, "batch_size": 8, "passes": 6, "form": form}
    one, two = (hs.fit(X, rule, "missing_descent", n_jobs=jobs, **common) for jobs in (1, 2))
    np.testing.assert_array_equal(one.mean, two.mean)
    assert len(one.history["iterates"]) == 3600 // 8
    other = hs.fit(X, rule, "missing_descent", **{**common, "random_state": 6})
    assert (other.mean != one.mean).any()
    options = {"average": "suffix"} if form == "paper" else {}
    suffix = hs.fit(X, rule, "missing_descent", **options, **common)
    iterates = suffix.history["iterates"]
    np.testing.assert_allclose(suffix.mean, iterates[len(iterates) // 2 :].mean(axis=0))


def test_large_batches_are_cut_for_threads():
    truth, rule = _ten()
    X = hs.simulate(truth, rule, 20_000, 0)
    common = {"covariance": truth.covariance, "random_state": 5, "passes": 4}
    one, two = (hs.fit(X, rule, "missing_descent", n_jobs=jobs, **common) for jobs in (1, 2))
    np.testing.assert_array_equal(one.mean, two.mean)


def test_initialize_averages_complete_blocks():
    X = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, 5.0], [5.0, 6.0, 7.0]])
    np.testing.assert_allclose(hs.solvers.initialize(X), [3.0, 4.0, 6.0])
    np.testing.assert_allclose(hs.solvers.initialize(X, beta=2 / 3), [3.0, 4.0, 6.0])
    np.testing.assert_allclose(hs.solvers.initialize(X, rows=1 + 1), [2.0, 2.0, 5.0])
    with pytest.raises(hs.NotIdentifiedError, match="never seen together"):
        hs.solvers.initialize([[1.0, np.nan], [np.nan, 2.0]], beta=1.0)
    with pytest.raises(hs.InputError, match="beta must lie"):
        hs.solvers.initialize(X, beta=0.0)


def test_project_to_domain_is_the_formula():
    start, point = np.array([1.0, 0.0]), np.array([4.0, 4.0])
    S = np.array([[4.0, 1.0], [1.0, 2.0]])
    gap = point - start
    length = np.sqrt(gap @ np.linalg.solve(S, gap))
    comp = hs.solvers.project_to_domain(start, point, 0.5, S)
    np.testing.assert_allclose(comp, start + 0.5 * gap / length)
    np.testing.assert_array_equal(hs.solvers.project_to_domain(start, point, 99.0, S), point)
    np.testing.assert_array_equal(hs.solvers.project_to_domain(start, start, 1.0, S), start)


def test_an_edge_solution_says_so():
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 300, 0)
    with pytest.warns(hs.ConvergenceWarning):
        fit = hs.fit(
            X, rule, "missing_descent", covariance=SIGMA, random_state=0, projection_radius=0.01
        )
    assert any("projection_radius" in note.text for note in fit.notes)


@pytest.mark.parametrize("options", [{}, {"form": "paper", "sampler": Gibbs()}])
@pytest.mark.parametrize("scale", [[1.0, 1.0, 1000.0], [1e-6, 1.0, 1e6]])
def test_units_do_not_matter(scale, options):
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 1500, 0)
    scale = np.array(scale)
    known = {"random_state": 0, **options}
    ref = hs.fit(X, rule, "missing_descent", covariance=SIGMA, **known)
    moved = hs.LinearThreshold(rule.V / scale, rule.b)
    comp = hs.fit(
        X * scale,
        moved,
        "missing_descent",
        covariance=SIGMA * np.outer(scale, scale),
        **known,
    )
    np.testing.assert_allclose(comp.mean / scale, ref.mean, atol=1e-6)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_size_of_a_threshold_does_not_matter(size):
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 400, 0)
    ref = hs.fit(X, rule, "missing_descent", covariance=SIGMA, random_state=0)
    scaled = hs.LinearThreshold(rule.V * size, rule.b * size)
    np.testing.assert_allclose(
        hs.fit(X, scaled, "missing_descent", covariance=SIGMA, random_state=0).mean,
        ref.mean,
        atol=1e-8,
    )


def test_thin_regions_far_from_the_origin():
    # Both are hidden iff 0 < x0 - x1 < 0.1, wherever the two are.
    rule = hs.LinearThreshold([[1.0, -1.0], [-1.0, 1.0]], [0.0, -0.1])
    for mean in (np.zeros(2), np.full(2, 1000.0)):
        draws = hs.solvers.sample_gradient(
            [np.nan, np.nan], mean, np.eye(2), rule, draws=2000, sampler=Gibbs(), random_state=0
        )
        # −(y − μ) has mean ∓0.025 by symmetry, and a spread of 0.71.
        assert np.abs(draws.mean(axis=0) - [-0.025, 0.025]).max() < 4.5 * 0.71 / np.sqrt(2000)


def test_descents_that_overshoot_say_so():
    truth, rule = _small_problem()
    X = hs.simulate(truth, rule, 1000, 0)
    listing = {"covariance": SIGMA, "random_state": 0, "form": "paper"}
    with pytest.warns(hs.ConvergenceWarning, match="Steps overshoot"):
        hs.fit(X, rule, "missing_descent", batch_size=200, **listing)
    # Leaving out the part that overshoots is one of the remedies.
    half = {"batch_size": 10, "average": "suffix"}
    assert hs.fit(X, rule, "missing_descent", **half, **listing).status is hs.Status.CONVERGED
    fine = hs.fit(X, rule, "missing_descent", batch_size=5, passes=5, **listing)
    assert hs.metrics.mahalanobis_error(fine.mean, truth) < 4 * np.sqrt(3 / 1000)


def test_averages_that_still_move_say_so():
    problem = _mostly_hidden(0.9)
    X = hs.simulate(*problem, 2000, 1)
    with pytest.warns(hs.ConvergenceWarning, match="The average still moves"):
        hs.fit(
            X,
            problem.rule,
            "missing_descent",
            covariance=problem.truth.covariance,
            random_state=0,
            batch_size=1000,
            passes=2,
        )


RULE = CASES[2][0]
GOOD = hs.simulate(hs.Gaussian(MEAN, SIGMA), RULE, 50, 0)


@pytest.mark.parametrize(
    ("X", "rule", "options", "error", "sentence"),
    [
        (GOOD, RULE, {}, hs.InputError, "needs the covariance"),
        (GOOD, RULE, {"covariance": np.eye(2)}, hs.InputError, r"shape \(3, 3\).*got \(2, 2\)"),
        (GOOD, RULE, {"covariance": -np.eye(3)}, hs.InputError, "positive definite"),
        (GOOD[:, :2], RULE, {"covariance": np.eye(2)}, hs.InputError, "for 3 columns"),
        (GOOD, RULE, {"covariance": SIGMA, "passes": 0}, hs.InputError, "at least 1"),
        (GOOD, RULE, {"covariance": SIGMA, "batch_size": 2.5}, hs.InputError, "batch_size must be"),
        (GOOD, RULE, {"covariance": SIGMA, "initial_rows": "a"}, hs.InputError, "rows must be"),
        (GOOD, RULE, {"covariance": SIGMA, "beta": "a"}, hs.InputError, "beta must lie"),
        (GOOD, RULE, {"covariance": SIGMA, "n_jobs": 0}, hs.InputError, "n_jobs must be"),
        (GOOD, RULE, {"covariance": SIGMA, "sampler": Gibbs}, hs.InputError, "sampler must be"),
        (GOOD, RULE, {"covariance": "a"}, hs.InputError, "covariance must be an array"),
        (
            GOOD,
            RULE,
            {"covariance": SIGMA, "average": "some", "form": "paper"},
            hs.InputError,
            "average must",
        ),
        (GOOD, RULE, {"covariance": SIGMA, "form": "listing"}, hs.InputError, "form must be"),
        (
            GOOD,
            RULE,
            {"covariance": SIGMA, "average": "all"},
            hs.InputError,
            'average= is an option of the paper.*form="paper"',
        ),
        (
            GOOD,
            RULE,
            {"covariance": SIGMA, "strong_convexity": 0},
            hs.InputError,
            "strong_convexity",
        ),
        (GOOD, RULE, {"covariance": SIGMA, "method": "pairwise"}, hs.InputError, "does not fit"),
        (
            [[0.0, np.nan, 1.0], [0.0, np.nan, 2.0]],
            hs.LinearThreshold(np.zeros((3, 3)), [0.0, -1.0, 0.0]),
            {"covariance": SIGMA},
            hs.NotIdentifiedError,
            "x1 is never seen",
        ),
        (
            [[0.0, np.inf, 1.0], [0.0, 0.0, 2.0]],
            RULE,
            {"covariance": SIGMA},
            hs.InputError,
            "row 0, column x1: the value is inf",
        ),
    ],
)
def test_bad_input_gets_a_sentence(X, rule, options, error, sentence):
    with pytest.raises(error, match=sentence):
        hs.fit(X, rule, **{"method": "missing_descent", **options})


def test_a_row_without_a_feasible_point_is_named():
    # x1 is hidden iff x1 > x2 and x2 is hidden iff x2 > x1: both cannot be.
    rule = hs.LinearThreshold([[0, 0, 0], [0, 1, -1], [0, -1, 1]], 0.0)
    good = hs.simulate(hs.Gaussian(np.zeros(3), SIGMA), rule, 5, 0)
    bad = np.vstack([good, [0.0, np.nan, np.nan]])
    with pytest.raises(hs.ContradictionError, match=r"row 5: no values .*x1, x2.* contradicts"):
        hs.fit(bad, rule, "missing_descent", covariance=SIGMA)


def test_self_censoring_rules_do_not_take_a_covariance():
    with pytest.raises(hs.InputError, match="does not take the option 'covariance'"):
        hs.fit(GOOD, hs.DetectionLimits(lower=-9), "pairwise", covariance=SIGMA)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0.0], [np.nan], 1.0, [[1.0]]), "point must be finite"),
        (([0.0, 0.0], [10.0], 1.0, np.eye(2)), "point must be a vector of 2"),
        (([0.0], [1.0], -2.0, [[1.0]]), "radius must be above 0"),
    ],
)
def test_bad_projections_get_a_sentence(arguments, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.solvers.project_to_domain(*arguments)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mean": [0.0, np.nan, 0.0]}, "mean must be finite"),
        ({"mean": [0.0]}, "mean must be a vector of 3"),
        ({"row": np.zeros((3, 3))}, "one observation"),
        ({"row": [0.0, np.inf, 0.0]}, "the value is inf"),
        ({"draws": 0}, "draws must be"),
        ({"missingness": None}, "must be a LinearThreshold"),
    ],
)
def test_bad_gradients_get_a_sentence(changes, sentence):
    arguments = {"row": CASES[2][1], "mean": MEAN, "covariance": SIGMA, "missingness": RULE}
    with pytest.raises(hs.InputError, match=sentence):
        hs.solvers.sample_gradient(**{**arguments, **changes})
