"""The section of limits that are reported: UCL95, UTL 95-95, prediction limits."""

from __future__ import annotations

from html import escape
from typing import Any

from halfseen.report.numbers import DASH, readable
from halfseen.report.tables import heading, name, table, td

# Digits of a limit.
DIGITS = 4


def reported_limits(content: dict[str, Any]) -> str:
    """Make the table of all limits, and the list of what its methods and remarks say."""
    head = heading(
        "column", "limits of", "estimate", "lower", "upper", "method", texts=("limits of", "method")
    )
    level, coverage = (100.0 * content[key] for key in ("level", "coverage"))
    words = (
        f"Each limit by itself holds with {level:g} % confidence; tolerance limits cover {coverage:g} % "
        "of all values. In the units of the table."
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in content["notes"])
    rows = [_row(one) for one in content["rows"]]
    return (
        f"<p>{words}</p>"
        + table("Means, quantiles, tolerance and next values", head, rows)
        + f"<ul>{notes}</ul>"
    )


def _row(one: dict[str, Any]) -> list[str]:
    """Make the cells of a row: its numbers and method, or the word why there are none."""
    values = [one[key] for key in ("estimate", "lower", "upper")]
    numbers = [td(DASH if value is None else readable(value, DIGITS)) for value in values]
    method = one["method"] or f"none: {one['remark']}"
    quantity, method = td(escape(one["quantity"]), "words"), td(escape(method), "words")
    return [name(one["column"]), quantity, *numbers, method]
