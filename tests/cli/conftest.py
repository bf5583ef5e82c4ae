import pytest
from typer.testing import CliRunner

from halfseen.cli import app
from tests.laboratory import write_laboratory


@pytest.fixture
def halfseen(tmp_path, monkeypatch):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words, **more):
        return CliRunner().invoke(app, [str(word) for word in words], **more)

    return run


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory):
    """Path of a laboratory's file, and the Gaussian of its logarithms."""
    path = tmp_path_factory.mktemp("laboratory") / "lab.csv"
    return path, write_laboratory(path)
