"""Settings: the values of a sweep, put into a scenario."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails

from sparq_sim.errors import ScenarioError, did_you_mean
from sparq_sim.fields import is_number
from sparq_sim.limits import MOST_CHECKED_MODELS
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.registry import kind_of
from sparq_sim.scenario.layers import DEFAULTS
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.scenario.tables import ABSENT, Keys, find_at_path, join_path, split_path
from sparq_sim.scenario.validation import (
    is_union_choice,
    join_details,
    make_detail,
    make_error,
    select_details,
)

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["UNSET", "apply_setting", "find_bad_settings", "find_most", "list_settings"]

UNSET = "unset"
"""In place of the value of a field that only other settings of a list have."""


def list_settings(
    scenario: Scenario, *, allow_import: bool, most: int | None = None
) -> list[tuple[dict[str, object], Scenario]]:
    """Return each setting of a swept scenario: the values by path, and the scenario with them.

    Args:
        scenario: A scenario with a sweep.
        allow_import: Whether swept values may name code to import.
        most: At most how many settings, spread evenly; by default all.

    Raises:
        ScenarioError: A setting makes no valid scenario.
    """
    each = [
        (dict(setting), apply_setting(scenario, setting, allow_import=allow_import))
        for setting in scenario.sweep.each(most)
    ]
    paths = dict.fromkeys(path for setting, _ in each for path in setting)
    return [
        (_complete(setting, one, paths, allow_import=allow_import), one) for setting, one in each
    ]


def apply_setting(
    scenario: Scenario, setting: Mapping[str, Any], *, allow_import: bool
) -> Scenario:
    """Return a scenario with a *setting* in place of its sweep.

    Args:
        scenario: The scenario; it is not changed.
        setting: Values by path.
        allow_import: Whether the values may name code to import.

    Raises:
        ScenarioError: There is no such field, or it does not take the value.
    """
    try:
        return _apply(scenario, setting, allow_import=allow_import)
    except ValidationError as error:
        raise ScenarioError(
            *(f"sweep: {path}: {text}" for path, _, text in _blame(error, setting))
        ) from error


def find_most(scenario: Scenario) -> int:
    """Return how many settings of a scenario are looked at when it is checked.

    Args:
        scenario: A scenario; the more players it has, the longer a setting takes.
    """
    players = 1 + len(scenario.optimizers) + len(scenario.experts)
    return max(10, MOST_CHECKED_MODELS // players)


def find_bad_settings(
    scenario: Scenario, *, allow_import: bool, elsewhere: bool
) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with the values of a sweep, each once.

    Args:
        scenario: A scenario, with or without a sweep.
        allow_import: Whether swept values may name code to import.
        elsewhere: Whether to tell what a value makes wrong in fields that are not swept.
    """
    seen: set[tuple[str, str]] = set()
    for setting in scenario.sweep.samples(find_most(scenario)) if scenario.sweep else ():
        try:
            _apply(scenario, setting, allow_import=allow_import)
        except ValidationError as error:
            for path, value, text in _blame(error, setting, elsewhere=elsewhere):
                if (path, text) not in seen:
                    seen.add((path, text))
                    yield make_detail(text, "sweep", path, given=value, error_type="sweep")


def _apply(scenario: Scenario, setting: Mapping[str, Any], *, allow_import: bool) -> Scenario:
    context = {"allow_import": True} if allow_import else None
    changed: Scenario = _change(scenario, _nest(setting), (), context)
    return changed


# Values that a setting of a list does not name


def _complete(
    setting: Mapping[str, Any], scenario: Scenario, paths: Collection[str], *, allow_import: bool
) -> dict[str, object]:
    """Return a *setting* with the values that its *scenario* has at the other *paths*."""
    if setting.keys() >= set(paths):
        return dict(setting)
    written = scenario.resolve()

    def own(path: str) -> object:
        value = _find_written(written, path)
        return _simplify(scenario, path, value, allow_import=allow_import)

    return {path: setting[path] if path in setting else own(path) for path in paths}


def _find_written(written: Mapping[str, Any], path: str) -> Any:
    """Return what is at a path of a *written* scenario; `UNSET` where nothing is."""
    value = find_at_path(written, path)
    return UNSET if value is ABSENT or value is None else value


def _simplify(scenario: Scenario, path: str, value: Any, *, allow_import: bool) -> object:
    """Return a written value as a sweep would have it: as a number where that means the same."""
    numbers = (
        [each for each in value.values() if is_number(each)] if isinstance(value, dict) else []
    )
    for number in numbers:
        try:
            changed = apply_setting(scenario, {path: number}, allow_import=allow_import)
        except ScenarioError:
            continue
        if _find_written(changed.resolve(), path) == value:
            return number
    return value


# Changing a scenario


