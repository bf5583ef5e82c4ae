"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import json
import os
import re
from functools import cache
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.errors import InputError
from halfseen.files import write_text_whole
from halfseen.report import sections
from halfseen.report.content import MOST_COLUMNS, content_of, read_fit
from halfseen.report.tables import compared, remark

if TYPE_CHECKING:
    from halfseen.results import Fit

SLOT = re.compile(r"<!-- slot (\w+) -->")
# Bytes that a page may have, and columns that it shows: fewer, while it is too large.
LARGEST_PAGE = 6_000_000
FEWER_COLUMNS = (MOST_COLUMNS, 50, 25, 10)


def write_report(
    fit: Fit,
    path: str | os.PathLike[str],
    *,
    diagnosis: Any = None,
    call: str | None = None,
    title: str | None = None,
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
    ...     write_report(fit, folder + "/report.html").stat().st_size < 6_000_000
    True
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"the report needs a file name, such as report.html; got {path!r}.")
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        what = "is a folder" if target.is_dir() else "lies in a folder that does not exist"
        raise InputError(f"{target} {what}; the report needs a file name, such as report.html.")
    library, read = plotly(), read_fit(fit)
    title = None if title is None else str(title)
    for most_columns in FEWER_COLUMNS:
        page = page_of(content_of(read, diagnosis, call, title, most_columns), library)
        if len(page.encode()) < LARGEST_PAGE:
            break
    write_text_whole(target, page)
    return target


@cache
def plotly() -> str:
    """Return the drawing library as text."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise InputError('The report needs Plotly: pip install "halfseen[report]".') from None
    # No "</script" or "<!--" may stand inside a script element.
    return str(get_plotlyjs()).replace("</script", "<\\/script").replace("<!--", "<\\!--")


def page_of(content: dict[str, Any], library: str) -> str:
    """Put the page together from its parts."""
    learned = "".join(f"<p>{escape(text)}</p>" for text in content["learned"])
    parts = {
        "title": escape(content["title"]),
        "css": _resource("page.css"),
        "learned": learned + remark(content["left_out"]),
        "status": sections.status(content["status"]),
        "compared": compared(content),
        "columns": sections.columns(content),
        "pairs": sections.pairs(content),
        "correlations": sections.correlations(content),
        "convergence": sections.convergence(content),
        "assumptions": sections.assumptions(content),
        "repeat": sections.repeat(content),
        "footer": f"<p>Made by halfseen {escape(content['versions']['halfseen'])}.</p>",
        "content": embedded(content),
        "plotly": library,
        "js": _resource("page.js"),
    }
    # In one pass: what is put in is not looked through again.
    page = SLOT.sub(lambda match: parts[match[1]], _resource("page.html"))
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
