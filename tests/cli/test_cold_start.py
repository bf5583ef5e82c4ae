"""What is compiled is kept: the second run of a command waits for no compiler."""

import os
import subprocess
import sys

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
