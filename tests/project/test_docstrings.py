"""Whatever is public explains each of its arguments, fields and methods."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from inspect import Parameter, getdoc, isclass, isfunction, signature, unwrap
from itertools import pairwise
from types import FunctionType
from typing import Any, Protocol, is_typeddict

import pytest
from pydantic import BaseModel

from reproduce import reference

UNFINISHED: Mapping[str, int] = {}
"""Modules whose docstrings are not complete yet, and how much they lack; this may only fall."""

# "name:", "name (type):", "*names:" or "one, other:", as the first thing of an item of a section.
ITEM = re.compile(r"^ {4}((?:\*{0,2}\w+(?:, )?)+)(?: \(.*?\))?:", re.MULTILINE)
# A section, or a first paragraph that says so; these verbs have what is returned as their object.
RETURNED = re.compile(
    r"\A(?:Compute|Count|Draw|List|Load|Measure|Open|Read)\b"
    r"|\A(?:.+\n)*?.*\b(?:return|yield)s?\b"
    r"|^(?:Returns|Yields):\n",
    re.MULTILINE | re.IGNORECASE,
)
NOTHING = {None, "None", "Awaitable[None]", "Iterator[None]", "AsyncIterator[None]"}
SECTION = re.compile(r"^(?:Args|Attributes):\n((?:(?: .*)?\n?)*)", re.MULTILINE)


def explained(docstring: str | None) -> set[str]:
    """Return the arguments that the sections of a *docstring* explain."""
    bodies = SECTION.findall(docstring or "")
    items = (name for body in bodies for item in ITEM.findall(body) for name in item.split(", "))
    return {name.lstrip("*") for name in items}


def unexplained(value: Any, *, method: bool = False) -> Iterator[str]:
    """Yield the arguments of a function that its docstring does not explain."""
    function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    given = [*signature(function).parameters.values()]
    if method and not isinstance(value, staticmethod):
        del given[0]
    if not function.__doc__:
        yield "a docstring"
    known = explained(getdoc(function))
    returned = function.__annotations__.get("return")
    if returned not in NOTHING and not RETURNED.search(getdoc(function) or ""):
        yield "what it returns"
    for each in given:
        private = each.name.startswith("_") and each.kind is not Parameter.VAR_KEYWORD
        if each.name not in known and not private:
            yield each.name


def of_class(owner: type) -> Iterator[str]:
    """Yield what a class leaves unexplained: its own fields, methods and arguments."""
    if not owner.__doc__:
        yield "a docstring"
    known = explained(getdoc(owner))
    annotated = (*vars(owner).get("__annotations__", ()),)
    fields = annotated if has_fields(owner) else ()
    for field in fields:
        if field.startswith("_") or any(field in base.__annotations__ for base in bases(owner)):
            continue
        if field not in sentences(owner) | known | {"kind"}:
            yield field
    init = vars(owner).get("__init__")
    if isfunction(init) and init.__module__ == owner.__module__ and not has_fields(owner):
        yield from sorted(set(unexplained(init, method=True)) - known - {"a docstring"})
    known = set() if Protocol in owner.__bases__ else explained_by_protocols(owner)
    for name, value in vars(owner).items():
        if name.startswith("_") or any(hasattr(base, name) for base in owner.__bases__):
            continue
        if name in known:
            continue
        if isinstance(value, property):
            if not value.__doc__:
                yield f"{name}: a docstring"
        elif isfunction(value) or isinstance(value, staticmethod | classmethod):
            yield from (f"{name}: {each}" for each in unexplained(value, method=True))


@cache
def protocols() -> list[type]:
    """Return all protocols of ours."""
    for module in MODULES:
        import_module(module)
    ours = [each for name, each in sys.modules.items() if name.startswith("sparq_")]
    found = {each for module in ours for each in vars(module).values() if isclass(each)}
    return [each for each in found if Protocol in each.__bases__]


def members(protocol: type, *kinds: type) -> set[str]:
    found = vars(protocol).items()
    return {name for name, value in found if isinstance(value, kinds) and name[0] != "_"}


def explained_by_protocols(owner: type) -> set[str]:
    """Return what protocols explain of a class that implements them without deriving."""
    kept: set[str] = set()
    for protocol in protocols():
        methods = members(protocol, FunctionType)
        if methods and methods <= set(dir(owner)):
            kept |= members(protocol, FunctionType, property)
    return kept


def bases(owner: type) -> list[type]:
    return [base for base in owner.__mro__[1:] if "__annotations__" in vars(base)]


def has_fields(owner: type) -> bool:
    named_tuple = issubclass(owner, tuple) and hasattr(owner, "_fields")
    return (
        issubclass(owner, BaseModel) or is_dataclass(owner) or named_tuple or is_typeddict(owner)
    ) and not issubclass(owner, Enum)


def sentences(owner: type) -> set[str]:
    """Return the fields of a class that have a sentence below, or a description."""
    body = [*reference.find_node(owner).body, ast.Pass()]
    return {
        node.target.id
        for node, after in pairwise(body)
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and (reference.find_literal(after) or "description=" in ast.unparse(node))
    }


MODULES = [
    # Arguments of commands are explained by `--help`.
    module
    for module in reference.list_modules()
    if not module.startswith("sparq_sim.cli")
]


def missing(module: str) -> list[str]:
    """Return what the public names of a *module* leave unexplained; others tell of their own."""
    found = []
    for name in reference.list_names(module):
        value = unwrap(getattr(import_module(module), name))
        home = getattr(value, "__module__", "")
        if not home.startswith("sparq_") or (home != module and home in MODULES):
            continue
        if isclass(value):
            found += [f"{name}: {each}" for each in of_class(value)]
        elif isfunction(value):
            found += [f"{name}: {each}" for each in unexplained(value)]
    return found


@pytest.mark.parametrize("module", MODULES)
def test_each_argument_field_and_result_is_explained(module: str) -> None:
    lacking = missing(module)
    assert len(lacking) <= UNFINISHED.get(module, 0), lacking


def test_unfinished_modules_exist() -> None:
    assert UNFINISHED.keys() <= {*MODULES}


def test_arguments_are_read_from_sections() -> None:
    text = """
    Do it.

    Args:
        one: The first,
            on two lines: still the first.
        two, three: The others.
        *rest: All else.

    Returns:
        four: Not an argument.
    """
    assert explained(getdoc(type("Any", (), {"__doc__": text}))) == {"one", "two", "three", "rest"}
