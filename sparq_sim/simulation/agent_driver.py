"""The driver of an agent: it hears what has arrived, thinks, and has a move ready in time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter

from sparq_sim.domain import Box, Domain
from sparq_sim.messages import Move
from sparq_sim.plugin.optimizer import Agent, Restrictable
from sparq_sim.simulation.channel.draws import Constant
from sparq_sim.simulation.clock.protocol import AGENT, Clock, Signal
from sparq_sim.simulation.moves import MoveChecker
from sparq_sim.simulation.past import Past
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import Record, arrival_order, is_for_agent
from sparq_sim.simulation.rehearsal import Rehearsal
from sparq_sim.simulation.rules import Rules

__all__ = ["AgentDriver"]


class AgentDriver:
    """Keeps what arrives for an agent until it is asked, and counts the time that it thinks."""

    def __init__(self, clock: Clock, rules: Rules, streams: Streams, recorder: Recorder) -> None:
        """Begin with nothing heard.

        Args:
            clock: By which the agent thinks and waits.
            rules: How long it thinks.
            streams: All the chance of the play.
            recorder: Keeps for the trace what is heard, and what the agent is not told.
        """
        self.wall = 0.0
        """Seconds that the agent has computed, as measured; whoever reads it sets it to 0."""
        self.told: Sequence[Record] = ()
        """What the agent was told before its latest move."""
        self._clock = clock
        self._rules = rules
        self._recorder = recorder
        self._stream = streams.by_round("thinking")
        # A constant needs no stream, and is what most plays have.
        self._lasts = rules.thinking.value if isinstance(rules.thinking, Constant) else None
        self._inbox: list[Record] = []
        self._stir: Signal | None = None
        self._agent: Agent
        self._moves: MoveChecker

    def take(self, agent: Agent, moves: MoveChecker) -> None:
        """Drive an *agent* from now on, whose moves are checked by *moves*.

        Args:
            agent: The started agent.
            moves: Checks its moves.
        """
        self._agent = agent
        self._moves = moves

    def hear(self, record: Record) -> None:
        """Take what became of a question of the agent's, or what a source sends it.

        Args:
            record: The record of a reply.
        """
        self._recorder.add(record)
        if record.heard:
            self._inbox.append(record)
            if self._stir is not None:
                self._wake(self._stir)

    def restrict(self, bounds: Box) -> None:
        """Tell the agent to play within some *bounds* from now on, if it can be told.

        Args:
            bounds: Within the domain.
        """
        if isinstance(self._agent, Restrictable):
            self._agent.restrict(bounds)

    def recall(self, past: Past, domain: Domain) -> None:
        """Bring the agent to where it was when its play was interrupted.

        What it had not been told yet it will be told before its next move.

        Args:
            past: What it was told and did.
            domain: Where its points may lie.

        Raises:
            RehearsalError: It now does something else than it did.
        """
        rehearsal = Rehearsal(self._agent, domain)
        for thought in past.thoughts:
            rehearsal.take(thought)
            self._moves.check(thought.move, thought.now)
        rehearsal.restrict(past.bounds)
        known = {record for thought in past.thoughts for record in thought.heard}
        known |= past.superseded
        self._inbox = [
            record for record in past.records if record not in known and is_for_agent(record)
        ]

    async def think(self, number: int) -> tuple[Move, float]:
        """Tell the agent what has arrived, and ask it for a move.

        Args:
            number: The round of now.

        Returns:
            The move, checked, and the moment at which it is ready.

        Raises:
            PluginError: It is no move that an agent may make.
        """
        now = self._clock.now
        heard, self._inbox = self._inbox, []
        if len(heard) > 1:
            heard.sort(key=arrival_order)
        self.told = heard
        began = perf_counter()
        # The first move takes no time, under either clock.
        consult = partial(self._tell_and_ask, heard)
        move = await self._clock.compute(consult, now, still=number == 1)
        self.wall += perf_counter() - began
        move = self._moves.check(move, now)
        if number == 1:
            return move, now
        lasts = self._lasts
        if lasts is None:
            lasts = float(self._rules.thinking.sample(self._stream.at(number), 1)[0])
        if self._rules.thinking_by_effort is not None:
            lasts += self._rules.thinking_by_effort(move.effort)
        return move, now + lasts

    def _tell_and_ask(self, heard: list[Record], now: float) -> Move:
        for record in heard:
            self._agent.tell(record.reply)
        return self._agent.ask(now)

    async def wait_for_reply(self, end: float) -> bool:
        """Wait for a reply and all others of its instant; return whether *end* is yet to come.

        Args:
            end: When to stop waiting, in clock units.
        """
        if not self._inbox:
            self._stir = stir = self._clock.signal()
            self._clock.call_at(end, lambda: self._wake(stir), AGENT)
            await stir
        await self._clock.until(self._clock.now, AGENT)
        return self._clock.now < end

    def _wake(self, signal: Signal) -> None:
        if signal is self._stir:
            self._stir = None
            signal.set()
