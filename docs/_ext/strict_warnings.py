"""Let no warning of an example of the gallery go by, and leave those of Sphinx as they were."""

import warnings

_BEFORE = list(warnings.filters)


def reset(_conf, _file, when):
    """Called by sphinx-gallery before and after each example."""
    warnings.filters[:] = _BEFORE
    if when == "before":
        warnings.simplefilter("error")
