"""Made-up tables of regressions, with what hides their values."""

import numpy as np

import halfseen as hs

INF = np.inf


def regressors(rng, n, k, correlation=0.0):
    """An intercept and covariates of all kinds: normal, skewed, and of two values."""
    common = rng.normal(size=(n, 1))
    X = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * rng.normal(size=(n, k))
    if k > 1:
        X[:, 1] = np.exp(0.5 * X[:, 1])
    if k > 2:
        X[:, 2] = X[:, 2] > 0.4
    return np.column_stack([np.ones(n), X])


def residuals(rng, n, q, correlation):
    """Residuals of unit variance, every two of which are as correlated."""
    S = correlation + (1.0 - correlation) * np.eye(q)
    return rng.normal(size=(n, q)) @ np.linalg.cholesky(S).T


def ends_of(Y, lower=-INF, upper=INF, blank=None):
    """Lower and upper ends of cells that are seen between two limits, and else known to lie beyond."""
    below, above = lower > Y, upper < Y
    low = np.where(below, -INF, np.where(above, upper, Y))
    high = np.where(below, lower, np.where(above, INF, Y))
    if blank is not None:
        low, high = np.where(blank, -INF, low), np.where(blank, INF, high)
    return low, high


def signs_of(latent):
    """Ends of a latent number whose sign is seen."""
    return np.where(latent > 0.0, 0.0, -INF), np.where(latent > 0.0, INF, 0.0)


def heckman(n=400, seed=0, correlation=0.6):
    """Wages of those who work: a mapping of columns, with truths of its two equations beside it."""
    rng = np.random.default_rng(seed)
    educ, kids = rng.normal(12.0, 2.0, n), rng.poisson(0.8, n).astype(float)
    e = residuals(rng, n, 2, correlation)
    wage = -1.0 + 0.4 * educ + 1.5 * e[:, 0]
    works = -1.4 + 0.2 * educ - 0.7 * kids + e[:, 1] > 0.0
    data = {"educ": educ, "kids": kids, "works": works, "wage": np.where(works, wage, np.nan)}
    truth = {"wage": [-1.0, 0.4], "works": [-1.4, 0.2, -0.7]}
    return data, truth


FORMULAS = {"wage": "educ", "works": "educ + kids"}
SELECTION = hs.Selection("wage", by="works")
