"""Expert: the base of experts, what one starts, and the world that an expert may use to answer.

`World` is long because it is the page on which an author reads all that an expert may use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Domain
from sparq_sim.messages import Estimate, Query, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.model import Model

if TYPE_CHECKING:
    from sparq_sim.simulation.clock.protocol import Clock

__all__ = [
    "Accounting",
    "Answering",
    "Broadcasting",
    "Expert",
    "MaybeManaged",
    "Metered",
    "World",
]

T = TypeVar("T")

MaybeManaged: TypeAlias = T | AbstractContextManager[T] | AbstractAsyncContextManager[T]
"""What takes part in a play, or a context manager that gives it when it is entered."""


class World(Protocol):
    """What an expert may use while it answers one query; a play makes one for each.

    All times are in clock units. Whatever an expert does with its world is the same in virtual and
    in real time.

    Example:
        An expert that takes one clock unit to measure with a std of 0.1::

            async def answer(self, query, world):
                await world.clock.sleep(1.0)
                values = world.rewards(query.points, world.clock.now)
                noise = 0.1 * world.rng.normal(size=len(values))
                return Estimate(values + noise, stds=0.1)
    """

    @property
    def clock(self) -> Clock:
        """Time: `now`, `sleep`, `until`, `gate`, `start`; `sleep` and `until` are awaited."""

    @property
    def rng(self) -> Generator:
        """The source of chance of this query alone; no other may be used."""

    @property
    def domain(self) -> Domain:
        """Where points may lie."""

    @property
    def key(self) -> str:
        """What names the query at hand in all the world; empty where there is none.

        It is the same where the query is sent once more, by a retry or after a crash, so that a
        service which honours it does nothing twice.
        """

    def rewards(self, points: Points, time: float) -> Values:
        """Return the noise-free reward at each row of *points*.

        Args:
            points: Where: (n, d).
            time: When, from 0 to now.

        Returns:
            One number a row, (n,): NaN where a record has a gap. A value that is made of it may
            be returned as it is: that point then fails as unavailable, with the reason "no
            reading".

        Raises:
            ValueError: *time* lies in the future, or before 0.
        """

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each row of *points* whether there is a reading of it: (n,).

        Args:
            points: Where: (n, d).
            time: When, from 0 to now.

        Raises:
            ValueError: *time* lies in the future, or before 0.
        """

    def observe(self, points: Points) -> Values:
        """Return the reward of now at each row of *points*, with the landscape's own noise.

        Args:
            points: Where: (n, d).

        Returns:
            One number a row, (n,): NaN in a gap, and the noise-free reward where the landscape
            has no noise of its own.
        """

    def coarse(self, resolution: float) -> Landscape:
        """Return the same landscape computed more cheaply.

        Its rewards are known from 0 to now as well, and NaN in a gap.

        Args:
            resolution: The share of the landscape's own resolution, above 0 and at most 1.

        Raises:
            ValueError: The environment has no cheaper version.
        """

    async def ask(self, name: str, points: Points) -> tuple[Reply, ...]:
        """Ask another expert, over its channel, and wait for all its replies.

        Args:
            name: The expert's name in the play.
            points: Where: (n, d), within the domain.

        Returns:
            Answers and failures, in the order of the rows.

        Raises:
            ValueError: No expert has that name, a point lies outside the domain, or experts ask
                each other in a circle.
        """

    async def compute(self, function: Callable[..., T], *arguments: Any, takes: float = 0.0) -> T:
        """Call a *function* that computes for long, or blocks, and return its result.

        In virtual time it is called on the spot, and then the declared time passes, however long
        it took. In real time it runs in a thread, so that it delays nobody else, and lasts as long
        as it takes, but no less than declared.

        Args:
            function: Not an `async def`. In real time it runs to its end even where the answer is
                no longer wanted.
            arguments: What it is called with.
            takes: How long that is declared to last, in clock units, also if it fails.

        Raises:
            ValueError: *takes* is negative or not finite.
            TypeError: *function* is an `async def`.
        """

    async def run(
        self,
        command: Sequence[str | Path],
        *,
        input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
        takes: float = 0.0,
        timeout: float | None = None,
    ) -> str:
        """Run another program to its end, and return what it writes to stdout.

        Time passes as for `compute`. The program is killed when the answer is no longer wanted, or
        the play ends.

        Args:
            command: The program and its arguments; no shell is involved.
            input: What it reads from stdin; nothing by default.
            takes: How long that is declared to last, in clock units.
            timeout: How long it may take, in seconds of real time; without end by default.

        Raises:
            ProgramError: It is missing, ends with another code than 0, or not in time.
        """

    def open(self, points: Points) -> Query:
        """Return a query of the expert's own, to send a reading that nobody asked for.

        Args:
            points: Where the reading was taken: (n, d), within the domain.
        """

    def send(self, query: Query, estimate: Estimate) -> None:
        """Send an estimate to the agent now, over the expert's channel.

        Args:
            query: The one being answered, or one from `open`.
            estimate: What the expert knows of its points.

        Raises:
            ValueError: The query is neither; or it was opened long ago and is over, and has been
                forgotten.
        """

    def note(self, **columns: float) -> None:
        """Add numbers to the trace, beside the reply to this query.

        Args:
            columns: `name=number` becomes the column `note_name`.

        Raises:
            ValueError: The world is that of a broadcast, which replies to no query; there,
                `Estimate.notes` takes the numbers.
        """

    def charge(self, cost: float) -> None:
        """Add to what the query at hand costs; it is paid at once, in the round of now.

        This comes on top of what the channel charges, and is paid whatever becomes of the answer.
        In the trace it is part of the `cost` of the query, which may have been sent in an earlier
        round.

        Args:
            cost: In units of the budget, 0 or more.

        Raises:
            Unaffordable: The budget of the play or of the round cannot pay for it, or the query is
                over, so that nobody would; then nothing is charged.
            ValueError: *cost* is negative or not finite, or the world is that of a broadcast.
        """

    def stop(self, reason: str) -> None:
        """End the play before its next round.

        Args:
            reason: Why, for the trace.
        """


