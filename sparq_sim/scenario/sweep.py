"""Sweeps: fields of a scenario that take several values, combined to settings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sparq_sim.plugin.model import Model
from sparq_sim.scenario.tables import Keys, join_path, split_path
from sparq_sim.scenario.validation import make_error

__all__ = ["MOST_SETTINGS", "Sweep"]

MOST_SETTINGS = 10_000
"""How many settings a sweep may make."""


class Sweep(Model):
    """Which fields take which values, and how the values are combined to settings.

    In a file, values are given by path, as in `"experts.sensor.channel.loss" = [0.0, 0.1]`.
    """

    way: Literal["grid", "zip", "list"] = "grid"
    """How values are combined: each with each (`grid`), the first values together, then the second
    ones (`zip`), or as `settings` lists them (`list`)."""
    values: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """The values of each swept field, by its path, such as `experts.sensor.channel.loss`."""
    settings: tuple[dict[str, Any], ...] = ()
    """The settings of a `list`, each a table of values by path."""

    @model_validator(mode="before")
    @classmethod
    def _read_paths(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "values" in given:
            return given
        fixed = {key: given[key] for key in ("way", "settings") if key in given}
        values = {key: value for key, value in given.items() if key not in fixed}
        if "settings" in fixed:
            fixed.setdefault("way", "list")
            if isinstance(fixed["settings"], list | tuple):
                fixed["settings"] = [
                    _flatten(setting, within="kind") if isinstance(setting, Mapping) else setting
                    for setting in fixed["settings"]
                ]
        return {**fixed, "values": _flatten(values)}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.way == "list" and self.values:
            raise make_error("give the values in `settings` where the way is list", *self.values)
        if self.way != "list" and self.settings:
            raise make_error("go with way = 'list' only", "settings")
        for path, values in self.values.items():
            if not values:
                raise make_error("has no values; give some, or take it out", path)
        sizes = {path: len(values) for path, values in self.values.items()}
        if self.way == "zip" and len(set(sizes.values())) > 1:
            told = ", ".join(f"{path} has {size}" for path, size in sizes.items())
            raise ValueError(f"fields swept together need equally many values; {told}")
        count = math.prod(sizes.values()) if self.way == "grid" else len(self.settings)
        if count > MOST_SETTINGS:
            raise ValueError(f"makes {count} settings; at most {MOST_SETTINGS} make a study")
        return self

    def __bool__(self) -> bool:
        return bool(self.values or self.settings)

    def each(self) -> Iterator[dict[str, Any]]:
        """Yield each setting: the values by path."""
        if self.way == "list":
            yield from self.settings
            return
        rows = product if self.way == "grid" else zip
        for row in rows(*self.values.values()):
            yield dict(zip(self.values, row, strict=True))

    def samples(self) -> Iterator[dict[str, Any]]:
        """Yield settings in which each value occurs: of a grid, along its edges only."""
        if self.way != "grid":
            yield from self.each()
            return
        first = {path: values[0] for path, values in self.values.items()}
        yield first
        for path, values in self.values.items():
            yield from (first | {path: value} for value in values[1:])

    def paths(self) -> list[str]:
        """Return the paths of all fields that are swept, each once."""
        if not self:
            return []
        return list(dict.fromkeys(path for setting in self.samples() for path in setting))


def _flatten(table: Mapping[str, Any], within: str | None = None) -> dict[str, Any]:
    """Flatten tables within tables to values by path; a table with a key *within* is a value."""
    flat: dict[str, Any] = {}
    for keys, value in _find_leaves(table, within):
        if flat.setdefault(join_path(keys), value) is not value:
            raise make_error("swept twice; take one out", join_path(keys))
    return flat


def _find_leaves(
    table: Mapping[str, Any], within: str | None, outer: Keys = ()
) -> Iterator[tuple[Keys, Any]]:
    for key, value in table.items():
        keys = (*outer, *split_path(str(key)))
        if isinstance(value, Mapping) and value and (within is None or within not in value):
            yield from _find_leaves(value, within, keys)
        else:
            yield keys, value
