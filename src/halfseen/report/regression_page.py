"""The page of a regression: its sections of words, tables and places for figures, in one HTML file."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfseen.files import write_text_whole
from halfseen.report.html_page import LARGEST_PAGE, Section, shell, target_of
from halfseen.report.numbers import DASH, percent, places_for, readable, show, signed
from halfseen.report.regression_content import MOST_OUTCOMES, RegressionRead, content_of
from halfseen.report.sections import (
    choice,
    details,
    figure,
    part,
    plot,
    reading,
    repeat,
    structure,
)
from halfseen.report.tables import (
    heading,
    name,
    remark,
    table,
    td,
)
from halfseen.solvers.summary import shorten

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

# More equations than this are closed at first.
MOST_OPEN = 3
# Smallest p-value that is written out.
SMALLEST_P = 1e-4
# Outcomes that the page shows: fewer, while it is too large.
FEWER_OUTCOMES = (MOST_OUTCOMES, 50, 20, 10)


def sections_of(content: dict[str, Any]) -> list[Section]:
    """Return all sections of the page."""
    out = [
        Section("fitted", "What was fitted", "What was fitted", fitted(content)),
        Section("coefficients", "Coefficients", "Coefficients", coefficients(content)),
        Section("residuals", "Residuals", "Residuals", residuals(content)),
        Section("effects", "Effects", "One regressor at a time", effects(content)),
    ]
    if content["mills"]:
        out.append(Section("selection", "Selection", "What selection adds", selection(content)))
    return [*out, Section("repeat", "Cite and repeat", "Cite and repeat", repeat(content))]


# What was fitted ---------------------------------------------------------------------------------------


def fitted(content: dict[str, Any]) -> str:
    """Say what the outcomes are, what hides them, and how likely the answer makes them."""
    rule = content["rule"]
    texts = "".join(f"<p>{escape(text)}</p>" for text in rule["texts"])
    if rule["lines"]:
        texts += f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in rule['lines'])}</ul>"
    if rule["code"]:
        texts += f"<pre><code>{escape(rule['code'])}</code></pre>"
    rows = [
        [
            name(shorten(one["name"], 200)),
            td(escape(one["kind"]), "words"),
            td(DASH if one["hidden_share"] is None else percent(one["hidden_share"])),
            td(_cells(one), "words"),
            td(_right_side(one), "words"),
        ]
        for one in content["equations"]
    ]
    titles = ("outcome", "kind", "hidden", "what is known of it", "regressors")
    head = heading(*titles, texts=("kind", "what is known of it", "regressors"))
    return texts + table("Outcomes", head, rows) + _likelihood(content)


def _cells(equation: dict[str, Any]) -> str:
    """Say where hidden cells lie, or how many rows each category has."""
    if equation["categories"] is not None:
        return ", ".join(
            name(label) + ("" if many is None else f" ({many:,})")
            for label, many in equation["categories"]
        )
    told = [f"{escape(word)} ({many:,})" for word, many in equation["hidden"].items()]
    ranged = equation["limit_range"]
    if ranged is not None:
        low, high = readable(ranged["from"], 5), readable(ranged["to"], 5)
        told.append(f"{ranged['many']} limits between {low} and {high}")
    elif equation["limits"]:
        at = ", ".join(readable(x) for x in equation["limits"])
        told.append(f"limit{'s' * (len(equation['limits']) > 1)} {at}")
    return "; ".join(told) or "every value is seen"


def _right_side(equation: dict[str, Any]) -> str:
    terms = [one["name"] for one in equation["terms"]]
    most = 8
    listed = " + ".join(name(shorten(one, 60)) for one in terms[:most])
    return listed + (f" + {len(terms) - most} more" if len(terms) > most else "")


def _likelihood(content: dict[str, Any]) -> str:
    error = content["log_likelihood_error"]
    value = show(content["log_likelihood"], 3)
    if error:
        words = f"Monte-Carlo error {show(error, places_for(error, None))}"
        value += f' <span class="interval">{words}</span>'
    row = [value, *(td(show(content[key], 2)) for key in ("aic", "bic"))]
    row += [td(str(content["parameters"])), td(f"{content['rows']:,}")]
    called = "log-pseudo-likelihood" if content["weighted"] else "log-likelihood"
    head = heading(called, "AIC", "BIC", "parameters", "rows")
    return table("How likely the outcomes are, given the regressors", head, [row])


# Coefficients ------------------------------------------------------------------------------------------


def coefficients(content: dict[str, Any]) -> str:
    """Make the forest plot, and a table for each equation."""
    equations = content["equations"]
    seen = any(_has(one, "naive") for one in equations)
    half = any(_has(one, "half") for one in equations)
    text = f"<p>{escape(content['errors'])}"
    if seen:
        text += " “Seen rows” is least squares over the rows in which the outcome is seen"
        text += (
            ", and “half limit” the same after half the limit was put in place of every value below it."
            if half
            else "."
        )
    text += "</p>"
    if not content["has_table"]:
        text += remark(
            "This fit does not hold its table, so the page shows what was learned without the data: no "
            "naive numbers, no residuals and no effects."
        )
    many = len(equations)
    listed = [_table_of(one, content) for one in equations]
    if many > 1:
        listed = [
            details(_summary(one), inside, " open" if many <= MOST_OPEN else "")
            for one, inside in zip(equations, listed, strict=True)
        ]
    return text + _forest(content, seen, half) + "".join(listed)


def _has(equation: dict[str, Any], key: str) -> bool:
    return any(term[key] is not None for term in equation["terms"])


def _summary(equation: dict[str, Any]) -> str:
    many = len(equation["terms"])
    hidden = equation["hidden_share"]
    what = equation["kind"] if hidden is None else f"{percent(hidden)} hidden"
    return f"{shorten(equation['name'], 80)}: {many} term{'s' * (many != 1)}, {what}"


def _forest(content: dict[str, Any], seen: bool, half: bool) -> str:
    equations = content["equations"]
    controls = ""
    if len(equations) > 1:
        controls += choice("Outcome", "forest-outcome", [one["name"] for one in equations])
    if content["has_table"]:
        scales = ["one unit", "one standard deviation"]
        controls += choice("For a change of the regressor by", "forest-scale", scales)
    caption = "Filled: recovered"
    caption += ", with 95 % intervals." if content["has_errors"] else "."
    if seen:
        caption += part("seen", "Pale circles: seen rows, least squares.")
    if half:
        caption += part("half", "Pale diamonds: half the limit.")
    caption += part("given", "Hollow: given, not learned.")
    caption += part("scaled", "Regressors that are 0 or 1 change by one.")
    caption += part("intercept", "The intercept is in the table alone.")
    caption += part("latent", "Units are standard deviations of the latent residual.")
    caption += part("most", "Drawn are the 60 that are furthest from zero, in standard errors.")
    return figure("forest", plot("forest"), caption, controls)


def _table_of(equation: dict[str, Any], content: dict[str, Any]) -> str:
    """Make the table of an equation's coefficients, and its cut points."""
    sure, seen, half = content["has_errors"], _has(equation, "naive"), _has(equation, "half")
    words = ["term", "estimate"]
    words += ["s.e.", "95 % interval", "p"] if sure else []
    words += ["seen rows"] * seen + ["half limit"] * half
    rows = [_term_row(term, sure, seen, half) for term in equation["terms"]]
    for cut in equation["cuts"]:
        places = places_for(cut["error"], cut["estimate"])
        row = [f"cut {name(shorten(cut['name'], 120))}", td(show(cut["estimate"], places), "main")]
        if sure:
            error = "given" if not cut["learned"] else show(cut["error"], places)
            row += [td(error), td("", "interval"), td("")]
        rows.append([*row, *[td("")] * (seen + half)])
    return table(f"Coefficients of {shorten(equation['name'], 120)}", heading(*words), rows)


