"""Models: the bases of plug-ins, what they start, and what they are told of their play."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    get_origin,
    runtime_checkable,
)

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Domain
from sparq_sim.errors import PluginError
from sparq_sim.fields import guard
from sparq_sim.messages import Answer, Estimate, Move, Query, Reply
from sparq_sim.plugin.origins import Source, loaded, within_core
from sparq_sim.plugin.promises import Promises, watch

if TYPE_CHECKING:
    from sparq_sim.simulation.clock.protocol import Clock

T = TypeVar("T")

Holding: TypeAlias = T | AbstractContextManager[T] | AbstractAsyncContextManager[T]
"""What takes part in a play, or a context manager that gives it when it is entered."""

Access: TypeAlias = Literal["past", "domain"]
"""Where experts may be asked: at points already played, or anywhere."""
Asks: TypeAlias = Literal["never", "past", "anywhere"]
"""Whether an optimizer asks experts: never, at points already played, or wherever it may."""


class Model(BaseModel):
    """A frozen, validated bundle of parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    _sources: ClassVar[Mapping[str, Source]] = {}
    _promises: ClassVar[Promises] = {}
    """What is looked at of all that a class gives which is not of this package."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        guard(handler.resolve_ref_schema(schema))
        return schema

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Describe each field by its sentence."""
        from sparq_sim.plugin.field_docs import (
            describe,  # here, because only a JSON schema needs it
        )

        written = handler(schema)
        describe(cls, handler.resolve_ref_schema(written))
        return written

    @classmethod
    def __pydantic_init_subclass__(cls, **options: object) -> None:
        """Refuse a class that is more than its fields, and note the source it is loaded from."""
        super().__pydantic_init_subclass__(**options)
        # By name: what is to be seen here is whether somebody has replaced it.
        if getattr(cls, "__init__") is not BaseModel.__init__:  # noqa: B009
            raise PluginError(
                f"{cls.__name__} has an __init__ of its own, but a plug-in is its fields: declare "
                "them in the class, as in `lag: float = 2.0`, and make what changes in start"
            )
        if not within_core(cls):
            _check_kind_field(cls)
            watch(cls, cls._promises)
        cls._sources = loaded(cls)


def _check_kind_field(model: type[Model]) -> None:
    """Refuse a plug-in with a field `kind` of its own: what is written there is its name."""
    field = model.model_fields.get("kind")
    if field is None or get_origin(field.annotation) is Literal:
        return
    # What only a plug-in has within it is written without a name, and may have such a field.
    if any(
        base is not Model and within_core(base) for base in model.__mro__ if issubclass(base, Model)
    ):
        raise PluginError(
            f"{model.__name__} has a field `kind` of its own, but under `kind` the name of the "
            "class is written and read: call the field something else, as `sort`"
        )


@dataclass(frozen=True, slots=True)
class SourceTerms:
    """What is known beforehand of a source: expected cost, noise and latency."""

    cost: float = 0.0
    """The expected cost of a query."""
    cost_per_point: float = 0.0
    """The expected cost of each point of a query, on top."""
    std: float = 0.0
    """The std that an answer claims, in reward units."""
    latency: float = 0.0
    """The expected service and transit of one point, in clock units; waiting comes on top."""
    split: bool = False
    """Whether each point of a query is answered on its own."""


def round_at(now: float, period: float) -> int:
    """Return the number of the round in which *now* lies, at its beginning or a little later."""
    return max(1, int(now / period + 1e-6))


@dataclass(frozen=True, slots=True)
class Briefing:
    """What a play tells its agent and its experts beforehand."""

    domain: Domain
    """Where points may lie."""
    observation: SourceTerms = field(default_factory=SourceTerms)
    """The terms of the reward's own channel."""
    experts: Mapping[str, SourceTerms] = field(default_factory=dict)
    """The terms of each expert, by its name."""
    period: float = 1.0
    """How long a round lasts, in clock units."""
    rounds: int | None = None
    """How many rounds there are at most; None where nobody knows."""
    budget: float = float("inf")
    """What all queries of a play may cost together."""
    budget_per_round: float = float("inf")
    """What all queries of one round may cost together."""
    access: Access = "past"
    """Where experts may be asked."""
    design: Answer | None = None
    """Observations made at time 0, before the play, to fit a prior to."""


