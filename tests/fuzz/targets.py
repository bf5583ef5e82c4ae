"""What is fuzzed, and what may come out of it.

An input is either read or refused by one of our own errors, in a sentence. Anything else that comes
out (another error, a warning of NumPy) goes through ``outcome`` and is a finding.
"""

from __future__ import annotations

import io
import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import halfseen as hs
from halfseen.archive import read_archive, write_archive
from halfseen.regression import saving as saving_regressions
from halfseen.solvers import saving

ACCEPTED = "accepted"
SAVING = {"fit": saving, "regression": saving_regressions}
# How a message may end: a sentence, or a question. ``RuleError`` ends with what was expected.
SENTENCE_ENDS = (".", "?")

# A limits file is for this table, and rules are matched with its names.
TABLE = hs.IntervalData(
    [[0.3, 12.0], [-np.inf, 7.0], [0.9, -np.inf]],
    [[0.3, 12.0], [0.2, 7.0], [0.9, np.inf]],
    ["lead", "zinc"],
    labels=["A", "B", "C"],
)
NAMES = ("lead", "zinc", "hours", "PM-10")
# Rows that a rule is used on: common ones, and the edges of what a double holds.
ROWS = np.array(
    [
        [0.0, 0.5, -1.0, 2.0],
        [3.0, -2.0, 5.0, 0.1],
        [1e-320, -0.0, 1e-300, 5e-324],
        [1e308, -1e308, 1e300, -1.7e308],
    ]
)

TABLE_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"unreadable": "missing"},
    {"decimal": ","},
    {"thousands": ",", "unreadable": "missing"},
    {"decimal": ",", "thousands": "."},
    {"separator": ";"},
    {"separator": "\t", "companions": False},
    {"separator": "\x00"},
    {"separator": " "},
    {"flags": {"lead": "zinc"}, "limits": {"*": "*_limit"}},
    {"exclude": "l*", "limits": {"zinc": "lead"}, "saturated": True},
    {"index": "lead"},
    {"columns": ["lead"]},
    {"columns": ["lead", "zinc"], "index": "site", "unreadable": "missing"},
    {"companions": False, "unreadable": "missing"},
    {"missing": [-999, "x"], "not_detected": ["trace", 0]},
    {"encoding": "latin-1"},
    {"encoding": "utf-16", "unreadable": "missing"},
)
LONG_OPTIONS: tuple[dict[str, Any], ...] = (
    {"id": "site", "variable": "zinc", "value": "lead"},
    {"id": "lead", "time": "zinc", "value": "lead_flag", "unreadable": "missing"},
    {"id": "zinc", "time": "site", "variable": "lead", "value": "lead"},
    {"id": "site", "time": "zinc", "value": "lead", "keep": "lead_flag", "separator": ","},
    {"id": "lead", "variable": "site", "value": "zinc", "covariates": ["lead_flag"]},
    {"id": "lead", "variable": "zinc", "value": "site", "limits": "lead_flag", "decimal": ","},
    {"id": "site", "variable": "lead", "value": "zinc", "limits": "zinc_RL", "saturated": True},
    {"id": "site", "variable": "lead", "value": "zinc", "flags": "*:U", "columns": "?*"},
)
LIMITS_OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"index": "site"},
    {"index": "column"},
    {"decimal": ","},
    {"separator": ";", "thousands": " "},
    {"encoding": "latin-1"},
)


