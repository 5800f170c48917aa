"""Connections: a source at the end of its channel, and the world it sees while it answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf, isnan

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_sim.channel import Channel
from sparq_sim.clock import DEADLINE, Clock, Gate
from sparq_sim.domain import Domain
from sparq_sim.draws import Constant, Draw
from sparq_sim.errors import LiveOnlyError, PluginError, did_you_mean
from sparq_sim.messages import Estimate, Points, Query, Reply, Values
from sparq_sim.models import Answering, Landscape
from sparq_sim.parcel import (
    BUDGET,
    DUPLICATE,
    INVALID,
    LATE,
    LOST,
    OUTAGE,
    UNANSWERED,
    Hear,
    Measured,
    Parcel,
    Record,
    examine,
)
from sparq_sim.purse import Purse
from sparq_sim.streams import RoundStream, Streams

AGENT_NAME = "agent"


@dataclass(slots=True, eq=False)
class Stage:
    """What all connections of a play share."""

    clock: Clock
    streams: Streams
    landscape: Landscape
    purse: Purse = field(default_factory=Purse)
    hear: Hear = lambda record: None
    """Takes every record of the play."""
    round: int = 0
    stopped: str | None = None
    """Why a source ended the play, if one did."""
    connections: dict[str, Connection] = field(default_factory=dict)
    parcels: dict[Parcel, None] = field(default_factory=dict)
    """On their way, in the order in which they were sent."""
    own_queries: int = 0

    def next_own_query(self) -> int:
        """Give the next number for a query that no agent asked."""
        self.own_queries += 1
        return -self.own_queries

    def close(self) -> None:
        """Record all that is still on its way as unanswered."""
        for parcel in list(self.parcels):
            parcel.fail(UNANSWERED, UNANSWERED, now=self.clock.now, heard=False)
        self.parcels.clear()


class Luck:
    """The draws of one asker at one source: the j-th of a round owes nothing to anything else."""

    def __init__(self, streams: Streams, name: str) -> None:
        self._streams = streams
        self._name = name
        self._by_effect: dict[str, RoundStream] = {}
        self._round = 0
        self._parcels = 0

    def stream(self, effect: str, number: int) -> Generator:
        """Give the generator of an *effect* in round *number*."""
        stream = self._by_effect.get(effect)
        if stream is None:
            stream = self._by_effect[effect] = self._streams.by_round(f"{self._name}/{effect}")
        return stream.at(number)

    def draw(self, effect: str, draw: Draw, number: int, count: int) -> list[float]:
        """Draw an *effect* of round *number* for each of *count* parcels or points."""
        if isinstance(draw, Constant):
            return [draw.value] * count
        drawn: list[float] = draw.sample(self.stream(effect, number), count).tolist()
        return drawn

    def own(self, parcel: Parcel) -> Generator:
        """Give the generator that is *parcel*'s alone."""
        counter = [0, 0, parcel.round, parcel.ordinal]
        return Generator(Philox(key=self._streams.key(f"{self._name}/answer"), counter=counter))

    def count(self, number: int, parcels: int) -> int:
        """Count *parcels* more in round *number*; give how many there were."""
        if number != self._round:
            self._round, self._parcels = number, 0
        before = self._parcels
        self._parcels += parcels
        return before


