"""What hides a value: sets in which it is shown, and models of whole rows."""

from halfseen.missingness.base import ColumnRule, ColumnwiseMissingness, Missingness
from halfseen.missingness.combined import Combined
from halfseen.missingness.detection_limits import DetectionLimits
from halfseen.missingness.holes import (
    SEEN,
    Box,
    Holes,
    Inequalities,
    Parts,
    Polyhedra,
    Scan,
    gather,
)
from halfseen.missingness.linear_threshold import LinearThreshold
from halfseen.missingness.named_rules import rules
from halfseen.missingness.resolve import SetTable, one_interval_each
from halfseen.missingness.rule_parts import RuleError
from halfseen.missingness.selection import Selection
from halfseen.missingness.self_censoring import SelfCensoring
from halfseen.missingness.self_selection import SelfSelection
from halfseen.missingness.sets import (
    Interval,
    Predicate,
    Probability,
    SeenSet,
    Union,
    at_least,
    at_most,
    between,
    everything,
)
from halfseen.missingness.truncation import RowTruncation

__all__ = [
    "SEEN",
    "Box",
    "ColumnRule",
    "ColumnwiseMissingness",
    "Combined",
    "DetectionLimits",
    "Holes",
    "Inequalities",
    "Interval",
    "LinearThreshold",
    "Missingness",
    "Parts",
    "Polyhedra",
    "Predicate",
    "Probability",
    "RowTruncation",
    "RuleError",
    "Scan",
    "SeenSet",
    "Selection",
    "SelfCensoring",
    "SelfSelection",
    "SetTable",
    "Union",
    "at_least",
    "at_most",
    "between",
    "everything",
    "gather",
    "one_interval_each",
    "rules",
]
