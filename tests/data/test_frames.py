"""Names everywhere: what came as a frame goes back as one."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfseen as hs
from halfseen.data.table import frame_kind, frame_of, labelled

NAMES = ["lead", "zinc"]
RULE = hs.DetectionLimits(lower={"lead": -0.2, "zinc": 0.1})
X = hs.simulate(hs.Gaussian([0.3, 0.5], [[1.0, 0.5], [0.5, 1.0]]), RULE.for_columns(NAMES), 200, 0)


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(X, columns=NAMES, index=[f"sample {i}" for i in range(len(X))])


@pytest.fixture(scope="module")
def fit(frame):
    return hs.fit(frame, RULE, random_state=0)


def test_pandas_in_labels_out(frame, fit):
    plain = hs.fit(X, hs.DetectionLimits(lower=[-0.2, 0.1]), random_state=0)
    assert fit.mean["lead"] == plain.mean[0]
    assert fit.covariance.loc["lead", "zinc"] == plain.covariance[0, 1]
    assert fit.correlation.loc["zinc", "lead"] == plain.correlation[1, 0]
    errors = fit.standard_errors
    assert errors.mean["zinc"] == plain.standard_errors.mean[1]
    assert errors.standard_deviation["zinc"] == plain.standard_errors.standard_deviation[1]
    assert errors.correlation.loc["lead", "zinc"] == plain.standard_errors.correlation[0, 1]
    interval, reference = fit.confidence_interval(0.9), plain.confidence_interval(0.9)
    assert interval.mean.lower["lead"] == reference.mean.lower[0]
    assert interval.correlation.upper.loc["lead", "zinc"] == reference.correlation.upper[0, 1]
    assert (
        errors.intervals(0.9).covariance.lower.loc["zinc", "zinc"]
        == (reference.covariance.lower[1, 1])
    )
    ratio = errors.of(lambda mean, covariance: mean[0] / covariance[0, 0] ** 0.5)
    assert ratio.value == plain.standard_errors.of(lambda m, S: m[0] / S[0, 0] ** 0.5).value


def test_filled_tables_keep_index_and_columns(frame, fit):
    filled = fit.impute()
    assert isinstance(filled, pd.DataFrame)
    assert filled.index.equals(frame.index)
    assert list(filled.columns) == NAMES
    assert (filled.to_numpy()[~np.isnan(X)] == X[~np.isnan(X)]).all()
    part = fit.impute(frame.iloc[5:9])
    assert list(part.index) == list(frame.index[5:9])
    assert isinstance(fit.impute(X), np.ndarray)


@pytest.mark.parametrize(("library", "make"), [("polars", pl.DataFrame), ("pyarrow", pa.table)])
def test_other_libraries_get_their_own_frames_back(library, make):
    given = make({name: X[:, j] for j, name in enumerate(NAMES)})
    fit = hs.fit(given, RULE, random_state=0)
    assert fit.names == tuple(NAMES)
    assert isinstance(fit.mean, np.ndarray)
    filled = fit.impute()
    assert type(filled) is type(given)
    assert frame_kind(filled) == library


def test_intervals_from_a_frame_are_labelled(frame):
    hidden = np.isnan(X)
    data = hs.IntervalData(
        np.where(hidden, -np.inf, X),
        np.where(hidden, [-0.2, 0.1], X),
        NAMES,
        labels=list(frame.index),
        frame="pandas",
    )
    fit = hs.fit(data, random_state=0)
    assert list(fit.mean.index) == NAMES
    assert list(fit.impute().index) == list(frame.index)


def test_an_index_comes_back_as_it_was(frame):
    dates = frame.set_axis(pd.date_range("2020-01-01", periods=len(frame)), axis=0)
    for given in (dates, frame.reset_index(drop=True).iloc[20:120]):
        fit = hs.fit(
            hs.from_frame(given), RULE, missing_at_random=given.isna().to_numpy(), random_state=0
        )
        assert fit.impute().index.equals(given.index)


def test_equal_names_are_refused(frame):
    twice = frame.set_axis(["lead", "lead"], axis=1)
    with pytest.raises(hs.InputError, match="'lead' stands twice"):
        hs.fit(twice, None)


def test_tables_can_be_drawn_like_the_one_that_was_fitted(fit):
    drawn = fit.simulate(300, random_state=1)
    assert list(drawn.columns) == NAMES
    share = drawn.isna().mean()
    assert (abs(share - (1.0 - fit.seen_share)) < 5 * np.sqrt(0.25 / 300)).all()
    whole = fit.simulate(10, hs.SelfCensoring(hs.everything))
    assert not whole.isna().any().any()
    with pytest.raises(hs.InputError, match=r"fit\.simulate\(n\)"):
        hs.simulate(fit, RULE, 10)


def test_an_array_stays_an_array():
    fit = hs.fit(X, hs.DetectionLimits(lower=[-0.2, 0.1]), random_state=0)
    for found in (fit.mean, fit.covariance, fit.impute(), fit.standard_errors.mean):
        assert type(found) is np.ndarray


def test_set_output_gives_frames(frame):
    model = hs.CensoredGaussian(RULE, random_state=0).set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == NAMES
    assert out.index.equals(frame.index)
    assert isinstance(model.mean_, np.ndarray)


def test_helpers():
    assert frame_kind([[1.0]]) is None
    assert frame_kind(pd.Series([1.0])) is None
    assert labelled(np.zeros(2), NAMES, "polars").shape == (2,)
    with pytest.raises(hs.InputError, match="a frame is one of pandas, polars, pyarrow; got 'x'"):
        frame_of(np.zeros((1, 2)), NAMES, "x")
