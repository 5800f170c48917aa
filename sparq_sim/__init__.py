"""Simulate optimising something that keeps changing, with late and costly side information."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparq_sim.adaptors import from_function as from_function
    from sparq_sim.adaptors import from_process as from_process
    from sparq_sim.channel import Channel as Channel
    from sparq_sim.domain import Box as Box
    from sparq_sim.domain import Sites as Sites
    from sparq_sim.errors import PluginError as PluginError
    from sparq_sim.errors import SparqError as SparqError
    from sparq_sim.errors import Unavailable as Unavailable
    from sparq_sim.faults import Fault as Fault
    from sparq_sim.loop import Rules as Rules
    from sparq_sim.loop import play as play
    from sparq_sim.loop import play_live as play_live
    from sparq_sim.messages import Answer as Answer
    from sparq_sim.messages import Estimate as Estimate
    from sparq_sim.messages import Failure as Failure
    from sparq_sim.messages import Move as Move
    from sparq_sim.messages import Query as Query
    from sparq_sim.models import Environment as Environment
    from sparq_sim.models import Expert as Expert
    from sparq_sim.models import Optimizer as Optimizer
    from sparq_sim.models import Setting as Setting
    from sparq_sim.models import World as World
    from sparq_sim.policy import Policy as Policy
    from sparq_sim.scenario import Scenario as Scenario
    from sparq_sim.study import Study as Study
    from sparq_sim.trace import Trace as Trace

__version__ = "0.1.0"

_HOMES = {
    "Answer": "messages",
    "Box": "domain",
    "Channel": "channel",
    "Environment": "models",
    "Estimate": "messages",
    "Expert": "models",
    "Failure": "messages",
    "Fault": "faults",
    "Move": "messages",
    "Optimizer": "models",
    "PluginError": "errors",
    "Policy": "policy",
    "Query": "messages",
    "Rules": "loop",
    "Scenario": "scenario",
    "Setting": "models",
    "Sites": "domain",
    "SparqError": "errors",
    "Study": "study",
    "Trace": "trace",
    "Unavailable": "errors",
    "World": "models",
    "from_function": "adaptors",
    "from_process": "adaptors",
    "play": "loop",
    "play_live": "loop",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"sparq_sim has no {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(f"sparq_sim.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
