"""The paper's claims, each with an experiment that can fail: ``halfseen reproduce``."""

# Importing a module registers its rows; the ledger has them in this order.
from halfseen.ledger import (  # isort: skip
    self_censoring,
    pair_errata,
    pair_lemmas,
    lower_bounds,
    convexity,
    initialize,
    langevin,
    sample_gradient,
    rejection,
    linear_thresholds,
    missing_descent,
    lemmas,
    open_problem,
    beyond,
)
from halfseen.ledger.registry import CLAIMS, Claim, Curve, Entry, Kind, check_claim, choose

__all__ = [
    "CLAIMS",
    "Claim",
    "Curve",
    "Entry",
    "Kind",
    "beyond",
    "check_claim",
    "choose",
    "convexity",
    "initialize",
    "langevin",
    "lemmas",
    "linear_thresholds",
    "lower_bounds",
    "missing_descent",
    "open_problem",
    "pair_errata",
    "pair_lemmas",
    "rejection",
    "sample_gradient",
    "self_censoring",
]
