"""The tables of what was learned beside what a naive analysis would say."""

from __future__ import annotations

from html import escape
from typing import Any

from halfseen.report.tables import Cell, name, places_for, remark, show, show_interval, table
from halfseen.report.words import percent


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
    """Make the table of medians, means and high quantiles, of all columns where any is transformed."""
    if all(c["units"] is None for c in columns):
        return ""
    interval = f'<th scope="col">{"95 % interval" if sure else ""}</th>'
    naive = '<th scope="col" class="group">seen only</th>'
    half = '<th scope="col">half limit</th>' if patched else ""
    recovered = f'<th scope="col" class="group">recovered</th>{interval}'
    # Said once, where it holds for all.
    scales = {_scale_of(c) for c in columns}
    (word,) = scales if len(scales) == 1 else ("median or geometric mean",)
    word = word.partition(": ")[2] or word
    head = (
        '<tr><th rowspan="2" scope="col" class="words">column</th>'
        f'<th colspan="2" scope="colgroup" class="group">{escape(word)}</th>'
        f'<th colspan="{4 if patched else 3}" scope="colgroup" class="group">mean</th>'
        '<th colspan="2" scope="colgroup" class="group">95th percentile</th></tr>'
        f'<tr>{recovered}{naive}{half}<th scope="col">recovered</th>{interval}{recovered}</tr>'
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


def _units_row(column: dict[str, Any], patched: bool, with_scale: bool) -> list[Cell]:
    units, own = column["units"], column.get("original")
    if own is None:
        found = column["recovered"]
        own = {"recovered": found["mean"], "interval": found["mean_interval"]}
    scale = f"<small>{escape(_scale_of(column))}</small>" if with_scale else ""
    cells = [Cell(f"{name(column['name'])}{scale}")]
    cells += _grouped(own["recovered"], own["interval"])
    places = places_for(_error(units["mean_interval"]), units["mean"])
    cells.append(Cell(show(units["naive"], places), "naive group"))
    if patched:
        cells.append(Cell(show(units["substituted"], places), "naive"))
    cells += _estimate(units["mean"], units["mean_interval"], places)
    return cells + _grouped(units["high"], units["high_interval"])


def _grouped(value: Any, interval: Any) -> list[Cell]:
    """Return an estimate and its interval, as the beginning of a group of columns."""
    found, ends = _estimate(value, interval, places_for(_error(interval), value))
    return [Cell(found.html, "main group"), ends]
