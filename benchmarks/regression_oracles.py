"""Regressions beside direct optimisation of the exact likelihood, on designs drawn at random."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import halfseen as hs
from benchmarks.hard_running import counted, many
from benchmarks.registry import Row, task
from benchmarks.regression_tables import covariates

Floats = NDArray[np.float64]

# Estimates in standard errors, log-likelihoods, and standard errors as a share.
CLOSE, CLOSE_VALUE, CLOSE_ERROR = 1e-4, 1e-3, 1e-2
# Rows that show the outcome (or its rarer category), for each parameter.
ROWS_EACH = 3
STANDING = ("CONVERGED", "WEAKLY_IDENTIFIED", "NO_GLOBAL_GUARANTEE")


class Drawn(NamedTuple):
    """A design: regressors with an intercept, what is hidden, and a generator that goes on."""

    W: Floats
    centre: Floats
    hidden: float
    by_row: bool
    rng: np.random.Generator


class Told(NamedTuple):
    """Estimates, log-likelihood and standard errors: ours and the oracle's."""

    status: str
    what: str
    ours: Floats
    theirs: Floats
    errors: Floats
    their_errors: Floats
    value: float
    their_value: float


def draw(kind: str, seed: int) -> Drawn:
    """Draw a design: 50 to 1000 rows, 1 to 8 covariates with correlations to 0.99, 10 to 90 % hidden."""
    rng = np.random.default_rng([seed, 20, *kind.encode()])
    n = int(50.0 * 20.0 ** rng.random())
    hidden, correlation = rng.uniform(0.1, 0.9), 0.99 * rng.random()
    # A value says about as much as a row of the rarer sign; of those in brackets each says something.
    shown = {
        "tobit": 1.0 - hidden,
        "heckman": 1.0 - hidden,
        "probit": min(hidden, 1.0 - hidden),
    }.get(kind, 1.0)
    k = int(np.clip(rng.integers(1, 9), 1, max(1.0, shown * n / ROWS_EACH - 3.0)))
    W = np.column_stack([np.ones(n), covariates(rng, n, k, correlation)])
    slopes = rng.normal(size=k) / np.sqrt(k)
    hidden = 1.0 if kind in ("interval", "ordered") else hidden
    return Drawn(W, W[:, 1:] @ slopes, hidden, bool(rng.random() < 0.5), rng)


def limits_of(design: Drawn, value: Floats, share: float) -> Floats:
    """Limits below which a share of some values lies, for each row, or the same for all."""
    n = len(value)
    moved = design.rng.normal(size=n) if design.by_row else np.zeros(n)
    return np.asarray(np.quantile(value - moved, share) + moved)


def tobit(seed: int) -> Told:
    """Hide values below limits, above limits or on both sides."""
    from tests import naive_regression as naive

    design = draw("tobit", seed)
    y = design.centre + design.rng.normal(size=len(design.W))
    low, high = np.full(y.shape, -np.inf), np.full(y.shape, np.inf)
    side = seed % 3
    share = design.hidden * (0.5 if side == 2 else 1.0)
    if side != 1:
        low = limits_of(design, y, share)
    if side != 0:
        high = np.maximum(limits_of(design, y, 1.0 - share), low + 1e-3)
    lower = np.where(y < low, -np.inf, np.where(y > high, high, y))
    upper = np.where(y < low, low, np.where(y > high, np.inf, y))
    ends = lower[:, None], upper[:, None]
    ref = reference(naive.maximise, *ends, design.W, np.ones((1, design.W.shape[1]), bool))
    fit = fitted(hs.IntervalData(*ends), design.W[:, 1:])
    return both(fit, fit_vector(fit), fit_errors(fit), ref.parameters, ref, design)


def interval(seed: int) -> Told:
    """Say of each value between which cuts it lies; cuts of each row, or the same for all."""
    from tests import naive_regression as naive

    design = draw("interval", seed)
    y = design.centre + design.rng.normal(size=len(design.W))
    count = int(design.rng.integers(2, 7))
    levels = np.sort(design.rng.uniform(0.05, 0.95, count))
    moved = 0.5 * design.rng.normal(size=(len(y), 1)) if design.by_row else np.zeros((len(y), 1))
    cuts = np.quantile(y, levels) + moved
    cuts = np.column_stack([np.full(len(y), -np.inf), cuts, np.full(len(y), np.inf)])
    code = (cuts[:, 1:-1] < y[:, None]).sum(axis=1)
    ends = [np.take_along_axis(cuts, (code + s)[:, None], axis=1) for s in (0, 1)]
    ref = reference(naive.maximise, *ends, design.W, np.ones((1, design.W.shape[1]), bool))
    fit = fitted(hs.IntervalData(*ends), design.W[:, 1:])
    return both(fit, fit_vector(fit), fit_errors(fit), ref.parameters, ref, design)


