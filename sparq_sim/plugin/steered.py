"""Steered environments: systems that can only be tried, as real ones.

Nobody knows the reward where nothing was tried, nor the best there is: traces have rewards as
observed, and no regret.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from numpy.random import Generator

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Domain
from sparq_sim.errors import PluginError, Unavailable
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import World

__all__ = ["SafeMoment", "Steered", "SteeredEnvironment"]

SafeMoment: TypeAlias = Literal["start", "end", "interrupt", "failure"]
"""When a system is brought into a safe state: before the first round, after the last, when a user
stops the play, and when it fails."""

_UNKNOWN = "the reward of this system is known only where a point was applied"


@runtime_checkable
class Steered(Protocol):
    """A system that can only be tried: a point is applied to it, and its reward comes back.

    It may be a context manager, also an asynchronous one, such as a client that connects.
    """

    @property
    def domain(self) -> Domain:
        """Where points may lie: a `Box` or `Sites`; the same during the whole play."""

    async def apply(self, query: Query, world: World) -> Estimate:
        """Bring the system to a point, and return the reward that comes back, now or later.

        Args:
            query: Its `points` are the one point to apply: (1, d).
            world: The clock, chance and name of this request.

        Returns:
            `Estimate([reward], std)`.

        Raises:
            Unavailable: There is no reward; the message is the reason.
            Exception: Any other; the observation fails as invalid, and the play goes on.
        """

    async def make_safe(self, moment: SafeMoment) -> None:
        """Bring the system into its safe state, unless it is to stay as it is.

        Args:
            moment: Why it is done now.

        Raises:
            Exception: Any; it is reported as a safe state that could not be reached.
        """

    def safe_action(self, moment: SafeMoment) -> str:
        """Return what `make_safe` will do, in words: "hold" where it does nothing.

        Args:
            moment: When it would be done.
        """


class SteeredEnvironment(Environment):
    """A system that can only be tried, as a real one; the base to derive one from.

    Define `connect`. Set `is_real = True` where it exists in real time only.

    Example:
        A valve whose yield is measured when it has been set::

            class Valve(SteeredEnvironment):
                '''The yield of a plant, by the opening of a valve.'''

                is_real = True

                def connect(self, rng):
                    return ValveDriver()


            class ValveDriver:
                domain = Box(0.0, 1.0, ["opening"])

                async def apply(self, query, world):
                    await set_valve(query.points[0, 0])
                    return Estimate([await measure_yield()], stds=0.1)

                async def make_safe(self, moment):
                    await set_valve(0.5)

                def safe_action(self, moment):
                    return "apply [0.5]"
    """

    def connect(self, rng: Generator) -> Steered:
        """Return the system of one play; what it holds open it enters as a context manager.

        Args:
            rng: The only source of chance, for a system that is simulated.

        Raises:
            Exception: Any; the play does not begin, and the error names the environment.
        """
        raise NotImplementedError(f"{type(self).__name__} must define connect(self, rng)")

    def start(self, rng: Generator) -> Landscape:
        return _TriedLandscape(self.connect(rng))


class _TriedLandscape:
    """A system as a landscape, whose rewards nobody knows."""

    def __init__(self, steered: Steered) -> None:
        self._steered = steered
        self._entered: Any = None

    @property
    def domain(self) -> Domain:
        return self._steered.domain

    def rewards(self, points: Points, time: float) -> Values:
        raise Unavailable(_UNKNOWN)

    def best(self, time: float) -> tuple[Point, float]:
        raise Unavailable(_UNKNOWN)

    async def apply(self, query: Query, world: World) -> Estimate:
        return await self._steered.apply(query, world)

    async def make_safe(self, moment: SafeMoment) -> None:
        await self._steered.make_safe(moment)

    def safe_action(self, moment: SafeMoment) -> str:
        return self._steered.safe_action(moment)

    async def __aenter__(self) -> Self:
        manager: Any = self._steered
        if hasattr(type(manager), "__aenter__"):
            entered = await manager.__aenter__()
        elif hasattr(type(manager), "__enter__"):
            entered = manager.__enter__()
        else:
            needed = ("domain", "apply", "make_safe", "safe_action")
            if missing := [name for name in needed if not hasattr(manager, name)]:
                raise PluginError(
                    f"connect gives an object of type {type(manager).__name__}, which must have "
                    f"{', '.join(missing)}"
                )
            return self
        self._entered = manager
        if entered is not None:
            self._steered = entered
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        manager, self._entered = self._entered, None
        if manager is None:
            return
        if hasattr(type(manager), "__aexit__"):
            await manager.__aexit__(kind, error, trace)
        else:
            manager.__exit__(kind, error, trace)
