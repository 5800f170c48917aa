"""Connections: a source at the end of its channel, and the world it sees while it answers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from math import inf, isnan
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values, all_rows
from sparq_sim.domain import Domain
from sparq_sim.errors import HookError, LiveOnlyError, PluginError, Unavailable, did_you_mean
from sparq_sim.messages import AGENT_NAME, NO_READING, Estimate, Query, Reply
from sparq_sim.plugin.environment import Coarsening, Landscape, WithCells
from sparq_sim.plugin.expert import Answering, Broadcasting, World
from sparq_sim.plugin.hooks import EXPERT_HOOKS, Readings, check_hooks
from sparq_sim.simulation.channel.channel import Channel, Due
from sparq_sim.simulation.channel.draws import Constant, Draw
from sparq_sim.simulation.channel.faults import FaultModel
from sparq_sim.simulation.clock.lent import LentClock
from sparq_sim.simulation.clock.protocol import DEADLINE, Clock, Gate
from sparq_sim.simulation.delivery.budget import Purse
from sparq_sim.simulation.delivery.programs import Command, Program
from sparq_sim.simulation.delivery.request import Hear, Measured, Parcel, Refused, examine, raised
from sparq_sim.simulation.randomness import RoundStream, Streams
from sparq_sim.simulation.records import Fate, Record

T = TypeVar("T")


class Line(Protocol):
    """What a source is asked through: its connection, or a desk in front of that."""

    def ask(
        self,
        query: Query,
        asker: str = AGENT_NAME,
        *,
        hear: Hear | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        """Put *rows* of a query, by default all, to the source; *hear* takes the records."""

    def broadcast(self) -> None:
        """Let the source send of its own accord, if it does."""


@dataclass(slots=True, eq=False)
class Stage:
    """What all connections of a play share."""

    clock: Clock
    streams: Streams
    landscape: Landscape
    purse: Purse = field(default_factory=Purse)
    environment: str = "the environment"
    """As messages name it."""
    hear: Hear = lambda record: None
    """Takes every record of the play."""
    round: int = 0
    stopped: str | None = None
    """Why a source ended the play, if one did."""
    connections: dict[str, Line] = field(default_factory=dict)
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
            parcel.fail(Fate.UNANSWERED, Fate.UNANSWERED, now=self.clock.now, heard=False)
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
        counter = [0, parcel.attempt - 1, *parcel.origin]
        return Generator(Philox(key=self._streams.key(f"{self._name}/answer"), counter=counter))

    def again(self, before: Parcel) -> Generator:
        """Give the generator that decides on one more attempt after *before*."""
        counter = [0, before.attempt, *before.origin]
        return Generator(Philox(key=self._streams.key(f"{self._name}/again"), counter=counter))

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
        self.who = f"expert {name!r} ({type(source).__name__})"
        check_hooks(self.who, source, EXPERT_HOOKS)
        self.name = name
        self.source = source
        self.channel = channel
        self.stage = stage
        self._gate: Gate | None = (
            None if channel.capacity is None else stage.clock.gate(channel.capacity)
        )
        self._due = channel.charged
        # What landscape and channel do not do at all is looked up once, not for each query.
        self.readings = Readings(stage.environment, stage.landscape)
        self._answer: Callable[[Query, World], Awaitable[object]] = (
            self._answer_with_reason if self.readings.has_gaps else source.answer
        )
        self._who = f"{self.who}.answer"
        self._forgets = False
        self._cost_counts_points = not _nothing(channel.cost_per_point)
        self._service_counts_points = not _nothing(channel.service_per_point)
        self._lossless = channel.loss.lossless
        self._silent = channel.noise.silent
        self._shares = np.cumsum([fault.share for fault in channel.faults])
        try:
            channel.noise.stds(stage.landscape.domain.cover(1)[:1], np.zeros(1))
        except (ValueError, HookError) as error:
            raise PluginError(f"the channel to {name!r}: {error}") from error
        self._lucks: dict[str, Luck] = {}
        self._coarse: tuple[float, Landscape] | None = None
        self._chances = channel.loss.start(stage.streams.generator(f"{name}/spells"))
        stage.connections[name] = self

    def luck(self, asker: str) -> Luck:
        """Give the draws of *asker* here."""
        luck = self._lucks.get(asker)
        if luck is None:
            name = self.name if asker == AGENT_NAME else f"{asker}>{self.name}"
            luck = self._lucks[asker] = Luck(self.stage.streams, name)
        return luck

    def coarse(self, resolution: float) -> Landscape:
        """Return the environment computed at another *resolution*; asked for again, the same."""
        if self._coarse is None or self._coarse[0] != resolution:
            landscape = self.stage.landscape
            if not isinstance(landscape, Coarsening):
                raise ValueError("this environment has no coarser version of itself")
            self._coarse = resolution, landscape.coarse(resolution)
        return self._coarse[1]

    # Asking: all that chance decides is drawn now, so that other queries cannot shift it.

    def ask(
        self,
        query: Query,
        asker: str = AGENT_NAME,
        *,
        hear: Hear | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        """Draw, charge, and send *rows* of the query, by default all, on their way."""
        try:
            parcels = self.parcels(query, asker, rows=rows, hear=hear)
        except HookError as error:
            raise self._named(error) from error
        for parcel in parcels:
            self.dispatch(parcel)

    def _named(self, error: HookError) -> HookError:
        """Return an error of a part with the name of the channel that it is of."""
        return HookError(f"the channel to {self.name!r}: {error}")

    def dispatch(self, parcel: Parcel) -> None:
        """Charge a parcel and send it on its way, now."""
        now = self.stage.clock.now
        out = bool(self.channel.outages) and self.channel.out_at(now)
        if out or (parcel.fault is not None and parcel.fault.refuses):
            self.refuse(parcel, Fate.OUTAGE)
        elif self._paid(parcel):
            parcel.process = self.stage.clock.start(self._carry(parcel, now))
            self._limit(parcel, now)

    def parcel(self, query: Query) -> Parcel:
        """Make the parcel for an answer to a query that the source opened itself."""
        (parcel,) = self.parcels(query, self.name, split=False)
        return parcel

    def send(self, parcel: Parcel, given: object) -> None:
        """Put an estimate on the road that the source sends of its own accord."""
        now = self.stage.clock.now
        own = parcel.process is None
        if own:
            if not self._admitted(parcel, now):
                return
            self._charge(parcel, "served")
        parcel.served_at = now if isnan(parcel.served_at) else parcel.served_at
        parcel.sent_at = now if isnan(parcel.sent_at) else parcel.sent_at
        process = self.stage.clock.start(self._travel(parcel, given))
        if own:
            parcel.process = process
            self._limit(parcel, now)

    def _admitted(self, parcel: Parcel, now: float) -> bool:
        """Let a parcel of the source's own onto the road, if it was not refused already."""
        if parcel.open and self.channel.out_at(now):
            self.refuse(parcel, Fate.OUTAGE)
        return parcel.open and self._paid(parcel)

    def _paid(self, parcel: Parcel) -> bool:
        """Charge a parcel, or set apart what falls due later; refuse it if that is too much."""
        purse = self.stage.purse
        if self._due == "asked":
            affordable = purse.pay(parcel.cost, parcel.round)
        else:
            affordable = purse.reserve(parcel.cost, parcel.round)
        if not affordable:
            self.refuse(parcel, Fate.BUDGET)
            return False
        if self._due != "asked":
            parcel.owed, parcel.cost = parcel.cost, 0.0
        self.stage.parcels[parcel] = None
        return True

    def _charge(self, parcel: Parcel, due: Due) -> None:
        """Charge what falls due now, if anything does."""
        if parcel.owed and self._due == due:
            self.stage.purse.settle(parcel.owed)
            parcel.owed, parcel.cost = 0.0, parcel.owed

    def _excuse(self, parcel: Parcel) -> None:
        """Free what was set apart for a parcel that has ended before it fell due."""
        if parcel.owed:
            self.stage.purse.release(parcel.owed, parcel.round)
            parcel.owed = 0.0

    def refuse(self, parcel: Parcel, reason: Fate) -> None:
        """Let a parcel fail at once, and cost nothing."""
        parcel.cost = 0.0
        parcel.fail(reason, reason, now=self.stage.clock.now)

    def _limit(self, parcel: Parcel, begun_at: float) -> None:
        if self.channel.patience < inf:
            deadline = begun_at + self.channel.patience
            self.stage.clock.call_at(deadline, lambda: self.give_up(parcel), DEADLINE)

    def parcels(
        self,
        query: Query,
        asker: str,
        *,
        split: bool | None = None,
        rows: NDArray[np.intp] | None = None,
        hear: Hear | None = None,
    ) -> list[Parcel]:
        """Make the parcels for *rows* of a query, by default all, with their luck."""
        number, channel = self.stage.round, self.channel
        split = channel.split if split is None else split
        luck = self.luck(asker)
        if rows is None:
            rows, question = all_rows(len(query.points)), query
        else:
            question = _part(query, rows)
        size = len(rows)
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
            chance = self._chances(self.stage.clock.now)
            lost = (luck.stream("loss", number).random(parcels) < chance).tolist()
        units = None
        if not self._silent:
            units = channel.noise.units(luck.stream("noise", number), size)
        faults = self._faults(luck.stream("faults", number), parcels) if channel.faults else None
        ordinal = luck.count(number, parcels)
        hear = hear or self.stage.hear
        # By position: a dozen keywords would double the time that a parcel takes to make.
        return [
            Parcel(
                query,
                rows[i : i + 1] if split else rows,
                question.row(i) if split else question,
                number,
                asker,
                (number, ordinal + i),
                costs[i],
                services[i],
                transits[i],
                lost[i] if faults is None else lost[i] or _loses(faults[i]),
                units[i : i + 1] if split and units is not None else units,
                hear,
                None if faults is None else faults[i],
            )
            for i in range(parcels)
        ]

    def again(self, query: Query, rows: NDArray[np.intp], *, before: Parcel, hear: Hear) -> Parcel:
        """Make the parcel of one more attempt at *rows*, with luck of its own."""
        channel, size = self.channel, len(rows)
        rng = self.luck(before.asker).again(before)

        def total(whole: Draw, per_point: Draw) -> float:
            return float(whole.sample(rng, 1)[0] + per_point.sample(rng, size).sum())

        cost = total(channel.cost, channel.cost_per_point)
        service = total(channel.service, channel.service_per_point)
        transit = float(channel.transit.sample(rng, 1)[0])
        # At the chances of now: for a while, bad luck may be what there is.
        lost = bool(rng.random() < self._chances(self.stage.clock.now))
        units = None if self._silent else channel.noise.units(rng, size)
        fault = self._faults(rng, 1)[0] if channel.faults else None
        return Parcel(
            query,
            rows,
            _part(query, rows),
            self.stage.round,
            before.asker,
            before.origin,
            cost,
            service,
            transit,
            lost or _loses(fault),
            units,
            hear,
            fault,
            before.attempt + 1,
        )

    def _faults(self, rng: Generator, count: int) -> list[FaultModel | None]:
        """Draw which fault strikes each of *count* parcels."""
        struck = np.searchsorted(self._shares, rng.random(count), side="right").tolist()
        return [(*self.channel.faults, None)[fault] for fault in struck]

    async def _answer_with_reason(self, query: Query, world: World) -> object:
        """Ask the source; where it met a gap in the record, that is why values are NaN."""
        given: object = await self.source.answer(query, world)
        return world.with_reason(given) if isinstance(world, QueryWorld) else given

    # Travelling.

    async def _carry(self, parcel: Parcel, begun_at: float) -> None:
        clock, gate = self.stage.clock, self._gate
        world = QueryWorld(self, parcel)
        if gate is not None:
            await gate.enter()
        given: object
        try:
            parcel.served_at = now = clock.now
            if parcel.owed:
                self._charge(parcel, "served")
            if parcel.service:
                await clock.until(now + parcel.service)
            if parcel.fault is None:
                given = await clock.watched(self._answer(parcel.question, world), self._who)
            else:
                faulty = parcel.fault.answer(
                    self._answer,
                    parcel.question,
                    world,
                    deadline=begun_at + self.channel.patience,
                )
                given = await clock.watched(faulty, self._who)
        except (LiveOnlyError, HookError):
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
        if world.lent is not None and world.lent.forgotten:
            self._warn_of_forgotten(world.lent)
        if given is None and world.has_answered:
            return
        parcel.sent_at = now = clock.now
        measured = examine(given, len(parcel.rows), now)
        held_back = 0.0 if parcel.fault is None else parcel.fault.held_back
        if parcel.transit or held_back:
            await clock.until(now + parcel.transit + held_back)
        self._arrive(parcel, measured)

    async def _travel(self, parcel: Parcel, given: object) -> None:
        clock = self.stage.clock
        measured = examine(given, len(parcel.rows), clock.now)
        await clock.until(clock.now + parcel.transit)
        self._arrive(parcel, measured)

    def _arrive(self, parcel: Parcel, measured: Measured | Refused) -> None:
        now = self.stage.clock.now
        if not parcel.open:
            if parcel.lost:
                return
            parcel.cost = 0.0
            if parcel.answered:
                parcel.fail(Fate.DUPLICATE, "answered twice", now=now, heard=False)
            else:
                parcel.fail(Fate.STRAY, "answered after it was given up", now=now, heard=False)
        elif parcel.lost:
            # Where patience is finite, its end tells the asker.
            # A reading that nobody asked for is under no timeout.
            own = parcel.asker == self.name
            if self.channel.patience == inf and (own or self.channel.policy.timeout == inf):
                self._end(parcel, Fate.LOST, Fate.LOST, heard=False)
        elif isinstance(measured, Refused):
            self._end(parcel, measured.fate, self._told(measured))
        else:
            self.stage.parcels.pop(parcel, None)
            if parcel.owed and (measured.bad is None or not measured.bad.all()):
                self._charge(parcel, "answered")
            self._excuse(parcel)
            try:
                parcel.arrive(measured, self.channel.noise, source=self.name, now=now)
            except HookError as error:
                raise self._named(error) from error

    def _told(self, refused: Refused) -> str:
        """Name the source where it is at fault."""
        return f"{self.name} {refused.reason}" if refused.fate == Fate.INVALID else refused.reason

    def give_up(self, parcel: Parcel) -> None:
        """Let a parcel that is still on its way fail, as late."""
        if parcel.open:
            on_the_road = not isnan(parcel.sent_at)
            self._end(parcel, Fate.LOST if parcel.lost and on_the_road else Fate.LATE, Fate.LATE)
            if parcel.process is not None:
                parcel.process.cancel()

    def _end(self, parcel: Parcel, fate: Fate, reason: str, *, heard: bool = True) -> None:
        self.stage.parcels.pop(parcel, None)
        self._excuse(parcel)
        parcel.fail(fate, reason, now=self.stage.clock.now, heard=heard)

    def broadcast(self) -> None:
        """Let the source send of its own accord, if it does."""
        if isinstance(self.source, Broadcasting):
            self.stage.clock.start(self._broadcasting(self.source))

    async def _broadcasting(self, source: Broadcasting) -> None:
        world = QueryWorld(self, None)
        try:
            await source.broadcast(world)
        except (LiveOnlyError, PluginError):
            raise
        except Exception as error:
            # The play goes on without it; the point of the record says nothing.
            parcel = self.parcel(world.open(self.stage.landscape.domain.cover(1)[:1]))
            parcel.cost = 0.0
            refused = Refused(Fate.INVALID, raised(error))
            parcel.fail(refused.fate, self._told(refused), now=self.stage.clock.now)
        finally:
            if world.lent is not None and world.lent.forgotten:
                self._warn_of_forgotten(world.lent)

    def _warn_of_forgotten(self, lent: LentClock) -> None:
        """Warn, once, of waits that the source made and did not await."""
        if not self._forgets:
            self._forgets = True
            lent.warn_of_forgotten()


