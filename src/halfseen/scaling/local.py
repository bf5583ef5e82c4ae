"""Work in this process; values that do not fit in memory are kept in files."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from halfseen.data.table import CACHE_CELLS, CACHES_PER_CHUNK
from halfseen.errors import InputError
from halfseen.memory import give_back_freed_arrays, human_bytes, resident_bytes
from halfseen.parallel import Tree, map_in_order, resolve_jobs, single_blas_thread
from halfseen.scaling.engine import Arrays, Combine, Engine, Kept, Work, keepable, size_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Memory that work on a block takes, over the bytes of its values: the values themselves, as much again
# for a result of the same size, and one more for the work.
AMPLIFICATION = 3
# Bytes of a chunk that is read and not kept, with all that is made of it and what the reader holds
# meanwhile: at most 90 MB were measured for each thread, three times these.
STREAMED = 4 * 8 * CACHES_PER_CHUNK * CACHE_CELLS
PREFIX = "halfseen-scratch-"
LOCK = "lock"


class LocalEngine(Engine):
    """Work in the threads of this process.

    Values are kept in memory as long as they fit, then in files of a scratch folder, which is removed
    when the engine is closed or forgotten, and when the interpreter ends. They are read and written,
    not mapped: mapped pages would count as memory.

    Parameters
    ----------
    folder : path, optional
        Where to make the scratch folder; the system's place for temporary files otherwise. Nothing is
        made before it is needed.
    n_jobs : int, optional
        Threads, each at work on one block; every core otherwise.
    memory : int, optional
        Bytes for kept values and for the work on blocks, beyond what the process holds already.
        Results are not counted. Without it everything stays in memory.
    promise : int, optional
        Bytes that the whole process is to keep within. What it holds beside the values (libraries that
        were loaded since, buffers that they keep) is looked at before a value is kept in memory.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        memory: int | None = None,
        promise: int | None = None,
    ) -> None:
        self.jobs, self.memory, self.promise = resolve_jobs(n_jobs), memory, promise
        if memory is not None:
            give_back_freed_arrays()
        self._scratch = Scratch(folder)
        self._lock = threading.Lock()
        self._held = 0
        self._largest = 0

    def make(self, work: Work, pieces: Sequence[Any], numbers: Sequence[Any], *common: Any) -> Kept:
        """Keep ``work(piece, number, *common)`` of each piece."""
        pairs = list(zip(pieces, numbers, strict=True))
        slots: list[Any] = [None] * len(pairs)

        def keep(number: int) -> None:
            with single_blas_thread():
                values = keepable(work(*pairs[number], *common))
            # Those that are still to come, unless the engine has files already, will need as much.
            to_come = sum(slot is None for slot in slots)
            slots[number] = self._keep(values, blocks=to_come)

        # The first says how much memory one needs.
        for number in range(min(1, len(pairs))):
            keep(number)
            self._count()
        for _ in map_in_order(keep, range(1, len(pairs)), self._at_once(self._reading)):
            self._count()
        return Kept(slots)

    def _count(self) -> None:
        if self.tick is not None:
            self.tick()

    def total(self, work: Work, *kept: Kept, common: Sequence[Any] = (), combine: Combine) -> Any:
        """Return the results ``work(*values, *common)`` combined."""
        n, needed = self._measure(*kept)
        tree = Tree(combine)
        look = _Look(work, kept, common)
        for result in map_in_order(look, range(n), self._at_once(needed)):
            tree.add(result)
        return tree.root()

    def each(self, work: Work, *kept: Kept, common: Sequence[Any] = ()) -> Iterator[Any]:
        """Yield ``work(*values, *common)`` of each block, in order."""
        n, needed = self._measure(*kept)
        # A result may be as large as its block: those that wait count, and the one handed out.
        jobs = max(1, self._at_once(needed) - 1)
        yield from map_in_order(_Look(work, kept, common), range(n), jobs, ahead=jobs)

    def map(self, work: Work, items: Iterable[Any], *common: Any) -> Iterator[Any]:
        """Yield ``work(item, *common)`` of each item, in order."""

        def one(item: Any) -> Any:
            with single_blas_thread():
                return work(item, *common)

        yield from map_in_order(one, items, self.jobs)

    def stream(
        self,
        work: Work,
        pieces: Sequence[Any],
        numbers: Sequence[Any],
        *common: Any,
        combine: Combine,
    ) -> Any:
        """Return the results ``work(piece, number, *common)`` combined, in one pass."""

        def one(pair: tuple[Any, Any]) -> Any:
            with single_blas_thread():
                return work(*pair, *common)

        tree = Tree(combine)
        pairs = list(zip(pieces, numbers, strict=True))
        for result in map_in_order(one, pairs, self._at_once(STREAMED)):
            tree.add(result)
            self._count()
        return tree.root()

    def close(self) -> None:
        """Remove the scratch folder."""
        self._scratch.remove()

    def _measure(self, *kept: Kept) -> tuple[int, int]:
        """Return the number of blocks, and the bytes of the largest."""
        n = len(kept[0])
        sizes = [[slot.size for slot in one.slots] for one in kept]
        return n, max((sum(block) for block in zip(*sizes, strict=True)), default=0)

    def _at_once(self, needed: int) -> int:
        """Return how many blocks of a size may be worked on at a time."""
        room = self._room()
        if room is None or needed == 0:
            return self.jobs
        return max(1, min(self.jobs, room // (AMPLIFICATION * needed)))

    @property
    def _reading(self) -> int:
        """Bytes of a block while it is read, or worked on: the largest there was, if that is more."""
        # Where nothing was promised for the whole process, pieces may be of any size.
        return self._largest if self.promise is None else max(self._largest, STREAMED)

    def _room(self) -> int | None:
        """Return the bytes that are left; None where nothing was promised."""
        if self.memory is None:
            return None
        room = self.memory - self._held
        return room if self.promise is None else min(room, self.promise - resident_bytes())

    def _keep(self, values: Arrays, blocks: int = 1) -> InMemory | InFile:
        """Find a place for values; ``blocks`` of this size will need one."""
        size = size_of(values)
        with self._lock:
            self._largest = max(self._largest, size)
            # What work on blocks will take is set aside.
            working = self.jobs * AMPLIFICATION * self._reading
            room = self._room()
            if room is None or size + working <= room:
                self._held += size
                return InMemory(values)
        return self._scratch.write(values, blocks)


class _Look:
    """Work on the values of one block, which it must not change."""

    def __init__(self, work: Work, kept: Sequence[Kept], common: Sequence[Any]) -> None:
        self.work, self.kept, self.common = work, kept, common

    def __call__(self, number: int) -> Any:
        values = [one.slots[number].load() for one in self.kept]
        with single_blas_thread():
            return self.work(*values, *self.common)


class InMemory:
    """Values of a block, here."""

    def __init__(self, values: Arrays) -> None:
        self.values, self.size = values, size_of(values)

    def load(self) -> Arrays:
        """Return the values themselves; the dictionary is a new one."""
        return dict(self.values)


@dataclass(frozen=True)
class InFile:
    """Values of a block in a file: the bytes of one array after another, and here what they mean."""

    path: Path
    layout: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]
    size: int

    def load(self) -> Arrays:
        """Read the values."""
        out: Arrays = {}
        with open(self.path, "rb") as file:
            for name, dtype, shape in self.layout:
                out[name] = np.empty(shape, dtype)
                _read_into(file, out[name], self.path)
        return out


def _read_into(file: BinaryIO, array: np.ndarray[Any, Any], path: Path) -> None:
    # A view as bytes: a memoryview knows neither dates nor half floats.
    raw = array.reshape(-1).view(np.uint8)
    if raw.size and file.readinto(raw.data) != raw.size:  # type: ignore[attr-defined]
        raise InputError(f"the scratch file {path} was cut short or changed by another program.")


class Scratch:
    """A folder for files of this process, made when it is first needed and removed with it.

    A process that was killed leaves its folder behind: it is removed when a folder is next made in
    the same place. Whether its process lives is told by a lock on a file in it.
    """

    def __init__(self, parent: str | os.PathLike[str] | None) -> None:
        self.parent = Path(tempfile.gettempdir() if parent is None else parent)
        self._made = threading.Lock()
        self._count = 0
        self._path: Path | None = None
        self._remove: Callable[[], object] | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        with self._made:
            if self._path is None:
                self._make()
            assert self._path is not None
            return self._path

    def write(self, values: Arrays, blocks: int = 1) -> InFile:
        """Write values to a new file; room for ``blocks`` of them must be on the disk."""
        folder, size = self.path, size_of(values)
        with self._made:
            self._count += 1
            path = folder / f"{self._count}.raw"
        self._check_room(size * blocks)
        try:
            with open(path, "wb") as file:
                for array in values.values():
                    file.write(array.reshape(-1).view(np.uint8).data)
        except OSError as error:
            path.unlink(missing_ok=True)
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise InputError(self._no_room(size * blocks)) from error
        layout = tuple((name, array.dtype, array.shape) for name, array in values.items())
        return InFile(path, layout, size)

    def remove(self) -> None:
        """Remove the folder and all that is in it."""
        if self._remove is not None:
            self._remove()
        self._path = None

    def _make(self) -> None:
        _remove_left_behind(self.parent)
        try:
            self._path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self.parent))
        except OSError as error:
            raise InputError(
                f"no scratch folder can be made in {self.parent}: {error.strerror or error}. "
                "Name another."
            ) from error
        # Also at the end of the interpreter, and when the engine is forgotten.
        lock = _hold_lock(self._path)
        self._remove = weakref.finalize(self, _remove_folder, self._path, lock, os.getpid())

    def _check_room(self, needed: int) -> None:
        if needed > shutil.disk_usage(self.path).free:
            raise InputError(self._no_room(needed))

    def _no_room(self, needed: int) -> str:
        free = shutil.disk_usage(self.parent).free
        return (
            f"values that do not fit in memory need {needed} bytes ({human_bytes(needed)}) in "
            f"{self.parent}, where {free} ({human_bytes(free)}) are free. Try a scratch folder on "
            "another disk, or more memory."
        )


def _hold_lock(folder: Path) -> int | None:
    """Make a locked file in a folder; it appears there locked already, so that nobody finds it free."""
    if fcntl is None:
        return None
    handle, name = tempfile.mkstemp(dir=folder)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # a file system without locks
        os.close(handle)
        os.unlink(name)
        return None
    os.rename(name, folder / LOCK)
    return handle


def _remove_folder(folder: Path, lock: int | None, owner: int) -> None:
    # A forked child runs this too when it ends; the folder is not its own.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _remove_left_behind(parent: Path) -> None:
    """Remove scratch folders of processes of this user that were killed."""
    if fcntl is None:
        return
    for folder in parent.glob(PREFIX + "*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process is alive
        finally:
            os.close(handle)
