"""Options that several commands share, each told once.

A command that reads a table takes one argument for it, ``table: TableOptions``; ``reads_table`` gives
it the options behind that on the command line.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from halfseen.errors import InputError


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


def _panel(title: str) -> Callable[..., Any]:
    """Return a maker of options that help shows under a title."""

    def option(help: str, *names: str, **more: Any) -> Any:
        return typer.Option(*names, help=help, rich_help_panel=title, **more)

    return option


_reading, _rule, _model = map(_panel, ("The table", "What hides a value", "The model"))
_output, _large = map(_panel, ("Output", "Large tables and long runs"))
_long = _panel("A long table: a row for each value")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV or Parquet file; - reads CSV from standard input. fit also takes a folder of "
        "Parquet files, or a pattern in quotes: 'data/*.parquet'.",
        show_default=False,
    ),
]
Seen = Annotated[
    list[str] | None,
    _rule(
        "Where a column is shown: 'lead: >=0.5', 'temp: -40..85', 'x: 0..1 | 3..5', "
        "'wage: hours - 2*kids >= 10', 'bid1, bid2: largest'. May be repeated.",
        "--seen",
        metavar="RULE",
    ),
]
Method = Annotated[str, _model("auto, full, pairwise, truncation, truncation_psgd.")]
Structure = Annotated[
    str | None,
    _model(
        "What the covariance may be: free, diagonal, shrinkage, sparse, compound_symmetry, ar1, "
        "toeplitz, 'ar1(heteroscedastic=True)', 'factor(2)', 'kronecker(2, 4)', "
        "'block_diagonal([2, 3])', 'random_effects([[1, 0], [1, 1], [1, 2]])'.",
        "--covariance",
        metavar="STRUCTURE",
    ),
]
Tails = Annotated[Errors, _model("t for heavy tails, in place of normal.", "--errors")]
DegreesOfFreedom = Annotated[float | None, _model("Of --errors t; learned otherwise.")]
Loss = Annotated[
    str | None,
    _model(
        "Share of the values that the rule shows which were lost all the same: 0.1, or learn; "
        "or by column: 'lead=0.1, zinc=learn'.",
        "--loss",
        metavar="SHARE|learn",
    ),
]
By = Annotated[
    str | None,
    _model(
        "Column of groups, such as the well of each row: compare their means and covariances.",
        "--by",
        metavar="COLUMN",
    ),
]
Level = Annotated[float, _output("Of the confidence intervals.")]
Reported = Annotated[
    bool,
    _output(
        "One-sided limits to report, at --level: UCL of means, tolerance and prediction limits; also in "
        "--json and on the page.",
        "--ucl",
    ),
]
Coverage = Annotated[float, _output("Share of all values that tolerance limits of --ucl cover.")]
NextValues = Annotated[
    int, _output("How many further values a prediction limit of --ucl is for.", min=1)
]
Seed = Annotated[int, _model("Seed of everything random.", min=0)]
AsJson = Annotated[bool, _output("Print figures for machines.", "--json")]
Output = Annotated[Path | None, _output("Where to write; else printed.", "--output", "-o")]
Report = Annotated[Path | None, _output("Write an HTML page that works offline.")]
Save = Annotated[Path | None, _output("Write the fit itself; halfseen.load reads it.")]
Memory = Annotated[
    str | None,
    _large(
        "Most memory to take, such as 1GB, for Parquet files; what does not fit is kept on disk."
    ),
]
ScratchFolder = Annotated[
    Path | None, _large("Folder for what does not fit in memory.", "--scratch")
]
Scheduler = Annotated[
    str | None,
    _large(
        "A Dask cluster that does the work, such as tcp://10.0.0.1:8786; it must see the files.",
        metavar="ADDRESS",
    ),
]
Checkpoint = Annotated[
    Path | None, _large("A file to go on from if the work is stopped (fit: method full).")
]
Every = Annotated[float, _large("Seconds between checkpoints.", min=0.0)]
Resume = Annotated[bool, _large("Go on from the checkpoint, if there is one.", "--resume")]


@dataclass(frozen=True)
class TableOptions:
    """Which table is to be read, and how: options in the order in which help shows them."""

    data: str
    seen: Seen = None
    limits: Annotated[
        Path | None,
        _rule("CSV of detection limits: column,lower,upper; or a row for each row of the data."),
    ] = None
    flag: Annotated[
        list[str] | None,
        _rule(
            "Column that says which cells of another were not detected: 'Pb=PbCen', '*=*Cen' for all, "
            "'Pb=D_Pb:0' where 0 marks them; of a long table, the column alone. May be repeated.",
            "--flag",
            metavar="COLUMN=FLAGS",
        ),
    ] = None
    limit: Annotated[
        list[str] | None,
        _rule(
            "Column that holds the limits of another, for cells that were not detected: 'Pb=Pb_RL', "
            "'*=*_RL'; of a long table, the column alone. May be repeated.",
            "--limit",
            metavar="COLUMN=LIMITS",
        ),
    ] = None
    blank: Annotated[
        Blank,
        _rule(
            "Whether blank cells were hidden by the rule or are missing at random. auto: hidden, "
            "unless other cells of their column are marked as not detected.",
            "--blank",
        ),
    ] = Blank.AUTO
    saturated: Annotated[
        bool,
        _rule(
            "Values on a limit of the rule, or beyond it, stand for values beyond it.",
            "--saturated",
        ),
    ] = False
    rounded: Annotated[
        list[str] | None,
        _rule(
            "Step to which values were rounded: 0.1, 'age: 5, lead: 0.1', 'age: 1 down', or 'age: 5/1' "
            "where some were rounded to 5. May be repeated.",
            "--rounded",
            metavar="STEP",
        ),
    ] = None
    log: Annotated[bool, _model("Fit logarithms of all columns.", "--log")] = False
    transform: Annotated[
        list[str] | None,
        _model(
            "Scale of all columns ('sqrt') or of some ('ph: none', 'PCB*: log'): none, log, log10, "
            "sqrt, boxcox, yeojohnson, boxcox(0.3). May be repeated.",
            "--transform",
            metavar="SCALE",
        ),
    ] = None
    columns: Annotated[
        str | None,
        _reading("Columns to read, separated by commas, such as 'lead, PCB*'; all otherwise."),
    ] = None
    exclude: Annotated[
        list[str] | None, _reading("Columns to leave out, as in --columns. May be repeated.")
    ] = None
    id: Annotated[
        str | None,
        _long("Column that says of which subject or sample a value is; each gets one row.", "--id"),
    ] = None
    value: Annotated[str | None, _long("Column of values, with limits such as <0.5.")] = None
    variable: Annotated[
        str | None, _long("Column that says of what a value is, such as the analyte.")
    ] = None
    time: Annotated[str | None, _long("Column that says when: visits, weeks, dates.")] = None
    keep: Annotated[
        str | None, _long("Columns of words to keep, the same in all rows of a subject.")
    ] = None
    covariates: Annotated[
        str | None, _long("Columns of numbers, the same in all rows of a subject, to read too.")
    ] = None
    unit: Annotated[
        str | None, _long("Column of units, which must be the same for all values of a variable.")
    ] = None
    index: Annotated[str | None, _reading("Column of row labels.")] = None
    separator: Annotated[
        str | None,
        _reading("What stands between cells: a character, tab, or ' ' for blanks; else found out."),
    ] = None
    decimal: Annotated[str, _reading("Decimal sign: . or ,")] = "."
    thousands: Annotated[str | None, _reading("Sign between thousands, if any.")] = None
    encoding: Annotated[str, _reading("Encoding of the file.")] = "utf-8"
    not_detected: Annotated[
        list[str] | None, _reading("One more word for not detected, besides ND.")
    ] = None
    missing: Annotated[list[str] | None, _reading("One more word for missing, such as -999.")] = (
        None
    )
    unreadable: Annotated[
        Unreadable, _reading("What to do about unreadable cells.", "--unreadable")
    ] = Unreadable.REFUSE
    companions: Annotated[
        bool,
        _reading(
            "Whether columns such as lead_flag or lead_lower speak of lead.",
            "--companions/--no-companions",
        ),
    ] = True


# Those of long tables.
LONG = (*("id", "value", "variable", "time", "keep", "covariates", "unit"),)


def reads_table(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command with an argument ``table: TableOptions`` the options of a table."""
    return _with_options(command, ())


