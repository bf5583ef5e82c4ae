"""Writing tables so that they can be read back, bit for bit."""

from __future__ import annotations

import os

from halfseen.data.cells import print_cell
from halfseen.data.interval_data import IntervalData
from halfseen.errors import InputError, argument
from halfseen.files import write_text_whole

# Cells with one of these are quoted.
MARKS = frozenset(',;|\t"\r\n\0\ufeff')


def to_cells(data: IntervalData, decimal: str = ".") -> list[list[str]]:
    """Print the cells of a table as ``read_csv`` reads them.

    Numbers are the shortest texts that read back as the same bits; intervals are ``a..b``; cells that
    are not detected at an unknown limit are ``ND``; missing ones are empty.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> from halfseen.data.writing import to_cells
    >>> to_cells(hs.IntervalData([[1.5, np.nan, 100, -3]], [[1.5, 0.05, np.nan, -1]]))
    [['1.5', '<0.05', '>100', '-3..-1']]
    """
    if decimal not in (".", ","):
        raise InputError(f"decimal must be '.' or ','; got {decimal!r}.")
    rows = zip(data.lower.tolist(), data.upper.tolist(), data.not_detected.tolist(), strict=True)
    return [[print_cell(*cell, decimal=decimal) for cell in zip(*row, strict=True)] for row in rows]


def write_csv(
    data: IntervalData,
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str = ".",
    index: str = "label",
) -> None:
    """Write a table as a file that ``read_csv`` reads back, bit for bit; whole or not at all.

    Parameters
    ----------
    data : IntervalData
    path : path of the file
    separator : str, optional
        A comma, or a semicolon where the comma is the decimal sign.
    decimal : "." or ","
    index : str
        Name of the column that the labels of the rows are written to, if there are any.

    Examples
    --------
    >>> import pathlib, tempfile, halfseen as hs
    >>> data = hs.IntervalData([[0.3], [-float("inf")]], [[0.3], [0.05]], ["lead"], labels=["A", "B"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hs.write_csv(data, f"{folder}/lead.csv", index="site")
    ...     print(pathlib.Path(f"{folder}/lead.csv").read_text())
    site,lead
    A,0.3
    B,<0.05
    <BLANKLINE>
    """
    if not isinstance(data, IntervalData):
        raise InputError(f"data must be IntervalData; got {type(data).__qualname__}.")
    mark = separator if separator is not None else (";" if decimal == "," else ",")
    if mark not in (",", ";", "\t", "|") or mark == decimal:
        raise InputError(
            f"separator must be ',', ';', a tab or '|', and not the decimal sign; got {mark!r}."
        )
    rows = [list(data.names), *to_cells(data, decimal)]
    if data.labels is not None:
        if index in data.names:
            raise InputError(
                f"the labels cannot be written to a column {index!r}, because the table has one of "
                f"that name. Choose another with {argument('index')}."
            )
        rows = [[label, *row] for label, row in zip((index, *data.labels), rows, strict=True)]
    text = "".join(mark.join(_quoted(cell, len(row)) for cell in row) + "\n" for row in rows)
    try:
        write_text_whole(path, text)
    except UnicodeEncodeError as error:
        wrong = error.object[error.start : error.start + 1]
        raise InputError(f"a name or a label holds {wrong!r}, which is no character.") from None
    except OSError as error:
        raise InputError(
            f"{os.fspath(path)} cannot be written: {error.strerror or error}."
        ) from None


def _quoted(cell: str, width: int) -> str:
    """Quote a cell where that is needed to read the same back."""
    # An empty cell alone on its line would be an empty line, spaces at the ends may be lost, and a
    # mark that could separate cells may mislead whoever looks for the separator.
    if MARKS.intersection(cell) or cell != cell.strip() or (not cell and width == 1):
        return '"' + cell.replace('"', '""') + '"'
    return cell
