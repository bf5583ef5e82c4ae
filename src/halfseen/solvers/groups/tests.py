"""Do groups differ? Likelihood-ratio tests of equal means, equal covariances, and both.

What likelihood ratios of groups are with few rows is known if nothing is hidden. The law of the test of
equal means: Wilks' Λ = exp(−T/n), whose F approximation (Rao's) is exact for one or two columns, and for
two or three groups. The averages of the other two follow from those of logarithms of Wishart
determinants,

    E log |W_d(ν)| = d log 2 + Σ_j ψ((ν − j)/2),  j = 0 … d − 1,

and the ratio divided by its average, for each degree of freedom, is chi-square to second order
(Bartlett). Both are used where values are hidden too: how often such tests reject is measured by the
benchmark ``group_tests``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, fdtrc, psi

from halfseen.errors import InputError
from halfseen.seeds import Purpose, keyed_generator
from halfseen.solvers.full_information.learn import Settings
from halfseen.solvers.groups.models import (
    EqualCovariances,
    GroupedRows,
    Law,
    Ratio,
    climb_own,
    fit_equal_covariances,
    log_ratio,
)

Floats = NDArray[np.float64]
MEANS, COVARIANCES, BOTH = "equal means", "equal covariances", "equal means and covariances"
# How p-values came about, in words.
RAO = "Rao's F"
BARTLETT = "chi-square after Bartlett"
CHI_SQUARE = "chi-square"
# Differences of log-likelihoods that are rounding.
SLACK = 1e-6
# Share of tables with other groups in which all models must have a top.
FEWEST_USABLE = 0.9


def rao(statistic: float, rows: int, columns: int, groups: int) -> float | None:
    """Return the p-value of a test of equal means, by Rao's F; None where there are too few rows."""
    p, q = columns, groups - 1
    below = p * p + q * q - 5
    root = math.sqrt((p * p * q * q - 4) / below) if below > 0 else 1.0
    first = p * q
    second = (rows - 1 - 0.5 * (p + q + 1)) * root - 0.5 * (first - 2)
    if second <= 0.0:
        return None
    # Λ^(-1/root) − 1, without cancellation.
    ratio = math.expm1(max(statistic, 0.0) / (rows * root)) * second / first
    return float(fdtrc(first, second, ratio))


def average_of_covariances(sizes: NDArray[np.intp], columns: int) -> float:
    """Return the average of the likelihood ratio of equal covariances, means being free."""
    n, d = int(sizes.sum()), columns
    whole = n * (_log_determinant(n - sizes.size, d) - d * math.log(n))
    return whole - sum(
        int(m) * (_log_determinant(int(m) - 1, d) - d * math.log(int(m))) for m in sizes
    )


def average_of_means(rows: int, columns: int, groups: int) -> float:
    """Return the average of the likelihood ratio of equal means, covariances being equal."""
    return rows * (_log_determinant(rows - 1, columns) - _log_determinant(rows - groups, columns))


def _log_determinant(freedom: int, d: int) -> float:
    """Average of the logarithm of the determinant of a Wishart matrix."""
    return d * math.log(2.0) + float(psi(0.5 * (freedom - np.arange(d))).sum())