def reads_table_without(*left_out: str) -> Callable[..., Any]:
    """Do the same, but for some of the options."""
    return lambda command: _with_options(command, left_out)


def _with_options(command: Callable[..., Any], left_out: Collection[str]) -> Callable[..., Any]:
    own = inspect.signature(command, eval_str=True).parameters
    options = inspect.signature(TableOptions, eval_str=True).parameters
    shared = [option for name, option in options.items() if name not in ("data", *left_out)]
    parameters = [p for name, p in own.items() if name != "table"] + shared

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        told = {option.name: given.pop(option.name) for option in shared}
        return command(table=TableOptions(given["data"], **told), **given)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    )
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def check_level(level: float) -> None:
    """Raise where a level is no share, before any work."""
    if not 0.0 < level < 1.0:
        raise InputError(f"--level must be a share between 0 and 1, such as 0.95; got {level:g}.")


def check_reported(ucl: bool, level: float, coverage: float, next_values: int) -> None:
    """Raise where what is asked of limits makes no sense, before any work."""
    if not ucl and (coverage, next_values) != (0.95, 1):
        raise InputError(
            "--coverage and --next-values are of the limits that --ucl prints; add --ucl."
        )
    if not 0.0 < coverage < 1.0:
        raise InputError(
            f"--coverage must be a share between 0 and 1, such as 0.95; got {coverage:g}."
        )
    if ucl and not level > 0.5:
        raise InputError(
            f"--level must be above 0.5 with --ucl, such as 0.95: limits are one-sided; got {level:g}."
        )


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
