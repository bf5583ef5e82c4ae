import dataclasses
import os
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
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 400, 0)
    assert hs.fit(X, rule, random_state=0).method == "full"
    assert hs.fit(three.sample(50, 0)).method == "full"
    truncation = hs.RowTruncation(lambda Y: Y[:, 0] > -99)
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


def test_threads_do_not_change_a_bit(monkeypatch):
    # Blocks and pieces small enough for several of each.
    monkeypatch.setattr("halfseen.data.table.CACHE_CELLS", 2**9)
    monkeypatch.setattr("halfseen.solvers.correlations.PAIRS_PER_PIECE", 5)
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
fits.append(hs.fit(X[:1500, :12], rule, "full", most_steps=4, random_state=0))
import hashlib
print(hashlib.sha256(b"".join(f.covariance.tobytes() + f.mean.tobytes() for f in fits)).hexdigest())
"""


def test_processes_with_other_thread_settings_give_the_same_bits():
    digests = set()
    for threads in ("1", "2"):
        env = {
            **os.environ,
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


@pytest.mark.parametrize("method", ["pairwise", "truncation", "paper"])
@pytest.mark.parametrize("far", [30.0, 1e6, 1e16, 1e160, 1e300])
def test_far_limits_change_nothing(method, far):
    x = np.random.default_rng(0).normal(size=(200, 2))
    options = {"method": "truncation", "form": "paper"} if method == "paper" else {"method": method}
    for rule in (hs.DetectionLimits(lower=-far), hs.DetectionLimits(lower=-far, upper=far)):
        fit = hs.fit(x, rule, **options)
        np.testing.assert_allclose(fit.covariance, np.cov(x.T, bias=True), rtol=1e-6)
    shown = x[:, 0] > -0.5
    X = np.column_stack([np.where(shown, x[:, 0], np.nan), x[:, 1]])
    ref = hs.fit(X, hs.DetectionLimits(lower=[-0.5, np.nan]), **options)
    comp = hs.fit(X, hs.DetectionLimits(lower=[-0.5, np.nan], upper=[far, np.nan]), **options)
    np.testing.assert_allclose(comp.covariance, ref.covariance, rtol=1e-9)


@pytest.mark.parametrize("rho", [0.0, 0.5])
@pytest.mark.parametrize(
    "sets",
    [
        [hs.at_least(0.5), hs.at_least(0.5)],
        [hs.at_least(1.0), hs.at_least(1.0)],
        [hs.at_least(1.0), hs.at_most(-1.0)],
        [hs.between(1, 2), hs.between(1, 2)],
        [hs.Probability(lambda x: (x >= 1).astype(float)), hs.at_least(1.0)],
    ],
    ids=repr,
)
def test_sets_in_the_tail_do_not_invent_a_correlation(sets, rho):
    # P(both seen) falls below 1e-16 at opposed correlations; its logarithm must not be made up.
    truth = hs.Gaussian([0.0, 0.0], [[1.0, rho], [rho, 1.0]])
    rule = hs.SelfCensoring(sets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        for seed in range(5):
            fit = hs.fit(hs.simulate(truth, rule, 30_000, seed), rule, "truncation")
            # With an eighth or less of each column seen, a few hundred joint rows: ±0.1 is one
            # standard error for the narrowest of these sets.
            assert abs(fit.correlation[0, 1] - rho) < 0.45


def test_a_probability_of_one_is_everything():
    x = np.random.default_rng(0).normal(size=(400, 2))
    x[:100, 0] = np.nan
    always = hs.SelfCensoring([hs.Probability(np.ones_like), hs.everything])
    with pytest.warns(hs.AssumptionWarning, match="column x0; they are taken to be missing"):
        comp = hs.fit(x, always)
    with pytest.warns(hs.AssumptionWarning):
        ref = hs.fit(x, hs.SelfCensoring(hs.everything))
    np.testing.assert_allclose(comp.covariance, ref.covariance, rtol=1e-6)


def test_a_column_that_is_hardly_ever_seen_keeps_its_digits():
    x = np.random.default_rng(0).normal(size=(100_000, 2))
    seen = 97 * 25 * np.arange(1, 41) + 1
    X = x.copy()
    X[:, 1] = np.nan
    X[seen, 1] = x[seen, 1] + 1e8
    with pytest.warns(hs.AssumptionWarning, match="no rule is stated"):
        fit = hs.fit(X, method="truncation")
    # Adding 1e8 leaves eight digits.
    assert fit.gaussian.standard_deviations[1] == pytest.approx(x[seen, 1].std(), rel=1e-6)


def test_the_papers_form_does_not_inflate_variances():
    truth = hs.Gaussian(np.zeros(3), 0.2 * np.eye(3) + 0.8)
    rule = hs.DetectionLimits(lower=0.0)
    for seed in range(10):
        X = hs.simulate(truth, rule, 2000, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hs.ConvergenceWarning)
            ref = hs.fit(X, rule, "truncation").gaussian.standard_deviations
            comp = hs.fit(X, rule, "truncation", form="paper").gaussian.standard_deviations
        # Entries of at most 1 leave the eigenvalues little to mend.
        assert (comp < 1.15 * ref).all()


def test_limits_with_names_find_their_columns(three):
    import pandas as pd

    rule, X = _toy(three)
    ref = hs.fit(X, rule, "pairwise")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    lower = pd.Series({"c": 9.0, "a": 0.5, "b": -3.0})
    for limits in (
        hs.DetectionLimits(lower, {"a": 3.0, "c": 16.0}),
        hs.DetectionLimits(lower.to_dict(), pd.Series({"c": 16.0, "b": np.nan, "a": 3.0})),
        hs.DetectionLimits(pd.DataFrame([lower] * len(X)), {"a": 3.0, "c": 16.0}),
    ):
        np.testing.assert_allclose(
            hs.fit(frame, limits, "pairwise").covariance, ref.covariance, rtol=1e-9
        )
    with pytest.raises(hs.InputError, match="limit is given for 'lead', but the columns"):
        hs.fit(frame, hs.DetectionLimits({"lead": 1.0}))


def test_habits_of_laboratories_are_warned_of(three):
    _, X = _toy(three)
    only = np.where(np.isnan(X[:, :1]), 0.5, np.nan)
    with pytest.warns(hs.AssumptionWarning, match="limits are given only where values are hidden"):
        hs.fit(np.where(X[:, :1] > 3, 2.9, X[:, :1]), hs.DetectionLimits(lower=only))
    filled = np.where(np.isnan(X[:, 1:2]), -3.0, X[:, 1:2])
    with pytest.warns(hs.AssumptionWarning, match=r"x0 \(\d+ times -3\)"):
        hs.fit(filled, hs.DetectionLimits(lower=-3.0))
    rounded = np.maximum(np.round(X[:, 1:2]), -3.0)
    hs.fit(rounded, hs.DetectionLimits(lower=-3.0))


def test_float32_values_on_their_limit_are_seen():
    X = np.array([[0.7], [0.9], [1.4], [1.1], [np.nan]], dtype=np.float32)
    for method in ("full", "pairwise"):
        assert np.isfinite(hs.fit(X, hs.DetectionLimits(lower=0.7), method).mean).all()
    with pytest.raises(hs.ContradictionError, match=r"row 0.*0\.699"):
        hs.fit(X, hs.DetectionLimits(lower=0.70001))


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
        assert abs(fit.correlation[0, 1] - 0.5) < 0.45
    else:
        # 2 % of each column is seen: the variance is anyone's guess, and the status says so.
        assert fit.status is hs.Status.ON_DOMAIN_EDGE


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
        ([[1.0], [2.0]], hs.RowTruncation(lambda Y: Y[:, 0] > 0), hs.InputError, "does not fit"),
        ([[1.0], [2.0]], hs.at_least(0), hs.InputError, "must be a rule"),
    ],
)
def test_bad_data_get_a_sentence(method, X, rule, error, sentence):
    with pytest.raises(error, match=sentence):
        hs.fit(X, rule, method)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "best"}, "method must be one of auto, full, pairwise"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"n_jobs": 1.5}, "n_jobs must be"),
        ({"method": "truncation", "form": "other"}, "form must be"),
        ({"method": "truncation", "eigenvalue_floor": 2.0}, "eigenvalue_floor must lie"),
        ({"method": "pairwise", "form": "paper"}, "does not take the option 'form'"),
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


def _offers(*arguments):
    with pytest.raises(hs.InputError, match="choose ") as refusal:
        hs.fit(*arguments)
    return str(refusal.value).rpartition("choose ")[2].rstrip(".").split(" or ")


def test_methods_that_are_offered_work(three):
    rule, X = _toy(three)
    moments = hs.PairMoments.from_array(X)
    by_row = hs.DetectionLimits(lower=np.full(X.shape, -9.0))
    complete = np.nan_to_num(X)
    for data, stated in ((X, rule), (moments, rule), (moments, None), (complete, by_row)):
        offers = _offers(data, stated, "missing_descent")
        assert len(offers) >= 2
        for method in offers:
            with warnings.catch_warnings():
                # That no rule is stated, and what came of it.
                warnings.simplefilter("ignore", hs.HalfseenWarning)
                assert hs.fit(data, stated, method).method == method
    assert _offers(moments, rule, "full") == ["pairwise", "truncation"]
    with pytest.raises(hs.InputError, match="needs the table, not its moments"):
        hs.fit(moments, rule, "truncation_psgd")


@pytest.mark.parametrize("method", hs.solvers.METHODS)
@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfSelection(),
        hs.LinearThreshold.heckman(1, [1.0, 0.0]),
        hs.RowTruncation(lambda Y: Y[:, 0] > 0),
        hs.Combined([([0], hs.DetectionLimits(lower=0.0))]),
        hs.DetectionLimits(lower=np.zeros((3, 2))),
    ],
    ids=lambda rule: type(rule).__name__,
)
def test_no_method_is_offered_where_none_takes_moments(rule, method):
    moments = hs.PairMoments.from_array(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 4.0]]))
    with pytest.raises(hs.InputError, match="the rows themselves, but moments") as refusal:
        hs.fit(moments, rule, method)
    assert "choose" not in str(refusal.value)


def test_summary_fits_eighty_columns_and_names_what_matters(three):
    rule, X = _toy(three)
    fit = hs.fit(
        X,
        rule,
        "pairwise",
        names=["lead", "zinc", "a very long name of a column, longer than most"],
    )
    text = fit.summary()
    assert max(map(len, text.splitlines())) <= 80
    for part in ("pairwise", "Converged", "lead", "lead ~ zinc", "hidden"):
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


def test_names_are_read_once_whatever_they_are():
    X = np.random.default_rng(0).normal(size=(50, 2))
    fit = hs.fit(X, names=(name for name in ("lead", "zinc")))
    assert fit.names == ("lead", "zinc")
    assert fit.source.call["names"] == ["lead", "zinc"]
    with pytest.raises(hs.InputError, match="names must be a sequence of names; got 5"):
        hs.fit(X, names=5)


def test_moments_are_refused_for_their_transforms_whatever_the_method():
    moments = hs.PairMoments.from_array(np.random.default_rng(0).normal(size=(50, 2)))
    with pytest.raises(hs.InputError, match="transforms need the rows themselves"):
        hs.fit(moments, transforms="log", method="full")


def test_a_warning_from_one_place_is_shown_once(rng):
    X = rng.normal(size=(200, 2))
    X[:20, 0] = np.nan
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        for _ in range(3):
            hs.fit(X, method="truncation")
    assert len(shown) == 1


def test_correlations_of_which_few_rows_leave_the_sign_open_are_named():
    R = np.full((3, 3), 0.5) + 0.5 * np.eye(3)
    rule = hs.DetectionLimits(lower=-0.84, upper=0.84)
    Y = hs.Gaussian(np.zeros(3), R).sample(30, 0)
    X = np.where(rule.seen(Y), Y, np.nan)

    def said(X, rule=None, **options):
        fit = hs.fit(
            X,
            rule,
            names=["a", "b", "c"],
            random_state=0,
            n_jobs=1,
            standard_errors=False,
            **options,
        )
        return [note for note in fit.notes if "the sign of these" in note.text]

    (note,) = said(X, rule)
    assert note.status is hs.Status.NO_GLOBAL_GUARANTEE
    assert "a ~ b" in note.text
    # Told on which side cells are, or the covariance, or behind one limit there is no doubt.
    seen = rule.seen(Y)
    lower = np.where(seen, Y, np.where(Y < 0.0, -np.inf, 0.84))
    upper = np.where(seen, Y, np.where(Y < 0.0, -0.84, np.inf))
    assert said(hs.IntervalData(lower, upper, ["a", "b", "c"])) == []
    assert said(X, rule, covariance=R) == []
    assert said(np.where(Y < -0.84, np.nan, Y), hs.DetectionLimits(lower=-0.84)) == []
