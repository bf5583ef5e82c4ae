"""Truncated regression against direct optimisation, and where the maximum runs away."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import optimize, stats

from halfseen.errors import ContradictionError, InputError, NotIdentifiedError
from halfseen.solvers import domain
from halfseen.solvers.regression import truncated_rows
from halfseen.solvers.regression.truncated import truncated_regression
from halfseen.solvers.result import Status
from tests import naive_regression as oracle

KINDS = ("below", "above", "between", "by row")


def table(seed, kind, share=None, covariates=None):
    """Rows that are there, of a random design in which about a share of all rows is."""
    rng = np.random.default_rng(seed)
    k = covariates or int(rng.integers(1, 9))
    share = share or rng.uniform(0.1, 0.9)
    n = int(rng.integers(300, 1200) / share)
    correlation = rng.choice([0.0, 0.95])
    W = rng.multivariate_normal(
        np.zeros(k), correlation + (1 - correlation) * np.eye(k), n
    ) * np.exp(2.0 * rng.normal(size=k))
    W[:, 0] = 1.0
    sigma = np.exp(2.0 * rng.normal())
    y = W @ (rng.normal(size=k) * sigma / np.sqrt((W**2).mean(axis=0))) + sigma * rng.normal(size=n)
    lower, upper = np.full(n, -np.inf), np.full(n, np.inf)
    if kind == "below":
        lower[:] = np.quantile(y, 1 - share)
    elif kind == "above":
        upper[:] = np.quantile(y, share)
    elif kind == "between":
        lower[:], upper[:] = np.quantile(y, [0.5 - 0.5 * share, 0.5 + 0.5 * share])
    else:
        lower[:] = np.quantile(y, 1 - share) + sigma * rng.normal(size=n)
        upper[:] = np.where(
            rng.random(n) < 0.5, np.inf, lower + 4.0 * sigma * rng.exponential(size=n)
        )
    there = (lower <= y) & (y <= upper)
    return y[there], W[there], lower[there], upper[there]


def compare(comp, ref):
    errors = np.sqrt(np.diag(ref.covariance))
    off = np.append(comp.coefficients, comp.sigma) - ref.estimates
    assert np.abs(off / errors).max() < 1e-4
    assert comp.log_likelihood == pytest.approx(ref.value, abs=1e-6)
    np.testing.assert_allclose(comp.standard_errors, errors, rtol=1e-3)
    assert np.abs((comp.covariance - ref.covariance) / np.outer(errors, errors)).max() < 1e-3
    assert comp.converged
    assert not comp.on_edge
    assert comp.notes == ()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_direct_optimisation(kind, seed):
    y, W, lower, upper = table(seed, kind)
    comp = truncated_regression(y, W, lower, upper)
    compare(comp, oracle.truncated_regression(y, lower, upper, W))
    assert comp.steps < 12


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("kind", KINDS[:2])
def test_agrees_at_the_ends_of_what_is_asked(kind, share):
    y, W, lower, upper = table(7, kind, share, covariates=8)
    comp = truncated_regression(y, W, lower, upper)
    compare(comp, oracle.truncated_regression(y, lower, upper, W))


def test_scores_are_those_of_rows():
    y, W, lower, upper = table(1, "by row")
    comp = truncated_regression(y, W, lower, upper)
    ref = oracle.truncated_log_likelihood(comp.coefficients, comp.sigma, y, lower, upper, W)[1]
    np.testing.assert_allclose(
        comp.scores * comp.standard_errors, ref * comp.standard_errors, atol=1e-10
    )
    assert np.abs(comp.scores.sum(axis=0) * comp.standard_errors).max() < 1e-6


def test_without_limits_it_is_least_squares(rng):
    W = np.column_stack([np.ones(50), rng.normal(size=50)])
    y = W @ [1.0, 2.0] + rng.normal(size=50)
    comp = truncated_regression(y, W)
    ref = np.linalg.lstsq(W, y)[0]
    sigma = (y - W @ ref).std()
    np.testing.assert_allclose(comp.coefficients, ref, rtol=1e-12)
    assert comp.sigma == pytest.approx(sigma, rel=1e-12)
    np.testing.assert_allclose(
        comp.covariance[:2, :2], sigma**2 * np.linalg.inv(W.T @ W), rtol=1e-9
    )
    assert comp.standard_errors[2] == pytest.approx(sigma / 10.0, rel=1e-9)
    assert comp.log_likelihood == pytest.approx(stats.norm(0, sigma).logpdf(y - W @ ref).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_units_change_nothing_but_units(kind):
    y, W, lower, upper = table(3, kind)
    ref = truncated_regression(y, W, lower, upper)
    rng = np.random.default_rng(5)
    unit, shift = 1e-6, 3.0 * y.std() * rng.normal(size=W.shape[1]) / np.sqrt((W**2).mean(axis=0))
    units = np.exp(5.0 * rng.normal(size=W.shape[1]))
    plus = W @ shift
    comp = truncated_regression(
        unit * (y + plus), W * units, unit * (lower + plus), unit * (upper + plus)
    )
    back = np.append(units / unit, 1.0 / unit)
    off = np.append(comp.coefficients, comp.sigma) * back - np.append(
        ref.coefficients + shift, ref.sigma
    )
    assert np.abs(off / ref.standard_errors).max() < 1e-7
    np.testing.assert_allclose(comp.standard_errors * back, ref.standard_errors, rtol=1e-7)
    assert comp.log_likelihood == pytest.approx(
        ref.log_likelihood - y.size * math.log(unit), abs=1e-6
    )
    assert comp.steps == ref.steps


def test_mirrored_outcomes_have_mirrored_coefficients():
    y, W, lower, upper = table(4, "below")
    ref, comp = (
        truncated_regression(y, W, lower, upper),
        truncated_regression(-y, W, -upper, -lower),
    )
    np.testing.assert_allclose(comp.coefficients, -ref.coefficients, rtol=1e-9)
    assert comp.sigma == pytest.approx(ref.sigma, rel=1e-10)


def test_weights_count_rows():
    y, W, lower, upper = table(2, "by row")
    count = np.random.default_rng(0).integers(0, 4, size=y.size)
    comp = truncated_regression(y, W, lower, upper, weights=count)
    ref = truncated_regression(*(np.repeat(part, count, axis=0) for part in (y, W, lower, upper)))
    np.testing.assert_allclose(comp.coefficients, ref.coefficients, rtol=1e-8)
    np.testing.assert_allclose(comp.covariance, ref.covariance, rtol=1e-8)
    assert comp.log_likelihood == pytest.approx(ref.log_likelihood, rel=1e-12)
    assert (comp.scores[count == 0] == 0.0).all()
    assert np.abs(comp.scores.sum(axis=0) * comp.standard_errors).max() < 1e-6
    # Weights of another size leave the estimates where they are.
    other = truncated_regression(y, W, lower, upper, weights=1e-3 * count)
    np.testing.assert_allclose(other.coefficients, ref.coefficients, rtol=1e-8)


def test_fixed_coefficients_are_taken_off_both_sides():
    y, W, lower, upper = table(6, "between", covariates=4)
    fixed = np.array([np.nan, 0.3, np.nan, 0.0])
    comp = truncated_regression(y, W, lower, upper, fixed=fixed)
    off = 0.3 * W[:, 1]
    ref = truncated_regression(y - off, W[:, [0, 2]], lower - off, upper - off)
    np.testing.assert_allclose(
        comp.coefficients, [ref.coefficients[0], 0.3, ref.coefficients[1], 0.0]
    )
    learned = np.ix_([0, 2, 4], [0, 2, 4])
    np.testing.assert_allclose(comp.covariance[learned], ref.covariance, rtol=1e-9)
    assert (comp.standard_errors[[1, 3]] == 0.0).all()
    # What is fixed has a score all the same, for tests of it.
    assert np.abs(comp.scores[:, 1].sum()) > 1e-6


def test_a_known_sigma_conditions_on_it():
    y, W, lower, upper = table(6, "below", covariates=3)
    ref = truncated_regression(y, W, lower, upper)
    comp = truncated_regression(y, W, lower, upper, sigma=ref.sigma)
    np.testing.assert_allclose(comp.coefficients, ref.coefficients, rtol=1e-7)
    information = np.linalg.inv(ref.covariance)
    np.testing.assert_allclose(
        comp.covariance[:3, :3], np.linalg.inv(information[:3, :3]), rtol=1e-6
    )
    assert (comp.covariance[3] == 0.0).all()
    everything = truncated_regression(y, W, lower, upper, sigma=ref.sigma, fixed=ref.coefficients)
    assert everything.log_likelihood == pytest.approx(ref.log_likelihood, rel=1e-12)
    assert (everything.covariance == 0.0).all()
    alone = truncated_regression(y, W, lower, upper, fixed=ref.coefficients)
    assert alone.sigma == pytest.approx(ref.sigma, rel=1e-6)


def holed(rng, n=1500):
    """Rows seen below 0.5 or above 1.5, some of them between -1 and 3 alone."""
    W = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = W @ [0.8, 0.7] + rng.normal(size=n)
    lower, upper = np.tile([-np.inf, 1.5], (n, 1)), np.tile([0.5, np.inf], (n, 1))
    lower[::3], upper[::3] = [-1.0, np.nan], [3.0, np.nan]
    there = ((lower <= y[:, None]) & (y[:, None] <= upper)).any(axis=1)
    return y[there], W[there], lower[there], upper[there]


def test_unions_of_intervals_agree_with_direct_optimisation(rng):
    y, W, lower, upper = holed(rng)

    def loss(p):
        sigma = math.exp(p[2])
        a, b = ((end - (W @ p[:2])[:, None]) / sigma for end in (lower, upper))
        real = np.isfinite(a) | np.isfinite(b)
        masses = oracle.line(np.where(real, a, 0.0), np.where(real, b, 1.0)).log_mass
        log_mass = np.logaddexp.reduce(np.where(real, masses, -np.inf), axis=1)
        return -(stats.norm.logpdf(y, W @ p[:2], sigma) - log_mass).sum()

    comp = truncated_regression(y, W, lower, upper)
    at = np.append(comp.coefficients, math.log(comp.sigma))
    assert comp.log_likelihood == pytest.approx(-loss(at), rel=1e-12)
    ref = optimize.minimize(loss, at + 0.1, options={"gtol": 1e-4})
    off = (at - ref.x) / np.sqrt(np.diag(comp.covariance)) * [1.0, 1.0, comp.sigma]
    assert np.abs(off).max() < 1e-4


def test_the_objective_is_convex_with_these_derivatives(rng):
    """In natural parameters, for unions too, far from any maximum."""
    n = 40
    y, W, lower, upper = (part[:n] for part in holed(rng))
    problem = truncated_rows.prepare(
        truncated_rows.read_table(y, W, lower, upper, None, None, None), None, 1
    )
    for _ in range(30):
        theta = np.append(3.0 * rng.normal(size=2), np.exp(2.0 * rng.normal()))
        _, g, H = problem.objective(theta)
        assert np.linalg.eigvalsh(H)[0] > 0.0
        h = 1e-5 * theta[-1]
        sides = [[problem.objective(theta + sign * e) for e in h * np.eye(3)] for sign in (1, -1)]
        slope = [(up[0] - down[0]) / (2 * h) for up, down in zip(*sides, strict=True)]
        bend = [(up[1] - down[1]) / (2 * h) for up, down in zip(*sides, strict=True)]
        np.testing.assert_allclose(slope, g, rtol=1e-6, atol=1e-6 * np.abs(g).max())
        np.testing.assert_allclose(bend, H, rtol=1e-5, atol=1e-6 * np.abs(H).max())


def test_olsens_parameters_are_not_concave_for_truncated_rows():
    """Why the search goes by natural ones: β/σ = -20, 1/σ = 5, values that are exponential."""
    y = np.random.default_rng(0).exponential(size=50)

    def value(p):
        return (np.log(p[1]) - 0.5 * (p[1] * y - p[0]) ** 2 - stats.norm.logcdf(p[0])).sum()

    at, h, e = np.array([-20.0, 5.0]), 1e-3, np.eye(2)
    H = [
        [sum(p * q * value(at + h * (p * a + q * b)) for p in (1, -1) for q in (1, -1)) for a in e]
        for b in e
    ]
    assert np.linalg.eigvalsh(np.array(H) / (4 * h * h))[1] > 1.0


def test_bounds_of_the_domain_hold_where_rows_differ():
    """Means over seen rows, whose shares differ, obey the bounds of the mean share."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        n, spread = 200_000, np.exp(rng.normal())
        z = rng.normal(size=n)
        centre = spread * rng.normal(size=n)
        a, b = rng.normal() + centre, np.inf
        if rng.random() < 0.5:
            b = a + rng.exponential(size=n) * rng.exponential()
        there = (a <= z) & (z <= b)
        alpha = there.mean()
        if alpha < 0.02:
            continue
        z, x = z[there], centre[there]
        W = np.column_stack([np.ones(z.size), x])
        residual = z - W @ np.linalg.lstsq(W, z)[0]
        # Five standard errors of a mean square, whose spread is some √2.
        noise = 1.0 + 5.0 * math.sqrt(2.0 / z.size)
        assert (z**2).mean() <= domain.greatest_variance(alpha) * noise
        assert residual.var() * noise >= domain.least_variance(alpha)


