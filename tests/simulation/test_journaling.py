"""Plays are the same whether somebody writes them down or not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.journal.header import make_header
from sparq_sim.journal.reader import Journal, read_journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.live.play import live
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.randomness import Streams
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop

RULES = Rules(rounds=12)
CHANNEL = Channel(
    transit=1.5, noise=0.1, cost=0.5, loss=0.2, patience=4.0, capacity=2, policy={"retries": 1}
)


def play_with_journal(file: Path) -> tuple[Trace, Journal]:
    experts = {"teller": (Teller(), CHANNEL)}
    played = Played(Asker(), Slope(), RULES, experts, Channel(noise=0.1), 3, 0)
    domain = Slope().start(Streams(3, 0).generator("environment")).domain
    with JournalWriter.create(file, make_header(played, domain)) as journal:
        trace = play(
            Asker(),
            Slope(),
            RULES,
            experts=experts,
            feedback=Channel(noise=0.1),
            seed=3,
            journal=journal,
        )
    return trace, read_journal(file)


def test_a_play_with_a_journal_is_the_same_as_without(tmp_path: Path) -> None:
    trace, journal = play_with_journal(tmp_path / "journal.jsonl")
    experts = {"teller": (Teller(), CHANNEL)}
    plain = play(Asker(), Slope(), RULES, experts=experts, feedback=Channel(noise=0.1), seed=3)
    assert trace.digest() == plain.digest() == journal.to_trace().digest()


def test_journals_of_virtual_and_of_real_time_are_alike(tmp_path: Path) -> None:
    _, virtual = play_with_journal(tmp_path / "journal.jsonl")
    given: dict[str, Any] = {
        "rounds": 12,
        "seed": 3,
        "environment": Slope(),
        "feedback": {"noise": 0.1},
        "experts": {"teller": (Teller(), CHANNEL)},
        "optimizers": {"asker": Asker()},
    }
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        runner.run(live(Scenario(**given), folder=tmp_path / "live"))
    real = read_journal(tmp_path / "live" / "journal.jsonl")

    def list_steps(journal: Journal) -> list[tuple[object, ...]]:
        return [
            (
                entry.type,
                round(entry.at, 6),
                getattr(entry, "source", ""),
                getattr(entry, "query", 0),
                getattr(entry, "point", None),
                getattr(entry, "values", None),
            )
            for entry in journal.entries
        ]

    assert list_steps(real) == list_steps(virtual)
