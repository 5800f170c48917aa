from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import EndEntry, EventEntry, MoveEntry
from sparq_sim.journal.reader import read_journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.messages import Move
from tests.journal.samples import HEADER, make_answer, make_query, make_request, write_sample
from tests.journal.test_durable_file import at_most


def test_a_journal_is_a_context_manager_and_lets_go_of_its_file(path: Path) -> None:
    with JournalWriter.create(path, HEADER) as writer:
        assert writer.path == path
        assert writer.play_id == HEADER.play
        writer.end("rounds", at=3.0, spent=1.0)
    with JournalWriter.append_to(read_journal(path)) as writer:
        writer.event("resumed", "", at=3.0)
    assert [type(entry) for entry in read_journal(path).entries] == [EndEntry, EventEntry]


def test_entries_are_numbered_and_dated(path: Path) -> None:
    write_sample(path).close()
    entries = read_journal(path).entries
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    moments = [entry.at for entry in entries]
    assert moments == sorted(moments)
    dates = [entry.unix for entry in entries]
    assert dates == sorted(dates)
    assert dates[0] > HEADER.unix


def test_a_move_and_its_requests_are_written_together(path: Path) -> None:
    with JournalWriter.create(path, HEADER) as writer:
        before = path.read_bytes()
        writer.move(Move(np.array([0.5, 0.5])), number=1, now=2.0, at=2.0, heard=[])
        writer.ask(make_request(make_query(1, "reward")), at=2.0, key="k")
        assert path.read_bytes() == before
        writer.sync()
        assert len(read_journal(path).entries) == 2


def test_a_step_for_which_there_is_no_room_is_written_when_there_is(path: Path) -> None:
    with JournalWriter.create(path, HEADER) as writer:
        writer.move(Move(np.array([0.5, 0.5])), number=1, now=2.0, at=2.0, heard=[])
        with at_most(path.stat().st_size + 20):
            with pytest.raises(JournalError, match="File too large"):
                writer.sync()
            with pytest.raises(JournalError, match="File too large"):
                writer.event("failure", "the disk is full", at=2.0)
        assert not read_journal(path).entries
        writer.event("continued", "there is room", at=3.0)
    first, second = read_journal(path).entries
    assert isinstance(first, MoveEntry)
    assert isinstance(second, EventEntry)


def test_a_move_cannot_hear_what_was_not_written(path: Path) -> None:
    heard = [make_answer(make_query(1, "lab"))]
    with (
        JournalWriter.create(path, HEADER) as writer,
        pytest.raises(JournalError, match="a move hears a reply that was not written"),
    ):
        writer.move(Move(None), number=1, now=2.0, at=2.0, heard=heard)


def test_a_move_after_the_interruption_hears_replies_from_before(path: Path) -> None:
    with JournalWriter.create(path, HEADER) as writer:
        writer.reply(make_answer(make_query(1, "lab")), superseded=False, at=3.5)
    journal = read_journal(path)
    with JournalWriter.append_to(journal) as writer:
        writer.move(Move(None), number=2, now=4.0, at=4.0, heard=journal.past().records)
    past = read_journal(path).past()
    assert past.thoughts[0].heard == tuple(past.records)
