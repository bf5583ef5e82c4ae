"""Parquet files as a table in pieces."""

import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs
from halfseen.data import parquet_blocks as planning
from halfseen.data import parquet_files as reading
from halfseen.data.parquet_blocks import (
    describe_row,
    is_parquet,
    plan_chunks,
    scan_mixed,
    scan_parquet,
)
from halfseen.data.parquet_files import page_bytes, unpacked_in, write_parquet
from halfseen.data.table import array_blocks, chunk_rows
from halfseen.errors import InputError
from halfseen.kernels.nullable import fill_nullable

# Rows of a piece in these tests; tables of 8 MiB would be slow to make.
STEP = 10


@pytest.fixture(autouse=True)
def nothing_open():
    """Row groups that another test left in the middle."""
    reading._CURSORS.known.clear()


@pytest.fixture
def small(monkeypatch):
    """Cut after few rows."""
    monkeypatch.setattr(planning, "chunk_rows", lambda d: STEP)


def table(n, d=3, seed=0, nulls=True):
    X = np.random.default_rng(seed).normal(size=(n, d))
    if nulls:
        X[np.random.default_rng(seed + 1).random((n, d)) < 0.3] = np.nan
    return X, pa.table({f"x{j}": pa.array(X[:, j], from_pandas=True) for j in range(d)})


def together(blocks):
    return np.concatenate([piece.read() for piece in blocks.pieces])


def says(call, *sentences):
    with pytest.raises(InputError) as caught:
        call()
    text = re.sub(r"\s+", " ", str(caught.value))
    for sentence in sentences:
        assert sentence in text


# Cutting


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 20))
def test_pieces_cover_every_row_once_in_order(sizes, step):
    covered = []
    firsts = np.cumsum([0, *sizes])
    for first, last, start, stop, cut in plan_chunks(sizes, step):
        assert first <= last
        assert start < stop
        if cut:
            assert first == last
            assert sizes[first] > 2 * step
            assert start % step == 0
            assert stop - start == min(step, sizes[first] - start)
        else:
            assert (start, stop) == (0, sum(sizes[first : last + 1]))
            # Joined groups stay within a piece; one group alone may have twice as many rows.
            joined = sum(size > 0 for size in sizes[first : last + 1]) > 1
            assert stop <= (step if joined else 2 * step)
        covered += range(firsts[first] + start, firsts[first] + stop)
    assert covered == list(range(sum(sizes)))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 20))
def test_neighbours_that_fit_into_one_piece_are_joined(sizes, step):
    pieces = list(plan_chunks(sizes, step))
    for (*_, rows, cut), (first, *_) in pairwise(pieces):
        if not cut:
            assert rows + sizes[first] > step


@pytest.mark.parametrize("group", [1, 3, 7, 10, 15, 20, 21, 45, 97])
def test_values_are_those_of_pyarrow(tmp_path, small, group):
    X, rows = table(97)
    path = tmp_path / "a.parquet"
    pq.write_table(rows, path, row_group_size=group)
    blocks = scan_parquet(path)
    assert blocks.names == ("x0", "x1", "x2")
    assert blocks.shape == X.shape
    whole = pq.read_table(path)
    expected = np.stack([c.to_numpy(zero_copy_only=False) for c in whole.columns], axis=1)
    for piece, size, first in zip(blocks.pieces, blocks.sizes, blocks.first_rows, strict=True):
        found = piece.read()
        assert found.flags.f_contiguous
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected[first : first + size])
    np.testing.assert_array_equal(together(blocks), X)


def test_pieces_have_the_rows_of_every_table(tmp_path):
    X, rows = table(1000, d=2)
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=100)
    assert scan_parquet(tmp_path / "a.parquet").sizes == (1000,)
    assert chunk_rows(2) > 1000
    np.testing.assert_array_equal(together(scan_parquet(tmp_path / "a.parquet")), X)


# Reading parts of a row group


