"""Tables of the page, and numbers as people read them. Everything is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from halfseen.report.numbers import percent, places_for, show

# More rows than this scroll in a box of their own.
LONG = 20


def name(text: str) -> str:
    """Escape a name of the user's, and keep its direction of writing to itself."""
    return f"<bdi>{escape(text)}</bdi>"


def remark(text: str | None) -> str:
    """Set a sentence apart; nothing where there is none."""
    return f'<p class="remark">{escape(text)}</p>' if text else ""


def td(html: str, kind: str = "") -> str:
    """Make a cell of a table, of text that is ready for the page, with a class."""
    return f'<td class="{kind}">{html}</td>' if kind else f"<td>{html}</td>"


def table(caption: str, head: str, rows: Iterable[Sequence[str]]) -> str:
    """Put a table together in a box that scrolls: rows of a heading and ready cells."""
    body = [f'<tr><th scope="row">{first}</th>{"".join(rest)}</tr>' for first, *rest in rows]
    kind = "table long" if len(body) > LONG else "table"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption><span>{escape(caption)}</span></caption><thead>{head}</thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def heading(*words: str, texts: Iterable[str] = ()) -> str:
    """Make a row of headings; those over ``texts`` begin where these do."""
    left = set(texts)
    cells = (
        f'<th scope="col"{" class=words" if word in left else ""}>{escape(word)}</th>'
        for word in words
    )
    return f"<tr>{''.join(cells)}</tr>"


def _estimate(value: Any, interval: Any, places: int, sure: bool = True) -> list[str]:
    """Make the cells of an estimate and, where there are any, of its interval."""
    ends = "" if interval is None else " to ".join(show(end, places) for end in interval)
    return [td(show(value, places), "main"), *[td(ends, "interval")] * sure]


def _places(interval: list[float] | None, value: float | None) -> int:
    # The error that an interval stands for.
    return places_for(None if interval is None else (interval[1] - interval[0]) / 4.0, value)


def compared(content: dict[str, Any]) -> str:
    """Make the tables of what was learned beside what a naive analysis would say.

    Means and deviations on the modelled scale, and what is said in original units.
    """
    columns = content["columns"]
    patched = any(c["substituted"] for c in columns)
    sure = any(c["recovered"]["mean_interval"] for c in columns)
    text = "<p>“Recovered” is what the rule and the seen values together say. “Seen only” leaves "
    text += "out what is not seen."
    if patched:
        text += (
            " “Half limit” puts half the limit in place of every value below it, the usual patch."
        )
    if any(c["missing_share"] for c in columns):
        text += (
            " Hidden cells lie beyond a limit, or were hidden by a rule; of missing cells nothing is "
            "known."
        )
    if not sure:
        text += " This fit has no standard errors, so there are no intervals."
    text += "</p>"
    if not content["has_table"]:
        text += remark(
            "This fit does not hold its table, so the page shows what was learned without the data, "
            "and no naive numbers. Fit from the table itself to see both."
        )
    scale = ", on the modelled scale" if content["transformed"] else ""
    means = _beside(columns, "mean", f"Means{scale}", shares=True)
    deviations = _beside(columns, "deviation", f"Standard deviations{scale}")
    return text + means + deviations + _in_original_units(columns)


def _heads(patched: bool, sure: bool) -> list[str]:
    """Headings of what was recovered and of what is naive; columns that say nothing have none."""
    return ["recovered", *["95 % interval"] * sure, "seen only", *["half limit"] * patched]


def _beside(columns: list[dict[str, Any]], what: str, title: str, *, shares: bool = False) -> str:
    """Make the table of a mean or a deviation, recovered and naive."""
    patched = any(c["substituted"] for c in columns)
    sure = any(c["recovered"][f"{what}_interval"] for c in columns)
    missing = shares and any(c["missing_share"] for c in columns)
    rows = []
    for column in columns:
        own, half = column["recovered"], column["substituted"]
        interval = own[f"{what}_interval"]
        places = _places(interval, own["deviation"] / 10.0)
        rows.append([name(column["label"]), *_estimate(own[what], interval, places, sure)])
        rows[-1] += _naive(column["naive"][what], half and half[what], patched, places)
        rows[-1] += [td(percent(column["hidden_share"]), "group")] if shares else []
        rows[-1] += [td(percent(column["missing_share"] or 0.0))] if missing else []
    heads = [*_heads(patched, sure), *["hidden"] * shares, *["missing"] * missing]
    return table(title, heading("column", *heads), rows)


def _naive(seen: float | None, half: float | None, patched: bool, places: int) -> list[str]:
    """Make the cells of what is said without the hidden cells, and with half the limit."""
    cells = [td(show(seen, places), "naive")]
    return [*cells, td(show(half, places), "naive")] if patched else cells


def _in_original_units(columns: list[dict[str, Any]]) -> str:
    """Make the tables of means, medians and high quantiles, of all columns where any is transformed."""
    if all(c["units"] is None for c in columns):
        return ""
    patched = any(c["units"]["substituted"] is not None for c in columns)
    sure = any(c["units"]["mean_interval"] for c in columns)
    means = [_means_row(c, patched, sure) for c in columns]
    # Said once, where it holds for all.
    scales = {_scale_of(c) for c in columns}
    (word,) = scales if len(scales) == 1 else ("median or geometric mean",)
    word = word.partition(": ")[2] or word
    high, interval = "95th percentile", ["95 % interval"] * sure
    quantiles = [_quantiles_row(c, len(scales) > 1, sure) for c in columns]
    return (
        "<h3>In original units</h3><p>The mean of a transformed column, transformed back, is its "
        "median; for a logarithm it is the geometric mean. The mean is the arithmetic one, which totals "
        "and averages need; of a column that is skewed to the right it is larger than the median.</p>"
        + table("Means in original units", heading("column", *_heads(patched, sure)), means)
        + table(
            f"{word[0].upper()}{word[1:]} and {high} in original units, recovered",
            heading("column", word, *interval, high, *interval),
            quantiles,
        )
    )


def _scale_of(column: dict[str, Any]) -> str:
    own = column.get("original")
    return f"{column['transform']}: {own['word']}" if own else "not transformed"


def _means_row(column: dict[str, Any], patched: bool, sure: bool) -> list[str]:
    units = column["units"]
    places = _places(units["mean_interval"], units["mean"])
    return [
        name(column["name"]),
        *_estimate(units["mean"], units["mean_interval"], places, sure),
        *_naive(units["naive"], units["substituted"], patched, places),
    ]


def _quantiles_row(column: dict[str, Any], with_scale: bool, sure: bool) -> list[str]:
    units, own, learned = column["units"], column.get("original"), column["recovered"]
    median = (
        (own["recovered"], own["interval"]) if own else (learned["mean"], learned["mean_interval"])
    )
    scale = f"<small>{escape(_scale_of(column))}</small>" if with_scale else ""
    high = units["high"], units["high_interval"]
    return [
        f"{name(column['name'])}{scale}",
        *(cell for pair in (median, high) for cell in _estimate(*pair, _places(*pair[::-1]), sure)),
    ]
