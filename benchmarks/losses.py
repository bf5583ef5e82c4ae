"""Values lost beside the rule: whether learned shares, and bounds over stated ones, hold the truth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

import halfseen as hs
from benchmarks.hard_running import many
from benchmarks.registry import Row, task

# Of the values that the rule shows; below each limit lie so many of all.
LOST, HIDDEN = 0.1, 0.3
# Of the hidden cells, in tables for bounds.
STATED = 0.3
TRUTH = hs.Gaussian([0.0, 0.0], [[1.0, 0.6], [0.6, 1.0]])
# Bounds are in units in which limits are positive.
SHIFT = 3.0
TARGET = (0.93, 0.97)


class Answer(NamedTuple):
    """What intervals of one table hold, and the p-value of no losses."""

    held: dict[str, float]
    p_value: float


def table(
    n: int, share: float, seed: int, shift: float = 0.0
) -> tuple[np.ndarray, hs.DetectionLimits]:
    """Return rows of which 30 % lie below limits, with such a share of the others lost."""
    truth = hs.Gaussian(TRUTH.mean + shift, TRUTH.covariance)
    rule = hs.DetectionLimits(lower=[float(ndtri(HIDDEN)) + shift] * 2)
    X = hs.simulate(truth, rule, n, seed)
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X, rule


def judge_loss(n: int, share: float, seed: int) -> Answer:
    """Learn the share of one table."""
    X, rule = table(n, share, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(X, rule, loss="learn", random_state=seed, n_jobs=1)
    found, pair = fit.confidence_interval(), np.triu_indices(2, 1)
    held = {
        "share": float(fit.loss.lower[0] <= share <= fit.loss.upper[0]),
        "means": float(_inside(found.mean, TRUTH.mean).mean()),
        "standard deviations": float(_inside(found.standard_deviation, np.ones(2)).mean()),
        "correlations": float(_inside(found.correlation, TRUTH.covariance)[pair].mean()),
    }
    return Answer(held, float(fit.loss.p_value[0]))


def _inside(limits: tuple[np.ndarray, np.ndarray], truth: np.ndarray) -> np.ndarray:
    return (limits[0] <= truth) & (truth <= limits[1])


@task
def losses(quick: bool) -> Iterator[Row]:
    """Learn the share of lost values: intervals, the test that nothing was lost, and its power."""
    tables = 8 if quick else 200
    for n in (300, 1000):
        found = many(partial(judge_loss, n, LOST), range(tables))
        slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
        for name in found[0].held:
            held = float(np.mean([one.held[name] for one in found]))
            yield Row(
                f"{LOST:.0%} lost, {HIDDEN:.0%} below a limit, d = 2, n = {n}, {tables} tables: 95 % "
                f"intervals that hold the {name}",
                f"{held:.3f}",
                f"{TARGET[0]:.2f} to {TARGET[1]:.2f}",
                bool(TARGET[0] - slack <= held <= TARGET[1] + slack),
            )
        power = float(np.mean([one.p_value < 0.05 for one in found]))
        yield Row(
            "the same: tables in which losses are found at 5 %",
            f"{power:.3f}",
            ">= 0.80",
            power >= 0.8,
        )
        nothing = many(partial(judge_loss, n, 0.0), range(tables))
        alarms = float(np.mean([one.p_value < 0.05 for one in nothing]))
        error = (0.05 * 0.95 / tables) ** 0.5
        yield Row(
            f"nothing lost, n = {n}, {tables} tables: those in which losses are found at 5 %",
            f"{alarms:.3f}",
            f"0.05, give or take two standard errors ({2.0 * error:.3f})",
            abs(alarms - 0.05) <= 2.0 * error + slack,
        )


def judge_bounds(n: int, seed: int) -> tuple[float, float]:
    """Return the share of bounds, and of plain intervals, that hold the truth of one table."""
    # Hidden by the rule: HIDDEN. Lost cells are STATED of all hidden ones.
    share = STATED * HIDDEN / (1.0 - STATED) / (1.0 - HIDDEN)
    X, rule = table(n, share, seed, SHIFT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        fit = hs.fit(X, rule, random_state=seed, n_jobs=1)
        bounds = fit.sensitivity(factors=(0.9, 1.1)).bounds(share=STATED)
    pair = np.triu_indices(2, 1)
    counts = []
    for found in (bounds, fit.confidence_interval()):
        counts.append(
            np.concatenate([
                _inside(found.mean, TRUTH.mean + SHIFT),
                _inside(found.standard_deviation, np.ones(2)),
                _inside(found.correlation, TRUTH.covariance)[pair],
            ]).mean()
        )  # fmt: skip
    return counts[0], counts[1]


@task
def sensitivity(quick: bool) -> Iterator[Row]:
    """Count how often bounds over a stated share of lost cells hold the truth."""
    tables = 8 if quick else 200
    for n in (300, 1000):
        held = np.array(many(partial(judge_bounds, n), range(tables)))
        slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
        yield Row(
            f"{STATED:.0%} of the hidden cells lost, d = 2, n = {n}, {tables} tables: means, standard "
            "deviations and correlations within the bounds for that share",
            f"{held[:, 0].mean():.3f} (plain 95 % intervals {held[:, 1].mean():.3f})",
            ">= 0.95",
            bool(held[:, 0].mean() >= 0.95 - slack),
        )


@task
def loss_speed(quick: bool) -> Iterator[Row]:
    """Fit known losses as weights of intervals, and as a probability known at nodes, in one run."""
    X, rule = table(300 if quick else 1000, LOST, 0)
    limit = float(ndtri(HIDDEN))
    chance = hs.SelfCensoring(hs.Probability(lambda x: (1.0 - LOST) * (x >= limit)))
    ways = {"loss": (rule, {"loss": LOST}), "Probability": (chance, {})}
    seconds = {}
    for name, (how, options) in ways.items():
        for _ in range(2):
            # The second time everything is compiled.
            began = time.perf_counter()
            hs.fit(X, how, random_state=0, n_jobs=1, **options)
            seconds[name] = time.perf_counter() - began
    ratio = seconds["Probability"] / seconds["loss"]
    yield Row(
        f"{LOST:.0%} lost, d = 2, n = {len(X)}: time of a Probability with a jump / of loss=",
        f"{ratio:.1f} ({seconds['Probability']:.2f} s / {seconds['loss']:.2f} s)",
        ">= 1",
        ratio >= 1.0,
    )
