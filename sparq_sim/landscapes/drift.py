"""Drift: how fast a landscape changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sparq_sim.arrays import Points, Values, freeze_array
from sparq_sim.domain import Box
from sparq_sim.errors import SparqError
from sparq_sim.plugin.environment import Landscape

__all__ = ["Drift", "measure_drift"]

# How many points: in one dimension, along each side in two, and in all beyond.
_ON_A_LINE, _PER_SIDE, _IN_SPACE = 2001, 101, 10_000


@dataclass(frozen=True, eq=False)
class Drift:
    """How much the reward changes: sup_x |f(x, t') - f(x, t)|, from each time t to the next, t'.

    A jump counts in full, however short the step that it falls into.
    """

    largest: float
    """The largest change, per unit of time."""
    mean: float
    """The mean change per unit of time, over the whole span of time."""
    budget: float
    """The sum of all changes: the variation budget, in reward units."""
    per_unit_time: Values = field(repr=False)
    """The change of each step, per unit of time: (times - 1,)."""


def measure_drift(landscape: Landscape, times: Sequence[float] | Values) -> Drift:
    """Measure how fast a landscape changes, from each of some times to the next.

    Changes are measured at all sites; on a line at 2,001 points, in a plane on a grid of 101 a
    side, and in more dimensions at 10,000 points spread evenly. That is a lower bound of the
    largest change, and a good one where the reward is smooth on that scale.

    Args:
        landscape: What is measured.
        times: At least two, each later than the one before, in clock units.

    Raises:
        SparqError: There are fewer, or one is not later.
    """
    moments = np.asarray(times, dtype=float)
    steps = np.diff(moments)
    if moments.ndim != 1 or len(moments) < 2 or not (steps > 0).all():
        raise SparqError(
            f"drift is measured over two times or more, each later, not {times!r:.200}"
        )
    points = _places(landscape)
    changes = np.empty(len(steps))
    before = landscape.rewards(points, float(moments[0]))
    for step, time in enumerate(moments[1:].tolist()):
        now = landscape.rewards(points, time)
        changes[step] = np.abs(now - before).max()
        before = now
    rates = freeze_array(changes / steps)
    return Drift(
        largest=float(rates.max()),
        mean=float(changes.sum() / (moments[-1] - moments[0])),
        budget=float(changes.sum()),
        per_unit_time=rates,
    )


def _places(landscape: Landscape) -> Points:
    domain = landscape.domain
    if isinstance(domain, Box) and domain.dimensions <= 2:
        return domain.grid(_ON_A_LINE if domain.dimensions == 1 else _PER_SIDE)
    return domain.cover(_IN_SPACE)
