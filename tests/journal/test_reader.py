from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.errors import JournalError
from sparq_sim.journal.entries import EventEntry, MoveEntry
from sparq_sim.journal.reader import JournalTail, read_journal
from sparq_sim.journal.writer import JournalWriter
from tests.journal.samples import HEADER, write_sample


@pytest.fixture
def lines(path: Path) -> list[bytes]:
    write_sample(path).close()
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("records", [1, 2])
def test_a_journal_cut_at_any_byte_of_its_last_records_loses_at_most_these_and_goes_on(
    path: Path, lines: list[bytes], records: int
) -> None:
    whole = read_journal(path).entries
    kept = b"".join(lines[:-records])
    rest = b"".join(lines[-records:])
    for count in range(len(rest) + 1):
        path.write_bytes(kept + rest[:count])
        journal = read_journal(path)
        survived = len(whole) - records + rest[:count].count(b"\n")
        assert repr(journal.entries) == repr(whole[:survived])  # NaN is not equal to NaN.
        assert journal.whole_bytes + journal.cut_bytes == len(kept) + count
        journal.past()
        with JournalWriter.append_to(journal) as writer:
            writer.event("resumed", "goes on", at=9.0)
        again = read_journal(path)
        assert again.cut_bytes == 0
        assert again.entries[:-1] == whole[:survived]
        assert again.entries[-1].n == survived + 1


@pytest.mark.parametrize("damage", [b"", b"\x00" * 40, b"not JSON", b'{"type":"end"}', b"[1, 2]"])
@pytest.mark.parametrize("place", [2, 5])
def test_damage_before_the_last_line_is_an_error_with_file_line_and_remedy(
    path: Path, lines: list[bytes], damage: bytes, place: int
) -> None:
    lines[place - 1] = damage + b"\n"
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError) as caught:
        read_journal(path)
    assert str(caught.value).startswith(f"{path}, line {place}: it is no ") or (
        "the entry 'end' has a wrong n: Field required" in str(caught.value)
    )
    remedy = f"or keep what is before: head -n {place - 1} {path} > whole.jsonl"
    assert str(caught.value).endswith(remedy)


def test_a_line_that_is_missing_or_there_twice_is_an_error(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    with pytest.raises(JournalError, match="line 4: it has the number 4; expected 3; restore"):
        read_journal(path)
    path.write_bytes(b"".join(lines[:4] + lines[3:]))
    with pytest.raises(JournalError, match="line 5: it has the number 3; expected 4; restore"):
        read_journal(path)


def test_a_last_line_that_is_whole_and_damaged_is_an_error(path: Path, lines: list[bytes]) -> None:
    path.write_bytes(b"".join(lines[:-1]) + b"{}\n")
    with pytest.raises(JournalError, match=f"line {len(lines)}: it is no entry of a journal"):
        read_journal(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "has no whole first line, so that no play can have begun; delete it"),
        (b'{"type":"play","jour', "has no whole first line"),
        (b"x,y\n1,2\n", "line 1: it is no JSON"),
        (b'{"type":"end"}\n', "expected the header of a journal, not the entry 'end'; is this"),
    ],
)
def test_what_is_no_journal_is_refused(path: Path, content: bytes, reason: str) -> None:
    path.write_bytes(content)
    with pytest.raises(JournalError, match=reason):
        read_journal(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"play\.jsonl cannot be read: No such file"):
        read_journal(tmp_path / "play.jsonl")
    with pytest.raises(JournalError, match="cannot be read: Is a directory"):
        read_journal(tmp_path)


def test_a_journal_can_be_read_while_it_is_written(path: Path) -> None:
    with write_sample(path) as writer:
        count = len(read_journal(path).entries)
        writer.end("rounds", at=9.0, spent=1.0)
        assert len(read_journal(path).entries) == count + 1


def test_entries_that_contradict_each_other_are_an_error_with_its_line(
    path: Path, lines: list[bytes]
) -> None:
    place = next(i for i, line in enumerate(lines) if b'"heard":[5' in line)
    lines[place] = lines[place].replace(b'"heard":[5', b'"heard":[4')
    path.write_bytes(b"".join(lines))
    journal = read_journal(path)
    with pytest.raises(JournalError, match=rf"line {place + 1}: .* hears the replies \[4\]"):
        journal.past()


# A tail.


def test_a_tail_returns_what_was_written_since_and_leaves_half_a_line(
    path: Path, lines: list[bytes]
) -> None:
    content = b"".join(lines)
    path.write_bytes(b"")
    tail = JournalTail(path)
    seen = []
    for begin in range(0, len(content), 37):
        with path.open("ab") as file:
            file.write(content[begin : begin + 37])
        seen += tail.poll()
        assert tail.whole_bytes + tail.cut_bytes == min(begin + 37, len(content))
    assert repr(seen) == repr(read_journal(path).entries)
    assert tail.header is not None
    assert tail.header.play == HEADER.play
    assert tail.poll() == []


def test_a_tail_goes_on_where_a_cut_line_was_removed_and_another_written(path: Path) -> None:
    write_sample(path).close()
    with path.open("ab") as file:
        file.write(b'{"type":"eve')
    tail = JournalTail(path)
    before = tail.poll()
    with JournalWriter.append_to(read_journal(path)) as writer:
        writer.event("resumed", "", at=9.0)
    (after,) = tail.poll()
    assert isinstance(before[1], MoveEntry)
    assert isinstance(after, EventEntry)
    assert after.n == len(before) + 1


def test_a_tail_notices_that_a_file_is_another_and_shorter(path: Path) -> None:
    write_sample(path).close()
    tail = JournalTail(path)
    tail.poll()
    path.unlink()
    JournalWriter.create(path, HEADER).close()
    with pytest.raises(JournalError, match="has become shorter than what was read of it before"):
        tail.poll()
    path.unlink()
    with pytest.raises(JournalError, match="cannot be read: No such file"):
        tail.poll()
