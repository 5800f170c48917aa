"""Latency: how long queries were served, and how long answers were on their way."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

import numpy as np

from sparq_sim.arrays import Values
from sparq_sim.live.calibrate.draws import DrawFit, fit_draw
from sparq_sim.live.calibrate.families import Amounts
from sparq_sim.live.calibrate.fits import Fit, format_number
from sparq_sim.live.calibrate.per_point import fit_per_point
from sparq_sim.live.calibrate.requests import Requests
from sparq_sim.simulation.channel.draws import Empirical
from sparq_sim.simulation.records import Fate

__all__ = ["Latency", "SplitBy", "find_capacity", "fit_latency"]

SplitBy: TypeAlias = Literal["sent_at", "measured_at", "arrived_at"]
"""Which moment ends service: when the answer was sent, when it was measured, or, where neither
differs from it, its arrival."""

_SETTING_OUT = 0.1
"""A wait shorter than this share of a typical service is none."""
_SETTING_OUT_IN_ROUND = 0.05
"""A wait shorter than this share of a round is none."""
_SAME_BUSY = 0.9
"""Of those that waited while others were served, so large a share must have waited while the same
number was."""
_MOST_STALLED = 1 / 3
"""At most this share of those that waited may have waited while nobody was served, as happens in
real time on a busy machine."""
_TAKING_OVER = 0.05
"""Within this share of a typical service, a place that becomes free is taken."""
_QUEUED = 10
"""So many requests must have waited before a capacity is stated."""


@dataclass(frozen=True)
class Latency:
    """The latency of one source."""

    service: Fit
    """How long a query is worked on."""
    service_per_point: Fit
    """How much longer for each point."""
    transit: Fit
    """How long an answer is on its way."""
    split_by: SplitBy
    """By which moment the two were told apart."""
    doubtful: DrawFit
    """The fit of what ends with the arrival, and the share of it that never comes."""
    is_complete: bool
    """Whether the draws also say how many answers take longer than patience allows; if not, those
    are in neither draw."""


def fit_latency(requests: Requests) -> Latency:
    """Return service and transit fitted to what was asked of one source.

    Args:
        requests: What was asked of it.
    """
    split_by, older = _find_split(requests)
    left = requests.arrived_at if split_by == "arrived_at" else getattr(requests, split_by)
    patience = requests.patience
    waited = np.where(requests.attempts == 1, requests.served_at - requests.asked_at, 0.0)
    limits = np.where(requests.pushed, inf, patience - waited)
    answered = requests.having(Fate.ANSWERED)
    # In real time, an answer may come just when it is given up.
    taken = np.nan_to_num(requests.arrived_at - requests.served_at, nan=0.0)
    limits = np.where(answered, np.maximum(limits, taken), limits)

    # Service, which for readings sent unasked there is none of.
    answered &= requests.settled
    waiting = requests.having(Fate.LATE, Fate.UNANSWERED) & requests.settled
    served = np.isfinite(requests.served_at) & ~requests.pushed
    known = answered & served
    if split_by == "sent_at":
        travelled = requests.having(Fate.LOST, Fate.LATE) & requests.settled
        known |= travelled & np.isfinite(requests.sent_at) & served
    bounded = waiting & served & np.isnan(requests.sent_at)
    # What was given up at once tells nothing.
    bounded &= requests.arrived_at - requests.served_at > requests.tolerance
    if split_by == "measured_at":
        bounded = np.zeros_like(bounded)
    slope = fit_per_point(
        (left - requests.served_at)[known], requests.sizes[known], tolerance=requests.tolerance
    )
    of_points = slope.value * requests.sizes
    # A simulated play names what was lost, once patience has ended; a real one never does.
    none_lost = not requests.count(Fate.LOST)
    may_be_lost = none_lost and split_by == "arrived_at"
    service = fit_draw(
        Amounts(
            _positive((left - requests.served_at - of_points)[known], requests.tolerance),
            np.maximum(
                (requests.arrived_at - requests.served_at - of_points)[bounded], requests.tolerance
            ),
            _positive((limits - of_points)[known]),
        ),
        tolerance=requests.tolerance,
        may_be_lost=may_be_lost,
    )

    # Transit.
    before = np.nan_to_num(left - requests.served_at, nan=0.0)
    on_way = waiting & np.isfinite(requests.sent_at) & (split_by == "sent_at")
    on_way &= requests.arrived_at - requests.sent_at > requests.tolerance
    transit = fit_draw(
        Amounts(
            _positive((requests.arrived_at - left)[answered], requests.tolerance),
            _positive((requests.arrived_at - requests.sent_at)[on_way]),
            _positive((limits - before)[answered]),
        ),
        tolerance=requests.tolerance,
        may_be_lost=none_lost and not requests.count(Fate.LATE),
    )
    transit_fit = transit.to_fit()
    short = (requests.arrived_at - requests.sent_at)[answered]
    if split_by == "arrived_at" and len(short) and short.max() > requests.tolerance:
        mean = format_number(float(short.mean()))
        transit_fit = Fit(None, (f"left out: {mean} on average is too short to matter",))
    told = _tell_split(split_by, older)
    is_timed = bool(known.any() or bounded.any())
    service_fit = service.to_fit() if is_timed else Fit()
    if is_timed and told:
        service_fit = _add(service_fit, told)
    return Latency(
        service_fit,
        slope.to_fit() if service.draw is None or slope.value else _quiet(slope.to_fit(), service),
        transit_fit,
        split_by,
        service if split_by == "arrived_at" else transit,
        not (bounded.any() and _is_cut(service)) and not (on_way.any() and _is_cut(transit)),
    )


def _is_cut(fitted: DrawFit) -> bool:
    """Return whether a draw has nothing beyond the longest that was observed."""
    return fitted.draw is None or isinstance(fitted.draw, Empirical)


def _find_split(requests: Requests) -> tuple[SplitBy, float]:
    """Return what ends service, and how much older than their requests the values are at most."""
    answered = requests.having(Fate.ANSWERED)
    tolerance = requests.tolerance
    age = (requests.arrived_at - requests.measured_at)[answered]
    if requests.matters((requests.arrived_at - requests.sent_at)[answered]):
        return "sent_at", 0.0
    asked = answered & ~requests.pushed
    older = (requests.served_at - requests.measured_at)[asked]
    if (older > tolerance).any():
        return "arrived_at", float(older.max())
    return ("measured_at", 0.0) if requests.matters(age) else ("arrived_at", 0.0)


def _tell_split(split_by: SplitBy, older: float) -> str:
    if older:
        return (
            f"values were measured up to {format_number(older)} before they were asked for; that "
            "comes from the source, and is not in this channel"
        )
    if split_by == "measured_at":
        return "service ends when a value is measured; the age of a value on arrival is transit"
    return ""


def _positive(amounts: Values, tolerance: float = 0.0) -> Values:
    """Return amounts without what rounding has put below 0, or a little above it."""
    return np.where(amounts <= tolerance, 0.0, amounts)


def _add(fit: Fit, text: str) -> Fit:
    return Fit(fit.value, (*fit.told, text), fit.intervals, fit.p_value)


def _quiet(fit: Fit, service: DrawFit) -> Fit:
    """Return a fit without words where there is no service that points could add to."""
    has_service = service.to_fit().value is not None
    return fit if has_service else Fit(fit.value, (), fit.intervals)


def find_capacity(requests: Requests) -> Fit:
    """Return how many requests a source serves at a time, where waiting shows it.

    Args:
        requests: What was asked of it.
    """
    served = np.isfinite(requests.served_at) & ~requests.pushed
    begun = requests.served_at[served]
    ended = np.where(np.isnan(requests.sent_at), requests.arrived_at, requests.sent_at)[served]
    first = (requests.attempts == 1)[served]
    # In real time, each request takes a moment to set out.
    typical = float(np.median(ended - begun)) if len(begun) else 0.0
    moment = max(_SETTING_OUT * typical, _SETTING_OUT_IN_ROUND * requests.round_length)
    waits = begun - requests.asked_at[served]
    has_waited = first & (waits > max(requests.tolerance, moment))
    queued = int(has_waited.sum())
    if queued < _QUEUED:
        return Fit()
    # Just before a slot was taken that somebody waited for, all others and that one were busy.
    starts, ends = np.sort(begun), np.sort(ended)
    moments = begun[has_waited] - max(requests.tolerance, _TAKING_OVER * typical)
    before = np.searchsorted(starts, moments) - np.searchsorted(ends, moments)
    behind = before[before > 0]
    number = int(np.bincount(behind).argmax()) if len(behind) else 0
    is_capacity = queued - len(behind) <= _MOST_STALLED * queued
    if not is_capacity or (behind == number).mean() < _SAME_BUSY:
        return Fit(
            None,
            (
                f"left out: {queued} requests waited before they were served, but the number of "
                "others served meanwhile varied; so the reason is not a capacity, but perhaps a "
                "rate or a wait before retries, and neither is fitted here",
            ),
        )
    told = (
        f"{len(behind)} requests waited while {number} "
        f"{'other was' if number == 1 else 'others were'} served"
    )
    return Fit(number, (told,))
