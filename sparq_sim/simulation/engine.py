"""The play: one optimizer against one environment, with experts that take their time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isfinite, nan
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values, all_finite, all_rows, freeze_array
from sparq_sim.domain import Domain
from sparq_sim.errors import PluginError, did_you_mean
from sparq_sim.messages import (
    AGENT_NAME,
    REWARD,
    Answer,
    Estimate,
    Failure,
    Move,
    Query,
    make_checked_query,
)
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Landscape, Observing, WithGaps
from sparq_sim.plugin.expert import Answering, World
from sparq_sim.plugin.hooks import (
    AGENT_HOOKS,
    LANDSCAPE_HOOKS,
    Hook,
    Readings,
    check_hooks,
    describe_near_miss,
    find_near_misses,
    has_hook,
)
from sparq_sim.plugin.optimizer import Agent
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.draws import Constant
from sparq_sim.simulation.channel.policy import check_fallbacks
from sparq_sim.simulation.clock.protocol import AGENT, Clock, Signal
from sparq_sim.simulation.delivery.budget import Purse
from sparq_sim.simulation.delivery.link import Connection, Stage
from sparq_sim.simulation.delivery.retries import Desk
from sparq_sim.simulation.lifetime import Resources, note_failed_start
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import Fate, Record, Turn, arrival_order
from sparq_sim.simulation.trace import Trace

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played, Watch

MOST_ASKS = 10_000
"""An agent that is asked more often than this in one round will never play."""


_NEEDED = {
    "domain": "domain, a Box or Sites",
    "rewards": "rewards(points, time), the noise-free reward at each point: (n,)",
    "best": "best(time), a point of the highest reward, and that reward",
    "ask": "ask(now), which gives a Move",
    "tell": "tell(reply), which takes in what has arrived",
}


def _check_started(who: str, started: object, hooks: Sequence[Hook]) -> None:
    """Refuse what a plug-in's `start` gives, unless it can be used by its *hooks*."""
    missing = [hook.name for hook in hooks if not hook.optional and not has_hook(started, hook)]
    if missing:
        hints = [f"; {describe_near_miss(*pair)}" for pair in find_near_misses(started, hooks)]
        raise PluginError(
            f"{who}: start gives an object of type {type(started).__name__}, which must have "
            f"{'; and '.join(_NEEDED[name] for name in missing)}{''.join(hints)}"
        )
    check_hooks(who, started, hooks)


def _misshapen(who: str, point: NDArray[Any], domain: Domain) -> str:
    names = ", ".join(domain.names)
    return (
        f"{who}.ask moves to {point.tolist()!r:.80}, of shape {point.shape}; expected "
        f"({domain.dimensions},), one number for each coordinate ({names}), as in "
        f"Move(np.array({[0.5] * domain.dimensions!r:.40}))"
    )


class _Reward:
    """The environment as a source: the one whose answers count."""

    def __init__(self, landscape: Landscape) -> None:
        self._landscape = landscape
        self._is_observed_as_judged = not isinstance(landscape, Observing | WithGaps)
        self._judged: tuple[Points, float, Values] | None = None

    def judge(self, points: Points, time: float) -> Values:
        """Give the noise-free reward at *points*, and keep it for an answer about just these."""
        rewards = np.asarray(self._landscape.rewards(points, time), dtype=float)
        if self._is_observed_as_judged:
            self._judged = points, time, rewards
        return rewards

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now, with the world's own noise if it has any."""
        judged, self._judged = self._judged, None
        if judged is not None and judged[0] is query.points and judged[1] == world.clock.now:
            values = judged[2]
        else:
            values = world.observe(query.points)
        return Estimate(values)


