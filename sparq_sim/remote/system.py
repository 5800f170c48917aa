"""Remote systems: environments that are real, each behind a peer, with their safe states."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias
from uuid import uuid4

from numpy.random import Generator
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PeerError
from sparq_sim.fields import Command, Positive
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.expert import World
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.steered import SafeMoment, Steered, SteeredEnvironment
from sparq_sim.remote.peer import Address, Peer
from sparq_sim.remote.program import choose_environment
from sparq_sim.remote.source import find_unit, read_estimate
from sparq_sim.remote.wire import AnswerMessage, ApplyMessage, FailureMessage, read_message, show
from sparq_sim.simulation.delivery.programs import Program

__all__ = ["RealEnvironment", "RemoteSystem", "SafeAction", "SafeCommand", "SafeStates"]


class SafeCommand(Model):
    """A program that brings a system into its safe state, by an exit code of 0."""

    command: Command
    """The program and its arguments, as ["./stop.sh"]; no shell is involved. It is given PATH, HOME
    and the like, and no other environment variables."""
    timeout: Positive = 10.0
    """How long it may take, in seconds of real time; then it is killed."""


def _read_action(given: Any) -> Any:
    """Return a safe action from TOML, or say what it may be."""
    match given:
        case "hold" | SafeCommand() | list() | tuple():
            return given
        case Mapping():
            return SafeCommand.model_validate(given)
    raise PydanticCustomError(
        "safe_state", 'should be "hold", a point as [0.5], or a table {{ command = ["./stop"] }}'
    )


def _read_state(given: Any) -> Any:
    """Return a safe state from TOML: one action, or a table with one for each moment."""
    if isinstance(given, SafeStates):
        return given
    if isinstance(given, Mapping) and "command" not in given:
        return SafeStates.model_validate(given)
    return _read_action(given)


_Point: TypeAlias = Annotated[
    tuple[Annotated[float, Field(allow_inf_nan=False)], ...], Field(min_length=1)
]
SafeAction: TypeAlias = Annotated[
    Literal["hold"] | _Point | SafeCommand, BeforeValidator(_read_action)
]
"""What makes a system safe: "hold" leaves it as it is, a point is applied, a command is run."""


class SafeStates(Model):
    """What makes a system safe, at each moment when that is done."""

    start: SafeAction = "hold"
    """What is done before the first round."""
    end: SafeAction = "hold"
    """What is done after the last round."""
    interrupt: SafeAction = "hold"
    """What is done when a user stops the play, as by Ctrl-C."""
    failure: SafeAction = "hold"
    """What is done when the play fails."""


class RemoteSystem:
    """A real system that is steered through a peer, which is open while this is entered.

    Args:
        address: Where the system is.
        domain: Where its points may lie.
        safe: What makes it safe.
    """

    def __init__(self, address: Address, domain: Domain, safe: SafeStates) -> None:
        self._address, self._safe = address, safe
        self.domain = domain
        self._open = AsyncExitStack()
        # For the requests of a safe state, which belong to no round.
        self._play_time, self._unit = 0.0, 1.0

    async def __aenter__(self) -> Self:
        self._peer: Peer = await self._open.enter_async_context(self._address.open())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.__aexit__(kind, error, trace)

    async def apply(self, query: Query, world: World) -> Estimate:
        self._play_time, self._unit = world.clock.now, find_unit(world.clock)
        reply = await self._exchange(world.key, query.points.tolist())
        return read_estimate(reply, len(query.points), world.clock, self._address.skew)

    async def _exchange(self, key: str, points: list[list[float]]) -> Mapping[str, Any]:
        message = ApplyMessage(
            id=key,
            names=self.domain.names,
            points=points,
            asked_at=time.time(),
            play_time=self._play_time,
            unit=self._unit,
        )
        return await self._peer.exchange(message.to_object())

    async def make_safe(self, moment: SafeMoment) -> None:
        match getattr(self._safe, moment):
            case SafeCommand(command=command, timeout=timeout):
                program = Program(command, timeout=timeout, environment=choose_environment())
                await asyncio.to_thread(program.run)
            case tuple() as point:
                key = f"{uuid4().hex}/safe/{moment}"
                reply = await self._exchange(key, [list(point)])
                done = read_message(reply, AnswerMessage, FailureMessage)
                if isinstance(done, FailureMessage):
                    raise PeerError(f"could not be brought to {list(point)}: {show(done.reason)}")

    def safe_action(self, moment: SafeMoment) -> str:
        match getattr(self._safe, moment):
            case SafeCommand(command=command):
                return f"run {list(command)}"
            case tuple() as point:
                return f"apply {list(point)}"
        return "hold"


class RealEnvironment(Address, SteeredEnvironment):
    """A real system that is steered; the base of environments behind a peer."""

    is_real: ClassVar[bool] = True

    bounds: tuple[tuple[float, float], ...] = ()
    """The least and the largest value of each coordinate, as [[0.0, 1.0], [20.0, 80.0]]."""
    sites: tuple[tuple[float, ...], ...] = ()
    """The points that there are, in place of *bounds*, as [[0.0, 1.0], [0.5, 2.0]]."""
    names: tuple[str, ...] = ()
    """The names of the coordinates; by default x0, x1, ..."""
    site_names: tuple[str, ...] = ()
    """The names of the sites; by default site-0, site-1, ..."""
    safe_state: Annotated[
        Literal["hold"] | _Point | SafeCommand | SafeStates, BeforeValidator(_read_state)
    ] = "hold"
    """What makes the system safe at the start and the end of a play, when a user stops it and when
    it fails: "hold" leaves it as it is, a point as [0.5] is applied, and a table as
    { command = ["./stop.sh"], timeout = 10 } runs a program. A table with `start`, `end`,
    `interrupt` and `failure` has one of these for each."""
    idempotent: bool = False
    """Whether the system does nothing twice: it answers a request whose `id` it has had with the
    same answer; such a request is sent again when a play is resumed after a crash."""

    @model_validator(mode="after")
    def _has_a_domain_and_safe_points_in_it(self) -> Self:
        if bool(self.bounds) == bool(self.sites):
            raise ValueError("give either bounds, as [[0.0, 1.0]], or sites, as [[0.0], [0.5]]")
        if self.site_names and not self.sites:
            raise ValueError("site_names needs sites")
        if len({len(site) for site in self.sites}) > 1:
            raise ValueError("all sites need the same number of coordinates")
        domain = self.make_domain()
        for moment, action in self.safe_states:
            if isinstance(action, tuple):
                if len(action) != domain.dimensions:
                    raise ValueError(
                        f"safe_state ({moment}) has {len(action)} coordinates, and the domain has "
                        f"{domain.dimensions}"
                    )
                domain.check([action], f"safe_state ({moment})")
        return self

    def make_domain(self) -> Domain:
        """Return where points may lie.

        Raises:
            ValueError: The bounds, sites or names are none.
        """
        if self.sites:
            return Sites(self.sites, self.site_names or None, self.names or None)
        lower, upper = zip(*self.bounds, strict=True)
        return Box(lower, upper, self.names or None)

    @property
    def safe_states(self) -> SafeStates:
        """What makes the system safe, at each moment."""
        given = self.safe_state
        if isinstance(given, SafeStates):
            return given
        return SafeStates(start=given, end=given, interrupt=given, failure=given)

    def honours_keys(self) -> bool:
        return self.idempotent

    def check_play(self, until: float) -> None:
        self.check_ready()

    def connect(self, rng: Generator) -> Steered:
        return RemoteSystem(self, self.make_domain(), self.safe_states)
