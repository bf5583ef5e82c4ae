"""Completed tables: bits, blocks, regions and seeds."""

import numpy as np
import pytest
from scipy.special import expit

import halfseen as hs
from halfseen.data.row_blocks import sweep_rows
from halfseen.kernels.sweep import put
from halfseen.missingness.holes import SEEN, Scan
from halfseen.parallel import single_blas_thread
from halfseen.solvers.full_information.completion import (
    Completion,
    Moments,
    inside,
    make_block,
)
from halfseen.solvers.full_information.filling import fill
from tests import naive

TRUTH = hs.Gaussian(
    [0.2, -0.1, 0.4, 0.0],
    [[1.0, 0.5, -0.3, 0.2], [0.5, 1.5, 0.4, 0.1], [-0.3, 0.4, 0.8, 0.3], [0.2, 0.1, 0.3, 0.6]],
)
V = np.array([[1.0, 0.5, 0.0, -1.0], [0, 0, 0, 0], [-0.4, 0.3, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
RULES = {
    "limits": hs.DetectionLimits(lower=[0.0, 0.3, -0.2, 0.1]),
    "unions": hs.SelfCensoring(
        [hs.between(-0.5, 0.9), hs.between(-1, 0.4) | hs.at_least(1.5), hs.at_most(1), hs.everything]
    ),
    "threshold": hs.LinearThreshold(V, [0.1, 0.0, 0.2, 0.5]),
    "self-selection": hs.SelfSelection(),
    "probability": hs.SelfCensoring(hs.Probability(lambda x: expit(1.5 * x))),
    "parts": hs.Combined([
        ([3, 0], hs.LinearThreshold([[1.0, 0.4], [-0.5, 1.0]], [0.3, 0.2])),
        ([1], hs.DetectionLimits(lower=-0.6, upper=0.8)),
        ([2], hs.SelfCensoring(hs.Probability(lambda x: expit(-x)))),
    ]),
}  # fmt: skip


@pytest.fixture(params=RULES.values(), ids=RULES.keys())
def rule(request):
    return request.param


def _table(rule, n, seed=1):
    """Complete rows, their holes, and what is seen."""
    Y = TRUTH.sample(n, seed)
    shown = rule.seen(Y, seed + 1)
    scan = Scan(np.zeros(4), np.ones(4), np.full(4, 40.0))
    return Y, rule.holes(np.where(shown, Y, np.nan), scan), shown


def _swept(Y, holes, seed=3, sweeps=4, **options):
    rows = Completion(Y.copy(), holes, seed, **options)
    with single_blas_thread():
        moments = [rows.sweep(TRUTH.mean, TRUTH.precision) for _ in range(sweeps)]
    return rows, moments


def _same(one, other):
    np.testing.assert_array_equal(one[0].Y, other[0].Y)
    for a, b in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(a.first, b.first)
        np.testing.assert_array_equal(a.second, b.second)


def test_threads_change_no_bit(rule):
    n = 2 * sweep_rows(4) + 77
    Y, holes, _ = _table(rule, n)
    one, two = (_swept(Y, holes, sweeps=2, n_jobs=jobs) for jobs in (1, 2))
    assert len(one[0].blocks) == 3
    _same(one, two)


def test_the_seed_and_the_chain_say_everything():
    Y, holes, shown = _table(RULES["limits"], 500)
    _same(_swept(Y, holes), _swept(Y, holes))
    for other in (_swept(Y, holes, seed=4), _swept(Y, holes, chain=1)):
        assert (other[0].Y[~shown] != _swept(Y, holes)[0].Y[~shown]).all()


def test_blocks_do_not_depend_on_one_another():
    # The rows of the second block are drawn as if they were alone, with the uniforms of that block.
    step = sweep_rows(4)
    Y, holes, _ = _table(RULES["unions"], step + 300)
    whole, _ = _swept(Y, holes, sweeps=1)
    head, _ = _swept(Y[:step], holes.take(slice(0, step)), sweeps=1)
    np.testing.assert_array_equal(whole.Y[:step], head.Y)
    rows = Completion(Y.copy(), holes, 3)
    u = rows.draws(1, None).cells
    assert u.size == rows.blocks[1].hidden
    assert not np.isin(rows.draws(0, None).cells, u).any()
    np.testing.assert_array_equal(u, Completion(Y, holes, 3).draws(1, None).cells)


def test_every_sweep_has_uniforms_of_its_own():
    Y, holes, _ = _table(RULES["limits"], 200)
    rows = Completion(Y, holes, 3)
    seen = [rows.draws(0, None).cells]
    for _ in range(3):
        rows.sweep(TRUTH.mean, TRUTH.precision)
        seen.append(rows.draws(0, None).cells)
    pooled = np.concatenate([*seen, *(1.0 - u for u in seen)])
    assert np.unique(pooled).size == pooled.size


def test_rows_never_leave_their_regions_and_seen_cells_never_change(rule):
    Y, holes, shown = _table(rule, 400)
    rows, _ = _swept(Y, holes, sweeps=60)
    mirrored = rows.Y.copy()
    for block, values in zip(rows.blocks, rows.mirrored, strict=True):
        put(mirrored[block.rows], block.cells, values)
    for table in (rows.Y, mirrored):
        np.testing.assert_array_equal(table[shown], Y[shown])
        assert (table[~shown] != Y[~shown]).all()
        # m + s·z may round to the other side of a limit of order 1.
        assert naive.outside_holes(holes, table).max() < 1e-14


def test_regions_far_out_are_never_left():
    # Limits 50 standard deviations away, and an interval of a billionth.
    lower = np.array([[50.0, 0.3], [-np.inf, 0.3 - 1e-9], [-60.0, 0.3]])
    upper = np.array([[np.inf, 0.3], [np.inf, 0.3 + 1e-9], [-50.0, 0.3]])
    data = hs.IntervalData(lower, upper)
    Y = np.array([[51.0, 0.3], [0.0, 0.3], [-51.0, 0.3]])
    mean, S = np.zeros(2), np.array([[1.0, 0.9], [0.9, 1.0]])
    rows = Completion(Y, data.holes(), 0)
    for _ in range(50):
        moments = rows.sweep(mean, np.linalg.inv(S))
        assert np.isfinite(moments.second).all()
        assert naive.outside_holes(data.holes(), Y).max() < 1e-14


def test_nothing_hidden_leaves_the_table_alone():
    Y = TRUTH.sample(50, 0)
    holes = hs.DetectionLimits(lower=-100.0).holes(
        Y, Scan(np.zeros(4), np.ones(4), np.full(4, 40.0))
    )
    rows, moments = _swept(Y, holes, sweeps=2)
    assert rows.hidden == 0
    np.testing.assert_array_equal(rows.Y, Y)
    for found in moments:
        np.testing.assert_allclose(found.first, Y.mean(axis=0), atol=1e-14)
        np.testing.assert_allclose(found.second, Y.T @ Y / 50, atol=1e-13)
        np.testing.assert_allclose(found.about(found.first), np.cov(Y.T, bias=True), atol=1e-13)


def test_moments_about_a_point():
    Y = TRUTH.sample(30, 5)
    point = np.array([1.0, -2.0, 0.5, 3.0])
    moments = Moments(Y.mean(axis=0), Y.T @ Y / 30)
    np.testing.assert_allclose(moments.about(point), (Y - point).T @ (Y - point) / 30, atol=1e-12)


def test_a_block_lists_hidden_cells_column_by_column():
    _, holes, shown = _table(RULES["limits"], 100)
    block = make_block(holes, slice(20, 60))
    rows, columns = block.cells.row, np.repeat(np.arange(4), np.diff(block.cells.start))
    assert block.hidden == (~shown[20:60]).sum()
    np.testing.assert_array_equal(np.stack([columns, rows], axis=1), np.argwhere(~shown[20:60].T))
    np.testing.assert_array_equal(block.cells.set, holes.index[20:60][rows, columns])
    assert (holes.index[20:60][rows, columns] != SEEN).all()


def test_uniforms_are_kept_off_the_ends():
    u = np.array([0.0, 2.0**-60, 0.5, 1.0])
    assert inside(u) is u
    np.testing.assert_array_equal(u, [2.0**-53, 2.0**-53, 0.5, 1.0 - 2.0**-53])


def test_mirrored_chains_cancel_noise():
    # The reason for them: an average of both has less noise than of two that are independent. Shown for
    # first moments, over 40 sweeps of 2000 rows.
    Y, holes, shown = _table(RULES["limits"], 2000)
    fill(Y, holes, TRUTH.mean, TRUTH.standard_deviations, 0, "abcd")
    rows, noise = Completion(Y, holes, 9), []
    for _ in range(40):
        rows.sweep(TRUTH.mean, TRUTH.precision)
        mirrored = rows.Y.copy()
        put(mirrored, rows.blocks[0].cells, rows.mirrored[0])
        noise.append([rows.Y.mean(axis=0), mirrored.mean(axis=0)])
    one, two = np.moveaxis(np.array(noise)[5:], 1, 0)
    assert (~shown).any(axis=0).all()
    for column in range(4):
        # A correlation from 35 values has a standard error of at most 0.17.
        assert np.corrcoef(one[:, column], two[:, column])[0, 1] < -0.3
