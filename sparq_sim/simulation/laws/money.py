"""Laws of money: prices, sums and budgets."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.channel.draws import Constant, Draw, Empirical, Uniform
from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import EPSILON, LawOfPlays, Ledger, Requests
from sparq_sim.simulation.records import Fate

__all__ = ["LAWS_OF_MONEY"]

_PRICE = "each attempt costs what its channel says"


def _sums_agree(ledger: Ledger) -> Iterator[Broken]:
    """Costs add up to what was spent, and what brings nothing is free."""
    costs = ledger["cost"]
    wrong = ~((costs >= 0) & (costs < inf))
    yield from ledger.broken("costs are finite and not negative", wrong, "cost")
    free = ledger.shared | ledger.unasked | ledger.refused
    charged = free & (costs != 0)
    yield from ledger.broken("what is refused, shared or unasked is free", charged, "fate", "cost")
    trace = ledger.trace
    total, spent = fsum(costs.tolist()), trace.spent
    if total != spent:
        yield Broken("costs add up to what was spent", f"sum {total!r}, spent {spent!r}")
    rounds = trace.rounds
    so_far = rounds["spent"]
    back = np.zeros(len(so_far), dtype=bool)
    back[1:] = so_far[1:] < so_far[:-1]
    yield from ledger.broken_rounds("what was spent only grows", back, "spent")
    of_round = np.bincount(ledger["round"], weights=costs, minlength=len(so_far) + 1)
    # Costs that fall due later count in the round in which they were sent.
    most = np.cumsum(of_round)[rounds["round"]] * (1 + EPSILON) + EPSILON
    yield from ledger.broken_rounds("what was spent has been asked for", so_far > most, "spent")


def _within_budgets(ledger: Ledger) -> Iterator[Broken]:
    """Neither the budget of the play nor that of a round is exceeded."""
    rules, spent = ledger.rules, ledger.trace.spent
    if spent > rules.budget * (1 + EPSILON):
        yield Broken("no play exceeds its budget", f"spent {spent}, budget {rules.budget}")
    most = rules.budget_per_round
    if most == inf:
        return
    # What a source charges itself counts in the round of then, which no trace tells.
    costs = np.sum([ledger["cost"] * ledger.of(name) for name in ledger.plain], axis=0)
    of_round = np.bincount(ledger["round"], weights=costs)
    for number in np.flatnonzero(of_round > most * (1 + EPSILON) + 1e-15).tolist():
        told = f"spent {of_round[number]}, budget per round {most}"
        yield Broken("no round exceeds its budget", told, round=number)


def _priced_as_declared(ledger: Ledger) -> Iterator[Broken]:
    """Each attempt costs what its channel says, when that falls due."""
    for name, channel in ledger.channels.items():
        if name in ledger.fallbacks and not channel.split:
            continue
        requests = ledger.requests(name)
        if len(requests.first):
            yield from _find_wrong_prices(ledger, name, channel, requests)


def _find_wrong_prices(
    ledger: Ledger, name: str, channel: Channel, requests: Requests
) -> Iterator[Broken]:
    least = channel.cost.least + requests.size * channel.cost_per_point.least
    most = np.full(len(requests.first), inf)
    if name in ledger.plain:
        highest = _find_highest(channel.cost_per_point)
        most = _find_highest(channel.cost) + requests.size * highest
    is_due, is_free = _find_due(ledger, channel, requests)
    low = is_due & (requests.cost < least * (1 - EPSILON))
    yield from ledger.broken_at(_PRICE, requests.first[low], "fate", "cost")
    high = ~is_free & (requests.cost > most * (1 + EPSILON))
    if name in ledger.plain:
        high |= is_free & (requests.cost > 0)
    yield from ledger.broken_at(_PRICE, requests.first[high], "fate", "cost")


def _find_due(
    ledger: Ledger, channel: Channel, requests: Requests
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which requests must have been paid for, and which must not."""
    first, is_served = requests.first, np.isfinite(requests.served_at)
    if channel.charged == "answered":
        return requests.is_answered, ~requests.is_answered
    if channel.charged == "served":
        return is_served, ~is_served
    # While a rate or the wait before a retry holds a request back, it costs nothing. A broadcast
    # that fails leaves a record of nothing.
    held = (ledger["attempt"][first] > 1) | (channel.policy.rate is not None)
    failed = ledger.pushed[first] & ledger.of_fate(Fate.INVALID)[first]
    return is_served | ~(held | failed), np.zeros(len(first), dtype=bool)


def _find_highest(draw: Draw) -> float:
    """Return what no draw exceeds, as far as that is known."""
    match draw:
        case Constant():
            return draw.value
        case Uniform():
            return draw.high
        case Empirical():
            return max(draw.values)
    return inf


LAWS_OF_MONEY: tuple[LawOfPlays, ...] = (
    _sums_agree,
    _within_budgets,
    _priced_as_declared,
)
"""All laws of money."""
