"""Desks: where a policy is carried out, between those who ask and the connection to a source."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, all_rows, freeze_array
from sparq_sim.messages import AGENT_NAME, Answer, Failure, Notes, Query, Reply
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.clock.protocol import DEADLINE, Clock
from sparq_sim.simulation.delivery.link import Connection, asker_of
from sparq_sim.simulation.delivery.request import Hear, Parcel
from sparq_sim.simulation.records import UNASKED, Fate, Record

RETRIED = frozenset({Fate.LATE, Fate.LOST, Fate.OUTAGE, Fate.INVALID})
"""What may turn out better another time; a budget, an access rule and a rate will not."""

ROOM = 1024
"""So many answers are remembered before those that have expired are looked for."""

Rows = NDArray[np.intp]


@dataclass(slots=True, eq=False)
class _Journey:
    """A parcel and all further attempts at it."""

    parcel: Parcel
    """The last attempt."""
    hear: Hear
    """Takes the records, as the asker wants them."""
    expired: bool = False
    followers: dict[int, list[_Follower]] = field(default_factory=dict)
    """Those who asked for the point of a row at the same time."""


@dataclass(frozen=True, slots=True, eq=False)
class _Follower:
    query: Query
    row: int
    asker: str
    round: int
    hear: Hear


@dataclass(frozen=True, slots=True)
class _Known:
    """An answer that may serve again, and who gave it: perhaps the fallback."""

    source: str
    value: float
    std: float
    measured_at: float
    notes: Notes


class Desk:
    """Takes queries for a source and carries out a *policy*; see there for the order of things."""

    def __init__(self, connection: Connection, policy: Policy) -> None:
        self._connection = connection
        self._policy = policy
        self._stage = connection.stage
        self._turnstile = (
            None
            if policy.rate is None
            else _Turnstile(policy.rate, self._stage.clock, self._send_held)
        )
        self._held: dict[Parcel, float] = {}
        self._remembered: dict[bytes, _Known] = {}
        self._room = ROOM
        self._moment = -inf
        self._asked_now: dict[bytes, tuple[_Journey, int] | _Known] = {}
        self._stage.connections[connection.name] = self

    def broadcast(self) -> None:
        """Let the source send of its own accord, if it does."""
        self._connection.broadcast()

    def ask(
        self,
        query: Query,
        asker: str = AGENT_NAME,
        *,
        hear: Hear | None = None,
        rows: Rows | None = None,
    ) -> None:
        """Put *rows* of a query, by default all, to the source; *hear* takes the records."""
        hear = hear or self._stage.hear
        rows = all_rows(len(query.points)) if rows is None else rows
        if self._policy.remember:
            rows = self._recall(query, rows, asker, hear)
        if self._policy.merge:
            rows, copies = self._merged(query, rows, asker, hear)
        if len(rows):
            for parcel in self._connection.parcels(query, asker, rows=rows, hear=hear):
                self._set_out(parcel, hear)
        if self._policy.merge:
            self._join(copies, query, asker, hear)

    # What need not be asked.

    def _recall(self, query: Query, rows: Rows, asker: str, hear: Hear) -> Rows:
        """Answer what is remembered, at once; give the rows that are not."""
        now = self._stage.clock.now
        fresh: list[int] = []
        for row in rows.tolist():
            known = self._remembered.get(_key(query, row))
            if known is None or now - known.measured_at > self._policy.remember:
                fresh.append(row)
            else:
                taker = _Follower(query, row, asker, self._stage.round, hear)
                self._tell(taker, _answer(taker, known, now), Fate.ANSWERED, heard=True)
        return np.array(fresh, dtype=np.intp)

    def _merged(
        self, query: Query, rows: Rows, asker: str, hear: Hear
    ) -> tuple[Rows, list[tuple[int, bytes]]]:
        """Give the rows to ask, and those whose point is asked at this very moment."""
        if self._moment != query.asked_at:
            self._moment = query.asked_at
            self._asked_now.clear()
        first: dict[bytes, int] = {}
        copies: list[tuple[int, bytes]] = []
        for row in rows.tolist():
            key = _key(query, row)
            if key in first or key in self._asked_now:
                copies.append((row, key))
            else:
                first[key] = row
        return np.array(list(first.values()), dtype=np.intp), copies

    def _join(self, copies: list[tuple[int, bytes]], query: Query, asker: str, hear: Hear) -> None:
        for row, key in copies:
            follower = _Follower(query, row, asker, self._stage.round, hear)
            match self._asked_now.get(key):
                case (journey, leader):
                    journey.followers.setdefault(leader, []).append(follower)
                case _Known() as known:  # Asked and answered at this very moment.
                    answer = _answer(follower, known, self._stage.clock.now)
                    self._tell(follower, answer, Fate.ANSWERED, heard=True)
                case None:  # What was asked has failed at once, and this would too.
                    self.ask(query, asker, hear=hear, rows=np.array([row], dtype=np.intp))

    # Attempts.

    def _set_out(self, parcel: Parcel, hear: Hear) -> None:
        journey = _Journey(parcel, hear)
        parcel.hear = partial(self._heard, journey)
        if self._policy.merge:
            for row in parcel.rows.tolist():
                self._asked_now[_key(parcel.query, row)] = journey, row
        now = self._stage.clock.now
        if self._policy.timeout < inf:
            deadline = now + self._policy.timeout
            self._stage.clock.call_at(deadline, lambda: self._expire(journey), DEADLINE)
        self._send(journey, parcel, now)

    def _send(self, journey: _Journey, parcel: Parcel, earliest: float) -> None:
        """Send a parcel when *earliest* has come and the rate allows it."""
        journey.parcel = parcel
        # A further attempt begins anew from the clock: many in a row must not pile up calls.
        if parcel.attempt == 1 and earliest <= self._stage.clock.now:
            self._pass(parcel)
        else:
            self._hold(parcel)
            self._stage.clock.call_at(earliest, lambda: self._pass_held(parcel))

    def _pass(self, parcel: Parcel) -> None:
        """Send a parcel now, or as the rate has it."""
        if self._turnstile is None or self._turnstile.lets_pass(parcel):
            self._connection.dispatch(parcel)
        elif self._turnstile.refuses:
            self._connection.refuse(parcel, Fate.RATE)
        else:
            self._hold(parcel)
            self._turnstile.queue(parcel)

    def _hold(self, parcel: Parcel) -> None:
        self._stage.parcels[parcel] = None  # At the end of the play it is still on its way,
        self._held[parcel], parcel.cost = parcel.cost, 0.0  # and has cost nothing until it is sent.

    def _release(self, parcel: Parcel) -> bool:
        """Hold a parcel no longer; tell whether it is still to be sent."""
        cost = self._held.pop(parcel)
        if parcel.open:
            del self._stage.parcels[parcel]
            parcel.round, parcel.cost = self._stage.round, cost
        return parcel.open

    def _pass_held(self, parcel: Parcel) -> None:
        if self._release(parcel):
            self._pass(parcel)

    def _send_held(self, parcel: Parcel) -> None:
        if self._release(parcel):
            self._connection.dispatch(parcel)

    def _expire(self, journey: _Journey) -> None:
        journey.expired = True
        if journey.parcel.open:
            self._connection.give_up(journey.parcel)

    def _heard(self, journey: _Journey, record: Record) -> None:
        """Pass a record on; where it is a failure, try again or elsewhere, if that may help."""
        reply = record.reply
        if isinstance(reply, Answer) or record.fate in UNASKED:
            self._close(journey, record)
            return
        policy, now = self._policy, self._stage.clock.now
        again = record.fate in RETRIED and record.attempt <= policy.retries and not journey.expired
        if record.heard and again:
            journey.hear(replace(record, heard=False, superseded=True))
            parcel = self._connection.again(
                reply.query,
                reply.rows,
                before=journey.parcel,
                hear=partial(self._heard, journey),
            )
            self._send(journey, parcel, now + policy.wait(record.attempt))
            return
        # Under a name of its own: another's luck there is not shifted.
        asker = asker_of(self._connection.name, record.asker)
        circle = policy.fallback in asker.split(">")
        if policy.fallback and record.heard and record.fate != Fate.UNANSWERED and not circle:
            journey.hear(replace(record, heard=False, superseded=True))
            asked = reply.query
            self._stage.connections[policy.fallback].ask(
                Query(asked.id, policy.fallback, asked.points, asked.asked_at),
                asker,
                hear=partial(self._close, journey),
                rows=reply.rows,
            )
        else:
            self._close(journey, record)

    def _close(self, journey: _Journey, record: Record) -> None:
        """Pass on what became of rows, also to those who wait for the same."""
        reply = record.reply
        if record.asker != journey.parcel.asker:  # The fallback was asked in the source's name.
            record = replace(record, asker=journey.parcel.asker)
        journey.hear(record)
        if record.superseded or record.fate in UNASKED:
            return
        now = self._stage.clock.now
        for place, row in enumerate(reply.rows.tolist()):
            followers = journey.followers.pop(row, ())
            key = _key(reply.query, row)
            # The same point may have been asked again meanwhile, at a later moment.
            asked_now = self._policy.merge and self._asked_now.get(key) == (journey, row)
            if isinstance(reply, Answer):
                known = _Known(
                    reply.query.source,
                    float(reply.values[place]),
                    float(reply.stds[place]),
                    reply.measured_at,
                    reply.notes,
                )
                if self._policy.remember:
                    self._remember(key, known)
                if asked_now:
                    self._asked_now[key] = known
                for follower in followers:
                    told = _answer(follower, known, now)
                    self._tell(follower, told, record.fate, heard=record.heard)
            else:
                for follower in followers:
                    failed = _failure(follower, reply.reason, now)
                    self._tell(follower, failed, record.fate, heard=record.heard)
                if asked_now:
                    del self._asked_now[key]

    def _remember(self, key: bytes, known: _Known) -> None:
        before = self._remembered.get(key)
        if before is None or before.measured_at <= known.measured_at:
            self._remembered[key] = known
        if len(self._remembered) > self._room:
            oldest = self._stage.clock.now - self._policy.remember
            self._remembered = {
                key: known for key, known in self._remembered.items() if known.measured_at >= oldest
            }
            self._room = max(ROOM, 2 * len(self._remembered))

    def _tell(self, follower: _Follower, reply: Reply, fate: Fate, *, heard: bool) -> None:
        """Hand over what cost nothing, because it was known or asked for already."""
        follower.hear(Record(reply, fate, heard, follower.round, follower.asker, nan, nan, 0))


class _Turnstile:
    """Lets parcels pass at a *rate*, in the order in which they come; *send* takes those who wait.

    A parcel of more points than may pass in one stretch waits until they could have passed singly.
    """

    def __init__(self, rate: Rate, clock: Clock, send: Callable[[Parcel], None]) -> None:
        self.refuses = rate.beyond == "refuse"
        self._rate = rate
        self._clock = clock
        self._send = send
        self._queue: deque[Parcel] = deque()
        self._passed: deque[float] = deque(maxlen=rate.points)

    def lets_pass(self, parcel: Parcel) -> bool:
        """Tell whether a parcel may pass at once; if so, it does."""
        # A billionth is rounding: who comes as fast as is allowed comes in time.
        early = self._opens_at(parcel) - self._clock.now > 1e-9 * self._rate.every
        if self._queue or early:
            return False
        self._count(parcel)
        return True

    def queue(self, parcel: Parcel) -> None:
        """Let a parcel wait for its turn."""
        self._queue.append(parcel)
        if len(self._queue) == 1:
            self._await_turn()

    def _await_turn(self) -> None:
        first = self._queue[0]
        self._clock.call_at(self._opens_at(first), self._turn)

    def _turn(self) -> None:
        parcel = self._queue[0]
        if parcel.open:  # Who was given up meanwhile takes nobody's place.
            self._count(parcel)
        self._send(parcel)
        self._queue.popleft()  # Not before: it may fail at once, and line up again.
        if self._queue:
            self._await_turn()

    def _count(self, parcel: Parcel) -> None:
        self._passed.extend([self._clock.now] * len(parcel.rows))

    def _opens_at(self, parcel: Parcel) -> float:
        """Give the moment at which a parcel may pass, if no other does before."""
        passed, moment = self._passed.copy(), self._clock.now
        for _ in range(len(parcel.rows)):
            if len(passed) == self._rate.points:
                moment = max(moment, passed[0] + self._rate.every)
            passed.append(moment)
        return moment


def _key(query: Query, row: int) -> bytes:
    point: Point = query.points[row] + 0.0  # -0.0 and 0.0 are one place
    return point.tobytes()


def _answer(taker: _Follower, known: _Known, now: float) -> Answer:
    asked = taker.query
    if known.source != asked.source:
        asked = Query(asked.id, known.source, asked.points, asked.asked_at)
    return Answer(
        query=asked,
        rows=np.array([taker.row], dtype=np.intp),
        values=freeze_array([known.value]),
        stds=freeze_array([known.std]),
        asked_at=asked.asked_at,
        measured_at=known.measured_at,
        arrived_at=now,
        cost=0.0,
        notes=known.notes,
    )


def _failure(taker: _Follower, reason: str, now: float) -> Failure:
    return Failure(
        query=taker.query,
        rows=np.array([taker.row], dtype=np.intp),
        reason=reason,
        asked_at=taker.query.asked_at,
        arrived_at=now,
    )
