"""Origins: the code that a play is computed by, known by hashes of its source."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    entry_points,
    packages_distributions,
)
from importlib.metadata import version as distribution_version
from types import CodeType, FunctionType
from typing import TypeAlias

MOST_FILES = 50
"""A package of more Python files is not small, and not hashed as a whole,"""
MOST_BYTES = 500_000
"""nor is one with more bytes in them."""

NOT_COMPUTING = frozenset(
    {
        "__main__",
        "analysis",
        "cli",
        "plugin/field_docs",
        "plugin/origins",
        "pytest_plugin",
        "report",
        "scenario/bundled",
        "scenario/checks",
        "scenario/files",
        "scenario/hints",
        "scenario/layers",
        "scenario/lines",
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
"""Rooms and modules of sparq_sim that have no say in what a play comes to."""

CORE = "package sparq_sim"
"""What the hash of the core covers."""

Plugin: TypeAlias = type | FunctionType
"""What a plug-in is made of: its classes, and functions that it has for fields."""

_HOME = "sparq_sim"
_NO_PLUGINS = sys.stdlib_module_names | {"pydantic", "pydantic_core"}


@dataclass(frozen=True, slots=True)
class Source:
    """Source code: what is covered, as "package lab", and its hash."""

    covers: str
    hash: str | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a class or function comes from.

    It is known by its *source*, of which *covers* says how much that is, and by its version.
    """

    name: str
    distribution: str | None
    version: str | None
    covers: str
    source: str | None

    def to_provenance(self) -> dict[str, object]:
        """Return what provenance keeps of it."""
        return {
            "class": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "covers": self.covers,
            "source": self.source,
        }


# What takes part


def hash_sources(model: type) -> Mapping[str, Source]:
    """Hash the files behind a class and its bases, by module; those of the core are left out.

    To be called when the class is made: a file may be edited while this process goes on with what
    it has loaded.
    """
    modules = {each.__module__ for each in _lineage(model) if not is_core(each)}
    found = {module: _of_files(module) for module in modules}
    return {module: source for module, source in found.items() if source is not None}


def find_origins(plugins: Iterable[Plugin]) -> list[Origin]:
    """List where plug-ins and the bases of their classes come from, sorted by name."""
    found: dict[str, Origin] = {}
    for plugin in plugins:
        for each in _lineage(plugin):
            known = vars(each).get("_sources") or vars(plugin).get("_sources") or {}
            name = qualified_name(each)
            found[name] = _origin(name, known.get(each.__module__) or _of(each))
    return [found[name] for name in sorted(found)]


def qualified_name(plugin: Plugin) -> str:
    """Return the full name of a class or function."""
    return f"{_named(plugin.__module__)}:{plugin.__qualname__}"


def _is_plugin(thing: Plugin) -> bool:
    """Return whether a class is a plug-in: an optimizer, or neither of the core nor of Python."""
    if is_core(thing):
        return thing.__module__.startswith(f"{_HOME}.optimizers.")
    return thing.__module__.partition(".")[0] not in _NO_PLUGINS


def is_core(thing: Plugin) -> bool:
    """Return whether a class or function is one of sparq_sim itself."""
    return thing.__module__.partition(".")[0] == _HOME


def _lineage(plugin: Plugin) -> list[Plugin]:
    """List a plug-in and its bases, but for those of the core, of pydantic and of Python."""
    bases = plugin.__mro__[1:] if isinstance(plugin, type) else ()
    own: list[Plugin] = [plugin] if _is_plugin(plugin) else []
    return own + [base for base in bases if _is_plugin(base) and not is_core(base)]


def _named(module: str) -> str:
    """Name a module as the first process does: in workers, a script has another name."""
    return "__main__" if module == "__mp_main__" else module


# Distributions


@lru_cache(maxsize=1024)
def _origin(name: str, source: Source) -> Origin:
    top = name.partition(":")[0].partition(".")[0]
    distribution, version = _announced().get(name) or _installed(top)
    return Origin(name, distribution, version, source.covers, source.hash)


def list_entry_points() -> list[EntryPoint]:
    """List all entry points by which something is plugged in here."""
    groups = [group for group in entry_points().groups if group.startswith(f"{_HOME}.")]
    return [entry for group in sorted(groups) for entry in entry_points(group=group)]


@cache
def _announced() -> dict[str, tuple[str | None, str | None]]:
    """Return the distribution and version behind each class that an entry point names."""
    return {
        entry.value: (entry.dist.name, entry.dist.version)
        for entry in list_entry_points()
        if entry.dist is not None
    }


@cache
def _installed(package: str) -> tuple[str | None, str | None]:
    if package.startswith("sparq_"):
        for value, found in _announced().items():
            if value.startswith(f"{package}."):
                return found
    for name in packages_distributions().get(package, ()):
        try:
            return name, distribution_version(name)
        except PackageNotFoundError:  # pragma: no cover - half uninstalled
            continue
    return None, None


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
    """Hash the modules of sparq_sim that play and measure, as they are when this is first asked."""
    home = os.path.dirname(os.path.dirname(__file__))
    files = [file for file in _python_files(home) if _computes(_within(home, file))]
    return _hashed(home, files)