def test_share_times_its_least_variance_is_convex():
    alpha = np.linspace(1e-3, 1.0 - 1e-3, 2001)
    assert (np.diff(alpha * domain.least_variance(alpha), 2) > 0.0).all()


@pytest.fixture
def runaway():
    """Values above a limit that vary more than their distance from it, and a covariate."""
    rng = np.random.default_rng(11)
    return 2.0 + rng.exponential(size=300) ** 1.3, np.column_stack(
        [np.ones(300), rng.normal(size=300)]
    )


def finite(found):
    parts = (found.coefficients, found.sigma, found.log_likelihood, found.covariance, found.scores)
    return all(np.isfinite(part).all() for part in parts)


def test_a_variance_that_runs_away_stops_on_the_edge_and_says_so(runaway):
    y, W = runaway
    comp = truncated_regression(y, W, lower=2.0)
    assert comp.on_edge
    assert comp.converged
    assert finite(comp)
    (note,) = comp.notes
    assert note.status is Status.ON_DOMAIN_EDGE
    assert "alpha = 0.01" in note.text
    # More is known to be seen: the edge is nearer, and the likelihood there lower.
    nearer = truncated_regression(y, W, lower=2.0, alpha=0.5)
    assert nearer.on_edge
    assert nearer.sigma < comp.sigma
    assert nearer.log_likelihood < comp.log_likelihood
    known = truncated_regression(y, W, lower=2.0, sigma=2.0)
    assert not known.on_edge
    assert known.notes == ()


