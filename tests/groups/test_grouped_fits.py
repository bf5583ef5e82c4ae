"""Fits of groups: what each group has, borrows and lacks; what is refused; what is shown."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfseen as hs

QUIET = {"random_state": 0, "n_jobs": 1}


def wells(seed=0, n=60):
    rng = np.random.default_rng(seed)
    names = np.array(["W10", "W2", "W1"])[np.arange(n) % 3]
    Y = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.6], [0.6, 1.0]], n)
    Y[names == "W10"] += 1.0
    return np.where(Y >= [0.5, 1.5], Y, np.nan), names


RULE = hs.DetectionLimits(lower=[0.5, 1.5])


def test_each_group_has_the_fit_of_its_rows():
    X, by = wells()
    fit = hs.fit(X, RULE, by=by, names=["lead", "zinc"], **QUIET)
    assert fit.groups == ("W1", "W2", "W10")
    for label in fit.groups:
        alone = hs.fit(X[by == label], RULE, **QUIET)
        assert fit[label].log_likelihood.value == pytest.approx(
            alone.log_likelihood.value, abs=0.05
        )
        # To the accuracy of fits: a share of their standard errors.
        gap = np.abs(fit[label].mean - alone.mean) / alone.standard_errors.mean
        assert gap.max() < 0.1
        assert fit[label].impute().shape == (20, 2)
    whole = hs.fit(X, RULE, names=["lead", "zinc"], **QUIET)
    assert fit.pooled.gaussian == whole.gaussian


def test_limits_by_row_follow_their_rows():
    X, by = wells()
    rng = np.random.default_rng(1)
    limits = rng.choice([0.2, 0.8, 1.4], size=X.shape)
    X = np.where(np.nan_to_num(X, nan=-9.0) >= limits, X, np.nan)
    fit = hs.fit(X, hs.DetectionLimits(lower=limits), by=by, **QUIET)
    own = by == "W2"
    np.testing.assert_array_equal(fit["W2"].source.missingness.lower, limits[own])
    alone = hs.fit(X[own], hs.DetectionLimits(lower=limits[own]), **QUIET)
    assert fit["W2"].log_likelihood.value == pytest.approx(alone.log_likelihood.value, abs=0.05)
    # Named limits in another order than the columns.
    frame = pd.DataFrame(X, columns=["lead", "zinc"])
    turned = hs.DetectionLimits(lower=pd.DataFrame(limits[:, ::-1], columns=["zinc", "lead"]))
    named = hs.fit(frame, turned, by=by, **QUIET)["W2"]
    np.testing.assert_array_equal(named.source.original_rule.lower, limits[own])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_the_column_of_groups_is_taken_out_of_a_frame(make):
    X, by = wells()
    columns = {"lead": X[:, 0], "Well": by, "zinc": X[:, 1]}
    fit = hs.fit(make({k: list(v) for k, v in columns.items()}), RULE, by="Well", **QUIET)
    plain = hs.fit(X, RULE, by=by, **QUIET)
    assert fit.by == "Well"
    assert fit.names == ("lead", "zinc")
    assert [t.statistic for t in fit.tests()] == [t.statistic for t in plain.tests()]
    assert fit["W1"].draw_imputations(m=2, random_state=0).shape == (2, 20, 2)


def test_numbers_stay_numbers_and_categories_keep_their_order():
    X, _ = wells()
    fit = hs.fit(X, RULE, by=np.array([10.0, 9.0, 2.5])[np.arange(60) % 3], **QUIET)
    assert fit.groups == (2.5, 9, 10)
    assert fit[9].rows == 20
    frame = pd.DataFrame(X, columns=["lead", "zinc"])
    order = ["new", "old"]
    frame["age"] = pd.Categorical(["old", "new"] * 30, categories=["newer", *order], ordered=True)
    assert hs.fit(frame, RULE, by="age", **QUIET).groups == ("new", "old")


def test_small_groups_borrow_and_say_so(tmp_path):
    X, by = wells()
    by = by.astype(object)
    by[:2] = "small"
    by[2] = "one row"
    X[2] = [np.nan, 3.0]
    fit = hs.fit(X, RULE, by=by, names=["lead", "zinc"], **QUIET)
    assert set(fit.borrowed) == {"small", "one row"}
    assert fit.borrowed["small"] == "2 rows for 2 columns"
    assert fit.borrowed["one row"] == "no value of lead is seen"
    np.testing.assert_allclose(fit["small"].covariance, fit.covariance, rtol=1e-9)
    # With a given covariance its mean is that of the model with equal ones.
    place = fit.groups.index("small")
    np.testing.assert_allclose(fit["small"].mean, fit.means().estimate[place], atol=0.02)
    assert "borrows" in fit["small"].notes[0].text
    with pytest.raises(hs.InputError, match="one row has no fit of its own"):
        fit["one row"]
    with pytest.raises(hs.InputError, match="there is no group 'W7'"):
        fit["W7"]
    unknown = fit.groups.index("one row")
    assert np.isnan(fit.means().estimate[unknown, 0])
    assert np.isfinite(fit.means().estimate[unknown, 1])
    assert [len(test.groups) for test in fit.tests()] == [5, 3, 3]
    text = fit.summary()
    assert "small (2 rows for 2 columns)" in text
    assert "No value of lead is seen in one row" in text
    assert max(map(len, text.splitlines())) <= 80
    json.dumps(fit.to_dict(), allow_nan=False)


def test_a_column_that_is_wholly_hidden_has_the_likelihood_of_a_mean_far_away():
    """All its cells lie below their limits: the further the mean, the likelier, up to 1."""
    X, by = wells()
    hidden = by == "W1"
    X[hidden, 0] = np.nan
    statistic = hs.fit(X, RULE, by=by, **QUIET).tests()[0].statistic
    Z = X.copy()
    # The same with values far below that are seen to be where they are, all of them alike.
    lower, upper = np.where(np.isnan(Z), -np.inf, Z), np.where(np.isnan(Z), [0.5, 1.5], Z)
    again = hs.fit(hs.IntervalData(lower, upper), by=by, **QUIET).tests()[0].statistic
    assert statistic == pytest.approx(again, abs=1e-3)
    assert statistic > 20.0
    blank = np.zeros(X.shape, dtype=bool)
    blank[hidden, 0] = True
    simply = hs.fit(X, RULE, by=by, missing_at_random=blank, **QUIET).tests()[0]
    # A mean that nothing is said of is not compared.
    assert simply.degrees_of_freedom == 3
    assert simply.statistic < statistic


def test_logarithms_give_ratios_of_medians_whatever_the_units():
    X, by = wells()
    X, rule = np.exp(X), hs.DetectionLimits(lower=np.exp([0.5, 1.5]))
    natural = hs.fit(X, rule, by=by, transforms="log", **QUIET)
    tens = hs.fit(1000.0 * X, hs.DetectionLimits(lower=1000.0 * np.exp([0.5, 1.5])), by=by,
                  transforms={"x0": "log10", "x1": "log"}, **QUIET)  # fmt: skip
    one, other = natural.differences(), tens.differences()
    assert one.scales == other.scales == ("ratio", "ratio")
    np.testing.assert_allclose(one.estimate, other.estimate, rtol=1e-3)
    np.testing.assert_allclose(one.lower, other.lower, rtol=5e-3)
    np.testing.assert_allclose(1000.0 * natural.means().median, tens.means().median, rtol=1e-3)
    powers = hs.fit(X, rule, by=by, transforms={"x0": "sqrt", "x1": "none"}, **QUIET)
    assert powers.differences().scales == ("difference of sqrt", "difference")


def test_families_are_all_pairs_or_those_of_a_column():
    X, by = wells()
    fit = hs.fit(X, RULE, by=by, **QUIET)
    every, column = fit.differences(), fit.differences(family="column")
    assert (every.comparisons, column.comparisons) == (6, 3)
    assert (every.p_value >= column.p_value - 1e-12).all()
    assert (column.p_value >= column.p_single - 1e-12).all()
    assert (every.p_value <= np.minimum(6.0 * every.p_single, 1.0) + 1e-12).all()
    with pytest.raises(hs.InputError, match="family must be"):
        fit.differences(family="pairs")


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring([hs.between(0.0, 3.0), hs.at_least(1.5)]),
        hs.SelfSelection(),
        hs.SelfCensoring(hs.Probability(lambda x: 1.0 / (1.0 + np.exp(-3.0 * x)))),
        hs.LinearThreshold([[0.0, 0.0], [-1.0, 0.0]], [1.0, -0.5]),
        None,
    ],
)
def test_rules_of_all_kinds(rule):
    rng = np.random.default_rng(0)
    Y = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.3], [0.3, 1.0]], 60)
    X = Y if rule is None else np.where(rule.seen(Y), Y, np.nan)
    with warnings.catch_warnings():
        # Of winners alone little is known.
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        fit = hs.fit(X, rule, by=["A", "B"] * 30, **QUIET)
    assert all(0.0 <= test.p_value <= 1.0 for test in fit.tests())
    assert all(test.statistic > -0.1 for test in fit.tests())


BAD = [
    ({"by": ["A"] * 60}, "has one group: all 60 rows"),
    ({"by": list(range(60))}, "as many groups as rows"),
    ({"by": ["A", "B"]}, "2 labels, but the table 60 rows"),
    ({"by": [None, *["A", "B"] * 29, "A"]}, "the row has no group"),
    ({"by": [float("nan"), *["A", "B"] * 29, "A"]}, "the row has no group"),
    ({"by": [" ", *["A", "B"] * 29, "A"]}, "the row has no group"),
    ({"by": [["A", "B"]] * 60}, "one label for each row"),
    ({"by": [{}] + ["A"] * 59}, "must be a text or a number"),
    ({"by": 3}, "the name of a column, or a label for each row"),
    ({"by": "Well"}, "names a column of a data frame"),
    ({"by": np.arange(60) // 1.04}, "leave .* to learn how 2 columns vary"),
    ({"by": ["A", "B"] * 30, "loss": 0.1}, "loss= does not go with by="),
    ({"by": ["A", "B"] * 30, "errors": "t"}, "normal errors"),
    ({"by": ["A", "B"] * 30, "covariance": "diagonal"}, "must be free"),
    ({"by": ["A", "B"] * 30, "covariance": np.eye(2)}, "must be free"),
    ({"by": ["A", "B"] * 30, "method": "pairwise"}, "needs method='full'"),
    ({"by": ["A", "B"] * 30, "memory": "1GB"}, "needs the table in memory"),
]


@pytest.mark.parametrize(("options", "sentence"), BAD, ids=[words for _, words in BAD])
def test_what_cannot_be_grouped_is_a_sentence(options, sentence):
    X, _ = wells()
    with pytest.raises((hs.InputError, hs.NotIdentifiedError), match=sentence):
        hs.fit(X, RULE, **options)


def test_frames_and_tables_that_lack_the_column_say_so():
    X, by = wells()
    frame = pd.DataFrame(X, columns=["lead", "zinc"]).assign(Well=by)
    with pytest.raises(hs.InputError, match=r"did you mean 'Well'\?"):
        hs.fit(frame, by="well")
    with pytest.raises(hs.InputError, match="rows with other labels"):
        hs.fit(frame[["lead", "zinc"]], by=frame["Well"].iloc[::-1])
    with pytest.raises(hs.InputError, match="keeps no column 'Well'"):
        hs.fit(hs.from_frame(frame[["lead", "zinc"]]), by="Well")
    with pytest.raises(hs.InputError, match="RowTruncation"):
        hs.fit([[1.0], [2.0]] * 9, hs.RowTruncation(lambda Y: Y[:, 0] > 0), by=["A", "B"] * 9)


def test_a_table_of_intervals_keeps_its_columns():
    X, by = wells()
    frame = pd.DataFrame(X, columns=["lead", "zinc"]).astype(object)
    frame = frame.where(frame.notna(), ["<0.5", "<1.5"]).assign(Well=by)
    data = hs.from_frame(frame, keep=["Well"])
    assert data.names == ("lead", "zinc")
    assert data.take(slice(0, 3)).kept == {"Well": ("W10", "W2", "W1")}
    fit = hs.fit(data, by="Well", **QUIET)
    plain = hs.fit(X, RULE, by=by, **QUIET)
    assert fit.tests()[0].statistic == pytest.approx(plain.tests()[0].statistic, abs=1e-3)
    assert fit.tests(19)[0].permuted.size == 19
    with pytest.raises(hs.InputError, match="kept must have 60 values of Well"):
        hs.IntervalData(data.lower, data.upper, kept={"Well": ["A"]})


def test_the_page_shows_groups_and_escapes_their_names(tmp_path):
    X, by = wells()
    by = np.where(by == "W1", "<b>W1</b>", by)
    fit = hs.fit(X, RULE, by=by, names=["lead", "zinc"], **QUIET)
    page = fit.report(tmp_path / "wells.html").read_text(encoding="utf-8")
    for part in ("Groups side by side", "Do they differ?", "All differences", "equal covariances"):
        assert part in page
    assert "<b>W1</b>" not in page
    assert "by='group'" in page.replace("&#x27;", "'")
    for draw in (fit.plot.means, fit.plot.differences):
        ax = draw("zinc")
        assert "zinc" in ax.get_xlabel()
        ax.figure.clear()
    with pytest.raises(hs.InputError, match="not saved as one"):
        fit.save(tmp_path / "wells.hsfit")
    with pytest.raises(hs.InputError, match="at least 19"):
        fit.tests(replicates=5)
