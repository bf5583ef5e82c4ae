"""Means under linear thresholds (Theorem 1.5 of the paper), and the samplers behind them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from scipy.optimize import nnls

import halfseen as hs
from benchmarks.comparison.problems import linear_threshold
from benchmarks.registry import Row, task
from halfseen.ledger.descent import sampled_information
from halfseen.ledger.designs import Problem
from halfseen.ledger.harness import listed
from halfseen.samplers import Gibbs, ProjectedLangevin, Region, Rejection


def errors(n: int, seeds: range, **options) -> np.ndarray:
    """Mahalanobis errors of the listing, of the complete data and of available cases, and seconds.

    With ``form="persistent"``, of the descent as it comes.
    """
    options = {"form": "paper", **options}
    truth, rule = linear_threshold()
    found = []
    for seed in seeds:
        X, Y = hs.simulate(truth, rule, n, seed, return_complete=True)
        start = time.perf_counter()
        fit = hs.fit(
            X, rule, "missing_descent", covariance=truth.covariance, random_state=seed, **options
        )
        seconds = time.perf_counter() - start
        found.append(
            [
                *(
                    hs.metrics.mahalanobis_error(m, truth)
                    for m in (fit.mean, Y.mean(axis=0), np.nanmean(X, axis=0))
                ),
                seconds,
            ]
        )
    return np.array(found)


# Seeds of problems that nobody looked at before.
DRAWN = tuple(int(seed) for seed in np.random.SeedSequence(22).generate_state(5))


@task
def drawn_descents(quick: bool) -> Iterator[Row]:
    """Compare the descent, on problems that are drawn, with complete data, information and listing."""
    sizes = ((1_000, 3), (4_000, 3)) if quick else ((1_000, 20), (5_000, 20), (50_000, 8))
    _drawn(DRAWN[0], 200, 1)  # compiled
    table = {seed: [_drawn(seed, n, tables) for n, tables in sizes] for seed in DRAWN}
    ratios = np.array([[np.sqrt((e**2).mean(axis=0)) for e, _ in row] for row in table.values()])
    over = ratios[:, :, 0] / ratios[:, :, 1]
    single = np.concatenate([e[:, 0] / e[:, 1] for row in table.values() for e, _ in row])
    limits = [_limit(linear_threshold(seed)) for seed in DRAWN]
    counts = ", ".join(f"{tables} tables of {n} rows" for n, tables in sizes)
    yield Row(
        "missing_descent / complete data, root mean square errors, five drawn problems, d = 10, "
        f"{counts} each: median (of the problems at each n, {listed(over.ravel())}; the information "
        f"allows {listed(limits)})",
        f"{np.median(over):.2f}",
        "at most 1.25",
        bool(np.median(over) <= 1.25),
    )
    yield Row("the worst of these", f"{over.max():.2f}", "at most 1.5", bool(over.max() <= 1.5))
    yield Row(
        "the same of single tables, whose complete data are lucky or not: median",
        f"{np.median(single):.2f} (worst {single.max():.2f})",
        "at most 1.25",
        bool(np.median(single) <= 1.25),
    )
    logs = np.log([n for n, _ in sizes])
    slopes = [np.polyfit(logs, np.log(row[:, 0]), 1)[0] for row in ratios]
    both = np.log(np.sqrt((ratios**2).mean(axis=0)))
    (whole, complete), *_ = np.polyfit(logs, both, 1)
    yield Row(
        f"slope of log error against log n, all problems (each {listed(slopes)}; complete data, which "
        f"have -0.5, {complete:.2f} on these tables)",
        f"{whole:.2f}",
        "-0.45 to -0.55",
        bool(-0.55 <= whole <= -0.45),
    )
    times = np.array([[np.median(t[:, 0] / t[:, 1]) for _, t in row] for row in table.values()])
    yield Row(
        "time of missing_descent / the paper's listing on the same tables, at most (median at each n "
        f"{listed(np.median(times, axis=0))})",
        f"{times.max():.2f}",
        "at most 3",
        bool(times.max() <= 3.0),
    )


def _drawn(seed: int, n: int, tables: int) -> tuple[np.ndarray, np.ndarray]:
    """Errors of the descent and of complete data, and seconds of the descent and of the listing."""
    truth, rule = linear_threshold(seed)
    found, seconds = [], []
    for k in range(tables):
        X, Y = hs.simulate(truth, rule, n, k, return_complete=True)
        clock = time.perf_counter()
        fit = hs.solvers.missing_descent(X, rule, truth.covariance, random_state=k)
        middle = time.perf_counter()
        # Its time hardly depends on the table: one is enough of large ones.
        if k < (3 if n < 20_000 else 1):
            hs.solvers.missing_descent(X, rule, truth.covariance, random_state=k, form="paper")
            seconds.append([middle - clock, time.perf_counter() - middle])
        found.append([hs.metrics.mahalanobis_error(m, truth) for m in (fit.mean, Y.mean(axis=0))])
    return np.array(found), np.array(seconds)


def _limit(drawn: tuple[hs.Gaussian, hs.LinearThreshold]) -> float:
    """Error that the information allows, over that of complete data: √(tr(Σ⁻¹H⁻¹)/d)."""
    H = sampled_information(Problem(*drawn))[0]
    truth = drawn[0]
    return float(np.sqrt(np.trace(truth.precision @ np.linalg.inv(H)) / truth.mean.size))


@task
def missing_descent(quick: bool) -> Iterator[Row]:
    seeds = range(4 if quick else 20)
    fit, complete, available, seconds = errors(4000, seeds, form="persistent").mean(axis=0)
    yield Row(
        "missing_descent / complete data, d = 10, n = 4 000 (error "
        f"{fit:.3f}, complete {complete:.3f}, {seconds:.1f} s)",
        f"{fit / complete:.2f}",
        "at most 1.25",
        bool(fit <= 1.25 * complete),
    )
    fit, complete, available, seconds = errors(4000, seeds).mean(axis=0)
    yield Row(
        "the paper's listing / complete data, one pass, the paper's λ (error "
        f"{fit:.3f}, complete {complete:.3f}, {seconds:.1f} s)",
        f"{fit / complete:.2f}",
        "at most 1.5",
        bool(fit <= 1.5 * complete),
    )
    yield Row(
        "error of available cases, the same data",
        f"{available:.2f}",
        "above 1.0",
        bool(available > 1.0),
    )
    for time_, steps in ((1.0, 50), (3.0, 150), (10.0, 500), (20.0, 1000)):
        sampler = ProjectedLangevin(steps=steps)
        error = errors(4000, seeds, sampler=sampler)[:, 0].mean()
        yield Row(f"error of the listing with M·η = {time_:g} (η = 0.02)", f"{error:.3f}", "")
    error = errors(4000, seeds, sampler=Gibbs())[:, 0].mean()
    yield Row("error of the listing with Gibbs instead of Langevin", f"{error:.3f}", "")


@task
def missing_descent_rate(quick: bool) -> Iterator[Row]:
    repeats = range(4 if quick else 16)
    # Up to where the bias of Langevin steps, measured below, becomes half of the error.
    for sampler, sizes in (
        (ProjectedLangevin(), (500, 1_581, 5_000)),
        (Gibbs(), (1_000, 4_472, 20_000)),
    ):
        table = [np.sqrt((errors(n, repeats, sampler=sampler)[:, 0] ** 2).mean()) for n in sizes]
        slope = float(np.polyfit(np.log(sizes), np.log(table), 1)[0])
        yield Row(
            f"the paper's listing with {type(sampler).__name__}: slope of log error against log n, n = "
            f"{sizes[0]} to {sizes[-1]} (errors " + ", ".join(f"{e:.3f}" for e in table) + ")",
            f"{slope:.2f}",
            "-0.4 to -0.6",
            -0.6 <= slope <= -0.4,
        )
    # Enough rows that the statistical error is small next to the bias of coarse steps.
    seeds = range(1 if quick else 4)
    for step in (0.1, 0.5) if quick else (0.005, 0.02, 0.1, 0.5):
        sampler = ProjectedLangevin(step_size=step, steps=round(10 / step))
        error, complete = errors(20_000, seeds, sampler=sampler)[:, :2].mean(axis=0)
        yield Row(
            f"error of the listing at n = 20 000 with Langevin steps of η = {step:g} (complete data "
            f"{complete:.3f})",
            f"{error:.3f}",
            "",
        )


@task
def larger_of(quick: bool) -> Iterator[Row]:
    truth = hs.Gaussian([0.0, 0.3], [[1.0, 0.2], [0.2, 1.0]])
    rule = hs.LinearThreshold.larger_of(0, 1, 2)
    found = []
    for n in (500, 5_000, 20_000):
        runs = []
        for seed in range(4 if quick else 10):
            X = hs.simulate(truth, rule, n, seed)
            fit = hs.fit(X, rule, "missing_descent", covariance=truth.covariance, random_state=seed)
            naive = np.abs(np.nanmean(X, axis=0) - truth.mean).max()
            runs.append([hs.metrics.mahalanobis_error(fit.mean, truth), naive])
        found.append(np.mean(runs, axis=0))
    table = np.array(found)
    yield Row(
        "larger_of: error at n = 500, 5 000, 20 000",
        ", ".join(f"{e:.3f}" for e in table[:, 0]),
        "falls",
        bool((np.diff(table[:, 0]) < 0).all()),
    )
    yield Row(
        "larger_of: available cases, worst column in standard deviations",
        f"{table[-1, 1]:.2f}",
        "above 0.5",
        bool(table[-1, 1] > 0.5),
    )


@task
def langevin_speed(quick: bool) -> Iterator[Row]:
    from halfseen.kernels.polyhedron import langevin_chain

    rng = np.random.default_rng(0)
    k, m, steps = 4, 7, 500
    A = rng.normal(size=(m, k))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    inside = rng.normal(size=k)
    c = A @ inside + 0.3
    rows = 400
    noise = rng.standard_normal((rows, steps, k))

    def compiled() -> None:
        for row in range(rows):
            langevin_chain(inside.copy(), np.zeros(k), A, c, 8.0, 0.02, 0.5, noise[row])

    compiled()
    start = time.perf_counter()
    compiled()
    fast = rows * steps / (time.perf_counter() - start)
    few = 2
    start = time.perf_counter()
    for row in range(few):
        numpy_chain(inside.copy(), np.zeros(k), A, c, 8.0, 0.02, noise[row])
    slow = few * steps / (time.perf_counter() - start)
    yield Row(
        f"compiled Langevin steps / NumPy, per second on one core ({fast:.2g} against {slow:.2g})",
        f"{fast / slow:.0f}",
        "at least 50",
        fast >= 50 * slow,
    )


def numpy_chain(u, mean, A, c, radius, eta, noise):
    """Run the same chain in NumPy; the projection is a least-distance problem, by SciPy's NNLS."""
    for zeta in noise:
        u = u - 0.5 * eta * (u - mean) + np.sqrt(eta) * zeta
        if not (A @ u <= c).all():
            E = np.vstack([-A.T, A @ u - c])
            target = np.zeros(u.size + 1)
            target[-1] = 1.0
            weights, _ = nnls(E, target)
            gap = E @ weights - target
            u = u - gap[:-1] / gap[-1]
        length = np.linalg.norm(u - mean)
        if length > radius:
            u = mean + (u - mean) * radius / length
    return u


@task
def rejection_against_chains(quick: bool) -> Iterator[Row]:
    """Cost of one draw as the mean moves away from the region."""
    A, c = np.array([[-1.0, 0.0], [0.0, -1.0]]), np.array([-0.5, -0.5])
    for distance in (0.0, 1.0, 2.0, 2.5):
        region = Region(np.full(2, -distance / np.sqrt(2)), A, c)
        start = region.feasible_point()
        rng = np.random.default_rng(0)
        sampler = Rejection()
        shares = [
            sampler.step(region, sampler.init(region, start, rng), rng)[1].acceptance
            for _ in range(50 if quick else 200)
        ]
        costs = {}
        for chain in (ProjectedLangevin(), Gibbs()):
            clock = time.perf_counter()
            for _ in range(200):
                chain.step(region, chain.init(region, start, rng), rng)
            costs[type(chain).__name__] = (time.perf_counter() - clock) / 200 * 1e6
        share = 1.0 / np.mean([1.0 / s for s in shares])
        text = ", ".join(f"{name} {micro:.0f} µs" for name, micro in costs.items())
        yield Row(
            f"mean {distance:g} standard deviations further out: proposals for a rejection draw",
            f"{1.0 / share:.0f} ({text})",
            "",
        )
