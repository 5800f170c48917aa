"""Laws of chance: what befalls one source is not what befalls another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from sparq_sim.arrays import Values
from sparq_sim.simulation.channel.draws import Constant, Draw, Empirical, Uniform
from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import LawOfPlays, Ledger

__all__ = ["LAWS_OF_CHANCE"]


def _luck_of_their_own(ledger: Ledger) -> Iterator[Broken]:
    """Of two sources with the same distribution, none draws the other's numbers."""
    for one, other in combinations(ledger.channels, 2):
        mine, theirs = ledger.channels[one], ledger.channels[other]
        if _is_continuous(mine.cost) and mine.cost == theirs.cost:
            free = Constant(value=0.0)
            if mine.cost_per_point == free == theirs.cost_per_point:
                yield from _compare(ledger, one, other, "cost")
        if _is_continuous(mine.transit) and mine.transit == theirs.transit:
            yield from _compare(ledger, one, other, "transit")


def _is_continuous(draw: Draw) -> bool:
    """Return whether two draws are equal with probability 0."""
    if isinstance(draw, Uniform):
        return draw.low < draw.high
    # A draw of a user's own may be anything.
    return type(draw).__module__ == Draw.__module__ and not isinstance(draw, Constant | Empirical)


def _compare(ledger: Ledger, one: str, other: str, what: str) -> Iterator[Broken]:
    """Compare what the first request of the agent in each round drew."""
    mine, theirs = (_draw_by_round(ledger, name, what) for name in (one, other))
    for number in mine.keys() & theirs.keys():
        a, b = mine[number], theirs[number]
        if abs(a - b) <= 1e-13 * max(a, b):
            told = f"{what} {a!r} at {one} and {b!r} at {other}"
            yield Broken("sources do not share their luck", told, one, number)
            return


def _draw_by_round(ledger: Ledger, name: str, what: str) -> dict[int, float]:
    """Return what was drawn for the first request of the agent in each round, if that is known."""
    put = ledger.first_put(name)
    if put is None:
        return {}
    requests = ledger.requests(name)
    keep = (put & ledger.by_agent)[requests.first]
    first = requests.first[keep]
    drawn: Values = (
        requests.cost[keep] if what == "cost" else (ledger["arrived_at"] - ledger["sent_at"])[first]
    )
    known = ledger.answered[first] & (drawn > 0) & (ledger["fault"][first] == "")
    numbers = ledger["round"][first].tolist()
    found: dict[int, float] = {}
    for number, value, is_known in zip(numbers, drawn.tolist(), known.tolist(), strict=True):
        found.setdefault(number, value if is_known else np.nan)
    return found


LAWS_OF_CHANCE: tuple[LawOfPlays, ...] = (_luck_of_their_own,)
"""All laws of chance."""
