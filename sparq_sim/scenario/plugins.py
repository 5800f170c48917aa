"""Plug-ins in scenarios: a table with a `kind` becomes a model of the plug-in of that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidationInfo, model_validator

from sparq_sim.errors import PluginError
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Optimizer
from sparq_sim.plugin.registry import Kind, list_names, load
from sparq_sim.scenario.layers import DEFAULTS, merge
from sparq_sim.scenario.validation import make_error
from sparq_sim.simulation.channel.channel import Channel

__all__ = ["EnvironmentTable", "ExpertEntry", "ExpertTable", "OptimizerTable", "has_flag"]


def has_flag(info: ValidationInfo, name: str) -> bool:
    """Return whether the context of a validation has the flag *name*.

    The flags are `allow_import` (tables may name code to import), `played` (what has been played
    is not judged again) and `again` (what was wrong has been taken out).

    Args:
        info: What pydantic passes to a validator.
        name: `allow_import`, `played` or `again`.
    """
    return bool((info.context or {}).get(name, False))


def _read_plugin(kind: Kind, given: Any, info: ValidationInfo) -> Any:
    """Read a table with a `kind` by the plug-in's own model; take a model as it is."""
    if isinstance(given, BaseModel):
        return given
    if not isinstance(given, Mapping):
        raise _make_no_table_error(kind)
    name = given.get("kind")
    if "kind" not in given:
        raise make_error(f"missing; say which {kind}: {', '.join(list_names(kind))}", "kind")
    if not isinstance(name, str):
        raise make_error(f"expected the name of an {kind}", "kind", given=name)
    try:
        model = load(kind, name, allow_import=has_flag(info, "allow_import"))
    except PluginError as error:
        raise make_error(str(error), "kind", given=name) from error
    fields = {key: value for key, value in given.items() if key != "kind"}
    try:
        with refuse_exits():
            return model.model_validate(fields, context=info.context)
    except ValidationError:
        raise
    except Exception as error:  # A validator of the plug-in's own, that is broken.
        raise make_error(
            f"{kind} {name!r} fails on its fields: {describe_error(error)}", "kind"
        ) from error


def _make_no_table_error(kind: Kind) -> ValidationError:
    return make_error(
        f"should be a table with a kind; the kinds are: {', '.join(list_names(kind))}"
    )


def _read_environment(given: Any, info: ValidationInfo) -> Any:
    return _read_plugin("environment", given, info)


def _read_expert(given: Any, info: ValidationInfo) -> Any:
    return _read_plugin("expert", given, info)


def _read_optimizer(given: Any, info: ValidationInfo) -> Any:
    """Read an optimizer, with the defaults of the scenario for the fields that it does not set.

    A table that it has itself is laid over that of the defaults, as over that of a file extended.
    """
    defaults: Mapping[str, Any] = (info.data or {}).get(DEFAULTS) or {}
    match given:
        case Optimizer():
            model, own = type(given), {key: getattr(given, key) for key in given.model_fields_set}
        case {"kind": str() as kind} if defaults:
            try:
                model = load("optimizer", kind, allow_import=has_flag(info, "allow_import"))
            except PluginError:
                return _read_plugin("optimizer", given, info)
            own = {key: merge(defaults.get(key), value) for key, value in given.items()}
        case _:
            return _read_plugin("optimizer", given, info)
    fields = model.model_fields.keys() - own.keys()
    more = {key: value for key, value in defaults.items() if key in fields}
    if isinstance(given, Optimizer):
        if not more:
            return given
        made = model.model_validate(own | more, context=info.context)
    else:
        made = _read_plugin("optimizer", own | more, info)
    # Only its own: where a sweep changes a default, the optimizer takes the new one.
    object.__setattr__(made, "__pydantic_fields_set__", own.keys() - {"kind"})
    return made


EnvironmentTable: TypeAlias = Annotated[Environment, BeforeValidator(_read_environment)]
"""An environment, or a table with the `kind` and the fields of one."""
ExpertTable: TypeAlias = Annotated[Expert, BeforeValidator(_read_expert)]
"""An expert, or a table with the `kind` and the fields of one."""
OptimizerTable: TypeAlias = Annotated[Optimizer, BeforeValidator(_read_optimizer)]
"""An optimizer, or a table with the `kind` and the fields of one."""


class ExpertEntry(Model):
    """An expert and its channel; in a file one table, in which the `channel` is a field.

    In Python it is made from a table as in a file, from an expert alone, or from a pair of an
    expert and its channel.
    """

    expert: ExpertTable
    """The expert that answers: a table with a `kind`."""
    channel: Channel = Channel()
    """How the expert is reached: service, transit, cost, noise, loss and more."""

    @model_validator(mode="before")
    @classmethod
    def _split_table(cls, given: Any) -> Any:
        match given:
            case Expert():
                return {"expert": given}
            case (Expert() as expert, channel):
                return {"expert": expert, "channel": channel}
            case {"expert": Expert()} | ExpertEntry():
                return given
            case Mapping():
                own = {key: value for key, value in given.items() if key != "channel"}
                road = {"channel": given["channel"]} if "channel" in given else {}
                return {"expert": own, **road}
        raise _make_no_table_error("expert")
