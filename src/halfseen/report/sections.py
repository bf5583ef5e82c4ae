"""The sections of the page: words, tables, and places for the figures."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from halfseen.report.captions import (
    climb_caption,
    climb_words,
    column_caption,
    pair_caption,
    scale_words,
    trace_caption,
    trace_words,
)
from halfseen.report.tables import (
    DASH,
    Cell,
    heading,
    name,
    readable,
    table,
)
from halfseen.report.words import percent, signed
from halfseen.solvers.summary import at_most, shorten

# Pairs that are listed in the table below the heat maps.
MOST_PAIRS = 300
MARK = {"ok": "✓", "look": "!", "problem": "✕"}
WORD = {"ok": "fine", "look": "look", "problem": "problem"}


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
        _figure("column", reading + _plot("column"), column_caption(content["columns"]), controls)
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
        many = column["limit_range"]["many"]
        text = f"{many} between {readable(low, 5)} and {readable(high, 5)}"
    else:
        at = own["limits"] if own else [limit["at"] for limit in column["limits"]]
        text = ", ".join(readable(x) for x in at if x is not None)
    return text or DASH


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
    reading = '<p class="reading" id="pair-reading" aria-live="polite"></p>'
    return _figure("pair", reading + _plot("pair", "tall"), pair_caption(content), controls) + (
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
        + escape(scale_words(content))
    )
    inside = (
        f'<div class="side">{_plot("naive", label="Naive correlations")}'
        f"{_plot('recovered', label='Recovered correlations')}</div>"
    )
    return _figure("correlation", inside, caption) + _correlation_table(content)


def _correlation_table(content: dict[str, Any]) -> str:
    pairs, columns = content["pairs"], content["columns"]
    i, j = np.triu_indices(len(columns), 1)
    names = [name(shorten(c["short"], 80)) for c in columns]
    strength = [abs(r) if r is not None else 0.0 for r in pairs["recovered"]]
    order = np.argsort(-np.array(strength), kind="stable")[:MOST_PAIRS]
    rows = []
    for k in order:
        low, high, old = pairs["lower"][k], pairs["upper"][k], pairs["naive"][k]
        many = pairs["together"][k]
        rows.append(
            [
                Cell(f"{names[i[k]]} ~ {names[j[k]]}"),
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
    climb, trace, monte_carlo = content["climb"], content["trace"], content["monte_carlo"]
    if climb is None and trace is None and monte_carlo is None:
        return (
            f"<p>The method “{escape(content['method'])}” left no trace of means to look at: it solves "
            "its equations, or keeps only its answer. Its status is at the top of the page.</p>"
        )
    out = "" if content["steps_taken"] is None else f"<p>{escape(content['steps_taken'])}</p>"
    if climb is not None:
        out += f"<p>{escape(climb_words(climb))}</p>" + _figure(
            "climb", _plot("climb", "short"), escape(climb_caption(climb))
        )
    if trace is not None:
        out += f"<p>{escape(trace_words(trace))}</p>" + _figure(
            "trace",
            _plot("trace", "short"),
            escape(trace_caption(trace) + scale_words(content)),
        )
    if monte_carlo is not None:
        out += _monte_carlo(content)
    return out


def _monte_carlo(content: dict[str, Any]) -> str:
    errors = content["monte_carlo"]
    known = [x for x in errors["mean"] + errors["deviation"] if x is not None]
    if not known:
        climb = content["climb"]
        if climb is not None and not climb["climbs"]:
            return (
                "<p>The Monte-Carlo error of an estimate that is pulled towards a simpler one is not "
                "estimated; fits with another <code>random_state</code> show it.</p>"
            )
        return (
            "<p>The Monte-Carlo error is not known: the solver made too few steps to estimate it. "
            "Raise <code>most_steps</code>.</p>"
        )
    against = f" {errors['against']}" if errors["against"] else ""
    if max(known) == 0.0:
        return "<p>Nothing had to be drawn at random, so there is no Monte-Carlo error.</p>"
    adds = (
        f"at most {percent(max(known))} of the statistical error{against} to any mean or standard "
        "deviation"
        if errors["most"] is None
        else f"{at_most(errors['most'])} of a standard error to any estimate, covariances included"
    )
    text = (
        f"<p>Sampling adds {escape(adds)}. Errors add as squares, so a share of 10 % lengthens an "
        "interval by half a percent; above 30 % it is worth another run with a smaller "
        "<code>accuracy=</code>.</p>"
    )
    rows = [
        [Cell(name(c["short"])), *(Cell(DASH if x is None else percent(x)) for x in both)]
        for c, *both in zip(content["columns"], errors["mean"], errors["deviation"], strict=True)
    ]
    listed = table(
        "Monte-Carlo error as a share of the statistical error",
        heading("column", "of the mean", "of the standard deviation"),
        rows,
    )
    caption = "Monte-Carlo errors, as shares of the statistical error of the same parameter."
    caption += " Dashed line: 10 %." + escape(scale_words(content))
    return (
        text
        + _figure("sampling", _plot("sampling", "short"), caption)
        + f"<details><summary>Monte-Carlo error of every column</summary>{listed}</details>"
    )


def _quoted(item: dict[str, Any]) -> str:
    """Show the code that belongs to an assumption, where there is some."""
    code = item.get("code")
    return f"<pre><code>{escape(code)}</code></pre>" if code else ""


def assumptions(content: dict[str, Any]) -> str:
    """Say what was believed and what was checked."""
    believed = "".join(
        f"<dt>{escape(item['title'])}</dt><dd>{escape(item['text'])}{_quoted(item)}</dd>"
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
