"""Faults: what can go wrong with a source, injected by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from math import inf
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np

from sparq_sim.fields import Amount, Positive, Probability
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.expert import World
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.parts import PartChoice, check_number
from sparq_sim.plugin.registry import name_of
from sparq_sim.plugin.result_checks import ResultChecks
from sparq_sim.simulation.clock.protocol import AGENT

__all__ = [
    "AnyFault",
    "Fault",
    "FaultKind",
    "FaultModel",
    "InjectedError",
]

FaultKind: TypeAlias = Literal[
    "raise",
    "hang",
    "nan",
    "infinity",
    "wrong-shape",
    "wrong-point",
    "late",
    "duplicate",
    "out-of-order",
    "given-up",
    "lost",
    "outage",
    "clock-skew",
    "wrong-std",
]
"""The kinds of faults that can be injected."""


def _held_back(fault: FaultModel, given: object) -> float:
    return check_number(fault, "held_back", given, least=0.0)


def _claimed_share(fault: FaultModel, given: object) -> float:
    return check_number(fault, "claimed_share", given, least=0.0)


class FaultModel(Model):
    """Something that goes wrong with a *share* of what is put to a source: the base of faults.

    One of your own overrides what it changes; by default nothing goes wrong.
    """

    _result_checks: ClassVar[ResultChecks] = {
        "held_back": _held_back,
        "claimed_share": _claimed_share,
    }

    share: Probability = 0.1
    """Of the queries, or of their points where the channel splits."""

    @property
    def name(self) -> str:
        """The name of the fault in a trace."""
        return name_of(type(self))

    @property
    def refuses(self) -> bool:
        """Whether nobody is there to be asked."""
        return False

    @property
    def loses(self) -> bool:
        """Whether the answer is lost on its way."""
        return False

    @property
    def silent(self) -> bool:
        """Whether no answer may ever come."""
        return self.loses

    @property
    def held_back(self) -> float:
        """How much longer than usual the answer is on its way, in clock units."""
        return 0.0

    @property
    def claimed_share(self) -> float:
        """The claimed std as a share of the true one."""
        return 1.0

    def check(self, patience: float) -> None:
        """Check that the fault can happen on a channel; by default, it can on any.

        Args:
            patience: How long an asker waits there, in clock units.

        Raises:
            ValueError: If it cannot.
        """

    async def answer(
        self,
        answer: Callable[[Query, World], Awaitable[object]],
        query: Query,
        world: World,
        *,
        deadline: float,
    ) -> object:
        """Return what the source is made to answer by this fault.

        Args:
            answer: Asks the source itself a query, and returns its estimate.
            query: What was asked.
            world: What the source may use.
            deadline: When the asker gives up, in clock units.
        """
        return await answer(query, world)


class Fault(FaultModel):
    """A fault that is known by its *kind*.

    `raise`: an exception. `hang`: no answer, for ever. `nan`, `infinity`: no numbers.
    `wrong-shape`: one value too many. `wrong-point`: values of other points. `late`: measured
    *delay* later. `duplicate`: sent twice. `out-of-order`: measured in time, held back for *delay*.
    `given-up`: sent *delay* after patience has ended. `lost`: lost on its way. `outage`: nobody
    there. `clock-skew`: dated *delay* too early. `wrong-std`: a std of *factor* times the true one.
    """

    kind: FaultKind
    """What goes wrong; each kind is explained with the fault itself."""
    delay: Amount = 3.0
    """How much too late an answer is, or with `clock-skew` is dated too early, in clock units."""
    factor: Positive = 0.1
    """By what the true std is multiplied where the kind is `wrong-std`."""

    @property
    def name(self) -> str:
        """The name of the fault in a trace: its kind."""
        return self.kind

    @property
    def refuses(self) -> bool:
        """Whether nobody is there to be asked."""
        return self.kind == "outage"

    @property
    def loses(self) -> bool:
        """Whether the answer is lost on its way."""
        return self.kind == "lost"

    @property
    def silent(self) -> bool:
        """Whether no answer ever comes."""
        return self.kind in ("lost", "hang")

    @property
    def held_back(self) -> float:
        """How much longer than usual the answer is on its way, in clock units."""
        return self.delay if self.kind == "out-of-order" else 0.0

    @property
    def claimed_share(self) -> float:
        """The claimed std as a share of the true one."""
        return self.factor if self.kind == "wrong-std" else 1.0

    def check(self, patience: float) -> None:
        """Refuse what comes after the end of patience where patience never ends."""
        if self.kind == "given-up" and patience == inf:
            raise ValueError("the fault given-up needs a finite patience, to end before it")

    async def answer(
        self,
        answer: Callable[[Query, World], Awaitable[object]],
        query: Query,
        world: World,
        *,
        deadline: float,
    ) -> object:
        """Return what the source answers under this fault."""
        clock = world.clock
        match self.kind:
            case "raise":
                raise InjectedError("a fault was injected: raise")
            case "hang":
                await clock.signal()
            case "late":
                await clock.sleep(self.delay)
            case "wrong-point":
                points = world.domain.sample(world.rng, len(query.points))
                query = Query(query.id, query.source, points, query.asked_at)
        given = await answer(query, world)
        if not isinstance(given, Estimate):
            return given
        match self.kind:
            case "nan" | "infinity":
                bad = np.nan if self.kind == "nan" else np.inf
                # Without an excuse: what is absent for a reason is no fault.
                return replace(given, values=np.full(len(query.points), bad), absent="")
            case "wrong-shape":
                return replace(given, values=np.append(given.values, 0.0))
            case "duplicate":
                world.send(query, given)
            case "clock-skew":
                return replace(given, measured_at=max(0.0, _measured_at(given, world) - self.delay))
            case "given-up":
                given = replace(given, measured_at=_measured_at(given, world))
                clock.start(self._send_after(deadline, query, given, world))
                await clock.signal()
        return given

    async def _send_after(
        self, deadline: float, query: Query, estimate: Estimate, world: World
    ) -> None:
        # As an agent, who comes after deadlines: also without a delay it is too late.
        await world.clock.until(deadline + self.delay, AGENT)
        world.send(query, estimate)


class InjectedError(Exception):
    """What the fault `raise` raises."""


def _measured_at(estimate: Estimate, world: World) -> float:
    return world.clock.now if estimate.measured_at is None else estimate.measured_at


AnyFault: TypeAlias = Annotated[FaultModel, PartChoice("fault", Fault)]
"""A fault as a field: a table with a `kind`, or a model."""
