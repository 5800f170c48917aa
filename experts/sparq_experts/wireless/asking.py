"""Asking: how a query reaches a node, waiting until the node listens, and the answer comes back.

`Asking` is long because it tells the whole life of a query, for each kind of listening.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isnan

from sparq_experts.wireless.accounts import Log
from sparq_experts.wireless.listening import WakeUps, Windows
from sparq_experts.wireless.measuring import Measuring, OnReading, Reading
from sparq_experts.wireless.medium import REFUSED, PacketFate
from sparq_experts.wireless.node import Gateway, Node
from sparq_experts.wireless.radio import Radio
from sparq_experts.wireless.seconds_clock import SecondsClock
from sparq_experts.wireless.traffic import Errand, Traffic
from sparq_sim.errors import AnswerLost, Unavailable
from sparq_sim.messages import NO_READING
from sparq_sim.plugin.contract import World
from sparq_sim.simulation.clock.protocol import Signal

__all__ = ["Asking", "QueryCosts"]

_PATIENT = 2.0
"""How many of its longest silences a node may miss before the gateway gives a query up."""


_GUARD = 0.01
"""Seconds that a gateway waits longer than an answer should take."""


@dataclass(frozen=True, slots=True)
class QueryCosts:
    """What a query takes."""

    query_payload: int
    """Bytes of a query, headers not included."""
    answer_payload: int
    """Bytes of an answer, headers not included."""
    per_joule: float
    """What the asker is charged for a joule of the node."""


@dataclass(slots=True, eq=False)
class _Call:
    """A query to one node, under way."""

    node: Node
    query: int
    world: World
    done: Signal
    """Happens with a Reading, or with the reason why there is none."""
    wanted: bool = True
    """Whether somebody still waits for it."""


class _Withdrawn(Unavailable):
    """Nobody waits for the answer any more."""


class Asking:
    """Puts queries to nodes, each as a process of its own: radios know nothing of patience.

    Args:
        clock: In seconds.
        traffic: Sends packets.
        gateways: All gateways.
        log: Where the phases of queries are written down.
        measuring: Has nodes measure.
        costs: What a query takes.
        on_reading: Takes each reading that a gateway has received, wanted or not.
    """

    def __init__(
        self,
        clock: SecondsClock,
        traffic: Traffic,
        gateways: Sequence[Gateway],
        log: Log,
        measuring: Measuring,
        costs: QueryCosts,
        on_reading: OnReading,
    ) -> None:
        self._clock = clock
        self._traffic = traffic
        self._gateways = gateways
        self._log = log
        self._measuring = measuring
        self._costs = costs
        self._on_reading = on_reading
        self.waiting = 0
        """How many queries wait at a gateway now."""

    async def ask(self, node: Node, query: int, world: World) -> Reading:
        """Ask a node for a reading.

        Args:
            node: Whom.
            query: The id of the query.
            world: Of the query; its asker pays.

        Raises:
            AnswerLost: The query or its answer was lost.
            Unavailable: A duty cycle is used up, the budget cannot pay, or there is no reading.
        """
        call = _Call(node, query, world, self._clock.clock.signal())
        self._clock.clock.start(self._serve(call))
        try:
            outcome: Reading | Unavailable = await call.done
        finally:
            call.wanted = False
        if isinstance(outcome, Unavailable):
            raise outcome
        return outcome

    async def _serve(self, call: _Call) -> None:
        """Carry a query through, whether or not somebody still waits for it."""
        try:
            self.waiting += 1
            try:
                await self._reach(call)
            finally:
                self.waiting -= 1
            await self._have_answered(call)
        except Unavailable as error:
            call.done.set(error)

    # Down: the query

    async def _reach(self, call: _Call) -> None:
        """Have the node hear the query."""
        node, radio = call.node, call.node.radio
        gateway = self._gateways[node.gateway]
        errand = Errand("query", self._costs.query_payload, call.query)
        # Without acknowledgements, too, a gateway notices that no answer comes.
        for attempt in range(1, 2 + radio.retransmissions):
            if attempt > 1:
                await self._traffic.back_off_down(gateway, node, errand, attempt - 1)
            fate = await self._call(call, gateway, errand, attempt)
            if fate is PacketFate.DELIVERED:
                return
            if fate is PacketFate.DUTY_CYCLE:
                raise Unavailable(f"the duty cycle of gateway {gateway.name} is used up")
        raise AnswerLost(f"{node.name} did not receive the query: {fate}")

    async def _call(
        self, call: _Call, gateway: Gateway, errand: Errand, attempt: int
    ) -> PacketFate:
        """Send the query once, as soon as the node listens and the gateway is free."""
        node, clock = call.node, self._clock
        closed_at = 0.0
        while True:
            start = clock.now
            if isinstance(node.listening, Windows):
                sent = await self._call_in_window(call, gateway, errand, attempt)
                if sent is not None:
                    return sent
                continue
            deadline = inf
            if isinstance(node.listening, WakeUps):
                # By rounding, now may lie before the end of the wake-up that was waited for.
                begins, deadline = node.listening.next(max(start, closed_at), node.wake_phase)
                await clock.until(begins)
                self._log.add_phase(call.query, node, "asleep", start, clock.now)
                start = clock.now
            is_free = await self._await_gateway(gateway, deadline)
            if not is_free:
                await clock.until(deadline)
                closed_at = deadline
            if clock.now > start:
                self._log.add_phase(call.query, node, "queue", start, clock.now)
            if is_free:
                return await self._send(call, gateway, errand, attempt)

    async def _await_gateway(self, gateway: Gateway, deadline: float) -> bool:
        """Wait until a gateway is free to send a query; return whether it is before a deadline."""
        clock = self._clock
        while True:
            if clock.now >= deadline:
                return False
            if gateway.outgoing is not None:
                await gateway.outgoing
            elif not gateway.is_taken(clock.now):
                return True
            elif (free_at := gateway.free_at) >= deadline:
                return False
            else:
                await clock.until(free_at)
                # The clock may have come a little short of it, at the start of a round.
                if not gateway.sending and gateway.free_at == free_at:
                    return True

    async def _call_in_window(
        self, call: _Call, gateway: Gateway, errand: Errand, attempt: int
    ) -> PacketFate | None:
        """Wait for a packet of the node, and send the query in a free window after it."""
        node, clock, listening = call.node, self._clock, call.node.listening
        assert isinstance(listening, Windows)
        start = clock.now
        signal = clock.clock.signal()
        node.heard_from.append(signal)
        # As long as the node is heard from, there is hope.
        clock.call_at(start + _PATIENT * listening.every, signal.set)
        packet_ended: float | None = await signal
        if packet_ended is None:
            if signal in node.heard_from:
                node.heard_from.remove(signal)
            self._log.add_phase(call.query, node, "asleep", start, clock.now)
            raise AnswerLost(f"nothing was heard from {node.name} for {clock.now - start:.6g} s")
        for delay in (listening.first, listening.second):
            await clock.until(packet_ended + delay)
            if node.incoming is not None:  # Another query: after the answer there are new windows.
                break
            if gateway.is_taken(clock.now):
                continue
            if not node.windows:  # An earlier query has used them.
                break
            self._log.add_phase(call.query, node, "asleep", start, clock.now)
            return await self._send(call, gateway, errand, attempt)
        self._log.add_phase(call.query, node, "queue", start, clock.now)
        return None

    async def _send(
        self, call: _Call, gateway: Gateway, errand: Errand, attempt: int
    ) -> PacketFate:
        if not call.wanted:
            raise _Withdrawn("given up")
        node, now = call.node, self._clock.now
        airtime = node.radio.airtime(errand.payload)
        # While it sends it hears nothing: the next query must wait for the answer to this one.
        gateway.free_at = now + airtime + self._answering_time(node.radio)
        before = node.battery.used["receive"]
        fate = await self._traffic.send_down(gateway, node, errand, attempt)
        if fate in REFUSED:
            gateway.free_at = self._clock.now
        self._charge(call, node.battery.used["receive"] - before)
        return fate

    def _answering_time(self, radio: Radio) -> float:
        """Return how long a gateway waits for an answer after its query, in seconds."""
        sensing = 0.0 if radio.carrier_sense is None else radio.carrier_sense.longest
        answer = radio.airtime(self._costs.answer_payload)
        working = self._measuring.time + self._measuring.computing_time
        return 2 * sensing + working + answer + _GUARD

    # Up: the answer

    async def _have_answered(self, call: _Call) -> None:
        """Have the node measure and send its answer."""
        node, costs = call.node, self._costs
        heard_at = self._clock.now
        async with node.gate:
            if self._clock.now > heard_at:  # The node was busy with something else.
                self._log.add_phase(call.query, node, "queue", heard_at, self._clock.now)
            if not node.is_alive(self._clock.now):
                raise AnswerLost(f"{node.name} has no energy left")
            self._charge(call, self._measuring.joules(node))
            start = self._clock.now
            reading = await self._measuring.measure(node)
            self._log.add_phase(call.query, node, "measure", start, self._clock.now)
            if isnan(reading.value):
                raise Unavailable(NO_READING)

            def deliver() -> None:
                self._on_reading(node, reading)
                call.done.set(reading)

            errand = Errand("answer", costs.answer_payload, call.query)
            fate = await self._traffic.send_up(
                node, errand, deliver, lambda energy: self._charge(call, energy)
            )
        if fate in REFUSED:
            raise Unavailable(f"{node.name} may not send its answer: {fate}")
        if fate is not PacketFate.DELIVERED:
            raise AnswerLost(f"the answer of {node.name} was lost: {fate}")

    def _charge(self, call: _Call, energy: float) -> None:
        """Charge the asker for energy that its query is about to take, if anybody still waits."""
        if self._costs.per_joule and energy and call.wanted:
            call.world.charge(self._costs.per_joule * energy)
