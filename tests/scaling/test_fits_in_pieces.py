"""Fits of tables in pieces against fits of the same tables in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfseen as hs
from halfseen.data.table import array_blocks
from halfseen.errors import AssumptionWarning, ContradictionError, InputError, NotIdentifiedError
from halfseen.solvers.full_information import learn

FOUR = hs.Gaussian(
    [1.0, -0.5, 0.3, 2.0],
    [[1.0, 0.5, 0.2, 0.1], [0.5, 2.0, 0.4, 0.3], [0.2, 0.4, 1.5, -0.3], [0.1, 0.3, -0.3, 0.8]],
)
LIMITS = hs.DetectionLimits(lower=FOUR.mean - 0.4)
UNION = hs.SelfCensoring([hs.between(m - 1.0, m + 1.0) for m in FOUR.mean])
THRESHOLDS = hs.LinearThreshold.anchored([0], [[1.0, 0.5, 0.0, 0.0], [0.5, 0, 1, 0], [0, 0, 0.3, 1]], [
    0.6, 0.5, 1.9,
])  # fmt: skip
ROWS = 3000
# Under rules whose rows are sampled from several starts: a few pieces, too, and a fifth of the time.
FEWER_ROWS = 600
# Few steps, but enough to compare bits.
pytestmark = pytest.mark.filterwarnings("ignore::halfseen.errors.ConvergenceWarning")


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Pieces of 256 rows, in blocks of 64, and few steps from each of several starts."""
    monkeypatch.setattr("halfseen.data.table.CACHE_CELLS", 2**8)
    monkeypatch.setattr("halfseen.data.table.CACHES_PER_CHUNK", 4)
    # First climbs are on rows in memory, whatever the table is: few steps of them will do.
    monkeypatch.setattr(learn, "TRIAL_STEPS", 3)


def numbers(fit):
    """Everything that a fit found."""
    out = [fit.gaussian.mean, fit.gaussian.covariance, fit.seen_share]
    if fit.uncertainty is not None:
        out += [fit.uncertainty.mean, fit.uncertainty.covariance, fit.uncertainty.correlation]
    if fit.monte_carlo_errors is not None:
        out += list(fit.monte_carlo_errors)
    return out


