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
    return f"{trace['all_steps']:,} {'step' if trace['all_steps'] == 1 else 'steps'}"


def climb_words(climb: dict[str, Any]) -> str:
    """Say what the status is judged by."""
    if not climb["climbs"]:
        return (
            "The estimate is pulled towards a simpler one, so that steps do not climb to a top of the "
            "likelihood; they are repeated until they change nothing."
        )
    return (
        f"The solver has converged when no more than {climb['enough']:g} of a unit of log-likelihood is "
        "left to be gained. For comparison: the true parameters lie about half a unit below the top for "
        "each parameter that is free."
    )


def climb_caption(climb: dict[str, Any]) -> str:
    """Make the caption of what was left to be gained."""
    if not climb["climbs"]:
        text = "How much each step changed the log-likelihood of complete rows."
    else:
        text = (
            "What was left to be gained in log-likelihood at each step. Solid: as the solver estimated "
            "it there, from slope and curvature. Dashed: how far below its last value the "
            "log-likelihood was. Dotted line: what may be left in the end."
        )
    small = min(x for x in climb["estimated"] if x is not None) <= climb["smallest"]
    return text + (" What is below a millionth is drawn as a millionth." if small else "")


def trace_words(trace: dict[str, Any]) -> str:
    """Say what the lines of the trace are, and what to look for."""
    return (
        f"Each line is the mean of a column, step by step, in {trace['unit']} from the estimate, "
        "where all end. What matters is how far the last steps moved them: by hundredths of the unit is "
        "of no consequence, by tenths says that the solver needs more steps."
    )


def trace_caption(trace: dict[str, Any]) -> str:
    """Make the caption of the trace."""
    return f"Means over {steps_of(trace)}."


def scale_words(content: dict[str, Any]) -> str:
    """Say the scale once, where it is that of all columns."""
    return f" All columns are on the {content['scale']} scale." if content["scale"] else ""
