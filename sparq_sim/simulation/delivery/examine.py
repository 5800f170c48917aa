"""Examination: whether what a source gave can be used."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.errors import (
    AnswerLost,
    PeerError,
    ProgramError,
    Unaffordable,
    Unavailable,
    escape_surrogates,
)
from sparq_sim.messages import Estimate, Notes
from sparq_sim.plugin.frames import locate_error
from sparq_sim.simulation.records import Fate

__all__ = ["Measured", "Refused", "describe_error", "examine", "name_blamed"]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")

LARGEST = 1e150
"""Of a value or std; the square of a larger one overflows in every calculation downstream."""


@dataclass(slots=True, eq=False)
class Measured:
    """What a source gave, found sound but for the rows marked *bad*, or absent, for a *reason*."""

    values: Values
    """One number for each row that was asked."""
    stds: Values | None
    """None where the source claims to be exact."""
    measured_at: float
    """When, in clock units."""
    notes: Notes
    """Numbers that the source adds to the record."""
    bad: NDArray[np.bool_] | None = None
    """The rows without a usable value; None if there are none."""
    fate: Fate = Fate.INVALID
    """How these rows end."""
    reason: str = ""
    """Why they have none."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing of what a source gave can be used."""

    fate: Fate
    """How the request ends."""
    reason: str
    """Why."""


def name_blamed(source: str, fate: Fate, reason: str) -> str:
    """Return the reason of a failure, with the name of the source where it is to blame.

    Args:
        source: Its name.
        fate: What became of the request.
        reason: Why, without a name.
    """
    return f"{source} {reason}" if fate == Fate.INVALID else reason


def examine(given: object, count: int, now: float) -> Measured | Refused:
    """Return what a source measured, or why it cannot be used.

    Args:
        given: What the source gave: an Estimate, if all is well, or the exception that it raised.
        count: How many points it was asked about.
        now: The present moment.
    """
    if isinstance(given, Unavailable):
        return Refused(_fate_of(given), _shown(given, str))
    if isinstance(given, PeerError):  # It tells what the source did, and not where in our files.
        return Refused(Fate.INVALID, _shown(given, str, 400))
    if isinstance(given, Exception):
        return Refused(Fate.INVALID, describe_error(given))
    if not isinstance(given, Estimate):
        told = f"gave {_shown(given, repr)}; expected an Estimate of {count} values"
        return Refused(Fate.INVALID, told)
    try:
        measured = _measured(given, count, now)
    except Exception as error:  # Whatever a plug-in may put into an Estimate.
        measured = f"gave an Estimate that is none: {type(error).__name__}: {_shown(error, str)}"
    return Refused(Fate.INVALID, measured) if isinstance(measured, str) else measured


def _fate_of(given: Unavailable) -> Fate:
    match given:
        case AnswerLost():
            return Fate.LOST
        case Unaffordable():
            return Fate.BUDGET
    return Fate.UNAVAILABLE


def describe_error(error: Exception) -> str:
    """Return what a source did that raised *error*, and where in its own files.

    Args:
        error: What the source raised.
    """
    # Of a program, the end tells most: what it wrote last.
    length = 400 if isinstance(error, ProgramError) else 80
    return f"raised {type(error).__name__}: {_shown(error, str, length)}{locate_error(error)}"


def _shown(given: object, show: Callable[[object], str], length: int = 80) -> str:
    try:
        # Traces must not depend on where in memory things are.
        return escape_surrogates(f"{_ADDRESS.sub('', show(given)):.{length}}")
    except Exception:
        return f"a {type(given).__name__} that cannot be shown"


def _measured(given: Estimate, count: int, now: float) -> Measured | str:
    std = given.stds if isinstance(given.stds, float) else None
    values = np.asarray(given.values)
    stds = np.asarray(given.stds) if std is None else None
    if values.dtype.kind == "c" or (stds is not None and stds.dtype.kind == "c"):
        return "gave complex numbers; expected real ones"
    # Copies, which nobody else can change.
    values = values.astype(np.float64)
    stds = None if stds is None else stds.astype(np.float64)
    shape = () if stds is None else stds.shape
    if values.shape != (count,) or shape not in ((count,), ()):
        return f"gave values {values.shape} and stds {shape}; expected ({count},)"
    notes: Notes = {}
    if given.notes != {}:
        notes = {
            escape_surrogates(str(name)): float(number) for name, number in given.notes.items()
        }
    measured_at = now if given.measured_at is None else float(given.measured_at)
    if not 0 <= measured_at <= now:
        return f"measured at {measured_at}; expected a moment from 0 to now, which is {now}"
    if not shape and (stds is not None or std):
        all_stds = np.empty(count)
        all_stds.fill(std if stds is None else stds)  # A third of the time of np.full.
        stds = all_stds
    # One value alone, the commonest case, in a fraction of the time of numpy.
    is_alone = count == 1 and abs(values.item()) <= LARGEST
    if is_alone and (stds is None or 0 <= stds.item() <= LARGEST):
        return Measured(values, stds, measured_at, notes)
    good = np.abs(values) <= LARGEST
    if stds is not None:
        good &= (stds >= 0) & (stds <= LARGEST)
    if np.count_nonzero(good) == count:
        return Measured(values, stds, measured_at, notes)
    bad, fate, reason = ~good, Fate.UNAVAILABLE, escape_surrogates(str(given.absent))
    if not (given.absent and np.isnan(values[bad]).all()):
        row = int(np.argmax(bad))
        std = 0.0 if stds is None else stds[row]
        fate, reason = Fate.INVALID, f"gave {values[row]} with std {std}; expected finite numbers"
    # What is refused must not make numpy warn on its way out.
    values = np.where(good, values, 0.0)
    stds = None if stds is None else np.where(good, stds, 0.0)
    return Measured(values, stds, measured_at, notes, bad, fate, reason)
