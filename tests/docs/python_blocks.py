"""Run ``python`` blocks: as doctests where they have prompts, else as they stand."""

import doctest
import re
import warnings
from pathlib import Path
from typing import Any

import halfseen as hs
from tests.docs.fences import Block, PageError

# "..." stands for anything in printed output, and tables may be aligned as the page likes.
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DECLARED = re.compile(r"#\s*(?:an? )?(\w+Warning)\b")


def run_python(block: Block, page: Path, names: dict[str, Any]) -> None:
    """Run a block in the namespace of its page.

    A warning is an error, unless a comment in the block names its class; then it must come.
    """
    declared = {getattr(hs, name) for name in DECLARED.findall(block.text)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        for category in declared:
            warnings.simplefilter("always", category)
        if re.search(r"^\s*>>>", block.text, re.MULTILINE):
            _run_doctest(block, page, names)
        else:
            # Empty lines in front, so that a traceback shows the lines of the page.
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            exec(code, names)
    silent = [c.__name__ for c in declared if not any(issubclass(w.category, c) for w in caught)]
    if silent:
        raise PageError(
            f"{page.name}, line {block.line}: no {silent[0]} came, although one is named"
        )


def _run_doctest(block: Block, page: Path, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(
        block.text, names, page.name, str(page), block.line - 1
    )
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    failed = runner.run(test, out=told.append, clear_globs=False).failed
    names.update(test.globs)
    if failed:
        raise PageError("".join(told))
