"""What a fit of groups says, as text of 80 columns and as plain data for machines."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.data.table import printable
from halfseen.solvers.groups.tests import GroupTest
from halfseen.solvers.summary import RULE, WIDTH, number_of, percent, short_number, shorten

if TYPE_CHECKING:
    from halfseen.grouped.fit import GroupedFit
    from halfseen.results import Fit

# Rows of a table that are listed: the rest is in rows() and on the page.
MOST_LISTED = 60
# Smallest p-value that is written out.
SMALLEST_P = 1e-4


def summarise(fit: GroupedFit, level: float) -> str:
    """Return means, tests and differences."""
    parts = [_head(fit), _means(fit, level), _tests(fit), _differences(fit, level), _notes(fit)]
    return "\n".join("\n".join(part) for part in parts)


def _head(fit: GroupedFit) -> list[str]:
    d, rows = len(fit.names), sum(fit.rows.values())
    hidden = 1.0 - float(fit.pooled.seen_share.mean())
    scales = fit.pooled.transforms
    text = (
        f"{len(fit.groups)} groups by {shorten(fit.by, 30)}, {d} column{'s' * (d != 1)}, {rows} rows, "
        f"{percent(hidden)} of the cells hidden. Method: full-information maximum likelihood; means and "
        "differences with equal covariances."
    )
    if scales is not None:
        names = list(dict.fromkeys(t.name for t in scales))
        text += f" Scale of the model: {', '.join(names)}; medians are in original units."
    return textwrap.wrap(text, WIDTH)


def _means(fit: GroupedFit, level: float) -> list[str]:
    """Return the mean, or the median in original units, of each group and column."""
    found = fit.means(level)
    word = "mean" if fit.pooled.transforms is None else "median"
    ends = f"{level * 100:g} % interval"
    lines = []
    listed = 0
    for j, name in enumerate(fit.names):
        if listed >= MOST_LISTED:
            lines.append(f"… and {len(fit.names) - j} more columns: means().rows() has them")
            break
        head = f"{shorten(name, 34):<34} {'rows':>6} {'seen':>6} {word:>10}   {ends}"
        lines += [RULE, head, RULE]
        for g, label in enumerate(fit.groups):
            value = found.median[g, j]
            line = f"  {shorten(str(label), 32):<32} {fit.rows[label]:>6} {fit.seen[g, j]:>6} "
            if np.isnan(value):
                lines.append(line + f"{'–':>10}   no value is seen")
                continue
            low, high = found.median_lower[g, j], found.median_upper[g, j]
            ends_of = f"{short_number(low)} to {short_number(high)}"
            lines.append(line + f"{short_number(value):>10}   {ends_of}")
        listed += len(fit.groups)
    return lines


def _tests(fit: GroupedFit) -> list[str]:
    """Return the tests of whether groups differ."""
    head = f"{'Do groups differ? Tests of':<29} {'ratio':>8} {'d.f.':>4} {'p':>8}  p by"
    lines = [RULE, head, RULE]
    for test in fit.tests():
        lines.append(
            f"  {test.hypothesis:<27} {test.statistic:>8.2f} {test.degrees_of_freedom:>4} "
            f"{p_text(test.p_value):>8}  {test.method}"
        )
        if test.groups != fit.groups:
            among = ", ".join(shorten(str(one), 20) for one in test.groups[:8])
            more = f" and {len(test.groups) - 8} more" if len(test.groups) > 8 else ""
            lines += textwrap.wrap(f"among {among}{more}", WIDTH - 4, initial_indent="    ")
    return lines


def _differences(fit: GroupedFit, level: float) -> list[str]:
    """Return all differences, or the clearest where there are many."""
    found = fit.differences(level)
    count = found.comparisons
    rows = sorted(found.rows(), key=lambda row: fit.names.index(row["column"]))
    shown = rows
    if len(rows) > MOST_LISTED:
        chosen = sorted(rows, key=lambda row: row["p_value"])[:MOST_LISTED]
        shown = [row for row in rows if row in chosen]
    lines = []
    for name in fit.names:
        own = [row for row in shown if row["column"] == name]
        if not own:
            continue
        word = "difference of means" if own[0]["scale"] == "difference" else own[0]["scale"]
        word = "ratio of medians" if word == "ratio" else word
        title = shorten(f"{word}, {name}", 38)
        ends = f"{level * 100:g} % interval"
        lines += [RULE, f"{title:<38} {'estimate':>9}   {ends:<20} p", RULE]
        by = " / " if own[0]["scale"] == "ratio" else " − "
        for row in own:
            pair = shorten(f"{row['first']}{by}{row['second']}", 36)
            low, high = (short_number(row[end]) for end in ("lower", "upper"))
            ends_of = f"{low} to {high}"
            estimate = short_number(row["estimate"])
            lines.append(f"  {pair:<36} {estimate:>9}   {ends_of:<20} {p_text(row['p_value'])}")
    text = f"Intervals and p-values of the {count} differences hold together, as one family."
    if count == 1:
        text = ""
    if len(rows) > len(shown):
        text += (
            f" The {len(shown)} clearest of {len(rows)} are shown; differences().rows() has all."
        )
    return [*lines, RULE, *textwrap.wrap(text, WIDTH)]


def _notes(fit: GroupedFit) -> list[str]:
    """Say which groups borrow, which means are not known, and how the fits ended."""
    return [line for text in notes_of(fit) for line in textwrap.wrap(printable(text), WIDTH)]


def notes_of(fit: GroupedFit) -> list[str]:
    """Return what there is to know, in sentences."""
    out = []
    if fit.borrowed:
        told = [f"{label} ({why})" for label, why in fit.borrowed.items()]
        shown = "; ".join(told[:8]) + (f"; and {len(told) - 8} more" if len(told) > 8 else "")
        out.append(f"No covariance of its own, and that of all groups instead: {shown}.")
    if len(fit.tests()) == 1:
        out.append(
            "Covariances are not compared: fewer than two groups have rows enough for one of their own."
        )
    estimate = fit.means().estimate
    for j, name in enumerate(fit.names):
        unknown = [str(fit.groups[g]) for g in np.flatnonzero(np.isnan(estimate[:, j]))]
        if unknown:
            out.append(
                f"No value of {name} is seen in {', '.join(unknown[:8])}: nothing says how far away its "
                "mean is, so it is in no difference. The test of equal means counts its hidden cells."
            )
    for label, one in [("all rows", fit.pooled), *fit.fits.items()]:
        if label not in fit.borrowed and one.notes:
            texts = " ".join(note.text or note.status.value for note in one.notes)
            out.append(f"{label}: {one.status.name}. {texts}")
    return [*out, f"{fit.status.name}: {fit.status.value}"]


def p_text(value: float) -> str:
    """Write a p-value."""
    return f"<{SMALLEST_P:g}" if value < SMALLEST_P else f"{value:.4f}"


def as_dict(fit: GroupedFit, level: float) -> dict[str, Any]:
    """Return everything as plain data; see ``GroupedFit.to_dict``."""
    means, apart = fit.means(level), fit.differences(level)
    within = np.asarray(fit.covariance)
    return {
        "by": fit.by,
        "groups": list(fit.groups),
        "columns": list(fit.names),
        "rows": [fit.rows[label] for label in fit.groups],
        "seen": fit.seen.tolist(),
        "status": fit.status.name,
        "status_text": fit.status.value,
        "notes": notes_of(fit),
        "level": level,
        "scales": None
        if fit.pooled.transforms is None
        else [t.name for t in fit.pooled.transforms],
        "means": means.rows(),
        "covariance_within": within.tolist(),
        "tests": [_plain(test) for test in fit.tests()],
        "differences": apart.rows(),
        "comparisons": apart.comparisons,
        "borrowed": [{"group": label, "why": why} for label, why in fit.borrowed.items()],
        "pooled": _law(fit.pooled),
        "fits": [{"group": label, **_law(one)} for label, one in fit.fits.items()],
    }


def _law(fit: Fit) -> dict[str, Any]:
    """Return mean and covariance of a fit on the scale of the model; its own ``to_dict`` has all."""
    errors = fit.uncertainty
    return {
        "rows": fit.rows,
        "status": fit.status.name,
        "mean": fit.gaussian.mean.tolist(),
        "standard_error": None if errors is None else [number_of(one) for one in errors.mean],
        "covariance": fit.gaussian.covariance.tolist(),
    }


def _plain(test: GroupTest) -> dict[str, Any]:
    """Return a test with numbers that machines read."""
    return {
        key: (number_of(value) if isinstance(value, float) and not math.isfinite(value) else value)
        for key, value in test.to_dict().items()
    }
