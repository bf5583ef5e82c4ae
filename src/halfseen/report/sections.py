"""The sections of the page: words, tables, and places for the figures with their captions."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from halfseen.report.numbers import DASH, percent, places_for, readable, show, signed
from halfseen.report.shown_table import Kind
from halfseen.report.tables import (
    heading,
    name,
    table,
    td,
)
from halfseen.solvers.summary import at_most, shorten

# Pairs that are listed below the heat maps: at once, and on demand.
FIRST_PAIRS, MOST_PAIRS = 10, 300
# The mark and the word of each level of a finding.
LEVELS = {"ok": ("✓", "fine"), "look": ("!", "look"), "problem": ("✕", "problem")}


def _badge(level: str, text: str) -> str:
    return (
        f'<span class="badge {level}"><span aria-hidden="true">{LEVELS[level][0]}</span> '
        f"{escape(text)}</span>"
    )


def status(shown: dict[str, Any]) -> str:
    """Show how the fit ended, with its notes."""
    notes = "".join(f"<li>{escape(text)}</li>" for text in shown["notes"])
    # A fit that settled may have settled on a wrong model: what was found further down is named here.
    found = "".join(
        f"<p>{_badge(level, LEVELS[level][1])}"
        f'{escape("; ".join(titles))}: see <a href="#assumptions">what was checked</a>.</p>'
        for level, titles in shown.get("found", ())
    )
    return (
        f'<div class="status"><p>{_badge(shown["level"], shown["name"])}'
        f"{escape(shown['sentence'])}</p>{f'<ul>{notes}</ul>' if notes else ''}{found}</div>"
    )


def choice(label: str, key: str, options: Sequence[str], chosen: int = 0) -> str:
    """Make a list to choose from."""
    listed = "".join(
        f'<option value="{k}"{" selected" if k == chosen else ""}>{escape(shorten(text, 80))}</option>'
        for k, text in enumerate(options)
    )
    return (
        f'<div><label for="{key}">{escape(label)}</label>'
        f'<select id="{key}" autocomplete="off">{listed}</select></div>'
    )


def _select(label: str, key: str, content: dict[str, Any], chosen: int) -> str:
    return choice(label, key, [c["label"] for c in content["columns"]], chosen)


def figure(key: str, inside: str, caption: str, controls: str = "") -> str:
    """Make a figure that scripts fill; without them it is not shown."""
    controls = f'<div class="controls">{controls}</div>' if controls else ""
    return (
        f'<figure class="needs-script" hidden>{controls}{inside}'
        f'<figcaption id="{key}-caption">{caption}</figcaption></figure>'
    )


def plot(key: str, label: str | None = None) -> str:
    """Make a place for a figure."""
    by = f'aria-label="{escape(label)}"' if label else f'aria-labelledby="{key}-caption"'
    return f'<div class="plot" id="{key}-plot" role="img" {by}></div>'


def reading(key: str) -> str:
    """Make a place for the sentence that the script writes about what is chosen."""
    return f'<p class="reading" id="{key}-reading" aria-live="polite"></p>'


def details(summary: str, inside: str, key: str = "") -> str:
    """Make a part that is opened on demand."""
    return f"<details{key}><summary>{escape(summary)}</summary>{inside}</details>"


def part(when: str, text: str) -> str:
    """Make a part of a caption that the script shows for the columns to which it applies."""
    return f' <span data-when="{when}">{escape(text)}</span>'


def columns(content: dict[str, Any]) -> str:
    """Make the figure of one column at a time, and the table of what is hidden."""
    shown = content["columns"]
    controls = ""
    if len(shown) > 1:
        most_hidden = int(np.argmax([c["hidden_share"] or 0.0 for c in shown]))
        controls = _select("Column", "column", content, most_hidden)
    rows = [
        [
            name(c["label"]),
            td(_share_bar(c)),
            td(percent(c["hidden_share"])),
            td(percent(c["missing_share"] or 0.0)),
            td(
                escape(", ".join(f"{w} ({many})" for w, many in c["kinds"].items())) or DASH,
                "words",
            ),
            td(_limits(c), "words"),
        ]
        for c in shown
    ]
    lie = "hidden cells are known to lie"
    head = heading(
        "column", "seen, hidden, missing", "hidden", "missing", lie, "limits", texts=(lie, "limits")
    )
    inside = reading("column") + plot("column")
    return figure("column", inside, _column_caption(shown), controls) + details(
        "Hidden cells and limits of every column",
        table("What is not seen in each column", head, rows),
    )


def _share_bar(column: dict[str, Any]) -> str:
    """Make a bar of what is seen, hidden and missing of a column."""
    parts = [("hidden", column["hidden_share"]), ("missing", column["missing_share"] or 0.0)]
    parts.insert(0, ("seen", 1.0 - sum(share for _, share in parts)))
    filled = "".join(
        f'<span class="{kind}" style="width:{100 * share:.2f}%"></span>'
        for kind, share in parts
        if share > 0.0
    )
    return f'<span class="shares" aria-hidden="true">{filled}</span>'


def _column_caption(columns: list[dict[str, Any]]) -> str:
    out = ""
    histograms = [c["histogram"] for c in columns if c["histogram"] is not None]
    if histograms:
        out += "Bars: the seen values."
    if any(any(h["hidden"]) for h in histograms):
        out += part(
            "hatched",
            "Hatched: the hidden cells, each spread evenly over where it can be, so that the area is "
            "their share.",
        )
    if histograms and any(c["missing_share"] for c in columns):
        out += part("missing", "Missing cells are not drawn, and areas are shares of the others.")
    out += " Line: the recovered density."
    if any(c["limits"] for c in columns):
        out += part("limits", "Dashed lines: limits.")
    if any(c["limit_range"] for c in columns):
        out += part("range", "Shaded: the range of the limits, which differ by row.")
    return out.strip()


def _limits(column: dict[str, Any]) -> str:
    """Limits in the units of the table."""
    own, ranged = column.get("original"), column["limit_range"]
    if ranged is not None:
        low, high = own["limit_range"] if own else (ranged["from"], ranged["to"])
        return f"{ranged['many']} between {readable(low, 5)} and {readable(high, 5)}"
    at = own["limits"] if own else [limit["at"] for limit in column["limits"]]
    return ", ".join(readable(x) for x in at if x is not None) or DASH


def pairs(content: dict[str, Any]) -> str:
    """Make the figure of two columns at a time."""
    if content["pairs"] is None:
        return "<p>There is one column only, so there are no pairs.</p>"
    i, j = np.triu_indices(len(content["columns"]), 1)
    k = changed_most(content["pairs"])[0]
    controls = _select("Horizontal", "pair-x", content, int(i[k]))
    controls += _select("Vertical", "pair-y", content, int(j[k]))
    inside = reading("pair") + plot("pair")
    return figure("pair", inside, _pair_caption(content), controls) + (
        '<p>The correlation of every pair is in the <a href="#correlation-table">table below</a>.</p>'
    )


def changed_most(pairs: dict[str, Any]) -> list[int]:
    """Order pairs by how much their correlation changes; by its size where nothing is naive."""
    change = [
        0.0 if known else abs((new or 0.0) - (old or 0.0))
        for new, old, known in zip(
            *(pairs[key] for key in ("recovered", "naive", "known")), strict=True
        )
    ]
    return [int(k) for k in np.argsort(-np.array(change), kind="stable")]


# What stands in a pair's caption where some column has cells of these letters.
PAIR_MARKS = {
    "ba": "Triangles: rows in which one is hidden, at the limit, pointing to where the value is; corner "
    "triangles: both hidden.",
    "i": "Diamonds: between two limits, with bars that reach to them.",
    "e": "Marks at the edge: the value is hidden and may lie on either side of what is seen.",
    "t": "Marks at the edge: the value is hidden by a rule that ties it to other columns, not by a "
    "limit of its own.",
    "c": "Marks at the edge: the value is hidden by chance, more likely for some values.",
    "n": "Marks at the edge: the value is missing, and nothing is known of it.",
    "etcn": "Rows in which this holds for both are not drawn.",
}


def _pair_caption(content: dict[str, Any]) -> str:
    out = ""
    if content["has_table"]:
        words = {word for column in content["columns"] for word in column["kinds"]}
        if any(column["missing_share"] for column in content["columns"]):
            words.add(Kind.ANYWHERE.words)
        present = {kind.letter for kind in Kind if kind.words in words}
        out += "Dots: rows in which both are seen."
        for letters, text in PAIR_MARKS.items():
            if present & set(letters):
                out += part(letters, text)
        out += (
            " Dashed: the 95 % ellipse of the rows in which both are seen, from their own means, "
            "deviations and correlation."
        )
    out += " Solid: the recovered 95 % ellipse."
    drawn, rows = len(content["drawn_rows"]), content["rows"]
    if drawn and drawn < rows:
        out += f" Drawn are {drawn:,} of {rows:,} rows, spread evenly over the table."
    return out.strip()


def _scale_words(content: dict[str, Any]) -> str:
    """Say the scale once, where it is that of all columns."""
    return f" All columns are on the {content['scale']} scale." if content["scale"] else ""


def correlations(content: dict[str, Any]) -> str:
    """Make the heat maps and the table of correlations."""
    if content["pairs"] is None:
        return "<p>There is one column only, so there are no correlations.</p>"
    caption = (
        "Seen only: correlations over the rows in which both columns are seen. Both figures share one "
        "scale; point at a cell, or open the table, for numbers and intervals."
        + escape(_scale_words(content))
    )
    inside = (
        f'<div class="side">{plot("naive", label="Naive correlations")}'
        f"{plot('recovered', label='Recovered correlations')}</div>"
    )
    drawn = figure("correlation", inside, caption)
    return structure(content) + drawn + _correlation_tables(content)


def _correlation_tables(content: dict[str, Any]) -> str:
    """Make the table of the pairs that changed most, and below it, closed, one of all."""
    pairs = content["pairs"]
    order, many = changed_most(pairs), len(pairs["recovered"])
    by = "those that changed most first"
    if all(old is None for old in pairs["naive"]):
        by = "strongest first"
    title = f"Correlations, {by}"
    if many <= FIRST_PAIRS:
        return f'<div id="correlation-table">{_correlation_table(content, order, title)}</div>'
    first = _correlation_table(content, order[:FIRST_PAIRS], f"{title}: {FIRST_PAIRS} of {many:,}")
    shown = min(many, MOST_PAIRS)
    all_of = f"{shown} of {many:,} pairs" if shown < many else f"all {many} pairs"
    rest = _correlation_table(content, order[:MOST_PAIRS], f"{title}: {all_of}")
    return first + details(f"{title}: {all_of}", rest, ' id="correlation-table"')


def _correlation_table(content: dict[str, Any], order: Sequence[int], title: str) -> str:
    pairs, columns = content["pairs"], content["columns"]
    i, j = np.triu_indices(len(columns), 1)
    names = [name(shorten(c["short"], 80)) for c in columns]
    sure = any(low is not None for low in pairs["lower"])
    rows = []
    for k in order:
        low, high, old = pairs["lower"][k], pairs["upper"][k], pairs["naive"][k]
        many = pairs["together"][k]
        ends = "" if low is None or high is None else f"{signed(low)} to {signed(high)}"
        ends = "known" if ends and pairs["known"][k] else ends
        rows.append(
            [
                f"{names[i[k]]} ~ {names[j[k]]}",
                td(signed(pairs["recovered"][k]), "main"),
                *[td(ends, "interval")] * sure,
                td(DASH if old is None else signed(old), "naive"),
                td(DASH if many is None else f"{many:,}"),
            ]
        )
    interval = ["95 % interval"] * sure
    head = heading("pair", "recovered", *interval, "seen only", "rows with both")
    return table(title, head, rows)


def structure(content: dict[str, Any]) -> str:
    """Make the table of what was learned of the structure of a covariance; nothing without one."""
    found = content["structure"]
    if found is None:
        return ""
    rows = [
        [
            escape(called),
            td(show(value, places_for(error, value)), "main"),
            td(DASH if error is None else show(error, places_for(error, None))),
        ]
        for called, value, error in found["numbers"]
    ]
    title = f"Structure of the covariance: {found['words']}"
    return table(title, heading("parameter", "estimate", "standard error"), rows)


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
        words, caption = _climb_texts(climb)
        out += f"<p>{escape(words)}</p>"
        out += figure("climb", plot("climb"), escape(caption))
    if trace is not None:
        words = (
            f"Each line is the mean of a column, step by step, in {trace['unit']} from the estimate, "
            f"where all end. {_trace_words(climb)}"
        )
        # A trace has two steps at least.
        caption = f"Means over {trace['all_steps']:,} steps.{_scale_words(content)}"
        out += f"<p>{escape(words)}</p>"
        out += figure("trace", plot("trace"), escape(caption))
    return out if monte_carlo is None else out + _monte_carlo(content)


def _trace_words(climb: dict[str, Any] | None) -> str:
    """Say what lines of means tell of convergence: of a climb, less than its log-likelihood."""
    if climb is None or not climb["climbs"]:
        return (
            "What matters is how far the last steps moved them: by hundredths of the unit is of no "
            "consequence, by tenths says that the solver needs more steps."
        )
    left = climb["estimated"][-1]
    now = "" if left is None else f" ({readable(left, 2)} at the last step)"
    return (
        f"The status is not judged by these lines, but by the log-likelihood that is left{now}, in the "
        "figure above. Each step goes where slope and curvature say that the top is, so that the last "
        "one may still be seen: a mean that is a tenth of the unit from the top costs about 0.005 of a "
        "unit of log-likelihood."
    )


def _climb_texts(climb: dict[str, Any]) -> tuple[str, str]:
    """Say what the status is judged by, and what the figure of it shows."""
    if climb["climbs"]:
        words = (
            f"The solver has converged when no more than {climb['enough']:g} of a unit of "
            "log-likelihood is left to be gained. For comparison: the true parameters lie about half a "
            "unit below the top for each parameter that is free."
        )
        caption = (
            "What was left to be gained in log-likelihood at each step. Solid: as the solver estimated "
            "it there, from slope and curvature. Dashed: how far below its last value the "
            "log-likelihood was. Dotted line: what may be left in the end."
        )
    else:
        words = (
            "The estimate is pulled towards a simpler one, so that steps do not climb to a top of the "
            "likelihood; they are repeated until they change nothing."
        )
        caption = "How much each step changed the log-likelihood of complete rows."
    small = min(x for x in climb["estimated"] if x is not None) <= climb["smallest"]
    return words, caption + (" What is below a millionth is drawn as a millionth." if small else "")


def _monte_carlo(content: dict[str, Any]) -> str:
    errors, climb = content["monte_carlo"], content["climb"]
    known = [x for x in errors["mean"] + errors["deviation"] if x is not None]
    if not known and climb is not None and not climb["climbs"]:
        return (
            "<p>The Monte-Carlo error of an estimate that is pulled towards a simpler one is not "
            "estimated; fits with another <code>random_state</code> show it.</p>"
        )
    if not known:
        return (
            "<p>The Monte-Carlo error is not known: the solver made too few steps to estimate it. "
            "Raise <code>most_steps</code>.</p>"
        )
    if max(known) == 0.0:
        return "<p>Nothing had to be drawn at random, so there is no Monte-Carlo error.</p>"
    if errors["most"] is None:
        against = f" {errors['against']}" if errors["against"] else ""
        adds = f"at most {percent(max(known))} of the statistical error{against} to any mean or "
        adds += "standard deviation"
    else:
        share = at_most(errors["most"])
        adds = f"{share} of a standard error to any estimate, covariances included"
    text = (
        f"<p>Sampling adds {escape(adds)}. Errors add as squares, so a share of 10 % lengthens an "
        "interval by half a percent; above 30 % it is worth another run with a smaller "
        "<code>accuracy=</code>.</p>"
    )
    rows = [
        [name(c["short"]), *(td(DASH if x is None else percent(x)) for x in both)]
        for c, *both in zip(content["columns"], errors["mean"], errors["deviation"], strict=True)
    ]
    head = heading("column", "of the mean", "of the standard deviation")
    listed = table("Monte-Carlo error as a share of the statistical error", head, rows)
    caption = "Monte-Carlo errors, as shares of the statistical error of the same parameter."
    caption += " Dashed line: 10 %." + escape(_scale_words(content))
    drawn = figure("sampling", plot("sampling"), caption)
    return text + drawn + details("Monte-Carlo error of every column", listed)


def assumptions(content: dict[str, Any]) -> str:
    """Say what was believed and what was checked."""
    believed = ""
    for item in content["assumptions"]:
        # The code that belongs to an assumption, where there is some.
        code = item.get("code")
        quoted = f"<pre><code>{escape(code)}</code></pre>" if code else ""
        lines = "".join(f"<li>{escape(line)}</li>" for line in item.get("lines") or ())
        quoted += f"<ul>{lines}</ul>" if lines else ""
        believed += f"<dt>{escape(item['title'])}</dt><dd>{escape(item['text'])}{quoted}</dd>"
    out = f"<h3>What was believed</h3><dl>{believed}</dl><h3>What was checked</h3>"
    checks = content["checks"]
    if checks is None:
        return out + (
            "<p>No diagnosis was given to this page. <code>halfseen.diagnose</code> looks at what can "
            "be checked; pass its answer as <code>diagnosis=</code>.</p>"
        )
    if checks["text"] is not None:
        return out + f"<pre>{escape(checks['text'])}</pre>"
    items = "".join(
        f"<li>{_badge(f['level'], LEVELS[f['level']][1])}<strong>"
        f"{'' if f['column'] is None else name(f['column']) + ': '}{escape(f['title'])}.</strong> "
        f"{escape(f['text'])}</li>"
        for f in checks["findings"]
    )
    return out + f'<ul class="findings">{items}</ul>'


def repeat(content: dict[str, Any]) -> str:
    """Say what to cite and how to get the same numbers again."""
    versions = ", ".join(f"{k} {v}" for k, v in content["versions"].items())
    return (
        f"<h3>To cite</h3><p>{escape(content['paper'])}</p>"
        f"<p>The halfseen developers. halfseen, version {escape(content['versions']['halfseen'])}.</p>"
        f"<h3>To repeat</h3><pre><code>{escape(content['call'])}</code></pre>"
        f"<p>{escape(versions)}. The same call with the same seed gives the same bits.</p>"
    )