def outcome(work: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return that a call was accepted, or the name of the typed error that refused it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        try:
            work(*arguments, **options)
        except hs.HalfseenError as error:
            told = str(error)
            if not isinstance(error, hs.RuleError) and not told.endswith(SENTENCE_ENDS):
                raise AssertionError(f"the message is no sentence: {told!r}") from error
            return type(error).__name__
    return ACCEPTED


def read_table(content: bytes, options: dict[str, Any]) -> None:
    """Read a file of bytes as a table, and look at what came out."""
    data = hs.read_csv(io.BytesIO(content), **options)
    n, d = data.shape
    assert n > 0
    assert len(data.names) == d > 0
    assert not np.isnan(data.lower).any()
    assert (data.lower <= data.upper).all()
    repr(data)
    data.holes()


def read_long(content: bytes, options: dict[str, Any]) -> None:
    """Read a file of bytes as a long table."""
    data = hs.read_long(io.BytesIO(content), **options)
    assert data.shape == (len(data.labels), len(data.names))
    assert (data.lower <= data.upper).all()
    repr(data)


def read_limits(content: bytes, options: dict[str, Any]) -> None:
    """Read a file of bytes as limits, and use them."""
    rule = hs.read_limits(io.BytesIO(content), TABLE, **options)
    repr(rule)
    assert rule.seen(np.zeros(TABLE.shape)).shape == TABLE.shape


def use_rule(told: Any, columns: Any = None) -> None:
    """Read a rule, match it with columns, and hide values by it."""
    rule = hs.rules(told, columns=columns)
    repr(rule)
    if columns is None:
        rule = rule.for_columns(NAMES)
    repr(rule)
    Y = ROWS[:, : len(columns)] if columns is not None else ROWS
    seen = rule.seen(Y, random_state=0)
    X = np.where(seen, Y, np.nan)
    rule.check(X, [str(name) for name in (NAMES if columns is None else columns)])
    region = rule.hidden_region(X)
    assert region.contains(Y).shape == (len(Y),)


def load_rewritten(
    content: dict[str, Any], arrays: dict[str, np.ndarray], kind: str = "fit"
) -> None:
    """Write other content under good checksums, and load it as a fit."""
    with tempfile.TemporaryDirectory(prefix="halfseen-fuzz-") as folder:
        path = Path(folder, "fit")
        write_archive(path, SAVING[kind].FORMAT, SAVING[kind].VERSION, content, arrays)
        fit = hs.load(path)
        repr(fit)
        fit.summary()


def load_saved(content: bytes, load: Callable[[str], Any]) -> None:
    """Write bytes to a file, and load it as what was saved."""
    handle, path = tempfile.mkstemp(prefix="halfseen-fuzz-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        repr(load(path))
    finally:
        Path(path).unlink()


@cache
def saved_originals() -> dict[str, list[bytes]]:
    """Save fits and Gaussians of several kinds; return the bytes of their files."""
    truth = hs.Gaussian([0.5, 1.0], [[1.0, 0.4], [0.4, 2.0]])
    limits = hs.DetectionLimits(lower=[0.0, 0.1])
    linear = hs.rules("x1: x0 - 2*x1 <= 3", columns=["x0", "x1"])
    X = np.exp(hs.simulate(truth, hs.SelfCensoring(hs.everything), 30, random_state=0))
    fits = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        for rule, method in ((limits, "full"), (limits, "pairwise"), (linear, "full")):
            table = np.where(rule.seen(X), X, np.nan)
            # The first one to the end, so that it has all that a fit can have.
            most = {} if not fits else {"most_steps": 5}
            options = {"random_state": 0, **most} if method == "full" else {}
            fits.append(hs.fit(table, rule, method, **options))
        fits.append(hs.fit(X, method="full", transforms="log", most_steps=5, random_state=0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved")
        out: dict[str, list[bytes]] = {"fit": [], "gaussian": [], "regression": []}
        for kind, values in (
            ("fit", fits),
            ("regression", _regressions()),
            ("gaussian", [truth, hs.Gaussian([1e-300], [[1e300]])]),
        ):
            for value in values:
                value.save(path)
                out[kind].append(path.read_bytes())
    return out


def _regressions() -> list[hs.RegressionFit]:
    """Return regressions that have all that one can have: selection, cut points, ties, a category."""
    rng = np.random.default_rng(0)
    age, noise = rng.normal(size=80), rng.normal(size=(3, 80))
    works = age + noise[0] > 0.0
    data = {
        "age": age,
        "site": rng.choice(["a", "b"], 80),
        "works": works,
        "wage": np.where(works, age + noise[1], np.nan),
        "grade": np.digitize(age + noise[1], [-0.5, 0.5]),
        "lead": np.where(noise[2] > -0.3, noise[2], np.nan),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return [
            hs.regress(
                {"wage": "age", "works": "age + site"},
                data,
                hs.Selection("wage", by="works"),
                random_state=0,
            ),
            hs.regress(
                "grade + lead ~ age + site",
                data,
                {"lead": ">=-0.3"},
                kinds={"grade": "ordered"},
                equal=[[("grade", "age"), ("lead", "age")]],
                fixed={"lead": {"site[T.b]": 0.0}},
                cluster=np.arange(80) // 4,
                random_state=0,
            ),
            hs.regress(
                "lead ~ age + site", data, {"lead": ">=-0.3"}, penalty="lasso", strength=0.1
            ),
        ]


def contents_of(saved: bytes, kind: str = "fit") -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a saved fit holds: its JSON, and its arrays."""
    with tempfile.TemporaryDirectory(prefix="halfseen-fuzz-") as folder:
        path = Path(folder, "fit")
        path.write_bytes(saved)
        with read_archive(path, SAVING[kind].FORMAT, SAVING[kind].VERSION) as archive:
            return archive.content, dict(archive.arrays())
