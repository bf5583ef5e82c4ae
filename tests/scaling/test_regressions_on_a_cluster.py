"""Regressions on a cluster of real processes: the bits of one machine."""

import warnings

import numpy as np
import pytest

import halfseen as hs
from halfseen.errors import InputError
from tests.regression.tables import FORMULAS, SELECTION
from tests.regression.test_in_pieces import CASES, arrays, files, graded, numbers, selected, sites

pytest.importorskip("distributed")

# One group: all of it runs in one process of pytest, with one cluster.
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.mark.parametrize("case", ["categories", "selection", "robust"])
def test_files(two_workers, case, tmp_path):
    formula, make, rule, options = CASES[case]
    path = files(tmp_path / "data", make(), 3)
    options = {**options, "random_state": 0}
    there = hs.regress(formula, path, rule, client=two_workers, **options)
    assert numbers(there) == numbers(hs.regress(formula, path, rule, n_jobs=2, **options))


def test_ordered_outcomes(two_workers, tmp_path):
    """Cells move with their cut points, wherever they are."""
    path = files(tmp_path / "data", graded(), 2)
    options = {"random_state": 0, "standard_errors": False}
    there, here = (hs.regress("grade ~ x", path, client=c, **options) for c in (two_workers, None))
    assert there.cut_points["grade"][1] > 0.0
    assert numbers(there) == numbers(here)


def test_frames_and_arrays_of_dask(two_workers):
    dd, da = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    formula, _, rule, _ = CASES["categories"]
    parts = dd.from_pandas(sites(), npartitions=3)
    with warnings.catch_warnings():
        # Dask says that it sends the frame, which is small.
        warnings.simplefilter("ignore", UserWarning)
        there, here = (
            hs.regress(formula, parts, rule, random_state=0, client=c) for c in (two_workers, None)
        )
    assert numbers(there) == numbers(here)
    Y, X = (da.from_array(one, chunks=(200, -1)) for one in arrays())
    limit = hs.DetectionLimits(lower=0.0)
    there, here = (hs.regress(Y, X, limit, random_state=0, client=c) for c in (two_workers, None))
    assert numbers(there) == numbers(here)


def test_a_table_of_this_process(two_workers):
    there = hs.regress(FORMULAS, selected(), SELECTION, random_state=0, client=two_workers)
    here = hs.regress(FORMULAS, selected(), SELECTION, random_state=0, memory="2GB")
    assert numbers(there) == numbers(here)


def test_errors_come_from_there(two_workers, tmp_path):
    frame = sites()
    frame.loc[455, "age"] = np.nan
    path = files(tmp_path / "data", frame, 2)
    with pytest.raises(InputError, match=r"row 5 of .*1\.parquet .*the value is missing"):
        hs.regress("lead ~ age", path, {"lead": ">=0.5"}, client=two_workers)
