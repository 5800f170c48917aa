"""Rounds and replies as tests of traces write them down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sparq_sim.messages import Answer, Failure, Query
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import Fate, Record, Turn
from sparq_sim.simulation.trace import Trace

EAST_NORTH = ("east", "north")


def turn(
    number: int = 1,
    *,
    reward: float = 1.0,
    wall: float = 0.1,
    notes: Mapping[str, float] | None = None,
) -> Turn:
    return Turn(
        round=number,
        started_at=number - 1.0,
        played_at=number - 0.5,
        moved=number != 2,
        point=np.array([number, -number], dtype=float),
        reward=reward,
        best=3.0,
        spent=0.5 * number,
        wall=wall,
        notes=notes or {},
    )


def query(number: int = 1, source: str = "scout", *, rows: int = 2) -> Query:
    return Query(number, source, np.arange(2.0 * rows).reshape(rows, 2), 1.0)


def answered(
    asked: Query,
    rows: Sequence[int],
    arrived_at: float = 2.0,
    *,
    notes: Mapping[str, float] | None = None,
) -> Record:
    reply = Answer(
        query=asked,
        rows=np.array(rows, dtype=np.intp),
        values=10.0 + np.array(rows, dtype=float),
        stds=np.full(len(rows), 0.1),
        asked_at=asked.asked_at,
        measured_at=arrived_at - 0.25,
        arrived_at=arrived_at,
        cost=0.5,
        notes=notes or {},
    )
    return Record(reply, Fate.ANSWERED, True, 2, "agent", 1.25, 1.75)


def lost(asked: Query, rows: Sequence[int], arrived_at: float = 2.0) -> Record:
    reply = Failure(asked, np.array(rows, dtype=np.intp), "gone", asked.asked_at, arrived_at, 0.25)
    return Record(reply, Fate.LOST, False, 2, "agent", math.nan, math.nan)


def traced(turns: Sequence[Turn] = (), records: Sequence[Record] = ()) -> Trace:
    recorder = Recorder(EAST_NORTH)
    for one in turns:
        recorder.turns.append(one)
    for record in records:
        recorder.records.append(record)
    return recorder.trace(ended="horizon", spent=1.5)
