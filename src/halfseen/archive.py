"""One file of JSON and arrays: saved fits and checkpoints.

A file is a ZIP archive without compression: one ``.npy`` member for each array, then ``manifest.json``.
The bytes around the members follow from their names, sizes and checksums, so that the reader makes them
again and refuses a file that differs from them anywhere. docs/saved-fits.md describes the format.

The manifest is JSON as its standard has it, and numbers that it has no word for: NaN and infinities are
written as {"$float": "nan"}, "inf" or "-inf". Other keys that begin with "$" are refused, and so are
keys that come twice, text that is not Unicode, and nesting without end.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from halfseen.errors import InputError
from halfseen.files import whole_file
from halfseen.version import __version__

# Deeper than anything that is written, and far from where Python's own recursion ends.
DEEPEST = 50
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
FLOAT_KEY = "$float"
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
# ZIP, APPNOTE 6.3: an entry of the directory with its extra field of ZIP64, and the three records that
# end the file. Sizes and offsets are always those of ZIP64, which zipfile writes only where it must: so
# there is one layout to check.
ENTRY, ENTRY_EXTRA = struct.Struct("<4s6H3L5H2L"), struct.Struct("<2H3Q")
END64, LOCATOR, END = (
    struct.Struct("<4sQ2H2L4Q"),
    struct.Struct("<4sLQL"),
    struct.Struct("<4s4H2LH"),
)
ZIP64_VERSION = 45
# 1 January 1980, the first day of ZIP: the same content gives the same bytes on any day.
DATE = (1 << 5) | 1
IN_EXTRA = 0xFFFFFFFF
# What zipfile raises for files that are not what they say.
UNREADABLE = (zipfile.BadZipFile, EOFError, OverflowError, RuntimeError, ValueError, struct.error)


def to_json(value: Any, place: str) -> bytes:
    """Write ``value``; ``place`` names it in the message where it cannot be written."""
    plain = _plain(value, place, 0)
    return json.dumps(plain, allow_nan=False, separators=(",", ":")).encode("ascii")


def from_json(text: bytes, place: str) -> Any:
    """Read what ``to_json`` wrote; anything else is a ValueError."""
    try:
        value = json.loads(
            text.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_object,
        )
    except RecursionError:
        raise ValueError("it is nested without end") from None
    _inspect(value, place, 0)
    return value


def _inspect(value: Any, place: str, depth: int) -> None:
    """Raise for what could not have been written: text that is not Unicode, nesting without end."""
    if depth > DEEPEST:
        raise InputError(f"{place} is nested more than {DEEPEST} deep.")
    if isinstance(value, str):
        _check_text(value, place)
    elif isinstance(value, list):
        for item in value:
            _inspect(item, place, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key, place)
            _inspect(item, place, depth + 1)


def _check_text(text: str, place: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"{place} has text that is not Unicode: {text!a:.60}.") from None


def _plain(value: Any, place: str, depth: int) -> Any:
    """Return ``value`` as JSON can hold it; ``place`` is for the message where it cannot."""
    if depth > DEEPEST:
        raise InputError(f"{place} is nested more than {DEEPEST} deep.")
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        _check_text(value, place)
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {FLOAT_KEY: str(value)}
    if isinstance(value, list | tuple):
        return [_plain(item, place, depth + 1) for item in value]
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is a {type(value).__name__}, which JSON cannot hold.")
    wrong = [key for key in value if not isinstance(key, str) or key.startswith("$")]
    if wrong:
        raise InputError(
            f"keys in {place} must be strings that do not begin with '$'; got {wrong[0]!r}."
        )
    return {
        _plain(key, f"a key in {place}", depth): _plain(item, ascii(key)[:60], depth + 1)
        for key, item in value.items()
    }


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _object(pairs: list[tuple[str, Any]]) -> Any:
    """Make a mapping, or the number that stands in {"$float": "nan"}."""
    if len(pairs) == 1 and pairs[0][0] == FLOAT_KEY:
        if not isinstance(pairs[0][1], str) or pairs[0][1] not in NOT_FINITE:
            raise ValueError(f"{FLOAT_KEY} must be one of {', '.join(NOT_FINITE)}")
        return NOT_FINITE[pairs[0][1]]
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice")
    if any(key.startswith("$") for key in made):
        raise ValueError("a key begins with '$'")
    return made


class ArchiveError(InputError):
    """A file is not what it should be, or not whole."""


class Archive(AbstractContextManager["Archive"]):
    """An open archive, whose arrays are read and checked when they are asked for.

    Attributes
    ----------
    path : str
    format : str
        What the file is: one of those that were asked for.
    version : int
        Of the format, at most that which was asked for.
    content : dict
        What was written beside the arrays.
    names : tuple of str
        Of the arrays, in the order of the file.
    """

    def __init__(self, path: str, file: BinaryIO, newest: Mapping[str, int]) -> None:
        self.path = path
        called = next(iter(newest))
        self._file, self._listed = file, _read_directory(path, file, called)
        manifest = _read_manifest(path, file, self._listed, called)
        self.version = _check_version(path, manifest, newest)
        self.format: str = manifest["format"]
        self.content: dict[str, Any] = manifest["content"]
        self._parts = _check_members(path, file, self._listed, manifest["arrays"])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays, in the order of the file."""
        return tuple(self._parts)

    def array(self, name: str) -> NDArray[Any]:
        """Read one array, in C order, and check it against its checksum."""
        if name not in self._parts:
            raise ArchiveError(f"{self.path} has no array {name!r}.")
        member, header = self._parts[name]
        try:
            # NumPy is given no header but the one that is known.
            with self._listed.open(member) as file:
                if file.read(len(header)) != header:
                    raise zipfile.BadZipFile
            with self._listed.open(member) as file:
                array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        except MemoryError:
            raise ArchiveError(
                f"{self.path}: the array {name!r} takes {member.file_size} bytes, more than there is "
                "memory."
            ) from None
        except UNREADABLE:
            raise _damaged(self.path, f"the array {name!r} does not match its checksum") from None
        if array.dtype.kind == "b" and array.size and array.view(np.uint8).max() > 1:
            raise _damaged(self.path, f"the array {name!r} holds a truth value that is not 0 or 1")
        return array

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
        """Read the arrays whose names begin with ``prefix``, one at a time, in the order of the file."""
        return ((name, self.array(name)) for name in self._parts if name.startswith(prefix))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

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
        members: list[zipfile.ZipInfo] = []
        described: dict[str, Any] = {}
        for name, array in pairs:
            if not _can_be_name(name) or name in described:
                raise ArchiveError(
                    "an array's name must be new and of letters, digits, '_', '-' and '.'; "
                    f"got {name!r}."
                )
            array = _little_endian(name, array)
            dtype, shape = array.dtype.str, list(array.shape)
            _write_member(file, members, f"{name}.npy", _npy_header(dtype, shape), array)
            described[name] = {"dtype": dtype, "shape": shape, "crc32": members[-1].CRC}
        text = _manifest_text(format, version, content, described)
        _write_member(file, members, MANIFEST, text)
        file.write(_directory(members))


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
    return read_any_archive(path, {format: version})


