"""What a person should know about a table, in plain words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from halfseen.diagnostics.checked_table import CheckedTable
from halfseen.diagnostics.marks import Mark
from halfseen.diagnostics.normality import (
    CONSTANT,
    NEVER_SEEN,
    WRONG_SCALE,
    Normality,
    NormalityTest,
)
from halfseen.diagnostics.together import Losses
from halfseen.errors import argument, spelled
from halfseen.missingness.base import ColumnwiseMissingness
from halfseen.solvers.prepared_table import FEW_JOINT_ROWS
from halfseen.solvers.result import Status, name_some

Level = Literal["ok", "look", "problem"]
LEVELS: tuple[Level, ...] = ("ok", "look", "problem")
# Adjusted p-values below these are told, and called strong.
DOUBTFUL, STRONG = 0.05, 0.01
# A normal distribution that misplaces a tenth of the cells is a problem, not only a fine point.
LARGE_DISTANCE = 0.1
# Columns of which less than this share is seen rest on their rule more than on their values.
MOSTLY_HIDDEN = 0.8
# So many columns that fail alike are told of together.
FEWEST_TOGETHER = 3
# Names that are written out where many columns are told of.
MOST_NAMES = 6
# Reasons why a column was not tested that have findings of their own.
TOLD_ELSEWHERE = (CONSTANT, NEVER_SEEN)
# Titles of what ``mechanism`` finds.
TITLES = {
    "on the limit": "Values pile up on the limit",
    "substituted": "Values look substituted",
    "gap": "The limit looks wrong",
    "limits only where hidden": "Limits are given only where values are hidden",
    "other limits": "Cells state other limits than the rule",
    "nothing hidden": "Nothing is hidden",
    "at random": "Hidden cells look missing at random",
    "hidden too often": "More is hidden than the limits explain",
    "cut off": "Values stop where cells are blank",
}


@dataclass(frozen=True)
class Finding:
    """One thing to know: how serious it is, a title, a text, and the column it is about.

    Attributes
    ----------
    level : {"ok", "look", "problem"}
    title : str
    text : str
        What was found, and what to do about it.
    column : str or None
        The column that it is about; None where it is about several, or about the whole table.
    columns : tuple of str
        All columns that it is about.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> x = np.maximum(np.random.default_rng(0).normal(size=(300, 1)), -0.5)  # a sensor that clips
    >>> finding = hs.diagnose(x, hs.DetectionLimits(lower=-0.5)).findings[0]
    >>> finding.level, finding.title, finding.column
    ('problem', 'Values pile up on the limit', 'x0')
    """

    level: Level
    title: str
    text: str
    column: str | None = None
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.column is not None and not self.columns:
            object.__setattr__(self, "columns", (self.column,))


def collect(
    table: CheckedTable,
    counts: NDArray[np.int_],
    marks: tuple[Mark, ...],
    losses: Losses,
    normality: Normality,
    suggested: dict[str, str],
    status: Status | None = None,
) -> tuple[Finding, ...]:
    """Put everything that was found into words, the most serious first.

    Within a level by what it changes: what the rule says of the cells, whether the fit is there at all,
    the shape that fills the hidden side, and then what is hardly known. What holds for many columns is
    one finding.
    """
    wrong = {mark.column for mark in marks if mark.level == "problem"}
    findings = [
        *_of_contradictions(table, wrong),
        *_of_marks(marks, table, losses),
        *_of_fit(status),
        *_of_losses(losses, marks),
        *_of_normality(normality, suggested, _conditions(table), wrong),
        *_of_columns(table),
        *_of_pairs(table, counts),
        *_of_blanks(table),
    ]
    ordered = sorted(findings, key=lambda finding: -LEVELS.index(finding.level))
    return tuple(_together(ordered))


def _together(findings: list[Finding]) -> Iterator[Finding]:
    """Tell once what holds for many columns, with the text of the first of them."""
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        if finding.column is not None:
            alike.setdefault((finding.level, finding.title), []).append(finding)
    for finding in findings:
        group = alike.get((finding.level, finding.title), [])
        if finding.column is None or len(group) < FEWEST_TOGETHER:
            yield finding
        elif finding is group[0]:
            names = tuple(one.column for one in group if one.column is not None)
            told = f"{len(names)} columns: {name_some(list(names), MOST_NAMES)}."
            same = all(one.text == finding.text for one in group)
            text = finding.text if same else f"Of {names[0]}: {finding.text}"
            yield Finding(finding.level, finding.title, f"{told} {text}", None, names)


def _of_contradictions(table: CheckedTable, explained: set[str]) -> Iterator[Finding]:
    # The mark of what was put in the place of values says more than that it contradicts the rule.
    left = [wrong for wrong in table.contradictions if wrong.column not in explained]
    for wrong in sorted(left, key=lambda wrong: -wrong.count):
        title = "The data contradict the rule"
        yield Finding("problem", title, _sentence(wrong.text), wrong.column)
    if table.broken is not None and not table.contradictions:
        yield Finding("problem", "The table needs a rule", _sentence(table.broken))
    if table.rule is not None and not table.contradictions and table.broken is None:
        yield Finding("ok", "No contradictions", "No seen value contradicts the rule.")


def _of_blanks(table: CheckedTable) -> Iterator[Finding]:
    for note in table.notes:
        yield Finding("look", "How blank cells are read", _sentence(note))
    if table.intervals is not None:
        return
    names = np.array(table.names, dtype=object)
    blank = names[(table.blank & ~table.excused).any(axis=0)].tolist()
    if not blank:
        return
    if table.rule is None:
        text = (
            f"No rule is stated, so hidden cells in {name_some(blank)} are taken to be missing at "
            "random. If values are hidden because of what they are, state the rule."
        )
    else:
        text = (
            f"Cells are hidden where the rule shows every value, in {name_some(blank)}. They are "
            "taken to be missing at random; state what hides them, if something does."
        )
    yield Finding("look", "Cells are hidden without a rule", text)


def _of_pairs(table: CheckedTable, counts: NDArray[np.int_]) -> Iterator[Finding]:
    i, j = np.triu_indices(len(table.names), 1)
    # A column that is never seen is told of by itself.
    ever = np.diag(counts) > 0
    i, j = i[ever[i] & ever[j]], j[ever[i] & ever[j]]
    if not i.size:
        return
    joint = counts[i, j]
    order = np.argsort(joint, kind="stable")
    pairs = [f"{table.names[i[k]]} ~ {table.names[j[k]]}" for k in order]
    never, few = int((joint == 0).sum()), int((joint < FEW_JOINT_ROWS).sum())
    text = "What is learned of their correlation rests on the rule more than on values."
    if never:
        # Where cells or groups tell more than a limit, that can be enough.
        by_column = isinstance(table.rule, ColumnwiseMissingness) or table.rule is None
        level: Level = "problem" if by_column and table.intervals is None else "look"
        yield Finding(level, "Pairs never seen together", f"{name_some(pairs[:never])}. {text}")
    if few > never:
        title = f"Pairs seen together in fewer than {FEW_JOINT_ROWS} rows"
        yield Finding("look", title, f"{name_some(pairs[never:few])}. {text}")
    if not few:
        text = f"Every pair is seen together in {joint.min()} rows or more (least: {pairs[0]})."
        yield Finding("ok", "Pairs are seen together", text)


def _beyond(table: CheckedTable, j: int) -> NDArray[np.bool_]:
    """Mask of the hidden cells of a column that are not known to lie between two numbers."""
    between = np.isfinite(table.lower[:, j]) & np.isfinite(table.upper[:, j])
    return table.hidden[:, j] & ~between


def _of_columns(table: CheckedTable) -> Iterator[Finding]:
    seen = table.seen
    beyond = np.array([_beyond(table, j).mean() for j in range(len(table.names))])
    for j in np.argsort(-beyond, kind="stable"):
        name = table.names[j]
        known = ~np.isneginf(table.lower[:, j]) | ~np.isposinf(table.upper[:, j])
        if not seen[:, j].any() and (table.intervals is None or not known.any()):
            text = "No value is seen, so nothing can be learned about this column. Leave it out."
            yield Finding("problem", "Never seen", text, name)
        elif seen[:, j].any() and np.unique(table.values[seen[:, j], j]).size < 2:
            text = (
                "All seen values are the same, so that they have no variance. Leave the column out."
            )
            yield Finding("problem", "Constant", text, name)
        elif beyond[j] > MOSTLY_HIDDEN:
            text = (
                f"{beyond[j]:.0%} of the cells are hidden: what is learned rests on the limit and "
                "on normality more than on values."
            )
            yield Finding("look", "Mostly hidden", text, name)


def _of_fit(status: Status | None) -> Iterator[Finding]:
    if status is not None and status.severity >= Status.TOO_FEW_JOINT_ROWS.severity:
        yield Finding("look", "The fit is not to be relied on without a look", status.value)


def _of_marks(marks: tuple[Mark, ...], table: CheckedTable, losses: Losses) -> Iterator[Finding]:
    for mark in sorted(marks, key=lambda mark: 0.0 if mark.p_value is None else mark.p_value):
        if mark.level != "ok":
            yield Finding(mark.level, TITLES[mark.kind], mark.text, mark.column)  # type: ignore[arg-type]
    quiet = [mark.column for mark in marks if mark.level == "ok"]
    if quiet:
        text = f"The rule hides nothing in {name_some(quiet)}, as is to be expected there."
        yield Finding("ok", TITLES["nothing hidden"], text)
    clear = all(mark.level == "ok" for mark in marks) and not losses.p_value < DOUBTFUL
    if clear and not table.contradictions and table.broken is None and table.hidden.any():
        text = (
            "No sign of another limit, of substituted values, or of cells hidden for other reasons"
        )
        text += "." if losses.reason else f" ({shown(losses.p_value)})."
        yield Finding("ok", "Hidden as stated", text)


def _of_losses(losses: Losses, marks: tuple[Mark, ...]) -> Iterator[Finding]:
    if losses.untested:
        text = "; ".join(f"{name}: {reason}" for name, reason in losses.untested.items())
        yield Finding("ok", "Holes that were not tested", f"{text}.")
    if not losses.p_value < DOUBTFUL:
        return
    # A wrong limit explains by itself why more is hidden than it should.
    explained = {mark.column for mark in marks if mark.level == "problem"}
    odd = [k for k in range(len(losses.names)) if losses.adjusted[k] < DOUBTFUL]
    odd = odd or list(range(len(losses.names)))
    odd = [k for k in odd if losses.names[k] not in explained]
    if not odd:
        return
    names = name_some([losses.names[k] for k in sorted(odd, key=lambda k: losses.adjusted[k])])
    text = (
        "More cells are hidden than the rule and the rest of their rows explain "
        f"({shown(losses.p_value)}), in {names}. They look as if they were hidden for other "
        "reasons too, unless the table is not normal. If they are missing at random, say so "
        f"({argument('missing_at_random')}); or let the fit learn how many values were lost "
        f"({argument('loss', 'learn')})."
    )
    column = losses.names[odd[0]] if len(odd) == 1 else None
    yield Finding("look", TITLES["hidden too often"], text, column)


def _conditions(table: CheckedTable) -> set[str]:
    """Columns that are always seen beside others that are not: these are learned given them."""
    always = [bool(one) for one in np.atleast_1d(table.seen.all(axis=0))]
    return set() if all(always) else {n for n, one in zip(table.names, always, strict=True) if one}


def _of_normality(
    normality: Normality, suggested: dict[str, str], conditions: set[str], explained: set[str]
) -> Iterator[Finding]:
    # Values that were put in the place of others say nothing of the shape of the rest.
    tested = [
        test for test in normality.columns if test.basis != "none" and test.name not in explained
    ]
    failed = [test for test in tested if test.adjusted < DOUBTFUL]
    if odd := [test.name for test in failed if test.name in conditions]:
        text = (
            f"{name_some(odd)}: always seen, and not spread as a normal distribution is. What is hidden "
            "in other columns is learned given them, whatever their own distribution; only what is "
            "simulated of them, or computed as a quantile, takes them for normal."
        )
        yield Finding("ok", "Always seen", text, odd[0] if len(odd) == 1 else None)
    failed = [test for test in failed if test.name not in conditions]
    for level in ("problem", "look"):
        alike = [test for test in failed if _severity(test) == level]
        parts = [alike] if len(alike) >= FEWEST_TOGETHER else [[test] for test in alike]
        yield from (_not_normal(level, part, suggested, len(tested)) for part in parts)
    others = [test for test in tested if not odd or test.name not in conditions]
    if others and not failed:
        least = min(others, key=lambda test: test.adjusted)
        text = (
            f"No {'other ' if odd else ''}column differs from a normal one (least p-value "
            f"{least.adjusted:.2g}, for {least.name}){_after(len(tested))}."
        )
        yield Finding("ok", "Columns look normal", text)
    yield from _of_untested(normality)
    overall = normality.overall
    if overall is None:
        return
    if overall.adjusted < DOUBTFUL and overall.direction in conditions:
        text = (
            f"Rows differ from those of a normal distribution most along {overall.direction} "
            f"({shown(overall.adjusted)}), which is always seen: what is hidden is learned given it."
        )
        yield Finding("ok", "Not normal along a column that is always seen", text)
    elif overall.adjusted < DOUBTFUL:
        text = f"{_how_far(overall)}: {_in_which_way(overall)}"
        if odd and not overall.direction:
            text += (
                f" {name_some(odd)} can do this alone, and that is of no consequence to the columns "
                "that are learned given them."
            )
        yield Finding(_severity(overall), "Not normal as a whole", text)
    else:
        text = f"The rows are spread as those of a normal distribution ({shown(overall.adjusted)})."
        yield Finding("ok", "Normal as a whole", text)


def _in_which_way(test: NormalityTest) -> str:
    """Say in which way rows are not those of a normal distribution, and what to do."""
    if test.deviation == "two groups":
        return (
            f"along {test.direction}, values keep away from the middle, as those of two groups do, "
            "or of a scale with ends. If rows are of two kinds, fit them separately."
        )
    if test.deviation == "heavy tails":
        return (
            f"along {test.direction}, more values lie far out, and more in the middle, than a "
            f"normal distribution has. Look for outliers; a fit with {argument('errors', 't')} "
            "gives them less weight."
        )
    if test.deviation == "skewed":
        return (
            f"along {test.direction}, values are skewed, as on a scale that does not suit them, or "
            "where a smaller group lies apart. Try another scale, such as "
            f"{argument('transforms', 'yeojohnson')}, or fit the groups separately."
        )
    return (
        "the rows are not spread as those of a normal distribution, which tails and outliers, or "
        "columns that are not normal, can do."
    )


def _not_normal(
    level: Level, tests: list[NormalityTest], suggested: dict[str, str], tested: int
) -> Finding:
    """Say how far columns are from normal, and on which scales they look better."""
    worst = max(tests, key=lambda test: test.distance)
    names = tuple(test.name for test in tests)
    several = len(tests) > 1
    text = f"{_how_far(worst)}{_after(tested)}."
    if several:
        told = name_some(list(names), MOST_NAMES)
        text = f"{len(tests)} columns: {told}. Furthest from it is {worst.name}. {text}"
    plain = [name for name in names if suggested.get(name) == "none"]
    if plain:
        text += f" Without a transform {_they_look(plain, several)} better."
    better = {name: suggested[name] for name in names if suggested.get(name, "none") != "none"}
    if better:
        scales = set(better.values())
        on = f"the scale {scales.pop()}" if len(scales) == 1 else "scales of their own"
        text += f" On {on} {_they_look(list(better), len(better) < len(names))} better: use "
        text += f"{_scales_option(better)}."
    return Finding(level, "Not normal", text, None if several else worst.name, names)


def _they_look(names: list[str], named: bool) -> str:
    """Name columns where others are told of too."""
    who = name_some(names, MOST_NAMES) if named else "it" if len(names) == 1 else "they"
    return f"{who} {'looks' if len(names) == 1 else 'look'}"


def _scales_option(better: dict[str, str]) -> str:
    """Spell how to say that columns are modelled on scales: all of them, so that it can be copied."""
    by_scale: dict[str, list[str]] = {}
    for name, scale in better.items():
        by_scale.setdefault(scale, []).append(name)
    told_each = [f"{', '.join(names)}: {scale}" for scale, names in by_scale.items()]
    options = [f"--transform {shlex.quote(one)}" for one in told_each]
    told = ", ".join(f"{name!r}: {scale!r}" for name, scale in better.items())
    return spelled(f"transforms={{{told}}}", " ".join(options))


def _of_untested(normality: Normality) -> Iterator[Finding]:
    by_level: dict[Level, dict[str, list[str]]] = {}
    for test in normality.columns:
        if test.basis == "none" and test.reason not in TOLD_ELSEWHERE:
            level: Level = "problem" if test.reason.startswith(WRONG_SCALE) else "look"
            by_level.setdefault(level, {}).setdefault(test.reason, []).append(test.name)
    for level, by_reason in by_level.items():
        told = "; ".join(f"{name_some(names)}: {reason}" for reason, names in by_reason.items())
        columns = tuple(name for names in by_reason.values() for name in names)
        yield Finding(level, "Not tested for normality", f"{told}.", None, columns)


def _severity(test: NormalityTest) -> Level:
    strong = test.adjusted < STRONG and test.distance >= LARGE_DISTANCE
    return "problem" if strong else "look"


def _how_far(test: NormalityTest) -> str:
    # Beyond the simulations p-values are extrapolated, which gives their order of magnitude at best.
    beyond = " by extrapolation" if test.adjusted < 1e-3 and not test.deviation else ""
    statistic = "" if test.deviation else f"A² = {test.statistic:.2f}, "
    share = f"Up to {test.distance:.0%}" if test.distance >= 0.005 else "Less than 1%"
    return (
        f"{share} of what is there lies elsewhere than a normal distribution "
        f"would have it ({statistic}{shown(test.adjusted)}{beyond})"
    )


def shown(p: float) -> str:
    """Write a p-value."""
    return "p < 0.001" if p < 1e-3 else f"p = {p:.2g}"


def _after(columns: int) -> str:
    return f", allowing for {columns} columns (Holm)" if columns > 1 else ""


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
