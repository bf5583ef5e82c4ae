"""How each public function is called, with one array (or number) of its arguments left open."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import halfseen as hs

N, D = 40, 2
TRUTH = hs.Gaussian([0.5, 1.0], [[1.0, 0.4], [0.4, 2.0]])
RULE = hs.DetectionLimits(lower=[-0.2, 0.0])
LINEAR = hs.LinearThreshold.larger_of(0, 1, 2)
Y = TRUTH.sample(N, random_state=1)
X = hs.simulate(TRUTH, RULE, N, random_state=1)
X_LINEAR = np.where(LINEAR.seen(Y), Y, np.nan)
INSIDE = Y[(Y > 0).all(axis=1)]
LOWER = np.where(np.isnan(X), -1.0, X)
FEW = {"most_steps": 20, "random_state": 0}
REGION = hs.samplers.Region(np.zeros(2), np.array([[-1.0, 0.0]]), np.zeros(1))
RNG = np.random.default_rng


@cache
def fitted() -> hs.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(X, RULE, "full", **FEW)


@cache
def estimator() -> Any:
    return hs.CensoredGaussian(RULE, "pairwise").fit(X)


class Call(NamedTuple):
    """How to call a public function, and a good value of the argument that is left open."""

    name: str
    call: Callable[[Any], Any]
    good: Any
    takes_arrays: bool = True


def table_of_moments() -> hs.PairMoments:
    return hs.PairMoments.from_array(X)


BOX = RULE.hidden_region(X[:4])
PARTS = hs.Combined([([0, 1], LINEAR)]).hidden_region(X_LINEAR[:4])
HOLES = hs.SelfSelection().holes(X_LINEAR[:4], None)
BOUNDS = LINEAR.holes(X_LINEAR[:4], None).inequalities
INDEX = np.array([[-1, 0], [1, -1]], dtype=np.int32)
BELOW = hs.missingness.one_interval_each(np.full(2, -np.inf), np.array([0.5, 2.0]))
SIDE = np.where(np.isnan(X), -1.0, 0.0)
MASK = np.isnan(X[:4])
LONG = pd.DataFrame(
    {"id": ["a", "a", "b"], "of": ["x", "y", "x"], "x": [1.0, 2.0, 3.0], "well": "A"}
)


def of_table(name: str, call: Callable[[Any], Any]) -> Call:
    return Call(name, call, X)


@cache
def bootstrapped() -> hs.solvers.Bootstrap:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return fitted().bootstrap(2, random_state=0)


@cache
def grouped() -> hs.GroupedFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(X, RULE, by=np.arange(N) % 3, **FEW)


@cache
def looked_at() -> hs.solvers.Sensitivity:
    return fitted().sensitivity(shares=(0.0, 0.3), factors=(1.0, 2.0))


@cache
def powered() -> hs.solvers.LearnedPower:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(np.exp(X), None, transforms="boxcox", random_state=0)
    assert fit.powers is not None
    assert fit.powers[0] is not None
    return fit.powers[0]


@cache
def lossy() -> hs.solvers.Loss:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        found = hs.fit(X, RULE, loss=0.1, **FEW).loss
    assert found is not None
    return found


def step_of(sampler: hs.samplers.Sampler, point: Any) -> Any:
    rng = np.random.default_rng(0)
    return sampler.step(REGION, sampler.init(REGION, point, rng), rng)[0].point


METHODS_OF_FIT = [
    Call("halfseen.Fit.bootstrap", lambda a: fitted().bootstrap(a, random_state=0), 2),
    Call("halfseen.Fit.save", lambda a: fitted().save(a), X, False),
    Call("halfseen.load", hs.load, X, False),
    Call("halfseen.Gaussian.save", TRUTH.save, X, False),
    Call("halfseen.Gaussian.load", hs.Gaussian.load, X, False),
    Call("halfseen.Fit.report", lambda a: fitted().report(a), X, False),
    Call(
        "halfseen.solvers.Bootstrap.standard_error",
        lambda a: bootstrapped().standard_error(a),
        "mean",
    ),
    Call("halfseen.solvers.Bootstrap.interval", lambda a: bootstrapped().interval(level=a), 0.9),
    of_table("halfseen.Fit.score_rows", lambda a: fitted().score_rows(a, RULE)),
    of_table("halfseen.Fit.impute", lambda a: fitted().impute(a, RULE)),
    of_table("halfseen.Fit.draw_imputations", lambda a: fitted().draw_imputations(a, 2, 0, RULE)),
    Call(
        "halfseen.Fit.original_scale",
        lambda a: fitted().original_scale(probabilities=a),
        np.array([0.1, 0.5]),
    ),
    Call("halfseen.Fit.confidence_interval", lambda a: fitted().confidence_interval(a), 0.9),
    Call("halfseen.Fit.limits", lambda a: fitted().limits(a), 0.9),
    Call("halfseen.Fit.limits", lambda a: fitted().limits(coverage=a), 0.9),
    Call("halfseen.Fit.limits", lambda a: fitted().limits(next_values=a), 2),
    Call(
        "halfseen.Fit.limits",
        lambda a: fitted().limits(probabilities=a),
        np.array([0.1, 0.5]),
    ),
    Call("halfseen.Fit.profile", lambda a: fitted().profile("mean", a), 0),
    Call(
        "halfseen.Fit.robust_standard_errors",
        lambda a: fitted().robust_standard_errors(a),
        np.arange(len(X)) % 7,
    ),
    Call("halfseen.Fit.column", lambda a: fitted().column(a), 0),
    Call(
        "halfseen.Fit.sensitivity",
        lambda a: fitted().sensitivity(shares=a, factors=(1.0, 2.0)),
        np.array([0.0, 0.2]),
    ),
    Call("halfseen.solvers.Sensitivity.bounds", lambda a: looked_at().bounds(share=a), 0.2),
    Call("halfseen.solvers.Sensitivity.moves", lambda a: looked_at().moves(a), "share"),
    Call("halfseen.solvers.LearnedPower.interval", lambda a: powered().interval(a), 0.9),
    Call("halfseen.solvers.Loss.sentences", lambda a: lossy().sentences(a), ["a", "b"]),
    Call("halfseen.Fit.simulate", lambda a: fitted().simulate(a, RULE), 3),
    Call("halfseen.Fit.summary", lambda a: fitted().summary(a), 4),
    Call("halfseen.Fit.to_dict", lambda a: fitted().to_dict(a), 0.9),
    Call(
        "halfseen.solvers.StandardErrors.intervals",
        lambda a: fitted().standard_errors.intervals(a),
        0.9,
    ),
    Call(
        "halfseen.solvers.StandardErrors.of",
        lambda a: fitted().standard_errors.of(lambda m, S: a),
        np.array([1.0, 2.0]),
    ),
]
SOLVERS = [
    Call("halfseen.fit", lambda a: hs.fit(X, RULE, loss=a, **FEW), 0.1),
    Call("halfseen.fit", lambda a: hs.fit(X, RULE, errors="t", degrees_of_freedom=a, **FEW), 4.0),
    of_table("halfseen.fit", lambda a: hs.fit(a, RULE, **FEW)),
    Call("halfseen.fit", lambda a: hs.fit(X, RULE, by=a, **FEW), np.arange(N) % 3),
    Call("halfseen.GroupedFit.tests", lambda a: grouped().tests(a), 19),
    Call("halfseen.GroupedFit.means", lambda a: grouped().means(a), 0.9),
    Call("halfseen.GroupedFit.differences", lambda a: grouped().differences(a), 0.9),
    Call("halfseen.GroupedFit.limits", lambda a: grouped().limits(a), 0.9),
    Call("halfseen.GroupedFit.summary", lambda a: grouped().summary(a), 0.9),
    Call("halfseen.GroupedFit.to_dict", lambda a: grouped().to_dict(a), 0.9),
    Call("halfseen.GroupedFit.report", lambda a: grouped().report(a), X, False),
    Call("halfseen.GroupedFit.save", lambda a: grouped().save(a), X, False),
    Call("halfseen.fit", lambda a: hs.fit(X, RULE, covariance=a, **FEW), TRUTH.covariance),
    of_table("halfseen.solvers.full", lambda a: hs.solvers.full(a, RULE, **FEW)),
    Call("halfseen.solvers.full", lambda a: hs.solvers.full(X, RULE, mean=a, **FEW), TRUTH.mean),
    Call(
        "halfseen.solvers.full",
        lambda a: hs.solvers.full(X, RULE, correlation=a, **FEW),
        TRUTH.correlation,
    ),
    Call(
        "halfseen.solvers.full",
        lambda a: hs.solvers.full(X, RULE, missing_at_random=a, **FEW),
        np.isnan(X),
    ),
    of_table("halfseen.solvers.truncation", lambda a: hs.solvers.truncation(a, RULE)),
    of_table("halfseen.solvers.pairwise", lambda a: hs.solvers.pairwise(a, RULE)),
    Call(
        "halfseen.solvers.truncation_psgd",
        lambda a: hs.solvers.truncation_psgd(
            a, hs.SelfCensoring(hs.at_most(9.0)), accuracy=1.0, repeats=1, random_state=0
        ),
        Y[:12],
    ),
    Call(
        "halfseen.solvers.truncated_sgd",
        lambda a: hs.solvers.truncated_sgd(
            a, lambda rows: (rows > 0).all(axis=1), accuracy=1.0, repeats=1, random_state=0
        ),
        INSIDE,
    ),
    Call(
        "halfseen.solvers.missing_descent",
        lambda a: hs.solvers.missing_descent(a, LINEAR, TRUTH.covariance, random_state=0),
        X_LINEAR,
    ),
    Call(
        "halfseen.solvers.missing_descent",
        lambda a: hs.solvers.missing_descent(X_LINEAR, LINEAR, a, random_state=0),
        TRUTH.covariance,
    ),
    of_table("halfseen.solvers.initialize", hs.solvers.initialize),
    Call(
        "halfseen.solvers.project_to_domain",
        lambda a: hs.solvers.project_to_domain(a, TRUTH.mean, 1.0, TRUTH),
        np.zeros(2),
    ),
    Call(
        "halfseen.solvers.project_to_domain",
        lambda a: hs.solvers.project_to_domain(TRUTH.mean, a, 1.0, TRUTH),
        np.ones(2),
    ),
    Call(
        "halfseen.solvers.project_to_domain",
        lambda a: hs.solvers.project_to_domain(TRUTH.mean, [3.0, 3.0], 1.0, a),
        TRUTH.covariance,
    ),
    Call(
        "halfseen.solvers.sample_gradient",
        lambda a: hs.solvers.sample_gradient(
            a, TRUTH.mean, TRUTH.covariance, LINEAR, random_state=0
        ),
        X_LINEAR[0],
    ),
    Call(
        "halfseen.solvers.sample_gradient",
        lambda a: hs.solvers.sample_gradient(
            X_LINEAR[0], a, TRUTH.covariance, LINEAR, random_state=0
        ),
        TRUTH.mean,
    ),
    Call(
        "halfseen.solvers.sample_gradient",
        lambda a: hs.solvers.sample_gradient(X_LINEAR[0], TRUTH.mean, a, LINEAR, random_state=0),
        TRUTH.covariance,
    ),
    of_table("halfseen.diagnose", lambda a: hs.diagnose(a, RULE, simulations=19)),
    Call(
        "halfseen.diagnose",
        lambda a: hs.diagnose(X_LINEAR, LINEAR, covariance=a, simulations=19),
        TRUTH.covariance,
    ),
    of_table(
        "halfseen.CensoredGaussian.fit", lambda a: hs.CensoredGaussian(RULE, "pairwise").fit(a).fit_
    ),
    of_table(
        "halfseen.CensoredGaussian.partial_fit",
        lambda a: hs.CensoredGaussian(RULE, "pairwise").partial_fit(a).__dict__.get("fit_"),
    ),
    of_table("halfseen.CensoredGaussian.transform", lambda a: estimator().transform(a)),
    of_table("halfseen.CensoredGaussian.score", lambda a: estimator().score(a)),
    Call(
        "halfseen.pool",
        lambda a: hs.pool(a, np.ones((3, 2))),
        np.array([[1.0, 2.0], [1.5, 2.5], [0.5, 2.2]]),
    ),
    Call(
        "halfseen.pool",
        lambda a: hs.pool(np.ones((3, 2)), a),
        np.array([[1.0, 2.0], [1.5, 2.5], [0.5, 2.2]]),
    ),
    Call("halfseen.pool", lambda a: hs.pool(lambda table: (0.0, 1.0), a), np.ones((3, 4, 2))),
    Call(
        "halfseen.pool",
        lambda a: hs.pool(lambda table: (a, np.ones(2)), np.ones((3, 4, 2))),
        np.array([1.0, 2.0]),
    ),
    Call(
        "halfseen.solvers.Pooled.summary",
        lambda a: hs.pool([1.0, 2.0], [1.0, 1.0]).summary(a),
        0.9,
    ),
    Call(
        "halfseen.solvers.Pooled.interval",
        lambda a: hs.pool([1.0, 2.0], [1.0, 1.0]).interval(a),
        0.9,
    ),
]
VALUES = [
    Call("halfseen.metrics.kl_divergence", lambda a: hs.metrics.kl_divergence(a, TRUTH), X, False),
    Call(
        "halfseen.metrics.hellinger_distance",
        lambda a: hs.metrics.hellinger_distance(TRUTH, a),
        X,
        False,
    ),
    Call(
        "halfseen.likelihood_ratio_test",
        lambda a: hs.likelihood_ratio_test(a, fitted()),
        X,
        False,
    ),
    Call("halfseen.Gaussian", lambda a: hs.Gaussian(a, TRUTH.covariance), TRUTH.mean),
    Call("halfseen.Gaussian", lambda a: hs.Gaussian(TRUTH.mean, a), TRUTH.covariance),
    Call("halfseen.Gaussian.sample", lambda a: TRUTH.sample(a, 0), 3),
    Call("halfseen.Gaussian.whiten", TRUTH.whiten, Y),
    Call("halfseen.Gaussian.logpdf", TRUTH.logpdf, Y),
    Call("halfseen.Gaussian.marginal", TRUTH.marginal, np.array([1, 0])),
    Call("halfseen.Gaussian.condition", lambda a: TRUTH.condition(a, [1.0]), np.array([1])),
    Call("halfseen.Gaussian.condition", lambda a: TRUTH.condition([1], a), np.array([0.7])),
    Call("halfseen.simulate", lambda a: hs.simulate(TRUTH, RULE, a), 3),
    Call(
        "halfseen.metrics.mahalanobis_error",
        lambda a: hs.metrics.mahalanobis_error(a, TRUTH),
        np.ones(2),
    ),
    Call(
        "halfseen.metrics.relative_frobenius_error",
        lambda a: hs.metrics.relative_frobenius_error(a, TRUTH),
        np.eye(2),
    ),
    Call(
        "halfseen.metrics.total_variation",
        lambda a: hs.metrics.total_variation(TRUTH, hs.Gaussian([0, 0], np.eye(2)), a),
        100,
    ),
    Call(
        "halfseen.planning.samples_for_self_censoring",
        lambda a: hs.planning.samples_for_self_censoring(a, 0.1, 0.5),
        3,
    ),
    Call(
        "halfseen.planning.samples_for_self_censoring",
        lambda a: hs.planning.samples_for_self_censoring(3, a, 0.5),
        0.1,
    ),
    Call(
        "halfseen.planning.samples_for_self_censoring",
        lambda a: hs.planning.samples_for_self_censoring(3, 0.1, a),
        0.5,
    ),
    Call(
        "halfseen.planning.parameters_for_missing_descent",
        lambda a: hs.planning.parameters_for_missing_descent(a, 0.1, 0.5, 0.5, 0.5),
        3,
    ),
    Call(
        "halfseen.planning.parameters_for_missing_descent",
        lambda a: hs.planning.parameters_for_missing_descent(3, a, 0.5, 0.5, 0.5),
        0.1,
    ),
    Call(
        "halfseen.planning.rows_for_error", lambda a: hs.planning.rows_for_error(fitted(), a), 0.1
    ),
]
DATA = [
    Call(
        "halfseen.IntervalData.saturated",
        lambda a: hs.IntervalData(LOWER, LOWER).saturated(a),
        X,
        False,
    ),
    Call("halfseen.scan_parquet", hs.scan_parquet, X, False),
    Call("halfseen.IntervalData", lambda a: hs.IntervalData(a, np.full((N, D), 9.0)), LOWER),
    Call("halfseen.IntervalData", lambda a: hs.IntervalData(np.full((N, D), -9.0), a), LOWER),
    Call(
        "halfseen.IntervalData",
        lambda a: hs.IntervalData(np.full((4, D), np.nan), np.full((4, D), np.nan), not_detected=a),
        MASK,
    ),
    of_table("halfseen.IntervalData.from_table", lambda a: hs.IntervalData.from_table(a, RULE)),
    Call(
        "halfseen.IntervalData.from_table", lambda a: hs.IntervalData.from_table(X, RULE, a), SIDE
    ),
    Call(
        "halfseen.IntervalData.take",
        lambda a: hs.IntervalData(LOWER, LOWER).take(a),
        np.array([3, 0, 1]),
    ),
    of_table("halfseen.PairMoments.from_array", hs.PairMoments.from_array),
    of_table(
        "halfseen.PairMoments.merge",
        lambda a: table_of_moments().merge(hs.PairMoments.from_array(a)),
    ),
    Call("halfseen.from_frame", hs.from_frame, X, takes_arrays=False),
    Call("halfseen.read_csv", hs.read_csv, X, takes_arrays=False),
    Call("halfseen.read_parquet", hs.read_parquet, X, takes_arrays=False),
    Call(
        "halfseen.read_long",
        lambda a: hs.read_long(a, id="id", variable="of", value="x"),
        X,
        takes_arrays=False,
    ),
    Call(
        "halfseen.read_long",
        lambda a: hs.read_long(LONG, id="id", variable="of", value="x", keep=a),
        "well",
    ),
    Call("halfseen.read_limits", lambda a: hs.read_limits(a, hs.IntervalData(X, X)), X, False),
    Call("halfseen.write_csv", lambda a: hs.write_csv(a, "unwritten.csv"), X, False),
]
Z = np.column_stack([np.ones(4), np.arange(4.0)])
STRUCTURES = [
    Call("halfseen.AR1", hs.AR1, X, takes_arrays=False),
    Call("halfseen.CompoundSymmetry", hs.CompoundSymmetry, X, takes_arrays=False),
    Call("halfseen.Toeplitz", hs.Toeplitz, X, takes_arrays=False),
    Call("halfseen.Factor", hs.Factor, 2),
    Call("halfseen.Kronecker", lambda a: hs.Kronecker(a, 2), 2),
    Call("halfseen.Kronecker", lambda a: hs.Kronecker(2, 2, a), X, takes_arrays=False),
    Call("halfseen.RandomEffects", hs.RandomEffects, Z),
    Call("halfseen.BlockDiagonal", hs.BlockDiagonal, np.array([2, 3])),
    Call("halfseen.Fit.compare_structures", lambda a: fitted().compare_structures(a), X, False),
]
RULES = [
    Call("halfseen.DetectionLimits", lambda a: hs.DetectionLimits(lower=a), np.array([0.5, 1.0])),
    Call(
        "halfseen.DetectionLimits",
        lambda a: hs.DetectionLimits(upper=a),
        np.array([[0.5, 1.0], [2.0, 3.0]]),
    ),
    Call("halfseen.DetectionLimits.seen", RULE.seen, Y),
    Call("halfseen.SelfCensoring", hs.SelfCensoring, np.array([hs.at_least(0.0), hs.at_most(1.0)])),
    Call("halfseen.SelfCensoring.seen", hs.SelfCensoring(hs.at_least(0.0)).seen, Y),
    Call("halfseen.SelfCensoring.seen", hs.SelfCensoring(hs.Predicate(lambda x: x > 0)).seen, Y),
    Call("halfseen.SelfSelection", hs.SelfSelection, np.array([[0, 1], [2, 3]])),
    Call("halfseen.SelfSelection.seen", hs.SelfSelection().seen, Y),
    Call("halfseen.RowTruncation", lambda a: hs.RowTruncation(lambda rows: rows[:, 0] > 0, a), 2),
    Call("halfseen.RowTruncation.seen", hs.RowTruncation(lambda rows: rows[:, 0] > 0).seen, Y),
    Call("halfseen.Combined", hs.Combined, [([0], hs.DetectionLimits(0.0))]),
    Call("halfseen.Combined", lambda a: hs.Combined([(a, RULE)]), np.array([0, 1])),
    Call("halfseen.Combined.seen", hs.Combined([([0], hs.DetectionLimits(0.0))]).seen, Y),
    Call("halfseen.LinearThreshold", lambda a: hs.LinearThreshold(a, [0.0, 0.0]), LINEAR.V),
    Call("halfseen.LinearThreshold", lambda a: hs.LinearThreshold(LINEAR.V, a), LINEAR.b),
    Call("halfseen.LinearThreshold.larger_of", lambda a: hs.LinearThreshold.larger_of(a, 1, 2), 0),
    Call(
        "halfseen.LinearThreshold.heckman",
        lambda a: hs.LinearThreshold.heckman(1, a),
        np.array([1.0, 0.0]),
    ),
    Call(
        "halfseen.LinearThreshold.heckman",
        lambda a: hs.LinearThreshold.heckman(1, [1.0, 0.0], a),
        0.5,
    ),
    Call(
        "halfseen.LinearThreshold.anchored",
        lambda a: hs.LinearThreshold.anchored(a, [[1.0, 0.0]], [0.5]),
        np.array([0]),
    ),
    Call(
        "halfseen.LinearThreshold.anchored",
        lambda a: hs.LinearThreshold.anchored([0], a, [0.5]),
        np.array([[1.0, 0.0]]),
    ),
    Call("halfseen.LinearThreshold.seen", LINEAR.seen, Y),
    Call("halfseen.rounded", hs.rounded, 0.5),
    Call("halfseen.rounded", lambda a: hs.rounded({"x0": a}), np.array([5.0, 1.0])),
    Call("halfseen.rounded", lambda a: hs.rounded(0.5, a), "down"),
    Call("halfseen.rounded", lambda a: hs.rounded(0.5, rule=a), RULE),
    Call("halfseen.Rounded.intervals", hs.rounded({"x0": [0.5, 0.0]}, rule=RULE).intervals, Y),
    Call("halfseen.rules", hs.rules, np.array(["lead: > 0", "zinc: 0..5"])),
    Call("halfseen.rules", lambda a: hs.rules("lead: > 0", columns=a), np.array(["lead", "zinc"])),
    Call("halfseen.at_least", hs.at_least, 0.5),
    Call("halfseen.at_most", hs.at_most, 0.5),
    Call("halfseen.between", lambda a: hs.between(a, 7.0), 0.5),
    Call("halfseen.Interval", lambda a: hs.Interval(-3.0, a), 0.5),
    Call("halfseen.Interval.contains", hs.at_least(0.5).contains, Y),
    Call("halfseen.Interval.probability", hs.at_least(0.5).probability, Y),
    Call("halfseen.Union", hs.Union, np.array([hs.between(0, 1), hs.between(2, 3)])),
    Call("halfseen.Union.contains", (~hs.between(0, 1)).contains, Y),
    Call("halfseen.Union.probability", (~hs.between(0, 1)).probability, Y),
    Call("halfseen.Predicate", hs.Predicate, abs),
    Call("halfseen.Predicate.contains", hs.Predicate(lambda x: x > 0).contains, Y),
    Call("halfseen.Predicate.probability", hs.Predicate(lambda x: x > 0).probability, Y),
    Call("halfseen.Probability", hs.Probability, abs),
    Call(
        "halfseen.Probability.probability",
        hs.Probability(lambda x: 0.5 + 0.0 * np.tanh(x)).probability,
        Y,
    ),
    Call("halfseen.missingness.ColumnwiseMissingness.hidden_region", RULE.hidden_region, X),
    Call("halfseen.missingness.Missingness.hidden_region", LINEAR.hidden_region, X_LINEAR),
    Call(
        "halfseen.missingness.Missingness.hidden_region", hs.SelfSelection().hidden_region, X_LINEAR
    ),
    Call(
        "halfseen.missingness.Missingness.hidden_region",
        hs.Combined([([0, 1], LINEAR)]).hidden_region,
        X_LINEAR,
    ),
    Call("halfseen.missingness.Box.contains", BOX.contains, Y[:4]),
    Call("halfseen.missingness.Parts.contains", PARTS.contains, Y[:4]),
    Call(
        "halfseen.missingness.Polyhedra.contains",
        LINEAR.hidden_region(X_LINEAR[:4]).contains,
        Y[:4],
    ),
    Call("halfseen.missingness.Polyhedra.row", LINEAR.hidden_region(X_LINEAR[:4]).row, 1),
    Call("halfseen.missingness.Inequalities.slack", BOUNDS.slack, Y[:4]),
    Call("halfseen.missingness.Holes.with_missing_at_random", HOLES.with_missing_at_random, MASK),
    Call(
        "halfseen.missingness.gather",
        lambda a: hs.missingness.gather(a, [BELOW], [np.array([1, 0])]),
        INDEX,
    ),
    Call(
        "halfseen.missingness.one_interval_each",
        lambda a: hs.missingness.one_interval_each(a, np.full(2, 99.0)),
        np.array([0.5, 2.0]),
    ),
    Call("halfseen.missingness.SetTable.join", hs.missingness.SetTable.join, [BELOW, BELOW]),
    Call(
        "halfseen.samplers.Region", lambda a: hs.samplers.Region(a, REGION.A, REGION.c), np.zeros(2)
    ),
    Call(
        "halfseen.samplers.Region",
        lambda a: hs.samplers.Region(REGION.mean, a, REGION.c),
        np.array([[-1.0, 0.0]]),
    ),
    Call("halfseen.samplers.Region.contains", REGION.contains, np.array([0.3, 0.1])),
    Call(
        "halfseen.samplers.Gibbs.step",
        lambda a: step_of(hs.samplers.Gibbs(), a),
        np.array([0.3, 0.1]),
    ),
    Call(
        "halfseen.samplers.ProjectedLangevin.step",
        lambda a: step_of(hs.samplers.ProjectedLangevin(), a),
        np.array([0.3, 0.1]),
    ),
    Call(
        "halfseen.samplers.Rejection.step",
        lambda a: step_of(hs.samplers.Rejection(), a),
        np.array([0.3, 0.1]),
    ),
    Call("halfseen.samplers.Gibbs", hs.samplers.Gibbs, 5),
    Call(
        "halfseen.samplers.Gibbs.init",
        lambda a: hs.samplers.Gibbs().init(REGION, a, RNG(0)),
        np.array([0.3, 0.1]),
    ),
    Call("halfseen.samplers.ProjectedLangevin", hs.samplers.ProjectedLangevin, 0.1),
    Call(
        "halfseen.samplers.ProjectedLangevin.init",
        lambda a: hs.samplers.ProjectedLangevin().init(REGION, a, RNG(0)),
        np.array([0.3, 0.1]),
    ),
    Call(
        "halfseen.samplers.Rejection.init",
        lambda a: hs.samplers.Rejection().init(REGION, a, RNG(0)),
        np.array([0.3, 0.1]),
    ),
]


@cache
def regressed() -> hs.RegressionFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.regress(X, REGRESSORS, RULE, **FEW)


def worked(**options: Any) -> hs.RegressionFit:
    return hs.regress({"wage": "educ", "works": "educ + kids"}, WORK, SELECTION, **FEW, **options)


REGRESSORS = RNG(3).normal(size=(N, 2))
GROUPS = np.arange(N) % 7
EFFECTIVE = {"educ": REGRESSORS[:, 0], "kids": np.exp(REGRESSORS[:, 1])}
WORKS = REGRESSORS[:, 1] + RNG(4).normal(size=N) > 0.0
WORK = {**EFFECTIVE, "works": WORKS, "wage": np.where(WORKS, Y[:, 1], np.nan)}
SELECTION = hs.Selection("wage", by="works")
INDEXED = hs.Selection(0, by=1)
REGRESSIONS = [
    of_table("halfseen.regress", lambda a: hs.regress(a, REGRESSORS, RULE, **FEW)),
    Call("halfseen.regress", lambda a: hs.regress(X, a, RULE, **FEW), REGRESSORS),
    Call("halfseen.regress", lambda a: hs.regress(a, WORK, **FEW), X, False),
    Call("halfseen.regress", lambda a: hs.regress("wage ~ educ", a, **FEW), X, False),
    Call("halfseen.regress", lambda a: hs.regress(X, REGRESSORS, a, **FEW), X, False),
    Call("halfseen.regress", lambda a: worked(kinds=a), X, False),
    Call("halfseen.regress", lambda a: worked(kinds={"wage": a}), X, False),
    Call("halfseen.regress", lambda a: worked(fixed={"wage": {"educ": a}}), 0.1),
    Call("halfseen.regress", lambda a: worked(equal=a), X, False),
    Call("halfseen.regress", lambda a: worked(cluster=a), GROUPS),
    Call("halfseen.regress", lambda a: worked(weights=a), 1.0 + GROUPS),
    Call("halfseen.regress", lambda a: worked(penalty=a), X, False),
    Call("halfseen.regress", lambda a: worked(penalty="ridge", strength=a), 0.1),
    Call(
        "halfseen.regress",
        lambda a: hs.regress(X, REGRESSORS, RULE, covariance=a, **FEW),
        TRUTH.covariance,
    ),
    Call(
        "halfseen.regress",
        lambda a: hs.regress(X, REGRESSORS, RULE, missing_at_random=a, **FEW),
        np.isnan(X),
    ),
    Call(
        "halfseen.regress",
        lambda a: hs.regress(Y[:, 0], REGRESSORS, truncated=a, random_state=0),
        X,
        False,
    ),
    Call("halfseen.compare", lambda a: hs.compare(regressed(), a), X, False),
    Call("halfseen.RegressionFit.predict", lambda a: regressed().predict(a), REGRESSORS),
    Call("halfseen.RegressionFit.predict", lambda a: regressed().predict(None, a), X, False),
    Call(
        "halfseen.RegressionFit.marginal_effects",
        lambda a: regressed().marginal_effects("x1", new=a),
        REGRESSORS,
    ),
    Call(
        "halfseen.RegressionFit.marginal_effects",
        lambda a: regressed().marginal_effects(a),
        X,
        False,
    ),
    Call("halfseen.RegressionFit.robust", lambda a: regressed().robust(a), GROUPS),
    Call(
        "halfseen.RegressionFit.confidence_interval",
        lambda a: regressed().confidence_interval(a),
        0.9,
    ),
    Call("halfseen.RegressionFit.simulate", lambda a: regressed().simulate(a, 0), REGRESSORS),
    Call(
        "halfseen.RegressionFit.draw_imputations",
        lambda a: regressed().draw_imputations(a, 0),
        2,
    ),
    Call("halfseen.RegressionFit.save", lambda a: regressed().save(a), X, False),
    Call("halfseen.RegressionFit.report", lambda a: regressed().report(a), X, False),
    Call("halfseen.RegressionFit.given", lambda a: regressed().given(a), X, False),
    Call("halfseen.RegressionFit.residuals", lambda a: regressed().residuals(a), 3),
    Call("halfseen.RegressionFit.summary", lambda a: regressed().summary(a), 0.9),
    Call("halfseen.RegressionFit.to_dict", lambda a: regressed().to_dict(a), 0.9),
    Call(
        "halfseen.regression.RegressionErrors.of",
        lambda a: regressed().standard_errors.of(lambda B, S: a),
        np.array([1.0, 2.0]),
    ),
    Call(
        "halfseen.regression.RegressionErrors.widening",
        lambda a: regressed().standard_errors.widening(a),
        0.9,
    ),
    Call("halfseen.Selection", lambda a: hs.Selection(a, by=7), 3),
    Call("halfseen.Selection", lambda a: hs.Selection(7, by=a), 3),
    Call("halfseen.Selection.seen", INDEXED.seen, Y),
]
CALLS = [*METHODS_OF_FIT, *SOLVERS, *REGRESSIONS, *VALUES, *DATA, *STRUCTURES, *RULES]
