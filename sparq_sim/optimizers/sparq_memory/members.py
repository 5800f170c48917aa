"""Members: the hypotheses of every bank, from jitter within rounds to a hill that moves."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from sparq_sim.optimizers.sparq_memory.carried import Carried, Currents
from sparq_sim.optimizers.sparq_memory.features import SpatialFeatures
from sparq_sim.optimizers.sparq_memory.hypothesis import Hypothesis
from sparq_sim.optimizers.sparq_memory.markov import Markov

__all__ = ["DRIFTS", "MEMBERS", "SENTINEL", "Drift", "Member"]

Drift: TypeAlias = Literal["jitter", "velocity", "carried"]
"""How the reward changes: without a velocity, with one at each place, or moving as a whole."""

DRIFTS: tuple[Drift, ...] = ("jitter", "velocity", "carried")
"""All of them."""


class Member(NamedTuple):
    """A way in which the reward may change."""

    drift: Drift
    """How the reward changes."""
    time_scale: float
    """Within how many rounds what changes is forgotten."""
    changing: float = 0.5
    """The share of the prior variance that changes; the rest stays."""
    local: bool = True
    """Whether it is learnt how much the reward changes at each place."""
    speed: float = 0.0
    """The std of the velocity with which it is carried, in lengths a round."""
    steady: float = 20.0
    """Within how many rounds that velocity is forgotten."""

    def start(self, features: SpatialFeatures, currents: Currents) -> Hypothesis:
        """Return the hypothesis, before any observation.

        Args:
            features: The features of points.
            currents: How they change when the reward is shifted.
        """
        if self.drift == "carried":
            return Carried(
                features.rank,
                currents,
                speed=self.speed,
                steady=self.steady,
                time_scale=self.time_scale,
            )
        return Markov(
            features.rank,
            kind=self.drift,
            time_scale=self.time_scale,
            changing=self.changing,
            local=self.local,
        )


MEMBERS = (
    Member("jitter", 3.0, 0.8),
    Member("jitter", 10.0, 0.8),
    Member("jitter", 30.0, 0.8),
    Member("jitter", 150.0, 0.8),
    Member("jitter", 1000.0, 0.02),
    Member("jitter", 8.0, 0.8, local=False),
    Member("jitter", 40.0, 0.8, local=False),
    Member("velocity", 6.0),
    Member("velocity", 15.0),
    Member("velocity", 40.0),
    Member("velocity", 120.0),
    Member("carried", 100.0, speed=0.07),
    Member("carried", 30.0, speed=0.07),
    Member("carried", 100.0, speed=0.2),
    Member("carried", 30.0, speed=0.2),
    Member("carried", 30.0, speed=0.5, steady=10.0),
)
"""The members of every bank."""

SENTINEL = MEMBERS.index(Member("jitter", 40.0, 0.8, local=False))
"""The one that never sleeps: by it, the reward may change everywhere."""
