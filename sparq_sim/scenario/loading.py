"""Loading: make models of the values of files and overrides, or list all that is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from sparq_sim.errors import ScenarioError
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.expert import Expert
from sparq_sim.plugin.registry import load
from sparq_sim.scenario.files import read_overrides
from sparq_sim.scenario.layers import Layer, Layers
from sparq_sim.scenario.problems import Problems

__all__ = ["make_environment", "make_expert", "validate_layers"]

_MOST_LOOKS = 4

_ModelT = TypeVar("_ModelT", bound=BaseModel)


def validate_layers(
    model: type[_ModelT], layers: Layers, *, whole: str = "scenario", allow_import: bool = False
) -> _ModelT:
    """Make a *model* of the values of *layers*.

    Args:
        model: What to make.
        layers: The values, and where they come from.
        whole: What messages call all values together.
        allow_import: Whether a `kind` may name code to import, as `module:Class`.

    Returns:
        The validated model.

    Raises:
        ScenarioError: The values are not valid; all that is wrong is listed.
    """
    problems = Problems(layers, model, whole=whole, allow_import=allow_import)
    values = layers.values
    # What is wrong elsewhere may hide behind what is wrong first: look again without it.
    for _ in range(_MOST_LOOKS):
        context = {"allow_import": allow_import, "again": bool(problems.lines)}
        try:
            made = model.model_validate(values, context=context)
        except ValidationError as error:
            values = problems.add(error, values)
            if problems.untold:
                break
        else:
            break
    if problems.lines:
        raise ScenarioError(*problems.lines)
    return made


def make_environment(
    kind: str, overrides: Sequence[str] = (), *, allow_import: bool = False
) -> Environment:
    """Make an environment of a *kind*.

    Args:
        kind: The name of the environment, or with *allow_import* `module:Class`.
        overrides: Fields to set, each FIELD=VALUE.
        allow_import: Whether the kind may name code to import.

    Returns:
        The environment, with defaults for all other fields.

    Raises:
        PluginError: There is no such environment.
        ScenarioError: Its fields are not valid; all that is wrong is listed.
    """
    model = load("environment", kind, allow_import=allow_import)
    # What nobody gave is said of the last layer.
    own = Layer(f"environment {kind} (fields are set by --set FIELD=VALUE)", {})
    layers = Layers([*read_overrides(overrides).layers, own])
    return validate_layers(model, layers, whole="environment")


def make_expert(kind: str, overrides: Sequence[str] = (), *, allow_import: bool = False) -> Expert:
    """Make an expert of a *kind*.

    Args:
        kind: The name of the expert, or with *allow_import* `module:Class`.
        overrides: Fields to set, each FIELD=VALUE.
        allow_import: Whether the kind may name code to import.

    Returns:
        The expert, with defaults for all other fields.

    Raises:
        PluginError: There is no such expert.
        ScenarioError: Its fields are not valid; all that is wrong is listed.
    """
    model = load("expert", kind, allow_import=allow_import)
    own = Layer(f"expert {kind} (fields are set by --set FIELD=VALUE)", {})
    layers = Layers([*read_overrides(overrides).layers, own])
    return validate_layers(model, layers, whole="expert")
