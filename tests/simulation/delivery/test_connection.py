from __future__ import annotations

import re
from collections.abc import Generator
from math import inf, nan
from typing import Any

import numpy as np
import pytest
import simpy
from numpy.testing import assert_array_equal

from sparq_sim import Answer, Channel, Estimate, Expert, Failure, PluginError, Query, from_process
from sparq_sim.arrays import Points, Values
from sparq_sim.errors import LiveOnlyError
from sparq_sim.plugin.contract import Answering, World
from sparq_sim.simulation.channel.channel import Due
from sparq_sim.simulation.channel.faults import Fault, FaultKind
from sparq_sim.simulation.channel.noise import Noise
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.clock.virtual import SimClock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.push import start_broadcast
from sparq_sim.simulation.delivery.world import MEMORY, QueryWorld
from sparq_sim.simulation.records import Record
from sparq_sim.testing import Slope, Teller
from tests.conftest import Run, on_sim_clock
from tests.delivery import ask, connect, context_on

LANDSCAPE = Slope().start(np.random.default_rng(0))


class Line:
    """Ask over a channel, on a clock, and hear what becomes of it."""

    def __init__(
        self, clock: Clock, channel: Channel, source: Answering | None = None, **more: Any
    ) -> None:
        self.context = context_on(clock, LANDSCAPE, **more)
        self.records: list[Record] = self.context.recorder.records
        self.connection = connect("expert", source or Teller(), channel, self.context)
        self._clock = clock
        self._ids = iter(range(1, 10**6))

    def ask(self, *points: float) -> None:
        query = Query(next(self._ids), "expert", np.array(points)[:, None], self._clock.now)
        ask(self.context, query)

    @property
    def answers(self) -> list[Answer]:
        return [r.reply for r in self.records if isinstance(r.reply, Answer)]

    @property
    def failures(self) -> list[Failure]:
        return [r.reply for r in self.records if isinstance(r.reply, Failure)]

    @property
    def fates(self) -> list[str]:
        return [record.fate for record in self.records]


def listen(
    run: Run,
    channel: Channel,
    *points: float,
    source: Answering | None = None,
    until: float = 100.0,
    **more: Any,
) -> Line:
    """Ask once, about each of *points*, and listen for a while."""

    async def main(clock: Clock) -> Line:
        line = Line(clock, channel, source, **more)
        line.ask(*(points or (0.5,)))
        await clock.sleep(until)
        return line

    line: Line = run(main)
    return line


def test_without_a_channel_of_note_the_answer_is_there_at_once(run: Run) -> None:
    (answer,) = listen(run, Channel(), 0.1, 0.2).answers
    assert (answer.asked_at, answer.measured_at, answer.arrived_at) == (0, 0, 0)
    assert_array_equal(answer.values, LANDSCAPE.rewards(np.array([[0.1], [0.2]]), 0.0))
    assert_array_equal(answer.stds, [0, 0])


def test_the_value_is_measured_when_service_ends_and_ages_in_transit(run: Run) -> None:
    (answer,) = listen(run, Channel(service=3, transit=4)).answers
    assert (answer.measured_at, answer.arrived_at) == (3, 7)
    assert_array_equal(answer.values, LANDSCAPE.rewards(np.array([[0.5]]), 3.0))


def test_second_query_waits_while_capacity_is_one(run: Run) -> None:
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(service=3, capacity=1))
        line.ask(0.1)
        line.ask(0.2)
        await clock.sleep(10)
        return line

    assert [answer.arrived_at for answer in run(main).answers] == [3, 6]


def test_transit_holds_no_slot(run: Run) -> None:
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(service=1, transit=50, capacity=1))
        line.ask(0.1)
        line.ask(0.2)
        await clock.sleep(100)
        return line

    assert [answer.arrived_at for answer in run(main).answers] == [51, 52]


def test_a_split_query_travels_row_by_row(run: Run) -> None:
    line = listen(run, Channel(service=1, capacity=2, split=True), 0.1, 0.2, 0.3)
    assert [answer.arrived_at for answer in line.answers] == [1, 1, 2]
    assert [answer.rows.tolist() for answer in line.answers] == [[0], [1], [2]]
    assert_array_equal(line.answers[2].points, [[0.3]])


