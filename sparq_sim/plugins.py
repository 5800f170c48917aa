"""Plug-ins: environments, experts and optimizers found by entry point, loaded when asked for."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Literal, TypeAlias, overload

from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.frames import account
from sparq_sim.models import Environment, Expert, Optimizer
from sparq_sim.origins import qualified

Kind: TypeAlias = Literal["environment", "expert", "optimizer"]

_BASES: dict[Kind, type[Environment] | type[Expert] | type[Optimizer]] = {
    "environment": Environment,
    "expert": Expert,
    "optimizer": Optimizer,
}


def names(kind: Kind) -> list[str]:
    """List the plug-ins of a *kind* that are installed, without loading any."""
    _check_kind(kind)
    return sorted({entry.name for entry in _entries(kind)})


@overload
def load(
    kind: Literal["environment"], name: str, *, allow_import: bool = False
) -> type[Environment]: ...
@overload
def load(kind: Literal["expert"], name: str, *, allow_import: bool = False) -> type[Expert]: ...
@overload
def load(
    kind: Literal["optimizer"], name: str, *, allow_import: bool = False
) -> type[Optimizer]: ...
def load(
    kind: Kind, name: str, *, allow_import: bool = False
) -> type[Environment] | type[Expert] | type[Optimizer]:
    """Load the plug-in called *name*.

    With *allow_import*, a name of the form `module:Class` imports that class: code that a file
    names then runs, so the switch is for files one trusts.
    """
    _check_kind(kind)
    if ":" in name:
        if not allow_import:
            raise PluginError(
                f"{kind} {name!r} names code to import; that is off unless you allow it: add "
                "--allow-import, or in Python allow_import=True"
            )
        return _checked(kind, name, EntryPoint(name, name, _group(kind)))
    claims = [entry for entry in _entries(kind) if entry.name == name]
    if not claims:
        raise PluginError(f"no {kind} is called {name!r}: {did_you_mean(name, names(kind))}")
    if len(claims) > 1:
        owners = ", ".join(sorted(f"{claim.value} ({_distribution(claim)})" for claim in claims))
        raise PluginError(f"{kind} {name!r} is claimed twice: {owners}; uninstall or rename one")
    return _checked(kind, name, claims[0])


@lru_cache(maxsize=1024)
def name_of(plugin: type[Environment] | type[Expert] | type[Optimizer]) -> str:
    """Give the name under which a class is installed, or else `module:Class`."""
    (kind,) = (kind for kind, base in _BASES.items() if issubclass(plugin, base))
    path = qualified(plugin)
    for entry in sorted(_entries(kind), key=lambda entry: entry.name):
        # An entry point may name a package that only passes the class on.
        module = sys.modules.get(entry.module)
        if entry.value == path or getattr(module, entry.attr, None) is plugin:
            return entry.name
    return path


def _check_kind(kind: str) -> None:
    if kind not in _BASES:
        raise PluginError(f"no kind of plug-in is called {kind!r}: {did_you_mean(kind, _BASES)}")


def _group(kind: Kind) -> str:
    return f"sparq_sim.{kind}s"


def _entries(kind: Kind) -> list[EntryPoint]:
    # The same distribution can be found twice on one path: an editable install, say.
    unique = {(e.name, e.value, _distribution(e)): e for e in entry_points(group=_group(kind))}
    return list(unique.values())


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _checked(
    kind: Kind, name: str, entry: EntryPoint
) -> type[Environment] | type[Expert] | type[Optimizer]:
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) cannot be loaded: {account(error)}"
        ) from error
    base = _BASES[kind]
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) is no subclass of sparq_sim.{base.__name__}; "
            "an entry point reads `name = module:Class`"
        )
    return loaded
