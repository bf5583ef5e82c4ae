"""Tables of regressions as people bring them, with the truth beside them; nothing in them is real.

A seed gives the same table wherever it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import halfseen as hs

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class RegressionTable(NamedTuple):
    """What ``hs.regress`` is given, and what it should find.

    Attributes
    ----------
    model, data, rules : as ``hs.regress`` takes them
    options : dict
        Of ``hs.regress``, by name.
    weights : array of shape (terms, outcomes)
        True coefficients, in the order of the fit; NaN where a term does not stand in an equation.
    residual : array of shape (outcomes, outcomes)
        The true covariance of residuals.
    clusters : array or None
        What rows belong together.
    """

    model: Any
    data: Any
    rules: Any
    options: dict[str, Any]
    weights: Floats
    residual: Floats
    clusters: Floats | None = None

    def fit(self, seed: int = 0) -> hs.RegressionFit:
        """Fit on one thread."""
        return hs.regress(
            self.model, self.data, self.rules, random_state=seed, n_jobs=1, **self.options
        )


def covariates(
    rng: np.random.Generator, n: int, k: int, correlation: float = 0.0, binary: bool = True
) -> Floats:
    """Draw covariates that go together: normal ones, a skewed one, and one of 0 and 1."""
    X = np.sqrt(correlation) * rng.normal(size=(n, 1)) + np.sqrt(1.0 - correlation) * rng.normal(
        size=(n, k)
    )
    if k > 1:
        X[:, 1] = np.exp(0.5 * X[:, 1])
    if k > 2 and binary:
        X[:, 2] = X[:, 2] > 0.4
    return X


def equicorrelated(q: int, rho: float) -> Floats:
    """Return unit variances, and the same correlation of every two."""
    return (1.0 - rho) * np.eye(q) + rho


def _gaussian(rng: np.random.Generator, n: int, S: Floats) -> Floats:
    return rng.normal(size=(n, len(S))) @ np.linalg.cholesky(S).T


def by_terms(
    fit_terms: Sequence[str], outcomes: Sequence[str], truth: dict[str, dict[str, float]]
) -> Floats:
    """Put true coefficients into the order of a fit."""
    return np.array([[truth[y].get(term, np.nan) for y in outcomes] for term in fit_terms])


def heckman(n: int = 750, seed: int = 0, correlation: float = -0.13) -> RegressionTable:
    """Wages that are seen where a latent index is positive; two regressors stand in the index alone."""
    rng = np.random.default_rng([seed, 3])
    educ = np.clip(np.round(rng.normal(12.3, 2.3, n)), 5, 17)
    exper = np.round(rng.gamma(1.8, 6.0, n))
    kids = rng.poisson(0.24, n).astype(float)
    other = rng.gamma(3.0, 7.0, n)
    e = _gaussian(rng, n, equicorrelated(2, correlation))
    wage = -2.0 + 0.46 * educ + 0.02 * exper + 3.1 * e[:, 0]
    index = -0.4 + 0.11 * educ + 0.05 * exper - 0.8 * kids - 0.03 * other + e[:, 1]
    works = index > 0.0
    columns = {"educ": educ, "exper": exper, "kids": kids, "other": other, "works": works}
    data = {**columns, "wage": np.where(works, wage, np.nan)}
    truth = {
        "wage": {"Intercept": -2.0, "educ": 0.46, "exper": 0.02},
        "works": {"Intercept": -0.4, "educ": 0.11, "exper": 0.05, "kids": -0.8, "other": -0.03},
    }
    terms = ("Intercept", "educ", "exper", "kids", "other")
    scale = np.array([3.1, 1.0])
    return RegressionTable(
        {"wage": "educ + exper", "works": "educ + exper + kids + other"},
        data,
        hs.Selection("wage", by="works"),
        {},
        by_terms(terms, ("wage", "works"), truth),
        equicorrelated(2, correlation) * np.outer(scale, scale),
    )


def many_censored(
    n: int, q: int, k: int, seed: int, rho: float = 0.5, hidden: tuple[float, float] = (0.2, 0.5)
) -> RegressionTable:
    """Outcomes that go together, hidden below limits that differ by row."""
    rng = np.random.default_rng([seed, 10, q])
    fixed = np.random.default_rng([q, k])
    W = np.column_stack([np.ones(n), covariates(rng, n, k, 0.3)])
    B = fixed.normal(size=(k + 1, q)) / np.sqrt(k + 1)
    S = equicorrelated(q, rho) * np.outer(*[np.linspace(0.7, 1.4, q)] * 2)
    Y = W @ B + _gaussian(rng, n, S)
    # Of the population, so that limits say nothing of the rows.
    large = np.column_stack([np.ones(20_000), covariates(fixed, 20_000, k, 0.3)])
    drawn = large @ B + _gaussian(fixed, 20_000, S)
    middle = [np.quantile(drawn[:, j], s) for j, s in enumerate(np.linspace(*hidden, q))]
    limit = np.array(middle) + 0.3 * rng.normal(size=(n, 1))
    return RegressionTable(
        np.where(limit > Y, np.nan, Y), W[:, 1:], hs.DetectionLimits(lower=limit), {}, B, S
    )


def two_selected(n: int = 800, seed: int = 0) -> RegressionTable:
    """Two outcomes that are seen where one index is positive."""
    rng = np.random.default_rng([seed, 11])
    x, z = rng.normal(size=(2, n))
    S = np.array([[1.44, 0.48, 0.6], [0.48, 1.0, -0.3], [0.6, -0.3, 1.0]])
    e = _gaussian(rng, n, S)
    a, b = 1.0 + 0.5 * x + e[:, 0], -0.5 + 0.8 * x + e[:, 1]
    works = 0.2 + 0.4 * x + 0.9 * z + e[:, 2] > 0.0
    a, b = np.where(works, a, np.nan), np.where(works, b, np.nan)
    truth = {
        "a": {"Intercept": 1.0, "x": 0.5},
        "b": {"Intercept": -0.5, "x": 0.8},
        "works": {"Intercept": 0.2, "x": 0.4, "z": 0.9},
    }
    return RegressionTable(
        {"a": "x", "b": "x", "works": "x + z"},
        {"x": x, "z": z, "a": a, "b": b, "works": works},
        hs.Selection(["a", "b"], by="works"),
        {},
        by_terms(("Intercept", "x", "z"), ("a", "b", "works"), truth),
        S,
    )


def roy(n: int = 1500, seed: int = 0) -> RegressionTable:
    """Two regimes with an observed switch, on which a regressor of its own bears."""
    rng = np.random.default_rng([seed, 12])
    x, z = rng.normal(size=(2, n))
    S = np.array([[1.0, 0.3, 0.5], [0.3, 1.44, -0.48], [0.5, -0.48, 1.0]])
    e = _gaussian(rng, n, S)
    a, b = 1.0 + 0.6 * x + e[:, 0], 0.4 - 0.3 * x + e[:, 1]
    moved = 0.1 + 0.3 * x + 0.8 * z + e[:, 2] > 0.0
    a, b = np.where(moved, a, np.nan), np.where(moved, np.nan, b)
    truth = {
        "a": {"Intercept": 1.0, "x": 0.6},
        "b": {"Intercept": 0.4, "x": -0.3},
        "moved": {"Intercept": 0.1, "x": 0.3, "z": 0.8},
    }
    # The outcomes are never seen together: nothing is said of their covariance.
    known = S.copy()
    known[0, 1] = known[1, 0] = np.nan
    return RegressionTable(
        {"a": "x", "b": "x", "moved": "x + z"},
        {"x": x, "z": z, "a": a, "b": b, "moved": moved},
        [hs.Selection("a", by="moved"), hs.Selection("b", by="moved", when=False)],
        {},
        by_terms(("Intercept", "x", "z"), ("a", "b", "moved"), truth),
        known,
    )


def probits_and_tobit(n: int = 600, seed: int = 0) -> RegressionTable:
    """Two latent numbers of which signs are seen, and an outcome with a limit."""
    rng = np.random.default_rng([seed, 13])
    x, z = rng.normal(size=(2, n))
    S = np.array([[1.0, 0.4, 0.5], [0.4, 1.0, -0.3], [0.5, -0.3, 1.0]])
    B = np.array([[0.2, -0.3, 0.5], [0.6, 0.3, 1.0], [-0.4, 0.5, 0.3]])
    Y = np.column_stack([np.ones(n), x, z]) @ B + _gaussian(rng, n, S)
    dose = np.where(Y[:, 2] >= 0.2, Y[:, 2], np.nan)
    data = {"x": x, "z": z, "ill": Y[:, 0] > 0.0, "left": Y[:, 1] > 0.0, "dose": dose}
    return RegressionTable("ill + left + dose ~ x + z", data, {"dose": ">=0.2"}, {}, B, S)


def uneven(n: int = 600, seed: int = 0) -> RegressionTable:
    """Residuals that spread more where a covariate is large; one outcome with a limit.

    No regression with even residuals is the truth: its estimates go to the nearest one, for which there
    is no closed form.
    """
    rng = np.random.default_rng([seed, 14])
    x, z = rng.normal(size=(2, n))
    spread = np.exp(0.5 * x)[:, None]
    Y = np.column_stack([np.ones(n), x, z]) @ [[0.5, 0.0], [1.0, 0.5], [-0.5, 1.0]]
    Y = Y + spread * _gaussian(rng, n, equicorrelated(2, 0.5))
    y = np.where(Y[:, 0] >= 0.0, Y[:, 0], np.nan)
    nothing = np.full((3, 2), np.nan)
    return RegressionTable(
        "a + b ~ x + z",
        {"x": x, "z": z, "a": y, "b": Y[:, 1]},
        {"a": ">=0.0"},
        {},
        nothing,
        np.full((2, 2), np.nan),
    )


def clustered(sites: int = 80, size: int = 8, seed: int = 0) -> RegressionTable:
    """Rows of a site share a part of their residuals, and one covariate; one outcome with a limit."""
    rng = np.random.default_rng([seed, 15])
    site = np.repeat(np.arange(sites), size)
    x, z = rng.normal(size=sites)[site], rng.normal(size=site.size)
    S = equicorrelated(2, 0.5)
    shared = _gaussian(rng, sites, S)[site]
    e = np.sqrt(0.3) * shared + np.sqrt(0.7) * _gaussian(rng, site.size, S)
    B = np.array([[0.5, 0.0], [0.6, 0.4], [-0.5, 1.0]])
    Y = np.column_stack([np.ones(site.size), x, z]) @ B + e
    y = np.where(Y[:, 0] >= 0.0, Y[:, 0], np.nan)
    data = {"x": x, "z": z, "a": y, "b": Y[:, 1]}
    return RegressionTable("a + b ~ x + z", data, {"a": ">=0.0"}, {}, B, S, site.astype(float))
