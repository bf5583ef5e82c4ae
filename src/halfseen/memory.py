"""A promise about memory: reading it, and what is left of it."""

from __future__ import annotations

import ctypes
import math
import numbers
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from halfseen.errors import InputError, argument

# Below this much, beyond what the process already holds, not even one block can be worked on: a chunk
# of a table has 8 MiB (CACHES_PER_CHUNK of CACHE_CELLS), a few copies of it are under way, and compiled
# code, BLAS and the reader of Parquet take their share: 120 MiB were measured with one thread.
LEAST = 160 * 2**20
# More bytes than any machine has.
LARGEST = 1e30
# Matrices of all pairs of columns that are held at a time: moments, and their sums that wait.
MATRICES = 40
# Where control groups are, and what they call limit, use, and files that can be given back: of the
# second version, which has no word for its kind, and of the first.
GROUPS = "/sys/fs/cgroup"
NAMES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
# The number of that setting in malloc.h of glibc, and the size from which arrays are given back: above
# the work arrays of a block (at most CACHE_CELLS of 8 bytes), which are better kept.
M_MMAP_THRESHOLD = -3
LARGE_ARRAY = 2**20


def parse_memory(memory: str | float | None) -> int | None:
    """Read an amount of memory: bytes, or a text such as "1GB", "512 MB" or "1.5GiB".

    Examples
    --------
    >>> parse_memory("1GB"), parse_memory("1.5 GiB"), parse_memory(10**9), parse_memory(None)
    (1000000000, 1610612736, 1000000000, None)
    """
    if memory is None:
        return None
    number = math.nan
    if isinstance(memory, str):
        form = r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:([KMGT])(I?)B?|B)?\s*"
        found = re.fullmatch(form, memory, re.IGNORECASE | re.ASCII)
        if found:
            value, unit, binary = found.groups(default="")
            base = 1024 if binary else 1000
            number = float(value) * (base ** " KMGT".index(unit.upper()) if unit else 1)
    elif isinstance(memory, numbers.Real) and not isinstance(memory, bool):
        number = float(memory) if abs(memory) < LARGEST else math.nan
    if not math.isfinite(number) or number < 1.0:
        raise InputError(
            "memory must be a positive amount, in bytes or with a unit, such as '1GB', '512MB' or "
            f"'1.5GiB'; got {memory!r}."
        )
    return int(number)


def human_bytes(n: float) -> str:
    """Write a number of bytes for people, in powers of 1000.

    Examples
    --------
    >>> human_bytes(512), human_bytes(1_500_000), human_bytes(23e9)
    ('512 bytes', '1.5 MB', '23 GB')
    """
    if n < 1000:
        return f"{int(n)} byte{'' if int(n) == 1 else 's'}"
    amount, units = n / 1000.0, ["kB", "MB", "GB", "TB", "PB"]
    # From 999.5 on, three digits would round to 1000.
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000.0
        units.pop(0)
    return f"{amount:.3g} {units[0]}" if amount < 999.5 else f"{amount:.0f} {units[0]}"


def resident_bytes() -> int:
    """Return the memory that this process holds now, in bytes; 0 where no way to know is found."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        pass
    try:
        # Not a dependency of ours; where it is there, it knows.
        return int(import_module("psutil").Process().memory_info().rss)
    except ImportError:
        pass
    try:
        import resource
    except ImportError:
        return 0
    # The most it ever held is no less than what it holds now. macOS counts bytes, others kilobytes.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most) if sys.platform == "darwin" else 1024 * int(most)


def give_back_freed_arrays() -> None:
    """Make the allocator return large arrays to the system when they are freed, from now on.

    That of Linux (glibc) does so at first, but on the first large array that is freed it starts to keep
    them for later, in a heap for each thread: the process then grows with every pass over a table.
    Elsewhere nothing is done.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY)


def free_bytes() -> int:
    """Return how many bytes this process may still take; 1 GiB where no way to know is found."""
    return min([_free_in_machine(), *_free_in_groups()])


def _free_in_machine() -> int:
    try:
        # Files that the system only keeps in case they are read again count as free.
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
        if found:
            return 1024 * int(found[1])
    except (OSError, ValueError):
        pass
    try:
        return int(import_module("psutil").virtual_memory().available)
    except ImportError:
        return 2**30


def _free_in_groups() -> Iterator[int]:
    """Yield what is left in each control group around this process: containers are limited by these."""
    try:
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds not in ("", "memory"):
            continue
        root = Path(GROUPS, kinds)
        # A container may see its own group as the root, wherever the machine has it.
        place = root / path.lstrip("/")
        for folder in {place, *place.parents, root}:
            if folder == root or root in folder.parents:
                yield from _free_in_group(folder, *NAMES[kinds])


def _free_in_group(folder: Path, limit: str, used: str, kept: str) -> Iterator[int]:
    with suppress(OSError, ValueError):
        most, now = (int(Path(folder, name).read_text("ascii")) for name in (limit, used))
        stat = Path(folder, "memory.stat").read_text("ascii")
        # Files that are read again only if they are needed; a limit may be no limit at all.
        given_back = re.search(rf"^{kept} (\d+)$", stat, re.MULTILINE)
        yield max(0, most - now + int(given_back[1] if given_back else 0))


def budget(memory: str | float | None, least: int = LEAST) -> int | None:
    """Return what is left of a promised amount after what the process already holds.

    Parameters
    ----------
    memory : str, number or None
        As in ``parse_memory``; None promises nothing.
    least : int
        Bytes below which the work cannot be done.

    Raises
    ------
    InputError
        If less than ``least`` is left.
    """
    promised = parse_memory(memory)
    if promised is None:
        return None
    held = resident_bytes()
    left = promised - held
    if left < least:
        raise InputError(
            f"{human_bytes(promised)} of memory is too little: this process already holds "
            f"{human_bytes(held)}, and the work needs at least {human_bytes(least)} more. Try "
            f"{argument('memory', f'{math.ceil((held + least) / 1e6)}MB')} or more."
        )
    return left
