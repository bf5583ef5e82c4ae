"""What a fit says, as text of 80 columns and as plain data for machines."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.checks import whole_number
from halfseen.data.table import printable
from halfseen.data.transforms import Identity, Log
from halfseen.solvers.inference.intervals import NAMES, Limits, Methods
from halfseen.solvers.structures.learned import LearnedStructure, structure_of

if TYPE_CHECKING:
    from halfseen.results import Fit
    from halfseen.solvers.inference.original_scale import OriginalScale
    from halfseen.solvers.result import Tails

Floats = NDArray[np.float64]

WIDTH = 79
RULE = "─" * WIDTH
# What each method is, in the words of a methods section.
METHODS = {
    "full": "full-information maximum likelihood (quasi-Newton ascent)",
    "pairwise": "pairwise maximum likelihood",
    "truncation": "maximum likelihood from seen values alone (truncation)",
    "truncation_psgd": "projected stochastic gradient descent on seen values (truncation_psgd)",
    "truncated_sgd": "projected stochastic gradient descent on truncated rows (truncated_sgd)",
    "missing_descent": "projected stochastic gradient descent with known covariance",
}

# Structures that are pulled towards something, so that there is no likelihood to climb.
REGULARISED = ("shrinkage", "sparse")
# A gain in log-likelihood below this is not worth its digits.
SMALLEST_GAIN = 0.001
# Learned powers that are listed, and numbers of a structure of the covariance.
MOST_POWERS, MOST_NUMBERS = 6, 20


def summarise(
    fit: Fit, most_columns: int = 40, level: float = 0.95, most_correlations: int = 8
) -> str:
    """Return a table of what was learned, in 80 columns of text."""
    most_columns = whole_number("most_columns", most_columns, 0)
    parts = [_head(fit, level), _columns(fit, most_columns)]
    if fit.transforms is not None:
        parts.append(_original(fit, most_columns, level))
    correlations = _correlations(fit, most_correlations, level)
    parts += [structure_lines(fit.structure), correlations, _notes(fit, level)]
    return "\n".join("\n".join(part) for part in parts if part)


def _head(fit: Fit, level: float) -> list[str]:
    hidden = 1.0 - float(fit.seen_share.mean())
    law = "normal distribution"
    if fit.tails is not None:
        law = f"t distribution ({degrees_in_words(fit.tails)})"
    text = (
        f"Multivariate {law} of {len(fit.names)} "
        f"{'column' if len(fit.names) == 1 else 'columns'}, {fit.rows} rows, {percent(hidden)} of the "
        f"cells hidden. Method: {METHODS.get(fit.method, fit.method)}."
    )
    text += _structure(fit)
    if fit.transforms is not None:
        text += f" Scale of the model: {_scales(fit)}."
    if fit.powers is not None:
        text += f" Learned: {powers_in_words(fit, level)}."
    return textwrap.wrap(text, WIDTH)


def degrees_in_words(tails: Tails) -> str:
    """Say how many degrees of freedom there are, and how sure that is."""
    if not tails.learned:
        return f"{tails.degrees:g} degrees of freedom, as given"
    if math.isinf(tails.degrees):
        return "no heavier tails than a normal distribution's were found"
    high = "any number" if math.isinf(tails.upper) else f"{tails.upper:.3g}"
    return f"{tails.degrees:.3g} degrees of freedom, 95 % interval {tails.lower:.3g} to {high}"


def _structure(fit: Fit) -> str:
    """Say what was known about the covariance, where something was."""
    words = {
        "diagonal": "independent columns",
        "known": "known covariance",
        "known correlation": "known correlations",
        "shrinkage": "covariance shrunken towards independence",
        "sparse": "sparse precision matrix (graphical lasso)",
    }
    # As a text: the history of a fit that was loaded may hold anything.
    name = str(fit.history.get("covariance_structure", ""))
    structure = structure_of(fit.history, fit.names)
    if structure is not None:
        return f" Structure: {structure.words}."
    return f" Structure: {words[name]}." if name in words else ""


def _scales(fit: Fit) -> str:
    """Names of the transforms, with the columns they are for unless there is only one."""
    assert fit.transforms is not None
    by_name: dict[str, list[str]] = {}
    for name, transform in zip(fit.names, fit.transforms, strict=True):
        by_name.setdefault(transform.name, []).append(shorten(name, 24))
    if len(by_name) == 1:
        return next(iter(by_name))
    return "; ".join(
        f"{word} ({', '.join(names[:4])}{', …' if len(names) > 4 else ''})"
        for word, names in by_name.items()
    )


def powers_in_words(fit: Fit, level: float = 0.95) -> str:
    """Powers that were learned, with their intervals."""
    told = []
    for name, one in zip(fit.names, fit.powers or (), strict=True):
        if one is not None:
            low, high = one.interval(level)
            ends = f"{100 * level:g} %: {low:.2g} to {high:.2g}"
            told.append(f"{shorten(name, 24)} {one.power:.2g} ({ends})")
    more = f" and {len(told) - MOST_POWERS} more" if len(told) > MOST_POWERS else ""
    return f"power{'s' if len(told) > 1 else ''} of {', '.join(told[:MOST_POWERS])}{more}"


def _columns(fit: Fit, most: int) -> list[str]:
    """Means and standard deviations, with their standard errors where there are any."""
    errors = fit.uncertainty
    mean, deviation = fit.gaussian.mean, fit.gaussian.standard_deviations
    centre, spread = ("mean", "std. dev.") if fit.tails is None else ("location", "scale")
    head = f"{'Column':<25} {'hidden':>7}  {centre:>10} {'(s.e.)':<10}  {spread:>10} {'(s.e.)':<9}"
    lines = [
        RULE,
        (head if errors is not None else head.replace("(s.e.)", "      ")).rstrip(),
        RULE,
    ]
    for j, name in enumerate(fit.names[:most]):
        line = f"{shorten(name, 25):<25} {percent(1.0 - fit.seen_share[j]):>7}"
        for value, error in (
            (mean[j], None if errors is None else errors.mean[j]),
            (deviation[j], None if errors is None else errors.standard_deviation[j]),
        ):
            number, bracket = _with_error(value, error)
            line += f"  {number:>10} {bracket:<10}"
        lines.append(line.rstrip())
    if len(fit.names) > most:
        lines.append(f"… and {len(fit.names) - most} more columns")
    return lines


def _original(fit: Fit, most: int, level: float) -> list[str]:
    """Medians and means in original units."""
    assert fit.transforms is not None
    found = fit.original_scale(level, labels=False)
    all_logs = all(isinstance(t, Log) for t in fit.transforms)
    word = "geometric mean" if all_logs else "median"
    interval = f"{100 * level:g} % interval"
    head = f"{'In original units':<24} {word:>14}  {interval:<20} {'mean':>8} {'P95':>8}"
    lines = ["", head.rstrip(), RULE]
    last = len(found.probabilities) - 1
    for j, name in enumerate(fit.names[:most]):
        interval = _interval(found.median_lower[j], found.median_upper[j])
        lines.append(
            f"{shorten(name, 24):<24} {short_number(found.median[j]):>14}  {interval:<20} "
            f"{short_number(found.mean[j]):>8} {short_number(found.quantiles[j, last]):>8}".rstrip()
        )
    return lines


def knows_correlations(fit: Fit) -> bool:
    """Whether correlations were given to a fit, so that they have no error."""
    return fit.history.get("covariance_structure") in ("known", "known correlation")


def _correlations(fit: Fit, most: int, level: float) -> list[str]:
    d = len(fit.names)
    if d < 2:
        return []
    i, j = np.triu_indices(d, 1)
    r = fit.gaussian.correlation[i, j]
    # Exact zeros were not learned: a structure takes them for granted.
    learned = np.flatnonzero(r != 0.0)
    if not learned.size:
        return ["", "Correlations are 0 by the structure of the covariance."]
    order = learned[np.argsort(-np.abs(r[learned]), kind="stable")][:most]
    title = "Correlation"
    if len(learned) > most:
        title += f" (strongest {most} of {len(learned)})"
    intervals = None
    if fit.uncertainty is not None:
        intervals = fit.confidence_interval(level).without_labels().correlation
    head = f"{title:<50} {'estimate':>9}" + (f"   {100 * level:g} % interval" if intervals else "")
    lines = ["", head, RULE]
    known = knows_correlations(fit)
    for k in order:
        pair = f"{shorten(fit.names[i[k]], 23)} ~ {shorten(fit.names[j[k]], 23)}"
        line = f"{pair:<50} {r[k]:>+9.3f}"
        if intervals is not None:
            low, high = intervals.lower[i[k], j[k]], intervals.upper[i[k], j[k]]
            line += "   known" if known else f"   {low:+.3f} to {high:+.3f}"
        lines.append(line)
    if len(learned) < len(r):
        lines.append(f"{len(r) - len(learned)} more are 0 by the structure of the covariance")
    return lines


def structure_lines(learned: LearnedStructure | None) -> list[str]:
    """Return the parameters of the structure of a covariance, the first of many."""
    if learned is None or not learned:
        return []
    numbers = learned.numbers()
    lines = ["", f"{'Structure of the covariance':<40} {'estimate':>10} (s.e.)".rstrip(), RULE]
    for name, value, error in numbers[:MOST_NUMBERS]:
        number, bracket = _with_error(value, error)
        lines.append(f"{shorten(name, 40):<40} {number:>10} {bracket}".rstrip())
    if len(numbers) > MOST_NUMBERS:
        lines.append(f"… and {len(numbers) - MOST_NUMBERS} more: fit.structure has all")
    return lines


def _notes(fit: Fit, level: float) -> list[str]:
    text = f"{fit.status.name.replace('_', ' ').capitalize()}: {fit.status.value}"
    steps = steps_taken(fit)
    if steps is not None:
        text += f" {steps}"
    noise = monte_carlo_share(fit)
    if noise == 0.0:
        text += " Nothing had to be sampled."
    elif noise is not None:
        text += f" Sampling adds {at_most(noise)} of a standard error to any estimate."
    if fit.uncertainty is not None:
        text += f" Standard errors are from the observed information. {_how_found(fit, level)}"
    lines = ["", RULE, *textwrap.wrap(text, WIDTH)]
    for sentence in [] if fit.loss is None else fit.loss.sentences(fit.names):
        lines += textwrap.wrap(
            printable(sentence), WIDTH, initial_indent="- ", subsequent_indent="  "
        )
    for note in fit.notes:
        if note.text:
            lines += textwrap.wrap(
                printable(note.text), WIDTH, initial_indent="- ", subsequent_indent="  "
            )
    return lines


def _how_found(fit: Fit, level: float) -> str:
    """Say where the intervals that are shown come from."""
    methods = fit.confidence_interval(level).methods["correlation"]
    by_profile = int((methods == "profile").sum()) // 2
    pairs = methods.shape[0] * (methods.shape[0] - 1) // 2
    if (methods == "known").all():
        return ""
    if not by_profile:
        return "Intervals of correlations are from these, on Fisher's scale."
    if by_profile == pairs:
        return "Intervals of correlations are from the profile of the likelihood."
    return (
        f"Intervals of correlations are from these, on Fisher's scale, and {by_profile} of {pairs}, "
        "where that does not agree, from the profile of the likelihood."
    )


def steps_taken(fit: Fit) -> str | None:
    """Say how many steps were taken and what is left to be gained; None where it is not known."""
    # The history of a fit that was loaded may hold anything.
    steps, left = fit.history.get("steps"), fit.history.get("gain_left")
    if not (isinstance(steps, int) and isinstance(left, float) and left >= 0.0):
        return None
    taken = "one step" if steps == 1 else f"{steps:,} steps"
    if left < SMALLEST_GAIN:
        amount = f"less than {SMALLEST_GAIN:g} of a unit"
    elif math.isfinite(left):
        amount = f"about {left:.2g} of a unit" if left < 1.0 else f"about {left:.3g} units"
    else:
        amount = "an unknown amount"
    if str(fit.history.get("covariance_structure")) in REGULARISED:
        return f"The last of {taken} changed the log-likelihood of complete rows by {amount}."
    verb = "are" if 1.0 <= left < math.inf else "is"
    left_words = f"{amount} of log-likelihood {verb} left to be gained"
    return f"After {taken}, {left_words}, by the solver's estimate."


def monte_carlo_share(fit: Fit) -> float | None:
    """Return the largest Monte-Carlo error as a share of the standard error; None where not known."""
    if fit.uncertainty is None or fit.monte_carlo_errors is None:
        return None
    pairs = (
        (fit.monte_carlo_errors.mean, fit.uncertainty.mean),
        (fit.monte_carlo_errors.covariance, fit.uncertainty.covariance),
    )
    shares = [
        np.max(noise[error > 0.0] / error[error > 0.0], initial=0.0) for noise, error in pairs
    ]
    largest = float(max(shares))
    return largest if math.isfinite(largest) else None


def at_most(share: float) -> str:
    """Say that something is no more than a share."""
    return "less than 0.1 %" if share < 0.001 else f"at most {percent(share)}"


def percent(share: float) -> str:
    """Return a share as a percentage that looks like 0 or 100 only where it is exactly that."""
    percent = 100.0 * share
    if 0.0 < percent < 0.1:
        return "<0.1 %"
    if 99.9 < percent < 100.0:
        return ">99.9 %"
    return f"{percent:.1f} %"


def _with_error(value: float, error: float | None) -> tuple[str, str]:
    """Print an estimate to the digits that its error leaves sense to, and the error in brackets."""
    if error is None or not math.isfinite(error) or error <= 0.0:
        return f"{value:.5g}", "" if error is None else "(known)" if error == 0.0 else ""
    # Two digits of the error, and the estimate to the same place.
    places = 1 - math.floor(math.log10(error))
    if not -3 <= places <= 7 or abs(value) >= 1e7:
        return f"{value:.4g}", f"({error:.2g})"
    return f"{value:.{max(places, 0)}f}", f"({error:.{max(places, 0)}f})"


def short_number(value: float) -> str:
    """Print three digits."""
    if not math.isfinite(value):
        return "–"
    if 1e3 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:#.3g}".rstrip(".")


def _interval(low: float, high: float) -> str:
    """Write an interval, which may have no end; nothing where it is not known."""
    if math.isnan(low) or math.isnan(high):
        return ""
    if math.isinf(high):
        return "any" if math.isinf(low) else f"{short_number(low)} or more"
    return (
        f"{short_number(high)} or less"
        if math.isinf(low)
        else f"{short_number(low)} to {short_number(high)}"
    )


def shorten(name: str, width: int) -> str:
    """Cut a name to a width, on one line."""
    line = printable(" ".join(name.split())) or repr(name)
    return line if len(line) <= width else line[: width - 1] + "…"


def structure_record(learned: LearnedStructure) -> dict[str, Any]:
    """Return the parameters of the structure of a covariance as plain data."""
    return {
        "name": learned.name,
        "parameters": {
            name: {
                "estimate": number_of(value),
                "standard_error": None if error is None else number_of(error),
            }
            for name, value, error in learned.numbers()
        },
    }


def as_dict(fit: Fit, level: float = 0.95) -> dict[str, Any]:
    """Return everything that was learned as plain data; see ``Fit.to_dict``."""
    g = fit.gaussian
    out: dict[str, Any] = {
        "method": fit.method,
        "status": fit.status.name,
        "status_text": fit.status.value,
        "notes": [{"status": note.status.name, "text": note.text} for note in fit.notes],
        "rows": fit.rows,
        "columns": list(fit.names),
        "hidden": _vector(fit, 1.0 - fit.seen_share),
        "transforms": dict(zip(fit.names, _transform_names(fit), strict=True)),
        "powers": _powers_record(fit, level),
        "mean": _vector(fit, g.mean),
        "standard_deviation": _vector(fit, g.standard_deviations),
        "covariance": _matrix(fit, g.covariance),
        "correlation": _matrix(fit, g.correlation),
        "standard_errors": None,
        "intervals": None,
        "monte_carlo_errors": None,
        "loss": None if fit.loss is None else _loss_record(fit),
        "original_scale": _original_record(fit, fit.original_scale(level, labels=False)),
        "seed": None if fit.source is None else fit.source.seed,
    }
    if fit.uncertainty is not None:
        errors = fit.uncertainty
        out["standard_errors"] = {
            "mean": _vector(fit, errors.mean),
            "standard_deviation": _vector(fit, errors.standard_deviation),
            "covariance": _matrix(fit, errors.covariance),
            "correlation": _matrix(fit, errors.correlation),
        }
        found = fit.confidence_interval(level).without_labels()
        out["intervals"] = {"level": level} | {
            name: _interval_record(fit, getattr(found, name), found.methods[name]) for name in NAMES
        }
    if fit.structure is not None:
        out["structure"] = structure_record(fit.structure)
    if fit.tails is not None:
        out["tails"] = {
            name: value if isinstance(value, bool) else number_of(value)
            for name, value in asdict(fit.tails).items()
        }
    if fit.monte_carlo_errors is not None:
        out["monte_carlo_errors"] = {
            "mean": _vector(fit, fit.monte_carlo_errors.mean),
            "covariance": _matrix(fit, fit.monte_carlo_errors.covariance),
        }
    return out


def _interval_record(fit: Fit, limits: Limits, methods: Methods) -> dict[str, Any]:
    record = _vector if methods.ndim == 1 else _matrix
    ends = zip(("lower", "upper"), limits, strict=True)
    return {end: record(fit, values) for end, values in ends} | {
        "method": sorted(set(methods.ravel().tolist()) - {"known"})
    }


def _powers_record(fit: Fit, level: float) -> dict[str, Any] | None:
    """Return powers that were learned, by column."""
    if fit.powers is None:
        return None
    out = {}
    for name, one in zip(fit.names, fit.powers, strict=True):
        if one is not None:
            low, high = one.interval(level)
            error = number_of(one.standard_error)
            out[name] = {"power": one.power, "standard_error": error, "lower": low, "upper": high}
    return out


def _loss_record(fit: Fit) -> dict[str, Any]:
    """Return what is known of lost values, for columns in which they may be."""
    loss = fit.loss
    assert loss is not None
    fields = ("share", "standard_error", "lower", "upper", "p_value")
    return {
        fit.names[j]: {"learned": bool(loss.learned[j])}
        | {name: number_of(getattr(loss, name)[j]) for name in fields}
        for j in np.flatnonzero(loss.group >= 0)
    }


def _transform_names(fit: Fit) -> list[str]:
    return [t.name for t in fit.transforms or (Identity(),) * len(fit.names)]


def number_of(value: Any) -> float | None:
    """Return a number as machines read it; None where it is not finite."""
    return float(value) if math.isfinite(value) else None


def _vector(fit: Fit, values: Floats) -> dict[str, float | None]:
    return {name: number_of(value) for name, value in zip(fit.names, values, strict=True)}


def _matrix(fit: Fit, values: Floats) -> dict[str, dict[str, float | None]]:
    return {name: _vector(fit, row) for name, row in zip(fit.names, values, strict=True)}


def _original_record(fit: Fit, found: OriginalScale) -> dict[str, Any]:
    vectors = (
        "median", "median_lower", "median_upper", "mean", "mean_lower", "mean_upper",
        "geometric_deviation",
    )  # fmt: skip
    out: dict[str, Any] = {"level": found.level}
    out |= {name: _vector(fit, getattr(found, name)) for name in vectors}
    for name in ("quantiles", "quantiles_lower", "quantiles_upper"):
        out[name] = {
            column: {str(p): number_of(v) for p, v in zip(found.probabilities, row, strict=True)}
            for column, row in zip(fit.names, getattr(found, name), strict=True)
        }
    return out
