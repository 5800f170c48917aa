"""Laws that every plug-in obeys, for plug-in authors to run; and a loop that skips its waits.

A test of a plug-in is one line: `check_expert(MyExpert(lag=2.0))`.
"""

from __future__ import annotations

import asyncio
import pickle
import selectors
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from typing import Any, ClassVar, Literal, TypeVar, TypeVarTuple, Unpack
from unittest.mock import patch
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.random import Generator, Philox
from pydantic import PositiveInt

from sparq_sim.channel import Channel
from sparq_sim.clock import NotAwaitedWarning
from sparq_sim.computed import Computed, Tabulated
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.loop import Experts, Rules, play
from sparq_sim.messages import Estimate, Move, Point, Points, Query, Reply, Values
from sparq_sim.models import (
    Agent,
    Asks,
    Environment,
    Expert,
    Landscape,
    Optimizer,
    Part,
    Setting,
    World,
)
from sparq_sim.parcel import ANSWERED, INVALID

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class LawError(AssertionError):
    """A plug-in broke a law."""


def check_environment(environment: Environment, *, horizon: float = 20.0) -> None:
    """Check that an environment gives a landscape that is a pure function of points and time."""
    _check_model(environment)
    landscape, again = environment.start(_rng(1)), environment.start(_rng(1))
    _law(isinstance(landscape, Landscape), environment, "start gives a Landscape", landscape)
    points = landscape.domain.sample(_rng(2), 9)
    times = [0.0, horizon / 3, horizon / 2, horizon]
    forth = [_rewards(environment, landscape, points, time) for time in times]
    back = [_rewards(environment, landscape, points, time) for time in reversed(times)][::-1]
    for time, first, second in zip(times, forth, back, strict=True):
        _law(
            np.array_equal(first, second),
            environment,
            f"rewards at {time} do not depend on what was asked before",
            (first, second),
        )
        other = _rewards(environment, again, points, time)
        _law(np.array_equal(first, other), environment, "equal rng, equal landscape", other)
        alone = np.concatenate(
            [_rewards(environment, landscape, row[None], time) for row in points]
        )
        _law(
            np.allclose(first, alone, rtol=1e-12, atol=1e-12),
            environment,
            "a point has the same reward alone and among others",
            (first, alone),
        )
    cover = landscape.domain.cover(500)
    tolerance = _tolerance(environment, landscape, times)
    for time in times:
        point, value = landscape.best(time)
        landscape.domain.check(np.asarray(point)[None], f"{_name(environment)}: best point")
        at_best = _rewards(environment, landscape, np.asarray(point)[None], time)[0]
        slack = 1e-6 * max(1.0, abs(value))
        _law(abs(at_best - value) <= slack, environment, "best's reward is its value", at_best)
        highest = _rewards(environment, landscape, cover, time).max()
        beaten = highest > value + max(slack, tolerance)
        _law(not beaten, environment, "no point beats best", (highest, value))


def check_expert(
    expert: Expert, environment: Environment | None = None, *, others: Experts | None = None
) -> None:
    """Check that an expert answers what it is asked, and leaves everything as it was.

    It is asked about *environment*, by default a small one; *others* are experts that it asks.
    """
    _check_model(expert)
    before = expert.model_copy(deep=True)
    for batch in (1, 4):
        with _sleepless() as slept, _awaiting(expert):
            traces = [
                play(
                    Asker(batch=batch),
                    environment or Slope(),
                    Rules(rounds=12),
                    experts={**(others or {}), "expert": expert},
                    seed=3,
                )
                for _ in range(2)
            ]
        _law(not slept, expert, "blocks nobody: await world.clock.sleep, not time.sleep", slept)
        fates = set(traces[0].replies["fate"][traces[0].replies["source"] == "expert"])
        _law(
            INVALID not in fates,
            expert,
            f"answers an Estimate of {batch} finite values, measured by now",
            sorted({str(reason) for reason in traces[0].replies["reason"] if reason}),
        )
        _law(ANSWERED in fates, expert, "answers at least once in 12 rounds", fates)
        _law(
            traces[0].digest() == traces[1].digest(),
            expert,
            "the same play gives the same answers: chance from world.rng only, state from start",
            [trace.digest() for trace in traces],
        )
    _law(expert == before, expert, "keeps no state on the model", expert)


