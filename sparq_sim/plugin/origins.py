"""Origins: where plug-ins come from: their names, distributions, versions and sources."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import (
    EntryPoint,
    PackageNotFoundError,
    entry_points,
    packages_distributions,
)
from importlib.metadata import version as distribution_version

from sparq_sim.plugin.sources import (
    Plugin,
    Source,
    hash_module,
    hash_plugin,
    is_core,
    name_module,
)

__all__ = [
    "Origin",
    "find_entry_points",
    "find_origins",
    "hash_sources",
    "list_entry_points",
    "qualified_name",
]

_HOME = "sparq_sim"
_NO_PLUGINS = sys.stdlib_module_names | {"pydantic", "pydantic_core"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a class or function comes from."""

    name: str
    """Its full name, `module:Class`."""
    distribution: str | None
    """The installed distribution that it is part of; None where it is in none."""
    version: str | None
    """The version of that distribution."""
    covers: str
    """How much of its source was hashed, as "package lab"."""
    source: str | None
    """The hash of the source; None where there is no source to read."""

    def to_provenance(self) -> dict[str, object]:
        """Return it as provenance stores it."""
        return {
            "class": self.name,
            "distribution": self.distribution,
            "version": self.version,
            "covers": self.covers,
            "source": self.source,
        }


def hash_sources(model: type) -> Mapping[str, Source]:
    """Return the sources of a class and its bases, by module; those of sparq_sim are left out.

    Call it when the class is made: a file may be edited while this process goes on with what it
    has loaded.

    Args:
        model: The class.
    """
    modules = {each.__module__ for each in _lineage(model) if not is_core(each)}
    found = {module: hash_module(module) for module in modules}
    return {module: source for module, source in found.items() if source is not None}


def find_origins(plugins: Iterable[Plugin]) -> list[Origin]:
    """Return where plug-ins and the bases of their classes come from, sorted by name.

    Args:
        plugins: Classes, and functions that plug-ins have as fields.
    """
    found: dict[str, Origin] = {}
    for plugin in plugins:
        for each in _lineage(plugin):
            known = vars(each).get("_sources") or vars(plugin).get("_sources") or {}
            name = qualified_name(each)
            found[name] = _origin(name, known.get(each.__module__) or hash_plugin(each))
    return [found[name] for name in sorted(found)]


def qualified_name(plugin: Plugin) -> str:
    """Return the full name of a class or function, as "lab.experts:Sage".

    Args:
        plugin: The class or function.
    """
    return f"{name_module(plugin.__module__)}:{plugin.__qualname__}"


def _is_plugin(thing: Plugin) -> bool:
    """Return whether a class is a plug-in: an optimizer, or neither of the core nor of Python."""
    if is_core(thing):
        return thing.__module__.startswith(f"{_HOME}.optimizers.")
    return thing.__module__.partition(".")[0] not in _NO_PLUGINS


def _lineage(plugin: Plugin) -> list[Plugin]:
    """Return a plug-in and its bases, without those of the core, of pydantic and of Python."""
    bases = plugin.__mro__[1:] if isinstance(plugin, type) else ()
    own: list[Plugin] = [plugin] if _is_plugin(plugin) else []
    return own + [base for base in bases if _is_plugin(base) and not is_core(base)]


# Distributions


@lru_cache(maxsize=1024)
def _origin(name: str, source: Source) -> Origin:
    top = name.partition(":")[0].partition(".")[0]
    distribution, version = _announced().get(name) or _installed(top)
    return Origin(name, distribution, version, source.covers, source.hash)


def list_entry_points() -> list[EntryPoint]:
    """Return all installed entry points of the groups of sparq_sim, sorted by group."""
    return [entry for _, entries in sorted(_read().items()) for entry in entries]


def find_entry_points(group: str) -> list[EntryPoint]:
    """Return the installed entry points of a group.

    Args:
        group: One of the groups of sparq_sim, as "sparq_sim.experts".
    """
    return list(_read().get(group, ()))


def _read() -> Mapping[str, tuple[EntryPoint, ...]]:
    """Return the entry points of sparq_sim by group, read again when something was installed."""
    return _read_from(tuple((place, _find_state(place)) for place in sys.path))


def _find_state(place: str) -> tuple[int, int, int] | None:
    """Return what is another once something was installed in a folder, or removed from it."""
    try:
        state = os.stat(place or os.curdir)
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_mtime_ns


@lru_cache(maxsize=16)
def _read_from(places: tuple[object, ...]) -> Mapping[str, tuple[EntryPoint, ...]]:
    announced = entry_points()
    found = {}
    for group in announced.groups:
        if group.startswith(f"{_HOME}."):
            # The same distribution can be found twice on one path: an editable install, say.
            unique = {
                (e.name, e.value, e.dist and e.dist.name): e for e in announced.select(group=group)
            }
            found[group] = tuple(unique.values())
    return found


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
