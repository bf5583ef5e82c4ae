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
from halfseen.missingness.base import Missingness
from halfseen.missingness.truncation import RowTruncation
from halfseen.report.numbers import percent, signed
from halfseen.report.rule_words import BY_ROW, in_words
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