@pytest.mark.parametrize(
    ("split", "cost", "service"), [(False, 1 + 3 * 0.25, 2 + 3), (True, 1.25, 3)]
)
def test_cost_and_service_add_up_per_query_and_per_point(
    run: Run, split: bool, cost: float, service: float
) -> None:
    channel = Channel(service=2, service_per_point=1, cost=1, cost_per_point=0.25, split=split)
    line = listen(run, channel, 0.1, 0.2, 0.3)
    assert [answer.cost for answer in line.answers] == [cost] * (3 if split else 1)
    assert [answer.arrived_at for answer in line.answers] == [service] * (3 if split else 1)


def test_noise_is_added_and_its_claimed_std_is_told(run: Run) -> None:
    noise = {"kind": "gaussian", "std": 0.5, "claimed": 0.1}
    (answer,) = listen(run, Channel(noise=noise), 0.1, 0.2).answers
    errors = answer.values - LANDSCAPE.rewards(np.array([[0.1], [0.2]]), 0.0)
    assert (np.abs(errors) > 0).all()
    assert_array_equal(answer.stds, [0.1, 0.1])


def test_the_stds_of_source_and_road_add_in_squares(run: Run) -> None:
    class Doubtful(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(1), stds=np.array([3.0]))

    (answer,) = listen(run, Channel(noise=4), source=Doubtful()).answers
    assert_array_equal(answer.stds, [5.0])


def test_of_a_lost_answer_the_asker_hears_nothing_but_the_trace_knows(run: Run) -> None:
    (record,) = listen(run, Channel(loss=1.0, transit=2)).records
    assert (record.fate, record.heard, record.reply.arrived_at) == ("lost", False, 2)


def test_of_a_lost_answer_the_asker_hears_late_when_patience_ends(run: Run) -> None:
    channel = Channel(loss=1.0, transit=2, patience=5)
    (record,) = listen(run, channel).records
    assert (record.fate, record.heard, record.reply.arrived_at) == ("lost", True, 5)
    assert isinstance(record.reply, Failure)
    assert record.reply.reason == "late"


def test_an_answer_in_the_very_moment_patience_ends_is_in_time(run: Run) -> None:
    assert listen(run, Channel(service=2, transit=3, patience=5)).fates == ["answered"]


def test_giving_up_frees_the_slot_for_the_next(run: Run) -> None:
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(service=4, capacity=1, patience=5))
        line.ask(0.1)  # served from 0 to 4
        line.ask(0.2)  # would be served from 4 to 8; given up at 5
        await clock.sleep(2)
        line.ask(0.3)  # served from 5 on, given up at 7
        await clock.sleep(4)
        line.ask(0.4)  # served from 7 to 11, just in time
        await clock.sleep(50)
        return line

    line = run(main)
    assert [(r.fate, r.reply.arrived_at) for r in line.records] == [
        ("answered", 4),
        ("late", 5),
        ("late", 7),
        ("answered", 11),
    ]


def test_an_answer_that_comes_after_patience_ended_changes_nothing(run: Run) -> None:
    line = listen(run, Channel(service=1, transit=20, patience=5))
    assert [(r.fate, r.heard, r.reply.arrived_at) for r in line.records] == [("late", True, 5)]


def test_during_an_outage_nobody_is_asked_and_nothing_is_charged(run: Run) -> None:
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(cost=1, outages=((2, 4),)))
        for _ in range(6):
            line.ask(0.5)
            await clock.sleep(1)
        return line

    line = run(main)
    assert line.fates == ["answered"] * 2 + ["outage"] * 2 + ["answered"] * 2
    assert [record.reply.cost for record in line.records] == [1, 1, 0, 0, 1, 1]
    assert line.context.budget.spent == 4


def test_what_cannot_be_paid_fails_at_once_and_is_not_charged(run: Run) -> None:
    line = listen(run, Channel(cost=1, service=3, split=True), 0.1, 0.2, 0.3, budget=Budget(2.0))
    assert [(r.fate, r.reply.arrived_at, r.reply.cost) for r in line.records] == [
        ("budget", 0, 0),
        ("answered", 3, 1),
        ("answered", 3, 1),
    ]


