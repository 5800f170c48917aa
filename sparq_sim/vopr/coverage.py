"""Coverage: which kinds of things random scenarios had, and which were never met."""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import Any, TypeAlias, get_args

from sparq_sim.plugin.registry import find_family, list_simulated
from sparq_sim.scenario.tables import Table
from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.channel.faults import FaultKind
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.simulation.records import Fate
from sparq_sim.vopr.case import Case
from sparq_sim.vopr.executors import list_executors
from sparq_sim.vopr.generate import LEFT_OUT

__all__ = ["Coverage", "find_kinds", "list_unmet"]

Coverage: TypeAlias = Counter[tuple[str, str]]
"""How many seeds had what: by group, as "fault", and name."""

_RULES = (
    "budget",
    "budget_per_round",
    "ends_when_spent",
    "horizon",
    "thinking",
    "thinking_by_effort",
    "design",
)
_CHANNEL = ("capacity", "patience", "outages", "split", "cost_per_point", "service_per_point")
_DRAWS = ("service", "service_per_point", "transit", "cost", "cost_per_point")


def find_kinds(case: Case) -> set[tuple[str, str]]:
    """Return what a case has, each by its group and its name.

    Args:
        case: The case.
    """
    table = case.table
    met = {("environment", _name(table["environment"]))}
    met |= {("optimizer", _name(each)) for each in table["optimizers"].values()}
    met |= {("expert", _name(each)) for each in table.get("experts", {}).values()}
    met |= {("rule", name) for name in _RULES if table.get(name, inf) not in (inf, 0, False)}
    met.add(("access", str(table.get("access", "past"))))
    waits = any(each.get("waits") for each in table["optimizers"].values())
    met.add(("agent", "waits for replies" if waits else "plays each round"))
    channels = [
        table.get("feedback"),
        *(e.get("channel") for e in table.get("experts", {}).values()),
    ]
    for channel in channels:
        met |= _find_in_channel(channel or {})
    return met


def _name(plugin: Table) -> str:
    return str(plugin["kind"]).rpartition(":")[2]


def _find_in_channel(channel: Table) -> set[tuple[str, str]]:
    met = {("charged", str(channel.get("charged", "asked")))}
    met |= {("draw", _kind(channel[name], "constant")) for name in _DRAWS if name in channel}
    met.add(("noise", _kind(channel.get("noise"), "gaussian")))
    met.add(("loss", _kind(channel.get("loss"), "random")))
    met |= {("channel", name) for name in _CHANNEL if channel.get(name)}
    met |= {("fault", fault["kind"]) for fault in channel.get("faults", ())}
    met |= {("policy", name) for name, value in channel.get("policy", {}).items() if value}
    return met


def _kind(part: Any, plain: str) -> str:
    return str(part["kind"]) if isinstance(part, dict) else plain


def list_unmet(met: Coverage) -> dict[str, list[str]]:
    """Return what there is and was never met, by group.

    Args:
        met: How many seeds had what.
    """
    there: dict[str, list[str]] = {
        "environment": list_simulated("environment"),
        "expert": list_simulated("expert"),
        "optimizer": list_simulated("optimizer"),
        "draw": [*find_family("draw").bundled],
        "noise": [*find_family("noise").bundled],
        "loss": [*find_family("loss").bundled],
        "fault": [*get_args(FaultKind)],
        "policy": [*Policy.model_fields],
        "charged": [*get_args(Due)],
        "fate": [fate.value for fate in Fate],
        "executor": list_executors(),
    }
    # Growth is a number that every policy has.
    known = {("policy", "growth")}
    return {
        group: unmet
        for group, names in there.items()
        if (
            unmet := [
                name
                for name in names
                if not met[group, name] and (group, name) not in known and name not in LEFT_OUT
            ]
        )
    }
