"""A run that was stopped and resumed gives every number of one that was not, to the last bit."""

import dataclasses
import errno
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import halfseen as hs
from halfseen import archive, files
from halfseen.archive import ArchiveError, read_archive, write_archive
from halfseen.cli import app
from halfseen.solvers.full_information import checkpoint as module
from halfseen.solvers.full_information import learn
from halfseen.solvers.full_information.ascent import Ascent, State
from halfseen.solvers.full_information.charts import Chart
from halfseen.solvers.full_information.expectation import Moments
from halfseen.solvers.full_information.information import Information
from halfseen.solvers.full_information.m_step import Free, MStep

ROOT = Path(__file__).parents[2]


class Stopped(Exception):
    """Something that ends a run in the middle of a step."""


def everything(fit):
    """Every number and word of a fit, as something to compare."""
    return {
        field.name: plain(getattr(fit, field.name))
        for field in dataclasses.fields(fit)
        # The table itself, and how it was passed.
        if field.name not in ("source", "frame")
    }


def plain(value):
    if isinstance(value, hs.Gaussian):
        return plain(value.mean), plain(value.covariance)
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray | np.generic | float):
        value = np.asarray(value)
        return value.dtype.str, value.shape, value.tobytes()
    if hasattr(value, "items"):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def truth(d, rho=0.5):
    return hs.Gaussian(np.zeros(d), rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))


def limits(d=3, n=600, **options):
    rule = hs.DetectionLimits(lower=-0.3)
    return hs.simulate(truth(d), rule, n, random_state=1), rule, options


def in_pieces(X, chunk=150):
    da = pytest.importorskip("dask.array")
    return da.from_array(X, chunks=(chunk, -1))


def several_tops(d):
    """So little is seen that the mean may lie on either side: three climbs, then the last."""
    rule = hs.SelfCensoring(hs.between(-0.3, 0.3))
    return hs.simulate(truth(d), rule, 60, random_state=2), rule, {}


def thresholds(pieces=False):
    rule = hs.LinearThreshold([[1.0, 0.4], [0.2, 1.0]], [0.3, 0.8])
    X = hs.simulate(truth(2), rule, 500, random_state=3)
    return (in_pieces(X) if pieces else X), rule, {"accuracy": 0.3, "most_steps": 60}


def sparse():
    return limits(4, 400, covariance="sparse")


def plain_diagonal():
    return limits(3, 400, covariance="diagonal", standard_errors=False)


def on_disk():
    X, rule, options = limits(3, 600)
    # Less than the tables take: 1000 bytes beyond what the process holds are set below.
    return in_pieces(X), rule, {**options, "memory": "4GB"}


def far_start():
    """Steps that are taken back, and curvature that is remembered."""
    return limits(3, 100, start=hs.Gaussian([5.0, -5.0, 0.0], 4.0 * np.eye(3)))


def on_log_scale():
    X, _, _ = limits(2, 500)
    return np.exp(X), hs.DetectionLimits(lower=np.exp(-0.3)), {"transforms": "log"}


KINDS = {
    "limits": limits,
    "several starts": lambda: several_tops(2),
    "trial starts": thresholds,
    "trial starts in pieces": lambda: thresholds(pieces=True),
    "penalty chosen": sparse,
    "penalty chosen in pieces": lambda: (in_pieces(limits(4, 400)[0]), *sparse()[1:]),
    "known correlation": lambda: limits(3, 500, correlation=truth(3).covariance),
    "known mean and covariance": lambda: limits(2, 500, mean=[0.0, 0.0], covariance=truth(2).covariance),
    "too few steps": lambda: limits(3, 600, most_steps=4),
    "without standard errors": lambda: limits(3, 600, standard_errors=False),
    "many steps": lambda: far_start(),
    "shrinkage": lambda: limits(6, 200, covariance="shrinkage"),
    "diagonal without standard errors": plain_diagonal,
    "nothing hidden": lambda: (truth(2).sample(50, np.random.default_rng(0)), None, {}),
    "pieces on disk": on_disk,
    "transforms": on_log_scale,
    "a start": lambda: limits(2, 400, start=hs.Gaussian([0.2, 0.1], np.eye(2))),
}  # fmt: skip


