"""The expert `committee`: a combination of what other experts answer."""

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

__all__ = ["Committee"]


class Committee(Expert):
    """Asks all its *members* at once and combines their answers by precision.

        w_i = 1 / std_i^2,  value = sum w_i value_i / sum w_i,  std = (sum w_i)^(-1/2)

    This is the unbiased linear estimate of least variance, if errors are independent and the
    claimed stds are true (Aitken 1935). The time of measurement is the same weighted average,
    measured_at = sum w_i measured_at_i / sum w_i, which is right where rewards drift linearly; of
    the points of a query, the earliest counts. A member that fails at a point is left out there;
    the point fails if no member answers. Each member is paid over its own channel.
    """

    members: Annotated[tuple[str, ...], Field(min_length=1)]
    """The names of the other experts in the scenario that it asks."""
    floor: Positive = 1e-6
    """The smallest std that counts, in reward units. It keeps a member that claims to be exact from
    outweighing all others."""

    @field_validator("members")
    @classmethod
    def _once_each(cls, members: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(members)) != len(members):
            raise ValueError(f"a member is named twice: {', '.join(members)}; once is enough")
        return members

    def check_experts(self, names: Collection[str]) -> None:
        """Check that every member is an expert of the play.

        Args:
            names: The names of all experts of the play.

        Raises:
            PluginError: A member is not among *names*.
        """
        for name in self.members:
            if name not in names:
                raise PluginError(
                    f"committee: no expert is called {name!r}: {did_you_mean(name, names)}"
                )

    def start(self, briefing: Briefing) -> Answering:
        self.check_experts(briefing.experts)
        return self

    async def answer(self, query: Query, world: World) -> Estimate:
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

        def weigh(numbers: Values) -> Values:
            sums = np.bincount(rows, precisions * numbers, minlength=len(query.points))
            return sums.astype(float)

        weights = weigh(np.ones(len(rows)))
        weights[weights == 0] = np.nan
        values = weigh(np.concatenate([answer.values for answer in answers])) / weights
        moments = [answer.measured_at for answer in answers]
        dates = weigh(np.repeat(moments, [len(answer.rows) for answer in answers])) / weights
        # A weighted average may exceed its largest part by a rounding.
        measured_at = min(float(np.nanmin(dates)), world.clock.now)
        stds = weights**-0.5
        return Estimate(values, stds=stds, measured_at=measured_at, absent="no member answered")


async def _ask(world: World, name: str, points: Points) -> tuple[Reply, ...] | ValueError:
    """Ask a member, and return a refusal as a value: a process that raises ends the play."""
    try:
        return await world.ask(name, points)
    except ValueError as refusal:
        return refusal
