"""The plan of a network: places, links and radios, worked out and checked before the play."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator, Philox

from sparq_experts.wireless.battery import Battery
from sparq_experts.wireless.checks import (
    check_battery,
    check_duty,
    check_gateways,
    check_links,
    check_payload,
    check_round,
    compute_links,
)
from sparq_experts.wireless.listening import WakeUps, Windows
from sparq_experts.wireless.lora import LoraRadio
from sparq_experts.wireless.node import DutyCycle, Gateway, Node, find_rest_draws
from sparq_experts.wireless.placing import Places, place
from sparq_experts.wireless.radio import Radio
from sparq_experts.wireless.reporting import Periodic
from sparq_sim.arrays import Matrix, Points
from sparq_sim.domain import Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.plugin.contract import Briefing
from sparq_sim.simulation.clock.protocol import Gate

if TYPE_CHECKING:
    from sparq_experts.sensors import Sensors

__all__ = ["NetworkPlan", "plan_network"]


@dataclass(frozen=True)
class NetworkPlan:
    """What a network is made of, the same in all replications of a play."""

    model: Sensors
    """The fields of the expert."""
    domain: Domain
    """Where points may lie."""
    period: float
    """How long a round lasts, in clock units."""
    places: Places
    """Where nodes and gateways are."""
    losses: Matrix
    """The loss from each node to each gateway with its shadowing, in dB: (n, g)."""
    radios: tuple[Radio, ...]
    """The radio of each node, at its own data rate."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of the domain's coordinates."""
        return self.domain.names

    @cached_property
    def between(self) -> list[list[float]]:
        """The mean power of each node's packets at each node, in dBm: rows send.

        There is none where nodes do not hear each other.
        """
        if self.radios[0].inverted_downlinks and self.radios[0].carrier_sense is None:
            return []
        distances = self.places.node_distances
        losses = self.model.propagation.loss(distances)
        shadowing = self.model.propagation.draw_shadowing(
            _make_generator(self.model.seed, "between"), losses.shape
        )
        # A link is the same in both directions.
        losses = losses + np.triu(shadowing, 1) + np.triu(shadowing, 1).T
        sent = np.array([radio.transmit_power for radio in self.radios])
        powers: list[list[float]] = (sent[:, None] - losses).tolist()
        return powers

    @property
    def deaths_to_end(self) -> float:
        """How many nodes must be dead for the play to end."""
        match self.model.ends_when_dead:
            case None:
                return inf
            case "first":
                return 1
            case share:
                return max(1, ceil(share * len(self.radios) * (1 - 1e-12)))

    def find_nodes(self, points: Points) -> list[tuple[int | None, float]]:
        """Find who is asked about each point.

        Args:
            points: Where: (q, d).

        Returns:
            The number of the nearest node and its distance in units of the domain; None for the
            number where no node is near enough.
        """
        own = self.places.points
        nearest = self.places.find_nearest(points)
        distances = np.linalg.norm(own[nearest] - points, axis=1)
        reach = 0.0 if isinstance(self.domain, Sites) else self.model.reach
        return [
            (node if distance <= reach else None, distance)
            for node, distance in zip(nearest.tolist(), distances.tolist(), strict=True)
        ]

    def make_nodes(
        self, rng: Generator, gate: Callable[[int], Gate]
    ) -> tuple[list[Node], list[Gateway]]:
        """Make the nodes and gateways of one play.

        Args:
            rng: The chance of the play.
            gate: Makes gates by the clock of the play.

        Returns:
            The nodes and the gateways, in the order of the plan.
        """
        model, places = self.model, self.places
        count = len(self.radios)
        keys = rng.integers(2**63, size=(count + len(places.gateway_names), 2))
        streams = [Generator(Philox(key=key.astype(np.uint64))) for key in keys]
        nodes = []
        for index, radio in enumerate(self.radios):
            own = streams[index]
            row = self.losses[index]
            listening = model.listening
            wakes = listening.every if isinstance(listening, WakeUps) else 0.0
            node = Node(
                index,
                places.names[index],
                places.points[index : index + 1],
                radio,
                Battery(places.batteries[index] or model.battery, model.harvest),
                listening,
                DutyCycle(radio.duty_limit, radio.duty_window),
                up=tuple((radio.transmit_power - row).tolist()),
                down=tuple((radio.gateway_power - row).tolist()),
                gate=gate(1),
                rng=own,
                phase=float(own.uniform(0.0, model.tick)),
                wake_phase=float(own.uniform(0.0, wakes)),
                bias_rate=model.drift * float(own.standard_normal()),
            )
            nodes.append(node)
        radio = self.radios[0]
        gateways = [
            Gateway(
                index,
                name,
                DutyCycle(radio.gateway_duty_limit, radio.duty_window),
                streams[count + index],
            )
            for index, name in enumerate(places.gateway_names)
        ]
        return nodes, gateways


