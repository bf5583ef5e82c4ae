"""Hard tables have the shapes and laws that they say, and what judges fits of them is right."""

import itertools

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from benchmarks import hard, hard_intervals, hard_reference, hard_tables, hard_visits

# Standard errors that a statistical comparison may be off by: 1 in 16 000 for one of them.
ALLOWED = 4.0

TABLES = {
    "survey": lambda seed: hard_tables.survey(400, seed),
    "visits": lambda seed: hard_tables.visits(200, seed),
    "cycle": lambda seed: hard_tables.cycle(90, seed),
    "monotone": lambda seed: hard_tables.monotone(200, seed),
    "scattered": lambda seed: hard_tables.scattered(200, seed),
    "half_hidden": lambda seed: hard_tables.half_hidden(400, seed),
    "laboratories": lambda seed: hard_tables.laboratories(512, seed),
}


def hidden_shares(table):
    """Shares of values, not of blank cells, that are below their limits."""
    below = np.isneginf(table.lower) & ~table.at_random
    return below.sum(axis=0) / (~table.at_random).sum(axis=0)


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_cells_say_what_is_known_of_them(make):
    table = make(0)
    d = table.complete.shape[1]
    assert len(table.names) == d == len(table.mean) == len(table.covariance)
    seen = ~np.isnan(table.seen)
    np.testing.assert_array_equal(table.seen[seen], table.complete[seen])
    np.testing.assert_array_equal(table.lower[seen], table.upper[seen])
    assert (table.complete[seen] >= table.limit[seen]).all()
    below = ~seen & ~table.at_random
    assert (table.complete[below] < table.upper[below]).all()
    assert np.isneginf(table.lower[~seen]).all()
    assert np.isposinf(table.upper[table.at_random]).all()
    assert not (seen & table.at_random).any()
    assert np.linalg.eigvalsh(table.covariance)[0] > 0.0


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_a_seed_is_a_table(make):
    again, other = make(0), make(1)
    np.testing.assert_array_equal(make(0).complete, again.complete)
    assert not np.allclose(other.complete, again.complete)


@pytest.mark.parametrize("tails", [False, True])
def test_the_population_of_a_survey_is_that_of_many_rows(tails):
    n = 60_000
    table = hard_tables.survey(n, 1, analytes=6, tails=tails)
    Y = table.complete - table.mean
    deviation = np.sqrt(np.diag(table.covariance))
    assert np.abs(Y.mean(axis=0) / deviation).max() < ALLOWED / n**0.5
    products = Y[:, :, None] * Y[:, None, :]
    error = products.std(axis=0) / n**0.5
    assert (np.abs(products.mean(axis=0) - table.covariance) < ALLOWED * error).all()


def test_a_survey_has_the_slope_that_imputations_are_to_find():
    table = hard_tables.survey(100, 3, analytes=8)
    first = [table.names.index(name) for name in ("analyte1", "age", "bmi", "male")]
    S = table.covariance
    slopes = np.linalg.solve(S[np.ix_(first, first)], S[first, 0])
    np.testing.assert_allclose(slopes, [hard_intervals.SLOPE, 0.12, 0.2, 0.0], atol=1e-9)


def test_a_survey_hides_analytes_alone_and_more_of_the_later_ones():
    table = hard_tables.survey(6000, 0)
    assert table.complete.shape == (6000, 28)
    assert not np.isnan(table.seen[:, :4]).any()
    assert set(table.complete[:, 1]) == {0.0, 1.0}
    # Limits scatter by a third of a spread about the quantile, which all of a volume share.
    assert np.abs(hidden_shares(table)[4:] - np.linspace(0.2, 0.65, 24)).max() < 0.15
    blank = table.at_random[:, 4:].mean(axis=0)
    years = np.where(np.arange(24) >= 20, 1, np.where(np.arange(24) % 5 == 1, 2, 4))
    np.testing.assert_allclose(blank, 1.0 - 0.94 * years / 4, atol=ALLOWED * 0.5 / 6000**0.5)
    assert all(len(np.unique(column)) == 40 for column in table.limit[:, 4:].T)


