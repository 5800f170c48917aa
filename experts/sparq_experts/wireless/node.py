"""Nodes and gateways: what each is doing now, and what it has done."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from numpy.random import Generator

from sparq_experts.wireless.battery import Battery, Draws
from sparq_experts.wireless.listening import AlwaysOn, AnyListening, WakeUps
from sparq_experts.wireless.radio import Radio
from sparq_sim.arrays import Points
from sparq_sim.simulation.clock.protocol import Gate, Signal

__all__ = ["SLACK", "DutyCycle", "Gateway", "Node", "find_rest_draws"]

SLACK = 1e-6
"""Seconds by which clocks may differ from rounding alone."""


class DutyCycle:
    """Limits the time on the air to a share of any stretch of time of a given length.

    This is how EN 300 220 counts: what was sent within the last hour. It is a hard limit: what
    exceeds it is not sent at all.

    Args:
        limit: The share of time that may be spent sending; 1 for no limit.
        window: The length of the stretch of time, in seconds.
    """

    __slots__ = ("_allowed", "_recent", "_total", "_unlimited", "_window")

    def __init__(self, limit: float, window: float) -> None:
        self._unlimited = limit >= 1
        self._allowed = limit * window * (1 + 1e-9)
        self._window = window
        self._recent: deque[tuple[float, float]] = deque()
        self._total = 0.0

    def admit(self, now: float, airtime: float) -> bool:
        """Count a packet that begins now, if the limit allows it.

        Args:
            now: In seconds.
            airtime: In seconds.

        Returns:
            Whether it may be sent.
        """
        if not self.allows(now, airtime):
            return False
        if not self._unlimited:
            self._recent.append((now + airtime, airtime))
            self._total += airtime
        return True

    def allows(self, now: float, airtime: float) -> bool:
        """Return whether a packet may be sent now, without counting it.

        Args:
            now: In seconds.
            airtime: In seconds.
        """
        if self._unlimited:
            return True
        recent = self._recent
        while recent and recent[0][0] <= now - self._window:
            self._total -= recent.popleft()[1]
        if not recent:
            self._total = 0.0  # Without the rounding of many sums.
        return self._total + airtime <= self._allowed


@dataclass(slots=True, eq=False)
class Gateway:
    """A gateway: it receives several packets at once, sends one at a time, and not both."""

    index: int
    """Its place among the gateways."""
    name: str
    """As pictures and tables have it."""
    duty: DutyCycle
    """What it may send."""
    rng: Generator
    """Its chance: back-offs, fading and errors of what it sends."""
    sending: bool = False
    """Whether it sends now, and so receives nothing."""
    outgoing: Signal | None = None
    """Happens when the packet that it sends now has ended; None while it sends none."""
    free_at: float = 0.0
    """Until when it is taken by a query: it sends no other before the answer is due; in seconds."""
    receiving: int = 0
    """How many packets it receives now."""
    busiest: int = 0
    """The most packets that it received at once."""
    airtime: float = 0.0
    """Seconds that it has sent."""
    counts: Counter[str] = field(default_factory=Counter)
    """Packets that it sent or was refused to send, by what became of them."""

    def is_taken(self, now: float) -> bool:
        """Return whether it sends, or waits for the answer to a query.

        Args:
            now: In seconds.
        """
        return self.sending or self.free_at - now > SLACK


@dataclass(slots=True, eq=False)
class Node:
    """A node: it rests, measures, sends or receives, and its battery pays for that."""

    index: int
    """Its place among the nodes."""
    name: str
    """As messages, pictures and tables have it."""
    point: Points
    """Where it is in the domain: (1, d)."""
    radio: Radio
    """As this node uses it, at its own data rate."""
    battery: Battery
    """Its energy."""
    listening: AnyListening
    """When it can be asked."""
    duty: DutyCycle
    """What it may send."""
    up: tuple[float, ...]
    """The mean power of its packets at each gateway, in dBm."""
    down: tuple[float, ...]
    """The mean power of each gateway's packets at the node, in dBm."""
    gate: Gate
    """Held while it measures and sends."""
    rng: Generator
    """Its chance: noise, back-offs, fading and errors of what it sends."""
    phase: float
    """When it sends something of its own accord for the first time, in seconds."""
    wake_phase: float = 0.0
    """When it wakes up for the first time, in seconds."""
    bias_rate: float = 0.0
    """By how much its readings go wrong in a clock unit, in reward units."""
    sending: bool = False
    """Whether it sends now."""
    incoming: Signal | None = None
    """Happens when the packet that it receives now has ended; None while it receives none."""
    received: int = 0
    """How many packets it has received."""
    windows: tuple[tuple[float, float], ...] = ()
    """When it listens after its last packet, in seconds."""
    heard_from: list[Signal] = field(default_factory=list)
    """Of queries that wait until the gateway hears from the node; set with the packet's end."""
    airtime: float = 0.0
    """Seconds that it has sent."""
    counts: Counter[str] = field(default_factory=Counter)
    """Packets that it sent or was refused to send, by what became of them."""
    rest_draws: Draws = field(init=False)
    """What it draws while it does nothing."""
    draws: Draws = field(init=False)
    """What its radio draws now."""
    work_draws: Draws = ()
    """What it draws on top of that for what it measures or computes now."""
    send_draws: Draws = field(init=False)
    """What it draws while it sends."""
    listen_draws: Draws = field(init=False)
    """What it draws while it listens."""
    window: float = field(init=False)
    """How long each of its windows is open if nothing comes, in seconds."""

    def __post_init__(self) -> None:
        radio = self.radio
        if isinstance(self.listening, WakeUps):
            self.listening = self.listening.lengthen(radio.shortest_listen)
        self.draws = self.rest_draws = find_rest_draws(radio, self.listening)
        # Looked up once, not for each packet.
        self.send_draws = (("send", radio.send_draw),)
        self.listen_draws = (("listen", radio.listen),)
        self.window = radio.shortest_listen

    @property
    def gateway(self) -> int:
        """The gateway that hears it best, and asks it."""
        return self.up.index(max(self.up))

    def switch(self, now: float, draws: Draws) -> None:
        """Account for the time until now, and have the radio draw something else from now on.

        Args:
            now: In seconds.
            draws: What it draws from now on.
        """
        self.battery.draw(now, self.draws + self.work_draws)
        self.draws = draws

    def work(self, now: float, draws: Draws) -> None:
        """Account for the time until now, and measure or compute from now on.

        Args:
            now: In seconds.
            draws: What that draws on top of what the radio does.
        """
        self.switch(now, self.draws)
        self.work_draws = draws

    def rest(self, now: float) -> None:
        """Account for the time until now, and have the radio do nothing from now on.

        Args:
            now: In seconds.
        """
        self.switch(now, self.rest_draws)

    def is_alive(self, now: float) -> bool:
        """Account for the time until now, and return whether any energy is left.

        Args:
            now: In seconds.
        """
        battery = self.battery
        if battery.time < now:
            battery.draw(now, self.draws + self.work_draws)
        return not battery.empty

    def is_listening(self, now: float) -> bool:
        """Return whether the node would hear a packet that begins now.

        Args:
            now: In seconds.
        """
        if self.sending or self.incoming is not None or not self.is_alive(now):
            return False
        match self.listening:
            case AlwaysOn():
                return True
            case WakeUps() as wake_ups if wake_ups.next(now + SLACK, self.wake_phase)[0] <= (
                now + SLACK
            ):
                return True
        return any(start - SLACK <= now <= end + SLACK for start, end in self.windows)


def find_rest_draws(radio: Radio, listening: AnyListening) -> Draws:
    """Return what a node draws while it does nothing, the listening at wake-ups spread evenly.

    Args:
        radio: Of the node.
        listening: When it can be asked.
    """
    match listening:
        case AlwaysOn():
            return (("listen", radio.listen),)
        case WakeUps():
            share = listening.lengthen(radio.shortest_listen).share
            return (("sleep", (1 - share) * radio.sleep), ("listen", share * radio.listen))
    return (("sleep", radio.sleep),)
