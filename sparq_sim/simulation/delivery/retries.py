"""Retries: another attempt after a failure, and another source when all attempts have failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf

from sparq_sim.messages import Failure, Query
from sparq_sim.simulation.channel.policy import Policy
from sparq_sim.simulation.clock.protocol import DEADLINE
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.link import Carrier, Link, name_asker
from sparq_sim.simulation.delivery.request import Question, Request
from sparq_sim.simulation.records import Fate, Record

__all__ = ["FallingBack", "Retrying"]

RETRIED = frozenset({Fate.LATE, Fate.LOST, Fate.OUTAGE, Fate.INVALID})
"""What may turn out better another time; a budget, an access rule and a rate will not."""


@dataclass(slots=True, eq=False)
class _Attempts:
    """The attempts at one request."""

    question: Question
    """As it was asked."""
    last: Request | None = None
    expired: bool = False
    """Whether the time for all attempts together is over."""


class Retrying:
    """Makes the requests for a question, and another one after each failure that is worth it."""

    def __init__(self, policy: Policy, carrier: Carrier, connection: Connection) -> None:
        """Begin with nothing asked.

        Args:
            policy: How often to retry, after what wait, and for how long in all.
            carrier: What sends requests to the source.
            connection: The source's, which draws for them.
        """
        self._policy = policy
        self._carrier = carrier
        self._connection = connection
        self._context = connection.context

    def ask(self, question: Question) -> None:
        """Send the first attempt at each request for the *question*."""
        clock, timeout = self._context.clock, self._policy.timeout
        number = self._context.round
        for drawn in self._connection.draws[question.path].draw(question, number):
            attempts = _Attempts(question)
            inner = question.told_to(partial(self._take, attempts))
            attempts.last = Request(inner, drawn, number, drawn.cost)
            if timeout < inf:
                clock.call_at(clock.now + timeout, self._expiry(attempts), DEADLINE)
            self._carrier.send(attempts.last)

    def _expiry(self, attempts: _Attempts) -> Callable[[], None]:
        def expire() -> None:
            attempts.expired = True
            if attempts.last is not None:
                self._connection.give_up(attempts.last)

        return expire

    def _take(self, attempts: _Attempts, record: Record) -> None:
        """Retry after a failure, if that may help; pass the record on otherwise."""
        reply, policy, before = record.reply, self._policy, attempts.last
        is_worth_it = record.heard and record.fate in RETRIED and record.attempt <= policy.retries
        if not is_worth_it or attempts.expired or before is None:
            attempts.question.on_record(record)
            return
        self._context.recorder.keep_superseded(record)
        drawn = self._connection.draws[before.question.path].draw_again(before, reply.rows)
        number = self._context.round
        request = Request(before.question, drawn, number, drawn.cost, before.attempt + 1)
        attempts.last = request
        # From the clock, also without a wait: many attempts in a row must not pile up calls.
        self._context.hold(request)
        earliest = self._context.clock.now + policy.wait(record.attempt)
        self._context.clock.call_at(earliest, lambda: self._resend(request))

    def _resend(self, request: Request) -> None:
        if self._context.let_go(request):
            self._carrier.send(request)


class FallingBack:
    """Puts what a source has failed to answer for good to another source, its fallback."""

    def __init__(self, policy: Policy, inner: Link, name: str, context: PlayContext) -> None:
        """Begin with nothing asked.

        Args:
            policy: It names the fallback, if there is one.
            inner: The next link, to the source itself.
            name: Of the source.
            context: The play, with the links to all sources.
        """
        self._fallback = policy.fallback
        self._inner = inner
        self._name = name
        self._context = context

    def ask(self, question: Question) -> None:
        """Ask the source; where it fails, ask the fallback."""
        if self._fallback is None:
            self._inner.ask(question)
        else:
            take = partial(self._take, question, self._fallback)
            self._inner.ask(question.told_to(take))

    def _take(self, question: Question, fallback: str, record: Record) -> None:
        reply = record.reply
        # Under a path of its own, so that it shifts nobody's draws there.
        path = name_asker(self._name, question.path)
        has_failed = isinstance(reply, Failure) and record.heard
        if not has_failed or fallback in path.split(">"):
            question.on_record(record)
            return
        self._context.recorder.keep_superseded(record)
        asked = reply.query
        again = Query(asked.id, fallback, asked.points, asked.asked_at)
        self._context.links[fallback].ask(
            Question(
                again, reply.rows, question.on_record, question.asker, path, self._context.clock.now
            )
        )
