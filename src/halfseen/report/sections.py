"""The sections of the page: words, tables, and places for the figures."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from halfseen.report.tables import (
    DASH,
    Cell,
    heading,
    name,
    places_for,
    show,
    show_interval,
    table,
)
from halfseen.report.words import percent, signed
from halfseen.solvers.summary import shorten

# Pairs that are listed in the table below the heat maps.
MOST_PAIRS = 300
MARK = {"ok": "✓", "look": "!", "problem": "✕"}
WORD = {"ok": "fine", "look": "look", "problem": "problem"}


def remark(text: str | None) -> str:
    """Set a sentence apart; nothing where there is none."""
    return f'<p class="remark">{escape(text)}</p>' if text else ""


def _badge(level: str, text: str) -> str:
    return (
        f'<span class="badge {level}"><span aria-hidden="true">{MARK[level]}</span> '
        f"{escape(text)}</span>"
    )


def status(found: dict[str, Any]) -> str:
    """Show how the fit ended, with its notes."""
    notes = "".join(f"<li>{escape(text)}</li>" for text in found["notes"])
    return (
        f'<div class="status"><p>{_badge(found["level"], found["name"])}'
        f"{escape(found['sentence'])}</p>{f'<ul>{notes}</ul>' if notes else ''}</div>"
    )


def _error(interval: list[float] | None) -> float | None:
    """Size of the error that an interval stands for, to choose decimals by."""
    return None if interval is None else (interval[1] - interval[0]) / 4.0


def _estimate(value: float | None, interval: list[float] | None, places: int) -> list[Cell]:
    return [Cell(show(value, places), "main"), Cell(show_interval(interval, places), "interval")]


def compared(content: dict[str, Any]) -> str:
    """Make the table of means and deviations, on the modelled scale and in original units."""
    columns = content["columns"]
    patched = any(c["substituted"] for c in columns)
    sure = any(c["recovered"]["mean_interval"] for c in columns)
    ways = (
        '<th scope="col" class="group">seen only</th>'
        f"{'<th scope=col>half limit</th>' if patched else ''}"
        '<th scope="col">recovered</th>'
        f'<th scope="col">{"95 % interval" if sure else ""}</th>'
    )
    width = 4 if patched else 3
    head = (
        '<tr><th rowspan="2" scope="col" class="words">column</th>'
        '<th rowspan="2" scope="col">hidden</th>'
        f'<th colspan="{width}" scope="colgroup" class="group">mean</th>'
        f'<th colspan="{width}" scope="colgroup" class="group">standard deviation</th></tr>'
        f"<tr>{ways}{ways}</tr>"
    )
    rows = [_compared_row(c, patched) for c in columns]
    text = (
        "<p>“Seen only” leaves hidden cells out. "
        + (
            "“Half limit” puts half the limit in place of every value below it, the usual patch. "
            if patched
            else ""
        )
        + "“Recovered” is what the rule and the seen values together say."
        + ("" if sure else " This fit has no standard errors, so there are no intervals.")
        + "</p>"
    )
    if not content["has_table"]:
        text += remark(
            "This fit does not hold its table, so the page shows what was learned without the data, "
            "and no naive numbers. Fit from the table itself to see both."
        )
    scale = ", on the modelled scale" if content["transformed"] else ""
    out = text + table(f"Means and standard deviations{scale}", head, rows)
    return out + _in_original_units(columns, patched, sure)


def _compared_row(column: dict[str, Any], patched: bool) -> list[Cell]:
    cells = [Cell(name(column["label"])), Cell(percent(column["hidden_share"]))]
    found = column["recovered"]
    for what in ("mean", "deviation"):
        interval = found[f"{what}_interval"]
        places = places_for(_error(interval), found["deviation"] / 10.0)
        cells.append(Cell(show(column["naive"][what], places), "naive group"))
        if patched:
            half = column["substituted"]
            cells.append(Cell(show(half and half[what], places), "naive"))
        cells += _estimate(found[what], interval, places)
    return cells


def _in_original_units(columns: list[dict[str, Any]], patched: bool, sure: bool) -> str:
    some = [c for c in columns if c["transform"] is not None]
    if not some:
        return ""
    rows = []
    for column in some:
        own = column["original"]
        places = places_for(_error(own["interval"]), own["recovered"])
        row = [
            Cell(name(column["name"])),
            Cell(escape(f"{column['transform']}: {own['word']}"), "words"),
            Cell(show(own["naive"], places), "naive"),
        ]
        if patched:
            row.append(Cell(show(own["substituted"], places), "naive"))
        rows.append(row + _estimate(own["recovered"], own["interval"], places))
    words = ["column", "transformation, and what is shown", "seen only"]
    words += (["half limit"] if patched else []) + ["recovered", "95 % interval" if sure else ""]
    return (
        "<h3>In original units</h3><p>The mean of a transformed column, transformed back, is its "
        "median; for a logarithm it is the geometric mean.</p>"
        + table("Medians in original units", heading(*words), rows)
    )


def _options(content: dict[str, Any], chosen: int) -> str:
    return "".join(
        f'<option value="{k}"{" selected" if k == chosen else ""}>'
        f"{escape(shorten(c['label'], 80))}</option>"
        for k, c in enumerate(content["columns"])
    )


def _select(label: str, key: str, content: dict[str, Any], chosen: int) -> str:
    return (
        f'<div><label for="{key}">{label}</label>'
        f'<select id="{key}" autocomplete="off">{_options(content, chosen)}</select></div>'
    )


def _figure(key: str, inside: str, caption: str, controls: str = "") -> str:
    """Make a figure that scripts fill; without them it is not shown."""
    return (
        f'<figure class="needs-script" hidden>{controls}{inside}'
        f'<figcaption id="{key}-caption">{caption}</figcaption></figure>'
    )


def _plot(key: str, kind: str = "", label: str | None = None) -> str:
    by = f'aria-label="{escape(label)}"' if label else f'aria-labelledby="{key}-caption"'
    return f'<div class="plot {kind}" id="{key}-plot" role="img" {by}></div>'


def columns(content: dict[str, Any]) -> str:
    """Make the figure of one column at a time, and the table of what is hidden."""
    caption = (
        "Bars: the seen values. Hatched: the hidden cells, each spread evenly over where it can be, so "
        "that its area is the hidden share. Line: the recovered density. Where limits are the same for "
        "all rows, a dashed line marks them."
    )
    controls = (
        f'<div class="controls">{_select("Column", "column", content, _most_hidden(content))}</div>'
        if len(content["columns"]) > 1
        else ""
    )
    reading = '<p class="reading" id="column-reading" aria-live="polite"></p>'
    rows = [
        [
            Cell(name(c["label"])),
            Cell(percent(c["hidden_share"])),
            Cell(_kinds(c), "words"),
            Cell(_limits(c), "words"),
        ]
        for c in content["columns"]
    ]
    listed = table(
        "What is hidden in each column",
        heading("column", "hidden", "hidden cells are known to lie", "limits"),
        rows,
    )
    return (
        _figure("column", reading + _plot("column"), caption, controls)
        + f"<details><summary>Hidden cells and limits of every column</summary>{listed}</details>"
    )


def _most_hidden(content: dict[str, Any]) -> int:
    return int(np.argmax([c["hidden_share"] or 0.0 for c in content["columns"]]))


def _kinds(column: dict[str, Any]) -> str:
    return escape(", ".join(f"{word} ({many})" for word, many in column["kinds"].items())) or DASH


def _limits(column: dict[str, Any]) -> str:
    """Limits in the units of the table."""
    own = column.get("original")
    if column["limit_range"] is not None:
        ends = column["limit_range"]["from"], column["limit_range"]["to"]
        low, high = own["limit_range"] if own else ends
        text = f"{column['limit_range']['many']} between {low:.5g} and {high:.5g}"
    else:
        at = own["limits"] if own else [limit["at"] for limit in column["limits"]]
        text = ", ".join(f"{x:.5g}" for x in at if x is not None)
    return text.replace("-", "−") or DASH


def pairs(content: dict[str, Any]) -> str:
    """Make the figure of two columns at a time."""
    if content["pairs"] is None:
        return "<p>There is one column only, so there are no pairs.</p>"
    first, second = _strongest_pair(content)
    controls = (
        '<div class="controls">'
        + _select("Horizontal", "pair-x", content, first)
        + _select("Vertical", "pair-y", content, second)
        + "</div>"
    )
    drawn, rows = len(content["drawn_rows"]), content["rows"]
    caption = (
        "Dots: rows in which both are seen. Triangles: rows in which one is hidden, at the limit, "
        "pointing to where the value is; corner triangles: both hidden; marks at the edge: nothing is "
        "known of the value. Dashed: the 95 % ellipse of what is seen alone. Solid: the recovered one."
    )
    if drawn and drawn < rows:
        caption += f" Drawn are {drawn:,} of {rows:,} rows, spread evenly over the table."
    reading = '<p class="reading" id="pair-reading" aria-live="polite"></p>'
    return _figure("pair", reading + _plot("pair", "tall"), caption, controls) + (
        '<p>The correlation of every pair is in the <a href="#correlation-table">table below</a>.</p>'
    )


def _strongest_pair(content: dict[str, Any]) -> tuple[int, int]:
    """Return the pair whose correlation changes most; the strongest where nothing is naive."""
    pairs = content["pairs"]
    change = [
        abs(new - (old or 0.0)) if new is not None else 0.0
        for new, old in zip(pairs["recovered"], pairs["naive"], strict=True)
    ]
    i, j = np.triu_indices(len(content["columns"]), 1)
    k = int(np.argmax(change))
    return int(i[k]), int(j[k])


def correlations(content: dict[str, Any]) -> str:
    """Make the heat maps and the table of correlations."""
    pairs = content["pairs"]
    if pairs is None:
        return "<p>There is one column only, so there are no correlations.</p>"
    caption = (
        "Left: correlations over the rows in which both columns are seen. Right: recovered. Both share "
        "one scale; hover over a cell, or open the table, for numbers and intervals."
    )
    inside = (
        f'<div class="side">{_plot("naive", label="Naive correlations")}'
        f"{_plot('recovered', label='Recovered correlations')}</div>"
    )
    return _figure("correlation", inside, caption) + _correlation_table(content)


def _correlation_table(content: dict[str, Any]) -> str:
    pairs, columns = content["pairs"], content["columns"]
    i, j = np.triu_indices(len(columns), 1)
    strength = [abs(r) if r is not None else 0.0 for r in pairs["recovered"]]
    order = np.argsort(-np.array(strength), kind="stable")[:MOST_PAIRS]
    rows = []
    for k in order:
        low, high, old = pairs["lower"][k], pairs["upper"][k], pairs["naive"][k]
        many = pairs["together"][k]
        rows.append(
            [
                Cell(f"{name(columns[i[k]]['label'])} ~ {name(columns[j[k]]['label'])}"),
                Cell(DASH if many is None else f"{many:,}"),
                Cell(DASH if old is None else signed(old), "naive"),
                Cell(signed(pairs["recovered"][k]), "main"),
                Cell(
                    "" if low is None or high is None else f"{signed(low)} to {signed(high)}",
                    "interval",
                ),
            ]
        )
    many = len(pairs["recovered"])
    title = "Correlations, strongest first"
    if many > MOST_PAIRS:
        title += f": {MOST_PAIRS} of {many:,} pairs"
    sure = any(low is not None for low in pairs["lower"])
    listed = table(
        title,
        heading(
            "pair", "rows with both", "seen only", "recovered", "95 % interval" if sure else ""
        ),
        rows,
    )
    return f'<details id="correlation-table"><summary>{escape(title)}</summary>{listed}</details>'


def convergence(content: dict[str, Any]) -> str:
    """Show the way of the solver and what sampling adds to the error."""
    trace, monte_carlo = content["trace"], content["monte_carlo"]
    if trace is None and monte_carlo is None:
        return (
            f"<p>The method “{escape(content['method'])}” left no trace of means to look at: it solves "
            "its equations, or keeps only its answer. Its status is at the top of the page.</p>"
        )
    out = ""
    if trace is not None:
        out += (
            "<p>Each line is the mean of a column, step by step, in "
            f"{escape(trace['unit'])} from where it ended. Look for lines that run level at the "
            "end, inside the band of ± 0.1. Lines that still climb or fall say that the solver needs "
            "more steps.</p>"
        ) + _figure(
            "trace",
            _plot("trace", "short"),
            f"Means over {trace['all_steps']:,} steps; the band is ± 0.1 of the unit.",
        )
    if monte_carlo is not None:
        out += _monte_carlo(content)
    return out


def _monte_carlo(content: dict[str, Any]) -> str:
    errors = content["monte_carlo"]
    known = [x for x in errors["mean"] + errors["deviation"] if x is not None]
    if not known:
        return (
            "<p>The Monte-Carlo error is not known: the solver made too few steps to estimate it. "
            "Raise most_sweeps.</p>"
        )
    against = f" {errors['against']}" if errors["against"] else ""
    if max(known) == 0.0:
        return "<p>Nothing had to be drawn at random, so there is no Monte-Carlo error.</p>"
    text = (
        f"<p>Sampling adds at most {percent(max(known))} of the statistical error{escape(against)} to "
        "any mean or standard deviation. Errors add as squares, so a share of 10 % lengthens an "
        "interval by half a percent; above 30 % it is worth another run with more sweeps.</p>"
    )
    rows = [
        [Cell(name(c["label"])), *(Cell(DASH if x is None else percent(x)) for x in both)]
        for c, *both in zip(content["columns"], errors["mean"], errors["deviation"], strict=True)
    ]
    listed = table(
        "Monte-Carlo error as a share of the statistical error",
        heading("column", "of the mean", "of the standard deviation"),
        rows,
    )
    caption = "Monte-Carlo errors, as shares of the statistical error of the same parameter."
    return (
        text
        + _figure("sampling", _plot("sampling", "short"), caption)
        + f"<details><summary>Monte-Carlo error of every column</summary>{listed}</details>"
    )


def assumptions(content: dict[str, Any]) -> str:
    """Say what was believed and what was checked."""
    believed = "".join(
        f"<dt>{escape(item['title'])}</dt><dd>{escape(item['text'])}</dd>"
        for item in content["assumptions"]
    )
    out = f"<h3>What was believed</h3><dl>{believed}</dl><h3>What was checked</h3>"
    found = content["checks"]
    if found is None:
        return out + (
            "<p>No diagnosis was given to this page. <code>halfseen.diagnose</code> looks at what can "
            "be checked; pass its answer as <code>diagnosis=</code>.</p>"
        )
    if found["text"] is not None:
        return out + f"<pre>{escape(found['text'])}</pre>"
    items = "".join(
        f"<li>{_badge(f['level'], WORD[f['level']])}<strong>"
        f"{'' if f['column'] is None else name(f['column']) + ': '}{escape(f['title'])}.</strong> "
        f"{escape(f['text'])}</li>"
        for f in found["findings"]
    )
    return out + f'<ul class="findings">{items}</ul>'


def repeat(content: dict[str, Any]) -> str:
    """Say what to cite and how to get the same numbers again."""
    numbers = ", ".join(f"{k} {v}" for k, v in content["versions"].items())
    version = content["versions"]["halfseen"]
    return (
        f"<h3>To cite</h3><p>{escape(content['paper'])}</p>"
        f"<p>The halfseen developers. halfseen, version {escape(version)}.</p>"
        f"<h3>To repeat</h3><pre><code>{escape(content['call'])}</code></pre>"
        f"<p>{escape(numbers)}. The same call with the same seed gives the same bits.</p>"
    )
