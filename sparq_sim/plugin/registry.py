"""Registry: how plug-ins and parts are found by their names and loaded when they are needed.

A name is that of a class of this package, or of an entry point of an installed one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, overload

import sparq_sim
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.plugin.origins import find_entry_points, qualified_name
from sparq_sim.plugin.steered import SteeredEnvironment

__all__ = [
    "GROUPS",
    "AnyKind",
    "Family",
    "Kind",
    "PartKind",
    "add_kind",
    "check_unclaimed",
    "find_family",
    "kind_of",
    "kind_to_write",
    "list_installed",
    "list_names",
    "list_simulated",
    "load",
    "name_of",
]

Kind: TypeAlias = Literal["environment", "expert", "optimizer"]
"""Kinds of plug-ins."""
PartKind: TypeAlias = Literal[
    "draw",
    "noise",
    "loss",
    "fault",
    "kernel",
    "prior",
    "width",
    "length",
    "schedule",
    "routing",
]
"""Kinds of parts that plug-ins and channels are made of."""
AnyKind: TypeAlias = Kind | PartKind
"""All kinds that have a group of entry points."""

# Named, not imported: each imports this module, and only what is used is to be loaded.
_HOMES: dict[AnyKind, str] = {
    "environment": "sparq_sim.plugin.environment:Environment",
    "expert": "sparq_sim.plugin.expert:Expert",
    "optimizer": "sparq_sim.plugin.optimizer:Optimizer",
    "draw": "sparq_sim.simulation.channel.draws:AnyDraw",
    "noise": "sparq_sim.simulation.channel.noise:AnyNoise",
    "loss": "sparq_sim.simulation.channel.noise:AnyLoss",
    "fault": "sparq_sim.simulation.channel.faults:AnyFault",
    "kernel": "sparq_sim.gp.kernels:AnyKernel",
    "prior": "sparq_sim.gp.priors:AnyPrior",
    "width": "sparq_sim.optimizers.shared.widths:AnyWidth",
    "length": "sparq_sim.optimizers.shared.lengths:AnyLength",
    "schedule": "sparq_sim.optimizers.shared.schedules:QuerySchedule",
    "routing": "sparq_sim.optimizers.shared.routing:AnyRouting",
}

GROUPS: dict[str, AnyKind] = {
    f"sparq_sim.{kind}{'es' if kind.endswith('s') else 's'}": kind for kind in _HOMES
}
"""The groups of entry points, each with the kind that it names."""
_GROUP_OF = {kind: group for group, kind in GROUPS.items()}


class Family(NamedTuple):
    """The classes of a kind that are known without an entry point."""

    base: type[Model]
    """The base that all classes of the kind derive from."""
    bundled: Mapping[str, type[Model]]
    """The classes that come with this package, by name; entry points name others."""


@cache
def find_family(kind: AnyKind) -> Family:
    """Return the base and the bundled classes of a kind.

    Args:
        kind: As "expert" or "draw".
    """
    home = EntryPoint(kind, _HOMES[kind], _GROUP_OF[kind]).load()
    base, *annotations = get_args(home) or (home,)
    return Family(base, annotations[0].bundled if annotations else {})


def list_names(kind: AnyKind) -> list[str]:
    """Return the names of all plug-ins of a kind, sorted, without loading those of entry points.

    Args:
        kind: As "expert" or "draw".

    Raises:
        PluginError: There is no such kind.
    """
    _check_kind(kind)
    return sorted({*find_family(kind).bundled, *list_installed(kind)})


def list_installed(kind: AnyKind) -> list[str]:
    """Return the names that entry points give to plug-ins of a kind, sorted.

    Args:
        kind: As "expert" or "draw".
    """
    return sorted({entry.name for entry in _entries(kind)})


def list_simulated(kind: Kind) -> list[str]:
    """Return the names of the plug-ins of a kind that are simulated, so that all is known of them.

    Those are all but real ones, and environments that can only be tried.

    Args:
        kind: As "expert".

    Raises:
        PluginError: There is no such kind, or one of them cannot be loaded.
    """
    return [name for name in list_names(kind) if not _is_only_tried(load(kind, name))]


def _is_only_tried(plugin: type[Model]) -> bool:
    return getattr(plugin, "is_real", False) or issubclass(plugin, SteeredEnvironment)


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
@overload
def load(kind: AnyKind, name: str, *, allow_import: bool = False) -> type[Model]: ...
def load(kind: AnyKind, name: str, *, allow_import: bool = False) -> type[Model]:
    """Return the class of a plug-in.

    Args:
        kind: As "expert" or "draw".
        name: Its name in this package or in an entry point; or `module:Class`.
        allow_import: Whether `module:Class` may be imported. That runs code that a scenario file
            names, so allow it for files that you trust.

    Raises:
        PluginError: No plug-in has that name, two have it, or it cannot be loaded.
    """
    _check_kind(kind)
    if ":" in name:
        if not allow_import:
            raise PluginError(
                f"{kind} {name!r} names code to import; that is off unless you allow it: add "
                "--allow-import, or in Python allow_import=True"
            )
        if EntryPoint.pattern.fullmatch(name) is None:
            raise PluginError(f"{kind} {name!r} names no class: write `module:Class`")
        return _load_checked(kind, name, EntryPoint(name, name, _GROUP_OF[kind]))
    bundled = find_family(kind).bundled.get(name)
    claims = [entry for entry in _entries(kind) if entry.name == name]
    _check_claims(kind, name, claims)
    if bundled is not None:
        return bundled
    if not claims:
        raise PluginError(f"no {kind} is called {name!r}: {did_you_mean(name, list_names(kind))}")
    return _load_checked(kind, name, claims[0])


def check_unclaimed(kind: AnyKind, name: str) -> None:
    """Raise an error if an entry point gives the name of a bundled class to another class.

    Args:
        kind: As "draw".
        name: The name of a bundled class.

    Raises:
        PluginError: An entry point gives it.
    """
    if name in _claimed(kind, tuple(sys.path)):
        load(kind, name)


@lru_cache(maxsize=256)
def _claimed(kind: AnyKind, path: tuple[str, ...]) -> frozenset[str]:
    """Return what is installed of a *kind*; looked up once, as bundled parts are read often."""
    return frozenset(list_installed(kind))


@lru_cache(maxsize=1024)
def kind_of(model: type) -> AnyKind | None:
    """Return the kind of a class, as "expert"; None where it is no plug-in and no part.

    Args:
        model: The class.
    """
    for kind, home in _HOMES.items():
        # A class that derives from a base has loaded the module of that base.
        if home.partition(":")[0] in sys.modules and issubclass(model, find_family(kind).base):
            return kind
    return None


@lru_cache(maxsize=1024)
def name_of(plugin: type[Model]) -> str:
    """Return the name of a plug-in or part, as `load` takes it; without one, `module:Class`.

    Args:
        plugin: Its class.
    """
    path = qualified_name(plugin)
    if (kind := kind_of(plugin)) is None:
        return path
    for name, bundled in find_family(kind).bundled.items():
        if bundled is plugin:
            return name
    for entry in sorted(_entries(kind), key=lambda entry: entry.name):
        # An entry point may name a package that only passes the class on.
        module = sys.modules.get(entry.module)
        if entry.value == path or getattr(module, entry.attr, None) is plugin:
            return entry.name
    return path


def kind_to_write(model: object) -> str | None:
    """Return what a scenario file has as the `kind` of a model; None where it has none.

    Args:
        model: Any object; only plug-ins and parts have a kind.

    Raises:
        PluginError: The class has a field `kind` of its own, whose value would be lost.
    """
    if not isinstance(model, Model):
        return None
    plugin = type(model)
    if (kind := kind_of(plugin)) is None:
        return None
    if plugin in find_family(kind).bundled.values():
        return str(getattr(model, "kind"))  # noqa: B009 - of bundled parts alone
    name = name_of(plugin)
    _check_kept(model, kind, name)
    return name


def _check_kept(model: Model, kind: AnyKind, name: str) -> None:
    """Refuse a *model* whose field `kind`, if it has one, is lost where *name* is written."""
    field = type(model).model_fields.get("kind")
    if field is None:
        return
    # Parts are read with the name that is written, where their field takes it.
    read = (
        name if kind in get_args(PartKind) and name in get_args(field.annotation) else field.default
    )
    own = getattr(model, "kind")  # noqa: B009 - of those that have one
    if own != read:
        raise PluginError(
            f"{kind} {name!r} has a field `kind` that is {own!r}, but under `kind` its name is "
            "written: call the field something else, as `sort`"
        )


def add_kind(fields: dict[str, Any], kind: object) -> dict[str, Any]:
    """Return the fields of a model with its kind, as they are written.

    Args:
        fields: What is written of the fields.
        kind: What `kind_to_write` returned; None for none.
    """
    if kind is None:
        return fields
    return ({} if "kind" in fields else {"kind": kind}) | fields | {"kind": kind}


def _check_kind(kind: str) -> None:
    if kind not in _HOMES:
        raise PluginError(f"no kind of plug-in is called {kind!r}: {did_you_mean(kind, _HOMES)}")


def _entries(kind: AnyKind) -> list[EntryPoint]:
    return find_entry_points(_GROUP_OF[kind])


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "unknown"


def _check_claims(kind: AnyKind, name: str, claims: Iterable[EntryPoint]) -> None:
    """Refuse a *name* that is claimed more than once."""
    owners = [f"{claim.value} ({_distribution(claim)})" for claim in claims]
    if (bundled := find_family(kind).bundled.get(name)) is not None:
        owners.append(f"{qualified_name(bundled)} (sparq-sim)")
    if len(owners) > 1:
        listed = ", ".join(sorted(owners))
        raise PluginError(f"{kind} {name!r} is claimed twice: {listed}; uninstall or rename one")


def _load_checked(kind: AnyKind, name: str, entry: EntryPoint) -> type[Model]:
    try:
        with refuse_exits():
            loaded = entry.load()
    except Exception as error:
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) cannot be loaded: {describe_error(error)}"
        ) from error
    base = find_family(kind).base
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        home = "sparq_sim" if base.__name__ in sparq_sim.__all__ else base.__module__
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) is no subclass of {home}.{base.__name__}; "
            "an entry point reads `name = module:Class`"
        )
    if missing := getattr(loaded, "__abstractmethods__", ()):
        raise PluginError(
            f"{kind} {name!r} ({entry.value}) does not define {', '.join(sorted(missing))}"
        )
    return loaded
