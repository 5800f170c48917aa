"""Resumption: what becomes of questions that were open when a play was interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.arrays import freeze_array
from sparq_sim.messages import AGENT_NAME, REWARD, Failure, Query
from sparq_sim.simulation.agent_driver import AgentDriver
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.context import INTERRUPTED
from sparq_sim.simulation.delivery.request import Rows
from sparq_sim.simulation.past import OpenAsk, Past, Thought
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import UNASKED, Fate, Record
from sparq_sim.simulation.rules import Rules

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played

__all__ = ["restore_budget", "settle_past"]


def settle_past(
    past: Past, played: Played, now: float, driver: AgentDriver, recorder: Recorder
) -> Iterator[OpenAsk]:
    """Have open questions fail as interrupted, and yield those that can be sent again.

    A request is sent again where its source is real and honours keys, so that it does nothing
    twice, and where the agent waits for it. What was never sent fails as well.

    Args:
        past: What happened before the interruption.
        played: What is played.
        now: The present moment, in clock units.
        driver: Hears of what the agent asked.
        recorder: Keeps what others asked.

    Yields:
        Each request to send again.
    """
    again = [ask for ask in past.open if ask.asker == AGENT_NAME and _is_sent_again(ask, played)]
    for ask in past.open:
        if ask in again:
            continue
        record = _interrupt(ask.query, ask.rows, now, ask)
        if ask.asker == AGENT_NAME:
            driver.hear(record)
        else:
            recorder.add(record)
    for query, rows, number in _find_unsent(past):
        ask = OpenAsk(query, rows, 1, AGENT_NAME, AGENT_NAME, number, 0.0, 0.0, "")
        driver.hear(_interrupt(query, rows, now, ask))
    yield from again


def restore_budget(budget: Budget, past: Past, rules: Rules) -> None:
    """Have a budget begin with what was spent before the interruption.

    Args:
        budget: That of the play.
        past: What happened before.
        rules: What the budget is.
    """
    costs = [*(record.reply.cost for record in past.records), *(ask.cost for ask in past.open)]
    refused = any(record.fate == Fate.BUDGET for record in past.records)
    number = past.thoughts[-1].round if past.thoughts else 0
    taken = [ask.cost for ask in past.sent if ask.round == number]
    # What a round could not pay for says nothing about the play.
    exhausted = refused and rules.budget_per_round == inf
    budget.restore(costs, number=number, taken=taken, exhausted=exhausted)
    if past.spent > budget.spent:  # For what was under way unasked.
        budget.restore([past.spent], number=number, taken=taken, exhausted=exhausted)


def _is_sent_again(ask: OpenAsk, played: Played) -> bool:
    if ask.query.source == REWARD:
        return played.environment.is_real and played.environment.honours_keys()
    given = played.experts[ask.query.source]
    expert = given[0] if isinstance(given, tuple) else given
    return expert.is_real and expert.honours_keys()


def _interrupt(query: Query, rows: Rows, now: float, ask: OpenAsk) -> Record:
    """Return the record of an open request, which is given up."""
    failure = Failure(
        query=query,
        rows=rows,
        reason=INTERRUPTED,
        asked_at=query.asked_at,
        arrived_at=max(now, query.asked_at),
        cost=ask.cost,
    )
    heard = ask.asker == AGENT_NAME
    return Record(failure, Fate.UNANSWERED, heard, ask.round, ask.asker, nan, nan, ask.attempt)


def _find_unsent(past: Past) -> Iterator[tuple[Query, Rows, int]]:
    """Yield what the agent asked that neither failed, nor was answered, nor was ever sent."""
    ended: dict[tuple[int, bool], set[int]] = {}

    def note(query: Query, rows: Rows) -> None:
        ended.setdefault((query.id, query.source == REWARD), set()).update(rows.tolist())

    for record in past.records:
        is_end = record.fate not in UNASKED and record not in past.superseded
        if record.asker == AGENT_NAME and is_end:
            note(record.reply.query, record.reply.rows)
    for ask in past.open:
        if ask.asker == AGENT_NAME:
            note(ask.query, ask.rows)
    for thought in past.thoughts:
        for query in _list_queries(thought):
            known = ended.get((query.id, query.source == REWARD), set())
            rows = [row for row in range(len(query.points)) if row not in known]
            if rows:
                yield query, np.array(rows, dtype=np.intp), thought.round


def _list_queries(thought: Thought) -> Iterator[Query]:
    """Yield what a move asked, the reward of its point included."""
    if thought.move.point is not None:
        yield Query(thought.round, REWARD, freeze_array(thought.move.point)[None], thought.at)
    for query in thought.move.queries:
        yield Query(query.id, query.source, query.points, thought.at)