@pytest.fixture
def cut(tmp_path, small):
    """One row group in ten pieces, and its values."""
    X, rows = table(97)
    pq.write_table(rows, tmp_path / "a.parquet")
    return scan_parquet(tmp_path / "a.parquet"), X


@pytest.mark.parametrize("seed", range(5))
def test_any_order_gives_the_same_rows(cut, seed):
    blocks, X = cut
    for number in np.random.default_rng(seed).permutation(np.repeat(range(len(blocks)), 2)):
        first = blocks.first_rows[number]
        np.testing.assert_array_equal(
            blocks.pieces[number].read(), X[first : first + blocks.sizes[number]]
        )


def _decoded(monkeypatch):
    """Count the rows that are read from cut row groups."""
    count = [0]
    ours = reading._Cursor._next

    def counted(self, rows):
        parts = ours(self, rows)
        count[0] += sum(part.num_rows for part in parts)
        return parts

    monkeypatch.setattr(reading._Cursor, "_next", counted)
    return count


def test_a_pass_reads_a_row_group_once_and_lets_go_of_it(cut, monkeypatch):
    blocks, X = cut
    count = _decoded(monkeypatch)
    for _ in range(3):
        together(blocks)
    assert count[0] == 3 * len(X)
    assert not reading._CURSORS.known
    # Neighbours that overtake each other cost nothing either.
    for number in (1, 0, 3, 2, 5, 4, 7, 6, 9, 8):
        blocks.pieces[number].read()
    assert count[0] == 4 * len(X)
    assert not reading._CURSORS.known
    # What is passed over on the way to the last is not all kept.
    blocks.pieces[-1].read()
    (cursor,) = reading._CURSORS.known.values()
    assert len(cursor._passed) == reading.PASSED


def test_few_row_groups_are_open_at_a_time(tmp_path, small):
    X, rows = table(400)
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=50)
    blocks = scan_parquet(tmp_path / "a.parquet")
    for number in range(0, len(blocks), 5):
        blocks.pieces[number].read()
        assert len(reading._CURSORS.known) <= reading.CURSORS
    np.testing.assert_array_equal(together(blocks), X)


def test_threads_read_what_one_reads(tmp_path, small):
    X, rows = table(2000)
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=300)
    blocks = scan_parquet(tmp_path / "a.parquet")
    barrier = threading.Barrier(4)

    def read(piece):
        return piece.read()

    with ThreadPoolExecutor(4, initializer=barrier.wait) as pool:
        for _ in range(5):
            np.testing.assert_array_equal(np.concatenate(list(pool.map(read, blocks.pieces))), X)


def test_pieces_are_small_and_can_be_sent(cut):
    blocks, X = cut
    sent = pickle.dumps(blocks.pieces)
    assert len(sent) < 300 * len(blocks)
    again = pickle.loads(sent)
    assert again == blocks.pieces
    np.testing.assert_array_equal(np.concatenate([piece.read() for piece in again]), X)


FRESH = """
import pickle, sys
import numpy as np
piece = pickle.loads(sys.stdin.buffer.read())
sys.stdout.buffer.write(piece.read().tobytes())
"""


def test_a_fresh_process_elsewhere_reads_its_piece(tmp_path, small, monkeypatch):
    X, rows = table(97)
    pq.write_table(rows, tmp_path / "a.parquet")
    # Planned with a relative path, read from another folder.
    monkeypatch.chdir(tmp_path)
    blocks = scan_parquet("a.parquet")
    done = subprocess.run(
        [sys.executable, "-c", FRESH],
        input=pickle.dumps(blocks.pieces[7]),
        capture_output=True,
        check=True,
        cwd="/",
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))},
    )
    np.testing.assert_array_equal(np.frombuffer(done.stdout).reshape(-1, 3), X[70:80])


# Types


