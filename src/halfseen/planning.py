"""How many rows are needed, by the paper's bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from halfseen.errors import InputError

# More rows than this, and a sentence says more than a number.
LARGEST_COUNT = 1e300


@dataclass(frozen=True)
class SelfCensoringPlan:
    """Rows that Theorem 1.2 asks for, and how the number comes about.

    Attributes
    ----------
    rows : int
        Rows needed, with the unstated constant of the theorem taken as 1.
    joint_rows : int
        Rows needed in which any one pair is seen.
    error_per_problem : float
        ε', the accuracy that each one- and two-dimensional problem must reach.
    problems : int
        Number of those problems.
    """

    rows: int
    joint_rows: int
    error_per_problem: float
    problems: int
    d: int
    eps: float
    alpha: float
    condition_number: float
    delta: float

    def __str__(self) -> str:
        return (
            f"To learn {self.d} columns to an error of {self.eps:g} with probability "
            f"{1.0 - self.delta:g}, when every pair is seen in a share {self.alpha:g} of the rows and "
            f"the condition number is {self.condition_number:g}: {self.problems} problems in one and "
            f"two dimensions, each to {self.error_per_problem:.3g}, need {self.joint_rows} joint "
            f"rows, so {self.rows} rows. The theorem leaves a constant open, taken as 1 here; this "
            "is a rate, not a guarantee."
        )


def samples_for_self_censoring(
    d: int, eps: float, alpha: float, condition_number: float = 1.0, delta: float = 0.01
) -> SelfCensoringPlan:
    """Rows needed under self-censoring: Õ(d² κ² / (α ε²)), Theorem 1.2 of the paper.

    The proof runs each one- and two-dimensional problem to ε' = ε/(d κ), which takes log(1/δ')/ε'²
    jointly seen rows with δ' the share of δ for each problem (union bound), and 1/α times as many
    rows in all.

    Parameters
    ----------
    d : int
        Number of columns.
    eps : float
        Error wanted, in both norms of the theorem.
    alpha : float
        Least probability with which a pair of columns is seen together.
    condition_number : float
        κ = λ_max/λ_min of the covariance.
    delta : float
        Probability of failure.

    Returns
    -------
    SelfCensoringPlan

    Examples
    --------
    >>> import halfseen as hs
    >>> hs.planning.samples_for_self_censoring(d=5, eps=0.1, alpha=0.5).rows
    36567
    """
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
        raise InputError(f"d must be a number of columns, at least 1; got {d!r}.")
    if not 0.0 < eps < math.inf:
        raise InputError(f"eps must be above 0; got {eps!r}.")
    if not 0.0 < alpha <= 1.0:
        raise InputError(f"alpha must be a probability above 0; got {alpha!r}.")
    if not 1.0 <= condition_number < math.inf:
        raise InputError(f"condition_number must be at least 1; got {condition_number!r}.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1; got {delta!r}.")
    d = int(d)
    problems = d + d * (d - 1) // 2
    error = eps / (d * condition_number)
    joint = (math.log(problems) - math.log(delta)) * (1.0 / error) * (1.0 / error)
    if not joint / alpha < LARGEST_COUNT:
        raise InputError(
            "these values ask for more rows than can be counted; choose a larger eps or alpha."
        )
    return SelfCensoringPlan(
        math.ceil(joint / alpha),
        math.ceil(joint),
        error,
        problems,
        d,
        eps,
        alpha,
        condition_number,
        delta,
    )
