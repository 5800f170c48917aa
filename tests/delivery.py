"""Ask sources over their channels, without an engine, and look at what becomes of it."""

from __future__ import annotations

from collections.abc import Callable

from sparq_sim import Channel, Query
from sparq_sim.arrays import all_rows
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.expert import Answering
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.connection import Connection
from sparq_sim.simulation.delivery.context import PlayContext
from sparq_sim.simulation.delivery.request import Question
from sparq_sim.simulation.delivery.road import build_road
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import Record


def context_on(
    clock: Clock,
    landscape: Landscape,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    hear: Callable[[Record], None] | None = None,
) -> PlayContext:
    """Return the context of a play whose records are kept, or go to *hear*."""
    recorder = Recorder(landscape.domain.names)
    return PlayContext(
        clock,
        Streams(seed),
        landscape,
        recorder=recorder,
        to_agent=hear or recorder.records.append,
        budget=budget or Budget(),
    )


def connect(name: str, source: Answering, channel: Channel, context: PlayContext) -> Connection:
    """Connect a source to a play, with the policy of its channel."""
    connection = Connection(name, source, channel, context)
    context.links[name] = build_road(connection)
    return connection


def ask(context: PlayContext, query: Query) -> None:
    """Put a query to its source in the agent's name."""
    question = Question(query, all_rows(len(query.points)), context.to_agent)
    context.links[query.source].ask(question)
