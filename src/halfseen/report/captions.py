"""Captions of the figures. Parts that hold for some columns only are shown for those alone."""

from __future__ import annotations

from html import escape
from typing import Any

from halfseen.report.cells import ABOVE, ANYWHERE, BELOW, BETWEEN, EITHER, TIED, WORDS


def _part(when: str, text: str) -> str:
    """Make a part that the script shows where it applies."""
    return f' <span data-when="{when}">{escape(text)}</span>'


def _any(columns: list[dict[str, Any]], *codes: int) -> bool:
    return any(column["kinds"].get(WORDS[code]) for column in columns for code in codes)


def column_caption(columns: list[dict[str, Any]]) -> str:
    """Make the caption of one column at a time."""
    out = ""
    if any(c["histogram"] is not None for c in columns):
        out += "Bars: the seen values."
    if any(c["histogram"] is not None and any(c["histogram"]["hidden"]) for c in columns):
        out += _part(
            "hatched",
            "Hatched: the hidden cells, each spread evenly over where it can be, so that the area is "
            "their share.",
        )
    out += " Line: the recovered density."
    if any(c["limits"] for c in columns):
        out += _part("limits", "Dashed lines: limits.")
    if any(c["limit_range"] for c in columns):
        out += _part("range", "Shaded: the range of the limits, which differ by row.")
    return out.strip()


def pair_caption(content: dict[str, Any]) -> str:
    """Make the caption of two columns at a time."""
    columns = content["columns"]
    out = ""
    if content["has_table"]:
        out += "Dots: rows in which both are seen."
        if _any(columns, BELOW, ABOVE):
            out += _part(
                "ba",
                "Triangles: rows in which one is hidden, at the limit, pointing to where the value is; "
                "corner triangles: both hidden.",
            )
        if _any(columns, BETWEEN):
            out += _part("i", "Diamonds: between two limits, with bars that reach to them.")
        out += _edge_marks(columns)
        out += (
            " Dashed: the 95 % ellipse of the rows in which both are seen, from their own means, "
            "deviations and correlation."
        )
    out += " Solid: the recovered 95 % ellipse."
    drawn, rows = len(content["drawn_rows"]), content["rows"]
    if drawn and drawn < rows:
        out += f" Drawn are {drawn:,} of {rows:,} rows, spread evenly over the table."
    return out.strip()


def _edge_marks(columns: list[dict[str, Any]]) -> str:
    """Say what marks at the edge of the axes stand for: it depends on why nothing better is known."""
    out = ""
    for code, letter, text in (
        (
            EITHER,
            "e",
            "Marks at the edge: the value is hidden and may lie on either side of what is seen.",
        ),
        (
            TIED,
            "t",
            "Marks at the edge: the value is hidden by a rule that ties it to other columns, not by a "
            "limit of its own.",
        ),
        (ANYWHERE, "n", "Marks at the edge: nothing is known of the value."),
    ):
        if _any(columns, code):
            out += _part(letter, text)
    if out:
        out += _part("etn", "Rows in which this holds for both are not drawn.")
    return out


def steps_of(trace: dict[str, Any]) -> str:
    """Say how many steps a trace has, in the words of the summary."""
    steps = f"{trace['all_steps']:,} {'step' if trace['all_steps'] == 1 else 'steps'}"
    return f"{steps} of two sweeps" if trace["sweeps"] is not None else steps


def trace_words(trace: dict[str, Any]) -> str:
    """Say what the lines of the trace are, and what to look for."""
    text = (
        f"Each line is the mean of a column, step by step, in {trace['unit']} from the estimate. "
        "Look for lines that run level at the end, inside the band of ± 0.1. Lines that still climb or "
        "fall say that the solver needs more steps."
    )
    if trace["chains"] > 1:
        text += (
            " Two chains ran; the lines are those of the second, and the estimate is the average of "
            "both. Lines that end level but outside of the band say that the chains disagree: the other "
            "one ended about as far on the other side."
        )
    return text


def trace_caption(trace: dict[str, Any]) -> str:
    """Make the caption of the trace."""
    chain = " of the second chain" if trace["chains"] > 1 else ""
    return f"Means over {steps_of(trace)}{chain}; the band is ± 0.1 of the unit."


def scale_words(content: dict[str, Any]) -> str:
    """Say the scale once, where it is that of all columns."""
    return f" All columns are on the {content['scale']} scale." if content["scale"] else ""
