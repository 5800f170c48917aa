"""The world of a query: what a source may use while it answers.

Long because `QueryWorld` is all of that: each method is one of the protocol `sparq_sim.World`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values, all_rows, freeze_array
from sparq_sim.domain import Domain
from sparq_sim.errors import Unaffordable, Unavailable, did_you_mean, escape_surrogates
from sparq_sim.messages import AGENT_NAME, NO_READING, Estimate, Query, Reply, make_checked_query
from sparq_sim.plugin.environment import Landscape, WithCellCount
from sparq_sim.simulation.clock.expert_clock import LentClock
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.link import name_asker
from sparq_sim.simulation.delivery.programs import Command, Program, compute
from sparq_sim.simulation.delivery.push import push
from sparq_sim.simulation.delivery.request import Question, Request
from sparq_sim.simulation.records import Fate, Record

if TYPE_CHECKING:
    from sparq_sim.simulation.delivery.connection import Connection

__all__ = ["QueryWorld"]

T = TypeVar("T")

MEMORY = 1024
"""After so many queries that a source has opened, those that are over are forgotten."""


class QueryWorld:
    """What a source may use while it answers one query; see `sparq_sim.World` for each part."""

    __slots__ = (
        "_connection",
        "_context",
        "_met_gap",
        "_opened",
        "_request",
        "_rng",
        "has_answered",
        "lent",
    )

    def __init__(self, connection: Connection, request: Request | None) -> None:
        """Make the world of one query.

        Args:
            connection: The source's.
            request: What it answers; None while it sends of its own accord.
        """
        self._connection = connection
        self._context = connection.context
        self._request = request
        self._opened: dict[int, Request | None] | None = None
        self._rng: Generator | None = None
        self._met_gap = False
        self.has_answered = False
        """Whether the source has sent an answer itself."""
        self.lent: LentClock | None = None
        """The clock, once it was asked for."""

    @property
    def clock(self) -> Clock:
        if self.lent is None:
            self.lent = LentClock(self._context.clock, self._connection.who)
        return self.lent

    @property
    def domain(self) -> Domain:
        return self._context.landscape.domain

    @property
    def rng(self) -> Generator:
        if self._rng is None:
            connection, request = self._connection, self._request
            self._rng = (
                self._context.streams.generator(f"{connection.name}/broadcast")
                if request is None
                else connection.draws[request.question.path].generator(request)
            )
        return self._rng

    @property
    def key(self) -> str:
        request = self._request
        if request is None:
            return ""
        query, rows = request.question.query, request.drawn.rows
        # After some points were answered, a retry about the others is another question.
        which = "all" if len(rows) == len(query.points) else ".".join(map(str, rows.tolist()))
        return f"{self._context.play_id}/{query.source}/{query.id}/{which}"

    # What can be known of the environment.

    def rewards(self, points: Points, time: float) -> Values:
        if not 0 <= time <= self._context.clock.now:
            self.refuse_future(time)
        rewards = self._context.landscape.rewards(points, time)
        if self._context.readings.has_gaps:
            return self.without_gaps(rewards, points, time)
        return rewards

    def refuse_future(self, time: float) -> None:
        """Raise ValueError where *time* is not from 0 to now.

        Args:
            time: In clock units.
        """
        if not 0 <= time <= (now := self._context.clock.now):
            raise ValueError(f"rewards are known from 0 to now ({now}), not at {time}")

    def without_gaps(self, values: Values, points: Points, time: float) -> Values:
        """Return *values* of a *time*, NaN where the record has no reading, and remember if so.

        What fills a gap may be made of later readings, so nobody may know it.

        Args:
            values: The noise-free rewards: (n,).
            points: Where: (n, d).
            time: When, in clock units.
        """
        if not self._context.readings.has_gaps:
            return values
        there = self.available(points, time)
        if there.all():
            return values
        self._met_gap = True
        return np.where(there, values, np.nan)

    def with_reason(self, given: object) -> object:
        """Return what the source gave; where it met a gap, with that for a reason, if it has none.

        A NaN that no gap explains keeps no reason, and is refused as invalid.

        Args:
            given: What the source returned.
        """
        if self._met_gap and isinstance(given, Estimate) and not given.absent:
            return replace(given, absent=NO_READING)
        return given

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        self.refuse_future(time)
        return self._context.readings.available(points, time)

    def observe(self, points: Points) -> Values:
        now = self._context.clock.now
        values = self._context.readings.observe(points, now, lambda: self.rng)
        return self.without_gaps(values, points, now)

    def coarse(self, resolution: float) -> Landscape:
        return _KnownLandscape(self._connection.coarse(resolution), self)

    # What can be done.

    async def ask(self, name: str, points: Points) -> tuple[Reply, ...]:
        context = self._context
        by = AGENT_NAME if self._request is None else self._request.question.path
        path = name_asker(self._connection.name, by)
        if name not in context.links:
            raise ValueError(f"no expert is called {name!r}: {did_you_mean(name, context.links)}")
        if name in path.split(">"):
            raise ValueError(f"experts ask in a circle: {path}>{name}")
        query = Query(context.next_own_query(), name, self.domain.check(points), context.clock.now)
        replies: list[Reply] = []
        rows = 0
        complete = context.clock.signal()

        def hear(record: Record) -> None:
            nonlocal rows
            context.recorder.add(record)
            # Of a loss one hears when the answer would have come: an expert that waited for ever
            # would hold its slot for ever.
            if record.heard or record.fate == Fate.LOST:
                replies.append(record.reply)
                rows += len(record.reply.rows)
                if rows == len(query.points):
                    complete.set()

        question = Question(query, all_rows(len(query.points)), hear, path, path)
        context.links[name].ask(question)
        await complete
        return tuple(sorted(replies, key=lambda reply: int(reply.rows[0])))

    async def compute(self, function: Callable[..., T], *arguments: Any, takes: float = 0.0) -> T:
        return await compute(self._context.clock, function, arguments, takes=takes)

    async def run(
        self,
        command: Command,
        *,
        input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
        takes: float = 0.0,
        timeout: float | None = None,
    ) -> str:
        program = Program(command, input=input, timeout=timeout)
        try:
            return await self.compute(program.run, takes=takes)
        finally:
            program.kill()

    def open(self, points: Points) -> Query:
        checked = self.domain.check(points)
        if not len(checked):
            raise ValueError("world.open(points) needs at least one point")
        # Points within the domain are finite.
        query = make_checked_query(
            self._context.next_own_query(),
            self._connection.name,
            freeze_array(checked),
            self._context.clock.now,
        )
        if self._opened is None:
            self._opened = {}
        elif len(self._opened) % MEMORY == 0:  # A broadcast may go on for ever.
            self._opened = {n: own for n, own in self._opened.items() if own is None or own.open}
        self._opened[query.id] = None
        return query

    def send(self, query: Query, estimate: Estimate) -> None:
        given = self.with_reason(estimate)
        request, opened = self._request, self._opened
        if request is not None and query.id == request.question.query.id:
            self.has_answered = True
            push(self._connection, request, given)
        elif opened is not None and query.id in opened:
            # Draws and cost are those of the round in which it is sent.
            own = opened[query.id] or self._connection.own_request(query)
            opened[query.id] = own
            push(self._connection, own, given)
        else:
            raise ValueError(
                f"query {query.id} was not put to {self._connection.name!r} here; "
                "send answers to the query at hand, or to one of world.open(points) that is not "
                "over"
            )

    def note(self, **columns: float) -> None:
        if self._request is None:
            raise ValueError("a broadcast has no reply to note on; give the Estimate notes")
        self._request.notes.update(
            {escape_surrogates(name): float(number) for name, number in columns.items()}
        )

    def charge(self, cost: float) -> None:
        request = self._request
        if request is None:
            raise ValueError("a broadcast answers no query that could cost something")
        if not (isfinite(cost) and cost >= 0):
            raise ValueError(f"a cost must be finite and not negative, not {cost!r}")
        if not request.open:
            # Its record is written, and nothing may be spent that no record shows.
            raise Unaffordable(f"query {request.question.query.id} is over; nobody pays for it")
        charges, number = self._connection.service.charges, self._context.round
        if not charges.add(float(cost), request, number):
            raise Unaffordable(f"the budget cannot pay {cost:g} more")

    def stop(self, reason: str) -> None:
        self._context.stop_reason = escape_surrogates(str(reason))


class _KnownLandscape:
    """A coarse landscape as far as it can be known: no later than now, and not where a gap is."""

    def __init__(self, landscape: Landscape, world: QueryWorld) -> None:
        self._landscape = landscape
        self._world = world
        if isinstance(landscape, WithCellCount):
            self.cell_count = landscape.cell_count

    def __getattr__(self, name: str) -> Any:
        """Return what else the landscape has."""
        if name in ("observe", "available", "coarse"):
            raise AttributeError(f"a coarse landscape has no {name}; ask the world itself")
        return getattr(self._landscape, name)

    @property
    def domain(self) -> Domain:
        return self._landscape.domain

    def rewards(self, points: Points, time: float) -> Values:
        self._world.refuse_future(time)
        return self._world.without_gaps(self._landscape.rewards(points, time), points, time)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the best point of a *time*; raise Unavailable if there is no reading of it."""
        self._world.refuse_future(time)
        point, reward = self._landscape.best(time)
        if isnan(self._world.without_gaps(np.array([reward]), point[None], time)[0]):
            raise Unavailable(NO_READING)
        return point, reward
