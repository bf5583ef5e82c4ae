"""What is compiled is kept: the second run of a command waits for no compiler."""

import os
import subprocess
import sys

import pytest

DEMO = """
import numba
from numba.core.event import install_recorder
with install_recorder("numba:compile") as compiled:
    from halfseen.cli import app
    app(["demo"], standalone_mode=False)
    of_demo = len(compiled.buffer)
    numba.njit(lambda x: x + 1)(1)
print(of_demo, len(compiled.buffer) - of_demo)
"""


def _run(program, **variables):
    done = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def test_second_demo_compiles_nothing():
    # What the first finds depends on who ran before it; a cache of its own would take a minute to fill.
    _run(DEMO)
    of_demo, counted = map(int, _run(DEMO).stdout.splitlines()[-1].split())
    assert of_demo == 0
    # And compilations are counted at all.
    assert counted > 0


def test_kernels_load_where_nothing_can_be_kept(tmp_path):
    # Numba looks at no folder but the one of NUMBA_CACHE_DIR, and there is none.
    nowhere = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator", "NUMBA_CACHE_DIR": ""}
    program = "from halfseen.kernels.special import ndtr; print(ndtr(0.0))"
    done = _run(program, TMPDIR=str(tmp_path), **nowhere)
    assert float(done.stdout) == 0.5
    assert "NUMBA_CACHE_DIR" in done.stderr
    # And it leaves nothing behind.
    assert not list(tmp_path.iterdir())


KERNEL = """
import warnings
from halfseen.kernels.special import ndtr
warnings.simplefilter("always")
print(ndtr(0.0))
"""


@pytest.fixture
def kept(tmp_path):
    """A folder with compiled code, and its index files."""
    done = _run(KERNEL, NUMBA_CACHE_DIR=str(tmp_path))
    assert (float(done.stdout), done.stderr) == (0.5, "")
    found = list(tmp_path.rglob("special.ndtr*.nbi"))
    assert found
    return tmp_path, found


@pytest.mark.parametrize("damage", [b"", b"\x80\x04.", b"nonsense"], ids=["empty", "cut", "other"])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_cache_costs_time_and_no_answer(kept, damage, kind):
    folder, found = kept
    for index in found:
        for path in index.parent.glob(f"special.ndtr*.{kind}"):
            path.write_bytes(damage)
    done = _run(KERNEL, NUMBA_CACHE_DIR=str(folder))
    assert float(done.stdout) == 0.5
    assert done.stderr.count("holds a file that cannot be read") == 1
    # And it is mended for the next.
    assert _run(KERNEL, NUMBA_CACHE_DIR=str(folder)).stderr == ""


FULL = """
import errno, os, warnings
from numba.core import caching
from halfseen.kernels.special import ndtr
def full(*given, **more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
caching.IndexDataCacheFile.save = full
warnings.simplefilter("always")
print(ndtr(0.0))
"""


def test_a_full_disk_is_told_and_costs_no_answer(tmp_path):
    done = _run(FULL, NUMBA_CACHE_DIR=str(tmp_path))
    assert float(done.stdout) == 0.5
    assert done.stderr.count("cannot be written ([Errno 28] No space left on device)") == 1
