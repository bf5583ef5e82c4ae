"""The full-information engine: against the Cramér–Rao limit, its intervals, the other methods."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri
from threadpoolctl import threadpool_limits

import halfseen as hs
from benchmarks.comparison.problems import linear_threshold
from benchmarks.limits import ROWS, information_by_rejection
from benchmarks.registry import Row, task
from benchmarks.scale_rates import kept_piece
from halfseen.data.table import cache_rows
from halfseen.solvers.full_information.m_step import graphical_lasso
from halfseen.solvers.full_information.shards import ask_piece
from halfseen.solvers.full_information.sparse import select

D, N = 10, 2000


def decaying(d: int, rho: float = 0.5) -> hs.Gaussian:
    """Mean zero, correlations ρ^|i−j|."""
    return hs.Gaussian(np.zeros(d), rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))


def vector(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """(μ, Σ_ij for i >= j)."""
    return np.concatenate([mean, covariance[np.tril_indices(len(mean))]])


@task
def efficiency(quick: bool) -> Iterator[Row]:
    """Errors as multiples of the Cramér–Rao limit, and coverage of the intervals."""
    truth = decaying(D)
    repeats = 10 if quick else 200
    for share in (0.3, 0.5):
        rule = hs.DetectionLimits(lower=float(ndtri(share)))
        rows, rng = (20_000 if quick else ROWS), np.random.default_rng(0)
        information = information_by_rejection(truth, rule.seen, rows, rng)
        best = np.sqrt(np.diag(np.linalg.inv(information)) / N)
        errors, inside, steps = [], [], []
        for seed in range(repeats):
            fit = hs.fit(hs.simulate(truth, rule, N, seed), rule, "full", random_state=seed)
            errors.append(vector(fit.mean, fit.covariance) - vector(truth.mean, truth.covariance))
            inside.append(covered(fit, truth))
            steps.append(fit.history["steps"])
        ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / best
        for name, part in (("means", slice(0, D)), ("covariances", slice(D, None))):
            yield Row(
                f"{share:.0%} left-censored, d = {D}, n = {N}, {repeats} tables: RMSE of {name} / "
                "Cramér–Rao limit, averaged over entries",
                f"{ratio[part].mean():.3f}",
                "at most 1.05",
                bool(ratio[part].mean() <= 1.05),
            )
        yield from coverage_rows(f"{share:.0%} left-censored", inside, quick)
        yield Row(
            f"{share:.0%} left-censored: steps from the pairwise start to the stopping rule, largest "
            f"of {repeats} (mean {np.mean(steps):.0f})",
            f"{max(steps)}",
            "at most 30",
            max(steps) <= 30,
        )


def covered(fit: hs.Fit, truth: hs.Gaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which true means, variances and correlations the 95 % intervals hold."""
    ci = fit.confidence_interval(0.95)
    pairs = np.tril_indices(truth.dimension, -1)
    variance, R = np.diag(truth.covariance), truth.correlation[pairs]
    return (
        (ci.mean.lower <= truth.mean) & (truth.mean <= ci.mean.upper),
        (np.diag(ci.covariance.lower) <= variance) & (variance <= np.diag(ci.covariance.upper)),
        (ci.correlation.lower[pairs] <= R) & (ci.correlation.upper[pairs] >= R),
    )


def coverage_rows(title: str, inside: list, quick: bool) -> Iterator[Row]:
    for k, name in enumerate(("means", "variances", "correlations")):
        share = float(np.mean([found[k] for found in inside]))
        # In a quick run, with few tables, four binomial standard errors.
        count = np.size([found[k] for found in inside])
        reach = max(0.02, 4.0 * np.sqrt(0.95 * 0.05 / count)) if quick else 0.02
        yield Row(
            f"{title}: share of {name} inside their 95 % intervals, {len(inside)} tables",
            f"{share:.3f}",
            f"{0.95 - reach:.2f} to {0.95 + reach:.2f}",
            bool(abs(share - 0.95) <= reach),
        )


@task
def coverage_under_threshold(quick: bool) -> Iterator[Row]:
    truth, rule = linear_threshold()
    inside = []
    for seed in range(5 if quick else 60):
        X = hs.simulate(truth, rule, N, seed)
        inside.append(covered(hs.fit(X, rule, random_state=seed), truth))
    yield from coverage_rows("linear threshold, Σ unknown, d = 10, n = 2 000", inside, quick)


