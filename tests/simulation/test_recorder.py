from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import arrival_order
from sparq_sim.simulation.trace import Trace
from tests.simulation.recording import EAST_NORTH, answered, lost, query, traced, turn


def test_rounds_become_columns_with_a_row_each() -> None:
    trace = traced([turn(1), turn(2, reward=2.5)])
    columns = {name: column.tolist() for name, column in trace.rounds.items()}
    assert columns == {
        "round": [1, 2],
        "started_at": [0.0, 1.0],
        "played_at": [0.5, 1.5],
        "moved": [True, False],
        "east": [1.0, 2.0],
        "north": [-1.0, -2.0],
        "reward": [1.0, 2.5],
        "best": [3.0, 3.0],
        "regret": [2.0, 0.5],
        "spent": [0.5, 1.0],
        "wall": [0.1, 0.1],
    }


def test_how_the_play_ended_is_kept() -> None:
    trace = traced([turn()])
    assert (trace.ended, trace.spent) == ("horizon", 1.5)


def test_notes_of_some_rounds_are_missing_in_the_others() -> None:
    trace = traced([turn(1, notes={"beta": 2.0}), turn(2), turn(3, notes={"bound": 1.0})])
    np.testing.assert_array_equal(trace.rounds["note_beta"], [2.0, math.nan, math.nan])
    np.testing.assert_array_equal(trace.rounds["note_bound"], [math.nan, math.nan, 1.0])


def test_notes_are_sorted_but_parts_of_a_whole_stay_in_the_order_in_which_they_were_noted() -> None:
    notes = {"width": 1.0, "scale/3": 0.2, "scale/10": 0.5, "scale/1": 0.3, "age": 1.0}
    rounds = traced([turn(1), turn(2, notes=notes)]).rounds
    noted = [name.removeprefix("note_") for name in rounds if name.startswith("note_")]
    assert noted == ["age", "scale/3", "scale/10", "scale/1", "width"]


def test_meters_of_some_rounds_are_missing_in_the_others() -> None:
    metered = replace(turn(2), meters={"net_left": 2.0, "net_alive": 1.0})
    rounds = traced([turn(1), metered]).rounds
    assert list(rounds)[-2:] == ["meter_net_alive", "meter_net_left"]
    np.testing.assert_array_equal(rounds["meter_net_left"], [math.nan, 2.0])


# Replies
def test_an_answer_becomes_one_row_for_each_point_with_its_cost_on_the_first() -> None:
    replies = traced(records=[answered(query(7, rows=3), [0, 2], notes={"depth": 4.0})]).replies
    columns = {name: column.tolist() for name, column in replies.items()}
    assert columns == {
        "round": [2, 2],
        "asker": ["agent", "agent"],
        "source": ["scout", "scout"],
        "query": [7, 7],
        "row": [0, 2],
        "east": [0.0, 4.0],
        "north": [1.0, 5.0],
        "fate": ["answered", "answered"],
        "reason": ["", ""],
        "heard": [True, True],
        "attempt": [1, 1],
        "superseded": [False, False],
        "fault": ["", ""],
        "value": [10.0, 12.0],
        "std": [0.1, 0.1],
        "asked_at": [1.0, 1.0],
        "served_at": [1.25, 1.25],
        "sent_at": [1.75, 1.75],
        "measured_at": [1.75, 1.75],
        "arrived_at": [2.0, 2.0],
        "cost": [0.5, 0.0],
        "note_depth": [4.0, 4.0],
    }


def test_a_failure_has_rows_with_a_reason_and_without_values() -> None:
    replies = traced(records=[lost(query(), [0, 1])]).replies
    assert replies["fate"].tolist() == ["lost", "lost"]
    assert replies["reason"].tolist() == ["gone", "gone"]
    assert replies["heard"].tolist() == [False, False]
    assert replies["cost"].tolist() == [0.25, 0.0]
    for name in ("value", "std", "measured_at", "served_at", "sent_at"):
        assert np.isnan(replies[name]).all()


