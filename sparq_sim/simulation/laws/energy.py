"""Laws of energy: what batteries held is what was used and what is left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.laws.ledger import LawOfPlays, Ledger

__all__ = ["LAWS_OF_ENERGY"]

_ROUNDING = 1e-6
"""Of thousands of small sums, as a share of what a battery holds and harvests."""


def _energy_adds_up(ledger: Ledger) -> Iterator[Broken]:
    """In every table of accounts with energies: capacity + harvested - wasted - used = left.

    Such a table has the columns `capacity` and `left`, `energy_<cause>` for each use and perhaps
    `harvested` and `wasted`; infinite capacities are mains.
    """
    for name, table in ledger.trace.accounts.items():
        used = [column for key, column in table.items() if key.startswith("energy_")]
        if not used or not {"capacity", "left"} <= table.keys():
            continue
        capacity, left = table["capacity"], table["left"]
        none = np.zeros(len(capacity))
        harvested, wasted = table.get("harvested", none), table.get("wasted", none)
        used_up = np.sum(used, axis=0)
        source = name.partition("/")[0]
        negative = (left < 0) | (np.min(used, axis=0) < 0)
        finite = np.isfinite(capacity)
        held = np.where(finite, capacity, 0.0) + harvested
        apart = np.abs(held - wasted - used_up - np.where(finite, left, 0.0))
        wrong = negative | (finite & ~(apart <= _ROUNDING * np.maximum(held, 1e-3)))
        for row in np.flatnonzero(wrong)[:3].tolist():
            told = (
                f"{name}, row {row}: held {held[row]} J, wasted {wasted[row]} J, used "
                f"{used_up[row]} J, left {left[row]} J"
            )
            yield Broken("energy used and left is what there was", told, source)


LAWS_OF_ENERGY: tuple[LawOfPlays, ...] = (_energy_adds_up,)
"""All laws of energy."""