def assert_same_bits(a, b):
    for one, other in zip(numbers(a), numbers(b), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    assert a.notes == b.notes
    assert a.names == b.names
    assert a.rows == b.rows


def as_parquet(X, folder, parts=3):
    folder.mkdir()
    names = [f"x{j}" for j in range(X.shape[1])]
    for k, part in enumerate(np.array_split(X, parts)):
        table = pa.table(
            {name: pa.array(part[:, j], from_pandas=True) for j, name in enumerate(names)}
        )
        pq.write_table(table, folder / f"part-{k}.parquet", row_group_size=300)
    return folder


@pytest.mark.parametrize("rule", [LIMITS, UNION, THRESHOLDS, hs.SelfSelection([[0, 1]])], ids=str)
def test_full_gives_the_same_bits_wherever_the_rows_are(rule, tmp_path, monkeypatch):
    # So little that some of the pieces go to the disk.
    monkeypatch.setattr("halfseen.scaling.sources.budget", lambda *given: 2**16)
    X = hs.simulate(FOUR, rule, ROWS if rule is LIMITS else FEWER_ROWS, 1)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    fits = [
        hs.fit(table, rule, random_state=5, most_steps=12, **more)
        for table, more in (
            (array_blocks(X), {"n_jobs": 1}),
            (mapped, {"n_jobs": 2}),
            (X, {"memory": "1GB", "scratch": tmp_path}),
        )
    ]
    for other in fits[1:]:
        assert_same_bits(fits[0], other)
    assert list(tmp_path.iterdir()) == [tmp_path / "x.npy"]
    # In memory only the first sums are taken in another order, so that all the rest is as close.
    whole = hs.fit(X, rule, random_state=5, most_steps=12)
    for one, other in zip(numbers(whole), numbers(fits[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", ["pairwise", "truncation"])
def test_one_pass_gives_what_the_table_in_memory_gives(method, tmp_path):
    X = hs.simulate(FOUR, LIMITS, ROWS, 2)
    ref = hs.fit(X, LIMITS, method)
    comp = hs.fit(as_parquet(X, tmp_path / "data"), LIMITS, method)
    np.testing.assert_allclose(comp.gaussian.mean, ref.gaussian.mean, rtol=1e-9)
    np.testing.assert_allclose(comp.gaussian.covariance, ref.gaussian.covariance, rtol=1e-9)
    assert comp.rows == ROWS


def test_paths_patterns_and_files_are_the_same_table(tmp_path):
    X = hs.simulate(FOUR, LIMITS, ROWS, 3)
    folder = as_parquet(X, tmp_path / "data")
    fits = [
        hs.fit(source, LIMITS, random_state=0, most_steps=30)
        for source in (folder, str(folder), str(folder / "part-*.parquet"), hs.scan_parquet(folder))
    ]
    for other in fits[1:]:
        assert_same_bits(fits[0], other)
    assert hs.fit(folder / "part-0.parquet", LIMITS, "pairwise").rows == 1000
    some = hs.scan_parquet(folder, columns=["x2", "x0"])
    chosen = hs.fit(some, hs.DetectionLimits(lower={"x0": 0.6, "x2": -0.1}), "truncation")
    assert chosen.names == ("x2", "x0")


def test_a_column_that_the_first_piece_hardly_shows(tmp_path):
    X = hs.simulate(FOUR, LIMITS, 700, 4)
    # It has no units there, and far off values would lose their digits in those of another.
    X[:300, 3] = np.nan
    X[:, 3] += 1e6
    rule = hs.DetectionLimits(lower=[*(FOUR.mean - 0.4)[:3], np.nan])
    with pytest.warns(AssumptionWarning, match="hidden where the rule shows every value"):
        comp = hs.fit(as_parquet(X, tmp_path / "data"), rule, "pairwise")
    with pytest.warns(AssumptionWarning):
        ref = hs.fit(X, rule, "pairwise")
    np.testing.assert_allclose(comp.gaussian.covariance, ref.gaussian.covariance, rtol=1e-7)
    seen = X[~np.isnan(X[:, 3]), 3]
    assert abs(comp.gaussian.mean[3] - seen.mean()) < 1e-6


def test_transforms_names_and_simply_missing_cells():
    Z = hs.simulate(FOUR, LIMITS, ROWS, 5)
    rule = hs.DetectionLimits(lower=np.exp(FOUR.mean - 0.4))
    X = np.exp(Z)
    mask = np.zeros(X.shape, dtype=bool)
    gone = np.random.default_rng(0).random(ROWS) < 0.1
    X[gone, 1], mask[gone, 1] = np.nan, True
    names = ["lead", "zinc", "iron", "tin"]
    common = {"random_state": 1, "transforms": "log", "missing_at_random": mask, "names": names}
    ref = hs.fit(X, rule, most_steps=60, **common)
    comp = hs.fit(array_blocks(X), rule, most_steps=60, **common)
    assert comp.names == tuple(names)
    assert comp.transforms is not None
    for one, other in zip(numbers(ref), numbers(comp), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    # Rows that are passed are filled in original units, under the rule of the fit.
    filled = comp.impute(X[:20])
    assert (filled[np.isnan(X[:20]) & ~mask[:20]] < np.exp(FOUR.mean).max()).all()
    with pytest.raises(InputError, match="does not hold its table; pass X"):
        comp.impute()


def test_limits_by_row_go_with_their_rows(tmp_path):
    rng = np.random.default_rng(7)
    lower = np.where(rng.random((ROWS, 4)) < 0.5, FOUR.mean - 0.4, FOUR.mean)
    rule = hs.DetectionLimits(lower=lower)
    X = hs.simulate(FOUR, rule, ROWS, 6)
    folder = as_parquet(X, tmp_path / "data")
    comp = hs.fit(folder, rule, random_state=1, most_steps=60)
    # It starts from the columns one by one: moments do not tell rows with other limits apart.
    ref = hs.fit(X, rule, random_state=1, most_steps=60)
    error = ref.standard_errors.mean
    assert (abs(comp.gaussian.mean - ref.gaussian.mean) < 0.5 * error).all()
    with pytest.raises(InputError, match="method 'pairwise' does not fit a table in pieces"):
        hs.fit(folder, rule, "pairwise")
    with pytest.raises(InputError, match="limits are given for 2 rows, but the data have 3000"):
        hs.fit(folder, hs.DetectionLimits(lower=lower[:2]))


@pytest.mark.parametrize("method", ["full", "pairwise"])
def test_errors_name_the_row_of_the_file(method, tmp_path):
    X = hs.simulate(FOUR, LIMITS, ROWS, 8)
    X[2345, 2] = -50.0
    folder = as_parquet(X, tmp_path / "data")
    with pytest.raises(
        ContradictionError, match=r"row 345 of .*part-2.parquet \(row 2345 of all\), column x2"
    ):
        hs.fit(folder, LIMITS, method)
    with pytest.raises(ContradictionError, match=r"^row 2345, column x2: the value -50 is seen"):
        hs.fit(array_blocks(X), LIMITS, method)
    X[2345, 2] = np.inf
    with pytest.raises(InputError, match=r"^row 2345, column x2: the value is inf"):
        hs.fit(array_blocks(X), LIMITS, method)
    mask = np.zeros(X.shape, dtype=bool)
    X[2345, 2] = 3.0
    mask[2345, 2] = True
    if method == "full":
        with pytest.raises(
            ContradictionError, match=r"^row 2345, column x2: .* missing at random, but"
        ):
            hs.fit(array_blocks(X), LIMITS, missing_at_random=mask)


def test_what_does_not_go_in_pieces_is_said(tmp_path):
    X = hs.simulate(FOUR, LIMITS, ROWS, 9)
    folder = as_parquet(X, tmp_path / "data")
    moments = hs.PairMoments.from_array(X)
    box = hs.RowTruncation(lambda Y: (Y > -9).all(axis=1))
    for call, says in (
        (lambda: hs.fit(folder, box), "under RowTruncation the table is needed in memory"),
        (lambda: hs.fit(folder, LIMITS, transforms="boxcox"), "the power of boxcox is learned"),
        (lambda: hs.fit(folder, THRESHOLDS, "missing_descent"), "does not fit a table in pieces under"),
        (lambda: hs.fit(X, LIMITS, memory="10MB"), "10 MB of memory is too little"),
        (lambda: hs.fit(X, LIMITS, memory="lots"), "memory must be a positive amount"),
        (lambda: hs.fit(X, LIMITS, scratch=tmp_path / "none"), "scratch must be a folder that is there"),
        (lambda: hs.fit(X, LIMITS, client="tcp://nowhere"), "client must be a dask.distributed.Client"),
        (lambda: hs.fit(moments, LIMITS, memory="9GB"), "memory= is for tables of numbers"),
        (lambda: hs.fit(folder, LIMITS, names=["a"]), "names must be 4"),
        (lambda: hs.fit("table.csv", LIMITS), "Try read_csv"),
        (lambda: hs.fit(tmp_path / "no.parquet", LIMITS), "no.parquet cannot be read"),
        (lambda: hs.fit(folder, hs.DetectionLimits(lower=[0.0])), "is for 1 columns"),
        (lambda: hs.fit(folder, LIMITS, "pairwise", spread=print), "does not take the option 'spread'"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=says):
            call()
    empty = np.full((600, 2), np.nan)
    empty[:, 0] = np.arange(600)
    with pytest.raises(NotIdentifiedError, match="column x1 is hidden in all of its 600 rows"):
        hs.fit(array_blocks(empty), method="truncation")


def test_values_on_their_limit_are_told_once(tmp_path):
    X = hs.simulate(FOUR, LIMITS, ROWS, 10)
    limit = float((FOUR.mean - 0.4)[0])
    X[np.isnan(X[:, 0]), 0] = limit
    with pytest.warns(
        AssumptionWarning, match=r"values lie exactly on the limit: x0 \(\d+ times 0.6\)"
    ):
        hs.fit(as_parquet(X, tmp_path / "data"), LIMITS, "pairwise")


def test_a_mapped_file_is_given_back(tmp_path):
    X = hs.simulate(FOUR, LIMITS, 200, 11)
    np.save(tmp_path / "x.npy", X)
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[3] = 7.0
    blocks = array_blocks(private)
    np.testing.assert_array_equal(blocks.pieces[0].read()[3], 7.0)
    np.testing.assert_array_equal(blocks.pieces[0].read()[3], 7.0)  # changes are not given back
    fit = hs.fit(np.load(tmp_path / "x.npy", mmap_mode="r"), LIMITS, random_state=0, most_steps=20)
    assert fit.impute().shape == X.shape


def test_an_array_gives_the_same_bits_with_and_without_a_limit_of_memory():
    for rule in (LIMITS, UNION, THRESHOLDS):
        X = hs.simulate(FOUR, rule, ROWS if rule is LIMITS else FEWER_ROWS, 12)
        for method in ("full", *(() if rule is THRESHOLDS else ("pairwise",))):
            more = {"most_steps": 30} if method == "full" else {}
            fits = [
                hs.fit(X, rule, method, random_state=1, **more, **memory)
                for memory in ({}, {"memory": "3GB"})
            ]
            assert_same_bits(*fits)


def test_a_run_that_filled_the_memory_goes_on_with_a_limit(tmp_path):
    X = hs.simulate(FOUR, LIMITS, ROWS, 13)
    common = {"random_state": 1, "most_steps": 30, "checkpoint": tmp_path / "c", "every": 0}
    ref = hs.fit(X, LIMITS, **common)
    assert_same_bits(ref, hs.fit(X, LIMITS, **common, resume=True, memory="3GB"))


def test_pieces_that_are_not_as_they_were_told_are_refused():
    da = pytest.importorskip("dask.array")
    X = da.from_array(hs.simulate(FOUR, LIMITS, 600, 14), chunks=(100, 4))
    for wrong in (lambda part: part[:50], lambda part: part[:, :2]):
        chunks = X.map_blocks(wrong, dtype=float, meta=np.empty((0, 4)))
        with pytest.raises(InputError, match=r"row 0: a piece .* but \(100, 4\) was told"):
            hs.fit(chunks, LIMITS)

    def third(part, block_info=None):
        return part[:50] if block_info and block_info[0]["chunk-location"][0] == 2 else part

    chunks = X.map_blocks(third, dtype=float, meta=np.empty((0, 4)))
    with pytest.raises(InputError, match=r"row 200: a piece .* has shape \(50, 4\)"):
        hs.fit(chunks, LIMITS)


def test_frames_keep_their_names_and_tables(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(hs.simulate(FOUR, LIMITS, 400, 15), columns=list("abcd"))
    fit = hs.fit(frame, LIMITS, random_state=0, most_steps=20, memory="3GB")
    assert list(fit.mean.index) == list("abcd")
    assert fit.impute().shape == (400, 4)
    folder = as_parquet(frame.to_numpy(), tmp_path / "data")
    with pytest.raises(InputError, match="does not hold its table"):
        hs.diagnose(hs.fit(folder, LIMITS, random_state=0, most_steps=20))


@pytest.mark.parametrize("dtype", [">f8", "i4", "f2", "f4"])
def test_mapped_files_of_other_numbers(dtype, tmp_path):
    X = np.round(10.0 * FOUR.sample(700, 0)).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    ref = hs.fit(X.astype("f4" if dtype == "f4" else float), None, "truncation", memory="3GB")
    assert_same_bits(ref, hs.fit(mapped, None, "truncation"))
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    with pytest.raises(InputError, match='memmap of mode "c" keeps what it reads'):
        hs.fit(private, None, "truncation", memory="3GB")


@pytest.mark.parametrize("memory", [10**400, -1, "1XB", float("nan"), True, "0"])
def test_odd_amounts_of_memory(memory):
    with pytest.raises(InputError, match="memory must be a positive amount"):
        hs.fit(np.eye(3), memory=memory)


def test_a_checkpoint_in_the_way_is_found_before_the_table_is_read(tmp_path, monkeypatch):
    X = hs.simulate(FOUR, LIMITS, 400, 16)
    blocks = array_blocks(X)
    (tmp_path / "c").write_bytes(b"")
    monkeypatch.setattr(
        "halfseen.data.table.ArrayChunk.read", lambda self: pytest.fail("it was read")
    )
    with pytest.raises(InputError, match="c is there already"):
        hs.fit(blocks, LIMITS, checkpoint=tmp_path / "c")
    with pytest.raises(InputError, match="a halfseen checkpoint was expected"):
        hs.fit(blocks, LIMITS, checkpoint=tmp_path / "c", resume=True)
