"""What tests of networks share: a town of nodes, somebody who asks them, and tables to look at."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_experts.sensors import Sensors
from sparq_experts.wireless.checks import SensorsWarning
from sparq_experts.wireless.propagation import AnyPathLoss, OuluLoss
from sparq_sim import Channel, Environment, Move, Optimizer, Query, Rules, Sites, Trace, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.messages import Reply
from sparq_sim.plugin.contract import Agent, Asks, Briefing, Landscape

QUIET = OuluLoss(shadowing=0.0)
"""Path loss without chance."""
SF7 = {"kind": "lora-sx1272-eu868", "spreading_factor": 7}
"""LoRa at its fastest, whatever the link."""
CC2420 = {"kind": "ieee802154-cc2420"}
"""IEEE 802.15.4 with its defaults."""
Column = NDArray[Any]


class Town(Environment):
    """Sites on a line, *apart* from each other, whose rewards are waves that pass with time."""

    sites: int = 1
    apart: float = 100.0
    speed: float = 0.1
    """Of the waves, in radians per clock unit; 0 for rewards that never change."""

    def start(self, rng: Generator) -> Landscape:
        return TownLandscape(self)


class TownLandscape:
    def __init__(self, model: Town) -> None:
        self._speed = model.speed
        self.domain = Sites(model.apart * np.arange(model.sites)[:, None])

    def rewards(self, points: Points, time: float) -> Values:
        waves: Values = np.sin(points[:, 0] + self._speed * time)
        return waves

    def best(self, time: float) -> tuple[Point, float]:
        rewards = self.rewards(self.domain.points, time)
        return self.domain.points[rewards.argmax()], float(rewards.max())


class Caller(Optimizer):
    """Asks about the sites of each round, by number; several times a site is several queries."""

    asks: ClassVar[Asks | None] = "anywhere"
    calls: Mapping[int, tuple[int, ...]] = {}
    """By round, from 1."""
    each_round: tuple[int, ...] = ()
    """In every round."""
    together: bool = False
    """Whether the sites of a round are asked about in one query."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return CallerAgent(self, briefing)


class CallerAgent:
    def __init__(self, model: Caller, briefing: Briefing) -> None:
        self._model = model
        self._briefing = briefing
        self._ids, self._rounds = count(1), count(1)

    def ask(self, now: float) -> Move:
        model, domain = self._model, self._briefing.domain
        assert isinstance(domain, Sites)
        called = [*model.calls.get(next(self._rounds), ()), *model.each_round]
        points = [domain.points[[site]] for site in called]
        if model.together and points:
            points = [np.concatenate(points)]
        queries = tuple(
            Query(next(self._ids), name, each, now)
            for name in self._briefing.experts
            for each in points
        )
        return Move(domain.points[0], queries)

    def tell(self, reply: Reply) -> None:
        """Ignore the reply."""


@dataclass(frozen=True)
class Outcome:
    """What a play with a network left behind."""

    trace: Trace
    model: Sensors

    def table(self, name: str) -> Mapping[str, Column]:
        return self.trace.accounts[f"network/{name}"]

    @property
    def nodes(self) -> Mapping[str, Column]:
        return self.table("nodes")

    @property
    def gateways(self) -> Mapping[str, Column]:
        return self.table("gateways")

    @property
    def packets(self) -> Mapping[str, Column]:
        return self.table("packets")

    def select(self, **wanted: object) -> dict[str, Column]:
        """Packets with these entries."""
        return select(self.packets, **wanted)

    @property
    def asked(self) -> dict[str, Column]:
        """Replies to queries."""
        replies = self.trace.replies
        return _keep(replies, (replies["source"] == "network") & (replies["asker"] == "agent"))

    @property
    def pushed(self) -> dict[str, Column]:
        """Readings that nobody asked for."""
        return select(self.trace.replies, asker="network")

    @property
    def energy(self) -> Column:
        """Of each node, in joules."""
        columns = [c for name, c in self.nodes.items() if name.startswith("energy_")]
        used: Column = np.sum(columns, axis=0)
        return used


def select(table: Mapping[str, Column], **wanted: object) -> dict[str, Column]:
    """Rows of a table with these entries."""
    kept = np.ones(len(next(iter(table.values()))), bool)
    for name, value in wanted.items():
        kept &= table[name] == value
    return _keep(table, kept)


def _keep(table: Mapping[str, Column], kept: Column) -> dict[str, Column]:
    return {name: column[kept] for name, column in table.items()}


def sensors(**fields: Any) -> Sensors:
    """A network without shadowing, unless told otherwise."""
    lora = str(fields.get("radio", {}).get("kind", "lora")).startswith("lora")
    loss: AnyPathLoss | Mapping[str, object] = (
        QUIET if lora else {"kind": "castalia-2.4ghz", "shadowing": 0.0}
    )
    return Sensors.model_validate({"path_loss": loss, **fields})


def play_town(
    model: Sensors,
    town: Environment | None = None,
    *,
    rounds: int,
    caller: Optimizer | None = None,
    channel: Mapping[str, Any] | None = None,
    played: Callable[..., Trace] = play,
    seed: int = 0,
    **rules: Any,
) -> Outcome:
    """Play a town with a network called `network`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SensorsWarning)
        trace = played(
            caller or Caller(),
            town or Town(),
            Rules(rounds=rounds, access="domain", **rules),
            experts={
                "network": (model, Channel.model_validate({"split": True, **(channel or {})}))
            },
            seed=seed,
        )
    assert "invalid" not in trace.replies["fate"], trace.replies["reason"]
    return Outcome(trace, model)


def within_three_errors(found: float, expected: float, trials: int) -> bool:
    """Whether a share of independent trials is within 3 standard errors of its probability."""
    error = np.sqrt(expected * (1 - expected) / trials)
    return bool(abs(found - expected) <= 3 * error + 1e-12)


def latencies(replies: Mapping[str, Column]) -> Sequence[float]:
    """From asking to arrival, in clock units."""
    found: list[float] = (replies["arrived_at"] - replies["asked_at"]).tolist()
    return found
