"""Accounts: what a network writes down of its packets and of the life of each query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_experts.wireless.battery import CAUSES
from sparq_experts.wireless.medium import REFUSED, PacketFate, Purpose
from sparq_experts.wireless.node import Gateway, Node
from sparq_experts.wireless.placing import Places

__all__ = ["Log", "Phase", "count_packets", "tabulate"]

Phase: TypeAlias = Literal["asleep", "queue", "downlink", "measure", "backoff", "uplink", "lost"]
"""Part of the life of a query: it waits until the node listens, waits for the gateway's
transmitter or a busy node, is sent down, is measured, is held back, is sent up; or a packet of it
is lost."""

_MOST_SAMPLES = 400
"""Of the energy that is left; after more, every second one is dropped."""


@dataclass(slots=True, eq=False)
class Log:
    """All packets, the phases of all queries, and samples of the energy left; in seconds."""

    seconds: float
    """How many seconds a clock unit lasts."""
    packets: list[tuple[object, ...]] = field(default_factory=list)
    """A row a packet: see `_PACKETS`."""
    phases: list[tuple[object, ...]] = field(default_factory=list)
    """A row a phase: see `_PHASES`."""
    levels: list[tuple[float, list[float]]] = field(default_factory=list)
    """When, and what each node had left in joules."""
    counts: Counter[str] = field(default_factory=Counter)
    """All packets, by what became of them."""
    airtime: float = 0.0
    """Of all packets, in seconds."""
    _stride: int = 1
    _offered: int = 0

    def add_packet(
        self,
        node: Node,
        gateway: Gateway | None,
        fate: PacketFate,
        *,
        purpose: Purpose,
        query: int,
        attempt: int,
        channel: int,
        start: float,
        end: float,
        power: float,
        energy: float,
    ) -> int:
        """Write down what became of a packet.

        Args:
            node: Who sent it, or whom it was for.
            gateway: Who sent it down; None for one that went up.
            fate: What became of it.
            purpose: What it was sent for.
            query: The id of the query that it belongs to; 0 for none.
            attempt: Which attempt it was, from 1.
            channel: The frequency channel; -1 if it was not sent.
            start: When it began, in seconds.
            end: When it ended, in seconds.
            power: At its best receiver, in dBm.
            energy: What it cost the node, in joules.

        Returns:
            The number of the packet.
        """
        number = len(self.packets)
        sender = node if gateway is None else gateway
        sender.counts[fate] += 1
        self.counts[fate] += 1
        if fate not in REFUSED:
            sender.airtime += end - start
            self.airtime += end - start
        direction = "up" if gateway is None else "down"
        self.packets.append(
            (
                number,
                node.index,
                direction,
                purpose,
                query,
                attempt,
                channel,
                start / self.seconds,
                end / self.seconds,
                power,
                fate,
                energy,
            )
        )
        return number

    def add_phase(
        self, query: int, node: Node, phase: Phase, start: float, end: float, *, packet: int = -1
    ) -> None:
        """Write down what a query went through.

        Args:
            query: Its id; for 0 nothing is written down.
            node: Who was asked.
            phase: What it went through.
            start: From when, in seconds.
            end: Until when, in seconds.
            packet: The number of the packet that carried it; -1 for none.
        """
        if query:
            self.phases.append(
                (query, node.index, phase, start / self.seconds, end / self.seconds, packet)
            )

    def sample(self, now: float, nodes: Sequence[Node]) -> None:
        """Write down what each node has left, unless there are enough samples for this time.

        Args:
            now: In seconds.
            nodes: All nodes, accounted for up to now.
        """
        if self._offered % self._stride == 0:
            self.levels.append((now / self.seconds, [node.battery.left for node in nodes]))
            if len(self.levels) > _MOST_SAMPLES:
                del self.levels[1::2]
                self._stride *= 2
        self._offered += 1


_PACKETS = (
    "number",
    "node",
    "direction",
    "purpose",
    "query",
    "attempt",
    "channel",
    "started_at",
    "ended_at",
    "power",
    "fate",
    "energy",
)
_PHASES = ("query", "node", "phase", "started_at", "ended_at", "packet")
_TEXT = ("direction", "purpose", "fate", "phase")
_WHOLE = ("number", "node", "query", "attempt", "channel", "packet")


def count_packets(counts: Counter[str]) -> dict[str, int]:
    """Sum up what became of packets.

    Args:
        counts: How many packets had each fate.

    Returns:
        How many were `sent`, which is `delivered` + `lost` + `collided`; and how many `refused`.
    """
    refused = sum(counts[fate] for fate in REFUSED)
    sent = counts.total() - refused
    delivered, collided = counts[PacketFate.DELIVERED], counts[PacketFate.COLLIDED]
    return {
        "sent": sent,
        "delivered": delivered,
        "lost": sent - delivered - collided,
        "collided": collided,
        "refused": refused,
    }


Table: TypeAlias = Mapping[str, NDArray[np.generic]]
"""Columns of equal length, by name."""


def tabulate(
    places: Places,
    nodes: Sequence[Node],
    gateways: Sequence[Gateway],
    log: Log,
    coordinates: Sequence[str],
) -> dict[str, Table]:
    """Return all tables of a network; times are in clock units.

    Args:
        places: Where nodes and gateways are.
        nodes: All nodes, accounted for up to the end.
        gateways: All gateways.
        log: What was written down.
        coordinates: The names of the domain's coordinates.
    """
    return {
        "nodes": _tabulate_nodes(places, nodes, log.seconds, coordinates),
        "gateways": _tabulate_gateways(places, gateways),
        "levels": _tabulate_levels(log, nodes),
        "packets": _to_columns(log.packets, _PACKETS),
        "phases": _to_columns(log.phases, _PHASES),
    }


def _tabulate_nodes(
    places: Places, nodes: Sequence[Node], seconds: float, coordinates: Sequence[str]
) -> Table:
    batteries = [node.battery for node in nodes]
    counted = [count_packets(node.counts) for node in nodes]
    nearest = [node.gateway for node in nodes]
    rows = np.arange(len(nodes))
    points = np.concatenate([node.point for node in nodes])
    return {
        "name": np.array([node.name for node in nodes]),
        "east": places.east_north[:, 0],
        "north": places.east_north[:, 1],
        **{f"at_{name}": points[:, i] for i, name in enumerate(coordinates)},
        "capacity": np.array([each.capacity for each in batteries]),
        "left": np.array([each.left for each in batteries]),
        "died_at": np.array([each.died_at for each in batteries]) / seconds,
        "gateway": np.array(nearest),
        "distance": places.distances[rows, nearest],
        "margin": np.array([max(node.up) - node.radio.sensitivity("gateway") for node in nodes]),
        "rate": np.array([node.radio.rate for node in nodes]),
        **{
            f"energy_{cause}": np.array([each.used[cause] for each in batteries])
            for cause in CAUSES
        },
        "harvested": np.array([each.harvested for each in batteries]),
        "wasted": np.array([each.wasted for each in batteries]),
        **{name: np.array([each[name] for each in counted]) for name in counted[0]},
        "airtime": np.array([node.airtime for node in nodes]),
    }


def _tabulate_gateways(places: Places, gateways: Sequence[Gateway]) -> Table:
    counted = [count_packets(gateway.counts) for gateway in gateways]
    return {
        "name": np.array([gateway.name for gateway in gateways]),
        "east": places.gateway_east_north[:, 0],
        "north": places.gateway_east_north[:, 1],
        "busiest": np.array([gateway.busiest for gateway in gateways]),
        **{name: np.array([each[name] for each in counted]) for name in counted[0]},
        "airtime": np.array([gateway.airtime for gateway in gateways]),
    }


def _tabulate_levels(log: Log, nodes: Sequence[Node]) -> Table:
    times = np.array([time for time, _ in log.levels])
    left = np.array([levels for _, levels in log.levels], dtype=float).reshape(len(times), -1)
    return {
        "time": np.repeat(times, len(nodes)),
        "node": np.tile(np.arange(len(nodes)), len(times)),
        "left": left.ravel(),
        "alive": left.ravel() > 0,
    }


def _to_columns(rows: Sequence[tuple[object, ...]], names: Sequence[str]) -> Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return {
        name: np.array(
            column,
            dtype=np.str_ if name in _TEXT else np.int64 if name in _WHOLE else np.float64,
        )
        for name, column in zip(names, columns, strict=True)
    }
