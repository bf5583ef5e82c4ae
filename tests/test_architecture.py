"""The house rules, read from the source."""

import ast
import importlib.util
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import halfseen as hs
from halfseen.cli import app
from halfseen.kernels import INNER, KERNEL
from halfseen.kernels.lanes import INNER_LANES, LANES

SOURCE = Path(hs.__file__).parent
# How kernels are compiled.
WAYS = {"**KERNEL)", "**INNER)", "**LANES)", "**INNER_LANES)"}
ROOT = Path(__file__).parents[1]
# A module may import only from levels below its own, or from its own package.
LEVELS = {
    "version": 0, "errors": 0, "checks": 0, "archive": 0,
    "files": 0, "memory": 0, "seeds": 0, "parallel": 0, "kernels": 0, "gaussian": 0,
    "metrics": 0, "theta": 0,
    "missingness": 1, "data": 1,
    "simulate": 2, "samplers": 2, "scaling": 2,
    "solvers": 3, "planning": 3,
    "diagnostics": 4,
    "report": 5, "limits": 5,
    "results": 6, "regression": 6,
    "grouped": 7, "estimators": 7, "ledger": 7, "loading": 7,
    "cli": 8,
}  # fmt: skip
# Within level 0, and within level 1, these may import those.
SAME_LEVEL = {
    ("files", "errors"), ("files", "memory"), ("memory", "errors"), ("checks", "errors"),
    ("archive", "errors"), ("archive", "files"), ("archive", "version"),
    ("seeds", "errors"), ("parallel", "errors"), ("kernels", "errors"), ("gaussian", "errors"),
    ("data", "missingness"),
    ("gaussian", "files"), ("gaussian", "parallel"), ("gaussian", "checks"),
    ("metrics", "errors"), ("metrics", "gaussian"), ("metrics", "checks"),
}  # fmt: skip
# The one look upwards: who comes to the solvers through their door gets fits.
UPWARDS = {("solvers/__init__.py", "results"), ("solvers/__init__.py", "grouped")}
FILES = sorted(SOURCE.rglob("*.py"))
TOOL = Path(__file__).parents[1] / "tools" / "house.py"
# The house as it stands (``python tools/house.py``): files, the longest chain of imports, and the most
# imports of a module. These only fall.
MOST_FILES, LONGEST_CHAIN, MOST_IMPORTS = 290, 30, 27


spec = importlib.util.spec_from_file_location("house", TOOL)
house = importlib.util.module_from_spec(spec)
spec.loader.exec_module(house)


def test_no_module_imports_itself_in_a_circle():
    """Not even later, when a function is called. That packages run before their modules is left out."""
    known = house.modules()
    graph = {name: house.imports(path, known) - {name} for name, path in known.items()}
    assert len(graph) == len(FILES)
    assert "halfseen.solvers.result" in graph["halfseen.results"]
    assert not house.knots(graph)


def test_the_house_does_not_grow():
    known = house.modules()
    graph = {name: house.imports(path, known) - {name} for name, path in known.items()}
    assert len(known) <= MOST_FILES
    assert len(house.longest_chain(graph)) <= LONGEST_CHAIN
    assert max(map(len, graph.values())) <= MOST_IMPORTS


def test_circles_are_found():
    circle = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"f"}}
    assert house.knots(circle) == [["a", "b", "c"]]
    assert house.longest_chain(circle) == ["a knot of 3", "d", "e"]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("full", {}),
        ("full", {"loss": 0.1}),
        ("full", {"transforms": "log"}),
        ("pairwise", {}),
        ("truncation", {}),
    ],
)
@pytest.mark.parametrize("by_row", [False, True])
def test_a_fit_reads_its_table_and_matches_its_rule_once(method, options, by_row):
    X = np.random.default_rng(0).normal(2.0, 1.0, size=(200, 2))
    X[X < 1.0] = np.nan
    rule = hs.DetectionLimits(lower=np.full(X.shape, 1.0) if by_row else 1.0)
    arguments = {"n_jobs": 1, **options}
    runs = house.crossed(lambda: hs.fit(X, rule, method, **arguments))[2]
    assert runs == {"read_table": 1, "for_columns": 1}