def test_numbers_of_every_kind(tmp_path, small):
    n = 25
    columns = {
        "half": pa.array(np.arange(n), pa.float16()),
        "single": pa.array(np.arange(n) / 3, pa.float32()),
        "whole": pa.array([None, *range(1, n)], pa.int8()),
        "large": pa.array([2**63 + 2**20 + k for k in range(n)], pa.uint64()),
        "decimal": pa.array([Decimal(k) / 4 for k in range(n)], pa.decimal128(10, 2)),
        "nothing": pa.nulls(n),
        "nan": pa.array([np.nan, None] * 12 + [1.0], pa.float64()),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found = together(scan_parquet(tmp_path / "a.parquet"))
    expected = [
        [np.nan if v is None else float(v) for v in c.to_pylist()] for c in columns.values()
    ]
    np.testing.assert_array_equal(found, np.array(expected).T)
    assert found.dtype == np.float64


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array([True, False, None] * 4), "holds true and false"),
        (pa.array([1, 2] * 6, pa.timestamp("s")), "hold"),
        (pa.array([1, 2] * 6, pa.duration("s")), "hold"),
    ],
)
def test_both_readers_refuse_the_same_columns(tmp_path, column, told):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": np.linspace(-1.0, 1.0, 12) ** 3, "b": column}), path)
    for columns in (None, ["x", "b"]):
        for read in (hs.read_parquet, scan_parquet):
            with pytest.raises(hs.InputError, match=f"column '?b'? .*{told}"):
                read(path, columns=columns)
    assert hs.read_parquet(path, columns="x").shape == scan_parquet(path, "x").shape


@pytest.mark.parametrize("name", ["", "  "])
def test_both_readers_want_names(tmp_path, name):
    path = tmp_path / "a.parquet"
    x = np.linspace(-1.0, 1.0, 12) ** 3
    pq.write_table(pa.table({"x": x, name: x + 1.0}), path)
    for read in (hs.read_parquet, scan_parquet):
        with pytest.raises(hs.InputError, match="column 2 has no name"):
            read(path)
        assert read(path, columns=["x", name]).shape == (12, 2)


def test_both_readers_leave_out_an_index_of_which_nobody_told(tmp_path):
    path = tmp_path / "a.parquet"
    x = np.linspace(-1.0, 1.0, 12) ** 3
    pq.write_table(pa.table({"x": x, "__index_level_0__": x}), path)
    assert hs.read_parquet(path).names == scan_parquet(path).names == ("x",)
    assert hs.read_parquet(path).labels[0] == "-1.0"


# Row groups that are unpacked column by column


def all_kinds(n):
    """Return columns with dictionaries that overflow, repeat, are texts, and categories."""
    rng = np.random.default_rng(4)
    words = np.array(["mill", "well", None], dtype=object)
    return pa.table(
        {
            "plain": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.2),
            "few": pa.array(rng.integers(0, 9, n)),
            "word": pa.array(words[rng.integers(0, 3, n)]),
            "kind": pa.array(words[rng.integers(0, 3, n)]).dictionary_encode(),
            "nothing": pa.nulls(n),
        }
    )


@pytest.mark.parametrize("order", ["forwards", "backwards", "shuffled"])
@pytest.mark.parametrize("batch", [7, 40, 1000])
def test_unpacked_rows_are_those_of_the_file(tmp_path, small, order, batch, monkeypatch):
    """In whichever order threads take chunks, and in whichever pieces pyarrow hands them out."""
    rows = all_kinds(333)
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=333, data_page_size=256)
    blocks = scan_mixed(tmp_path / "a.parquet", lambda names: names)
    pieces = list(unpacked_in(str(tmp_path), blocks.pieces))
    assert len(pieces) > 3
    if order != "forwards":
        pieces = pieces[::-1]
    if order == "shuffled":
        pieces = pieces[::2] + pieces[1::2]
    plain = reading._batches
    monkeypatch.setattr(
        reading,
        "_batches",
        lambda opened, chunk, names: plain(opened, replace(chunk, step=batch), names),
    )
    for piece in pieces:
        start = piece.first_row
        expected = rows.slice(start, piece.stop - piece.start)
        assert piece.frame().to_pylist() == expected.to_pylist()
    # Nothing with a name was written, and a second pass reads the same again.
    assert os.listdir(tmp_path) == ["a.parquet"]
    assert pieces[0].frame().num_rows == pieces[0].stop - pieces[0].start
    numbers = scan_parquet(tmp_path / "a.parquet", ["plain", "few", "nothing"])
    np.testing.assert_array_equal(
        together(replace(numbers, pieces=unpacked_in(str(tmp_path), numbers.pieces))),
        together(numbers),
    )


