"""One file of JSON and arrays: saved fits and checkpoints.

A file is a ZIP archive without compression: one ``.npy`` member for each array, then ``manifest.json``.
The bytes around the members follow from their names, sizes and checksums, so that the reader makes them
again and refuses a file that differs from them anywhere. docs/saved-fits.md describes the format.
"""

from __future__ import annotations

import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.files import whole_file
from halfseen.strict_json import from_json, to_json
from halfseen.version import __version__

MANIFEST = "manifest.json"
# JSON takes up to 32 times its length in memory ("[[]]," is five bytes, and two lists of 56), which
# is the constant by which loading may exceed the length of the file.
LARGEST_MANIFEST = 2**24
# An entry takes at least 74 bytes here and less than 1 kB as an object: some 220 000 arrays.
LARGEST_DIRECTORY = 2**24
# Plain numbers, little-endian: no type that could hold an object.
DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
# What NumPy 1 and 2 both allow.
MOST_DIMENSIONS = 32
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
LONGEST_NAME = 200

# ZIP, APPNOTE 6.3: sizes and offsets are always those of ZIP64, so that there is one layout to check.
LOCAL = struct.Struct("<4s5H3L2H")
LOCAL_EXTRA = struct.Struct("<2H2Q")
CENTRAL = struct.Struct("<4s6H3L5H2L")
CENTRAL_EXTRA = struct.Struct("<2H3Q")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR = struct.Struct("<4sLQL")
END = struct.Struct("<4s4H2LH")
ZIP64_VERSION = 45
# 1 January 1980, the first day of ZIP: the same content gives the same bytes on any day.
DATE = (1 << 5) | 1
IN_EXTRA = 0xFFFFFFFF
PIECE = 2**24


class ArchiveError(InputError):
    """A file is not what it should be, or not whole."""


class _Member(NamedTuple):
    name: str
    size: int
    crc: int
    offset: int