class Connection:
    """A source at the end of its channel: queries go down, records of replies come back."""

    def __init__(self, name: str, source: Answering, channel: Channel, stage: Stage) -> None:
        if not inspect.iscoroutinefunction(getattr(source, "answer", None)):
            raise PluginError(
                f"expert {name!r} ({type(source).__name__}): answer must be an async method: "
                "`async def answer(self, query, world)`"
            )
        self.name = name
        self.source = source
        self.channel = channel
        self.stage = stage
        self._gate: Gate | None = (
            None if channel.capacity is None else stage.clock.gate(channel.capacity)
        )
        self._answer: Callable[[Query, QueryWorld], Awaitable[object]] = source.answer
        # What the channel does not do at all is looked up once, not for each query.
        self._cost_counts_points = not _nothing(channel.cost_per_point)
        self._service_counts_points = not _nothing(channel.service_per_point)
        self._lossless = channel.loss.lossless
        self._silent = channel.noise.silent
        try:
            channel.noise.stds(stage.landscape.domain.cover(1)[:1], np.zeros(1))
        except ValueError as error:
            raise PluginError(f"the channel to {name!r}: {error}") from error
        self._lucks: dict[str, Luck] = {}
        self._chances = channel.loss.start(stage.streams.generator(f"{name}/spells"))
        stage.connections[name] = self

    def luck(self, asker: str) -> Luck:
        """Give the draws of *asker* here."""
        luck = self._lucks.get(asker)
        if luck is None:
            name = self.name if asker == AGENT_NAME else f"{asker}>{self.name}"
            luck = self._lucks[asker] = Luck(self.stage.streams, name)
        return luck

    # Asking: all that chance decides is drawn now, so that other queries cannot shift it.

    def ask(self, query: Query, asker: str = AGENT_NAME, *, hear: Hear | None = None) -> None:
        """Draw, charge, and send the query on its way."""
        out = bool(self.channel.outages) and self.channel.out_at(query.asked_at)
        for parcel in self._parcels(query, asker, split=self.channel.split, hear=hear):
            if out:
                self._refuse(parcel, OUTAGE)
            elif self._paid(parcel):
                parcel.process = self.stage.clock.start(self._carry(parcel))
                self._limit(parcel, query.asked_at)

    def parcel(self, query: Query) -> Parcel:
        """Make the parcel for an answer to a query that the source opened itself."""
        (parcel,) = self._parcels(query, self.name, split=False)
        return parcel

    def send(self, parcel: Parcel, estimate: Estimate) -> None:
        """Put an estimate on the road that the source sends of its own accord."""
        now = self.stage.clock.now
        own = parcel.process is None
        if own and not self._admitted(parcel, now):
            return
        parcel.served_at = now if isnan(parcel.served_at) else parcel.served_at
        parcel.sent_at = now if isnan(parcel.sent_at) else parcel.sent_at
        process = self.stage.clock.start(self._travel(parcel, estimate))
        if own:
            parcel.process = process
            self._limit(parcel, now)

    def _admitted(self, parcel: Parcel, now: float) -> bool:
        """Let a parcel of the source's own onto the road, if it was not refused already."""
        if parcel.open and self.channel.out_at(now):
            self._refuse(parcel, OUTAGE)
        return parcel.open and self._paid(parcel)

    def _paid(self, parcel: Parcel) -> bool:
        if self.stage.purse.pay(parcel.cost, parcel.round):
            self.stage.parcels[parcel] = None
            return True
        self._refuse(parcel, BUDGET)
        return False

    def _refuse(self, parcel: Parcel, reason: str) -> None:
        parcel.cost = 0.0
        parcel.fail(reason, reason, now=self.stage.clock.now)

    def _limit(self, parcel: Parcel, begun_at: float) -> None:
        if self.channel.patience < inf:
            deadline = begun_at + self.channel.patience
            self.stage.clock.call_at(deadline, lambda: self._give_up(parcel), DEADLINE)

    def _parcels(
        self, query: Query, asker: str, *, split: bool, hear: Hear | None = None
    ) -> list[Parcel]:
        number, channel = self.stage.round, self.channel
        luck = self.luck(asker)
        size = len(query.points)
        parcels = size if split else 1
        costs = luck.draw("cost", channel.cost, number, parcels)
        services = luck.draw("service", channel.service, number, parcels)
        if self._cost_counts_points:
            more = luck.draw("cost-per-point", channel.cost_per_point, number, size)
            costs = _sums(costs, more)
        if self._service_counts_points:
            more = luck.draw("service-per-point", channel.service_per_point, number, size)
            services = _sums(services, more)
        transits = luck.draw("transit", channel.transit, number, parcels)
        lost = [False] * parcels
        if not self._lossless:
            chance = self._chances(query.asked_at)
            lost = (luck.stream("loss", number).random(parcels) < chance).tolist()
        units = None
        if not self._silent:
            units = channel.noise.units(luck.stream("noise", number), size)
        ordinal = luck.count(number, parcels)
        rows = _row_numbers(size)
        hear = hear or self.stage.hear
        # By position: a dozen keywords would double the time that a parcel takes to make.
        return [
            Parcel(
                query,
                rows[i : i + 1] if split else rows,
                query.row(i) if split else query,
                number,
                asker,
                ordinal + i,
                costs[i],
                services[i],
                transits[i],
                lost[i],
                units[i : i + 1] if split and units is not None else units,
                hear,
            )
            for i in range(parcels)
        ]

    # Travelling.

    async def _carry(self, parcel: Parcel) -> None:
        clock, gate = self.stage.clock, self._gate
        world = QueryWorld(self, parcel)
        if gate is not None:
            await gate.enter()
        given: object
        try:
            parcel.served_at = now = clock.now
            if parcel.service:
                await clock.until(now + parcel.service)
            given = await self._answer(parcel.question, world)
        except LiveOnlyError:
            raise
        except Exception as error:
            if isinstance(error, RuntimeError) and "no running event loop" in str(error):
                raise LiveOnlyError(
                    f"expert {self.name!r} calls asyncio, which runs in real time only; "
                    "under virtual time await world.clock.sleep(...), or play it live"
                ) from error
            given = error
        finally:
            if gate is not None:
                gate.leave()
        if given is None and world.has_answered:
            return
        parcel.sent_at = now = clock.now
        measured = examine(given, len(parcel.rows), now)
        if parcel.transit:
            await clock.until(now + parcel.transit)
        self._arrive(parcel, measured)

    async def _travel(self, parcel: Parcel, estimate: Estimate) -> None:
        clock = self.stage.clock
        measured = examine(estimate, len(parcel.rows), clock.now)
        await clock.until(clock.now + parcel.transit)
        self._arrive(parcel, measured)

    def _arrive(self, parcel: Parcel, measured: Measured | str) -> None:
        now = self.stage.clock.now
        if not parcel.open:
            if parcel.answered:  # Otherwise it was given up, and all has been said of it.
                parcel.cost = 0.0
                parcel.fail(DUPLICATE, "answered twice", now=now, heard=False)
        elif parcel.lost:
            # Where patience is finite, its end tells the asker.
            if self.channel.patience == inf:
                self._end(parcel, LOST, LOST, heard=False)
        elif isinstance(measured, str):
            self._end(parcel, INVALID, f"{self.name} {measured}")
        else:
            self.stage.parcels.pop(parcel, None)
            parcel.arrive(measured, self.channel.noise, source=self.name, now=now)

    def _give_up(self, parcel: Parcel) -> None:
        if parcel.open:
            on_the_road = not isnan(parcel.sent_at)
            self._end(parcel, LOST if parcel.lost and on_the_road else LATE, LATE)
            if parcel.process is not None:
                parcel.process.cancel()

    def _end(self, parcel: Parcel, fate: str, reason: str, *, heard: bool = True) -> None:
        self.stage.parcels.pop(parcel, None)
        parcel.fail(fate, reason, now=self.stage.clock.now, heard=heard)

    def broadcast(self) -> None:
        """Let the source send of its own accord, if it does."""
        broadcast = getattr(self.source, "broadcast", None)
        if broadcast is not None:
            self.stage.clock.start(self._broadcasting(broadcast))

    async def _broadcasting(self, broadcast: Callable[..., object]) -> None:
        world = QueryWorld(self, None)
        coroutine = broadcast(world)
        if not inspect.iscoroutine(coroutine):
            raise PluginError(f"expert {self.name!r}: broadcast must be an async method")
        try:
            await coroutine
        except LiveOnlyError:
            raise
        except Exception as error:
            # The play goes on without it; the point of the record says nothing.
            parcel = self.parcel(world.open(self.stage.landscape.domain.cover(1)[:1]))
            parcel.cost = 0.0
            reason = examine(error, 1, self.stage.clock.now)
            parcel.fail(INVALID, f"{self.name} {reason}", now=self.stage.clock.now)


