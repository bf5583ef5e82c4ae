"""Intervals in original units count that a power was learned."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from halfseen.data.powers import ColumnCells, as_table, follow_power, learn_power
from halfseen.data.transforms import BoxCox
from halfseen.solvers.inference.intervals import Limits
from halfseen.solvers.inference.original_scale import edge_cutoff, widened

LIMIT, ROWS, CHI_SQUARE_95 = 2.5, 250, 3.841


@pytest.fixture(scope="module")
def column():
    """Roots are normal, four deviations above zero, and a third lies below a limit."""
    x = (1.0 + 0.5 * np.random.default_rng(8).normal(2.0, 1.0, size=ROWS)) ** 2
    return np.where(x < LIMIT, np.nan, x)[:, None]


@pytest.fixture(scope="module")
def fitted(column):
    return hs.fit(column, hs.DetectionLimits(lower=LIMIT), transforms="boxcox", random_state=0)


def _log_likelihood(x, power, mu, sigma):
    """Of seen values and of cells below the limit, in original units."""
    scale, seen = BoxCox(power), x[~np.isnan(x)]
    below = stats.norm.logcdf(float(scale.forward(LIMIT)), mu, sigma) * (x.size - seen.size)
    return (
        below
        + (stats.norm.logpdf(scale.forward(seen), mu, sigma) + scale.log_derivative(seen)).sum()
    )


def _high(power, mu, sigma):
    """The logarithm of the 99 % point."""
    return np.log(BoxCox(power).inverse(mu + 2.326 * sigma))


def _farthest(x, one, powers):
    """Least and largest 99 % point where twice the log-likelihood has fallen by χ², on a fine grid."""
    seen, ends = x[~np.isnan(x)], []
    top = _log_likelihood(x, one.power, one.mean, one.standard_deviation)
    for power in powers:
        scale = BoxCox(power)
        z, limit = scale.forward(seen), float(scale.forward(LIMIT))
        here = ColumnCells.from_ends(*_ends(x)).fit(scale)
        sigma = here.standard_deviation * np.exp(np.linspace(-0.3, 0.3, 201))[:, None]
        mu = here.mean + here.standard_deviation * np.linspace(-0.5, 0.5, 401)
        squares = z.size * (z.mean() - mu) ** 2 + z.size * z.var()
        value = -z.size * np.log(sigma * np.sqrt(2.0 * np.pi)) - 0.5 * squares / sigma**2
        value += (x.size - z.size) * stats.norm.logcdf((limit - mu) / sigma)
        value += scale.log_derivative(seen).sum()
        inside = np.argwhere(2.0 * (top - value) <= CHI_SQUARE_95)
        # The edge of the region, for each deviation: quantiles grow with mu.
        for row in np.unique(inside[:, 0]):
            columns = inside[inside[:, 0] == row, 1]
            for column in (columns.min(), columns.max()):
                ends.append(_high(power, mu[column], sigma[row, 0]))
    return np.array([min(ends), max(ends)])


def _ends(x):
    hidden = np.isnan(x)
    return np.where(hidden, -np.inf, x), np.where(hidden, LIMIT, x)


class _Top(NamedTuple):
    power: float
    mean: float
    standard_deviation: float


def test_an_interval_is_as_much_longer_as_that_of_three_parameters(column):
    x = column[:, 0]
    cells = ColumnCells.from_ends(*_ends(x))
    scale = learn_power(cells, BoxCox())
    learned, own = follow_power(cells, scale), cells.fit(scale)
    one = _Top(scale.power, own.mean, own.standard_deviation)
    value = _high(*one)
    known = _farthest(x, one, [scale.power])
    low, high = learned.interval(0.95)
    free = _farthest(x, one, np.append(np.linspace(low, high, 41), scale.power))

    ends = Limits(*map(np.asarray, known))
    found = widened(learned, _high, value, ends, 0.95, rows=np.inf)
    longer, ours = ((np.array(one) - value) / (known - value) for one in (free, found))
    assert longer.min() > 1.1
    # Parabolas for likelihoods of 250 rows: of relative error 1/√250, in ratios of two of them less.
    np.testing.assert_allclose(ours, longer, atol=0.06)


def test_a_power_takes_a_degree_of_freedom(column):
    cells = ColumnCells.from_ends(*_ends(column[:, 0]))
    learned = follow_power(cells, learn_power(cells, BoxCox()))
    ends = Limits(np.asarray(-1.0), np.asarray(1.0))
    few, many = (widened(learned, _high, 0.0, ends, 0.95, rows) for rows in (12.0, np.inf))
    # t of 10 degrees and errors times √(11/10), next to 11 degrees and √(12/11).
    ratio = stats.t.ppf(0.975, 10) / stats.t.ppf(0.975, 11) * np.sqrt(11 / 10 * 11 / 12)
    np.testing.assert_allclose(np.array(few) / np.array(many), ratio, rtol=1e-6)


def test_learned_powers_make_every_interval_longer_and_estimates_stay(fitted):
    asked = {"probabilities": (0.05, 0.5, 0.95)}
    counted = fitted.original_scale(**asked)
    known = dataclasses.replace(fitted, powers=None).original_scale(**asked)
    for name in ("median", "mean", "quantiles"):
        np.testing.assert_array_equal(getattr(counted, name), getattr(known, name))
        assert (getattr(counted, f"{name}_lower") <= getattr(known, f"{name}_lower")).all()
        assert (getattr(counted, f"{name}_upper") >= getattr(known, f"{name}_upper")).all()
    # High quantiles depend on the power; medians among seen values hardly do.
    lengths = [
        (one.quantiles_upper - one.quantiles_lower)[0] for one in (counted, known)
    ]  # fmt: skip
    ratio = lengths[0] / lengths[1]
    assert ratio[2] > 1.05
    assert ratio[1] < 1.2


def test_a_power_that_was_told_is_known(column):
    fit = hs.fit(column, hs.DetectionLimits(lower=LIMIT), transforms="boxcox(0.5)", random_state=0)
    assert fit.powers is None
    assert fit.to_dict()["powers"] is None


def test_powers_are_told_with_their_intervals(fitted, tmp_path):
    low, high = fitted.powers[0].interval(0.95)
    text = " ".join(fitted.summary().split())
    told = f"power of x0 {fitted.powers[0].power:.2g} (95 %: {low:.2g} to {high:.2g})"
    assert told in text
    record = fitted.to_dict(0.95)["powers"]["x0"]
    assert (record["lower"], record["upper"]) == (low, high)
    page = fitted.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{low:.2g} to {high:.2g}); intervals in original units take account of it" in page


def test_a_saved_fit_counts_the_power_too(fitted, tmp_path):
    fitted.save(tmp_path / "fit.hsfit")
    again = hs.load(tmp_path / "fit.hsfit")
    np.testing.assert_array_equal(as_table(again.powers[0]), as_table(fitted.powers[0]))
    ends = [one.original_scale(kind="wald").mean_upper for one in (again, fitted)]
    np.testing.assert_array_equal(*ends)


def test_a_power_that_is_hardly_determined_is_said():
    x = np.exp(0.3 * np.random.default_rng(1).normal(size=(15, 1)))
    with pytest.warns(hs.ConvergenceWarning, match="hardly determined"):
        fit = hs.fit(x, transforms="boxcox", random_state=0)
    assert fit.status is hs.Status.WEAKLY_IDENTIFIED
    assert any("power of x0 is hardly determined" in note.text for note in fit.notes)


def test_cutoffs_at_an_edge_are_those_of_a_simulated_worst_case():
    # A nuisance parameter on its edge that goes along with the number: y in whitened coordinates, the
    # domain y[0] >= 0, and y[0] held at zero by the number, with what is left free beyond zero.
    y = np.random.default_rng(0).normal(size=(400_000, 2))
    top = np.minimum(y[:, 0], 0.0) ** 2
    held = y[:, 0] ** 2 + np.minimum(y[:, 1], 0.0) ** 2
    share = np.mean(held - top > edge_cutoff(0.95))
    # Four standard errors of 400 000 tables.
    assert share == pytest.approx(0.05, abs=4.0 * np.sqrt(0.05 * 0.95 / len(y)))
    assert edge_cutoff(0.95) > CHI_SQUARE_95
