"""How often ``diagnose`` finds what it is to find, and how often it finds what is not there."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import halfseen as hs
from benchmarks.registry import Row, task
from benchmarks.two_stages import TABLES, Share, TwoStages

Floats = NDArray[np.float64]

LEVEL = 0.05
# Of tables in which all is well, those with a finding.
FALSE_ALARMS = (0.03, 0.07)
POWER = (0.8, 1.0)
QUESTIONS = {"losses": "does the rule explain the holes?", "normality": "is it a Gaussian?"}
# Separation of two groups, in deviations within them; the share of outlying rows, and their deviation.
APART, OUTLYING, FAR_OUT = 3.0, 0.1, 3.0


class Design(NamedTuple):
    """A kind of table: unit variances, equal correlations, values below a limit hidden."""

    title: str
    d: int
    n: int
    correlation: float
    hidden: float
    lost: float = 0.0
    shape: str = "normal"
    by_row: bool = False
    target: bool = True


class Answer(NamedTuple):
    """P-values of the two questions and of marks that a check without a fit leaves; seconds."""

    losses: float
    normality: float
    alone: float
    seconds: tuple[float, float]
    lost: bool


def well_behaved() -> Iterator[Design]:
    """Tables in which there is nothing to find."""
    yield Design("one column, n = 300", 1, 300, 0.0, 0.4)
    for n in (50, 300, 1000):
        yield Design(f"3 columns, n = {n}", 3, n, 0.5, 0.3)
    for n in (50, 300):
        yield Design(f"5 columns, correlation 0.7, n = {n}", 5, n, 0.7, 0.3)
    yield Design(
        "5 columns, correlation 0.7, limits by row, n = 300", 5, 300, 0.7, 0.3, by_row=True
    )


def lossy() -> Iterator[Design]:
    """Tables in which cells were lost beside those that the rule hid."""
    for share, n in ((0.1, 300), (0.3, 300), (0.1, 1000)):
        for d in (1, 3):
            title = f"{share:.0%} of cells lost, {d} column{'s' if d > 1 else ''}, n = {n}"
            asked = d > 1 and (share, n) != (0.1, 300)
            yield Design(title, d, n, 0.5, 0.3 if d > 1 else 0.4, share, target=asked)


def shapes() -> Iterator[Design]:
    """Tables that are not normal."""
    for shape, title in (
        ("two groups, one column", "two groups, 3 deviations apart in one column"),
        ("two groups, difference", "two groups, 3 deviations apart in a difference of two columns"),
        ("outliers", "10 % of rows with 3 times the deviation"),
    ):
        yield Design(f"{title}, 3 columns, n = 300", 3, 300, 0.5, 0.3, shape=shape)


def _table(design: Design, seed: int) -> tuple[Floats, hs.DetectionLimits]:
    rng = np.random.default_rng(seed)
    d, n = design.d, design.n
    R = np.full((d, d), design.correlation) + (1.0 - design.correlation) * np.eye(d)
    Y = hs.Gaussian(np.zeros(d), R).sample(n, rng)
    if design.shape == "outliers":
        Y *= np.where(rng.random(n) < OUTLYING, FAR_OUT, 1.0)[:, None]
    elif design.shape.startswith("two groups"):
        way = np.zeros(d)
        way[0], way[1] = 1.0, -1.0 if design.shape.endswith("difference") else 0.0
        way *= APART / np.sqrt(way @ np.linalg.solve(R, way))
        Y += (rng.integers(0, 2, n) - 0.5)[:, None] * way
    limits: float | Floats = float(ndtri(design.hidden))
    if design.by_row:
        limits = limits + rng.choice([-0.4, 0.0, 0.4], size=(n, d))
    rule = hs.DetectionLimits(lower=limits)
    X = np.where(rule.seen(Y), Y, np.nan)
    X[rng.random(X.shape) < design.lost] = np.nan
    return X, rule


def judge(design: Design, seed: int) -> Answer | None:
    """Fit and check one table; None where it cannot be fitted."""
    X, rule = _table(design, seed)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        try:
            fit = hs.fit(X, rule, random_state=seed, n_jobs=1)
        except hs.HalfseenError:
            return None
    fitted = time.process_time()
    found = hs.diagnose(fit, random_state=seed)
    ended = time.process_time()
    # What is left without a fit: columns by themselves.
    alone = hs.diagnose(X, rule, random_state=seed) if design.lost else found
    marks = [m.p_value for m in alone.mechanism if m.kind == "hidden too often"]
    return Answer(
        found.losses.p_value,
        found.normality.p_value,
        min((p for p in marks if p is not None), default=1.0),
        (fitted - began, ended - fitted),
        design.lost > 0.0,
    )


@task
def check_power(quick: bool) -> Iterator[Row]:
    """Count what the check finds: false alarms, losses, and what is not normal."""
    for design in well_behaved():
        tables = 10 if quick else 2 * TABLES
        stages = TwoStages(partial(judge, design), tables)
        slack = 4.0 * (LEVEL * (1.0 - LEVEL) / tables) ** 0.5 if quick else 0.0
        for kind, question in QUESTIONS.items():
            what = f"{design.title}, {len(stages.first)} tables: false alarms at 5 %, {question}"
            yield stages.row(what, partial(_found, kind, slack), FALSE_ALARMS)
        fit, check = np.median([one.seconds for one in stages.first], axis=0)
        yield Row(
            f"{design.title}: seconds of a check, and of the fit",
            f"{check:.2f}, {fit:.2f}",
            "at most 2 times the fit, where that takes a second",
            bool(check <= 2.0 * fit or fit < 1.0),
        )
    for design in (*lossy(), *shapes()):
        tables = 10 if quick else TABLES
        stages = TwoStages(partial(judge, design), tables)
        slack = 4.0 * (POWER[0] * (1.0 - POWER[0]) / tables) ** 0.5 if quick else 0.0
        share = partial(_found, "losses" if design.lost else "normality", slack)
        what = f"{design.title}, {len(stages.first)} tables: found at 5 %"
        if design.target:
            yield stages.row(what, share, POWER)
        else:
            told = share(stages.first)
            yield Row(what, f"{told.value:.3f}{told.rest}", "for information")


def _found(kind: str, slack: float, answers: list[Answer]) -> Share:
    """Return the share of tables with a finding; of losses, that of columns by themselves too."""
    share, alone = (
        float(np.mean([getattr(one, key) < LEVEL for one in answers])) for key in (kind, "alone")
    )
    lost = kind == "losses" and answers[0].lost
    return Share(share, f" (columns by themselves {alone:.2f})" if lost else "", slack)
