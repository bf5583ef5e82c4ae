"""Files that are written whole or not at all, and read once."""

import contextlib
import os
import re
import reprlib
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from halfseen.errors import InputError
from halfseen.memory import free_bytes, human_bytes

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# What the names of unfinished files end with, after what mkstemp makes up.
PART = ".halfseen-part"
MADE_UP = "[a-z0-9_]{8}"
LEFT_BEHIND = re.compile(rf"\..+\.{MADE_UP}{re.escape(PART)}", re.DOTALL)
_MASK = threading.Lock()
# Bytes that are taken from a pipe at a time.
GULP = 2**20


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
    remove_left_behind(target.parent)
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


@contextlib.contextmanager
def unfinished_folder(inside: Path, target: Path) -> Iterator[Path]:
    """Give a new folder for what will be ``target``; it is gone at the end, unless it was moved."""
    mask = file_mask()
    while True:
        made = Path(tempfile.mkdtemp(dir=inside, prefix=f".{target.name}.", suffix=PART))
        lock = _try_lock(made)
        if made.exists():
            break
        _close(lock)  # taken for one that was left behind, before it was locked
    try:
        # mkdtemp makes folders that only their owner may enter.
        made.chmod(0o777 & ~mask)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        _close(lock)


def remove_left_behind(folder: str | os.PathLike[str]) -> None:
    """Remove what writers that were killed left in a folder; what living ones are at work on stays."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = [entry.path for entry in entries if LEFT_BEHIND.fullmatch(entry.name)]
        for path in found:
            # Its writer holds the lock for as long as it lives.
            lock = _try_lock(Path(path))
            if lock is None:
                continue
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.fstat(lock).st_mode):
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    os.unlink(path)
            _close(lock)


def is_left_behind(path: str | os.PathLike[str]) -> bool:
    """Whether a file or a folder has the name of an unfinished one."""
    return LEFT_BEHIND.fullmatch(os.path.basename(path)) is not None


def _try_lock(path: Path) -> int | None:
    """Lock a file or a folder of this user; None where another has done so, or it cannot be done."""
    if fcntl is None:
        return None
    handle = None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        if os.fstat(handle).st_uid == os.getuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
    except OSError:
        pass
    _close(handle)
    return None


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


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


def try_writing(path: str | os.PathLike[str]) -> None:
    """Raise an ``OSError`` where ``whole_file`` could not write; nothing is changed."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        # A pipe would wait for a reader, or tell the one that it has of an end.
        if not os.access(target, os.W_OK):
            raise PermissionError(13, os.strerror(13))
        return
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=PART)
    os.close(handle)
    Path(name).unlink(missing_ok=True)


def read_whole(path: Any, most: int | None = None) -> bytes:
    """Return the bytes of a file or a pipe, which is opened once and read to its end.

    Parameters
    ----------
    path : path of a file
    most : int, optional
        Bytes beyond which it is refused; otherwise a quarter of the memory that is free.
    """
    try:
        shown = os.fspath(path)
        with open(shown, "rb") as file:
            kind = os.fstat(file.fileno())
            if stat.S_ISCHR(kind.st_mode) and not file.isatty():
                raise InputError(
                    f"{shown} cannot be read: it is a device, and may have no end. Name "
                    "a file or a pipe."
                )
            return read_stream(shown, file, most, kind.st_size)
    except TypeError:
        raise InputError(f"the path of a file was expected; got {reprlib.repr(path)}.") from None
    except OSError as error:
        raise InputError(f"{shown} cannot be read: {error.strerror or error}.") from None
    except InputError:
        raise
    except ValueError:
        raise InputError(f"{shown!r} is no path of a file.") from None


def read_stream(source: str, stream: Any, most: int | None = None, size: int = 0) -> bytes:
    """Return all bytes of an open stream, of a ``size`` that is known or a pipe without an end."""
    most = free_bytes() // 4 if most is None else most
    parts, told = [], 0
    while True:
        # One byte more than there are says that there are no more.
        part = b"" if size > most else stream.read(size + 1 if size else GULP)
        parts.append(part)
        told += len(part)
        if max(size, told) > most:
            raise InputError(
                f"{source} holds more than {human_bytes(most)}, too much to be read as a whole. Give "
                "a smaller file."
            )
        if not part:
            return parts[0] if len(parts) == 2 else b"".join(parts)
