"""Moments: which rounds of a play tell most, and which rounds are filmed for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparq_sim.messages import AGENT_NAME
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Columns, Trace

__all__ = ["Moment", "choose_rounds", "find_moments"]

_BEFORE = 0.3
"""Of the rounds filmed around a moment, the share that lies before it."""


@dataclass(frozen=True)
class Moment:
    """A round worth seeing."""

    row: int
    """Which round, as a row of the trace."""
    about: str
    """What happens in it."""


def find_moments(trace: Trace) -> list[Moment]:
    """Return the rounds of a play that are worth seeing, the most telling first.

    They are the worst round of the longest outage, if an expert could not be asked in two rounds
    in a row, and the worst of all after the first tenth.

    Args:
        trace: The play; outages are found only where it has replies.
    """
    regrets = np.nan_to_num(trace.rounds["regret"])
    found = []
    source, first, last = _find_outage(trace.replies)
    if last > first:
        worst = first - 1 + int(regrets[first - 1 : last].argmax())
        found.append(Moment(worst, f"outage of {source}"))
    begun = len(regrets) // 10
    worst = begun + int(regrets[begun:].argmax()) if len(regrets) else 0
    if len(regrets) and regrets[worst] > 0:
        found.append(Moment(worst, "largest regret"))
    return found


def _find_outage(replies: Columns) -> tuple[str, int, int]:
    """Find the longest run of rounds in which the agent could not ask: source, first and last."""
    longest = ("", 0, 0)
    if not replies:
        return longest
    refused = (replies["fate"] == Fate.OUTAGE) & (replies["asker"] == AGENT_NAME)
    for source in np.unique(replies["source"][refused]).tolist():
        rounds = np.unique(replies["round"][refused & (replies["source"] == source)])
        for run in np.split(rounds, np.flatnonzero(np.diff(rounds) > 1) + 1):
            first, last = int(run[0]), int(run[-1])
            if last - first > longest[2] - longest[1]:
                longest = (source, first, last)
    return longest


def choose_rounds(total: int, moments: Mapping[int, int], *, most: int) -> NDArray[np.intp]:
    """Choose the rounds to film: half of them in a row around moments, the others evenly spread.

    Args:
        total: How many rounds the play has.
        moments: Rows of the rounds around which no round is left out, and how many shares of the
            rounds in a row each of them has.
        most: How many rounds may be filmed, at least 2.

    Returns:
        Rows of the trace, growing, (n,); the first and the last are among them.
    """
    if total <= most:
        return np.arange(total)
    shares = max(1, sum(moments.values()))
    near: set[int] = set()
    for row, share in moments.items():
        length = most // 2 * share // shares
        first = max(0, row - int(_BEFORE * length))
        near.update(range(first, min(total, max(first + length, row + 1))))
    others = np.setdiff1d(np.arange(total), np.array(sorted(near), dtype=np.intp))
    places = np.linspace(0, len(others) - 1, max(2, most - len(near))).round().astype(np.intp)
    return np.setdiff1d(np.arange(total), np.delete(others, places))
