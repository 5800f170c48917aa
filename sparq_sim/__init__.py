"""Simulate optimising something that keeps changing, with late and costly side information."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

# Each name is written twice: here for type checkers and editors, which do not run `__getattr__`,
# and in `_HOMES` for Python, which loads a module when its first name is used. One list would need
# a stub file, beside which mypy no longer checks this file, or imports at once, which would load
# SimPy and pydantic for a user who reads results. A test keeps the two equal.
if TYPE_CHECKING:
    from sparq_sim.domain import Box as Box
    from sparq_sim.domain import Sites as Sites
    from sparq_sim.errors import AnswerLost as AnswerLost
    from sparq_sim.errors import PluginError as PluginError
    from sparq_sim.errors import SparqError as SparqError
    from sparq_sim.errors import Unaffordable as Unaffordable
    from sparq_sim.errors import Unavailable as Unavailable
    from sparq_sim.messages import Answer as Answer
    from sparq_sim.messages import Estimate as Estimate
    from sparq_sim.messages import Failure as Failure
    from sparq_sim.messages import Move as Move
    from sparq_sim.messages import Query as Query
    from sparq_sim.plugin.adaptors import from_function as from_function
    from sparq_sim.plugin.adaptors import from_process as from_process
    from sparq_sim.plugin.briefing import Briefing as Briefing
    from sparq_sim.plugin.environment import Environment as Environment
    from sparq_sim.plugin.expert import Expert as Expert
    from sparq_sim.plugin.expert import World as World
    from sparq_sim.plugin.optimizer import Optimizer as Optimizer
    from sparq_sim.scenario.model import Scenario as Scenario
    from sparq_sim.simulation.channel.channel import Channel as Channel
    from sparq_sim.simulation.channel.faults import Fault as Fault
    from sparq_sim.simulation.channel.policy import Policy as Policy
    from sparq_sim.simulation.play import play as play
    from sparq_sim.simulation.play import play_live as play_live
    from sparq_sim.simulation.rules import Rules as Rules
    from sparq_sim.simulation.trace import Trace as Trace
    from sparq_sim.study.results import Results as Results
    from sparq_sim.study.study import Study as Study

__version__ = "0.1.0"

_HOMES = {
    "Answer": "messages",
    "AnswerLost": "errors",
    "Box": "domain",
    "Channel": "simulation.channel.channel",
    "Environment": "plugin.environment",
    "Estimate": "messages",
    "Expert": "plugin.expert",
    "Failure": "messages",
    "Fault": "simulation.channel.faults",
    "Move": "messages",
    "Optimizer": "plugin.optimizer",
    "PluginError": "errors",
    "Policy": "simulation.channel.policy",
    "Query": "messages",
    "Rules": "simulation.rules",
    "Results": "study.results",
    "Scenario": "scenario.model",
    "Briefing": "plugin.briefing",
    "Sites": "domain",
    "SparqError": "errors",
    "Study": "study.study",
    "Trace": "simulation.trace",
    "Unaffordable": "errors",
    "Unavailable": "errors",
    "World": "plugin.expert",
    "from_function": "plugin.adaptors",
    "from_process": "plugin.adaptors",
    "play": "simulation.play",
    "play_live": "simulation.play",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"sparq_sim has no {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(f"sparq_sim.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
