"""Hosting: an expert that answers questions from outside as it would in a simulated play."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Self

import numpy as np

from sparq_sim.arrays import all_rows
from sparq_sim.domain import Domain
from sparq_sim.errors import PeerError, PluginError, SparqError, Unavailable
from sparq_sim.messages import AGENT_NAME, Answer, Estimate, Query
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.expert import Broadcasting, Expert
from sparq_sim.plugin.frames import describe_error
from sparq_sim.remote.serve.asking import AskClock, AskDraws, Asking, AskStreams
from sparq_sim.remote.wire import ApplyMessage, AskMessage, show
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.push import broadcast
from sparq_sim.simulation.delivery.request import Question
from sparq_sim.simulation.delivery.road import build_road
from sparq_sim.simulation.lifetime import Resources, note_failed_start
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import UNASKED, Record
from sparq_sim.simulation.rules import Rules

__all__ = ["HostedExpert"]


class HostedExpert:
    """An expert that answers questions from outside; an asynchronous context manager.

    It meets the landscape of a play with this seed and replication, and answers each question at
    the moment of the asker's play at which it was put. What chance decides depends on the seed and
    on the id of the question. Experts that it asks itself are hosted beside it.

    Args:
        name: What the expert is called.
        expert: Who answers.
        environment: What it measures.
        seed: Of the landscape and of all chance, 0 or more.
        replication: Which of several landscapes of that seed, from 0.
        beside: Other experts, each with its channel, by name, for one that asks them.
        rules: What the experts are told of the play; by default nothing.
    """

    def __init__(
        self,
        name: str,
        expert: Expert,
        environment: Environment,
        *,
        seed: int = 0,
        replication: int = 0,
        beside: Mapping[str, tuple[Expert, Channel]] | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.name = name
        self._environment = environment
        others = {each: pair for each, pair in (beside or {}).items() if each != name}
        self._experts = {name: (expert, Channel()), **others}
        self._rules = rules
        self._streams = AskStreams(seed, replication)
        self._clock = AskClock()
        self._stack = AsyncExitStack()
        self._context: PlayContext

    @property
    def domain(self) -> Domain:
        """Where points may lie; known once it is entered."""
        return self._context.landscape.domain

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await self._start(stack)
            self._stack = stack.pop_all()
        return self

    async def _start(self, stack: AsyncExitStack) -> None:
        """Start the landscape and the experts, and lay the roads to them."""
        resources = await stack.enter_async_context(Resources())
        landscape = await resources.start_landscape(self._environment, self._streams)
        stack.push_async_callback(self._clock.close)
        context = self._context = PlayContext(
            self._clock,
            self._streams,
            landscape,
            Recorder(landscape.domain.names),
            to_agent=lambda record: None,  # Nobody hears what is sent unasked.
            environment=f"environment {type(self._environment).__name__}",
        )
        connections: list[Connection] = []
        for name, (expert, channel) in self._experts.items():
            who = f"expert {name!r} ({type(expert).__name__})"
            expert.check_experts(self._experts)
            expert.check_domain(landscape.domain)
            with note_failed_start(who):
                source = await resources.enter(
                    who, expert.start(self._make_briefing()), may_await=True
                )
            connection = Connection(name, source, channel, context)
            connection.draws = AskDraws(name, channel, self._streams, self._clock)
            context.links[name] = build_road(connection)
            connections.append(connection)
        Asking("", 0.0, may_wait=False).begin()
        for connection in connections:
            if isinstance(connection.source, Broadcasting):
                # What it does before anybody asks, such as filling a log.
                with _name(connection.who):
                    await broadcast(connection, connection.source)
        # Again, for the libraries that the plug-ins have loaded meanwhile.
        stack.enter_context(one_thread())

    def _make_briefing(self) -> Briefing:
        rules = self._rules or Rules(rounds=1)
        return Briefing(
            domain=self.domain,
            experts={name: channel.terms for name, (_, channel) in self._experts.items()},
            period=rules.period,
            rounds=None if self._rules is None else rules.most_rounds,
            budget=rules.budget,
            budget_per_round=rules.budget_per_round,
            access=rules.access,
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def answer(self, ask: AskMessage | ApplyMessage) -> Estimate:
        """Answer a question.

        Args:
            ask: The question.

        Returns:
            What the expert knows; its `measured_at` is in clock units of the asker's play.

        Raises:
            PeerError: The points are not of the domain, or are to be applied.
            Unavailable: Nothing is known of any point; the message is the reason.
        """
        query = self._make_query(ask)
        asking = Asking(ask.id, ask.play_time, ask.unit)
        asking.begin()
        records: list[Record] = []
        missing = len(query.points)

        def hear(record: Record) -> None:
            nonlocal missing
            if record.fate not in UNASKED and missing:
                records.append(record)
                missing -= len(record.reply.rows)
                if not missing and not asking.outcome.done():
                    asking.outcome.set_result(None)

        self._context.links[self.name].ask(
            Question(query, all_rows(len(query.points)), hear, AGENT_NAME, AGENT_NAME)
        )
        try:
            await asking.outcome
        except SparqError as error:  # Such as a hook of the environment that is broken.
            raise Unavailable(describe_error(error)) from error
        finally:
            self._context.recorder.records.clear()  # No trace is made of them.
        return _join(records, len(query.points))

    def _make_query(self, ask: AskMessage | ApplyMessage) -> Query:
        domain = self.domain
        if isinstance(ask, ApplyMessage):
            raise PeerError("sent an apply; an expert answers questions, and applies nothing")
        if ask.names != tuple(domain.names):
            raise PeerError(
                f"sent an ask whose names are {show(ask.names)}; here they are "
                f"{show(tuple(domain.names))}"
            )
        try:
            return Query(1, self.name, domain.check(np.array(ask.points)), ask.play_time)
        except ValueError as error:
            raise PeerError(f"sent an ask that is wrong: {error}") from None


def _join(records: list[Record], count: int) -> Estimate:
    """Make one estimate of all that became of the rows of a question."""
    values, stds = np.full(count, np.nan), np.zeros(count)
    measured_at: float | None = None
    notes: dict[str, float] = {}
    absent = ""
    for reply in (record.reply for record in records):
        if isinstance(reply, Answer):
            values[reply.rows], stds[reply.rows] = reply.values, reply.stds
            measured_at = min(reply.measured_at, measured_at or reply.measured_at)
            notes |= reply.notes
        else:
            absent = absent or reply.reason
    if measured_at is None:
        raise Unavailable(absent)
    return Estimate(values, stds, measured_at, notes, absent)


@contextmanager
def _name(who: str) -> Iterator[None]:
    """Name who breaks while it begins."""
    try:
        yield
    except PluginError as error:
        raise PluginError(f"{who}: {error}") from error
