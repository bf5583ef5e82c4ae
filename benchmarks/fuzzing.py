"""Fuzzing of whatever reads files and texts that others wrote: only our own errors may come out.

Each reader is fuzzed twice: by libFuzzer (atheris), which changes bytes and keeps those that reach new
code, and by hypothesis, which knows the grammar. Both run in a process of their own, whose memory is
limited, so that an input that asks for more is a finding like any other.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.registry import Row, task

SEED = 20240501
# Memory that a process may take beyond what it has after its imports.
ROOM = 2**30
# An input that takes longer hangs.
MOST_SECONDS = 10.0
# Bytes of an input of libFuzzer; saved fits of two columns have some thousands.
LONGEST = {"table": 1_000, "limits": 500, "rule": 500, "fit": 12_000, "gaussian": 500}
# Inputs of libFuzzer and of hypothesis for each reader.
RUNS = {
    "table": (40_000, 8_000),
    "limits": (10_000, 3_000),
    "rule": (30_000, 10_000),
    "fit": (10_000, 4_000),
    "gaussian": (10_000, 2_000),
    "content": (0, 4_000),
}
FEWEST = 100_000
# Findings that a row shows.
SHOWN = 3
# What libFuzzer watches; the kernels are compiled, and take no part in reading.
WATCHED = (
    *("halfseen.data", "halfseen.missingness.grammar", "halfseen.missingness.rule_parts"),
    *("halfseen.missingness.named_rules", "halfseen.missingness.written", "halfseen.archive"),
    *("halfseen.archive", "halfseen.solvers.saving", "halfseen.gaussian"),
)
WHAT = {
    "table": "read_csv",
    "limits": "read_limits",
    "rule": "rules, matched and used",
    "fit": "load of a damaged file",
    "gaussian": "Gaussian.load",
    "content": "load of other content under good checksums",
}


@task
def fuzzing(quick: bool) -> Iterator[Row]:
    share = 0.02 if quick else 1.0
    inputs, findings, watched = 0, 0, 0
    guided = importlib.util.find_spec("atheris") is not None
    for reader, counts in RUNS.items():
        for engine, count in zip(("libFuzzer", "hypothesis"), counts, strict=True):
            runs = int(share * count)
            if not runs or (engine == "libFuzzer" and not guided):
                continue
            found = _in_a_process(engine, reader, runs)
            inputs += found["inputs"]
            watched += found["inputs"] if engine == "libFuzzer" else 0
            findings += len(found["findings"])
            yield _row(f"{WHAT[reader]}, {engine}", found, runs)
    if not guided:
        yield Row("coverage-guided part", "not run: atheris is not installed here", "")
    wanted = int(share * FEWEST)
    met: bool | None = inputs >= wanted and not findings
    if not guided and not findings:
        # Too few, but not for a reason that lies in the code.
        met = None
    yield Row(
        "inputs in all",
        f"{inputs}, of which {watched} guided by coverage; {findings} findings",
        f"at least {wanted}, no findings",
        met,
    )


def _row(what: str, found: dict[str, Any], runs: int) -> Row:
    told = ", ".join(f"{count} {name}" for name, count in found["outcomes"].items())
    shown = "; ".join(found["findings"][:SHOWN]) or "no findings"
    measured = (
        f"{found['inputs']} inputs ({told}), {found['inputs'] / found['seconds']:.0f} a second, "
        f"slowest {found['slowest']:.2f} s, memory at most {found['memory'] / 2**20:.0f} MiB more; "
        f"{shown}"
    )
    met = found["inputs"] >= runs and not found["findings"]
    target = f"no findings; {ROOM // 2**20} MiB and {MOST_SECONDS:.0f} s at most"
    return Row(what, measured.replace("|", "¦"), target, met)


def _in_a_process(engine: str, reader: str, runs: int) -> dict[str, Any]:
    """Fuzz one reader in a process of its own; a crash or a hang is a finding."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        if engine == "libFuzzer":
            # Made here: what is watched cannot be compiled, and saved fits come from fits.
            Path(folder, "corpus").mkdir()
            for k, seed in enumerate(_seeds(reader)):
                Path(folder, "corpus", str(k)).write_bytes(seed)
            Path(folder, "words").write_text(_dictionary(reader), encoding="ascii")
        words = [sys.executable, "-m", "benchmarks.fuzzing", engine, reader, str(runs), folder]
        done = subprocess.run(
            words, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        empty = {"inputs": 0, "outcomes": {}, "findings": [], "seconds": 1.0, "slowest": 0.0}
        found = json.loads(result.read_text()) if result.exists() else {**empty, "memory": 0}
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
            found["findings"].append(f"the process ended with {done.returncode}: {last[:200]}")
        return found


class Tally:
    """Counts what comes out, and keeps the first input of each finding."""

    def __init__(self, folder: str, runs: int) -> None:
        self.path, self.runs = Path(folder, "result.json"), runs
        self.inputs, self.slowest = 0, 0.0
        self.outcomes: Counter[str] = Counter()
        self.findings: dict[str, str] = {}
        self.started = time.perf_counter()
        self.memory = _memory("VmHWM")

    def feed(self, work: Callable[..., str], *arguments: Any) -> None:
        """Run one input."""
        self.inputs += 1
        start = time.perf_counter()
        try:
            self.outcomes[work(*arguments)] += 1
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            self.outcomes["FINDINGS"] += 1
            self.findings.setdefault(
                f"{type(error).__name__} at {where}", f"{error!s:.100} from {arguments!r:.300}"
            )
        self.slowest = max(self.slowest, time.perf_counter() - start)
        # libFuzzer ends the process itself.
        if self.inputs % 1000 == 0 or self.inputs >= self.runs:
            self.write()

    def write(self) -> None:
        """Keep what is known so far."""
        findings = [f"{kind}: {example}" for kind, example in self.findings.items()]
        if self.slowest > MOST_SECONDS:
            findings.append(f"an input took {self.slowest:.1f} s")
        told = {
            "inputs": self.inputs,
            "outcomes": dict(self.outcomes.most_common()),
            "findings": findings,
            "seconds": time.perf_counter() - self.started,
            "slowest": self.slowest,
            "memory": _memory("VmHWM") - self.memory,
        }
        self.path.write_text(json.dumps(told), encoding="utf-8")


def _memory(what: str) -> int:
    """Bytes that this process has, as Linux tells it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    line = next(line for line in lines if line.startswith(what))
    return int(line.split()[1]) * 1024


def _limit_memory() -> None:
    most = _memory("VmSize") + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _readers() -> dict[str, Callable[[bytes], str]]:
    """Return what is done with bytes, by reader; the first one chooses the options."""
    from tests.fuzz import targets

    import halfseen as hs

    def table(content: bytes) -> str:
        options = targets.TABLE_OPTIONS[content[0] % len(targets.TABLE_OPTIONS)]
        return targets.outcome(targets.read_table, content[1:], options)

    def limits(content: bytes) -> str:
        options = targets.LIMITS_OPTIONS[content[0] % len(targets.LIMITS_OPTIONS)]
        return targets.outcome(targets.read_limits, content[1:], options)

    def rule(content: bytes) -> str:
        columns = targets.NAMES if content[0] % 2 else None
        text = content[1:].decode("utf-8", "surrogateescape")
        told: Any = text.split("\n") if content[0] % 4 > 1 else text
        return targets.outcome(targets.use_rule, told, columns)

    def fit(content: bytes) -> str:
        return targets.outcome(targets.load_saved, content, hs.load)

    def gaussian(content: bytes) -> str:
        return targets.outcome(targets.load_saved, content, hs.Gaussian.load)

    return {"table": table, "limits": limits, "rule": rule, "fit": fit, "gaussian": gaussian}


def _seeds(reader: str) -> list[bytes]:
    """Return good inputs, from which libFuzzer begins."""
    from tests.fuzz import targets

    if reader in ("fit", "gaussian"):
        return targets.saved_originals()[reader]
    return {
        "table": [
            b"\x00lead,zinc\n0.3,<5\nND,>100\n",
            b"\x02lead,lead_flag,zinc_lower,zinc_upper\n0.3,U,1,2\n0.1,,,3\n",
            b'\x03"lead";"zinc"\r\n"1,5";"0,2..0,5"\r\n',
            b"\x00sep=;\na;b\n1 U;3 J\n",
        ],
        "limits": [
            b"\x00column,lower,upper\nlead,0.1,\nzinc,,9\n",
            b"\x02site,lead,zinc_upper\nB,0.1,\nA,,9\nC,1,2\n",
        ],
        "rule": [
            b'\x01lead: 0..1 | >= 3\n"PM-10": lead - 2*zinc >= 1e2',
            b"\x00lead, zinc: largest",
            b"\x02hours: 0 < hours <= 5\nzinc: always",
        ],
    }[reader]


def _dictionary(reader: str) -> str:
    """Return the words of a grammar, as libFuzzer reads them."""
    from tests.fuzz import inputs

    words = {
        "table": (*inputs.COLUMN_NAMES, *inputs.CELLS, "sep=;\n", '"', ",", ";"),
        "limits": ("column", "lower", "upper", "lead", "zinc", "site", *inputs.LIMITS_CELLS),
        "rule": (*inputs.WORDS, *inputs.NUMBERS),
    }.get(reader, inputs.TOKENS)
    lines = []
    for word in words:
        content = word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass")
        # Longer ones are not taken by libFuzzer.
        if 0 < len(content) <= 64:
            lines.append('"' + "".join(f"\\x{byte:02x}" for byte in content) + '"')
    return "\n".join(lines) + "\n"


def _unwatched() -> list[str]:
    """Return the modules of halfseen that are not watched, without importing them."""
    found = importlib.util.find_spec("halfseen")
    assert found is not None
    assert found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    files = (path.relative_to(root.parent).with_suffix("") for path in root.rglob("*.py"))
    modules = (".".join(path.parts).removesuffix(".__init__") for path in files)
    return [name for name in modules if not name.startswith(WATCHED)]


def _libfuzzer(reader: str, runs: int, folder: str) -> None:
    """Let libFuzzer look for inputs that reach new code."""
    import atheris

    with atheris.instrument_imports(include=["halfseen"], exclude=_unwatched()):
        from tests.fuzz import targets  # noqa: F401

        import halfseen  # noqa: F401 - imported here, so that it is watched

    read = _readers()[reader]
    tally = Tally(folder, runs)
    _limit_memory()

    def one_input(content: bytes) -> None:
        tally.feed(read, content or b"\x00")

    limits = [f"-runs={runs}", f"-max_len={LONGEST[reader]}", f"-timeout={MOST_SECONDS:.0f}"]
    # The memory is limited above; libFuzzer would count what the imports took.
    quiet = ["-verbosity=0", "-rss_limit_mb=0", f"-artifact_prefix={folder}/"]
    atheris.Setup(
        ["fuzzing", *limits, f"-seed={SEED}", *quiet, f"-dict={folder}/words", f"{folder}/corpus"],
        one_input,
    )
    atheris.Fuzz()


def _hypothesis(reader: str, runs: int, folder: str) -> None:
    """Draw inputs that follow the grammar, or nearly do."""
    from hypothesis import Phase, given, seed, settings
    from hypothesis import strategies as st
    from tests.fuzz import inputs, targets

    import halfseen as hs

    def saved(kind: str) -> st.SearchStrategy[bytes]:
        return inputs.saved_files(targets.saved_originals()[kind])

    def contents() -> st.SearchStrategy[Any]:
        return inputs.rewritten([*map(targets.contents_of, targets.saved_originals()["fit"])])

    tables = st.tuples(inputs.csv_files(), st.sampled_from(targets.TABLE_OPTIONS))
    limits = st.tuples(inputs.limits_files(), st.sampled_from(targets.LIMITS_OPTIONS))
    drawn: dict[str, Callable[[], tuple[Any, st.SearchStrategy[Any]]]] = {
        "table": lambda: (targets.read_table, tables),
        "limits": lambda: (targets.read_limits, limits),
        "rule": lambda: (targets.use_rule, st.tuples(inputs.told_rules(), inputs.told_columns())),
        "fit": lambda: (targets.load_saved, st.tuples(saved("fit"), st.just(hs.load))),
        "gaussian": lambda: (
            targets.load_saved,
            st.tuples(saved("gaussian"), st.just(hs.Gaussian.load)),
        ),
        "content": lambda: (targets.load_rewritten, contents()),
    }
    work, strategy = drawn[reader]()
    tally = Tally(folder, runs)
    _limit_memory()

    # Not derandomised: that would draw what the tests have drawn.
    @seed(SEED)
    @settings(inputs.examples(runs), derandomize=False, phases=[Phase.generate])
    @given(strategy)
    def draw(arguments: tuple[Any, ...]) -> None:
        tally.feed(targets.outcome, work, *arguments)

    draw()
    tally.write()


if __name__ == "__main__":
    engine, reader, runs, folder = sys.argv[1:]
    {"libFuzzer": _libfuzzer, "hypothesis": _hypothesis}[engine](reader, int(runs), folder)
