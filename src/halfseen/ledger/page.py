"""The ledger as a page: a table of all rows, then each with its experiment and its figure.

A figure has what was measured as points and lines, what is claimed as dashes.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from halfseen.errors import InputError
from halfseen.ledger.harness import FAILS, Curve, Entry

if TYPE_CHECKING:
    from matplotlib.axis import Axis

# What each group is about.
TITLES = {
    "theorem-1.2": "Self-censoring: mean and covariance from pairs",
    "lemma-mean": "The lemma on the mean",
    "lemma-covariance": "The lemma on the covariance",
    "lower-bounds": "What no estimator can do",
    "likelihood": "Thresholds: the likelihood is convex",
    "initialize": "Where the descent starts",
    "sample-gradient": "A gradient by projected Langevin",
    "rejection": "Why not rejection",
    "missing-descent": "How the descent behaves",
    "theorem-1.5": "Thresholds: the mean, with a known covariance",
    "persistent-descent": "The descent with chains that go on",
    "planning": "The constants of the theory",
    "lemmas": "The lemmas that proofs lean on",
    "open-problem": "What the paper leaves open: an unknown covariance under thresholds",
    "beyond": "Beyond the paper: what the holes themselves say",
    "regression": "Regression: rows that are missing",
}

INTRODUCTION = """\
Each claim of *Learning High-dimensional Gaussians from Censored Data* (Bhattacharyya, Daskalakis,
Gouleakis, Wang), with an experiment that could have contradicted it. What decides is written beside
the claim; a row that breaks, or leaves its tolerance, fails the command. "Holds as corrected" marks
what is wrong or imprecise in the text and right in the form that is told here; "a trap" what the text
leaves to whoever implements it.

A simulation cannot prove a theorem: it shows that the claim holds where it was tried, with the constants
that were found there.
"""

COLOURS = ("#1f5fa8", "#b4530a", "#3a7d44", "#6a4c93", "#8a6d00", "#5b6570")
INK, QUIET = "#1c2126", "#565e68"


def verdicts(entries: Sequence[Entry]) -> str:
    """Count verdicts in a phrase: "20 hold; 1 holds as corrected; none fails"."""
    counts = Counter(entry.verdict for entry in entries)
    failed = counts.pop(FAILS, 0)
    parts = [
        f"{count} {word if count == 1 else word.replace('holds', 'hold', 1)}"
        for word, count in counts.items()
    ]
    parts.append("none fails" if failed == 0 else f"{failed} {'fails' if failed == 1 else 'fail'}")
    return "; ".join(parts)


def figure_name(entry: Entry) -> str:
    """Return the name of the file of a row's figure."""
    return f"paper-{entry.claim.name.replace('/', '-').replace('.', '-')}.png"


def anchor(name: str) -> str:
    """Return the anchor of a row: letters, digits and hyphens."""
    return "row-" + name.replace("/", "-").replace(".", "-")


def render_page(
    entries: Sequence[Entry], command: str, stamp: str, figures: str = "figures"
) -> str:
    """Return the page in Markdown; ``stamp`` says when and on what machine it was made."""
    seconds = sum(entry.seconds for entry in entries)
    lines = [
        "# The paper, checked",
        "",
        INTRODUCTION,
        f"Made by `{command}`, {stamp}. {len(entries)} rows in {seconds / 60:.0f} minutes: "
        f"{verdicts(entries)}. `halfseen reproduce --quick` repeats it with smaller experiments, "
        "`halfseen reproduce theorem-1.2` in part.",
        "",
        "| row | the claim | verdict | seconds |",
        "|---|---|---|---|",
    ]
    for entry in entries:
        link = f"[{entry.claim.name}](#{anchor(entry.claim.name)})"
        # Its first sentence; the whole is below.
        claim = entry.claim.says.split(". ")[0].rstrip(".")
        cells = (link, claim, entry.verdict, f"{entry.seconds:.0f}")
        lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    for group in dict.fromkeys(entry.claim.name.split("/")[0] for entry in entries):
        lines += ["", f"## {TITLES.get(group, group)}"]
        for entry in entries:
            if entry.claim.name.split("/")[0] == group:
                lines += _section(entry, figures)
    return "\n".join(lines) + "\n"


def _section(entry: Entry, figures: str) -> list[str]:
    claim = entry.claim
    lines = [
        "",
        f"({anchor(claim.name)})=",
        f"### {claim.name}",
        "",
        f"**{_text(claim.where)}.** {_text(claim.says)}",
        "",
        f"*Experiment.* {_text(claim.experiment)}",
        "",
        f"*What decides.* {_text(claim.tolerance)}",
        "",
        f"*Measured.* {_text(entry.measured)} **{entry.verdict[0].upper()}{entry.verdict[1:]}** "
        f"({entry.seconds:.0f} s).",
    ]
    if entry.curve is not None:
        lines += ["", f"![{_text(entry.curve.up)}]({figures}/{figure_name(entry)})"]
    return lines


def _text(text: str) -> str:
    """Keep what Markdown would take for its own signs."""
    for sign in ("\\", "*", "_", "$", "<", "[", "`"):
        text = text.replace(sign, "\\" + sign)
    return text


def _cell(text: str) -> str:
    if text.startswith("["):
        return text
    return _text(text).replace("|", "\\|").replace("\n", " ")


def draw_curve(curve: Curve) -> bytes:
    """Return the figure as PNG."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError('Figures need Matplotlib: pip install "halfseen[report]".') from None
    figure = Figure(figsize=(6.8, 3.2), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    for (label, values), colour in zip(curve.lines.items(), cycle(COLOURS), strict=False):
        axes.plot(curve.x, values, color=colour, marker="o", markersize=4, label=label)
    for (label, values), dash in zip(
        (curve.claimed or {}).items(), cycle(("--", ":", "-.")), strict=False
    ):
        axes.plot(curve.x, values, color=INK, linestyle=dash, linewidth=1.2, label=label)
    for axis, name, values in (
        (axes.xaxis, "x", list(curve.x)),
        (axes.yaxis, "y", [v for line in curve.lines.values() for v in line]),
    ):
        if name not in curve.linear:
            _logarithmic(axis, name, values)
    axes.set_xlabel(curve.across, color=QUIET)
    axes.set_ylabel(curve.up, color=QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=9, colors=QUIET)
    axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
    buffer = io.BytesIO()
    # Without the version of Matplotlib in it, the same figure is the same file.
    figure.savefig(buffer, format="png", dpi=150, metadata={"Software": None})
    return buffer.getvalue()


def _logarithmic(axis: Axis, name: str, values: list[float]) -> None:
    """Make an axis logarithmic, with labels that do not collide however short it is."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axis.axes, f"set_{name}scale")("log")
    if max(values) / min(values) < 100.0:
        # Less than two decades: 1, 2 and 5 of each, in plain numbers.
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}".replace(",", " ")))
    axis.set_minor_formatter(NullFormatter())
