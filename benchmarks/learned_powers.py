"""Powers that are learned: how often intervals in original units hold the truth."""

from __future__ import annotations

import dataclasses
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
from halfseen.data.transforms import BoxCox

Floats = NDArray[np.float64]

CORRELATION, LEVEL = 0.5, 0.95
TARGET = (0.93, 0.97)
# Mean and deviation on the scale of each power: logarithms, and roots four deviations above zero.
TRUTHS = {0.0: (0.0, 1.0), 0.5: (2.0, 1.0)}
# Nodes for the mean in original units.
NODES = np.linspace(-12.0, 12.0, 4001)


class Design(NamedTuple):
    """A kind of table: columns that are normal on the scale of a power, behind a limit."""

    power: float
    n: int
    d: int
    hidden: float

    @property
    def title(self) -> str:
        """What it is, in words."""
        return f"power {self.power:g}, n = {self.n}, d = {self.d}, {self.hidden:.0%} below a limit"


def designs() -> Iterator[Design]:
    """Every line of what has to be shown."""
    for power in TRUTHS:
        for d in (1, 3):
            for n in (30, 100, 400):
                for hidden in (0.1, 0.5):
                    yield Design(power, n, d, hidden)


@task
def learned_powers(quick: bool) -> Iterator[Row]:
    """Count how often 95 % intervals in original units hold the truth, with powers learned."""
    tables = 20 if quick else TABLES
    # Of few tables, four standard errors.
    slack = 4.0 * (0.95 * 0.05 / tables) ** 0.5 if quick else 0.0
    for index, design in enumerate(designs()):
        stages = TwoStages(partial(judge, index), tables)
        for k, word in enumerate(("medians", "means")):
            what = f"{design.title}: 95 % intervals that hold their {word} in original units"
            yield stages.row(what, partial(_share, k, slack), TARGET)
        of_power = np.mean([held[0, 3] for held in stages.first])
        yield Row(f"{design.title}: 95 % intervals that hold their power", f"{of_power:.3f}", "")


def _share(which: int, slack: float, found: list[Floats]) -> Share:
    """Return the share of medians, or of means, that is held with powers learned, known and told."""
    after, before, told = np.mean(found, axis=0)[which, :3]
    return Share(after, f" (power taken as known {before:.3f}; power told {told:.3f})", slack)


def judge(index: int, seed: int) -> Floats | None:
    """Fit one table; shares of columns whose (median, mean) is held: learned, as known, told; power."""
    design = list(designs())[index]
    X, rule, truth = table(design, seed)
    told = f"boxcox({design.power!r})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        try:
            fit, known = (
                hs.fit(X, rule, transforms=scale, random_state=seed, n_jobs=1)
                for scale in ("boxcox", told)
            )
        except (hs.InputError, hs.NotIdentifiedError):
            return None
        fits = fit, dataclasses.replace(fit, powers=None), known
        held = np.array([_held(one, truth) for one in fits])
    ends = [one.interval(LEVEL) for one in fit.powers or () if one is not None]
    share = np.mean([low <= design.power <= high for low, high in ends])
    return np.column_stack([held.T, [share, share]])


def table(design: Design, seed: int) -> tuple[Floats, hs.DetectionLimits, Floats]:
    """Return a table, its rule, and the median and mean of each column."""
    scale, (mean, deviation) = BoxCox(design.power), TRUTHS[design.power]
    R = np.full((design.d, design.d), CORRELATION)
    np.fill_diagonal(R, 1.0)
    place = [seed, design.n, design.d, round(100 * design.hidden), round(100 * design.power)]
    z = np.random.default_rng(place).multivariate_normal(np.zeros(design.d), R, design.n)
    x = scale.inverse(mean + deviation * z)
    limit = float(scale.inverse(mean + deviation * ndtri(design.hidden)))
    weights = np.exp(-0.5 * NODES**2)
    average = scale.inverse(mean + deviation * NODES) @ weights / weights.sum()
    truth = np.array([float(scale.inverse(mean)), float(average)])
    return np.where(x < limit, np.nan, x), hs.DetectionLimits(lower=limit), truth


def _held(fit: hs.Fit, truth: Floats) -> Floats:
    """Return the share of columns whose median and mean are held."""
    found = fit.original_scale(LEVEL, (0.5,))
    ends = (found.median_lower, found.median_upper), (found.mean_lower, found.mean_upper)
    return np.array(
        [np.mean((low <= at) & (at <= high)) for (low, high), at in zip(ends, truth, strict=True)]
    )
