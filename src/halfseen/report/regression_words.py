"""Sentences of the page of a regression: what was learned, what the rules are, how to repeat it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from halfseen.data.coding import FormulaCoding
from halfseen.missingness.selection import Selection
from halfseen.report.numbers import percent
from halfseen.report.words import (
    LONGEST_PART,
    LONGEST_RULE,
    in_call,
    in_words,
    named_publicly,
    written,
)
from halfseen.solvers.regression.outcomes import Outcomes
from halfseen.solvers.result import name_some
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

# Names of outcomes that a sentence has.
MOST_NAMES = 6
# Moves of a coefficient below this are called nearly none, in standard errors.
NEARLY = 0.5


def learned(fit: RegressionFit, equations: Sequence[dict[str, Any]]) -> list[str]:
    """Say in a few sentences what was fitted, and what it changes."""
    told = []
    for j, name in enumerate(fit.outcomes[:MOST_NAMES]):
        what = fit.kinds[j]
        if what == "continuous":
            hidden = 1.0 - fit.seen_share[j]
            what = f"{percent(hidden)} hidden" if hidden > 0.0 else "all seen"
        told.append(f"{shorten(name, 60)} ({what})")
    if len(fit.outcomes) > MOST_NAMES:
        told.append(f"{len(fit.outcomes) - MOST_NAMES} more")
    q = len(fit.outcomes)
    listed = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    terms = len(fit.terms)
    first = (
        f"A regression of {listed} on {terms} term{'s' * (terms != 1)}, learned from {fit.rows:,} rows"
        f"{' together' if q > 1 else ''} by maximum likelihood"
    )
    return [f"{first}.", *_most_changed(equations)]


def odd_residuals(names: Sequence[str], shown: int) -> list[str]:
    """Name the outcomes whose residuals are not those that the model simulates."""
    if not names:
        return []
    several = "One outcome in forty" if shown > 1 else "One in forty"
    return [
        f"The residuals of {name_some([shorten(n, 60) for n in names], MOST_NAMES)} are not those of "
        "the model: they lie outside of what it simulates at more places than any simulated table. "
        f"{several} looks so where the model is right."
    ]


def _most_changed(equations: Sequence[dict[str, Any]]) -> list[str]:
    """Name the coefficient that a naive regression has most wrong, in standard errors."""
    best, where = 0.0, None
    for equation in equations:
        for term in equation["terms"]:
            if term["naive"] is None or not term["error"] or term["name"] == "Intercept":
                continue
            move = (term["naive"] - term["estimate"]) / term["error"]
            if abs(move) > abs(best):
                best, where = move, (equation, term)
    if where is None or all(e["hidden_share"] in (None, 0.0) for e in equations):
        return []
    if abs(best) < NEARLY:
        return [
            "Least squares over the rows in which an outcome is seen would have given nearly the same "
            f"slopes: none is further than {abs(best):.1f} standard errors away."
        ]
    equation, term = where
    way = "above" if best > 0.0 else "below"
    return [
        f"Least squares over the {equation['naive_rows']:,} rows in which "
        f"{shorten(equation['name'], 60)} is seen would put the coefficient of "
        f"{shorten(term['name'], 60)} at {_digits(term['naive'])} "
        f"instead of {_digits(term['estimate'])}, {abs(best):.1f} standard errors {way}."
    ]


def _digits(x: float) -> str:
    return f"{x:.3g}".replace("-", "−")


def errors_of(fit: RegressionFit) -> str:
    """Say where standard errors come from."""
    weighted = "Rows have weights. " if fit.is_weighted else ""
    if fit.penalty is not None:
        pull = f"the {fit.penalty.kind}, strength {_digits(fit.penalty.strength or 0.0)}"
        return (
            f"{weighted}A penalty ({pull}) pulls coefficients towards 0, so there are no standard "
            "errors, and no intervals."
        )
    if fit.covariance is None:
        return f"{weighted}This fit has no standard errors, so there are no intervals."
    if fit.clusters is not None:
        clusters = f"{fit.clusters:,} clusters of rows (the sandwich)"
        return f"{weighted}Standard errors are robust, from {clusters}."
    if fit.is_robust:
        return (
            f"{weighted}Standard errors are robust (the sandwich): they do not believe the model."
        )
    return "Standard errors are those of the model, from the curvature of its likelihood."


def rules_of(fit: RegressionFit) -> dict[str, Any]:
    """Say what hides values: sentences, and the rule in words, or as it is written without any."""
    if fit.source is None:
        text = "This fit does not hold its table and its rules; what hid values is believed to be known."
        return {"texts": [text], "lines": None, "code": None}
    outcomes = fit.source.model.outcomes
    texts = _selections(outcomes)
    code = lines = None
    if outcomes.rule is not None:
        lines = in_words(outcomes.rule, outcomes.names)
        code = (
            shorten(named_publicly(written(outcomes.rule)), LONGEST_RULE) if lines is None else None
        )
        texts.append(
            "Rows are in the table only where the outcome lies in this set."
            if fit.truncation is not None
            else "A value is shown where this rule holds, and hidden otherwise."
        )
    continuous, data = ~outcomes.latent, outcomes.data
    own = int(
        (~data.seen & (np.isfinite(data.lower) | np.isfinite(data.upper)))[:, continuous].sum()
    )
    if own:
        cells = (
            "One cell says its own limits" if own == 1 else f"{own:,} cells say their own limits"
        )
        texts.append(f"{cells}, as in “<0.05”, and these are believed to be right.")
    blank = int((outcomes.at_random & ~outcomes.unselected() & ~data.seen)[:, continuous].sum())
    if outcomes.rule is None:
        unknown = data.at_random & ~outcomes.unselected()
        blank = max(blank, int(unknown[:, continuous].sum()))
    if blank:
        cells = "One cell is" if blank == 1 else f"{blank:,} cells are"
        texts.append(f"{cells} believed to be missing at random.")
    if not texts:
        texts = [
            "Every value of the outcomes is seen."
            if continuous.any()
            else "The category of every row is known."
        ]
    return {"texts": texts, "lines": lines, "code": code}


def _selections(outcomes: Outcomes) -> list[str]:
    """Say of each selection what it shows."""
    names, texts = outcomes.names, []
    for one in outcomes.selections:
        whose = name_some([shorten(names[k], 60) for k in one.places], MOST_NAMES)
        way = "positive" if one.when else "not positive"
        verb = "is" if len(one.places) == 1 else "are"
        texts.append(
            f"{whose} {verb} seen in the rows in which the latent number behind "
            f"{shorten(names[one.index], 60)} is {way} (selection)."
        )
    return texts


def left_out(names: Sequence[str], shown: int) -> str | None:
    """Say which outcomes are left out of a page that would be too large."""
    rest = list(names[shown:])
    if not rest:
        return None
    return (
        f"The page shows the first {shown} of {len(names)} outcomes; left out are "
        f"{name_some([shorten(n, 40) for n in rest])}. All were learned together."
    )


def call_of(fit: RegressionFit) -> str:
    """Put together the call that repeats a fit, as far as the fit knows it."""
    if fit.source is None:
        return "fit = hs.regress(model, data, rules)"
    lines: list[str] = []
    arguments = [*_model_of(fit), *_rules_in_call(fit, lines), *_options(fit)]
    lines.append(f"fit = hs.regress({', '.join(arguments)})")
    return "\n".join(lines)


def _model_of(fit: RegressionFit) -> list[str]:
    """Return the formulas and the data, or the arrays."""
    coding = None if fit.design is None else fit.design.coding
    if not isinstance(coding, FormulaCoding):
        return ["Y", "X"]
    sides = [_right_side(terms) for terms in coding.equations]
    plain = all(name.isidentifier() for name in fit.outcomes)
    if plain and len(set(sides)) == 1:
        return [_quoted(f"{' + '.join(fit.outcomes)} ~ {sides[0]}"), "data"]
    pairs = zip(fit.outcomes, sides, strict=True)
    return [f"{{{', '.join(f'{_quoted(n)}: {_quoted(s)}' for n, s in pairs)}}}", "data"]


def _right_side(terms: Sequence[Any]) -> str:
    named = [":".join(factor.source for factor in term) for term in terms if term]
    without = [] if any(not term for term in terms) else ["0"]
    return " + ".join([*without, *named]) or "1"


def _quoted(text: Any) -> str:
    return json.dumps(text, ensure_ascii=False)


def _rules_in_call(fit: RegressionFit, lines: list[str]) -> list[str]:
    assert fit.source is not None
    outcomes = fit.source.model.outcomes
    rules = [_selection(one, outcomes.names) for one in outcomes.selections]
    if outcomes.rule is not None:
        text = in_call(outcomes.rule, lines)
        if fit.truncation is not None:
            return [f"truncated={text}"]
        rules.append(text)
    if not rules:
        return []
    return rules if len(rules) == 1 else [f"[{', '.join(rules)}]"]


def _selection(one: Selection, names: Sequence[str]) -> str:
    own = [names[k] for k in one.places]
    first = _quoted(own[0]) if len(own) == 1 else f"[{', '.join(map(_quoted, own))}]"
    when = "" if one.when else ", when=False"
    return f"hs.Selection({first}, by={_quoted(names[one.index])}{when})"


def _options(fit: RegressionFit) -> list[str]:
    """Return what was said by name."""
    assert fit.source is not None
    model, out = fit.source.model, []
    indices = {one.index for one in model.outcomes.selections}
    told = {
        name: list(fit.categories[name]) if _words(fit.categories[name]) else kind
        for j, (name, kind) in enumerate(zip(fit.outcomes, fit.kinds, strict=True))
        if kind != "continuous" and j not in indices
    }
    if told:
        pairs = ", ".join(f"{_quoted(name)}: {kind!r}" for name, kind in told.items())
        out.append(f"kinds={{{pairs}}}")
    free = model.free[np.tril_indices(len(model.free), -1)]
    if model.structure is not None:
        out.append(f"covariance={model.structure.name!r}")
    elif free.size and not free.any():
        given = model.given[np.tril_indices(len(model.free), -1)]
        out.append("covariance=covariance" if given.any() else 'covariance="diagonal"')
    fixed = {
        name: {
            model.terms[t]: float(model.fixed[j, t])
            for t in np.flatnonzero(~np.isnan(model.fixed[j]))
        }
        for j, name in enumerate(fit.outcomes)
    }
    fixed = {name: terms for name, terms in fixed.items() if terms}
    if fixed:
        text = repr(fixed)
        out.append(f"fixed={text if len(text) < LONGEST_PART else 'fixed'}")
    if model.ties is not None:
        out.append("equal=equal")
    hidden = model.outcomes.at_random & ~model.outcomes.unselected() & ~model.outcomes.data.seen
    if model.outcomes.rule is not None and hidden[:, ~model.outcomes.latent].any():
        out.append("missing_at_random=missing_at_random")
    if fit.is_weighted:
        out.append("weights=weights")
    if fit.penalty is not None:
        out.append(f"penalty={fit.penalty.kind!r}, strength={fit.penalty.strength!r}")
    if fit.clusters is not None:
        out.append("cluster=cluster")
    elif fit.is_robust and not fit.is_weighted:
        out.append("robust=True")
    return [*out, f"random_state={fit.source.seed!r}"]


def _words(categories: Sequence[Any]) -> bool:
    return any(isinstance(one, str) for one in categories)
