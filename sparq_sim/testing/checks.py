"""Laws that every plug-in obeys, for plug-in authors to run; and a loop that skips its waits.

A test of a plug-in is one line: `test_my_expert = laws(MyExpert(lag=2.0))`, of which pytest shows
each law under its name; or `check_expert(MyExpert(lag=2.0))`, anywhere.
"""

from __future__ import annotations

import asyncio
import pickle
import selectors
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count, product
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, TypeVarTuple, Unpack
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.random import Generator
from pydantic import PositiveInt, ValidationError

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import PluginError
from sparq_sim.messages import Estimate, Move, Query, Reply
from sparq_sim.plugin.briefing import Briefing, SourceTerms
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.expert import Answering, Expert, World
from sparq_sim.plugin.hooks import AGENT_HOOKS, EXPERT_HOOKS
from sparq_sim.plugin.model import Model
from sparq_sim.plugin.optimizer import Agent, Asks, Belief, Believing, Optimizer
from sparq_sim.plugin.registry import load
from sparq_sim.simulation.channel.channel import Channel
from sparq_sim.simulation.clock.lent import NotAwaitedWarning
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Experts, Watch, check_model, play
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.rules import Rules
from sparq_sim.simulation.trace import Trace, Turn
from sparq_sim.testing.blocking import noting_blocks
from sparq_sim.testing.laws_of_parts import part_laws
from sparq_sim.testing.laws_of_plugins import (
    Law,
    LawError,
    UncheckedError,
    call_laws,
    check_each,
    entered,
    environment_laws,
    law,
    life_laws,
    model_laws,
    name_of,
    stream,
    usable,
)

__all__ = [
    "Asker",
    "Law",
    "LawError",
    "Slope",
    "Teller",
    "UncheckedError",
    "WaitlessLoop",
    "check_environment",
    "check_expert",
    "check_optimizer",
    "check_part",
    "environment_laws",
    "expert_laws",
    "laws",
    "optimizer_laws",
    "part_laws",
]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def check_environment(environment: Environment, *, horizon: float = 20.0) -> None:
    """Check all laws of environments, and of the hooks that the landscape has.

    Args:
        environment: What is checked.
        horizon: Until when its landscape is looked at, in clock units.

    Raises:
        LawError: If one is broken; it names the law and what was seen.
    """
    __tracebackhide__ = True
    check_model("environment", Environment, environment)
    check_each(environment_laws(environment, horizon=horizon))


def check_expert(
    expert: Expert,
    environment: Environment | str | None = None,
    *,
    others: Experts | None = None,
) -> None:
    """Check all laws of experts: it answers what it is asked, and leaves everything as it was.

    Args:
        expert: What is checked.
        environment: What it is asked about, or the name of an installed one, as "plume"; by
            default a small one.
        others: Experts that it asks.

    Raises:
        LawError: If one is broken; it names the law and what was seen.
    """
    __tracebackhide__ = True
    check_model("expert", Expert, expert)
    check_each(expert_laws(expert, environment, others=others))


def check_optimizer(optimizer: Optimizer, *, rounds: int = 15) -> None:
    """Check all laws of optimizers: it moves within the domain, and bears what sources do to it.

    Args:
        optimizer: What is checked.
        rounds: Of each play.

    Raises:
        LawError: If one is broken; it names the law and what was seen.
    """
    __tracebackhide__ = True
    check_model("optimizer", Optimizer, optimizer)
    check_each(optimizer_laws(optimizer, rounds=rounds))


def check_part(part: Model, *, points: Points | None = None) -> None:
    """Check that a draw, a noise, a loss or a kernel keeps what others rely on.

    Args:
        part: What is checked.
        points: Where a kernel is looked at, (n, d); by default along a line.

    Raises:
        LawError: If a law is broken; it names the law and what was seen.
    """
    __tracebackhide__ = True
    check_each(part_laws(part, points))


