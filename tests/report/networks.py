"""Tables of a made-up wireless network, as a source leaves them in the accounts of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.expert import Answering, Expert, World
from sparq_sim.report.network import CAUSES, FATES, NetworkData, read_networks

Tables = dict[str, dict[str, Any]]


def make_accounts(
    nodes: int = 12, *, source: str = "sensors", name: str = "node ", mains: int = 1, dead: int = 2
) -> Tables:
    """Return the tables of a network in which the last nodes are on mains, and the first dead.

    Args:
        nodes: How many there are.
        source: The name of the source.
        name: Before the number of each node.
        mains: How many have no battery.
        dead: How many died.
    """
    rng = np.random.default_rng(nodes)
    east, north = rng.uniform(0, 3000, nodes), rng.uniform(0, 2000, nodes)
    gateways = np.array([[800.0, 1000.0], [2300.0, 900.0]])
    distances = np.hypot(east[:, None] - gateways[:, 0], north[:, None] - gateways[:, 1])
    nearest = distances.argmin(axis=1)
    capacity = np.full(nodes, 100.0)
    capacity[nodes - mains :] = np.inf
    died_at = np.full(nodes, np.nan)
    died_at[:dead] = 30.5 + 5 * np.arange(dead)
    energy = {cause: rng.uniform(0.5, 8.0, nodes) for cause in CAUSES[:-1]}
    used = np.sum(list(energy.values()), axis=0)
    left = np.where(np.isfinite(died_at), 0.0, capacity - used)
    sent = rng.integers(20, 60, nodes)
    delivered = (sent * rng.uniform(0.3, 1.0, nodes)).astype(int)
    times = np.linspace(0, 50, 101)
    falling = np.where(
        np.isinf(capacity),
        np.inf,
        100 - np.outer(times, np.where(np.isfinite(died_at), 100 / died_at, used / 50)),
    ).clip(0)
    fates = rng.choice(FATES, 400, p=[0.7, 0.1, *[0.2 / 7] * 7])
    return {
        f"{source}/nodes": {
            "name": np.array([f"{name}{i}" for i in range(nodes)]),
            "east": east,
            "north": north,
            "capacity": capacity,
            "left": left,
            "died_at": died_at,
            "gateway": nearest,
            "distance": distances.min(axis=1),
            "margin": rng.uniform(-3, 20, nodes),
            "rate": rng.integers(7, 13, nodes),
            **{f"energy_{cause}": energy.get(cause, np.zeros(nodes)) for cause in CAUSES},
            "harvested": np.zeros(nodes),
            "wasted": np.zeros(nodes),
            "sent": sent,
            "delivered": delivered,
            "lost": sent - delivered,
            "collided": (sent - delivered) // 3,
            "refused": rng.integers(0, 4, nodes),
            "airtime": sent * 0.06,
        },
        f"{source}/gateways": {
            "name": np.array(["west", "east"]),
            "east": gateways[:, 0],
            "north": gateways[:, 1],
            "airtime": np.array([3.0, 4.0]),
            "busiest": np.array([2, 3]),
        },
        f"{source}/levels": {
            "time": np.repeat(times, nodes),
            "node": np.tile(np.arange(nodes), len(times)),
            "left": falling.ravel(),
            "alive": ~(times[:, None] > died_at).ravel(),
        },
        f"{source}/packets": {
            "number": np.arange(400),
            "node": rng.integers(0, nodes, 400),
            "direction": np.array(["up", "down"])[np.arange(400) % 2],
            "purpose": np.array(["report", "query", "answer", "query", "heartbeat"])[
                np.arange(400) % 5
            ],
            "fate": fates,
        },
    }


def make_network(nodes: int = 12, **fields: Any) -> NetworkData:
    """Return the network of `make_accounts`."""
    (network,), notes = read_networks(make_accounts(nodes, **fields))
    assert not notes
    return network


class Gauges(Expert):
    """A small network for tests: its nodes listen at whole times only, and their packets fail."""

    nodes: int = 12
    """How many there are."""
    airtime: float = 1e-4
    """Of each packet, in clock units."""

    def start(self, briefing: Briefing) -> Answering:
        return _StartedGauges(self)


class _StartedGauges:
    def __init__(self, model: Gauges) -> None:
        self._model = model
        self._phases: list[tuple[int, int, int, str, float, float, int]] = []

    async def answer(self, query: Query, world: World) -> Estimate:
        asked, airtime = world.clock.now, self._model.airtime
        ends = []
        for row in range(len(query.points)):
            node = int(world.rng.integers(self._model.nodes))
            now = float(np.ceil(asked + 0.3 * row + 1e-9))
            lives = [("asleep", asked, now), ("downlink", now, now + airtime)]
            now += airtime
            lives.append(("measure", now, now + 0.4))
            now += 0.4
            while world.rng.random() < 0.3:
                lives += [("lost", now, now + airtime), ("backoff", now + airtime, now + 0.5)]
                now += 0.5
            lives.append(("uplink", now, now + airtime))
            ends.append(now + airtime)
            self._phases += [(query.id, row, node, *life, -1) for life in lives]
        await world.clock.sleep(max(ends) - asked)
        return Estimate(world.rewards(query.points, world.clock.now))

    def accounts(self, time: float) -> Mapping[str, Mapping[str, ArrayLike]]:
        names = ("query", "row", "node", "phase", "started_at", "ended_at", "packet")
        columns = zip(*self._phases, strict=True) if self._phases else [[]] * len(names)
        phases = dict(zip(names, map(np.array, columns), strict=True))
        made = make_accounts(self._model.nodes, source="s")
        tables = {key.removeprefix("s/"): table for key, table in made.items()}
        return tables | ({"phases": phases} if self._phases else {})
