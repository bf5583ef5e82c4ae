"""All numbers of the page of a regression, as one plain dictionary that JSON can hold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report import regression_words, words
from halfseen.report.content import MOST_ROWS, spread_evenly, structure_content
from halfseen.report.marginals import drawn_cells, number, numbers
from halfseen.report.regression_effects import Variables, effect_curves, read_variables
from halfseen.report.regression_residuals import mills, naive_coefficients, residual_content
from halfseen.report.shown_table import Kind, ShownColumn, ShownTable, shown_of

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]

# Level of the intervals.
LEVEL = 0.95
# Outcomes and variables that the page has figures of, and pairs of residuals that it lists.
MOST_OUTCOMES, MOST_VARIABLES, MOST_PAIRS = 100, 30, 300
# Numbers of drawn rows that the page has: of a row those of each variable, and three of each outcome.
MOST_NUMBERS, FEWEST_ROWS = 40_000, 100


def regression_content(
    fit: RegressionFit,
    *,
    call: str | None = None,
    title: str | None = None,
    most_outcomes: int = MOST_OUTCOMES,
) -> dict[str, Any]:
    """Return everything that the page of a regression shows, as a dictionary of plain values.

    Parameters
    ----------
    fit : RegressionFit
    call : str, optional
        The call that repeats the analysis; put together from the fit by default.
    title : str, optional
    most_outcomes : int
        How many outcomes are shown.

    Returns
    -------
    dict
        Numbers, texts, lists and dictionaries; a number that is not known is None.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> from halfseen.report import regression_content
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 70, 300)
    >>> lead = 0.02 * age + rng.normal(size=300)
    >>> data = {"age": age, "lead": np.where(lead >= 0.5, lead, np.nan)}
    >>> fit = hs.regress("lead ~ age", data, {"lead": ">=0.5"}, random_state=0)
    >>> _, age = regression_content(fit)["equations"][0]["terms"]
    >>> age["naive"] < age["estimate"]  # rows whose value is hidden are left out
    True
    """
    return content_of(RegressionRead(fit), call, title, most_outcomes)


@dataclass(frozen=True, eq=False)
class RegressionRead:
    """A regression, with all that takes time to read from it read once.

    Attributes
    ----------
    fit : RegressionFit
    """

    fit: RegressionFit

    @cached_property
    def table(self) -> ShownTable | None:
        """What is known of each cell of the outcomes; None where the fit does not hold its table."""
        if self.fit.source is None:
            return None
        problem = self.fit.source.model.outcomes.problem()
        return shown_of(problem, problem.centre, problem.scale)

    @cached_property
    def columns(self) -> list[ShownColumn] | None:
        """The same for each outcome."""
        if self.table is None or self.fit.source is None:
            return None
        values = self.fit.source.model.outcomes.data.values
        spread = np.sqrt(np.diag(self.fit.residual))
        return [
            exactly(self.table.column(j), values[:, j], float(spread[j]))
            for j in range(len(self.fit.outcomes))
        ]

    @cached_property
    def variables(self) -> Variables | None:
        """The columns that regressors are made of."""
        return read_variables(self.fit, MOST_VARIABLES)

    @cached_property
    def effects(self) -> list[list[dict[str, Any]]]:
        """Predictions along each variable, for each outcome."""
        return [] if self.variables is None else effect_curves(self.fit, self.variables)

    @cached_property
    def naive(self) -> list[dict[str, Any]]:
        """What would be said without the hidden cells, and with half the limit in their place."""
        return naive_coefficients(self.fit, self.columns)

    @cached_property
    def residuals(self) -> dict[str, Any] | None:
        """Quantile residuals, their envelope, and which rows are drawn."""
        if self.fit.source is None:
            return None
        return residual_content(self.fit)


def exactly(cells: ShownColumn, values: Floats, spread: float) -> ShownColumn:
    """Return cells with the seen values of the table, and limits without what units left of rounding."""
    places = 12 - int(np.floor(np.log10(spread)))
    seen = cells.kind == Kind.SEEN
    lower, upper = (
        np.where(seen, values, np.where(np.isfinite(end), np.round(end, places), end))
        for end in (cells.lower, cells.upper)
    )
    return replace(cells, lower=lower, upper=upper)


def content_of(
    read: RegressionRead, call: str | None, title: str | None, most_outcomes: int
) -> dict[str, Any]:
    """Put everything together that the page shows."""
    fit = read.fit
    shown = min(len(fit.outcomes), most_outcomes)
    rows = drawn_rows(read, shown)
    equations = [equation_of(read, j) for j in range(shown)]
    name = " and ".join(fit.outcomes[:2]) if len(fit.outcomes) < 3 else None
    quantiles = None if read.residuals is None else read.residuals["quantiles"][:shown]
    odd = [fit.outcomes[j] for j, one in enumerate(quantiles or []) if one["odd"]]
    return {
        "title": title
        or (f"What {name} depend{'s' * (len(fit.outcomes) == 1)} on" if name else None)
        or f"What {len(fit.outcomes)} outcomes depend on",
        "rows": fit.rows,
        "level": LEVEL,
        "has_table": read.table is not None,
        "has_errors": fit.covariance is not None,
        "learned": [
            *regression_words.learned(fit, equations),
            *regression_words.odd_residuals(odd, shown),
        ],
        "left_out": regression_words.left_out(fit.outcomes, shown),
        "status": words.described_status(fit.status, (), fit.notes),
        "rule": regression_words.rules_of(fit),
        "errors": regression_words.errors_of(fit),
        "log_likelihood": number(fit.log_likelihood),
        "log_likelihood_error": number(fit.log_likelihood_error),
        "weighted": fit.is_weighted,
        "aic": number(fit.aic),
        "bic": number(fit.bic),
        "parameters": fit.parameters,
        "equations": equations,
        "residuals": _residuals(read, shown),
        "structure": structure_content(read.fit.structure),
        "drawn_rows": [] if read.table is None else rows.tolist(),
        "points": _points(read, shown, rows),
        "quantiles": quantiles,
        "envelope": None if read.residuals is None else read.residuals["envelope"],
        "variables": variables_of(read, rows),
        "effects": read.effects[:shown],
        "mills": mills(fit, rows, shown),
        "call": call or regression_words.call_of(fit),
        "paper": words.PAPER,
        "versions": words.versions(),
    }


def drawn_rows(read: RegressionRead, shown: int) -> NDArray[np.intp]:
    """Return the rows that figures draw, spread evenly over the table."""
    of_a_row = 3 * shown + (0 if read.variables is None else len(read.variables.all))
    most = max(MOST_NUMBERS // max(of_a_row, 1), FEWEST_ROWS)
    return spread_evenly(read.fit.rows, min(MOST_ROWS, most))


def equation_of(read: RegressionRead, j: int) -> dict[str, Any]:
    """Return the coefficients of an outcome, and what is known of the outcome."""
    fit = read.fit
    name, known = fit.outcomes[j], fit.covariance is not None
    errors = fit.standard_errors if known else None
    ends = errors.coefficient_limits(LEVEL) if errors is not None else None
    p = errors.p_values() if errors is not None else None
    naive = read.naive[j]
    terms = []
    for t in np.flatnonzero(fit.mask[j]).tolist():
        learned = bool(fit.free[j, t])
        sure = errors is not None and learned
        terms.append(
            {
                "name": fit.terms[t],
                "estimate": number(fit.weights[j, t]),
                "error": number(errors.weights[j, t]) if sure and errors is not None else None,
                "p": number(p[j, t]) if sure and p is not None else None,
                "lower": number(ends.lower[j, t]) if sure and ends is not None else None,
                "upper": number(ends.upper[j, t]) if sure and ends is not None else None,
                "learned": learned,
                "spread": number(spread_of(fit, t)),
                "naive": None if naive["seen"] is None else number(naive["seen"][t]),
                "half": None if naive["half"] is None else number(naive["half"][t]),
            }
        )
    return {
        "name": name,
        "kind": fit.kinds[j],
        "hidden_share": number(1.0 - fit.seen_share[j]) if fit.kinds[j] == "continuous" else None,
        "terms": terms,
        "cuts": _cuts(fit, name),
        "naive_rows": naive["rows"],
        **_cells(read, j),
    }


def spread_of(fit: RegressionFit, term: int) -> float:
    """Return the standard deviation of a regressor, 1 if it is 0 or 1; NaN where rows are not held."""
    if fit.source is None:
        return float("nan")
    values = fit.source.model.W[:, term]
    return 1.0 if np.isin(values, (0.0, 1.0)).all() else float(np.std(values))


def _cells(read: RegressionRead, j: int) -> dict[str, Any]:
    """Say what is known of the cells of an outcome: where hidden ones lie, limits, categories."""
    fit = read.fit
    out: dict[str, Any] = {"hidden": {}, "limits": [], "limit_range": None, "categories": None}
    if fit.kinds[j] != "continuous":
        labels = [str(one) for one in fit.categories[fit.outcomes[j]]]
        counts: list[int | None] = [None] * len(labels)
        if fit.source is not None:
            codes = fit.source.model.outcomes.codes[:, j]
            counts = np.bincount(
                codes[~np.isnan(codes)].astype(int), minlength=len(labels)
            ).tolist()
        return {**out, "categories": [list(pair) for pair in zip(labels, counts, strict=True)]}
    if read.columns is None or fit.source is None:
        return out
    cells = read.columns[j]
    count = np.bincount(cells.kind, minlength=len(Kind))
    hidden = {kind.words: int(count[kind]) for kind in Kind if kind != Kind.SEEN and count[kind]}
    unselected = int(fit.source.model.outcomes.unselected()[:, j].sum())
    anywhere = hidden.pop(Kind.ANYWHERE.words, 0)
    if unselected:
        hidden["not selected"] = unselected
    if anywhere > unselected:
        hidden["missing, anywhere"] = anywhere - unselected
    out["hidden"] = hidden
    ends = np.concatenate(
        [cells.upper[cells.kind == Kind.BELOW], cells.lower[cells.kind == Kind.ABOVE]]
    )
    limits = np.unique(ends)
    if limits.size > 4:
        out["limit_range"] = {
            "from": number(limits[0]),
            "to": number(limits[-1]),
            "many": limits.size,
        }
    else:
        out["limits"] = numbers(limits)
    return out


def _cuts(fit: RegressionFit, name: str) -> list[dict[str, Any]]:
    """Return where the categories of an ordered outcome begin."""
    if name not in fit.cut_points:
        return []
    labels = [str(one) for one in fit.categories[name]]
    errors = fit.standard_errors.cut_points[name] if fit.covariance is not None else None
    return [
        {
            "name": f"{labels[k]} | {labels[k + 1]}",
            "estimate": number(cut),
            "error": None if errors is None or k == 0 else number(errors[k]),
            "learned": k > 0,
        }
        for k, cut in enumerate(fit.cut_points[name])
    ]


def _residuals(read: RegressionRead, shown: int) -> dict[str, Any]:
    """Return standard deviations of residuals, and correlations of the strongest pairs."""
    fit = read.fit
    deviation = np.sqrt(np.diag(fit.residual))
    errors = fit.standard_errors if fit.covariance is not None else None
    ends = errors.deviation_limits(LEVEL) if errors is not None else None
    deviations = []
    for j in range(shown):
        latent = fit.kinds[j] != "continuous"
        sure = ends is not None and not latent and ends.lower[j] < ends.upper[j]
        deviations.append(
            {
                "estimate": number(deviation[j]),
                "given": latent,
                "interval": numbers([ends.lower[j], ends.upper[j]]) if sure and ends else None,
                "naive": number(read.naive[j]["deviation"]),
            }
        )
    # NaN where no row says something of both.
    R = np.asarray(fit.residual_correlation, dtype=float)
    of_pairs = errors.correlation_limits(LEVEL) if errors is not None else None
    a, b = np.triu_indices(shown, 1)
    order = np.argsort(-np.nan_to_num(np.abs(R[a, b])), kind="stable")[:MOST_PAIRS]
    pairs = []
    for i, j in zip(a[order].tolist(), b[order].tolist(), strict=True):
        sure = of_pairs is not None and of_pairs.lower[i, j] < of_pairs.upper[i, j]
        interval = (
            numbers([of_pairs.lower[i, j], of_pairs.upper[i, j]]) if sure and of_pairs else None
        )
        pairs.append({"of": [i, j], "estimate": number(R[i, j]), "interval": interval})
    return {"deviations": deviations, "pairs": pairs, "all_pairs": int(a.size)}


def _points(
    read: RegressionRead, shown: int, rows: NDArray[np.intp]
) -> list[dict[str, Any]] | None:
    """Return predictors, residuals and cells of the drawn rows, for each outcome."""
    fit, columns = read.fit, read.columns
    if columns is None or read.residuals is None or fit.source is None:
        return None
    model = fit.source.model
    eta = model.W @ fit.weights.T
    values = read.residuals["values"]
    out = []
    for j in range(shown):
        out.append(
            {
                "predictor": numbers(eta[rows, j], 5),
                "residual": numbers(values[rows, j], 4),
                "bins": binned(eta[:, j], values[:, j]),
                **cells_of(read, j, rows),
            }
        )
    return out


def cells_of(read: RegressionRead, j: int, rows: NDArray[np.intp]) -> dict[str, Any]:
    """Return the drawn cells of an outcome: the numbers of categories, or values and limits."""
    fit = read.fit
    assert fit.source is not None
    assert read.columns is not None
    outcomes = fit.source.model.outcomes
    if fit.kinds[j] != "continuous":
        return {"codes": [None if np.isnan(c) else int(c) for c in outcomes.codes[rows, j]]}
    cells = drawn_cells(read.columns[j], rows, None)
    # Rows that are not selected have a letter of their own.
    unselected = outcomes.unselected()[rows, j]
    letters = ["u" if u else k for k, u in zip(cells["kind"], unselected, strict=True)]
    return {"cells": {**cells, "kind": "".join(letters)}}


def binned(predictor: Floats, residual: Floats) -> dict[str, list[float | None]]:
    """Return means of residuals over tenths of the rows in the order of the predictor, with errors."""
    known = ~np.isnan(residual)
    predictor, residual = predictor[known], residual[known]
    many = min(10, residual.size // 10)
    if many < 3:
        return {"at": [], "mean": [], "error": []}
    parts = np.array_split(np.argsort(predictor, kind="stable"), many)
    return {
        "at": numbers((float(predictor[one].mean()) for one in parts), 6),
        "mean": numbers((float(residual[one].mean()) for one in parts), 6),
        "error": numbers((float(residual[one].std(ddof=1)) / len(one) ** 0.5 for one in parts), 4),
    }


def variables_of(read: RegressionRead, rows: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return the variables with the values of the drawn rows."""
    if read.variables is None:
        return []
    return [one.content(rows) for one in read.variables.all]
