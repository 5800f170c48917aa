"""Channels: what was heard of each source in a play, as a channel that behaves like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from sparq_sim.live.calibrate.cost import fit_cost
from sparq_sim.live.calibrate.fits import Fit, format_number
from sparq_sim.live.calibrate.latency import find_capacity, fit_latency
from sparq_sim.live.calibrate.loss import fit_loss
from sparq_sim.live.calibrate.noise import fit_noise
from sparq_sim.live.calibrate.requests import Requests, gather_requests
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import Trace

__all__ = ["FittedChannel", "calibrate"]

_SCATTER = 0.01
"""Waits that differ by more than this share are told of."""


@dataclass(frozen=True)
class FittedChannel:
    """A channel fitted to what was asked of one source."""

    source: str
    """The name of the source: `reward`, or an expert."""
    fits: Mapping[str, Fit]
    """What was found for each field of the channel, by its name."""
    fates: Mapping[str, int]
    """How many requests had which fate; refusals and answers from memory are not counted."""
    faults: int
    """How many requests were left out because a fault was injected."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the channel that are not left out, by name."""
        return {name: fit.value for name, fit in self.fits.items() if fit.value is not None}

    @property
    def channel(self) -> Channel:
        """The channel; what is not known has its default."""
        return Channel(**self.fields)


def calibrate(trace: Trace) -> dict[str, FittedChannel]:
    """Fit a channel to what was heard of each source in a play.

    Latency is fitted by maximum likelihood, with what was given up as a lower bound; the family is
    chosen by AIC and tested by a parametric bootstrap of the Kolmogorov-Smirnov statistic. Noise
    is estimated from values about one point, close in time.

    Args:
        trace: The trace of a play, live or simulated, with its replies; `read_journal(path)
            .to_trace()` makes one of a journal.

    Returns:
        The channels by source: the reward first, then experts by name.

    Raises:
        SparqError: The replies were not recorded, or there are none.
    """
    return {source: _calibrate(each) for source, each in gather_requests(trace).items()}


def _calibrate(requests: Requests) -> FittedChannel:
    latency = fit_latency(requests)
    fits = {
        "service": latency.service,
        "service_per_point": latency.service_per_point,
        "transit": latency.transit,
        "loss": fit_loss(requests, latency),
        "noise": fit_noise(requests.measurements, tolerance=requests.tolerance),
        **fit_cost(requests),
        "capacity": find_capacity(requests),
        "patience": _find_patience(requests),
        "split": Fit(True, ("points of one query went different ways",))
        if requests.split
        else Fit(),
    }
    fates = {str(fate): count for fate in Fate if (count := requests.count(fate))}
    return FittedChannel(requests.source, fits, fates, requests.faults)


def _find_patience(requests: Requests) -> Fit:
    late = requests.waits(Fate.LATE)
    if requests.patience == inf:
        if not len(late):
            return Fit()
        ends = f"{format_number(float(late.min()))} to {format_number(float(late.max()))}"
        return Fit(
            None,
            (
                f"left out: {len(late)} were given up after {ends}, but others were answered "
                "later than that, so it is not one number",
            ),
        )
    told = "nothing was answered after it"
    if len(late):
        told = "one was given up after it"
    if len(late) > 1:
        told = f"the shortest wait of the {len(late)} that were given up as late"
        longest = float(late.max())
        if longest > requests.patience * (1 + _SCATTER):
            told += f"; the longest was {format_number(longest)}"
    return Fit(float(format_number(requests.patience)), (told,))
