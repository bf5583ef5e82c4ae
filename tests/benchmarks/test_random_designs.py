"""The oracle of random designs against quadrature, SciPy and closed forms."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import halfseen as hs
from benchmarks import design_tables, exact_oracle, random_designs
from benchmarks.exact_oracle import HiddenSet, Observed

INF = np.inf
MEAN = np.array([0.3, -0.5, 0.2, 1.0])
COVARIANCE = np.array(
    [[1.0, 0.7, -0.3, 0.2], [0.7, 2.0, 0.1, 0.5], [-0.3, 0.1, 0.8, 0.0], [0.2, 0.5, 0.0, 1.5]]
)
NAN = np.nan


def likelihood(row, hidden, points=4096, mean=MEAN, covariance=COVARIANCE, blank=None):
    """Log-likelihood of one row; columns without a set are never hidden."""
    d = len(row)
    observed = Observed(np.array([row]), hidden, None if blank is None else [blank], points)
    return observed.log_likelihood(mean[:d], covariance[:d, :d])


def test_seen_and_blank_cells_are_marginal_densities():
    comp = likelihood([0.1, NAN, 0.4, NAN], [None] * 4, blank=[False, True, False, True])
    ref = stats.multivariate_normal.logpdf([0.1, 0.4], MEAN[[0, 2]], COVARIANCE[[0, 2]][:, [0, 2]])
    assert comp == pytest.approx(ref, abs=1e-12)


@pytest.mark.parametrize("d", [2, 3, 4])
@pytest.mark.parametrize("rho", [None, 0.999])
def test_boxes_agree_with_scipy(d, rho):
    covariance = COVARIANCE if rho is None else design_tables.equal(4, rho)
    ends = [(-INF, 0.1), (-0.9, 0.8), (0.0, INF), (-INF, 1.5)][:d]
    comp = likelihood([NAN] * d, [HiddenSet.of(e) for e in ends], 2**15, covariance=covariance)
    lower, upper = np.array(ends).T
    ref = stats.multivariate_normal(MEAN[:d], covariance[:d, :d], abseps=1e-7, seed=0)
    # Lattice rules of 2^15 points, theirs and ours, in up to four dimensions.
    assert comp == pytest.approx(np.log(ref.cdf(upper, lower_limit=lower)), abs=2e-3)


def test_unions_and_chances_agree_with_quadrature():
    """One seen cell, one in two half-lines, one hidden by chance, one blank."""
    sets = [None, HiddenSet.of((-INF, -1.5), (0.4, INF)), HiddenSet.by_chance(fading), None]
    comp = likelihood([0.8, NAN, NAN, NAN], sets, blank=[False, False, False, True])

    def density(z, y):
        return fading(z) * np.exp(joint.logpdf([0.8, y, z]))

    joint = stats.multivariate_normal(MEAN[:3], COVARIANCE[:3, :3])
    pieces = [(-9.0, -1.5), (0.4, 9.0)]
    ref = sum(integrate.dblquad(density, a, b, -6.0, 6.0, epsabs=1e-7)[0] for a, b in pieces)
    assert comp == pytest.approx(np.log(ref), abs=1e-3)


def fading(x):
    return expit(-3.0 * (x - 0.1))


def test_one_cell_agrees_with_quadrature():
    given = stats.norm(MEAN[0] + 0.7 / 2.0 * (0.5 - MEAN[1]), np.sqrt(1.0 - 0.7**2 / 2.0))
    seen = stats.norm(MEAN[1], np.sqrt(2.0)).logpdf(0.5)
    ref = np.log(integrate.quad(lambda x: fading(x) * given.pdf(x), -8.0, 8.0)[0])
    assert likelihood([NAN, 0.5], [HiddenSet.by_chance(fading), None]) == pytest.approx(
        seen + ref, abs=1e-9
    )
    pieces = [(-INF, -1.0), (0.2, 0.3), (4.0, INF)]
    ref = np.log(sum(given.cdf(b) - given.cdf(a) for a, b in pieces))
    assert likelihood([NAN, 0.5], [HiddenSet.of(*pieces), None]) == pytest.approx(
        seen + ref, abs=1e-9
    )


@pytest.mark.parametrize("limit", [-60.0, -20.0, 20.0, 60.0])
def test_tails_keep_their_digits(limit):
    ends = (-INF, limit) if limit < 0 else (limit, INF)
    sets = [HiddenSet.of(ends)] * 2
    comp = likelihood([NAN, NAN], sets, 64, np.zeros(2), np.eye(2))
    assert comp == pytest.approx(2.0 * stats.norm.logcdf(-abs(limit)), rel=1e-12)


def mixed(points, n=150):
    """A table with every kind of cell, and its truth."""
    columns = [
        design_tables.one_lower,
        design_tables.two_sided,
        design_tables.by_chance,
        design_tables.limits_by_row,
    ]
    rng = np.random.default_rng(0)
    spread = np.sqrt(np.diag(COVARIANCE))
    made = [
        make(rng, design_tables._quantiles(MEAN[j], spread[j]), 0.4, n)
        for j, make in enumerate(columns)
    ]
    Y, blank = rng.multivariate_normal(MEAN, COVARIANCE, n), rng.random((n, 4)) < 0.1
    design = design_tables.built("mixed", (MEAN, COVARIANCE), made, Y, blank, rng)
    return design, design.observed(points)


def test_scores_are_slopes():
    _, observed = mixed(2048)
    L = np.linalg.cholesky(COVARIANCE)
    comp = observed.evaluate(MEAN, L)
    assert comp.total == observed.log_likelihood(MEAN, COVARIANCE)
    h = 1e-4
    slopes = []
    for step in h * np.eye(comp.scores.shape[1]):
        ahead, behind = (exact_oracle.moved(MEAN, L, way * step) for way in (1.0, -1.0))
        values = [observed.log_likelihood(m, C @ C.T) for m, C in (ahead, behind)]
        slopes.append((values[0] - values[1]) / (2.0 * h))
    # What differs is the rule over points: the mean of z² errs by its largest, about 10, over their
    # number, so 0.01 a row and 0.12 in all; three times that is 0.03 of the spread of a score, which
    # moves the top by as much of a standard error, and the log-likelihood there by 0.0005.
    spread = np.sqrt((comp.scores**2).sum(axis=0))
    assert (abs(comp.scores.sum(axis=0) - slopes) < 0.03 * spread).all()


def test_complete_data_have_their_top_at_the_moments():
    Y = np.random.default_rng(0).multivariate_normal(MEAN, COVARIANCE, 200)
    top = exact_oracle.climb(Observed(Y, [None] * 4), np.zeros(4), np.eye(4), 1e-10)
    np.testing.assert_allclose(top.mean, Y.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(top.covariance, np.cov(Y.T, bias=True), atol=1e-5)


@pytest.fixture
def few_points(monkeypatch):
    monkeypatch.setattr(random_designs, "CLIMBING", 2**13)
    monkeypatch.setattr(random_designs, "COMPARING", 2**16)


@pytest.mark.usefixtures("few_points")
def test_every_start_leads_to_the_same_top_within_a_twentieth():
    design, few = mixed(128)
    starts = [*random_designs.usual_starts(design), ("far", MEAN + 1.0, 4.0 * np.eye(4))]
    tops = [exact_oracle.climb(few, *start).log_likelihood for _, *start in starts]
    assert np.ptp(tops) < 0.01
    _, top, many = random_designs.maximise(design, starts)
    # Other points, and all parameters moved by tenths of their standard errors: nothing is higher.
    other = Observed(design.X, design.hidden, design.blank, 1024, seed=1)
    here = other.evaluate(top.mean, L := np.linalg.cholesky(top.covariance))
    V = np.linalg.inv(here.scores.T @ here.scores)
    rng = np.random.default_rng(0)
    for step in 0.3 * rng.multivariate_normal(np.zeros(14), V, 20):
        mean, C = exact_oracle.moved(top.mean, L, step)
        assert other.log_likelihood(mean, C @ C.T) < here.total + 0.05
    assert top.log_likelihood > many.log_likelihood(MEAN, COVARIANCE)


def test_mirror_images_are_told_apart():
    design = design_tables.two_peaks(0)
    (_, mean, covariance) = random_designs.mirrored(design, design.mean, design.covariance)[0]
    assert mean[0] == pytest.approx(2.0 * 1.5 + 4.0)
    few = design.observed(128)
    peaks = [
        exact_oracle.climb(few, *start)
        for start in ((design.mean, design.covariance), (mean, covariance))
    ]
    assert peaks[0].mean[0] < 0.5 < 2.5 < peaks[1].mean[0]
    _, top, _ = random_designs.maximise(design, [("mirror", mean, covariance)])
    assert top.log_likelihood > max(p.log_likelihood for p in peaks) - 0.5


def test_rules_hide_what_the_oracle_calls_hidden():
    """A value may be seen where the rule says so, and hidden cells lie in the sets of the oracle."""
    strong = 0
    for design in design_tables.designs(60, seed=3):
        design.rule.check(design.X, [f"x{j}" for j in range(design.X.shape[1])], design.blank)
        spread = np.sqrt(np.diag(design.covariance))
        R = design.covariance / np.outer(spread, spread) - np.eye(len(spread))
        strong += abs(R).max() >= 0.9
        region = design.rule.hidden_region(design.X)
        for row, j in itertools.product((0, 7), range(len(spread))):
            confined = np.isnan(design.X[row, j]) and not design.blank[row, j]
            hidden = design.hidden[j]
            if not confined or hidden is None or hidden.probability is not None:
                continue
            pieces = region.cell(row, j).pieces
            k = min(row, len(hidden.lower) - 1)
            assert [p.lower for p in pieces] == list(hidden.lower[k])
            assert [p.upper for p in pieces] == list(hidden.upper[k])
    assert strong >= 12


@pytest.mark.usefixtures("few_points")
def test_compare_sees_a_fit_that_stopped_too_early(monkeypatch):
    design, _ = mixed(32)

    class Early:
        mean, covariance, status = MEAN + 0.2, COVARIANCE, hs.Status.CONVERGED

    monkeypatch.setattr(hs, "fit", lambda *given, **options: Early)
    comp = random_designs.compare(design)
    assert comp.wrong
    assert comp.shortfall > 5.0
    assert not comp.runaway
    monkeypatch.setattr(hs, "fit", lambda *given, **options: 1 / 0)
    comp = random_designs.compare(design)
    assert comp.raw_error
    assert "ZeroDivisionError" in comp.status


def test_wide_tables_are_climbed_some_steps(monkeypatch):
    for name, value in (("WIDE_STEPS", 4), ("WIDE_CLIMBING", 64), ("WIDE_COMPARING", 256)):
        monkeypatch.setattr(random_designs, name, value)
    R = design_tables.equal(12, 0.3)
    design = design_tables.one_limit("wide", R, 60, 0.3, 0)

    class Truth:
        mean, covariance, status = np.zeros(12), R, hs.Status.CONVERGED

    monkeypatch.setattr(hs, "fit", lambda *given, **options: Truth)
    comp = random_designs.special(design)
    assert comp.start_ahead == 0.0
    # The truth is below the top by half the number of parameters, 45, on average; every step of the
    # climb finds more of it.
    monkeypatch.setattr(random_designs, "WIDE_STEPS", 12)
    assert random_designs.ALLOWED < comp.shortfall < random_designs.special(design).shortfall


def test_a_fit_is_at_the_top_where_it_went_far_while_polished():
    """Correlations of 0.999 and cells that hide by chance: directions are not explored there.

    What an information from elsewhere promised was a thirtieth of what was left, 0.7. A fit that starts
    from the answer finds no more than what may be left to be gained.
    """
    design = random_designs.random_design(random_designs.SEED, 530)
    fit = random_designs.attempt(design, n_jobs=1)[0]
    again = random_designs.attempt(design, n_jobs=1, start=fit.gaussian)[0]
    assert again.log_likelihood.value - fit.log_likelihood.value < 0.25
