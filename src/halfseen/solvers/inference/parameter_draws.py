"""Parameters drawn with the uncertainty of a fit."""

from __future__ import annotations

import numpy as np

from halfseen.gaussian import Gaussian
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.inference.moved import moved
from halfseen.solvers.inference.refits import refits
from halfseen.solvers.inference.uncertainty import principal_axes
from halfseen.solvers.result import Estimate


def parameter_draws(fit: Estimate, m: int, seed: int) -> list[Gaussian]:
    """Draw parameters as uncertain as the fit is.

    From the normal approximation where the covariance of all parameters is known; else by refitting rows
    drawn with replacement.
    """
    errors = fit.uncertainty
    if errors is None or errors.parameters is None:
        return [refit.gaussian for refit in refits(fit, m, "rows", seed)]
    values, vectors, scale = principal_axes(errors.parameters)
    root = scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    rng = keyed_generator(seed, Purpose.IMPUTATION)
    return [moved(fit.gaussian, root @ rng.standard_normal(values.size)) for _ in range(m)]
