"""Requests: the replies of a trace, one row for each attempt to have something answered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import SparqError
from sparq_sim.messages import REWARD
from sparq_sim.simulation.records import REFUSALS, UNASKED, Fate
from sparq_sim.simulation.trace import Columns, Trace

__all__ = ["Measurements", "Requests", "gather_requests"]

_SAME = 1e-9
"""Moments that differ by less than this share of the length of a play are one moment."""
_STEADY = 0.01
"""Waits for what was lost that differ by less than this share are one patience."""
_OVERDUE = 0.1
"""In real time, up to this share of the answers may come a little after patience has ended."""
_SHORT = 0.01
"""A part of the latency below this share of it is too short to matter."""
_SHORT_IN_ROUND = 0.001
"""A part of the latency below this share of a round is too short to matter."""


@dataclass(frozen=True, eq=False)
class Measurements:
    """What a source has said of points: one row for each value that arrived."""

    points: Points
    """Where, (n, d)."""
    values: Values
    """What was measured, in reward units, (n,)."""
    stds: Values
    """The stds that were claimed, in reward units, (n,)."""
    moments: Values
    """When it was measured, in clock units, (n,)."""


@dataclass(frozen=True, eq=False)
class Requests:
    """What was asked of one source: a row for each attempt, whatever became of it.

    Refusals, answers that nobody waited for, answers from memory and requests with an injected
    fault are left out. Moments are in clock units.
    """

    source: str
    """The name of the source."""
    fates: NDArray[np.str_]
    """What became of each; where some of its points were answered, `answered`."""
    sizes: NDArray[np.int64]
    """About how many points each was."""
    attempts: NDArray[np.int64]
    """The number of each attempt, from 1."""
    pushed: NDArray[np.bool_]
    """Whether the source sent it of its own accord."""
    asked_at: Values
    """When the query was made; a retry has the moment of its first attempt."""
    tried_at: Values
    """When this attempt was made, in rising order."""
    served_at: Values
    """When service began; NaN where it never did."""
    sent_at: Values
    """When the answer was sent; NaN where it never was."""
    measured_at: Values
    """When it was measured; NaN where no answer came."""
    arrived_at: Values
    """When it was answered, or given up."""
    costs: Values
    """What each cost."""
    measurements: Measurements
    """What was answered, value by value."""
    split: bool
    """Whether each point of a query was answered on its own."""
    faults: int
    """How many were left out because a fault was injected."""
    tolerance: float
    """Durations that differ by no more than this are equal, in clock units."""
    round_length: float
    """How long a round lasts, in clock units; 0 where there was only one."""

    def __len__(self) -> int:
        return len(self.fates)

    def count(self, *fates: Fate) -> int:
        """Return how many requests had one of some *fates*.

        Args:
            fates: The fates.
        """
        return int(self.having(*fates).sum())

    def having(self, *fates: Fate) -> NDArray[np.bool_]:
        """Return which requests had one of some *fates*.

        Args:
            fates: The fates.
        """
        return np.isin(self.fates, [str(fate) for fate in fates])

    @cached_property
    def patience(self) -> float:
        """How long an asker waits, by what was given up; infinite where nothing shows it."""
        answered = self.waits(Fate.ANSWERED)
        late = self.waits(Fate.LATE)
        if len(late):
            # In real time, giving up takes a moment, and how long it takes varies.
            shortest = float(late.min())
            overdue = int((answered > shortest + self.tolerance).sum())
            return shortest if overdue <= _OVERDUE * len(answered) else inf
        lost = self.waits(Fate.LOST)
        if len(lost):
            # A loss may also be noticed when the answer would have come.
            is_one = lost.max() <= lost.min() * (1 + _STEADY)
            is_longer = lost.min() >= answered.max(initial=0.0) + self.tolerance
            return float(lost.min()) if is_one and is_longer else inf
        return inf

    def waits(self, fate: Fate) -> Values:
        """Return how long the asker waited for each first attempt with one *fate*.

        Args:
            fate: The fate.
        """
        chosen = (self.attempts == 1) & ~self.pushed & self.having(fate)
        waits: Values = (self.arrived_at - self.asked_at)[chosen]
        return waits

    def matters(self, durations: Values) -> bool:
        """Return whether a part of the latency is more than the scatter of a real clock.

        Args:
            durations: How long it lasted for each answer, in clock units.
        """
        if not len(durations) or durations.max() <= self.tolerance:
            return False
        if np.ptp(durations) <= self.tolerance:
            return True  # No clock is that exact: it is simulated.
        latency = self.waits(Fate.ANSWERED)
        typical = float(np.median(latency)) if len(latency) else 0.0
        short = max(_SHORT * typical, _SHORT_IN_ROUND * self.round_length)
        return bool(durations.mean() > short)

    @cached_property
    def settled(self) -> NDArray[np.bool_]:
        """Which requests were made so early that their patience ended before the play did.

        What is lost goes unnoticed until then: among those still open at the end, more are lost.
        """
        if self.patience == inf:
            return np.ones(len(self), dtype=bool)
        end = float(self.arrived_at.max())
        return self.tried_at + self.patience <= end + self.tolerance


def gather_requests(trace: Trace) -> dict[str, Requests]:
    """Return the requests of a play by source: the reward first, then experts by name.

    Args:
        trace: A trace with its replies.

    Raises:
        SparqError: The replies were not recorded, or there are none.
    """
    replies = trace.replies
    if not replies:
        raise SparqError(
            "the replies of this play were not recorded, so nothing can be fitted to them; give a "
            'journal, or a play of a scenario with record = "full"'
        )
    fates = replies["fate"]
    kept = ~np.isin(fates, [str(fate) for fate in (*REFUSALS, *UNASKED)]) & (replies["attempt"] > 0)
    sources = [str(name) for name in np.unique(replies["source"][kept])]
    if not sources:
        raise SparqError(
            "nobody was asked and no reward was heard in this play, so there is nothing to fit a "
            "channel to; calibrate a longer one"
        )
    tolerance = _SAME * max(1.0, float(np.nanmax(replies["arrived_at"][kept])))
    started = trace.rounds["started_at"]
    round_length = float(np.median(np.diff(started))) if len(started) > 1 else 0.0
    return {
        source: _gather(
            source,
            {
                name: column[kept & (replies["source"] == source)]
                for name, column in replies.items()
            },
            trace.coordinates,
            tolerance,
            round_length,
        )
        for source in sorted(sources, key=lambda name: (name != REWARD, name))
    }


def _gather(
    source: str,
    rows: Columns,
    coordinates: tuple[str, ...],
    tolerance: float,
    round_length: float,
) -> Requests:
    struck = rows["fault"] != ""
    faults = int(struck.sum())
    rows = {name: column[~struck] for name, column in rows.items()}
    query = np.stack([_number(rows["asker"]), rows["query"], rows["attempt"]], axis=1)
    _, of_query = np.unique(query, axis=0, return_inverse=True)
    split = _is_split(rows, of_query.ravel(), tolerance)
    if split:
        _, of_query = np.unique(np.column_stack([query, rows["row"]]), axis=0, return_inverse=True)
    of_request = of_query.ravel()
    # Where some rows were answered and others not, the answered ones tell of the request.
    failed = rows["fate"] != Fate.ANSWERED
    order = np.lexsort((failed, of_request))
    firsts = order[np.unique(of_request[order], return_index=True)[1]]
    is_retry = (rows["attempt"] > 1) & ~np.isnan(rows["served_at"])
    tried_at = np.where(is_retry, rows["served_at"], rows["asked_at"])
    places = np.argsort(tried_at[firsts], kind="stable")
    firsts = firsts[places]
    sizes = np.bincount(of_request)
    costs = np.bincount(of_request, weights=rows["cost"]).astype(float)
    told = ~failed & np.isfinite(rows["value"])
    return Requests(
        source=source,
        fates=rows["fate"][firsts],
        sizes=sizes[places],
        attempts=rows["attempt"][firsts],
        pushed=rows["asker"][firsts] == source,
        asked_at=rows["asked_at"][firsts],
        tried_at=tried_at[firsts],
        served_at=rows["served_at"][firsts],
        sent_at=rows["sent_at"][firsts],
        measured_at=rows["measured_at"][firsts],
        arrived_at=rows["arrived_at"][firsts],
        costs=costs[places],
        measurements=Measurements(
            points=np.stack([rows[name][told] for name in coordinates], axis=1),
            values=rows["value"][told],
            stds=rows["std"][told],
            moments=rows["measured_at"][told],
        ),
        split=split,
        faults=faults,
        tolerance=tolerance,
        round_length=round_length,
    )


def _number(names: NDArray[np.str_]) -> NDArray[np.intp]:
    return np.unique(names, return_inverse=True)[1].ravel()


def _is_split(rows: Columns, of_query: NDArray[np.intp], tolerance: float) -> bool:
    """Return whether rows of one attempt at one query went different ways."""
    if not len(of_query):
        return False
    if (np.bincount(of_query, weights=rows["cost"] > 0) > 1).any():
        return True
    # What is invalid or unavailable can be part of an answer; what is lost or late cannot.
    travelled = np.isin(rows["fate"], [str(f) for f in (Fate.ANSWERED, Fate.LOST, Fate.LATE)])
    rows = {name: column[travelled] for name, column in rows.items()}
    of_query = of_query[travelled]
    order = np.argsort(of_query, kind="stable")
    same = np.diff(of_query[order]) == 0
    if (same & (rows["fate"][order][1:] != rows["fate"][order][:-1])).any():
        return True
    return any(
        bool((same & (np.abs(np.diff(rows[name][order])) > tolerance)).any())
        for name in ("served_at", "sent_at", "arrived_at")
    )