@task
def coverage_of_the_roy_model(quick: bool) -> Iterator[Row]:
    """Intervals of what nobody is seen to earn, where nearly all information is hidden."""
    spread = np.array([0.4, 0.6, 15.0, 15.0])
    correlation = np.array(
        [[1, 0.3, 0.7, 0.1], [0.3, 1, 0.1, 0.7], [0.7, 0.1, 1, 0.2], [0.1, 0.7, 0.2, 1]]
    )
    middle = [np.log(20.0), np.log(18.0), 100.0, 100.0]
    truth = hs.Gaussian(middle, correlation * np.outer(spread, spread))

    def unseen_wages(mean: np.ndarray, S: np.ndarray) -> list[float]:
        """Mean wage in the second trade of those in the first, and the other way round."""
        found = []
        for other, own in ((1, 0), (0, 1)):
            gap, slope = mean[other] - mean[own], S[other, other] - S[other, own]
            sd = np.sqrt(slope + S[own, own] - S[other, own])
            level = np.exp(mean[other] + 0.5 * S[other, other])
            found.append(level * ndtr(-(gap + slope) / sd) / ndtr(-gap / sd))
        return found

    tables = 20 if quick else 200
    target = np.append(unseen_wages(truth.mean, truth.covariance), correlation[0, 1])
    inside, weak = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        for seed in range(tables):
            X = hs.simulate(truth, hs.SelfSelection([[0, 1]]), 2000, seed)
            fit = hs.fit(X, hs.SelfSelection([[0, 1]]), random_state=0)
            wages, errors = fit.standard_errors.of(unseen_wages)
            low, high = (end[0, 1] for end in fit.confidence_interval().correlation)
            lower, upper = (
                np.append(wages - 1.96 * errors, low),
                np.append(wages + 1.96 * errors, high),
            )
            inside.append((lower < target) & (target < upper))
            weak += fit.status is hs.Status.WEAKLY_IDENTIFIED
    # Four binomial standard errors.
    reach = 4.0 * np.sqrt(0.95 * 0.05 / tables)
    for name, share in zip(
        ("the first unseen wage", "the second", "their correlation"),
        np.mean(inside, axis=0),
        strict=True,
    ):
        yield Row(
            f"Roy model, two tests, n = 2 000, {tables} tables: 95 % intervals that hold {name}",
            f"{share:.3f}",
            f"0.95 ± {reach:.3f}",
            bool(abs(share - 0.95) <= reach),
        )
    yield Row("of these fits, those that say WEAKLY_IDENTIFIED", f"{weak} of {tables}", "")


@task
def rows_saved(quick: bool) -> Iterator[Row]:
    """Rows that truncation needs for the error of full, at 50 % left-censored."""
    truth, rule = decaying(D), hs.DetectionLimits(lower=0.0)
    squares: dict[str, list[list[float]]] = {"full": [], "truncation": [], "paper": []}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        for seed in range(10 if quick else 60):
            X = hs.simulate(truth, rule, N, seed)
            for method, found in squares.items():
                options = {"random_state": seed} if method == "full" else {}
                if method == "paper":
                    fit = hs.fit(X, rule, "truncation", form="paper")
                else:
                    fit = hs.fit(X, rule, method, **options)
                found.append(
                    [
                        np.mean((fit.mean - truth.mean) ** 2),
                        np.mean((fit.covariance - truth.covariance) ** 2),
                    ]
                )
    # Errors fall as 1/√n, so rows are in the ratio of the squares.
    ratio = np.mean(squares["truncation"], axis=0) / np.mean(squares["full"], axis=0)
    for name, measured, wanted in zip(("mean", "covariance"), ratio, (15, 5), strict=True):
        yield Row(
            f"rows that truncation needs / full, same error of the {name}, 50 % left-censored, d = 10",
            f"{measured:.1f}",
            f"at least {wanted}",
            bool(measured >= wanted),
        )
    paper = np.mean(squares["paper"], axis=0) / np.mean(squares["full"], axis=0)
    yield Row(
        "the same for the paper's five-parameter form of truncation: mean, covariance",
        f"{paper[0]:.1f}, {paper[1]:.1f}",
        "",
    )


