"""``simulate`` block by block: the rows of a whole draw, in files that appear whole."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

import halfseen as hs
from halfseen.data import parquet_files
from halfseen.data.csv_files import to_cells
from halfseen.data.parquet_blocks import scan_parquet
from halfseen.data.table import chunk_rows

# The packages show functions under the names of these modules.
drawing = sys.modules["halfseen.simulate"]
command = sys.modules["halfseen.cli.simulate"]
HALVES = hs.Gaussian(np.zeros(3), 0.5 * np.eye(3) + 0.5)


@pytest.fixture
def blocks_of_50(monkeypatch):
    monkeypatch.setattr(drawing, "BLOCK_ROWS", 50)


def together(blocks):
    return np.concatenate([piece.read() for piece in blocks.pieces])


def says(result, sentence):
    assert result.exit_code == 2, result.output
    assert sentence in re.sub(r"\s+", " ", result.output)


# The generator


class Sometimes(hs.SelfCensoring):
    """Coins for positive values of one column: none in blocks without them."""

    def __init__(self):
        super().__init__(
            [hs.everything, hs.at_least(0.0), hs.Probability(lambda x: 0.5 * (x > 1.5))]
        )


@pytest.mark.parametrize(
    "rule",
    [
        hs.SelfCensoring(hs.everything),
        hs.DetectionLimits(lower=0.0),
        hs.SelfCensoring(hs.Probability(lambda x: 1 / (1 + np.exp(-x)))),
        hs.LinearThreshold([[1.0, -0.5, 0.0], [0.0, 1.0, 0.0], [0.2, 0.2, 1.0]], [0.3, 1.0, 0.1]),
        hs.SelfSelection(),
        hs.rules(["a: >=0", "b, c: largest"], columns=["a", "b", "c"]),
    ],
    ids=lambda rule: type(rule).__name__,
)
@pytest.mark.parametrize("n", [0, 1, 50, 51, 1234])
def test_blocks_are_the_rows_of_the_whole(blocks_of_50, rule, n):
    X, Y = hs.simulate(HALVES, rule, n, 3, return_complete=True)
    blocks = list(drawing.simulate_blocks(HALVES, rule, n, 3))
    assert [len(x) for x, _ in blocks] == [min(50, n - k) for k in range(0, n, 50)]
    for start, (x, y) in zip(range(0, n, 50), blocks, strict=True):
        np.testing.assert_array_equal(x, X[start : start + 50])
        np.testing.assert_array_equal(y, Y[start : start + 50])


@pytest.mark.parametrize("lower", [hs.at_least(0.0), hs.Probability(lambda x: 1 / (1 + x * x))])
def test_wide_rows_are_hidden_few_at_a_time(monkeypatch, lower):
    monkeypatch.setattr(drawing, "BLOCK_ROWS", 50)
    monkeypatch.setattr(drawing, "chunk_rows", lambda d: 20)
    blocks = [x for x, _ in drawing.simulate_blocks(HALVES, hs.SelfCensoring(lower), 120, 1)]
    assert [len(x) for x in blocks] == [20, 20, 10, 20, 20, 10, 20]
    whole = hs.simulate(HALVES, hs.SelfCensoring(lower), 120, 1)
    np.testing.assert_array_equal(np.concatenate(blocks), whole)


def test_coins_are_the_same_if_some_blocks_need_none(monkeypatch):
    monkeypatch.setattr(drawing, "BLOCK_ROWS", 5)
    rule = Sometimes()
    X = hs.simulate(HALVES, rule, 400, 1)
    blocks = [x for x, _ in drawing.simulate_blocks(HALVES, rule, 400, 1)]
    # Some blocks have no cell that depends on a coin, and others have.
    chances = [np.isfinite(x[:, 2]).any() for x in blocks]
    assert any(chances)
    assert not all(chances)
    np.testing.assert_array_equal(np.concatenate(blocks), X)


def test_what_cannot_be_drawn_block_by_block(blocks_of_50):
    by_row = hs.DetectionLimits(lower=np.zeros((60, 3)))
    with pytest.raises(hs.InputError, match="limits that differ by row"):
        drawing.simulate_blocks(HALVES, by_row, 60)
    within = hs.Combined([([0, 1, 2], by_row)])
    with pytest.raises(hs.InputError, match="limits that differ by row"):
        drawing.simulate_blocks(HALVES, within, 60)
    coins = hs.SelfCensoring(hs.Probability(lambda x: np.full(np.shape(x), 0.5)))
    tossed = hs.Combined([([0, 2], coins), ([1], coins)])
    with pytest.raises(hs.InputError, match="Combined tosses coins"):
        list(drawing.simulate_blocks(HALVES, tossed, 60))
    for rule in (hs.DetectionLimits(lower=np.zeros((40, 3))), tossed):
        ((X, _),) = drawing.simulate_blocks(HALVES, rule, 40)
        np.testing.assert_array_equal(X, hs.simulate(HALVES, rule, 40))
    with pytest.raises(hs.InputError, match="number of rows"):
        drawing.simulate_blocks(HALVES, coins, -1)


# Parquet


RULE = ("--seen", "x: >=0", "--seen", "y: -1..1")


def expected(n, seed=0):
    rule = hs.rules(["x: >=0", "y: -1..1"], columns=["x", "y", "z"])
    return hs.simulate(HALVES, rule, n, seed)


def test_a_file_has_the_rows_of_simulate_and_nulls(halfseen, tmp_path, blocks_of_50):
    made = halfseen("simulate", "--rows", 1234, *RULE, "--seed", 5, "-o", "a.parquet")
    assert made.exit_code == 0, made.output
    X = expected(1234, 5)
    np.testing.assert_array_equal(together(scan_parquet("a.parquet")), X)
    table = pq.read_table("a.parquet")
    assert [c.null_count for c in table.columns] == np.isnan(X).sum(axis=0).tolist()
    hidden = int(np.isnan(X).sum())
    told = f"wrote a.parquet: 1234 rows, 3 columns; cells: {X.size - hidden} seen, {hidden} blank"
    assert told in re.sub(r"\s+", " ", made.output)
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_row_groups_are_pieces_whatever_the_blocks_are(halfseen, monkeypatch, blocks_of_50):
    assert chunk_rows(3) > 1234
    monkeypatch.setattr(parquet_files, "chunk_rows", lambda d: 120)
    halfseen("simulate", "--rows", 1234, *RULE, "-o", "a.pq")
    footer = pq.read_metadata("a.pq")
    sizes = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
    assert sizes == [120] * 10 + [34]
    np.testing.assert_array_equal(together(scan_parquet("a.pq")), expected(1234))


@pytest.mark.parametrize("rows", [1, 37, 50, 100, 999, 1234, 5000])
def test_parts_have_the_same_rows(halfseen, tmp_path, blocks_of_50, rows):
    words = ["--format", "parquet", "--part-rows", rows, "-o", "data/"]
    n = 1234 if rows > 1 else 12
    made = halfseen("simulate", "--rows", n, *RULE, *words)
    assert made.exit_code == 0, made.output
    parts = sorted(os.listdir("data"))
    assert parts == [f"part-{k:05}.parquet" for k in range(-(-n // rows))]
    counts = [pq.read_metadata(f"data/{part}").num_rows for part in parts]
    assert counts == [min(rows, n - k) for k in range(0, n, rows)]
    np.testing.assert_array_equal(together(scan_parquet("data")), expected(n))
    assert f"wrote data: {len(parts)} part" in made.output
    assert os.listdir(tmp_path) == ["data"]


def test_log_and_a_model_are_in_units(halfseen, blocks_of_50):
    words = ["--rows", 200, "--log", "--seen", "x: >=1", "--blanks"]
    halfseen("simulate", *words, "-o", "a.parquet")
    halfseen("simulate", *words, "-o", "a.csv")
    np.testing.assert_array_equal(together(scan_parquet("a.parquet")), hs.read_csv("a.csv").values)


def test_a_number_of_columns(halfseen):
    made = halfseen("simulate", "--rows", 5, "--columns", 12, "--seen", "x11: >=0", "-o", "a.pq")
    assert made.exit_code == 0, made.output
    assert scan_parquet("a.pq").names == tuple(f"x{j}" for j in range(12))
    says(halfseen("simulate", "--columns", 0), "--columns takes names, or how many, at least 1")
    says(halfseen("simulate", "--columns", "a,b,a"), "'a' stands twice")


def test_places_explain(halfseen, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("")
    (tmp_path / "file").write_text("")
    parts = ["--format", "parquet", "-o"]
    says(halfseen("simulate", *parts, "full"), "full is not empty (it has note.txt)")
    says(halfseen("simulate", *parts, "file"), "file is a file; a folder of parts cannot")
    says(halfseen("simulate", *parts, "no/data"), "there is no folder no")
    says(halfseen("simulate", "-o", "no/a.parquet"), "there is no folder no")
    says(halfseen("simulate", "-o", "full"), "is a folder; a file name is needed, or --format")
    says(halfseen("simulate", "--format", "parquet"), "needs a place to write to")
    says(halfseen("simulate", "--part-rows", 5), "--part-rows is for folders of Parquet")
    says(halfseen("simulate", "--part-rows", 5, "-o", "a.pq"), "a.pq is the name of a file")
    assert sorted(os.listdir(tmp_path)) == ["file", "full"]


def test_without_pyarrow(halfseen, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    says(
        halfseen("simulate", "-o", "a.parquet"), "Writing Parquet files needs pyarrow: pip install"
    )


# CSV, as before


@pytest.mark.parametrize("form", ["--qualifiers", "--blanks"])
def test_csv_is_that_of_a_whole_table(halfseen, tmp_path, blocks_of_50, form):
    words = ["--rows", 333, "--columns", 'x,y,"a,b"', *RULE, form]
    printed = halfseen("simulate", *words)
    written = halfseen("simulate", *words, "-o", "a.csv")
    X = expected(333)
    lower, upper = X.copy(), X.copy()
    if form == "--qualifiers":
        lower[np.isnan(X[:, 0]), 0], upper[np.isnan(X[:, 0]), 0] = -np.inf, 0.0
    data = hs.IntervalData(lower, upper, ["x", "y", "a,b"])
    text = 'x,y,"a,b"\n' + "".join(",".join(row) + "\n" for row in to_cells(data))
    assert printed.stdout == text
    assert (tmp_path / "a.csv").read_bytes() == text.encode()
    assert f"wrote a.csv: {data.describe()}" in re.sub(r"\s+", " ", written.output)


# Whole or not at all


def stop_after(blocks, error):
    def draw(*arguments):
        for k, block in enumerate(drawing.simulate_blocks(*arguments)):
            if k == blocks:
                raise error
            yield block

    return draw


@pytest.mark.parametrize(
    "words", [["-o", "a.csv"], ["-o", "a.parquet"], ["-o", "d", "--format", "parquet"]]
)
@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 2)]
)
def test_nothing_is_left_of_what_was_stopped(
    halfseen, tmp_path, monkeypatch, blocks_of_50, words, error, code
):
    monkeypatch.setattr(command, "simulate_blocks", stop_after(3, error))
    rows = ["--part-rows", 60] if "d" in words else []
    stopped = halfseen("simulate", "--rows", 1000, *words, *rows)
    assert stopped.exit_code == code, stopped.output
    assert os.listdir(tmp_path) == []
    told = "not written: --output" if code == 130 else "No space left on device"
    assert told in re.sub(r"\s+", " ", stopped.output)


def test_an_old_file_stays_if_the_new_one_is_stopped(halfseen, monkeypatch, blocks_of_50):
    halfseen("simulate", "--rows", 100, "-o", "a.parquet")
    monkeypatch.setattr(command, "simulate_blocks", stop_after(3, KeyboardInterrupt()))
    assert halfseen("simulate", "--rows", 1000, "-o", "a.parquet").exit_code == 130
    assert scan_parquet("a.parquet").shape == (100, 3)
    assert os.listdir() == ["a.parquet"]


def test_an_interrupt_from_outside(tmp_path):
    words = [
        "simulate",
        "--rows",
        "100000000",
        "--columns",
        "20",
        "-o",
        str(tmp_path / "a.parquet"),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "halfseen", *words],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, map(os.path.abspath, sys.path)))},
    )
    try:
        # Until the first row group is in the temporary file.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            if any(path.stat().st_size > 10**6 for path in tmp_path.iterdir()):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, told
    assert "interrupted" in told
    assert list(tmp_path.iterdir()) == []