def test_pages_take_no_more_than_the_footer_tells(tmp_path, small):
    rows = all_kinds(333)
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=333)
    blocks = scan_mixed(tmp_path / "a.parquet", lambda names: ["plain", "word"])
    group = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
    sizes = [
        group.column(j).total_compressed_size + group.column(j).total_uncompressed_size
        for j in (0, 2)
    ]
    assert page_bytes(blocks.pieces) == (2 * sum(sizes), 2 * max(sizes))
    # Those that are not cut are read whole, and counted as rows.
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=5)
    assert page_bytes(scan_parquet(tmp_path / "a.parquet", "plain").pieces) == (0, 0)


def test_a_disk_without_room_to_unpack(tmp_path, small, monkeypatch):
    def full(**given):
        raise OSError(28, "No space left on device")

    pq.write_table(all_kinds(333), tmp_path / "a.parquet", row_group_size=333)
    blocks = scan_parquet(tmp_path / "a.parquet", "plain")
    monkeypatch.setattr(reading.tempfile, "TemporaryFile", full)
    says(unpacked_in("/scratch", blocks.pieces)[0].read, "does not fit on the disk of /scratch")


# Damage


def test_every_flip_in_a_page_with_a_checksum_is_noticed(tmp_path, small):
    """Of pages of our own, and of others that have checksums."""
    X = np.random.default_rng(1).normal(size=(60, 2))
    path = tmp_path / "a.parquet"
    write_parquet(path, ["a", "b"], [X])
    footer = pq.ParquetFile(path).metadata
    whole = path.read_bytes()
    noticed = 0
    for column in range(2):
        part = footer.row_group(0).column(column)
        # The last bytes of a column are in its page, behind the header with the checksum.
        for place in range(1, 200, 7):
            damaged = bytearray(whole)
            damaged[part.data_page_offset + part.total_compressed_size - place] ^= 16
            path.write_bytes(damaged)
            for read in (hs.read_parquet, lambda path: together(scan_parquet(path))):
                with pytest.raises(hs.InputError, match="no Parquet file that can be read"):
                    read(path)
                noticed += 1
    assert noticed > 100


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    def closed(path):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "sub").mkdir()
    monkeypatch.setattr(os, "listdir", closed)
    says(lambda: scan_parquet(tmp_path), "cannot be read: Permission denied")


def test_a_folder_whose_writer_was_killed_is_no_table(tmp_path):
    write_parquet(tmp_path / "part-00000.parquet", ["a"], [np.zeros((3, 1))])
    unfinished = tmp_path / ".parts.abcdefgh.halfseen-part"
    unfinished.mkdir()
    # Every part was moved out of it: only it was not removed.
    assert scan_parquet(tmp_path).shape == (3, 1)
    (unfinished / "part-00001.parquet").touch()
    says(lambda: scan_parquet(tmp_path), "whose writing has not ended, or was broken off")


