"""Laws of counting: asked = answered + failed + open, and who hears what."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from sparq_sim.messages import REWARD
from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import LawOfPlays, Ledger
from sparq_sim.simulation.records import UNASKED, Fate

__all__ = ["LAWS_OF_COUNTING"]

_STOPPING = ("raise", "hang", "lost", "outage")
"""Faults under which no answer comes, whatever the source does."""
_SPOILING = ("nan", "infinity", "wrong-shape", "given-up")
"""Faults under which none comes, unless the source sends one before it returns."""


def _one_end_each(ledger: Ledger) -> Iterator[Broken]:
    """Every point that was asked about ends once: asked = answered + failed + open."""
    final = np.flatnonzero(ledger.final)
    query, row = ledger["query"][final], ledger["row"][final]
    is_reward = ledger.of(REWARD)[final]  # Its queries have numbers of their own.
    order = np.lexsort((row, query, is_reward))
    query, row, is_reward, final = query[order], row[order], is_reward[order], final[order]
    # Sorted, the rows of each query are 0, 1, 2, …
    is_new = np.ones(len(final), dtype=bool)
    is_new[1:] = (query[1:] != query[:-1]) | (is_reward[1:] != is_reward[:-1])
    expected = np.zeros_like(row)
    expected[1:] = np.where(is_new[1:], 0, row[:-1] + 1)
    yield from ledger.broken_at(
        "each point asked about has one end", final[row != expected], "fate"
    )
    # An attempt that another follows, or an answer too many, belongs to a point that has an end.
    beside = np.flatnonzero(~ledger.final)
    if len(beside):
        ended = set(zip(is_reward.tolist(), query.tolist(), row.tolist(), strict=True))
        of_reward = ledger.of(REWARD)[beside].tolist()
        keys = zip(
            of_reward, ledger["query"][beside].tolist(), ledger["row"][beside].tolist(), strict=True
        )
        stray = np.array([key not in ended for key in keys], dtype=bool)
        yield from ledger.broken_at("each attempt leads to an end", beside[stray], "fate")


def _values_where_answered(ledger: Ledger) -> Iterator[Broken]:
    """Finite values and stds are those of answers alone; what is faulty is no answer."""
    answered, std = ledger.answered, ledger["std"]
    valued = np.isfinite(ledger["value"]) & np.isfinite(std) & (std >= 0)
    empty = np.isnan(ledger["value"]) & np.isnan(std)
    wrong = np.where(answered, ~valued, ~empty)
    yield from ledger.broken(
        "an answer has finite values, and a failure none", wrong, "fate", "value", "std"
    )
    unexplained = (ledger["reason"] == "") != answered
    yield from ledger.broken("a failure has a reason, an answer none", unexplained, "fate")
    fault = ledger["fault"]
    struck = answered & (fault != "")
    if struck.any():
        plain = np.isin(ledger["source"], list(ledger.plain))
        served = struck & (np.isin(fault, _STOPPING) | (plain & np.isin(fault, _SPOILING)))
        yield from ledger.broken("what is faulty is not served", served, "fault", "value")


def _heard_as_due(ledger: Ledger) -> Iterator[Broken]:
    """Of all but what nobody can notice the asker hears, and of no attempt that another follows."""
    heard, superseded = ledger["heard"], ledger["superseded"]
    silent = superseded | ledger.of_fate(*UNASKED, Fate.UNANSWERED)
    lost = ledger.of_fate(Fate.LOST)
    yield from ledger.broken("nobody hears of it", heard & silent, "fate")
    kept_back = ~heard & ~silent & ~lost
    yield from ledger.broken("the asker hears of it", kept_back, "fate")
    open_ = lost & ~superseded & ~ledger.shared
    if not open_.any():
        return
    for name, channel in ledger.channels.items():
        waits = channel.patience < inf
        notices = waits | (~ledger.pushed & (channel.policy.timeout < inf))
        of_source = open_ & ledger.of(name)
        yield from ledger.broken(
            "a loss is noticed when patience ends", of_source & notices & ~heard, "fate"
        )
        if name in ledger.plain:  # Others may tell that their answer was lost.
            yield from ledger.broken(
                "nobody notices a loss without patience", of_source & ~notices & heard, "fate"
            )


def _attempts_as_declared(ledger: Ledger) -> Iterator[Broken]:
    """There are as many attempts, shared answers and fallbacks as the policy allows."""
    attempt = ledger["attempt"]
    for name, channel in ledger.channels.items():
        policy, own = channel.policy, ledger.of(name)
        many = own & ((attempt > policy.retries + 1) | (attempt < 0))
        yield from ledger.broken("there are no more attempts than allowed", many, "fate")
        if not (policy.retries or policy.fallback):
            again = own & ledger["superseded"]
            yield from ledger.broken(
                "nothing is tried again unless a policy says so", again, "fate"
            )
    shared = ledger.shared & ledger.answered
    if shared.any():
        first = np.flatnonzero(ledger.answered & ~ledger.shared)
        names = ("source", "value", "std", "measured_at", *ledger.trace.coordinates)
        given = set(zip(*(ledger[name][first].tolist() for name in names), strict=True))
        places = np.flatnonzero(shared)
        copies = zip(*(ledger[name][places].tolist() for name in names), strict=True)
        wrong = np.array([copy not in given for copy in copies], dtype=bool)
        yield from ledger.broken_at(
            "a shared answer is as it was given", places[wrong], "value", "measured_at"
        )


LAWS_OF_COUNTING: tuple[LawOfPlays, ...] = (
    _one_end_each,
    _values_where_answered,
    _heard_as_due,
    _attempts_as_declared,
)
"""All laws of counting."""
