"""The page of groups side by side: means, tests and differences, in one HTML file."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.files import write_text_whole
from halfseen.report import words
from halfseen.report.html_page import LARGEST_PAGE, Section, shell, target_of
from halfseen.report.numbers import DASH, places_for, show
from halfseen.report.sections import choice, details, figure, plot, repeat
from halfseen.report.tables import heading, name, remark, table, td
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from halfseen.grouped.fit import GroupedFit

# Columns that the page shows: fewer, while it is too large.
FEWER_COLUMNS = (100, 50, 20, 5)
# More columns than this are closed at first.
MOST_OPEN = 3
# Smallest p-value that is written out.
SMALLEST_P = 1e-4


def write_group_report(
    fit: GroupedFit,
    path: str | os.PathLike[str],
    *,
    call: str | None = None,
    title: str | None = None,
    level: float = 0.95,
) -> Path:
    """Write a page about groups: one HTML file that works offline, with everything in it.

    Parameters
    ----------
    fit : GroupedFit
    path : str or path
        Where to write; written whole or not at all.
    call : str, optional
        The call that repeats the analysis, to be printed; put together from the fit by default.
    title : str, optional
    level : float
        Of the intervals.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, numpy as np, halfseen as hs
    >>> from halfseen.report import write_group_report
    >>> fit = hs.fit(np.random.default_rng(0).normal(size=(40, 1)), by=["A", "B"] * 20)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_group_report(fit, folder + "/report.html").stat().st_size < 1_500_000
    True
    """
    target = target_of(path)
    told = fit.to_dict(level)
    for most in FEWER_COLUMNS:
        content = _content(fit, told, call, title, most)
        parts = [
            Section("means", "Groups side by side", "Groups side by side", _means(content)),
            Section("tests", "Do they differ?", "Do they differ?", _tests(content)),
            Section("differences", "Differences", "All differences", _differences(content)),
            Section("repeat", "Cite and repeat", "Cite and repeat", repeat(content)),
        ]
        page = shell(content, parts, "groups.js")
        if len(page.encode()) < LARGEST_PAGE:
            break
    write_text_whole(target, page)
    return target


def _content(
    fit: GroupedFit, told: dict[str, Any], call: str | None, title: str | None, most: int
) -> dict[str, Any]:
    """Put everything together that the page shows."""
    names = told["columns"][:most]
    kept = {key: told[key] for key in ("by", "level", "tests", "borrowed", "scales", "comparisons")}
    means = [row for row in told["means"] if row["column"] in names]
    return {
        **kept,
        "title": str(title or f"{len(fit.groups)} groups by {shorten(fit.by, 60)}"),
        "learned": _learned(told),
        "left_out": words.hidden_names(fit.names, len(names)),
        "status": words.described_status(fit.status, told["notes"][:-1], ()),
        "groups": [str(label) for label in told["groups"]],
        "columns": names,
        "rows": told["rows"],
        "seen": [own[:most] for own in told["seen"]],
        # What the labels of groups are called may be the name of a field.
        "means": [{key: row[key] for key in row if key != told["by"]} for row in means],
        "differences": [
            {**row, "first": str(row["first"]), "second": str(row["second"])}
            for row in told["differences"]
            if row["column"] in names
        ],
        "paper": words.PAPER,
        "call": call or _call(fit),
        "versions": words.versions(),
    }


def _call(fit: GroupedFit) -> str:
    before, _, last = words.call_of(fit.pooled).rpartition(")")
    return f"{before}, by={fit.by!r}){last}"


def _learned(told: dict[str, Any]) -> list[str]:
    """Say in two sentences whether groups differ."""
    out = []
    for test in told["tests"]:
        among = "" if len(test["groups"]) == len(told["groups"]) else " (groups that can tell)"
        verdict = "is doubtful" if test["p_value"] < 0.05 else "is not contradicted"
        out.append(
            f"That groups have {test['hypothesis']}{among} {verdict}: "
            f"p {_p(test['p_value'], True)}."
        )
    clear = [row for row in told["differences"] if row["p_value"] < 1.0 - told["level"]]
    out.append(
        f"{len(clear)} of {told['comparisons']} differences of means are clear at a family-wise level "
        f"of {100 * (1.0 - told['level']):.3g} %."
    )
    return [" ".join(out)]


def _means(content: dict[str, Any]) -> str:
    """Make the figure and a table for each column."""
    word = "Means" if content["scales"] is None else "Medians, in the units of the table,"
    level = f"{100 * content['level']:g} %"
    text = (
        f"<p>{word} with {level} intervals, each by itself. Groups have one covariance and means of "
        "their own.</p>"
    )
    controls = choice("Column", "means-column", content["columns"])
    caption = (
        f"Each dot is a group; its line is the {level} interval. The dotted line is the middle of all "
        "groups."
    )
    tables = [
        _closed(content, column, _table_of_means(content, j))
        for j, column in enumerate(content["columns"])
    ]
    return text + figure("means", plot("means"), caption, controls) + "".join(tables)


def _closed(content: dict[str, Any], column: str, inside: str) -> str:
    """Put a table behind its name, open where there are few."""
    many = len(content["columns"])
    return details(shorten(column, 120), inside, " open" if many <= MOST_OPEN else "")


def _table_of_means(content: dict[str, Any], j: int) -> str:
    own = [row for row in content["means"] if row["column"] == content["columns"][j]]
    rows = []
    for g, row in enumerate(own):
        low, high = row["median_lower"], row["median_upper"]
        rows.append(
            [
                name(shorten(content["groups"][g], 80)),
                td(str(content["rows"][g])),
                td(str(content["seen"][g][j])),
                *_with_interval(row["median"], low, high),
            ]
        )
    word = "mean" if content["scales"] is None else "median"
    head = heading(content["by"], "rows", "seen", word, "interval")
    return table(f"{content['columns'][j]}: groups", head, rows)


def _with_interval(value: float | None, low: float | None, high: float | None) -> list[str]:
    if value is None or low is None or high is None:
        return [td(DASH, "main"), td("no value is seen" if value is None else "", "interval")]
    places = places_for((high - low) / 4.0, value)
    ends = f"{show(low, places)} to {show(high, places)}"
    return [td(show(value, places), "main"), td(ends, "interval")]


def _tests(content: dict[str, Any]) -> str:
    rows = [
        [
            escape(test["hypothesis"]),
            td(show(test["statistic"], 2)),
            td(str(test["degrees_of_freedom"])),
            td(_p(test["p_value"]), "main"),
            td(escape(test["method"]), "words"),
            td(_p(test["p_chi_square"])),
            td(", ".join(name(shorten(str(one), 30)) for one in test["groups"]), "words"),
        ]
        for test in content["tests"]
    ]
    head = heading(
        "hypothesis", "likelihood ratio", "d.f.", "p", "p by", "chi-square p", "groups",
        texts=("p by", "groups"),
    )  # fmt: skip
    text = (
        "<p>Means are compared with equal covariances, covariances whatever the means. The chi-square "
        "law is for many rows.</p>"
    )
    borrowed = [f"{one['group']} ({one['why']})" for one in content["borrowed"]]
    if borrowed:
        text += remark(
            "These groups are too small for a covariance of their own and borrow that of all groups: "
            f"{'; '.join(borrowed)}."
        )
    return text + table("Tests of groups", head, rows)


def _differences(content: dict[str, Any]) -> str:
    level = f"{100 * content['level']:g} %"
    text = (
        f"<p>All {content['comparisons']} intervals together hold the truth with {level}; p-values are "
        "of the whole family. Where logarithms were fitted, differences are ratios of medians.</p>"
    )
    controls = choice("Column", "differences-column", content["columns"])
    caption = (
        f"Each line is the family-wise {level} interval of a pair, with a full dot where it is clear "
        "of no difference, the dotted line."
    )
    tables = [
        _closed(content, column, _table_of_differences(content, column))
        for column in content["columns"]
    ]
    return text + figure("differences", plot("differences"), caption, controls) + "".join(tables)


def _table_of_differences(content: dict[str, Any], column: str) -> str:
    own = [row for row in content["differences"] if row["column"] == column]
    if not own:
        return remark("No two means of this column are known.")
    sign = " / " if own[0]["scale"] == "ratio" else " − "
    rows = [
        [
            name(shorten(f"{row['first']}{sign}{row['second']}", 120)),
            *_with_interval(row["estimate"], row["lower"], row["upper"]),
            td(_p(row["p_value"])),
            td(_p(row["p_single"])),
        ]
        for row in own
    ]
    head = heading("pair", own[0]["scale"], "family-wise interval", "p, adjusted", "p, by itself")
    return table(f"{column}: differences", head, rows)


def _p(value: float, sentence: bool = False) -> str:
    small = value < SMALLEST_P
    text = f"{SMALLEST_P:g}" if small else f"{value:.4f}"
    if sentence:
        return f"{'<' if small else '='} {text}"
    return f"&lt;{text}" if small else text
