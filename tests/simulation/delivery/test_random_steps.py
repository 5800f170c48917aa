from __future__ import annotations

from collections.abc import Callable, Coroutine
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sparq_sim import Answer, Channel, Estimate, Expert, Query, World
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.clock.protocol import AGENT, Clock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.push import start_broadcast
from sparq_sim.testing import Teller
from tests.conftest import on_live_clock, on_sim_clock
from tests.delivery import ask, connect, context_on
from tests.simulation.clock.plain import PlainClock
from tests.simulation.delivery.asking import LANDSCAPE
from tests.simulation.delivery.books import FAILS, HANGS, SLOW, Books, Terms

POINTS = (0.1, 0.2, FAILS, HANGS, SLOW)
Log = list[tuple[Any, ...]]
Asks = list[tuple[float, float]]
"""Moments and points."""


class Moody(Expert):
    """Answers as its point has it, and sends readings of its own accord."""

    pushes: tuple[tuple[float, float], ...] = ()

    async def answer(self, query: Query, world: World) -> Estimate:
        (point,) = query.points[:, 0]
        if point == FAILS:
            raise RuntimeError("not there")
        if point == HANGS:
            await world.clock.signal()
        if point == SLOW:
            await world.clock.sleep(1)
        return Estimate(np.zeros(1))

    async def broadcast(self, world: World) -> None:
        for moment, point in self.pushes:
            await world.clock.until(moment)
            world.send(world.open(np.array([[point]])), Estimate(np.zeros(1)))


def declare(terms: Terms) -> Channel:
    rate = None
    if terms.rate is not None:
        points, every, beyond = terms.rate
        rate = Rate.model_validate({"points": points, "every": every, "beyond": beyond})
    policy = Policy(
        retries=terms.retries,
        backoff=terms.backoff,
        timeout=terms.timeout,
        rate=rate,
        remember=terms.remember,
        merge=terms.merge,
        fallback="backup" if terms.fallback else None,
    )
    return Channel.model_validate(
        {
            "service": terms.service,
            "transit": terms.transit,
            "cost": terms.cost,
            "capacity": terms.capacity,
            "patience": terms.patience,
            "outages": [terms.outage] if terms.outage[0] < inf else [],
            "loss": float(terms.lossy),
            "policy": policy,
        }
    )


def note_all(context: PlayContext) -> Log:
    """Return the records of a play as the books have them."""
    log: Log = []
    for record in context.recorder.records:
        reply = record.reply
        measured = reply.measured_at if isinstance(reply, Answer) else None
        fate = str(record.fate)
        log.append((reply.arrived_at, reply.query.id, record.attempt, fate, reply.cost, measured))
    return log


def deliver(
    on: Callable[[Callable[[Clock], Coroutine[Any, Any, tuple[Log, float]]]], tuple[Log, float]],
    terms: Terms,
    asks: Asks,
    pushes: Asks,
    end: float,
) -> tuple[Log, float]:
    """Return what became of all questions on a clock, and what was spent."""

    async def main(clock: Clock) -> tuple[Log, float]:
        context = context_on(clock, LANDSCAPE, budget=Budget(terms.budget))
        connection = connect("moody", Moody(pushes=tuple(pushes)), declare(terms), context)
        connect("backup", Teller(), Channel(), context)
        start_broadcast(connection)
        for number, (moment, point) in enumerate(asks, 1):
            await clock.until(moment, AGENT)
            ask(context, Query(number, "moody", np.array([[point]]), clock.now))
        await clock.until(end, AGENT)
        context.close()
        return note_all(context), context.budget.spent

    return on(main)


def keep_books(terms: Terms, asks: Asks, pushes: Asks, end: float) -> tuple[Log, float]:
    clock = PlainClock()
    books = Books(clock, terms)

    async def send() -> None:
        for moment, point in pushes:
            await clock.until(moment)
            books.push(point)

    async def main() -> None:
        clock.start(send())
        for number, (moment, point) in enumerate(asks, 1):
            await clock.until(moment, AGENT)
            books.ask(number, point)
        await clock.until(end, AGENT)
        books.close()

    clock.run(main())
    return books.log, books.spent


def by_name(log: Log) -> Log:
    """Return a log in which what happens at one instant stands by the number of the query."""
    return sorted(log, key=lambda entry: entry[:3])


class Deliveries(RuleBasedStateMachine):
    """Random questions and readings over a random channel, and what becomes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.asks: Asks = []
        self.pushes: Asks = []

    @initialize(
        terms=st.builds(
            Terms,
            service=st.sampled_from([0.0, 0.5, 2.0]),
            transit=st.sampled_from([0.0, 1.0]),
            cost=st.sampled_from([0.0, 1.0]),
            budget=st.sampled_from([inf, 2.0, 5.0]),
            capacity=st.sampled_from([None, 1, 2]),
            patience=st.sampled_from([1.0, 2.5, 4.0]),
            outage=st.sampled_from([(inf, inf), (0.0, 1.0), (2.0, 5.0)]),
            lossy=st.sampled_from([False, False, True]),
            retries=st.sampled_from([0, 1, 3]),
            backoff=st.sampled_from([0.0, 0.5]),
            timeout=st.sampled_from([inf, 3.0]),
            rate=st.sampled_from([None, (1, 2.0, "wait"), (2, 1.5, "refuse"), (2, 3.0, "wait")]),
            remember=st.sampled_from([0.0, 2.0, 100.0]),
            merge=st.booleans(),
            fallback=st.booleans(),
        )
    )
    def declare(self, terms: Terms) -> None:
        self.terms = terms

    @rule(point=st.sampled_from(POINTS))
    def ask(self, point: float) -> None:
        self.asks.append((self.now, point))

    @rule(point=st.sampled_from(POINTS[:2]))
    def push(self, point: float) -> None:
        # Never just when something else is paid for: who comes first then is nobody's promise.
        self.pushes.append((self.now + 0.25, point))

    @rule(duration=st.sampled_from([0.5, 1.0, 2.0]))
    def advance(self, duration: float) -> None:
        self.now += duration

    def teardown(self) -> None:
        if not hasattr(self, "terms"):
            return
        arguments = self.terms, self.asks, self.pushes, self.now + 1.0
        log, spent = keep_books(*arguments)
        for on in (on_sim_clock, on_live_clock):
            found, cost = deliver(on, *arguments)
            assert by_name(found) == by_name(log)
            assert cost == spent == sum(entry[4] for entry in found)


def check(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Deliveries, settings=settings(max_examples=examples, stateful_step_count=steps)
    )


def test_every_question_ends_as_the_books_have_it_on_both_clocks() -> None:
    check(120, 15)


@pytest.mark.slow
def test_every_question_ends_as_the_books_have_it_on_both_clocks_for_long() -> None:
    check(1500, 40)
