"""The harness sees what is wrong with a page."""

import pytest

from tests.docs.commands import run_command
from tests.docs.fences import PageError, blocks_of
from tests.docs.test_pages import run_page, unknown_options

pytestmark = pytest.mark.usefixtures("folder_of_pages")


def page(folder, text):
    path = folder / "page.md"
    path.write_text(text.replace("'''", "```"), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'''\nhalfseen demo\n'''", r"line 1: a fence of language '\(none\)'"),
        ("'''bash\nls\n'''", "language 'bash'"),
        ("'''{code-block} python\n1 / 0\n'''", "shows code that is not run"),
        ("\n'''python\n1\n", "line 2: a fence that is not closed"),
        ("'''python\n>>> 1 + 1\n3\n'''", "(?s)line 2, .*Expected:\n    3\nGot:\n    2"),
        ("~~~{note}\n'''python\n>>> 1 + 1\n3\n'''\n~~~", "line 3, "),
        ("'''console\nhalfseen fit nowhere.csv\n'''", "it exits with 2, where 0 is stated"),
        ("'''console\nhalfseen fit wine.csv --nonsense\n'''", "it exits with 2"),
        ("'''console\nhalfseen fit x.csv --nonsense  # ten minutes\n'''", "No such option"),
        ("'''console\nhalfseen --version  # exits with 1\n'''", "exits with 0, where 1"),
        ("'''console\nmake coffee\n'''", "no target {'coffee'}"),
        ("'''console\npip install '.[gold]'\n'''", "no extra {'gold'}"),
        ("'''console\nsudo reboot\n'''", "'sudo' is not one of"),
        ("'''console\n$ make demo\n$ make tea\nprinted\n'''", "line 3: make tea"),
    ],
)
def test_what_is_wrong_is_named(folder_of_pages, text, message):
    with pytest.raises(PageError, match=message):
        run_page(page(folder_of_pages, text))


def test_tracebacks_show_the_line_of_the_page(folder_of_pages):
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page(folder_of_pages, "Text.\n\n'''python\nx = 1\n\nx / 0\n'''"))
    assert caught.traceback[-1].lineno == 5  # counted from zero


def test_blocks_of_a_page_share_names_files_and_order(folder_of_pages):
    text = (
        "'''python\nimport halfseen as hs\ndata = hs.read_csv('wine.csv')\n"
        "hs.write_csv(data, 'copy.csv')\n'''\n"
        "'''console\nhalfseen --version > version.txt\nhalfseen fit copy.csv \\\n"
        "  --transform log10 --json > fit.json\n'''\n"
        "'''python\n>>> import json\n>>> from pathlib import Path\n"
        ">>> json.loads(Path('fit.json').read_text())['rows'] == len(data.lower)\nTrue\n"
        ">>> Path('version.txt').read_text()\n'halfseen ...\\n'\n'''\n"
    )
    run_page(page(folder_of_pages, text))


def test_warnings_are_errors_unless_named(folder_of_pages):
    warn = "import warnings\nimport halfseen as hs\nwarnings.warn('x', hs.AssumptionWarning)"
    with pytest.raises(Warning, match="x"):
        run_page(page(folder_of_pages, f"'''python\n{warn}\n'''"))
    run_page(page(folder_of_pages, f"'''python\n{warn}  # an AssumptionWarning says so\n'''"))
    with pytest.raises(PageError, match="no AssumptionWarning came"):
        run_page(page(folder_of_pages, "'''python\nx = 1  # AssumptionWarning: none\n'''"))


def test_output_is_not_run_and_directives_are_read():
    text = "'''text\n1 / 0\n'''\n'''{math}\nx\n'''\n:::{note}\n'''python\n1\n'''\n:::\n"
    blocks = blocks_of(text.replace("'''", "```"))
    assert [(b.language, b.line) for b in blocks] == [("text", 2), ("python", 9)]


def test_benchmarks_are_known_by_name():
    run_command("python -m benchmarks")
    with pytest.raises(AssertionError, match="no task"):
        run_command("python -m benchmarks nonsense")


def test_options_within_a_line_are_known_by_name():
    assert unknown_options("`halfseen fit DATA --json`, `--blank random`, `halfseen COMMAND`") == []
    wrong = ["halfseen fit --nonsense", "halfseen guess", "--nothing"]
    assert unknown_options("; ".join(f"`{code}`" for code in wrong)) == wrong
