"""Laws of serving: capacity and rates are never exceeded, and nobody waits at a free slot."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import EPSILON, LawOfPlays, Ledger, Requests

__all__ = ["LAWS_OF_SERVING"]

Moments = NDArray[np.float64]
"""In clock units, (n,)."""


def _within_capacity(ledger: Ledger) -> Iterator[Broken]:
    """No source serves more requests at a time than it can, nor fewer than it could."""
    for name, channel in ledger.channels.items():
        if channel.capacity is None:
            continue
        requests = ledger.requests(name)
        served, left = requests.served_at, requests.left_at
        holds = (left > served) & ~ledger.pushed[requests.first]
        times, busy = _count_busy(served[holds], left[holds])
        most = int(busy.max(initial=0))
        if most > channel.capacity:
            at = times[busy.argmax()]
            told = f"{most} served at a time at {at}, capacity {channel.capacity}"
            yield Broken("no source serves more than it can", told, name)
        if name in ledger.plain and not ledger.is_live:
            yield from _find_kept_waiting(ledger, name, requests, times, busy)


def _count_busy(starts: Moments, ends: Moments) -> tuple[Moments, NDArray[np.int64]]:
    """Return the moments at which the number of busy slots changes, and the number from then on."""
    moments, places = np.unique(np.concatenate((starts, ends)), return_inverse=True)
    steps = np.bincount(places[: len(starts)], minlength=len(moments)) - np.bincount(
        places[len(starts) :], minlength=len(moments)
    )
    return moments, np.cumsum(steps)


def _find_kept_waiting(
    ledger: Ledger,
    name: str,
    requests: Requests,
    times: Moments,
    busy: NDArray[np.int64],
) -> Iterator[Broken]:
    """Yield who waits while a slot is free, and who is served before an earlier one."""
    put = ledger.first_put(name)
    if put is None:
        return
    first = requests.first[put[requests.first]]
    capacity = ledger.channels[name].capacity or 0
    asked = ledger["asked_at"][first]
    until = np.fmin(ledger["served_at"][first], ledger["arrived_at"][first])
    waits = until > asked
    for place, begun, ended in zip(
        first[waits].tolist(), asked[waits].tolist(), until[waits].tolist(), strict=True
    ):
        low = int(np.searchsorted(times, begun, side="right")) - 1
        high = int(np.searchsorted(times, ended, side="left"))
        if low < 0 or (busy[low:high] < capacity).any():
            law = "nobody waits while a slot is free"
            yield from ledger.broken_at(law, np.array([place]), "asked_at", "served_at")
            return
    # Of those who ask at one moment, no trace tells who was first.
    order = np.lexsort((ledger["served_at"][first], asked))
    served = ledger["served_at"][first][order]
    known = np.isfinite(served)
    before = np.maximum.accumulate(np.where(known, served, -np.inf))
    early = known & (served < before)
    law = "who asks first is served first"
    yield from ledger.broken_at(law, first[order][early], "asked_at", "served_at")


def _within_rates(ledger: Ledger) -> Iterator[Broken]:
    """No source is asked faster than its rate allows."""
    for name, channel in ledger.channels.items():
        rate = channel.policy.rate
        # Behind a capacity, requests pass before they are served, and no trace tells when.
        if rate is None or channel.capacity is not None or ledger.is_live:
            continue
        requests = ledger.requests(name)
        passed = np.isfinite(requests.served_at) & ~ledger.pushed[requests.first]
        order = np.argsort(requests.served_at[passed], kind="stable")
        sizes = requests.size[passed][order]
        times = np.repeat(requests.served_at[passed][order], sizes)
        whose = np.repeat(np.arange(len(sizes)), sizes)
        ahead = rate.points
        # The points of one request go together, however many they are.
        close = times[ahead:] - times[:-ahead] < rate.every - EPSILON * (rate.every + times[ahead:])
        fast = close & (whose[ahead:] != whose[:-ahead])
        places = requests.first[passed][order][whose[ahead:][fast]]
        yield from ledger.broken_at("no source is asked faster than its rate", places, "served_at")


LAWS_OF_SERVING: tuple[LawOfPlays, ...] = (
    _within_capacity,
    _within_rates,
)
"""All laws of serving."""
