"""Rates and errors under self-censoring (Theorem 1.2 of the paper)."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

import halfseen as hs
from benchmarks.registry import Row, task


def gaussian(d: int, seed: int = 5) -> hs.Gaussian:
    A = np.random.default_rng(seed).normal(size=(d, d))
    return hs.Gaussian(np.arange(d, dtype=float), A @ A.T / d + np.eye(d))


def left_censored(truth: hs.Gaussian, share: float) -> hs.SelfCensoring:
    limits = truth.mean + ndtri(share) * truth.standard_deviations
    return hs.SelfCensoring([hs.at_least(float(limit)) for limit in limits])


def errors(truth: hs.Gaussian, share: float, method: str, n: int, seeds: range, **options):
    """Root-mean-square Mahalanobis error of the mean and relative Frobenius error."""
    rule = left_censored(truth, share)
    found = []
    for seed in seeds:
        fit = hs.fit(hs.simulate(truth, rule, n, seed), rule, method, **options)
        found.append(
            [
                hs.metrics.mahalanobis_error(fit.mean, truth),
                hs.metrics.relative_frobenius_error(fit.covariance, truth),
            ]
        )
    return np.sqrt((np.array(found) ** 2).mean(axis=0))


@task
def rate_in_n(quick: bool) -> Iterator[Row]:
    truth = gaussian(3)
    all_sizes = np.array([2_000, 6_325, 20_000, 63_246, 200_000])
    for method, repeats in (("truncation", 60), ("truncation_psgd", 12), ("pairwise", 60)):
        repeats = repeats // 4 if quick else repeats
        # The largest tables of the slow one take half of the time.
        sizes = all_sizes[:-1] if quick and method == "truncation_psgd" else all_sizes
        options = {"random_state": 0} if method == "truncation_psgd" else {}
        table = np.array(
            [errors(truth, 0.3, method, int(n), range(repeats), **options) for n in sizes]
        )
        for k, name in enumerate(("mean", "covariance")):
            slope = float(np.polyfit(np.log(sizes), np.log(table[:, k]), 1)[0])
            yield Row(
                f"{method}: slope of log error of the {name} against log n, "
                f"n = {sizes[0]} to {sizes[-1]}",
                f"{slope:.3f}",
                "-0.5 ± 0.07",
                abs(slope + 0.5) <= 0.07,
            )


@task
def psgd_against_exact(quick: bool) -> Iterator[Row]:
    truth = gaussian(5)
    seeds = range(3 if quick else 40)
    exact = errors(truth, 0.3, "truncation", 20_000, seeds)
    same = errors(truth, 0.3, "truncation", 20_000, seeds, form="paper")
    sgd = errors(truth, 0.3, "truncation_psgd", 20_000, seeds, random_state=0)
    for k, name in enumerate(("mean", "covariance")):
        yield Row(
            f"truncation_psgd / truncation, error of the {name} (d = 5, n = 20 000, 30 % hidden)",
            f"{sgd[k] / exact[k]:.2f}",
            "at most 1.5",
            bool(sgd[k] <= 1.5 * exact[k]),
        )
        yield Row(
            f"truncation_psgd / truncation in the paper's form, error of the {name}",
            f"{sgd[k] / same[k]:.2f}",
            "",
        )
    rule = left_censored(truth, 0.3)
    X = hs.simulate(truth, rule, 20_000, 0)
    start = time.process_time()
    hs.fit(X, rule, "truncation_psgd", random_state=0)
    seconds = (time.process_time() - start) / 15
    yield Row(
        "truncation_psgd: processor seconds per one- or two-dimensional problem",
        f"{seconds:.2f} s",
        "at most 0.5 s",
        seconds <= 0.5,
    )


@task
def pairwise_against_truncation(quick: bool) -> Iterator[Row]:
    truth = gaussian(5)
    seeds = range(10 if quick else 60)
    for share in (0.3, 0.5):
        truncation = errors(truth, share, "truncation", 5_000, seeds)
        pairwise = errors(truth, share, "pairwise", 5_000, seeds)
        paper = errors(truth, share, "truncation", 5_000, seeds, form="paper")
        ratio = truncation[0] / pairwise[0]
        yield Row(
            f"truncation / pairwise, RMSE of the mean at {share:.0%} hidden (d = 5, n = 5 000)",
            f"{ratio:.1f}",
            "at least 3" if share == 0.5 else "",
            bool(ratio >= 3) if share == 0.5 else None,
        )
        yield Row(
            f"truncation / pairwise, error of the covariance at {share:.0%} hidden",
            f"{truncation[1] / pairwise[1]:.1f}",
            "",
        )
        yield Row(
            f"the paper's form / fixed marginals, error of the covariance at {share:.0%} hidden",
            f"{paper[1] / truncation[1]:.2f}",
            "",
        )


@task
def ladder(quick: bool) -> Iterator[Row]:
    d, n = 100, 20_000
    truth = hs.Gaussian(np.zeros(d), 0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    rule = left_censored(truth, 0.3)
    X, Y = hs.simulate(truth, rule, n, 0, return_complete=True)
    complete = np.sqrt(((np.cov(Y.T) - truth.covariance) ** 2).mean())
    for method in ("truncation", "pairwise"):
        hs.fit(X, rule, method)
        start = time.perf_counter()
        fit = hs.fit(X, rule, method)
        seconds = time.perf_counter() - start
        rmse = np.sqrt(((fit.covariance - truth.covariance) ** 2).mean())
        yield Row(
            f"{method}: RMSE of Σ, d = 100, n = 20 000, 30 % hidden (complete data: {complete:.4f})",
            f"{rmse:.4f} in {seconds:.2f} s",
            "",
        )