def _computes(path: str) -> bool:
    """Return whether the module at *path* within sparq_sim has a say in what a play comes to."""
    parts = path.removesuffix(".py").split("/")
    rooms = {"/".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return not rooms & NOT_COMPUTING


def _of(plugin: Plugin) -> Source:
    """Hash what there is to hash."""
    if is_core(plugin):
        return Source(CORE, hash_core())
    return _kept(plugin.__module__) or _of_code(plugin) or Source("version", None)


@cache
def _kept(module: str) -> Source | None:
    return _of_files(module)


def _of_files(module: str) -> Source | None:
    """Hash the largest package around a module that is small, or else its own file, if any."""
    if (path := _path(module)) is None:
        return None
    # What `python -m` runs has another name than in its package.
    spec = getattr(sys.modules.get(module), "__spec__", None)
    name: str = getattr(spec, "name", module)
    try:
        for package, home in _packages(name):
            if (files := _small(home)) is not None:
                return Source(f"package {package}", _hashed(home, files))
        files = [_File.at(path)] if "." in name else _neighbours(path)
        return Source(f"module {_named(module)}", _hashed(os.path.dirname(path), files))
    except OSError:  # Moved away since, or not to be read.
        return None


def _path(module: str) -> str | None:
    """Return the Python file of a loaded module; in an archive, or compiled, it has none."""
    path = getattr(sys.modules.get(module), "__file__", None) or ""
    return os.path.abspath(path) if path.endswith(".py") and os.path.isfile(path) else None


def _packages(module: str) -> Iterator[tuple[str, str]]:
    """List the packages around a module, from the outermost, with their folders.

    Packages without an `__init__.py` are shared with other distributions, and left out.
    """
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        name = ".".join(parts[:end])
        path = _path(name)
        if path is not None and os.path.basename(path) == "__init__.py":
            yield name, os.path.dirname(path)


def _python_files(home: str) -> Iterator[_File]:
    """List the Python files that can be imported from a package."""
    for folder, folders, names in os.walk(home):
        folders[:] = sorted(name for name in folders if name.isidentifier())
        for name in sorted(names):
            if name.endswith(".py"):
                yield _File.at(os.path.join(folder, name))


def _small(home: str) -> list[_File] | None:
    """List the Python files of a package, if it is small."""
    files: list[_File] = []
    size = 0
    for file in _python_files(home):
        files.append(file)
        size += file.size
        if len(files) > MOST_FILES or size > MOST_BYTES:
            return None
    return files


def _neighbours(path: str) -> list[_File]:
    """List a module that is in no package, and the modules beside it that it imports."""
    home = os.path.dirname(path)
    found: dict[str, _File] = {}
    todo = [path]
    while todo:
        path = todo.pop()
        if path not in found and os.path.isfile(path):
            found[path] = _File.at(path)
            todo += [os.path.join(home, f"{name}.py") for name in _imported(found[path])]
    return [found[path] for path in sorted(found)]


def _hashed(home: str, files: Iterable[_File]) -> str:
    """Hash files by their paths from *home* and their contents."""
    whole = blake2b(digest_size=16)
    for file in files:
        whole.update(_within(home, file).encode() + b"\0" + _content(file))
    return whole.hexdigest()


def _within(home: str, file: _File) -> str:
    return file.path[len(home) + 1 :].replace(os.sep, "/")


@lru_cache(maxsize=4096)
def _content(file: _File) -> bytes:
    """Hash a file whatever its line endings are; while it is not written to, once."""
    with open(file.path, "rb") as stream:
        return blake2b(stream.read().replace(b"\r\n", b"\n"), digest_size=16).digest()


@lru_cache(maxsize=256)
def _imported(file: _File) -> Sequence[str]:
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


def _of_code(plugin: Plugin) -> Source | None:
    """Hash the compiled functions of a plug-in, and those of its module that they call."""
    whole = blake2b(digest_size=16)
    count = 0
    for text in _compiled(plugin, plugin.__module__, set()):
        whole.update(text.encode() + b"\0")
        count += 1
    return Source("functions", whole.hexdigest()) if count else None


def _compiled(thing: object, module: str, seen: set[int]) -> Iterator[str]:
    """Write down what a thing of a *module* does; constants as they are."""
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
                    yield from _compiled(part, module, seen)
        case classmethod() | staticmethod():
            yield from _compiled(thing.__func__, module, seen)
        case property():
            for each in (thing.fget, thing.fset):
                yield from _compiled(each, module, seen)
        case FunctionType():
            seen.add(id(thing))
            for default in thing.__defaults__ or ():
                yield from _compiled(default, module, seen)
            yield from _instructions(thing.__code__)
            yield from _compiled(getattr(thing, "__wrapped__", None), module, seen)
            for name in sorted(_names(thing.__code__)):
                yield from _compiled(thing.__globals__.get(name), module, seen)


def _instructions(code: CodeType) -> Iterator[str]:
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars}"
    for constant in code.co_consts:
        match constant:
            case CodeType():
                yield from _instructions(constant)
            case frozenset():
                yield repr(sorted(map(repr, constant)))
            case _:
                yield repr(constant)


def _names(code: CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*map(_names, inner))