def test_a_variance_that_runs_away_between_two_limits_stops_too(rng):
    # A density that is least in the middle, and the same on both sides.
    half = rng.random(100) ** 0.5
    y = 1.0 + np.append(half, -half)
    comp = truncated_regression(y, np.ones((200, 1)), 0.0, 2.0)
    assert comp.on_edge
    assert finite(comp)
    # σ at the least precision that alpha allows: v(α/2)/s².
    least = float(domain.least_variance(0.005))
    assert comp.sigma == pytest.approx(y.std() / math.sqrt(least), rel=1e-4)


def test_the_edge_has_no_better_place(runaway):
    """Along the edge of one intercept, where T² + δ² = VT, the objective is nowhere lower."""
    y, _ = runaway
    W = np.ones((y.size, 1))
    comp = truncated_regression(y, W, lower=2.0)
    assert comp.on_edge
    V, s = float(domain.greatest_variance(0.005)), y.std()
    T = np.linspace(1e-3, 0.5, 4001) * V
    best = -np.inf
    for t in T:
        for delta in (-1.0, 1.0):
            centre = y.mean() + delta * s * math.sqrt(V / t - 1.0)
            value = oracle.truncated_log_likelihood(
                np.array([centre]), s / math.sqrt(t), y, 2.0, np.inf, W
            )[0].sum()
            best = max(best, value)
    # 1e-8 of the objective for each row is what the last barrier leaves.
    assert comp.log_likelihood == pytest.approx(best, abs=1e-3)
    assert comp.log_likelihood < best + 1e-3


