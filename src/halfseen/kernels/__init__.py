"""Compiled leaves: arrays in, arrays out, no objects."""

import atexit
import os
import shutil
import tempfile
import warnings
from typing import Any

import numba

from halfseen.errors import HalfseenWarning

# How kernels are compiled. NaN and infinity are data here: no flag may assume that there are none.
KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Those that only other kernels call have no way in from Python: a call from there would crash. It takes
# a tenth of a second to compile, for each of them.
INNER = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def _have_somewhere_to_compile() -> None:
    # Numba keeps what it has compiled beside the modules, or else in the user's cache folder. Where
    # neither can be written, as in some containers, kernels could not even be loaded.
    try:
        numba.njit(cache=True)(_have_somewhere_to_compile)
    except RuntimeError:
        folder = tempfile.mkdtemp(prefix="halfseen-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        numba.config.CACHE_DIR = folder  # type: ignore[attr-defined]
        os.environ["NUMBA_CACHE_DIR"] = folder  # for processes that are started from here
        warnings.warn(
            "compiled code cannot be kept, so that every run will wait for the compiler: neither the "
            "folder of the installed package nor the user's cache folder can be written. Set the "
            "environment variable NUMBA_CACHE_DIR to a folder that can.",
            HalfseenWarning,
            stacklevel=2,
        )


_have_somewhere_to_compile()
