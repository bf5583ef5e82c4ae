"""NumPyro: Bayesian inference by NUTS, with the hidden cells as unknowns of the model.

In two ways. "together": NUTS moves the parameters and the hidden cells, as one does it with censored
values in a probabilistic language. "in turn": the package's ``HMCGibbs``; given the parameters, a hidden
cell is drawn as a normal between its bounds, by a function written for this model, and given complete
rows, NUTS moves mean and covariance, for which the moments of the rows are enough.

The covariance is inverse Wishart with d + 1 degrees of freedom, which makes every correlation uniform
on (-1, 1). The usual LKJ prior makes correlation matrices uniform, and so pulls each correlation to
zero the harder, the more columns there are: with 20 columns and 4 000 rows posterior means of
covariances were off by a whole standard error.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, HMCGibbs, init_to_value

from benchmarks.comparison.programs.harness import Answer, Floats, Interval, Table, run

numpyro.enable_x64()

# Columns come standardised; a mean five standard deviations from what is seen is still likely enough.
PRIOR_SPREAD = 5.0
WARMUP, SAMPLES = 500, 500


def estimate(table: Table, options: dict[str, Any]) -> Answer:
    """Return posterior means and equal-tailed intervals."""
    lower, upper = table.array("lower"), table.array("upper")
    start = np.where(np.isneginf(lower), upper, lower)
    centre, spread = start.mean(axis=0), start.std(axis=0)
    columns = [((cells - centre) / spread).T for cells in (lower, upper, start)]
    draw = {"together": together, "in turn": in_turn}[options["hidden"]]
    means, roots = jax.device_get(draw(jax.random.key(table.seed), *columns))
    means = centre + spread * means
    roots = np.linalg.inv(roots) * spread
    covariances = roots.transpose(0, 2, 1) @ roots
    level = table.task["level"]
    return Answer(
        means.mean(axis=0),
        covariances.mean(axis=0),
        interval(means, level),
        interval(covariances, level),
    )


def interval(draws: Floats, level: float) -> Interval:
    """Return the quantiles that leave out as much on either side."""
    below, above = np.quantile(draws, [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return below, above


# Arrays are transposed: a row for each column of the table.


def together(key: Any, lower: Floats, upper: Floats, start: Floats) -> Any:
    """Draw means and Cholesky factors of the precision; hidden cells lie beyond one limit each."""
    where = np.nonzero(lower < upper)
    outwards = np.where(np.isneginf(lower), -1.0, 1.0)[where]
    return _together(key, start, where, outwards)


@jax.jit
def _together(key: Any, start: Any, where: Any, outwards: Any) -> Any:
    kernel = NUTS(whole_model, init_strategy=at_the_start(len(start)))
    return draws_of(kernel, key, "~z.beyond", start, where, outwards)


@jax.jit
def in_turn(key: Any, lower: Any, upper: Any, start: Any) -> Any:
    """Do the same with hidden cells that are drawn for themselves."""
    kernel = HMCGibbs(
        NUTS(partial(model_given_rows, start.shape), init_strategy=at_the_start(len(start))),
        gibbs_fn=partial(draw_hidden, lower, upper),
        gibbs_sites=["complete"],
    )
    return draws_of(kernel, key, "~z.complete", init_params={"complete": start})


def at_the_start(d: int) -> Any:
    """Begin with columns as they were standardised."""
    return init_to_value(values={"mean": jnp.zeros(d), "root": jnp.eye(d)})


def draws_of(kernel: Any, key: Any, dropped: str, *data: Any, **more: Any) -> Any:
    """Run one chain; hidden cells of each draw would fill gigabytes, and nobody asks for them."""
    mcmc = MCMC(kernel, num_warmup=WARMUP, num_samples=SAMPLES, progress_bar=False)
    mcmc.run(key, *data, extra_fields=(dropped,), **more)
    draws = mcmc.get_samples()
    return draws["mean"], draws["root"]


def whole_model(start: Any, where: Any, outwards: Any) -> None:
    """State the model with the hidden cells in it: how far beyond their limits they lie."""
    shape = (len(outwards),)
    beyond = dist.ImproperUniform(dist.constraints.softplus_positive, (), shape)
    rows_of(start.at[where].add(outwards * numpyro.sample("beyond", beyond)))


def model_given_rows(shape: tuple[int, int]) -> None:
    """State the model with complete rows as one of its unknowns."""
    anything = dist.ImproperUniform(dist.constraints.real_matrix, (), shape)
    rows_of(numpyro.sample("complete", anything))


def rows_of(complete: Any) -> None:
    """State a weak prior, and that complete rows are normal.

    With A A' the precision, the log density of rows Y is n log|A| - |[1 Y] B|² / 2, where B is -mean' A
    on top of A. Where the rows stay the same along a trajectory, the compiler computes their moments
    once.
    """
    d, n = complete.shape
    mean = numpyro.sample("mean", dist.Normal(0.0, PRIOR_SPREAD).expand([d]).to_event(1))
    root = numpyro.sample("root", dist.WishartCholesky(d + 1.0, scale_tril=jnp.eye(d)))
    rows = jnp.vstack([jnp.ones(n), complete])
    B = jnp.vstack([-mean @ root, root])
    square = jnp.sum(B * ((rows @ rows.T) @ B))
    numpyro.factor("rows", n * jnp.log(jnp.diag(root)).sum() - square / 2.0)


def draw_hidden(lower: Any, upper: Any, rng_key: Any, gibbs_sites: Any, hmc_sites: Any) -> Any:
    """Draw the hidden cells, column after column, given all other cells of their rows."""
    mean, root = hmc_sites["mean"][:, None], hmc_sites["root"]
    precision = root @ root.T
    keys = jax.random.split(rng_key, len(lower))
    low, high, hidden = lower - mean, upper - mean, lower < upper

    def redraw(j: Any, deviations: Any) -> Any:
        variance = 1.0 / precision[j, j]
        old = deviations[j]
        centre = old - variance * (precision[j] @ deviations)
        normal = dist.TruncatedNormal(centre, jnp.sqrt(variance), low=low[j], high=high[j])
        return deviations.at[j].set(jnp.where(hidden[j], normal.sample(keys[j]), old))

    deviations = gibbs_sites["complete"] - mean
    return {"complete": jax.lax.fori_loop(0, len(lower), redraw, deviations) + mean}


if __name__ == "__main__":
    run(estimate, "numpyro", "jax")
