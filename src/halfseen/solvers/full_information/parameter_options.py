"""What was said about mean and covariance, as the M step that keeps to it."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from halfseen.checks import finite_vector, positive_number, real_array
from halfseen.errors import InputError, argument
from halfseen.gaussian import Gaussian
from halfseen.solvers.conditionals import check_covariance
from halfseen.solvers.full_information.m_step import (
    LARGEST_VARIANCE,
    SMALLEST_VARIANCE,
    CovarianceStructure,
    Free,
    Known,
    KnownCorrelation,
    MStep,
    Shrinkage,
    Sparse,
    with_floor,
)
from halfseen.solvers.full_information.problem import Overview
from halfseen.solvers.result import Note, Status
from halfseen.solvers.structures import InUnits, Structure, read_structure

# With fewer rows for each column a free covariance is as good as singular once cells are hidden.
ROWS_PER_COLUMN = 2
# A known mean that is further from the seen values than this, in their spreads, is in other units.
FARTHEST = 1e6


def too_few_rows(overview: Overview) -> bool:
    """Whether a free covariance is as good as singular."""
    n, d = overview.shape
    return n < ROWS_PER_COLUMN * d


def m_step_for(
    overview: Overview,
    covariance: ArrayLike | str | Structure | None = None,
    correlation: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    shrinkage: float | None = None,
    penalty: float | None = None,
    **others: Any,
) -> tuple[MStep, list[Note]]:
    """Read what was said about the parameters, in the units of the table.

    ``others`` are options of a fit that say nothing about mean and covariance.
    """
    n, d = overview.shape
    notes = []
    structure = choose_structure(overview, covariance, correlation, shrinkage, penalty)
    if structure is None:
        structure = Free()
        if too_few_rows(overview):
            structure = Shrinkage()
            text = (
                f"{n} rows, {d} columns. Choose a structure of the covariance yourself to say how."
            )
            notes.append(Note(Status.REGULARISED, text))
    known = None
    if mean is not None:
        given = finite_vector("mean", mean, d)
        with np.errstate(over="ignore"):
            known = (given - overview.centre) / overview.scale
        far = np.flatnonzero(~(np.abs(known) < FARTHEST))
        if far.size:
            j = int(far[0])
            raise InputError(
                f"the mean of column {overview.names[j]} is said to be {given[j]:g}, but its seen "
                f"values lie around {overview.centre[j]:g} with a spread of {overview.scale[j]:g}. "
                "Check the units."
            )
    return MStep(structure, known), notes


def choose_structure(
    overview: Overview,
    covariance: ArrayLike | str | Structure | None,
    correlation: ArrayLike | None,
    shrinkage: float | None,
    penalty: float | None,
) -> CovarianceStructure | None:
    """Read what was said about the covariance; None where nothing was."""
    d = overview.shape[1]
    if correlation is not None:
        if covariance is not None:
            raise InputError(f"give {argument('covariance')} or correlation=, not both.")
        given = real_array("correlation", correlation)
        if given.shape != (d, d) or not np.allclose(np.diag(given), 1.0, atol=1e-8):
            raise InputError(
                f"correlation must have shape ({d}, {d}) and ones on its diagonal; got shape "
                f"{given.shape}."
            )
        return KnownCorrelation(with_floor(Gaussian(np.zeros(d), given).covariance))
    name = covariance if isinstance(covariance, str) else None
    if shrinkage is not None:
        if name != "shrinkage":
            raise InputError('shrinkage= is the share for covariance="shrinkage"; say both.')
        number = isinstance(shrinkage, numbers.Real) and not isinstance(shrinkage, bool)
        if not number or not 0.0 <= shrinkage <= 1.0:
            raise InputError(f"shrinkage must lie between 0 and 1; got {shrinkage!r}.")
    if penalty is not None and name != "sparse":
        raise InputError('penalty= is for covariance="sparse"; say both.')
    if name == "shrinkage":
        return Shrinkage(shrinkage)
    if name == "sparse":
        return Sparse(1.0 if penalty is None else positive_number("penalty", penalty))
    if isinstance(covariance, str | Structure):
        structure = read_structure(covariance)
        if not isinstance(structure, Structure):
            return structure
        return InUnits.of(structure.for_columns(overview.names), overview.scale)
    if covariance is None:
        return None
    known = check_covariance(covariance, d).covariance
    with np.errstate(over="ignore", under="ignore"):
        known = known / np.outer(overview.scale, overview.scale)
    odd = np.flatnonzero(
        ~((np.diag(known) > SMALLEST_VARIANCE) & (np.diag(known) < LARGEST_VARIANCE))
    )
    if odd.size:
        j = int(odd[0])
        raise InputError(
            f"the variance of column {overview.names[j]} is said to be {np.diag(known)[j]:.3g} times "
            "that of its seen values. Check the units."
        )
    return Known(known)
