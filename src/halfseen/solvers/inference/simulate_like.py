"""New tables like the one that was fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfseen.data.table import frame_of
from halfseen.data.transforms import Identity, back_to_units
from halfseen.errors import InputError
from halfseen.missingness.base import Missingness
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.sets import everything
from halfseen.seeds import Purpose, RandomState, keyed_generator, seed_of
from halfseen.simulate import simulate
from halfseen.solvers.inference.fitted_table import rule_of
from halfseen.solvers.result import Estimate


def simulate_like(fit: Estimate, n: int, missingness: Any, random_state: RandomState) -> Any:
    """Draw a table in original units; see ``Fit.simulate``."""
    rule = rule_of(fit) if missingness is None else missingness
    if rule is None:
        rule = SelfCensoring(everything)
    if not isinstance(rule, Missingness):
        raise InputError(f"missingness must be a rule such as DetectionLimits(...); got {rule!r}.")
    rule = rule.for_columns(fit.names)
    transforms = fit.transforms or (Identity(),) * len(fit.names)
    X, Z = simulate(
        fit.gaussian, rule.transformed(transforms, fit.names), n, random_state, return_complete=True,
        degrees_of_freedom=None if np.isinf(fit.degrees) else fit.degrees,
    )  # fmt: skip
    hidden = np.isnan(X)
    if missingness is None and fit.loss is not None:
        lost = (
            keyed_generator(seed_of(random_state), Purpose.LOSSES).random(X.shape) < fit.loss.share
        )
        hidden |= lost
    values = np.where(hidden, np.nan, back_to_units(Z, transforms))
    return frame_of(values, fit.names, fit.frame)