class _NewValue:
    """A leaf of the changes to make."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _nest(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Turn values by path into tables within tables."""
    tree: dict[str, Any] = {}
    for path, value in setting.items():
        *outer, last = split_path(path)
        inner = tree
        for key in outer:
            inner = inner.setdefault(key, {})
            if isinstance(inner, _NewValue):
                raise make_error("is swept, and so is a field around it", *split_path(path))
        if last in inner:
            raise make_error("is swept, and so is a field within it", *split_path(path))
        inner[last] = _NewValue(value)
    return tree


def _change(
    thing: Any, changes: Mapping[str, Any], at: Keys, context: dict[str, bool] | None
) -> Any:
    """Return *thing*, which is at some keys of a scenario, with all *changes* made at once."""

    def new_of(old: Any, change: Any, *keys: str) -> Any:
        if isinstance(change, _NewValue):
            return change.value
        return _change(old, change, (*at, *keys), context)

    if isinstance(thing, ExpertEntry):
        own = {key: change for key, change in changes.items() if key != "channel"}
        road = {key: change for key, change in changes.items() if key == "channel"}
        expert = new_of(thing.expert, own) if own else thing.expert
        channel = new_of(thing.channel, road["channel"], "channel") if road else thing.channel
        if isinstance(expert, Expert):
            return {"expert": expert, "channel": channel}
        return {**expert, "channel": channel}
    parts = _list_parts(thing, at)
    for key in changes:
        if key not in parts and at != (DEFAULTS,):  # Any field may get a default.
            raise make_error(_explain_absence(thing, key, at), *at, key)
    new = {key: new_of(parts.get(key), change, key) for key, change in changes.items()}
    if isinstance(thing, dict):
        return thing | new
    if isinstance(thing, tuple | list):
        return [new.get(str(place), item) for place, item in enumerate(thing)]
    kept = {key: getattr(thing, key) for key in thing.model_fields_set}
    if "kind" in new:  # Another model, which only the field around it can tell.
        return kept | new
    if not at:  # The scenario itself.
        kept.pop("sweep", None)
    try:
        return type(thing).model_validate(kept | new, context=context)
    except ValidationError as error:
        raise join_details([_move(detail, at) for detail in select_details(error)]) from error


def _list_parts(thing: Any, at: Keys) -> dict[str, Any]:
    """Return what can be changed in a thing: fields, entries or elements."""
    if isinstance(thing, BaseModel):
        fields = {key: getattr(thing, key) for key in type(thing).model_fields}
        if not at:
            del fields["sweep"]
        return fields | ({} if kind_of(type(thing)) is None else {"kind": None})
    if isinstance(thing, dict):
        return dict(thing)
    if isinstance(thing, tuple | list):
        return {str(place): item for place, item in enumerate(thing)}
    return {}


def _explain_absence(thing: Any, key: str, at: Keys) -> str:
    """Explain why there is no *key* to sweep in a *thing*."""
    parts = _list_parts(thing, at)
    hint = did_you_mean(key, parts)
    if at in (("experts",), ("optimizers",)):
        return f"no {at[0][:-1]} is called {key!r}: {hint}"
    if parts or isinstance(thing, dict | BaseModel):
        return f"no field {key!r} in {join_path(at)}; {hint}" if at else f"no such field; {hint}"
    if thing is None:
        return f"{join_path(at)} is not set, so {key!r} in it cannot be swept; set it first"
    return f"{join_path(at)} is a single value; sweep it, without .{key}"


def _move(detail: Any, at: Keys) -> InitErrorDetails:
    """Put the keys of a thing before those of an error in it."""
    reason = detail["msg"].removeprefix("Value error, ")
    keys = [key for key in detail["loc"] if not is_union_choice(key)]
    return make_detail(reason, *at, *keys, given=detail["input"], error_type="sweep")


# Which value is to blame


def _blame(
    error: ValidationError, setting: Mapping[str, Any], *, elsewhere: bool = True
) -> Iterator[tuple[str, Any, str]]:
    """Yield the swept paths that an error is about, with their values and the reason.

    With *elsewhere*, what a swept value makes wrong in another field is reported of its path, too.
    """
    for detail in error.errors():
        keys = tuple(str(key) for key in detail["loc"])
        swept = _find_near(keys, setting)
        if not swept and keys[:1] == ("optimizers",):
            keys = (DEFAULTS, *keys[2:])
            swept = _find_near(keys, setting)
        path = max(swept or setting, key=lambda path: len(split_path(path)) if swept else 0)
        own = split_path(path)
        here = keys[: len(own)] == own
        if not (here or elsewhere or detail["type"] == "scenario"):  # As of a path that is none.
            continue
        text = detail["msg"].removeprefix("Value error, ")
        inner = join_path(keys[len(own) :]) if here else ""
        yield path, setting[path], f"{inner}: {text}" if inner else text


def _find_near(keys: Keys, setting: Mapping[str, Any]) -> list[str]:
    """List the swept paths that *keys* are at, within or around."""
    return [
        path
        for path in setting
        if (own := split_path(path)) == keys[: len(own)] or own[: len(keys)] == keys
    ]
