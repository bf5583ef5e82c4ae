"""200 MB of Parquet, made block by block and fitted in less memory than they take.

Each step is a process of its own, whose high-water mark is read at its end.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

# Three cells of a row are hidden: memory is taken by rows, time by what they hide.
ROWS, COLUMNS, HIDDEN, CORRELATION = 357_000, 100, 0.03, 0.5
LIMIT = float(ndtri(HIDDEN))
NAMES = ", ".join(f"x{j}" for j in range(COLUMNS))

SCRIPT = """
import json, sys
from pathlib import Path
task, folder, memory = sys.argv[1:4]
if task == "full":
    import warnings
    import halfseen as hs
    warnings.simplefilter("ignore", hs.ConvergenceWarning)
    # The tenth step takes no more than the first.
    fit = hs.fit(Path(folder, "data"), hs.DetectionLimits(lower=float(sys.argv[4])), random_state=0,
                 memory=memory, most_steps=1, standard_errors=False)
    fit.gaussian.save(Path(folder, "full.json"))
else:
    from halfseen.cli import app
    try:
        app(sys.argv[4:], prog_name="halfseen")
    except SystemExit as end:
        assert not end.code, end.code
status = Path("/proc/self/status").read_text()
peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
Path(folder, task + ".peak").write_text(peak.split()[1])
"""


def _peak(folder, task, memory, *words):
    """Run a task in a process of its own; return the most memory it held, in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, task, str(folder), memory, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return 1024 * int(Path(folder, task + ".peak").read_text())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large")
    words = ["simulate", "--rows", str(ROWS), "--columns", str(COLUMNS)]
    words += ["--correlation", str(CORRELATION), "--seen", f"{NAMES}: >={LIMIT!r}"]
    words += ["--format", "parquet", "--output", str(folder / "data")]
    peak = _peak(folder, "simulate", "", *words)
    size = sum(path.stat().st_size for path in (folder / "data").iterdir())
    assert size > 200e6
    # A few blocks of rows, whatever their number in all: the table itself would take 286 MB.
    assert peak < 650e6
    return folder


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.xdist_group("large")
def test_pairwise_keeps_within_its_memory(table):
    words = ["fit", str(table / "data" / "*.parquet"), "--method", "pairwise", "--memory", "600MB"]
    words += ["--seen", f"{NAMES}: >={LIMIT!r}", "--output", str(table / "fit.json")]
    assert _peak(table, "pairwise", "600MB", *words) < 600e6
    found = json.loads((table / "fit.json").read_text())
    mean = np.array([found["mean"][name] for name in found["columns"]])
    covariance = np.array([list(row.values()) for row in found["covariance"].values()])
    # Of the largest of 100 and of 5 050 errors: standard errors of complete data are 1/√n and at most
    # √(2/n), those with three per cent hidden at most a tenth larger; five of them.
    assert np.abs(mean).max() < 5 * 1.1 / np.sqrt(ROWS)
    truth = np.full((COLUMNS, COLUMNS), CORRELATION)
    np.fill_diagonal(truth, 1.0)
    assert np.abs(covariance - truth).max() < 5 * 1.1 * np.sqrt(2.0 / ROWS)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.xdist_group("large")
def test_full_keeps_within_its_memory(table):
    before = sorted(path.name for path in table.iterdir())
    # Rows and their sets take 430 MB.
    assert _peak(table, "full", "450MB", repr(LIMIT)) < 450e6
    left = {path.name for path in table.iterdir()} - set(before)
    assert left == {"full.peak", "full.json"}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the peak from /proc")
@pytest.mark.xdist_group("large")
def test_a_regression_keeps_within_its_memory(tmp_path):
    words = ["simulate", "--rows", "120000", "--columns", str(COLUMNS), "--seen", "x0: >=-2"]
    _peak(
        tmp_path, "simulate", "", *words, "--format", "parquet", "--output", str(tmp_path / "data")
    )
    regressors = " + ".join(f"x{j}" for j in range(1, COLUMNS))
    words = ["regress", str(tmp_path / "data"), f"x0 ~ {regressors}", "--seen", "x0: >=-2"]
    # Regressors and outcome take 96 MB, and the process 280 MB before it has read any.
    words += ["--memory", "440MB", "--output", str(tmp_path / "fit.json")]
    assert _peak(tmp_path, "regress", "440MB", *words) < 440e6
