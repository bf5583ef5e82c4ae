import dataclasses
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs

METHODS = ("truncation", "pairwise")


def _toy(three, n=400, seed=0):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0], upper=[3.0, np.nan, 16.0])
    return rule, hs.simulate(three, rule, n, seed)


def test_auto_takes_the_sharpest_that_the_rule_allows(three):
    rule, X = _toy(three)
    assert hs.fit(X, rule).method == "pairwise"
    assert hs.fit(three.sample(50, 0)).method == "truncation"
    truncation = hs.Truncation(lambda Y: Y[:, 0] > -99)
    assert hs.fit(three.sample(50, 0), truncation, random_state=0).method == "truncated_sgd"


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3),
    st.lists(st.floats(-1e4, 1e4), min_size=3, max_size=3),
    st.permutations([0, 1, 2]),
)
def test_answer_moves_with_units_and_order_of_columns(method, scale, shift, order):
    truth = hs.Gaussian([1.0, -2.0, 10.0], [[1.0, 0.8, -1], [0.8, 4, 1.5], [-1, 1.5, 9]])
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0], upper=[3.0, np.nan, 16.0])
    X = hs.simulate(truth, rule, 300, 1)
    scale, shift, order = np.array(scale), np.array(shift) * np.array(scale), list(order)
    ref = hs.fit(X, rule, method)
    moved = hs.DetectionLimits(
        lower=(rule.lower * scale + shift)[order], upper=(rule.upper * scale + shift)[order]
    )
    # Values on a limit must stay on its side after rounding.
    Z = np.clip((X * scale + shift)[:, order], moved.lower, moved.upper)
    comp = hs.fit(Z, moved, method)
    deviations = ref.gaussian.standard_deviations
    # A shift of 1e4 standard deviations costs four of sixteen digits, conditioning a few more.
    np.testing.assert_allclose(
        (comp.mean - shift[order]) / (scale * deviations)[order],
        (ref.mean / deviations)[order],
        atol=1e-6,
    )
    np.testing.assert_allclose(comp.correlation, ref.correlation[np.ix_(order, order)], atol=1e-6)


def test_threads_do_not_change_a_bit(three):
    d = 12
    truth = hs.Gaussian(np.zeros(d), 0.5 * np.eye(d) + 0.5)
    rule = hs.DetectionLimits(lower=-0.5)
    X = hs.simulate(truth, rule, 30_000, 0)
    for method in METHODS:
        one, two = (hs.fit(X, rule, method, n_jobs=jobs) for jobs in (1, 2))
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.covariance, two.covariance)


SCRIPT = """
import numpy as np, halfseen as hs
truth = hs.Gaussian(np.zeros(40), 0.5 * np.eye(40) + 0.5)
rule = hs.DetectionLimits(lower=-0.5)
X = hs.simulate(truth, rule, 30_000, 0)
fits = [hs.fit(X, rule, m) for m in ("truncation", "pairwise")]
fits.append(hs.fit(X[:1500, :3], rule, "truncation_psgd", random_state=0))
import hashlib
print(hashlib.sha256(b"".join(f.covariance.tobytes() + f.mean.tobytes() for f in fits)).hexdigest())
"""


def test_processes_with_other_thread_settings_give_the_same_bits():
    digests = set()
    for threads in ("1", "2"):
        env = {
            **__import__("os").environ,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "NUMBA_NUM_THREADS": threads,
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env, check=True
        )
        digests.add(done.stdout.strip())
    assert len(digests) == 1


@pytest.mark.parametrize("method", METHODS)
def test_inputs_of_every_layout_give_the_same_answer(three, method):
    rule, X = _toy(three)
    ref = hs.fit(X, rule, method)
    frozen = X.copy()
    frozen.setflags(write=False)
    wide = np.full((len(X), 6), np.nan)
    wide[:, ::2] = X
    for other in (np.asfortranarray(X), frozen, wide[:, ::2], X.tolist(), np.ma.masked_invalid(X)):
        np.testing.assert_array_equal(hs.fit(other, rule, method).covariance, ref.covariance)
    # float32 rounds the data themselves, to seven digits; values on a limit must stay seen.
    single = np.clip(X.astype(np.float32), rule.lower, rule.upper).astype(np.float32)
    loose = hs.DetectionLimits(rule.lower - 1e-5, rule.upper + 1e-5)
    np.testing.assert_allclose(hs.fit(single, loose, method).mean, ref.mean, rtol=1e-3)