def test_float32_stays_if_all_columns_of_all_files_are(tmp_path, small):
    X, rows = table(97)
    single = rows.cast(pa.schema([(name, pa.float32()) for name in rows.column_names]))
    for name, group in (("a", 97), ("b", 5)):
        pq.write_table(single, tmp_path / f"{name}.parquet", row_group_size=group)
    found = together(scan_parquet(tmp_path))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.tile(X, (2, 1)).astype(np.float32))
    pq.write_table(rows, tmp_path / "c.parquet")
    blocks = scan_parquet(tmp_path)
    assert {piece.read().dtype for piece in blocks.pieces} == {np.dtype(np.float64)}
    assert scan_parquet(tmp_path / "a.parquet", columns=["x1"]).pieces[0].read().dtype == "f4"


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=70), st.sampled_from([np.float32, np.float64]))
def test_the_kernel_puts_nan_where_a_bit_is_zero(seen, dtype):
    seen = np.array(seen, dtype=bool)
    values = np.arange(seen.size, dtype=dtype)
    out = np.zeros((seen.size, 2), dtype)
    fill_nullable(values, np.packbits(seen, bitorder="little"), out[:, 1])
    np.testing.assert_array_equal(out[:, 1], np.where(seen, values, np.nan))
    assert (out[:, 0] == 0).all()


@pytest.mark.parametrize("offset", [0, 1, 7, 8, 13])
def test_slices_of_arrow_arrays(offset):
    X, rows = table(40, d=1)
    batch = rows.to_batches()[0].slice(offset, 20)
    out = np.empty((20, 1))
    reading._fill(out, batch, ["x0"])
    np.testing.assert_array_equal(out, X[offset : offset + 20])


# Columns


@pytest.fixture
def mixed(tmp_path):
    path = tmp_path / "m.parquet"
    rows = pa.table(
        {"site": ["A", "B"], "lead": [1.0, None], "zinc": [3, 4], "lead.raw": [5.0, 6.0]}
    )
    pq.write_table(rows, path)
    return path


def test_columns_are_read_in_the_order_asked_for(mixed):
    blocks = scan_parquet(mixed, columns=["zinc", "lead"])
    assert blocks.names == ("zinc", "lead")
    np.testing.assert_array_equal(together(blocks), [[3, 1], [4, np.nan]])
    # pyarrow takes a dot as the name of a field within a column.
    np.testing.assert_array_equal(together(scan_parquet(mixed, "lead.raw")), [[5], [6]])


def test_columns_explain(mixed, tmp_path):
    says(
        lambda: scan_parquet(mixed),
        "m.parquet: column 'site' has type string, which holds no numbers.",
        "Name those to read with columns=; numbers are in lead, zinc, lead.raw.",
    )
    says(lambda: scan_parquet(mixed, ["site"]), "'site' has type string", "by read_parquet")
    says(lambda: scan_parquet(mixed, ["led"]), "columns=: there is no column", "did you mean")
    says(lambda: scan_parquet(mixed, ["zinc", "zinc"]), "'zinc' stands twice")
    says(lambda: scan_parquet(mixed, []), "columns= names no columns")
    twice = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["a", "a"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    says(lambda: scan_parquet(tmp_path / "twice.parquet"), "two columns are named 'a'")


@pytest.mark.parametrize("name", [None, "site"])
def test_an_index_of_pandas_is_no_column(tmp_path, name):
    import pandas as pd

    frame = pd.DataFrame({"lead": [1.0, 2.0]}, index=pd.Index([7, 9], name=name))
    frame.to_parquet(tmp_path / "p.parquet")
    assert scan_parquet(tmp_path / "p.parquet").names == ("lead",)
    stored = name or "__index_level_0__"
    np.testing.assert_array_equal(
        together(scan_parquet(tmp_path / "p.parquet", [stored])), [[7], [9]]
    )


@pytest.mark.parametrize("told", ["[1]", '{"index_columns": 3}', '{"index_columns": [{}]}', "{"])
def test_odd_words_about_pandas(tmp_path, told):
    rows = pa.table({"lead": [1.0]}).replace_schema_metadata({"pandas": told})
    pq.write_table(rows, tmp_path / "p.parquet")
    if told == "{":
        says(lambda: scan_parquet(tmp_path), "p.parquet is no Parquet file that can be read")
    else:
        assert scan_parquet(tmp_path).names == ("lead",)


# Files


@pytest.fixture
def folder(tmp_path):
    """Three files of data among others."""
    names = ["b/part-1.parquet", "a.pq", "c.PARQUET", "_metadata", "_old.parquet", ".b.parquet"]
    names += ["_log/d.parquet", ".git/e.parquet", "notes.txt"]
    for k, name in enumerate(names):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [float(k)], "y": [0.5]}), path)
    return tmp_path / "data"


