"""Laws of time: the order of stages, patience, outages, and the end of a play."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import EPSILON, LawOfPlays, Ledger, Rows
from sparq_sim.simulation.records import Fate

__all__ = ["LAWS_OF_TIME"]

_STAGES = ("asked_at", "served_at", "sent_at", "arrived_at")


def _stages_in_order(ledger: Ledger) -> Iterator[Broken]:
    """Asked, served, sent and arrived, in this order; what is answered went through all."""
    stages = np.array([ledger[name] for name in _STAGES])
    answered = ledger.answered
    travelled = answered & ~ledger.shared
    skipped = travelled & np.isnan(stages).any(axis=0)
    yield from ledger.broken("an answer goes through every stage", skipped, *_STAGES)
    # What never got to a stage has NaN there, and goes on from the stage before.
    reached = np.fmax.accumulate(stages, axis=0)
    early: Rows = np.asarray((stages < reached).any(axis=0), dtype=bool)
    yield from ledger.broken("stages come in their order", early, *_STAGES)
    measured, arrived = ledger["measured_at"], ledger["arrived_at"]
    undated = np.isfinite(measured) != answered
    yield from ledger.broken("an answer has a date, and a failure none", undated, "measured_at")
    latest = np.where(ledger.shared, arrived, ledger["sent_at"])
    future = answered & ~((measured >= 0) & (measured <= latest))
    yield from ledger.broken(
        "an answer is measured before it is sent", future, "measured_at", "sent_at", "arrived_at"
    )


def _within_the_play(ledger: Ledger) -> Iterator[Broken]:
    """Let replies stand in the order of arrival, and nothing arrive after the end."""
    arrived = ledger["arrived_at"]
    back = np.zeros(len(arrived), dtype=bool)
    back[1:] = arrived[1:] < arrived[:-1]
    yield from ledger.broken("replies stand in the order of arrival", back, "arrived_at")
    if not ledger.is_live:  # A machine may be late.
        after = ~(arrived <= ledger.rules.ends_at * (1 + EPSILON))
        yield from ledger.broken("nothing arrives after the end", after, "arrived_at")


def _within_patience(ledger: Ledger) -> Iterator[Broken]:
    """Nobody waits longer than the channel has it, nor gives up before."""
    waited = ledger["arrived_at"] - ledger["asked_at"]
    # Who shares an answer shares the end of the first one's patience.
    late = ledger.of_fate(Fate.LATE) & ~ledger.shared
    for name, channel in ledger.channels.items():
        patience, timeout = channel.patience, channel.policy.timeout
        slack = EPSILON * (1 + ledger["arrived_at"])
        hasty = late & ledger.of(name) & (waited < min(patience, timeout) - slack)
        yield from ledger.broken("who gives up has waited", hasty, "asked_at", "arrived_at")
        first = ledger.first_put(name)
        if first is not None and patience < inf and not ledger.is_live:
            too_long = first & (waited > patience + slack)
            yield from ledger.broken(
                "nobody waits longer than patience", too_long, "asked_at", "arrived_at"
            )


def _within_outages(ledger: Ledger) -> Iterator[Broken]:
    """In an outage everything is refused, and otherwise only what a fault refuses."""
    refused = ledger.of_fate(Fate.OUTAGE)
    for name, channel in ledger.channels.items():
        first = ledger.first_put(name)
        if first is None:
            continue
        asked = ledger["asked_at"]
        out = np.zeros(len(asked), dtype=bool)
        for start, end in channel.outages:
            out |= (asked >= start) & (asked < end)
        # Where points cannot be asked about at all, nobody gets as far as the source.
        served = first & out & ~refused & ~ledger.of_fate(Fate.ACCESS)
        yield from ledger.broken("nobody is reached in an outage", served, "asked_at", "fate")
        wrong = first & refused & ~out & (ledger["fault"] == "")
        yield from ledger.broken("outages are declared", wrong, "asked_at")


LAWS_OF_TIME: tuple[LawOfPlays, ...] = (
    _stages_in_order,
    _within_the_play,
    _within_patience,
    _within_outages,
)
"""All laws of time."""