def test_a_page_from_a_file_reads_the_table_where_it_is_read(tmp_path, monkeypatch):
    """Twice: what stands in a file has a lower and an upper end. Checks and page read no other one."""
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(2.0, 1.0, size=(60, 2))
    rows = ["a,b", *(",".join("<1" if x < 1.0 else f"{x:.6f}" for x in row) for row in X)]
    Path("table.csv").write_text("\n".join(rows), encoding="utf-8")
    words = ["fit", "table.csv", "--report", "page.html"]
    runs = house.crossed(lambda: app(words, standalone_mode=False))[2]
    assert Path("page.html").exists()
    assert runs["read_table"] == 2


@cache
def _tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def _room(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _imports(tree):
    for node in house.nodes(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            if node.module == "halfseen":
                yield from (name.name for name in node.names if name.name in LEVELS)
            elif node.module and node.module.startswith("halfseen."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for name in node.names:
                if name.name.startswith("halfseen."):
                    yield name.name.split(".")[1]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_levels_point_down(path):
    room = _room(path)
    if room in ("__init__", "__main__"):
        return
    for target in _imports(_tree(path)):
        allowed = target == room or LEVELS[target] < LEVELS[room] or (room, target) in SAME_LEVEL
        allowed |= (str(path.relative_to(SOURCE)), target) in UPWARDS
        assert allowed, f"{room} (level {LEVELS[room]}) imports {target} (level {LEVELS[target]})"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_kernels_are_cached_release_the_lock_and_keep_nan(path):
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            name = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(name, ast.Name) and name.id in ("njit", "jit"):
                assert isinstance(decorator, ast.Call), node.name
                options = ast.unparse(decorator).removeprefix("njit(forceinline=True, ")
                assert options.removeprefix("njit(") in WAYS, node.name


def test_options_of_kernels_keep_nan_and_the_order_of_sums():
    assert KERNEL == {"cache": True, "nogil": True, "error_model": "numpy"}
    assert INNER == {**KERNEL, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    # Products and sums in one go, nothing else.
    assert {**KERNEL, "fastmath": {"contract"}} == LANES
    assert {**INNER, "fastmath": {"contract"}} == INNER_LANES


def test_kernels_without_a_way_in_are_called_by_kernels_alone():
    kernels = sorted((SOURCE / "kernels").glob("*.py"))
    inner = {
        (path.stem, node.name)
        for path in kernels
        for node in _tree(path).body
        if isinstance(node, ast.FunctionDef)
        and any(_options(decorator).startswith("INNER") for decorator in node.decorator_list)
    }
    assert len(inner) > 50
    for path in {*FILES, *ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/**/*.py")}:
        if path not in kernels:
            tree = _tree(path)
            assert not inner & set(_kernels_named(tree)), path


def _options(decorator):
    return ast.unparse(decorator).rpartition("**")[2].rstrip(")")


def _kernels_named(tree):
    # Kernels that are imported by name, and those that are asked of an imported module; but for those
    # that tests give a way in (``tests/kernels/calling.py``).
    modules = {}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    led = {
        id(argument)
        for call in calls
        if ast.unparse(call.func) == "called"
        for argument in call.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("halfseen.kernels"):
            for name in node.names:
                modules[name.asname or name.name] = name.name
                yield node.module.rpartition(".")[2], name.name
        elif id(node) in led:
            continue
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield modules.get(node.value.id), node.attr


def test_no_eval_and_no_pickle_of_files():
    for path in FILES:
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec"), path
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [n.name for n in node.names] + [getattr(node, "module", "") or ""]
                assert not {"pickle", "joblib", "dill"} & set(names), path


def test_every_public_name_is_there_and_documented():
    for name in hs.__all__:
        item = getattr(hs, name)
        if name not in ("everything", "metrics", "planning", "samplers", "solvers"):
            assert item.__doc__, name


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hs.nonsense


@pytest.mark.xdist_group("one worker")
def test_groups_of_tests_stay_with_one_worker(request):
    """Else what a group shares (the site, a cluster) is made by every worker."""
    if request.config.getoption("loadgroup", default=False):
        assert request.node.nodeid.endswith("@one worker")
