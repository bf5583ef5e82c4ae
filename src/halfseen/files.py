"""Files that are written whole or not at all."""

import os
import tempfile
from pathlib import Path


def write_text_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` beside ``path`` and move it there, so that no reader sees half of it.

    A link stays, and what it leads to is replaced; a device or a pipe is written to as it is.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8", newline="")
        return
    # mkstemp makes files that only their owner may read; a saved result should be like any other.
    mask = os.umask(0)
    os.umask(mask)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        os.chmod(name, 0o666 & ~mask)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