def truncated(seed: int) -> Told:
    """Leave rows out whose value is below a limit, or outside two."""
    from tests import naive_regression as naive

    design = draw("truncated", seed)
    rng, n = design.rng, len(design.W)
    spread = float(np.sqrt(design.centre.var() + 1.0))
    middle = design.centre.mean() + spread * float(ndtri(design.hidden * 0.8))
    low = middle + (0.5 * rng.normal(size=n) if design.by_row else np.zeros(n))
    high = low + 3.0 * spread if seed % 2 else np.full(n, np.inf)
    y = design.centre + rng.normal(size=n)
    # Each row's residual anew until it is in the table; rows that hardly can be are left out.
    for _ in range(400):
        out = (y < low) | (y > high)
        y[out] = design.centre[out] + rng.normal(size=int(out.sum()))
    kept = (y >= low) & (y <= high)
    W, y, low, high = design.W[kept], y[kept], low[kept], high[kept]
    design = design._replace(W=W)
    ref = reference(naive.truncated_regression, y, low, high, W)
    table = {"y": y, **{f"x{k}": W[:, k] for k in range(1, W.shape[1])}}
    rule = {"lower": low[:, None]}
    if np.isfinite(high).all():
        rule["upper"] = high[:, None]
    formula = "y ~ " + " + ".join(f"x{k}" for k in range(1, W.shape[1]))
    fit = fitted(formula, table, truncated={"y": hs.DetectionLimits(**rule)})
    ours = np.append(fit.weights[0], fit.residual_deviations)
    errors = np.full(ours.shape, np.nan)
    if fit.covariance is not None:
        errors = np.append(fit.standard_errors.weights[0], fit.standard_errors.deviations)
    return both(fit, ours, errors, ref.estimates, ref, design)


def probit(seed: int) -> Told:
    """Show the sign of a latent number alone."""
    from tests import naive_regression as naive

    design = draw("probit", seed)
    latent = design.centre + design.rng.normal(size=len(design.W))
    latent = latent - np.quantile(latent, design.hidden)
    sign = latent > 0.0
    ends = [np.where(sign, a, b)[:, None] for a, b in ((0.0, -np.inf), (np.inf, 0.0))]
    free = np.ones((1, design.W.shape[1]), bool)
    fit = fitted({"y": sign}, design.W[:, 1:])
    ref = reference(naive.maximise, *ends, design.W, free, unit_variance=(0,))
    k = design.W.shape[1]
    return both(fit, fit_vector(fit)[:k], fit_errors(fit)[:k], ref.parameters, ref, design)


def ordered(seed: int) -> Told:
    """Show the category of a latent number, of three to six."""
    from tests import naive_regression as naive

    design = draw("ordered", seed)
    rng, X = design.rng, design.W[:, 1:]
    latent = design.centre + rng.normal(size=len(X))
    edges = np.quantile(
        latent, np.sort(rng.dirichlet(np.full(int(rng.integers(3, 7)), 4.0)).cumsum()[:-1])
    )
    code = np.unique(np.searchsorted(edges, latent), return_inverse=True)[1]
    ref = reference(naive.ordered_probit, code, X)
    fit = fitted({"y": code.astype(float)}, X, kinds={"y": "ordered"})
    k = X.shape[1]
    ours = np.append(fit.weights[0, 1:], fit.cut_points["y"] - fit.weights[0, 0])
    errors, their_errors = np.full(k + 1, np.nan), np.sqrt(np.diag(ref.covariance))
    if fit.covariance is not None:
        told = fit.standard_errors.weights[0]
        errors = np.append(told[1:], told[0])
    # Errors of later cut points are about their distance from the first.
    padded = np.append(errors, their_errors[k + 1 :])
    return both(fit, ours, padded, ref.estimates, ref, design)


def heckman(seed: int) -> Told:
    """Show an outcome where a latent index is positive."""
    from tests import naive_regression as naive

    design = draw("heckman", seed)
    rng, n, k = design.rng, len(design.W), design.W.shape[1]
    rho = rng.uniform(-0.95, 0.95)
    e = rng.normal(size=(n, 2)) @ np.linalg.cholesky([[1.0, rho], [rho, 1.0]]).T
    wage = 1.0 + design.centre + 1.5 * e[:, 0]
    z = rng.normal(size=n)
    index = 0.5 * design.centre + z + e[:, 1]
    works = index > np.quantile(index, design.hidden)
    W_works = np.column_stack([design.W, z])
    columns = {f"x{j}": design.W[:, j] for j in range(1, k)}
    data = {**columns, "z": z, "works": works, "wage": np.where(works, wage, np.nan)}
    words = " + ".join(columns)
    fit = fitted({"wage": words, "works": f"{words} + z"}, data, hs.Selection("wage", by="works"))
    ref = reference(naive.heckman, wage, works, design.W, W_works)
    free = fit.mask
    ours = np.concatenate(
        [fit.weights[free], fit.residual_deviations[:1], fit.residual_correlation[0, 1:]]
    )
    errors = np.full(ours.shape, np.nan)
    if fit.covariance is not None:
        s = fit.standard_errors
        errors = np.concatenate([s.weights[free], s.deviations[:1], s.correlations[0, 1:]])
    return both(fit, ours, errors, ref.estimates, ref, design)


