"""Which fields a table of a scenario can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from sparq_sim.errors import PluginError
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.registry import find_family, kind_of, load
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.scenario.tables import Keys, Table, get_entry
from sparq_sim.simulation.channel.channel import Channel

__all__ = ["list_fields"]


def list_fields(
    model: type[BaseModel], values: Table, keys: Keys, *, allow_import: bool = False
) -> list[str]:
    """Return the fields of the table at *keys*, as far as the kinds in *values* tell.

    Args:
        model: The model that all values are for.
        values: The values, as they are written.
        keys: Where in them the table is.
        allow_import: Whether a `kind` may name code to import.
    """
    annotation: Any = model
    value: Any = values
    fields = _find_fields(annotation, value, allow_import=allow_import)
    for key in keys:
        value = get_entry(value, key)
        # Keys of a mapping and places in a list have the type of their like.
        annotation = fields.get(key, annotation)
        fields = _find_fields(annotation, value, allow_import=allow_import)
    return list(fields)


def _find_fields(annotation: Any, value: Any, *, allow_import: bool) -> dict[str, Any]:
    """Return the annotations by field of the model, among those annotated, that *value* is for."""
    kind = value.get("kind") if isinstance(value, dict) else None
    models = [leaf for leaf in _find_types(annotation) if issubclass(leaf, BaseModel)]
    for model in models:
        if model is ExpertEntry:
            own = _find_fields(Expert, value, allow_import=allow_import)
            return {**own, "channel": Channel}
        sort = kind_of(model)
        if sort is not None and model is find_family(sort).base:
            try:
                plugin = load(sort, str(kind), allow_import=allow_import)
            except PluginError:
                return {"kind": str}
            own = {key: field.annotation for key, field in plugin.model_fields.items()}
            return {"kind": str, **own}
    tagged = [
        m for m in models if "kind" in m.model_fields and m.model_fields["kind"].default == kind
    ]
    fields = (tagged or models)[0].model_fields if models else {}
    return {key: field.annotation for key, field in fields.items()}


def _find_types(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for inner in get_args(annotation):
        yield from _find_types(inner)
