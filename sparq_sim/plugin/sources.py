"""Sources: the code that a play is computed by, known by hashes of its files or functions."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from types import CodeType, FunctionType
from typing import TypeAlias

__all__ = [
    "CORE",
    "MOST_BYTES",
    "MOST_FILES",
    "NOT_COMPUTING",
    "Plugin",
    "Source",
    "hash_core",
    "hash_module",
    "hash_plugin",
    "is_core",
    "name_module",
]

MOST_FILES = 50
"""A package with more Python files is not hashed as a whole."""
MOST_BYTES = 500_000
"""A package with more bytes in its Python files is not hashed as a whole."""

NOT_COMPUTING = frozenset(
    {
        "__main__",
        "analysis",
        "cli",
        "journal",
        "live",
        "plugin/field_docs",
        "plugin/origins",
        "plugin/sources",
        "pytest_plugin",
        "remote",
        "report",
        "scenario/bundled",
        "scenario/checks",
        "scenario/files",
        "scenario/field_names",
        "scenario/layers",
        "scenario/toml_lines",
        "scenario/loading",
        "scenario/problems",
        "scenario/scaffold",
        "scenario/schema",
        "scenario/tables",
        "scenario/validation",
        "simulation/beliefs",
        "study",
        "testing",
    }
)
"""Packages and modules of sparq_sim that do not affect the results of a play."""

CORE = "package sparq_sim"
"""The name of what `hash_core` covers."""

Plugin: TypeAlias = type | FunctionType
"""What a plug-in is made of: its classes, and functions that it has for fields."""

_HOME = "sparq_sim"


@dataclass(frozen=True, slots=True)
class Source:
    """Source code that a plug-in is made of."""

    covers: str
    """How much of it was hashed, as "package lab"."""
    hash: str | None
    """The hash; None where there is no source to read."""


def is_core(thing: Plugin) -> bool:
    """Return whether a class or function is defined in sparq_sim itself.

    Args:
        thing: The class or function.
    """
    return thing.__module__.partition(".")[0] == _HOME


def name_module(module: str) -> str:
    """Return the name that a module has in the main process: in a worker, a script has another.

    Args:
        module: Its name in this process.
    """
    return "__main__" if module == "__mp_main__" else module


# Source in files


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it is now: written to, it is another."""

    path: str
    changed_at: int
    size: int

    @classmethod
    def at(cls, path: str) -> _File:
        state = os.stat(path)
        return cls(path, state.st_mtime_ns, state.st_size)


@cache
def hash_core() -> str:
    """Return the hash of all modules of sparq_sim that affect the results of a play.

    They are read when this is first called.
    """
    home = os.path.dirname(os.path.dirname(__file__))
    files = [
        file for file in _list_python_files(home) if _affects_results(_relative_path(home, file))
    ]
    return _hash_files(home, files)


