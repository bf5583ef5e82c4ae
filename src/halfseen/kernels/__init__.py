"""Compiled leaves: arrays in, arrays out, no objects."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache

from halfseen.errors import HalfseenWarning
from halfseen.kernels.compiling import InnerCompiler, KernelCompiler

# How kernels are compiled. NaN and infinity are data here: no flag may assume that there are none.
KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Those that only other kernels call have no way in from Python: a call from there would crash. It takes
# a tenth of a second to compile, for each of them.
INNER = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as ``numba.njit`` does, also where what is compiled cannot be kept."""

    def compiled(kernel: Callable[..., Any]) -> Any:
        compiler = InnerCompiler if options.get("no_cpython_wrapper") else KernelCompiler
        dispatcher = numba.njit(pipeline_class=compiler, **options)(kernel)
        if cache:
            # Numba keeps it beside the modules, or else in the user's cache folder. Where neither can
            # be written, as in some containers, it would refuse.
            try:
                dispatcher._cache = _Cache(kernel)
            except (RuntimeError, OSError) as error:
                _tell(str(error))
        return dispatcher

    return compiled


class _Cache(FunctionCache):
    """What was compiled before. Whatever is wrong with it costs time, and no answer."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except Exception as error:  # unpickling raises anything
            _tell(f"{self.cache_path} holds a file that cannot be read ({_in_words(error)})")
            # An index without entries, for those to come.
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            super().save_overload(signature, data)
        except Exception as error:
            _tell(f"{self.cache_path} cannot be written ({_in_words(error)})")


def _in_words(error: Exception) -> str:
    return str(error) or type(error).__name__


def _tell(reason: str) -> None:
    """Warn, once in a process, that there is more to compile than there need be."""
    if _told:
        return
    _told.append(reason)
    warnings.warn(
        "compiled code cannot be kept, or read again, so that this run waits for the compiler: "
        f"{reason}. Make room, or mend the folder; or set the environment variable NUMBA_CACHE_DIR to "
        "another.",
        HalfseenWarning,
        stacklevel=3,
    )


_told: list[str] = []
