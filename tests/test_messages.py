from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from sparq_sim.arrays import all_finite, freeze_array
from sparq_sim.messages import Query


def query(points: ArrayLike = ((1.0, 2.0), (3.0, 4.0)), asked_at: float = 5.0) -> Query:
    return Query(7, "scout", np.asarray(points, dtype=float), asked_at)


# Asking


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_query_refuses_points_that_are_nowhere(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"must be finite, not \[\[0.0, {bad}\]\]"):
        query([[0.0, bad]])


@pytest.mark.parametrize("points", [0.0, [0.0, 1.0], [[[0.0]]], np.empty((0, 2)), [[]]])
def test_a_query_refuses_points_of_another_shape(points: ArrayLike) -> None:
    with pytest.raises(ValueError, match=r"have shape \(.*\); expected \(q, d\), at least one row"):
        query(points)


@pytest.mark.parametrize("moment", [-1e-300, -1.0, math.nan, math.inf])
def test_a_query_is_asked_at_a_moment_from_zero_on(moment: float) -> None:
    with pytest.raises(
        ValueError, match=f"asked_at must be a finite time, 0 or more, not {moment!r}"
    ):
        query(asked_at=moment)


def test_a_query_may_be_asked_at_the_very_beginning() -> None:
    assert query(asked_at=0.0).asked_at == 0.0


def test_points_of_a_query_do_not_follow_the_callers_array() -> None:
    points = np.zeros((1, 2))
    asked = query(points)
    points[0, 0] = 9.0
    assert asked.points.tolist() == [[0.0, 0.0]]


def test_points_of_a_query_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        query().points[0, 0] = 9.0


def test_the_callers_array_stays_writable() -> None:
    points = np.zeros((1, 2))
    query(points)
    assert points.flags.writeable


def test_whole_numbers_become_floats() -> None:
    asked = Query(1, "scout", np.array([[1, 2]]), 0)
    assert asked.points.dtype == np.float64


def test_a_query_survives_a_pickle() -> None:
    copy = pickle.loads(pickle.dumps(query()))
    assert isinstance(copy, Query)
    assert (copy.id, copy.source, copy.asked_at) == (7, "scout", 5.0)
    assert copy.points.tolist() == [[1.0, 2.0], [3.0, 4.0]]


# One row of a query


def test_a_row_asks_about_one_point_only() -> None:
    part = query().row(1)
    assert (part.id, part.source, part.asked_at) == (7, "scout", 5.0)
    assert part.points.tolist() == [[3.0, 4.0]]


def test_a_row_can_be_changed_no_more_than_the_query() -> None:
    with pytest.raises(ValueError, match="read-only"):
        query().row(0).points[0, 0] = 9.0


# Answering


def test_an_answer_covers_all_rows_and_arrives_at_once_unless_told() -> None:
    asked = query()
    answer = asked.answer([10.0, 20.0])
    assert answer.query is asked
    assert answer.rows.tolist() == [0, 1]
    assert (answer.values.tolist(), answer.stds.tolist()) == ([10.0, 20.0], [0.0, 0.0])
    assert (answer.asked_at, answer.measured_at, answer.arrived_at) == (5.0, 5.0, 5.0)
    assert (answer.cost, dict(answer.notes)) == (0.0, {})


def test_an_answer_is_measured_when_it_arrives_unless_told() -> None:
    assert query().answer([1.0, 2.0], arrived_at=8.0).measured_at == 8.0


def test_an_answer_may_speak_of_a_time_before_it_was_asked_for() -> None:
    answer = query().answer([1.0, 2.0], measured_at=0.0, arrived_at=8.0, cost=0.5)
    assert (answer.asked_at, answer.measured_at, answer.arrived_at) == (5.0, 0.0, 8.0)
    assert answer.cost == 0.5


def test_one_std_holds_for_all_rows() -> None:
    assert query().answer([1.0, 2.0], stds=0.3).stds.tolist() == [0.3, 0.3]


def test_each_row_may_have_a_std_of_its_own() -> None:
    assert query().answer([1.0, 2.0], stds=[0.3, 0.0]).stds.tolist() == [0.3, 0.0]


def test_the_points_of_an_answer_are_those_of_its_rows() -> None:
    assert query().answer([1.0, 2.0]).points.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_values_of_an_answer_do_not_follow_the_callers_array() -> None:
    values = np.array([1.0, 2.0])
    answer = query().answer(values)
    values[0] = 9.0
    assert answer.values.tolist() == [1.0, 2.0]
    assert not answer.values.flags.writeable
    assert not answer.stds.flags.writeable


@pytest.mark.parametrize("values", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], []])
def test_an_answer_of_another_length_is_refused(values: ArrayLike) -> None:
    with pytest.raises(ValueError, match="query 7 takes 2 finite values, not "):
        query().answer(values)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_answer_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"takes 2 finite values, not \[1.0, {bad}\]"):
        query().answer([1.0, bad])


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_a_std_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"finite and not negative.*not \[0.1, {bad}\]"):
        query().answer([1.0, 2.0], stds=[0.1, bad])


def test_stds_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match=r"one for each value, not \[0.1, 0.1, 0.1\]"):
        query().answer([1.0, 2.0], stds=[0.1, 0.1, 0.1])


@pytest.mark.parametrize(
    ("measured_at", "arrived_at"),
    [
        (None, 4.0),  # before asking
        (9.0, 8.0),  # measured after arrival
        (6.0, None),  # the same: it arrives when asked
        (-1.0, 8.0),  # before the beginning
        (math.nan, 8.0),
        (None, math.nan),
        (None, math.inf),
    ],
)
def test_an_answer_that_breaks_the_order_of_time_is_refused(
    measured_at: float | None, arrived_at: float | None
) -> None:
    with pytest.raises(ValueError, match=r"arrives after it was asked for \(at 5.0\)"):
        query().answer([1.0, 2.0], measured_at=measured_at, arrived_at=arrived_at)


@settings(max_examples=50, deadline=None)
@given(
    asked_at=st.floats(0, 1e9),
    delay=st.floats(0, 1e9),
    share=st.floats(0, 1),
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
)
def test_what_is_in_order_is_taken_as_it_is(
    asked_at: float, delay: float, share: float, values: list[float]
) -> None:
    asked = query(np.zeros((len(values), 1)), asked_at)
    arrived_at = asked_at + delay
    answer = asked.answer(values, measured_at=share * arrived_at, arrived_at=arrived_at)
    assert answer.values.tolist() == values
    assert (answer.measured_at, answer.arrived_at) == (share * arrived_at, arrived_at)


# Arrays


def test_a_frozen_array_is_a_copy_that_nobody_can_change() -> None:
    numbers = np.array([1.0, 2.0])
    frozen = freeze_array(numbers)
    assert not np.shares_memory(frozen, numbers)
    assert not frozen.flags.writeable


@pytest.mark.parametrize(
    ("numbers", "verdict"),
    [([], True), ([[0.0, 1.0]], True), ([[0.0], [math.nan]], False), ([-math.inf], False)],
)
def test_an_array_is_finite_if_each_number_is(numbers: ArrayLike, verdict: bool) -> None:
    assert all_finite(np.asarray(numbers, dtype=float)) is verdict
