"""Schema: the JSON Schema of scenario files, with the installed plug-ins, for editors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import models_json_schema

from sparq_sim.errors import PluginError
from sparq_sim.plugin.field_docs import read_field_docs, read_summary
from sparq_sim.plugin.registry import GROUPS, AnyKind, add_kind, list_installed, load
from sparq_sim.scenario.layers import DEFAULTS, WITHOUT
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.simulation.channel.channel import Channel

__all__ = ["build_schema"]


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of scenario files, with all installed plug-ins.

    Each field has its sentence as a description. What a file takes from one that it extends is
    not required of it.
    """
    loaded = {kind: _load_installed(kind) for kind in GROUPS.values()}
    models = {model for found in loaded.values() for model in found.values()}
    definitions, names = _define([*models, Scenario, Channel])
    choices = _define_plugins(loaded, definitions, names)
    definitions = _add_installed(definitions, choices)
    whole = definitions[names[Scenario]]
    optimizers = [definitions[names[model]] for model in loaded["optimizer"].values()]
    full = whole["properties"] | _build_tables(choices, [*loaded["optimizer"]], optimizers)
    extends = "Another scenario file beside this one, or a bundled scenario, taken as the base."
    taken_out = "Paths to take out of what is extended, such as optimizers.uniform."
    rest = {key: value for key, value in whole.items() if key not in ("properties", "required")}
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **rest,
        # Editors complete by these; what a file that extends nothing must have is below.
        "properties": {name: _relax(node) for name, node in full.items()}
        | {
            "extends": {"type": "string", "description": extends},
            WITHOUT: {"type": "array", "items": {"type": "string"}, "description": taken_out},
        },
        "allOf": _require_unless_extended(full),
    }
    definitions |= {_name_relaxed(name): _relax(node) for name, node in definitions.items()}
    return made | {"$defs": _select_used(made, definitions)}


def _define(
    models: Iterable[type[BaseModel]],
) -> tuple[dict[str, Any], dict[type[BaseModel], str]]:
    """Return the definitions of *models* and of all that they hold, and the name of each."""
    ordered = sorted(models, key=lambda model: (model.__module__, model.__name__))
    inputs: list[Any] = [(model, "validation") for model in ordered]
    refs, defs = models_json_schema(inputs, ref_template="#/$defs/{model}")
    names = {m: refs[m, "validation"]["$ref"].removeprefix("#/$defs/") for m in ordered}
    return _adapt(defs["$defs"]), names


def _define_plugins(
    loaded: Mapping[AnyKind, Mapping[str, type[BaseModel]]],
    definitions: dict[str, Any],
    names: Mapping[type[BaseModel], str],
) -> dict[str, Any]:
    """Add the table of each plug-in to *definitions*, and return the choices of each kind."""
    channel = _describe(
        {"$ref": f"#/$defs/{names[Channel]}"}, read_field_docs(ExpertEntry).get("channel")
    )
    choices: dict[str, Any] = {}
    for kind, found in loaded.items():
        more = {"channel": channel} if kind == "expert" else {}
        for name, model in found.items():
            own = definitions[names[model]]
            tag = _describe({"const": name}, read_summary(model))
            definitions[f"{kind}: {name}"] = own | {
                "properties": add_kind(own.get("properties", {}) | more, tag),
                "required": [*dict.fromkeys(["kind", *own.get("required", [])])],
            }
        choices[kind] = {"oneOf": [{"$ref": f"#/$defs/{kind}: {name}"} for name in found]}
    return choices


