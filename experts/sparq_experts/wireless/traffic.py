"""Traffic: how packets go up and down, with duty cycles, carrier sense and retransmissions.

`Traffic` is long because a packet that goes up, the windows after it and its acknowledgement, which
goes down, are one story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from numpy.random import Generator

from sparq_experts.wireless.accounts import Log, Phase
from sparq_experts.wireless.listening import Windows
from sparq_experts.wireless.medium import Medium, Packet, PacketFate, Purpose
from sparq_experts.wireless.node import SLACK, Gateway, Node
from sparq_experts.wireless.seconds_clock import SecondsClock
from sparq_experts.wireless.sensing import Sensing
from sparq_sim.simulation.clock.protocol import DEADLINE

__all__ = ["Errand", "Traffic"]


@dataclass(frozen=True, slots=True)
class Errand:
    """What a packet is sent for."""

    purpose: Purpose
    """As the table of packets has it."""
    payload: int
    """In bytes, headers not included."""
    query: int = 0
    """The id of the query that it belongs to; 0 for none."""


class Traffic:
    """Sends packets between nodes and gateways, and writes down what becomes of them.

    Args:
        clock: In seconds.
        medium: What they are sent over.
        gateways: All gateways.
        log: Where it is written down.
    """

    def __init__(
        self, clock: SecondsClock, medium: Medium, gateways: Sequence[Gateway], log: Log
    ) -> None:
        self._clock = clock
        self._medium = medium
        self._sensing = Sensing(clock, medium)
        self._gateways = gateways
        self._log = log

    async def send_up(
        self,
        node: Node,
        errand: Errand,
        on_delivered: Callable[[], None] | None = None,
        on_send: Callable[[float], None] | None = None,
    ) -> PacketFate:
        """Send a packet of a node, and again while no acknowledgement comes, if it waits for one.

        Args:
            node: Who sends; whoever calls this holds its gate.
            errand: What it is sent for.
            on_delivered: Called when a gateway has received it for the first time.
            on_send: Called before each packet with the joules that it will take; if this raises
                an error, nothing is sent.

        Returns:
            What became of it: delivered if any attempt was.
        """
        radio = node.radio
        delivered, fate = False, PacketFate.NODE_DEAD
        for attempt in range(1, 2 + (radio.retransmissions if radio.acknowledged else 0)):
            if attempt > 1:
                await self._back_off(node, errand, node.rng, attempt)
            fate = await self._try_up(node, errand, attempt, on_send)
            if fate is PacketFate.DELIVERED and not delivered:
                delivered = True
                if on_delivered is not None:
                    on_delivered()
            if fate in (PacketFate.NODE_DEAD, PacketFate.DUTY_CYCLE):
                break
            if not radio.acknowledged:
                if node.windows:
                    await self._open_windows(node)
                break
            if fate is PacketFate.CHANNEL_BUSY:
                continue
            is_acknowledged = await self._await_acknowledgement(node, fate is PacketFate.DELIVERED)
            if node.windows:
                await self._open_windows(node)
            if is_acknowledged:
                break
        return PacketFate.DELIVERED if delivered else fate

    async def _try_up(
        self, node: Node, errand: Errand, attempt: int, on_send: Callable[[float], None] | None
    ) -> PacketFate:
        """Send one packet, if that is allowed."""
        clock, radio = self._clock, node.radio
        airtime = radio.airtime(errand.payload)
        sense, refusal = radio.carrier_sense, None
        asked_at = clock.now
        is_clear = sense is None or await self._sensing.is_clear(node, sense)
        if node.incoming is not None:  # It cannot send while it receives.
            await node.incoming
        start = clock.now
        if start > asked_at:
            self._log.add_phase(errand.query, node, "backoff", asked_at, start)
        if not node.is_alive(start):  # It has died meanwhile.
            return PacketFate.NODE_DEAD
        if not is_clear:
            refusal = PacketFate.CHANNEL_BUSY
        elif not node.duty.allows(start, airtime):
            refusal = PacketFate.DUTY_CYCLE
        if refusal is not None:
            self._write_down(node, None, refusal, errand, attempt, start=start)
            return refusal
        if on_send is not None:
            on_send(radio.send_draw * airtime)
        node.duty.admit(start, airtime)
        node.switch(start, node.send_draws)
        before = node.battery.used["send"]
        node.sending = True
        packet = self._medium.begin_up(node, errand.payload, start, airtime)
        packet.end = min(packet.end, node.battery.find_death(packet.end, node.send_draws))
        await clock.until(packet.end)
        now = clock.now
        node.sending = False
        node.rest(now)
        if packet.end < start + airtime:  # By rounding, a little may be left.
            node.battery.spend("send", node.battery.left)
        fate = self._medium.end(packet)
        if node.battery.empty:
            fate = PacketFate.NODE_DEAD
        energy = node.battery.used["send"] - before
        self._write_down(node, None, fate, errand, attempt, packet=packet, energy=energy)
        self._announce(node, now, heard=fate is PacketFate.DELIVERED)
        return fate

    def _announce(self, node: Node, end: float, *, heard: bool) -> None:
        """Plan the windows after a packet, and wake the queries that wait for them."""
        if isinstance(node.listening, Windows):
            lasting = node.window
            first, second = end + node.listening.first, end + node.listening.second
            node.windows = (first, first + lasting), (second, second + lasting)
            if heard:  # Otherwise nobody knows of the windows.
                waiting, node.heard_from = node.heard_from, []
                for signal in waiting:
                    signal.set(end)
            if not (heard and waiting) and not node.radio.acknowledged:
                # Nobody will use them: what they cost more than rest is counted at once, which
                # saves four events for each packet.
                more = node.radio.listen - node.radio.sleep
                node.battery.spend("listen", 2 * lasting * more)
                node.windows = ()

    async def _open_windows(self, node: Node) -> None:
        """Listen in the windows still to come, until something comes or the last has closed."""
        for start, end in node.windows:
            if start < self._clock.now - SLACK:
                continue
            await self._clock.until(start)
            if node.incoming is None:
                node.switch(self._clock.now, node.listen_draws)
                await self._clock.until(end)
            if node.incoming is not None:
                await node.incoming
                break
            node.rest(self._clock.now)
        node.windows = ()

    async def _await_acknowledgement(self, node: Node, is_delivered: bool) -> bool:
        """Have a node wait for an acknowledgement; return whether one came."""
        clock, radio, gateway = self._clock, node.radio, self._gateways[node.gateway]
        start = clock.now + radio.ack_delay
        if radio.carrier_sense is not None:  # Too soon to fall asleep.
            node.switch(clock.now, node.listen_draws)
        received = node.received
        # After a query that goes down at the same moment, and stands for an acknowledgement.
        await clock.until(start, DEADLINE)
        now = clock.now
        # An acknowledgement comes at once or not at all.
        closes = now + min(radio.ack_airtime, node.window)
        if node.incoming is None:
            node.switch(now, node.listen_draws)
            planned, node.windows = node.windows, (*node.windows, (now, closes))
            if is_delivered and not gateway.sending:
                errand = Errand("acknowledgement", radio.acknowledgement)
                await self.send_down(gateway, node, errand, 1)
            await clock.until(closes)
            node.windows = planned
        if node.incoming is not None:
            await node.incoming
        node.rest(clock.now)
        # Whatever comes says that the gateway has heard the node.
        has_come = node.received > received
        if has_come and node.windows and now >= node.windows[0][0] - SLACK:
            node.windows = ()  # It came in the first window: the second stays closed.
        return has_come

    async def send_down(
        self, gateway: Gateway, node: Node, errand: Errand, attempt: int
    ) -> PacketFate:
        """Send one packet of a gateway that is not sending, if that is allowed.

        Args:
            gateway: Who sends.
            node: Whom it is for.
            errand: What it is sent for.
            attempt: Which attempt it is, from 1.

        Returns:
            What became of it.
        """
        clock, radio = self._clock, node.radio
        airtime = radio.airtime(errand.payload)
        sense = None if errand.purpose == "acknowledgement" else radio.carrier_sense
        refusal, asked_at = None, clock.now
        if sense is not None and (
            not await self._sensing.is_clear_at_gateway(gateway, sense) or gateway.sending
        ):
            refusal = PacketFate.CHANNEL_BUSY
        elif not gateway.duty.admit(clock.now, airtime):
            refusal = PacketFate.DUTY_CYCLE
        start = clock.now
        if start > asked_at:
            self._log.add_phase(errand.query, node, "backoff", asked_at, start)
        if refusal is not None:
            self._write_down(node, gateway, refusal, errand, attempt, start=start)
            return refusal
        packet = self._medium.begin_down(gateway, node, errand.payload, start, airtime)
        sent = gateway.outgoing = clock.clock.signal()
        is_heard = packet.chances[0] > 0 and node.is_listening(start)
        before = node.battery.used["receive"]
        if is_heard:
            node.switch(start, (("receive", radio.receive),))
            node.incoming = clock.clock.signal()
        await clock.until(packet.end)
        fate = self._medium.end(packet)
        gateway.outgoing = None
        sent.set()
        if not is_heard and fate is PacketFate.DELIVERED:
            fate = PacketFate.NODE_BUSY
        if is_heard and node.incoming is not None:
            node.rest(clock.now)
            node.received += fate is PacketFate.DELIVERED
            ended, node.incoming = node.incoming, None
            ended.set()
        if not node.is_alive(clock.now):
            fate = PacketFate.NODE_DEAD
        energy = node.battery.used["receive"] - before
        self._write_down(node, gateway, fate, errand, attempt, packet=packet, energy=energy)
        return fate

    # Waiting and writing down

    async def _back_off(self, node: Node, errand: Errand, rng: Generator, attempt: int) -> None:
        """Wait for a random time before another attempt."""
        start = self._clock.now
        longest = node.radio.backoff * 2.0 ** (attempt - 2)
        await self._clock.until(start + longest * rng.random())
        self._log.add_phase(errand.query, node, "backoff", start, self._clock.now)

    async def back_off_down(self, gateway: Gateway, node: Node, errand: Errand, tried: int) -> None:
        """Wait for a random time before a gateway tries again.

        Args:
            gateway: Who sends.
            node: Whom it is for.
            errand: What it is sent for.
            tried: How many attempts there were.
        """
        await self._back_off(node, errand, gateway.rng, tried + 1)

    def _write_down(
        self,
        node: Node,
        gateway: Gateway | None,
        fate: PacketFate,
        errand: Errand,
        attempt: int,
        *,
        packet: Packet | None = None,
        start: float = 0.0,
        energy: float = 0.0,
    ) -> None:
        means = node.up if gateway is None else (node.down[gateway.index],)
        start = start if packet is None else packet.start
        end = start if packet is None else packet.end
        number = self._log.add_packet(
            node,
            gateway,
            fate,
            purpose=errand.purpose,
            query=errand.query,
            attempt=attempt,
            channel=-1 if packet is None else packet.channel,
            start=start,
            end=end,
            power=max(means if packet is None else packet.powers),
            energy=energy,
        )
        phase: Phase = "uplink" if gateway is None else "downlink"
        if fate is not PacketFate.DELIVERED:
            phase = "lost"
        self._log.add_phase(errand.query, node, phase, start, end, packet=number)
