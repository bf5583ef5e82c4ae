"""Whatever call for a file fails, or is the last of a process: there is the old file or the new one."""

import os
import sys
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

import halfseen as hs
from halfseen.archive import write_archive
from halfseen.data.parquet_blocks import scan_parquet
from halfseen.data.parquet_files import write_parquet, write_parquet_parts
from halfseen.files import write_text_whole
from tests.failing_files import Ended, failing_files

NEW = np.linspace(-1.0, 1.0, 40).reshape(20, 2) ** 3


@cache
def fitted(which):
    X = np.where(NEW < -0.5, np.nan, NEW) + which
    return hs.fit(X, hs.DetectionLimits(lower=-0.5 + which), "pairwise")


@cache
def regressed(which):
    return hs.regress(NEW[:, :1] + which, NEW[:, 1:] ** 2)


def save_arrays(path, which):
    arrays = {"a": np.full(1000, which), "b": np.zeros(3)}
    write_archive(path, "a test", 1, {"which": which}, arrays)


# What is written; ``which`` says whether the old or the new.
WRITERS = {
    "fit": lambda path, which: fitted(which).save(path),
    "page": lambda path, which: fitted(which).report(path),
    "regression": lambda path, which: regressed(which).save(path),
    "gaussian": lambda path, which: fitted(which).gaussian.save(path),
    "checkpoint": save_arrays,
    "text": lambda path, which: write_text_whole(path, f"{which}\n" * 20_000),
    "csv": lambda path, which: hs.write_csv(hs.IntervalData(NEW + which, NEW + which), path),
    "parquet": lambda path, which: write_parquet(path, ["a", "b"], [NEW + which] * 3),
}


@pytest.fixture(params=["refused", "ended"])
def ends(request):
    if request.param == "ended" and not sys.platform.startswith("linux"):
        pytest.skip("files of a process that ended are found in /proc")
    return request.param == "ended"


def attempts(folder, ends, work):
    """Do work with each of its calls failing, until none does; yield after each whether it failed."""
    k = 0
    while True:
        k += 1
        failed = False
        with failing_files(folder, k, ends) as files:
            try:
                work()
            except (Ended, OSError, hs.InputError):
                failed = True
        if ends:
            close_files_below(folder)
        if files.failed is None:
            break
        yield failed
    assert k > 5, "calls were counted"


def close_files_below(folder):
    """Do what the system does when a process ends."""
    for handle in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{handle}").startswith(str(folder)):
                os.close(int(handle))
        except OSError:
            continue


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_there_is_the_old_file_or_the_new_one(tmp_path, name, ends):
    write, path = WRITERS[name], tmp_path / "file"
    write(path, 1)
    new = path.read_bytes()
    write(path, 0)
    old = path.read_bytes()
    assert old != new
    for failed in attempts(tmp_path, ends, lambda: write(path, 1)):
        found = path.read_bytes()
        assert found in (old, new)
        # Who was told of no error has the new one.
        assert failed or found == new
        if not ends:
            assert os.listdir(tmp_path) == ["file"]
        # The next to write there finds what was left behind.
        write(path, 0)
        assert os.listdir(tmp_path) == ["file"]
        assert path.read_bytes() == old


@pytest.mark.parametrize("there", [False, True], ids=["absent", "empty"])
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_there_are_all_parts_or_none(tmp_path, there, ends):
    """Of an empty folder that stays, half of the parts are never read as a table."""
    whole = [f"part-{k:05}.parquet" for k in range(3)]
    for rows, left in attempts_of_parts(tmp_path, ends, there):
        assert rows in (0, 60)
        if not ends:
            # Where not even the empty folder could be removed, it is left for the next.
            assert [name for name in left if name[0] != "."] == (whole if rows else [])


def attempts_of_parts(place, ends, there):
    k = 0
    while True:
        k += 1
        target = place / str(k) / "parts"
        (target if there else target.parent).mkdir(parents=True)
        with failing_files(place, k, ends) as files, suppress(Ended, OSError, hs.InputError):
            write_parquet_parts(target, ["a", "b"], [NEW] * 3, 20)
        if ends:
            close_files_below(place)
        if files.failed is None:
            break
        yield rows_in(target), sorted(os.listdir(target)) if target.is_dir() else []
    assert k > 20


def rows_in(folder):
    """Return how many rows there are for whoever reads; those of half a table are refused."""
    if not list(folder.glob("*.parquet")):
        return 0
    try:
        return scan_parquet(folder).shape[0]
    except hs.InputError as error:
        if "broken off" not in str(error):
            raise
        return 0
