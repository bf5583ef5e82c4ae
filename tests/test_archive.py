"""Archives come back to the last bit, and nothing but an archive is read."""

import io
import json
import math
import os
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from halfseen import archive as module
from halfseen.archive import ArchiveError, read_archive, write_archive
from halfseen.errors import InputError

FORMAT = "halfseen thing"
QUICK = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
DTYPES = st.sampled_from([np.dtype(name) for name in module.DTYPES])
ARRAYS = st.dictionaries(
    st.from_regex(module.NAME, fullmatch=True).filter(lambda name: len(name) <= 50),
    DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, min_side=0))),
    max_size=4,
)
TEXT = st.text(max_size=20).filter(lambda text: not text.startswith("$"))
CONTENT = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=20,
    ),
    max_size=5,
)


def write(path, content=None, arrays=None, version=1):
    some = {"x": np.arange(6.0).reshape(2, 3), "flag": np.array([True, False])}
    write_archive(
        path, FORMAT, version, {"a": [1, "two"]} if content is None else content, arrays or some
    )
    return path


def read(path, version=1):
    with read_archive(path, FORMAT, version) as found:
        return found.content, dict(found.arrays())


def same_bits(a, b):
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def equal(a, b):
    """Whether JSON values are the same, with NaN like NaN, -0.0 unlike 0.0 and 1 unlike True."""
    if isinstance(a, float) and isinstance(b, float):
        return struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return type(a) is type(b) and a == b


@QUICK
@given(CONTENT, ARRAYS)
def test_everything_comes_back_to_the_last_bit(tmp_path, content, arrays):
    write_archive(tmp_path / "a", FORMAT, 1, content, arrays)
    found, back = read(tmp_path / "a")
    assert equal(found, content)
    assert list(back) == list(arrays)
    assert all(same_bits(back[name], arrays[name]) for name in arrays)


def test_the_same_content_gives_the_same_bytes(tmp_path):
    first, second = write(tmp_path / "a"), write(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()


def test_other_programs_can_read_it(tmp_path):
    path = write(tmp_path / "a")
    with zipfile.ZipFile(path) as found:
        assert found.testzip() is None
        assert found.namelist() == ["x.npy", "flag.npy", "manifest.json"]
        assert json.loads(found.read("manifest.json"))["content"] == {"a": [1, "two"]}
    with np.load(path, allow_pickle=False) as arrays:
        assert same_bits(arrays["x"], np.arange(6.0).reshape(2, 3))


def test_arrays_of_another_order_of_bytes_or_axes_become_plain(tmp_path):
    odd = {"big": np.arange(3, dtype=">f8"), "fortran": np.asfortranarray(np.eye(3)[:, :2])}
    _, back = read(write(tmp_path / "a", arrays=odd))
    assert all(np.array_equal(back[name], odd[name]) for name in odd)
    assert back["fortran"].flags.c_contiguous


def test_arrays_are_written_one_at_a_time(tmp_path):
    size, count = 2**20, 16

    def blocks():
        for k in range(count):
            yield f"block.{k}", np.full(size, float(k))

    tracemalloc.start()
    try:
        write_archive(tmp_path / "a", FORMAT, 1, {}, blocks())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One block that is written while the next is made, and a constant; all would be 16.
    assert peak < 3 * 8 * size
    with read_archive(tmp_path / "a", FORMAT, 1) as found:
        assert [array[0] for _, array in found.arrays("block.")] == list(range(count))


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write(tmp_path / "a")
    before = path.read_bytes()

    def failing():
        yield "x", np.zeros(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_archive(path, FORMAT, 1, {}, failing())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.array([None])}, "plain numbers"),
        ({"x": np.array(["a"])}, "plain numbers"),
        ({"x": np.zeros(2, dtype=complex)}, "plain numbers"),
        ({"../x": np.zeros(2)}, "name"),
        ({"a/b": np.zeros(2)}, "name"),
        ({"": np.zeros(2)}, "name"),
        ([("x", np.zeros(2)), ("x", np.zeros(2))], "name"),
    ],
)
def test_arrays_that_cannot_be_written(tmp_path, arrays, words):
    with pytest.raises(ArchiveError, match=words):
        write_archive(tmp_path / "a", FORMAT, 1, {}, arrays)
    assert os.listdir(tmp_path) == []


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"a": object()}, "JSON cannot hold"),
        ({"a": {1: 2}}, "keys in 'a' must be strings"),
        ({"$float": "nan"}, "begin with"),
        ({"a": "\ud800"}, "not Unicode"),
        ({"a": nested(60)}, "nested more than 50 deep"),
        ({"a": "x" * module.LARGEST_MANIFEST}, "Put long lists"),
    ],
)
def test_content_that_cannot_be_written(tmp_path, content, words):
    with pytest.raises(InputError, match=words):
        write(tmp_path / "a", content)
    assert os.listdir(tmp_path) == []


