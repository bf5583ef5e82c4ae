import builtins
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs
from halfseen import memory
from halfseen.memory import budget, human_bytes, parse_memory, resident_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1GB", 10**9),
        ("512MB", 512 * 10**6),
        ("1.5GiB", 3 * 2**29),
        (" 2 kb ", 2000),
        ("1g", 10**9),
        ("1Gi", 2**30),
        ("0.5TB", 5 * 10**11),
        ("800", 800),
        ("800 B", 800),
        (10**9, 10**9),
        (1e9, 10**9),
        (np.int64(5), 5),
        (None, None),
    ],
)
def test_amounts(text, expected):
    assert parse_memory(text) == expected


NONSENSE = ["", "GB", "1XB", "-1GB", "1 GB 2", "nan", "inf", "1e9", "1,5GB", "٣GB", "0", b"1GB"]
NONSENSE += [0, -1, 0.5, True, math.nan, math.inf, [1], 1j]


@pytest.mark.parametrize("nonsense", NONSENSE)
def test_nonsense(nonsense):
    with pytest.raises(hs.InputError, match=r"memory must be a positive amount.*'1GB'"):
        parse_memory(nonsense)


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (1_234_567, "1.23 MB"),
        (10**10, "10 GB"),
        (2 * 10**18, "2000 PB"),
    ],
)
def test_bytes_for_people(n, text):
    assert human_bytes(n) == text


def test_what_is_held_grows_with_an_array():
    before = resident_bytes()
    array = np.ones(10**7)
    # 80 MB were touched; other parts of the process may have given some back.
    assert resident_bytes() - before > 0.9 * array.nbytes


def test_every_way_to_know_tells_about_the_same(monkeypatch):
    pytest.importorskip("psutil")
    pytest.importorskip("resource")
    first = resident_bytes()
    monkeypatch.setattr(memory, "Path", lambda name: Path("/nowhere"))
    assert resident_bytes() == pytest.approx(first, rel=0.1)
    monkeypatch.setitem(sys.modules, "psutil", None)
    # The most that was ever held.
    assert resident_bytes() > 0.9 * first
    plain = builtins.__import__

    def without(name, *rest, **more):
        if name == "resource":
            raise ImportError(name)
        return plain(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert resident_bytes() == 0


@pytest.fixture
def group(tmp_path, monkeypatch):
    """Write what control groups say of themselves, and say in which this process is."""

    def write(line, folder, **told):
        for name, text in told.items():
            path = tmp_path / folder / name.replace("__", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "self").write_text(line)
        places = {"/proc/self/cgroup": tmp_path / "self", "/proc/meminfo": tmp_path / "meminfo"}
        (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:   1000 kB\n")
        monkeypatch.setattr(memory, "Path", lambda *parts: places.get(parts[0], Path(*parts)))
        monkeypatch.setattr(memory, "GROUPS", str(tmp_path))
        return memory.free_bytes()

    return write


def test_free_memory_without_groups_is_that_of_the_machine(group):
    assert group("0::/", "", memory__current="5\n") == 1_024_000


def test_a_container_has_no_more_than_its_group(group):
    told = {"memory__max": "70000\n", "memory__current": "50000\n"}
    stat = "anon 1\ninactive_file 12000\nactive_file 5\n"
    assert group("0::/\n", "", **told, memory__stat=stat) == 32_000
    # Nor than a group around its own, and one that is not limited changes nothing.
    assert group("0::/a/b\n", "a", **told | {"memory__max": "60000"}, memory__stat="") == 10_000
    assert group("0::/a/b\n", "a", memory__max="max\n") == 32_000
    # More than its limit may be in use for a moment.
    assert group("0::/a/b\n", "a/b", memory__max="9", memory__current="10", memory__stat="") == 0


def test_groups_of_the_first_version(group):
    told = {"memory__limit_in_bytes": "9000\n", "memory__usage_in_bytes": "4000\n"}
    line = "7:cpu,cpuacct:/x\n5:memory:/docker/1\n0::/y\n"
    stat = "inactive_file 1\ntotal_inactive_file 500\n"
    assert group(line, "memory/docker/1", **told, memory__stat=stat) == 5_500
    assert group("5:memory:/elsewhere\n", "memory", **told, memory__stat=stat) == 5_500


def test_what_is_left_of_a_promise():
    assert budget(None) is None
    left = budget("100GB")
    assert left == pytest.approx(10**11 - resident_bytes(), abs=10**7)


def test_a_promise_that_cannot_be_kept():
    with pytest.raises(
        hs.InputError, match=r"1 MB of memory is too little: .* already holds"
    ) as caught:
        budget("1MB")
    # What it says to try does.
    proposed = str(caught.value).split("Try memory='")[1].split("'")[0]
    assert budget(proposed, least=memory.LEAST - 10**7) > 0