def test_values_that_lie_on_their_limits_stop_on_the_edge():
    """A group of which all values are at the limit has no finite coefficient."""
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 100)
    y = np.abs(rng.normal(size=300)) + group
    y[group == 0] = 0.0
    comp = truncated_regression(y, np.eye(3)[group], lower=0.0)
    assert comp.on_edge
    assert finite(comp)


def test_a_limit_thirty_deviations_away_is_harmless(rng):
    n = 400
    W = np.column_stack([np.ones(n), rng.normal(size=n)])
    y = W @ [1.0, 0.5] + rng.normal(size=n)
    lower = np.full(n, -np.inf)
    # By what the other rows say the last are there by a chance of e-200, and say so themselves.
    W[-2:, 1] = 0.0
    lower[-2:], y[-2:] = 31.0, [31.02, 31.05]
    comp = truncated_regression(y, W, lower, sigma=1.0)
    assert finite(comp)
    score = oracle.truncated_log_likelihood(comp.coefficients, 1.0, y, lower, np.inf, W)[1]
    np.testing.assert_allclose(comp.scores, score, rtol=1e-9, atol=1e-9)
    assert np.abs(score[:, :2].sum(axis=0) * comp.standard_errors[:2]).max() < 1e-6
    far = truncated_regression(30.0 + rng.exponential(size=n) / 30.0, W[:, :1], 30.0, sigma=1.0)
    assert finite(far)


