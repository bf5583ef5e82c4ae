"""Files that are written whole or not at all."""

import contextlib
import os
import re
import reprlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from halfseen.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# What the names of unfinished files end with, after what mkstemp makes up.
PART = ".part"
MADE_UP = "[a-z0-9_]{8}"
_MASK = threading.Lock()


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a file to write bytes to, which takes the place of ``path`` at the end, or not at all.

    The bytes go beside ``path`` and are moved there once they are on the disk, so that no reader sees
    half of them and no crash leaves half of them under its name. A link stays, and what it leads to is
    replaced; a device or a pipe is written to as it is.
    """
    try:
        target = Path(path).resolve()
    except (TypeError, ValueError):
        raise InputError(f"the path of a file was expected; got {reprlib.repr(path)}.") from None
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    # mkstemp makes files that only their owner may read; a saved result should be like any other.
    mask = file_mask()
    handle, name = _locked_part(target)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(name, 0o666 & ~mask)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is not None:
                # While it is locked: nobody takes it for one that was left behind.
                os.replace(name, target)
        if fcntl is None:
            # Windows does not move a file that is open.
            os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def file_mask() -> int:
    """Return the bits that new files do not get. To read them is to set them: one thread at a time."""
    with _MASK:
        mask = os.umask(0)
        os.umask(mask)
    return mask


def remove_left_behind(path: str | os.PathLike[str]) -> None:
    """Remove what writers of ``path`` that were killed left beside it; files of living ones stay."""
    if fcntl is None:
        return
    target = Path(path).resolve()
    form = re.compile(re.escape(f".{target.name}.") + MADE_UP + re.escape(PART))
    for part in target.parent.iterdir():
        if not form.fullmatch(part.name) or part.is_symlink() or not part.is_file():
            continue
        with contextlib.suppress(OSError), part.open("rb") as file:
            # Its writer holds the lock for as long as it lives.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _locked_part(target: Path) -> tuple[int, str]:
    """Make an unfinished file, locked so that nobody takes it for one that was left behind."""
    while True:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=PART)
        if fcntl is not None:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, name
        # Taken for one before it was locked.
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    # The new name is an entry of the folder, which reaches the disk by itself. Not every system lets a
    # folder be opened or synced; the move has been made all the same.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` beside ``path`` and move it there, so that no reader sees half of it.

    A link stays, and what it leads to is replaced; a device or a pipe is written to as it is.
    """
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
