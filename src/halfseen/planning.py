"""How many rows are needed, by the paper's bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfseen.checks import positive_number, real_number, whole_number
from halfseen.errors import InputError

# More rows than this, and a sentence says more than a number.
LARGEST_COUNT = 1e300
# So that powers of d, up to the fourth, are far from the largest double.
MOST_COLUMNS = 10**9


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
    d, eps, alpha, condition_number, delta
        What was asked for.

    Examples
    --------
    >>> import halfseen as hs
    >>> plan = hs.planning.samples_for_self_censoring(d=5, eps=0.1, alpha=0.5)
    >>> plan.problems, plan.rows
    (15, 36567)
    >>> print(str(plan)[:37])
    To learn 5 columns to an error of 0.1
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
    d, eps = _columns(d), positive_number("eps", eps)
    alpha, delta = real_number("alpha", alpha), real_number("delta", delta)
    condition_number = real_number("condition_number", condition_number)
    if not 0.0 < alpha <= 1.0:
        raise InputError(f"alpha must be a probability above 0; got {alpha!r}.")
    if not 1.0 <= condition_number < math.inf:
        raise InputError(f"condition_number must be at least 1; got {condition_number!r}.")
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta must lie between 0 and 1; got {delta!r}.")
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


@dataclass(frozen=True)
class MissingDescentPlan:
    """Parameters that the paper's analysis of ``MissingDescent`` asks for.

    Every constant that the paper leaves open is taken as 1, and logarithms that it hides are left out.

    Attributes
    ----------
    start_distance : float
        S, how far from the truth the start and every iterate may be, in Mahalanobis distance.
    langevin_radius : float
        R_lmc = √d + S + log(1/(γε)).
    langevin_steps : float
        M_grad, Langevin steps for one gradient.
    langevin_step_size : float
        η_lmc, in whitened units.
    strong_convexity : float
        λ_sgd = αβ/λ_max.
    descent_steps : float
        M_sgd, rows that the descent goes over.
    initial_rows : float
        M_init, with the 1/α that the lemma leaves out: it counts rows that show a block.

    Examples
    --------
    >>> import halfseen as hs
    >>> plan = hs.planning.parameters_for_missing_descent(10, 0.1, 0.5, 0.1, 0.1)
    >>> plan.total_steps == plan.langevin_steps * plan.descent_steps
    True
    """

    start_distance: float
    langevin_radius: float
    langevin_steps: float
    langevin_step_size: float
    strong_convexity: float
    descent_steps: float
    initial_rows: float

    @property
    def total_steps(self) -> float:
        """Langevin steps in all."""
        return self.langevin_steps * self.descent_steps

    def __str__(self) -> str:
        seconds = self.total_steps / STEPS_PER_SECOND
        return (
            f"The analysis asks for {self.descent_steps:.2g} rows with {self.langevin_steps:.2g} "
            f"Langevin steps of size {self.langevin_step_size:.2g} for each: {self.total_steps:.2g} "
            f"steps, about {seconds / 3.2e7:.2g} years at ten million steps a second. It shows that "
            "polynomially many are enough, not how many are needed; the defaults of missing_descent "
            "are derived apart."
        )


# What the compiled chain does on one core, for the sentence above.
STEPS_PER_SECOND = 1e7


def parameters_for_missing_descent(
    d: int,
    eps: float,
    alpha: float,
    beta: float,
    gamma: float,
    smallest_eigenvalue: float = 1.0,
    largest_eigenvalue: float = 1.0,
    delta: float = 0.01,
) -> MissingDescentPlan:
    """Parameters of ``missing_descent`` by Theorem 1.5 of the paper and its lemmas.

    Parameters
    ----------
    d : int
        Number of columns.
    eps : float
        Error wanted, in Mahalanobis distance.
    alpha, beta : float
        Any βd columns are seen together with probability at least α.
    gamma : float
        Given the anchors, each pattern has probability 0 or at least γ.
    smallest_eigenvalue, largest_eigenvalue : float
        Of the covariance.
    delta : float
        Probability of failure.

    Returns
    -------
    MissingDescentPlan

    Examples
    --------
    >>> import halfseen as hs
    >>> plan = hs.planning.parameters_for_missing_descent(10, 0.1, 0.5, 0.1, 0.1)
    >>> plan.strong_convexity
    0.05
    >>> plan.langevin_steps > 1e50
    True
    """
    d, eps = _columns(d), positive_number("eps", eps)
    for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma), ("delta", delta)):
        if not 0.0 < real_number(name, value) <= 1.0:
            raise InputError(f"{name} must be above 0 and at most 1; got {value!r}.")
    alpha, beta, gamma, delta = float(alpha), float(beta), float(gamma), float(delta)
    smallest_eigenvalue = real_number("smallest_eigenvalue", smallest_eigenvalue)
    largest_eigenvalue = real_number("largest_eigenvalue", largest_eigenvalue)
    if not 0.0 < smallest_eigenvalue <= largest_eigenvalue < math.inf:
        raise InputError(
            "smallest_eigenvalue must be above 0 and at most largest_eigenvalue; got "
            f"{smallest_eigenvalue!r} and {largest_eigenvalue!r}."
        )
    bounds = (smallest_eigenvalue, largest_eigenvalue)
    try:
        return _descent_plan(d, eps, alpha, beta, gamma, bounds, delta)
    except ArithmeticError:
        raise InputError(
            "these values lead to numbers that a computer cannot hold; choose less extreme ones."
        ) from None


def _descent_plan(
    d: int,
    eps: float,
    alpha: float,
    beta: float,
    gamma: float,
    eigenvalues: tuple[float, float],
    delta: float,
) -> MissingDescentPlan:
    """Work the formulas out; an ``ArithmeticError`` where a number leaves the doubles."""
    smallest_eigenvalue, largest_eigenvalue = eigenvalues
    condition = largest_eigenvalue / smallest_eigenvalue
    # ‖w − μ*‖₂ <= √(λ_max/β · log 1/α), and 1/√λ_min of that in Mahalanobis distance
    start = math.sqrt(condition / beta * math.log(1.0 / alpha)) if alpha < 1.0 else 0.0
    radius = math.sqrt(d) + start + math.log(1.0 / (gamma * min(eps, 1.0)))
    # Bubeck et al.: a unit ball inside a ball of radius R_out = R/r with r = γ/d²; smoothness γ²/d⁴ and
    # gradient γS/d^1.5; N = R_out⁶ max(d, R_out ℓ, R_out β)^12 / ε^12 and η = R_out²/N, in units of r.
    inner = gamma / d**2
    outer = radius / inner
    worst = max(d, outer * gamma * start / d**1.5, outer * gamma**2 / d**4)
    log_steps = 6.0 * math.log(outer) + 12.0 * (math.log(worst) - math.log(eps))
    if log_steps > math.log(LARGEST_COUNT):
        raise InputError(
            "these values ask for more steps than can be counted; choose a larger eps."
        )
    steps = math.exp(log_steps)
    convexity = alpha * beta / largest_eigenvalue
    # Lemma: E[ℓ(μ̄) − ℓ(μ*)] <= ρ²(1 + log T)/(λT), and ℓ is λ-strongly convex; ρ² = (d + R²)/λ_min
    second_moment = (d + radius**2) / smallest_eigenvalue
    rows = second_moment / (convexity**2 * eps**2 * smallest_eigenvalue)
    # The lemma counts rows that show a block; 1/α times as many must be drawn to have them.
    initial = d * math.log(1.0 / (delta * beta)) / (alpha * eps**2)
    return MissingDescentPlan(
        start, radius, steps, outer**2 / steps * inner**2, convexity, rows, initial
    )


@dataclass(frozen=True)
class PilotPlan:
    """Rows that a pilot table says are needed.

    Attributes
    ----------
    rows : int
        Rows for every mean and every correlation.
    rows_for_means, rows_for_correlations : int
    pilot_rows : int
    error : float
        Standard error wanted: of means in standard deviations, of correlations as they are.
    hardest_mean, hardest_correlation : str
        What needs the most rows.

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, -0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> plan = hs.planning.rows_for_error(fit, error=0.05)
    >>> plan.hardest_mean, plan.pilot_rows
    ('zinc', 500)
    >>> plan.rows == max(plan.rows_for_means, plan.rows_for_correlations)
    True
    """

    rows: int
    rows_for_means: int
    rows_for_correlations: int
    pilot_rows: int
    error: float
    hardest_mean: str
    hardest_correlation: str

    def __str__(self) -> str:
        pairs = (
            f" and {self.rows_for_correlations} for correlations (the hardest is "
            f"{self.hardest_correlation})"
            if self.hardest_correlation
            else ""
        )
        return (
            f"For standard errors of {self.error:g}: {self.rows_for_means} rows for means, in standard "
            f"deviations (the hardest is {self.hardest_mean}){pairs}, so {self.rows} rows. From the "
            f"information in {self.pilot_rows} rows; standard errors fall as the square root of their "
            "number, as long as as much is hidden."
        )


def _columns(d: int) -> int:
    d = whole_number("d", d)
    if d > MOST_COLUMNS:
        raise InputError(f"d must be at most {MOST_COLUMNS}, more columns than any table has.")
    return d


def _rows(rows: int, ratio: float) -> int:
    """Rows with so many times the information."""
    if not ratio < 1e100:
        raise InputError("this asks for more rows than can be counted; choose a larger error.")
    return math.ceil(rows * ratio * ratio)


def rows_for_error(fit: Any, error: float) -> PilotPlan:
    """Rows needed for a standard error, from the information in a pilot table.

    Parameters
    ----------
    fit : Fit
        Of the pilot table, with standard errors (``method="full"``).
    error : float
        Standard error wanted for every mean, in standard deviations of its column, and for every
        correlation.

    Returns
    -------
    PilotPlan

    Examples
    --------
    >>> import halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> fit = hs.fit(hs.simulate(hs.Gaussian([0.0], [[1.0]]), rule, 500), rule, random_state=0)
    >>> plan = hs.planning.rows_for_error(fit, 0.02)
    >>> 2500 < plan.rows < 5000
    True
    """
    error = positive_number("error", error)
    errors = fit.standard_errors
    means = np.asarray(errors.mean) / fit.gaussian.standard_deviations
    names = fit.names
    i, j = np.triu_indices(len(names), 1)
    pairs = np.asarray(errors.correlation)[i, j]
    for_means, for_pairs = (
        _rows(fit.rows, float(found.max(initial=0.0)) / error) for found in (means, pairs)
    )
    k = int(pairs.argmax()) if pairs.size else 0
    return PilotPlan(
        max(for_means, for_pairs, 2),
        for_means,
        for_pairs,
        fit.rows,
        error,
        names[int(means.argmax())],
        f"{names[i[k]]} ~ {names[j[k]]}" if pairs.size else "",
    )
