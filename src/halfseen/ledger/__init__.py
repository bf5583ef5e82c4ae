"""The paper's claims, each with an experiment that can fail: ``halfseen reproduce``."""

# Importing a module registers its rows; the ledger has them in this order.
from halfseen.ledger import (  # noqa: F401  # isort: skip
    self_censoring,
    lower_bounds,
    likelihood,
    initialize,
    langevin,
    remedies,
    gradients,
    linear_thresholds,
    lemmas,
    beyond,
    regression,
)
from halfseen.ledger.harness import CLAIMS, Claim, Curve, Entry, Kind, check_claim, choose

__all__ = ["CLAIMS", "Claim", "Curve", "Entry", "Kind", "check_claim", "choose"]
