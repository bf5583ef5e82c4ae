"""From tables to the few numbers that the solvers need."""

from halfseen.data.interval_data import IntervalData
from halfseen.data.moments import PairMoments
from halfseen.data.table import read_table

__all__ = ["IntervalData", "PairMoments", "read_table"]