# When a cost falls due.


@pytest.mark.parametrize(("charged", "spent"), [("asked", 3), ("served", 2), ("answered", 1)])
def test_a_cost_falls_due_when_asked_when_served_or_when_answered(
    run: Run, charged: Due, spent: float
) -> None:
    # At the end one is answered, one is being served, and one waits for the slot.
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(cost=1, service=3, capacity=1, charged=charged))
        for _ in range(3):
            line.ask(0.5)
        await clock.sleep(4)
        line.context.close()
        return line

    line = run(main)
    assert line.fates == ["answered", "unanswered", "unanswered"]
    assert line.context.budget.spent == sum(record.reply.cost for record in line.records) == spent


def test_a_lost_answer_was_served_and_is_not_paid_for_as_an_answer(run: Run) -> None:
    served = Channel(cost=1, transit=1, loss=1.0, charged="served")
    assert listen(run, served).context.budget.spent == 1
    assert listen(run, Channel(**{**dict(served), "charged": "answered"})).context.budget.spent == 0


def test_an_answer_of_no_use_is_not_paid_for_as_an_answer(run: Run) -> None:
    paid = Channel(cost=1, charged="answered")
    assert listen(run, paid, source=Gives(what=Estimate(np.array([nan])))).context.budget.spent == 0
    half = Gives(what=Estimate(np.array([0.0, nan])))
    assert listen(run, paid, 0.1, 0.2, source=half).context.budget.spent == 1


def test_a_budget_sets_apart_what_falls_due_later_and_has_it_back(run: Run) -> None:
    async def main(clock: Clock) -> Line:
        channel = Channel(cost=1, transit=3, patience=1.5, charged="answered")
        line = Line(clock, channel, budget=Budget(1.0))
        for _ in range(3):
            line.ask(0.5)
            await clock.sleep(1)
        await clock.sleep(20)
        return line

    line = run(main)
    assert line.fates == ["budget", "late", "late"]
    assert line.context.budget.spent == 0


# What an expert may get wrong.


class Gives(Expert):
    """Answers whatever it was told to."""

    what: Any

    async def answer(self, query: Query, world: World) -> Estimate:
        if isinstance(self.what, Exception):
            raise self.what
        return self.what  # type: ignore[no-any-return] # on purpose


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        (1.5, "expert gave 1.5; expected an Estimate of 2 values"),
        (None, "expert gave None; expected an Estimate"),
        (object(), "expert gave <object object>; expected an Estimate"),
        (ValueError(object()), "expert raised ValueError: <object object>"),
        ([1.0, 2.0], r"expert gave \[1.0, 2.0\]; expected an Estimate"),
        (Estimate(np.zeros(3)), r"gave values \(3,\) and stds \(\); expected \(2,\)"),
        (Estimate(np.zeros((2, 1))), r"gave values \(2, 1\)"),
        (Estimate(np.zeros(2), stds=np.zeros(1)), r"stds \(1,\)"),
        (Estimate("ab"), "an Estimate that is none: ValueError"),  # type: ignore[arg-type] # on purpose
        (
            Estimate(np.zeros(2), measured_at=7.0),
            "measured at 7.0; expected a moment from 0 to now",
        ),
        (Estimate(np.zeros(2), measured_at=-1.0), "measured at -1.0"),
        (Estimate(np.zeros(2), measured_at=nan), "measured at nan"),
        (Estimate(np.zeros(2), measured_at="x"), "an Estimate that is none: ValueError"),  # type: ignore[arg-type] # on purpose
        (Estimate(np.zeros(2), notes=None), "an Estimate that is none: AttributeError"),  # type: ignore[arg-type] # on purpose
        (Estimate(np.zeros(2), notes={"a": "b"}), "could not convert string"),  # type: ignore[dict-item] # on purpose
        (Estimate([10**400, 1]), "an Estimate that is none: OverflowError"),  # type: ignore[arg-type] # on purpose
        (Estimate(np.array([1j, 1])), "gave complex numbers"),
        (Estimate(np.zeros(2), stds=np.array([1j, 1])), "gave complex numbers"),
        (Estimate(np.array([1e200, 1e200])), "gave 1e.200 with std 0.0; expected finite"),
        (Estimate(np.zeros(2), stds=1e200), "with std 1e.200"),
        (KeyError("sensor 7"), "raised KeyError: 'sensor 7'"),
        (ZeroDivisionError(), "raised ZeroDivisionError"),
    ],
)
def test_what_is_no_estimate_becomes_a_failure_that_says_why(
    run: Run, what: object, reason: str
) -> None:
    line = listen(run, Channel(cost=1), 0.1, 0.2, source=Gives(what=what))
    (failure,) = line.failures
    assert line.fates == ["invalid"]
    assert_array_equal(failure.rows, [0, 1])
    assert failure.cost == 1
    with pytest.raises(ValueError, match=reason):
        raise ValueError(failure.reason)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_value_that_is_no_number_fails_alone(run: Run, bad: float) -> None:
    source = Gives(what=Estimate(np.array([1.0, bad, 3.0])))
    line = listen(run, Channel(noise=0.1, cost=1), 0.1, 0.2, 0.3, source=source)
    assert line.fates == ["answered", "invalid"]
    assert_array_equal(line.answers[0].rows, [0, 2])
    assert_array_equal(line.failures[0].rows, [1])
    assert np.isfinite(line.answers[0].values).all()
    assert [record.reply.cost for record in line.records] == [1, 0]
    assert str(bad) in line.failures[0].reason


