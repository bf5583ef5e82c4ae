"""Every public name has an example that runs, and documents the parameters that it has.

Which names are public is said by ``docs/_ext/public.py``, from which the pages of the reference are
made as well. The examples themselves are run as doctests. Exempt from having one are:

- errors and warnings, which are shown where they are raised, and constants;
- methods that a rule or a set has for the solvers alone (``public.PROTOCOL``): docs/extend.md has them;
- methods whose example stands with the base class or protocol that declares them.
"""

import dataclasses
import importlib.util
import inspect
from pathlib import Path

import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc
from numpydoc.validate import validate

from halfseen.samplers import Sampler

_WHERE = Path(__file__).parents[1] / "docs" / "_ext" / "public.py"
_SPEC = importlib.util.spec_from_file_location("public", _WHERE)
public = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(public)

# PR01: a parameter is not documented. PR02: a documented one does not exist.
PARAMETERS = ("PR01", "PR02")
PROTOCOLS = (*public.PROTOCOLS, Sampler)
CALLABLE = {
    name: item
    for name, item in public.public_names()
    if inspect.isroutine(item) or (inspect.isclass(item) and not issubclass(item, BaseException))
}
CLASSES = {name: item for name, item in CALLABLE.items() if inspect.isclass(item)}
METHODS = {
    f"{owner}.{name}": (cls, name)
    for owner, cls in CLASSES.items()
    for name, item in public.public_members(cls)
    if (inspect.isfunction(item) or isinstance(item, classmethod | staticmethod))
    and not (cls in PROTOCOLS and name in public.PROTOCOL)
}


def docstrings(cls, method):
    """List the docstring of a method, and those of the base class or protocol that declare it."""
    declaring = [c for c in (*cls.__mro__, Sampler) if method in vars(c)]
    return [inspect.getdoc(getattr(c, method)) or "" for c in declaring]


def wrong_parameters(path):
    return [text for code, text in validate(path)["errors"] if code in PARAMETERS]


def whole_path(item):
    return f"{item.__module__}.{item.__qualname__}"


@pytest.mark.parametrize("name", CALLABLE)
def test_public_names_have_an_example(name):
    assert ">>>" in (inspect.getdoc(CALLABLE[name]) or ""), f"{name} has no example"


@pytest.mark.parametrize("name", METHODS)
def test_public_methods_have_an_example(name):
    assert any(">>>" in text for text in docstrings(*METHODS[name])), f"{name} has no example"


@pytest.mark.parametrize("name", [n for n in CALLABLE if n not in CLASSES])
def test_functions_document_their_parameters(name):
    assert not wrong_parameters(whole_path(CALLABLE[name]))


@pytest.mark.parametrize("name", METHODS)
def test_methods_document_their_parameters(name):
    cls, method = METHODS[name]
    told = [t for t in docstrings(cls, method) if FunctionDoc(None, doc=t)["Parameters"]]
    if told and told[0] != inspect.getdoc(getattr(cls, method)):
        return  # they are documented where the method is declared, which is tested there
    assert not wrong_parameters(f"{whole_path(cls)}.{method}")


@pytest.mark.parametrize("name", CLASSES)
def test_classes_document_what_they_take_or_hold(name):
    cls = CLASSES[name]
    document = ClassDoc(cls, config={"show_class_members": False})
    if document["Parameters"]:
        assert not wrong_parameters(whole_path(cls))
        return
    fields = (
        [field.name for field in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    )
    fields += list(getattr(cls, "_fields", ()))
    told = {n.strip() for entry in document["Attributes"] for n in entry.name.split(",")}
    assert set(fields) <= told, f"{name} does not say what {set(fields) - told} are"
    unknown = {one for one in told if one not in fields and not hasattr(cls, one)}
    assert not unknown or not fields, f"{name} has no {unknown}"


def test_a_lack_is_seen():
    def function(x, y):
        """Do something.

        Parameters
        ----------
        x : int
        z : int
        """

    function.__module__, function.__qualname__ = __name__, "function"
    globals()["function"] = function
    try:
        found = wrong_parameters(f"{__name__}.function")
    finally:
        del globals()["function"]
    assert any("'y'" in text for text in found)
    assert any("'z'" in text for text in found)
