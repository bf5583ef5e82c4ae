"""Answers that are printed whatever becomes of the files, and files that take no other's place."""

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

import halfseen as hs
from halfseen import files
from halfseen.cli import outputs
from halfseen.cli.outputs import show_table
from halfseen.cli.running import _in_ascii
from halfseen.results import Fit

# The package has the command under the name of its module.
fit_module = sys.modules["halfseen.cli.fit"]

TABLE = "lead,zinc\n" + "".join(
    f"{a:.3f},{b:.3f}\n" for a, b in np.random.default_rng(0).normal(5.0, 1.0, size=(40, 2))
)
ANSWER = "Multivariate normal distribution of 2 columns"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text(TABLE)
    return path


def failing(*given, **more):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestWhatCannotBeWritten:
    @pytest.mark.parametrize("option", ["--report", "--output", "--save"])
    def test_costs_neither_the_answer_nor_the_other_files(
        self, halfseen, table, tmp_path, monkeypatch, option
    ):
        def whole(path, *given):
            return failing() if path.name == "lost" else before(path, *given)

        names = {"--report": "p.html", "--output": "o.json", "--save": "s.hsfit"}
        others = [name for key, name in names.items() if key != option]
        words = [word for pair in (names | {option: "lost"}).items() for word in pair]
        before = files._locked_part
        monkeypatch.setattr(files, "_locked_part", whole)
        result = halfseen("fit", table, *words)
        assert result.exit_code == 2
        assert ANSWER in result.stdout
        told = " ".join(result.stderr.split())
        assert re.search(r"lost( cannot be written)?: No space left on device", told)
        assert all((tmp_path / name).stat().st_size for name in others)
        assert not (tmp_path / "lost").exists()

    def test_is_told_before_the_work(self, halfseen, table, monkeypatch):
        monkeypatch.setattr(fit_module, "run_fit", lambda *given: pytest.fail("it worked"))
        monkeypatch.setattr(outputs, "try_writing", failing)
        result = halfseen("fit", table, "--save", "s.hsfit")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--save s.hsfit cannot be written: No space left" in result.stderr

    def test_an_error_of_our_own_has_its_code(self, halfseen, table, tmp_path, monkeypatch):
        monkeypatch.setattr(Fit, "report", lambda *given, **more: 1 / 0)
        result = halfseen("fit", table, "--report", "p.html", "-o", "o.json")
        assert result.exit_code == 5
        assert ANSWER in result.stdout
        assert "ZeroDivisionError" in result.stderr
        assert "an error of halfseen itself" in result.stderr
        assert json.loads((tmp_path / "o.json").read_text())["rows"] == 40

    def test_end_of_file_in_the_middle_is_no_abort(self, halfseen, table, monkeypatch):
        def short(*given, **more):
            raise EOFError("Ran out of input")

        monkeypatch.setattr(fit_module, "run_fit", short)
        result = halfseen("fit", table)
        assert result.exit_code == 5
        assert "Aborted" not in result.stderr

    def test_ctrl_c_during_a_page_says_what_is_missing(self, halfseen, table, monkeypatch):
        def press(*given, **more):
            raise KeyboardInterrupt

        monkeypatch.setattr(Fit, "report", press)
        result = halfseen("fit", table, "--report", "p.html", "--save", "s.hsfit")
        assert result.exit_code == 130
        assert ANSWER in result.stdout
        assert "not written: --report p.html\n" in result.stderr
        assert "wrote s.hsfit" in result.stderr

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
    def test_standard_output_that_is_full_leaves_the_files(self, table, tmp_path):
        with open("/dev/full", "w") as full:
            done = run("fit", "lab.csv", "-o", "o.json", folder=tmp_path, stdout=full)
        assert done.returncode == 2
        assert "standard output cannot be written: No space left on device." in done.stderr
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        assert json.loads((tmp_path / "o.json").read_text())["rows"] == 40

    def test_so_does_a_reader_who_went_away(self, table, tmp_path):
        read, write = os.pipe()
        os.close(read)
        done = run("fit", "lab.csv", "-o", "o.json", folder=tmp_path, stdout=write)
        os.close(write)
        assert done.returncode == 141
        assert done.stderr.splitlines()[1:] == ["wrote o.json"]


