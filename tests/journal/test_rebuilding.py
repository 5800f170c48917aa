from __future__ import annotations

from collections.abc import Iterator
from math import isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from sparq_sim import Answer, Failure, Trace, play
from sparq_sim.errors import JournalError
from sparq_sim.journal.header import make_header
from sparq_sim.journal.reader import Journal, read_journal
from sparq_sim.journal.rebuilding import INTERRUPTED
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.messages import REWARD, Move
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import first_difference
from sparq_sim.testing import Slope
from tests.journal.samples import (
    HEADER,
    make_answer,
    make_failure,
    make_query,
    make_request,
    quick_folder,
    write_sample,
)
from tests.simulation.test_laws_of_plays import LANDSCAPE, Scenario, scenarios


@pytest.fixture
def journal(path: Path) -> Journal:
    write_sample(path).close()
    return read_journal(path)


def play_with_journal(scenario: Scenario, path: Path) -> tuple[Trace, Journal]:
    played = scenario.play().played
    assert played is not None
    with JournalWriter.create(path, make_header(played, LANDSCAPE.domain)) as writer:
        trace = play(
            scenario.optimizer,
            Slope(),
            scenario.rules,
            experts=scenario.experts,
            feedback=scenario.feedback,
            seed=scenario.seed,
            journal=writer,
        )
    return trace, read_journal(path)


@settings(max_examples=25)
@given(scenarios())
def test_the_journal_of_any_play_gives_back_its_trace(scenario: Scenario) -> None:
    with quick_folder() as folder:
        trace, journal = play_with_journal(scenario, folder / "play.jsonl")
        again = journal.to_trace()
    assert first_difference(trace, again) is None
    assert again.digest() == trace.digest() == scenario.play().digest()
    assert journal.open_questions() == []
    assert set(journal.sources()) == {REWARD, *scenario.experts}
    past = journal.past()
    assert past.spent == trace.spent
    assert past.ended == trace.ended


