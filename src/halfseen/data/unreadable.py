"""What to say about the cells of a table that cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from halfseen.data.cell_reasons import A_DATE, NO_NUMBER, TRUE_FALSE, called, shorten
from halfseen.errors import InputError, argument

# As many cells are shown in full; the others are counted by column.
SHOWN = 8
# What a column holds if every cell has the same one of these reasons.
WHOLE_COLUMN = {NO_NUMBER: "no numbers", A_DATE: "dates", TRUE_FALSE: "true and false"}


class UnreadableCell(NamedTuple):
    """One cell that cannot be read: its row (from 0), its line in the file, and why."""

    row: int
    line: int | None
    column: str
    text: str
    reason: str


class UnreadableError(InputError):
    """A table has cells that cannot be read; ``cells`` lists all of them."""

    def __init__(self, message: str, cells: Sequence[UnreadableCell] = ()) -> None:
        super().__init__(message)
        self.cells = list(cells)


def error_for(
    cells: Sequence[UnreadableCell],
    hopeless: Iterable[str],
    source: str,
    place: Callable[[UnreadableCell], str],
) -> UnreadableError:
    """Put the error together.

    Parameters
    ----------
    cells : the unreadable cells, in the order of the rows
    hopeless : names of the columns in which no cell at all could be read
    source : what the table is called
    place : says where a cell is
    """
    lines = []
    told = set()
    by_column: dict[str, list[UnreadableCell]] = {}
    for cell in cells:
        by_column.setdefault(cell.column, []).append(cell)
    for name in hopeless:
        of_column = by_column.get(name, [])
        reasons = {cell.reason for cell in of_column}
        if len(reasons) == 1 and (held := WHOLE_COLUMN.get(next(iter(reasons)))):
            lines.append(whole_column(name, held, (cell.text for cell in of_column)))
            told.add(name)
    others = [cell for cell in cells if cell.column not in told]
    if others:
        count = "1 cell" if len(others) == 1 else f"{len(others)} cells"
        lines.append(f"{count} cannot be read:")
        lines += [f"  {place(c)}: {shorten(c.text)} {c.reason}." for c in others[:SHOWN]]
        if len(others) > SHOWN:
            rest = Counter(cell.column for cell in others[SHOWN:])
            told_by = ", ".join(f"{k} in {called(name)}" for name, k in rest.items())
            lines.append(f"  and {len(others) - SHOWN} more: {told_by}.")
        lines.append(
            f"Correct them; or tell words of your own with {argument('not_detected')} and "
            f"{argument('missing')}; or pass {argument('unreadable', 'missing')} to take them as "
            "missing."
        )
    return UnreadableError(f"{source}: " + "\n".join(lines), cells)


def whole_column(name: str, held: str, texts: Iterable[str]) -> str:
    """Say that a column holds no measurements."""
    different = list(dict.fromkeys(texts))
    shown = ", ".join(shorten(text, 20) for text in different[:2])
    more = ", ..." if len(different) > 2 else ""
    quoted = f" ({shown}{more})" if shown else ""
    return (
        f"column {called(name)} holds {held}{quoted}: leave it out with {argument('columns')}, or "
        f"make it the row labels with {argument('index', name)}."
    )


def count_by_column(names: Iterable[str]) -> str:
    """Say how many there are of each name."""
    return ", ".join(f"{k} in {called(name)}" for name, k in Counter(names).items())
