import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfseen as hs
from tests import naive


def _holed(rng, n=60, d=4):
    X = rng.normal(size=(n, d)) * [1, 10, 0.1, 3] + [0, 5, 100, -3]
    X[rng.random((n, d)) < 0.3] = np.nan
    return X


def _in_data_units(m):
    """Sums of x, x², xy from sums of u = (x − shift)/scale."""
    i, j = m.shift[:, None], m.shift
    a, b = m.scale[:, None], m.scale
    first = a * m.first + i * m.counts
    second = a**2 * m.second + 2 * a * i * m.first + i**2 * m.counts
    cross = a * b * m.cross + a * j * m.first + i * b * m.first.T + i * j * m.counts
    return m.counts, first, second, cross


def test_moments_match_loops(rng):
    X = _holed(rng)
    m = hs.PairMoments.from_array(X)
    for comp, ref in zip(_in_data_units(m), naive.pair_sums(X), strict=True):
        np.testing.assert_allclose(comp, ref, rtol=1e-10, atol=1e-8)
    np.testing.assert_allclose(m.means(), np.nanmean(X, axis=0), rtol=1e-13)
    np.testing.assert_allclose(m.deviations(), np.nanstd(X, axis=0), rtol=1e-12)
    np.testing.assert_array_equal(m.smallest, np.nanmin(X, axis=0))
    np.testing.assert_array_equal(m.largest, np.nanmax(X, axis=0))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_chunked_permuted_and_whole_agree(seed, chunks):
    rng = np.random.default_rng(seed)
    X = _holed(rng)
    whole = hs.PairMoments.from_array(X)
    shuffled = X[rng.permutation(len(X))]
    parts = [hs.PairMoments.from_array(p) for p in np.array_split(shuffled, chunks)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    assert merged.rows == whole.rows
    for a, b in zip(_in_data_units(merged), _in_data_units(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())
    np.testing.assert_allclose(merged.deviations(), whole.deviations(), rtol=1e-12)


def test_fits_from_chunks_agree_to_1e_12(three):
    rule = hs.DetectionLimits(lower=[0.5, -3.0, 9.0])
    X = hs.simulate(three, rule, 5000, 3)
    whole = hs.fit(X, rule, "pairwise")
    order = np.random.default_rng(0).permutation(len(X))
    parts = [hs.PairMoments.from_array(X[k]) for k in np.array_split(order, 7)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    chunked = hs.fit(merged, rule, "pairwise")
    np.testing.assert_allclose(chunked.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(chunked.covariance, whole.covariance, rtol=1e-12)


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_threads_do_not_change_a_bit(monkeypatch, rng, jobs):
    monkeypatch.setattr("halfseen.data.table.CACHE_CELLS", 2)
    X = _holed(rng, n=333)
    ref = hs.PairMoments.from_array(X, n_jobs=1)
    comp = hs.PairMoments.from_array(X, n_jobs=jobs)
    for name in ("counts", "first", "second", "cross"):
        np.testing.assert_array_equal(getattr(comp, name), getattr(ref, name))


@pytest.mark.parametrize("scale", [1e-200, 1e-9, 1e9, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_extreme_scales_and_offsets_keep_their_digits(rng, scale, offset):
    x = rng.normal(size=(500, 1)) + offset
    m = hs.PairMoments.from_array(x * scale)
    # Adding 1e6 leaves ten digits of a standard deviation of one.
    np.testing.assert_allclose(m.deviations(), x.std(axis=0) * scale, rtol=1e-9)
    assert np.isfinite(m.means()).all()


def test_layouts_and_precisions_give_the_same_sums(rng):
    X = np.round(_holed(rng), 3).astype(np.float32)
    ref = hs.PairMoments.from_array(X.astype(float))
    for other in (X, np.asfortranarray(X), X[::1], np.repeat(X, 2, axis=0)[::2]):
        comp = hs.PairMoments.from_array(other)
        for name in ("counts", "first", "second", "cross", "smallest", "largest"):
            np.testing.assert_array_equal(getattr(comp, name), getattr(ref, name))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_rows_that_fill_no_whole_block_match_loops(monkeypatch, rng, n):
    monkeypatch.setattr("halfseen.data.moments.PRODUCT_ROWS", 64)
    monkeypatch.setattr("halfseen.data.table.CACHE_CELLS", 2)
    X = _holed(rng, n)
    # Never hidden, as another is in its first block alone.
    X[:, 1], X[:64, 2] = 5.0 + rng.normal(size=n), -100.0
    m = hs.PairMoments.from_array(X)
    np.testing.assert_array_equal(m.cross, m.cross.T)
    for comp, ref in zip(_in_data_units(m), naive.pair_sums(X), strict=True):
        np.testing.assert_allclose(comp, ref, rtol=1e-10, atol=1e-8)


def test_infinity_is_named():
    X = np.array([[1.0, 2.0], [3.0, np.inf], [2.0, 1.0]])
    with pytest.raises(hs.InputError, match=r"row 1, column x1: the value is inf"):
        hs.fit(X)
    X[:, 1] = -np.inf
    with pytest.raises(hs.InputError, match=r"row 0, column x1: the value is -inf"):
        hs.fit(X)


def test_merging_different_tables_is_refused():
    a = hs.PairMoments.from_array(np.zeros((3, 2)), ("a", "b"))
    with pytest.raises(hs.InputError, match="same columns: 2 and 3"):
        a.merge(hs.PairMoments.from_array(np.zeros((3, 3))))
    with pytest.raises(hs.InputError, match="a stands where the other has b"):
        a.merge(hs.PairMoments.from_array(np.zeros((3, 2)), ("b", "a")))


def test_a_column_hidden_in_one_chunk_takes_its_units_from_the_other(rng):
    X = _holed(rng)
    first = X.copy()
    first[:, 1] = np.nan
    merged = hs.PairMoments.from_array(first).merge(hs.PairMoments.from_array(X))
    whole = hs.PairMoments.from_array(np.concatenate([first, X]))
    np.testing.assert_allclose(merged.deviations(), whole.deviations(), rtol=1e-12)
