"""The page of a regression: one HTML file that needs nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.files import write_text_whole
from halfseen.report.html_page import LARGEST_PAGE, shell, target_of
from halfseen.report.regression_content import MOST_OUTCOMES, RegressionRead, content_of
from halfseen.report.regression_sections import sections_of

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

# Outcomes that the page shows: fewer, while it is too large.
FEWER_OUTCOMES = (MOST_OUTCOMES, 50, 20, 10)


def write_regression_report(
    fit: RegressionFit,
    path: str | os.PathLike[str],
    *,
    call: str | None = None,
    title: str | None = None,
) -> Path:
    """Write a page about a regression: one HTML file that works offline, with everything in it.

    Parameters
    ----------
    fit : RegressionFit
    path : str or path
        Where to write; written whole or not at all.
    call : str, optional
        The call that repeats the analysis, to be printed; put together from the fit by default.
    title : str, optional

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, numpy as np, halfseen as hs
    >>> from halfseen.report import write_regression_report
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> fit = hs.regress(2.0 * x + rng.normal(size=(200, 1)), x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_regression_report(fit, folder + "/report.html").stat().st_size < 1_500_000
    True
    """
    target = target_of(path)
    read = RegressionRead(fit)
    title = None if title is None else str(title)
    for most_outcomes in FEWER_OUTCOMES:
        page = regression_page_of(content_of(read, call, title, most_outcomes))
        if len(page.encode()) < LARGEST_PAGE:
            break
    write_text_whole(target, page)
    return target


def regression_page_of(content: dict[str, Any]) -> str:
    """Put the page together from its parts."""
    return shell(content, sections_of(content), "regression.js")