# What is not an archive.


def refused(path, words, version=1):
    with pytest.raises(ArchiveError, match=words) as found:
        read(path, version)
    assert str(path) in str(found.value)
    assert str(found.value).isprintable()


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "none", "not there; a halfseen thing was expected")


def test_a_folder(tmp_path):
    refused(tmp_path, "is a folder")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "a device or a pipe")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no such device")
def test_a_device_is_not_read():
    refused("/dev/zero", "a device or a pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_that_may_not_be_read(tmp_path):
    path = write(tmp_path / "a")
    path.chmod(0)
    refused(path, "cannot be read: Permission denied")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"P", "does not begin like"),
        (b"lead,zinc\n1,2\n", "does not begin like"),
        (b"PK\x03\x04", "cut off"),
        (b"PK\x03\x04" + bytes(200), "cut off"),
    ],
)
def test_other_bytes(tmp_path, data, words):
    (tmp_path / "a").write_bytes(data)
    refused(tmp_path / "a", words)


def test_another_format_and_a_newer_version(tmp_path):
    write_archive(tmp_path / "a", "halfseen checkpoint", 1, {})
    refused(tmp_path / "a", "is a 'halfseen checkpoint'; a 'halfseen thing' was expected")
    write(tmp_path / "b", version=2)
    refused(
        tmp_path / "b",
        r"written by a newer halfseen \(format 2, this one reads 1\): upgrade halfseen",
    )
    with read_archive(tmp_path / "b", FORMAT, 2) as found:
        assert found.version == 2
    with read_archive(write(tmp_path / "c"), FORMAT, 2) as found:
        assert found.version == 1


def test_a_newer_version_may_be_made_differently(tmp_path):
    # As long as it is a ZIP with a manifest that is not compressed, an old reader can say what it is.
    manifest = {"format": FORMAT, "version": 3, "parts": ["something", {"else": None}]}
    with zipfile.ZipFile(tmp_path / "a", "w") as out:
        out.writestr("folder/x.bin", b"0" * 1000, zipfile.ZIP_DEFLATED)
        out.writestr("manifest.json", json.dumps(manifest), zipfile.ZIP_STORED)
    refused(tmp_path / "a", "written by a newer halfseen")


def crafted(path, manifest, members=(), method=zipfile.ZIP_STORED):
    """Write what zipfile makes of a manifest, which may be text, and of members."""
    text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as out:
        for name, data in members:
            out.writestr(name, data, method)
        out.writestr("manifest.json", text)
    return path


def manifest(arrays=None, **changed):
    return {"format": FORMAT, "version": 1, "content": {}, "arrays": arrays or {}, **changed}


def described(data, shape=(2,), dtype="<f8", **changed):
    return {"dtype": dtype, "shape": list(shape), "crc32": zlib.crc32(data), **changed}


TWO = module._npy_header("<f8", [2]) + bytes(16)


