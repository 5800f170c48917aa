"""Parcels: what travels together between an asker and a source, and how its journey ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.errors import ProgramError, Unavailable
from sparq_sim.messages import Answer, Estimate, Failure, Notes, Query, Reply
from sparq_sim.plugin.frames import locate_error
from sparq_sim.simulation.channel.faults import FaultModel
from sparq_sim.simulation.channel.noise import Noise
from sparq_sim.simulation.clock.protocol import Process
from sparq_sim.simulation.records import Fate, Record

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

LARGEST = 1e150
"""Of a value or std; the square of a larger one overflows in every calculation downstream."""


Origin: TypeAlias = tuple[int, int]
Hear: TypeAlias = Callable[[Record], None]


@dataclass(slots=True, eq=False)
class Measured:
    """What a source gave, found sound but for the rows marked *bad*, or absent, for a *reason*."""

    values: Values
    stds: Values | None
    """None where the source claims to be exact."""
    measured_at: float
    notes: Notes
    bad: NDArray[np.bool_] | None = None
    fate: Fate = Fate.INVALID
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing of what a source gave can be used."""

    fate: Fate
    reason: str


def examine(given: object, count: int, now: float) -> Measured | Refused:
    """Take in what a source gave for *count* points, or say what is wrong with it."""
    if isinstance(given, Unavailable):
        return Refused(Fate.UNAVAILABLE, _shown(given, str))
    if isinstance(given, Exception):
        return Refused(Fate.INVALID, raised(given))
    if not isinstance(given, Estimate):
        told = f"gave {_shown(given, repr)}; expected an Estimate of {count} values"
        return Refused(Fate.INVALID, told)
    try:
        measured = _measured(given, count, now)
    except Exception as error:  # Whatever a plug-in may put into an Estimate.
        measured = f"gave an Estimate that is none: {type(error).__name__}: {_shown(error, str)}"
    return Refused(Fate.INVALID, measured) if isinstance(measured, str) else measured


def raised(error: Exception) -> str:
    """Return what a source did that raised *error*, and where in its own files."""
    # Of a program, the end tells most: what it wrote last.
    length = 400 if isinstance(error, ProgramError) else 80
    return f"raised {type(error).__name__}: {_shown(error, str, length)}{locate_error(error)}"


def _shown(given: object, show: Callable[[object], str], length: int = 80) -> str:
    try:
        # Traces must not depend on where in memory things are.
        return f"{_ADDRESS.sub('', show(given)):.{length}}"
    except Exception:
        return f"a {type(given).__name__} that cannot be shown"


def _measured(given: Estimate, count: int, now: float) -> Measured | str:
    exact = isinstance(given.stds, float) and not given.stds
    values = np.asarray(given.values)
    stds = None if exact else np.asarray(given.stds)
    if values.dtype.kind == "c" or (stds is not None and stds.dtype.kind == "c"):
        return "gave complex numbers; expected real ones"
    # Copies, which nobody else can change.
    values = values.astype(np.float64)
    stds = None if stds is None else stds.astype(np.float64)
    shape = () if stds is None else stds.shape
    if values.shape != (count,) or shape not in ((count,), ()):
        return f"gave values {values.shape} and stds {shape}; expected ({count},)"
    notes = {str(name): float(number) for name, number in given.notes.items()}
    measured_at = now if given.measured_at is None else float(given.measured_at)
    if not 0 <= measured_at <= now:
        return f"measured at {measured_at}; expected a moment from 0 to now, which is {now}"
    good = np.abs(values) <= LARGEST
    if stds is not None:
        stds = stds if shape else np.full(count, stds)
        good &= (stds >= 0) & (stds <= LARGEST)
    if np.count_nonzero(good) == count:
        return Measured(values, stds, measured_at, notes)
    bad, fate, reason = ~good, Fate.UNAVAILABLE, given.absent
    if not (given.absent and np.isnan(values[bad]).all()):
        row = int(np.argmax(bad))
        std = 0.0 if stds is None else stds[row]
        fate, reason = Fate.INVALID, f"gave {values[row]} with std {std}; expected finite numbers"
    # What is refused must not make numpy warn on its way out.
    values = np.where(good, values, 0.0)
    stds = None if stds is None else np.where(good, stds, 0.0)
    return Measured(values, stds, measured_at, notes, bad, fate, reason)


@dataclass(slots=True, eq=False)
class Parcel:
    """All rows of a query, or one row where the channel splits, with the luck drawn for it."""

    query: Query
    rows: NDArray[np.intp]
    question: Query
    """The query as the source sees it: these rows only."""
    round: int
    asker: str
    origin: Origin
    """Whence its luck comes: the round of the first attempt, and how many parcels the asker had
    sent to this source in it before."""
    cost: float
    """What has been charged for it, or, before it is sent, what will be."""
    service: float
    transit: float
    lost: bool
    units: Values | None
    """Unit noise for each row; None where there is no noise."""
    hear: Hear
    fault: FaultModel | None = None
    attempt: int = 1
    open: bool = True
    answered: bool = False
    owed: float = 0.0
    """What is set apart for it and has not fallen due."""
    served_at: float = nan
    sent_at: float = nan
    process: Process[None] | None = None
    notes: dict[str, float] = field(default_factory=dict)

    def arrive(self, measured: Measured, noise: Noise, *, source: str, now: float) -> None:
        """Hand over what was measured, with noise; bad rows become a failure."""
        rows, values, bad = self.rows, measured.values, measured.bad
        stds: Values | float = 0.0 if measured.stds is None else measured.stds
        if self.units is not None:
            true = noise.stds(self.question.points, values)
            claimed = true if noise.claimed is None else noise.claimed
            stds = claimed if measured.stds is None else np.hypot(measured.stds, claimed)
            values = values + true * self.units
        if isinstance(stds, float):
            # A third of the time of np.full.
            stds, std = np.empty(len(values)), stds
            stds.fill(std)
        if self.fault is not None and self.fault.claimed_share != 1.0:
            stds = stds * self.fault.claimed_share
        if bad is not None:
            good = ~bad
            rows, values, stds = rows[good], values[good], stds[good]
        if len(rows):
            self.answered = True
            # What an agent is told is what the trace keeps.
            values.setflags(write=False)
            stds.setflags(write=False)
            # By position: keywords would add a quarter to the time of the commonest message.
            answer = Answer(
                self.query,
                rows,
                values,
                stds,
                self.query.asked_at,
                measured.measured_at,
                now,
                self.cost,
                {**measured.notes, **self.notes},
            )
            self._tell(answer, Fate.ANSWERED, heard=True)
            self.cost = 0.0
        if bad is not None:
            reason = (
                f"{source} {measured.reason}" if measured.fate == Fate.INVALID else measured.reason
            )
            self.fail(measured.fate, reason, now=now, rows=self.rows[bad])

    def fail(
        self,
        fate: Fate,
        reason: str,
        *,
        now: float,
        heard: bool = True,
        rows: NDArray[np.intp] | None = None,
    ) -> None:
        """Hand over that nothing came for *rows*, by default all."""
        failure = Failure(
            query=self.query,
            rows=self.rows if rows is None else rows,
            reason=reason,
            asked_at=self.query.asked_at,
            arrived_at=now,
            cost=self.cost,
        )
        self._tell(failure, fate, heard=heard)

    def _tell(self, reply: Reply, fate: Fate, *, heard: bool) -> None:
        self.open = False
        self.hear(
            Record(
                reply,
                fate,
                heard,
                self.round,
                self.asker,
                self.served_at,
                self.sent_at,
                self.attempt,
                "" if self.fault is None else self.fault.name,
            )
        )
