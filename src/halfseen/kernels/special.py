"""SciPy's normal distribution functions, callable from compiled code.

Each function is registered with LLVM under a name of ours, so a kernel that calls it can be cached
on disk: the name is looked up anew in every process, where an address would be stale.
"""

from typing import Any

from llvmlite import binding as llvm
from numba import types
from numba.extending import get_cython_function_address

from halfseen.kernels import INNER, KERNEL, njit

# Cython appends an int argument (skip dispatch) to the C signature.
_SIGNATURE = types.float64(types.float64, types.int32)


def _external(name: str, cython_name: str) -> Any:
    symbol = f"halfseen_{name}"
    llvm.add_symbol(
        symbol, get_cython_function_address("scipy.special.cython_special", cython_name)
    )
    return types.ExternalFunction(symbol, _SIGNATURE)


_ndtr = _external("ndtr", "__pyx_fuse_1ndtr")
_log_ndtr = _external("log_ndtr", "__pyx_fuse_1log_ndtr")
_ndtri = _external("ndtri", "ndtri")
_ndtri_exp = _external("ndtri_exp", "ndtri_exp")


@njit(**KERNEL)
def ndtr(x: float) -> float:
    """Φ(x), the standard normal distribution function."""
    return _ndtr(x, 0)


@njit(**KERNEL)
def log_ndtr(x: float) -> float:
    """Log Φ(x), finite far into the lower tail."""
    return _log_ndtr(x, 0)


@njit(**KERNEL)
def ndtri(p: float) -> float:
    """Φ⁻¹(p)."""
    return _ndtri(p, 0)


@njit(**INNER)
def ndtri_exp(log_p: float) -> float:
    """Φ⁻¹(exp(log_p)), for probabilities too small for a float."""
    return _ndtri_exp(log_p, 0)