class Archive:
    """An open archive, whose arrays are read and checked when they are asked for.

    Attributes
    ----------
    path : str
    version : int
        Of the format, at most that which was asked for.
    content : dict
        What was written beside the arrays.
    names : tuple of str
        Of the arrays, in the order of the file.
    """

    def __init__(self, path: str, file: BinaryIO, version: int, content: dict[str, Any]) -> None:
        self.path, self.version, self.content = path, version, content
        self._file = file
        self._parts: dict[str, tuple[_Member, np.dtype[Any], tuple[int, ...]]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays, in the order of the file."""
        return tuple(self._parts)

    def array(self, name: str) -> NDArray[Any]:
        """Read one array, in C order, and check it against its checksum."""
        if name not in self._parts:
            raise ArchiveError(f"{self.path} has no array {name!r}.")
        member, dtype, shape = self._parts[name]
        try:
            array = np.empty(shape, dtype)
        except MemoryError:
            raise ArchiveError(
                f"{self.path}: the array {name!r} takes {member.size} bytes, more than there is memory."
            ) from None
        header = _npy_header(dtype.str, shape)
        self._file.seek(_data_offset(member))
        found = self._file.read(len(header))
        payload = _bytes_of(array)
        crc, start = zlib.crc32(found), 0
        while start < len(payload):
            got = self._file.readinto(payload[start : start + PIECE])  # type: ignore[attr-defined]
            if not got:
                raise _damaged(self.path, f"the array {name!r} ends early")
            crc = zlib.crc32(payload[start : start + got], crc)
            start += got
        if found != header or crc != member.crc:
            raise _damaged(self.path, f"the array {name!r} does not match its checksum")
        if dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise _damaged(self.path, f"the array {name!r} holds a truth value that is not 0 or 1")
        return array

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
        """Read the arrays whose names begin with ``prefix``, one at a time, in the order of the file."""
        return ((name, self.array(name)) for name in self._parts if name.startswith(prefix))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()


def write_archive(
    path: str | os.PathLike[str],
    format: str,
    version: int,
    content: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | Iterable[tuple[str, NDArray[Any]]] = (),
) -> None:
    """Write ``content`` and ``arrays`` to one file, whole or not at all.

    Parameters
    ----------
    path : path of the file
    format : str
        What the file is, such as "halfseen fit"; a reader asks for it by name.
    version : int
        Of the format.
    content : mapping
        JSON: numbers (NaN and infinities too), strings, None, lists and mappings of them. Keys that
        begin with "$" are reserved.
    arrays : mapping, or iterable of (name, array)
        An iterable is taken one array at a time, so that they need not be in memory together.
    """
    pairs = arrays.items() if isinstance(arrays, Mapping) else arrays
    with whole_file(path) as file:
        members: list[_Member] = []
        described: dict[str, Any] = {}
        offset = 0
        for name, array in pairs:
            if not NAME.fullmatch(name) or len(name) > LONGEST_NAME or name in described:
                raise ArchiveError(
                    "an array's name must be new and of letters, digits, '_', '-' and '.'; "
                    f"got {name!r}."
                )
            array = _little_endian(name, array)
            header = _npy_header(array.dtype.str, array.shape)
            offset = _write_member(file, members, f"{name}.npy", offset, header, _bytes_of(array))
            described[name] = {
                "dtype": array.dtype.str,
                "shape": list(array.shape),
                "crc32": members[-1].crc,
            }
        text = _manifest_text(format, version, content, described)
        offset = _write_member(file, members, MANIFEST, offset, text, memoryview(b""))
        file.write(_directory(members, offset))


def read_archive(path: str | os.PathLike[str], format: str, version: int) -> Archive:
    """Open a file that ``write_archive`` wrote; sizes are checked before anything is allocated.

    Parameters
    ----------
    path : path of the file
    format : str
        What the file must be.
    version : int
        The newest version that the caller can read.

    Returns
    -------
    Archive
        To be used as a context manager, or closed.
    """
    try:
        shown = os.fsdecode(path)
    except TypeError:
        raise ArchiveError(f"the path of a {format} was expected; got {path!r:.100}.") from None
    file = _open_regular(shown, format)
    try:
        size = os.fstat(file.fileno()).st_size
        infos = _read_directory(shown, file, size, format)
        manifest = _read_manifest(shown, file, size, infos, format)
        found = _check_version(shown, manifest, format, version)
        archive = Archive(shown, file, found, manifest["content"])
        archive._parts = _check_members(shown, file, size, infos, manifest["arrays"])
    except OSError as error:
        file.close()
        raise ArchiveError(f"{shown} cannot be read: {error.strerror}.") from None
    except BaseException:
        file.close()
        raise
    return archive


def _damaged(path: str, what: str) -> ArchiveError:
    return ArchiveError(
        f"{path} is damaged: {what}. Use a copy of it that is whole, or make it again."
    )


# Writing.


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(array)
    kind = array.dtype.newbyteorder("<")
    if kind.str not in DTYPES:
        raise ArchiveError(f"the array {name!r} must hold plain numbers; got dtype {array.dtype}.")
    # ascontiguousarray would turn a number of no dimensions into an array of one.
    return np.asarray(array, dtype=kind, order="C")


def _npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    # NumPy's format 1.0: the array begins at a multiple of 64 bytes.
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + f"{text:<{length - 1}}\n".encode()


def _write_member(
    file: BinaryIO,
    members: list[_Member],
    name: str,
    offset: int,
    head: bytes,
    payload: memoryview,
) -> int:
    crc = zlib.crc32(payload, zlib.crc32(head))
    members.append(_Member(name, len(head) + payload.nbytes, crc, offset))
    for part in (_local_header(members[-1]), head, payload):
        file.write(part)
    return _data_offset(members[-1]) + members[-1].size


def _local_header(member: _Member) -> bytes:
    name = member.name.encode("ascii")
    fixed = (b"PK\x03\x04", ZIP64_VERSION, 0, 0, 0, DATE, member.crc, IN_EXTRA, IN_EXTRA)
    extra = LOCAL_EXTRA.pack(1, LOCAL_EXTRA.size - 4, member.size, member.size)
    return LOCAL.pack(*fixed, len(name), len(extra)) + name + extra


def _data_offset(member: _Member) -> int:
    return member.offset + LOCAL.size + len(member.name) + LOCAL_EXTRA.size


def _directory(members: list[_Member], offset: int) -> bytes:
    parts = []
    for member in members:
        name = member.name.encode("ascii")
        extra = CENTRAL_EXTRA.pack(
            1, CENTRAL_EXTRA.size - 4, member.size, member.size, member.offset
        )
        sizes = (member.crc, IN_EXTRA, IN_EXTRA, len(name), len(extra), 0)
        fixed = (b"PK\x01\x02", ZIP64_VERSION, ZIP64_VERSION, 0, 0, 0, DATE)
        parts.append(CENTRAL.pack(*fixed, *sizes, 0, 0, 0, IN_EXTRA) + name + extra)
    entries = b"".join(parts)
    count, end = len(members), offset + len(entries)
    versions = (ZIP64_VERSION, ZIP64_VERSION, 0, 0)
    short = min(count, 0xFFFF)
    return b"".join(
        (
            entries,
            END64.pack(
                b"PK\x06\x06", END64.size - 12, *versions, count, count, len(entries), offset
            ),
            LOCATOR.pack(b"PK\x06\x07", 0, end, 1),
            END.pack(b"PK\x05\x06", 0, 0, short, short, IN_EXTRA, IN_EXTRA, 0),
        )
    )


def _manifest_text(format: str, version: int, content: Any, arrays: Mapping[str, Any]) -> bytes:
    manifest = {
        "format": format,
        "version": version,
        "halfseen": __version__,
        "content": content,
        "arrays": arrays,
    }
    text = to_json(manifest, MANIFEST)
    if len(text) > LARGEST_MANIFEST:
        raise ArchiveError(
            f"what is written beside the arrays takes {len(text)} bytes; at most {LARGEST_MANIFEST} can "
            "be read again. Put long lists of numbers into arrays."
        )
    return text


# Reading.


def _open_regular(path: str, format: str) -> BinaryIO:
    try:
        # Opening a pipe would wait for somebody to write to it.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise ArchiveError(f"{path} is not there; a {format} was expected.") from None
    except (OSError, ValueError) as error:
        if os.path.isdir(path):
            raise ArchiveError(f"{path} is a folder; a {format} is one file.") from None
        reason = getattr(error, "strerror", None) or error
        raise ArchiveError(f"{path} cannot be read: {reason}.") from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    kind = "a folder" if stat.S_ISDIR(mode) else "a device or a pipe"
    raise ArchiveError(f"{path} is {kind}; a {format} is one plain file.")


def _read_directory(path: str, file: BinaryIO, size: int, format: str) -> list[zipfile.ZipInfo]:
    """List the members, after looking at how long the list is."""
    if size == 0:
        raise ArchiveError(f"{path} is empty; a {format} was expected. Make it again.")
    if file.read(4) != b"PK\x03\x04":
        raise ArchiveError(
            f"{path} is not a {format}: it does not begin like a ZIP archive. Give the file that "
            "halfseen wrote."
        )
    tail_size = END64.size + LOCATOR.size + END.size
    file.seek(max(0, size - tail_size))
    tail = file.read(tail_size)
    end = END.unpack(tail[-END.size :]) if len(tail) >= END.size else (b"",)
    if end[0] != b"PK\x05\x06" or end[-1] != 0:
        raise ArchiveError(
            f"{path} is cut off, or damaged at its end: the directory that ends a {format} is not "
            "where it should be. Use a copy of it that is whole, or make it again."
        )
    length = end[5]
    if length == IN_EXTRA and len(tail) == tail_size:
        length = END64.unpack(tail[: END64.size])[8]
    if length > min(size, LARGEST_DIRECTORY):
        raise _damaged(path, f"its directory claims {length} bytes of {size}")
    try:
        with zipfile.ZipFile(file) as listed:
            return listed.infolist()
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OverflowError,
        struct.error,
    ) as error:
        raise _damaged(path, f"its directory cannot be read ({error})") from None


def _read_manifest(
    path: str, file: BinaryIO, size: int, infos: list[zipfile.ZipInfo], format: str
) -> dict[str, Any]:
    """Read the one part that every version has, whatever else is in the file."""
    found = [info for info in infos if info.filename == MANIFEST]
    if not found:
        raise ArchiveError(f"{path} is a ZIP archive, but not a {format}: it has no {MANIFEST}.")
    info = found[-1]
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise _damaged(path, f"its {MANIFEST} is compressed")
    if info.file_size > LARGEST_MANIFEST:
        raise _damaged(
            path, f"its {MANIFEST} takes {info.file_size} bytes, more than {LARGEST_MANIFEST}"
        )
    if not 0 <= info.header_offset <= size - LOCAL.size:
        raise _damaged(path, f"its {MANIFEST} is not where the directory says")
    file.seek(info.header_offset)
    header = file.read(LOCAL.size)
    file.seek(sum(LOCAL.unpack(header)[-2:]), os.SEEK_CUR)
    text = file.read(info.file_size)
    if len(text) != info.file_size or zlib.crc32(text) != info.CRC:
        raise _damaged(path, f"its {MANIFEST} does not match its checksum")
    try:
        manifest = from_json(text, MANIFEST)
    except ValueError as error:
        raise _damaged(path, f"its {MANIFEST} is not JSON ({error!s:.80})") from None
    if not isinstance(manifest, dict):
        raise _damaged(path, f"its {MANIFEST} is not a JSON object")
    return manifest


def _check_version(path: str, manifest: Mapping[str, Any], format: str, version: int) -> int:
    found, number = manifest.get("format"), manifest.get("version")
    if found != format:
        what = f"a {found!a:.60}" if isinstance(found, str) else "of no format that it names"
        raise ArchiveError(f"{path} is {what}; a {format!r} was expected. Give another file.")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise _damaged(path, f"its version must be a number from 1; got {number!a:.60}")
    if number > version:
        raise ArchiveError(
            f"{path} was written by a newer halfseen (format {number!a:.20}, this one reads {version}): "
            "upgrade halfseen."
        )
    if not isinstance(manifest.get("content"), dict) or not isinstance(
        manifest.get("arrays"), dict
    ):
        raise _damaged(path, f'its {MANIFEST} lacks "content" or "arrays"')
    return number


def _check_members(
    path: str,
    file: BinaryIO,
    size: int,
    infos: list[zipfile.ZipInfo],
    arrays: Mapping[str, Any],
) -> dict[str, tuple[_Member, np.dtype[Any], tuple[int, ...]]]:
    """Refuse a file that is not, byte for byte, what ``write_archive`` makes around such members."""
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED:
            raise _damaged(path, f"its member {info.filename!a:.60} is compressed")
    expected = [f"{name}.npy" for name in arrays] + [MANIFEST]
    found = [info.filename for info in infos]
    if found != expected:
        known = set(expected)
        wrong = next((name for name in found if name not in known), None)
        if wrong is not None:
            raise _damaged(path, f"its member {wrong!a:.60} is not in its {MANIFEST}")
        if len(set(found)) != len(found):
            raise _damaged(path, "it holds two members of one name")
        raise _damaged(path, f"its members are not those of its {MANIFEST}, in their order")
    parts = {}
    members: list[_Member] = []
    offset = 0
    for info, (name, told) in zip(infos, [*arrays.items(), (MANIFEST, None)], strict=True):
        member = _Member(info.filename, info.file_size, info.CRC, offset)
        if told is not None:
            parts[name] = (member, *_described(path, name, told, member))
        offset = _data_offset(member) + member.size
        if offset > size:
            raise _damaged(path, f"its member {member.name!a:.60} goes beyond its end")
        file.seek(member.offset)
        header = _local_header(member)
        if file.read(len(header)) != header:
            raise _damaged(path, f"what stands before its member {member.name!a:.60} was changed")
        members.append(member)
    directory = _directory(members, offset)
    file.seek(offset)
    if offset + len(directory) != size or file.read(len(directory)) != directory:
        raise _damaged(path, "its directory was changed")
    return parts


def _described(
    path: str, name: str, told: Any, member: _Member
) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Read type and shape of an array, which must need as many bytes as there are."""
    if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise _damaged(path, f"{name!a:.60} cannot be the name of an array")
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "crc32"}:
        raise _damaged(path, f"the array {name!r} is not described by dtype, shape and crc32")
    dtype, shape = told["dtype"], told["shape"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise _damaged(path, f"the array {name!r} has the type {dtype!a:.60}, not plain numbers")
    # NumPy counts bytes in 63 bits, and a length of 0 does not excuse the others.
    room = 2**62 // np.dtype(dtype).itemsize
    sound = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    sound = sound and all(type(length) is int and 0 <= length <= room for length in shape)
    if not sound or math.prod(max(1, length) for length in shape) > room:
        raise _damaged(path, f"the array {name!r} has no shape that an array can have")
    needed = len(_npy_header(dtype, tuple(shape))) + math.prod(shape) * np.dtype(dtype).itemsize
    if needed != member.size:
        raise _damaged(
            path, f"the array {name!r} needs {needed} bytes for its shape, but has {member.size}"
        )
    if told["crc32"] != member.crc:
        raise _damaged(path, f"the array {name!r} has another checksum in the {MANIFEST}")
    return np.dtype(dtype), tuple(shape)
