"""``fit.limits()``: exact limits where there are some, oracles elsewhere, a word where none holds."""

import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

import halfseen as hs
from benchmarks import reported_limits as measured
from halfseen.data.powers import ColumnCells
from halfseen.data.transforms import Identity, Log
from halfseen.diagnostics import checked_table
from halfseen.diagnostics.one_column import HiddenByLimits, LoneColumn
from halfseen.limits import find, lone
from halfseen.limits.find import Falls
from halfseen.limits.lone import CalibratedRoot, Lone, Number
from halfseen.limits.table import LimitTable

Z95 = stats.norm.ppf(0.95)


def censored(n, limit, seed=0, mean=0.0, deviation=1.0):
    """A column below a limit in part, on its scale."""
    x = np.random.default_rng(seed).normal(mean, deviation, size=(n, 1))
    return np.where(x < limit, np.nan, x)


def log_fit(n=40, limit=-0.3, seed=0, **options):
    X, rule = np.exp(censored(n, limit, seed)), hs.DetectionLimits(lower=np.exp(limit))
    return hs.fit(X, rule, names=["lead"], transforms="log", random_state=0, **options)


@pytest.mark.parametrize("n", [5, 30])
def test_complete_normal_columns_have_exact_limits(n):
    x = np.random.default_rng(n).normal(7.0, 2.0, size=n)
    found = hs.fit(x[:, None], names=["lead"]).limits(0.99, 0.9, probabilities=(0.5,))
    mean, s = x.mean(), x.std(ddof=1)
    student, root = stats.t.ppf(0.99, n - 1), np.sqrt(n)
    of_mean, ahead = found["lead", "mean"], found["lead", "next 1"]
    assert of_mean.method == "Student's t"
    assert of_mean.upper == pytest.approx(mean + student * s / root, rel=1e-5)
    assert of_mean.lower == pytest.approx(mean - student * s / root, rel=1e-5)
    assert ahead.upper == pytest.approx(mean + student * s * np.sqrt(1.0 + 1.0 / n), rel=1e-5)
    factor = stats.nct.ppf(0.99, n - 1, stats.norm.ppf(0.9) * root) / root
    tolerance = found["lead", "tolerance 0.9"]
    assert tolerance.method == "noncentral t"
    assert tolerance.upper == pytest.approx(mean + factor * s, rel=1e-5)
    assert tolerance.lower == pytest.approx(mean - factor * s, rel=1e-5)
    assert np.isnan(tolerance.estimate)


def test_complete_log_normal_means_have_the_generalised_pivot():
    """Of Krishnamoorthy and Mathew (2003): x̄ − Z s/(U√n) + s²/(2U²) with U² = χ²/(n − 1)."""
    y = np.random.default_rng(1).normal(1.0, 0.8, size=25)
    found = hs.fit(np.exp(y)[:, None], names=["lead"], transforms="log").limits()["lead", "mean"]
    assert found.method == "generalised pivot"
    rng, draws = np.random.default_rng(0), 1_000_000
    u = np.sqrt(rng.chisquare(24, draws) / 24)
    s = y.std(ddof=1)
    pivot = y.mean() - rng.standard_normal(draws) * s / (5.0 * u) + 0.5 * (s / u) ** 2
    for end, level in ((found.lower, 0.05), (found.upper, 0.95)):
        # Four standard errors of a share.
        assert np.mean(pivot < np.log(end)) == pytest.approx(level, abs=4 * np.sqrt(0.0475 / draws))


def test_quantile_limits_of_logarithms_are_those_of_the_values():
    X, rule = censored(40, -0.3), hs.DetectionLimits(lower=-0.3)
    plain = hs.fit(X, rule, names=["lead"], random_state=0).limits(next_values=3)
    logs = log_fit().limits(next_values=3)
    for quantity in ("quantile 0.5", "quantile 0.95", "tolerance 0.95", "next 3"):
        for end in ("lower", "upper"):
            value = getattr(plain["lead", quantity], end)
            assert np.log(getattr(logs["lead", quantity], end)) == pytest.approx(value, abs=1e-6)
    assert logs["lead", "next 3"].upper > log_fit().limits()["lead", "next 1"].upper
    base_ten = hs.fit(
        np.exp(X), hs.DetectionLimits(lower=np.exp(-0.3)), names=["lead"], transforms="log10"
    ).limits()
    for quantity in ("mean", "tolerance 0.95"):
        assert base_ten["lead", quantity].upper == pytest.approx(
            logs["lead", quantity].upper, rel=1e-3
        )


