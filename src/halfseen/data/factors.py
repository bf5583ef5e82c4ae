"""What may stand in a formula between its signs: columns, and a few functions of them.

Nothing of a formula is ever run as Python. Its text is taken apart by ``ast``, everything but what is
listed here is refused, and ``coding`` walks through the rest and computes it.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from halfseen.data.table import printable
from halfseen.errors import InputError

# Functions of each value by itself; also written np.log, and so on.
BY_VALUE = ("abs", "exp", "log", "log10", "log1p", "log2", "sqrt")
# What follows the column in brackets, by position or by name. These learn from the rows ...
SCALING: dict[str, tuple[str, ...]] = {
    "center": (),
    "scale": ("center", "scale", "ddof"),
    "standardize": ("center", "rescale", "ddof"),
}
_SPLINE = ("df", "knots", "lower_bound", "upper_bound", "constraints", "extrapolation")
# ... and these make several columns of one.
BASES: dict[str, tuple[str, ...]] = {
    "bs": (
        "df",
        "knots",
        "degree",
        "include_intercept",
        "lower_bound",
        "upper_bound",
        "extrapolation",
    ),
    "cc": _SPLINE,
    "cr": _SPLINE,
    "cs": _SPLINE,
    "poly": ("degree", "raw"),
}
CATEGORIES = ("contrasts", "levels")
# How categories are compared, with what may stand in brackets.
CONTRASTS: dict[str, tuple[str, ...]] = {
    "Treatment": ("reference",),
    "Sum": (),
    "Helmert": ("reverse", "scale"),
    "Diff": ("backward",),
    "Poly": ("scores",),
    "contr.treatment": ("base",),
    "contr.SAS": ("base",),
    "contr.sum": (),
    "contr.helmert": ("reverse", "scale"),
    "contr.diff": ("backward",),
    "contr.poly": ("scores",),
}
FUNCTIONS = ("C", "I", *BY_VALUE, *SCALING, *BASES)
ALLOWED = (
    "A formula has columns and functions of them, such as log(x), C(x) and poly(x, 2); with + - * / ** "
    "and comparisons one computes in I(...), as in I(x / y)."
)
# Far beyond what people write, and short of what Python's own reader cannot take.
LONGEST = 20_000
DEEPEST = 60

OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_WORDS: dict[type[ast.AST], str] = {
    ast.Lambda: "lambda",
    ast.Attribute: "a dot; a column whose name has a dot goes in backticks",
    ast.Subscript: "square brackets",
    ast.JoinedStr: "an f-string",
    ast.IfExp: "if and else",
    ast.BoolOp: "and, or",
    ast.NamedExpr: "an assignment",
    ast.Starred: "a star before a name",
    ast.List: "a list",
    ast.Tuple: "a list",
    ast.Dict: "a dict",
    ast.Set: "a set",
    ast.ListComp: "a loop",
    ast.SetComp: "a loop",
    ast.DictComp: "a loop",
    ast.GeneratorExp: "a loop",
    ast.BinOp: "an operator other than + - * / **",
    ast.UnaryOp: "a sign other than + and -",
    ast.Compare: "a comparison other than == != < <= > >=",
    ast.Call: "a function that has no name",
}
_INSTEAD = {
    "lag": " It would take the rows in order; make a column of it first.",
    "Q": " A name that is odd goes in backticks.",
    "ln": " Did you mean log?",
    "factor": " Did you mean C?",
}
# Texts and names in backticks are passed over in search of names that Python would respell.
_PIECES = re.compile(r""""[^"]*"|'[^']*'|`[^`]*`|[^\W\d]\w*""")


