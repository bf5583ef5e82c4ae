"""Several structures of the covariance of one table, by criteria."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from halfseen.checks import is_iterable
from halfseen.errors import InputError
from halfseen.solvers.full_information.full import full
from halfseen.solvers.inference.likelihood import LogLikelihood
from halfseen.solvers.inference.refits import check_refits, options_of
from halfseen.solvers.result import Estimate, Status
from halfseen.solvers.structures import Structure, read_structure

# What is compared by default, from the most parameters to the fewest.
USUAL = (
    "free", "toeplitz(heteroscedastic=True)", "ar1(heteroscedastic=True)",
    "compound_symmetry(heteroscedastic=True)", "toeplitz", "ar1", "compound_symmetry", "diagonal",
)  # fmt: skip
# Widest name that a table shows.
WIDEST = 44


class ComparedStructure(NamedTuple):
    """One structure: its text, what its fit came to, and the fit."""

    name: str
    parameters: int
    log_likelihood: float
    aic: float
    bic: float
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class ComparedStructures:
    """Structures of the covariance of one table, by criteria, the best by BIC first.

    Attributes
    ----------
    rows : tuple of ComparedStructure
        Each with ``name``, ``parameters``, ``log_likelihood``, ``aic``, ``bic`` and ``estimate``.

    Examples
    --------
    >>> import numpy as np, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=-0.5)
    >>> X = hs.simulate(hs.Gaussian(np.zeros(4), 0.6 + 0.4 * np.eye(4)), rule, 300)
    >>> found = hs.fit(X, rule, random_state=0).compare_structures(["free", "ar1", "compound_symmetry"])
    >>> found.best()
    'compound_symmetry'
    >>> print(found)
    Structure                                    parameters   log-lik.      AIC      BIC
    compound_symmetry                                     6    -1287.4   2586.9   2609.1
    free                                                 14    -1283.4   2594.8   2646.6
    ar1                                                   6    -1339.8   2691.7   2713.9
    """

    rows: tuple[ComparedStructure, ...]

    def best(self, by: str = "bic") -> str:
        """Return the structure with the smallest criterion, as a text for ``covariance=``.

        Parameters
        ----------
        by : {"bic", "aic"}

        Returns
        -------
        str
        """
        if by not in ("aic", "bic"):
            raise InputError(f"by must be 'aic' or 'bic'; got {by!r}.")
        # On the edge of its domain the likelihood has no top, and the criteria mean nothing.
        inside = [one for one in self.rows if not _on_edge(one)]
        if not inside:
            raise InputError("every one of these fits lies on the edge of its domain.")
        return min(inside, key=lambda one: float(getattr(one, by))).name

    def __repr__(self) -> str:
        width = max([12, *(min(len(one.name), WIDEST) for one in self.rows)])
        width = max(width, WIDEST)
        lines = [
            f"{'Structure':<{width}} {'parameters':>10} {'log-lik.':>10} {'AIC':>8} {'BIC':>8}"
        ]
        for one in self.rows:
            name = one.name if len(one.name) <= width else one.name[: width - 1] + "…"
            line = f"{name:<{width}} {one.parameters:>10} {one.log_likelihood:>10.1f}"
            line += f" {one.aic:>8.1f} {one.bic:>8.1f}"
            lines.append(line + (f"  {one.estimate.status.name}" if _on_edge(one) else ""))
        return "\n".join(lines)


def _on_edge(one: ComparedStructure) -> bool:
    return one.estimate.status.severity >= Status.ON_DOMAIN_EDGE.severity


def compare_structures(fit: Estimate, structures: Sequence[Any] = USUAL) -> ComparedStructures:
    """Fit the table again with each structure; see ``Fit.compare_structures``."""
    source = check_refits(fit)
    if (
        isinstance(structures, str | Structure)
        or not is_iterable(structures)
        or not len(structures)
    ):
        raise InputError(
            "structures must be a list of structures, or of texts such as 'ar1'; got "
            f"{structures!r}."
        )
    wanted = [read_structure(one, "each of structures") for one in structures]
    options = {key: value for key, value in options_of(fit).items() if key != "penalty"}
    options |= {"correlation": None, "shrinkage": None, "standard_errors": False}
    found = {}
    for structure in wanted:
        options["covariance"] = structure if isinstance(structure, Structure) else structure.name
        again = full(
            source.X, source.missingness, missing_at_random=source.missing_at_random,
            loss=source.loss, random_state=source.seed, n_jobs=source.n_jobs, **options,
        )  # fmt: skip
        assert again.source is not None
        assert again.parameters is not None
        assert fit.parameters is not None
        # As the fit is, in the units of the table.
        powers = sum(one is not None for one in fit.powers or ())
        count = again.parameters + powers
        again = replace(
            again,
            source=replace(source, options=again.source.options),
            transforms=fit.transforms, powers=fit.powers, frame=fit.frame, parameters=count,
        )  # fmt: skip
        value = LogLikelihood.of(again).value
        criteria = 2.0 * count - 2.0 * value, float(np.log(fit.rows)) * count - 2.0 * value
        name = str(again.history["covariance_structure"])
        found[name] = ComparedStructure(name, count, value, *criteria, again)
    return ComparedStructures(tuple(sorted(found.values(), key=lambda one: one.bic)))