def read_any_archive(path: str | os.PathLike[str], newest: Mapping[str, int]) -> Archive:
    """Open a file of one of several formats; ``archive.format`` says of which.

    Parameters
    ----------
    path : path of the file
    newest : mapping of str to int
        What the file may be, and the newest version of it that the caller can read. The first one
        is what a file that is none of them is not.

    Returns
    -------
    Archive
        To be used as a context manager, or closed.
    """
    called = next(iter(newest))
    try:
        shown = os.fsdecode(path)
    except TypeError:
        raise ArchiveError(f"the path of a {called} was expected; got {path!r:.100}.") from None
    file = _open_regular(shown, called)
    try:
        return Archive(shown, file, newest)
    except OSError as error:
        file.close()
        raise ArchiveError(f"{shown} cannot be read: {error.strerror}.") from None
    except BaseException:
        file.close()
        raise


def _damaged(path: str, what: str) -> ArchiveError:
    return ArchiveError(
        f"{path} is damaged: {what}. Use a copy of it that is whole, or make it again."
    )


# The layout.


def _can_be_name(name: str) -> bool:
    return NAME.fullmatch(name) is not None and len(name) <= LONGEST_NAME


def _npy_header(dtype: str, shape: list[int]) -> bytes:
    # NumPy's format 1.0: the array begins at a multiple of 64 bytes. Versions of NumPy pad it
    # differently, and a reader that compares bytes parses nothing.
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    length = -(-(10 + len(text) + 1) // 64) * 64 - 10
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + f"{text:<{length - 1}}\n".encode()


def _member(name: str, size: int, crc: int, offset: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.file_size = member.compress_size = size
    member.CRC, member.header_offset = crc, offset
    return member


def _local_header(member: zipfile.ZipInfo) -> bytes:
    return member.FileHeader(zip64=True)


def _end(members: list[zipfile.ZipInfo]) -> int:
    """Return where the last member ends, and what follows it begins."""
    if not members:
        return 0
    return members[-1].header_offset + len(_local_header(members[-1])) + members[-1].file_size


def _directory(members: list[zipfile.ZipInfo]) -> bytes:
    parts = []
    for member in members:
        name, size = member.filename.encode("ascii"), member.file_size
        extra = ENTRY_EXTRA.pack(1, ENTRY_EXTRA.size - 4, size, size, member.header_offset)
        fixed = (b"PK\x01\x02", ZIP64_VERSION, ZIP64_VERSION, 0, 0, 0, DATE, member.CRC)
        lengths = (IN_EXTRA, IN_EXTRA, len(name), len(extra))
        parts.append(ENTRY.pack(*fixed, *lengths, 0, 0, 0, 0, IN_EXTRA) + name + extra)
    entries = b"".join(parts)
    count, start = len(members), _end(members)
    sizes = (count, count, len(entries), start)
    short = min(count, 0xFFFF)
    return b"".join(
        (
            entries,
            END64.pack(b"PK\x06\x06", END64.size - 12, ZIP64_VERSION, ZIP64_VERSION, 0, 0, *sizes),
            LOCATOR.pack(b"PK\x06\x07", 0, start + len(entries), 1),
            END.pack(b"PK\x05\x06", 0, 0, short, short, IN_EXTRA, IN_EXTRA, 0),
        )
    )


# Writing.


def _little_endian(name: str, array: NDArray[Any]) -> NDArray[Any]:
    array = np.asarray(array)
    kind = array.dtype.newbyteorder("<")
    if kind.str not in DTYPES:
        raise ArchiveError(f"the array {name!r} must hold plain numbers; got dtype {array.dtype}.")
    # ascontiguousarray would turn a number of no dimensions into an array of one.
    return np.asarray(array, dtype=kind, order="C")


def _write_member(
    file: BinaryIO, members: list[zipfile.ZipInfo], name: str, *parts: bytes | NDArray[Any]
) -> None:
    """Write a member behind the others. Its checksum comes first: not every file can be gone back in."""
    size = crc = 0
    for part in parts:
        size += memoryview(part).nbytes  # type: ignore[arg-type]
        crc = zlib.crc32(part, crc)  # type: ignore[arg-type]
    members.append(_member(name, size, crc, _end(members)))
    for part in (_local_header(members[-1]), *parts):
        file.write(part)  # type: ignore[arg-type]


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
    def at_once(path: str, flags: int) -> int:
        # Opening a pipe would wait for somebody to write to it.
        return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))

    try:
        file = open(path, "rb", opener=at_once)  # noqa: SIM115, the archive closes it
    except FileNotFoundError:
        raise ArchiveError(f"{path} is not there; a {format} was expected.") from None
    except (OSError, ValueError) as error:
        if os.path.isdir(path):
            raise ArchiveError(f"{path} is a folder; a {format} is one plain file.") from None
        reason = getattr(error, "strerror", None) or error
        raise ArchiveError(f"{path} cannot be read: {reason}.") from None
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise ArchiveError(f"{path} is a device or a pipe; a {format} is one plain file.")


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _read_directory(path: str, file: BinaryIO, format: str) -> zipfile.ZipFile:
    """List the members, after looking at how long the list is."""
    size, most = _size(file), END64.size + LOCATOR.size + END.size
    if size == 0:
        raise ArchiveError(f"{path} is empty; a {format} was expected. Make it again.")
    if file.read(4) != b"PK\x03\x04":
        raise ArchiveError(
            f"{path} is not a {format}: it does not begin like a ZIP archive. Give the file that "
            "halfseen wrote."
        )
    file.seek(max(0, size - most))
    tail = file.read(most)
    end = END.unpack(tail[-END.size :]) if len(tail) >= END.size else (b"",)
    if end[0] != b"PK\x05\x06" or end[-1] != 0:
        raise ArchiveError(
            f"{path} is cut off, or damaged at its end: the directory that ends a {format} is not "
            "where it should be. Use a copy of it that is whole, or make it again."
        )
    length = end[5]
    if length == IN_EXTRA and len(tail) == most:
        length = END64.unpack_from(tail)[8]
    if length > min(size, LARGEST_DIRECTORY):
        raise _damaged(path, f"its directory claims {length} bytes of {size}")
    try:
        return zipfile.ZipFile(file)
    except UNREADABLE as error:
        raise _damaged(path, f"its directory cannot be read ({error})") from None


