"""Trace events: the timeline of a play as JSON, for viewers such as ui.perfetto.dev."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sparq_sim.analysis.summary import finite
from sparq_sim.errors import SparqError
from sparq_sim.report.journeys import (
    find_journeys,
    list_outages,
    list_sources,
    split_journey,
)
from sparq_sim.report.network import NetworkData, read_networks
from sparq_sim.report.phases import find_phases
from sparq_sim.report.recall import recall
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns, Trace
from sparq_sim.study.choice import name_in_words
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoredSummary
from sparq_sim.study.store.files import replace_file

__all__ = ["write_timeline"]

Event: TypeAlias = dict[str, Any]
"""An event of the format: phase `ph`, process, time and more."""

_UNIT = 1_000_000
"""Microseconds that stand for a clock unit: the viewer then shows clock units as seconds."""
_PLAY = 1
"""The process of the moves; those of the sources follow."""
_MOVES, _OUTAGES, _FAILURES = 1, 1, 2
"""Threads of the process of the moves, and of those of sources."""


def write_timeline(
    study: Results, path: Path | str, play: StoredSummary, *, allow_import: bool = False
) -> None:
    """Write the timeline of a play as a Chrome trace; it is played again if need be.

    Args:
        study: The study.
        path: The file, which ends in .json.
        play: One of its plays, as `choose_play` finds it.
        allow_import: Whether a play whose replies were not recorded may name code to run, as
            `module:Class`.

    Raises:
        SparqError: The file has another ending or cannot be written, or replies were not recorded,
            and the play cannot be played again as it was.
        StoreError: The play cannot be read.
    """
    path = Path(path)
    if path.suffix != ".json":
        raise SparqError(f"cannot export a timeline to {path.name}; end it in .json")
    stored, title = study.read(play.key), name_in_words(play)
    trace = recall(stored, allow_import=allow_import)
    told = {
        "traceEvents": _list_events(trace, title, stored.provenance.fingerprint),
        "displayTimeUnit": "ms",
        "otherData": {
            "play": title,
            "key": play.key,
            "digest": play.digest,
            "time": "1 clock unit is shown as 1 s: ts and dur are clock units times 1,000,000",
        },
    }
    try:
        with replace_file(path.resolve()) as file:
            file.write(f"{json.dumps(told, allow_nan=False)}\n".encode())
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SparqError(
            f"cannot write {path}: {reason}; make its folder, or choose another file"
        ) from error


def _list_events(trace: Trace, title: str, fingerprint: Mapping[str, Any]) -> list[Event]:
    """List the events of a play: names first, then all else by time.

    Queries are asynchronous events in a process for each source, with their phases within; moves,
    failures and measurements are instants; outages have a duration; what was spent, regret and
    points on their way are counters.
    """
    sources = list_sources(trace.replies)
    processes = {name: _PLAY + 1 + i for i, name in enumerate(sources)}
    described = [*_describe(_PLAY, title, {_MOVES: "moves"})]
    for name, process in processes.items():
        described += _describe(process, name, {_OUTAGES: "outages", _FAILURES: "failures"})
    events = [*_list_moves(trace), *_list_queries(trace, processes)]
    events += _list_flying(trace.replies, processes)
    events += _list_outages(fingerprint, processes)
    # Events of the same moment stay in their order: what begins within another begins after it.
    return [*described, *sorted(events, key=lambda event: event["ts"])]


def _describe(process: int, name: str, threads: Mapping[int, str]) -> Iterator[Event]:
    """Yield the names of a process and of its threads, and its place among processes."""

    def tell(what: str, thread: int, args: Mapping[str, Any]) -> Event:
        named = {"ph": "M", "name": what, "pid": process, "tid": _number(process, thread)}
        return {**named, "args": dict(args)}

    yield tell("process_name", 0, {"name": name})
    yield tell("process_sort_index", 0, {"sort_index": process})
    for thread, called in threads.items():
        yield tell("thread_name", thread, {"name": called})


def _make(
    ph: str, name: str, process: int, time: float, *, thread: int = 0, **fields: Any
) -> Event:
    named = {"ph": ph, "name": name, "pid": process, "tid": _number(process, thread)}
    return {**named, "ts": time * _UNIT, **fields}


def _number(process: int, thread: int) -> int:
    """Return a number that no thread of another process has; 0 has a meaning of its own."""
    return 10 * process + thread


def _list_moves(trace: Trace) -> Iterator[Event]:
    rounds = trace.rounds
    for row, time in enumerate(rounds["played_at"].tolist()):
        told = ("round", "reward", "best", "regret", *trace.coordinates)
        args = {name: _read(rounds[name][row]) for name in told}
        name = (
            f"round {args['round']}" if rounds["moved"][row] else f"round {args['round']}: no move"
        )
        yield _make("i", name, _PLAY, time, thread=_MOVES, cat="move", s="t", args=args)
        for counter in ("spent", "regret"):
            if (value := _read(rounds[counter][row])) is not None:
                yield _make("C", counter, _PLAY, time, args={counter: value})


def _list_queries(trace: Trace, processes: Mapping[str, int]) -> Iterator[Event]:
    replies = trace.replies
    starts = find_journeys(replies)
    ends = [*starts[1:].tolist(), len(replies["round"])]
    networks, _ = read_networks(trace.accounts)
    lives = _list_lives(trace, starts, networks)
    for journey, (start, end) in enumerate(zip(starts.tolist(), ends, strict=True)):
        row = {name: _read(column[start]) for name, column in replies.items()}
        source = row["source"]
        asked, arrived = row["asked_at"], row["arrived_at"]
        same = {"cat": source, "id": f"{source}/{row['query']}/{journey}"}
        # Those of one name share a track, in which the viewer finds them lanes.
        process, name = processes[source], "query"
        args = _tell(trace, row, slice(start, end))
        yield _make("b", name, process, asked, **same, args=args)
        if row["measured_at"] is not None:
            yield _make("n", "measured", process, row["measured_at"], **same)
        for phase, begun, over in split_journey(row):
            yield _make("b", phase, process, begun, **same)
            yield _make("e", phase, process, over, **same)
        yield _make("e", name, process, arrived, **same, args={"fate": row["fate"]})
        if row["fate"] != Fate.ANSWERED:
            yield _make(
                "i",
                row["fate"],
                process,
                arrived,
                thread=_FAILURES,
                cat="failure",
                s="t",
                args=args,
            )
        yield from _tell_lives(lives.get(journey, {}), same, process)


def _tell(trace: Trace, row: Mapping[str, Any], rows: slice) -> Event:
    """Return what was asked, and what became of it."""
    replies = trace.replies
    told = (
        "query",
        "asker",
        "fate",
        "attempt",
        "asked_at",
        "measured_at",
        "arrived_at",
        "reason",
        "fault",
    )
    args = {name: row[name] for name in told if row[name] not in ("", None)}
    if row["measured_at"] is not None:
        args["age"] = row["arrived_at"] - row["measured_at"]
    points = np.stack([replies[name][rows] for name in trace.coordinates], axis=1)
    values = [_read(value) for value in replies["value"][rows]]
    return args | {
        "points": points.tolist(),
        **({"values": values} if row["fate"] == Fate.ANSWERED else {}),
        "cost": float(replies["cost"][rows].sum()),
    }


_Life: TypeAlias = dict[int, list[tuple[str, str, float, float]]]
"""Of a query on a network: by point, its node, phase, start and end."""


def _list_lives(
    trace: Trace, starts: np.ndarray[Any, Any], networks: Sequence[NetworkData]
) -> dict[int, _Life]:
    columns, names, nodes = find_phases(networks, trace, starts, np.ones(len(starts), dtype=bool))
    asked = trace.replies["asked_at"][starts]
    lives: dict[int, _Life] = {}
    for journey, place, phase, node, start, length in zip(
        *(
            columns[name].tolist()
            for name in ("journey", "place", "phase", "node", "start", "length")
        ),
        strict=True,
    ):
        begun = float(asked[int(journey)]) + start
        life = lives.setdefault(int(journey), {}).setdefault(place, [])
        life.append((nodes[int(node)], names[phase], begun, begun + length))
    return lives


def _tell_lives(life: _Life, same: Mapping[str, Any], process: int) -> Iterator[Event]:
    """Yield the phases of each point, which may overlap those of others and outlast the query."""
    for place, phases in life.items():
        own: dict[str, Any] = {**same, "id": f"{same['id']}/{place}"}
        node, _, begun, _ = phases[0]
        yield _make("b", node, process, begun, **own)
        now = begun
        for _, phase, start, end in phases:
            # What was rounded must not overlap.
            yield _make("b", phase, process, max(now, start), **own)
            now = max(now, end)
            yield _make("e", phase, process, now, **own)
        yield _make("e", node, process, now, **own)


def _list_flying(replies: Columns, processes: Mapping[str, int]) -> Iterator[Event]:
    """Yield how many points of each source are on their way, whenever that changes."""
    for source, process in processes.items():
        own = replies["source"] == source
        asked, arrived = (np.sort(replies[name][own]) for name in ("asked_at", "arrived_at"))
        moments = np.unique(np.concatenate([asked, arrived]))
        counts = np.searchsorted(asked, moments, "right") - np.searchsorted(
            arrived, moments, "right"
        )
        for time, count in zip(moments.tolist(), counts.tolist(), strict=True):
            yield _make("C", "points on their way", process, time, args={"points": count})


def _list_outages(fingerprint: Mapping[str, Any], processes: Mapping[str, int]) -> Iterator[Event]:
    """Yield the outages that the channels of the play declare."""
    outages = list_outages(fingerprint)
    for source, process in processes.items():
        for start, end in outages.get(source, ()):
            yield _make(
                "X",
                "outage",
                process,
                start,
                thread=_OUTAGES,
                cat="outage",
                dur=(end - start) * _UNIT,
            )


def _read(value: Any) -> Any:
    """Return a number or a word of a column as JSON can write it."""
    return finite(value.item())
