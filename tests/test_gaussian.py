import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import halfseen as hs


def test_logpdf_marginal_and_precision_match_scipy(three, rng):
    Y = rng.normal(size=(20, 3)) * 3
    ref = stats.multivariate_normal(three.mean, three.covariance)
    np.testing.assert_allclose(three.logpdf(Y), ref.logpdf(Y), rtol=1e-12)
    assert three.logpdf(Y[0]) == pytest.approx(ref.logpdf(Y[0]))
    np.testing.assert_allclose(three.precision @ three.covariance, np.eye(3), atol=1e-12)
    part = three.marginal([2, 0])
    np.testing.assert_array_equal(part.mean, three.mean[[2, 0]])
    assert part.covariance[0, 1] == three.covariance[2, 0]


def test_conditional_density_is_joint_over_marginal(three):
    given_values = [0.3, 8.0]
    conditional = three.condition([0, 2], given_values)
    for y in (-3.0, 0.0, 2.0):
        joint = three.logpdf([0.3, y, 8.0])
        marginal = three.marginal([0, 2]).logpdf(given_values)
        assert conditional.logpdf([y]) == pytest.approx(joint - marginal, rel=1e-10)


def test_conditioning_does_not_mind_units():
    scale = np.array([1e-9, 1.0, 1e9])
    R = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    plain = hs.Gaussian(np.zeros(3), R).condition([0, 2], [1.0, 2.0])
    scaled = hs.Gaussian(np.zeros(3), R * np.outer(scale, scale)).condition([0, 2], [1e-9, 2e9])
    np.testing.assert_allclose(scaled.mean, plain.mean, rtol=1e-12)
    np.testing.assert_allclose(scaled.covariance, plain.covariance, rtol=1e-12)


def test_sample_has_the_right_moments(three):
    n = 100_000
    Y = three.sample(n, 0)
    # Five standard errors in the metric of the truth: √(d/n), √(d(d+1)/n).
    assert hs.metrics.mahalanobis_error(Y.mean(axis=0), three) < 5 * np.sqrt(3 / n)
    assert hs.metrics.relative_frobenius_error(np.cov(Y.T), three) < 5 * np.sqrt(12 / n)
    np.testing.assert_array_equal(three.sample(5, 1), three.sample(5, 1))


def test_it_does_not_change(three):
    with pytest.raises(AttributeError, match="does not change"):
        three.mean = [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        three.mean[0] = 1.0
    source = np.zeros(2)
    g = hs.Gaussian(source, np.eye(2))
    source[0] = 5.0
    assert g.mean[0] == 0.0


def test_equality_hash_repr_and_copies(three):
    twin = hs.Gaussian(three.mean, three.covariance)
    assert twin == three
    assert hash(twin) == hash(three)
    assert hash(hs.Gaussian([0.0], [[1.0]])) == hash(hs.Gaussian([-0.0], [[1.0]]))
    assert three != hs.Gaussian(three.mean + 1, three.covariance)
    assert three != 3
    assert pickle.loads(pickle.dumps(three)) == three
    assert eval(repr(three), {"Gaussian": hs.Gaussian}) == three
    assert repr(hs.Gaussian(np.zeros(9), np.eye(9))) == "Gaussian(dimension=9)"


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=2), st.floats(-0.99, 0.99))
def test_save_and_load_keep_every_bit(tmp_path_factory, mean, rho):
    g = hs.Gaussian(mean, [[1.0, rho / 3], [rho / 3, 1 / 7]])
    path = tmp_path_factory.mktemp("g") / "g.json"
    g.save(path)
    assert hs.Gaussian.load(path) == g
    assert os.listdir(path.parent) == ["g.json"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("{}", 'lacks "format"'),
        ("[1, 2]", 'lacks "format"'),
        ('{"format": "halfseen.gaussian", "version": 99}', "version 99; this halfseen reads"),
        ('{"format": "halfseen.gaussian", "version": 1}', "covariance|mean"),
        (
            json.dumps(
                {"format": "halfseen.gaussian", "version": 1, "mean": ["a"], "covariance": [[1]]}
            ),
            "not a saved Gaussian",
        ),
        (
            json.dumps(
                {
                    "format": "halfseen.gaussian",
                    "version": 1,
                    "mean": [0, 0],
                    "covariance": [[1, 2], [2, 1]],
                }
            ),
            "positive definite",
        ),
    ],
)
def test_foreign_files_are_refused_with_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "g.json"
    path.write_text(content)
    with pytest.raises(hs.InputError, match=sentence):
        hs.Gaussian.load(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, three, monkeypatch):
    path = tmp_path / "g.json"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        three.save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["g.json"]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hs.Gaussian([0, 0], [[1, 2], [2, 1]]), "smallest eigenvalue is -1"),
        (lambda: hs.Gaussian([0, 0], [[1, 0.5], [0.2, 1]]), r"symmetric; entry \(0, 1\) is 0.5"),
        (
            lambda: hs.Gaussian(np.zeros(3), [[1e10, 0, 0], [0, 1, 0.9], [0, 0.1, 1]]),
            r"symmetric; entry \(1, 2\) is 0.9",
        ),
        (lambda: hs.Gaussian([0], [[1]]).sample(2.5), "number of rows"),
        (lambda: hs.Gaussian([0], [[1]]).logpdf([np.nan]), "must be finite"),
        (lambda: hs.Gaussian([0, 0], np.eye(3)), r"shape \(2, 2\).*got \(3, 3\)"),
        (lambda: hs.Gaussian([0, np.nan], np.eye(2)), "mean must be finite; entry 1 is nan"),
        (lambda: hs.Gaussian([0], [[np.inf]]), r"entry \(0, 0\) is inf"),
        (lambda: hs.Gaussian([], []), "at least one entry"),
        (lambda: hs.Gaussian([0, 0], np.eye(2)).marginal([2]), "run from 0 to 1; got 2"),
        (lambda: hs.Gaussian([0, 0], np.eye(2)).marginal([0, 0]), "named once"),
        (lambda: hs.Gaussian([0, 0], np.eye(2)).marginal([0.5]), "whole numbers"),
        (lambda: hs.Gaussian([0, 0], np.eye(2)).marginal([]), "at least one coordinate"),
        (lambda: hs.Gaussian([0, 0], np.eye(2)).condition([0], [1, 2]), "1 indices, 2 values"),
        (lambda: hs.Gaussian([0], [[1]]).condition([0], [1]), "nothing is left"),
        (lambda: hs.Gaussian([0], [[1]]).logpdf([[1, 2]]), "rows must have 1 values"),
        (lambda: hs.Gaussian([0], [[1]]).sample(-1), "at least 0"),
    ],
)
def test_bad_input_gets_a_sentence(make, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        make()
