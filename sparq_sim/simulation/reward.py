"""The reward: the environment as the source whose answers count, and as the judge of regret."""

from __future__ import annotations

from math import isfinite, nan

import numpy as np

from sparq_sim.arrays import Points, Values, all_finite
from sparq_sim.errors import PluginError
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.environment import Landscape, Observing, WithGaps
from sparq_sim.plugin.expert import World
from sparq_sim.plugin.steered import Steered

__all__ = ["Reward"]


class Reward:
    """Answers what is observed at the point in force, and judges it without noise."""

    def __init__(self, landscape: Landscape, environment: str) -> None:
        """Take the place of a source.

        Args:
            landscape: The started environment.
            environment: How messages name it.
        """
        self._landscape = landscape
        self._environment = environment
        self._is_observed_as_judged = not isinstance(landscape, Observing | WithGaps)
        self._steered = landscape if isinstance(landscape, Steered) else None
        self._judged: tuple[Points, float, Values] | None = None

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return the reward of now, with the world's own noise if it has any.

        Where a system can only be tried, this is what tries it.
        """
        if self._steered is not None:
            return await self._steered.apply(query, world)
        judged, self._judged = self._judged, None
        if judged is not None and judged[0] is query.points and judged[1] == world.clock.now:
            return Estimate(judged[2])
        return Estimate(world.observe(query.points))

    def judge(self, points: Points, time: float) -> tuple[float, float]:
        """Return the noise-free reward at the one point of *points*, and the best there is.

        Args:
            points: The point that was played: (1, d).
            time: When, in clock units.

        Returns:
            Both; NaN where a system can only be tried, so that nobody knows them.

        Raises:
            PluginError: The environment gives what is no reward.
        """
        if self._steered is not None:
            return nan, nan
        rewards = np.asarray(self._landscape.rewards(points, time), dtype=float)
        if self._is_observed_as_judged:  # Kept for the answer about just this point.
            self._judged = points, time, rewards
        found = self._landscape.best(time)
        try:
            best = float(found[1])
        except (TypeError, ValueError, LookupError) as error:
            raise PluginError(
                f"{self._environment}: best gives {found!r:.80} at time {time}; expected a point "
                "and its reward"
            ) from error
        if rewards.shape != (1,) or not isfinite(rewards[0]):
            self.check(rewards, points, time)
        if not isfinite(best):
            raise PluginError(
                f"{self._environment} gives {best} as the best reward at time {time}; "
                "expected a finite number"
            )
        return float(rewards[0]), best

    def check(self, rewards: Values, points: Points, time: float) -> None:
        """Raise PluginError, unless *rewards* are a finite number for each of *points*.

        Args:
            rewards: What the landscape returned.
            points: Where: (n, d).
            time: When, in clock units.
        """
        given = np.asarray(rewards, dtype=float)
        if given.shape != (len(points),):
            raise PluginError(
                f"{self._environment} gives rewards of shape {given.shape} for {len(points)} "
                f"points at time {time}; expected ({len(points)},)"
            )
        if not all_finite(given):
            row = int(np.argmin(np.isfinite(given)))
            raise PluginError(
                f"{self._environment} gives the reward {given[row]} at {points[row].tolist()}, "
                f"time {time}; expected finite numbers, one for each point"
            )
