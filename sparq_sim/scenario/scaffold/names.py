"""Names for what is created: how they are spelt, and which ones would do harm."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from keyword import iskeyword

from sparq_sim.errors import SparqError
from sparq_sim.plugin.registry import Kind, list_names
from sparq_sim.scenario.bundled import find_bundled

__all__ = [
    "LONGEST_NAME",
    "check_spelling",
    "find_plugin_objections",
    "find_scenario_objections",
    "to_class_name",
    "to_module_name",
]

LONGEST_NAME = 30
"""In characters: the lines of generated code stay within 100."""

_LIBRARIES = ("sparq_sim", "numpy", "pydantic", "math")
"""The libraries that generated code imports from."""


def to_module_name(name: str) -> str:
    """Return the name of the Python module for a plug-in called *name*.

    Args:
        name: Lower-case words joined by dashes.
    """
    return name.replace("-", "_")


def to_class_name(name: str) -> str:
    """Return the name of the class for a plug-in called *name*.

    Args:
        name: Lower-case words joined by dashes.
    """
    return "".join(word.capitalize() for word in name.split("-"))


def check_spelling(name: str) -> None:
    """Check that a *name* is made of lower-case words joined by dashes, and not too long.

    Args:
        name: The name of a new scenario or plug-in.

    Raises:
        SparqError: It is not.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise SparqError(
            f"{name!r} cannot be a name; use lower-case words joined by dashes, as in my-expert, "
            "of the letters a to z and digits, a letter first"
        )
    if len(name) > LONGEST_NAME:
        raise SparqError(
            f"{name!r} has {len(name)} characters; use a name of at most {LONGEST_NAME}"
        )


def find_scenario_objections(name: str) -> Iterator[str]:
    """Yield what speaks against calling a new scenario *name*.

    Args:
        name: The name of a new scenario.
    """
    if name in find_bundled():
        yield "a scenario of this name is installed"


def find_plugin_objections(kind: Kind, name: str, files: Mapping[str, str]) -> Iterator[str]:
    """Yield what speaks against a name for a new plug-in, the simplest reason first.

    Args:
        kind: What the plug-in is.
        name: What it would be called.
        files: The text of each file that would be written.
    """
    module, model = to_module_name(name), to_class_name(name)
    if name in list_names(kind):
        yield f"an {kind} of this name is installed"
    if iskeyword(module) or iskeyword(model) or hasattr(builtins, model):
        yield f"{module!r} or {model!r} is a word of Python's own"
    if module in sys.stdlib_module_names or _is_importable(module):
        yield f"there is a module {module!r} already, which it would hide"
    if _is_distribution(name):
        yield f"there is a package {name!r} already, which it would replace"
    if name.startswith("test"):
        yield f"pytest would take {model!r} for a test"
    if model in _find_imported(files):
        yield f"its class would be called {model!r}, as one that it uses"


def _is_importable(module: str) -> bool:
    # A folder of this name in the current one is found too, but has no origin and hides nothing.
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def _is_distribution(name: str) -> bool:
    with suppress(PackageNotFoundError):
        distribution(name)
        return True
    return False


def _find_imported(files: Mapping[str, str]) -> set[str]:
    """Return the names that the code in *files* imports from sparq-sim and other libraries."""
    code = [text for file, text in files.items() if file.endswith(".py")]
    return {
        alias.name
        for text in code
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] in _LIBRARIES
        for alias in node.names
    }
