"""Programs: the commands that a scenario names, which are run only if that is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from sparq_sim.errors import ScenarioError
from sparq_sim.fields import RunsProgram
from sparq_sim.scenario.tables import Keys, join_path

__all__ = ["check_programs"]


def check_programs(parts: Mapping[str, Any], *, allowed: bool) -> None:
    """Refuse parts of a scenario that name programs to run, unless that is allowed.

    Args:
        parts: What is about to be started, by where it stands in the scenario.
        allowed: Whether programs may be run.

    Raises:
        ScenarioError: A field of a part is a `Command`, and *allowed* is false.
    """
    if allowed:
        return
    found = [
        f"{join_path(keys)}: {list(command)} names a program to run; that is off unless you "
        "allow it: add --allow-programs, or in Python allow_programs=True"
        for name, part in parts.items()
        for keys, command in _find_commands(part, tuple(name.split(".", 1)))
    ]
    if found:
        raise ScenarioError(*found)


def _find_commands(thing: Any, keys: Keys) -> Iterator[tuple[Keys, tuple[str, ...]]]:
    """Yield where in a *thing* commands are, and each of them."""
    match thing:
        case BaseModel():
            for name, field in type(thing).model_fields.items():
                value = getattr(thing, name)
                if any(isinstance(each, RunsProgram) for each in field.metadata):
                    yield (*keys, name), tuple(value)
                else:
                    yield from _find_commands(value, (*keys, name))
        case Mapping():
            for key, value in thing.items():
                yield from _find_commands(value, (*keys, str(key)))
        case list() | tuple():
            for place, value in enumerate(thing):
                yield from _find_commands(value, (*keys, str(place)))
