"""The expert who asks others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import numpy as np
from pydantic import Field, field_validator

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import PluginError, Unavailable, did_you_mean
from sparq_sim.fields import Positive
from sparq_sim.messages import Answer, Estimate, Query, Reply
from sparq_sim.plugin.contract import Answering, Briefing, Expert, World


class Committee(Expert):
    """Asks its *members*, all at once, and combines their answers by precision.

    With w_i = 1 / std_i^2, value = sum w_i value_i / sum w_i and std = (sum w_i)^(-1/2): the
    unbiased linear estimate of least variance, if errors are independent and stds honest
    (Aitken 1935). The same weights date it: measured_at = sum w_i measured_at_i / sum w_i, which
    is right where rewards drift linearly; among the points of a query, the earliest. Members who
    fail at a point are left out there. What they cost is charged on their own channels.
    """

    members: Annotated[tuple[str, ...], Field(min_length=1)]
    """Names of other experts of the play."""
    floor: Positive = 1e-6
    """A smaller std counts as this one, in reward units: who claims to be exact is not alone."""

    @field_validator("members")
    @classmethod
    def _once_each(cls, members: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(members)) != len(members):
            raise ValueError(f"a member is named twice: {', '.join(members)}; once is enough")
        return members

    def check_experts(self, names: Collection[str]) -> None:
        """Refuse members whom nobody knows."""
        for name in self.members:
            if name not in names:
                raise PluginError(
                    f"committee: no expert is called {name!r}: {did_you_mean(name, names)}"
                )

    def start(self, briefing: Briefing) -> Answering:
        """Refuse members whom nobody knows."""
        self.check_experts(briefing.experts)
        return self

    async def answer(self, query: Query, world: World) -> Estimate:
        """Ask all, wait for all, and combine what came."""
        asked = [world.clock.start(_ask(world, name, query.points)) for name in self.members]
        answers: list[Answer] = []
        for process in asked:
            replies = await process
            if isinstance(replies, ValueError):
                raise replies
            answers.extend(reply for reply in replies or () if isinstance(reply, Answer))
        if not answers:
            raise Unavailable("no member answered")
        rows = np.concatenate([answer.rows for answer in answers])
        stds = np.concatenate([answer.stds for answer in answers])
        precisions = np.maximum(stds, self.floor) ** -2

        def weighted(numbers: Values) -> Values:
            sums = np.bincount(rows, precisions * numbers, minlength=len(query.points))
            return sums.astype(float)

        weights = weighted(np.ones(len(rows)))
        weights[weights == 0] = np.nan
        values = weighted(np.concatenate([answer.values for answer in answers])) / weights
        moments = [answer.measured_at for answer in answers]
        dates = weighted(np.repeat(moments, [len(answer.rows) for answer in answers])) / weights
        # A weighted average may exceed its largest part by a rounding.
        measured_at = min(float(np.nanmin(dates)), world.clock.now)
        stds = weights**-0.5
        return Estimate(values, stds=stds, measured_at=measured_at, absent="no member answered")


async def _ask(world: World, name: str, points: Points) -> tuple[Reply, ...] | ValueError:
    """Ask a member; refusals are handed back, for a process that raises ends the play."""
    try:
        return await world.ask(name, points)
    except ValueError as refusal:
        return refusal
