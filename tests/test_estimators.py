import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import halfseen as hs


@parametrize_with_checks([hs.CensoredGaussian(), hs.CensoredGaussian(method="pairwise")])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_is_the_twin_of_fit(three):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 500, 0)
    model = hs.CensoredGaussian(rule, random_state=0).fit(X)
    ref = hs.fit(X, rule, random_state=0)
    np.testing.assert_array_equal(model.mean_, ref.mean)
    np.testing.assert_array_equal(model.covariance_, ref.covariance)
    np.testing.assert_allclose(model.precision_ @ model.covariance_, np.eye(3), atol=1e-10)
    assert model.fit_.method == "full"
    assert repr(clone(model)) == repr(model)


def test_chunks_give_the_answer_of_the_whole(three):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 3000, 0)
    whole = hs.CensoredGaussian(rule, method="pairwise").fit(X)
    chunked = hs.CensoredGaussian(rule)
    for part in np.array_split(X, 5):
        chunked.partial_fit(part)
    np.testing.assert_allclose(chunked.mean_, whole.mean_, rtol=1e-12)
    np.testing.assert_allclose(chunked.covariance_, whole.covariance_, rtol=1e-12)
    assert chunked.fit_.rows == 3000
    # fit starts anew, and further chunks add to it
    chunked.fit(X[:1000])
    assert chunked.fit_.rows == 1000
    chunked.partial_fit(X[1000:])
    np.testing.assert_allclose(chunked.covariance_, whole.covariance_, rtol=1e-12)


def test_chunks_that_say_too_little_wait_for_more(three):
    X = three.sample(200, 0)
    first = X[:50].copy()
    first[:, 1] = np.nan
    model = hs.CensoredGaussian()
    with pytest.warns(hs.AssumptionWarning, match=r"50 rows do not determine.*x1 is hidden in all"):
        model.partial_fit(first)
    assert not hasattr(model, "mean_")
    with pytest.warns(hs.AssumptionWarning, match="no rule is stated"):
        model.partial_fit(X[50:])
    assert model.fit_.rows == 200


def test_masked_cells_are_hidden():
    masked = np.ma.array(np.random.default_rng(0).normal(size=(50, 2)), mask=False)
    masked[0, 0] = 1e6
    masked[0, 0] = np.ma.masked
    ref = hs.fit(masked, hs.DetectionLimits(lower=-9), random_state=0)
    model = hs.CensoredGaussian(hs.DetectionLimits(lower=-9), random_state=0).fit(masked)
    np.testing.assert_array_equal(model.mean_, ref.mean)


def test_names_of_a_frame_reach_results_and_errors():
    frame = pd.DataFrame({"lead": np.arange(1.0, 13.0), "zinc": np.arange(12.0) ** 2 % 7})
    assert hs.CensoredGaussian().fit(frame).fit_.names == ("lead", "zinc")
    with pytest.raises(hs.ContradictionError, match="row 0, column lead"):
        hs.CensoredGaussian(hs.DetectionLimits(lower=1.5)).fit(frame)
    with pytest.raises(hs.ContradictionError, match="row 0, column lead"):
        hs.CensoredGaussian(hs.DetectionLimits(lower=1.5)).partial_fit(frame)


def test_partial_fit_refuses_what_it_cannot_stream():
    X = np.ones((3, 1))
    for model, sentence in (
        (hs.CensoredGaussian(method="truncation_psgd"), "partial_fit works with"),
        (hs.CensoredGaussian(hs.DetectionLimits(np.zeros((3, 1)))), "same rule in every row"),
        (hs.CensoredGaussian(hs.RowTruncation(lambda Y: Y[:, 0] > 0)), "same rule in every row"),
    ):
        with pytest.raises(hs.InputError, match=sentence):
            model.partial_fit(X)


def test_linear_thresholds_take_the_covariance():
    truth = hs.Gaussian([0.0, 0.5], [[1.0, 0.5], [0.5, 1.0]])
    rule = hs.LinearThreshold.larger_of(0, 1, 2)
    X = hs.simulate(truth, rule, 300, 0)
    model = hs.CensoredGaussian(rule, covariance=truth.covariance, random_state=0).fit(X)
    np.testing.assert_array_equal(
        model.mean_, hs.fit(X, rule, covariance=truth.covariance, random_state=0).mean
    )
    with pytest.raises(hs.InputError, match="needs the covariance"):
        hs.CensoredGaussian(rule, method="missing_descent").fit(X)


def test_limits_with_names_find_their_columns_everywhere():
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 3)), columns=list("abc"))
    frame.loc[frame.a < -0.9, "a"] = np.nan
    frame.loc[frame.c < -0.3, "c"] = np.nan
    limits = hs.DetectionLimits({"c": -0.3, "a": -0.9})
    ref = hs.fit(frame, limits, "pairwise").mean
    model = hs.CensoredGaussian(limits, method="pairwise")
    np.testing.assert_allclose(model.fit(frame).mean_, ref, rtol=1e-12)
    np.testing.assert_allclose(
        hs.CensoredGaussian(limits).partial_fit(frame).mean_, ref, rtol=1e-12
    )
    assert hs.diagnose(frame, limits).subset == ("a", "c")


def test_doubtful_input_is_warned_of_as_by_fit():
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[:50, 0] = np.nan
    with pytest.warns(hs.AssumptionWarning, match="no rule is stated"):
        hs.CensoredGaussian().fit(X)
    filled = np.maximum(np.nan_to_num(X, nan=-1.0), -1.0)
    with pytest.warns(hs.AssumptionWarning, match="exactly on the limit"):
        hs.CensoredGaussian(hs.DetectionLimits(lower=-1.0)).fit(filled)


def test_transform_fills_the_holes_and_leaves_the_rest(three):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 300, 0)
    frame = pd.DataFrame(X, columns=list("abc"))
    model = hs.CensoredGaussian(rule, random_state=0).set_output(transform="pandas")
    filled = model.fit_transform(frame)
    assert list(filled.columns) == ["a", "b", "c"]
    hidden = np.isnan(X)
    np.testing.assert_array_equal(filled.to_numpy()[~hidden], X[~hidden])
    below = np.broadcast_to([0.5, -3.0, 9.0], X.shape)
    assert (filled.to_numpy()[hidden] < below[hidden]).all()
    # A single new row is filled too.
    assert np.isfinite(model.transform(frame.iloc[:1]).to_numpy()).all()


def test_score_is_the_log_likelihood_of_a_row(three):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 300, 0)
    model = hs.CensoredGaussian(rule, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(model.fit_.log_likelihood.value / 300, rel=1e-6)
    complete = three.sample(200, 1)
    plain = hs.CensoredGaussian().fit(complete)
    ref = hs.Gaussian(plain.mean_, plain.covariance_).logpdf(complete).mean()
    assert plain.score(complete) == pytest.approx(ref, rel=1e-10)


def test_options_reach_the_solver(three):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 300, 0)
    known = [1.0, -2.0, 10.0]
    model = hs.CensoredGaussian(
        rule, covariance="diagonal", options={"mean": known}, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.mean_, known, rtol=1e-12)
    assert np.count_nonzero(model.covariance_) == 3
