"""The ledger of a play: its trace as laws read it, and what was declared of each source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.laws.broken import Broken
from sparq_sim.simulation.records import REFUSALS, UNASKED, Fate
from sparq_sim.simulation.start import pair_experts, reduce_if_real
from sparq_sim.simulation.trace import Trace

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played

__all__ = ["EPSILON", "LawOfPlays", "Ledger", "Requests", "Rows"]

Rows: TypeAlias = NDArray[np.bool_]
"""Marks some rows of the replies, (replies,)."""
EPSILON = 1e-9
"""The rounding that is allowed, as a share; a budget of 1 pays ten times 0.1."""
_MOST = 3
"""So many places that break a law are named."""


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """The attempts that one source was put to, one entry each; refused ones are left out."""

    first: NDArray[np.intp]
    """The first row of its replies."""
    size: NDArray[np.intp]
    """How many points."""
    cost: NDArray[np.float64]
    """What was charged for it."""
    served_at: NDArray[np.float64]
    """When service began; NaN where it did not."""
    left_at: NDArray[np.float64]
    """When it was sent back or given up, and its slot at a plain source free again."""
    is_answered: NDArray[np.bool_]
    """Whether at least one of its points was answered."""


class Ledger:
    """What laws know of a play.

    A *plain* source answers a question once, when its service ends, and charges nothing of its
    own; the environment of a simulated play always does.
    """

    def __init__(self, trace: Trace, played: Played, plain: Collection[str]) -> None:
        """Read a trace.

        Args:
            trace: The trace of the play, with its replies.
            played: What was played.
            plain: The names of plain experts.
        """
        self.trace = trace
        self.rules = played.rules
        self.is_live = played.live
        pairs = pair_experts(played)
        self.channels: dict[str, Channel] = {
            REWARD: reduce_if_real(played, played.environment, played.feedback),
            **{
                name: reduce_if_real(played, expert, channel)
                for name, (expert, channel) in pairs.items()
            },
        }
        real = {name for name, (expert, _) in pairs.items() if expert.is_real}
        self.plain = frozenset(plain) - real
        if not played.environment.is_real:
            self.plain |= {REWARD}
        policies = (channel.policy for channel in self.channels.values())
        self.fallbacks = frozenset(policy.fallback for policy in policies if policy.fallback)
        self._requests: dict[str, Requests] = {}

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.trace.replies[column]

    # Marks of replies

    @cached_property
    def answered(self) -> Rows:
        """Which points were answered."""
        return self.of_fate(Fate.ANSWERED)

    @cached_property
    def unasked(self) -> Rows:
        """Which replies came in addition, and nobody hears of."""
        return self.of_fate(*UNASKED)

    @cached_property
    def refused(self) -> Rows:
        """Which points were refused before anything was done about them."""
        unserved = np.isnan(self["served_at"])
        return np.asarray(self.of_fate(*REFUSALS) & unserved, dtype=bool)

    @cached_property
    def shared(self) -> Rows:
        """Which points were served by an answer to another question."""
        return np.asarray(self["attempt"] == 0, dtype=bool)

    @cached_property
    def final(self) -> Rows:
        """Which replies are the end of a point that was asked about."""
        return np.asarray(~self.unasked & ~self["superseded"], dtype=bool)

    @cached_property
    def by_agent(self) -> Rows:
        """Which replies are to questions of the agent."""
        return np.asarray(self["asker"] == AGENT_NAME, dtype=bool)

    @cached_property
    def pushed(self) -> Rows:
        """Which replies a source has sent of its own accord."""
        return np.asarray(self["asker"] == self["source"], dtype=bool)

    @cached_property
    def _by_source(self) -> dict[str, Rows]:
        sources = self["source"]
        return {name: np.asarray(sources == name, dtype=bool) for name in self.channels}

    @cached_property
    def _by_fate(self) -> dict[str, Rows]:
        return {}

    def of(self, source: str) -> Rows:
        """Return which replies are of a source.

        Args:
            source: Its name.
        """
        return self._by_source[source]

    def of_fate(self, *fates: Fate) -> Rows:
        """Return which replies have one of some fates.

        Args:
            fates: At least one.
        """
        known = self._by_fate
        for fate in fates:
            if fate not in known:
                known[fate] = np.asarray(self["fate"] == fate.value, dtype=bool)
        if len(fates) == 1:
            return known[fates[0]]
        return np.asarray(np.logical_or.reduce([known[fate] for fate in fates]), dtype=bool)

    def first_put(self, source: str) -> Rows | None:
        """Return the first attempts that a source was put to when they were asked.

        None where that cannot be told from a trace: a rate holds requests back, and a fallback is
        asked later than the question was.

        Args:
            source: Its name.
        """
        if self.channels[source].policy.rate is not None or source in self.fallbacks:
            return None
        first = self["attempt"] == 1
        return np.asarray(self.of(source) & first & ~self.pushed & ~self.unasked, dtype=bool)

    def requests(self, source: str) -> Requests:
        """Return what a source was put to, each attempt once.

        Of a fallback that does not split, what is asked at one moment may count as one.

        Args:
            source: Its name.
        """
        if source not in self._requests:
            self._requests[source] = self._gather(source)
        return self._requests[source]

    def _gather(self, source: str) -> Requests:
        put = self.of(source) & ~self.shared & ~self.unasked & ~self.refused
        rows = np.flatnonzero(put)
        part = np.where(self.pushed[rows], 0, self["row"][rows])
        if not self.channels[source].split:
            part = np.zeros_like(part)
        query, attempt = self["query"][rows], self["attempt"][rows]
        # A fallback may be asked about some points of a query, and later about others.
        served = np.nan_to_num(self["served_at"][rows], nan=-1.0)
        order = np.lexsort((self["row"][rows], served, part, attempt, query))
        rows = rows[order]
        keys = [key[order] for key in (query, attempt, part, served)]
        is_new = np.ones(len(rows), dtype=bool)
        if len(rows):
            is_new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
        starts = np.flatnonzero(is_new)
        if not len(starts):
            nothing = np.zeros(0)
            return Requests(rows, rows, nothing, nothing, nothing, np.zeros(0, dtype=bool))
        first = rows[starts]
        ended = np.fmin(self["sent_at"], self["arrived_at"])
        return Requests(
            first,
            np.diff(np.append(starts, len(rows))),
            np.add.reduceat(self["cost"][rows], starts),
            self["served_at"][first],
            np.maximum.reduceat(ended[rows], starts),
            np.logical_or.reduceat(self.answered[rows], starts),
        )

    # What is broken

    def broken(self, law: str, rows: Rows, *columns: str) -> Iterator[Broken]:
        """Yield the first of some replies, which break a law.

        Args:
            law: What should hold.
            rows: Which replies break it.
            columns: What to show of them.

        Yields:
            A reply each.
        """
        if rows.any():
            yield from self.broken_at(law, np.flatnonzero(rows), *columns)

    def broken_at(self, law: str, places: NDArray[np.intp], *columns: str) -> Iterator[Broken]:
        """Yield the replies at the first of some places, which break a law.

        Args:
            law: What should hold.
            places: Rows of the replies.
            columns: What to show of them.

        Yields:
            A reply each.
        """
        for place in places[:_MOST].tolist():
            shown = ("query", "row", "attempt", *columns)
            seen = ", ".join(f"{name} {self[name][place]}" for name in shown)
            yield Broken(law, seen, str(self["source"][place]), int(self["round"][place]))

    def broken_rounds(self, law: str, rows: Rows, *columns: str) -> Iterator[Broken]:
        """Yield the first of some rounds, which break a law.

        Args:
            law: What should hold.
            rows: Which rounds break it.
            columns: What to show of them.

        Yields:
            A round each.
        """
        if rows.any():
            rounds = self.trace.rounds
            for place in np.flatnonzero(rows)[:_MOST].tolist():
                seen = ", ".join(f"{name} {rounds[name][place]}" for name in columns)
                yield Broken(law, seen, round=int(rounds["round"][place]))


LawOfPlays: TypeAlias = Callable[[Ledger], Iterator[Broken]]
"""Yields what breaks a law, which its docstring states."""
