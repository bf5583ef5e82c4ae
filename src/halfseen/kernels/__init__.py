"""Compiled leaves: arrays in, arrays out, no objects."""

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.compiler import Compiler

from halfseen.errors import HalfseenWarning

# How kernels are compiled. NaN and infinity are data here: no flag may assume that there are none.
KERNEL: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# Those that only other kernels call have no way in from Python: a call from there would crash. It takes
# a tenth of a second to compile, for each of them.
INNER = {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Objects made between collections of the youngest, and collections of each age between those of the
# next. The compiler makes hundreds of thousands that live until it is done: with Python's own 700 it
# spent a tenth of its time on looking through them, and with these it needs some 20 MB more.
SELDOM = 100_000, 20, 100


def njit(*, cache: bool, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as ``numba.njit`` does, also where what is compiled cannot be kept."""

    def compiled(kernel: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(pipeline_class=_Compiler, **options)(kernel)
        if cache:
            # Numba keeps it beside the modules, or else in the user's cache folder. Where neither can
            # be written, as in some containers, it would refuse.
            try:
                dispatcher._cache = _Cache(kernel)
            except (RuntimeError, OSError) as error:
                _tell(str(error))
        return dispatcher

    return compiled


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    """Context in which Python looks for garbage less often; not where it is told to do so never."""
    usual = gc.get_threshold()
    if usual[0] > 0:
        gc.set_threshold(*(max(pair) for pair in zip(usual, SELDOM, strict=True)))
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class _Compiler(Compiler):
    """Numba's compiler."""

    def compile_extra(self, function: Any) -> Any:
        """Do as Numba does, with fewer collections."""
        # Numba compiles one function at a time, under a lock of its own; those that it calls are within.
        with _collecting_seldom():
            return super().compile_extra(function)


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
