"""Awaiting: which answers and observations may still come, and which are overdue."""

from __future__ import annotations

from collections.abc import Iterator

from sparq_sim.messages import Query
from sparq_sim.optimizers.sparq_memory.offers import Offers

__all__ = ["Awaiting"]

_AWAITED = 32.0
"""For how many rounds at most an answer is awaited; one that is later counts as less exact."""
_OVERDUE = 2.0
"""After how many rounds more than expected an answer is overdue."""
_SAME_ROUND = 0.5
"""A measurement this near to a play, in rounds, is of it."""


class Awaiting:
    """The queries that are open, and the plays that are not observed yet.

    Args:
        offers: What experts offer; it hears who has answered and who has not.
        period: The length of a round, in clock units.
        late_observations: Whether observations take time.
    """

    def __init__(self, offers: Offers, *, period: float, late_observations: bool) -> None:
        self._offers = offers
        self._period = period
        self._late_observations = late_observations
        self._queries: dict[int, Query] = {}
        self._unanswered: dict[int, int] = {}
        self._overdue: set[int] = set()
        self._plays: list[float] = []

    def queries(self) -> Iterator[Query]:
        """Yield the queries whose answers are to be expected."""
        return (query for query in self._queries.values() if query.id not in self._overdue)

    def find_oldest(self, moment: float) -> float | None:
        """Return since when anything is awaited, in rounds; None where nothing is.

        Args:
            moment: The time, in rounds.
        """
        for query in list(self._queries.values()):
            waited = moment - query.asked_at / self._period
            late = self._offers.delay(query.source) + _OVERDUE
            if waited > late:
                self._miss(query)
            if waited > max(_AWAITED, 2 * late):
                self._forget(query.id)
        asked = [query.asked_at / self._period for query in self._queries.values()]
        self._plays = [each for each in self._plays if moment - each <= _AWAITED]
        return min([*asked, *self._plays], default=None)

    def record_play(self, moment: float) -> None:
        """Record that a point is played.

        Args:
            moment: The time, in rounds.
        """
        if self._late_observations:
            self._plays.append(moment)

    def record_observation(self, moment: float) -> None:
        """Record that the reward of a play is observed.

        Args:
            moment: When it was measured, in rounds.
        """
        self._plays = [each for each in self._plays if abs(each - moment) > _SAME_ROUND]

    def record_queries(self, queries: tuple[Query, ...]) -> None:
        """Record the queries that are sent.

        Args:
            queries: All queries of the round.
        """
        self._queries |= {query.id: query for query in queries}
        self._unanswered |= {query.id: len(query.points) for query in queries}

    def record_answer(self, query: Query, rows: int) -> None:
        """Record that some rows of a query are answered.

        Args:
            query: The query; of those that an expert has sent unasked, nothing is recorded.
            rows: How many rows.
        """
        if query.id not in self._queries:
            return
        self._unanswered[query.id] -= rows
        if self._unanswered[query.id] <= 0:
            self._offers.trust[query.source].count_answer(came=True)
            self._forget(query.id)

    def record_failure(self, query: Query, rows: int) -> None:
        """Record that some rows of a query will not be answered.

        Args:
            query: The query; observations have numbers of their own, and are passed over.
            rows: How many rows.
        """
        if query.id not in self._queries or query.source not in self._offers.trust:
            return
        self._unanswered[query.id] -= rows
        self._miss(query)
        if self._unanswered[query.id] <= 0:
            self._forget(query.id)

    def _miss(self, query: Query) -> None:
        if query.id not in self._overdue:
            self._overdue.add(query.id)
            self._offers.trust[query.source].count_answer(came=False)

    def _forget(self, number: int) -> None:
        self._queries.pop(number, None)
        self._unanswered.pop(number, None)
        self._overdue.discard(number)
