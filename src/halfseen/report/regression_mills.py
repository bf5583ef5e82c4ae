"""What selection does to the mean of what is seen: the Mills ratio and its share of the outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from halfseen.report.marginals import number, numbers
from halfseen.solvers.regression.facts import mills_ratio
from halfseen.solvers.regression.identification import COLLINEAR, mills_share

if TYPE_CHECKING:
    from halfseen.regression.fit import RegressionFit

Floats = NDArray[np.float64]


def mills(fit: RegressionFit, rows: NDArray[np.intp], shown: int) -> list[dict[str, Any]]:
    """Return for each selected outcome what selection adds to its mean where it is seen.

    Of those selected, the mean of the residual is Cov(e_j, e_by) λ, where λ = φ(η)/Φ(η) is the Mills
    ratio of the predictor η of the index; and with the other signs where the index must not be positive.
    """
    if fit.source is None:
        return []
    model, out = fit.source.model, []
    for one in model.outcomes.selections:
        by, sign = one.index, 1.0 if one.when else -1.0
        index = model.W @ fit.weights[by]
        ratio = mills_ratio(index, sign)
        for j in one.places:
            if j >= shown:
                continue
            selected = ~model.outcomes.unselected()[:, j]
            added = sign * fit.residual[j, by] * ratio
            drawn = rows[selected[rows]]
            own = model.mask[by] & ~model.mask[j]
            out.append(
                {
                    "outcome": j,
                    "by": by,
                    "index": fit.outcomes[by],
                    "name": fit.outcomes[j],
                    "when": bool(one.when),
                    "share": number(mills_share(model, j, index, one.when)),
                    "collinear": COLLINEAR,
                    "own": [fit.terms[t] for t in np.flatnonzero(own)],
                    "covariance": number(fit.residual[j, by]),
                    "average": number(added[selected].mean()) if selected.any() else None,
                    "selected": int(selected.sum()),
                    "predictor": numbers((model.W[drawn] @ fit.weights[j]), 5),
                    "ratio": numbers(ratio[drawn], 5),
                    "added": numbers(added[drawn], 5),
                }
            )
    return out
