"""The folder that pages are run in, with the files that they speak of."""

import shutil

import numpy as np
import pytest

import halfseen as hs
from halfseen.cli.demonstrate import run_demo

ROWS = 240
# Two laboratories, with a limit each for lead and zinc.
LIMITS = {"north": (0.5, 2.0), "south": (0.8, 3.0)}
# The logarithms of lead and zinc, and pH as it is.
TRUTH = hs.Gaussian([0.0, 1.4, 7.1], [[1.0, 0.5, -0.1], [0.5, 0.8, 0.0], [-0.1, 0.0, 0.16]])


def write_lab(folder):
    """Write lab.csv (sample, lead, zinc, ph), and limits.csv and limits_by_sample.csv for it.

    Lead and zinc are skewed, with cells such as "<0.5"; five cells of pH are blank, for no reason that
    has to do with pH. limits_by_sample.csv has the limits that the cells state; limits.csv has the
    lower of the two for each column, so that no seen value contradicts it.
    """
    rng = np.random.default_rng(5)
    Z = TRUTH.sample(ROWS, rng)
    metals, ph = np.exp(Z[:, :2]), Z[:, 2]
    where = rng.choice(list(LIMITS), ROWS)
    blank = set(rng.choice(ROWS, 5, replace=False).tolist())
    rows, limits = ["sample,lead,zinc,ph"], ["sample,lead,zinc"]
    for k, (pair, acid) in enumerate(zip(metals, ph, strict=True)):
        own = LIMITS[where[k]]
        cells = [f"<{c}" if x < c else f"{x:.3g}" for x, c in zip(pair, own, strict=True)]
        rows.append(",".join([f"S{k:03}", *cells, "" if k in blank else f"{acid:.2f}"]))
        limits.append(f"S{k:03},{own[0]},{own[1]}")
    for name, lines in (("lab.csv", rows), ("limits_by_sample.csv", limits)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    lead, zinc = np.min(list(LIMITS.values()), axis=0)
    lines = ["column,lower,upper", f"lead,{lead},", f"zinc,{zinc},"]
    (folder / "limits.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_more(folder):
    """Write what the README speaks of: results.csv, wells.csv, survey.csv and visits.csv."""
    rng = np.random.default_rng(6)
    metals = np.exp(TRUTH.sample(60, rng)[:, :2])
    results = [
        f"S{k},{metal},{f'<{limit}' if x < limit else f'{x:.3g}'},{limit}"
        for k, row in enumerate(metals)
        for metal, x, limit in zip(("lead", "zinc"), row, LIMITS["north"], strict=True)
    ]
    wells = [f"{'ABC'[k % 3]},{lead:.3g},{zinc:.3g}" for k, (lead, zinc) in enumerate(metals)]
    ages = 5.0 * np.round(rng.normal(40.0, 12.0, 60) / 5.0)
    survey = [
        f"{a:g},{'' if x < 0.5 else round(x, 3)}" for a, x in zip(ages, metals[:, 0], strict=True)
    ]
    steps = rng.normal(size=(60, 3)).cumsum(axis=1)
    visits = [",".join(f"{x:.3f}" for x in row) for row in steps]
    for name, head, rows in (
        ("results.csv", "Sample,Analyte,Result,RL", results), ("wells.csv", "Well,lead,zinc", wells),
        ("survey.csv", "age,lead", survey), ("visits.csv", "week0,week1,week2", visits),
    ):  # fmt: skip
        (folder / name).write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def files_of_pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    hs.write_csv(run_demo().laboratory_table(), folder / "wine.csv")
    write_lab(folder)
    write_more(folder)
    return folder


@pytest.fixture
def folder_of_pages(files_of_pages, tmp_path, monkeypatch):
    """Work in a copy of the folder, and leave no figure open."""
    import matplotlib
    import matplotlib.pyplot as plt

    matplotlib.use("Agg")
    shutil.copytree(files_of_pages, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")