def _build_tables(
    choices: Mapping[str, Any], kinds: Sequence[str], optimizers: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the schemas of the fields of a scenario that hold plug-ins.

    Args:
        choices: What may be chosen of each kind of plug-in.
        kinds: The names of all optimizers.
        optimizers: Their definitions.
    """
    docs = read_field_docs(Scenario)
    tables = {"type": "object", "additionalProperties": choices["optimizer"], "minProperties": 1}
    names = {"type": "array", "items": {"enum": kinds}, "minItems": 1}
    nodes: dict[str, dict[str, Any]] = {
        "environment": choices["environment"],
        "experts": {"type": "object", "additionalProperties": choices["expert"]},
        "optimizers": {"anyOf": [tables, names]},
        DEFAULTS: {
            "type": "object",
            "properties": _join_fields(optimizers),
            "additionalProperties": False,
        },
        "sweep": {"type": "object"},
    }
    return {name: _describe(node, docs.get(name)) for name, node in nodes.items()}


def _require_unless_extended(full: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return schemas that ask for *full* tables where nothing else can give their fields."""
    own = {name: node for name, node in full.items() if name not in ("optimizers", DEFAULTS)}
    with_kinds = {"additionalProperties": {"required": ["kind"]}}
    described = _describe(with_kinds, full["optimizers"].get("description"))
    extends, defaults = {"required": ["extends"]}, {"required": [DEFAULTS]}
    return [
        {
            "if": extends,
            "else": {
                "required": ["environment", "optimizers"],
                "properties": own | {"optimizers": described},
            },
        },
        {
            "if": {"anyOf": [extends, defaults]},
            "else": {"properties": {"optimizers": full["optimizers"]}},
        },
    ]


def _relax(node: Any) -> Any:
    """Return the schema of what is laid over a table that a *node* describes.

    No field is required, nor a `kind`, and elements of a list can be given by their places.
    """
    if isinstance(node, list):
        return [_relax(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "array":
        items = _relax(node.get("prefixItems") or [node.get("items", {})])
        by_place = {
            "type": "object",
            "patternProperties": {"^[0-9]+$": {"anyOf": items}},
            "additionalProperties": False,
        }
        return _describe({"anyOf": [node, by_place]}, node.get("description"))
    loose: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "$ref":
                loose[key] = f"#/$defs/{_name_relaxed(value.removeprefix('#/$defs/'))}"
            case "oneOf":  # Without its kind, a table may be one of several.
                loose["anyOf"] = _relax(value)
            case "properties":
                loose[key] = {name: _relax(inner) for name, inner in value.items()}
            case "required" | "discriminator" | "minProperties":
                pass
            case _:
                loose[key] = _relax(value)
    return loose


def _name_relaxed(name: str) -> str:
    """Return the name of the definition of a part of a table."""
    return f"part of {name}"


def _select_used(node: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the *definitions* that a node refers to, and those that these refer to."""
    found: dict[str, Any] = {}
    waiting = [*_find_references(node)]
    while waiting:
        if (name := waiting.pop()) not in found:
            found[name] = definitions[name]
            waiting += _find_references(found[name])
    return dict(sorted(found.items()))


def _find_references(node: Any) -> Iterator[str]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key == "$ref":
            yield value.removeprefix("#/$defs/")
        elif isinstance(value, dict | list):
            yield from _find_references(value)


def _describe(node: dict[str, Any], text: str | None) -> dict[str, Any]:
    return node | ({"description": text} if text else {})


def _join_fields(definitions: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schemas of the fields of several models; one that differs may be any of them."""
    found: dict[str, list[Any]] = {}
    for definition in definitions:
        for name, own in definition.get("properties", {}).items():
            if own not in found.setdefault(name, []):
                found[name].append(own)
    return {
        name: each[0] if len(each) == 1 else _join_choices(each) for name, each in found.items()
    }


def _join_choices(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    told = dict.fromkeys(node["description"] for node in nodes if "description" in node)
    return _describe({"anyOf": list(nodes)}, " Or: ".join(told))


def _add_installed(node: Any, choices: Mapping[str, Any]) -> Any:
    """Add the installed parts to the bundled ones, wherever one may be chosen."""
    if isinstance(node, list):
        return [_add_installed(item, choices) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _add_installed(value, choices) for key, value in node.items()}
    if "oneOf" in node and node.get("title") in choices:
        node["oneOf"] = [*node["oneOf"], *choices[node["title"]]["oneOf"]]
    return node


def _load_installed(kind: AnyKind) -> dict[str, type[BaseModel]]:
    """Load what is installed of a *kind*, except what is broken and what no schema can describe."""
    found: dict[str, type[BaseModel]] = {}
    for name in list_installed(kind):
        try:
            model: type[BaseModel] = load(kind, name)
            model.model_json_schema()
        except (PluginError, PydanticInvalidForJsonSchema):
            continue
        found[name] = model
    return found


def _adapt(node: Any) -> Any:
    """Add what validators allow beyond the types, and leave out what JSON cannot write."""
    if isinstance(node, list):
        return [_adapt(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {
        key: _adapt(value)
        for key, value in node.items()
        if not (isinstance(value, float) and not math.isfinite(value))
    }
    if node.get("title") == "Empirical":  # Its values can come from a file.
        node["properties"] |= {
            "file": {"type": "string", "description": "A CSV file with recorded values."},
            "column": {"type": "string", "description": "The column of the file to read."},
        }
        node["required"] = []
    if node.get("properties", {}).get("kind", {}).keys() & {"const", "enum"}:
        # It has a default for Python; a file names it.
        node["required"] = [*dict.fromkeys(["kind", *node.get("required", [])])]
    return node
