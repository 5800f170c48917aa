"""Remote sources: experts that are real, each behind a peer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sparq_sim.arrays import Points, Values
from sparq_sim.errors import LiveOnlyError, PeerError, Unavailable, mask_invisible
from sparq_sim.messages import Estimate, Query
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.expert import Answering, Expert, MaybeManaged, World
from sparq_sim.remote.drops import Drops
from sparq_sim.remote.peer import Address, Peer
from sparq_sim.remote.wire import (
    SHOWN,
    AnswerMessage,
    AskMessage,
    FailureMessage,
    ReadingMessage,
    read_message,
    show,
)
from sparq_sim.simulation.clock.protocol import Clock

__all__ = [
    "RealExpert",
    "RemoteSource",
    "ReportingSource",
    "find_moment",
    "find_unit",
    "read_estimate",
]

_NO_SECONDS = 1e11
"""More than seconds since 1970 can be: they mean the year 5138, and as milliseconds 1973."""
_UNKNOWN = "nothing known"
"""Why there is no value, where a source gives none and no reason."""


class RemoteSource:
    """A real source that is asked through a peer, which is open while this is entered.

    Args:
        address: Where the source is.
        names: Of the coordinates of points.
    """

    def __init__(self, address: Address, names: Sequence[str]) -> None:
        self._address = address
        self._names = tuple(names)
        self._open = AsyncExitStack()
        self._drops = Drops()

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

    async def answer(self, query: Query, world: World) -> Estimate:
        clock = world.clock
        message = AskMessage(
            id=world.key,
            source=query.source,
            names=self._names,
            points=query.points.tolist(),
            asked_at=time.time(),
            play_time=clock.now,
            unit=find_unit(clock),
        )
        reply = await self._peer.exchange(message.to_object())
        return read_estimate(reply, len(query.points), clock, self._address.skew)

    def accounts(self, time: float) -> Mapping[str, Mapping[str, ArrayLike]]:
        """Return the table `dropped`: how many messages were dropped, by the reason.

        Args:
            time: When the play ended, in clock units.
        """
        dropped = self._drops.counts + self._peer.dropped
        if not dropped:
            return {}
        return {"dropped": {"reason": [*dropped], "count": [*dropped.values()]}}


class ReportingSource(RemoteSource):
    """A real source that also sends readings unasked.

    A reading that cannot be used is dropped, and counted with its reason in the accounts.
    """

    async def broadcast(self, world: World) -> None:
        async for message in self._peer.readings():
            reason = "a reading in a wrong form"
            try:
                reading = read_message(message, ReadingMessage)
                reason = "a reading with other coordinates"
                points = self._find_points(reading)
                reason = "a reading with a wrong date"
                measured_at = find_moment(reading.measured_at, world.clock, self._address.skew)
                reason = "a reading that does not suit the play"
                values, stds = np.array(reading.values), _fill(reading.stds)
                world.send(world.open(points), Estimate(values, stds, measured_at=measured_at))
            except PeerError as error:
                self._drops.add(reason, f"it {error}")
            except ValueError as error:  # It lies outside the domain.
                self._drops.add(reason, f"{error}")

    def _find_points(self, reading: ReadingMessage) -> Points:
        """Return the points of a reading, with the coordinates in the order of the play."""
        points = np.array(reading.points)
        names = self._names if reading.names is None else reading.names
        if sorted(names) != sorted(self._names):
            raise PeerError(
                f"has the coordinates {show(list(names))}; those of the play are "
                f"{show(list(self._names))}"
            )
        return points[:, [names.index(name) for name in self._names]]


def read_estimate(reply: Mapping[str, Any], count: int, clock: Clock, skew: float) -> Estimate:
    """Return what a reply says about the points of a request.

    Args:
        reply: The JSON object that came.
        count: How many points there are.
        clock: By which the answer is dated.
        skew: How many seconds the clock of the source may be wrong.

    Raises:
        Unavailable: The source knows nothing of the whole request.
        PeerError: The reply is none, or dated wrongly.
    """
    match read_message(reply, AnswerMessage, FailureMessage):
        case FailureMessage(reason=reason):
            raise Unavailable(_clean(reason) or _UNKNOWN)
        case AnswerMessage() as answer:
            if len(answer.values) != count:
                raise PeerError(f"sent {len(answer.values)} values for {count} points")
            return Estimate(
                np.array([np.nan if value is None else value for value in answer.values]),
                _fill(answer.stds),
                measured_at=find_moment(answer.measured_at, clock, skew),
                notes=answer.notes,
                absent=_clean(answer.absent) or (_UNKNOWN if None in answer.values else ""),
            )
    raise AssertionError("there are no other messages")


def _clean(text: str) -> str:
    return mask_invisible(text.strip().replace("\n", " "))[: 2 * SHOWN]


def _fill(stds: float | Sequence[float | None]) -> Values | float:
    if isinstance(stds, float | int):
        return float(stds)
    return np.array([0.0 if std is None else std for std in stds])


def find_unit(clock: Clock) -> float:
    """Return how many seconds a clock unit lasts.

    Args:
        clock: Of a live play.

    Raises:
        LiveOnlyError: It is that of a play in virtual time.
    """
    if clock.seconds is None:
        raise LiveOnlyError("a real source is asked in real time only; play it live")
    return clock.seconds


def find_moment(measured_at: float | None, clock: Clock, skew: float) -> float:
    """Return when something was measured, in clock units; None is now.

    Args:
        measured_at: When, in seconds since the Unix epoch.
        clock: Of the play.
        skew: How many seconds the clock of the source may be wrong.

    Raises:
        PeerError: That is in the future, or before the play began, by more than *skew*.
    """
    now = clock.now
    if measured_at is None:
        return now
    # While a play is paused or interrupted, its clock stands still.
    age = time.time() - measured_at - clock.held_since(measured_at)
    if age < -skew:
        raise PeerError(
            f"measured {-age:.3g} s in the future, as it says; check the clock of the source"
            + ("; it must be in seconds since 1970" if measured_at > _NO_SECONDS else "")
        )
    unit = find_unit(clock)
    moment = now - max(age, 0.0) / unit
    if moment * unit < -skew:
        raise PeerError(
            f"measured {-moment * unit:.3g} s before the play began, as it says; check the clock "
            "of the source"
        )
    return max(moment, 0.0)


class RealExpert(Address, Expert):
    """A real source of side information; the base of experts behind a peer."""

    is_real: ClassVar[bool] = True

    idempotent: bool = False
    """Whether the source answers a request whose `id` it has had with the same answer, and does
    nothing twice; such a request is sent again when a play is resumed after a crash."""

    def honours_keys(self) -> bool:
        return self.idempotent

    def check_play(self, until: float) -> None:
        self.check_ready()

    def start(self, briefing: Briefing) -> MaybeManaged[Answering]:
        names = briefing.domain.names
        if self.sends_readings:
            return ReportingSource(self, names)
        return RemoteSource(self, names)