@dataclass(frozen=True, eq=False)
class GroupTest:
    """A likelihood-ratio test of whether groups differ.

    Attributes
    ----------
    hypothesis : str
        "equal means" (covariances being equal), "equal covariances" (whatever the means), or "equal
        means and covariances".
    groups : tuple
        Labels of the groups that were compared.
    statistic : float
        Twice the difference of the log-likelihoods.
    degrees_of_freedom : int
    p_value : float
        The one to report: that of the small-sample law, or of permutations where these were asked for.
    p_chi_square : float
        By the chi-square law, which holds for many rows.
    method : str
        Where ``p_value`` comes from.
    monte_carlo_error : float
        Standard error of the statistic, where rows had to be sampled.
    permuted : array or None
        Statistics of the same rows in other groups.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> X = np.random.default_rng(0).normal([[0.0], [3.0]] * 30, size=(60, 2))
    >>> test = hs.fit(X, by=["A", "B"] * 30).tests()[0]
    >>> test.hypothesis, test.degrees_of_freedom, bool(test.p_value < 1e-9)
    ('equal means', 2, True)
    """

    hypothesis: str
    groups: tuple[Any, ...]
    statistic: float
    degrees_of_freedom: int
    p_value: float
    p_chi_square: float
    method: str
    monte_carlo_error: float = 0.0
    permuted: Floats | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data.

        Returns
        -------
        dict

        Examples
        --------
        >>> import numpy as np, halfseen as hs
        >>> X = np.random.default_rng(0).normal([[0.0], [5.0]] * 30)
        >>> fit = hs.fit(X, by=["A", "B"] * 30, names=["lead"])
        >>> fit.tests()[0].to_dict()["hypothesis"]
        'equal means'
        """
        out = {k: getattr(self, k) for k in self.__dataclass_fields__ if k != "permuted"}
        replicates = 0 if self.permuted is None else int(self.permuted.size)
        return {**out, "groups": list(self.groups), "replicates": replicates}


@dataclass(frozen=True, eq=False)
class Compared:
    """Groups under the three models.

    Attributes
    ----------
    rows : GroupedRows
    labels : tuple
    equal : Law
    common : EqualCovariances
    own : list of Law
        Of each group; empty where not all have covariances of their own.
    """

    rows: GroupedRows
    labels: tuple[Any, ...]
    equal: Law
    common: EqualCovariances
    own: list[Law]

    @property
    def laws(self) -> list[Law]:
        """Laws of the groups with equal covariances."""
        return [self.common.law(g) for g in range(self.rows.count)]

    def ratio(self, hypothesis: str, seed: int) -> Ratio:
        """Return how much likelier the larger of two models is."""
        equal = [self.equal] * self.rows.count
        larger, smaller, opened = {
            MEANS: (self.laws, equal, (True, False)),
            COVARIANCES: (self.own, self.laws, (True, True)),
            BOTH: (self.own, equal, (True, False)),
        }[hypothesis]
        return log_ratio(self.rows, larger, smaller, opened, seed)


def ratio_tests(compared: Compared, hypotheses: tuple[str, ...], seed: int) -> list[GroupTest]:
    """Test hypotheses by the small-sample laws of complete rows."""
    return [_test(compared, one, seed) for one in hypotheses]


def _test(compared: Compared, hypothesis: str, seed: int) -> GroupTest:
    ratio = compared.ratio(hypothesis, seed)
    statistic = 2.0 * ratio.value
    if abs(statistic) < SLACK:
        statistic = 0.0
    freedom = degrees_of_freedom(compared.rows, hypothesis)
    at = max(statistic, 0.0)
    by_chi_square = float(chdtrc(freedom, at)) if freedom else 1.0
    p, method = _small_sample(compared.rows, hypothesis, at, freedom)
    return GroupTest(
        hypothesis, compared.labels, statistic, freedom,
        by_chi_square if p is None else p, by_chi_square, method,
        2.0 * math.sqrt(ratio.variance),
    )  # fmt: skip


def degrees_of_freedom(rows: GroupedRows, hypothesis: str) -> int:
    """Count what a hypothesis holds equal; means that nothing is said of are none."""
    d, others = rows.problem.shape[1], rows.count - 1
    # A column that is blank in all groups but one has nothing to be compared with.
    means = int(np.maximum((~rows.blank).sum(axis=0) - 1, 0).sum())
    covariances = d * (d + 1) // 2 * others
    return {MEANS: means, COVARIANCES: covariances, BOTH: means + covariances}[hypothesis]


def _small_sample(
    rows: GroupedRows, hypothesis: str, statistic: float, freedom: int
) -> tuple[float | None, str]:
    """Return the p-value of complete rows, as many as there are."""
    (n, d), groups = rows.problem.shape, rows.count
    if hypothesis == MEANS and freedom == d * (groups - 1):
        p = rao(statistic, n, d, groups)
        return p, CHI_SQUARE if p is None else RAO
    if n - groups < d or (hypothesis != MEANS and rows.sizes.min() <= d):
        return None, CHI_SQUARE
    of_means = average_of_means(n, d, groups) / (d * (groups - 1)) * (freedom or 1)
    average = {
        MEANS: of_means,
        COVARIANCES: average_of_covariances(rows.sizes, d),
        BOTH: average_of_means(n, d, groups) + average_of_covariances(rows.sizes, d),
    }[hypothesis]
    return float(chdtrc(freedom, statistic * freedom / average)), BARTLETT


# Permutations ---------------------------------------------------------------------------------------


def permuted_tests(
    tests: list[GroupTest], compared: Compared, replicates: int, seed: int, settings: Settings
) -> list[GroupTest]:
    """Give tests the p-values of the same rows with their groups permuted.

    Where covariances alone are compared, what is permuted are the rows less the means of their groups.
    """
    wanted = [test.hypothesis for test in tests]
    statistics: dict[str, list[float]] = {one: [] for one in wanted}
    centred = _centred(compared) if COVARIANCES in wanted else None
    if COVARIANCES in wanted and centred is None:
        raise InputError(
            "the test of equal covariances permutes rows less the means of their groups, which needs an "
            "interval for each hidden cell. Under this rule, take tests() without replicates."
        )
    for k in range(replicates):
        order = keyed_generator(seed, Purpose.BOOTSTRAP, k).permutation(len(compared.rows.codes))
        for base, own in (
            (compared, [one for one in wanted if one != COVARIANCES]),
            (centred, [one for one in wanted if one == COVARIANCES]),
        ):
            again = _again(base, order, own, settings) if base is not None and own else None
            if again is not None:
                for one in own:
                    statistics[one].append(2.0 * again.ratio(one, seed).value)
    return [
        _with_permutations(test, np.array(statistics[test.hypothesis]), replicates)
        for test in tests
    ]


def _again(
    base: Compared, order: NDArray[np.intp], wanted: list[str], settings: Settings
) -> Compared | None:
    """Learn the models of rows with other groups; None where one has no top."""
    rows = base.rows.regrouped(order)
    common = fit_equal_covariances(rows, base.equal, settings, several=False)
    if common is None:
        return None
    own: list[Law] = []
    if wanted != [MEANS]:
        for g in range(rows.count):
            found = climb_own(rows, g, common.law(g), settings)
            if found is None:
                return None
            own.append(found[0])
    return Compared(rows, base.labels, base.equal, common, own)


def _centred(compared: Compared) -> Compared | None:
    """Return rows less the means of their groups; None where holes cannot be moved."""
    rows, problem = compared.rows, compared.rows.opened
    holes = problem.holes
    if not holes.is_convex or holes.inequalities is not None:
        return None
    move = np.nan_to_num(compared.common.means)[rows.codes]
    hidden = problem.hidden
    first = holes.sets.start[np.maximum(holes.index, 0)][hidden]
    lower, upper = holes.sets.lower[first] - move[hidden], holes.sets.upper[first] - move[hidden]
    moved = replace(problem, Y=problem.Y - move, holes=holes.with_intervals(hidden, lower, upper))
    start = Law(np.zeros(problem.shape[1]), compared.common.covariance)
    return replace(compared, rows=GroupedRows(moved, rows.codes, rows.count), equal=start)


def _with_permutations(test: GroupTest, permuted: Floats, replicates: int) -> GroupTest:
    if permuted.size < FEWEST_USABLE * replicates:
        raise InputError(
            f"only {permuted.size} of {replicates} tables with groups in another order could be fitted: "
            "too little is seen in some of them. Take tests() without replicates, or larger groups."
        )
    above = int((permuted >= test.statistic - SLACK).sum())
    p = (1 + above) / (1 + permuted.size)
    method = f"{permuted.size} permutations"
    return replace(test, p_value=p, method=method, permuted=permuted)
