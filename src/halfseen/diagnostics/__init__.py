"""Whether the assumptions are met by the data: those of the theory, the rule, and normality."""

from halfseen.diagnostics.assumptions import Share
from halfseen.diagnostics.diagnose import diagnose
from halfseen.diagnostics.diagnosis import Diagnosis, PairShares
from halfseen.diagnostics.findings import Finding
from halfseen.diagnostics.losses import Losses
from halfseen.diagnostics.marks import Mark
from halfseen.diagnostics.normality import Normality, NormalityTest
from halfseen.diagnostics.reading import Contradiction

__all__ = [
    "Contradiction",
    "Diagnosis",
    "Finding",
    "Losses",
    "Mark",
    "Normality",
    "NormalityTest",
    "PairShares",
    "Share",
    "diagnose",
]