@pytest.mark.parametrize(
    ("told", "members", "words"),
    [
        (manifest(), [("x.npy", TWO)], "'x.npy' is not in its manifest"),
        (manifest({"y": described(TWO)}), [("x.npy", TWO)], "'x.npy' is not in its manifest"),
        (manifest({"x": described(TWO)}), [], "not those of its manifest"),
        (manifest({"../x": described(TWO)}), [("../x.npy", TWO)], "cannot be the name"),
        (manifest({"a/x": described(TWO)}), [("a/x.npy", TWO)], "cannot be the name"),
        (manifest({"x": described(TWO, [10**12])}), [("x.npy", TWO)], "needs 8000000000128 bytes"),
        (manifest({"x": described(TWO, [1])}), [("x.npy", TWO)], "needs 136 bytes"),
        (manifest({"x": described(TWO, [-2])}), [("x.npy", TWO)], "no shape"),
        (manifest({"x": described(TWO, [2.0])}), [("x.npy", TWO)], "no shape"),
        (manifest({"x": described(TWO, [True])}), [("x.npy", TWO)], "no shape"),
        (manifest({"x": described(TWO, [10**30])}), [("x.npy", TWO)], "no shape"),
        (manifest({"x": described(TWO, [0, 2**62, 2**62])}), [("x.npy", TWO)], "no shape"),
        (manifest({"x": described(TWO, [1] * 33)}), [("x.npy", TWO)], "no shape"),
        (manifest({"x": described(TWO, shape=(2,), dtype="|O")}), [("x.npy", TWO)], "plain numbers"),
        (manifest({"x": described(TWO, dtype=">f8")}), [("x.npy", TWO)], "plain numbers"),
        (manifest({"x": described(TWO, dtype=["<f8"])}), [("x.npy", TWO)], "plain numbers"),
        (manifest({"x": described(TWO, crc32=0)}), [("x.npy", TWO)], "another checksum"),
        (manifest({"x": 3}), [("x.npy", TWO)], "not described"),
        (manifest({"x": described(TWO)}), [("x.npy", TWO)], "stands before its member 'x.npy'"),
        (manifest(version=0), [], "version must be a number"),
        (manifest(version=True), [], "version must be a number"),
        (manifest(version="1"), [], "version must be a number"),
        (manifest(format="\x1b[31mred"), [], r"is a '\\x1b\[31mred'"),
        (manifest(format=None), [], "no format that it names"),
        (manifest(content=[]), [], "lacks"),
        ({"format": FORMAT, "version": 1}, [], "lacks"),
        (b"[]", [], "not a JSON object"),
        (b"{", [], "is not JSON"),
        (b"\xff", [], "is not JSON"),
        (b'{"a": NaN}', [], "NaN is not JSON"),
        (b'{"a": 1e999}', [], "too large"),
        (b'{"a": 1, "a": 1}', [], "comes twice"),
        (b'{"$eval": 1}', [], "begins with"),
        (b'{"a": {"$float": "1"}}', [], "must be one of"),
        (b'{"a": "\\ud800"}', [], "not Unicode"),
        (b"[" * 60 + b"]" * 60, [], "nested more than 50 deep"),
        (b"[" * 100_000, [], "nested without end"),
        (b"1" * 5000, [], "is not JSON"),
    ],
)  # fmt: skip
def test_crafted_files(tmp_path, told, members, words):
    refused(crafted(tmp_path / "a", told, members), words)


def test_compressed_members_and_manifests(tmp_path):
    told = manifest({"x": described(TWO)})
    path = crafted(tmp_path / "a", told, [("x.npy", TWO)], zipfile.ZIP_DEFLATED)
    refused(path, "'x.npy' is compressed")
    with zipfile.ZipFile(tmp_path / "b", "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("manifest.json", json.dumps(told))
    refused(tmp_path / "b", "manifest.json is compressed")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path):
    told = manifest({"x": described(TWO)})
    refused(crafted(tmp_path / "a", told, [("x.npy", TWO)] * 2), "two members of one name")


