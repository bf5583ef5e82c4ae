"""Sentences of the page: what was learned, what the rule and the method are, how to repeat it."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen import missingness
from halfseen.data.interval_data import IntervalData
from halfseen.errors import InputError
from halfseen.missingness.base import ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.missingness.selection import Selection
from halfseen.missingness.self_selection import SelfSelection
from halfseen.missingness.sets import Interval, SeenSet
from halfseen.missingness.truncation import RowTruncation
from halfseen.report.numbers import percent, readable, signed
from halfseen.solvers.inference.fitted_table import original_table
from halfseen.solvers.result import Note, Status, name_some
from halfseen.solvers.structures import Structure
from halfseen.solvers.summary import degrees_in_words, powers_in_words, shorten
from halfseen.version import __version__

if TYPE_CHECKING:
    from halfseen.results import Fit

BELIEFS = {
    "full":
        "Every value and every hole is used. A hidden cell is believed to have been hidden by the rule, "
        "unless it was said to be missing at random: if values are missing for other reasons too and "
        "this was not said, means are pulled towards the hidden side.",
    "pairwise":
        "Seen values and who is hidden are used, two columns at a time. A hidden cell is believed to "
        "have been hidden by the rule: if values are missing for other reasons too, means are pulled "
        "towards the hidden side.",
    "truncation":
        "Only seen values are used, so the answer stays right when some cells are missing for reasons "
        "that have nothing to do with any value. The price is a wider error. What must be right is the "
        "set in which values are shown.",
    "truncation_psgd":
        "Only seen values are used, by the paper's stochastic gradient descent, so the answer stays "
        "right when some cells are missing for reasons that have nothing to do with any value. What "
        "must be right is the set in which values are shown.",
    "truncated_sgd":
        "Rows are shown whole or not at all, and nobody counted those that were not shown. Only the "
        "rows at hand are used, and the set in which rows are shown must be right.",
    "missing_descent":
        "The covariance is taken as known, and only the mean is learned. The linear thresholds that "
        "show or hide a value must be right.",
}  # fmt: skip
LONGEST_RULE = 500
# Names of columns that take more characters than this are not written out in the call.
LONGEST_NAMES = 4000
# Where an object lies in memory says nothing, and differs from run to run.
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Calls of the library in the text of a rule, where they do not stand in a name.
PUBLIC = re.compile(rf"(?<![\w.'\"])(?={'|'.join(missingness.__all__)}\b)")
# How open sets are shown, and the Python that makes them; that of sets such as [0, 1) is long.
OPEN = {"above": "~at_most", "below": "~at_least"}
HALF_OPEN = re.compile(r"\[[^][(), ]+, [^][(), ]+\)|(?<!\w)\([^][(), ]+, [^][(), ]+[])]")
# Where a rule, or a model, is longer than this, a call has a variable in its place.
LONGEST_PART = 300
# Methods that draw random numbers, so that a seed belongs to the call.
SAMPLING = ("full", "truncation_psgd", "truncated_sgd", "missing_descent")
PAPER = (
    "Arnab Bhattacharyya, Constantinos Daskalakis, Themis Gouleakis, Yuhao Wang. "
    "Learning High-dimensional Gaussians from Censored Data."
)
# Lines of a rule that are shown, and names in a line.
MOST_LINES, MOST_NAMES = 12, 8
BY_ROW = "shown beyond limits that differ by row"


def learned(
    fit: Fit, missing: float, columns: Sequence[dict[str, Any]], pairs: dict[str, Any] | None
) -> list[str]:
    """Say in a few sentences what was learned, and what it changes.

    ``missing`` is the share of all cells of which nothing is known.
    """
    d = len(fit.names)
    hidden = float(1.0 - np.mean(fit.seen_share))
    what = "one column" if d == 1 else f"{d} columns"
    shares = [(hidden - missing, "hidden by a limit or a rule"), (missing, "missing at random")]
    told = [f"{percent(share)} of the cells are {word}" for share, word in shares if share > 1e-12]
    first = (
        f"In a table of {fit.rows:,} rows and {what}, {' and '.join(told)}. "
        if told
        else f"Every cell of a table of {fit.rows:,} rows and {what} is seen. "
    )
    spread = "the mean and the spread" if d == 1 else "the means, the spreads and the correlations"
    first += f"This page shows {spread} behind it, as learned by the method “{fit.method}”."
    out = [first]
    if fit.tails is not None:
        out.append(
            f"Rows are taken for those of a t distribution ({degrees_in_words(fit.tails)}): means are "
            "its location, and standard deviations its scales."
        )
    if fit.method == "truncated_sgd":
        out += _shift(columns, "Taking the rows as they are shown")
    elif hidden > 0.0:
        what = "hidden" if hidden > missing else "missing"
        out += _shift(columns, f"Leaving the {what} cells out") + _turned(columns, pairs)
    return out


def _shift(columns: Sequence[dict[str, Any]], doing: str) -> list[str]:
    """How far naive means and deviations are from the recovered ones."""
    moves, ratios = [], []
    for column in columns:
        naive, own = column["naive"], column["recovered"]
        if naive["mean"] is None or not own["deviation"]:
            continue
        moves.append(((naive["mean"] - own["mean"]) / own["deviation"], column["label"]))
        if naive["deviation"] is not None:
            ratios.append(naive["deviation"] / own["deviation"])
    if not moves:
        return []
    move, name = max(moves, key=lambda pair: abs(pair[0]))
    if abs(move) < 0.01:
        return [f"{doing} would have given nearly the same means."]
    way = "above" if move > 0.0 else "below"
    text = (
        f"{doing} would put the mean of {shorten(name, 60)} {abs(move):.2f} "
        f"standard deviations {way} the recovered one"
    )
    if len(moves) > 1:
        average = float(np.mean([abs(m) for m, _ in moves]))
        text += f" (the largest such shift; {average:.2f} on average over the columns)"
    ratio = float(np.median(ratios)) if ratios else 1.0
    if abs(ratio - 1.0) >= 0.005:
        size = "small" if ratio < 1.0 else "large"
        typical = "the" if len(ratios) == 1 else "a typical"
        text += (
            f", and would make {typical} standard deviation {percent(abs(1.0 - ratio))} too {size}"
        )
    return [text + "."]


def _turned(columns: Sequence[dict[str, Any]], pairs: dict[str, Any] | None) -> list[str]:
    """Name the correlation that changes most."""
    if pairs is None:
        return []
    best, where = 0.0, None
    i, j = np.triu_indices(len(columns), 1)
    for k, (old, new) in enumerate(zip(pairs["naive"], pairs["recovered"], strict=True)):
        if None not in (old, new) and not pairs["known"][k] and abs(new - old) > best:
            best, where = abs(new - old), k
    if where is None or best < 0.02:
        return []
    a, b = (shorten(columns[k]["label"], 60) for k in (int(i[where]), int(j[where])))
    old, new = pairs["naive"][where], pairs["recovered"][where]
    return [
        f"The correlation that changes most is that of {a} and {b}: {signed(old)} among the rows in "
        f"which both are seen, {signed(new)} recovered."
    ]


def status_of(fit: Fit, diagnosis: Any = None) -> dict[str, Any]:
    """Return the status: its name, how serious it is, its sentence, the notes, and what checks found."""
    texts = [] if fit.loss is None else fit.loss.sentences(fit.names)
    return described_status(fit.status, texts, fit.notes) | {"found": _named(checks(diagnosis))}


def _named(checked: dict[str, Any] | None) -> list[tuple[str, list[str]]]:
    """Return the titles of findings that are not fine, with their columns, by how serious they are."""
    out = []
    for level in ("problem", "look"):
        columns: dict[str, list[str]] = {}
        for item in (checked or {"findings": ()})["findings"]:
            if item["level"] == level:
                own = columns.setdefault(item["title"], [])
                own += [shorten(name, 40) for name in item["columns"]]
        titles = [f"{t} ({name_some(own, 6)})" if own else t for t, own in columns.items()]
        out += [(level, titles)] if titles else []
    return out


def described_status(status: Status, texts: Sequence[str], notes: Sequence[Note]) -> dict[str, Any]:
    """Return a status with some texts, and with those of the notes."""
    level = "ok" if status.severity == 0 else "look"
    if status.severity >= Status.ON_DOMAIN_EDGE.severity:
        level = "problem"
    # A note without a text says its status, unless the page says it already.
    said = [*texts, *(note.text or note.status.value for note in notes)]
    return {
        "name": status.name.lower().replace("_", " "),
        "level": level,
        "sentence": status.value,
        "notes": [text for text in dict.fromkeys(said) if text != status.value],
    }


def assumptions(fit: Fit, transformed: bool) -> list[dict[str, Any]]:
    """Say what had to be believed for the numbers on the page to be right.

    Each has a title, a text, and where there is something to quote ``lines`` or a ``code``.
    """
    scale = " after the transformations named above" if transformed else ""
    if fit.powers is not None:
        scale += (
            f" (learned: {powers_in_words(fit)}; intervals in original units take account of it)"
        )
    law = "normal" if fit.tails is None else "t"
    return [
        {
            "title": "The distribution",
            "text": f"Rows are independent draws from one multivariate {law} distribution{scale}. "
            "The hidden side is filled in from the shape of the seen side, so a skewed column that "
            "was not transformed is recovered wrongly even if its limit is right.",
        },
        {"title": "The rule", **_rule_of(fit)},
        {
            "title": f"The method, {fit.method}",
            "text": BELIEFS.get(fit.method, "See the documentation of the method."),
        },
    ]


def written(rule: Missingness) -> str:
    """Return a rule as it is written, the same in each run."""
    return ADDRESS.sub("", repr(rule))


def in_call(rule: Missingness, lines: list[str]) -> str:
    """Return a rule as Python that makes it, or a variable, of which ``lines`` say what it is."""
    text = written(rule)
    if (
        "array of shape" in text
        or "<" in text
        or HALF_OPEN.search(text)
        or len(text) > LONGEST_PART
    ):
        lines.append(f"# rule is {shorten(text, LONGEST_PART)}")
        return "rule"
    for shown, code in OPEN.items():
        text = re.sub(rf"(?<![\w.'\"]){shown}(?=\()", code, text)
    return named_publicly(text)


def named_publicly(text: str) -> str:
    """Put the name of the library before what is its own."""
    return PUBLIC.sub("hs.", text)


def _rule_of(fit: Fit) -> dict[str, Any]:
    """Say which rule was believed: a text, and the rule in words, or as it is written without any."""
    if fit.source is None:
        text = (
            "This fit does not hold its table and its rule. Whatever hid the values is believed to be "
            "known."
        )
        return {"text": text}
    rule, own = fit.source.stated_rule, _own_limits(original_table(fit))
    texts: list[str] = []
    code = lines = None
    if own:
        many = "One cell says its own limits" if own == 1 else f"{own:,} cells say their own limits"
        texts.append(f"{many}, as in “<0.05”, and these are believed to be right.")
    if rule is not None:
        lines = in_words(rule, fit.names)
        code = shorten(written(rule), LONGEST_RULE) if lines is None else None
        texts.append(_introduction(rule, bool(own)))
        if any(BY_ROW in line for line in lines or ()):
            texts.append("The limits are listed under “Column by column”.")
    elif not own:
        texts.append("No rule was given.")
    # Cells that are hidden and say nothing.
    if rule is None and round(float(np.sum(1.0 - fit.seen_share)) * fit.rows) > own:
        texts.append("Blank cells are believed to be missing at random.")
    if own or rule is not None:
        texts.append("A wrong limit moves the mean.")
    return {"text": " ".join(texts), "code": code, "lines": lines}


def _introduction(rule: Missingness, some_say: bool) -> str:
    if isinstance(rule, RowTruncation):
        return "Rows are shown if this set holds them, and not at all otherwise."
    who = "Of the other cells, a" if some_say else "A"
    return (
        f"{who} value is shown where this rule holds, and hidden otherwise; it is told in the units "
        "of the table."
    )


def _own_limits(table: Any) -> int:
    """Count the cells that say their own limits."""
    if not isinstance(table, IntervalData):
        return 0
    limited = np.isfinite(table.lower) | np.isfinite(table.upper)
    return int((limited & ~table.seen).sum())


def checks(diagnosis: Any) -> dict[str, Any] | None:
    """Return the findings of a diagnosis; its text where it has none."""
    if diagnosis is None:
        return None
    findings = []
    for item in getattr(diagnosis, "findings", None) or ():
        level, column = str(getattr(item, "level", "look")), getattr(item, "column", None)
        level = level if level in ("ok", "look", "problem") else "look"
        texts = {key: str(getattr(item, key, "")) for key in ("title", "text")}
        column = None if column is None else str(column)
        named = getattr(item, "columns", None) or ([] if column is None else [column])
        columns = [str(name) for name in named]
        findings.append({"level": level, **texts, "column": column, "columns": columns})
    return {"findings": findings, "text": None if findings else str(diagnosis)}


def _is_text(asked: Any) -> bool:
    """Whether transforms were told as words, for all columns, for each or by name."""
    words = asked.values() if isinstance(asked, dict) else asked
    several = isinstance(words, list | tuple) or isinstance(asked, dict)
    return isinstance(asked, str) or (several and all(isinstance(w, str) for w in words))


def call_of(fit: Fit) -> str:
    """Put together the call that repeats a fit, as far as the fit knows it."""
    source = fit.source
    method = f'method="{fit.method}"'
    if source is None:
        return f"fit = hs.fit(X, rule, {method})"
    lines: list[str] = []
    arguments = ["data" if isinstance(original_table(fit), IntervalData) else "X"]
    rule = source.stated_rule
    if rule is not None:
        arguments.append(in_call(rule, lines))
    arguments.append(method)
    given_too = dict(source.call or source.options)
    seed = given_too.pop("random_state", fit.history.get("seed", source.seed))
    if _is_text(asked := given_too.pop("transforms", None)):
        # As they were asked for: powers are learned again, which the likelihood counts.
        arguments.append(f"transforms={json.dumps(asked, ensure_ascii=False)}")
        learned = [t.name for t in fit.transforms or () if t.name.startswith(("boxcox", "yeo"))]
        if learned:
            lines.append(f"# powers: {shorten(', '.join(learned), 300)}")
    for name, value in given_too.items():
        if isinstance(value, bool | str | int | float):
            text = json.dumps(value) if isinstance(value, str) else repr(value)
            arguments.append(f"{name}={text}")
        elif name == "names" and len(text := json.dumps(value, ensure_ascii=False)) < LONGEST_NAMES:
            arguments.append(f"names={text}")
        elif isinstance(value, Structure) and len(value.name) < LONGEST_NAMES:
            arguments.append(f"{name}={json.dumps(value.name)}")
        elif value is not None:
            arguments.append(f"{name}={name}")
    if source.missing_at_random is not None and "missing_at_random" not in given_too:
        arguments.append("missing_at_random=missing_at_random")
    if fit.transforms is not None and not _is_text(asked):
        pairs = zip(fit.names, fit.transforms, strict=True)
        scales = {name: t.name for name, t in pairs if t.name != "none"}
        arguments.append(f"transforms={json.dumps(scales, ensure_ascii=False)}")
    if fit.method in SAMPLING:
        arguments.append(f"random_state={seed!r}")
    lines.append(f"fit = hs.fit({', '.join(arguments)})")
    return "\n".join(lines)


def versions() -> dict[str, str]:
    """Return the versions that the numbers came from."""
    import numba
    import scipy

    return {
        "halfseen": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "Numba": numba.__version__,
    }


def hidden_names(names: Sequence[str], shown: int) -> str | None:
    """Say which columns are left out of a page that would be too large."""
    rest = list(names[shown:])
    if not rest:
        return None
    return (
        f"The page shows the first {shown} of {len(names)} columns; left out are "
        f"{name_some([shorten(n, 40) for n in rest])}. All were learned together."
    )


def in_words(rule: Missingness, names: Sequence[str]) -> list[str] | None:
    """Say where values are shown, a line for each condition; None where a rule has no words.

    Parameters
    ----------
    rule : Missingness
    names : sequence of str
        Of the columns of the table.

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.report.words import in_words
    >>> in_words(hs.SelfSelection([[0, 1]]), ["first bid", "second bid", "price"])
    ['Of first bid and second bid, only the largest of a row is shown.']
    >>> in_words(hs.DetectionLimits(lower=[0.5, 0.5]), ["lead", "zinc"])
    ['lead, zinc: shown at 0.5 and above.']
    """
    names = [shorten(name, 60) for name in names]
    try:
        matched = rule.for_columns(names)
    except InputError:
        return None
    # Of a rule that speaks of other columns too there are no names here.
    lines = _lines(matched, names) if matched.width in (None, len(names)) else None
    if lines is not None and len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES + 1
        return [*lines[: MOST_LINES - 1], f"… and {rest} more conditions."]
    return lines


def compared(rule: Missingness | None, names: Sequence[str]) -> set[int]:
    """Return the columns that are hidden by the larger values of others, so that no limit is theirs.

    Parameters
    ----------
    rule : Missingness or None
    names : sequence of str
        Of the columns of the table.

    Examples
    --------
    >>> import halfseen as hs
    >>> from halfseen.report.words import compared
    >>> compared(hs.SelfSelection([[0, 2]]), ["first bid", "price", "second bid"])
    {0, 2}
    """
    try:
        rule = None if rule is None else rule.for_columns(names)
    except InputError:
        return set()
    if isinstance(rule, SelfSelection):
        groups = rule.groups or [tuple(range(len(names)))]
        return {int(k) for group in groups for k in group}
    if isinstance(rule, Combined):
        parts = [
            ([int(c) for c in own], compared(part, [names[int(c)] for c in own]))
            for own, part in rule.parts
        ]
        return {own[k] for own, held in parts for k in held}
    return set()


def _lines(rule: Missingness, names: Sequence[str]) -> list[str] | None:
    if isinstance(rule, Combined):
        parts = [_lines(part, [names[int(c)] for c in own]) for own, part in rule.parts]
        if any(part is None for part in parts):
            return None
        return [line for part in parts for line in part or ()]
    if isinstance(rule, SelfSelection):
        return _winners(rule, names)
    if isinstance(rule, Selection):
        told = name_some([names[k] for k in rule.places], MOST_NAMES)
        when = "positive" if rule.when else "not positive"
        return [f"{told}: shown where the index behind {names[rule.index]} is {when}."]
    if isinstance(rule, LinearThreshold):
        return _thresholds(rule, names)
    if isinstance(rule, ColumnwiseMissingness):
        return _by_column(rule, names)
    return None


def _winners(rule: SelfSelection, names: Sequence[str]) -> list[str]:
    groups = rule.groups or [tuple(range(len(names)))]
    word = "largest" if rule.largest else "smallest"
    return [
        f"Of {_and([names[int(k)] for k in group])}, only the {word} of a row is shown."
        for group in groups
    ]


def _and(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMES:
        return name_some(list(names), MOST_NAMES)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _thresholds(rule: LinearThreshold, names: Sequence[str]) -> list[str]:
    lines = []
    for name, weights, bound, never in zip(names, rule.V, rule.b, rule.never_seen, strict=True):
        if never:
            lines.append(f"{name}: never shown.")
        elif weights.any():
            lines.append(f"{name}: shown where {_inequality(weights, float(bound), names)}.")
    return lines or ["Every value is shown."]


def _inequality(weights: np.ndarray, bound: float, names: Sequence[str]) -> str:
    """Write ``weights @ row <= bound`` with as few signs as can be."""
    sign = "≤"
    # Turned round where that leaves fewer minus signs.
    minus, plus = (weights < 0.0).sum(), (weights > 0.0).sum()
    if minus > plus or (minus == plus and bound < 0.0):
        weights, bound, sign = -weights, -bound, "≥"
    terms = ""
    order = [*np.flatnonzero(weights > 0.0), *np.flatnonzero(weights < 0.0)]
    for k in order:
        size = abs(float(weights[k]))
        term = names[k] if size == 1.0 else f"{readable(size)} × {names[k]}"
        between = (" − " if weights[k] < 0.0 else " + ") if terms else ""
        terms += between + term
    if bound == 0.0 and len(order) == 2 and weights[order[0]] == -weights[order[1]] == 1.0:
        return f"{names[order[0]]} {sign} {names[order[1]]}"
    return f"{terms} {sign} {readable(bound)}"


def _by_column(rule: ColumnwiseMissingness, names: Sequence[str]) -> list[str] | None:
    alike: dict[str, list[str]] = {}
    for j, name in enumerate(names):
        shown = rule.column_rule(j).seen_set
        if shown is None:
            text = BY_ROW
        elif shown.pieces is None:
            return None
        else:
            text = _set_in_words(shown)
        alike.setdefault(text, []).append(name)
    always = "always shown"
    return [
        f"{name_some(own, MOST_NAMES)}: {text}."
        for text, own in alike.items()
        if text != always or len(alike) > 1
    ] or ["Every value is shown."]


def _set_in_words(shown: SeenSet) -> str:
    pieces = shown.pieces or ()
    if any(np.isinf(p.lower) and np.isinf(p.upper) for p in pieces):
        return "always shown"
    return "shown " + ", and ".join(map(_piece_in_words, pieces))


def _piece_in_words(piece: Interval) -> str:
    low, high = readable(piece.lower), readable(piece.upper)
    if np.isinf(piece.lower):
        return f"at {high} and below" if piece.closed_upper else f"below {high}"
    if np.isinf(piece.upper):
        return f"at {low} and above" if piece.closed_lower else f"above {low}"
    return f"from {low} to {high}"