def _read_manifest(
    path: str, file: BinaryIO, listed: zipfile.ZipFile, format: str
) -> dict[str, Any]:
    """Read the one part that every version has, whatever else is in the file."""
    try:
        info = listed.getinfo(MANIFEST)
    except KeyError:
        raise ArchiveError(
            f"{path} is a ZIP archive, but not a {format}: it has no {MANIFEST}."
        ) from None
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise _damaged(path, f"its {MANIFEST} is compressed")
    if info.file_size > LARGEST_MANIFEST:
        raise _damaged(
            path, f"its {MANIFEST} takes {info.file_size} bytes, more than {LARGEST_MANIFEST}"
        )
    if not 0 <= info.header_offset < _size(file):
        raise _damaged(path, f"its {MANIFEST} is not where the directory says")
    try:
        text = listed.read(info)
    except UNREADABLE:
        raise _damaged(path, f"its {MANIFEST}, or what stands before it, was changed") from None
    try:
        manifest = from_json(text, MANIFEST)
    except ValueError as error:
        raise _damaged(path, f"its {MANIFEST} is not JSON ({error!s:.80})") from None
    if not isinstance(manifest, dict):
        raise _damaged(path, f"its {MANIFEST} is not a JSON object")
    return manifest


def _check_version(path: str, manifest: Mapping[str, Any], known: Mapping[str, int]) -> int:
    named, number = manifest.get("format"), manifest.get("version")
    if not isinstance(named, str) or named not in known:
        what = f"a {named!a:.60}" if isinstance(named, str) else "of no format that it names"
        wanted = " or ".join(f"a {format!r}" for format in known)
        raise ArchiveError(f"{path} is {what}; {wanted} was expected. Give another file.")
    newest = known[named]
    if type(number) is not int or number < 1:
        raise _damaged(path, f"its version must be a number from 1; got {number!a:.60}")
    if number > newest:
        raise ArchiveError(
            f"{path} was written by a newer halfseen (format {number!a:.20}, this one reads {newest}): "
            "upgrade halfseen."
        )
    if any(not isinstance(manifest.get(part), dict) for part in ("content", "arrays")):
        raise _damaged(path, f'its {MANIFEST} lacks "content" or "arrays"')
    return number


