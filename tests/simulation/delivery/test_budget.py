from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_sim.simulation.delivery.budget import Budget

SETTINGS = settings(max_examples=100, deadline=None)

costs = st.floats(0, 1e6)
payments = st.lists(st.tuples(costs, st.integers(1, 5)), max_size=30)


@SETTINGS
@given(payments=payments, budget=costs, per_round=costs)
def test_what_is_spent_is_the_exact_sum_of_what_was_paid(
    payments: list[tuple[float, int]], budget: float, per_round: float
) -> None:
    purse = Budget(budget, per_round)
    paid = [cost for cost, number in payments if purse.pay(cost, number)]
    assert purse.spent == math.fsum(paid)


@SETTINGS
@given(payments=payments, budget=costs, per_round=costs)
def test_no_budget_is_overdrawn_by_more_than_a_billionth(
    payments: list[tuple[float, int]], budget: float, per_round: float
) -> None:
    purse = Budget(budget, per_round)
    rounds: dict[int, list[float]] = {}
    for cost, number in sorted(payments, key=lambda payment: payment[1]):
        if purse.pay(cost, number):
            rounds.setdefault(number, []).append(cost)
    assert purse.spent <= budget * (1 + 1e-9)
    assert all(math.fsum(paid) <= per_round * (1 + 1e-9) for paid in rounds.values())


@SETTINGS
@given(payments=payments)
def test_a_purse_without_a_budget_pays_everything(payments: list[tuple[float, int]]) -> None:
    purse = Budget()
    assert all(purse.pay(cost, number) for cost, number in payments)
    assert not purse.exhausted


def test_ten_payments_of_a_tenth_fit_a_budget_of_one() -> None:
    purse = Budget(1.0)
    assert [purse.pay(0.1, 1) for _ in range(11)] == [True] * 10 + [False]
    assert purse.spent == 1.0


def test_ten_payments_of_a_tenth_fit_a_round_of_one() -> None:
    purse = Budget(per_round=1.0)
    assert [purse.pay(0.1, 1) for _ in range(11)] == [True] * 10 + [False]


def test_small_payments_are_not_lost_beside_large_ones() -> None:
    purse = Budget()
    for cost in [1e16, *[0.1] * 100]:
        purse.pay(cost, 1)
    assert purse.spent == math.fsum([1e16, *[0.1] * 100]) > 1e16


def test_the_budget_of_a_round_is_there_again_in_the_next() -> None:
    purse = Budget(per_round=1.0)
    assert [purse.pay(0.6, number) for number in (1, 1, 2, 2, 3)] == [True, False] * 2 + [True]
    assert purse.spent == math.fsum([0.6] * 3)


def test_a_refused_payment_leaves_room_for_a_smaller_one() -> None:
    purse = Budget(1.0)
    assert [purse.pay(cost, 1) for cost in (0.5, 0.75, 0.5)] == [True, False, True]
    assert purse.spent == 1.0


def test_a_payment_beyond_the_round_does_not_exhaust_the_purse() -> None:
    purse = Budget(10.0, per_round=1.0)
    assert not purse.pay(2.0, 1)
    assert not purse.exhausted


def test_a_payment_beyond_the_budget_exhausts_the_purse_for_good() -> None:
    purse = Budget(1.0)
    assert not purse.pay(2.0, 1)
    assert purse.pay(0.5, 2)
    assert purse.exhausted


def test_a_budget_spent_to_the_last_is_not_exhausted_until_something_is_refused() -> None:
    purse = Budget(1.0)
    assert purse.pay(1.0, 1)
    assert not purse.exhausted
    assert not purse.pay(0.1, 2)
    assert purse.exhausted


def test_what_costs_nothing_can_always_be_afforded() -> None:
    purse = Budget(0.0, per_round=0.0)
    assert purse.pay(0.0, 1)
    assert not purse.pay(1e-300, 1)
    assert purse.pay(0.0, 1)
    assert purse.spent == 0.0


def test_a_new_purse_has_spent_nothing() -> None:
    purse = Budget(1.0)
    assert (purse.spent, purse.exhausted) == (0.0, False)


def test_what_is_set_apart_can_be_spent_by_nobody_else_until_it_is_released() -> None:
    purse = Budget(1.0)
    assert purse.reserve(0.7, 1)
    assert not purse.pay(0.7, 1)
    assert (purse.spent, purse.exhausted) == (0.0, False)
    purse.release(0.7, 1)
    assert purse.pay(0.7, 1)
    assert purse.spent == 0.7


def test_what_was_set_apart_is_spent_once_it_is_settled() -> None:
    purse = Budget(1.0)
    assert purse.reserve(0.7, 1)
    purse.settle(0.7)
    assert purse.spent == 0.7
    assert not purse.reserve(0.7, 2)
    assert purse.exhausted


def test_a_round_has_back_what_was_released_in_it_and_no_other() -> None:
    purse = Budget(per_round=1.0)
    assert purse.reserve(0.8, 1)
    purse.release(0.8, 1)
    assert purse.reserve(0.8, 1)
    assert purse.reserve(0.8, 2)
    purse.release(0.8, 1)
    assert not purse.reserve(0.8, 2)


def test_a_budget_goes_on_with_what_was_spent_before() -> None:
    purse = Budget(4.0, per_round=2.0)
    purse.restore([1.0, 1.5], number=3, taken=[1.5])
    assert purse.spent == 2.5
    assert [purse.pay(cost, number) for cost, number in ((1, 3), (0.5, 3), (1.5, 4), (1, 4))] == [
        False,
        True,
        False,
        True,
    ]
    assert purse.exhausted