@runtime_checkable
class Landscape(Protocol):
    """A started environment: a pure function of points and time.

    It may also be `Observing`, `WithGaps`, `Coarsening` or `WithCells`: each of these is a hook
    that is used where it is defined.
    """

    @property
    def domain(self) -> Domain:
        """Where points may lie."""

    def rewards(self, points: Points, time: float) -> Values:
        """Give the noise-free reward at each row of *points*: (n,)."""

    def best(self, time: float) -> tuple[Point, float]:
        """Give a point of the highest reward, and that reward."""


@runtime_checkable
class Observing(Protocol):
    """A landscape with noise of its own, as that of a batch of data, beside the channel's."""

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        """Return what is observed at each row of *points*; all its chance comes from *rng*.

        Args:
            points: Where: (n, d).
            time: When, in clock units.
            rng: Chance of this observation; the same gives the same values.

        Returns:
            The observations: (n,), finite wherever there is a reading.
        """


@runtime_checkable
class WithGaps(Protocol):
    """A landscape that has no reading of some points at some times.

    Where there is none, `rewards` still gives the number that regret is judged by, but nobody is
    told it: an observation fails as unavailable, and experts see NaN.
    """

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each row of *points* whether there is a reading of it at *time*: (n,)."""


@runtime_checkable
class Coarsening(Protocol):
    """A landscape that can be computed more cheaply, for experts of low fidelity."""

    def coarse(self, resolution: float) -> Landscape:
        """Return the same world, its chance included, on the same domain but less finely.

        Args:
            resolution: The share of the landscape's own resolution, above 0 and at most 1.
        """


@runtime_checkable
class WithCells(Protocol):
    """A landscape that says how much there is to compute, by which a simulator takes its time."""

    @property
    def cells(self) -> int:
        """How many cells are computed in each step; at least 1."""


@runtime_checkable
class Agent(Protocol):
    """A started optimizer: it chooses; it never waits and never sees a clock.

    It may also be `Believing`.
    """

    def ask(self, now: float) -> Move:
        """Choose what to play and whom to ask."""

    def tell(self, reply: Reply) -> None:
        """Take in a reply, which may come late, out of order, or never."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What an agent believes at some points: the bound is *mean* + *width* *std*, (n,) each."""

    mean: Values
    std: Values
    width: float


@runtime_checkable
class Believing(Protocol):
    """An agent that can say what it believes of the reward; reports show it."""

    def belief(self, points: Points, now: float) -> Belief | None:
        """Return what is believed at each row of *points*; None as long as there is no belief.

        To be asked changes nothing: the agent plays on as if it had not been.

        Args:
            points: Where: (n, d).
            now: The time of the last move.
        """


class World(Protocol):
    """What a source may use while it answers one query."""

    @property
    def clock(self) -> Clock:
        """Time: `now`, `sleep`, `until`, `gate`, `start`."""

    @property
    def rng(self) -> Generator:
        """Chance of this query's own."""

    @property
    def domain(self) -> Domain:
        """Where points may lie."""

    def rewards(self, points: Points, time: float) -> Values:
        """Return the noise-free reward at *points*, at a *time* from 0 to now.

        Where a record has a gap it is NaN, and so is what is made of it: that point then fails as
        unavailable, with the reason "no reading".
        """

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each point whether there is a reading of it, at a *time* from 0 to now."""

    def observe(self, points: Points) -> Values:
        """Observe the reward of now at *points*, with the world's own noise; NaN in a gap."""

    def coarse(self, resolution: float) -> Landscape:
        """Return the same environment computed at another *resolution*, if it can be.

        Its rewards are those from 0 to now as well, and NaN in a gap.
        """

    async def ask(self, name: str, points: Points) -> tuple[Reply, ...]:
        """Ask another expert, over its channel; all replies, in the order of the rows."""

    async def compute(self, function: Callable[..., T], *arguments: Any, takes: float = 0.0) -> T:
        """Call a *function* that computes for long, or blocks, and return its result.

        In virtual time it is called on the spot, and then the declared time passes, however long
        it took. In real time it runs in a thread, so that it holds up nobody, and lasts as long as
        it takes, but no less than declared.

        Args:
            function: Not an `async def`; in real time it goes on to its end even if given up.
            arguments: What it is called with.
            takes: How long that is declared to last, in clock units, also if it fails.
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

        Time passes as for `compute`. When the answer is given up, or the play ends, it is killed.

        Args:
            command: The program and its arguments; no shell is involved.
            input: What it reads from stdin.
            takes: How long that is declared to last, in clock units.
            timeout: How long it may take, in seconds of real time.

        Raises:
            ProgramError: It is missing, ends with another code than 0, or not in time.
        """

    def open(self, points: Points) -> Query:
        """Open a query of the source's own, to send a reading that nobody asked for."""

    def send(self, query: Query, estimate: Estimate) -> None:
        """Put an estimate on the road to the agent, now."""

    def note(self, **columns: float) -> None:
        """Add numbers to the record of this reply."""

    def stop(self, reason: str) -> None:
        """End the play before its next round."""


