from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import simpy

from sparq_sim import Estimate, PluginError, Query, World
from sparq_sim.arrays import Points, Values
from sparq_sim.plugin.adaptors import from_function, from_process
from sparq_sim.testing import check_expert
from tests.conftest import Run
from tests.experts import consult


def wave(points: Points, time: float) -> Values:
    return np.sin(points[:, 0] + time)


def half_an_hour(
    env: simpy.Environment, query: Query, world: World
) -> Generator[simpy.Event, Any, Estimate]:
    yield env.timeout(0.5)
    return Estimate(world.rewards(query.points, env.now))


def test_a_plain_function_is_an_expert_and_obeys_the_laws() -> None:
    check_expert(from_function(wave))


def test_a_simpy_function_is_an_expert_and_obeys_the_laws() -> None:
    check_expert(from_process(half_an_hour))


def test_a_plain_function_is_called_with_the_points_and_the_time_of_now(run: Run) -> None:
    (answer,) = consult(from_function(wave), [2.5], [0.1, 0.2], run=run).answers
    assert answer.values.tolist() == np.sin([2.6, 2.7]).tolist()
    assert answer.measured_at == 2.5


def test_a_plain_function_may_give_a_list() -> None:
    (answer,) = consult(from_function(lambda points, time: [1, 2]), [0.0], [0.1, 0.2]).answers  # type: ignore[arg-type, return-value]
    assert answer.values.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (0.5, "gave values ()"),
        ([0.5], "gave values (1,)"),
        (["high", "low"], "could not convert string to float"),
    ],
)
def test_what_a_plain_function_may_get_wrong_is_a_failure_that_says_so(
    given: Any, reason: str
) -> None:
    (failure,) = consult(from_function(lambda points, time: given), [0.0], [0.1, 0.2]).failures
    assert reason in failure.reason


def test_an_async_function_is_refused_with_the_remedy() -> None:
    async def slow(points: Points, time: float) -> Values:
        return points[:, 0]

    with pytest.raises(PluginError, match=r"slow is async.*async def answer"):
        from_function(slow)  # type: ignore[arg-type]
