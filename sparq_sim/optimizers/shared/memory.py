"""Memory: what an optimizer keeps of the answers, and what it believes by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.candidates import OffCandidatesError
from sparq_sim.gp.observations import GrowingArray
from sparq_sim.gp.posterior.predictor import Predictor
from sparq_sim.messages import Answer, Notes, Query
from sparq_sim.optimizers.shared.prior import GPPrior

__all__ = ["Memory"]


class Memory:
    """What an optimizer remembers; this one remembers everything alike, as GP-UCB does.

    *times* say when each observation in the posterior was measured.
    """

    waits = False
    """Whether the move is held back until the queries of the round are answered."""
    told = 0
    """How many values it has been told."""

    def __init__(self, prior: GPPrior, period: float) -> None:
        self.prior = prior
        self.period = period
        self.times = GrowingArray()
        self.posterior = prior.start_posterior()

    @property
    def size(self) -> int:
        """How many observations the belief rests on."""
        return len(self.posterior)

    def learn(self, answer: Answer) -> None:
        """Take in an answer, which may come late or out of order."""
        self.add(answer.points, answer.values, self.prior.variances(answer))
        self.times.extend(answer.measured_at, len(answer.values))

    def predictor(self, now: float) -> Predictor:
        """Say what is believed of the reward in the round that begins *now*."""
        return self.posterior

    def record_play(self, point: Point) -> None:
        """Take note that *point* is played."""

    def choose_points_to_ask(self, now: float) -> Mapping[str, Points]:
        """Say which expert to ask about which points in the round that begins *now*."""
        return {}

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        """Take note of the *queries* that go out together."""

    def notes(self) -> Notes:
        """Give numbers for the trace."""
        return {}

    def ages(self, now: float) -> Values:
        """Give how many rounds old each observation is; those of the round before are new."""
        return np.maximum((now - self.times.array) / self.period - 1.0, 0.0)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget all observations but those *kept*."""
        if np.count_nonzero(kept) < len(kept):
            self.times.keep(kept)
            self.posterior.remove(np.flatnonzero(~kept))

    def add(self, points: Points, values: Values, variances: Values) -> None:
        """Add to the posterior, also what lies off the candidates."""
        try:
            self.posterior.add(points, values, variances=variances)
        except OffCandidatesError:
            seen = self.posterior.observations
            self.prior = replace(self.prior, on_candidates_only=False)
            self.posterior = self.prior.start_posterior()
            if len(seen):
                self.posterior.add(seen.points, seen.values, variances=seen.variances)
            self.posterior.add(points, values, variances=variances)
