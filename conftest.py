"""Compiled kernels are cached under a name made of their source, so that no stale one is tested.

Numba looks only at the file of the function that is called; a change in a kernel that it calls from
another file would go unnoticed.
"""

import hashlib
import os
from pathlib import Path

ROOT = Path(__file__).parent
KERNELS = sorted((ROOT / "src" / "halfseen" / "kernels").glob("*.py"))
DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in KERNELS)).hexdigest()[:16]
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".cache" / f"numba-{DIGEST}"))