def test_answers_and_failures_share_the_columns() -> None:
    asked = query(rows=3)
    replies = traced(
        records=[lost(asked, [1], 3.0), answered(asked, [0, 2], notes={"depth": 4.0})]
    ).replies
    np.testing.assert_array_equal(replies["row"], [0, 2, 1])
    np.testing.assert_array_equal(replies["value"], [10.0, 12.0, math.nan])
    np.testing.assert_array_equal(replies["note_depth"], [4.0, 4.0, math.nan])
    np.testing.assert_array_equal(replies["cost"], [0.5, 0.0, 0.25])


def test_replies_are_sorted_by_arrival_then_source_then_query_then_row() -> None:
    expected = [
        (1.5, "wind", 9, 1),
        (2.0, "scout", 1, 0),
        (2.0, "scout", 1, 1),
        (2.0, "scout", 10, 0),
        (2.0, "wind", -1, 0),
        (2.0, "wind", 2, 1),
    ]
    records = [
        answered(query(number, source), [row], arrived_at)
        for arrived_at, source, number, row in reversed(expected)
    ]
    replies = traced(records=records).replies
    order = [replies[name].tolist() for name in ("arrived_at", "source", "query", "row")]
    assert [*zip(*order, strict=True)] == expected
    assert [arrival_order(record) for record in records] == expected[::-1]


@settings(max_examples=50, deadline=None)
@given(
    keys=st.lists(
        st.tuples(
            st.integers(1, 3), st.sampled_from(["scout", "wind"]), st.integers(1, 3), st.booleans()
        ),
        unique=True,
        max_size=12,
    ),
    order=st.randoms(use_true_random=False),
)
def test_a_trace_does_not_depend_on_the_order_of_recording(
    keys: list[tuple[int, str, int, bool]], order: Random
) -> None:
    records = [
        answered(query(number, source), [int(row)], 1.0 + moment)
        for moment, source, number, row in keys
    ]
    shuffled = records.copy()
    order.shuffle(shuffled)
    assert traced(records=records).digest() == traced(records=shuffled).digest()
    assert len(traced(records=records).replies["row"]) == len(keys)


def test_what_was_written_is_not_changed_by_what_comes_after() -> None:
    recorder = Recorder(EAST_NORTH)
    recorder.turns.append(turn(1))
    early = recorder.trace(ended="", spent=0.0)
    recorder.turns.append(turn(2))
    assert (len(early), len(recorder.trace(ended="", spent=0.0))) == (1, 2)


# Nothing happened
def test_an_empty_play_has_all_columns_and_no_rows(trace: Trace) -> None:
    empty = traced()
    assert len(empty) == 0
    assert empty.points.shape == (0, 2)
    for columns, full in ((empty.rounds, trace.rounds), (empty.replies, trace.replies)):
        assert [*columns] == [name for name in full if not name.startswith("note_")]
        assert {name: column.shape for name, column in columns.items()} == dict.fromkeys(
            columns, (0,)
        )


def test_columns_of_an_empty_play_have_the_kinds_of_any_other(trace: Trace) -> None:
    empty = traced()
    for columns, full in ((empty.rounds, trace.rounds), (empty.replies, trace.replies)):
        assert {name: column.dtype.kind for name, column in columns.items()} == {
            name: full[name].dtype.kind for name in columns
        }


def test_a_play_without_replies_has_rounds(trace: Trace) -> None:
    quiet = traced([turn(1), turn(2)])
    assert (len(quiet), len(quiet.replies["row"])) == (2, 0)
    assert quiet.digest() != trace.digest()


def test_a_coordinate_cannot_be_called_as_a_column_is() -> None:
    with pytest.raises(ValueError, match="a column 'reward'; call the coordinate otherwise"):
        Recorder(["x", "reward"])
    with pytest.raises(ValueError, match="a column 'meter_x'; call the coordinate otherwise"):
        Recorder(["meter_x"])