@task
def threshold_known_covariance(quick: bool) -> Iterator[Row]:
    truth, rule = linear_threshold()
    found = []
    for seed in range(5 if quick else 20):
        X, Y = hs.simulate(truth, rule, 4000, seed, return_complete=True)
        line = []
        for method in ("full", "missing_descent"):
            start = time.perf_counter()
            fit = hs.fit(X, rule, method, covariance=truth.covariance, random_state=seed)
            line += [hs.metrics.mahalanobis_error(fit.mean, truth), time.perf_counter() - start]
            if method == "full":
                V = fit.standard_errors.parameters[:D, :D]
                best = np.sqrt(np.trace(truth.precision @ V) * len(X) / D)
        found.append([*line, hs.metrics.mahalanobis_error(Y.mean(axis=0), truth), best])
    table = np.array(found)
    full, _, descent, _, complete, best = table.mean(axis=0)
    yield Row(
        f"full / complete data, Mahalanobis error, Σ known, d = 10, n = 4 000 ({full:.4f} against "
        f"{complete:.4f}; missing_descent {descent:.4f}; the information allows {best:.2f})",
        f"{full / complete:.3f}",
        "at most 1.1",
        bool(full <= 1.1 * complete),
    )
    fast, slow = np.median(table[:, 1]), np.median(table[:, 3])
    yield Row(
        f"time of full / missing_descent, median ({fast:.2f} s against {slow:.2f} s)",
        f"{fast / slow:.2f}",
        "at most 1",
        bool(fast <= slow),
    )


@task
def threshold_unknown_covariance(quick: bool) -> Iterator[Row]:
    truth, rule = linear_threshold()
    sizes = (1000, 4000, 16_000)
    means, covariances = [], []
    for n in sizes:
        runs = []
        for seed in range(2 if quick else 12):
            X, Y = hs.simulate(truth, rule, n, seed, return_complete=True)
            fit = hs.fit(X, rule, random_state=seed)
            runs.append(
                [
                    hs.metrics.mahalanobis_error(fit.mean, truth),
                    hs.metrics.mahalanobis_error(Y.mean(axis=0), truth),
                    hs.metrics.relative_frobenius_error(fit.covariance, truth),
                    hs.metrics.relative_frobenius_error(np.cov(Y.T, bias=True), truth),
                ]
            )
        a, b, c, d = np.mean(runs, axis=0)
        means.append((a, b))
        covariances.append((c, d))
    for name, table in (
        ("mean (Mahalanobis)", means),
        ("covariance (relative Frobenius)", covariances),
    ):
        ours, complete = table[1]
        yield Row(
            f"Σ unknown under a threshold with anchors, d = 10, n = 4 000: {name} / complete data "
            f"({ours:.3f} against {complete:.3f})",
            f"{ours / complete:.2f}",
            "at most 1.5",
            bool(ours <= 1.5 * complete),
        )
        slope = float(np.polyfit(np.log(sizes), np.log([row[0] for row in table]), 1)[0])
        yield Row(
            f"slope of log error of the {name} against log n, n = 1 000 to 16 000",
            f"{slope:.2f}",
            "-0.6 to -0.4",
            -0.6 <= slope <= -0.4,
        )


@task
def self_selection(quick: bool) -> Iterator[Row]:
    truth = hs.Gaussian([0.0, 0.3, 0.6, 0.2, 0.5], np.diag([1.0, 0.8, 0.6, 1.2, 0.9]))
    rule = hs.SelfSelection()
    runs = []
    for seed in range(5 if quick else 20):
        X = hs.simulate(truth, rule, 5000, seed)
        fit = hs.fit(X, rule, covariance="diagonal", random_state=seed)
        known = hs.fit(X, rule, covariance=truth.covariance, random_state=seed)
        variance = np.diag(fit.covariance)
        runs.append(
            [
                np.mean((fit.mean - truth.mean) ** 2),
                np.mean((variance - np.diag(truth.covariance)) ** 2),
                np.mean((known.mean - truth.mean) ** 2),
                np.mean((np.nanmean(X, axis=0) - truth.mean) ** 2),
            ]
        )
    rmse = np.sqrt(np.mean(runs, axis=0))
    for name, value in zip(
        ("mean, independent columns", "variance, independent columns", "mean, Σ known"),
        rmse,
        strict=False,
    ):
        yield Row(
            f"only the winner of 5 is seen, n = 5 000: RMSE of the {name} (available cases, mean: "
            f"{rmse[3]:.2f})",
            f"{value:.3f}",
            "below 0.1",
            bool(value < 0.1),
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.ConvergenceWarning)
        free = hs.fit(hs.simulate(truth, rule, 5000, 0), rule, random_state=0)
    pairs = np.tril_indices(5, -1)
    said = any(note.status is hs.Status.WEAKLY_IDENTIFIED for note in free.notes)
    yield Row(
        "Σ free: median standard error of a correlation, and status",
        f"{np.median(free.standard_errors.correlation[pairs]):.2f}, {free.status.name}",
        "above 0.3, and said",
        bool(np.median(free.standard_errors.correlation[pairs]) > 0.3) and said,
    )


def best_time(function, repeats: int = 9) -> float:
    function()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