def _check_members(
    path: str, file: BinaryIO, listed: zipfile.ZipFile, arrays: Mapping[str, Any]
) -> dict[str, tuple[zipfile.ZipInfo, bytes]]:
    """Refuse a file that is not, byte for byte, what ``write_archive`` makes around such members.

    Return the member of each array, and the header that it must have.
    """
    infos, size = listed.infolist(), _size(file)
    _check_names(path, infos, arrays)
    parts: dict[str, tuple[zipfile.ZipInfo, bytes]] = {}
    members: list[zipfile.ZipInfo] = []
    for info, name in zip(infos, [*arrays, None], strict=True):
        member = _member(info.filename, info.file_size, info.CRC, _end(members))
        if name is not None:
            parts[name] = (info, _expected_header(path, name, arrays[name], member))
        members.append(member)
        if _end(members) > size:
            raise _damaged(path, f"its member {member.filename!a:.60} goes beyond its end")
        if _differs(file, member.header_offset, _local_header(member)):
            raise _damaged(
                path, f"what stands before its member {member.filename!a:.60} was changed"
            )
    directory = _directory(members)
    if _end(members) + len(directory) != size or _differs(file, _end(members), directory):
        raise _damaged(path, "its directory was changed")
    return parts


def _differs(file: BinaryIO, place: int, expected: bytes) -> bool:
    file.seek(place)
    return file.read(len(expected)) != expected


