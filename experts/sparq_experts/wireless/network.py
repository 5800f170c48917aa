"""The network of one play: nodes that measure, report and answer while they have energy.

`Network` is long because it is all that a play calls: broadcast, answer, meters and accounts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparq_experts.wireless.accounts import Log, Table, count_packets, tabulate
from sparq_experts.wireless.asking import Asking, QueryCosts
from sparq_experts.wireless.measuring import Measuring, Reading
from sparq_experts.wireless.medium import Medium
from sparq_experts.wireless.node import Gateway, Node
from sparq_experts.wireless.plan import NetworkPlan
from sparq_experts.wireless.reporter import Reporter
from sparq_experts.wireless.seconds_clock import SecondsClock
from sparq_experts.wireless.traffic import Traffic
from sparq_sim.errors import Unavailable
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.contract import World

__all__ = ["Network"]


class Network:
    """A sensor network at work; nodes and gateways are made when the play begins.

    Args:
        plan: What it is made of.
    """

    def __init__(self, plan: NetworkPlan) -> None:
        self._plan = plan
        self._nodes: Sequence[Node] = ()
        self._gateways: Sequence[Gateway] = ()
        self._asking: Asking | None = None
        self._log = Log(plan.model.seconds)
        self._latest: dict[int, Reading] = {}
        """The newest reading of each node that a gateway has received."""

    async def broadcast(self, world: World) -> None:
        """Have nodes report, and watch over their batteries, until the play ends.

        Args:
            world: Of the play.
        """
        plan, model = self._plan, self._plan.model
        self._world = world
        clock = self._clock = SecondsClock(world.clock, model.seconds)
        self._nodes, self._gateways = plan.make_nodes(world.rng, world.clock.gate)
        medium = Medium(self._gateways, plan.between, model.propagation)
        traffic = Traffic(clock, medium, self._gateways, self._log)
        measuring = Measuring(
            world,
            clock,
            time=model.measuring_time,
            energy=model.measuring_energy,
            computing_time=model.computing_time,
            noise=model.noise,
        )
        costs = QueryCosts(model.query_payload, model.payload, model.cost_per_joule)
        self._asking = Asking(
            clock, traffic, self._gateways, self._log, measuring, costs, self._remember
        )
        reporter = Reporter(clock, traffic, measuring, model.push, model.payload, self._hand_over)
        for node in self._nodes if model.tick else ():
            world.clock.start(reporter.run(node))
        await self._watch_batteries(world)

    async def _watch_batteries(self, world: World) -> None:
        """Write down at every round what is left, and end the play when enough nodes are dead."""
        self._log.sample(0.0, self._nodes)
        number = 0
        while True:
            number += 1
            await world.clock.until(number * self._plan.period)
            now = self._clock.now
            dead = [node.name for node in self._nodes if not node.is_alive(now)]
            self._log.sample(now, self._nodes)
            if len(dead) >= self._plan.deaths_to_end:
                shown = f"{', '.join(dead[:3])}{', ...' if len(dead) > 3 else ''}"
                world.stop(f"{len(dead)} of {len(self._nodes)} nodes dead: {shown}")
                return

    def _hand_over(self, node: Node, reading: Reading) -> None:
        """Send the agent a reading that a gateway has received."""
        self._remember(node, reading)
        self._world.send(self._world.open(node.point), reading.to_estimate())

    def _remember(self, node: Node, reading: Reading) -> None:
        """Keep the newest reading of a node."""
        known = self._latest.get(node.index)
        if known is None or known.measured_at <= reading.measured_at:
            self._latest[node.index] = reading

    # Asked

    async def answer(self, query: Query, world: World) -> Estimate:
        """Ask the nodes at the points of a query, or nearest to them, all at once.

        Args:
            query: What is asked.
            world: Of the query; its asker pays.

        Raises:
            Unavailable: No point has an answer: lost, no node near enough, no energy, a duty
                cycle that is used up, or a budget that cannot pay.
        """
        if len(query.points) == 1:
            (node, distance), *_ = self._plan.find_nodes(query.points)
            reading = await self._ask(node, query, world)
            return self._widen(reading, distance).to_estimate()
        clock = world.clock
        found = self._plan.find_nodes(query.points)
        asked = [clock.start(self._try(node, query, world)) for node, _ in found]
        try:
            outcomes = [await each for each in asked]
        except BaseException:  # The asker has given up.
            for each in asked:
                each.cancel()
            raise
        failures = [each for each in outcomes if isinstance(each, Unavailable)]
        if len(failures) == len(outcomes):
            raise failures[0]
        readings = [
            None if not isinstance(each, Reading) else self._widen(each, distance)
            for each, (_, distance) in zip(outcomes, found, strict=True)
        ]
        return Estimate(
            np.array([np.nan if each is None else each.value for each in readings]),
            stds=np.array([0.0 if each is None else each.std for each in readings]),
            measured_at=min(each.measured_at for each in readings if each is not None),
            absent=str(failures[0]) if failures else "",
        )

    async def _try(self, node: int | None, query: Query, world: World) -> Reading | Unavailable:
        """Ask a node; return why there is no reading, because an error would end the play."""
        try:
            return await self._ask(node, query, world)
        except Unavailable as error:
            return error

    async def _ask(self, node: int | None, query: Query, world: World) -> Reading:
        if node is None:
            raise Unavailable("no node is near enough")
        known = self._latest.get(node)
        if known is not None:
            age = world.clock.now - known.measured_at
            if age <= self._plan.model.remember:
                return known
        assert self._asking is not None, "a play begins with broadcast"
        return await self._asking.ask(self._nodes[node], query.id, world)

    def _widen(self, reading: Reading, distance: float) -> Reading:
        """Return a reading as it is known at some distance from its node."""
        if not distance:
            return reading
        std = float(np.hypot(reading.std, (self._plan.model.roughness or 0.0) * distance))
        return Reading(reading.value, std, reading.measured_at)

    # Accounts

    def meters(self, time: float) -> dict[str, float]:
        """Return what the network has used and done so far.

        Args:
            time: Now, in clock units.
        """
        now = time * self._plan.model.seconds
        alive = sum(node.is_alive(now) for node in self._nodes)
        if self._asking is None:  # Before the play.
            alive = len(self._plan.radios)
        counts = count_packets(self._log.counts)
        return {
            "alive": float(alive),
            "energy": sum(sum(node.battery.used.values()) for node in self._nodes),
            **{name: float(count) for name, count in counts.items()},
            "airtime": self._log.airtime,
            "waiting": 0.0 if self._asking is None else float(self._asking.waiting),
        }

    def accounts(self, time: float) -> dict[str, Table]:
        """Return the tables of nodes, gateways, levels, packets and phases of queries.

        Args:
            time: When the play ended, in clock units.

        Returns:
            The tables by name; none before the play.
        """
        if not self._nodes:
            return {}
        now = time * self._plan.model.seconds
        for node in self._nodes:
            node.is_alive(now)
        plan = self._plan
        return tabulate(plan.places, self._nodes, self._gateways, self._log, plan.coordinates)