@pytest.mark.parametrize("std", [-1.0, nan, inf])
def test_a_std_that_is_none_fails(run: Run, std: float) -> None:
    line = listen(run, Channel(), source=Gives(what=Estimate(np.zeros(1), stds=std)))
    assert line.fates == ["invalid"]


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def test_an_error_that_cannot_be_shown_is_a_failure_all_the_same(run: Run) -> None:
    (failure,) = listen(run, Channel(), source=Gives(what=SilentError())).failures
    told = "expert raised SilentError: a SilentError that cannot be shown (test_connection.py:"
    assert failure.reason.startswith(told)


def test_a_broadcast_that_raises_is_recorded_and_the_play_goes_on(run: Run) -> None:
    class Broken(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(1))

        async def broadcast(self, world: World) -> None:
            await world.clock.sleep(1)
            raise OSError("sensor broke")

    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(cost=1), Broken())
        start_broadcast(line.connection)
        await clock.sleep(5)
        line.ask(0.5)
        await clock.sleep(5)
        return line

    line = run(main)
    assert line.fates == ["invalid", "answered"]
    told = r"expert raised OSError: sensor broke \(test_connection\.py:\d+ in broadcast\)"
    assert re.fullmatch(told, line.failures[0].reason)
    assert line.context.budget.spent == 1


def test_what_is_sent_of_ones_own_accord_meets_outages_loss_patience_and_budget(run: Run) -> None:
    class Beacon(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(1))

        async def broadcast(self, world: World) -> None:
            query = world.open(np.array([[0.5]]))
            for _ in range(2):
                world.send(query, Estimate(np.zeros(1)))

    def fates(channel: Channel, budget: float = inf) -> list[str]:
        async def main(clock: Clock) -> Line:
            line = Line(clock, channel, Beacon(), budget=Budget(budget))
            start_broadcast(line.connection)
            await clock.sleep(50)
            line.context.close()
            return line

        line: Line = run(main)
        return line.fates

    assert fates(Channel()) == ["answered", "duplicate"]
    assert fates(Channel(outages=((0, 1),))) == ["outage"]
    assert fates(Channel(cost=1), budget=0.5) == ["budget"]
    assert fates(Channel(loss=1.0, transit=1, patience=5)) == ["lost"]
    assert fates(Channel(transit=9, patience=5)) == [
        "late",
        "stray",
    ]  # The second was on the road by itself.