def test_folders_patterns_and_lists(folder, monkeypatch):
    def found(path):
        return together(scan_parquet(path))[:, 0].tolist()

    assert found(folder) == [1, 0, 2]
    assert found(str(folder / "*.p*")) == [1]
    assert found(str(folder / "**" / "*.parquet")) == [0]
    assert found(str(folder / "*")) == [1, 0, 2, 8]
    assert found(str(folder / "_o*")) == [4]
    assert found(str(folder / "?")) == [0]
    assert found([folder / "c.PARQUET", str(folder / "b")]) == [2, 0]
    assert found((folder / "_old.parquet",)) == [4]
    monkeypatch.chdir(folder.parent)
    assert found("data") == [1, 0, 2]
    # A file whose name looks like a pattern is a file.
    pq.write_table(pa.table({"x": [8.0]}), "odd[1].parquet")
    assert found("odd[1].parquet") == [8]


def test_files_explain(folder, tmp_path):
    says(lambda: scan_parquet(tmp_path / "absent.parquet"), "absent.parquet", "no such file")
    says(lambda: scan_parquet(str(folder / "z*.parquet")), "no Parquet files match", "z*.parquet")
    (tmp_path / "empty").mkdir()
    says(lambda: scan_parquet(tmp_path / "empty"), "has no files that end in .parquet or .pq")
    says(lambda: scan_parquet([]), "is empty")
    says(lambda: scan_parquet(3), "path must be", "got 3")
    says(lambda: scan_parquet([folder, folder / "a.pq"]), "a.pq stands twice")
    pq.write_table(pa.table({"x": pa.array([], pa.float64())}), tmp_path / "none.parquet")
    says(lambda: scan_parquet(tmp_path / "none.parquet"), "none.parquet has no rows")
    pq.write_table(pa.table({}), tmp_path / "no.parquet")
    says(lambda: scan_parquet(tmp_path / "no.parquet"), "has no columns to read")


def test_a_file_without_rows_among_others_is_fine(folder):
    pq.write_table(
        pa.table({"x": pa.array([], pa.int32()), "y": pa.nulls(0)}), folder / "b" / "0.pq"
    )
    assert scan_parquet(folder).shape == (3, 2)


def test_files_must_have_the_same_columns(folder):
    other = folder / "d.parquet"
    # Another order, and another kind of number, are the same columns.
    pq.write_table(pa.table({"y": [1], "x": [2]}), other)
    np.testing.assert_array_equal(together(scan_parquet(folder))[-1], [2.0, 1.0])
    pq.write_table(pa.table({"x": [2.0]}), other)
    says(lambda: scan_parquet(folder), "d.parquet has no column 'y', which", "a.pq has.")
    assert scan_parquet(folder, ["x"]).shape == (4, 1)
    pq.write_table(pa.table({"x": [2.0], "y": [1.0], "z": [1.0]}), other)
    says(lambda: scan_parquet(folder), "d.parquet has a column 'z', which", "columns=")
    assert scan_parquet(folder, ["y"]).shape == (4, 1)
    pq.write_table(pa.table({"x": [2.0], "y": ["a"]}), other)
    says(lambda: scan_parquet(folder), "d.parquet: column 'y' has type string")


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_truncated_file_is_named(tmp_path, keep):
    path = tmp_path / "cut.parquet"
    pq.write_table(table(97)[1], path)
    path.write_bytes(path.read_bytes()[:keep])
    says(lambda: scan_parquet(path), "cut.parquet is no Parquet file that can be read")


