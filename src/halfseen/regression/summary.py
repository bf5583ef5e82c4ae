"""What a regression says, as text of 80 columns and as plain data for machines."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.data.table import printable
from halfseen.solvers.summary import (
    RULE,
    WIDTH,
    number_of,
    percent,
    short_number,
    shorten,
    structure_lines,
    structure_record,
)

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]

# Correlations of residuals that are listed, and the smallest p-value that is written out.
MOST_CORRELATIONS, SMALLEST_P = 12, 1e-4
# Intervals that are wider than normal ones by this share are told apart from standard errors.
MUCH_WIDER = 0.05


def summarise(fit: RegressionFit, level: float) -> str:
    """Return tables of coefficients, of residuals, and what there is to know about them."""
    parts = [_head(fit)]
    parts += [_equation(fit, j, level) for j in range(len(fit.outcomes))]
    parts += [_residuals(fit, level), structure_lines(fit.structure)]
    parts += [[*_fit_lines(fit), *_wider(fit, level)], _notes(fit)]
    return "\n".join("\n".join(part) for part in parts if part)


def _head(fit: RegressionFit) -> list[str]:
    """Say what was fitted, and to how many rows."""
    q = len(fit.outcomes)
    errors = "standard errors of the model"
    if fit.clusters is not None:
        errors = f"robust standard errors from {fit.clusters} clusters"
    elif fit.is_robust:
        errors = "robust standard errors"
    elif fit.covariance is None:
        errors = "no standard errors"
    if fit.is_weighted:
        errors = f"rows are weighted; {errors}"
    how = "full-information maximum likelihood"
    if fit.penalty is not None:
        strength = short_number(fit.penalty.strength or 0.0)
        how += f" less a penalty (the {fit.penalty.kind}, strength {strength})"
    text = f"Regression of {q} outcome{'s' * (q != 1)}, {fit.rows} rows, by {how}; {errors}."
    return textwrap.wrap(text, WIDTH)


def _equation(fit: RegressionFit, j: int, level: float) -> list[str]:
    """Return the coefficients of an outcome."""
    kind = "" if fit.kinds[j] == "continuous" else f", {fit.kinds[j]}"
    seen = "" if fit.kinds[j] != "continuous" else f", {percent(1.0 - fit.seen_share[j])} hidden"
    lines = [RULE, f"{printable(shorten(fit.outcomes[j], 50))}{kind}{seen}"]
    known = fit.covariance is not None
    ends = f"{level * 100:g} % interval"
    head = f"  {'term':<24} {'estimate':>10}"
    lines += [f"{head} {'(s.e.)':<10} {'p':>8}  {ends:^21}".rstrip() if known else head, RULE]
    limits = fit.standard_errors.coefficient_limits(level) if known else None
    p = fit.standard_errors.p_values() if known else None
    errors = fit.standard_errors.weights if known else None
    for t in np.flatnonzero(fit.mask[j]):
        line = f"  {shorten(fit.terms[t], 24):<24} {short_number(fit.weights[j, t]):>10}"
        if not fit.free[j, t]:
            line += " given"
        elif limits is not None and p is not None and errors is not None:
            bracket = f"({short_number(errors[j, t])})"
            low, high = short_number(limits.lower[j, t]), short_number(limits.upper[j, t])
            line += f" {bracket:<10} {_p(p[j, t]):>8}  {low:>10} {high:>10}"
        lines.append(line)
    return lines + _cuts(fit, j)


def _cuts(fit: RegressionFit, j: int) -> list[str]:
    """Return where the categories of an ordered outcome begin."""
    name = fit.outcomes[j]
    if name not in fit.cut_points:
        return []
    lines = []
    labels = [printable(str(one)) for one in fit.categories[name]]
    errors = fit.standard_errors.cut_points[name] if fit.covariance is not None else None
    for k, cut in enumerate(fit.cut_points[name]):
        called = shorten(f"cut {labels[k]} | {labels[k + 1]}", 24)
        line = f"  {called:<24} {short_number(cut):>10}"
        if k == 0:
            line += " given"
        elif errors is not None:
            line += f" ({short_number(errors[k])})"
        lines.append(line)
    return lines


def _p(value: float) -> str:
    return f"<{SMALLEST_P:g}" if value < SMALLEST_P else f"{value:.4f}"


def _residuals(fit: RegressionFit, level: float) -> list[str]:
    """Return standard deviations and correlations of residuals."""
    known, deviation = fit.covariance is not None, np.sqrt(np.diag(fit.residual))
    limits = fit.standard_errors.deviation_limits(level) if known else None
    lines = [RULE, "Residuals", RULE]
    for j, name in enumerate(fit.outcomes):
        line = f"  {shorten(f'std. dev. of {name}', 36):<36} {short_number(deviation[j]):>10}"
        if fit.kinds[j] != "continuous":
            line += " given"
        elif limits is not None:
            line += f"  {short_number(limits.lower[j]):>10} {short_number(limits.upper[j]):>10}"
        lines.append(line)
    R = fit.residual / np.outer(deviation, deviation)
    ends = fit.standard_errors.correlation_limits(level) if known else None
    pairs = np.transpose(np.tril_indices(len(R), -1))
    order = np.argsort(-np.abs(R[tuple(pairs.T)]), kind="stable")
    for a, b in pairs[order][:MOST_CORRELATIONS]:
        names = (shorten(fit.outcomes[k], 60) for k in (b, a))
        called = f"correlation {' ~ '.join(names)}"
        if len(called) > 36:
            # Names that begin alike would be cut where they begin to differ.
            lines += textwrap.wrap(called, WIDTH, initial_indent="  ", subsequent_indent="    ")
            called = ""
        # Pairs come with the larger first.
        value = "any within" if (int(a), int(b)) in fit.undetermined else f"{R[a, b]:.3f}"
        line = f"  {called:<36} {value:>10}"
        if ends is not None and ends.lower[a, b] < ends.upper[a, b]:
            line += f"  {ends.lower[a, b]:>10.3f} {ends.upper[a, b]:>10.3f}"
        lines.append(line)
    if len(pairs) > MOST_CORRELATIONS:
        lines.append(f"  … and {len(pairs) - MOST_CORRELATIONS} more correlations")
    return lines


def _fit_lines(fit: RegressionFit) -> list[str]:
    """Return what model selection asks for."""
    if fit.no_likelihood:
        text = (
            f"Log-likelihood {fit.log_likelihood:.3f} with {fit.parameters} parameters; not to be "
            f"compared, and without AIC and BIC: {fit.no_likelihood}."
        )
        return [RULE, *textwrap.wrap(text, WIDTH)]
    return [
        RULE,
        f"Log-likelihood {fit.log_likelihood:.3f} with {fit.parameters} parameters; "
        f"AIC {fit.aic:.2f}, BIC {fit.bic:.2f}.",
    ]


def _wider(fit: RegressionFit, level: float) -> list[str]:
    """Say so where p-values and intervals are not those of a normal law with the errors shown."""
    by = fit.standard_errors.widening(level) if fit.covariance is not None else 0.0
    if by < MUCH_WIDER:
        return []
    text = (
        f"p-values and intervals are Student's t, from the {'clusters' if fit.clusters else 'rows'} "
        f"less what they were spent on: up to {by:.0%} wider than standard errors by themselves say."
    )
    return textwrap.wrap(text, WIDTH)


def _notes(fit: RegressionFit) -> list[str]:
    """Return the status, and what there is to know."""
    lines = textwrap.wrap(f"{fit.status.name}: {fit.status.value}", WIDTH)
    for note in fit.notes:
        if note.text:
            lines += textwrap.wrap(f"- {printable(note.text)}", WIDTH, subsequent_indent="  ")
    return lines


def as_dict(fit: RegressionFit, level: float) -> dict[str, Any]:
    """Return everything that was learned as plain data, by names; None where not known."""
    known = fit.covariance is not None
    errors = fit.standard_errors if known else None
    ends = errors.coefficient_limits(level) if errors is not None else None
    p = errors.p_values() if errors is not None else None
    of_outcomes = {}
    for j, name in enumerate(fit.outcomes):
        terms = {}
        for t in np.flatnonzero(fit.mask[j]):
            terms[fit.terms[t]] = {
                "estimate": number_of(fit.weights[j, t]),
                "standard_error": None if errors is None else number_of(errors.weights[j, t]),
                "p_value": None if p is None else number_of(p[j, t]),
                "lower": None if ends is None else number_of(ends.lower[j, t]),
                "upper": None if ends is None else number_of(ends.upper[j, t]),
                "learned": bool(fit.free[j, t]),
            }
        of_outcomes[name] = {
            "kind": fit.kinds[j],
            "seen_share": number_of(fit.seen_share[j]),
            "coefficients": terms,
            "cut_points": [*map(number_of, fit.cut_points.get(name, ()))] or None,
            "categories": [*map(str, fit.categories.get(name, ()))] or None,
        }
    return {
        "status": fit.status.name,
        "notes": [{"status": note.status.name, "text": note.text} for note in fit.notes],
        "rows": fit.rows,
        "parameters": fit.parameters,
        "log_likelihood": number_of(fit.log_likelihood),
        "aic": number_of(fit.aic),
        "bic": number_of(fit.bic),
        "level": level,
        "clusters": fit.clusters,
        "robust": fit.is_robust,
        "weighted": fit.is_weighted,
        "penalty": None if fit.penalty is None else fit.penalty._asdict(),
        "outcomes": of_outcomes,
        "residual_covariance": {
            a: {b: number_of(fit.residual[i, j]) for j, b in enumerate(fit.outcomes)}
            for i, a in enumerate(fit.outcomes)
        },
        "structure": None if fit.structure is None else structure_record(fit.structure),
    }