def asker_of(name: str, asked_by: str) -> str:
    """Name the source *name* as one that asks others, having been *asked_by* somebody."""
    return name if asked_by in (AGENT_NAME, name) else f"{asked_by}>{name}"


def _part(query: Query, rows: NDArray[np.intp]) -> Query:
    """Give the query about some of its points."""
    if len(rows) == len(query.points):
        return query
    return Query(query.id, query.source, query.points[rows], query.asked_at)


def _loses(fault: FaultModel | None) -> bool:
    return fault is not None and fault.loses


def _nothing(draw: Draw) -> bool:
    return isinstance(draw, Constant) and not draw.value


def _sums(of_parcels: list[float], of_points: list[float]) -> list[float]:
    """Add what the points of each parcel take: one each, or all in one."""
    if len(of_parcels) == 1:
        return [of_parcels[0] + sum(of_points)]
    return [one + more for one, more in zip(of_parcels, of_points, strict=True)]


class _KnownLandscape:
    """A coarse landscape as far as it can be known: no later than now, and not where a gap is."""

    def __init__(self, landscape: Landscape, world: QueryWorld) -> None:
        self._landscape = landscape
        self._world = world
        if isinstance(landscape, WithCells):
            self.cells = landscape.cells

    def __getattr__(self, name: str) -> Any:
        """Return what else the landscape has."""
        if name in ("observe", "available", "coarse"):
            raise AttributeError(f"a coarse landscape has no {name}; ask the world itself")
        return getattr(self._landscape, name)

    @property
    def domain(self) -> Domain:
        """Where points may lie."""
        return self._landscape.domain

    def rewards(self, points: Points, time: float) -> Values:
        """Return the coarse reward at *points*, at a *time* from 0 to now; NaN in a gap."""
        self._world.refuse_future(time)
        return self._world.without_gaps(self._landscape.rewards(points, time), points, time)

    def best(self, time: float) -> tuple[Point, float]:
        """Return the best point of a *time* from 0 to now, if there is a reading of it."""
        self._world.refuse_future(time)
        point, reward = self._landscape.best(time)
        if isnan(self._world.without_gaps(np.array([reward]), point[None], time)[0]):
            raise Unavailable(NO_READING)
        return point, reward


