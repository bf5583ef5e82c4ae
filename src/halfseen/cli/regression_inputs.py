"""From the words of ``halfseen regress`` to formulas, columns, rules and kinds of outcomes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfseen.cli.inputs import cell_form, how_to_read, open_csv, read_rule, split_names
from halfseen.cli.options import Blank, TableOptions
from halfseen.cli.outputs import say
from halfseen.cli.running import rows_told
from halfseen.data.cell_columns import Columns, FileColumns, open_parquet
from halfseen.data.formulas import outcome_names, read_formula
from halfseen.data.interval_data import IntervalData
from halfseen.data.mixed_columns import MixedColumns, read_mixed
from halfseen.data.parquet_blocks import SUFFIXES as PARQUET
from halfseen.data.plain_columns import PlainColumns
from halfseen.errors import InputError
from halfseen.missingness import Selection, rules
from halfseen.missingness.base import Missingness, listed
from halfseen.missingness.named_rules import Rules
from halfseen.solvers.regression.outcomes import KINDS, doubt_two_values

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RegressionInput:
    """What ``regress`` is given, and where its rows stand in the file.

    ``rows`` are those that are left, of which ``lines`` and ``labels`` are known for all.
    """

    model: str | dict[str, str]
    columns: MixedColumns
    rules: list[Missingness]
    kinds: dict[str, Any] | None
    missing_at_random: Mask | None
    rows: list[int]
    lines: Sequence[int] | None
    labels: Sequence[str] | None
    description: str
    note: str


def read_regression_input(
    wanted: TableOptions,
    formulas: Sequence[str],
    kinds: Sequence[str] | None,
    select: Sequence[str] | None,
    beside: Mapping[str, str | None],
    drop_missing: bool,
) -> RegressionInput:
    """Read formulas, the table and the rules, and leave out rows if that is wanted.

    ``beside`` says which columns are needed for something else than the model, and what for.
    """
    model = read_model(formulas)
    outcomes = outcome_names(model)
    selections = read_selections(select, outcomes)
    told = read_kinds(kinds, outcomes)
    latent = {*(str(one.by) for one in selections)}
    latent |= {name for name, kind in told.items() if kind != "continuous"}
    measured = [name for name in outcomes if name not in latent]
    words = {name: kind for name, kind in told.items() if not isinstance(kind, str)}
    table, columns = _read_columns(wanted, measured, words)
    told = {name: as_in_column(columns, name, kind) for name, kind in told.items()}
    for name, data in columns.intervals.items():
        doubt_two_values(name, data.values[data.seen], told.get(name))
    # Rules may speak of covariates too.
    stated = rules(wanted.seen) if wanted.seen else None
    labels = table.labels_of_index
    if wanted.index:
        labels = table.labels(list(table.names).index(wanted.index))
    with rows_told(range(columns.rows), table.lines, labels):
        spoken = stated.names if isinstance(stated, Rules) else ()
        asked = _asked(columns, model, outcomes, beside, spoken)
        rows = _known_rows(columns, asked, drop_missing)
    outcomes_read = _outcome_table(columns, outcomes, labels)
    plain = stated is not None and wanted.limits is None and not wanted.saturated
    rule = stated if plain else read_rule(wanted, outcomes_read)
    columns = _saturated(wanted, columns, outcomes_read, rule)
    # What is no measurement has no blank cells to speak of.
    latent |= set(outcomes) - set(columns.intervals)
    mask, note = _blanks(wanted, outcomes_read, rule, latent, selections)
    if rows.size < columns.rows:
        columns = columns.take(rows)
        rule = None if rule is None else rule.for_rows(rows, len(outcomes_read))
        mask = None if mask is None else mask[rows]
    known = [*selections, *([] if rule is None else [rule])]
    measured = [*columns.intervals]
    # As they are fitted: saturated values are hidden.
    cells = _outcome_table(columns, outcomes, None)
    description = f"{rows.size} rows"
    if measured:
        description = _only(cells, measured).describe()
    return RegressionInput(
        model,
        columns,
        known,
        told or None,
        mask,
        rows.tolist(),
        table.lines,
        labels,
        description,
        note,
    )


# Words of the command.


def read_model(formulas: Sequence[str]) -> str | dict[str, str]:
    """Return one formula as it is, and several as what each outcome depends on."""
    if len(formulas) == 1:
        outcome_names(formulas[0])
        return formulas[0]
    out: dict[str, str] = {}
    for formula in formulas:
        for name in outcome_names(formula):
            if name in out:
                raise InputError(f"{name} is the outcome of two formulas; an outcome has one.")
            out[name] = formula[_tilde(formula) + 1 :].strip()
    return out


def _tilde(formula: str) -> int:
    """Return where the right side begins: a sign in backticks belongs to a name."""
    quoted = False
    for place, character in enumerate(formula):
        quoted ^= character == "`"
        if character == "~" and not quoted:
            return place
    raise InputError(f"{formula!r} has no ~ between outcomes and what they depend on.")


def read_selections(select: Sequence[str] | None, outcomes: Sequence[str]) -> list[Selection]:
    """Read what --select says: 'wage: works', 'wage, hours: works', 'y0: not works'."""
    out = []
    for text in select or ():
        before, colon, by = text.rpartition(":")
        words = by.split()
        when = words[:1] != ["not"]
        by = by.strip() if when else by.strip()[3:].strip()
        if not colon or not by or not before.strip():
            raise InputError(
                f"--select is written as 'wage: works', or 'wage: not works'; got {text!r}."
            )
        names = split_names(before)
        for name in (*names, by):
            if name not in outcomes:
                raise InputError(
                    f"--select {shlex.quote(text)} speaks of {name}, which has no equation; the "
                    f"equations are of {listed(list(outcomes))}. Add a formula: "
                    f"{shlex.quote(f'{name} ~ …')}."
                )
        out.append(Selection(names, by, when))
    return out


def read_kinds(kinds: Sequence[str] | None, outcomes: Sequence[str]) -> dict[str, Any]:
    """Read what --kind says: 'works: binary', 'grade: low < mid < high'."""
    out: dict[str, Any] = {}
    for text in kinds or ():
        before, colon, kind = text.rpartition(":")
        kind = kind.strip()
        categories = [one.strip() for one in kind.split("<")]
        if not colon or (kind not in KINDS and (len(categories) < 2 or not all(categories))):
            raise InputError(
                f"--kind is written as 'works: binary' ({', '.join(KINDS)}), or with categories from "
                f"the lowest to the highest, 'grade: low < mid < high'; got {text!r}."
            )
        for name in split_names(before):
            if name not in outcomes:
                raise InputError(
                    f"--kind speaks of {name}, but the outcomes are {listed(list(outcomes))}."
                )
            if name in out:
                raise InputError(f"--kind speaks of {name} twice.")
            out[name] = kind if kind in KINDS else categories
    return out


def read_fixed(given: Sequence[str] | None) -> dict[str, dict[str, float]] | None:
    """Read what --fixed says: 'lead: age=0.04', 'lead, zinc: age=0'."""
    out: dict[str, dict[str, float]] = {}
    for text in given or ():
        # A name of a term may have an equals sign of its own.
        coefficient, _, value = text.rpartition("=")
        outcomes, term = _coefficient("--fixed", text, coefficient, "lead: age=0.04")
        try:
            number = float(value)
        except ValueError:
            raise InputError(
                f"--fixed gives a coefficient a number, as in 'lead: age=0.04'; got {value.strip()!r} "
                f"in {text!r}."
            ) from None
        for outcome in outcomes:
            if term in out.setdefault(outcome, {}):
                raise InputError(f"--fixed speaks of {term} of {outcome} twice.")
            out[outcome][term] = number
    return out or None


def read_equal(given: Sequence[str] | None) -> list[list[tuple[str, str]]] | None:
    """Read what --equal says: 'lead, zinc: age', or 'lead: age = zinc: years'."""
    out = []
    for text in given or ():
        group = []
        for part in text.split(" = "):
            outcomes, term = _coefficient("--equal", text, part, "lead, zinc: age")
            group += [(outcome, term) for outcome in outcomes]
        if len(group) < 2:
            raise InputError(
                "--equal speaks of two coefficients at least, as in 'lead, zinc: age' or 'lead: age = "
                f"zinc: years'; got {text!r}."
            )
        out.append(group)
    return out or None


def _coefficient(option: str, text: str, part: str, example: str) -> tuple[list[str], str]:
    """Return the outcomes and the term of a coefficient."""
    before, _, term = part.partition(":")
    if not before.strip() or not term.strip():
        raise InputError(f"{option} is written as '{example}'; got {text!r}.")
    return split_names(before), term.strip()


def read_truncated(given: str | None) -> dict[str, str] | None:
    """Read what --truncated says: 'wage: >=0'."""
    if given is None:
        return None
    name, _, where = given.partition(":")
    if not name.strip() or not where.strip():
        raise InputError(f"--truncated is written as 'wage: >=0'; got {given!r}.")
    return {name.strip(): where.strip()}


# The table.


def _read_columns(
    wanted: TableOptions, measured: Sequence[str], categories: Mapping[str, Sequence[str]]
) -> tuple[Columns, MixedColumns]:
    form = cell_form(wanted)
    table: Columns
    if wanted.data.lower().endswith(PARQUET):
        table = open_parquet(wanted.data, {wanted.index, *measured})
    else:
        table = FileColumns(open_csv(wanted, form))
    if wanted.index and wanted.index not in table.names:
        raise InputError(f"--index: there is no column {wanted.index!r} in {table.source}.")
    read = read_mixed(table, form, measured, categories=categories, **how_to_read(wanted))
    return table, read


def as_in_column(columns: PlainColumns, name: str, kind: Any) -> Any:
    """Return categories as the column has them: as numbers, truths or texts."""
    if isinstance(kind, str) or name not in columns.names:
        return kind
    values = columns[name]
    if values.dtype.kind == "f":
        try:
            return [float(one) for one in kind]
        except ValueError:
            raise InputError(
                f"--kind has categories of {name} that are texts, {' < '.join(kind)}, but the column "
                "holds numbers."
            ) from None
    if any(isinstance(one, bool) for one in values):
        truths = {"true": True, "false": False}
        return [truths.get(one.casefold(), one) for one in kind]
    return kind


def _asked(
    columns: MixedColumns,
    model: str | dict[str, str],
    outcomes: Sequence[str],
    beside: Mapping[str, str | None],
    of_rules: Sequence[str],
) -> dict[str, str]:
    """Return the columns beside the outcomes that are needed in every row, and what for."""
    asked = dict.fromkeys(read_formula(model, columns.names).variables, "the regressor")
    asked |= {name: "the column of a rule," for name in of_rules if name not in asked}
    for what, name in beside.items():
        if name is not None:
            asked.setdefault(name, f"the column of {what}")
    return {name: what for name, what in asked.items() if name not in outcomes}


def _known_rows(columns: MixedColumns, asked: Mapping[str, str], drop: bool) -> NDArray[np.intp]:
    """Return the rows in which these columns are known; raise where some are not, unless dropped."""
    missing = np.zeros(columns.rows, dtype=bool)
    first: tuple[int, str] | None = None
    counts = {}
    for name, what in asked.items():
        columns.check(name, what)
        own = np.array([one is None or one != one for one in columns[name].tolist()], dtype=bool)
        if own.any():
            counts[name] = int(own.sum())
            here = int(np.flatnonzero(own)[0]), name
            first = here if first is None else min(first, here)
        missing |= own
    if first is None:
        return np.arange(columns.rows)
    by_column = ", ".join(f"{count} in {name}" for name, count in counts.items())
    total = int(missing.sum())
    rows = "1 row" if total == 1 else f"{total} rows"
    if not drop:
        raise InputError(
            f"the value is missing, but what outcomes depend on must be known in every row "
            f"({by_column}; {rows} in all). Pass --drop-missing to leave such rows out, or make the "
            "column an outcome of its own, so that it is modelled.",
            *first,
        )
    say(f"left out {rows} of {columns.rows}, in which values are missing ({by_column}).")
    kept = np.flatnonzero(~missing)
    if not kept.size:
        raise InputError("no row is left in which everything that outcomes depend on is known.")
    return kept


def _outcome_table(
    columns: MixedColumns, outcomes: Sequence[str], labels: Sequence[str] | None
) -> IntervalData:
    """Put the outcomes side by side; nothing is told of those that are no measurements."""
    shape = columns.rows, len(outcomes)
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    marked = np.zeros(shape, dtype=bool)
    for j, name in enumerate(outcomes):
        if name in columns.intervals:
            own = columns.intervals[name]
            lower[:, j], upper[:, j] = own.lower[:, 0], own.upper[:, 0]
            marked[:, j] = own.not_detected[:, 0]
    return IntervalData(lower, upper, list(outcomes), labels=labels, not_detected=marked)


def _only(data: IntervalData, names: Sequence[str]) -> IntervalData:
    place = [data.names.index(name) for name in names]
    return IntervalData(
        data.lower[:, place],
        data.upper[:, place],
        list(names),
        not_detected=data.not_detected[:, place],
    )


# Rules.


def _saturated(
    wanted: TableOptions, columns: MixedColumns, data: IntervalData, rule: Missingness | None
) -> MixedColumns:
    if not wanted.saturated or (rule is None and wanted.limit):
        return columns
    if rule is None:
        raise InputError("--saturated needs the limits, from --seen, --limits or --limit.")
    data = data.saturated(rule)
    return columns.with_intervals({name: _only(data, [name]) for name in columns.intervals})


def _blanks(
    wanted: TableOptions,
    data: IntervalData,
    rule: Missingness | None,
    latent: set[str],
    selections: Sequence[Selection],
) -> tuple[Mask | None, str]:
    """Return which blank cells are missing at random, and what to say of them."""
    measured = np.array([name not in latent for name in data.names])
    blank = data.blank & measured
    if rule is None:
        return _unruled(wanted, data, blank, selections)
    if wanted.blank is Blank.RANDOM:
        return blank, ""
    if wanted.blank is Blank.HIDDEN:
        return None, ""
    marked = ((~data.seen & ~data.at_random) | data.not_detected).any(axis=0)
    mask = blank & marked
    if not mask.any():
        return None, ""
    names = [data.names[j] for j in np.flatnonzero(mask.any(axis=0))]
    return mask, (
        f"blank cells in column {listed(names)} are taken to be missing at random, since other cells "
        "there say that they were not detected. Pass --blank hidden to say otherwise."
    )


def _unruled(
    wanted: TableOptions, data: IntervalData, blank: Mask, selections: Sequence[Selection]
) -> tuple[None, str]:
    """Say how blank cells are read where no rule speaks of them."""
    if wanted.blank is Blank.HIDDEN:
        raise InputError(
            "--blank hidden says that a rule hid the blank cells, but none is stated; use --seen or "
            "--limits."
        )
    marked = np.flatnonzero(data.not_detected.any(axis=0))
    if marked.size:
        name = data.names[int(marked[0])]
        raise InputError(
            f"{name}: {int(data.not_detected[:, marked[0]].sum())} cells are not detected, at a limit "
            f"that is not said. State the limit, as in --seen {shlex.quote(f'{name}: >=0.5')}."
        )
    selected = {name for one in selections for name in one.outcomes}
    count = int(sum(blank[:, j].sum() for j, name in enumerate(data.names) if name not in selected))
    if not count:
        return None, ""
    return None, (
        f"no rule is stated, so {count} blank cells of outcomes are taken to be missing at random. If "
        "they are blank because of their values, state the rule with --seen or --limits."
    )