def test_the_unit_of_a_column_does_not_matter():
    X, rule = np.exp(censored(40, -0.3)), hs.DetectionLimits(lower=np.exp(-0.3))
    small, large = (
        hs.fit(X * unit, hs.DetectionLimits(lower=unit * np.exp(-0.3)), transforms="log").limits()
        for unit in (1.0, 1e6)
    )
    assert rule is not None
    for a, b in zip(small.limits, large.limits, strict=True):
        assert b.upper == pytest.approx(1e6 * a.upper, rel=1e-6, nan_ok=True)


def test_the_prior_of_hidden_cells():
    """The posterior under σ^−(1+h), summed over a fine grid of (μ − x̄)/σ and log σ."""
    column = measured.column(measured.Design(15, 0.5, False), np.random.default_rng(1))
    own = Lone.of(column, Identity())
    x, limit, hidden = column.cells.values, column.cells.upper[0], column.cells.count[0]
    share = hidden / (x.size + hidden)
    assert 0.2 < share < 0.8
    u, eta = np.meshgrid(np.linspace(-9.0, 9.0, 1201), np.linspace(-2.5, 6.0, 801))
    sigma = np.exp(eta)
    mu = x.mean() + u * sigma
    log = (1 - x.size) * eta - 0.5 * ((x[:, None, None] - mu) ** 2).sum(axis=0) / sigma**2
    log += hidden * stats.norm.logcdf((limit - mu) / sigma) - share * eta
    weight = np.exp(log - log.max())
    for number, at in ((Number(), 0.2), (Number(tilt=Z95), 2.5), (Number(bend=1.0), 1.0)):
        # Half a step of the grid, 0.008 deviations, times a density of no more than 1.
        expected = weight[mu + number.tilt * sigma + 0.5 * number.bend * sigma**2 < at].sum()
        assert own.posterior.below(number, at) == pytest.approx(expected / weight.sum(), abs=0.01)


def test_calibrated_roots_of_complete_means_are_student():
    """With six values the root has to be 1.89 in place of 1.645: the limit is farther by a seventh."""
    x = np.random.default_rng(3).normal(size=6)
    fit = hs.fit(x[:, None], names=["lead"])
    column = checked_table.read(x[:, None], None).column(0, np.arange(6), spread=False)
    own = Lone.of(column, Identity())
    upper = CalibratedRoot(own, Number(), 4000, 0).limit(0.95, 1, own.back(1.0))
    exact = fit.limits()["lead", "mean"].upper
    plain = x.mean() + np.sqrt(5.0 * np.expm1(Z95**2 / 6.0)) * x.std(ddof=1) / np.sqrt(6.0)
    # Of 4 000 columns: 1.5 % of a root; and what the shape of Student's root is not normal.
    assert upper - x.mean() == pytest.approx(exact - x.mean(), rel=0.06)
    assert plain - x.mean() < 0.9 * (exact - x.mean())


def test_calibrated_roots_of_complete_quantiles_are_noncentral():
    """There the mean of the root is not zero: a plain one would be a sixth nearer."""
    x = np.random.default_rng(4).normal(size=10)
    column = checked_table.read(x[:, None], None).column(0, np.arange(10), spread=False)
    own = Lone.of(column, Identity())
    upper = CalibratedRoot(own, Number(tilt=Z95), 4000, 0).limit(0.95, 1, own.back(3.0))
    factor = stats.nct.ppf(0.95, 9, Z95 * np.sqrt(10)) / np.sqrt(10)
    assert upper - x.mean() == pytest.approx(factor * x.std(ddof=1), rel=0.04)


def test_ends_where_a_likelihood_falls():
    """By standard errors, as far on either side as the root of the fall there."""
    falls = Falls(4.0, 9.0)
    low, high = falls.distances(np.array([0.5]), np.array([20.0]), 0.95)
    assert (low[0], high[0]) == (-1.0, 1.5)
    assert falls.cutoffs(20.0, 0.95) == (4.0, 9.0)


def test_a_root_holds_where_the_limit_is_above_the_truth():
    """The benchmark asks at the truth, ``fit.limits`` where the answer is the level: they agree."""
    design = measured.Design(30, 0.5, True)
    for seed in range(12):
        column = measured.column(design, np.random.default_rng(seed))
        own = Lone.of(column, Identity())
        number = Number(bend=1.0)
        root = CalibratedRoot(own, number, 200, 0)
        start = own.posterior.quantile(number, 0.95)
        upper, lower = (root.limit(0.95, side, start) for side in (1, -1))
        for truth in (0.1, 0.5, 1.2):
            distance = root.distance(truth)
            assert (upper > truth) == (distance > -Z95)
            assert (lower < truth) == (distance < Z95)