@settings(max_examples=10)
@given(scenarios())
def test_wherever_a_play_is_interrupted_what_was_paid_and_asked_is_known(
    scenario: Scenario,
) -> None:
    with quick_folder() as folder:
        path = folder / "play.jsonl"
        play_with_journal(scenario, path)
        lines = path.read_bytes().splitlines(keepends=True)
        for count in range(1, len(lines), 1 + len(lines) // 20):
            path.write_bytes(b"".join(lines[:count]))
            journal = read_journal(path)
            past = journal.past()
            turns, told = past.turns, [r for t in past.thoughts for r in t.heard]
            assert not turns or past.spent >= turns[-1].spent * (1 - 1e-9)
            assert len(set(told)) == len(told)
            assert not set(told) & journal.untold().keys()
            assert journal.to_trace().ended in (INTERRUPTED, past.ended)


def test_the_past_of_an_interrupted_play(journal: Journal) -> None:
    past = journal.past()
    assert [turn.round for turn in past.turns] == [1, 2]
    assert isnan(past.turns[1].reward)
    assert past.turns[0].point.tolist() == [0.5, 0.0]
    assert [record.fate for record in past.records] == [Fate.ANSWERED, Fate.LATE, Fate.LATE]
    assert past.superseded == {past.records[1]}
    first, second = past.thoughts
    assert (first.now, first.at, first.round, first.heard) == (2.0, 2.0, 1, ())
    assert first.move.point is not None
    assert first.move.queries[0].points.shape == (3, 2)
    assert (first.move.notes, first.move.effort) == ({"width": 2.0}, 3.0)
    assert second.heard == (past.records[0], past.records[2])
    assert second.move.point is None
    assert past.now == 5.5
    assert past.ended is None
    assert past.own_queries == 0
    assert past.bounds is not None
    assert past.bounds.upper.tolist() == [0.5, 0.5]
    assert past.bounds.names == ("x", "y")


def test_rows_whose_end_is_not_known_are_open(journal: Journal) -> None:
    (ask,) = journal.open_questions()
    assert (ask.query.source, ask.query.id, ask.rows.tolist()) == ("lab", 1, [2])
    assert (ask.attempt, ask.key, ask.cost) == (2, "k/lab/1/1", 0.25)


def test_what_was_spent_counts_replies_and_open_requests(journal: Journal) -> None:
    # 0.5 for the first attempt, 0.25 with the reply to the second, 0.25 for its open row.
    assert journal.past().spent == 1.0


def test_all_records_of_a_query_share_one_query(journal: Journal) -> None:
    _, first, second = journal.past().records
    assert first.reply.query is second.reply.query is journal.open_questions()[0].query


def test_replies_are_answers_or_failures_as_they_were(journal: Journal) -> None:
    answer, _, failure = (record.reply for record in journal.past().records)
    assert isinstance(answer, Answer)
    assert answer.values.tolist() == [0.25]
    assert answer.points is answer.query.points
    assert not answer.values.flags.writeable
    assert isinstance(failure, Failure)
    assert failure.reason == "it is late"


def test_a_play_without_an_end_was_interrupted(journal: Journal) -> None:
    trace = journal.to_trace()
    assert trace.ended == INTERRUPTED
    assert trace.ended_early
    assert len(trace) == 2
    assert trace.coordinates == ("x", "y")


def test_an_end_is_none_where_the_play_was_resumed(journal: Journal) -> None:
    with JournalWriter.append_to(journal) as writer:
        writer.end("stopped", at=6.0, spent=3.0)
    ended = read_journal(journal.path)
    assert (ended.past().ended, ended.past().spent) == ("stopped", 3.0)
    with JournalWriter.append_to(ended) as writer:
        writer.event("resumed", "", at=6.0)
    resumed = read_journal(journal.path).past()
    assert (resumed.ended, resumed.spent) == (None, 1.0)


def test_queries_that_no_agent_asked_are_counted(journal: Journal) -> None:
    with JournalWriter.append_to(journal) as writer:
        writer.reply(make_failure(make_query(-7, "lab"), [0]), superseded=False, at=6.0)
        writer.reply(make_failure(make_query(-3, "lab"), [0]), superseded=False, at=6.0)
    assert read_journal(journal.path).past().own_queries == 7


def test_a_second_answer_closes_nothing(path: Path) -> None:
    query = make_query(1, "lab")
    with JournalWriter.create(path, HEADER) as writer:
        writer.ask(make_request(query), at=2.0, key="k")
        writer.reply(make_failure(query, [0], Fate.STRAY), superseded=False, at=3.0)
    assert len(read_journal(path).open_questions()) == 1


def _spoil() -> Iterator[tuple[bytes, bytes, str]]:
    yield b'"fate":"late"', b'"fate":"gone"', "'gone' is not a valid Fate"
    yield b'"rows":[1,2]', b'"rows":[1,3]', r"rows \[1, 3\] of a query of 3 points"
    yield b'"rows":[1]', b'"rows":[]', r"rows \[\] of a query of 3 points"
    yield b'"stds":[0.1]', b'"stds":[0.1,0.1]', "1 rows, 1 values and 2 stds"
    yield b'"upper":[0.5,0.5]', b'"upper":[-1,0.5]', "must lie below upper"
    yield b'"upper":[0.5,0.5]', b'"top":[0.5,0.5]', "'upper'"


@pytest.mark.parametrize(("given", "spoilt", "reason"), list(_spoil()))
def test_what_does_not_fit_is_an_error(
    journal: Journal, given: bytes, spoilt: bytes, reason: str
) -> None:
    content = journal.path.read_bytes()
    assert given in content
    journal.path.write_bytes(content.replace(given, spoilt))
    with pytest.raises(JournalError, match=rf"line \d+: the entry '\w+' does not fit: .*{reason}"):
        read_journal(journal.path).past()


def test_points_keep_the_sign_of_zero(journal: Journal) -> None:
    assert np.signbit(journal.past().turns[0].point[1])


def test_an_entry_has_only_the_points_of_its_rows(path: Path) -> None:
    query = make_query(-1, "lab", points=50)
    with JournalWriter.create(path, HEADER) as writer:
        for row in (3, 4):
            writer.ask(make_request(query, [row]), at=2.0, key="k")
            writer.reply(make_failure(query, [row]), superseded=False, at=3.0)
    with JournalWriter.append_to(read_journal(path)) as writer:
        writer.reply(make_failure(query, [5], Fate.STRAY), superseded=False, at=3.0)
    journal = read_journal(path)
    lines = path.read_bytes().splitlines()[1:]
    assert [b"query_points" in line for line in lines] == [True, False, False, False, False]
    for record in journal.past().records:
        assert np.array_equal(record.reply.query.points, query.points)


def test_points_of_a_query_of_a_move_are_not_told_again(journal: Journal) -> None:
    assert b"query_points" not in journal.path.read_bytes()
    assert len(journal.past().records[2].reply.query.points) == 3


def test_two_queries_with_one_name_keep_their_points(path: Path) -> None:
    asked, other = make_query(1, "lab", points=3), make_query(1, "lab")
    with JournalWriter.create(path, HEADER) as writer:
        writer.move(Move(None, (asked,)), number=1, now=2.0, at=2.0, heard=[])
        writer.reply(make_answer(other), superseded=False, at=3.5)
    (record,) = read_journal(path).past().records
    assert np.array_equal(record.reply.query.points, other.points)


def test_rows_of_a_query_that_nothing_tells_of_are_an_error(path: Path) -> None:
    with JournalWriter.create(path, HEADER) as writer:
        writer.ask(make_request(make_query(1, "lab", points=3), [1]), at=2.0, key="k")
    content = path.read_text()
    path.write_text(content.replace("query_points", "all_points"))
    with pytest.raises(JournalError, match="whose other points are not told"):
        read_journal(path).past()
