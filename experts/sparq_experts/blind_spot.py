"""The expert `blind-spot`: the exact reward, except in a box."""

from __future__ import annotations

from typing import Annotated, Self

import numpy as np
from pydantic import Field, FiniteFloat, model_validator

from sparq_sim.errors import PluginError
from sparq_sim.messages import NO_READING, Estimate, Query
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World

__all__ = ["BlindSpot"]

_HIDDEN = "blind spot"

_Corner = Annotated[tuple[FiniteFloat, ...], Field(min_length=1)]


class BlindSpot(Expert):
    """Knows the current reward, except in a box from *lower* to *upper*, where it fails.

    The points of a query that lie in the box fail with the reason "blind spot"; the other points
    are answered. Use it for a sensor that does not cover the whole domain.
    """

    lower: _Corner
    """The lower corner of the box: one number for each coordinate, bounds included."""
    upper: _Corner
    """The upper corner of the box: one number for each coordinate, bounds included."""

    @model_validator(mode="after")
    def _is_a_box(self) -> Self:
        if len(self.lower) != len(self.upper):
            raise ValueError(
                f"lower has {len(self.lower)} coordinates and upper {len(self.upper)}; "
                "give each as many as a point has"
            )
        if any(low > high for low, high in zip(self.lower, self.upper, strict=True)):
            raise ValueError(f"lower {self.lower} exceeds upper {self.upper}; swap them")
        return self

    def start(self, briefing: Briefing) -> Answering:
        if len(self.lower) != briefing.domain.dimensions:
            raise PluginError(
                f"blind spot: lower has {len(self.lower)} coordinates; "
                f"points have {briefing.domain.dimensions}"
            )
        return self

    async def answer(self, query: Query, world: World) -> Estimate:
        points = query.points
        hidden = ((points >= self.lower) & (points <= self.upper)).all(axis=1)
        values = world.rewards(points, world.clock.now)
        unread = np.isnan(values) & ~hidden
        reasons = {_HIDDEN: hidden.any(), NO_READING: unread.any()}
        absent = " or ".join(reason for reason, holds in reasons.items() if holds)
        return Estimate(np.where(hidden, np.nan, values), absent=absent)