def run(kind, **more):
    X, rule, options = KINDS[kind]()
    with warnings.catch_warnings():
        # Some are stopped by most_steps: fast, and something to write down as well.
        warnings.simplefilter("ignore", hs.errors.ConvergenceWarning)
        return hs.fit(X, rule, "full", **{"random_state": 5, **options, **more})


@functools.cache
def reference(kind):
    """Everything of a run that was never stopped."""
    return everything(run(kind))


@pytest.fixture
def steps(monkeypatch):
    """Count steps of climbs that are written down, and stop in the middle of one when told to."""

    class Steps:
        made, last = 0, None

    take = Ascent.step

    def step(self, state):
        # First climbs on some of the rows are short, and made again by a run that is resumed.
        if self.climb_only and self.steps == learn.TRIAL_STEPS:
            return take(self, state)
        if Steps.made == Steps.last:
            # What a step does to a state before it is stopped must not matter.
            take(self, state)
            raise Stopped
        Steps.made += 1
        return take(self, state)

    monkeypatch.setattr(Ascent, "step", step)
    return Steps


def remember_trials(patch):
    """Make first climbs, which no checkpoint holds, once for all runs."""
    climb, made = learn.climb, {}

    def remembered(rows, m_step, start, settings, climb_only=False, **guide):
        key = settings.most_steps, *(part.tobytes() for part in start)
        if settings.most_steps != learn.TRIAL_STEPS or key not in made:
            made[key] = climb(rows, m_step, start, settings, climb_only, **guide)
        return made[key]

    patch.setattr(learn, "climb", remembered)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_when_it_is_stopped_after_every_step(kind, tmp_path, steps, monkeypatch):
    if kind == "pieces on disk":
        monkeypatch.setattr("halfseen.scaling.sources.budget", lambda *given: 1000)
    never_stopped = everything(run(kind))
    total, path = steps.made, tmp_path / "c"
    steps.made = 0
    with monkeypatch.context() as patch:
        remember_trials(patch)
        for stop in range(1, total):
            steps.last = stop
            # The seed is in the checkpoint; the number of threads may change.
            how = {"random_state": None} if path.exists() else {}
            with pytest.raises(Stopped):
                run(kind, checkpoint=path, every=0, resume=True, n_jobs=1 + stop % 2, **how)
            assert steps.made == stop
    steps.last = None
    assert everything(run(kind, checkpoint=path, every=0, resume=True)) == never_stopped
    assert steps.made == total
    # From its end nothing is left to be done; the answer is the same.
    assert everything(run(kind, checkpoint=path, every=0, resume=True)) == never_stopped
    assert steps.made == total
    assert [one.name for one in tmp_path.iterdir()] == ["c"]


def test_every_phase_is_stopped_in(tmp_path):
    """What is compared above has all of them, several climbs, and steps that were taken back."""
    phases, climbs = set(), {}
    for kind in ("limits", "penalty chosen", "several starts", "many steps"):
        run(kind, checkpoint=tmp_path / kind)
        with read_archive(tmp_path / kind, module.FORMAT, module.VERSION) as found:
            told = found.content["climbs"]
        climbs[kind] = len(told)
        phases.update(phase for one in told for phase in one["phases"])
    assert phases == set(module._PHASES)
    assert climbs["limits"] == 1
    assert climbs["penalty chosen"] > 2
    assert climbs["several starts"] == 4


