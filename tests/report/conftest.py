"""Fits that the report is made of, each made once."""

import dataclasses
import warnings

import numpy as np
import pytest

import halfseen as hs

GAUSSIAN = hs.Gaussian([2.0, 1.0, 3.0], [[1.0, 0.6, 0.3], [0.6, 1.0, 0.2], [0.3, 0.2, 0.8]])
HOSTILE = (
    "<script>alert(1)</script>",
    "</script>",
    "\"&'",
    "{{x}} <!-- slot css -->",
    '<a href="javascript:alert(2)">link</a>',
    "<b>bold</b>",
    "two\nlines %{x} $x^2$",
    "שלום <img src=x onerror=alert(3)>",
    "long " * 100,
)


def quietly(*arguments, **options):
    """Fit without the warnings that poor data deserve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.fit(*arguments, random_state=0, **options)


@pytest.fixture(scope="session")
def complete():
    """Rows before anything was hidden."""
    return GAUSSIAN.sample(300, np.random.default_rng(7))


@pytest.fixture(scope="session")
def lab(complete):
    """A laboratory's table: three instruments with limits of their own, by row."""
    rng = np.random.default_rng(3)
    limits = rng.choice([0.8, 1.2, 1.7], size=complete.shape)
    limits[:, 2] = rng.uniform(1.5, 3.0, len(complete))
    X = np.where(complete >= limits, complete, np.nan)
    return quietly(X, hs.DetectionLimits(lower=limits), names=["lead", "zinc", "copper"])


@pytest.fixture(scope="session")
def plain(complete):
    """One limit for each column."""
    limits = np.array([1.5, 0.5, 2.5])
    X = np.where(complete >= limits, complete, np.nan)
    return quietly(X, hs.DetectionLimits(lower=limits), names=["lead", "zinc", "copper"])


@pytest.fixture(scope="session")
def logs(complete):
    """Skewed columns on scales of their own."""
    Y = np.exp(complete)
    limits = np.array([3.0, 2.0, 10.0])
    X = np.where(limits <= Y, Y, np.nan)
    scales = {"lead": "log", "zinc": "log10"}
    names = ["lead", "zinc", "copper"]
    return quietly(X, hs.DetectionLimits(lower=limits), names=names, transforms=scales)


@pytest.fixture(scope="session")
def incomes():
    """Incomes whose cells say their own limit, and wages that are hidden by other columns."""
    rng = np.random.default_rng(2)
    R = [[1.0, 0.5, 0.3], [0.5, 1.0, 0.4], [0.3, 0.4, 1.0]]
    Z = rng.multivariate_normal(np.zeros(3), R, 300)
    income, wage, hours = (
        np.exp(11.0 + 0.6 * Z[:, 0]),
        np.exp(3.0 + 0.4 * Z[:, 1]),
        35 + 8 * Z[:, 2],
    )
    lower = np.stack([income, wage, hours], axis=1)
    upper = lower.copy()
    top = income > 150_000
    lower[top, 0], upper[top, 0] = 150_000, np.inf
    lower[hours < 30, 1], upper[hours < 30, 1] = -np.inf, np.inf
    data = hs.IntervalData(lower, upper, ["income", "wage", "hours"])
    rule = hs.rules({"wage": "hours >= 30"})
    return quietly(data, rule, transforms={"income": "log", "wage": "log"})


@pytest.fixture(scope="session")
def same_scale(logs):
    """Every column on the scale of logarithms."""
    return quietly(
        logs.source.original.values,
        hs.DetectionLimits(lower=[3.0, 2.0, 10.0]),
        names=["lead", "zinc", "copper"],
        transforms="log",
    )