def run(*words, folder, **more):
    return subprocess.run(
        [sys.executable, "-m", "halfseen", *words],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


class TestTheSameFile:
    @pytest.fixture
    def names(self, table, tmp_path):
        (tmp_path / "limits.csv").write_text("column,lower\nlead,0\n")
        (tmp_path / "link.csv").symlink_to(table)
        (tmp_path / "hard.csv").hardlink_to(table)
        (tmp_path / "sub").mkdir()
        return tmp_path

    @pytest.mark.parametrize(
        "words",
        [
            ("fit", "lab.csv", "-o", "lab.csv"),
            ("fit", "lab.csv", "-o", "link.csv"),
            ("fit", "lab.csv", "--save", "hard.csv"),
            ("fit", "link.csv", "--report", "sub/../lab.csv"),
            ("fit", "lab.csv", "--checkpoint", "lab.csv"),
            ("fit", "lab.csv", "--limits", "limits.csv", "-o", "limits.csv"),
            ("regress", "lab.csv", "lead ~ zinc", "--report", "link.csv"),
            ("impute", "lab.csv", "-o", "./lab.csv"),
            ("simulate", "--model", "lab.csv", "-o", "hard.csv"),
        ],
    )
    def test_as_an_input_is_refused(self, halfseen, names, words):
        result = halfseen(*words)
        assert result.exit_code == 2
        assert "which is read: it would be replaced" in " ".join(result.stderr.split())
        assert (names / "lab.csv").read_text() == TABLE

    @pytest.mark.parametrize(
        "words",
        [
            ("fit", "lab.csv", "-o", "new", "--save", "new"),
            ("fit", "lab.csv", "--report", "new", "--checkpoint", "./new"),
            ("regress", "lab.csv", "lead ~ zinc", "-o", "new", "--report", "sub/../new"),
            ("demo", "--write", "new", "--report", "new"),
        ],
    )
    def test_twice_is_refused(self, halfseen, names, words):
        result = halfseen(*words)
        assert result.exit_code == 2
        assert "are the same file" in " ".join(result.stderr.split())
        assert not (names / "new").exists()

    def test_so_is_a_part_of_a_folder_or_a_pattern(self, halfseen, tmp_path):
        assert halfseen("simulate", "-o", "parts", "--format", "parquet").exit_code == 0
        part = "parts/part-00000.parquet"
        for data in ("parts", "parts/*.parquet", part):
            result = halfseen("fit", data, "-o", part)
            assert result.exit_code == 2
            assert "which is read" in result.stderr

    def test_devices_may_be_named_twice(self, halfseen, names):
        result = halfseen("fit", "lab.csv", "-o", os.devnull, "--report", os.devnull)
        assert result.exit_code == 0


class TestLetters:
    @pytest.mark.parametrize("encoding", ["cp1252", "cp437"])
    def test_an_encoding_without_rules_gets_signs_that_it_has(self, tmp_path, encoding):
        (tmp_path / "lab.csv").write_text(TABLE.replace("lead", "plomb ρ 铅"), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "halfseen", "fit", "lab.csv"],
            cwd=tmp_path,
            capture_output=True,
            env=os.environ | {"PYTHONIOENCODING": encoding},
        )
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode(encoding)
        assert ("─" if encoding == "cp437" else "-") * 60 in text
        assert "plomb rho ?" in text.replace("ρ", "rho")

    def test_a_table_is_not_changed_to_fit(self, monkeypatch):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "cp1252"))
        with pytest.raises(hs.InputError, match=r"'\\u94c5', which .*\(cp1252\) has not.*--output"):
            show_table("铅\n1\n")

    def test_only_what_cannot_be_written_is_replaced(self):
        assert _in_ascii(UnicodeEncodeError("ascii", "a─±铅b", 1, 4, "")) == ("-+/-?", 4)

    @pytest.mark.parametrize(
        "words",
        [
            ("fit",), ("check", "--quick"), ("check",), ("plan", "--error", "0.01"),
            ("fit", "--seen", "lead: >=\x1b[31m"),
        ],
    )  # fmt: skip
    def test_names_do_not_steer_the_terminal(self, halfseen, table, words):
        table.write_text(TABLE.replace("zinc", "zi\x1b[2J\x07nc"))
        result = halfseen(words[0], table, *words[1:])
        assert result.exit_code in (0, 2)
        assert "\x1b" not in result.output
        assert "\x07" not in result.output


SLOW = """
import sys, time, halfseen.cli
module = sys.modules["halfseen.cli.fit"]
from halfseen.scaling.local import Scratch
def work(*given, **more):
    scratch = Scratch(".")
    scratch.path
    print("at work", flush=True)
    time.sleep(60)
module.run_fit = work
from halfseen.cli import app
app(["fit", "lab.csv"])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGHUP", 143), ("SIGINT", 130)])
def test_every_signal_to_end_removes_the_scratch_folder(table, tmp_path, number, code):
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: [signal.signal(k, signal.SIG_DFL) for k in (1, 2, 15)],
    )
    assert process.stdout.readline() == "at work\n"
    assert len(os.listdir(tmp_path)) == 2
    process.send_signal(getattr(signal, number))
    _, told = process.communicate()
    assert process.returncode == code
    assert told.splitlines()[-1] == "halfseen: interrupted."
    assert os.listdir(tmp_path) == ["lab.csv"]
