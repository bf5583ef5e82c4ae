"""Upper and lower limits that are reported: of means, quantiles, tolerance and next values."""

from halfseen.limits.find import find_group_limits, find_limits
from halfseen.limits.table import Limit, LimitTable

__all__ = ["Limit", "LimitTable", "find_group_limits", "find_limits"]
