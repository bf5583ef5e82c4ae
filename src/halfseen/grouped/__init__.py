"""Groups side by side: what ``fit`` returns when it is asked ``by=``."""

from halfseen.grouped.comparisons import GroupDifferences, GroupMeans
from halfseen.grouped.fit import Door, GroupedFit, returning_groups

__all__ = ["Door", "GroupDifferences", "GroupMeans", "GroupedFit", "returning_groups"]