@runtime_checkable
class Answering(Protocol):
    """A started expert; it may also be `Broadcasting`, `Metered` and `Accounting`."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return an estimate of the reward at the query's points; see `Expert.answer`.

        Args:
            query: What is asked: `query.points` is (n, d).
            world: The clock, chance and rewards that may be used.
        """


@runtime_checkable
class Broadcasting(Protocol):
    """A started expert that sends readings that nobody asked for."""

    async def broadcast(self, world: World) -> None:
        """Send readings, by `world.send(world.open(points), estimate)`.

        It is called once, when the play begins, and may run until the play ends.

        Args:
            world: The clock, chance and rewards of the play.
        """


@runtime_checkable
class Metered(Protocol):
    """A started expert that has numbers to show for every round, as how much energy is left."""

    def meters(self, time: float) -> Mapping[str, float]:
        """Return numbers of now; each becomes a column `meter_<expert>_<name>` of the rounds.

        It is called once a round, when the point of the round has been played, and must change
        nothing.

        Args:
            time: Now, in clock units.

        Returns:
            Finite numbers by name, or NaN; a name is an identifier. What is left out is NaN.
        """


@runtime_checkable
class Accounting(Protocol):
    """A started expert that leaves tables when a play has ended, as of each of its sensors."""

    def accounts(self, time: float) -> Mapping[str, Mapping[str, ArrayLike]]:
        """Return tables of what happened; each becomes `Trace.accounts["<expert>/<table>"]`.

        It is called once, when the play has ended.

        Args:
            time: When the play ended, in clock units.

        Returns:
            Tables by name, of columns by name: numbers, bools or strings, one for each row. All
            names are identifiers, and the columns of a table have equal lengths.
        """


class Expert(Model):
    """A source of side information about the reward; the base to derive an expert from.

    The fields are its parameters. Define `answer`; or, where the expert remembers something
    during a play, `start`, which returns a fresh object that has `answer`. Costs, delays, noise
    and losses on the way are not the expert's concern: a `Channel` adds them.

    An expert that sends readings unasked has also `async def broadcast(self, world)`; one that
    keeps books has `def meters(self, time)` or `def accounts(self, time)`. One that holds
    something open, such as a client, returns from `start` an object with `__enter__` and
    `__exit__`, or `__aenter__` and `__aexit__`: it is entered before the play begins, and left when
    the play has ended or failed. Check yours by `sparq_sim.testing.check_expert`.

    Example:
        Knows the reward as it was some time ago::

            class Lagged(Expert):
                '''Knows the reward as it was *lag* clock units ago.'''

                lag: Amount = 2.0
                '''How old its knowledge is, in clock units.'''

                async def answer(self, query, world):
                    then = max(0.0, world.clock.now - self.lag)
                    return Estimate(world.rewards(query.points, then), measured_at=then)
    """

    is_real: ClassVar[bool] = False
    """Whether it is something real, which can be reached in real time only."""

    def honours_keys(self) -> bool:
        """Return whether a query that comes twice with one `World.key` is carried out once.

        If so, what is open when a live play is interrupted is sent again when it goes on.
        """
        return False

    def is_recording(self) -> bool:
        """Return whether its answers were recorded, with all delays, noise and failures.

        If so, of its channel only costs and splitting apply; optimizers are told of all of it.
        """
        return False

    def check_play(self, until: float) -> None:
        """Raise an error if the expert cannot answer until then; by default, never.

        It is called before anything is played, and by `sparq-sim check`.

        Args:
            until: When the play ends, in clock units.

        Raises:
            SparqError: Something is missing, such as data; the message has the remedy.
        """

    def check_domain(self, domain: Domain) -> None:
        """Raise an error if the expert cannot answer about points of a domain; by default, never.

        It is called before anything is played, and by `sparq-sim check`. An expert that has it
        makes the environment start once more.

        Args:
            domain: Where points may lie.

        Raises:
            SparqError: Something does not fit the domain; the message has the remedy.
        """

    def check_experts(self, names: Collection[str]) -> None:
        """Raise an error if the expert cannot answer beside these experts; by default, never.

        Args:
            names: The names of all experts of the play, this one included.

        Raises:
            PluginError: One that this expert asks is missing; the message has the remedy.
        """

    def start(self, briefing: Briefing) -> MaybeManaged[Answering]:
        """Return what answers in one play; by default, the model itself.

        Args:
            briefing: The domain, the terms of all sources, and the rules of the play.

        Returns:
            An object with `answer`, or a context manager that gives it, as one made by
            `contextlib.contextmanager`.

        Raises:
            Exception: Any; the play does not begin, and the error names the expert.
        """
        return self

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return an estimate of the reward at the query's points.

        Time that passes here is service: it occupies one of the channel's slots. Any error fails
        the query and not the play.

        Args:
            query: What is asked: `query.points` is (n, d).
            world: The clock, chance and rewards that may be used.

        Returns:
            `Estimate(values, stds)`, a value for each point: (n,). A value of NaN needs a reason:
            `Estimate(values, absent="blind spot")`, or a gap that the world itself has there.

        Raises:
            Unavailable: Nothing is known of the whole query; the message is the reason.
            Exception: Any other; the query fails as invalid, with the name of the error.
        """
        raise NotImplementedError(f"{type(self).__name__} must define answer or start")
