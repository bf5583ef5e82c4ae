"""Options that several commands share, each told once.

A command that reads a table takes one argument for it, ``table: Wanted``; ``reads_table`` gives it the
options behind that on the command line.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer


class Blank(enum.StrEnum):
    """What blank cells mean."""

    AUTO = "auto"
    HIDDEN = "hidden"
    RANDOM = "random"


class Unreadable(enum.StrEnum):
    """What to do about cells that cannot be read."""

    REFUSE = "refuse"
    MISSING = "missing"


class Errors(enum.StrEnum):
    """What the tails may be."""

    NORMAL = "normal"
    T = "t"


class Covariance(enum.StrEnum):
    """What the covariance may be."""

    FREE = "free"
    DIAGONAL = "diagonal"
    SHRINKAGE = "shrinkage"
    SPARSE = "sparse"


_READING, _RULE, _MODEL, _OUTPUT = "The table", "What hides a value", "The model", "Output"
_LARGE = "Large tables and long runs"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV or Parquet file; - reads CSV from standard input. fit also takes a folder of "
        "Parquet files, or a pattern in quotes: 'data/*.parquet'.",
        show_default=False,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        help="Columns to read, separated by commas; all otherwise.", rich_help_panel=_READING
    ),
]
Index = Annotated[str | None, typer.Option(help="Column of row labels.", rich_help_panel=_READING)]
Separator = Annotated[
    str | None,
    typer.Option(help="What stands between cells; found out otherwise.", rich_help_panel=_READING),
]
Decimal = Annotated[str, typer.Option(help="Decimal sign: . or ,", rich_help_panel=_READING)]
Thousands = Annotated[
    str | None, typer.Option(help="Sign between thousands, if any.", rich_help_panel=_READING)
]
Encoding = Annotated[str, typer.Option(help="Encoding of the file.", rich_help_panel=_READING)]
NotDetected = Annotated[
    list[str] | None,
    typer.Option(help="One more word for not detected, besides ND.", rich_help_panel=_READING),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(help="One more word for missing, such as -999.", rich_help_panel=_READING),
]
Companions = Annotated[
    bool,
    typer.Option(
        "--companions/--no-companions",
        help="Whether columns such as lead_flag or lead_lower speak of lead.",
        rich_help_panel=_READING,
    ),
]
UnreadableCells = Annotated[
    Unreadable,
    typer.Option(
        "--unreadable", help="What to do about unreadable cells.", rich_help_panel=_READING
    ),
]
Seen = Annotated[
    list[str] | None,
    typer.Option(
        "--seen",
        metavar="RULE",
        help="Where a column is shown: 'lead: >=0.5', 'temp: -40..85', 'x: 0..1 | 3..5', "
        "'wage: hours - 2*kids >= 10', 'bid1, bid2: largest'. May be repeated.",
        rich_help_panel=_RULE,
    ),
]
Limits = Annotated[
    Path | None,
    typer.Option(
        help="CSV of detection limits: column,lower,upper; or a row for each row of the data.",
        rich_help_panel=_RULE,
    ),
]
BlankCells = Annotated[
    Blank,
    typer.Option(
        "--blank",
        help="Whether blank cells were hidden by the rule or are missing at random. auto: hidden, "
        "unless other cells of their column are marked as not detected.",
        rich_help_panel=_RULE,
    ),
]
Saturated = Annotated[
    bool,
    typer.Option(
        "--saturated",
        help="Values on a limit of the rule, or beyond it, stand for values beyond it.",
        rich_help_panel=_RULE,
    ),
]
Log = Annotated[
    bool, typer.Option("--log", help="Fit logarithms of all columns.", rich_help_panel=_MODEL)
]
Transform = Annotated[
    list[str] | None,
    typer.Option(
        "--transform",
        metavar="SCALE",
        help="Scale of all columns ('sqrt') or of some ('ph: none'): none, log, log10, sqrt, boxcox, "
        "yeojohnson, boxcox(0.3). May be repeated.",
        rich_help_panel=_MODEL,
    ),
]
Method = Annotated[
    str,
    typer.Option(help="auto, full, pairwise, truncation, truncation_psgd.", rich_help_panel=_MODEL),
]
Structure = Annotated[
    Covariance | None,
    typer.Option("--covariance", help="What the covariance may be.", rich_help_panel=_MODEL),
]
Tails = Annotated[
    Errors,
    typer.Option("--errors", help="t for heavy tails, in place of normal.", rich_help_panel=_MODEL),
]
DegreesOfFreedom = Annotated[
    float | None, typer.Option(help="Of --errors t; learned otherwise.", rich_help_panel=_MODEL)
]
Loss = Annotated[
    str | None,
    typer.Option(
        "--loss",
        metavar="SHARE|learn",
        help="Share of the values that the rule shows which were lost all the same: 0.1, or learn; "
        "or by column: 'lead=0.1, zinc=learn'.",
        rich_help_panel=_MODEL,
    ),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Seed of everything random.", rich_help_panel=_MODEL)
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print figures for machines.", rich_help_panel=_OUTPUT)
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Where to write; else printed.", rich_help_panel=_OUTPUT),
]
Report = Annotated[
    Path | None,
    typer.Option(help="Write an HTML page that works offline.", rich_help_panel=_OUTPUT),
]


Save = Annotated[
    Path | None,
    typer.Option(help="Write the fit itself; halfseen.load reads it.", rich_help_panel=_OUTPUT),
]
Memory = Annotated[
    str | None,
    typer.Option(
        help="Most memory to take, such as 1GB, for Parquet files; what does not fit is kept on disk.",
        rich_help_panel=_LARGE,
    ),
]
ScratchFolder = Annotated[
    Path | None,
    typer.Option(
        "--scratch", help="Folder for what does not fit in memory.", rich_help_panel=_LARGE
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask cluster that does the work, such as tcp://10.0.0.1:8786; it must see the files.",
        rich_help_panel=_LARGE,
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        help="A file to go on from if the work is stopped (method full).", rich_help_panel=_LARGE
    ),
]
Every = Annotated[
    float, typer.Option(min=0.0, help="Seconds between checkpoints.", rich_help_panel=_LARGE)
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on from the checkpoint, if there is one.", rich_help_panel=_LARGE
    ),
]


@dataclass(frozen=True)
class Wanted:
    """Which table is to be read, and how: the options of the command line."""

    data: str
    seen: tuple[str, ...] = ()
    limits: Path | None = None
    blank: Blank = Blank.AUTO
    saturated: bool = False
    log: bool = False
    transform: tuple[str, ...] = ()
    columns: str | None = None
    index: str | None = None
    separator: str | None = None
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"
    not_detected: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unreadable: Unreadable = Unreadable.REFUSE
    companions: bool = True


def _options(
    seen: Seen = None,
    limits: Limits = None,
    blank: BlankCells = Blank.AUTO,
    saturated: Saturated = False,
    log: Log = False,
    transform: Transform = None,
    columns: Columns = None,
    index: Index = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    thousands: Thousands = None,
    encoding: Encoding = "utf-8",
    not_detected: NotDetected = None,
    missing: Missing = None,
    unreadable: UnreadableCells = Unreadable.REFUSE,
    companions: Companions = True,
) -> None:
    """Options of a table, in the order in which help shows them."""


def reads_table(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command with an argument ``table: Wanted`` the options of a table."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(_options, eval_str=True).parameters
    parameters = [p for name, p in own.items() if name != "table"] + list(shared.values())

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        told = {name: given.pop(name) for name in shared}
        lists = {name: tuple(value or ()) for name, value in told.items() if name in _LISTS}
        return command(table=Wanted(given["data"], **told | lists), **given)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


_LISTS = ("seen", "transform", "not_detected", "missing")


def read_loss(given: str) -> float | str | dict[str, float | str]:
    """Read what was said of lost values: a share, or that it is to be learned; of all, or by column."""
    if "=" in given:
        pairs = (part.rpartition("=") for part in given.split(","))
        return {name.strip(): _share(text) for name, _, text in pairs}
    return _share(given)


def _share(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text.strip()
