"""Memory: what an optimizer keeps of the answers, and what it believes given them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Matrix, Point, Points, Values
from sparq_sim.gp.candidates import OffCandidatesError
from sparq_sim.gp.observations import GrowingArray
from sparq_sim.gp.predictor import Predictor
from sparq_sim.messages import Answer, Failure, Notes, Query
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.plugin.briefing import SourceTerms
from sparq_sim.plugin.optimizer import Evidence

if TYPE_CHECKING:
    from sparq_sim.optimizers.shared.asking import Asker

__all__ = ["Memory"]


class Memory:
    """What an optimizer remembers; this one remembers everything alike, as GP-UCB does.

    An agent starts one memory for each prior. It tells it each answer (`learn`), asks it what is
    believed when a round begins (`predictor`), and records what is played and asked. Subclasses
    forget, or weigh what is old.

    Args:
        prior: What is believed before any observation.
        period: The length of a round, in clock units.
    """

    waits = False
    """Whether the move is held back until the queries of the round are answered."""
    told = 0
    """How many values it has been told."""
    asker: Asker | None = None
    """Who chooses whom to ask about which points; None where nobody is asked in the shared way."""

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
        """Learn from an answer, which may come late or out of order.

        Args:
            answer: The values, their points and when they were measured.
        """
        self.add(answer.points, answer.values, self.prior.variances(answer))
        self.times.extend(answer.measured_at, len(answer.values))

    def record_failure(self, failure: Failure) -> None:
        """Record that points of a query will not be answered.

        Args:
            failure: Which, and why.
        """

    def predictor(self, now: float) -> Predictor:
        """Return what is believed of the reward in the round that begins.

        Args:
            now: When the round begins, in clock units.
        """
        return self.posterior

    def evidence(self, predictor: Predictor) -> Evidence | None:
        """Return the values that a belief rests on; None where they are not kept one by one.

        Args:
            predictor: What is believed, as `predictor` has returned it.
        """
        if predictor is not self.posterior:
            return None
        seen = self.posterior.observations
        return Evidence(seen.points.copy(), seen.values.copy(), np.sqrt(seen.variances))

    def hopes(self, predictor: Predictor) -> Predictor:
        """Return that of which the upper confidence bound is taken.

        By default it is what is believed; a memory may count less of what is not known, where a
        play is not needed to find it out.

        Args:
            predictor: What is believed of the reward in the round that begins.
        """
        return predictor

    def record_play(self, point: Point, now: float) -> None:
        """Record that a point is played.

        Args:
            point: The point, (d,).
            now: When its round began, in clock units.
        """
        if self.asker is not None:
            self.asker.record_play(point)

    def choose_points_to_ask(self, now: float) -> Mapping[str, Points]:
        """Choose the points to ask experts about in the round that begins.

        Args:
            now: When the round begins, in clock units.

        Returns:
            The points for each expert, by name, (q, d); none where there is no *asker*.
        """
        return {} if self.asker is None else self.asker.choose(self, now)

    def covariance_unasked(self, points: Points, now: float) -> Matrix:
        """Return the covariance of the rewards at some points, as if no expert had been asked.

        Points are shared among experts by it; by default it is that of the prior.

        Args:
            points: The points, (n, d).
            now: When the round begins, in clock units.

        Returns:
            The covariance, in squared reward units, (n, n).
        """
        return self.prior.kernel(points, points)

    def ageing_rate(self, terms: SourceTerms) -> float:
        """Return how fast answers of an expert age, in squared reward units per squared round.

        Late experts are compared with prompt ones by it; by default 0, as if they did not age.

        Args:
            terms: What is known of the expert beforehand.
        """
        return 0.0

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        """Record the queries that are sent together.

        Args:
            queries: All queries of the round.
        """

    def notes(self) -> Notes:
        """Return numbers for the trace of the round, by name."""
        return {} if self.asker is None else self.asker.notes()

    def ages(self, now: float) -> Values:
        """Return the age of each observation in rounds, (n,); those of the round before have 0.

        Args:
            now: When the round begins, in clock units.
        """
        return np.maximum((now - self.times.array) / self.period - 1.0, 0.0)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget all observations but some.

        Args:
            kept: Which observations stay, (n,).
        """
        if np.count_nonzero(kept) < len(kept):
            self.times.keep(kept)
            self.posterior.remove(np.flatnonzero(~kept))

    def add(self, points: Points, values: Values, variances: Values) -> None:
        """Add observations to the posterior, also such as lie off the candidates.

        Args:
            points: Where they were made, (n, d).
            values: What was observed, in reward units, (n,).
            variances: Their noise variances, in squared reward units, (n,).
        """
        try:
            self.posterior.add(points, values, variances=variances)
        except OffCandidatesError:
            seen = self.posterior.observations
            self.prior = replace(self.prior, on_candidates_only=False)
            self.posterior = self.prior.start_posterior()
            if len(seen):
                self.posterior.add(seen.points, seen.values, variances=seen.variances)
            self.posterior.add(points, values, variances=variances)
