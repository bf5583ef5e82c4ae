"""Whether the assumptions are met by the data: those of the theory, the rule, and normality."""

from halfseen.diagnostics.checked_table import Contradiction
from halfseen.diagnostics.diagnose import diagnose
from halfseen.diagnostics.diagnosis import Diagnosis, PairShares, Share
from halfseen.diagnostics.findings import Finding
from halfseen.diagnostics.marks import Mark
from halfseen.diagnostics.normality import Normality, NormalityTest
from halfseen.diagnostics.together import Losses

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