class QueryWorld:
    """What a source may use while it answers; see `sparq_sim.plugin.expert.World`."""

    __slots__ = ("_connection", "_met_gap", "_opened", "_parcel", "_rng", "has_answered", "lent")

    def __init__(self, connection: Connection, parcel: Parcel | None) -> None:
        self._connection = connection
        self._parcel = parcel
        self._opened: dict[int, Parcel | None] = {}
        self._rng: Generator | None = None
        self._met_gap = False
        self.has_answered = False
        self.lent: LentClock | None = None
        """The clock, once it was asked for."""

    @property
    def clock(self) -> Clock:
        """Time."""
        if self.lent is None:
            self.lent = LentClock(self._connection.stage.clock, self._connection.who)
        return self.lent

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
        """Return the noise-free reward at *points*, at a *time* from 0 to now; NaN in a gap."""
        self.refuse_future(time)
        rewards = self._connection.stage.landscape.rewards(points, time)
        return self.without_gaps(rewards, points, time)

    def refuse_future(self, time: float) -> None:
        """Refuse, by ValueError, a *time* that is not from 0 to now."""
        if not 0 <= time <= (now := self._connection.stage.clock.now):
            raise ValueError(f"rewards are known from 0 to now ({now}), not at {time}")

    def without_gaps(self, values: Values, points: Points, time: float) -> Values:
        """Return *values* of a *time*, NaN where the record has no reading, and remember if so.

        What fills a gap may be made of later readings, so nobody may know it.
        """
        if not self._connection.readings.has_gaps:
            return values
        there = self.available(points, time)
        if there.all():
            return values
        self._met_gap = True
        return np.where(there, values, np.nan)

    def with_reason(self, given: object) -> object:
        """Return what the source gave; where it met a gap, with that for a reason, if it has none.

        A NaN that no gap explains keeps no reason, and is refused as invalid.
        """
        if self._met_gap and isinstance(given, Estimate) and not given.absent:
            return replace(given, absent=NO_READING)
        return given

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each point whether there is a reading of it, at a *time* from 0 to now."""
        self.refuse_future(time)
        return self._connection.readings.available(points, time)

    def observe(self, points: Points) -> Values:
        """Observe the reward of now at *points*, with the world's own noise; NaN in a gap."""
        now = self.clock.now
        values = self._connection.readings.observe(points, now, lambda: self.rng)
        return self.without_gaps(values, points, now)

    def coarse(self, resolution: float) -> Landscape:
        """Return the same environment computed at another *resolution*, as far as it is known."""
        return _KnownLandscape(self._connection.coarse(resolution), self)

    async def ask(self, name: str, points: Points) -> tuple[Reply, ...]:
        """Ask another expert, over its channel; all replies, in the order of the rows."""
        stage = self._connection.stage
        by = AGENT_NAME if self._parcel is None else self._parcel.asker
        asker = asker_of(self._connection.name, by)
        if name not in stage.connections:
            raise ValueError(
                f"no expert is called {name!r}: {did_you_mean(name, stage.connections)}"
            )
        if name in asker.split(">"):
            raise ValueError(f"experts ask in a circle: {asker}>{name}")
        query = Query(stage.next_own_query(), name, self.domain.check(points), self.clock.now)
        replies: list[Reply] = []
        rows = 0
        complete = self.clock.signal()

        def hear(record: Record) -> None:
            nonlocal rows
            stage.hear(record)
            # Of a loss one hears when the answer would have come: an expert that waited for ever
            # would hold its slot for ever.
            if (record.heard or record.fate == Fate.LOST) and not record.superseded:
                replies.append(record.reply)
                rows += len(record.reply.rows)
                if rows == len(query.points):
                    complete.set()

        stage.connections[name].ask(query, asker, hear=hear)
        await complete
        return tuple(sorted(replies, key=lambda reply: int(reply.rows[0])))

    async def compute(self, function: Callable[..., T], *arguments: Any, takes: float = 0.0) -> T:
        """Call a *function* that computes for long, or blocks, and return its result."""
        clock = self._connection.stage.clock
        if not 0 <= takes < inf:
            raise ValueError(f"takes must be a finite number from 0 on, not {takes!r}")
        ends = (began := clock.now) + takes
        try:
            result = await clock.compute(lambda _: function(*arguments), began)
        except Exception:
            await clock.until(ends)
            raise
        if inspect.iscoroutine(result):
            result.close()
            name = getattr(function, "__qualname__", type(function).__name__)
            raise TypeError(f"world.compute calls plain functions; await {name} itself")
        await clock.until(ends)
        return result

    async def run(
        self,
        command: Command,
        *,
        input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
        takes: float = 0.0,
        timeout: float | None = None,
    ) -> str:
        """Run another program to its end, and return what it writes to stdout."""
        program = Program(command, input=input, timeout=timeout)
        try:
            return await self.compute(program.run, takes=takes)
        finally:
            program.kill()

    def open(self, points: Points) -> Query:
        """Open a query of the source's own."""
        stage, name = self._connection.stage, self._connection.name
        query = Query(stage.next_own_query(), name, self.domain.check(points), self.clock.now)
        self._opened[query.id] = None
        return query

    def send(self, query: Query, estimate: Estimate) -> None:
        """Put an estimate on the road to the agent, now."""
        given = self.with_reason(estimate)
        if self._parcel is not None and query.id == self._parcel.query.id:
            self.has_answered = True
            self._connection.send(self._parcel, given)
        elif query.id in self._opened:
            # Luck and cost are those of the round in which it is sent.
            parcel = self._opened[query.id] or self._connection.parcel(query)
            self._opened[query.id] = parcel
            self._connection.send(parcel, given)
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
