"""Tables of the page, and numbers as people read them. Everything is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from halfseen.report.words import percent

DASH = "–"
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


def places_for(error: float | None, value: float | None) -> int:
    """Decimals that show two digits of an error; four digits of the value where there is none."""
    size = error if error else value
    if not size or not np.isfinite(size):
        return 3
    digits = 1 if error else 3
    return int(np.clip(digits - np.floor(np.log10(abs(size))), 0, 12))


def _real_minus(text: str) -> str:
    """Write a minus sign as one, and none before a zero."""
    return (text.lstrip("-") if float(text) == 0.0 else text).replace("-", "−")


def show(x: float | None, places: int) -> str:
    """Show a number with so many decimals and a real minus sign."""
    if x is None:
        return DASH
    if x and not 1e-9 < abs(x) < 1e9:
        return f"{x:.4g}".replace("-", "−")
    return _real_minus(f"{x:.{places}f}")


def readable(x: float, digits: int = 6) -> str:
    """Show a number to so many digits, without an exponent up to ten millions.

    Whole numbers are shown whole.

    Examples
    --------
    >>> readable(150000.0), readable(1234567.0), readable(0.05), readable(-2.5), readable(1e9)
    ('150000', '1234567', '0.05', '−2.5', '1e+09')
    """
    if 1.0 <= abs(x) < 1e7 and abs(x - round(x)) <= 1e-9 * abs(x):
        return _real_minus(f"{round(x)}")
    text = f"{x:.{digits}g}"
    if "e" in text and 1e-6 < abs(x) < 1e7:
        text = f"{float(text):.{0 if abs(x) > 1.0 else 12}f}"
        text = text.rstrip("0") if "." in text else text
    return _real_minus(text)


def _estimate(value: Any, interval: Any, places: int | None = None, group: str = "") -> list[str]:
    """Make the cells of an estimate and its interval, with decimals that suit the interval."""
    places = _places(interval, value) if places is None else places
    ends = "" if interval is None else " to ".join(show(end, places) for end in interval)
    return [td(show(value, places), f"main{group}"), td(ends, "interval")]


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
    text = "<p>“Seen only” leaves hidden cells out. "
    if patched:
        text += (
            "“Half limit” puts half the limit in place of every value below it, the usual patch. "
        )
    text += "“Recovered” is what the rule and the seen values together say."
    if not sure:
        text += " This fit has no standard errors, so there are no intervals."
    text += "</p>"
    if not content["has_table"]:
        text += remark(
            "This fit does not hold its table, so the page shows what was learned without the data, "
            "and no naive numbers. Fit from the table itself to see both."
        )
    half = "<th scope=col>half limit</th>" if patched else ""
    interval = f'<th scope="col">{"95 % interval" if sure else ""}</th>'
    ways = f'<th scope="col" class="group">seen only</th>{half}<th scope="col">recovered</th>{interval}'
    head = (
        '<tr><th rowspan="2" scope="col" class="words">column</th>'
        f'<th rowspan="2" scope="col">hidden</th>{_group("mean", 3 + patched)}'
        f"{_group('standard deviation', 3 + patched)}</tr><tr>{ways}{ways}</tr>"
    )
    scale = ", on the modelled scale" if content["transformed"] else ""
    rows = [_compared_row(c, patched) for c in columns]
    out = text + table(f"Means and standard deviations{scale}", head, rows)
    return out + _in_original_units(columns, patched, interval)


def _group(title: str, width: int) -> str:
    """Make a heading over several columns."""
    return f'<th colspan="{width}" scope="colgroup" class="group">{escape(title)}</th>'


def _naive(seen: float | None, half: float | None, patched: bool, places: int) -> list[str]:
    """Make the cells of what is said without the hidden cells, and with half the limit."""
    cells = [td(show(seen, places), "naive group")]
    return [*cells, td(show(half, places), "naive")] if patched else cells


def _compared_row(column: dict[str, Any], patched: bool) -> list[str]:
    cells = [name(column["label"]), td(percent(column["hidden_share"]))]
    own, half = column["recovered"], column["substituted"]
    for what in ("mean", "deviation"):
        interval = own[f"{what}_interval"]
        places = _places(interval, own["deviation"] / 10.0)
        cells += _naive(column["naive"][what], half and half[what], patched, places)
        cells += _estimate(own[what], interval, places)
    return cells


def _in_original_units(columns: list[dict[str, Any]], patched: bool, interval: str) -> str:
    """Make the table of medians, means and high quantiles, of all columns where any is transformed."""
    if all(c["units"] is None for c in columns):
        return ""
    naive = '<th scope="col" class="group">seen only</th>'
    naive += '<th scope="col">half limit</th>' if patched else ""
    recovered = f'<th scope="col" class="group">recovered</th>{interval}'
    # Said once, where it holds for all.
    scales = {_scale_of(c) for c in columns}
    (word,) = scales if len(scales) == 1 else ("median or geometric mean",)
    word = word.partition(": ")[2] or word
    head = (
        f'<tr><th rowspan="2" scope="col" class="words">column</th>{_group(word, 2)}'
        f"{_group('mean', 3 + patched)}{_group('95th percentile', 2)}</tr>"
        f'<tr>{recovered}{naive}<th scope="col">recovered</th>{interval}{recovered}</tr>'
    )
    rows = [_units_row(c, patched, with_scale=len(scales) > 1) for c in columns]
    return (
        "<h3>In original units</h3><p>The mean of a transformed column, transformed back, is its "
        "median; for a logarithm it is the geometric mean. The mean is the arithmetic one, which totals "
        "and averages need; of a column that is skewed to the right it is larger than the median.</p>"
        + table("In original units", head, rows)
    )


def _scale_of(column: dict[str, Any]) -> str:
    own = column.get("original")
    return f"{column['transform']}: {own['word']}" if own else "not transformed"


def _units_row(column: dict[str, Any], patched: bool, with_scale: bool) -> list[str]:
    units, own, learned = column["units"], column.get("original"), column["recovered"]
    median = (
        (own["recovered"], own["interval"]) if own else (learned["mean"], learned["mean_interval"])
    )
    scale = f"<small>{escape(_scale_of(column))}</small>" if with_scale else ""
    places = _places(units["mean_interval"], units["mean"])
    return [
        f"{name(column['name'])}{scale}",
        *_estimate(*median, group=" group"),
        *_naive(units["naive"], units["substituted"], patched, places),
        *_estimate(units["mean"], units["mean_interval"], places),
        *_estimate(units["high"], units["high_interval"], group=" group"),
    ]
