"""Few rows, or most values hidden: how often intervals hold the truth, and what they cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import halfseen as hs
from benchmarks.hard_running import many
from benchmarks.registry import Row, task
from benchmarks.two_stages import TABLES, Share, TwoStages
from halfseen.missingness.base import Missingness
from halfseen.solvers import StandardErrors

Floats = NDArray[np.float64]

CORRELATION = 0.5
FAMILIES = ("mean", "standard_deviation", "correlation")
WORDS = {
    "mean": "means", "standard_deviation": "standard deviations", "correlation": "correlations",
    "covariance": "covariances", "original mean": "means in original units",
}  # fmt: skip
# Of 95 % intervals; and where 80 % and more are hidden of few rows.
TARGET, LOOSER = (0.93, 0.97), (0.90, 0.97)

# Tables of a bootstrap.
REPLICATES = 200


class Design(NamedTuple):
    """A kind of table: unit variances and zero means behind a rule."""

    title: str
    d: int
    n: int
    rule: Callable[[int, int], Missingness]
    families: tuple[str, ...]
    target: tuple[float, float] = TARGET
    transforms: str | None = None


class Answer(NamedTuple):
    """Whether intervals of one table hold the truth, by family: (from errors as they are, auto)."""

    held: dict[str, Floats]
    profiled: float
    seconds: tuple[float, float]


def _below(share: float, n: int, d: int) -> Missingness:
    return hs.DetectionLimits(lower=float(ndtri(share)))


def _both_sides(share: float, n: int, d: int) -> Missingness:
    return hs.DetectionLimits(
        lower=float(ndtri(0.5 * share)), upper=float(ndtri(1.0 - 0.5 * share))
    )


def _by_row(n: int, d: int) -> Missingness:
    """Limits of three laboratories: 10, 40 and 70 % below."""
    limits = ndtri(np.array([0.1, 0.4, 0.7]))[np.arange(n) % 3]
    return hs.DetectionLimits(lower=np.repeat(limits[:, None], d, axis=1))


def _inside(low: float, high: float, n: int, d: int) -> Missingness:
    return hs.SelfCensoring(hs.Interval(low, high))


def _log_below(share: float, n: int, d: int) -> Missingness:
    return hs.DetectionLimits(lower=float(np.exp(ndtri(share))))


def designs() -> Iterator[Design]:
    """Every line of what has to be shown."""
    for low, high, sizes in ((-0.5, 0.8, (50, 200, 1000)), (0.2, 1.0, (200,))):
        for n in sizes:
            title = f"one column seen in [{low:g}, {high:g}], n = {n}"
            yield Design(title, 1, n, partial(_inside, low, high), ("mean",))
    for share in (0.8, 0.9):
        title = f"one column seen above its {share:.0%} point, n = 30"
        yield Design(title, 1, 30, partial(_below, share), ("mean",), LOOSER)
    for share in (0.1, 0.4):
        title = f"{share:.0%} below a limit, d = 2, n = 20"
        yield Design(title, 2, 20, partial(_below, share), ("covariance",))
    for d in (1, 3, 5):
        for n in (20, 30, 50):
            for share in (0.1, 0.4, 0.7):
                title = f"{share:.0%} below a limit, d = {d}, n = {n}"
                families = FAMILIES if d > 1 else FAMILIES[:2]
                yield Design(title, d, n, partial(_below, share), families)
    for d in (1, 3):
        families = FAMILIES if d > 1 else FAMILIES[:2]
        yield Design(
            f"40% on two sides, d = {d}, n = 30", d, 30, partial(_both_sides, 0.4), families
        )
        yield Design(f"limits by row, d = {d}, n = 30", d, 30, _by_row, families)
    for n in (20, 50):
        title = f"logarithms, 40% below a limit, n = {n}"
        rule = partial(_log_below, 0.4)
        yield Design(title, 1, n, rule, ("original mean",), transforms="log")


@task
def small_intervals(quick: bool) -> Iterator[Row]:
    """Count how often 95 % intervals of small tables hold what they are for."""
    tables = 20 if quick else TABLES
    # Of few tables, four standard errors.
    slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
    for index, design in enumerate(designs()):
        stages = TwoStages(partial(judge, index), tables)
        for family in design.families:
            what = f"{design.title}: 95 % intervals that hold their {WORDS[family]}"
            yield stages.row(what, partial(_share, family, slack), design.target)
        if "original mean" not in design.families:
            # What is asked there does not say how it was found.
            yield _costs(design, stages.first, tables)


def _share(family: str, slack: float, found: list[Answer]) -> Share:
    """Return the share of intervals that hold the truth, and of those from errors as they are."""
    plain, auto = np.array([one.held[family] for one in found]).mean(axis=0)
    return Share(auto, f" (from standard errors and normal quantiles {plain:.3f})", slack)


def _costs(design: Design, found: list[Answer], tables: int) -> Row:
    seconds = np.array([one.seconds for one in found]).sum(axis=0)
    return Row(
        f"{design.title}: intervals by profile; time of all intervals / of the fit; tables without",
        f"{np.mean([one.profiled for one in found]):.0%}; {seconds[1] / seconds[0]:.1f}; "
        f"{tables - len(found)} of {tables}",
        "",
    )


@task
def small_bootstrap(quick: bool) -> Iterator[Row]:
    """Count how often studentised bootstrap intervals of standard deviations hold the truth."""
    tables = 20 if quick else 200
    for n in (30, 100):
        held = np.array(many(partial(_bootstrapped, n), range(tables)))
        slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
        share, percentile = held.mean(axis=0)
        yield Row(
            f"40% below a limit, d = 1, n = {n}, {tables} tables: 95 % bootstrap intervals that hold "
            "their standard deviation",
            f"{share:.3f} (percentiles {percentile:.3f})",
            f"{TARGET[0]:.2f} to {TARGET[1]:.2f}",
            bool(TARGET[0] - slack <= share <= TARGET[1] + slack),
        )


def _bootstrapped(n: int, seed: int) -> tuple[bool, bool]:
    rule = _below(0.4, n, 1)
    X = hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, n, seed)
    fit = hs.fit(X, rule, random_state=seed, n_jobs=1)
    low, high = fit.confidence_interval(kind="bootstrap", replicates=REPLICATES).standard_deviation
    drawn = fit.bootstrap(REPLICATES, random_state=seed).interval("covariance")
    return bool(low[0] <= 1.0 <= high[0]), bool(drawn.lower[0, 0] <= 1.0 <= drawn.upper[0, 0])


@task
def small_tests(quick: bool) -> Iterator[Row]:
    """Count how often a likelihood-ratio test of independence at 5 % rejects what is true."""
    tables = 20 if quick else 400
    slack = 4.0 * (0.05 * 0.95 / tables) ** 0.5 if quick else 0.0
    for n in (25, 50):
        what = (
            f"40% below a limit, d = 2, n = {n}, {tables} tables: tests of independence at 5 % that "
            "reject, with Bartlett's factor"
        )
        stages = TwoStages(partial(_tested, n), tables)
        yield stages.row(what, partial(_rejected, slack), (0.04, 0.06))


def _rejected(slack: float, p_values: list[tuple[float, float]]) -> Share:
    share, plain = (np.array(p_values) < 0.05).mean(axis=0)
    return Share(share, f" (without it {plain:.3f})", slack)


def _tested(n: int, seed: int) -> tuple[float, float]:
    rule = _below(0.4, n, 2)
    X = hs.simulate(hs.Gaussian(np.zeros(2), np.eye(2)), rule, n, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        small, large = (
            hs.fit(X, rule, covariance=kind, random_state=seed, n_jobs=1)
            for kind in ("diagonal", "free")
        )
        found = hs.likelihood_ratio_test(
            small, large, replicates=REPLICATES // 2, random_state=seed
        )
    return found.p_value, hs.likelihood_ratio_test(small, large).p_value


def judge(index: int, seed: int) -> Answer | None:
    """Fit one table, and look which truths lie in their intervals; None where there are none."""
    design = list(designs())[index]
    d = design.d
    R = np.full((d, d), CORRELATION)
    np.fill_diagonal(R, 1.0)
    rule = design.rule(design.n, d)
    X = _table(design, R, rule, seed)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hs.HalfseenWarning)
            fit = hs.fit(X, rule, transforms=design.transforms, random_state=seed, n_jobs=1)
        wald = fit.standard_errors
    except (hs.InputError, hs.NotIdentifiedError):
        return None
    fitted = time.process_time()
    held, profiled = {}, []
    intervals = fit.confidence_interval(0.95)
    for family in design.families:
        if family == "original mean":
            held[family] = _original_mean(fit, wald)
            continue
        limits = getattr(intervals, family)
        truth = {"mean": np.zeros(d), "standard_deviation": np.ones(d)}
        part = np.tril_indices(d, -1) if family in ("correlation", "covariance") else slice(None)
        true = truth.get(family, R)[part]
        plain = _plain(fit, wald, family)
        held[family] = np.array(
            [np.mean((low[part] <= true) & (true <= high[part])) for low, high in (plain, limits)]
        )
        profiled.append(np.mean(intervals.methods[family][part] == "profile"))
    ended = time.process_time()
    return Answer(held, float(np.mean(profiled or [0.0])), (fitted - began, ended - fitted))


def _table(design: Design, R: Floats, rule: Missingness, seed: int) -> Floats:
    truth = hs.Gaussian(np.zeros(design.d), R)
    if design.transforms is None:
        return np.asarray(hs.simulate(truth, rule, design.n, seed))
    X = np.exp(hs.simulate(truth, hs.DetectionLimits(lower=-np.inf), design.n, seed))
    return np.where(rule.for_columns(["x0"]).seen(X), X, np.nan)


def _plain(fit: hs.Fit, errors: StandardErrors, family: str) -> tuple[Floats, Floats]:
    """Return Wald intervals with normal quantiles: logarithms of deviations, Fisher's scale."""
    q, g = float(ndtri(0.975)), fit.gaussian
    if family == "mean":
        return g.mean - q * errors.mean, g.mean + q * errors.mean
    if family == "covariance":
        return g.covariance - q * errors.covariance, g.covariance + q * errors.covariance
    if family == "standard_deviation":
        factor = np.exp(q * errors.standard_deviation / g.standard_deviations)
        return g.standard_deviations / factor, g.standard_deviations * factor
    with np.errstate(divide="ignore", invalid="ignore"):
        z, width = np.arctanh(g.correlation), q * errors.correlation / (1.0 - g.correlation**2)
    return np.tanh(z - width), np.tanh(z + width)


def _original_mean(fit: hs.Fit, errors: StandardErrors) -> Floats:
    """Judge intervals of exp(μ + σ²/2), which is √e here."""
    log_mean = errors.of(lambda mean, covariance: mean[0] + 0.5 * covariance[0, 0])
    plain = abs(log_mean.value - 0.5) <= ndtri(0.975) * log_mean.standard_error
    found = fit.original_scale(0.95, (0.5,))
    inside = found.mean_lower[0] <= np.exp(0.5) <= found.mean_upper[0]
    return np.array([plain, inside], dtype=float)