@pytest.mark.parametrize("by_row", [False, True])
def test_limits_hold_as_often_as_they_say(by_row):
    design = measured.Design(20, 0.5, by_row)
    shares, without = measured._measured(design, range(300))
    assert without <= 3
    # Four standard errors.
    assert (abs(shares - 0.95) < 4.0 * np.sqrt(0.0475 / 300)).all(), shares


def test_the_mean_of_another_scale_is_computed():
    """Against draws of (μ, σ): √x is normal, so that E x = μ² + σ², but for what lies below zero."""
    y = np.random.default_rng(2).normal(5.0, 1.0, size=30)
    found = hs.fit(y[:, None] ** 2, names=["lead"], transforms="sqrt").limits()["lead", "mean"]
    assert found.method == "matching posterior"
    assert found.remark == find.OTHER_SCALE
    rng, draws = np.random.default_rng(0), 400_000
    sigma = y.std(ddof=1) / np.sqrt(rng.chisquare(29, draws) / 29)
    means = (y.mean() + rng.standard_normal(draws) * sigma / np.sqrt(30)) ** 2 + sigma**2
    for end, level in ((found.lower, 0.05), (found.upper, 0.95)):
        assert np.mean(means < end) == pytest.approx(level, abs=4 * np.sqrt(0.0475 / draws) + 1e-3)


def test_seeds_and_replicates():
    fit = log_fit()
    first, again, other = (fit.limits(random_state=seed)["lead", "mean"] for seed in (0, 0, 1))
    assert first == again
    assert first.upper != other.upper
    # Of 500 columns the mean of the root is known to 0.045 of its deviations, the deviation to 0.03: as
    # much of the 1.645 that a limit is from the estimate, on the scale of logarithms.
    assert np.log(first.upper / other.upper) == pytest.approx(
        0.0, abs=4 * 0.09 / Z95 * np.log(first.upper / first.estimate)
    )


def test_many_limits_are_gathered(monkeypatch):
    rng = np.random.default_rng(0)
    y, limit = rng.normal(size=(3000, 1)), rng.normal(-0.2, 0.5, size=(3000, 1))
    shown = y >= limit
    data = hs.IntervalData(np.where(shown, y, -np.inf), np.where(shown, y, limit), ("lead",))
    fit = hs.fit(data, random_state=0)
    exact = fit.limits()
    monkeypatch.setattr(lone, "MOST_SETS", 256)
    gathered = fit.limits()
    for a, b in zip(exact.limits, gathered.limits, strict=True):
        assert (b.lower, b.upper) == pytest.approx((a.lower, a.upper), abs=1e-4, nan_ok=True)


class TestSeveralColumns:
    def fit(self, correlation, blank=False, n=80):
        rng = np.random.default_rng(3)
        other = rng.normal(size=n)
        y = correlation * other + np.sqrt(1.0 - correlation**2) * rng.normal(size=n)
        lower, upper = np.where(y < 0.0, -np.inf, y), np.maximum(y, 0.0)
        if blank:
            lower[::4], upper[::4] = -np.inf, np.inf
        ends = (np.stack([end, other], axis=1) for end in (lower, upper))
        return hs.fit(hs.IntervalData(*ends, ("half", "whole")), random_state=0)

    def test_what_goes_together_brings_limits_nearer(self, monkeypatch):
        fit = self.fit(0.9)
        together = fit.limits()
        mean = together["half", "mean"]
        assert mean.method == "joint likelihood"
        assert together["whole", "mean"].method == "Student's t"
        assert together["half", "next 1"].method == "matching posterior"
        monkeypatch.setattr(find.JointColumn, "of", classmethod(lambda *_: None))
        far = fit.limits()["half", "mean"]
        assert mean.upper - mean.estimate < 0.95 * (far.upper - far.estimate)

    def test_columns_that_do_not_go_together_add_nothing(self, monkeypatch):
        fit = self.fit(0.0)
        diagonal = hs.fit(fit.source.X, covariance="diagonal", random_state=0)
        joint = diagonal.limits()
        monkeypatch.setattr(find.JointColumn, "of", classmethod(lambda *_: None))
        alone = diagonal.limits()
        for quantity in ("mean", "quantile 0.95", "tolerance 0.95"):
            a, b = joint["half", quantity], alone["half", quantity]
            assert (a.method, b.method) == ("joint likelihood", "matching posterior")
            # Ends of a profile are found to 2 % of a root of the fall, and better by its slope; where an
            # end from the standard error is within 5 %, it is taken.
            far = b.upper - alone["half", "quantile 0.5"].estimate
            assert (a.lower, a.upper) == pytest.approx((b.lower, b.upper), abs=0.06 * far)

    def test_blank_cells_are_named_where_other_columns_cannot_help(self):
        found = self.fit(0.9, blank=True).limits()
        assert found["half", "mean"].method == "joint likelihood"
        assert found["half", "next 1"].remark == find.BLANK
        assert "blank cells are left out: half (next 1)." in found.to_dict()["notes"]