def laws(
    model: Model,
    *,
    environment: Environment | str | None = None,
    others: Experts | None = None,
) -> Callable[[Law], None]:
    """Return a test of all laws of a *model*, for pytest to run one by one.

    `test_my_expert = laws(MyExpert(lag=2.0))` is a whole test: pytest shows each law under its
    name, and skips those that rest on a broken one.

    Args:
        model: What is checked.
        environment: What an expert is asked about, as for `check_expert`.
        others: Experts that an expert asks.
    """
    found: Callable[[], Iterator[Law]]
    if isinstance(model, Expert):
        found = partial(expert_laws, model, _environment(environment), others=others)
    elif environment is not None or others is not None:
        raise TypeError(f"environment and others are for experts, not for {name_of(model)}")
    elif isinstance(model, Environment):
        found = partial(environment_laws, model)
    elif isinstance(model, Optimizer):
        found = partial(optimizer_laws, model)
    elif isinstance(model, Model):
        found = partial(part_laws, model)
    else:
        raise TypeError(f"laws are those of plug-ins and their parts, not of {model!r}")

    def test(law: Law) -> None:
        __tracebackhide__ = True
        try:
            law.check()
        except UncheckedError as unchecked:
            import pytest  # It runs this, so it is there.

            pytest.skip(str(unchecked))

    # Read by the pytest plug-in: the laws, and the line that asked for them, where the test is.
    frame = sys._getframe(1)
    place = frame.f_code.replace(co_firstlineno=frame.f_lineno)
    vars(test).update(sparq_laws=found, place_as=place)
    # In the body of a class, where a function would be given the object as its law.
    return staticmethod(test) if "__qualname__" in frame.f_locals else test


# Experts


def expert_laws(
    expert: Expert,
    environment: Environment | str | None = None,
    *,
    others: Experts | None = None,
) -> Iterator[Law]:
    """Yield the laws of experts, one by one; arguments as for `check_expert`."""
    trial = _Trial(expert, _environment(environment), others or {})
    yield from model_laws(expert)
    yield (starts := law(expert, "starts", trial.not_started))
    calls = call_laws(expert, lambda: trial.started, EXPERT_HOOKS, starts)
    yield from calls.values()
    yield from life_laws(expert, trial, trial.start, starts, may_await=True)
    calls_work = usable(expert, lambda: trial.started, EXPERT_HOOKS, starts, calls["spelling"])
    whole = f"takes part in a play of {ROUNDS} rounds"
    yield (whole_plays := law(expert, whole, trial.unplayed, calls_work))
    remedy = "`await world.clock.sleep(...)`"
    yield (plays := law(expert, "awaits every wait", trial.forgotten, whole_plays, remedy=remedy))
    yield law(expert, "blocks nobody", trial.blocking, plays, remedy=trial.unblocking)
    for batch in trial.batches:
        sound = f"answers an Estimate of {batch} finite values, measured by now"
        yield law(expert, sound, partial(trial.invalid, batch), plays)
    if "broadcast" in calls:
        sent = "broadcasts Estimates of finite values, measured by now"
        yield law(expert, sent, trial.invalid_broadcast, plays, calls["broadcast"])
    yield law(expert, f"answers at least once in {ROUNDS} rounds", trial.silence, plays)
    same = "the same play gives the same answers"
    chance = "chance from world.rng only, state from start"
    yield law(expert, same, trial.unequal_plays, plays, remedy=chance)
    yield law(expert, "keeps no state on the model", trial.changed, plays)


def _environment(given: Environment | str | None) -> Environment:
    """Return an environment, by default a small one; one that is named has its defaults."""
    if given is None:
        return Slope()
    if not isinstance(given, str):
        return given
    model = load("environment", given)
    try:
        return model()
    except ValidationError as error:
        raise PluginError(
            f"environment {given!r} has no default for: "
            f"{', '.join(str(each['loc'][0]) for each in error.errors() if each['loc'])}; "
            f"give {model.__name__}(…) in place of its name"
        ) from error


