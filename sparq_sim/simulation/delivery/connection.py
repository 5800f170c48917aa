"""Connections: a source at the end of its channel, the innermost link of the road to it."""

from __future__ import annotations

from math import inf, isnan

import numpy as np

from sparq_sim.arrays import all_rows
from sparq_sim.errors import HookError, PluginError
from sparq_sim.messages import Query
from sparq_sim.plugin.environment import Coarsening, Landscape
from sparq_sim.plugin.expert import Answering
from sparq_sim.plugin.hooks import EXPERT_HOOKS, check_hooks
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.clock.protocol import DEADLINE
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.draws import SourceDraws, pick_rows
from sparq_sim.simulation.delivery.request import Drawn, OnRecord, Question, Request
from sparq_sim.simulation.delivery.service import Service
from sparq_sim.simulation.delivery.world import QueryWorld
from sparq_sim.simulation.past import OpenAsk
from sparq_sim.simulation.records import Fate

__all__ = ["Connection"]


class Connection:
    """A source behind its channel: the innermost link.

    Without a policy it makes the requests for a question itself; with one, `Retrying` does.

    Requests go down to the source's `Service`; records of what became of them come back.
    """

    def __init__(
        self, name: str, source: Answering, channel: Channel, context: PlayContext
    ) -> None:
        """Connect a source; nothing is asked of it yet.

        Args:
            name: What the source is called in this play.
            source: What answers.
            channel: How it is reached.
            context: The play that it takes part in.

        Raises:
            PluginError: The source or the channel's noise cannot be used.
        """
        self.who = f"expert {name!r} ({type(source).__name__})"
        check_hooks(self.who, source, EXPERT_HOOKS)
        try:
            channel.noise.stds(context.landscape.domain.cover(1)[:1], np.zeros(1))
        except (ValueError, HookError) as error:
            raise PluginError(f"the channel to {name!r}: {error}") from error
        self.name = name
        self.source = source
        self.channel = channel
        self.context = context
        self.draws = SourceDraws(name, channel, context.streams, context.clock)
        self.service = Service(name, source, channel, context)
        self._coarse: tuple[float, Landscape] | None = None

    # Asking: all that chance decides is drawn now, so that other requests cannot shift it.

    def ask(self, question: Question) -> None:
        """Draw, charge and send the requests for a *question*."""
        number = self.context.round
        for drawn in self.draws[question.path].draw(question, number):
            self.send(Request(question, drawn, number, drawn.cost))

    def send(self, request: Request) -> None:
        """Charge a *request* and put it to the source, now; what cannot be is refused."""
        context, fault = self.context, request.drawn.fault
        now = context.clock.now
        is_out = bool(self.channel.outages) and self.channel.out_at(now)
        if is_out or (fault is not None and fault.refuses):
            self.refuse(request, Fate.OUTAGE)
        elif request.cost and not (request.sent_before or self.service.charges.admit(request)):
            self.refuse(request, Fate.BUDGET)
        else:
            context.in_flight[request] = None
            deadline = now + self.channel.patience
            world = QueryWorld(self, request)
            if context.journal is not None and not request.sent_before:
                context.journal.ask(request, at=now, key=world.key)
            serving = self.service.carry(request, world, deadline=deadline)
            request.process = context.clock.start(serving)
            if deadline < inf:
                self.limit(request, deadline)

    def send_again(self, ask: OpenAsk, on_record: OnRecord) -> None:
        """Put a request to the source that was sent before an interruption.

        What was charged then is not charged again; what falls due later is set apart once more.

        Args:
            ask: What was sent; the source knows it by its key.
            on_record: What is called with the record of each row.
        """
        query, rows = ask.query, ask.rows
        subquery = query if len(rows) == len(query.points) else pick_rows(query, rows)
        origin = ask.round, 0
        drawn = Drawn(rows, subquery, origin, ask.cost, 0.0, 0.0, False, None, None)
        question = Question(query, rows, on_record, ask.asker, ask.path)
        request = Request(question, drawn, ask.round, ask.cost, ask.attempt, sent_before=True)
        if ask.owed and not self.context.budget.reserve(ask.owed, self.context.round):
            self.refuse(request, Fate.BUDGET)
            return
        request.owed = ask.owed
        self.send(request)

    def own_request(self, query: Query) -> Request:
        """Make the request for a *query* that the source opened itself, of the agent.

        Args:
            query: The query, opened by the source.

        Returns:
            The request, with all that is drawn for it.
        """
        rows = all_rows(len(query.points))
        question = Question(query, rows, self.context.to_agent, self.name, self.name)
        number = self.context.round
        (drawn,) = self.draws[self.name].draw(question, number)
        fault = drawn.fault
        # Nobody is asked, so most faults have nothing to act on, and are not in the record.
        if fault is not None and not fault.loses and fault.claimed_share == 1.0:
            drawn.fault = None
        return Request(question, drawn, number, drawn.cost)

    def own_world(self) -> QueryWorld:
        """Return what the source may use while it sends of its own accord."""
        return QueryWorld(self, None)

    def limit(self, request: Request, deadline: float) -> None:
        """Have a *request* given up at the *deadline*, when patience ends.

        Args:
            request: The request.
            deadline: In clock units.
        """
        self.context.clock.call_at(deadline, lambda: self.give_up(request), DEADLINE)

    def refuse(self, request: Request, reason: Fate) -> None:
        """Have a *request* fail at once, at no cost.

        Args:
            request: The request.
            reason: The fate that it gets.
        """
        request.cost = 0.0
        request.fail(reason, reason, now=self.context.clock.now)

    def give_up(self, request: Request) -> None:
        """Have a *request* fail as late, unless it is done.

        Args:
            request: The request.
        """
        if request.open:
            is_lost = request.drawn.lost and not isnan(request.sent_at)
            self.service.fail(request, Fate.LOST if is_lost else Fate.LATE, Fate.LATE)
            if request.process is not None:
                request.process.cancel()

    def coarse(self, resolution: float) -> Landscape:
        """Return the environment computed at another *resolution*; asked for again, the same."""
        if self._coarse is None or self._coarse[0] != resolution:
            landscape = self.context.landscape
            if not isinstance(landscape, Coarsening):
                raise ValueError("this environment has no coarser version of itself")
            self._coarse = resolution, landscape.coarse(resolution)
        return self._coarse[1]
