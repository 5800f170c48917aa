"""Random scenarios: a seed becomes the table of a small scenario, as a TOML file would have it.

Kinds of plug-ins and parts are those that are installed, so that a new kind takes part by itself;
only what a kind cannot do without stands here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import inf
from typing import Any, TypeAlias, TypeVar, get_args

from numpy.random import Generator

from sparq_sim.plugin.registry import find_family, list_simulated
from sparq_sim.scenario.tables import Table
from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.channel.faults import FaultKind
from sparq_sim.simulation.randomness import Streams
from sparq_sim.vopr import parts

__all__ = ["LEFT_OUT", "ORACLE", "PLAYER", "generate_table"]

T = TypeVar("T")

Chance: TypeAlias = Generator

ORACLE = "oracle"
"""The expert who is always there: others ask it, and fall back on it."""
PLAYER = "player"
"""What the optimizer of each scenario is called."""
LEFT_OUT = {
    "recorded": "it needs a file of readings",
    "replay": "it needs a file of a play",
    "fixed": "its point depends on the domain",
    "blind-spot": "its corners depend on the domain",
    "simulator": "it needs an environment that has a coarser version",
    "online-tuning": "a play takes too long",
}
"""Plug-ins that take no part, each with the reason."""

_PERIODS = (1.0, 0.1, 1 / 3)
"""Of which whole and half multiples, and others, make many things happen at one instant."""
_SLOW = ("plume", "rod", "sparq-memory", "markov-gp", "switching")
"""Plug-ins that are drawn less often."""
_HOME = "sparq_sim.vopr.parts"
_DIMENSIONS = {"line": 1, "square": 2, "sites": 2, f"{_HOME}:{parts.Gappy.__name__}": 1}
"""Of the environments for which that is known here."""
_SITES = {"sites", "sensor-network"}
"""Environments that have sites, at which sensors stand."""
_FIELDS: dict[str, Table] = {
    "plume": {"cells": 8, "spin_up": 2.0},
    "rod": {"cells": 16, "spin_up": 2.0},
    "markov-gp": {"nodes": 12},
    "rkhs-walk": {"centres": 8},
    "committee": {"members": [ORACLE]},
    "sensors": {"roughness": 0.1, "cost_per_joule": 0.5, "measuring_energy": 0.01},
}
"""What a plug-in needs, or what makes it quick."""


def generate_table(seed: int, attempt: int = 0) -> Table:
    """Return the table of a random scenario, which may not be a valid one.

    Args:
        seed: Equal ones give equal tables.
        attempt: The number of the attempt to draw a valid one, from 0.
    """
    streams = Streams(seed, attempt)
    rng = streams.generator("vopr/scenario")
    period = _pick(rng, _PERIODS)
    is_toy = bool(rng.random() < 0.65)
    count = int(rng.integers(1, 4)) if is_toy else int(rng.integers(0, 2))
    names = [str(name) for name in rng.permutation(["a", "b", "c"])[:count]]
    has_oracle = is_toy or not names
    environment = _draw_environment(streams.generator("vopr/environment"))
    dimensions = _DIMENSIONS.get(str(environment.get("place", environment["kind"])))
    experts = {}
    for number, name in enumerate(names):
        chance = streams.generator(f"vopr/expert {number}")
        fallback = ORACLE if has_oracle else None
        expert = _draw_expert(chance, period, alone=not has_oracle)
        channel = _draw_channel(chance, period, dimensions, fallback)
        if expert["kind"] == "sensors":
            channel["split"] = True
            if not {environment.get("place"), environment["kind"]} & _SITES:
                expert["nodes"] = {"scattered": 5, "seed": 1}
        experts[name] = {**expert, "channel": channel}
    if len(names) > 1 and rng.random() < 0.5:  # Twins, by whom shared luck is seen.
        experts[names[1]]["channel"] = experts[names[0]]["channel"]
    if has_oracle:
        chance = streams.generator("vopr/oracle")
        teller = {"kind": "sparq_sim.testing:Teller"}
        experts[ORACLE] = {**teller, "channel": _draw_channel(chance, period, dimensions)}
    rules = _draw_rules(streams.generator("vopr/rules"), period, is_toy=is_toy)
    if environment["kind"] == f"{_HOME}:{parts.Gappy.__name__}":
        rules["design"] = 0  # It may meet nothing but gaps, which ends a play in words.
    return {
        **rules,
        "environment": environment,
        "feedback": _draw_channel(streams.generator("vopr/feedback"), period, dimensions),
        "experts": experts,
        "optimizers": {PLAYER: _draw_optimizer(rng, [*experts], is_toy=is_toy)},
        "seed": seed,
        "record": "full",
        "levels": False,
    }


def _pick(rng: Chance, among: Sequence[T]) -> T:
    return among[int(rng.integers(len(among)))]


@cache
def _list_kinds(kind: Any) -> tuple[str, ...]:
    """Return the plug-ins of a kind that can take part; those that are slow a fifth as often."""
    found = [name for name in list_simulated(kind) if name not in LEFT_OUT]
    return tuple(name for name in found for _ in range(1 if name in _SLOW else 5))


# Plug-ins


def _draw_environment(rng: Chance) -> Table:
    slope = "sparq_sim.testing:Slope"
    if rng.random() < 0.6:
        toys: list[Table] = [
            {"kind": slope, "place": place} for place in ("line", "square", "sites")
        ]
        return _pick(rng, [*toys, {"kind": f"{_HOME}:{parts.Gappy.__name__}"}])
    kind = _pick(rng, _list_kinds("environment"))
    return {"kind": kind, **_FIELDS.get(kind, {})}


def _draw_expert(rng: Chance, period: float, *, alone: bool) -> Table:
    if rng.random() < 0.7:
        toys: list[tuple[type, Table]] = [
            (parts.Patchy, {}),
            (parts.Dicer, {}),
            (parts.Lagged, {"lag": 1.5 * period}),
            (parts.Stammerer, {"pause": period}),
            (parts.Beacon, {"pause": 1.5 * period}),
            (parts.Charger, {"price": 0.01, "pause": 0.4 * period}),
            (parts.Relay, {"other": ORACLE}),
        ]
        toy, fields = _pick(rng, toys[:-1] if alone else toys)
        return {"kind": f"{_HOME}:{toy.__name__}", **fields}
    kinds = _list_kinds("expert")
    kind = _pick(rng, [name for name in kinds if not alone or name != "committee"])
    return {"kind": kind, **_FIELDS.get(kind, {})}


def _draw_optimizer(rng: Chance, experts: list[str], *, is_toy: bool) -> Table:
    if not is_toy:
        kind = _pick(rng, _list_kinds("optimizer"))
        return {"kind": kind, **_FIELDS.get(kind, {})}
    return {
        "kind": f"{_HOME}:{parts.Inquirer.__name__}",
        "sources": experts,
        "sizes": rng.integers(1, 6, size=int(rng.integers(1, 3))).tolist(),
        "waits": bool(rng.random() < 0.4),
        "stray": bool(rng.random() < 0.4),
    }


def _draw_rules(rng: Chance, period: float, *, is_toy: bool) -> Table:
    rounds = int(rng.integers(6, 15 if is_toy else 10))
    rules: Table = {
        "rounds": rounds,
        "period": period,
        "access": _pick(rng, ["past", "domain"]),
        "budget": _pick(rng, [inf, inf, 3.0, 0.5, 0.0]),
        "budget_per_round": _pick(rng, [inf, inf, 0.3]),
        "ends_when_spent": bool(rng.random() < 0.3),
        "design": _pick(rng, [0, 0, 0, 3]),
    }
    if rng.random() < 0.2:
        rules["horizon"] = (rounds - 1.5) * period
    if rng.random() < 0.5:
        rules["thinking"] = _draw_amount(rng, 0.6 * period)
    if not is_toy and rng.random() < 0.2:
        rules["thinking_by_effort"] = {"scale": 0.02 * period}
    return rules


# Channels


def _draw_channel(
    rng: Chance, period: float, dimensions: int | None, fallback: str | None = None
) -> Table:
    channel: Table = {
        "service": _draw_amount(rng, 0.5 * period),
        "transit": _draw_amount(rng, period),
        "cost": _draw_amount(rng, 0.02),
        "charged": _pick(rng, get_args(Due)),
        "noise": _draw_noise(rng, dimensions),
        "loss": _draw_loss(rng, period),
        "split": bool(rng.random() < 0.5),
    }
    if rng.random() < 0.3:
        channel["service_per_point"] = _draw_amount(rng, 0.1 * period)
    if rng.random() < 0.5:
        channel["cost_per_point"] = _draw_amount(rng, 0.005)
    if rng.random() < 0.6:
        channel["capacity"] = _pick(rng, [1, 2])
    if rng.random() < 0.4:
        channel["patience"] = _pick(rng, [1.2 * period, 2 * period, 3 * period])
    if rng.random() < 0.3:
        channel["outages"] = [[3 * period, 5.5 * period]]
    is_faulty, has_policy = rng.random() < 0.5, rng.random() < 0.5
    if is_faulty:
        kinds = rng.permutation(list(get_args(FaultKind)))[: int(rng.integers(1, 4))].tolist()
        channel["faults"] = [{"kind": k, "share": 0.3, "delay": 1.5 * period} for k in kinds]
    if has_policy:
        channel["policy"] = _draw_policy(rng, period, fallback)
    if (is_faulty or has_policy) and "patience" not in channel:
        channel["patience"] = 3 * period
    return channel


def _draw_policy(rng: Chance, period: float, fallback: str | None) -> Table:
    policy: Table = {
        "retries": _pick(rng, [0, 1, 3]),
        "backoff": _pick(rng, [0.0, 0.5 * period, 1.3 * period]),
        "remember": _pick(rng, [0.0, 2 * period]),
        "merge": bool(rng.random() < 0.5),
    }
    if rng.random() < 0.3:
        policy["timeout"] = 2.5 * period
    if fallback is not None and rng.random() < 0.5:
        policy["fallback"] = fallback
    if rng.random() < 0.5:
        beyond = _pick(rng, ["wait", "refuse"])
        policy["rate"] = {"points": _pick(rng, [2, 3]), "every": period, "beyond": beyond}
    return policy


def _draw_amount(rng: Chance, unit: float) -> object:
    """Return an amount of about one *unit*: a number, or a draw of any kind."""
    if rng.random() < 0.4:
        return _pick(rng, [0.0, 0.0, 0.5 * unit, unit])
    kind = _pick(rng, sorted(find_family("draw").bundled))
    fields: dict[str, Table] = {
        "constant": {"value": 0.7 * unit},
        "uniform": {"low": 0.2 * unit, "high": 1.5 * unit},
        "exponential": {"mean": 0.8 * unit},
        "lognormal": {"median": 0.5 * unit, "sigma": 0.7},
        "gamma": {"shape": 2.0, "scale": 0.4 * unit},
        "pareto": {"minimum": 0.3 * unit, "shape": 2.5},
        "empirical": {"values": [0.25 * unit, unit, 1.5 * unit]},
    }
    return {"kind": kind, **fields.get(kind, {})}


def _draw_noise(rng: Chance, dimensions: int | None) -> object:
    if rng.random() < 0.4:
        return _pick(rng, [0.0, 0.1])
    kind = _pick(rng, sorted(find_family("noise").bundled))
    if kind == "distance-dependent" and dimensions is None:
        return 0.1
    fields: dict[str, Table] = {
        "gaussian": {"std": 0.2, "claimed": 0.05},
        "student-t": {"std": 0.1},
        "bounded": {"std": 0.1},
        "value-dependent": {"floor": 0.05, "share": 0.2},
        "distance-dependent": {"floor": 0.05, "slope": 0.3, "origin": [0.5] * (dimensions or 1)},
    }
    return {"kind": kind, **fields.get(kind, {})}


def _draw_loss(rng: Chance, period: float) -> object:
    if rng.random() < 0.5:
        return _pick(rng, [0.0, 0.0, 0.3])
    kind = _pick(rng, sorted(find_family("loss").bundled))
    fields: dict[str, Table] = {
        "random": {"probability": 0.2},
        "bursts": {
            "good_spell": 5 * period,
            "bad_spell": 2 * period,
            "lost_in_good": 0.1,
            "lost_in_bad": 0.6,
        },
    }
    return {"kind": kind, **fields.get(kind, {})}
