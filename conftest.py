"""What has to be settled before anything is imported: where kernels are kept, and threads of BLAS.

Compiled kernels are cached under a name made of their source, so that no stale one is tested: Numba
looks only at the file of the function that is called, and a change in a kernel that it calls from
another file would go unnoticed.

There is a worker for each core, and the matrices of tests are small: more threads of BLAS than one
would mostly wait for each other, and burn what the other worker needs (a solve of three equations took
three hundred times as long on a busy machine). Tests of threads ask for two.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent
KERNELS = sorted((ROOT / "src" / "halfseen" / "kernels").glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in KERNELS)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / f"numba-{DIGEST}"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