def test_what_comes_after_it_was_given_up_is_a_stray_and_no_second_answer(run: Run) -> None:
    class Sender(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            world.send(query, Estimate(np.zeros(1)))
            return None  # type: ignore[return-value] # what is said was sent

    assert listen(run, Channel(transit=9, patience=5), source=Sender()).fates == ["late", "stray"]


def test_one_who_never_answers_is_given_up_in_the_end(run: Run) -> None:
    class Silent(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            await world.clock.sleep(inf)
            raise AssertionError("never")

    line = listen(run, Channel(patience=5), source=Silent())
    assert [(r.fate, r.reply.arrived_at) for r in line.records] == [("late", 5)]


def test_one_who_answers_twice_is_heard_once(run: Run) -> None:
    class Twice(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            world.send(query, Estimate(np.array([1.0])))
            await world.clock.sleep(1)
            return Estimate(np.array([2.0]))

    line = listen(run, Channel(transit=3, cost=1), source=Twice())
    assert [(r.fate, r.heard, r.reply.arrived_at, r.reply.cost) for r in line.records] == [
        ("answered", True, 3, 1),
        ("duplicate", False, 4, 0),
    ]
    assert line.answers[0].values == [1.0]


def test_one_may_send_first_and_then_return_nothing(run: Run) -> None:
    class Sender(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            world.send(query, Estimate(np.array([1.0])))
            return None  # type: ignore[return-value] # what is said was sent

    assert listen(run, Channel(), source=Sender()).fates == ["answered"]


def test_sending_to_a_query_of_somebody_else_is_refused(run: Run) -> None:
    class Confused(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            world.send(Query(99, "expert", query.points, 0.0), Estimate(np.array([1.0])))
            raise AssertionError("not reached")

    line = listen(run, Channel(), source=Confused())
    assert "query 99 was not put to 'expert'" in line.failures[0].reason


def test_changing_the_query_is_refused(run: Run) -> None:
    class Careless(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            query.points[0] = 7.0
            return Estimate(np.zeros(1))

    (failure,) = listen(run, Channel(), source=Careless()).failures
    assert "read-only" in failure.reason


def test_the_future_is_not_to_be_had(run: Run) -> None:
    class Prophet(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(world.rewards(query.points, world.clock.now + 1))

    (failure,) = listen(run, Channel(), source=Prophet()).failures
    assert "known from 0 to now" in failure.reason


def test_an_answer_that_is_not_async_is_refused_by_name() -> None:
    class Blunt:
        def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(1))

    with pytest.raises(PluginError, match=r"'expert' \(Blunt\): answer must be an async method"):
        Connection("expert", Blunt(), Channel(), context_on(SimClock(), LANDSCAPE))  # type: ignore[arg-type] # on purpose


def test_calling_asyncio_under_virtual_time_ends_the_play_and_says_why() -> None:
    class Networked(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            import asyncio

            await asyncio.sleep(0.1)
            return Estimate(np.zeros(1))

    with pytest.raises(LiveOnlyError, match=r"'expert' calls asyncio.*or play it live"):
        listen(on_sim_clock, Channel(), source=Networked())


def test_an_error_that_ends_plays_is_no_failure_of_the_expert(run: Run) -> None:
    source = Gives(what=LiveOnlyError("elsewhere only"))
    with pytest.raises(LiveOnlyError, match="elsewhere only"):
        listen(run, Channel(), source=source)


class Upwards(Noise):
    """An error of *std* that is always above."""

    std: float

    def units(self, rng: np.random.Generator, count: int) -> Values:
        return np.ones(count)

    def stds(self, points: Points, values: Values) -> float:
        return self.std

    @property
    def expected_std(self) -> float:
        return self.std


def test_noise_is_added_and_not_taken_away(run: Run) -> None:
    (answer,) = listen(run, Channel(noise=Upwards(std=0.5)), 0.1, 0.2).answers
    assert_array_equal(answer.values, LANDSCAPE.rewards(np.array([[0.1], [0.2]]), 0.0) + 0.5)


# Experts that do more than answer.


def test_notes_of_the_estimate_and_of_the_world_reach_the_answer(run: Run) -> None:
    class Noting(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            world.note(energy=2)
            return Estimate(np.zeros(1), notes={"hops": 3.0})

    (answer,) = listen(run, Channel(), source=Noting()).answers
    assert answer.notes == {"energy": 2.0, "hops": 3.0}


def test_a_query_has_chance_of_its_own(run: Run) -> None:
    class Dicey(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(world.rng.random(len(query.points)))

    def values(*points: float) -> list[float]:
        line = listen(run, Channel(split=True), *points, source=Dicey())
        return [float(answer.values[0]) for answer in line.answers]

    assert values(0.1, 0.2, 0.3)[:2] == values(0.1, 0.2)
    assert len(set(values(0.1, 0.2, 0.3))) == 3


def test_readings_that_nobody_asked_for_arrive_as_answers(run: Run) -> None:
    class Beacon(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(np.zeros(1))

        async def broadcast(self, world: World) -> None:
            for _ in range(3):
                await world.clock.sleep(10)
                query = world.open(np.array([[0.5]]))
                world.send(query, Estimate(world.rewards(query.points, world.clock.now)))

    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(transit=2, cost=1), Beacon())
        start_broadcast(line.connection)
        await clock.sleep(100)
        return line

    line = run(main)
    assert [(a.query.id, a.asked_at, a.arrived_at, a.cost) for a in line.answers] == [
        (-1, 10, 12, 1),
        (-2, 20, 22, 1),
        (-3, 30, 32, 1),
    ]


class Tireless(Expert):
    """Sends *count* readings, the first of them twice: *late* readings later."""

    count: int
    late: int

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.zeros(1))

    async def broadcast(self, world: World) -> None:
        first = world.open(np.array([[0.5]]))
        world.send(first, Estimate(np.zeros(1)))
        for number in range(1, self.count):
            await world.clock.sleep(1.0)
            world.send(world.open(np.array([[0.5]])), Estimate(np.zeros(1)))
            if number == self.late:
                world.send(first, Estimate(np.zeros(1)))
        assert isinstance(world, QueryWorld)
        assert world._opened is not None
        world.stop(str(len(world._opened)))


def broadcast_of(run: Run, source: Tireless, channel: Channel) -> Line:
    async def main(clock: Clock) -> Line:
        line = Line(clock, channel, source)
        start_broadcast(line.connection)
        await clock.sleep(source.count + 10.0)
        return line

    line: Line = run(main)
    return line


def test_readings_that_have_arrived_are_forgotten_and_those_under_way_are_not(run: Run) -> None:
    done = broadcast_of(run, Tireless(count=3 * MEMORY, late=-1), Channel())
    assert done.fates == ["answered"] * 3 * MEMORY
    assert int(done.context.stop_reason or 0) <= MEMORY
    under_way = broadcast_of(run, Tireless(count=2 * MEMORY, late=-1), Channel(transit=1e6))
    assert int(under_way.context.stop_reason or 0) == 2 * MEMORY


def test_a_reading_sent_again_is_a_duplicate_until_it_is_forgotten(run: Run) -> None:
    soon = broadcast_of(run, Tireless(count=20, late=15), Channel())
    assert sorted(soon.fates) == ["answered"] * 20 + ["duplicate"]
    forgotten = broadcast_of(run, Tireless(count=3 * MEMORY, late=2 * MEMORY), Channel())
    assert sorted(forgotten.fates) == ["answered"] * (2 * MEMORY + 1) + ["invalid"]
    assert "query -1 was not put to 'expert' here" in forgotten.failures[0].reason


@pytest.mark.parametrize(
    ("kind", "fate", "named"),
    [
        ("nan", "answered", ""),
        ("outage", "answered", ""),
        ("out-of-order", "answered", ""),
        ("lost", "lost", "lost"),
        ("wrong-std", "answered", "wrong-std"),
    ],
)
def test_a_fault_is_named_only_where_it_acts_on_what_is_sent_unasked(
    run: Run, kind: FaultKind, fate: str, named: str
) -> None:
    line = broadcast_of(
        run, Tireless(count=3, late=-1), Channel(faults=(Fault(kind=kind, share=1.0),))
    )
    assert [(record.fate, record.fault) for record in line.records] == [(fate, named)] * 3


class Relay(Expert):
    """Asks another and adds one."""

    other: str

    async def answer(self, query: Query, world: World) -> Estimate:
        (reply,) = await world.ask(self.other, query.points)
        match reply:
            case Answer(values=values, measured_at=then):
                return Estimate(values + 1, measured_at=then)
            case Failure(reason=reason):
                raise RuntimeError(f"{self.other}: {reason}")


def relayed(run: Run, channel: Channel, other: str = "source") -> Line:
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(), Relay(other=other))
        connect("source", Teller(), channel, line.context)
        line.ask(0.5)
        await clock.sleep(50)
        return line

    line: Line = run(main)
    return line


def test_an_expert_may_ask_another_over_its_channel(run: Run) -> None:
    line = relayed(run, Channel(service=2, transit=3, cost=1))
    assert [(r.asker, r.reply.query.source, r.reply.cost) for r in line.records] == [
        ("expert", "source", 1),
        ("agent", "expert", 0),
    ]
    answer = line.answers[1]
    assert (answer.measured_at, answer.arrived_at) == (2, 5)
    assert_array_equal(answer.values, LANDSCAPE.rewards(np.array([[0.5]]), 2.0) + 1)


def test_an_expert_hears_of_the_failure_of_another(run: Run) -> None:
    line = relayed(run, Channel(outages=((0, 10),)))
    assert line.failures[-1].reason.startswith("expert raised RuntimeError: source: outage (")


def test_an_expert_hears_of_a_loss_when_the_answer_would_have_come(run: Run) -> None:
    line = relayed(run, Channel(loss=1.0, transit=3))
    assert line.failures[-1].reason.startswith("expert raised RuntimeError: source: lost (")
    assert line.failures[-1].arrived_at == 3


@pytest.mark.parametrize(
    ("other", "reason"),
    [("sourc", "did you mean 'source'"), ("expert", "experts ask in a circle: expert>expert")],
)
def test_asking_nobody_or_oneself_is_refused(run: Run, other: str, reason: str) -> None:
    assert reason in relayed(run, Channel(), other).failures[-1].reason


def test_a_circle_of_experts_is_refused(run: Run) -> None:
    async def main(clock: Clock) -> Line:
        line = Line(clock, Channel(), Relay(other="second"))
        connect("second", Relay(other="expert"), Channel(), line.context)
        line.ask(0.5)
        await clock.sleep(1)
        return line

    assert "expert>second>expert" in run(main).failures[0].reason


def test_a_coarser_world_that_does_not_exist_is_refused(run: Run) -> None:
    class Simulator(Expert):
        async def answer(self, query: Query, world: World) -> Estimate:
            return Estimate(world.coarse(0.5).rewards(query.points, 0.0))

    (failure,) = listen(run, Channel(), source=Simulator()).failures
    assert "no coarser version" in failure.reason


def classic(
    env: simpy.Environment, query: Query, world: World
) -> Generator[simpy.Event, Any, Estimate]:
    """Queue for a machine and work, as SimPy's own tutorial does."""
    machine = simpy.Resource(env, capacity=1)
    with machine.request() as turn:
        yield turn
        yield env.timeout(2)
    return Estimate(world.rewards(query.points, env.now))


def test_a_classic_simpy_process_function_is_an_expert() -> None:
    (answer,) = listen(on_sim_clock, Channel(transit=1), source=from_process(classic)).answers
    assert (answer.measured_at, answer.arrived_at) == (2, 3)


def test_a_channel_to_a_real_source_keeps_only_what_is_ours_to_say() -> None:
    kept = {"cost": 4, "capacity": 5, "patience": 6, "split": True}
    channel = Channel(service=1, transit=2, noise=3, loss=0.5, outages=((0, 1),), **kept)
    assert channel.to_real_source() == Channel(**kept)


def test_noise_that_does_not_fit_the_domain_is_refused_at_the_door() -> None:
    noise = {"kind": "distance-dependent", "slope": 1.0, "origin": (0.0, 0.0)}
    with pytest.raises(PluginError, match="origin of 2 coordinates; points have 1"):
        Connection("expert", Teller(), Channel(noise=noise), context_on(SimClock(), LANDSCAPE))


@pytest.mark.parametrize("outage", [(4, 2), (-1, 2), (nan, 2), (3, 3)])
def test_an_outage_that_is_none_is_refused(outage: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="an outage starts at 0 or later"):
        Channel(outages=(outage,))