@pytest.mark.parametrize("part", ["pairs", "scores", "information"])
def test_without_a_part_of_the_state_the_answer_is_another(part, tmp_path, steps, monkeypatch):
    """What is compared above would tell: a part that is not restored changes bits."""
    kind = "many steps"
    never_stopped = everything(run(kind))
    total, differ = steps.made, []
    for stop in (total // 2, total - 2, total - 1):
        path = tmp_path / str(stop)
        steps.made, steps.last = 0, stop
        with pytest.raises(Stopped):
            run(kind, checkpoint=path, every=0)
        steps.last = None
        read = module._read_record

        def forgetful(*given, read=read):
            record = read(*given)
            default = State(record.state.mean, record.state.covariance)
            setattr(record.state, part, getattr(default, part))
            return record

        with monkeypatch.context() as patch:
            patch.setattr(module, "_read_record", forgetful)
            again = run(kind, checkpoint=path, every=0, resume=True)
        differ.append(everything(again) != never_stopped)
    assert any(differ)


def test_every_part_of_a_state_comes_back(tmp_path, rng):
    """Some parts keep their defaults in most runs: their loss would go unnoticed above."""
    d, q = 3, 9
    place = rng.normal(size=d), np.diag(rng.uniform(1.0, 2.0, d))
    chart = Chart(MStep(Free()), *place, 40)
    parts = [rng.normal(size=(q, q)), *rng.normal(size=(3, q))]
    state = State(
        mean=rng.normal(size=d), covariance=np.diag(rng.uniform(1.0, 2.0, d)), phase="averaging",
        value=-3.0, moments=Moments(rng.normal(size=d), rng.normal(size=(d, d))),
        origin=(rng.normal(size=d), np.diag(rng.uniform(1.0, 2.0, d))), score=rng.normal(size=q),
        direction=rng.normal(size=q), length=0.3, tries=2,
        pairs=[(rng.normal(size=q), rng.normal(size=q))] * 2, information=Information(chart, *parts),
        scores=[rng.normal(size=q)] * 4, gain=0.2, ratio=0.6, stuck=True, climbed=[0.4, 0.1],
        noise=0.1, points=7, order=(rng.normal(size=d), np.diag(rng.uniform(1.0, 2.0, d))),
    )  # fmt: skip
    default = State(state.mean, state.covariance)
    for field in dataclasses.fields(State)[2:]:
        assert plain(getattr(state, field.name)) != plain(getattr(default, field.name))
    numbers = {"value": -np.inf, "gain": np.inf, "ratio": 0.3}
    history = [{"mean": rng.normal(size=d), "phase": "settling", **numbers}] * 4
    record = module.Record(state, history, True)
    arrays = {f"climb0.{name}": array for name, array in module._arrays_of(record).items()}
    write_archive(tmp_path / "c", "x", 1, {"told": module._plain_part(record)}, arrays)
    same = module.Run({"shape": [40, d]}, chart.m_step)
    with read_archive(tmp_path / "c", "x", 1) as found:
        again = module._read_record(found, 0, found.content["told"], same)
    assert plain(again) == plain(record)


class TestWhen:
    def test_every_is_in_seconds(self, tmp_path, monkeypatch):
        moments = []
        write = module.Checkpoint.write

        def noted(self, *given):
            moments.append(time.monotonic())
            write(self, *given)

        monkeypatch.setattr(module.Checkpoint, "write", noted)
        run("limits", checkpoint=tmp_path / "c")
        assert len(moments) == 1, "with a minute between, only the end is written"
        moments.clear()
        run("several starts", checkpoint=tmp_path / "d", every=0.02)
        # The ends of all four climbs are written in any case.
        short = sum(b - a < 0.02 for a, b in itertools.pairwise(moments))
        assert short <= 4

    def test_a_generator_gives_the_seed_before(self, tmp_path, steps):
        never_stopped = everything(run("limits", random_state=np.random.default_rng(8)))
        steps.made, steps.last = 0, 3
        how = {"checkpoint": tmp_path / "c", "every": 0}
        with pytest.raises(Stopped):
            run("limits", random_state=np.random.default_rng(8), **how)
        steps.last = None
        assert everything(run("limits", random_state=None, resume=True, **how)) == never_stopped

    def test_resume_starts_where_there_is_nothing_to_go_on_from(self, tmp_path):
        fit = run("limits", checkpoint=tmp_path / "c", resume=True)
        assert everything(fit) == reference("limits")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A checkpoint of "limits" two steps before its end, at the top: all that a climb has is there."""
    path, take, made = tmp_path_factory.mktemp("stopped") / "c", Ascent.step, []
    last = run("limits").history["steps"] - 2

    def step(self, state):
        made.append(1)
        if len(made) > last:
            raise Stopped
        return take(self, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Ascent, "step", step)
        with pytest.raises(Stopped):
            run("limits", checkpoint=path, every=0)
    return path


@pytest.fixture
def checkpoint(stopped, tmp_path):
    return Path(shutil.copy(stopped, tmp_path / "c"))


def resumed(path, X=None, rule=None, **options):
    table, stated, _ = limits()
    how = {"random_state": 5, "checkpoint": path, "resume": True, **options}
    return hs.fit(table if X is None else X, stated if rule is None else rule, "full", **how)


class TestRefusals:
    def swapped(self):
        X = limits()[0]
        X[[0, 1]] = X[[1, 0]]
        return X

    def changed(self):
        X = limits()[0]
        row = np.flatnonzero(~np.isnan(X[:, 0]))[0]
        X[row, 0] = np.nextafter(X[row, 0], np.inf)
        return X

    TABLE = r"checkpoint of another run: of another table, or another rule\. Repeat the call"

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda self: {"X": self.swapped()}, TABLE),
            (lambda self: {"X": self.changed()}, TABLE),
            (lambda self: {"rule": hs.DetectionLimits(lower=-0.31)}, TABLE),
            (lambda self: {"rule": hs.SelfCensoring(hs.everything)}, TABLE),
            (lambda self: {"X": limits(3, 601)[0]}, r"of a table of another shape\. Repeat"),
            (lambda self: {"X": limits(2, 600)[0]}, r"of a table of another shape\. Repeat"),
            (lambda self: {"names": ["a", "b", "c"]}, r"of a table with other columns\. Repeat"),
            (lambda self: {"random_state": 6}, r"of another random_state\. Repeat"),
            (lambda self: {"covariance": "diagonal"}, r"of other options \(covariance, corr"),
            (lambda self: {"mean": [0.0, 0.0, 0.0]}, "of other options"),
            (lambda self: {"start": truth(3)}, "of other options"),
            (lambda self: {"accuracy": 0.2}, r"of another accuracy\."),
            (lambda self: {"most_steps": 7}, r"of another most_steps\."),
            (lambda self: {"standard_errors": False}, r"of another standard_errors\."),
            (
                lambda self: {"random_state": 6, "accuracy": 0.2},
                r"of another random_state, another accuracy\.",
            ),
        ],
    )
    def test_another_run(self, checkpoint, change, message):
        before = checkpoint.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hs.errors.AssumptionWarning)
            with pytest.raises(ArchiveError, match=message):
                resumed(checkpoint, **change(self))
        assert checkpoint.read_bytes() == before

    def test_another_version(self, checkpoint, monkeypatch):
        monkeypatch.setattr(module, "__version__", "0.0.9")
        with pytest.raises(ArchiveError, match="of another version of halfseen"):
            resumed(checkpoint)

    def test_a_newer_format(self, checkpoint, monkeypatch):
        told = rf"written by a newer halfseen \(format {module.VERSION}, this one reads 0\)"
        monkeypatch.setattr(module, "VERSION", 0)
        with pytest.raises(ArchiveError, match=told):
            resumed(checkpoint)

    def test_a_saved_fit(self, tmp_path):
        path = tmp_path / "fit"
        resumed(tmp_path / "c").save(path)
        with pytest.raises(
            ArchiveError, match=r"halfseen fit.*halfseen checkpoint|halfseen checkp"
        ):
            resumed(path)

    @pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04", bytes(1000)])
    def test_garbage(self, tmp_path, content):
        path = tmp_path / "c"
        path.write_bytes(content)
        with pytest.raises(ArchiveError, match="checkpoint"):
            resumed(path)
        assert path.read_bytes() == content

    def test_cut_short_or_longer(self, checkpoint):
        whole = checkpoint.read_bytes()
        for size in (*range(0, len(whole), len(whole) // 40), len(whole) - 1):
            checkpoint.write_bytes(whole[:size])
            with pytest.raises(ArchiveError):
                resumed(checkpoint)
        checkpoint.write_bytes(whole + b"\0")
        with pytest.raises(ArchiveError):
            resumed(checkpoint)

    def test_one_bit_anywhere(self, checkpoint, rng):
        whole = checkpoint.read_bytes()
        for place in rng.integers(len(whole), size=60):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << int(rng.integers(8))
            checkpoint.write_bytes(damaged)
            with pytest.raises(ArchiveError):
                resumed(checkpoint)

    def test_what_is_there_is_not_written_over(self, checkpoint):
        before = checkpoint.read_bytes()
        with pytest.raises(hs.InputError, match=r"is there already. Pass resume=True to go on"):
            resumed(checkpoint, resume=False)
        assert checkpoint.read_bytes() == before

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"checkpoint": "nowhere/c"},
                "no checkpoint can be written to nowhere/c: there is no folder",
            ),
            ({"checkpoint": "."}, "is a folder"),
            ({"checkpoint": 3}, "checkpoint must be the path of a file; got 3"),
            ({"checkpoint": None}, "resume=True needs to know from where"),
            ({"resume": "yes"}, "resume must be True or False; got 'yes'"),
            ({"every": -1.0}, "every must be a number of seconds, at least 0; got -1.0"),
            ({"every": np.nan}, "every must be a number of seconds"),
            ({"every": np.inf}, "every must be a number of seconds"),
            ({"every": "10"}, "every must be a number of seconds"),
            ({"every": True}, "every must be a number of seconds"),
        ],
    )
    def test_what_cannot_be_meant(self, tmp_path, monkeypatch, options, message):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(hs.InputError, match=message):
            resumed(**{"path": "c", **options})
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("method", ["pairwise", "truncation"])
    def test_methods_without_checkpoints(self, tmp_path, method):
        X, rule, _ = limits()
        with pytest.raises(hs.InputError, match="does not take the option 'checkpoint'"):
            hs.fit(X, rule, method, checkpoint=tmp_path / "c")


@pytest.fixture(scope="module")
def right_away(stopped, tmp_path_factory):
    """Resume where a fit does so, which it comes to after reading the table."""
    runs, take_up = [], module.Checkpoint.for_run
    path = shutil.copy(stopped, tmp_path_factory.mktemp("run") / "c")

    def noted(self, run):
        runs.append(run)
        return take_up(self, run)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module.Checkpoint, "for_run", noted)
        resumed(path)
    return lambda path: module.open_checkpoint(path, 0, True).for_run(*runs)


def through_fit(path):
    return resumed(path, random_state=None)


class TestCrafted:
    """Archives that are whole, but that no run wrote."""

    def craft(self, path, change, resume=through_fit):
        with read_archive(path, module.FORMAT, module.VERSION) as old:
            content, arrays = old.content, dict(old.arrays())
        change(content, arrays)
        write_archive(path, module.FORMAT, module.VERSION, content, arrays)
        with pytest.raises(ArchiveError, match="is not a checkpoint that halfseen wrote") as told:
            resume(path)
        return str(told.value)

    def test_what_is_written_back_as_it_was_goes_on(self, checkpoint):
        with read_archive(checkpoint, module.FORMAT, module.VERSION) as old:
            content, arrays = old.content, dict(old.arrays())
        before = checkpoint.read_bytes()
        write_archive(checkpoint, module.FORMAT, module.VERSION, content, arrays)
        assert checkpoint.read_bytes() == before
        assert everything(resumed(checkpoint)) == reference("limits")

    def test_every_array_missing_too_long_of_another_type(self, checkpoint, tmp_path, right_away):
        with read_archive(checkpoint, module.FORMAT, module.VERSION) as old:
            names = old.names
        changes = [
            lambda arrays, name: arrays.pop(name),
            lambda arrays, name: arrays.update({name: arrays[name].astype("f4")}),
            lambda arrays, name: arrays.update({name: arrays[name][..., None]}),
            lambda arrays, name: arrays.update(
                {name: np.concatenate([arrays[name], arrays[name]], axis=-1)}
            ),
        ]
        tried = 0
        for name in names:
            # The gains of fewer steps may be those of more.
            for change in changes[: 3 if name == "climb0.climbed" else 4]:
                path = shutil.copy(checkpoint, tmp_path / "crafted")
                self.craft(path, lambda _, arrays, n=name, c=change: c(arrays, n), right_away)
                tried += 1
        assert tried == 4 * len(module._SHAPES) - 1

    @pytest.mark.parametrize(
        "change",
        [
            lambda c, a: c.pop("run"),
            lambda c, a: c["run"].pop("seed"),
            lambda c, a: c["run"].update(seed="5"),
            lambda c, a: c["run"].update(seed=-1),
            lambda c, a: c.pop("climbs"),
            lambda c, a: c["climbs"].clear(),
            lambda c, a: c.update(climbs={}),
            lambda c, a: c["climbs"].insert(0, c["climbs"][0]),
            lambda c, a: c["climbs"].append(7),
            lambda c, a: c["climbs"][0].pop("state"),
            lambda c, a: c["climbs"][0]["state"].update(phase="resting"),
            lambda c, a: c["climbs"][0]["state"].update(tries=1.5),
            lambda c, a: c["climbs"][0]["state"].update(stuck=1),
            lambda c, a: c["climbs"][0]["state"].update(length="1"),
            lambda c, a: c["climbs"][0]["state"].update(ratio=None),
            lambda c, a: c["climbs"][0]["state"].update(ratio=10**400),
            lambda c, a: c["climbs"][0].update(ended=0),
            lambda c, a: c["climbs"][0]["phases"].pop(),
            lambda c, a: a.update({"climb0.mean": np.array([0.0, np.nan, 0.0])}),
            lambda c, a: a.update({"climb0.covariance": -np.eye(3)}),
            lambda c, a: a.update({"climb0.origin.covariance": -np.eye(3)}),
            lambda c, a: a.update({"climb0.climbed": np.zeros(9)}),
            lambda c, a: a.update({"climb0.other": np.zeros(3)}),
            lambda c, a: [a.pop(f"climb0.origin.{part}") for part in ("mean", "covariance")],
            lambda c, a: [a.pop(f"climb0.moments.{part}") for part in ("first", "second")],
        ],
    )
    def test_what_no_run_writes(self, checkpoint, change):
        self.craft(checkpoint, change)

    def test_climbs_of_fewer_columns(self, checkpoint, tmp_path, steps):
        small, steps.last = tmp_path / "small", 2
        X, rule, _ = limits(2, 600)
        with pytest.raises(Stopped):
            hs.fit(X, rule, "full", random_state=5, checkpoint=small, every=0)
        steps.last = None
        with read_archive(small, module.FORMAT, module.VERSION) as other:
            theirs = dict(other.arrays())

        def swap(content, arrays):
            arrays.clear()
            arrays.update(theirs)

        assert "has shape (2,)" in self.craft(checkpoint, swap)

    def test_other_pieces(self, tmp_path, steps):
        """Other pieces are another table: sums are taken piece by piece."""
        path, steps.last = tmp_path / "c", 3
        X, rule, _ = limits()
        how = {"random_state": 5, "checkpoint": path, "every": 0, "resume": True}
        with pytest.raises(Stopped):
            hs.fit(in_pieces(X), rule, "full", **how)
        steps.last = None
        with pytest.raises(ArchiveError, match="another table"):
            hs.fit(in_pieces(X, 200), rule, "full", **how)


class TestDiskIsFull:
    @pytest.mark.parametrize("where", ["write", "fsync"])
    def test_it_is_said_and_what_was_written_stays_whole(self, checkpoint, monkeypatch, where):
        before = checkpoint.read_bytes()

        def full(*given):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        if where == "fsync":
            monkeypatch.setattr(files.os, "fsync", full)
        else:
            monkeypatch.setattr(archive, "_write_member", full)
        message = (
            r"c cannot be written: No space left on device. One that was written before is whole"
        )
        with pytest.raises(hs.InputError, match=message):
            resumed(checkpoint, every=0)
        monkeypatch.undo()
        assert checkpoint.read_bytes() == before
        assert [one.name for one in checkpoint.parent.iterdir()] == ["c"]
        assert everything(resumed(checkpoint)) == reference("limits")

    def test_at_the_end_the_answer_is_not_lost(self, checkpoint, monkeypatch):
        before = checkpoint.read_bytes()

        def full(*given):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(archive, "_write_member", full)
        with pytest.warns(hs.errors.HalfseenWarning, match="cannot be written: No space left"):
            fit = resumed(checkpoint)
        monkeypatch.undo()
        assert everything(fit) == reference("limits")
        assert checkpoint.read_bytes() == before


class TestLeftBehind:
    def test_a_part_that_is_taken_for_one_is_made_again(self, tmp_path, monkeypatch):
        made = []
        make = files.tempfile.mkstemp

        def robbed(**how):
            handle, name = make(**how)
            made.append(name)
            if len(made) == 1:
                files.remove_left_behind(tmp_path)
                assert not Path(name).exists()
            return handle, name

        monkeypatch.setattr(files.tempfile, "mkstemp", robbed)
        files.write_text_whole(tmp_path / "c", "text")
        assert len(made) == 2
        assert (tmp_path / "c").read_text() == "text"


class TestCommandLine:
    SCRIPT = """
import os, signal, sys
from halfseen.solvers.full_information.ascent import Ascent
from halfseen.cli import app
take, made = Ascent.step, []
def step(self, state):
    made.append(1)
    if len(made) == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGINT)
    return take(self, state)
