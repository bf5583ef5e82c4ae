"""Predictions of a regression along one variable at a time, the others where most rows are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from halfseen.data.design import Design, columns_of
from halfseen.errors import HalfseenError
from halfseen.report.marginals import number, numbers
from halfseen.solvers.regression.prediction import Shown, category_tables
from halfseen.theta import places

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]

# Places along a number, and standard errors on each side of a band of 95 %.
PLACES, FEWER_PLACES, NORMAL_95 = 41, 21, 1.959964
# More curves than this have fewer places.
MANY_CURVES = 100
# Steps of central differences, of predictors and variances, in units of the residuals.
STEP = 1e-4
# Share of rows beyond which a curve is not drawn, on each side: there is next to nothing there.
TAIL = 0.005
# Digits of what is drawn.
DIGITS = 5


@dataclass(frozen=True, eq=False)
class Variable:
    """A column that regressors are made of.

    Attributes
    ----------
    name : str
    values : array of shape (n,)
        Of a category its number.
    levels : tuple of str or None
        The categories, the reference first; None of a number.
    originals : tuple
        The categories as they stand in the table.
    places : int
        Along a number.
    """

    name: str
    values: Floats
    levels: tuple[str, ...] | None = None
    originals: tuple[Any, ...] = ()
    places: int = PLACES

    @property
    def usual(self) -> Any:
        """Where it is held while another one changes: the mean, or the reference."""
        return float(self.values.mean()) if self.levels is None else self.originals[0]

    @property
    def grid(self) -> list[Any]:
        """Return the values along which predictions are made."""
        if self.levels is not None:
            return list(self.originals)
        low, high = np.quantile(self.values, [TAIL, 1.0 - TAIL]) if self.values.size else (0.0, 1.0)
        return np.linspace(low, high, self.places).tolist()

    def content(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Return what the page has of it."""
        number_of_it = self.levels is None
        return {
            "name": self.name,
            "levels": None if self.levels is None else list(self.levels),
            "usual": number(self.usual, DIGITS) if number_of_it else None,
            "grid": numbers(self.grid, 6) if number_of_it else list(range(len(self.originals))),
            "values": numbers(self.values[rows], DIGITS),
        }


@dataclass(frozen=True, eq=False)
class Variables:
    """All columns that regressors are made of, and rows of predictions along each.

    Attributes
    ----------
    all : list of Variable
        Numbers first.
    matrices : list of arrays
        Regressors along each of them, the others where they usually are.
    """

    all: list[Variable]
    matrices: list[Floats]


def read_variables(fit: RegressionFit, most: int) -> Variables | None:
    """Read the columns behind the regressors; None where they are not held, or cannot be told."""
    design, data = fit.design, fit.data
    if design is None or data is None or not design.variables:
        return None
    try:
        found = _all_variables(design, data)
        usual = {one.name: one.usual for one in found}
        found = sorted(found, key=lambda one: one.levels is not None)[:most]
        if len(found) * len(fit.outcomes) > MANY_CURVES:
            found = [replace(one, places=FEWER_PLACES) for one in found]
        matrices = [design.matrix_for(_along(one, usual)) for one in found]
    except HalfseenError:
        return None
    return Variables(found, matrices)


def _all_variables(design: Design, data: Any) -> list[Variable]:
    if isinstance(data, np.ndarray) or not hasattr(data, "__getitem__") or isinstance(data, list):
        array = np.asarray(data, dtype=float)
        array = array[:, None] if array.ndim == 1 else array
        return [Variable(name, array[:, j]) for j, name in enumerate(design.variables)]
    columns = columns_of(data)
    return [_variable(name, columns[name], design.levels.get(name)) for name in design.variables]


def _variable(name: str, values: NDArray[Any], levels: tuple[str, ...] | None) -> Variable:
    if levels is None:
        return Variable(name, np.asarray(values, dtype=float))
    place = {level: k for k, level in enumerate(levels)}
    texts = [text if (text := str(one)) in place else _whole(one) for one in values.tolist()]
    known = dict(zip(texts, values.tolist(), strict=True))
    codes = [place.get(text, np.nan) for text in texts]
    originals = tuple(known.get(level, level) for level in levels)
    return Variable(name, np.array(codes, dtype=float), levels, originals)


def _whole(value: Any) -> str:
    """Return what a category is called that is a whole number: without its decimals."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def _along(one: Variable, usual: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return a table in which one variable changes."""
    many = len(one.grid)
    table = {name: _repeated([value] * many) for name, value in usual.items()}
    return {**table, one.name: _repeated(one.grid)}


