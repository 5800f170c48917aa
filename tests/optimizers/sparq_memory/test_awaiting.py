from __future__ import annotations

import pytest

from sparq_sim import Query
from sparq_sim.plugin.briefing import SourceTerms
from tests.optimizers.sparq_memory.plays import GRID, start_memory
from tests.optimizers.sparq_memory.test_asking import EXACT, asking_of, ready


def test_answers_are_awaited_since_the_oldest_query_that_is_open() -> None:
    asking = asking_of(ready())
    one, other = (Query(t, "expert", GRID[:1], float(t)) for t in (5, 6))
    assert asking.awaiting.find_oldest(5.0) is None
    asking.awaiting.record_queries((one,))
    asking.awaiting.record_queries((other,))
    assert asking.awaiting.find_oldest(7.0) == 5.0
    asking.awaiting.record_answer(one, len(one.points))
    assert asking.awaiting.find_oldest(7.0) == 6.0
    asking.awaiting.record_answer(other, len(other.points))
    assert asking.awaiting.find_oldest(7.0) is None


def test_times_are_counted_in_rounds() -> None:
    asking = asking_of(start_memory(experts={"expert": EXACT}, period=0.5))
    asking.awaiting.record_queries((Query(1, "expert", GRID[:1], 3.0),))
    assert asking.awaiting.find_oldest(7.0) == 6.0


def test_an_answer_that_never_comes_is_not_awaited_for_ever() -> None:
    asking = asking_of(ready())
    asking.awaiting.record_queries((Query(1, "expert", GRID[:1], 5.0),))
    assert asking.awaiting.find_oldest(36.0) == 5.0
    assert asking.awaiting.find_oldest(38.0) is None


def test_an_overdue_answer_counts_as_lost_once() -> None:
    asking = asking_of(ready())
    trust = asking.offers.trust["expert"]
    asking.awaiting.record_queries((Query(1, "expert", GRID[:1], 5.0),))
    asking.awaiting.find_oldest(7.0)
    assert trust.answered == 1.0
    for moment in (9.0, 10.0, 11.0):
        asking.awaiting.find_oldest(moment)
        assert trust.answered == pytest.approx(0.9)


def test_an_answer_in_parts_is_awaited_until_the_last_part() -> None:
    asking = asking_of(ready())
    asking.awaiting.record_queries((one := Query(1, "expert", GRID[:2], 5.0),))
    asking.awaiting.record_answer(one, 1)
    assert asking.awaiting.find_oldest(6.0) == 5.0
    asking.awaiting.record_answer(one, 1)
    assert asking.awaiting.find_oldest(6.0) is None


def test_a_failure_counts_as_lost_at_once_and_is_not_awaited() -> None:
    asking = asking_of(ready())
    asking.awaiting.record_queries((one := Query(1, "expert", GRID[:1], 5.0),))
    asking.awaiting.record_failure(one, 1)
    assert asking.awaiting.find_oldest(6.0) is None
    assert asking.offers.trust["expert"].answered < 1.0


def test_a_late_observation_is_awaited() -> None:
    asking = asking_of(start_memory(observation=SourceTerms(std=0.1, latency=3.0)))
    asking.record_play(GRID[0], 4.0)
    assert asking.awaiting.find_oldest(6.0) == 4.0
    asking.awaiting.record_observation(4.0)
    assert asking.awaiting.find_oldest(8.0) is None