Ascent.step = step
app(sys.argv[2:], prog_name="halfseen")
"""

    def interrupted(self, folder, step, *words):
        """Run a command in a process of its own, which presses Ctrl-C in the middle of a step."""
        done = subprocess.run(
            [sys.executable, "-c", self.SCRIPT, str(step), *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="interrupts of POSIX")
    def test_an_interrupted_fit_is_resumed(self, tmp_path, monkeypatch):
        X, _, _ = limits(2, 300)
        rows = [",".join("" if np.isnan(x) else repr(float(x)) for x in row) for row in X]
        (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows]) + "\n")
        words = ["fit", "t.csv", "--seen", "a, b: >=-0.3", "--seed", "3", "--output"]
        monkeypatch.chdir(tmp_path)
        halfseen = functools.partial(CliRunner().invoke, app)
        assert halfseen([*words, "whole.json"]).exit_code == 0
        kept = [*words, "part.json", "--checkpoint", "c", "--every", "0"]
        code, _, err = self.interrupted(tmp_path, 2, *kept)
        assert code == 130, err
        assert "press Ctrl-C again to stop at once" in err
        told = " ".join(err.split())
        assert "interrupted after 2 steps; c has the state, and --resume goes on" in told
        assert not (tmp_path / "part.json").exists()
        refused = halfseen(kept)
        assert refused.exit_code == 2
        assert "--resume" in refused.stderr
        done = halfseen([*kept, "--resume"])
        assert done.exit_code == 0, done.stderr
        whole, part = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("whole", "part"))
        assert part == whole