@task
def step_cost(quick: bool) -> Iterator[Row]:
    """Compare one step on one thread with the least that drawing its cells can cost."""
    for d in (20, 100):
        fixed, common = kept_piece(cache_rows(d), d)
        draws = int((fixed["index"] >= 0).sum()) * common[1].points
        rng = np.random.default_rng(0)
        u, a = rng.random(draws), rng.normal(size=draws)
        with threadpool_limits(1):
            step = best_time(lambda fixed=fixed, common=common: ask_piece(fixed, *common), 3)
            bare = best_time(lambda u=u, a=a: ndtri(u * ndtr(a)), 3)
        yield Row(
            f"one step with {common[1].points} points a row / ndtri(u·ndtr(a)) on as many numbers, one "
            f"thread, d = {d} ({1e9 * step / draws:.0f} ns a draw)",
            f"{step / bare:.2f}",
            "",
        )


@task
def growth(quick: bool) -> Iterator[Row]:
    """How the time of a fit grows."""
    sizes = (4000, 16_000, 64_000)
    for name, problems in (
        ("n", [(n, 20) for n in sizes]),
        ("d", [(4000, d) for d in (20, 40, 80, 160)]),
    ):
        seconds = []
        for n, d in problems:
            truth, rule = decaying(d), hs.DetectionLimits(lower=float(ndtri(0.3)))
            X = hs.simulate(truth, rule, n, 0)
            # Compiled beforehand.
            hs.fit(X[:500], rule, "full", random_state=0, accuracy=9.0, standard_errors=False)
            repeats = 1 if quick else 3
            found = []
            for _ in range(repeats):
                start = time.perf_counter()
                fit = hs.fit(X, rule, "full", random_state=0, standard_errors=False)
                found.append((time.perf_counter() - start) / fit.history["steps"])
            seconds.append(min(found))
        along = [n for n, _ in problems] if name == "n" else [d for _, d in problems]
        slope = float(np.polyfit(np.log(along), np.log(seconds), 1)[0])
        most = 1.0 if name == "n" else 2.0
        yield Row(
            f"exponent of the time of a step, start included, in {name} = {along[0]} to {along[-1]}",
            f"{slope:.2f}",
            f"at most {most:g}",
            slope <= most + 0.05,
        )


def chain_graph(d: int, seed: int) -> tuple[hs.Gaussian, np.ndarray]:
    """Return a sparse precision matrix on a random tree with some more edges, and its adjacency."""
    rng = np.random.default_rng(seed)
    adjacency = np.zeros((d, d), dtype=bool)
    for k in range(1, d):
        parent = int(rng.integers(max(0, k - 4), k))
        adjacency[k, parent] = adjacency[parent, k] = True
    T = np.where(adjacency, -0.35, 0.0)
    np.fill_diagonal(T, np.abs(T).sum(axis=1) + 0.3)
    S = np.linalg.inv(T)
    scale = np.sqrt(np.diag(S))
    return hs.Gaussian(np.zeros(d), S / np.outer(scale, scale)), adjacency


def f1(found: np.ndarray, truth: np.ndarray) -> float:
    pairs = np.tril_indices(len(truth), -1)
    hits = float((found[pairs] & truth[pairs]).sum())
    return 2.0 * hits / float(found[pairs].sum() + truth[pairs].sum())


@task
def sparse_graph(quick: bool) -> Iterator[Row]:
    d, n = 60, 200
    rule = hs.DetectionLimits(lower=float(ndtri(0.25)))
    scores = []
    for seed in range(3 if quick else 10):
        truth, adjacency = chain_graph(d, seed)
        X, Y = hs.simulate(truth, rule, n, seed, return_complete=True)
        fit = hs.fit(X, rule, covariance="sparse", random_state=seed)
        S = np.cov(Y.T, bias=True)
        complete = graphical_lasso(S, select(S, n))[1] != 0.0
        substituted = np.cov(np.where(np.isnan(X), float(ndtri(0.25)), X).T, bias=True)
        naive = graphical_lasso(substituted, select(substituted, n))[1] != 0.0
        scores.append(
            [f1(fit.graph().adjacency, adjacency), f1(complete, adjacency), f1(naive, adjacency)]
        )
    ours, complete, naive = np.mean(scores, axis=0)
    yield Row(
        f"F1 of the edges, d = 60, n = 200, 25 % left-censored ({ours:.3f}; graphical lasso on the "
        f"complete data {complete:.3f}, on limits put in for hidden values {naive:.3f})",
        f"{ours - complete:+.3f}",
        "at least -0.05",
        bool(ours >= complete - 0.05),
    )
