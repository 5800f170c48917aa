"""Laws of hearing: an agent is told what has arrived, once, when it has arrived, and as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sparq_sim.messages import Answer, Reply
from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.trace import Trace

__all__ = ["Hearing", "find_misheard"]


@dataclass(slots=True, eq=False)
class Hearing:
    """What an agent was told, and when it was asked for moves."""

    asks: list[float] = field(default_factory=list)
    """The moment of each ask, in clock units."""
    told: list[tuple[int, Reply]] = field(default_factory=list)
    """Each reply, with how many asks came before it."""


def find_misheard(hearing: Hearing, trace: Trace) -> Iterator[Broken]:
    """Yield what an agent was told too early, too late, twice, never, or otherwise than recorded.

    Args:
        hearing: What the agent was told.
        trace: The play.
    """
    asks = hearing.asks
    if asks != sorted(asks):
        yield Broken("an agent's time goes on", f"asked at {asks}")
    told: dict[tuple[str, int, int], tuple[float, float, float]] = {}
    for before, reply in hearing.told:
        number = reply.query.id
        name = reply.query.source
        since = asks[before - 1] if before else 0.0
        if not since <= reply.arrived_at <= asks[before]:
            seen = f"query {number} arrived at {reply.arrived_at}, told before the ask of"
            law = "an answer is told when it has arrived, and at once"
            yield Broken(law, f"{seen} {asks[before]}, after that of {since}", name)
        for place, row in enumerate(reply.rows.tolist()):
            key = name, number, row
            if key in told:
                yield Broken("nothing is told twice", f"query {number}, row {row}", name)
            told[key] = 0.0, 0.0, reply.arrived_at
            if isinstance(reply, Answer):
                told[key] = float(reply.values[place]), reply.measured_at, reply.arrived_at
    yield from _find_other(told, trace, asks[-1])


def _find_other(
    told: dict[tuple[str, int, int], tuple[float, float, float]], trace: Trace, end: float
) -> Iterator[Broken]:
    """Compare what was told with what the trace has for the agent."""
    replies = trace.replies
    to_agent = (replies["asker"] == "agent") | (replies["asker"] == replies["source"])
    due = (replies["heard"] & to_agent).nonzero()[0]
    names = ("source", "query", "row", "value", "measured_at", "arrived_at", "fate", "round")
    heard = set()
    for row in zip(*(replies[name][due].tolist() for name in names), strict=True):
        source, query, place, value, measured, arrived, fate, number = row
        key = source, query, place
        heard.add(key)
        seen = f"query {query}, row {place}, arrived at {arrived}"
        if key not in told:
            if arrived < end:
                yield Broken("what has arrived is told", seen, source, number)
            continue
        recorded = (value, measured, arrived) if fate == "answered" else (0.0, 0.0, arrived)
        if told[key] != recorded:
            law = "what is told is what was recorded"
            yield Broken(law, f"{seen}: told {told[key]}, recorded {recorded}", source, number)
    for source, query, place in told.keys() - heard:
        yield Broken("what is told is recorded", f"query {query}, row {place}", source)
