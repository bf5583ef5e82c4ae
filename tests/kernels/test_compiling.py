import gc
import os
import subprocess
import sys

import numba
import pytest

from halfseen.kernels import KERNEL, SELDOM, njit

PLAIN = {"cache": False}


@njit(**KERNEL | PLAIN)
def _rises(x):
    return x + 1.0


@pytest.fixture
def thresholds():
    usual = gc.get_threshold()
    yield
    gc.set_threshold(*usual)


@pytest.mark.parametrize(
    ("usual", "within"),
    [
        ((700, 10, 10), SELDOM),
        ((0, 10, 10), (0, 10, 10)),
        ((10**6, 5, 500), (10**6, 20, 500)),
    ],
)
def test_garbage_is_collected_seldom_while_kernels_are_compiled(
    thresholds, monkeypatch, usual, within
):
    found = []
    monkeypatch.setattr(
        numba.core.compiler.Compiler, "define_pipelines", lambda _: found.append(gc.get_threshold())
    )
    gc.set_threshold(*usual)
    # There is nothing to go through.
    with pytest.raises(TypeError):
        njit(**KERNEL | PLAIN)(_rises.py_func)(1.0)
    assert found == [within]
    assert gc.get_threshold() == usual


MODULE = """
import numpy as np
from halfseen.kernels import INNER, KERNEL, njit
SIZES = np.arange(5.0)
@njit(**INNER)
def inner(x):
    if not x < 9.0:
        raise ValueError("too large")
    out = np.zeros(3)
    for k in range(SIZES.size):
        out[k % 3] += x * SIZES[k]
    return out
@njit(**KERNEL)
def first(x):
    return inner(x).sum()
@njit(**KERNEL)
def second(x):
    return inner(x)[0]
"""
CALL = """
from numba.core.event import install_recorder
import module
with install_recorder("numba:compile") as compiled:
    print(module.{name}(2.0))
names = [event.data["dispatcher"].py_func.__name__ for _, event in compiled.buffer if event.is_start]
print("inner" in names)
try:
    module.{name}(10.0)
except ValueError as error:
    print(error)
"""


def test_inner_kernels_are_kept_for_those_that_come_later(tmp_path):
    (tmp_path / "module.py").write_text(MODULE)

    def call(name):
        done = subprocess.run(
            [sys.executable, "-c", CALL.format(name=name)],
            cwd=tmp_path, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert call("first") == ["20.0", "True", "too large"]
    assert call("second") == ["6.0", "False", "too large"]
    assert call("first") == ["20.0", "False", "too large"]
