"""One file per algorithm, and one door to them all."""

from halfseen.solvers.fit import METHODS, fit
from halfseen.solvers.initialize import initialize
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.pairwise import pairwise
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Fit, Note, Status
from halfseen.solvers.sample_gradient import sample_gradient
from halfseen.solvers.truncated_sgd import truncated_sgd
from halfseen.solvers.truncation import truncation
from halfseen.solvers.truncation_psgd import truncation_psgd

__all__ = [
    "METHODS",
    "Fit",
    "Note",
    "Status",
    "fit",
    "initialize",
    "missing_descent",
    "pairwise",
    "project_to_domain",
    "sample_gradient",
    "truncated_sgd",
    "truncation",
    "truncation_psgd",
]