@dataclass(frozen=True)
class Factor:
    """A column, or a function of columns: what is multiplied where a formula has ``:``.

    ``label`` names it in terms, as formulaic does; ``source`` reads back as the same factor.
    """

    label: str
    source: str
    tree: ast.expr = field(compare=False, repr=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the columns that it is made of, each once."""
        return tuple(dict.fromkeys(_columns_in(self.tree)))

    @property
    def is_column(self) -> bool:
        """Whether it is a column as it is."""
        return isinstance(self.tree, ast.Name)

    def jumps_with(self, name: str) -> bool:
        """Whether it jumps as a column changes: it compares the column, or makes categories of it."""
        return any(
            isinstance(node, ast.Compare | ast.Call)
            and (isinstance(node, ast.Compare) or function_name(node) == "C")
            and name in _columns_in(node)
            for node in ast.walk(self.tree)
        )


def column_factor(name: str) -> Factor:
    """Return the factor that is a column as it is."""
    return Factor(name, name if name.isidentifier() else f"`{name}`", ast.Name(name))


def expression(text: str, braces: bool = False) -> Factor:
    """Read a call such as ``log(dose)``, or what stands in braces."""
    if len(text) > LONGEST:
        raise InputError(
            f"{shown(text)} in the formula has {len(text)} characters; at most {LONGEST} can be read. "
            "Make a column of it first."
        )
    tree, names = _parsed(text)
    if _too_deep(tree):
        raise InputError(
            f"{shown(text)} in the formula is nested more than {DEEPEST} times. "
            "Make a column of it first."
        )
    _check_top(tree)
    label = " ".join(ast.unparse(tree).split("\n"))
    if names:
        label = re.sub("|".join(names), lambda found: names[found[0]], label)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                node.id = names[node.id].strip("`")
    factor = Factor(label, f"{{{label}}}" if braces else label, tree)
    if not factor.variables:
        raise InputError(f"{shown(label)} in the formula names no column. {ALLOWED}")
    return factor


def shown(text: str) -> str:
    """Quote a piece of a formula, cut to what fits into a sentence."""
    text = printable(" ".join(text.split()))
    return repr(text if len(text) <= 60 else text[:57] + "…")


def quoted(value: Any) -> str:
    """Write what a cell holds: texts in quotation marks, none of it too long."""
    return shown(value) if isinstance(value, str) else shown(repr(value))[1:-1]


def listed(values: Sequence[Any]) -> str:
    """List what cells hold, the first twenty of them."""
    return ", ".join(map(quoted, values[:20])) + (", …" if len(values) > 20 else "")


def function_name(node: ast.Call) -> str:
    """Return the name of what is called, without the np. in front of it; empty where there is none."""
    name = _dotted(node.func)
    bare = name.removeprefix("np.")
    return bare if bare in BY_VALUE else name


def constant(node: ast.expr) -> Any:
    """Return the number, text or list that an argument is."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return [constant(item) for item in node.elts]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = constant(node.operand)
        if isinstance(value, int | float):
            return -value
    raise InputError(
        f"{shown(ast.unparse(node))} in the formula must be a number, a text or a list of them."
    )


def arguments(node: ast.Call, known: tuple[str, ...], first: int = 1) -> dict[str, ast.expr]:
    """Match what stands in brackets, from the argument ``first`` on, with the names that it may have."""
    name, given = function_name(node), node.args[first:]
    if len(given) > len(known):
        raise InputError(
            f"{shown(ast.unparse(node))} in the formula has too many arguments; {name} takes "
            f"{_listed(known, first)}."
        )
    out = dict(zip(known, given, strict=False))
    for keyword in node.keywords:
        if keyword.arg not in known:
            raise InputError(
                f"{shown(ast.unparse(node))} in the formula has an argument {keyword.arg or '**'}; "
                f"{name} takes {_listed(known, first)}."
            )
        if keyword.arg in out:
            raise InputError(f"{shown(ast.unparse(node))} in the formula has {keyword.arg} twice.")
        out[keyword.arg] = keyword.value
    return out


def _listed(known: tuple[str, ...], first: int) -> str:
    return ", ".join((("a column",) if first else ()) + known) or "nothing"


def _parsed(text: str) -> tuple[ast.expr, dict[str, str]]:
    """Parse a text; names that Python cannot have, or would respell, are replaced first."""
    stem = "_name"
    while stem in text:
        stem = "_" + stem
    names: dict[str, str] = {}

    def replace(found: re.Match[str]) -> str:
        written = found[0]
        if written[0] in "\"'" or (written.isascii() and written[0] != "`"):
            return written
        placeholder = f"{stem}{len(names):04d}"
        names[placeholder] = written
        return f" {placeholder} "

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(_PIECES.sub(replace, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"{shown(text)} in the formula cannot be read. {ALLOWED}") from None
    return tree, names


def _too_deep(tree: ast.expr) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return False
    return True


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def _refuse(node: ast.AST) -> NoReturn:
    word = _WORDS.get(type(node), "something that formulas do not have")
    raise InputError(f"{shown(ast.unparse(node))} in the formula uses {word}. {ALLOWED}")


def _check_top(node: ast.expr) -> None:
    """Check a whole factor: only here categories and several columns may be made."""
    name = function_name(node) if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or (name not in BASES and name != "C"):
        _check(node)
        return
    _check(_first(node, name))
    given = arguments(node, CATEGORIES if name == "C" else BASES[name])
    if "contrasts" in given:
        _check_contrasts(given.pop("contrasts"))
    for value in given.values():
        constant(value)


def _first(node: ast.Call, name: str) -> ast.expr:
    if not node.args:
        raise InputError(
            f"{shown(ast.unparse(node))} in the formula lacks a column: {name}(column)."
        )
    return node.args[0]


def _check_contrasts(node: ast.expr) -> None:
    called = isinstance(node, ast.Call)
    name = _dotted(node.func if isinstance(node, ast.Call) else node)
    if name not in CONTRASTS:
        raise InputError(
            f"{shown(ast.unparse(node))} in the formula must say how categories are compared: "
            f"Treatment('a') takes a as the reference; others are {', '.join(list(CONTRASTS)[1:])}."
        )
    if called:
        assert isinstance(node, ast.Call)
        for value in arguments(node, CONTRASTS[name], first=0).values():
            constant(value)


def _check(node: ast.expr) -> None:
    """Check an expression whose value is one number for each row."""
    if isinstance(node, ast.Name):
        return
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool | str) or not isinstance(node.value, int | float):
            raise InputError(
                f"{shown(ast.unparse(node))} stands in the formula where a number or a column is "
                "needed. Names that are odd go in backticks."
            )
    elif isinstance(node, ast.BinOp) and isinstance(node.op, OPERATORS):
        _check(node.left)
        _check(node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        _check(node.operand)
    elif isinstance(node, ast.Compare) and all(isinstance(op, COMPARISONS) for op in node.ops):
        _check_comparison(node)
    elif isinstance(node, ast.Call):
        _check_call(node)
    else:
        _refuse(node)


def _check_comparison(node: ast.Compare) -> None:
    sides = [node.left, *node.comparators]
    text = [isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides]
    if not any(text):
        for side in sides:
            _check(side)
        return
    # A category is compared with a text: site == "a".
    equal = len(sides) == 2 and isinstance(node.ops[0], ast.Eq | ast.NotEq)
    if not (equal and any(isinstance(side, ast.Name) for side in sides)):
        raise InputError(
            f"{shown(ast.unparse(node))} in the formula compares with a text; that can be a column "
            "and == or !=, as in I(site == 'a')."
        )


def _check_call(node: ast.Call) -> None:
    name = function_name(node)
    if name == "C" or name in BASES:
        what = "categories" if name == "C" else "several columns"
        raise InputError(
            f"{shown(ast.unparse(node))} in the formula makes {what}, which cannot be computed with; "
            "it must stand by itself."
        )
    if name not in FUNCTIONS:
        _refuse_function(node, name)
    _check(_first(node, name))
    for value in arguments(node, SCALING.get(name, ())).values():
        constant(value)


def _refuse_function(node: ast.Call, name: str) -> NoReturn:
    if not name:
        _refuse(node)
    hint = _INSTEAD.get(name, "")
    close = difflib.get_close_matches(name.removeprefix("np."), FUNCTIONS, 1)
    if close and not hint:
        hint = f" Did you mean {close[0]}?"
    raise InputError(
        f"{shown(name)} in the formula is none of the functions that formulas have: "
        f"{', '.join(sorted(FUNCTIONS, key=str.lower))}.{hint}"
    )


def _columns_in(node: ast.expr) -> Iterator[str]:
    """Yield the columns in the order in which they are written; not the functions, nor contrasts."""
    if isinstance(node, ast.Name):
        yield node.id
        return
    if isinstance(node, ast.Call):
        children = node.args[:1]
    else:
        children = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    for child in children:
        yield from _columns_in(child)
