from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from math import inf, nan
from pickle import PicklingError
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import PrivateAttr

from sparq_environments.synthetic import Synthetic
from sparq_experts.simulator import Simulator
from sparq_experts.truth import Truth
from sparq_sim import (
    Briefing,
    Estimate,
    Expert,
    PluginError,
    Query,
    World,
)
from sparq_sim.plugin.contract import Answering
from sparq_sim.testing import (
    LawError,
    Teller,
    check_expert,
    expert_laws,
)
from tests.testing import broken


@pytest.mark.parametrize("expert", [Teller(), Truth()])
def test_sound_experts_pass(expert: Expert) -> None:
    check_expert(expert)
    check_expert(expert, Synthetic())
    check_expert(expert, "synthetic")


def test_the_environment_of_an_expert_can_be_named() -> None:
    check_expert(Simulator(), "rod")
    with pytest.raises(PluginError, match="this environment has no coarser version of itself"):
        check_expert(Simulator())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rodd", r"no environment is called 'rodd': did you mean 'rod'\?"),
        ("recorded", r"'recorded' has no default for: files; give Recorded\(…\) in place of"),
    ],
)
def test_an_environment_that_cannot_be_named_is_refused_with_the_remedy(
    name: str, told: str
) -> None:
    with pytest.raises(PluginError, match=told):
        check_expert(Teller(), name)


# Experts that break one law.


class Gives(Expert):
    """Answers what a function makes of the number of points."""

    function: Callable[[int], Any]

    async def answer(self, query: Query, world: World) -> Estimate:
        return self.function(len(query.points))  # type: ignore[no-any-return] # or something else


def number(points: int) -> float:
    return 1.5


def one_too_many(points: int) -> Estimate:
    return Estimate(np.zeros(points + 1))


def one_for_all(points: int) -> Estimate:
    return Estimate(np.zeros(1))


def nothing_known(points: int) -> Estimate:
    return Estimate(np.full(points, nan))


def negative_std(points: int) -> Estimate:
    return Estimate(np.zeros(points), stds=-1.0)


def prophecy(points: int) -> Estimate:
    return Estimate(np.zeros(points), measured_at=99.0)


def accident(points: int) -> Estimate:
    raise KeyError("sensor 7")


@pytest.mark.parametrize(
    ("function", "points", "seen"),
    [
        (number, 1, "expert gave 1.5; expected an Estimate of 1 values"),
        (one_too_many, 1, r"expert gave values \(2,\) and stds \(\); expected \(1,\)"),
        (one_for_all, 4, r"expert gave values \(1,\) and stds \(\); expected \(4,\)"),
        (nothing_known, 1, "expert gave nan with std 0.0; expected finite numbers"),
        (negative_std, 1, "expert gave 0.0 with std -1.0; expected finite numbers"),
        (prophecy, 1, "expert measured at 99.0; expected a moment from 0 to now"),
        (accident, 1, "expert raised KeyError: 'sensor 7'"),
    ],
)
def test_an_expert_that_gives_no_sound_estimate_is_told_so(
    function: Callable[[int], object], points: int, seen: str
) -> None:
    law = f"answers an Estimate of {points} finite values, measured by now"
    with pytest.raises(LawError, match=rf"test_laws_of_experts\.Gives: {law}; seen: .*{seen}"):
        check_expert(Gives(function=function))


class Silent(Expert):
    """Never answers."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.clock.sleep(inf)
        raise AssertionError("never")


class Counting(Expert):
    """Counts the queries, on itself."""

    queries: int = 0

    async def answer(self, query: Query, world: World) -> Estimate:
        object.__setattr__(self, "queries", self.queries + 1)
        return Estimate(np.zeros(len(query.points)))


class SecretlyCounting(Expert):
    """Counts the queries where few would look."""

    _queries: int = PrivateAttr(0)

    async def answer(self, query: Query, world: World) -> Estimate:
        self._queries += 1
        return Estimate(np.zeros(len(query.points)))


class Tiring(Expert):
    """Answers a little less each time, also from one play to the next."""

    _queries: ClassVar[Iterator[int]] = count()

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.full(len(query.points), -float(next(self._queries))))


class Guessing(Expert):
    """Guesses, by a generator that it made itself."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.random.default_rng().random(len(query.points)))


