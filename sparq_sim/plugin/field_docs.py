"""Field docs: the sentence below each field of a model, read from its source when needed.

Pydantic can read them as well, but would do so whenever a module is imported.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from inspect import cleandoc, getsource
from itertools import pairwise
from textwrap import fill
from typing import Any

from pydantic import BaseModel

from sparq_sim.fields import Quantity

__all__ = ["DocWithFields", "describe_fields", "read_field_docs", "read_own_doc", "read_summary"]


def read_field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the sentence of each field that has one: its description, or the docstring below it.

    The field `kind: Literal["uniform"]` is described by the docstring of its model. Where the
    source of a class cannot be read, as of one typed into a console, only descriptions count.

    Args:
        model: The class of models.

    Returns:
        Sentences on one line each, by the name of the field.
    """
    written: dict[str, str] = {}
    for each in reversed(model.__mro__):
        written |= _docstrings(each.__module__).get(each.__qualname__, {})
    found: dict[str, str] = {}
    for name, field in model.model_fields.items():
        text = field.description or written.get(name, "")
        if not text and name == "kind":
            text = read_summary(model)
        if text:
            found[name] = " ".join(text.split())
    return found


class DocWithFields:
    """The docstring of a model as `help` shows it: what is written, and a line for each field.

    It takes the place of `__doc__`, and is put together when somebody looks.
    """

    def __init__(self, written: str) -> None:
        """Take the place of a docstring.

        Args:
            written: The docstring as it is in the source.
        """
        self.written = cleandoc(written)

    def __get__(self, _: object, model: type[BaseModel]) -> str:
        docs = read_field_docs(model)
        lines = (
            fill(f"{name}: {docs[name]}", 96, initial_indent="    ", subsequent_indent=" " * 8)
            for name in model.model_fields
            if name in docs
        )
        args = "\n".join(lines)
        return f"{self.written}\n\nArgs:\n{args}" if args else self.written


def read_own_doc(model: type) -> str:
    """Return the docstring of a class as it is written, without the fields that `help` shows.

    Args:
        model: The class; without a docstring, that of its base counts.
    """
    for each in model.__mro__:
        if doc := vars(each).get("__doc__"):
            return doc.written if isinstance(doc, DocWithFields) else cleandoc(doc)
    return ""


def read_summary(model: type) -> str:
    """Return the first paragraph of the docstring of a class, on one line.

    Args:
        model: The class; without a docstring, that of its base counts.
    """
    return " ".join(read_own_doc(model).partition("\n\n")[0].split())


def describe_fields(model: type[BaseModel], schema: dict[str, Any]) -> None:
    """Write the docstring and the sentence of each field into the JSON schema of a model.

    Args:
        model: The class of models.
        schema: Its JSON schema, changed in place; a description that is there stays.
    """
    if "description" in schema:
        schema["description"] = read_own_doc(model)
    docs = read_field_docs(model)
    for name, field in model.model_fields.items():
        shown = schema.get("properties", {}).get(field.alias or name)
        if shown is not None and name in docs:
            # Editors show descriptions only, so that the unit must be there too.
            units = (each.unit for each in field.metadata if isinstance(each, Quantity))
            unit = next(units, "")
            shown.setdefault("description", f"{docs[name]} Unit: {unit}." if unit else docs[name])


@lru_cache(maxsize=256)
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings below fields, by class and field, of a module that is loaded."""
    try:
        tree = ast.parse(getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):  # Typed in, compiled, or no longer there.
        return {}
    return {name: dict(_below_fields(node)) for name, node in _classes(tree, "")}


def _classes(node: ast.AST, within: str) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield each class by its qualified name, those within classes and functions as well."""
    for inner in ast.iter_child_nodes(node):
        match inner:
            case ast.ClassDef(name=name):
                yield within + name, inner
                yield from _classes(inner, f"{within}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _classes(inner, f"{within}{name}.<locals>.")
            case _:
                yield from _classes(inner, within)


def _below_fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, doc in pairwise(node.body):
        match field, doc:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                yield name, text
