"""Say how good answers are: errors as multiples of the Cramér–Rao limit, coverage, time, memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import halfseen as hs
from benchmarks.comparison.processes import Outcome, Tool
from benchmarks.limits import Limit

Floats = NDArray[np.float64]
# What a cell says where there is nothing to say.
NOTHING = "–"


@dataclass(frozen=True)
class Verdict:
    """One tool on one task of one size; None where there is nothing to say.

    Errors are root mean squares over tables, over what the Cramér–Rao limit lets them be: ``mean`` and
    ``covariance`` by the paper's distances (Mahalanobis, and the Frobenius norm of Σ^-½ (Σ̂ − Σ) Σ^-½),
    which do not depend on units; ``entries`` and ``variances`` are over entries of Σ, each divided by
    its own limit. ``seconds`` is the median over tables. ``auto_*`` is what auto has on the same
    tables.
    """

    tool: str
    title: str
    group: str
    uses: str
    tables: int = 0
    mean: float | None = None
    covariance: float | None = None
    entries: float | None = None
    variances: float | None = None
    mean_coverage: float | None = None
    covariance_coverage: float | None = None
    seconds: float | None = None
    peak: float | None = None
    auto_covariance: float | None = None
    auto_seconds: float | None = None
    auto_peak: float | None = None
    chosen: str | None = None
    trouble: str | None = None

    def kept(self) -> dict[str, Any]:
        """Return what there is to say, for the store: four digits are enough."""
        return {
            name: float(f"{value:.4g}") if isinstance(value, float) else value
            for name, value in asdict(self).items()
            if value is not None
        }


def judge(
    tool: Tool, outcome: Outcome, truth: hs.Gaussian, limit: Limit, auto: Outcome | None
) -> Verdict:
    """Compare a tool's answers with the truth, and with those of auto."""
    whose = (tool.name, tool.title, tool.group, tool.uses)
    if not outcome.answers:
        return Verdict(*whose, trouble=outcome.trouble)
    tables = {answer["table"] for answer in outcome.answers}
    found = measures(outcome.answers, truth, limit)
    same = [a for a in (auto.answers if auto else []) if a["table"] in tables]
    if same:
        theirs = measures(same, truth, limit)
        found |= {f"auto_{name}": theirs[name] for name in ("covariance", "seconds", "peak")}
    chosen = outcome.answers[0].get("chosen")
    return Verdict(*whose, len(tables), chosen=chosen, trouble=outcome.trouble, **found)


def measures(answers: list[dict[str, Any]], truth: hs.Gaussian, limit: Limit) -> dict[str, Any]:
    """Return errors and coverage of some answers, and what they cost."""
    below, diagonal = np.tril_indices(truth.dimension), np.diag_indices(truth.dimension)
    mean = _array(answers, "mean") - truth.mean
    # Entries without a limit are none of the task: everyone is told them.
    told = np.isnan(limit.covariance)
    # A covariance is symmetric: its entries count once, those that are told not at all.
    above = np.triu(np.ones_like(told), 1)
    once = np.where(told | above, np.nan, truth.covariance)
    gap = np.where(told, 0.0, _array(answers, "covariance") - truth.covariance)
    scaled = np.where(told, 0.0, gap / limit.covariance)
    root = np.linalg.inv(truth.cholesky)
    peaks = [answer["peak"] for answer in answers if answer.get("peak")]
    seconds = [answer["seconds"] for answer in answers if "seconds" in answer]
    return {
        "mean": _root_mean_square(mean @ root.T, limit.mahalanobis**2),
        "covariance": _root_mean_square(root @ gap @ root.T, limit.frobenius**2),
        "entries": _root_mean_square(scaled[:, *below], float((~told[below]).sum())),
        "variances": _root_mean_square(scaled[:, *diagonal], float(truth.dimension)),
        "mean_coverage": _coverage(answers, "mean_interval", truth.mean),
        "covariance_coverage": _coverage(answers, "covariance_interval", once),
        "seconds": float(np.median(seconds)) if seconds else None,
        "peak": float(max(peaks)) if peaks else None,
    }


def _array(answers: list[dict[str, Any]], name: str) -> Floats:
    """Stack a part of the answers; NaN where a tool said nothing."""
    return np.array([answer[name] for answer in answers], dtype=float)


def _root_mean_square(errors: Floats, expected: float) -> float | None:
    """Return the root of the mean, over tables, of sums of squares over what is expected of them.

    Nothing, where an entry is missing: part of an answer is not compared with a whole one.
    """
    if not np.isfinite(errors).all():
        return None
    return float(np.sqrt(np.sum(errors**2) / (len(errors) * expected)))


def _coverage(answers: list[dict[str, Any]], name: str, truth: Floats) -> float | None:
    """Return the share of a tool's intervals that hold the truth, where it is not told to everyone."""
    if any(answer.get(name) is None for answer in answers):
        return None
    ends = _array(answers, name)
    lower, upper = ends[:, 0], ends[:, 1]
    inside = (lower <= truth) & (truth <= upper)
    given = np.isfinite(lower) & np.isfinite(upper) & np.isfinite(truth)
    return float(inside[given].mean()) if given.any() else None


def multiple(value: float | None) -> str:
    """Write a ratio with three digits or two decimals."""
    if value is None:
        return NOTHING
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"
