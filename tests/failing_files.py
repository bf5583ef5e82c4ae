"""A file layer of which call k fails, for every k: the system says no, or the process ends there."""

import builtins
import errno
import io
import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

# What files are made, changed, moved and removed by.
CALLS = {
    os: (
        "open",
        "close",
        "fdopen",
        "fsync",
        "replace",
        "rename",
        "unlink",
        "rmdir",
        "chmod",
        "mkdir",
    ),
    tempfile: ("mkstemp", "mkdtemp", "TemporaryFile"),
    builtins: ("open",),
    shutil: ("rmtree",),
}
METHODS = {Path: ("rename", "replace", "unlink", "chmod", "mkdir", "write_bytes", "write_text")}
# Calls by which someone only tidies up: were these to fail, what they remove would stay.
TIDYING = ("unlink", "rmdir", "rmtree", "close")


class Ended(BaseException):
    """The process ended here: from now on nothing it calls has any effect."""


class FailingFiles:
    """Counts calls below a folder, and lets call ``k`` fail; with ``ends``, all after it too."""

    def __init__(self, folder, k=None, ends=False):
        self.folder, self.k, self.ends = str(folder), k, ends
        self.count, self.failed = 0, None

    def reach(self, name):
        """Count a call, and raise if it is to fail."""
        if self.failed is not None and self.ends:
            raise Ended(name)
        if name in TIDYING and not self.ends:
            return
        self.count += 1
        if self.count == self.k:
            self.failed = name
            raise Ended(name) if self.ends else OSError(errno.EIO, os.strerror(errno.EIO))

    def wrap(self, name, plain):
        def call(*given, **more):
            if name in ("fsync", "close", "fdopen") or self.concerns(given, more):
                self.reach(name)
                out = plain(*given, **more)
                return self.watch(out) if hasattr(out, "write") else out
            return plain(*given, **more)

        return call

    def concerns(self, given, more):
        return any(
            isinstance(one, str | os.PathLike) and str(one).startswith(self.folder)
            for one in (*given, *more.values())
        )

    def watch(self, file):
        """Let writing fail too: half of the bytes may have come to the disk."""
        if not isinstance(file, io.BufferedWriter):
            return file
        return Watched(self, file)


class Watched(io.BufferedIOBase):
    """A file whose calls are counted."""

    def __init__(self, files, file):
        self._files, self._file = files, file

    def write(self, part):
        try:
            self._files.reach("write")
        except BaseException:
            self._file.write(memoryview(part).cast("B")[: memoryview(part).nbytes // 2])
            self._file.flush()
            raise
        return self._file.write(part)

    def flush(self):
        if not self._file.closed:
            self._files.reach("flush")
            self._file.flush()

    def close(self):
        self._file.close()

    def __exit__(self, *reason):
        self._file.close()

    def writable(self):
        return True

    def tell(self):
        return self._file.tell()

    def fileno(self):
        return self._file.fileno()

    @property
    def closed(self):
        return self._file.closed


@contextmanager
def failing_files(folder, k=None, ends=False):
    """Count the calls of a block; let call ``k`` fail."""
    files = FailingFiles(folder, k, ends)
    with ExitStack() as stack:
        for module, names in (CALLS | METHODS).items():
            for name in names:
                plain = getattr(module, name)
                stack.enter_context(mock.patch.object(module, name, files.wrap(name, plain)))
        yield files
