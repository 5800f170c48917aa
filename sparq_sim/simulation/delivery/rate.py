"""Rates: requests that come faster than a source may be asked wait, or are refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from sparq_sim.simulation.channel.policy import Rate
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.request import Request
from sparq_sim.simulation.past import SentAsk
from sparq_sim.simulation.records import Fate

__all__ = ["RateLimited"]


class RateLimited:
    """Lets requests pass at a *rate*, in the order in which they come.

    A request of more points than may pass in one stretch waits until they could have passed singly.
    """

    def __init__(self, rate: Rate | None, connection: Connection) -> None:
        """Begin with nothing asked.

        Args:
            rate: How many points may pass, and in what time; None for any number.
            connection: The next part of the road.
        """
        self._rate = rate
        self._connection = connection
        self._context = connection.context
        self._queue: deque[Request] = deque()
        self._passed: deque[float] = deque(maxlen=None if rate is None else rate.points)

    def recall(self, sent: Sequence[SentAsk]) -> None:
        """Count what was asked before the play was interrupted.

        Args:
            sent: What was sent to any source.
        """
        if self._rate is not None:
            own = [each for each in sent if each.source == self._connection.name]
            self._passed.extend(each.at for each in own for _ in range(each.points))

    def send(self, request: Request) -> None:
        """Send a request now, when the rate allows it, or not at all."""
        rate = self._rate
        if rate is None:
            self._connection.send(request)
        elif self._may_pass(request, rate):
            self._count(request)
            self._connection.send(request)
        elif rate.beyond == "refuse":
            self._connection.refuse(request, Fate.RATE)
        else:
            self._context.hold(request)
            self._queue.append(request)
            if len(self._queue) == 1:
                self._await_turn(rate)

    def _may_pass(self, request: Request, rate: Rate) -> bool:
        # A billionth is rounding: who comes as fast as is allowed comes in time.
        early = self._opens_at(request, rate) - self._context.clock.now > 1e-9 * rate.every
        return not self._queue and not early

    def _await_turn(self, rate: Rate) -> None:
        moment = self._opens_at(self._queue[0], rate)
        self._context.clock.call_at(moment, lambda: self._take_turn(rate))

    def _take_turn(self, rate: Rate) -> None:
        request = self._queue[0]
        if self._context.let_go(request):  # One that was given up takes nobody's place.
            self._count(request)
            self._connection.send(request)
        self._queue.popleft()  # Not before: it may fail at once, and line up again.
        if self._queue:
            self._await_turn(rate)

    def _count(self, request: Request) -> None:
        self._passed.extend([self._context.clock.now] * len(request.drawn.rows))

    def _opens_at(self, request: Request, rate: Rate) -> float:
        """Return the moment at which a request may pass, if no other does before."""
        passed, moment = self._passed.copy(), self._context.clock.now
        for _ in range(len(request.drawn.rows)):
            if len(passed) == rate.points:
                moment = max(moment, passed[0] + rate.every)
            passed.append(moment)
        return moment
