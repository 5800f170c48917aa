from __future__ import annotations

import asyncio
import os
import re
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, pairwise
from math import inf, nan
from pickle import PicklingError
from time import perf_counter, sleep
from typing import Any, ClassVar, TypeVar

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import PrivateAttr

from sparq_environments.synthetic import Synthetic
from sparq_experts.simulator import Simulator
from sparq_experts.truth import Truth
from sparq_sim import (
    Answer,
    Box,
    Briefing,
    Environment,
    Estimate,
    Expert,
    Failure,
    Move,
    Optimizer,
    PluginError,
    Query,
    World,
)
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.messages import Reply
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Answering, Belief, Landscape
from sparq_sim.testing import (
    Asker,
    Law,
    LawError,
    Slope,
    Teller,
    UncheckedError,
    WaitlessLoop,
    check_environment,
    check_expert,
    check_optimizer,
    environment_laws,
    expert_laws,
)
from tests.ground import Ground, Grounded

T = TypeVar("T")

# The sound ones pass.


@pytest.mark.parametrize(
    "environment",
    [Slope(), Slope(place="square"), Slope(place="sites"), Synthetic()],
    ids=str,
)
def test_sound_environments_pass(environment: Environment) -> None:
    check_environment(environment)


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


@pytest.mark.parametrize("optimizer", [Asker(), Asker(batch=1), Uniform()], ids=str)
def test_sound_optimizers_pass(optimizer: Optimizer) -> None:
    check_optimizer(optimizer)


# Environments that break one law.


class Fatiguing(Ground):
    """Gives a little less each time that it is asked."""

    def __init__(self) -> None:
        self._calls = count()

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time) - 1e-6 * next(self._calls)


class Marching(Ground):
    """Steps forward in time, and never back."""

    def __init__(self) -> None:
        self._reached = 0.0

    def rewards(self, points: Points, time: float) -> Values:
        self._reached = max(self._reached, time)
        return super().rewards(points, self._reached)


class Sociable(Ground):
    """Gives more to points in company."""

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time) - 1e-3 / len(points)


class Upright(Ground):
    """Gives a column."""

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time)[:, None]


class Listing(Ground):
    """Gives a list."""

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time).tolist()  # type: ignore[no-any-return] # on purpose


class Holed(Ground):
    """Does not know what is where time is late."""

    def rewards(self, points: Points, time: float) -> Values:
        return np.where(points[:, 0] > 0.5, nan if time > 5 else 1.0, super().rewards(points, time))


class Meddling(Ground):
    """Rounds the points that it is given."""

    def rewards(self, points: Points, time: float) -> Values:
        values = super().rewards(points, time)
        points[:] = np.round(points, 2)
        return values


class Modest(Ground):
    """Calls a point best that is not."""

    def best(self, time: float) -> tuple[Point, float]:
        point = np.array([0.1])
        return point, float(self.rewards(point[None], time)[0])


class Boasting(Ground):
    """Promises more than its best point gives."""

    def best(self, time: float) -> tuple[Point, float]:
        point, value = super().best(time)
        return point, value + 0.1


class Elsewhere(Ground):
    """Has its best point beyond the fence."""

    def best(self, time: float) -> tuple[Point, float]:
        return np.array([1.5]), 1.0


class Moody(Ground):
    """Comes out otherwise each time that it is made."""

    _made = count()

    def __init__(self) -> None:
        self._mood = 1e-6 * next(self._made)

    def rewards(self, points: Points, time: float) -> Values:
        return super().rewards(points, time) - self._mood


def test_the_ground_of_the_offenders_is_sound() -> None:
    check_environment(Grounded(ground=Ground))