def test_no_manifest_or_too_large_a_one(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a", "w") as out:
        out.writestr("x.npy", TWO)
    refused(tmp_path / "a", "it has no manifest.json")
    path = write(tmp_path / "b")
    monkeypatch.setattr(module, "LARGEST_MANIFEST", 100)
    refused(path, "more than 100")


def test_a_directory_that_claims_too_much(tmp_path, monkeypatch):
    path = write(tmp_path / "a")
    monkeypatch.setattr(module, "LARGEST_DIRECTORY", 100)
    refused(path, "directory claims")


def test_a_truth_value_that_is_neither(tmp_path, monkeypatch):
    odd = np.array([2], dtype=np.uint8).view(bool)
    refused(write(tmp_path / "a", arrays={"x": odd}), "not 0 or 1")


def test_an_array_that_is_not_there(tmp_path):
    with (
        read_archive(write(tmp_path / "a"), FORMAT, 1) as found,
        pytest.raises(ArchiveError, match="has no array 'y'"),
    ):
        found.array("y")


@pytest.mark.parametrize("path", [None, 3, ["a"]])
def test_what_is_no_path(path):
    with pytest.raises(ArchiveError, match="the path of a halfseen thing was expected"):
        read(path)


def read_bytes(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    return read(tmp_path / "a")


def test_any_changed_byte_is_refused(tmp_path):
    data = write(tmp_path / "a").read_bytes()
    rng = np.random.default_rng(0)
    for place in range(len(data)):
        changed = bytearray(data)
        # One bit, every bit, and something else.
        for other in (1 << rng.integers(8), 0xFF, rng.integers(1, 256)):
            changed[place] = data[place] ^ int(other)
            with pytest.raises(ArchiveError):
                read_bytes(tmp_path, bytes(changed))


def test_any_cut_or_growth_is_refused(tmp_path):
    data = write(tmp_path / "a").read_bytes()
    for length in range(len(data)):
        with pytest.raises(ArchiveError):
            read_bytes(tmp_path, data[:length])
    for more in (b"\0", b"PK", data):
        for grown in (data + more, more + data):
            with pytest.raises(ArchiveError):
                read_bytes(tmp_path, grown)


@QUICK
@given(st.binary(max_size=300), st.integers(0, 10**6), st.integers(0, 300))
def test_any_replaced_stretch_is_refused_or_the_same(tmp_path, new, place, length):
    data = write(tmp_path / "whole").read_bytes()
    place %= len(data)
    changed = data[:place] + new + data[place + length :]
    if changed == data:
        return
    with pytest.raises(ArchiveError):
        read_bytes(tmp_path, changed)


CLAIM = """
import resource, sys
from halfseen.archive import ArchiveError, read_archive
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_archive(sys.argv[1], "halfseen thing", 1).array("x")
except ArchiveError as error:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, error)
"""


def test_a_claim_of_many_rows_takes_no_memory(tmp_path):
    pytest.importorskip("resource")
    # Headers say 8 TB throughout; only the bytes are not there.
    told = described(b"", [10**12])
    member = module._member("x.npy", 8 * 10**12 + 128, told["crc32"], 0)
    out = io.BytesIO()
    out.write(module._local_header(member) + TWO)
    text = json.dumps(manifest({"x": told})).encode()
    last = module._member("manifest.json", len(text), zlib.crc32(text), out.tell())
    out.write(module._local_header(last) + text)
    out.write(module._directory([member, last]))
    (tmp_path / "a").write_bytes(out.getvalue())
    ran = subprocess.run(
        [sys.executable, "-c", CLAIM, str(tmp_path / "a")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    grown, words = ran.stdout.split(maxsplit=1)
    assert "goes beyond its end" in words
    # In kB (bytes on macOS, which is then less): a few buffers, where 8 TB were claimed.
    assert int(grown) < 20_000


def test_reading_takes_no_more_memory_than_the_array(tmp_path):
    size = 2**22
    write_archive(tmp_path / "a", FORMAT, 1, {}, {"x": np.zeros(size)})
    tracemalloc.start()
    try:
        with read_archive(tmp_path / "a", FORMAT, 1) as found:
            found.array("x")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * size + 2**20


def test_the_layout_holds_beyond_four_gigabytes():
    # Two members of which the second begins behind 5 GB, as zipfile reads the directory.
    members = [("x.npy", 5 * 2**30, 1, 0), ("manifest.json", 10, 2, 5 * 2**30 + 99)]
    made = [module._member(*member) for member in members]
    directory = module._directory(made)

    class Behind(io.BytesIO):
        """A file whose first 5 GB are not there."""

        start = module._end(made)

        def seek(self, place, whence=0):
            return super().seek(max(0, place - self.start) if whence == 0 else place, whence)

        def tell(self):
            return super().tell() + self.start

    found = zipfile.ZipFile(Behind(directory)).infolist()
    assert [(f.filename, f.file_size, f.CRC, f.header_offset) for f in found] == members