class Undocumented(Expert):
    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.zeros(len(query.points)))


class Sleepy(Teller):
    """Sleeps in real time."""

    async def answer(self, query: Query, world: World) -> Estimate:
        time.sleep(1e-6)
        return await super().answer(query, world)


class Delegating(Teller):
    """Runs a program, and waits for it in real time, as long as it takes or for some seconds."""

    timeout: float | None = None

    async def answer(self, query: Query, world: World) -> Estimate:
        subprocess.run(["true"], timeout=self.timeout, check=True)
        return await super().answer(query, world)


class Shelling(Teller):
    """Runs a program by a shell."""

    async def answer(self, query: Query, world: World) -> Estimate:
        os.system("true")
        return await super().answer(query, world)


class Calling(Teller):
    """Runs programs and sleeps where nobody is held up."""

    async def answer(self, query: Query, world: World) -> Estimate:
        await world.run(["true"], takes=0.1)
        await world.compute(partial(subprocess.run, ["true"], timeout=60.0, check=True))
        await world.compute(time.sleep, 1e-6)
        return await super().answer(query, world)


class Keeping(Teller):
    """Keeps a program for as long as a play lasts."""

    @contextmanager
    def start(self, briefing: Briefing) -> Iterator[Answering]:
        with subprocess.Popen(["sleep", "600"]) as child:
            time.sleep(1e-6)
            yield self
            child.terminate()
            child.wait(timeout=60.0)


class Impatient(Teller):
    """Forgets to await."""

    async def answer(self, query: Query, world: World) -> Estimate:
        world.clock.sleep(1)
        return await super().answer(query, world)


class Functional(Teller):
    """Has a function for a field."""

    function: Callable[..., Any]


class Unique(Teller):
    """Hashes as itself alone."""

    def __hash__(self) -> int:
        return id(self)


@pytest.mark.parametrize(
    ("expert", "law"),
    [
        (Silent(), "answers at least once in 12 rounds"),
        (Impatient(), r"awaits every wait: `await world.clock.sleep\(...\)`"),
        (Sleepy(), "blocks nobody: await world.clock.sleep, not time.sleep"),
        (Delegating(), r"blocks nobody: .* waits for it in real time; write `await world\.run\("),
        (Shelling(), "blocks nobody: it runs a program and waits for it"),
        (Delegating(timeout=60.0), "blocks nobody: it runs a program and waits for it"),
        (Counting(), "keeps no state on the model"),
        (SecretlyCounting(), "keeps no state on the model"),
        (Tiring(), "the same play gives the same answers"),
        (Guessing(), "the same play gives the same answers: chance from world.rng only"),
        (Undocumented(), "has a docstring"),
        (Functional(function=partial(max, 0)), "equals its pickled self"),
        (Unique(), "hashes as its pickled self does"),
    ],
)
def test_an_expert_that_breaks_a_law_is_told_which(expert: Expert, law: str) -> None:
    with pytest.raises(LawError, match=rf"{type(expert).__name__}: {law}.*; seen: "):
        check_expert(expert)


@pytest.mark.parametrize("expert", [Calling(), Keeping()])
def test_an_expert_that_blocks_where_it_holds_up_nobody_obeys_the_laws(expert: Expert) -> None:
    check_expert(expert)


def test_an_expert_that_cannot_be_pickled_is_refused() -> None:
    with pytest.raises((LawError, PicklingError, AttributeError), match=r"[Pp]ickle.*lambda"):
        check_expert(Functional(function=lambda: 0))


class Running(Expert):
    """Holds its state where it belongs: in what it starts."""

    def start(self, briefing: Briefing) -> Answering:
        return RunningExpert()