def check_optimizer(optimizer: Optimizer, *, rounds: int = 15) -> None:
    """Check that an optimizer moves within the domain, and bears what sources do to it."""
    _check_model(optimizer)
    prompt = Channel(noise=0.1)
    roads = {
        "prompt": prompt,
        "late and lossy": Channel(transit=1.7, loss=0.4, noise=0.1, split=True),
        "down": Channel(outages=((0.0, 1e9),)),
    }
    places: tuple[Literal["line", "square", "sites"], ...] = ("line", "square", "sites")
    for place in places:
        for road, channel in roads.items():
            digests = set()
            for _ in range(2):
                before = _global_state()
                trace = play(
                    pickle.loads(pickle.dumps(optimizer)),
                    Slope(place=place),
                    Rules(rounds=rounds),
                    experts={"expert": (Teller(), channel)},
                    feedback=prompt if road == "down" else channel,
                    seed=7,
                )
                digests.add(trace.digest())
                _law(
                    _global_state() == before,
                    optimizer,
                    "takes chance from its own rng, never from numpy.random",
                    "a play that changed numpy.random's state",
                )
            _law(
                len(digests) == 1,
                optimizer,
                f"the same seed gives the same play ({place}, experts {road})",
                digests,
            )


class Slope(Environment):
    """A small world for tests: a parabola whose top moves along the diagonal of the unit cube."""

    place: Literal["line", "square", "sites"] = "line"

    def start(self, rng: Generator) -> Landscape:
        """Give the parabola on a line, in a square, or on nine sites of the square."""
        square = Box([0.0, 0.0], [1.0, 1.0])
        places: dict[str, Domain] = {
            "line": Box(0.0, 1.0),
            "square": square,
            "sites": Sites(square.grid(3)),
        }
        return _SlopeLandscape(places[self.place])


class _SlopeLandscape:
    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def rewards(self, points: Points, time: float) -> Values:
        """Give 1 minus the squared distance from the top."""
        squares: Values = ((points - self._top(time)) ** 2).sum(axis=1)
        return 1.0 - squares

    def best(self, time: float) -> tuple[Point, float]:
        """Give the top, or the nearest site."""
        if isinstance(self.domain, Sites):
            rewards = self.rewards(self.domain.points, time)
            return self.domain.points[rewards.argmax()], float(rewards.max())
        return np.full(self.domain.dimensions, self._top(time)), 1.0

    def _top(self, time: float) -> float:
        return 0.5 + 0.4 * float(np.sin(0.3 * time))


class Teller(Expert):
    """A small expert for tests, who knows the reward as it is."""

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the reward of now."""
        return Estimate(world.rewards(query.points, world.clock.now))


class Asker(Optimizer):
    """A small optimizer for tests, who plays at random and asks all experts about past points."""

    asks: ClassVar[Asks | None] = "past"
    batch: PositiveInt = 2

    def start(self, setting: Setting, rng: Generator) -> Agent:
        """Give an agent that learns nothing."""
        return _AskerAgent(self, setting, rng)


class _AskerAgent:
    def __init__(self, model: Asker, setting: Setting, rng: Generator) -> None:
        self._batch = model.batch
        self._setting = setting
        self._rng = rng
        self._past: list[Point] = []
        self._ids = count(1)

    def ask(self, now: float) -> Move:
        """Play a random point, ask about the latest ones."""
        self._past.append(self._setting.domain.sample(self._rng, 1)[0])
        points = np.array(self._past[-self._batch :])
        experts = self._setting.experts
        return Move(
            self._past[-1], tuple(Query(next(self._ids), name, points, now) for name in experts)
        )

    def tell(self, reply: Reply) -> None:
        """Take no notice."""


class WaitlessLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual: instead of waiting, it jumps to the next timer.

    Time stands still while a thread computes. With it, a play under `LiveClock` takes no longer
    than under `SimClock` and gives the same trace; sockets are not waited for.
    """

    def __init__(self) -> None:
        self._moment = 0.0
        self._timers: list[float] = []
        self._threads = 0
        super().__init__(_WaitlessSelector(self))

    def time(self) -> float:
        """Give the virtual time, in seconds from 0."""
        return self._moment

    def skip(self, seconds: float) -> None:
        """Pass *seconds* at once, as while a slow thread computes; a thread may call it."""
        self._moment += seconds

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Schedule as ever, and remember the moment exactly."""
        heappush(self._timers, when)
        return super().call_at(when, callback, *args, context=context)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run in a thread as ever, and let time stand still meanwhile."""
        self._threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, _: object) -> None:
        self._threads -= 1

    def pass_time(self, timeout: float | None) -> float | None:
        """Jump to the next timer, if the loop would wait for one; give how long to wait still."""
        if not timeout or self._threads:
            return timeout if timeout == 0 else None
        # Not by adding the timeout: now + (m - now) is not always m.
        while self._timers and self._timers[0] <= self._moment:
            heappop(self._timers)
        if self._timers:
            self._moment = heappop(self._timers)
        return 0.0


