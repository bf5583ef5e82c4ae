"""From tables to the few numbers that the solvers need."""

from halfseen.data.moments import PairMoments
from halfseen.data.table import read_table

__all__ = ["PairMoments", "read_table"]
