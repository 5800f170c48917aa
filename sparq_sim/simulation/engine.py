"""The engine: the one loop in which agent, environment and experts meet, by the rules of time.

`Engine` is long because a reader should find the whole of a round in one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING

from sparq_sim.arrays import Points, all_rows, freeze_array
from sparq_sim.domain import Box
from sparq_sim.errors import HookError, PluginError
from sparq_sim.messages import AGENT_NAME, REWARD, Failure, Move, Query, make_checked_query
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.expert import Accounting, Metered
from sparq_sim.plugin.expert_results import read_accounts, read_meters
from sparq_sim.simulation.agent_driver import AgentDriver
from sparq_sim.simulation.clock.protocol import AGENT, Clock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.push import start_broadcast
from sparq_sim.simulation.delivery.request import Question
from sparq_sim.simulation.lifetime import Resources
from sparq_sim.simulation.moves import MoveChecker, bring_within
from sparq_sim.simulation.past import Past, Thought
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import Fate, Record, Turn
from sparq_sim.simulation.resumption import restore_budget, settle_past
from sparq_sim.simulation.reward import Reward
from sparq_sim.simulation.start import (
    check_feedback,
    check_landscape,
    connect_sources,
    make_briefing,
    pair_experts,
    reduce_if_real,
    start_agent,
)
from sparq_sim.simulation.supervision import BeforeRound, Supervision
from sparq_sim.simulation.trace import Trace

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played, Watch

__all__ = ["Engine"]

LATE = 0.05
"""A round that begins later than this share of its period is noted to be late."""
MOST_ASKS = 10_000
"""An agent that is asked more often than this in one round will never play."""


class Engine:
    """Plays one play: made, started, and played once.

    In each round the agent hears what has arrived, makes a move, and the move is carried out; the
    round is judged at the moment of the move, or at its end where the point before stays in force.
    """

    def __init__(
        self,
        played: Played,
        clock: Clock,
        streams: Streams,
        landscape: Landscape,
        watch: Watch | None,
        supervision: Supervision,
    ) -> None:
        """Make the engine of one play.

        Args:
            played: What is played.
            clock: By which time passes.
            streams: All the chance of the play.
            landscape: The started environment.
            watch: Called after each round.
            supervision: Who writes the play down, what happened in it before, who may hold it up.

        Raises:
            PluginError: The landscape cannot be played in.
        """
        rules = played.rules
        environment = f"environment {type(played.environment).__name__}"
        check_landscape(environment, landscape)
        check_feedback(environment, landscape, played.feedback)
        self._played = played
        self._rules = rules
        self._clock = clock
        self._watch = watch
        self._supervision = supervision
        self._journal = supervision.journal
        self._recorder = Recorder(landscape.domain.names, supervision.journal)
        self._driver = AgentDriver(clock, rules, streams, self._recorder)
        self._context = PlayContext(
            clock,
            streams,
            landscape,
            recorder=self._recorder,
            to_agent=self._driver.hear,
            budget=Budget(rules.budget, rules.budget_per_round),
            environment=environment,
            play_id=supervision.play_id,
            journal=supervision.journal,
            past=supervision.past,
        )
        self._reward = Reward(landscape, environment)
        self._thought: tuple[Move, float] | None = None
        self._asked_at = nan  # When it was thought.
        self._bounds: Box | None = None  # Where points must lie, if not in all of the domain.
        self._resumed_in = 0  # The round with which a play goes on that was interrupted.
        self._points: Points | None = None  # One row: the point that is in force.
        self._visited: set[tuple[float, ...]] = set()
        self._connections: list[Connection]
        self._metered: list[tuple[Connection, Metered]] = []

    async def start(self, resources: Resources) -> None:
        """Start all who take part; *resources* keeps what they hold open until the end.

        Args:
            resources: Enters what they hold, and closes it after the play.
        """
        played, context, rules = self._played, self._context, self._rules
        experts = pair_experts(played)
        channels = {name: channel for name, (_, channel) in experts.items()}
        briefing = make_briefing(played, context, self._reward, channels)
        reward = self._reward, reduce_if_real(played, played.environment, played.feedback)
        reached = {
            name: (expert, reduce_if_real(played, expert, channel))
            for name, (expert, channel) in experts.items()
        }
        self._connections = await connect_sources(
            reached, briefing, context, resources, reward=reward
        )
        self._metered = [(c, c.source) for c in self._connections if isinstance(c.source, Metered)]
        agent = await start_agent(played, briefing, context, resources)
        moves = MoveChecker(
            type(agent).__name__,
            context.landscape.domain,
            frozenset(experts),
            notes_effort=rules.thinking_by_effort is not None,
        )
        self._driver.take(agent, moves)

    def recall(self) -> None:
        """Bring the agent to where it was, if the play was interrupted; it may take long.

        Raises:
            RehearsalError: The agent now does something else than it did.
        """
        if (past := self._supervision.past) is not None:
            self._driver.recall(past, self._context.landscape.domain)

    async def play(self) -> Trace:
        """Play all rounds; what is open at the end is recorded as unanswered.

        Returns:
            The trace of the play.
        """
        for connection in self._connections:
            start_broadcast(connection)
        rules, context, clock = self._rules, self._context, self._clock
        rounds, period = rules.most_rounds, rules.period
        ended = "rounds" if rounds == rules.rounds else "horizon"
        number = 1 if (past := self._supervision.past) is None else await self._go_on(past)
        while number <= rounds:
            await clock.until(number * period, AGENT)
            if self._supervision.before_round is not None:
                await self._prepare(self._supervision.before_round, number)
            if rules.ends_when_spent and context.budget.exhausted:
                ended = "budget"
                break
            if context.stop_reason is not None:
                ended = context.stop_reason
                break
            await self._round(number)
            number += 1
        await clock.until(min(number * period, rules.horizon), AGENT)
        return self.finish(ended)

    def finish(self, ended: str, *, interrupted: bool = False) -> Trace:
        """Close the books: what is open is unanswered.

        Args:
            ended: Why the play ended.
            interrupted: Whether it may go on some time.

        Returns:
            The trace of all that was played.
        """
        context, now = self._context, self._clock.now
        context.close(interrupted=interrupted)
        accounts = {
            f"{connection.name}/{table}": columns
            for connection in self._connections
            if isinstance(connection.source, Accounting)
            for table, columns in read_accounts(connection.who, connection.source, now).items()
        }
        if self._journal is not None:
            self._journal.end(ended, at=now, spent=context.budget.spent)
        return self._recorder.trace(ended=ended, spent=context.budget.spent, accounts=accounts)

    async def _round(self, number: int, before: Thought | None = None) -> None:
        """Play one round: have the agent move, judge it and write it down.

        If the play was interrupted in this round, the move is that of *before*.
        """
        rules, context = self._rules, self._context
        end = min((number + 1) * rules.period, rules.horizon)
        context.round = number
        self._driver.wall = 0.0
        late = self._clock.now - number * rules.period
        notes = await self._turn(end) if before is None else dict(before.move.notes)
        moved = notes is not None
        if self._points is None:
            raise PluginError("the agent waits out the first round; it must play in it")
        if not moved:
            await self._clock.until(end, AGENT)
        played_at = self._clock.now if before is None else before.at
        # In virtual time, never; and a round that was interrupted did not begin late.
        if late > LATE * rules.period and before is None and number != self._resumed_in:
            notes = self._note_late(late, notes or {})
        played_at = played_at if moved else end
        reward, best = self._reward.judge(self._points, played_at)
        turn = Turn(
            round=number,
            started_at=number * rules.period,
            played_at=played_at,
            moved=moved,
            point=self._points[0],
            reward=reward,
            best=best,
            spent=context.budget.spent,
            wall=self._driver.wall,
            notes=notes or {},
            meters=self._read_meters() if self._metered else {},
        )
        self._recorder.turns.append(turn)
        if self._journal is not None:
            self._journal.turn(turn, at=self._clock.now)
        if self._watch is not None:
            self._watch(turn)

    def _note_late(self, late: float, notes: Mapping[str, float]) -> Mapping[str, float]:
        """Return the notes of a round that began late, which say so, as does the journal."""
        number = self._context.round
        if self._journal is not None:
            told = f"round {number} began {late / self._rules.period:.0%} of a period late"
            self._journal.event("late", told, at=self._clock.now, round=number, late=late)
        return {**notes, "started_late": late}

    async def _prepare(self, before_round: BeforeRound, number: int) -> None:
        """Let a supervisor hold the play up, and take the bounds that it may give."""
        bounds = await before_round(number)
        if bounds is not None:
            self._bounds = bounds
            self._driver.restrict(bounds)
            if self._journal is not None:
                lower, upper = bounds.lower.tolist(), bounds.upper.tolist()
                told = f"points must lie within {lower} and {upper}"
                now = self._clock.now
                self._journal.event("bounds", told, at=now, lower=lower, upper=upper)

    async def _go_on(self, past: Past) -> int:
        """Take over what happened before an interruption; return the number of the next round."""
        context, recorder = self._context, self._recorder
        recorder.turns += past.turns
        recorder.records += past.records
        recorder.superseded |= past.superseded
        restore_budget(context.budget, past, self._rules)
        self._bounds = past.bounds
        context.skip_own_queries(past.own_queries)
        number = past.turns[-1].round if past.turns else 0
        for thought in past.thoughts:
            if thought.move.point is not None:
                self._points = freeze_array(thought.move.point)[None]
                self._visited.add(tuple(self._points[0].tolist()))
        last = past.thoughts[-1] if past.thoughts else None
        context.round = number
        if last is not None and last.round > number and last.move.point is not None:
            # It was carried out, but the round was not written down.
            number = last.round
            await self._round(number, last)
        by_name = {connection.name: connection for connection in self._connections}
        for ask in settle_past(past, self._played, self._clock.now, self._driver, recorder):
            by_name[ask.query.source].send_again(ask, self._driver.hear)
        self._resumed_in = number + 1
        return number + 1

    def _read_meters(self) -> dict[str, float]:
        """Return the meters of all experts at the end of a round, as `<expert>_<name>`."""
        meters: dict[str, float] = {}
        for connection, source in self._metered:
            for name, number in read_meters(connection.who, source, self._clock.now).items():
                key = f"{connection.name}_{name}"
                if key in meters:
                    raise HookError(
                        f"{connection.who}: the meter {name!r} and one of another expert would be "
                        f"one column, meter_{key}; rename one of the experts"
                    )
                meters[key] = number
        return meters

    async def _turn(self, end: float) -> Mapping[str, float] | None:
        """Ask the agent until it plays; return the notes of its move, or None if it did not."""
        clock = self._clock
        for _ in range(MOST_ASKS):
            # A machine that is late for the first round is not the agent's fault.
            first = self._points is None
            if self._thought is None:
                if clock.now >= end and not first:
                    return None
                self._asked_at = clock.now
                self._thought = await self._driver.think(self._context.round)
            move, ready_at = self._thought
            if max(ready_at, clock.now) >= end and not first:
                return None
            if ready_at > clock.now:
                await clock.until(ready_at, AGENT)
            self._thought = None
            move = self._carry_out(move)
            if move.point is not None:
                return dict(move.notes)
            if not await self._driver.wait_for_reply(end):
                return None
        raise PluginError(
            f"the agent was asked {MOST_ASKS} times in round {self._context.round} and did not play"
        )

    def _carry_out(self, move: Move) -> Move:
        """Play the point of a move, if it has one, and put its queries; return what was done."""
        context = self._context
        now = self._clock.now  # One moment for all, also where time goes on meanwhile.
        if self._bounds is not None:  # Which may have changed since it was thought.
            move = bring_within(move, context.landscape.domain, self._bounds)
        if self._journal is not None:
            number, told = context.round, self._driver.told
            self._journal.move(move, number=number, now=self._asked_at, at=now, heard=told)
        if move.point is not None:
            self._points = freeze_array(move.point)[None]
            self._visited.add(tuple(self._points[0].tolist()))
            query = make_checked_query(context.round, REWARD, self._points, now)
            context.links[REWARD].ask(Question(query, all_rows(1), self._driver.hear))
        for query in move.queries:
            if query.asked_at != now:  # It was thought out earlier, and goes out now.
                query = make_checked_query(query.id, query.source, query.points, now)
            # By way of columns, in half the time of row by row.
            if self._rules.access == "past" and not self._visited.issuperset(
                zip(*query.points.T.tolist(), strict=True)
            ):
                self._refuse(query)
            else:
                question = Question(query, all_rows(len(query.points)), self._driver.hear)
                context.links[query.source].ask(question)
        return move

    def _refuse(self, query: Query) -> None:
        """Refuse a query about a point to which there is no access."""
        failure = Failure(
            query=query,
            rows=all_rows(len(query.points)),
            reason="access: experts can be asked only at points already played",
            asked_at=query.asked_at,
            arrived_at=query.asked_at,
        )
        number = self._context.round
        self._driver.hear(Record(failure, Fate.ACCESS, True, number, AGENT_NAME, nan, nan))
