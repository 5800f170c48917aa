"""Optimizer: the base of optimizers, and what the agent that one starts must be and may be."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from numpy.random import Generator

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Box
from sparq_sim.messages import Move, Reply
from sparq_sim.plugin.briefing import Access, Briefing
from sparq_sim.plugin.model import Model

__all__ = ["Agent", "Asks", "Belief", "Believing", "Evidence", "Optimizer", "Restrictable"]

Asks: TypeAlias = Literal["never", "past", "anywhere"]
"""Whether an optimizer asks experts: never, at points already played, or wherever it may."""


@runtime_checkable
class Agent(Protocol):
    """A started optimizer: it chooses; it never waits and never sees a clock.

    It may also be `Believing` and `Restrictable`.
    """

    def ask(self, now: float) -> Move:
        """Choose what to play and whom to ask.

        It is called at the beginning of each round; after a move without a point it is called
        again at each reply, and at the latest when the next round begins.

        Args:
            now: The time, in clock units.

        Returns:
            `Move(point, queries)`, or `Move(None, queries)` to wait. The first round must play.
            The id of a query is positive and never used twice; its `asked_at` is *now*.
        """

    def tell(self, reply: Reply) -> None:
        """Take in a reply, which may come late, out of order, or never.

        Args:
            reply: An `Answer` with values, or a `Failure` with a reason; it names its query, and
                the source "reward" is the observation of a point that was played.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The values that a belief rests on, with the noise that the agent reckons with by now."""

    points: Points
    """Where they were measured: (n, d)."""
    values: Values
    """What was measured, as it was told to the agent: (n,)."""
    stds: Values
    """How uncertain each is by now, in reward units: (n,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What an agent believes of the reward at n points; its upper bound is mean + width * std."""

    mean: Values
    """The expected reward at each point: (n,)."""
    std: Values
    """How uncertain that is, in reward units: (n,), none below 0."""
    width: float
    """How many stds above the mean the agent's bound lies."""
    evidence: Evidence | None = None
    """What it rests on, which the report shows; None where the agent does not tell."""


@runtime_checkable
class Believing(Protocol):
    """An agent that can state what it believes of the reward; reports show it."""

    def belief(self, points: Points, now: float) -> Belief | None:
        """Return what is believed at each row of *points*; None as long as there is no belief.

        Asking changes nothing: the agent plays on as if it had not been asked.

        Args:
            points: Where: (n, d).
            now: The time of the last move, in clock units.
        """


@runtime_checkable
class Restrictable(Protocol):
    """An agent that can be told during a play to keep within narrower bounds.

    Points of another agent are moved to the nearest one within the bounds.
    """

    def restrict(self, bounds: Box) -> None:
        """Play within *bounds* from now on; what experts are asked is not restricted.

        Args:
            bounds: Within the domain; they may be wider than those of before.
        """


class Optimizer(Model):
    """A way to choose points; the base to derive an optimizer from.

    The fields are its parameters. Define `start`, which makes the agent of one play; all that is
    learnt is kept in the agent. Set `asks` and define `check_experts` where the optimizer needs
    experts.

    An agent that holds something open, such as a file, defines `__enter__` and `__exit__`: it is
    entered before the play, and left after it. A mistake of an agent, such as a point outside the
    domain, ends the play with a `PluginError`. Check yours by `sparq_sim.testing.check_optimizer`.

    Example:
        Plays the best point observed so far, or now and then a random one::

            class Greedy(Optimizer):
                '''Plays the best point so far, but a random one with *probability*.'''

                asks = "never"

                probability: Probability = 0.1
                '''How often a random point is played.'''

                def start(self, briefing, rng):
                    return GreedyAgent(self.probability, briefing.domain, rng)


            class GreedyAgent:
                def __init__(self, probability, domain, rng):
                    self._probability, self._domain, self._rng = probability, domain, rng
                    self._best, self._highest = None, -np.inf

                def ask(self, now):
                    if self._best is None or self._rng.random() < self._probability:
                        return Move(self._domain.sample(self._rng, 1)[0])
                    return Move(self._best)

                def tell(self, reply):
                    if isinstance(reply, Answer) and reply.values[0] > self._highest:
                        self._best, self._highest = reply.points[0], reply.values[0]
    """

    asks: ClassVar[Asks | None] = None
    """Whether it asks experts, by which a scenario is checked; None where that is not known."""

    def where_asks(self) -> Asks | None:
        """Return whether it asks experts with the fields that it has; by default as *asks* says.

        Define it where that depends on a field.
        """
        return self.asks

    def check_experts(self, names: Collection[str]) -> None:
        """Raise an error if the optimizer cannot play with these experts; by default, never.

        Args:
            names: The names of all experts of the play.

        Raises:
            PluginError: An expert is missing, or one too many; the message has the remedy.
        """

    def check_access(self, access: Access) -> None:
        """Raise an error if the optimizer cannot play where experts answer; by default, never.

        Args:
            access: Where experts may be asked: at points already played, or in the whole domain.

        Raises:
            PluginError: It would ask elsewhere; the message has the remedy.
        """

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Return the agent of one play.

        Args:
            briefing: The domain, the terms of all sources, and the rules of the play.
            rng: The agent's own source of chance, to be kept and used during the whole play; no
                other may be used.

        Raises:
            Exception: Any; the play does not begin, and the error names the optimizer.
        """
        raise NotImplementedError(f"{type(self).__name__} must define start(self, briefing, rng)")
