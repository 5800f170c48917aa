"""A journal with an entry of each kind, and more than one of most."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sparq_sim.arrays import all_rows, freeze_array
from sparq_sim.domain import Box
from sparq_sim.journal.entries import Header, SourceTraits
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.messages import AGENT_NAME, REWARD, Failure, Move, Query
from sparq_sim.simulation.delivery.request import Drawn, Question, Request
from sparq_sim.simulation.records import Fate, Record, Turn

HEADER = Header(
    play="0123456789abcdef" * 2,
    unix=1.75e9,
    seconds=0.5,
    optimizer="gp-ucb",
    seed=3,
    replication=1,
    period=2.0,
    rounds=8,
    domain=Box([0.0, -1.0], [1.0, 1.0], ["x", "y"]),
    title="Ünter Tage",
    sources={REWARD: SourceTraits(real=True), "lab": SourceTraits(idempotent=True)},
)


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Make a folder where making things durable takes no time, if the system has such a place."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as folder:
        yield Path(folder)


def make_query(number: int, source: str, *, points: int = 1, asked_at: float = 2.0) -> Query:
    return Query(number, source, np.linspace(0.1, 0.9, 2 * points).reshape(points, 2), asked_at)


def make_request(
    query: Query, rows: list[int] | None = None, *, cost: float = 0.0, **more: Any
) -> Request:
    chosen = all_rows(len(query.points)) if rows is None else np.array(rows, dtype=np.intp)
    drawn = Drawn(
        rows=chosen,
        subquery=query,
        origin=(1, 0),
        cost=cost,
        service=0.0,
        transit=0.0,
        lost=False,
        units=None,
        fault=None,
    )
    return Request(Question(query, chosen, lambda record: None), drawn, 1, cost, **more)


def make_answer(query: Query, *, cost: float = 0.0) -> Record:
    values = np.arange(len(query.points)) + 0.25
    answer = query.answer(values, stds=0.1, arrived_at=query.asked_at + 1.5, cost=cost)
    return Record(answer, Fate.ANSWERED, True, 1, AGENT_NAME, query.asked_at, query.asked_at + 1)


def make_failure(
    query: Query, rows: list[int], fate: Fate = Fate.LATE, *, attempt: int = 1, cost: float = 0.0
) -> Record:
    asked_at = query.asked_at
    chosen = np.array(rows, dtype=np.intp)
    failure = Failure(query, chosen, f"it is {fate}", asked_at, asked_at + 1, cost)
    return Record(failure, fate, True, 1, AGENT_NAME, nan, nan, attempt)


def make_turn(number: int, **numbers: float) -> Turn:
    given = {"reward": 0.5, "best": nan, "spent": 1.0, "wall": 0.01} | numbers
    return Turn(
        round=number,
        started_at=2.0 * number,
        played_at=2.0 * number,
        moved=True,
        point=freeze_array([0.5, -0.0]),
        notes={"width": 1.5},
        meters={"lab_energy": nan},
        **given,
    )


def write_sample(path: Path) -> JournalWriter:
    """Write entries of each kind, and leave the writer open."""
    journal = JournalWriter.create(path, HEADER)
    reward, lab = make_query(1, REWARD), make_query(1, "lab", points=3)
    journal.event("safe", "hold", at=0.0)
    first = Move(freeze_array([0.5, -0.0]), (lab,), {"width": 2.0}, effort=3.0)
    journal.move(first, number=1, now=2.0, at=2.0, heard=[])
    journal.ask(make_request(reward), at=2.0, key="k/reward/1/0")
    journal.ask(make_request(lab, cost=0.5), at=2.0, key="k/lab/1/0")
    journal.sync()
    answer = make_answer(reward)
    journal.reply(answer, superseded=False, at=3.5)
    journal.turn(make_turn(1), at=3.9)
    journal.reply(make_failure(lab, [0, 1, 2], cost=0.5), superseded=True, at=3.9)
    journal.ask(make_request(lab, [1, 2], cost=0.25, attempt=2), at=3.95, key="k/lab/1/1")
    late = make_failure(lab, [1], attempt=2, cost=0.25)
    journal.reply(late, superseded=False, at=4.0)
    journal.move(Move(None), number=2, now=4.0, at=4.5, heard=[answer, late])
    journal.event("bounds", "narrower", at=5.0, lower=np.array([0.0, 0.0]), upper=[0.5, 0.5])
    journal.turn(make_turn(2, reward=nan), at=5.5)
    return journal