def _term_row(term: dict[str, Any], sure: bool, seen: bool, half: bool) -> list[str]:
    places = places_for(term["error"], term["estimate"])
    row = [name(shorten(term["name"], 200)), td(show(term["estimate"], places), "main")]
    if sure and term["learned"]:
        ends = f"{show(term['lower'], places)} to {show(term['upper'], places)}"
        row += [td(show(term["error"], places)), td(ends, "interval"), td(_p(term["p"]))]
    elif sure:
        row += [td("given"), td("", "interval"), td("")]
    row += [td(show(term["naive"], places), "naive")] * seen
    return row + [td(show(term["half"], places), "naive")] * half


def _p(value: float | None) -> str:
    if value is None:
        return DASH
    return f"&lt; {SMALLEST_P:.4f}" if value < SMALLEST_P else f"{value:.4f}"


# Residuals ---------------------------------------------------------------------------------------------


def residuals(content: dict[str, Any]) -> str:
    """Make tables of deviations and correlations, and figures of quantile residuals."""
    out = structure(content) + _residual_tables(content)
    if content["points"] is None:
        return out
    equations = content["equations"]
    controls = ""
    if len(equations) > 1:
        controls = choice("Outcome", "residual-outcome", [one["name"] for one in equations])
    inside = reading("residual") + (
        f'<div class="side">{plot("quantile", label="Normal quantile plot of the residuals")}'
        f"{plot('against', label='Residuals against the linear predictor')}</div>"
    )
    text = (
        "<p>Quantile residuals are standard normal if the model is right, whatever hides values: those "
        "of hidden values are drawn from where the value can be, given all that is seen of the row. So "
        "a wrong shape shows where values are seen; what is hidden cannot contradict it.</p>"
    )
    return out + text + figure("residual", inside, _residual_caption(content), controls)