def _repeated(values: list[Any]) -> NDArray[Any]:
    if all(isinstance(value, float) for value in values):
        return np.array(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def effect_curves(fit: RegressionFit, variables: Variables) -> list[list[dict[str, Any]]]:
    """Return for each outcome, along each variable, what is predicted, with bands of 95 %.

    ``latent`` is the mean of the outcome, or of the latent number behind it; ``seen`` its mean where
    it is seen, or the probability of the second category; ``chance_k`` that of a category.
    """
    W = np.concatenate(variables.matrices)
    cut = np.cumsum([len(one) for one in variables.matrices])[:-1]
    out = []
    for j in range(len(fit.outcomes)):
        latent, error = fit.weights[j] @ W.T, _predictor_errors(fit, j, W)
        seen, why = _seen(fit, j, W, latent, error)
        curves = {**_band("latent", latent, error), **seen}
        parts = {key: np.split(values, cut) for key, values in curves.items()}
        out.append(
            [
                {**{key: numbers(part[k], DIGITS) for key, part in parts.items()}, "why": why}
                for k in range(len(variables.all))
            ]
        )
    return out


def _band(name: str, value: Floats, error: Floats | None) -> dict[str, Floats]:
    if error is None:
        return {name: value}
    half = NORMAL_95 * error
    return {name: value, f"{name}_lower": value - half, f"{name}_upper": value + half}


def _free_slots(fit: RegressionFit, j: int) -> NDArray[np.intp]:
    """Return where the free coefficients of an outcome stand among all parameters."""
    start = int(fit.free[:j].sum())
    return np.arange(start, start + int(fit.free[j].sum()))


def _predictor_errors(fit: RegressionFit, j: int, W: Floats) -> Floats | None:
    if fit.covariance is None:
        return None
    at = _free_slots(fit, j)
    own = W[:, fit.free[j]]
    return _errors(own, fit.covariance[np.ix_(at, at)])


def _errors(slope: Floats, covariance: Floats) -> Floats:
    """Return the square roots of s V sᵀ, for each row s."""
    square = ((slope @ covariance) * slope).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def _seen(
    fit: RegressionFit, j: int, W: Floats, eta: Floats, error: Floats | None
) -> tuple[dict[str, Floats], str | None]:
    """Return the prediction of what is seen, with a band; or nothing, and why."""
    if fit.kinds[j] == "binary":
        return {
            key.replace("latent", "seen"): ndtr(x) for key, x in _band("latent", eta, error).items()
        }, None
    if fit.kinds[j] == "ordered":
        return _chances(fit, fit.outcomes[j], W), None
    if fit.truncation is None and fit.seen_share[j] == 1.0:
        return {}, None
    shown = Shown(fit, fit.weights, fit.residual, W)
    try:
        value = shown.moments(j)[1]
        return _band("seen", value, _seen_errors(fit, j, W)), None
    except HalfseenError as error_:
        return {}, str(error_)


def _chances(fit: RegressionFit, name: str, W: Floats) -> dict[str, Floats]:
    """Return the probability of each category of an ordered outcome, with bands."""

    def ask(vector: Floats) -> Floats:
        return category_tables(fit, vector, W)[name]

    chances, errors = ask(fit.vector), None
    if fit.covariance is not None:
        errors = np.asarray(fit.standard_errors.of_vector(ask).standard_error)
    out: dict[str, Floats] = {}
    for k, chance in enumerate(chances.T):
        band = _band(f"chance_{k}", chance, None if errors is None else errors[:, k])
        out |= {key: np.clip(values, 0.0, 1.0) for key, values in band.items()}
    return out


def _seen_errors(fit: RegressionFit, j: int, W: Floats) -> Floats | None:
    """Return standard errors of the mean of what is seen (delta method).

    It is a function of the predictors and (co)variances of the outcome and of the index that selects it.
    """
    if fit.covariance is None or fit.source is None:
        return None
    selecting = [one.index for one in fit.source.model.outcomes.selections if j in one.places]
    involved = [j, *selecting]
    count, q = int(fit.free.sum()), len(fit.outcomes)
    slope = np.zeros((len(W), len(fit.covariance)))
    for a in involved:
        step = STEP * float(np.sqrt(fit.residual[a, a]))

        def with_predictor(by: float, a: int = a) -> Floats:
            shown = Shown(fit, fit.weights, fit.residual, W)
            shown.eta = shown.eta + by * (np.arange(q) == a)
            return shown.moments(j)[1]

        change = (with_predictor(step) - with_predictor(-step)) / (2.0 * step)
        slope[:, _free_slots(fit, a)] += change[:, None] * W[:, fit.free[a]]
    where = count + places(q) - q
    for a in involved:
        step = STEP * float(np.sqrt(fit.residual[j, j] * fit.residual[a, a]))

        def with_residual(by: float, a: int = a) -> Floats:
            residual = fit.residual.copy()
            residual[j, a] += by
            residual[a, j] = residual[j, a]
            return Shown(fit, fit.weights, residual, W).moments(j)[1]

        slope[:, where[j, a]] += (with_residual(step) - with_residual(-step)) / (2.0 * step)
    moved = slope.any(axis=0)
    return _errors(slope[:, moved], fit.covariance[np.ix_(moved, moved)])