class Engine:
    """Where agent, environment and experts meet: the one loop, by the rules of time."""

    def __init__(
        self,
        parts: Played,
        clock: Clock,
        streams: Streams,
        landscape: Landscape,
        watch: Watch | None,
    ) -> None:
        rules = parts.rules
        self._environment = f"environment {type(parts.environment).__name__}"
        _check_started(self._environment, landscape, LANDSCAPE_HOOKS)
        if not isinstance(landscape.domain, Domain):
            raise PluginError(
                f"{self._environment}: domain is {landscape.domain!r:.80}; expected a Box or "
                "Sites, as Box(0.0, 1.0)"
            )
        self._parts = parts
        self._rules = rules
        self._clock = clock
        self._watch = watch
        self._landscape = landscape
        self._stage = Stage(
            clock,
            streams,
            landscape,
            purse=Purse(rules.budget, rules.budget_per_round),
            environment=self._environment,
            hear=self._hear,
        )
        self._recorder = Recorder(landscape.domain.names)
        self._thinking = streams.by_round("thinking")
        # A constant needs no stream, and is what most plays have.
        self._thought_lasts = rules.thinking.value if isinstance(rules.thinking, Constant) else None
        self._inbox: list[Record] = []
        self._stir: Signal | None = None
        self._thought: tuple[Move, float] | None = None
        self._points: Points | None = None  # One row: the point that is played.
        self._past_only = rules.access == "past"
        self._played: set[tuple[float, ...]] = set()
        self._asked: set[int] = set()
        self._wall = 0.0
        self._agent: Agent

    async def start(self, resources: Resources) -> None:
        """Start all who take part, and enter what they hold."""
        experts, feedback = self._parts.experts, self._parts.feedback
        if REWARD in experts or AGENT_NAME in experts or any(">" in name for name in experts):
            raise PluginError(
                f"experts cannot be called {REWARD!r} or {AGENT_NAME!r} nor have '>' in a name; "
                f"rename one of: {', '.join(experts)}"
            )
        pairs = {
            name: expert if isinstance(expert, tuple) else (expert, Channel())
            for name, expert in experts.items()
        }
        self._experts = frozenset(pairs)
        briefing = Briefing(
            domain=self._landscape.domain,
            observation=feedback.terms,
            experts={name: channel.terms for name, (_, channel) in pairs.items()},
            period=self._rules.period,
            rounds=self._rules.most_rounds,
            budget=self._rules.budget,
            budget_per_round=self._rules.budget_per_round,
            access=self._rules.access,
            design=self._design(feedback) if self._rules.design else None,
        )
        policies = {name: channel.policy for name, (_, channel) in pairs.items()}
        check_fallbacks({REWARD: feedback.policy, **policies})
        self._source = _Reward(self._landscape)
        self._connect(REWARD, self._source, feedback)
        for name, (expert, channel) in pairs.items():
            who = f"expert {name!r} ({type(expert).__name__})"
            with note_failed_start(who):
                source = await resources.enter(who, expert.start(briefing), may_await=True)
            self._connect(name, source, channel)
        self._reward = self._stage.connections[REWARD]
        optimizer = self._parts.optimizer
        who = f"optimizer {type(optimizer).__name__}"
        with note_failed_start(who):
            started = optimizer.start(briefing, self._stage.streams.generator("optimizer"))
            self._agent = await resources.enter(who, started)
        _check_started(who, self._agent, AGENT_HOOKS)

    def _connect(self, name: str, source: Answering, channel: Channel) -> None:
        connection = Connection(name, source, channel, self._stage)
        if not channel.policy.idle:
            Desk(connection, channel.policy)

    def _design(self, feedback: Channel) -> Answer:
        """Observe uniformly drawn points at time 0, with the noise of the feedback."""
        rng = self._stage.streams.generator("design")
        points = self._landscape.domain.sample(rng, self._rules.design)
        readings = Readings(self._environment, self._landscape)
        points = points[readings.available(points, 0.0)]
        if not len(points):
            raise PluginError("the design finds no reading at time 0: draw more points for it")
        values = readings.observe(points, 0.0, lambda: rng)
        self._check_rewards(values, points, 0.0)
        noise, units = feedback.noise, feedback.noise.units(rng, len(points))
        stds = noise.stds(points, values)
        query = Query(self._stage.next_own_query(), REWARD, points, 0.0)
        claimed = stds if noise.claimed is None else noise.claimed
        return query.answer(values + stds * units, stds=claimed)

    async def play(self) -> Trace:
        """Play all rounds; what is open at the end is recorded as unanswered."""
        for connection in self._stage.connections.values():
            connection.broadcast()
        period, horizon = self._rules.period, self._rules.horizon
        number = 1
        while (ended := self._over(number)) is None:
            await self._clock.until(number * period, AGENT)
            if (ended := self._stopped()) is not None:
                break
            await self._round(number)
            number += 1
        await self._clock.until(min(number * period, horizon), AGENT)
        self._stage.close()
        return self._recorder.trace(ended=ended, spent=self._stage.purse.spent)

    def _over(self, number: int) -> str | None:
        """Say why there can be no round *number*, if there cannot."""
        if self._rules.rounds is not None and number > self._rules.rounds:
            return "rounds"
        return "horizon" if number * self._rules.period >= self._rules.horizon else None

    def _stopped(self) -> str | None:
        """Say why the play ends before it is over, if it does."""
        if self._rules.ends_when_spent and self._stage.purse.exhausted:
            return "budget"
        return self._stage.stopped

    async def _round(self, number: int) -> None:
        start = number * self._rules.period
        end = min((number + 1) * self._rules.period, self._rules.horizon)
        self._stage.round = number
        self._wall = 0.0
        notes = await self._turn(end)
        moved = notes is not None
        if self._points is None:
            raise PluginError("the agent waits out the first round; it must play in it")
        if not moved:
            await self._clock.until(end, AGENT)
        played_at = self._clock.now if moved else end
        reward, best = self._judged(self._points, played_at)
        self._recorder.turn(
            turn := Turn(
                round=number,
                started_at=start,
                played_at=played_at,
                moved=moved,
                point=self._points[0],
                reward=reward,
                best=best,
                spent=self._stage.purse.spent,
                wall=self._wall,
                notes=notes or {},
            )
        )
        if self._watch is not None:
            self._watch(turn)

    def _judged(self, points: Points, time: float) -> tuple[float, float]:
        """Give the reward at the one of *points* and the best there is, if they are numbers."""
        rewards = self._source.judge(points, time)
        found = self._landscape.best(time)
        try:
            best = float(found[1])
        except (TypeError, ValueError, LookupError) as error:
            raise PluginError(
                f"{self._environment}: best gives {found!r:.80} at time {time}; expected a point "
                "and its reward"
            ) from error
        if rewards.shape != (1,) or not isfinite(rewards[0]):
            self._check_rewards(rewards, points, time)
        if not isfinite(best):
            raise PluginError(
                f"{self._environment} gives {best} as the best reward at time {time}; "
                "expected a finite number"
            )
        return float(rewards[0]), best

    def _check_rewards(self, rewards: Values, points: Points, time: float) -> None:
        """Refuse *rewards*, unless they are a finite number for each of *points*."""
        given = np.asarray(rewards, dtype=float)
        if given.shape != (len(points),):
            raise PluginError(
                f"{self._environment} gives rewards of shape {given.shape} for {len(points)} "
                f"points at time {time}; expected ({len(points)},)"
            )
        if not all_finite(given):
            row = int(np.argmin(np.isfinite(given)))
            raise PluginError(
                f"{self._environment} gives the reward {given[row]} at {points[row].tolist()}, "
                f"time {time}; expected finite numbers, one for each point"
            )

    async def _turn(self, end: float) -> Mapping[str, float] | None:
        """Ask the agent until it plays; give the notes of its move, or None if it did not."""
        for _ in range(MOST_ASKS):
            # A machine that is late for the first round is not the agent's fault.
            first = self._points is None
            if self._thought is None:
                if self._clock.now >= end and not first:
                    return None
                self._thought = await self._think()
            move, ready_at = self._thought
            if max(ready_at, self._clock.now) >= end and not first:
                return None
            if ready_at > self._clock.now:
                await self._clock.until(ready_at, AGENT)
            self._thought = None
            if move.point is not None:
                self._play(move.point)
            now = self._clock.now  # One moment for all, also where time goes on meanwhile.
            for query in move.queries:
                self._consult(query, now)
            if move.point is not None:
                return dict(move.notes)
            if not await self._reply_before(end):
                return None
        raise PluginError(
            f"the agent was asked {MOST_ASKS} times in round {self._stage.round} and did not play"
        )

    async def _think(self) -> tuple[Move, float]:
        """Tell the agent what has arrived, ask it, and say when its move is ready."""
        now, number = self._clock.now, self._stage.round
        heard, self._inbox = self._inbox, []
        if len(heard) > 1:
            heard.sort(key=arrival_order)
        began = perf_counter()
        # The first move takes no time, under either clock.
        move = await self._clock.compute(
            lambda now: self._told_and_asked(heard, now), now, still=number == 1
        )
        self._wall += perf_counter() - began
        move = self._checked(move, now)
        return move, now + (0.0 if number == 1 else self._thinking_time(number, move.effort))

    def _thinking_time(self, number: int, effort: float) -> float:
        """Return how long the agent thinks in round *number*, in clock units."""
        by_effort = self._rules.thinking_by_effort
        more = by_effort(effort) if by_effort is not None else 0.0
        if self._thought_lasts is not None:
            return self._thought_lasts + more
        return float(self._rules.thinking.sample(self._thinking.at(number), 1)[0]) + more

    def _told_and_asked(self, heard: list[Record], now: float) -> Move:
        for record in heard:
            self._agent.tell(record.reply)
        return self._agent.ask(now)

    def _checked(self, move: Move, now: float) -> Move:
        """Refuse a move that no agent may make; this is the door for what optimizers say."""
        who = type(self._agent).__name__
        if not isinstance(move, Move):
            raise PluginError(f"{who}.ask gave {move!r:.80}; expected a Move")
        for query in move.queries:
            if query.source not in self._experts:
                raise PluginError(
                    f"{who} asks {query.source!r}, no expert of this play: "
                    f"{did_you_mean(query.source, self._experts)}"
                )
            if query.id < 1 or query.id in self._asked:
                raise PluginError(
                    f"{who} numbers a query {query.id}; ids are positive and never used twice"
                )
            if query.asked_at != now:
                raise PluginError(f"{who} dates a query {query.asked_at}; now is {now}")
            self._asked.add(query.id)
        if self._rules.thinking_by_effort is not None:
            move = _with_effort_noted(move, who)
        try:
            if move.notes:
                notes = {name: float(number) for name, number in move.notes.items()}
                move = Move(move.point, move.queries, notes, move.effort)
        except (TypeError, ValueError, AttributeError) as error:
            raise PluginError(f"{who} notes what is no number: {error}") from error
        try:
            domain = self._landscape.domain
            for query in move.queries:
                domain.check(query.points, f"{who}: points of query {query.id}")
            if move.point is not None:
                point = np.asarray(move.point)
                if point.shape != (domain.dimensions,):
                    raise PluginError(_misshapen(who, point, domain))
                domain.check(point[None], f"{who}: point of a move")
        except ValueError as error:
            raise PluginError(str(error)) from error
        return move

    def _play(self, point: Point) -> None:
        self._points = freeze_array(point)[None]
        self._played.add(tuple(self._points[0].tolist()))
        number, now = self._stage.round, self._clock.now
        self._reward.ask(make_checked_query(number, REWARD, self._points, now))

    def _consult(self, query: Query, now: float) -> None:
        """Pass a query on, but for points to which there is no access."""
        if query.asked_at != now:  # It was thought out earlier, and goes out now.
            query = make_checked_query(query.id, query.source, query.points, now)
        if self._past_only and not self._played.issuperset(_rows(query.points)):
            failure = Failure(
                query=query,
                rows=all_rows(len(query.points)),
                reason="access: experts can be asked only at points already played",
                asked_at=query.asked_at,
                arrived_at=query.asked_at,
            )
            self._hear(Record(failure, Fate.ACCESS, True, self._stage.round, AGENT_NAME, nan, nan))
        else:
            self._stage.connections[query.source].ask(query)

    def _hear(self, record: Record) -> None:
        self._recorder.record(record)
        # An expert's question to another is answered to that expert.
        if record.heard and record.asker in (AGENT_NAME, record.reply.query.source):
            self._inbox.append(record)
            self._wake(self._stir)

    def _wake(self, signal: Signal | None) -> None:
        if signal is not None and signal is self._stir:
            self._stir = None
            signal.set()

    async def _reply_before(self, end: float) -> bool:
        """Wait for a reply and all others of its instant; tell whether *end* is yet to come."""
        if not self._inbox:
            self._stir = stir = self._clock.signal()
            self._clock.call_at(end, lambda: self._wake(stir), AGENT)
            await stir
        await self._clock.until(self._clock.now, AGENT)
        return self._clock.now < end


def _with_effort_noted(move: Move, who: str) -> Move:
    """Return *move* with its effort among its notes, if that is a number to make time of."""
    effort: Any = move.effort
    if not (isinstance(effort, int | float | np.number) and 0 <= effort < inf):
        raise PluginError(
            f"{who} states the effort {effort!r:.80}; expected a finite number from 0 on"
        )
    return replace(move, notes={**move.notes, "effort": float(effort)}, effort=float(effort))


def _rows(points: Points) -> Iterator[tuple[float, ...]]:
    """Give each point as a tuple; by way of columns, in half the time of row by row."""
    return zip(*points.T.tolist(), strict=True)