class RunningExpert:
    def __init__(self) -> None:
        self._queries = 0

    async def answer(self, query: Query, world: World) -> Estimate:
        self._queries += 1
        return Estimate(world.rng.normal(float(self._queries), size=len(query.points)))


def test_an_expert_may_have_state_and_chance_where_they_belong() -> None:
    check_expert(Running())


class Beacon(Teller):
    """Sends what a function makes of one point, unasked."""

    function: Callable[[int], Any]

    async def broadcast(self, world: World) -> None:
        while True:
            await world.clock.sleep(1.0)
            world.send(world.open(world.domain.cover(1)), self.function(1))


def nought(points: int) -> Estimate:
    return Estimate(np.zeros(points))


class Shouting(Teller):
    """Broadcasts without time."""

    def broadcast(self, world: World) -> None:
        """Return at once."""


class Brodcasting(Teller):
    """Would broadcast."""

    async def brodcast(self, world: World) -> None:
        """Send nothing."""


class Dumb(Expert):
    """Starts what cannot answer."""

    def start(self, briefing: Briefing) -> Answering:
        return object()  # type: ignore[return-value] # on purpose


def test_an_expert_may_broadcast() -> None:
    check_expert(Beacon(function=nought))


class Bookkeeper(Teller):
    """Shows what functions give of the time."""

    meter: Callable[[float], Any] = float
    account: Callable[[float], Any] = float

    def meters(self, time: float) -> dict[str, float]:
        return {"shown": self.meter(time)}

    def accounts(self, time: float) -> dict[str, dict[str, Any]]:
        return {"ends": {"time": [self.account(time)]}}


class Metering(Teller):
    """Meters need the time."""

    def meters(self) -> dict[str, float]:
        return {}


def text(time: float) -> str:
    return "much"


def endless(time: float) -> float:
    return inf


def nothing(time: float) -> None:
    return None


def count_up(time: float, numbers: Iterator[int] = count()) -> float:  # noqa: B008 - on purpose
    return float(next(numbers))


def count_at_the_end(time: float, numbers: Iterator[int] = count()) -> float:  # noqa: B008 - on purpose
    return float(next(numbers)) if time else 0.0


def test_an_expert_may_keep_books() -> None:
    check_expert(Bookkeeper())
    check_expert(Bookkeeper(account=text))


@pytest.mark.parametrize(
    ("expert", "law"),
    [
        (Bookkeeper(meter=text), "meters gives finite numbers or NaN, by name.*; seen: .*'much'"),
        (Bookkeeper(meter=endless), "meters gives finite numbers .*; seen: .*inf for 'shown'"),
        (Bookkeeper(account=nothing), "accounts gives tables of columns .*column 'time'"),
        (Bookkeeper(meter=count_up), "meters gives .* the same when it is called again; seen: "),
        (Bookkeeper(meter=count_at_the_end), "the same play gives the same meters and accounts"),
        (Bookkeeper(account=count_at_the_end), "the same play gives the same meters and accounts"),
        (Metering(), r"meters can be called with \(time\); .*must be callable as"),
        (Beacon(function=prophecy), "broadcasts Estimates of finite values, measured by now; .*99"),
        (Beacon(function=accident), "broadcasts Estimates .*; seen: .*KeyError: 'sensor 7'"),
        (Shouting(), r"broadcast can be awaited with \(world\); .*must be an async method"),
        (Dumb(), r"answer can be awaited with \(query, world\); seen: answer is missing"),
        (Brodcasting(), r"no name is a misspelt name of a hook; .*did you mean 'broadcast'\?"),
    ],
)
def test_an_expert_whose_method_breaks_a_law_is_told_which(expert: Expert, law: str) -> None:
    assert len(broken(expert_laws(expert))) == 1
    with pytest.raises(LawError, match=rf"{type(expert).__name__}: {law}"):
        check_expert(expert)