@dataclass
class _Trial:
    """An expert, played with twice for each size of a query."""

    expert: Expert
    environment: Environment
    others: Experts
    batches: ClassVar = (1, 4)
    blocks: dict[str, str] = field(default_factory=dict)
    """What it was seen to do in real time while it answered, by the remedy."""
    before: Expert | None = None
    holds: bool = False
    """Whether what answers is a context manager."""

    def start(self) -> object:
        """Start what answers."""
        with open_landscape(self.environment, 1) as landscape:
            domain = landscape.domain
        names = [*self.others, "expert"]
        briefing = Briefing(domain, experts=dict.fromkeys(names, SourceTerms()))
        return self.expert.start(briefing)

    @cached_property
    def started(self) -> Answering:
        """What answers, outside of a play."""
        source: Answering = entered(self, "expert", self.start(), may_await=True)
        return source

    @cached_property
    def _traces(self) -> dict[int, list[Trace]]:
        self.before = self.expert.model_copy(deep=True)
        return {batch: [self._play(batch) for _ in range(2)] for batch in self.batches}

    def _play(self, batch: int) -> Trace:
        with noting_blocks() as blocks, _awaiting():
            trace = play(
                Asker(batch=batch),
                self.environment,
                Rules(rounds=ROUNDS),
                experts={**self.others, "expert": self.expert},
                seed=3,
            )
        self.blocks |= blocks
        return trace

    def not_started(self) -> object:
        """Start it; what that raises is what is wrong."""
        return None if self.started is not None else "None"

    def unplayed(self) -> object:
        """Play; what a play raises is what is wrong."""
        return None if self.forgotten() or self._traces else "no play"

    def forgotten(self) -> object:
        """Return the wait that it does not await, if there is one."""
        try:
            return None if self._traces else "no play"
        except NotAwaitedWarning as warning:
            return warning

    def blocking(self) -> object:
        """Return what it does that holds up others in real time, if it does."""
        return [*self.blocks.values()] or None

    def unblocking(self) -> str:
        """Return what to do instead of what holds up others."""
        return "; ".join(self.blocks)

    def _told(self, batch: int, *, own: bool) -> tuple[set[str], list[str]]:
        """Return fates and reasons of its answers, or of what it sent of its *own* accord."""
        replies = self._traces[batch][0].replies
        rows = (replies["source"] == "expert") & ((replies["asker"] == "expert") == own)
        reasons = {str(reason) for reason in replies["reason"][rows] if reason}
        return set(map(str, replies["fate"][rows])), sorted(reasons)

    def invalid(self, batch: int) -> object:
        """Return why answers to queries of *batch* points are of no use, if some are not."""
        fates, reasons = self._told(batch, own=False)
        return reasons if Fate.INVALID in fates else None

    def invalid_broadcast(self) -> object:
        """Return why readings that it sent are of no use, if some are not."""
        fates, reasons = self._told(1, own=True)
        return reasons if Fate.INVALID in fates else None

    def silence(self) -> object:
        """Return what became of all queries, if none was answered."""
        for batch in self.batches:
            fates, _ = self._told(batch, own=False)
            if Fate.ANSWERED not in fates:
                return sorted(fates)
        return None

    def unequal_plays(self) -> object:
        """Return the digests of two plays that should be the same, if they differ."""
        for traces in self._traces.values():
            digests = [trace.digest() for trace in traces]
            if len(set(digests)) > 1:
                return digests
        return None

    def changed(self) -> object:
        """Return the expert, if the plays have changed it."""
        return None if self._traces and self.expert == self.before else self.expert


# Optimizers


def optimizer_laws(optimizer: Optimizer, *, rounds: int = 15) -> Iterator[Law]:
    """Yield the laws of optimizers, one by one; arguments as for `check_optimizer`."""
    yield from model_laws(optimizer)
    season = _Season(optimizer, rounds)
    yield (starts := law(optimizer, "starts", season.not_started))
    calls = call_laws(optimizer, lambda: season.started, AGENT_HOOKS, starts)
    yield from calls.values()
    yield from life_laws(optimizer, season, season.start, starts)
    calls_work = usable(optimizer, lambda: season.started, AGENT_HOOKS, starts, calls["spelling"])
    for place, road in product(PLACES, ROADS):
        where = f"({place}, experts {road})"
        plays = law(optimizer, f"plays {where}", partial(season.unplayed, place, road), calls_work)
        yield plays
        same = f"the same seed gives the same play {where}"
        yield law(optimizer, same, partial(season.unequal, place, road), plays)
    chance = "takes chance from its own rng, never from numpy.random"
    yield law(optimizer, chance, season.gambling, calls_work)
    if "belief" in calls:
        told = calls["belief"]
        belief = "belief gives a Belief or None"
        yield (sound := law(optimizer, belief, season.no_belief, told, calls_work))
        shape = f"a belief about {BELIEVED} points has means and stds of shape ({BELIEVED},)"
        yield (shaped := law(optimizer, shape, season.misshapen_belief, sound))
        finite = "beliefs are finite, and no std is below 0"
        yield law(optimizer, finite, season.infinite_belief, shaped)
        same = "to be asked what it believes changes no play"
        yield law(optimizer, same, season.disturbed, sound)


Place: TypeAlias = Literal["line", "square", "sites"]
PLACES: tuple[Place, ...] = ("line", "square", "sites")
ROADS = {
    "prompt": Channel(noise=0.1),
    "late and lossy": Channel(transit=1.7, loss=0.4, noise=0.1, split=True),
    "down": Channel(outages=((0.0, 1e9),)),
}
BELIEVED = 7
"""At so many points an agent is asked what it believes."""
ROUNDS = 12
"""Of a play that tries an expert."""