class _WaitlessSelector(selectors.DefaultSelector):
    def __init__(self, loop: WaitlessLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        return super().select(self._loop.pass_time(timeout))


@contextmanager
def _sleepless() -> Iterator[list[float]]:
    """Let nobody sleep in real time; gather for how long they would have."""
    slept: list[float] = []
    with patch("time.sleep", slept.append):
        yield slept


@contextmanager
def _awaiting(expert: Expert) -> Iterator[None]:
    """Refuse waits that are made and not awaited."""
    with catch_warnings():
        simplefilter("error", NotAwaitedWarning)
        try:
            yield
        except NotAwaitedWarning as warning:
            law = "awaits every wait: `await world.clock.sleep(...)`"
            raise LawError(f"{_name(expert)}: {law}; seen: {warning}") from warning


def _check_model(model: Part) -> None:
    """Check that a model is its parameters: equal to its copy, hashable and documented."""
    try:
        copy = pickle.loads(pickle.dumps(model))
        hashes = hash(copy), hash(model)
    except Exception as error:
        raise LawError(f"{_name(model)}: can be pickled and hashed; seen: {error}") from error
    _law(copy == model, model, "equals its pickled self", copy)
    _law(hashes[0] == hashes[1], model, "hashes as its pickled self does", copy)
    _law(bool(type(model).__doc__), model, "has a docstring", None)


def _rewards(environment: Environment, landscape: Landscape, points: Points, time: float) -> Values:
    before = points.copy()
    rewards = landscape.rewards(points, time)
    _law(
        isinstance(rewards, np.ndarray) and rewards.shape == (len(points),),
        environment,
        f"rewards of {len(points)} points have shape ({len(points)},)",
        rewards,
    )
    _law(bool(np.isfinite(rewards).all()), environment, "rewards are finite", rewards)
    _law(np.array_equal(points, before), environment, "leaves the points as they were", points)
    return rewards


def _tolerance(environment: Environment, landscape: Landscape, times: list[float]) -> float:
    """Return the tolerance that is stated where rewards are simulated, if it is kept; else 0."""
    if not isinstance(landscape, Computed | Tabulated):
        return 0.0
    points, tolerance = landscape.domain.cover(200), landscape.tolerance
    for time in times:
        rewards = _rewards(environment, landscape, points, time)
        error = float(abs(landscape.simulated(points, time) - rewards).max())
        _law(
            error <= tolerance,
            environment,
            f"rewards at {time:g} are those simulated anew, to its tolerance of {tolerance:g}; "
            "state a larger one, or take more nodes and snapshots",
            error,
        )
    return tolerance


def _law(holds: bool, model: Part, law: str, seen: object) -> None:
    if not holds:
        raise LawError(f"{_name(model)}: {law}; seen: {seen!s:.300}")


def _name(model: Part) -> str:
    return f"{type(model).__module__}.{type(model).__name__}"


def _rng(seed: int) -> Generator:
    return Generator(Philox(key=seed))


def _global_state() -> tuple[bytes, int]:
    state: Any = np.random.get_state()  # noqa: NPY002 - the law is that nobody uses it
    return state[1].tobytes(), state[2]
