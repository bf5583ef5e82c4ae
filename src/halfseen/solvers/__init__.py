"""One file per algorithm, and one door to them all."""

from halfseen.data.learned_power import LearnedPower
from halfseen.solvers.fit import METHODS, fit
from halfseen.solvers.full_information import full
from halfseen.solvers.inference.bootstrap import Bootstrap
from halfseen.solvers.inference.confidence import Profile
from halfseen.solvers.inference.intervals import Intervals
from halfseen.solvers.inference.pooling import Pooled, pool
from halfseen.solvers.inference.ratio_test import RatioTest, likelihood_ratio_test
from halfseen.solvers.inference.sensitivity import Sensitivity
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.initialize import initialize
from halfseen.solvers.loss import Loss
from halfseen.solvers.missing_descent import missing_descent
from halfseen.solvers.pairwise import pairwise
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Fit, Note, Status, Tails
from halfseen.solvers.sample_gradient import sample_gradient
from halfseen.solvers.truncated_sgd import truncated_sgd
from halfseen.solvers.truncation import truncation
from halfseen.solvers.truncation_psgd import truncation_psgd

__all__ = [
    "METHODS",
    "Bootstrap",
    "Fit",
    "Intervals",
    "LearnedPower",
    "Loss",
    "Note",
    "Pooled",
    "Profile",
    "RatioTest",
    "Sensitivity",
    "StandardErrors",
    "Status",
    "Tails",
    "fit",
    "full",
    "initialize",
    "likelihood_ratio_test",
    "missing_descent",
    "pairwise",
    "pool",
    "project_to_domain",
    "sample_gradient",
    "truncated_sgd",
    "truncation",
    "truncation_psgd",
]