@dataclass
class _Season:
    """An optimizer, played twice in each place with each kind of expert."""

    optimizer: Optimizer
    rounds: int
    holds: bool = False
    """Whether the agent is a context manager."""
    _outcomes: dict[tuple[Place, str], tuple[set[str], bool]] = field(default_factory=dict)

    def start(self) -> Agent:
        """Start the agent."""
        briefing = Briefing(Box(0.0, 1.0), experts={"expert": SourceTerms()}, rounds=self.rounds)
        return self.optimizer.start(briefing, stream(1))

    @cached_property
    def started(self) -> Agent:
        """The agent, outside of a play."""
        agent: Agent = entered(self, "optimizer", self.start())
        return agent

    def _outcome(self, place: Place, road: str) -> tuple[set[str], bool]:
        """Return the digests of two plays, and whether they have used numpy.random."""
        if (place, road) not in self._outcomes:
            before = _global_state()
            digests = {self._play(self.optimizer, place, road) for _ in range(2)}
            self._outcomes[place, road] = digests, _global_state() != before
        return self._outcomes[place, road]

    def _play(
        self, optimizer: Optimizer, place: Place, road: str, watch: Watch | None = None
    ) -> str:
        channel = ROADS[road]
        return play(
            optimizer if watch else pickle.loads(pickle.dumps(optimizer)),
            Slope(place=place),
            Rules(rounds=self.rounds),
            experts={"expert": (Teller(), channel)},
            feedback=ROADS["prompt"] if road == "down" else channel,
            seed=7,
            watch=watch,
        ).digest()

    def not_started(self) -> object:
        """Start it; what that raises is what is wrong."""
        return None if self.started is not None else "None"

    def unplayed(self, place: Place, road: str) -> object:
        """Play; what a play raises is what is wrong."""
        self._outcome(place, road)
        return None

    def unequal(self, place: Place, road: str) -> object:
        """Return the digests of two plays that should be the same, if they differ."""
        digests, _ = self._outcome(place, road)
        return digests if len(digests) > 1 else None

    def gambling(self) -> object:
        """Return where it has used numpy.random, if it has."""
        for place, road in product(PLACES, ROADS):
            with suppress(Exception):  # Of a play that fails another law tells.
                if self._outcome(place, road)[1]:
                    return "a play that changed numpy.random's state"
        return None

    @cached_property
    def _believed(self) -> tuple[list[object], str]:
        """What was believed after each move, and the digest of that play."""
        points = Box(0.0, 1.0).cover(BELIEVED)
        agents: list[Agent] = []
        beliefs: list[object] = []

        def ask(turn: Turn) -> None:
            agent = agents[-1]
            assert isinstance(agent, Believing)  # As its law says.
            beliefs.append(agent.belief(points, turn.played_at))

        exposed = _Exposed(optimizer=self.optimizer, started=agents.append)
        return beliefs, self._play(exposed, "line", "prompt", ask)

    @property
    def _beliefs(self) -> list[Belief]:
        return [belief for belief in self._believed[0] if isinstance(belief, Belief)]

    def no_belief(self) -> object:
        """Return what it gives in place of a belief, if it does."""
        sound = Belief | None
        return next((each for each in self._believed[0] if not isinstance(each, sound)), None)

    def misshapen_belief(self) -> object:
        """Return the shapes of a belief, if they are others than those of the points."""
        shapes = [(np.shape(each.mean), np.shape(each.std)) for each in self._beliefs]
        return next((each for each in shapes if set(each) != {(BELIEVED,)}), None)

    def infinite_belief(self) -> object:
        """Return a belief that is not finite, or whose std is below 0."""
        for each in self._beliefs:
            if not np.isfinite([*each.mean, *each.std, each.width]).all() or min(each.std) < 0:
                return each
        return None

    def disturbed(self) -> object:
        """Return the digests of a play while it was asked, and while it was not, if they differ."""
        digests = {self._believed[1], *self._outcome("line", "prompt")[0]}
        return digests if len(digests) > 1 else None


class _Exposed(Optimizer):
    """An *optimizer* whose agent is shown when it is *started*."""

    optimizer: Optimizer
    started: Callable[[Agent], None]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        agent = self.optimizer.start(briefing, rng)
        self.started(agent)
        return agent


# Small plug-ins for tests


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

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Give an agent that learns nothing."""
        return _AskerAgent(self, briefing, rng)


class _AskerAgent:
    def __init__(self, model: Asker, briefing: Briefing, rng: Generator) -> None:
        self._batch = model.batch
        self._briefing = briefing
        self._rng = rng
        self._past: list[Point] = []
        self._ids = count(1)

    def ask(self, now: float) -> Move:
        """Play a random point, ask about the latest ones."""
        self._past.append(self._briefing.domain.sample(self._rng, 1)[0])
        points = np.array(self._past[-self._batch :])
        experts = self._briefing.experts
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
def _awaiting() -> Iterator[None]:
    """Refuse waits that are made and not awaited."""
    with catch_warnings():
        simplefilter("error", NotAwaitedWarning)
        yield


def _global_state() -> tuple[bytes, int]:
    state: Any = np.random.get_state()  # noqa: NPY002 - the law is that nobody uses it
    return state[1].tobytes(), state[2]
