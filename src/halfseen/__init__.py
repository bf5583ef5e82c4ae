"""Learn a Gaussian you only half see."""

from typing import TYPE_CHECKING, Any

from halfseen import metrics, planning, samplers, solvers
from halfseen.data import (
    IntervalData,
    PairMoments,
    Rounded,
    RowBlocks,
    UnreadableError,
    from_frame,
    read_csv,
    read_limits,
    read_long,
    read_parquet,
    rounded,
    scan_parquet,
    write_csv,
)
from halfseen.diagnostics import diagnose
from halfseen.errors import (
    ApproximationWarning,
    AssumptionWarning,
    ContradictionError,
    ConvergenceWarning,
    HalfseenError,
    HalfseenWarning,
    InputError,
    Interrupted,
    NotIdentifiedError,
    RarelyHitError,
)
from halfseen.gaussian import Gaussian
from halfseen.limits.table import Limit, LimitTable
from halfseen.loading import load
from halfseen.missingness import (
    Combined,
    DetectionLimits,
    Interval,
    LinearThreshold,
    Predicate,
    Probability,
    RowTruncation,
    RuleError,
    Selection,
    SelfCensoring,
    SelfSelection,
    Union,
    at_least,
    at_most,
    between,
    everything,
    rules,
)
from halfseen.regression import Comparison, RegressionFit, compare, regress
from halfseen.simulate import simulate
from halfseen.solvers import Fit, GroupedFit, Status, fit, likelihood_ratio_test, pool
from halfseen.solvers.structures import (
    AR1,
    BlockDiagonal,
    CompoundSymmetry,
    Factor,
    Kronecker,
    RandomEffects,
    Toeplitz,
)
from halfseen.version import __version__ as __version__

if TYPE_CHECKING:
    from halfseen.estimators import CensoredGaussian

__all__ = [
    "AR1",
    "ApproximationWarning",
    "AssumptionWarning",
    "BlockDiagonal",
    "CensoredGaussian",
    "Combined",
    "Comparison",
    "CompoundSymmetry",
    "ContradictionError",
    "ConvergenceWarning",
    "DetectionLimits",
    "Factor",
    "Fit",
    "Gaussian",
    "GroupedFit",
    "HalfseenError",
    "HalfseenWarning",
    "InputError",
    "Interrupted",
    "Interval",
    "IntervalData",
    "Kronecker",
    "Limit",
    "LimitTable",
    "LinearThreshold",
    "NotIdentifiedError",
    "PairMoments",
    "Predicate",
    "Probability",
    "RandomEffects",
    "RarelyHitError",
    "RegressionFit",
    "Rounded",
    "RowBlocks",
    "RowTruncation",
    "RuleError",
    "Selection",
    "SelfCensoring",
    "SelfSelection",
    "Status",
    "Toeplitz",
    "Union",
    "UnreadableError",
    "at_least",
    "at_most",
    "between",
    "compare",
    "diagnose",
    "everything",
    "fit",
    "from_frame",
    "likelihood_ratio_test",
    "load",
    "metrics",
    "planning",
    "pool",
    "read_csv",
    "read_limits",
    "read_long",
    "read_parquet",
    "regress",
    "rounded",
    "rules",
    "samplers",
    "scan_parquet",
    "simulate",
    "solvers",
    "write_csv",
]


def __getattr__(name: str) -> Any:
    # scikit-learn takes longer to import than all the rest, and only the estimator needs it.
    if name == "CensoredGaussian":
        from halfseen.estimators import CensoredGaussian

        return CensoredGaussian
    raise AttributeError(f"module 'halfseen' has no attribute {name!r}")