def test_analytes_of_the_tighter_group_go_together():
    for strength in (0.95, 0.98):
        table = hard_tables.survey(10, 0, strength=strength)
        people, analytes = slice(0, 4), slice(4, 18)
        S = table.covariance
        slopes = np.linalg.solve(S[people, people][1:, 1:], S[1:4, analytes])
        given = S[analytes, analytes] - S[analytes, 1:4] @ slopes
        deviation = np.sqrt(np.diag(given))
        R = given / np.outer(deviation, deviation)
        assert 0.85 * strength < R[np.tril_indices(14, -1)].min()
        assert R[np.tril_indices(14, -1)].max() < 0.98


def test_later_visits_happen_less_often():
    table = hard_tables.visits(4000, 0)
    gone = table.at_random.mean(axis=0)
    np.testing.assert_allclose(gone, np.linspace(0, 0.75, 8), atol=ALLOWED * 0.5 / 4000**0.5)
    assert set(np.unique(table.limit)) == {2.6, 3.4}
    assert (np.ptp(table.limit, axis=1) == 0.0).all()


def test_blanks_are_where_they_are_said_to_be():
    assert (hard_tables.cycle(90).at_random.sum(axis=1) == 1).all()
    assert not hidden_shares(hard_tables.cycle(90, limit=-np.inf)).any()
    monotone = hard_tables.monotone().at_random
    assert (np.diff(monotone.astype(int), axis=1) >= 0).all()
    assert not monotone[:, 0].any()
    assert abs(hard_tables.scattered().at_random.mean() - 0.3) < ALLOWED * 0.5 / 2000**0.5


def test_half_is_hidden_and_laboratories_alternate():
    # Columns go together, so that shares scatter like those of fewer cells.
    assert abs(hidden_shares(hard_tables.half_hidden(4000, d=20)).mean() - 0.5) < ALLOWED * 0.5 / 63
    table = hard_tables.laboratories()
    below = np.isneginf(table.lower)
    for start, limit in ((0, -1.0), (1, 0.3)):
        share = below[start::2].mean()
        assert abs(share - stats.norm.cdf(limit)) < ALLOWED * 0.5 / 2048**0.5


def small_table():
    """Three columns: rows with no, one, two and three cells below their limits, and blanks."""
    covariance = np.array([[1.0, 0.5, -0.3], [0.5, 2.0, 0.4], [-0.3, 0.4, 1.5]])
    mean = np.array([0.1, -0.2, 0.3])
    rng = np.random.default_rng(0)
    Y = mean + rng.normal(size=(60, 3)) @ np.linalg.cholesky(covariance).T
    limit = np.where(np.arange(60) % 2 == 0, -0.2, 0.5)[:, None]
    blank = rng.random((60, 3)) < 0.2
    return hard_tables.hide(("a", "b", "c"), Y, limit, blank, mean, covariance)


def row_log_likelihood(table, row, mean, S):
    lower, upper = table.lower[row], table.upper[row]
    o = np.flatnonzero(lower == upper)
    c = np.flatnonzero((lower < upper) & np.isfinite(upper))
    total, m, V = 0.0, mean[c], S[np.ix_(c, c)]
    if o.size:
        total = stats.multivariate_normal(mean[o], S[np.ix_(o, o)]).logpdf(lower[o])
        K = np.linalg.solve(S[np.ix_(o, o)], S[np.ix_(o, c)])
        m, V = m + K.T @ (lower[o] - mean[o]), V - S[np.ix_(c, o)] @ K
    if c.size:
        total += stats.multivariate_normal(m, V).logcdf(upper[c])
    return total


def test_the_reference_likelihood_is_that_of_scipy():
    table = small_table()
    assert set(np.isposinf(table.upper).sum(axis=1)) >= {0, 1, 2}
    shifted = table.mean + 0.2, 1.3 * table.covariance
    comp = hard_reference.Reference(table, points=4096).integral(*shifted)
    ref = [row_log_likelihood(table, row, *shifted) for row in range(60)]
    np.testing.assert_allclose(comp.rows, ref, atol=1e-4)
    # Its own error is what it says: the sum of squares of some forty rows with hidden cells.
    error = hard_reference._variance(comp.weights)
    assert 0.3 < np.square(comp.rows - ref).sum() / error.sum() < 3.0
    value, error = comp.less(comp)
    assert value == 0.0 == error