@pytest.mark.parametrize(
    ("ground", "law"),
    [
        (Fatiguing, "rewards do not depend on what was asked before"),
        (Marching, "rewards do not depend on what was asked before"),
        (Moody, "equal rng, equal landscape"),
        (Sociable, "a point has the same reward alone and among others"),
        (Upright, r"rewards of 9 points have shape \(9,\)"),
        (Listing, r"rewards of 9 points have shape \(9,\)"),
        (Holed, "rewards are finite"),
        (Meddling, "leaves the points as they were"),
        (Modest, "no point beats best"),
        (Boasting, "best's reward is its value"),
        (dict, "start gives a Landscape"),
    ],
)
def test_an_environment_that_breaks_a_law_is_told_which(
    ground: Callable[[], object], law: str
) -> None:
    with pytest.raises(LawError, match=rf"tests\.ground\.Grounded: {law}; seen: "):
        check_environment(Grounded(ground=ground))


# Hooks of landscapes that break one law.


class Hooked(Ground):
    """Has every hook, and each is sound."""

    cells = 8

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time) + rng.normal(size=len(points))

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        there: NDArray[np.bool_] = points[:, 0] > 0.1 * time % 1
        return there

    def coarse(self, resolution: float) -> Landscape:
        return Ground()


class ColumnOfObservations(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, rng)[:, None]


class ListOfObservations(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, rng).tolist()  # type: ignore[no-any-return] # on purpose


class BlindObservations(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return np.full(len(points), nan)


class OwnNoise(Hooked):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, np.random.default_rng())


class NumbersForBools(Hooked):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return super().available(points, time).astype(float)


class OneForAll(Hooked):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.array([True])


class Flickering(Hooked):
    def __init__(self) -> None:
        self._calls = count()

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.full(len(points), next(self._calls) % 7 > 0)


class Together(Hooked):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.full(len(points), len(points) > 1)