class TestWords:
    def words(self, fit):
        return {one.quantity: one.remark for one in fit.limits().limits if not one.method}

    def test_little_is_seen(self):
        rule = hs.DetectionLimits(lower=0.0)
        X = np.full((20, 1), np.nan)
        X[:2, 0] = 1.0, 2.0
        with pytest.warns(hs.ConvergenceWarning):
            found = hs.fit(X, rule, names=["lead"], random_state=0).limits()
        assert found["lead", "mean"].remark == "fewer than 3 different values seen"
        assert found["lead", "mean"].method == ""
        assert np.isnan(found["lead", "mean"].upper)
        assert found["lead", "KM mean"].method == "Kaplan–Meier"
        assert "none: fewer than 3 different values seen" in repr(found)

    def test_every_value_is_hidden(self):
        limit = np.arange(1.0, 6.0)
        cells = ColumnCells.from_ends(np.full(5, -np.inf), limit)
        hiding = HiddenByLimits.of(np.full(5, -np.inf), limit)
        assert Lone.of(LoneColumn(cells, hiding), Identity()) == "every value is hidden"
        nothing = LoneColumn(ColumnCells.from_ends([], []), hiding)
        assert Lone.of(nothing, Identity()) == "no cells"
        same = LoneColumn(ColumnCells.from_ends([2.0, 2.0, 2.0], [2.0, 2.0, 2.0]), hiding)
        assert Lone.of(same, Identity()) == "fewer than 3 different values seen"

    def test_other_rules(self):
        truth = hs.Gaussian(np.zeros(2), np.eye(2))
        rule = hs.SelfSelection()
        X = hs.simulate(truth, rule, 100, random_state=0)
        fit = hs.fit(X, rule, covariance="diagonal", random_state=0)
        assert set(self.words(fit).values()) == {
            "other columns take part in hiding it", "only for values below limits",
        }  # fmt: skip
        rule = hs.SelfCensoring(hs.Interval(-1.0, 1.0))
        X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 100, random_state=0)
        fit = hs.fit(X, rule, random_state=0)
        assert self.words(fit)["mean"] == "hidden in one of several ranges"

    def test_other_laws(self):
        X, rule = censored(60, -0.3), hs.DetectionLimits(lower=-0.3)
        heavy = hs.fit(X, rule, errors="t", degrees_of_freedom=5, random_state=0)
        assert self.words(heavy)["mean"] == "errors of a t distribution"
        lost = hs.fit(X, rule, loss=0.1, random_state=0)
        assert self.words(lost)["mean"] == "values are lost beside the rule"
        powers = hs.fit(np.exp(X), hs.DetectionLimits(lower=np.exp(-0.3)), transforms="boxcox")
        assert self.words(powers)["mean"] == "the power of its scale was learned"

    def test_fewer_rows_than_were_measured(self):
        few = log_fit(n=12).limits()["lead", "mean"]
        assert few.method
        assert find.TOO_FEW in few.remark
        assert find.TOO_FEW not in log_fit(n=20).limits()["lead", "mean"].remark
        # 200 rows of which 20 and more are seen were measured, 20 of which 5 are were not.
        assert find.TOO_FEW not in log_fit(200, 1.2).limits()["lead", "mean"].remark
        with pytest.warns(hs.ConvergenceWarning):
            hardly = log_fit(20, 0.8, seed=4)
        assert find.TOO_FEW in hardly.limits()["lead", "mean"].remark


def test_from_zero_to_a_limit_is_below_it():
    x = np.exp(np.random.default_rng(6).normal(size=(40, 1)))
    upper = np.where(x < 0.5, 0.5, x)
    found = [
        hs.fit(
            hs.IntervalData(np.where(x < 0.5, least, x), upper, ("lead",)), transforms="log",
            random_state=0,
        ).limits()
        for least in (0.0, -np.inf)
    ]  # fmt: skip
    assert found[0].rows() == found[1].rows()
    assert found[0]["lead", "mean"].method == "calibrated root"


