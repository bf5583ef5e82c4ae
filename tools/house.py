"""Measure the house: files, lines of code, how modules import each other, what calls cross.

Run ``python tools/house.py`` for what the source says, ``python tools/house.py --calls`` to run three
calls too, and count the modules that each crosses, and how often tables are read and rules matched
with their columns. Lines of code are those that are neither blank nor
comment nor docstring; imports inside functions count like others, those for type checkers do not, nor
does it that a package runs before its modules.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tempfile
import tokenize
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = "halfseen"
# What should run once in a call: a table is read, and a rule matched with its columns.
ONCE = ("read_table", "for_columns")
# Tokens that are no code.
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER, tokenize.ENCODING,
}  # fmt: skip


def modules() -> dict[str, Path]:
    """Return the files of the package by the names of their modules."""
    found = {}
    for path in sorted((SOURCE / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def lines_of_code(path: Path) -> int:
    """Count lines with code on them."""
    text = path.read_text(encoding="utf-8")
    code = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            text_alone = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if text_alone and isinstance(first.value.value, str):
                code.difference_update(range(first.lineno, first.end_lineno + 1))
    return len(code)


def imports(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules of the package that a file imports, at once or later."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {name for node in nodes(tree) for name in _named(node, known)}


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes of a tree, but for what only type checkers import."""
    for child in ast.iter_child_nodes(node):
        typing = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test)
        if not typing:
            yield child
            yield from nodes(child)


def _named(node: ast.AST, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name in known)
    elif isinstance(node, ast.ImportFrom) and node.module in known:
        for name in node.names:
            inner = f"{node.module}.{name.name}"
            yield inner if inner in known else str(node.module)


def knots(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return groups of modules that import each other in a circle (Tarjan 1972)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = low[name] = len(number)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in number:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], number[other])
        if low[name] == number[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return found


def longest_chain(graph: dict[str, set[str]]) -> list[str]:
    """Return the longest chain of imports, in which a knot counts as one module."""
    group = {name: tuple(knot) for knot in knots(graph) for name in knot}
    whole = {name: group.get(name, (name,)) for name in graph}
    chains: dict[tuple[str, ...], list[str]] = {}

    def chain(one: tuple[str, ...]) -> list[str]:
        if one not in chains:
            below = {whole[other] for name in one for other in graph[name]} - {one}
            longest = max((chain(other) for other in sorted(below)), key=len, default=[])
            chains[one] = [one[0] if len(one) == 1 else f"a knot of {len(one)}", *longest]
        return chains[one]

    return max((chain(one) for one in sorted(set(whole.values()))), key=len)


def crossed(call: Callable[[], object]) -> tuple[int, int, dict[str, int]]:
    """Return how many modules of the package a call enters, and between how many pairs it steps.

    And how often the functions of ``ONCE`` run. A rule that asks its base class, or its parts, is one.
    """
    entered: set[str] = set()
    steps: set[tuple[str, str]] = set()
    runs = dict.fromkeys(ONCE, 0)

    def watch(frame: object, event: str, argument: object) -> None:
        name = frame.f_globals.get("__name__", "")  # type: ignore[attr-defined]
        if event == "call" and name.startswith(PACKAGE):
            entered.add(name)
            back = frame.f_back  # type: ignore[attr-defined]
            before = back.f_globals.get("__name__", "") if back is not None else ""
            if before.startswith(PACKAGE) and before != name:
                steps.add((before, name))
            function = frame.f_code.co_name  # type: ignore[attr-defined]
            if function in runs and not any(one == function for one in _callers(back)):
                runs[function] += 1

    sys.setprofile(watch)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            call()
    finally:
        sys.setprofile(None)
    return len(entered), len(steps), runs


def _callers(frame: FrameType | None) -> Iterator[str]:
    """Yield the names of a function and of those that called it."""
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


def calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a fit, a fit with a report from a file, and imputations."""
    import numpy as np

    import halfseen as hs
    from halfseen.cli import app

    rule = hs.DetectionLimits(lower=-0.5)
    truth = hs.Gaussian(np.zeros(3), 0.5 + 0.5 * np.eye(3))
    X = hs.simulate(truth, rule, 200, 0)
    fit = hs.fit(X, rule, random_state=0)
    kept = tempfile.TemporaryDirectory()
    folder = Path(kept.name)
    rows = ["a,b,c", *(",".join("<-0.5" if x != x else repr(float(x)) for x in row) for row in X)]
    (folder / "table.csv").write_text("\n".join(rows), encoding="utf-8")
    words = ["fit", str(folder / "table.csv"), "--report", str(folder / "page.html")]
    yield "fit(X, DetectionLimits)", lambda: hs.fit(X, rule, random_state=0, n_jobs=1)
    yield (
        "halfseen fit file.csv --report",
        lambda: app(words, standalone_mode=False),
    )
    kept.cleanup()
    yield "fit.draw_imputations()", lambda: fit.draw_imputations(m=2, random_state=0)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", action="store_true", help="run three calls, and follow them")
    asked = parser.parse_args()
    known = modules()
    graph = {name: imports(path, known) - {name} for name, path in known.items()}
    code = {name: lines_of_code(path) for name, path in known.items()}
    rooms: dict[str, list[str]] = {}
    for name in known:
        rooms.setdefault(".".join(name.split(".")[:2]), []).append(name)
    print(f"{len(known)} files, {sum(code.values())} lines of code")
    for room, names in sorted(rooms.items()):
        if len(names) > 1:
            print(f"  {room}: {len(names)} files, {sum(code[name] for name in names)} lines")
    largest = max(known, key=lambda name: code[name])
    print(f"largest file: {largest}, {code[largest]} lines")
    inside = [name for name, path in known.items() if path.name != "__init__.py"]
    for title, names in (("", known), (" of a module that is no door of a package", inside)):
        widest = max(names, key=lambda name: len(graph[name]))
        print(f"largest fan-out{title}: {widest} imports {len(graph[widest])} modules")
    chain = longest_chain(graph)
    print(f"longest chain of imports: {len(chain)}, {' > '.join(chain)}")
    circles = knots(graph)
    print(f"knots: {len(circles)}")
    for knot in circles:
        print(f"  {len(knot)}: {', '.join(knot)}")
    for title, call in calls() if asked.calls else ():
        entered, steps, runs = crossed(call)
        often = ", ".join(f"{name} {count}" for name, count in runs.items())
        print(f"{title}: {entered} modules, {steps} boundaries; {often}")


if __name__ == "__main__":
    main()
