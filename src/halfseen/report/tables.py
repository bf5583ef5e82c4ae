"""Tables of the page, and numbers as people read them. Everything is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

DASH = "–"
# More rows than this scroll in a box of their own.
LONG = 20


class Cell(NamedTuple):
    """What stands in a cell of a table: text that is ready for the page, and a class."""

    html: str
    kind: str = ""


def name(text: str) -> str:
    """Escape a name of the user's, and keep its direction of writing to itself."""
    return f"<bdi>{escape(text)}</bdi>"


def remark(text: str | None) -> str:
    """Set a sentence apart; nothing where there is none."""
    return f'<p class="remark">{escape(text)}</p>' if text else ""


def table(caption: str, head: str, rows: Iterable[Sequence[Cell]]) -> str:
    """Put a table together in a box that scrolls; the first cell of a row is its heading."""
    body = []
    for first, *rest in rows:
        cells = "".join(
            f'<td class="{c.kind}">{c.html}</td>' if c.kind else f"<td>{c.html}</td>" for c in rest
        )
        body.append(f'<tr><th scope="row">{first.html}</th>{cells}</tr>')
    kind = "table long" if len(body) > LONG else "table"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f"<caption><span>{escape(caption)}</span></caption><thead>{head}</thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def heading(*words: str) -> str:
    """Make a row of headings."""
    return "<tr>" + "".join(f'<th scope="col">{escape(w)}</th>' for w in words) + "</tr>"


def places_for(error: float | None, value: float | None) -> int:
    """Decimals that show two digits of an error; four digits of the value where there is none."""
    size = error if error else value
    if not size or not np.isfinite(size):
        return 3
    digits = 1 if error else 3
    return int(np.clip(digits - np.floor(np.log10(abs(size))), 0, 12))


def show(x: float | None, places: int) -> str:
    """Show a number with so many decimals and a real minus sign."""
    if x is None:
        return DASH
    if x and not 1e-9 < abs(x) < 1e9:
        return f"{x:.4g}".replace("-", "−")
    text = f"{x:.{places}f}"
    if float(text) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def readable(x: float, digits: int = 6) -> str:
    """Show a number to so many digits, without an exponent up to ten millions.

    Whole numbers are shown whole.

    Examples
    --------
    >>> readable(150000.0), readable(1234567.0), readable(0.05), readable(-2.5), readable(1e9)
    ('150000', '1234567', '0.05', '−2.5', '1e+09')
    """
    if 1.0 <= abs(x) < 1e7 and abs(x - round(x)) <= 1e-9 * abs(x):
        text = f"{round(x)}"
    else:
        text = f"{x:.{digits}g}"
        if "e" in text and 1e-6 < abs(x) < 1e7:
            text = f"{float(text):.{0 if abs(x) > 1.0 else 12}f}"
            text = text.rstrip("0") if "." in text else text
    if float(text) == 0.0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def show_interval(ends: Sequence[float | None] | None, places: int) -> str:
    """Show an interval; nothing where there is none."""
    if ends is None:
        return ""
    return f"{show(ends[0], places)} to {show(ends[1], places)}"
