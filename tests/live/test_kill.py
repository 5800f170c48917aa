"""A live play that is killed again and again loses nothing and does nothing twice."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from sparq_sim.journal.entries import AskEntry, MoveEntry
from sparq_sim.journal.reader import Journal, read_journal
from sparq_sim.messages import REWARD
from sparq_sim.study.results import Results
from tests.conftest import PATIENCE
from tests.live.plant import read_log
from tests.live.playing import Process

SCENARIO = """
rounds = {rounds}
seed = {seed}
access = "domain"
[environment]
kind = "tests.live.plant:Plant"
log = "{folder}/log"
honours = {honours}
takes = 0.01
[feedback]
cost = 0.125
[experts.lab]
kind = "tests.live.plant:Lab"
log = "{folder}/log"
honours = {honours}
takes = 0.06
channel = {{cost = 0.5, capacity = 2}}
[optimizers.prober]
kind = "tests.live.plant:Prober"
[live]
seconds = 0.04
"""


class Killed:
    """A live play that is killed at random moments, and what was seen of it each time."""

    def __init__(self, folder: Path, rounds: int, seed: int, *, honours: bool) -> None:
        self.folder = folder
        self.rng = Random(seed)
        self.file = folder / "killed.toml"
        self.out = folder / "out"
        self.journal = self.out / "journal.jsonl"
        text = SCENARIO.format(
            rounds=rounds, seed=seed, folder=folder, honours=str(honours).lower()
        )
        self.file.write_text(text)

    def start(self) -> Process:
        """Begin the play, or go on with it."""
        more = ["--resume"] if self.journal.exists() else []
        return Process(str(self.file), "--out", str(self.out), *more)

    def kill_some_time(self) -> bool:
        """Run and kill it at a random moment; return whether it was over before."""
        before = self._size()
        with self.start() as child:
            deadline = time.monotonic() + PATIENCE
            while self._size() == before and child.process.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.002)
            time.sleep(self.rng.uniform(0.0, 0.25))
            is_over = child.process.poll() is not None
            child.kill()
            return is_over

    def check(self) -> Journal:
        """Check that what the plant and the laboratory were asked is all in the journal."""
        journal = read_journal(self.journal)
        asks = {entry.key: entry for entry in journal.entries if isinstance(entry, AskEntry)}
        moves = {
            entry.round: entry.point for entry in journal.entries if isinstance(entry, MoveEntry)
        }
        for line in read_log(self.folder / "log"):
            if "key" in line:
                assert asks[line["key"]].points == line["points"]
            if line["what"] == "apply":
                assert [moves[asks[line["key"]].query]] == line["points"]
        return journal

    def _size(self) -> int:
        return self.journal.stat().st_size if self.journal.exists() else 0


def list_answered(journal: Journal) -> set[str]:
    play = journal.header.play
    return {
        f"{play}/{record.reply.query.source}/{record.reply.query.id}/{record.reply.rows[0]}"
        for record in journal.past().records
    }


def list_asked(folder: Path) -> list[str]:
    return [line["key"] for line in read_log(folder / "log") if "key" in line]


def play_and_kill(folder: Path, kills: int, *, honours: bool, seed: int) -> None:
    rounds = 8 * kills
    killed = Killed(folder, rounds, seed, honours=honours)
    count, was_open = 0, 0
    while count < kills:
        known = list_answered(read_journal(killed.journal)) if killed.journal.exists() else set()
        kept = killed.journal.read_bytes() if killed.journal.exists() else b""
        asked = list_asked(folder)
        assert not killed.kill_some_time(), "it was over before it was killed often enough"
        count += 1
        if not killed.journal.exists():
            continue
        journal = killed.check()
        was_open += len(journal.open_questions())
        whole = kept[: kept.rfind(b"\n") + 1]
        assert killed.journal.read_bytes().startswith(whole)
        again = list_asked(folder)[len(asked) :]
        assert not known.intersection(again)
        assert honours or not set(asked).intersection(again)
    with killed.start() as child:
        code, told = child.end()
    assert code == 0, told
    assert was_open
    trace = killed.check().to_trace()
    assert trace.ended == "rounds"
    assert trace.rounds["round"].tolist() == list(range(1, rounds + 1))
    assert trace.spent == trace.replies["cost"].sum()
    spent = 0.5 * (trace.replies["source"] == "lab").sum() / 2
    spent += 0.125 * (trace.replies["source"] == REWARD).sum()
    assert trace.spent == pytest.approx(spent)
    ends = {
        (source, query, row)
        for source, query, row in zip(
            *(trace.replies[name].tolist() for name in ("source", "query", "row")), strict=True
        )
    }
    moves = trace.rounds["moved"].sum()  # A busy machine may be too late for a round.
    assert len(ends) == len(trace.replies["row"]) == 3 * moves
    assert ("interrupted" in trace.replies["reason"]) is not honours
    (stored,) = Results.open(killed.out).table().to_pylist()[-1:]
    assert (stored["round"], stored["valve"]) == (rounds, trace.points[-1, 0])


@pytest.mark.parametrize("honours", [True, False])
def test_killed_again_and_again_a_play_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, honours: bool
) -> None:
    play_and_kill(tmp_path, 2, honours=honours, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("honours", [True, False])
def test_killed_at_twenty_moments_a_play_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, honours: bool
) -> None:
    play_and_kill(tmp_path, 20, honours=honours, seed=17)