def plan_network(model: Sensors, briefing: Briefing) -> NetworkPlan:
    """Work out a network, and refuse or warn of what cannot work.

    Args:
        model: The fields of the expert.
        briefing: The domain and the period of the play.

    Returns:
        The plan, the same for the same fields and domain.

    Raises:
        PluginError: Nodes lie outside the field, no node reaches a gateway, a payload is too
            large, or a duty cycle too small; the message has the numbers and the remedy.
    """
    places = place(model.nodes, briefing.domain, scale=model.scale, gateways=model.gateways)
    if not isinstance(briefing.domain, Sites) and model.roughness is None:
        raise PluginError(
            "roughness: missing; in a field without sites a node answers for points around it: "
            "say by how much the reward may differ for each unit of distance"
        )
    losses = model.propagation.loss(places.distances)
    losses = losses + model.propagation.draw_shadowing(
        _make_generator(model.seed, "links"), losses.shape
    )
    radios = tuple(
        _choose_radio(model.radio, name, factor, float(loss))
        for name, factor, loss in zip(
            places.names, places.spreading_factors, losses.min(axis=1), strict=True
        )
    )
    plan = NetworkPlan(model, briefing.domain, briefing.period, places, losses, radios)
    _check(plan, briefing.rounds)
    return plan


def _choose_radio(radio: Radio, node: str, factor: int | None, loss: float) -> Radio:
    """Return the radio as a node uses it, with a spreading factor of its own or for its link."""
    if factor is None:
        return radio.for_link(loss)
    if not isinstance(radio, LoraRadio):
        raise PluginError(
            f"nodes: spreading_factor {factor} of node {node!r}: only LoRa has one, and the radio "
            "is of another kind; leave it out"
        )
    return radio.model_copy(update={"spreading_factor": factor})


def _check(plan: NetworkPlan, rounds: int | None) -> None:
    """Refuse or warn of what cannot work, with the numbers."""
    model, names, radios = plan.model, plan.places.names, plan.radios
    check_links(compute_links(plan.places, plan.losses, radios))
    heard = np.array([radio.transmit_power - radio.sensitivity("gateway") for radio in radios])
    margins = (heard[:, None] - plan.losses).max(axis=0)
    check_gateways(plan.places.gateway_names, margins.tolist())
    for name, radio in zip(names, radios, strict=True):
        check_payload(max(model.payload, model.query_payload), radio, name)
    airtimes = [radio.airtime(model.payload) for radio in radios]
    check_round(names, airtimes, lasting=plan.period * model.seconds)
    reports = [0.0] * len(radios)
    if model.push is not None:
        reports = [airtime / model.push.every for airtime in airtimes]
        check_duty(
            names,
            radios,
            airtimes,
            every=model.push.every,
            field="push.every",
            scheduled=isinstance(model.push, Periodic),
        )
    if isinstance(model.listening, Windows) and model.listening.every < model.report_every:
        every = model.listening.every
        heartbeats = [radio.airtime(0) for radio in radios]
        check_duty(names, radios, heartbeats, every=every, field="listening.every")
        reports = [report + beat / every for report, beat in zip(reports, heartbeats, strict=True)]
    if model.harvest is None and model.ends_when_dead is None and rounds is not None:
        draws = [
            sum(power for _, power in find_rest_draws(radio, model.listening))
            + radio.send_draw * report
            for radio, report in zip(radios, reports, strict=True)
        ]
        capacities = [own or model.battery for own in plan.places.batteries]
        until = (rounds + 1) * plan.period * model.seconds
        check_battery(names, capacities, draws, until=until, seconds=model.seconds)


def _make_generator(seed: int, purpose: str) -> Generator:
    key = np.array([seed, int.from_bytes(purpose.encode()[:8], "little")], dtype=np.uint64)
    return Generator(Philox(key=key))