def test_threads_never_change_a_bit(monkeypatch):
    monkeypatch.setattr(truncated_rows, "BLOCK", 100)
    y, W, lower, upper = table(5, "by row")
    ref, comp = (truncated_regression(y, W, lower, upper, n_jobs=jobs) for jobs in (1, 4))
    for part in dataclasses.fields(ref):
        np.testing.assert_array_equal(getattr(comp, part.name), getattr(ref, part.name))


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"lower": 0.5}, ContradictionError, r"row \d+: it has the value .* of 0.5 to inf"),
        ({"y": np.array([1.0, np.nan, 2.0])}, InputError, "row 1, column y: values must be finite"),
        ({"W": np.ones((2, 1))}, InputError, "got shapes"),
        ({"W": np.array([[1.0], [np.inf], [1.0]])}, InputError, "row 1, column w0"),
        ({"W": np.ones((3, 1)), "names": ["a", "b"]}, InputError, "each of 1 covariates"),
        (
            {"W": np.column_stack([np.ones(3), np.full(3, 2.0)])},
            NotIdentifiedError,
            "3 rows cannot",
        ),
        ({"upper": np.ones((2, 2))}, InputError, "upper must be"),
        ({"weights": [1.0, -1.0, 1.0]}, InputError, "weights must be"),
        ({"fixed": [1.0, 2.0]}, InputError, "fixed must have"),
        ({"sigma": 0.0}, InputError, "sigma must be above 0"),
        ({"sigma": 1e-3}, ContradictionError, "pass a smaller alpha"),
        ({"alpha": 1.0}, InputError, "alpha must lie"),
        ({"alpha": 1e-20}, InputError, "alpha must be at least"),
    ],
)
def test_what_cannot_be_used_is_said(changes, error, match):
    arguments = {"y": np.array([0.2, 1.0, 2.0]), "W": np.ones((3, 1)), **changes}
    with pytest.raises(error, match=match):
        truncated_regression(**arguments)


def test_covariates_that_repeat_each_other_are_named(rng):
    y, x = rng.normal(size=20), rng.normal(size=20)
    W = np.column_stack([np.ones(20), x, 3.0 - 2.0 * x])
    with pytest.raises(NotIdentifiedError, match="covariate age is a sum of multiples"):
        truncated_regression(y, W, names=["Intercept", "year", "age"])
    # One that is fixed is not learned.
    truncated_regression(y, W, fixed=[np.nan, np.nan, 0.5])
    with pytest.raises(NotIdentifiedError, match="all of its values are 0"):
        truncated_regression(y, np.column_stack([np.ones(20), np.zeros(20)]))
    with pytest.raises(NotIdentifiedError, match="fit y exactly"):
        truncated_regression(W @ [1.0, 2.0, 0.0], W[:, :2])


def coverage(tables, learn):
    """Share of the true values in their 95 % intervals, table by table, n = 500, half the rows seen."""
    out = []
    truth = np.array([0.5, 1.0, -0.7, 1.5])
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        W = np.column_stack([np.ones(1000), rng.normal(size=1000), rng.random(1000) < 0.4])
        y = W @ truth[:3] + truth[3] * rng.normal(size=1000)
        lower = rng.normal(size=1000)
        there = y > lower
        estimates, errors = learn(y[there], W[there], lower[there])
        out.append((np.abs(estimates - truth) < 1.96 * errors).mean())
    return np.array(out)


def test_intervals_cover_what_they_say():
    """80 tables, four parameters each: 0.95 within 4 standard errors, some 0.05, from their spread."""

    def truncation(y, W, lower):
        found = truncated_regression(y, W, lower, n_jobs=1)
        return np.append(found.coefficients, found.sigma), found.standard_errors

    def plain(y, W, lower):
        found = truncated_regression(y, W, n_jobs=1)
        return np.append(found.coefficients, found.sigma), found.standard_errors

    comp = coverage(80, truncation)
    assert abs(comp.mean() - 0.95) < 4.0 * comp.std() / math.sqrt(80.0)
    # Who leaves truncation out is far off.
    assert coverage(10, plain).mean() < 0.5


def test_optimum_is_found_from_wild_tables():
    """Whatever the rows are like, there is an answer: inside, or on the edge with its note."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(0, 5))
        n = int(rng.integers(k + 3, 60))
        W = rng.normal(size=(n, k)) * 10.0 ** rng.uniform(-3.0, 3.0, size=k)
        y = [
            rng.exponential(size=n) ** 1.5, np.round(rng.normal(size=n), 1), rng.normal(size=n) ** 3,
            np.sign(rng.normal(size=n)) + 0.1 * rng.random(n),
        ][seed % 4]  # fmt: skip
        lower = y.min() - rng.choice([0.0, 0.01, 1.0])
        upper = y.max() + rng.choice([0.01, 1.0, np.inf])
        comp = truncated_regression(
            y, W, lower, upper, n_jobs=1, alpha=rng.choice([0.5, 0.01, 1e-6])
        )
        assert comp.converged
        assert finite(comp)
        assert comp.on_edge == bool(comp.notes)
