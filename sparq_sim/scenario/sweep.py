"""Sweeps: fields of a scenario that take several values, combined to settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from sparq_sim.limits import MOST_SETTINGS
from sparq_sim.plugin.model import Model
from sparq_sim.scenario.tables import Keys, join_path, split_path
from sparq_sim.scenario.validation import make_error

__all__ = ["Sweep"]


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
        if self.count() > MOST_SETTINGS:
            raise ValueError(
                f"makes {self.count()} settings; at most {MOST_SETTINGS} make a study; give fewer "
                "values, or sweep them in several studies"
            )
        return self

    def __bool__(self) -> bool:
        return bool(self.values or self.settings)

    def count(self) -> int:
        """Return how many settings there are, without making them."""
        sizes = [len(values) for values in self.values.values()]
        match self.way:
            case "grid":
                return math.prod(sizes)
            case "zip":
                return min(sizes, default=1)
        return len(self.settings)

    def each(self, most: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield each setting: the values by path.

        Args:
            most: At most how many, spread evenly, with the first and the last; by default all.
        """
        return map(self._make_setting, _spread(self.count(), most))

    def _make_setting(self, place: int) -> dict[str, Any]:
        """Return the setting at a *place* in the order in which they are played."""
        if self.way == "list":
            return self.settings[place]
        if self.way == "zip":
            return {path: values[place] for path, values in self.values.items()}
        setting = {}
        for path, values in reversed(self.values.items()):
            place, own = divmod(place, len(values))
            setting[path] = values[own]
        return {path: setting[path] for path in self.values}

    def samples(self, most: int | None = None) -> Iterator[dict[str, Any]]:
        """Yield settings in which each value occurs: of a grid, along its edges only.

        Args:
            most: At most how many, spread evenly, with the first and the last; by default all.
        """
        if self.way != "grid":
            yield from self.each(most)
            return
        first = {path: values[0] for path, values in self.values.items()}
        # The first setting has the first value of each.
        changes = [(path, place) for path in self.values for place in range(len(self.values[path]))]
        changes = [each for number, each in enumerate(changes) if number == 0 or each[1] > 0]
        for number in _spread(len(changes), most):
            path, place = changes[number]
            yield first | {path: self.values[path][place]}

    def paths(self) -> list[str]:
        """Return the paths of all fields that are swept, each once."""
        return list(
            dict.fromkeys([*self.values, *(path for each in self.settings for path in each)])
        )


def _spread(count: int, most: int | None) -> Iterable[int]:
    """Return all places from 0 on, or *most* of them."""
    if most is None or count <= most:
        return range(count)
    return (number * (count - 1) // (most - 1) for number in range(most))


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