KINDS: dict[str, Callable[[int], Told]] = {
    "Tobit": tobit,
    "interval": interval,
    "truncated": truncated,
    "probit": probit,
    "ordered probit": ordered,
    "Heckman": heckman,
}


def fitted(model: Any, data: Any, rules: Any = None, **options: Any) -> hs.RegressionFit:
    """Fit; what it warns of, its status says too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hs.HalfseenWarning)
        return hs.regress(model, data, rules, random_state=0, n_jobs=1, **options)


def fit_vector(fit: hs.RegressionFit) -> Floats:
    return np.asarray(fit.vector)


def fit_errors(fit: hs.RegressionFit) -> Floats:
    if fit.covariance is None:
        return np.full(np.asarray(fit.vector).shape, np.nan)
    return np.asarray(np.sqrt(np.diag(fit.covariance)))


class NoMaximum(NamedTuple):
    """What an oracle says that finds none."""

    parameters: Floats = np.full(1, np.nan)
    estimates: Floats = np.full(1, np.nan)
    value: float = np.nan
    covariance: Floats = np.full((1, 1), np.nan)


def reference(oracle: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """Ask an oracle, which may find that there is no maximum."""
    try:
        return oracle(*given, **more)
    except (AssertionError, np.linalg.LinAlgError):
        return NoMaximum()


def both(
    fit: hs.RegressionFit, ours: Floats, errors: Floats, theirs: Floats, ref: Any, design: Drawn
) -> Told:
    """Put the two answers beside each other."""
    n, k = design.W.shape
    what = f"n = {n}, {k - 1} covariates, {design.hidden:.0%} hidden"
    with np.errstate(invalid="ignore"):
        their_errors = np.sqrt(np.diag(ref.covariance))
    return Told(
        fit.status.name, what, ours, theirs, errors, their_errors, fit.log_likelihood, ref.value
    )


def answer(item: tuple[str, int]) -> Told:
    """Answer one design; an error of ours, or of the oracle, is an answer too."""
    kind, seed = item
    nothing = np.full(1, np.nan)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return KINDS[kind](seed)
    except hs.HalfseenError as error:
        said = f"refused ({str(error)[:60]})"
        return Told(said, kind, *[nothing] * 4, np.nan, np.nan)


@task
def regression_oracles(quick: bool) -> Iterator[Row]:
    """Compare regressions with direct optimisation by SciPy."""
    count = 6 if quick else 40
    items = [(kind, seed) for kind in KINDS for seed in range(count)]
    found = iter(many(answer, items))
    for kind in KINDS:
        yield from rows_of(kind, [next(found) for _ in range(count)])


def rows_of(kind: str, found: list[Told]) -> Iterator[Row]:
    """Judge the designs of one kind."""
    where = f"{kind}, {len(found)} designs"
    known = [one for one in found if np.isfinite(one.their_errors).all()]
    lost = [one.status for one in found if not np.isfinite(one.their_errors).all()]
    yield Row(
        f"{where}: how fits ended where the oracle finds no maximum",
        counted(lost) if lost else "it finds one everywhere",
        "none CONVERGED",
        "CONVERGED" not in lost,
    )
    refused = [one.status for one in known if one.status not in STANDING]
    if refused:
        yield Row(f"{where}: how others ended, where it finds one", counted(refused), "")
    standing = [one for one in known if one.status in STANDING]
    if not standing:
        return
    worst = partial(max, standing)
    for what, measure, target in (
        ("estimates less the oracle's, in standard errors", gap_of_estimates, CLOSE),
        ("log-likelihood less the oracle's", gap_of_values, CLOSE_VALUE),
        ("standard errors / the oracle's, less one", gap_of_errors, CLOSE_ERROR),
    ):
        one = worst(key=measure)
        yield Row(
            f"{where}: {what}, largest",
            f"{measure(one):.1e} ({one.what})",
            f"at most {target:g}",
            measure(one) <= target,
        )
    below = [one for one in standing if one.value < one.their_value - CLOSE_VALUE]
    yield Row(
        f"{where}: fits that stand, and are below the oracle's maximum",
        str(len(below)),
        "0",
        not below,
    )


def gap_of_estimates(one: Told) -> float:
    return float(np.abs((one.ours - one.theirs) / one.their_errors).max())


def gap_of_values(one: Told) -> float:
    return abs(one.value - one.their_value)


def gap_of_errors(one: Told) -> float:
    return float(np.abs(one.errors / one.their_errors - 1.0).max())
