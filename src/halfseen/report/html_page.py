"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from halfseen.errors import InputError
from halfseen.files import try_writing, write_text_whole
from halfseen.report import sections
from halfseen.report.content import MOST_COLUMNS, content_of, read_fit
from halfseen.report.numbers import DASH, readable
from halfseen.report.tables import compared, heading, name, remark, table, td

if TYPE_CHECKING:
    from halfseen.limits.table import LimitTable
    from halfseen.results import Fit

# Digits of a limit.
DIGITS = 4
SLOT = re.compile(r"<!-- slot (\w+) -->")
# Bytes that a page may have, and columns that it shows: fewer, while it is too large.
LARGEST_PAGE = 1_500_000
FEWER_COLUMNS = (MOST_COLUMNS, 50, 25, 10)


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


def write_report(
    fit: Fit,
    path: str | os.PathLike[str],
    *,
    diagnosis: Any = None,
    call: str | None = None,
    title: str | None = None,
    limits: LimitTable | None = None,
) -> Path:
    """Write a page about a fit: one HTML file that works offline, with everything in it.

    Parameters
    ----------
    fit : Fit
    path : str or path
        Where to write; written whole or not at all.
    diagnosis : Diagnosis, optional
        What ``halfseen.diagnose`` found, to be shown beside the assumptions.
    call : str, optional
        The call that repeats the analysis, to be printed; put together from the fit by default.
    title : str, optional
    limits : LimitTable, optional
        What ``fit.limits()`` found, for a section of its own.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, halfseen as hs
    >>> from halfseen.report import write_report
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0], [[1.0]]), rule, 500, random_state=0)
    >>> fit = hs.fit(X, rule, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(fit, folder + "/report.html").stat().st_size < 1_500_000
    True
    """
    target = target_of(path)
    read = read_fit(fit)
    title = None if title is None else str(title)
    for most_columns in FEWER_COLUMNS:
        content = content_of(read, diagnosis, call, title, most_columns)
        content["reported"] = None if limits is None else limits.to_dict()
        page = page_of(content)
        if len(page.encode()) < LARGEST_PAGE:
            break
    write_text_whole(target, page)
    return target


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return where a page is to be written; raise where no file can be."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"the report needs a file name, such as report.html; got {path!r}.")
    target = Path(path)
    try:
        if target.is_dir() or not target.parent.is_dir():
            what = "is a folder" if target.is_dir() else "lies in a folder that does not exist"
            raise InputError(f"{target} {what}; the report needs a file name, such as report.html.")
        try_writing(target)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError(
            f"the report cannot be written to {target}: {why}. Try another place."
        ) from error
    return target


class Section(NamedTuple):
    """A part of the page.

    Attributes
    ----------
    key : str
        What links to it name.
    link, title : str
        What the contents call it, and its heading.
    inside : str
        Text that is ready for the page.
    """

    key: str
    link: str
    title: str
    inside: str


def page_of(content: dict[str, Any]) -> str:
    """Put the page of a fit together from its parts."""
    parts = [
        Section("compared", "Naive and recovered", "Naive and recovered", compared(content)),
        Section("columns", "Column by column", "Column by column", sections.columns(content)),
        Section("pairs", "Pairs", "Pairs", sections.pairs(content)),
        Section("correlations", "Correlations", "Correlations", sections.correlations(content)),
        Section(
            "convergence",
            "Convergence",
            "Convergence and Monte-Carlo error",
            sections.convergence(content),
        ),
        Section(
            "assumptions",
            "Assumptions",
            "Assumptions and their checks",
            sections.assumptions(content),
        ),
        Section("repeat", "Cite and repeat", "Cite and repeat", sections.repeat(content)),
    ]
    if content.get("reported"):
        inside = reported_limits(content["reported"])
        parts.insert(1, Section("limits", "Limits to report", "Limits to report", inside))
    return shell(content, parts, "page.js")


def shell(content: dict[str, Any], parts: Sequence[Section], script: str) -> str:
    """Put a page together: what it says first, its sections, and the script that draws its figures."""
    learned = "".join(f"<p>{escape(text)}</p>" for text in content["learned"])
    links = "".join(f'<li><a href="#{one.key}">{escape(one.link)}</a></li>\n' for one in parts)
    inside = "".join(
        f'<section aria-labelledby="{one.key}">\n<h2 id="{one.key}">{escape(one.title)}</h2>\n'
        f"{one.inside}\n</section>\n"
        for one in parts
    )
    slots = {
        "title": escape(content["title"]),
        "css": _resource("page.css"),
        "learned": learned + remark(content["left_out"]),
        "status": sections.status(content["status"]),
        "contents": links,
        "sections": inside,
        "footer": f"<p>Made by halfseen {escape(content['versions']['halfseen'])}.</p>",
        "content": embedded(content),
        "js": "".join(map(_resource, ("figure.js", "drawing.js", script))),
    }
    # In one pass: what is put in is not looked through again.
    page = SLOT.sub(lambda match: slots[match[1]], _resource("page.html"))
    # Halves of characters in a name cannot be written.
    return page.encode("utf-8", "replace").decode("utf-8")


def embedded(content: dict[str, Any]) -> str:
    """JSON that may stand inside a script element, whatever its texts hold."""
    # In ASCII: neither line separators nor halves of characters are left.
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _resource(file: str) -> str:
    return resources.files("halfseen.report").joinpath(file).read_text(encoding="utf-8")