@pytest.fixture(scope="session")
def intervals(complete):
    """Cells of every kind."""
    lower, upper = complete.copy(), complete.copy()
    lower[:60, 0], upper[:60, 0] = np.floor(complete[:60, 0]), np.floor(complete[:60, 0]) + 1.0
    below, above = complete[:, 1] < 0.5, complete[:, 2] > 3.5
    lower[below, 1], upper[below, 1] = -np.inf, 0.5
    lower[above, 2], upper[above, 2] = 3.5, np.inf
    lower[-20:, 2], upper[-20:, 2] = -np.inf, np.inf
    labels = [f"site {k}" for k in range(len(complete))]
    return quietly(hs.IntervalData(lower, upper, ["a", "b", "c"], labels=labels))


@pytest.fixture(scope="session")
def thirty():
    """As many analytes as a laboratory reports of a sample, some of them blank here and there."""
    rng = np.random.default_rng(4)
    root = rng.normal(size=(30, 3))
    truth = hs.Gaussian(np.zeros(30), root @ root.T + np.eye(30))
    Z = truth.sample(200, rng)
    limits = truth.standard_deviations * np.linspace(-1.5, 0.3, 30)
    lower = np.where(limits <= Z, Z, -np.inf)
    upper = np.where(limits <= Z, Z, limits)
    blank = rng.random(Z.shape) < np.where(np.arange(30) % 3 == 0, 0.2, 0.0)
    lower[blank], upper[blank] = -np.inf, np.inf
    return quietly(hs.IntervalData(lower, upper, [f"PCB-{28 + 7 * k}" for k in range(30)]))


@pytest.fixture(scope="session")
def hostile():
    """Names that mean something to a browser."""
    d = len(HOSTILE)
    rule = hs.DetectionLimits(lower=-1.0)
    truth = hs.Gaussian(np.zeros(d), 0.6 * np.eye(d) + 0.4)
    return quietly(hs.simulate(truth, rule, 300, random_state=1), rule, names=HOSTILE)


class MadeOnce(dict):
    """Fits by name, each made when it is first asked for."""

    def __init__(self, makers):
        super().__init__()
        self.makers = makers

    def __missing__(self, name):
        self[name] = self.makers[name]()
        return self[name]


@pytest.fixture(scope="session")
def odd(complete, plain):
    """Fits that lack something, by what they lack."""
    rule = hs.DetectionLimits(lower=[1.5, 0.5, 2.5])
    X = plain.source.X.values
    both = hs.DetectionLimits(lower=0.5, upper=2.5)
    selection = hs.SelfSelection()
    threshold = hs.LinearThreshold([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 2.0, 1.5])
    chance = hs.Probability(lambda x: 1.0 / (1.0 + np.exp(-x)))
    wobbly = hs.SelfCensoring([chance, hs.everything, hs.at_most(2.0) | hs.at_least(3.0)])

    def under(rule, **options):
        hidden = np.where(rule.seen(complete, 0), complete, np.nan)
        return lambda: quietly(hidden, rule, **options)

    def whole_rows():
        rule = hs.RowTruncation(lambda Y: Y[:, 0] > 1.0)
        return quietly(complete[complete[:, 0] > 1.0], rule)

    def of(*arguments, **options):
        return lambda: quietly(*arguments, **options)

    return MadeOnce(
        {
            "no errors": of(X, rule, method="pairwise"),
            "seen values only": of(X, rule, method="truncation"),
            "both sides": under(both),
            "selection": under(selection, covariance="diagonal"),
            "thresholds": under(threshold),
            "descent": under(threshold, method="missing_descent", covariance=GAUSSIAN.covariance),
            "probability": under(wobbly),
            "whole rows": whole_rows,
            "all seen": of(complete),
            "one column": of(X[:, :1], hs.DetectionLimits(lower=1.5)),
            "two columns": of(X[:, :2], hs.DetectionLimits(lower=[1.5, 0.5])),
            "too few steps": of(X, rule, most_steps=2),
            "no table": lambda: dataclasses.replace(plain, source=None),
            "neither": lambda: dataclasses.replace(
                quietly(X, rule, method="pairwise"), source=None
            ),
        }
    )
