"""Layers: the values of a scenario from several places, of which later ones win."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from sparq_sim.errors import ScenarioError, did_you_mean
from sparq_sim.scenario.tables import (
    ABSENT,
    Keys,
    Table,
    format_value,
    get_entry,
    join_path,
    remove,
    split_path,
)

__all__ = [
    "DEFAULTS",
    "WITHOUT",
    "Layer",
    "Layers",
    "find_swept",
    "merge",
    "name_optimizers",
    "stack",
]

DEFAULTS = "optimizer_defaults"
"""The table of fields that all optimizers of a scenario share."""
WITHOUT = "without"
"""The field of a file that lists what is taken out of what it extends."""


@dataclass(frozen=True)
class Layer:
    """Values from one place: a file, or an override."""

    name: str
    """What messages call the place."""
    values: Table
    """The values."""
    lines: Mapping[Keys, int] = field(default_factory=dict)
    """The line of each key of a file; an override has none."""
    left_out: Sequence[Keys] = ()
    """What is taken out of the layers below before its own values are laid on them."""

    def line(self, keys: Keys) -> int:
        """Return the line of *keys*, or of the nearest table around them.

        Args:
            keys: The path of a value, from the outermost table.
        """
        known = (keys[:size] for size in range(len(keys), 0, -1))
        return next((self.lines[k] for k in known if k in self.lines), 1)

    def where(self, keys: Keys) -> str:
        """Return the place of *keys* as messages name it: the file and line, or the override.

        Args:
            keys: The path of a value, from the outermost table.
        """
        return f"{self.name}:{self.line(keys)}" if self.lines else self.name

    def depth(self, keys: Keys) -> int:
        """Return how many of *keys*, one within the other, this layer has.

        Args:
            keys: The path of a value, from the outermost table.
        """
        value: Any = self.values
        for count, key in enumerate(keys):
            value = get_entry(value, key)
            if value is ABSENT:
                return count
        return len(keys)


@dataclass(frozen=True)
class Layers:
    """Values from several places, of which later ones win."""

    layers: Sequence[Layer]
    """The places, from the one that is extended to the last override."""

    @property
    def values(self) -> Table:
        """All values together."""
        table: Table = {}
        for layer in self.layers:
            table = merge(reduce(_take_out, layer.left_out, table), layer.values)
        return table

    def giver(self, keys: Keys) -> Layer:
        """Return the layer that gave *keys*; of equals, the last.

        Args:
            keys: The path of a value, from the outermost table.
        """
        return max(reversed(self.layers), key=lambda layer: layer.depth(keys))

    def order(self, keys: Keys) -> tuple[int, int]:
        """Return a sort key for *keys* in the order of reading: by layer, then by line.

        Args:
            keys: The path of a value, from the outermost table.
        """
        giver = self.giver(keys)
        return [layer is giver for layer in self.layers].index(True), giver.line(keys)


def stack(layers: Sequence[Layer]) -> Layers:
    """Lay *layers* upon each other, each `without` what it takes out of those below it.

    Args:
        layers: From the base to what overrides it.

    Returns:
        The values of all, and who gave each.

    Raises:
        ScenarioError: A layer takes out what is not there.
    """
    whole = Layers(())
    for layer in layers:
        whole = Layers([*whole.layers, _read_without(layer, whole)])
    return whole


def merge(base: Any, over: Any, keys: Keys = ()) -> Any:
    """Lay *over* on *base*: tables merge deeply, anything else is replaced.

    A table of another `kind` (or another `way` to sweep) replaces the whole one, whose fields
    it would not have; only the channel of an expert stays.

    Args:
        base: The value below.
        over: The value above, which wins.
        keys: Where in a scenario they are.

    Returns:
        The merged value.
    """
    if keys == ("optimizers",) and isinstance(over, dict):
        base = name_optimizers(base)
    if isinstance(base, list) and isinstance(over, dict):
        if over and all(get_entry(base, key) is not ABSENT for key in over):
            places = enumerate(base)
            return [
                merge(v, over[str(i)], (*keys, str(i))) if str(i) in over else v for i, v in places
            ]
        return over
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    for tag in ("kind", "way"):
        if tag in base and tag in over and base[tag] != over[tag]:
            stays = ("channel",) if len(keys) == 2 and keys[0] == "experts" else ()
            base = {key: base[key] for key in stays if key in base}
    return base | {
        key: merge(base[key], value, (*keys, key)) if key in base else value
        for key, value in over.items()
    }


def name_optimizers(optimizers: Any) -> Any:
    """Return a list of kinds as a table of optimizers, each named as its kind.

    Anything else is returned as it is.

    Args:
        optimizers: The value of `optimizers`, as the file has it.
    """
    if isinstance(optimizers, list) and all(isinstance(kind, str) for kind in optimizers):
        return {kind: {"kind": kind} for kind in optimizers}
    return optimizers


def find_swept(sweep: Any) -> Iterator[tuple[Keys, Keys]]:
    """Yield where in a file's table *sweep* each swept path is written, and the path's keys.

    Args:
        sweep: The table `sweep`, as the file has it, even if it is wrong.
    """
    yield from _find_swept(sweep, ("sweep",), ())


def _find_swept(table: Any, outer: Keys, path: Keys) -> Iterator[tuple[Keys, Keys]]:
    items = enumerate(table) if isinstance(table, list) else ()
    for key, value in table.items() if isinstance(table, dict) else items:
        keys = (*outer, str(key))
        # Places in the list of settings are no part of a path.
        inner = (
            path
            if keys[:2] == ("sweep", "settings") and len(keys) < 4
            else (*path, *split_path(str(key)))
        )
        if inner:
            yield keys, inner
        if isinstance(value, dict) or keys == ("sweep", "settings"):
            yield from _find_swept(value, keys, inner)


# What is taken out of what is extended


def _read_without(layer: Layer, base: Layers) -> Layer:
    """Read which parts of its *base* a layer is `without`."""
    if WITHOUT not in layer.values:
        return layer
    given = layer.values[WITHOUT]
    if not base.layers:
        raise ScenarioError(
            f"{layer.where((WITHOUT,))}: {WITHOUT}: goes with `extends`; there is nothing to take "
            "out of"
        )
    if not isinstance(given, list) or not all(isinstance(path, str) for path in given):
        raise ScenarioError(
            f"{layer.where((WITHOUT,))}: {WITHOUT}: {format_value(given)}: expected a list of "
            'paths, as in ["optimizers.uniform"]'
        )
    problems, left_out, values = [], [], base.values
    for place, path in enumerate(given):
        written, known = _find_written(values, split_path(path))
        if written is None:
            problems.append(
                f"{layer.where((WITHOUT, str(place)))}: {WITHOUT}: {str(path)!r}: is not in what "
                f"is extended; {did_you_mean(path, known)}"
            )
        else:
            left_out.append(written)
    if problems:
        raise ScenarioError(*problems)
    rest = {key: value for key, value in layer.values.items() if key != WITHOUT}
    return replace(layer, values=rest, left_out=left_out)


def _find_written(values: Table, keys: Keys) -> tuple[Keys | None, list[str]]:
    """Find where in a table *keys* are written; if nowhere, list the paths that there are."""
    sweep = values.get("sweep")
    if keys[0] == "sweep" and isinstance(sweep, dict) and keys != ("sweep", "settings"):
        lists = {key: value for key, value in sweep.items() if key != "settings"}
        paths = {("sweep", *path): at for at, path in find_swept(lists)}
        leaves = [path for path in paths if not any(path == p[: len(path)] != p for p in paths)]
        # A list of settings goes as a whole: what one of them sweeps has no list of its own.
        leaves += [("sweep", "settings")] if "settings" in sweep else []
        return {("sweep",): ("sweep",), **paths}.get(keys), [join_path(path) for path in leaves]
    inner: Any = values
    for depth, key in enumerate(keys):
        outer = name_optimizers(inner) if keys[:depth] == ("optimizers",) else inner
        inner = get_entry(outer, key)
        if inner is ABSENT:
            others = outer if isinstance(outer, dict) else {}
            return None, [join_path((*keys[:depth], other)) for other in others]
    return keys, []


def _take_out(values: Table, keys: Keys) -> Table:
    """Return a table without what is at *keys*, and without tables of a sweep that it empties."""
    if keys[0] == "optimizers" and keys[1:]:
        values = values | {"optimizers": name_optimizers(values["optimizers"])}
    rest: Table = remove(values, keys)
    inner: Any = rest
    for key in keys[:-1]:
        inner = get_entry(inner, key)
    return _take_out(rest, keys[:-1]) if keys[0] == "sweep" and keys[1:] and not inner else rest