@lru_cache
def _row_numbers(size: int) -> NDArray[np.intp]:
    """Give 0, 1, ..., shared by all queries of that *size*, so that nobody may change them."""
    numbers = np.arange(size)
    numbers.setflags(write=False)
    return numbers


def _nothing(draw: Draw) -> bool:
    return isinstance(draw, Constant) and not draw.value


def _sums(of_parcels: list[float], of_points: list[float]) -> list[float]:
    """Add what the points of each parcel take: one each, or all in one."""
    if len(of_parcels) == 1:
        return [of_parcels[0] + sum(of_points)]
    return [one + more for one, more in zip(of_parcels, of_points, strict=True)]


class QueryWorld:
    """What a source may use while it answers; see `sparq_sim.models.World`."""

    __slots__ = ("_connection", "_opened", "_parcel", "_rng", "has_answered")

    def __init__(self, connection: Connection, parcel: Parcel | None) -> None:
        self._connection = connection
        self._parcel = parcel
        self._opened: dict[int, Parcel | None] = {}
        self._rng: Generator | None = None
        self.has_answered = False

    @property
    def clock(self) -> Clock:
        """Time."""
        return self._connection.stage.clock

    @property
    def domain(self) -> Domain:
        """Where points may lie."""
        return self._connection.stage.landscape.domain

    @property
    def rng(self) -> Generator:
        """Chance of this query's own."""
        if self._rng is None:
            connection = self._connection
            self._rng = (
                connection.stage.streams.generator(f"{connection.name}/broadcast")
                if self._parcel is None
                else connection.luck(self._parcel.asker).own(self._parcel)
            )
        return self._rng

    def rewards(self, points: Points, time: float) -> Values:
        """Give the noise-free reward at *points*, at any *time* from 0 to now."""
        stage = self._connection.stage
        if not 0 <= time <= (now := stage.clock.now):
            raise ValueError(f"rewards are known from 0 to now ({now}), not at {time}")
        return stage.landscape.rewards(points, time)

    def coarse(self, resolution: float) -> Landscape:
        """Give the same environment computed at another *resolution*."""
        coarse = getattr(self._connection.stage.landscape, "coarse", None)
        if coarse is None:
            raise ValueError("this environment has no coarser version of itself")
        landscape: Landscape = coarse(resolution)
        return landscape

    async def ask(self, name: str, points: Points) -> tuple[Reply, ...]:
        """Ask another expert, over its channel; all replies, in the order of the rows."""
        stage, asker = self._connection.stage, self._connection.name
        if self._parcel is not None and self._parcel.asker not in (AGENT_NAME, asker):
            asker = f"{self._parcel.asker}>{asker}"
        if name not in stage.connections:
            raise ValueError(
                f"no expert is called {name!r}: {did_you_mean(name, stage.connections)}"
            )
        if name in asker.split(">"):
            raise ValueError(f"experts ask in a circle: {asker}>{name}")
        query = Query(stage.next_own_query(), name, self.domain.check(points), self.clock.now)
        replies: list[Reply] = []
        complete = self.clock.signal()

        def hear(record: Record) -> None:
            stage.hear(record)
            # Of a loss one hears when the answer would have come: an expert that waited for ever
            # would hold its slot for ever.
            if record.heard or record.fate == LOST:
                replies.append(record.reply)
                if sum(len(reply.rows) for reply in replies) == len(query.points):
                    complete.set()

        stage.connections[name].ask(query, asker, hear=hear)
        await complete
        return tuple(sorted(replies, key=lambda reply: int(reply.rows[0])))

    def open(self, points: Points) -> Query:
        """Open a query of the source's own."""
        stage, name = self._connection.stage, self._connection.name
        query = Query(stage.next_own_query(), name, self.domain.check(points), self.clock.now)
        self._opened[query.id] = None
        return query

    def send(self, query: Query, estimate: Estimate) -> None:
        """Put an estimate on the road to the agent, now."""
        if self._parcel is not None and query.id == self._parcel.query.id:
            self.has_answered = True
            self._connection.send(self._parcel, estimate)
        elif query.id in self._opened:
            # Luck and cost are those of the round in which it is sent.
            parcel = self._opened[query.id] or self._connection.parcel(query)
            self._opened[query.id] = parcel
            self._connection.send(parcel, estimate)
        else:
            raise ValueError(
                f"query {query.id} was not put to {self._connection.name!r} here; "
                "send answers to the query at hand, or to one of world.open(points)"
            )

    def note(self, **columns: float) -> None:
        """Add numbers to the record of this reply."""
        if self._parcel is None:
            raise ValueError("a broadcast has no reply to note on; give the Estimate notes")
        self._parcel.notes.update({name: float(number) for name, number in columns.items()})

    def stop(self, reason: str) -> None:
        """End the play before its next round."""
        self._connection.stage.stopped = reason
