"""Delivery on paper: what becomes of questions about one point each, by hand, on a plain clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

from sparq_sim.simulation.clock.protocol import DEADLINE
from tests.simulation.clock.plain import PlainClock

FAILS, HANGS, SLOW = 0.4, 0.6, 0.8
"""Points at which the source raises, never answers, and answers 1 later; elsewhere it tells."""


@dataclass(frozen=True)
class Terms:
    """What is declared of a source and of the play."""

    service: float = 0.0
    transit: float = 0.0
    cost: float = 0.0
    budget: float = inf
    capacity: int | None = None
    patience: float = inf
    outage: tuple[float, float] = (inf, inf)
    lossy: bool = False
    retries: int = 0
    backoff: float = 0.0
    timeout: float = inf
    rate: tuple[int, float, str] | None = None
    """How many points, in what time, and what becomes of more."""
    remember: float = 0.0
    merge: bool = False
    fallback: bool = False


@dataclass(eq=False)
class Sheet:
    """One question, and how far it is."""

    number: int
    point: float
    asked_at: float
    attempt: int = 1
    is_open: bool = True
    """Whether the end of this attempt is yet to come."""
    is_expired: bool = False
    is_sent: bool = False
    has_slot: bool = False
    cost: float = 0.0
    followers: list[int] = field(default_factory=list)


class Books:
    """Keeps the books of one source."""

    def __init__(self, clock: PlainClock, terms: Terms) -> None:
        self.clock, self.terms = clock, terms
        self.log: list[tuple[Any, ...]] = []
        self.spent = 0.0
        self.free = inf if terms.capacity is None else terms.capacity
        self.line: list[Sheet] = []
        self.held_back: list[Sheet] = []
        self.passed: list[float] = []
        self.known: dict[float, float] = {}
        self.asked: dict[tuple[float, float], Sheet | float] = {}
        self.under_way: dict[Sheet, None] = {}
        self.pushed = 0

    def note(
        self, number: int, attempt: int, fate: str, cost: float = 0.0, at: float = nan
    ) -> None:
        measured = None if at != at else at
        self.log.append((self.clock.now, number, attempt, fate, cost, measured))

    # Answers that serve twice.

    def ask(self, number: int, point: float) -> None:
        now = self.clock.now
        if point in self.known and now - self.known[point] <= self.terms.remember:
            self.note(number, 0, "answered", at=self.known[point])
            return
        before = self.asked.get((now, point)) if self.terms.merge else None
        if isinstance(before, Sheet):
            before.followers.append(number)
        elif before is not None:
            self.note(number, 0, "answered", at=before)
        else:
            sheet = self.asked[now, point] = Sheet(number, point, now)
            if self.terms.timeout < inf:
                self.clock.call_at(now + self.terms.timeout, lambda: self.expire(sheet), DEADLINE)
            self.begin(sheet)

    def end(self, sheet: Sheet, fate: str, *, attempt: int, cost: float, at: float = nan) -> None:
        """Note the end of a question, and tell all who asked the same at the same moment."""
        self.note(sheet.number, attempt, fate, cost, at)
        place = sheet.asked_at, sheet.point
        followers, sheet.followers = sheet.followers, []
        if fate == "answered":
            self.asked[place] = at
            if self.terms.remember and sheet.number > 0:
                self.known[sheet.point] = max(at, self.known.get(sheet.point, at))
        else:
            self.asked.pop(place, None)
        for number in followers:
            self.note(number, 0, fate, at=at)

    # Attempts.

    def expire(self, sheet: Sheet) -> None:
        sheet.is_expired = True
        self.give_up(sheet, sheet.attempt)

    def fail(self, sheet: Sheet, fate: str, *, may_help: bool = True) -> None:
        sheet.is_open = False
        self.under_way.pop(sheet, None)
        cost, attempt = sheet.cost, sheet.attempt
        if may_help and attempt <= self.terms.retries and not sheet.is_expired:
            self.note(sheet.number, attempt, fate, cost)
            sheet.attempt, sheet.is_open, sheet.is_sent, sheet.cost = attempt + 1, True, False, 0.0
            self.under_way[sheet] = None
            wait = self.terms.backoff * 2 ** (attempt - 1)
            self.clock.call_at(self.clock.now + wait, lambda: self.begin_again(sheet))
        elif self.terms.fallback:
            self.note(sheet.number, attempt, fate, cost)
            now = self.clock.now
            answer = lambda: self.end(sheet, "answered", attempt=1, cost=0.0, at=now)  # noqa: E731
            self.clock.call_at(now, answer)
        else:
            self.end(sheet, fate, attempt=attempt, cost=cost)

    def begin_again(self, sheet: Sheet) -> None:
        if sheet.is_open:
            self.begin(sheet)

    def begin(self, sheet: Sheet) -> None:
        """Begin an attempt, as soon as the rate allows it."""
        rate, now = self.terms.rate, self.clock.now
        if rate is None or (not self.held_back and self.turn() <= now):
            self.passed.append(now)
            self.send(sheet)
        elif rate[2] == "refuse":
            self.fail(sheet, "rate", may_help=False)
        else:
            self.under_way[sheet] = None
            self.held_back.append(sheet)
            if len(self.held_back) == 1:
                self.clock.call_at(self.turn(), self.take_turn)

    def turn(self) -> float:
        assert self.terms.rate is not None
        points, every, _ = self.terms.rate
        return 0.0 if len(self.passed) < points else self.passed[-points] + every

    def take_turn(self) -> None:
        sheet = self.held_back[0]
        if sheet.is_open:
            self.passed.append(self.clock.now)
            self.send(sheet)
        self.held_back.pop(0)
        if self.held_back:
            self.clock.call_at(self.turn(), self.take_turn)

    # One attempt.

    def pay(self, sheet: Sheet) -> str:
        """Pay for what is sent now; return why it cannot be."""
        terms = self.terms
        if terms.outage[0] <= self.clock.now < terms.outage[1]:
            return "outage"
        if terms.cost and self.spent + terms.cost > terms.budget:
            return "budget"
        self.spent += terms.cost
        sheet.cost = terms.cost
        self.under_way[sheet] = None
        return ""

    def send(self, sheet: Sheet) -> None:
        self.under_way.pop(sheet, None)
        if reason := self.pay(sheet):
            self.fail(sheet, reason, may_help=reason == "outage")
            return
        attempt = sheet.attempt
        self.clock.call_at(self.clock.now, lambda: self.enter(sheet, attempt))
        if self.terms.patience < inf:
            deadline = self.clock.now + self.terms.patience
            self.clock.call_at(deadline, lambda: self.give_up(sheet, attempt), DEADLINE)

    def is_over(self, sheet: Sheet, attempt: int) -> bool:
        return not sheet.is_open or sheet.attempt != attempt

    def enter(self, sheet: Sheet, attempt: int) -> None:
        if self.is_over(sheet, attempt):
            return
        if self.free:
            self.free -= 1
            self.serve(sheet, attempt)
        else:
            self.line.append(sheet)

    def serve(self, sheet: Sheet, attempt: int) -> None:
        sheet.has_slot = True
        more = {HANGS: inf, SLOW: 1.0}.get(sheet.point, 0.0)
        moment = self.clock.now + self.terms.service + more
        if moment < inf:
            self.clock.call_at(moment, lambda: self.measure(sheet, attempt))

    def leave(self, sheet: Sheet) -> None:
        sheet.has_slot = False
        self.free += 1
        if self.line:
            self.free -= 1
            following = self.line.pop(0)
            self.serve(following, following.attempt)

    def measure(self, sheet: Sheet, attempt: int) -> None:
        if self.is_over(sheet, attempt):
            return
        self.leave(sheet)
        sheet.is_sent, at = True, self.clock.now
        moment = at + self.terms.transit
        self.clock.call_at(moment, lambda: self.arrive(sheet, attempt, at))

    def arrive(self, sheet: Sheet, attempt: int, at: float) -> None:
        if self.is_over(sheet, attempt):
            return
        if self.terms.lossy:
            if self.terms.patience == inf and (self.terms.timeout == inf or sheet.number < 0):
                sheet.is_open = False
                self.under_way.pop(sheet, None)
                self.end(sheet, "lost", attempt=attempt, cost=sheet.cost)
        elif sheet.point == FAILS:
            self.fail(sheet, "invalid")
        else:
            sheet.is_open = False
            self.under_way.pop(sheet, None)
            self.end(sheet, "answered", attempt=attempt, cost=sheet.cost, at=at)

    def give_up(self, sheet: Sheet, attempt: int) -> None:
        if self.is_over(sheet, attempt):
            return
        if sheet in self.line:
            self.line.remove(sheet)
        if sheet.has_slot:
            self.leave(sheet)
        self.fail(sheet, "lost" if self.terms.lossy and sheet.is_sent else "late")

    # What nobody asked for, and the end.

    def push(self, point: float) -> None:
        self.pushed += 1
        sheet = Sheet(-self.pushed, point, nan)
        if reason := self.pay(sheet):
            self.end(sheet, reason, attempt=1, cost=0.0)
            return
        now, sheet.is_sent = self.clock.now, True
        self.clock.call_at(now + self.terms.transit, lambda: self.arrive(sheet, 1, now))
        if self.terms.patience < inf:
            deadline = now + self.terms.patience
            self.clock.call_at(deadline, lambda: self.give_up_push(sheet), DEADLINE)

    def give_up_push(self, sheet: Sheet) -> None:
        if sheet.is_open:
            sheet.is_open = False
            self.under_way.pop(sheet, None)
            self.end(sheet, "lost" if self.terms.lossy else "late", attempt=1, cost=sheet.cost)

    def close(self) -> None:
        for sheet in list(self.under_way):
            sheet.is_open = False
            self.end(sheet, "unanswered", attempt=sheet.attempt, cost=sheet.cost)
