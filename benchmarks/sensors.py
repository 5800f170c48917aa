"""A sensor network compared with plain SimPy, and with the time that it is allowed.

A hundred nodes on a shared medium report once a round by LoRa, and an agent that computes nothing
asks four of them in every round. Ours is a whole play: queries, windows, batteries, duty cycles,
every reading handed to the agent, and the trace. The peer is a short program in plain SimPy that
sends as many packets, in the manner of LoRaSim: airtimes, collisions with capture, and energy.

Run it from the root of the repository: `python -m benchmarks.sensors [--check] [--json]`.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np
import simpy

from benchmarks.compare import Pair, Row, at_most, compare, growth, main
from benchmarks.kernel import Level
from sparq_experts.sensors import Sensors
from sparq_experts.wireless.lora import compute_airtime
from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.testing.samples import Asker

ROUNDS = 500
NODES = 100
ROUND = 600.0
"""Seconds."""
ALLOWED = 5.0
"""Seconds of computing."""
PAYLOAD = 25
"""Bytes of a report with the headers of LoRaWAN."""

Process = Generator[simpy.Event, Any, None]


def play_network(rounds: int) -> Trace:
    """Play some rounds with the network."""
    network = Sensors.model_validate(
        {
            "seconds": ROUND,
            "nodes": {"scattered": NODES},
            "scale": 4000.0,
            "roughness": 0.1,
            "noise": 0.1,
            "listening": {"kind": "windows", "every": ROUND},
            "push": {"kind": "periodic", "every": ROUND},
        }
    )
    experts = {"expert": (network, Channel(split=True))}
    return play(Asker(batch=4), Level(), Rules(rounds=rounds), experts=experts)


def send_in_simpy(rounds: int) -> float:
    """Send as many packets in plain SimPy, and return the energy that they took, in joules."""
    rng = np.random.default_rng(1)
    env = simpy.Environment()
    on_air: list[list[float]] = []
    energy = delivered = 0.0

    def node(power: float, airtime: float, phase: float) -> Process:
        nonlocal energy, delivered
        yield env.timeout(phase)
        for _ in range(rounds):
            packet = [power, 0.0]
            for other in on_air:
                if power < other[0] + 6:
                    packet[1] = 1.0
                if other[0] < power + 6:
                    other[1] = 1.0
            on_air.append(packet)
            yield env.timeout(airtime)
            on_air.remove(packet)
            energy += 0.1452 * airtime + 4.95e-6 * ROUND
            delivered += not packet[1]
            yield env.timeout(ROUND - airtime)

    for _ in range(NODES):
        power = float(rng.uniform(-130.0, -90.0))
        airtime = compute_airtime(PAYLOAD, 7 + int(rng.integers(6)))
        env.process(node(power, airtime, float(rng.uniform(0.0, ROUND))))
    env.run()
    return energy


def measure_allowed() -> Row:
    """Measure the time of the whole play against what it is allowed."""
    pair = Pair("", partial(play_network, ROUNDS), lambda: None, at_most(1), repetitions=3)
    ours = compare(pair, repetitions=3).ours
    assert ours is not None
    what = f"{ROUNDS} rounds, {NODES} nodes; {ALLOWED:g} s"
    return Row(what, ours, ALLOWED, ours / ALLOWED, "at most 1 x", ours <= ALLOWED)


def pairs() -> list[Pair | partial[Row]]:
    """Return the rows of this benchmark."""
    return [
        partial(measure_allowed),
        Pair(
            "a packet, in a whole play; SimPy",
            partial(play_network, ROUNDS // 5),
            partial(send_in_simpy, ROUNDS // 5),
            at_most(50),
            units=NODES * ROUNDS // 5,
        ),
        partial(
            growth,
            f"{ROUNDS} rounds; {ROUNDS // 4}",
            play_network,
            sizes=(ROUNDS // 4, ROUNDS),
            most=1.1,
            repetitions=3,
        ),
    ]


if __name__ == "__main__":
    main("Sensors", pairs(), repetitions=3)