@runtime_checkable
class Answering(Protocol):
    """A started expert; it may also be `Broadcasting`."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Estimate the reward at the query's points."""


@runtime_checkable
class Broadcasting(Protocol):
    """A started expert that sends readings of its own accord."""

    async def broadcast(self, world: World) -> None:
        """Send readings, by `world.send(world.open(points), estimate)`.

        It runs from the beginning of a play, and may run until its end.
        """


class Environment(Model):
    """A drifting reward; its fields are its parameters, `start` makes one.

    A landscape that holds something, such as a file, defines `__enter__` and `__exit__`.
    """

    level_evaluations: ClassVar[int] = 10_000
    """How many points reference levels may evaluate; more, where a point costs next to nothing."""

    def check_play(self, until: float) -> None:
        """Refuse, by SparqError, what cannot be played until then, such as data that are missing.

        Called before anything is played, by `sparq-sim check` as well; by default, all is well.

        Args:
            until: When the play ends, in clock units.
        """

    def start(self, rng: Generator) -> Landscape:
        """Make the landscape; all its chance comes from *rng*, now."""
        raise NotImplementedError(f"{type(self).__name__} must define start(self, rng)")


class Optimizer(Model):
    """A way to choose; its fields are its parameters, `start` gives the agent that learns.

    An agent that holds something, such as a file, defines `__enter__` and `__exit__`.
    """

    asks: ClassVar[Asks | None] = None
    """Whether it asks experts, by which a scenario is checked; None where that is not said."""

    def check_experts(self, names: Collection[str]) -> None:
        """Refuse, by PluginError, a play whose experts are called so; by default, none."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Make the agent for a play with this *briefing*; *rng* is its own."""
        raise NotImplementedError(f"{type(self).__name__} must define start(self, briefing, rng)")


class Expert(Model):
    """A source of side information; its fields are its parameters.

    Define `answer`, or, where there is state to hold, `start`, which gives what answers. If that
    holds something, such as a client, it defines `__enter__` and `__exit__`, or `__aenter__` and
    `__aexit__`: it is entered before the play begins, and left when the play has ended or failed.
    """

    def check_play(self, until: float) -> None:
        """Refuse, by SparqError, what cannot answer until then, such as data that are missing.

        Called before anything is played, by `sparq-sim check` as well; by default, all is well.

        Args:
            until: When the play ends, in clock units.
        """

    def check_experts(self, names: Collection[str]) -> None:
        """Refuse, by PluginError, a play whose experts are called so; by default, none."""

    def start(self, briefing: Briefing) -> Holding[Answering]:
        """Make what answers in a play with this *briefing*; by default, the model itself.

        It may be a context manager that gives what answers, as by `contextlib.contextmanager`.
        """
        return self

    async def answer(self, query: Query, world: World) -> Estimate:
        """Estimate the reward at the query's points."""
        raise NotImplementedError(f"{type(self).__name__} must define answer or start")
