"""Kernels are tested before all else, each by one worker, which so compiles it for both.

The largest groups of tests are run first, and these are the largest. With an empty cache the site, the
workers of a cluster and both workers of pytest would otherwise compile the same kernels side by side.
"""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
# Kernels that sweep rows, and those that they call. All others are in the other group.
ROWS = ("test_confined.py", "test_paths.py", "test_patterns.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == HERE:
            group = "kernels of rows" if item.path.name in ROWS else "other kernels"
            item.add_marker(pytest.mark.xdist_group(group))
