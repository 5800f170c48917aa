"""Planted bugs: changes of the simulator that vopr must find, each made for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pytest

from sparq_experts.wireless.battery import Battery
from sparq_sim.messages import Estimate
from sparq_sim.simulation.channel.noise import Noise
from sparq_sim.simulation.clock.protocol import Gate
from sparq_sim.simulation.delivery import examine
from sparq_sim.simulation.delivery.budget import Charges
from sparq_sim.simulation.delivery.draws import QueryDraws
from sparq_sim.simulation.delivery.examine import Measured
from sparq_sim.simulation.delivery.request import Drawn, Request
from sparq_sim.simulation.delivery.service import Service
from sparq_sim.vopr import Case, check_case

__all__ = ["BUGS", "find_bug"]

Bug: TypeAlias = Callable[[], AbstractContextManager[None]]


def find_bug(bug: Bug, *, most: int) -> tuple[int, str] | None:
    """Return the first seed, and the first law, at which vopr finds a bug; None if at no seed."""
    with bug():
        for seed in range(most):
            if broken := check_case(Case(seed)).broken:
                return seed, broken[0].law
    return None


@contextmanager
def replaced(owner: object, name: str, make: Callable[[Any], object]) -> Iterator[None]:
    """Replace an attribute by what is made of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, make(getattr(owner, name)))
        yield


@contextmanager
def answer_used_before_arrival() -> Iterator[None]:
    """An answer does not travel: it is told at once, dated to when it should have arrived."""
    ahead: dict[int, float] = {}

    def hasten(carry: Any) -> object:
        def carry_at_once(self: Service, request: Request, *given: Any, **more: Any) -> object:
            ahead[id(request)], request.drawn.transit = request.drawn.transit, 0.0
            return carry(self, request, *given, **more)

        return carry_at_once

    def date(succeed: Any) -> object:
        def succeed_later(
            self: Request, measured: Measured, noise: Noise, *, source: str, now: float
        ) -> None:
            succeed(self, measured, noise, source=source, now=now + ahead.pop(id(self), 0.0))

        return succeed_later

    with replaced(Service, "carry", hasten), replaced(Request, "succeed", date):
        yield


def cost_not_charged() -> AbstractContextManager[None]:
    """What is sent is free."""

    def make(admit: Any) -> object:
        def admit_for_free(self: Charges, request: Request) -> bool:
            request.cost = 0.0
            return True

        return admit_for_free

    return replaced(Charges, "admit", make)


def stream_shared() -> AbstractContextManager[None]:
    """All sources draw from the streams of one name."""

    def make(begin: Any) -> object:
        def begin_alike(self: QueryDraws, name: str, *given: Any, **more: Any) -> None:
            begin(self, "source", *given, **more)

        return begin_alike

    return replaced(QueryDraws, "__init__", make)


def slot_never_freed() -> AbstractContextManager[None]:
    """Who leaves a gate leaves it shut."""
    return replaced(Gate, "leave", lambda _: lambda self: None)


def stale_answer_counted_fresh() -> AbstractContextManager[None]:
    """An answer is dated to its arrival."""

    def make(succeed: Any) -> object:
        def succeed_fresh(
            self: Request, measured: Measured, noise: Noise, *, source: str, now: float
        ) -> None:
            fresh = replace(measured, measured_at=now)
            succeed(self, fresh, noise, source=source, now=now)

        return succeed_fresh

    return replaced(Request, "succeed", make)


def retry_charged_twice() -> AbstractContextManager[None]:
    """Another attempt costs twice what it should."""

    def make(draw_again: Any) -> object:
        def draw_double(self: QueryDraws, *given: Any) -> Drawn:
            drawn: Drawn = draw_again(self, *given)
            drawn.cost *= 2
            return drawn

        return draw_double

    return replaced(QueryDraws, "draw_again", make)


def gap_value_served() -> AbstractContextManager[None]:
    """What is no number is served as 0."""

    def make(measure: Any) -> object:
        def measure_numbers(given: Estimate, count: int, now: float) -> object:
            values = np.nan_to_num(np.asarray(given.values, dtype=float), posinf=0.0)
            return measure(replace(given, values=values), count, now)

        return measure_numbers

    return replaced(examine, "_measured", make)


def energy_not_booked() -> AbstractContextManager[None]:
    """What is spent at once is taken from the battery, but not written down."""

    def make(spend: Any) -> object:
        def spend_in_silence(self: Battery, cause: Any, energy: float) -> None:
            before = self.used[cause]
            spend(self, cause, energy)
            self.used[cause] = before

        return spend_in_silence

    return replaced(Battery, "spend", make)


BUGS: Mapping[str, Bug] = {
    "answer used before arrival": answer_used_before_arrival,
    "cost not charged": cost_not_charged,
    "stream shared": stream_shared,
    "slot never freed": slot_never_freed,
    "stale answer counted fresh": stale_answer_counted_fresh,
    "retry charged twice": retry_charged_twice,
    "gap value served": gap_value_served,
    "energy not booked": energy_not_booked,
}
"""All planted bugs, by what goes wrong."""