def _residual_tables(content: dict[str, Any]) -> str:
    found, equations = content["residuals"], content["equations"]
    sure = content["has_errors"]
    rows = []
    for one, equation in zip(found["deviations"], equations, strict=True):
        ends = one["interval"]
        places = places_for(None if ends is None else (ends[1] - ends[0]) / 4.0, one["estimate"])
        words = "" if ends is None else f"{show(ends[0], places)} to {show(ends[1], places)}"
        if one["given"]:
            places, words = 0, "given"
        row = [name(shorten(equation["name"], 120)), td(show(one["estimate"], places), "main")]
        row += [td(words, "interval"), td(show(one["naive"], places), "naive")]
        rows.append(row)
    head = heading("outcome", "recovered", "95 % interval" if sure else "", "seen rows")
    given = [one["given"] for one in found["deviations"]]
    scale = "<p>The residual of a latent outcome has the standard deviation 1: its scale.</p>"
    scale = scale if any(given) else ""
    out = "" if all(given) else table("Standard deviations of residuals", head, rows)
    if not found["pairs"]:
        return scale + out
    listed = []
    for pair in found["pairs"]:
        a, b = (name(shorten(equations[k]["name"], 80)) for k in pair["of"])
        ends = pair["interval"]
        words = "" if ends is None else f"{signed(ends[0])} to {signed(ends[1])}"
        known = pair["estimate"] is not None
        own = signed(pair["estimate"]) if known else "not determined"
        words = words if known or not words else f"anywhere from {words}"
        listed.append([f"{a} ~ {b}", td(own, "main"), td(words, "interval")])
    caption = "Correlations of residuals" + (", strongest first" if len(listed) > 1 else "")
    if found["all_pairs"] > len(listed):
        caption += f": {len(listed)} of {found['all_pairs']:,} pairs"
    of_pairs = table(caption, heading("pair", "recovered", "95 % interval" if sure else ""), listed)
    return f'{scale}<div class="tables">{out}{of_pairs}</div>'


def _residual_caption(content: dict[str, Any]) -> str:
    envelope, points = content["envelope"], content["points"]
    caption = "Ordered residuals against those of a normal sample. "
    if envelope["refitted"]:
        caption += (
            f"Shaded: the least and the largest of {envelope['refitted']} tables that the fit "
            "simulated, with cells hidden by the same rule, each fitted again; of a right model one "
            "point in twenty lies outside."
        )
    else:
        caption += (
            "Shaded: where each order statistic of a normal sample lies with 95 %; a little wide, as it "
            "knows nothing of what was fitted. Tables were not simulated: "
            f"{escape(envelope['why'])}."
        )
    drawn = max((len(one["normal"]) for one in content["quantiles"]), default=0)
    most = max((one["count"] for one in content["quantiles"]), default=0)
    if drawn < most:
        caption += f" Drawn are {drawn:,} of {most:,} residuals, with all of the most extreme."
    caption += " In the other figure: residuals against the linear predictor."
    caption += part("hidden", "Hollow: drawn for hidden values.")
    caption += part(
        "latent", "Residuals of a latent outcome are drawn within the category of the row."
    )
    if any(one["bins"]["at"] for one in points):
        caption += " Line: means of tenths of the rows, with 95 % intervals."
    return caption + _thinned(content)


def _thinned(content: dict[str, Any]) -> str:
    drawn, rows = len(content["drawn_rows"]), content["rows"]
    return (
        ""
        if drawn >= rows
        else f" Drawn are {drawn:,} of {rows:,} rows, spread evenly over the table."
    )


# Effects and selection ---------------------------------------------------------------------------------