def test_log_normal_means_that_cannot_be_simulated():
    """Cells that are left unresolved in intervals, beside limits: the posterior, which is cautious."""
    x = np.exp(np.random.default_rng(6).normal(size=(40, 1)))
    lower, upper = np.where(x < 0.5, 0.0, x), np.where(x < 0.5, 0.5, x)
    between = (x > 1.0) & (x < 2.0)
    lower[between], upper[between] = 1.0, 2.0
    data = hs.IntervalData(lower, upper, ("lead",))
    mean = hs.fit(data, transforms="log", random_state=0).limits()["lead", "mean"]
    assert (mean.method, mean.remark) == ("matching posterior", find.CAUTIOUS)


class TestMistakes:
    def test_levels(self):
        fit = log_fit()
        with pytest.raises(hs.InputError, match=r"level must be above 0.5.*one-sided; got 0.05"):
            fit.limits(0.05)
        with pytest.raises(hs.InputError, match=r"coverage must lie between 0 and 1.*got 95"):
            fit.limits(coverage=95)
        with pytest.raises(hs.InputError, match=r"next_values must be a whole number"):
            fit.limits(next_values=0)
        with pytest.raises(hs.InputError, match=r"probabilities must be a list.*got 0.95"):
            fit.limits(probabilities=0.95)
        with pytest.raises(
            hs.InputError, match=r"replicates must be a whole number of at least 100"
        ):
            fit.limits(replicates=10)

    def test_a_limit_that_is_not_there(self):
        found = log_fit().limits()
        with pytest.raises(hs.InputError, match=r"no limit \('lead', 'UCL'\).*\('lead', 'mean'\)"):
            found["lead", "UCL"]
        with pytest.raises(hs.InputError, match="no limit"):
            found["lead"]

    def test_a_fit_without_its_table(self, tmp_path):
        log_fit().save(tmp_path / "lead.hsfit")
        with pytest.raises(hs.InputError, match="limits need the rows"):
            hs.load(tmp_path / "lead.hsfit").limits()


def test_as_plain_data():
    found = log_fit().limits()
    record = found.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["level"] == 0.95
    assert len(record["rows"]) == len(found.limits)
    tolerance = next(row for row in record["rows"] if row["quantity"] == "tolerance 0.95")
    assert tolerance["estimate"] is None
    assert tolerance["upper"] == found["lead", "tolerance 0.95"].upper
    assert any(note.startswith("calibrated root:") for note in record["notes"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.level = 0.9
    assert all(len(line) <= 95 for line in repr(found).splitlines())


def test_groups_have_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + np.repeat([0.0, 4.0], 30)[:, None]
    fit = hs.fit(X, by=["A"] * 30 + ["B"] * 30, names=["lead"])
    found = fit.limits()
    assert isinstance(found, LimitTable)
    alone = hs.fit(X[30:], names=["lead"]).limits()["lead", "mean"]
    assert found["B", "lead", "mean"].upper == pytest.approx(alone.upper, rel=1e-6)
    assert found.rows()[0][fit.by] == "A"
    assert f"{fit.by} B" in repr(found).splitlines()


def test_a_group_without_a_fit_has_a_word():
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.repeat(["A", "B"], 30)
    X[X[:, 1] < -1.0, 1] = X[labels == "B", 1] = np.nan
    rule = hs.DetectionLimits(lower=[-np.inf, -1.0])
    fit = hs.fit(X, rule, by=labels, names=["lead", "zinc"], random_state=0)
    found = fit.limits()
    assert found["B", "zinc", "mean"].method == ""
    assert found["B", "zinc", "mean"].remark == fit.borrowed["B"]


def test_no_end():
    """A limit beyond what a double holds has no end, and says so."""
    x = np.array([1e-60, 1e-20, 1.0, 1e20, 1e60])[:, None]
    found = hs.fit(x, names=["lead"], transforms="log").limits()["lead", "mean"]
    assert np.isinf(found.upper)
    assert find.NO_END in found.remark
    assert found.lower > 0.0


def test_transforms_of_limits():
    """Where columns are logarithms, a limit is the logarithm of a limit; the mean is not."""
    column = measured.column(measured.Design(30, 0.3, False), np.random.default_rng(0))
    moved = dataclasses.replace(
        column,
        cells=dataclasses.replace(
            column.cells, values=np.exp(column.cells.values), lower=np.exp(column.cells.lower),
            upper=np.exp(column.cells.upper),
        ),
        hiding=column.hiding.moved(np.exp),
    )  # fmt: skip
    a, b = Lone.of(column, Identity()), Lone.of(moved, Log())
    for number in (Number(), Number(tilt=Z95), Number(bend=1.0)):
        assert b.estimate(number) == pytest.approx(a.estimate(number), abs=1e-9)
        assert b.posterior.quantile(number, 0.95) == pytest.approx(
            a.posterior.quantile(number, 0.95), abs=1e-7
        )
