from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim import Box
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_memory.bank import Bank
from sparq_sim.optimizers.sparq_memory.carried import Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.filtering import Filter, Measured
from sparq_sim.optimizers.sparq_memory.hypothesis import Foresight
from sparq_sim.optimizers.sparq_memory.members import MEMBERS, Member

FEATURES = SpatialFeatures(SquaredExponential(length_scale=0.3), Box(0.0, 1.0).grid(51))
CURRENTS = Currents.of(FEATURES)
FIRST, LAST = 3, 9
"""The rounds between which answers are late."""


def start(*members: Member) -> Filter:
    """Return a filter of some hypotheses, by default three of different kinds."""
    chosen = members or (MEMBERS[1], MEMBERS[8], MEMBERS[11])
    return Filter(Bank([each.start(FEATURES, CURRENTS) for each in chosen]))


def measured(time: float, number: int = 0, source: str = "expert") -> Measured:
    """Return a value that surprises nobody."""
    rng = np.random.default_rng([int(10 * time), number])
    feature = FEATURES.at(rng.uniform(size=(1, 1)))[0]
    return Measured(time, source, feature, 0.2 * rng.normal(), 0.1)


def believed(one: Filter, time: float) -> Foresight:
    one.bank.advance(time)
    return one.bank.foresee(measured=time, used=time)


def kept(one: Filter) -> int:
    return len(one._since)


@settings(max_examples=50)
@given(
    delays=st.lists(st.integers(min_value=0, max_value=LAST - FIRST), min_size=LAST, max_size=LAST),
    together=st.booleans(),
)
def test_values_are_learnt_alike_in_whatever_order_they_come(
    delays: list[int], together: bool
) -> None:
    prompt, late = start(), start()
    values = [measured(float(t), number) for t in range(FIRST, LAST) for number in range(2)]
    arrivals = [int(each.time) + delays[row % LAST] for row, each in enumerate(values)]
    for now in range(1, 2 * LAST):
        for one, due in ((prompt, [int(each.time) for each in values]), (late, arrivals)):
            told = [value for value, when in zip(values, due, strict=True) if when == now]
            for part in [told] if together else [[each] for each in told]:
                one.learn(part)
            one.settle(float(FIRST))
            one.bank.advance(float(now))
    expected, found = believed(prompt, 2.0 * LAST), believed(late, 2.0 * LAST)
    assert_allclose(found.mean, expected.mean, atol=1e-9)
    assert_allclose(found.covariance, expected.covariance, atol=1e-9)
    assert_allclose(late.bank.weights, prompt.bank.weights, atol=1e-9)


@settings(max_examples=50)
@given(order=st.permutations(range(8)))
def test_values_may_come_in_any_order_within_the_awaited_time(order: Sequence[int]) -> None:
    values = [measured(float(FIRST + number // 2), number) for number in range(8)]
    prompt, shuffled = start(), start()
    for one in (prompt, shuffled):
        one.settle(0.0)
    prompt.learn(values)
    for number in order:
        shuffled.learn([values[number]])
    expected, found = believed(prompt, 10.0), believed(shuffled, 10.0)
    assert_allclose(found.mean, expected.mean, atol=1e-9)
    assert_allclose(found.covariance, expected.covariance, atol=1e-9)


def test_a_late_value_has_the_residual_of_what_was_foretold_at_its_time() -> None:
    one, prompt = start(), start()
    early, late, newest = measured(1.0), measured(2.0), measured(3.0)
    one.settle(0.0)
    one.learn([early, newest])
    (found,) = one.learn([late])
    prompt.learn([early])
    (expected,) = prompt.learn([late])
    assert found.measured is late
    assert found.miss == pytest.approx(expected.miss, abs=1e-12)
    assert found.variance == pytest.approx(expected.variance, abs=1e-12)


def test_what_is_late_and_was_not_awaited_counts_as_less_exact_than_what_is_new() -> None:
    only = Member("jitter", 8.0, 0.8, local=False)
    new, late, later, never = (start(only) for _ in range(4))
    at = FEATURES.at(np.array([[0.5]]))[0]
    spreads, means = [], []
    for one, time in ((new, 8.0), (late, 6.0), (later, 2.0), (never, None)):
        one.bank.advance(8.0)
        if time is not None:
            one.learn([Measured(time, "expert", at, 1.5, 0.01)])
        foresight = believed(one, 8.0)
        spreads.append(float(at @ foresight.covariance @ at))
        means.append(float(at @ foresight.mean))
    assert spreads == sorted(spreads)
    assert means == sorted(means, reverse=True)
    assert means[-1] == 0


def test_values_measured_before_a_restart_are_dropped() -> None:
    one, fresh = start(), start()
    for each in (one, fresh):
        each.bank.advance(5.0)
        each.restart()
    assert one.learn([measured(4.0), measured(4.9)]) == []
    assert_array_equal(believed(one, 6.0).mean, 0.0)
    (heard,) = one.learn([measured(4.0, 1), measured(7.0)])
    assert heard.measured.time == 7.0
    fresh.learn([measured(7.0)])
    assert_allclose(believed(one, 8.0).mean, believed(fresh, 8.0).mean, atol=1e-12)


def test_a_restart_keeps_no_value_to_learn_again() -> None:
    one = start()
    one.settle(0.0)
    one.learn([measured(1.0), measured(2.0)])
    one.restart()
    assert kept(one) == 0
    one.settle(2.0)
    one.learn([measured(3.0)])
    assert kept(one) == 1


def test_nothing_is_kept_while_nothing_is_awaited() -> None:
    one = start()
    for t in range(1, 30):
        one.learn([measured(float(t), number) for number in range(3)])
        one.settle(None)
        assert kept(one) == 0
        assert one._settled is None


def test_only_what_was_measured_since_the_oldest_awaited_answer_is_kept() -> None:
    one = start()
    for t in range(1, 60):
        one.learn([measured(float(t), number) for number in range(3)])
        one.settle(t - 4.0)
        assert kept(one) <= 3 * 5
    one.settle(None)
    assert kept(one) == 0


def test_nothing_to_learn_changes_nothing() -> None:
    one = start()
    one.learn([measured(1.0)])
    before = one.bank.weights
    assert one.learn([]) == []
    assert_array_equal(one.bank.weights, before)


def test_every_value_has_a_residual() -> None:
    one = start()
    values = [measured(t, number) for t in (2.0, 1.0, 2.5) for number in range(2)]
    found = one.learn(values)
    assert all(0 < each.variance < inf for each in found)
    assert {id(each.measured) for each in found} == {id(each) for each in values}
    assert [each.measured.time for each in found] == [1.0, 1.0, 2.0, 2.0, 2.5, 2.5]


@pytest.mark.parametrize("gap", [2.0, 6.0, 20.0])
def test_a_value_that_was_not_awaited_counts_as_it_would_have_in_its_place(gap: float) -> None:
    exact, late = (start(Member("jitter", 8.0, 0.8, local=False)) for _ in range(2))
    value = measured(0.0)
    exact.learn([value])
    for one in (exact, late):
        one.bank.advance(gap)
    late.learn([value])
    expected, found = believed(exact, gap), believed(late, gap)
    at = value.feature
    assert at @ found.covariance @ at == pytest.approx(at @ expected.covariance @ at, rel=0.02)
    assert at @ found.mean == pytest.approx(at @ expected.mean, abs=0.02)