def test_plain_em_ends_where_the_likelihood_is_highest():
    table = small_table()
    reference = hard_reference.Reference(table, points=256)
    mean, S = hard_reference.climb(reference, (table.mean, table.covariance), tolerance=1e-8)
    here = reference.integral(mean, S)
    for i, j in itertools.combinations_with_replacement(range(3), 2):
        turn = np.zeros((3, 3))
        turn[i, j] = turn[j, i] = 0.05
        for sign in (1.0, -1.0):
            assert reference.integral(mean, S + sign * turn).value < here.value
    for move in 0.05 * np.vstack([np.eye(3), -np.eye(3)]):
        assert reference.integral(mean + move, S).value < here.value


def test_what_no_limit_hides_needs_one_step():
    table = hard_tables.hide(
        ("a", "b"), np.random.default_rng(0).normal(size=(50, 2)), -np.inf,
        np.zeros((50, 2), dtype=bool), np.zeros(2), np.eye(2),
    )  # fmt: skip
    (mean, S), _ = hard_reference.Reference(table).em_step(table.mean, table.covariance)
    np.testing.assert_allclose(mean, table.complete.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(S, np.cov(table.complete.T, bias=True), atol=1e-12)


def test_complete_columns_are_held_against_closed_forms():
    table = hard_tables.survey(300, 0, analytes=3)
    Y = table.complete
    S = np.cov(Y.T, bias=True)
    errors = hs.solvers.inference.uncertainty.StandardErrors.from_parameters
    g = hs.Gaussian(Y.mean(axis=0), S)

    class Complete:
        mean, covariance = g.mean, g.covariance
        standard_errors = errors(g, complete_variance(S, len(Y)))

    np.testing.assert_allclose(hard.exact_part(Complete, table), [0.0, 0.0], atol=1e-9)
    Complete.mean = g.mean + 1e-3 * np.sqrt(np.diag(S))
    np.testing.assert_allclose(hard.exact_part(Complete, table)[0], 1e-3)


def complete_variance(S, n):
    """Covariance of the sample's mean and covariance entries under the normal law."""
    d = len(S)
    i, j = np.tril_indices(d)
    out = np.zeros((d + i.size, d + i.size))
    out[:d, :d] = S / n
    out[d:, d:] = (S[np.ix_(i, i)] * S[np.ix_(j, j)] + S[np.ix_(i, j)] * S[np.ix_(j, i)]) / n
    return out


def test_slopes_are_those_of_least_squares():
    table = hard_tables.survey(200, 0, analytes=3)
    A = np.column_stack([np.ones(200), table.complete[:, [4, 2, 3, 1]]])
    b, (rest,), *_ = np.linalg.lstsq(A, table.complete[:, 0], rcond=None)
    error = rest / 195 * np.linalg.inv(A.T @ A)[1, 1]
    comp = hard_intervals.least_squares_slope(table.complete, table.names)
    np.testing.assert_allclose(comp, [b[1], error], rtol=1e-6)


def test_each_task_does_one_small_table():
    survey = hard.survey_fits((300, 0, {"analytes": 4}, (0, 1)))
    assert len(survey.statuses) == 2
    assert survey.moments < 0.1
    visits = hard_visits.visit_fits((200, 0))
    assert visits.spread < 10.0
    ratios = hard_visits.bootstrap_ratios((200, 0, 4))
    assert ratios is None or [part.size for part in ratios.values()] == [8, 8, 28]
    inside = hard_intervals.coverage("visits", 0)
    assert inside.shares.shape == (3,)
    slope = hard_intervals.imputed_slope(300, 0)
    assert abs(slope.estimate - slope.complete) < 5.0 * slope.error


def test_blanks_alone_are_held_against_plain_em():
    answer, errors = hard.at_random_gaps(hard_tables.cycle(90, limit=-np.inf))
    assert answer < 0.1
    assert errors < 1.0