def _affects_results(path: str) -> bool:
    """Return whether the module at *path* within sparq_sim affects the results of a play."""
    parts = path.removesuffix(".py").split("/")
    rooms = {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return not rooms & NOT_COMPUTING


def hash_plugin(plugin: Plugin) -> Source:
    """Return the source of a class or function: its files, or else its compiled functions.

    Args:
        plugin: The class or function.
    """
    if is_core(plugin):
        return Source(CORE, hash_core())
    return _hash_module_once(plugin.__module__) or _hash_code(plugin) or Source("version", None)


@cache
def _hash_module_once(module: str) -> Source | None:
    return hash_module(module)


def hash_module(module: str) -> Source | None:
    """Return the source of a loaded module: the largest small package around it, or its own file.

    Args:
        module: Its name in `sys.modules`.

    Returns:
        None where there is no Python file, as in an archive or a console.
    """
    if (path := _find_path(module)) is None:
        return None
    # What `python -m` runs has another name than in its package.
    spec = getattr(sys.modules.get(module), "__spec__", None)
    name: str = getattr(spec, "name", module)
    try:
        for package, home in _list_packages(name):
            if (files := _list_if_small(home)) is not None:
                return Source(f"package {package}", _hash_files(home, files))
        files = [_File.at(path)] if "." in name else _list_neighbours(path)
        return Source(f"module {name_module(module)}", _hash_files(os.path.dirname(path), files))
    except OSError:  # Moved away since, or not to be read.
        return None


def _find_path(module: str) -> str | None:
    """Return the Python file of a loaded module; in an archive, or compiled, it has none."""
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return os.path.abspath(path) if path.endswith(".py") and os.path.isfile(path) else None


def _list_packages(module: str) -> Iterator[tuple[str, str]]:
    """List the packages around a module, from the outermost, with their folders.

    Packages without an `__init__.py` are shared with other distributions, and left out.
    """
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        path = _find_path(name)
        if path is not None and os.path.basename(path) == "__init__.py":
            yield name, os.path.dirname(path)


def _list_python_files(home: str) -> Iterator[_File]:
    """List the Python files that can be imported from a package."""
    for folder, folders, names in os.walk(home):
        folders[:] = sorted(name for name in folders if name.isidentifier())
        for name in sorted(names):
            if name.endswith(".py"):
                yield _File.at(os.path.join(folder, name))


def _list_if_small(home: str) -> list[_File] | None:
    """List the Python files of a package, if it is small."""
    files: list[_File] = []
    size = 0
    for file in _list_python_files(home):
        files.append(file)
        size += file.size
        if len(files) > MOST_FILES or size > MOST_BYTES:
            return None
    return files


def _list_neighbours(path: str) -> list[_File]:
    """List a module that is in no package, and the modules beside it that it imports."""
    home = os.path.dirname(path)
    found: dict[str, _File] = {}
    todo = [path]
    while todo:
        path = todo.pop()
        if path not in found and os.path.isfile(path):
            found[path] = _File.at(path)
            todo += [os.path.join(home, f"{name}.py") for name in _list_imports(found[path])]
    return [found[path] for path in sorted(found)]


def _hash_files(home: str, files: Iterable[_File]) -> str:
    """Hash files by their paths from *home* and their contents."""
    whole = blake2b(digest_size=16)
    for file in files:
        whole.update(_relative_path(home, file).encode() + b"\0" + _hash_content(file))
    return whole.hexdigest()


def _relative_path(home: str, file: _File) -> str:
    return file.path[len(home) + 1 :].replace(os.sep, "/")


@lru_cache(maxsize=4096)
def _hash_content(file: _File) -> bytes:
    """Hash a file whatever its line endings are; while it is not written to, once."""
    with open(file.path, "rb") as stream:
        return blake2b(stream.read().replace(b"\r\n", b"\n"), digest_size=16).digest()


@lru_cache(maxsize=256)
def _list_imports(file: _File) -> Sequence[str]:
    """List the modules that a file imports by names without a dot."""
    names: set[str] = set()
    try:
        with open(file.path, "rb") as stream:
            tree = ast.parse(stream.read())
    except (SyntaxError, ValueError):  # It is beside a module, and perhaps not imported.
        return ()
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names.update(alias.name for alias in node.names)
            case ast.ImportFrom(module=str() as module, level=0):
                names.add(module)
    return sorted(name for name in names if "." not in name)


# Source in no file, as in a notebook


def _hash_code(plugin: Plugin) -> Source | None:
    """Hash the compiled functions of a plug-in, and those of its module that they call."""
    whole = blake2b(digest_size=16)
    count = 0
    for text in _write_code(plugin, plugin.__module__, set()):
        whole.update(text.encode() + b"\0")
        count += 1
    return Source("functions", whole.hexdigest()) if count else None


def _write_code(thing: object, module: str, seen: set[int]) -> Iterator[str]:
    """Yield text that changes when what a thing of a *module* does changes."""
    match thing:
        case bool() | int() | float() | str():
            yield repr(thing)
        case type() | FunctionType() if thing.__module__ != module or id(thing) in seen:
            return
        case type():
            seen.add(id(thing))
            for name, part in sorted(vars(thing).items()):
                if isinstance(part, FunctionType | classmethod | staticmethod | property):
                    yield name
                    yield from _write_code(part, module, seen)
        case classmethod() | staticmethod():
            yield from _write_code(thing.__func__, module, seen)
        case property():
            for each in (thing.fget, thing.fset):
                yield from _write_code(each, module, seen)
        case FunctionType():
            seen.add(id(thing))
            for default in thing.__defaults__ or ():
                yield from _write_code(default, module, seen)
            yield from _write_instructions(thing.__code__)
            yield from _write_code(getattr(thing, "__wrapped__", None), module, seen)
            for name in sorted(_list_names(thing.__code__)):
                yield from _write_code(thing.__globals__.get(name), module, seen)


def _write_instructions(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        match constant:
            case CodeType():
                yield from _write_instructions(constant)
            case frozenset():
                yield repr(sorted(map(repr, constant)))
            case _:
                yield repr(constant)


def _list_names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_list_names, inner))
