"""Attacks by the journal of a play that somebody else has made."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.documents import MOST_LEVELS
from sparq_sim.errors import JournalError
from sparq_sim.journal import reader
from sparq_sim.journal.reader import read_journal
from tests.cli.invoking import ends_with, said
from tests.live.playing import plan, play
from tests.live.watch.pages import watching
from tests.security.watchmen import watch


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    play(plan(tmp_path, rounds=12), tmp_path / "out")
    return tmp_path / "out" / "journal.jsonl"


def change_header(journal: Path, **fields: Any) -> None:
    first, _, rest = journal.read_text().partition("\n")
    journal.write_text(json.dumps(json.loads(first) | fields) + "\n" + rest)


def test_a_journal_cannot_name_code_to_import(journal: Path) -> None:
    named = {"kind": "canary:Canary"}
    scenario = read_journal(journal).header.scenario
    change_header(journal, scenario={**scenario, "environment": named, "optimizer": named})
    folder = journal.parent
    (folder.parent / "again.toml").write_text(
        'rounds = 2\noptimizers = ["uniform"]\n[environment]\nkind = "synthetic"\n'
        '[experts.lab]\nkind = "replay"\nfile = "out/journal.jsonl"\nsource = "lab"\n'
    )
    seen, codes, text = watch(
        *("calibrate out/journal.jsonl", "check again.toml", "compare out", "report out"),
        cwd=folder.parent,
    )
    assert seen == []
    assert set(codes) <= {0, 2}
    assert "Traceback" not in text


def test_to_watch_a_journal_imports_nothing_that_it_names(
    journal: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tests.live.watch.pages import ask

    mark = tmp_path / "sung"
    (tmp_path / "canary_watched.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    scenario = read_journal(journal).header.scenario
    change_header(journal, scenario={**scenario, "optimizer": {"kind": "canary_watched:Canary"}})
    with watching(journal) as server:
        text = ""
        while "names code to import" not in text:
            text = ask(server)[1]
    assert not mark.exists()


def test_a_line_without_end_is_refused(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LONGEST_LINE", 20_000)
    with journal.open("ab") as file:
        file.write(b'{"type": "event", "text": "' + b"x" * 50_000)
    with pytest.raises(JournalError, match="longer than 20000 bytes"):
        read_journal(journal)


def test_a_journal_that_is_longer_than_what_is_read_at_once_is_read_whole(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = read_journal(journal)
    longest = max(map(len, journal.read_bytes().splitlines())) + 1
    monkeypatch.setattr(reader, "LONGEST_LINE", longest)
    again = read_journal(journal)
    assert repr(again.entries) == repr(whole.entries)
    assert (again.whole_bytes, again.cut_bytes) == (whole.whole_bytes, whole.cut_bytes)


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 900, 100_000])
def test_a_journal_that_is_nested_deeply_is_refused(journal: Path, levels: int) -> None:
    first, _, rest = journal.read_text().partition("\n")
    deep = '{"a":' * levels + "1" + "}" * levels
    scenario = json.dumps(json.loads(first)["scenario"])
    journal.write_text(first.replace(scenario, deep) if scenario in first else first)
    header = {**json.loads(first), "scenario": "HERE"}
    journal.write_text(json.dumps(header).replace('"HERE"', deep) + "\n" + rest)
    told = ends_with(2, "calibrate", str(journal))
    assert "nested deeper than 100 levels" in told


def test_names_of_a_journal_write_no_toml_of_their_own(
    journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `calibrate` prints is pasted into scenarios."""
    hostile = 'x"]\n[environment]\nkind = "program"\ncommand = ["sh"]\n#\x7f\x1b'
    journal.write_text(journal.read_text().replace('"lab"', json.dumps(hostile)))
    printed = ends_with(0, "calibrate", str(journal))
    tables = tomllib.loads(printed)
    assert set(tables) <= {"feedback", "experts"}
    assert len(tables.get("experts", {})) <= 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", printed)


def test_text_that_is_no_journal_is_shown_in_part_and_masked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_bytes(b"\x1b]0;title\x07" + b"secret " * 1000 + b"\n")
    told = said(capsys, "calibrate", str(file))
    assert "\x1b" not in told
    assert len(told) < 1000