def _check_names(path: str, infos: list[zipfile.ZipInfo], arrays: Mapping[str, Any]) -> None:
    """Refuse a file whose members are not those of its manifest."""
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED:
            raise _damaged(path, f"its member {info.filename!a:.60} is compressed")
    expected = [*(f"{name}.npy" for name in arrays), MANIFEST]
    names = [info.filename for info in infos]
    if names == expected:
        return
    known = set(expected)
    for name in names:
        if name not in known:
            raise _damaged(path, f"its member {name!a:.60} is not in its {MANIFEST}")
    if len(set(names)) != len(names):
        raise _damaged(path, "it holds two members of one name")
    raise _damaged(path, f"its members are not those of its {MANIFEST}, in their order")


def _expected_header(path: str, name: str, said: Any, member: zipfile.ZipInfo) -> bytes:
    """Return the header of an array as it is described, which must need as many bytes as there are."""
    if not _can_be_name(name):
        raise _damaged(path, f"{name!a:.60} cannot be the name of an array")
    if not isinstance(said, dict) or set(said) != {"dtype", "shape", "crc32"}:
        raise _damaged(path, f"the array {name!r} is not described by dtype, shape and crc32")
    dtype, shape = said["dtype"], said["shape"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise _damaged(path, f"the array {name!r} has the type {dtype!a:.60}, not plain numbers")
    # NumPy counts bytes in 63 bits, and a length of 0 does not excuse the others.
    room = 2**62 // np.dtype(dtype).itemsize
    sound = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    sound = sound and all(type(length) is int and 0 <= length <= room for length in shape)
    if not sound or math.prod(max(1, length) for length in shape) > room:
        raise _damaged(path, f"the array {name!r} has no shape that an array can have")
    header = _npy_header(dtype, shape)
    needed = len(header) + math.prod(shape) * np.dtype(dtype).itemsize
    if needed != member.file_size:
        raise _damaged(
            path,
            f"the array {name!r} needs {needed} bytes for its shape, but has {member.file_size}",
        )
    if said["crc32"] != member.CRC:
        raise _damaged(path, f"the array {name!r} has another checksum in the {MANIFEST}")
    return header
