"""Mutations of the values of a scenario file: what is valid TOML, and means something else."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any, TypeAlias

from pydantic import BaseModel

from sparq_sim.fields import is_number
from sparq_sim.plugin.registry import GROUPS, AnyKind, list_names, load
from sparq_sim.scenario.fingerprint import to_data
from sparq_sim.scenario.tables import join_path
from sparq_sim.scenario.toml_text import write_toml_table

__all__ = ["mutate_values"]

_Place: TypeAlias = tuple[Any, Any, tuple[str, ...]]
"""A table or list, a key of it, and all keys up to it."""


def mutate_values(text: str, other: str, rng: Random) -> bytes:
    """Return a scenario with one to four values changed, as TOML.

    Args:
        text: What is mutated; TOML.
        other: Another scenario, from which values are taken.
        rng: Chooses the mutations.
    """
    values, others = tomllib.loads(text), tomllib.loads(other)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(_MUTATIONS)(values, others, rng)
    return write_toml_table(_as_writable(values)).encode(errors="surrogatepass")


def _list_places(value: Any, keys: tuple[str, ...] = ()) -> Iterator[_Place]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield value, key, (*keys, str(key))
        if isinstance(inner, dict | list):
            yield from _list_places(inner, (*keys, str(key)))


def _choose_place(values: Any, rng: Random, *, numbers: bool = False) -> _Place | None:
    places = list(_list_places(values))
    if numbers:
        places = [(inner, key, keys) for inner, key, keys in places if is_number(inner[key])]
    return rng.choice(places) if places else None


# What is changed


def _set_from_pool(values: Any, others: Any, rng: Random) -> None:
    if place := _choose_place(values, rng):
        place[0][place[1]] = deepcopy(rng.choice(_POOL))


def _scale_number(values: Any, others: Any, rng: Random) -> None:
    if place := _choose_place(values, rng, numbers=True):
        inner, key, _ = place
        inner[key] = _draw_number(rng, inner[key])


def _draw_number(rng: Random, old: Any) -> Any:
    number = rng.choice(
        (
            rng.choice(_NUMBERS),
            10.0 ** rng.uniform(-320, 308),
            10.0 ** rng.uniform(-20, 20),
            10.0 ** rng.uniform(0, 6),
        )
    )
    if isinstance(old, int) and rng.random() < 0.8 and abs(number) < 1e300:
        return round(number)
    return number


def _remove(values: Any, others: Any, rng: Random) -> None:
    if place := _choose_place(values, rng):
        del place[0][place[1]]


def _take_value(values: Any, others: Any, rng: Random) -> None:
    """Put a value of another scenario in the place of one."""
    place, source = _choose_place(values, rng), _choose_place(others, rng)
    if place and source:
        place[0][place[1]] = deepcopy(source[0][source[1]])


def _swap(values: Any, others: Any, rng: Random) -> None:
    one, two = _choose_place(values, rng), _choose_place(values, rng)
    if one and two and one[2][: len(two[2])] != two[2] and two[2][: len(one[2])] != one[2]:
        one[0][one[1]], two[0][two[1]] = two[0][two[1]], one[0][one[1]]


def _change_kind(values: Any, others: Any, rng: Random) -> None:
    """Put a table of another kind, with fields, in the place of one with a kind."""
    places = [
        (inner, key, keys)
        for inner, key, keys in _list_places(values)
        if isinstance(inner[key], dict) and "kind" in inner[key]
    ]
    if places:
        inner, key, keys = rng.choice(places)
        family = _family_of(inner[key]["kind"], keys, rng)
        inner[key] = _draw_table(family, rng) | (
            {"channel": inner[key]["channel"]} if "channel" in inner[key] else {}
        )


def _family_of(kind: object, keys: tuple[str, ...], rng: Random) -> AnyKind:
    """Return the family that a table is of, and sometimes another."""
    named: dict[str, AnyKind] = {"environment": "environment"}
    pairs: dict[str, AnyKind] = {"experts": "expert", "optimizers": "optimizer"}
    own = named.get(keys[-1]) or (pairs.get(keys[0]) if len(keys) == 2 else None)
    fitting = [each for each in GROUPS.values() if kind in list_names(each)]
    anyone = rng.choice([*GROUPS.values()])
    if own and rng.random() < 0.9:
        return own
    return fitting[0] if fitting else anyone


def _draw_table(family: AnyKind, rng: Random, depth: int = 0) -> dict[str, Any]:
    kind = rng.choice(list_names(family))
    fields = _list_fields(family, kind)
    table: dict[str, Any] = {"kind": kind}
    for name, default in fields.items():
        if default is not _MISSING and rng.random() < 0.7:
            continue
        if rng.random() < 0.1:
            table[name] = deepcopy(rng.choice(_POOL))
        elif isinstance(default, dict) and depth < 2:
            table[name] = deepcopy(default)
            if place := _choose_place(table[name], rng, numbers=True):
                place[0][place[1]] = _draw_number(rng, place[0][place[1]])
        elif is_number(default) or default is _MISSING:
            table[name] = _draw_number(rng, default)
        elif default is not None:
            table[name] = deepcopy(default)
    return table


_MISSING = object()


@cache
def _list_fields(family: AnyKind, kind: str) -> dict[str, Any]:
    """Return the fields of a kind with their defaults."""
    model = load(family, kind)
    defaults: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name == "kind":
            continue
        default = field.get_default(call_default_factory=True)
        if field.is_required():
            defaults[name] = _MISSING
        else:
            defaults[name] = _as_data(default)
    return defaults


def _as_data(default: Any) -> Any:
    if isinstance(default, BaseModel):
        return to_data(default)
    if isinstance(default, tuple):
        return [_as_data(each) for each in default]
    return default if isinstance(default, bool | int | float | str | dict | None) else None


def _set_field(values: Any, others: Any, rng: Random) -> None:
    """Set a field that a table with a kind does not name."""
    tables = [
        inner[key]
        for inner, key, _ in _list_places(values)
        if isinstance(inner[key], dict) and isinstance(inner[key].get("kind"), str)
    ]
    if not tables:
        return
    table = rng.choice(tables)
    for family in GROUPS.values():
        if table["kind"] in list_names(family):
            drawn = _list_fields(family, table["kind"])
            if drawn:
                name = rng.choice([*drawn])
                default = drawn[name]
                table[name] = (
                    _draw_number(rng, default)
                    if is_number(default)
                    else deepcopy(rng.choice((*_POOL, _draw_table(family, rng))))
                )
            return


def _set_rule(values: Any, others: Any, rng: Random) -> None:
    """Set a field of the whole scenario, or of a channel."""
    tables = [values] * 2
    tables += [inner["channel"] for inner, key, _ in _list_places(values) if key == "channel"]
    if isinstance(values.get("feedback"), dict):
        tables.append(values["feedback"])
    table = rng.choice([each for each in tables if isinstance(each, dict)])
    names = _RULES if table is values else _CHANNEL
    name = rng.choice(names)
    drawn: tuple[Any, ...] = (
        _draw_number(rng, rng.choice((1, 1.0))),
        _draw_number(rng, rng.choice((1, 1.0))),
        _draw_table(rng.choice(("draw", "draw", "noise", "loss", "fault")), rng),
        deepcopy(rng.choice(_POOL)),
    )
    table[name] = rng.choice(drawn)


def _add_sweep(values: Any, others: Any, rng: Random) -> None:
    """Sweep fields that there are, or that there are not, over many values."""
    sweep: Any = values.setdefault("sweep", {})
    if not isinstance(sweep, dict):
        return
    for _ in range(rng.choice((1, 2, 6, 9))):
        place = _choose_place(values, rng)
        if place is None or place[2][0] == "sweep":
            continue
        path = join_path(place[2])
        old = place[0][place[1]]
        count = rng.choice((1, 2, 3, 10, 100, 1000))
        fields: list[Callable[[], Any]] = [
            lambda old=old: _draw_number(rng, old),  # type: ignore[misc]
            lambda old=old: deepcopy(old),  # type: ignore[misc]
            lambda: deepcopy(rng.choice(_POOL[:-6])),
        ]
        draw = rng.choice(fields)
        sweep[path] = [draw() for _ in range(count)]
    if rng.random() < 0.3:
        sweep["way"] = rng.choice(("grid", "zip", "list", "all", 3))


def _name_file(values: Any, others: Any, rng: Random) -> None:
    """Name files and code that nobody should read."""
    path = rng.choice(_PATHS)
    rng.choice(
        (
            lambda: values.update(extends=path),
            lambda: values.update(environment={"kind": "recorded", "files": [path]}),
            lambda: values.update(environment={"kind": "replay", "file": path}),
            lambda: values.update(experts={"r": {"kind": "replay", "file": path}}),
            lambda: values.update(experts={"r": {"kind": "sensors", "nodes": {"file": path}}}),
            lambda: values.update(thinking={"kind": "empirical", "file": path, "column": "cost"}),
            lambda: values.update(environment={"kind": path}),
            lambda: values.update(live={"pause": {"kind": "file", "file": path}}),
            lambda: values.update(
                environment={"kind": "program", "command": [path], "folder": path}
            ),
        )
    )()


def _as_writable(value: Any) -> Any:
    """Return a value that can be written: dates as their text."""
    if isinstance(value, dict):
        return {key: _as_writable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_as_writable(inner) for inner in value if inner is not None]
    if isinstance(value, datetime.date | datetime.time):
        return str(value)
    return value


_MUTATIONS: list[Callable[[Any, Any, Random], None]] = [
    *(_set_from_pool, _set_from_pool, _scale_number, _scale_number, _scale_number),
    *(_remove, _take_value, _swap, _change_kind, _change_kind, _change_kind),
    *(_set_field, _set_field, _set_field, _set_rule, _set_rule, _set_rule, _add_sweep, _name_file),
]
_NUMBERS = (
    *(0, -1, 1, 2, 3, 7, 100, 10**6, 10**9, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**320),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 5e-324, 1e-12, 1e6, 1e9, 1e15, 1e17, 1e49, 1e50, 1.1e50),
    *(1e100, 1e154, 1e155, 1e300, 1.7e308, float("inf"), float("-inf"), float("nan")),
)
_POOL: tuple[Any, ...] = (
    *_NUMBERS,
    *(True, False, "", " ", "a", "inf", "nan", "1", "0.5", "sparq-gp-ucb", "truth", "synthetic"),
    *([], [[]], {}, [0], [0, 1], [1, 0], [0.0, 0.0], [[0.0, 1.0]], [1.0, 1.0, 1.0], ["a", "b"]),
    *(
        [1e50] * 3,
        [0.0] * 1000,
        [[0.0, 1.0] for _ in range(20)],
        ["truth"] * 3,
        [{}],
        {"kind": "constant"},
    ),
    *({"kind": ""}, {"kind": 3}, {"kind": "os:system"}, {"kind": "sparq_sim.errors:SparqError"}),
    *({"a": {"b": {"c": {}}}}, {"kind": "uniform", "low": 1.0, "high": 1.0}),
    *("a" * 100_000, "\0", "\u202e", "é" * 300, {"x" * 10_000: 1}, {"": 1}),
)
_PATHS = (
    *("../../etc/passwd", "/etc/passwd", "/dev/zero", "/dev/stdin", "/dev/tty", "fifo", ".", ".."),
    *("data", "data/*.csv", "**/*", "nodes.csv", "costs.csv", "base.toml", "ring.toml"),
    *("there.toml", "link.csv", "~/.bashrc", "/proc/self/mem", "os:system", "", "no-such.csv"),
    *(
        "a" * 300,
        "\0",
        "file\nname",
        "synthetic",
        "paper/synthetic",
        "large.csv",
        "/proc/self/fd/0",
    ),
)
_RULES = (
    *("rounds", "period", "horizon", "budget", "budget_per_round", "design", "thinking"),
    *("thinking_by_effort", "replications", "seed", "access", "record", "title", "levels"),
)
_CHANNEL = (
    *("service", "service_per_point", "transit", "cost", "cost_per_point", "noise", "loss"),
    *("capacity", "patience", "outages", "split", "faults", "policy", "charged"),
)
