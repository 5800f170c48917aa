"""Service: what happens to a request at its source, from waiting for a slot to its arrival."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import inf

from sparq_sim.errors import HookError, JournalError, LiveOnlyError
from sparq_sim.messages import Query
from sparq_sim.plugin.expert import Answering, World
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.clock.expert_clock import LentClock
from sparq_sim.simulation.delivery.budget import Charges
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.examine import Measured, Refused, examine, name_blamed
from sparq_sim.simulation.delivery.request import Request
from sparq_sim.simulation.delivery.world import QueryWorld
from sparq_sim.simulation.records import Fate

__all__ = ["Service"]


class Service:
    """Serves the requests to one source, as its channel has it.

    A request waits for a slot, is served, is measured, frees the slot, travels, is lost or not,
    and has noise added: in this order, unless the source sends earlier, by `world.send`.
    """

    def __init__(
        self, name: str, source: Answering, channel: Channel, context: PlayContext
    ) -> None:
        """Open for requests.

        Args:
            name: What the source is called in this play.
            source: What answers.
            channel: How it is reached.
            context: The play that it takes part in.
        """
        self.charges = Charges(context.budget, channel.charged)
        self._name = name
        self._who = f"expert {name!r} ({type(source).__name__}).answer"
        self._source = source
        self._channel = channel
        self._context = context
        self._journal = context.journal
        self._gate = None if channel.capacity is None else context.clock.gate(channel.capacity)
        self._answer: Callable[[Query, World], Awaitable[object]] = (
            self._answer_with_reason if context.readings.has_gaps else source.answer
        )
        self._has_warned = False

    async def carry(self, request: Request, world: QueryWorld, *, deadline: float) -> None:
        """Take a request through waiting, service and transit to its end.

        Args:
            request: What is asked.
            world: What the source may use while it answers.
            deadline: When the asker gives up.
        """
        clock, gate, drawn = self._context.clock, self._gate, request.drawn
        if gate is not None:
            await gate.enter()
        given: object
        try:
            request.served_at = now = clock.now
            if request.owed:
                self.charges.fall_due(request, "served")
            if drawn.service:
                await clock.until(now + drawn.service)
            if self._journal is not None:
                self._journal.sync()  # Before anything leaves the process.
            if drawn.fault is None:
                answering = self._answer(drawn.subquery, world)
            else:
                answering = drawn.fault.answer(
                    self._answer, drawn.subquery, world, deadline=deadline
                )
            given = await clock.watch(answering, self._who)
        except (LiveOnlyError, HookError, JournalError):
            raise
        except Exception as error:
            if isinstance(error, RuntimeError) and "no running event loop" in str(error):
                raise LiveOnlyError(
                    f"expert {self._name!r} calls asyncio, which runs in real time only; "
                    "under virtual time await world.clock.sleep(...), or play it live"
                ) from error
            given = error
        finally:
            if gate is not None:
                gate.leave()
        if world.lent is not None and world.lent.forgotten:
            self.warn_of_forgotten(world.lent)
        if given is None and world.has_answered:
            return
        request.sent_at = now = clock.now
        measured = examine(given, len(drawn.rows), now)
        held_back = 0.0 if drawn.fault is None else drawn.fault.held_back
        if drawn.transit or held_back:
            await clock.until(now + drawn.transit + held_back)
        self.arrive(request, measured)

    async def _answer_with_reason(self, query: Query, world: World) -> object:
        """Ask the source; where it met a gap in the record, that is why values are NaN."""
        given: object = await self._source.answer(query, world)
        return world.with_reason(given) if isinstance(world, QueryWorld) else given

    def arrive(self, request: Request, measured: Measured | Refused) -> None:
        """Hand over what arrives now for a *request*, which may be lost or too late.

        Args:
            request: The request.
            measured: What the source gave, examined.
        """
        now, lost = self._context.clock.now, request.drawn.lost
        if not request.open:
            if not lost:
                request.cost = 0.0
                if request.answered:
                    request.fail(Fate.DUPLICATE, "answered twice", now=now, heard=False)
                else:
                    reason = "answered after it was given up"
                    request.fail(Fate.STRAY, reason, now=now, heard=False)
        elif lost:
            if not self._will_notice(request):
                self.fail(request, Fate.LOST, Fate.LOST, heard=False)
        elif isinstance(measured, Refused):
            self.fail(
                request, measured.fate, name_blamed(self._name, measured.fate, measured.reason)
            )
        else:
            self._context.in_flight.pop(request, None)
            if request.owed and (measured.bad is None or not measured.bad.all()):
                self.charges.fall_due(request, "answered")
            if request.owed:
                self.charges.release(request)
            try:
                request.succeed(measured, self._channel.noise, source=self._name, now=now)
            except HookError as error:
                raise HookError(f"the channel to {self._name!r}: {error}") from error

    def _will_notice(self, request: Request) -> bool:
        """Return whether an asker gives up some time, and so hears of a loss."""
        if self._channel.patience < inf:
            return True
        # A reading that nobody asked for is under no timeout.
        return request.question.path != self._name and self._channel.policy.timeout < inf

    def fail(self, request: Request, fate: Fate, reason: str, *, heard: bool = True) -> None:
        """End a request that is under way without an answer, and free what is reserved for it.

        Args:
            request: The request.
            fate: How it ends.
            reason: Why, for the trace and the agent.
            heard: Whether the asker is told.
        """
        self._context.in_flight.pop(request, None)
        self.charges.release(request)
        request.fail(fate, reason, now=self._context.clock.now, heard=heard)

    def warn_of_forgotten(self, lent: LentClock) -> None:
        """Warn, once, of waits that the source made and did not await.

        Args:
            lent: The clock that the source was lent.
        """
        if not self._has_warned:
            self._has_warned = True
            lent.warn_of_forgotten()
