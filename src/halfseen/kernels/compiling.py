"""How kernels go through Numba's compiler: with less collecting, and no code that nobody runs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# Objects made between collections of the youngest, and collections of each age between those of the
# next. The compiler makes hundreds of thousands that live until it is done: with Python's own 700 it
# spent a tenth of its time on looking through them, and with these it needs some 20 MB more.
SELDOM = 100_000, 20, 100


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Context in which Python looks for garbage less often; not where it is told to do so never."""
    usual = gc.get_threshold()
    if usual[0] > 0:
        gc.set_threshold(*(max(pair) for pair in zip(usual, SELDOM, strict=True)))
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class KernelCompiler(Compiler):
    """Numba's compiler, for kernels that are called from Python."""

    def compile_extra(self, function: Any) -> Any:
        """Do as Numba does, with fewer collections."""
        # Numba compiles one function at a time, under a lock of its own; those that it calls are within.
        with collecting_seldom():
            return super().compile_extra(function)


class InnerCompiler(KernelCompiler):
    """Numba's compiler, for kernels that only other kernels call."""

    def define_pipelines(self) -> Any:
        """Return the steps of Numba's own, that now fill a library of ours."""
        codegen, name = self.state.targetctx.codegen(), self.state.func_id.func_qualname
        self.state.library = InnerLibrary(codegen, name)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


class InnerLibrary(JITCodeLibrary):
    """A kernel that others take into their own code: nobody runs it where it is.

    Numba makes machine code of each kernel, and again of all that it calls. Here it makes none, but for
    the variables in which it keeps its environments: it looks for them by their names.
    """

    def _finalize_final_module(self) -> None:
        self._shared_module = _for_others(self._final_module)
        self._final_module = _variables(self._final_module)
        super()._finalize_final_module()


def _for_others(module: Any) -> Any:
    # As Numba has it in its own libraries: several that take it in may come together.
    for function in module.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = "linkonce_odr"
    return module


def _variables(module: Any) -> Any:
    # Environments are those of all that take it in. Numbers that hold for this process alone are only
    # named: what has them is not kept.
    kinds = {"_ZN08NumbaEnv": "common", "numba.dynamic.globals": "internal"}
    lines = [f'target triple = "{module.triple}"']
    for name in (variable.name for variable in module.global_variables):
        for prefix, kind in kinds.items():
            if name.startswith(prefix):
                lines.append(f'@"{name}" = {kind} global i64 0')
    alone = llvm.parse_assembly("\n".join(lines))
    alone.name = module.name
    return alone
