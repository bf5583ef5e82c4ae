"""The tables of the comparison, and the page of the documentation that shows them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.comparison.compare import names
from benchmarks.comparison.judge import NOTHING, multiple
from benchmarks.comparison.processes import tools

HEAD = ("tool", "mean", "covariance", "its entries", "coverage", "time", "memory", "")


def comparison(found: dict[str, Any]) -> list[str]:
    """Return the lines of one task: a table for each of its sizes."""
    lines = [_sentence(found["title"])]
    for size in found["sizes"]:
        many = f"{size['tables']} tables" if size["tables"] > 1 else "one table"
        lines += ["", f"### d = {size['d']}, n = {thousands(size['n'])}, {many}", ""]
        lines += [_line(HEAD), _line(["---"] * len(HEAD))]
        lines += [_line(cells(tool, size["tables"])) for tool in size["tools"]]
    versions = ", ".join(f"{name} {number}" for name, number in sorted(found["versions"].items()))
    return [*lines, "", f"Versions: {versions}."]


def cells(tool: dict[str, Any], tables: int) -> list[str]:
    """Return the cells of one tool: its own figures for auto, multiples of auto's for the others."""
    title = tool["title"]
    if "chosen" in tool and tool["tool"] == "auto":
        title = f"**{title}** ({tool['chosen']})"
    if not tool["tables"]:
        return [title, *[NOTHING] * (len(HEAD) - 2), tool.get("trouble", "")]
    entries = multiple(tool.get("entries"))
    if "entries" not in tool and "variances" in tool:
        entries = f"{multiple(tool['variances'])} (variances)"
    coverage = [f"{tool[k]:.2f}" for k in ("mean_coverage", "covariance_coverage") if k in tool]
    return [
        title,
        multiple(tool.get("mean")),
        multiple(tool.get("covariance")),
        entries,
        ", ".join(coverage) or NOTHING,
        _cost(tool, "seconds", lambda seconds: f"{seconds:.2g} s"),
        _cost(tool, "peak", lambda peak: f"{peak / 1e6:.0f} MB"),
        _remark(tool, tables),
    ]


def thousands(n: int) -> str:
    """Write 10000 as 10 000."""
    return f"{n:,}".replace(",", " ")


def _cost(tool: dict[str, Any], what: str, plain: Any) -> str:
    """Return what auto took, and for the others how many times that."""
    if what not in tool:
        return NOTHING
    if tool["tool"] == "auto" or not tool.get(f"auto_{what}"):
        return plain(tool[what])
    ratio = tool[what] / tool[f"auto_{what}"]
    return f"×\u00a0{multiple(ratio)}" if ratio >= 0.01 else "×\u00a0<\u00a00.01"


def _remark(tool: dict[str, Any], tables: int) -> str:
    """Say what a reader has to know of a figure."""
    said = []
    if tool["uses"] != "the data":
        said.append(f"is told {tool['uses']}")
    if tool["tables"] < tables:
        said.append(f"{tool['tables']} of {tables} tables, then {tool['trouble']}")
    return "; ".join(said)


def _line(parts: Iterable[str]) -> str:
    escaped = (part.replace("|", "\\|").replace("<", "&lt;") for part in parts)
    return f"| {' | '.join(escaped)} |"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def comparison_page(kept: dict[str, dict[str, Any]]) -> str:
    """Return the page of the documentation."""
    there = {name: kept[name] for name in names() if name in kept}
    caps = sorted({found["cap"] for found in there.values()})
    cap = " or ".join(f"{seconds:.0f}" for seconds in caps)
    lines = [_INTRODUCTION.format(cap=cap, picture=_PICTURE).rstrip(), "", "## The tools", ""]
    lines += ["| tool | how it was set up |", "|---|---|"]
    lines += [f"| {tool.title} | {tool.setup.replace('|', chr(92) + '|')} |" for tool in tools()]
    for name, found in there.items():
        lines += ["", f"## {_sentence(found['title']).rstrip('.')}", ""]
        lines += [f"Task `{name}`, {found['date']}, {found['machine']}."]
        lines += comparison(found)[1:]
        if found["rows"]:
            lines += ["", "| promised of `auto` | measured | target | |", "|---|---|---|---|"]
            lines += [_line(row) for row in found["rows"]]
    return "\n".join(lines) + "\n"


_PICTURE = (
    "For three, ten and fifty columns, the error of the covariance against the time for one table. "
    "halfseen is near the Cramér–Rao limit. Tools that model the detection limits are there too, and "
    "take many times as long; tools that do not model them are far off."
)
_INTRODUCTION = """\
<!-- Made by `make bench`; edit benchmarks/comparison/pages.py instead. -->

# Measured against everyone else

The same tables, given to every tool that can do something with them: each in a process of its own,
held to one core, with {cap} seconds for all tables of a task at one size. `make bench
BENCH=comparison` repeats it, `make bench BENCH=left` one task. Tables are drawn with fixed seeds from
a Gaussian that is known, so that errors can be told. Tools in R take part where `Rscript` and their
packages are installed (on Debian: r-base-core and r-cran- with tmvtnorm, openmx, lava, mets,
survival, mice and jsonlite).

Times of halfseen here are those of the engine before it was rewritten for hard tables. What that changed
on these tables, in accuracy and in time, is in `benchmarks/RESULTS.md` under `comparison_before`.

```{{image}} figures/comparison.png
:alt: {picture}
:align: center
```

How to read the tables:

- **mean, covariance**: the error over what the Cramér–Rao limit allows an unbiased estimate from such
  a table: 1.00 is as good as it gets, up to chance. Distances are the paper's, which do not depend on
  units: Mahalanobis for the mean, and the Frobenius norm of $\\Sigma^{{-1/2}}(\\hat\\Sigma - \\Sigma)
  \\Sigma^{{-1/2}}$; root mean squares over the tables.
- **its entries**: root mean square of the errors of single variances and covariances, each over its
  own limit. All columns have a common factor here, whose error is in every entry, so that one or two
  tables say little about this one.
- **coverage**: the share of 95 % intervals that hold the truth, for means, then for covariances.
- **time, memory**: seconds for one table (the median, so that what a tool does once in a process
  counts only where there are one or two tables), without starting the program, and the peak of the
  whole process; both as multiples of `auto`. What `auto` compiles on its first day is kept on disk and
  not counted ([Cold start](performance.md#cold-start)); what NumPyro compiles in each process is.
- A tool that has no answer to a task is not started on tables of the same kind that are as large or
  larger. One that fails is shown with its last words. Where a tool answered only some tables in time,
  it is compared with `auto` on those.
- NumPyro's `HMCGibbs` is shown for what it can do, though its Gibbs step is code that a user has to
  write: draws from the conditional distributions of hidden cells, which is what `full` does too. It is
  no tool as it comes, and the speed that is promised of `auto` is against those.
- Tables of different tasks with the same numbers of columns and rows come from the same draws.
"""
