"""One file per algorithm, and one door to them all.

Algorithms give estimates; who comes through this door gets fits, of which more can be asked. The door
stands above ``halfseen.results``; what is behind it, below.
"""

from halfseen.data.powers import LearnedPower
from halfseen.grouped.comparisons import GroupDifferences, GroupMeans
from halfseen.grouped.fit import Door, GroupedFit, returning_groups
from halfseen.results import Fit, returning_fits
from halfseen.solvers.fit import fit as _fit
from halfseen.solvers.full_information.full import full as _full
from halfseen.solvers.groups.tests import GroupTest
from halfseen.solvers.inference.bootstrap import Bootstrap
from halfseen.solvers.inference.confidence import Profile
from halfseen.solvers.inference.intervals import Intervals
from halfseen.solvers.inference.likelihood import RatioTest, likelihood_ratio_test
from halfseen.solvers.inference.pooling import Pooled, pool
from halfseen.solvers.inference.sensitivity import Sensitivity
from halfseen.solvers.inference.uncertainty import StandardErrors
from halfseen.solvers.initialize import initialize
from halfseen.solvers.loss import Loss
from halfseen.solvers.methods import METHODS
from halfseen.solvers.missing_descent import missing_descent as _missing_descent
from halfseen.solvers.pairwise import pairwise as _pairwise
from halfseen.solvers.project_to_domain import project_to_domain
from halfseen.solvers.result import Note, Status, Tails
from halfseen.solvers.sample_gradient import sample_gradient
from halfseen.solvers.truncated_sgd import truncated_sgd as _truncated_sgd
from halfseen.solvers.truncation import truncation as _truncation
from halfseen.solvers.truncation_psgd import truncation_psgd as _truncation_psgd

fit: Door = returning_groups(_fit, __name__)
full = returning_fits(_full, __name__)
missing_descent = returning_fits(_missing_descent, __name__)
pairwise = returning_fits(_pairwise, __name__)
truncated_sgd = returning_fits(_truncated_sgd, __name__)
truncation = returning_fits(_truncation, __name__)
truncation_psgd = returning_fits(_truncation_psgd, __name__)

__all__ = [
    "METHODS",
    "Bootstrap",
    "Fit",
    "GroupDifferences",
    "GroupMeans",
    "GroupTest",
    "GroupedFit",
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
