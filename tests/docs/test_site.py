"""The site is built whole, leads nowhere that is not there, and needs no network.

The build runs every example of the gallery, with warnings as errors. It works on a copy of docs/, so
that a folder in which somebody builds the site by hand is left alone.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib

import matplotlib.image
import numpy as np
import pytest

from tests.docs.commands import ROOT
from tests.docs.site import Page, broken_links, is_outside
from tests.test_examples import public

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("plot_*.py"))
MADE = shutil.ignore_patterns(
    "_build", "auto_examples", "generated", "backreferences", "__pycache__"
)
# Seconds; the build takes one to two minutes on two cores.
LONGEST_BUILD = 900
# The least share of the pixels of a figure that is not its ground.
LEAST_INK = 0.005
pytestmark = pytest.mark.xdist_group("site")


def imported(path):
    """List the packages that a script imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) else []
        names += (
            [one.name for one in getattr(node, "names", ())] if isinstance(node, ast.Import) else []
        )
        yield from (name.split(".")[0] for name in names)


def test_what_examples_import_is_installed_for_the_docs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    # The extra names others of the project: make docs installs no more.
    (own,) = [one for one in extras["docs"] if one.startswith("halfseen[")]
    within = re.search(r"\[(.*)\]", own)[1].split(",")
    asked = [
        *project["dependencies"],
        *extras["docs"],
        *(one for key in within for one in extras[key]),
    ]
    installed = {re.split(r"[\[><=;]", one)[0].replace("-", "_") for one in asked}
    installed |= {"sklearn" if "scikit_learn" in installed else "", "halfseen"}
    for example in EXAMPLES:
        missing = set(imported(example)) - installed - set(sys.stdlib_module_names)
        assert not missing, example.name


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """Path of the built site."""
    source = tmp_path_factory.mktemp("site") / "docs"
    shutil.copytree(ROOT / "docs", source, ignore=MADE)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", ".", "_build"],
        cwd=source,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LONGEST_BUILD,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return source / "_build"


@pytest.fixture(scope="session")
def pages(site):
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    return {path.resolve(): Page(path) for path in found}


def test_every_link_leads_somewhere(pages):
    assert len(pages) > 100
    assert broken_links(pages) == []


def test_nothing_is_loaded_from_the_network(pages, site):
    outside = {a for page in pages.values() for a in page.loaded if is_outside(a)}
    assert outside == set()
    for sheet in site.rglob("*.css"):
        fetched = re.findall(r"(?:url\(|@import\s+)[\"']?(https?://[^\"')]+)", sheet.read_text())
        assert fetched == [], sheet.name


def test_every_public_name_has_a_place_in_the_reference(pages, site):
    known = set().union(*(page.ids for path, page in pages.items() if "api" in path.parts))
    missing = [name for name, _ in public.public_names() if name not in known]
    assert missing == []


def test_every_command_is_in_the_reference(site):
    from halfseen.cli import app

    text = (site / "api" / "commands.html").read_text(encoding="utf-8")
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert len(names) > 5
    for name in names:
        assert f"Usage: halfseen {name} " in text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_show_a_figure_and_no_traceback(site, example):
    page = site / "auto_examples" / f"{example.stem}.html"
    assert "Traceback (most recent call last)" not in page.read_text(encoding="utf-8")
    figures = sorted((site / "_images").glob(f"sphx_glr_{example.stem}_[0-9]*.png"))
    assert figures, f"{example.name} makes no figure"
    for figure in figures:
        assert ink(matplotlib.image.imread(figure)) > LEAST_INK, f"{figure.name} is blank"


def test_formulas_are_written_for_browsers(site):
    text = (site / "theory.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 20
    assert not re.search(r"\\(frac|left|mathbb|Sigma)", re.sub(r"<code.*?</code>", "", text))


def ink(image):
    """Share of the pixels that differ from the commonest one."""
    pixels = (image.reshape(-1, image.shape[-1]) * 255).round().astype(np.int64)
    codes = pixels @ (256 ** np.arange(pixels.shape[1]))
    return 1.0 - np.unique(codes, return_counts=True)[1].max() / len(codes)


def test_what_is_wrong_with_a_site_is_seen(tmp_path):
    first, second = tmp_path / "index.html", tmp_path / "other.html"
    first.write_text(
        '<script src="https://example.org/x.js"></script><p id="here"></p>'
        '<a href="other.html#there"></a><a href="nowhere.html"></a><a href="#here"></a>'
        '<img src="lost.png" srcset="lost2.png 2x">'
    )
    second.write_text('<a href="index.html#here"></a><a href="https://example.org"></a>')
    pages = {path.resolve(): Page(path) for path in (first, second)}
    wrong = [
        f"index.html: {a}" for a in ("other.html#there", "nowhere.html", "lost.png", "lost2.png")
    ]
    assert broken_links(pages) == wrong
    assert [a for page in pages.values() for a in page.loaded if is_outside(a)] == [
        "https://example.org/x.js"
    ]
    assert ink(np.ones((5, 5, 3))) == 0.0