def effects(content: dict[str, Any]) -> str:
    """Make the figure of predictions along one variable."""
    if not content["effects"] or content["points"] is None:
        return (
            "<p>There are no regressors that are held with the fit, so nothing to look along.</p>"
        )
    equations = content["equations"]
    controls = ""
    if len(equations) > 1:
        controls += choice("Outcome", "effect-outcome", [one["name"] for one in equations])
    controls += choice("Along", "effect-variable", [one["name"] for one in content["variables"]])
    if any(one["kind"] == "ordered" for one in equations):
        controls += choice("Of ordered outcomes", "effect-view", ["probabilities", "latent number"])
    caption = "Solid: the mean of the outcome, hidden values included"
    band = ", with a 95 % band" if content["has_errors"] else ""
    caption = part("latent", caption + band + ".").strip()
    caption += part("seen", "Dashed: the mean of those values that are seen" + band + ".")
    caption += part("chance", "Solid: the probability of the second category" + band + ".")
    caption += part("chances", "Lines: the probability of each category" + band + ".")
    caption += part(
        "cuts",
        "Solid: the mean of the latent number" + band + ". Dotted: cut points between categories.",
    )
    caption += part("dots", "Dots: seen values as they are, not adjusted for other regressors.")
    caption += part("apart", "Rows with the same value are drawn a little apart.")
    caption += part("ticks", "Ticks: hidden values, at the limits beyond which they lie.")
    caption += part(
        "edge", "Ticks at the lower edge: rows in which the outcome is not seen, and has no limit."
    )
    caption += part("rows", "Ticks at the edges: rows of either category.")
    caption += part(
        "why", "What would be seen of new rows is not drawn; the sentence above says why."
    )
    if content["variables"]:
        caption += " The other regressors are at their means, or their reference categories."
    return figure(
        "effect", reading("effect") + plot("effect"), caption + _thinned(content), controls
    )


def selection(content: dict[str, Any]) -> str:
    """Say what selection adds to the outcomes that are seen, and what tells it from the regressors."""
    out = ""
    for one in content["mills"]:
        share, whose = one["share"], name(shorten(one["name"], 80))
        index = name(shorten(one["index"], 80))
        out += f"<p>{whose}: the residuals of those who are seen"
        if one["average"] is not None:
            way = "above" if one["average"] > 0.0 else "below"
            size = abs(one["average"])
            out += f" lie {show(size, places_for(size, None))} {way} zero on average"
        out += f": their covariance with those of {index}, times the Mills ratio λ. "
        out += f"The regressors of {whose} explain {percent(share)} of the variance of λ"
        own = ", ".join(name(shorten(term, 60)) for term in one["own"][:6])
        if share > one["collinear"]:
            out += ": selection is told from them by the normal law of the residuals alone."
        elif own:
            out += (
                f"; the rest, which tells selection from them, is of {own} and of the curve of λ."
            )
        else:
            out += "; what tells selection from them is the curve of λ alone: no regressor is left out."
        out += "</p>"
    names = [f"{one['name']}, by {one['index']}" for one in content["mills"]]
    controls = choice("Outcome", "mills-pair", names) if len(names) > 1 else ""
    caption = (
        "What selection adds to the mean of each row that is seen, against the linear predictor of "
    )
    caption += "the outcome. Where the points lie on a line, regressors can stand in for selection."
    return out + figure("mills", plot("mills"), caption + _thinned(content), controls)


def write_regression_report(
    fit: RegressionFit,
    path: str | os.PathLike[str],
    *,
    call: str | None = None,
    title: str | None = None,
) -> Path:
    """Write a page about a regression: one HTML file that works offline, with everything in it.

    Parameters
    ----------
    fit : RegressionFit
    path : str or path
        Where to write; written whole or not at all.
    call : str, optional
        The call that repeats the analysis, to be printed; put together from the fit by default.
    title : str, optional

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile, numpy as np, halfseen as hs
    >>> from halfseen.report import write_regression_report
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> fit = hs.regress(2.0 * x + rng.normal(size=(200, 1)), x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_regression_report(fit, folder + "/report.html").stat().st_size < 1_500_000
    True
    """
    target = target_of(path)
    read = RegressionRead(fit)
    title = None if title is None else str(title)
    for most_outcomes in FEWER_OUTCOMES:
        page = regression_page_of(content_of(read, call, title, most_outcomes))
        if len(page.encode()) < LARGEST_PAGE:
            break
    write_text_whole(target, page)
    return target


def regression_page_of(content: dict[str, Any]) -> str:
    """Put the page together from its parts."""
    return shell(content, sections_of(content), "regression.js")