def test_damage_within_a_file_is_told_when_it_is_read(tmp_path, small):
    for name, group in (("whole", 9), ("cut", 97)):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table(97)[1], path, row_group_size=group, compression="gzip")
        damaged = bytearray(path.read_bytes())
        damaged[4:400] = b"\xff" * 396
        path.write_bytes(damaged)
        blocks = scan_parquet(path)
        says(blocks.pieces[0].read, f"{name}.parquet is no Parquet file that can be read")
        assert not reading._CURSORS.known


def test_a_footer_may_not_fill_the_memory_with_pieces(tmp_path, small, monkeypatch):
    pq.write_table(table(97)[1], tmp_path / "a.parquet")
    monkeypatch.setattr(planning, "MOST_CHUNKS", 9)
    says(lambda: scan_parquet(tmp_path), "a.parquet tells of 97 rows, too many to plan for")


def test_a_file_that_changed_is_refused(tmp_path, small):
    path = tmp_path / "a.parquet"
    pq.write_table(table(97)[1], path)
    blocks = scan_parquet(path)
    blocks.pieces[0].read()
    os.utime(path, ns=(0, 0))
    says(blocks.pieces[1].read, "a.parquet has changed since this work began")
    blocks = scan_parquet(path)
    pq.write_table(table(96)[1], path)
    os.utime(path, ns=(0, 0))
    says(blocks.pieces[1].read, "a.parquet has changed since this work began")
    path.unlink()
    says(blocks.pieces[1].read, "a.parquet cannot be read: there is no such file")


def test_rows_are_told_with_their_file(folder, tmp_path, small, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"x": np.arange(97.0), "y": np.arange(97.0)}), folder / "d.parquet")
    blocks = scan_parquet("data")
    assert describe_row(blocks, 1) == "row 0 of data/b/part-1.parquet"
    assert [describe_row(blocks, 3 + k) for k in (0, 55, 96)] == [
        f"row {k} of data/d.parquet" for k in (0, 55, 96)
    ]
    assert describe_row(array_blocks(np.zeros((5, 2))), 4) == "row 4"


def test_what_looks_like_parquet(folder):
    assert all(map(is_parquet, ["a.parquet", "b.PQ", "data/*.parquet", folder, ["a.pq", "b.pq"]]))
    assert not any(map(is_parquet, ["a.csv", "-", [], np.zeros((2, 2)), None]))


def test_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    says(lambda: scan_parquet(tmp_path), 'pip install "halfseen[parquet]"')


def test_links_in_a_circle_are_read_once(tmp_path):
    (tmp_path / "loop").mkdir()
    pq.write_table(table(97)[1], tmp_path / "loop" / "x.parquet")
    (tmp_path / "loop" / "again").symlink_to(".")
    assert scan_parquet(tmp_path / "loop").shape[0] == 97
    (tmp_path / "loop" / "y.parquet").symlink_to("x.parquet")
    says(lambda: scan_parquet(tmp_path / "loop"), "y.parquet stands twice")


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "p.parquet")
    says(lambda: scan_parquet(tmp_path), "p.parquet is no file that can be read")
    os.unlink(tmp_path / "p.parquet")
    pq.write_table(table(97)[1], tmp_path / "p.parquet")
    says(lambda: scan_parquet(tmp_path, 5), "columns= must be names")


def test_a_pattern_may_leave_the_ending_open(tmp_path):
    pq.write_table(table(97)[1], tmp_path / "a.parquet")
    assert is_parquet(str(tmp_path / "a*"))
    assert not is_parquet(str(tmp_path / "b*"))


def test_columns_by_pattern_and_second_columns(tmp_path):
    values = pa.array([0.1, 0.2, 0.3])
    names = ["PCB28", "PCB52", "Pb", "PbCen"]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(dict.fromkeys(names, values)), path)
    says(
        lambda: scan_parquet(path),
        "column 'PbCen' is named like flags or limits of 'Pb'",
        "columns=",
    )
    assert scan_parquet(path, "PCB*").names == ("PCB28", "PCB52")
    assert scan_parquet(path, ["Pb", "PCB5?"]).names == ("Pb", "PCB52")