class NoCoarse(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return 3  # type: ignore[return-value] # on purpose


class Wider(Ground):
    domain = Box(0.0, 2.0)


class CoarseElsewhere(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return Wider()


class CoarseUpright(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return Upright()


class CoarseModest(Hooked):
    def coarse(self, resolution: float) -> Landscape:
        return Modest()


class NoCells(Hooked):
    cells = 0


class Curt(Hooked):
    def observe(self, points: Points, time: float) -> Values:  # type: ignore[override] # on purpose
        return self.rewards(points, time)


class Availible(Ground):
    def availible(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.ones(len(points), dtype=bool)


def test_sound_hooks_pass() -> None:
    check_environment(Grounded(ground=Hooked))


@pytest.mark.parametrize(
    ("ground", "law"),
    [
        (ColumnOfObservations, r"observations of 9 points have shape \(9,\); seen: .*\(9, 1\)"),
        (ListOfObservations, r"observations of 9 points have shape \(9,\); seen: list \["),
        (BlindObservations, "observations are finite; seen: "),
        (OwnNoise, "equal rng, equal observations; seen: at time 0.0: "),
        (NumbersForBools, "available gives 9 bools for 9 points; seen: .* type float64"),
        (OneForAll, r"available gives 9 bools for 9 points; seen: an array of shape \(1,\)"),
        (Flickering, "available does not depend on what was asked before; seen: at time"),
        (Together, "a point is available alone as among others; seen: "),
        (NoCoarse, "coarse: is a Landscape; seen: 3"),
        (CoarseElsewhere, "coarse: has the domain of the landscape; seen: Box"),
        (CoarseUpright, r"coarse: rewards of 9 points have shape \(9,\); seen: "),
        (CoarseModest, "coarse: no point beats best; seen: "),
        (NoCells, "cells is a whole number above 0; seen: cells must be .*, not 0"),
        (Curt, r"observe can be called with \(points, time, rng\); seen: observe must be callable"),
        (Availible, r"no name is that of a hook misspelt; .* did you mean 'available'\?"),
    ],
)
def test_a_landscape_whose_hook_breaks_a_law_is_told_which(
    ground: Callable[[], object], law: str
) -> None:
    with pytest.raises(LawError, match=rf"^tests\.ground\.Grounded: {law}"):
        check_environment(Grounded(ground=ground))


class ThreeBroken(Hooked):
    """One hook is of the wrong shape, one of the wrong signature, one of the wrong type."""

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return super().observe(points, time, rng)[:, None]

    def available(self, points: Points) -> NDArray[np.bool_]:  # type: ignore[override] # on purpose
        return np.ones(len(points), dtype=bool)

    cells = "many"  # type: ignore[assignment] # on purpose


def broken(laws: Iterable[Law]) -> list[str]:
    """Give the names of those that are broken; what rests on them is not checked."""
    names = []
    for law in laws:
        try:
            law.check()
        except UncheckedError:
            continue
        except LawError:
            names.append(law.name)
    return names


def test_of_three_broken_hooks_each_is_named_and_all_else_is_sound() -> None:
    assert broken(environment_laws(Grounded(ground=ThreeBroken))) == [
        "available can be called with (points, time)",
        "cells is a whole number above 0",
        "observations of 9 points have shape (9,)",
    ]


def test_hooks_that_are_not_there_have_no_laws() -> None:
    names = {law.name for law in environment_laws(Grounded(ground=Ground))}
    more = {law.name for law in environment_laws(Grounded(ground=Hooked))} - names
    assert all(re.search("available|observ|coarse|cells", name) for name in more)
    assert not any(re.search("available|observ|coarse|cells", name) for name in names)


def test_a_landscape_that_starts_later_has_the_laws_of_its_hooks_all_the_same() -> None:
    class Late:
        made: Callable[[], object] = staticmethod(lambda: 1 / 0)

        def __call__(self) -> object:
            return self.made()

    late = Late()
    listed = list(environment_laws(Grounded(ground=late)))
    late.made = ColumnOfObservations
    named = [name for name in broken(listed) if "pickled" not in name]
    assert named == ["observations of 9 points have shape (9,)"]


def test_a_law_that_rests_on_a_broken_one_is_not_checked() -> None:
    found = {law.name: law for law in environment_laws(Grounded(ground=Upright))}
    with pytest.raises(UncheckedError, match=r"rests on .* broken: rewards of 9 points have shape"):
        found["rewards are finite"].check()


def test_a_best_point_outside_the_domain_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"Grounded: best point: \[1\.5\] lies outside the domain"):
        check_environment(Grounded(ground=Elsewhere))


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
    with pytest.raises(LawError, match=rf"test_checks\.Gives: {law}; seen: .*{seen}"):
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


@pytest.mark.parametrize(
    ("expert", "law"),
    [
        (Beacon(function=prophecy), "broadcasts Estimates of finite values, measured by now; .*99"),
        (Beacon(function=accident), "broadcasts Estimates .*; seen: .*KeyError: 'sensor 7'"),
        (Shouting(), r"broadcast can be awaited with \(world\); .*must be an async method"),
        (Dumb(), r"answer can be awaited with \(query, world\); seen: answer is missing"),
        (Brodcasting(), r"no name is that of a hook misspelt; .*did you mean 'broadcast'\?"),
    ],
)
def test_an_expert_whose_method_breaks_a_law_is_told_which(expert: Expert, law: str) -> None:
    assert len(broken(expert_laws(expert))) == 1
    with pytest.raises(LawError, match=rf"{type(expert).__name__}: {law}"):
        check_expert(expert)


# Optimizers that break one law.


class Agile:
    """Plays at random and asks all experts; each offender below spoils one thing."""

    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        self.briefing = briefing
        self.rng = rng
        self._asker = Asker().start(briefing, rng)

    def ask(self, now: float) -> Move:
        return self._asker.ask(now)

    def tell(self, reply: Reply) -> None:
        """Take no notice."""


class Straying(Agile):
    """Steps over the fence."""

    def ask(self, now: float) -> Move:
        return Move(np.full(self.briefing.domain.dimensions, 1.5))


class Roaming(Agile):
    """Takes every place for a box."""

    def ask(self, now: float) -> Move:
        return Move(np.full(self.briefing.domain.dimensions, 0.3))


class Gambling(Agile):
    """Throws numpy's own dice, and does not look."""

    def ask(self, now: float) -> Move:
        np.random.random()  # noqa: NPY002 - on purpose
        return super().ask(now)


class Fickle(Agile):
    """Moves by a generator that it made itself."""

    def ask(self, now: float) -> Move:
        return Move(self.briefing.domain.sample(np.random.default_rng(), 1)[0])


class Trusting(Agile):
    """Takes every reply for an answer."""

    def tell(self, reply: Reply) -> None:
        reply.values.sum()  # type: ignore[union-attr] # on purpose


class Hasty(Agile):
    """Expects each observation before the next move."""

    def __init__(self, briefing: Briefing, rng: Generator) -> None:
        super().__init__(briefing, rng)
        self._observed = self._moves = 0

    def ask(self, now: float) -> Move:
        if self._observed < self._moves:
            raise IndexError("fewer observations than moves")
        self._moves += 1
        return super().ask(now)

    def tell(self, reply: Reply) -> None:
        self._observed += reply.query.source == "reward"


class Mute(Agile):
    """Says nothing."""

    def ask(self, now: float) -> Move:
        return None  # type: ignore[return-value] # on purpose


class Made(Optimizer):
    """Starts the agent that it is told to."""

    agent: Callable[[Briefing, Generator], Agent]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return self.agent(briefing, rng)


def test_the_agent_of_the_offenders_is_sound() -> None:
    check_optimizer(Made(agent=Agile))


@pytest.mark.parametrize(
    ("agent", "error", "message"),
    [
        (Straying, PluginError, r"Straying: point of a move: \[1.5\] lies outside the domain"),
        (Roaming, PluginError, r"Roaming: point of a move: \[0.3, 0.3\] is none of the 9 sites"),
        (Mute, PluginError, r"Mute.ask gave None; expected a Move"),
        (Gambling, LawError, "Made: takes chance from its own rng, never from numpy.random; seen"),
        (Fickle, LawError, r"Made: the same seed gives the same play \(line, experts prompt\)"),
        (Trusting, AttributeError, "'Failure' object has no attribute 'values'"),
        (Hasty, IndexError, "fewer observations than moves"),
    ],
)
def test_an_optimizer_that_breaks_a_law_is_told_which(
    agent: Callable[[Briefing, Generator], Agent], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        check_optimizer(Made(agent=agent))


class Convinced(Agile):
    """Believes; each offender below spoils one thing."""

    def belief(self, points: Points, now: float) -> Belief | None:
        return Belief(points[:, 0], np.ones(len(points)), 2.0)


class Wordy(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        return "sunny"  # type: ignore[return-value] # on purpose


class Scattered(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        return Belief(points, np.ones(len(points)), 2.0)


class Surer(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        return Belief(points[:, 0], -np.ones(len(points)), 2.0)


class Distracted(Convinced):
    def belief(self, points: Points, now: float) -> Belief | None:
        self.rng.random()
        return None


class Curtly(Convinced):
    def belief(self, points: Points) -> Belief | None:  # type: ignore[override] # on purpose
        return None


def test_an_agent_may_believe() -> None:
    check_optimizer(Made(agent=Convinced), rounds=3)


@pytest.mark.parametrize(
    ("agent", "law"),
    [
        (Wordy, "belief gives a Belief or None; seen: sunny"),
        (Scattered, r"a belief about 7 points has means and stds of shape \(7,\); .*\(7, 1\)"),
        (Surer, "beliefs are finite, and no std is below 0; seen: Belief"),
        (Distracted, "to be asked what it believes changes no play; seen: "),
        (Curtly, r"belief can be called with \(points, now\); seen: .*too many positional"),
    ],
)
def test_an_agent_whose_belief_breaks_a_law_is_told_which(
    agent: Callable[[Briefing, Generator], Agent], law: str
) -> None:
    with pytest.raises(LawError, match=f"Made: {law}"):
        check_optimizer(Made(agent=agent), rounds=3)


class Unsaid(Uniform):
    pass


def test_an_optimizer_without_a_docstring_is_told_so() -> None:
    with pytest.raises(LawError, match="Unsaid: has a docstring"):
        check_optimizer(Unsaid())


def test_what_the_optimizer_hears_is_late_lost_refused_and_prompt() -> None:
    heard: list[Reply] = []

    class Listening(Agile):
        def tell(self, reply: Reply) -> None:
            heard.append(reply)

    LISTENERS.append(Listening)
    check_optimizer(Made(agent=latest_listener))
    answers = [reply for reply in heard if isinstance(reply, Answer)]
    assert {reply.reason for reply in heard if isinstance(reply, Failure)} == {"outage"}
    assert {reply.arrived_at == reply.asked_at for reply in answers} == {True, False}
    assert {reply.query.points.shape[1] for reply in heard} == {1, 2}


LISTENERS: list[Callable[[Briefing, Generator], Agent]] = []


def latest_listener(briefing: Briefing, rng: Generator) -> Agent:
    """Start the latest of the listeners, which could not be pickled itself."""
    return LISTENERS[-1](briefing, rng)


# The loop that skips its waits.


def in_no_time(main: Coroutine[Any, Any, T]) -> T:
    """Run on a waitless loop, and see that it takes far less than the hour it is about."""
    began = perf_counter()
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        result = runner.run(main)
    assert perf_counter() - began < 1800
    return result


def test_an_hour_of_sleep_passes_at_once() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert in_no_time(main()) == 3600.0


def test_sleepers_wake_in_the_order_of_their_moments() -> None:
    async def main() -> list[tuple[int, float]]:
        loop = asyncio.get_running_loop()
        woken: list[tuple[int, float]] = []

        async def sleeper(hours: int) -> None:
            await asyncio.sleep(3600 * hours)
            woken.append((hours, loop.time()))

        await asyncio.gather(*(sleeper(hours) for hours in (3, 1, 2)))
        return woken

    assert in_no_time(main()) == [(1, 3600.0), (2, 7200.0), (3, 10800.0)]


def test_timers_fire_at_their_very_moment() -> None:
    moments = [0.1 * 3.1**k for k in range(14)]
    missed = [now + (then - now) != then for now, then in pairwise(moments)]
    assert any(missed)  # So that adding up what is left to wait would not do.

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        fired: list[float] = []
        for moment in moments:
            loop.call_at(moment, lambda: fired.append(loop.time()))
        await asyncio.sleep(1e6)
        return fired

    assert in_no_time(main()) == moments


def test_a_timer_that_was_cancelled_does_not_fire() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        loop.call_at(5.0, pytest.fail, "fired").cancel()
        async with asyncio.timeout(3000):
            await asyncio.sleep(10)
        return loop.time()

    assert in_no_time(main()) == 10.0


def test_a_timeout_comes_in_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 3600)
        return asyncio.get_running_loop().time()

    assert in_no_time(main()) == 3600.0


def test_time_stands_still_while_a_thread_works() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        timer = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        await asyncio.to_thread(sleep, 0.05)
        after_work = loop.time()
        await timer
        return after_work, loop.time()

    assert in_no_time(main()) == (0.0, 3600.0)


def test_what_a_thread_skips_has_passed_for_all_when_it_ends() -> None:
    async def main() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, WaitlessLoop)
        timer = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.sleep(0)
        await asyncio.to_thread(loop.skip, 3000.0)
        after_work = loop.time()
        await timer
        return after_work, loop.time()

    assert in_no_time(main()) == (3000.0, 3600.0)


def test_time_goes_on_when_the_last_of_several_threads_is_done() -> None:
    async def main() -> list[float]:
        loop = asyncio.get_running_loop()

        async def work(seconds: float) -> float:
            await asyncio.to_thread(sleep, seconds)
            return loop.time()

        timer = asyncio.create_task(asyncio.sleep(3600))
        times = await asyncio.gather(work(0.01), work(0.05))
        await timer
        return [*times, loop.time()]

    assert in_no_time(main()) == [0.0, 0.0, 3600.0]


@pytest.mark.parametrize(
    ("check", "kind"),
    [(check_environment, Slope), (check_expert, Teller), (check_optimizer, Asker)],
)
def test_a_class_in_the_place_of_a_model_is_named(check: Any, kind: type[Any]) -> None:
    told = rf"expected an instance of sparq_sim\.\w+, as {kind.__name__}\(…\) makes, not <class"
    with pytest.raises(PluginError, match=told):
        check(kind)
