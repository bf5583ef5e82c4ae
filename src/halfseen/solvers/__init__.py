"""One file per algorithm, and one door to them all."""

from halfseen.solvers.fit import METHODS, fit
from halfseen.solvers.pairwise import pairwise
from halfseen.solvers.result import Fit, Note, Status
from halfseen.solvers.truncated_sgd import truncated_sgd
from halfseen.solvers.truncation import truncation
from halfseen.solvers.truncation_psgd import truncation_psgd

__all__ = [
    "METHODS",
    "Fit",
    "Note",
    "Status",
    "fit",
    "pairwise",
    "truncated_sgd",
    "truncation",
    "truncation_psgd",
]
