"""From tables to the few numbers that the solvers need."""

from halfseen.data.csv_files import write_csv
from halfseen.data.interval_data import IntervalData
from halfseen.data.long_tables import read_long
from halfseen.data.moments import PairMoments
from halfseen.data.parquet_blocks import scan_parquet
from halfseen.data.readers import UnreadableError, from_frame, read_csv, read_limits, read_parquet
from halfseen.data.rounding import Rounded, rounded
from halfseen.data.table import RowBlocks, read_table

__all__ = [
    "IntervalData",
    "PairMoments",
    "Rounded",
    "RowBlocks",
    "UnreadableError",
    "from_frame",
    "read_csv",
    "read_limits",
    "read_long",
    "read_parquet",
    "read_table",
    "rounded",
    "scan_parquet",
    "write_csv",
]