def test_far_limits_give_a_finite_answer():
    # The limit is 30 standard deviations above the seen mean: nothing is hidden, or all but nothing.
    x = np.random.default_rng(0).normal(size=(200, 2))
    for rule in (hs.DetectionLimits(lower=-30.0), hs.DetectionLimits(lower=-30.0, upper=40.0)):
        fit = hs.fit(x, rule)
        np.testing.assert_allclose(fit.covariance, np.cov(x.T, bias=True), rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_hardly_anything_seen_gives_an_answer_with_a_status(method):
    truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])
    rule = hs.DetectionLimits(lower=2.0)
    X = hs.simulate(truth, rule, 4000, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        fit = hs.fit(X, rule, method)
    assert np.isfinite(fit.mean).all()
    assert np.isfinite(fit.covariance).all()
    if method == "pairwise":
        assert np.abs(fit.mean).max() < 0.6


def test_an_undetermined_variance_stops_at_the_edge_and_says_so():
    # Exponential-looking values above the limit: the truncated likelihood rises without bound.
    x = np.random.default_rng(0).exponential(size=(400, 1)) ** 1.3
    rule = hs.DetectionLimits(lower=0.0)
    X = np.concatenate([x, np.full((100, 1), np.nan)])
    with pytest.warns(hs.ConvergenceWarning, match="On the edge: x0"):
        fit = hs.fit(X, rule, "truncation")
    assert fit.status is hs.Status.ON_DOMAIN_EDGE
    assert np.isfinite(fit.covariance).all()


@pytest.mark.parametrize("method", METHODS)
def test_pairs_that_do_not_fit_together_are_projected(method):
    rng = np.random.default_rng(3)
    X = hs.Gaussian(np.zeros(8), 0.05 * np.eye(8) + 0.95).sample(14, 1)
    X[rng.random(X.shape) < 0.35] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(X, None, method)
    values = np.linalg.eigvalsh(fit.correlation)
    assert values[0] > 0
    assert any(note.status is hs.Status.PROJECTED for note in fit.notes)
    assert any(note.status is hs.Status.TOO_FEW_JOINT_ROWS for note in fit.notes)


def test_strong_correlation():
    truth = hs.Gaussian([0.0, 0.0], [[1.0, 0.99], [0.99, 1.0]])
    rule = hs.DetectionLimits(lower=0.0)
    X = hs.simulate(truth, rule, 5000, 0)
    for method in METHODS:
        fit = hs.fit(X, rule, method)
        # (1 − ρ²)/√n is 3e-4; fixed marginals with their own errors move it more.
        assert fit.correlation[0, 1] == pytest.approx(0.99, abs=0.01)


def test_duplicated_columns_end_on_the_edge_with_a_finite_covariance():
    x = np.random.default_rng(0).normal(size=(300, 1))
    with pytest.warns(hs.ConvergenceWarning, match="x0 ~ x1"):
        fit = hs.fit(np.repeat(x, 2, axis=1))
    assert fit.correlation[0, 1] > 0.999
    assert np.isfinite(fit.gaussian.precision).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("X", "rule", "error", "sentence"),
    [
        ([[1.0, np.nan], [2.0, np.nan]], None, hs.NotIdentifiedError, "x1 is hidden in all"),
        ([[1.0, 3.0], [2.0, np.nan]], None, hs.NotIdentifiedError, "x1 is seen in 1 of 2"),
        ([[1.0, 3.0], [2.0, 3.0]], None, hs.NotIdentifiedError, "x1 is constant"),
        (
            [[1.0, np.nan], [2.0, np.nan], [np.nan, 1.0], [np.nan, 2.0]],
            None,
            hs.NotIdentifiedError,
            "never seen together in a row: x0 and x1",
        ),
        ([[1e200], [2e200], [3e200]], None, hs.InputError, "Change the unit"),
        ([[1.0], [2.0]], hs.SelfCensoring([hs.everything] * 2), hs.InputError, "2 columns"),
        ([[1.0], [2.0]], hs.DetectionLimits(np.zeros((3, 1))), hs.InputError, "3 rows"),
        ([[1.0], [2.0]], hs.Truncation(lambda Y: Y[:, 0] > 0), hs.InputError, "does not fit"),
        ([[1.0], [2.0]], hs.at_least(0), hs.InputError, "must be a rule"),
    ],
)
def test_bad_data_get_a_sentence(method, X, rule, error, sentence):
    with pytest.raises(error, match=sentence):
        hs.fit(X, rule, method)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "best"}, "method must be one of auto, pairwise"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"n_jobs": 1.5}, "n_jobs must be"),
        ({"method": "truncation", "form": "other"}, "form must be"),
        ({"method": "truncation", "eigenvalue_floor": 2.0}, "eigenvalue_floor must lie"),
        ({"method": "pairwise", "form": "paper"}, "does not take this option"),
    ],
)
def test_bad_options_get_a_sentence(arguments, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.fit([[1.0, 2.0], [2.0, 1.5], [3.0, 4.0]], **arguments)


def test_moments_are_checked_against_the_rule():
    moments = hs.PairMoments.from_array(np.array([[1.0], [2.0], [3.0]]))
    with pytest.raises(hs.ContradictionError, match=r"the value 1 was seen.*at_least\(2\)"):
        hs.fit(moments, hs.DetectionLimits(lower=2.0))
    with pytest.raises(hs.InputError, match="need the rows themselves"):
        hs.fit(moments, hs.DetectionLimits(lower=np.zeros((3, 1))))


def test_summary_fits_eighty_columns_and_names_what_matters(three):
    rule, X = _toy(three)
    fit = hs.fit(X, rule, names=["lead", "zinc", "a very long name of a column, longer than most"])
    text = fit.summary()
    assert max(map(len, text.splitlines())) <= 80
    for part in ("pairwise", "converged", "lead", "lead ~ zinc", "seen"):
        assert part in text
    many = dataclasses.replace(fit, notes=(hs.solvers.Note(hs.Status.PROJECTED, "word " * 60),))
    assert max(map(len, many.summary().splitlines())) <= 80
    assert "PROJECTED" in repr(many)


def test_statuses_are_sentences_and_the_worst_one_counts():
    for status in hs.Status:
        assert status.value.endswith(".")
    notes = tuple(hs.solvers.Note(s, "") for s in hs.Status)
    fit = hs.Fit(hs.Gaussian([0.0], [[1.0]]), "m", ("x",), 2, np.ones(1), notes)
    assert fit.status is hs.Status.NOT_CONVERGED
