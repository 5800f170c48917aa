"""Hooks of started plug-ins: found where they are defined, refused by name where they are wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim import (
    Box,
    Briefing,
    Estimate,
    Expert,
    Move,
    Optimizer,
    PluginError,
    Query,
    Rules,
    Trace,
    World,
    play,
)
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Sites
from sparq_sim.errors import HookError
from sparq_sim.messages import Reply
from sparq_sim.plugin import registry as plugins
from sparq_sim.plugin.contract import (
    Agent,
    Answering,
    Broadcasting,
    Coarsening,
    Landscape,
    Observing,
    WithCellCount,
    WithGaps,
)
from sparq_sim.plugin.hooks import (
    AGENT_HOOKS,
    EXPERT_HOOKS,
    LANDSCAPE_HOOKS,
    NearMissWarning,
    find_near_misses,
)
from sparq_sim.study.executors.landscapes import SharedLandscape
from sparq_sim.testing import Asker, Teller
from tests.gappy import GappyLandscape
from tests.ground import SLOPE, Ground, Grounded


class Started(Expert):
    """Starts what it is told to."""

    source: Callable[[], Any]

    def start(self, briefing: Briefing) -> Answering:
        answering: Answering = self.source()
        return answering


class Made(Optimizer):
    """Starts the agent that it is told to."""

    agent: Callable[[], Any]

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        agent: Agent = self.agent()
        return agent


class Idle:
    """An agent that plays the middle."""

    def ask(self, now: float) -> Move:
        return Move(np.array([0.5]))

    def tell(self, reply: Reply) -> None:
        """Take no notice."""


def played(
    ground: Callable[[], Any] = Ground,
    *,
    source: Callable[[], Any] = Teller,
    agent: Callable[[], Any] = Idle,
    design: int = 0,
) -> Trace:
    return play(
        Made(agent=agent),
        Grounded(ground=ground),
        Rules(rounds=3, design=design),
        experts={"expert": Started(source=source)},
    )


# Hooks that cannot be used are refused before the play begins.


class Curt(Ground):
    def observe(self, points: Points, time: float) -> Values:
        return self.rewards(points, time)


class Demanding(Ground):
    def available(self, points: Points, time: float, place: str) -> NDArray[np.bool_]:
        return np.ones(len(points), bool)


class Named(Ground):
    def coarse(self, *, resolution: float) -> Landscape:
        return self


class Switched(Ground):
    observe = True


class Lazy(Ground):
    async def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time)


class Halved(Ground):
    cell_count = 2.5


class Timeless(Ground):
    def rewards(self, points: Points) -> Values:  # type: ignore[override] # on purpose
        return SLOPE.rewards(points, 0.0)


class Delegating:
    """Hands on what a landscape has, without having it."""

    def __init__(self) -> None:
        self.landscape = GappyLandscape()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.landscape, name)


@pytest.mark.parametrize(
    ("ground", "told"),
    [
        (Curt, r"observe must be callable as `def observe\(self, points, time, rng\)`: too many"),
        (Demanding, r"available must be callable as `def available\(.*time\)`: missing .*'place'"),
        (Named, r"coarse must be callable as `def coarse\(self, resolution\)`: too many"),
        (Switched, r"observe must be a method: `def observe\(.*rng\)`, not True"),
        (Lazy, r"observe must be a method that is not async: `def observe\("),
        (Halved, "cell_count must be a whole number above 0, not 2.5"),
        (Timeless, r"rewards must be callable as `def rewards\(self, points, time\)`: too many"),
        (Delegating, "available must be defined, not found by __getattr__"),
    ],
)
def test_a_landscape_with_a_hook_that_cannot_be_used_is_refused_by_name(
    ground: Callable[[], Any], told: str
) -> None:
    with pytest.raises(HookError, match=f"^environment Grounded: {told}"):
        played(ground)


class Answers:
    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.zeros(len(query.points)))


class Blocking(Answers):
    def broadcast(self, world: World) -> None:
        """Return at once."""


class Streaming(Answers):
    async def broadcast(self, world: World) -> Any:
        yield world


class Alone(Answers):
    async def broadcast(self) -> None:
        """Look at nothing."""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (Blocking, r"broadcast must be an async method: `async def broadcast\(self, world\)`"),
        (Streaming, "broadcast must be an async method"),
        (Alone, r"broadcast must be callable as `async def broadcast\(self, world\)`: too many"),
        (Ground, r"answer is missing: `async def answer\(self, query, world\)`"),
    ],
)
def test_an_expert_with_a_hook_that_cannot_be_used_is_refused_by_name(
    source: type, told: str
) -> None:
    with pytest.raises(HookError, match=rf"^expert 'expert' \({source.__name__}\): {told}"):
        played(source=source)


class Thoughtless(Idle):
    def belief(self, points: Points) -> None:
        """Believe nothing."""


def test_an_agent_with_a_hook_that_cannot_be_used_is_refused_by_name() -> None:
    told = r"^optimizer Made: belief must be callable as `def belief\(self, points, now\)`: too"
    with pytest.raises(HookError, match=told):
        played(agent=Thoughtless)


def test_a_hook_that_is_none_is_not_there() -> None:
    class Silenced(GappyLandscape):
        available = None  # type: ignore[assignment] # to take it away

        def rewards(self, points: Points, time: float) -> Values:
            return SLOPE.rewards(points, time)

    assert not isinstance(Silenced(), WithGaps)
    assert len(played(Silenced)) == 3


# What a hook gives is one value for each point.


class Upright(Ground):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time)[:, None]


class Summary(Ground):
    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.array(True)


@pytest.mark.parametrize("design", [0, 4])
@pytest.mark.parametrize(
    ("ground", "told"),
    [
        (Upright, r"Upright\.observe gives an array of shape \((1|4), 1\); expected \((1|4),\)"),
        (Summary, r"Summary\.available gives an array of shape \(\); expected \((1|4),\)"),
    ],
)
def test_a_hook_that_gives_another_shape_ends_the_play_by_name(
    ground: Callable[[], Any], told: str, design: int
) -> None:
    with pytest.raises(HookError, match=told):
        played(ground, design=design)


class Crooked(Ground):
    """Gives what it is told to, or raises it."""

    def __init__(self, *, observed: Any = None, there: Any = True) -> None:
        super().__init__()
        self._observed, self._there = observed, there

    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self._all(points, 1.0 if self._observed is None else self._observed)

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        return self._all(points, self._there)

    def _all(self, points: Points, given: Any) -> NDArray[Any]:
        if isinstance(given, Exception):
            raise type(given)(*given.args)
        return np.full(len(points), given)


@pytest.mark.parametrize("design", [0, 4])
@pytest.mark.parametrize(
    ("ground", "told"),
    [
        (Crooked(observed=nan), r"observe gives nan at \[.*\], time .*; expected a finite number"),
        (Crooked(observed="high"), r"observe gives an array of type <U4; expected real numbers"),
        (Crooked(observed=1j), r"observe gives an array of type complex128; expected real"),
        (
            Crooked(observed=OSError("no link")),
            r"observe raised OSError: no link \(test_hooks\.py:",
        ),
        (Crooked(there="no"), r"available gives an array of type <U2; expected bools"),
        (Crooked(there=nan), r"available gives an array of type float64; expected bools"),
        (Crooked(there=KeyError("t")), r"available raised KeyError: 't' \(test_hooks\.py:"),
    ],
)
def test_a_hook_that_raises_or_gives_what_it_must_not_ends_the_play_by_name(
    ground: Crooked, told: str, design: int
) -> None:
    with pytest.raises(HookError, match=rf"^environment \w+: Crooked\.{told}"):
        played(lambda: ground, design=design)


def test_what_is_observed_in_a_gap_may_be_anything() -> None:
    trace = played(lambda: Crooked(observed=nan, there=False))
    assert set(trace.replies["fate"]) == {"unavailable"}


class Spread(Ground):
    domain: Any = (0, 1)


class Topless(Ground):
    def best(self, time: float) -> Any:
        return 1.0


@pytest.mark.parametrize(
    ("ground", "told"),
    [
        (Spread, r"^environment Grounded: domain is \(0, 1\); expected a Box or Sites"),
        (Topless, r"^environment Grounded: best gives 1\.0 at time .*; expected a point and its"),
    ],
)
def test_a_domain_or_a_best_that_is_none_ends_the_play_by_name(
    ground: Callable[[], Any], told: str
) -> None:
    with pytest.raises(PluginError, match=told):
        played(ground)


class Strayed(Expert):
    """Looks outside of the domain."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.observe(query.points + 100.0))


class Fenced(Ground):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        if points.max() > 1.0:
            raise IndexError("beyond the fence")
        return self.rewards(points, time)


def test_a_hook_that_fails_where_an_expert_must_not_look_fails_the_expert() -> None:
    trace = play(Asker(), Grounded(ground=Fenced), Rules(rounds=3), experts={"it": Strayed()})
    told = trace.replies["reason"][trace.replies["source"] == "it"]
    assert told.size
    assert all(each.startswith("it raised ValueError: ") for each in told)


# Names that are nearly right.


class Obsrve(Ground):
    def obsrve(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time)


class Availible(Ground):
    def availible(self, points: Points, time: float) -> NDArray[np.bool_]:
        return np.ones(len(points), bool)


class Coarser(Ground):
    def coarser(self, resolution: float) -> Landscape:
        return self


class CellCounts(Ground):
    cell_counts = 64


class Brodcast(Answers):
    async def brodcast(self, world: World) -> None:
        """Send nothing."""


class Beleif(Idle):
    def beleif(self, points: Points, now: float) -> None:
        """Believe nothing."""


class Anwser(Expert):
    """Has an answer by its base only."""

    async def anwser(self, query: Query, world: World) -> Estimate:
        return Estimate(np.zeros(len(query.points)))


@pytest.mark.parametrize(
    ("part", "thing", "given", "meant"),
    [
        ("ground", Obsrve, "obsrve", "observe"),
        ("ground", Availible, "availible", "available"),
        ("ground", Coarser, "coarser", "coarse"),
        ("ground", CellCounts, "cell_counts", "cell_count"),
        ("ground", lambda: SharedLandscape(Obsrve()), "obsrve", "observe"),
        ("source", Brodcast, "brodcast", "broadcast"),
        ("source", Anwser, "anwser", "answer"),
        ("agent", Beleif, "beleif", "belief"),
    ],
)
def test_a_play_warns_of_a_misspelt_hook_and_goes_on(
    part: str, thing: Callable[[], Any], given: str, meant: str
) -> None:
    with pytest.warns(NearMissWarning, match=rf": '{given}' is .*: did you mean '{meant}'\?$"):
        trace = played(**{part: thing})  # type: ignore[arg-type] # never the design
    assert len(trace) == 3


def test_a_misspelt_method_that_is_needed_is_refused_with_the_name_that_was_meant() -> None:
    class Rewrads:
        domain, best = Ground.domain, Ground.best

        def rewrads(self, points: Points, time: float) -> Values:
            return SLOPE.rewards(points, time)

    told = r"must have rewards\(points, time\), .*'rewrads' is .*: did you mean 'rewards'\?$"
    with pytest.raises(PluginError, match=told):
        played(Rewrads)


class Helpful(Ground):
    """Has helpers with names like those of hooks."""

    calls = 7
    best_time = 3

    def cell(self, row: int, column: int) -> int:
        return row * column

    def observed(self, index: int) -> float:
        return float(index)

    def reward(self, point: Point, time: float) -> float:
        return float(self.rewards(point[None], time)[0])

    def unavailable(self) -> list[str]:
        return []


def test_helpers_with_like_names_are_no_misspelt_hooks() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(played(Helpful)) == 3


def test_no_plug_in_that_comes_with_it_has_a_misspelt_hook() -> None:
    briefing = Briefing(Box(0.0, 1.0))
    for name in plugins.list_names("optimizer"):
        model = plugins.load("optimizer", name)
        if not any(field.is_required() for field in model.model_fields.values()):
            agent = model().start(briefing, np.random.default_rng(0))
            assert not list(find_near_misses(agent, AGENT_HOOKS)), name
    sites = Briefing(Sites([[0.0], [1.0]]))  # A sensor network has its nodes there.
    for name in plugins.list_simulated("expert"):
        expert = plugins.load("expert", name)
        if not any(field.is_required() for field in expert.model_fields.values()):
            assert not list(find_near_misses(expert().start(sites), EXPERT_HOOKS)), name
    for name in plugins.list_simulated("environment"):
        world = plugins.load("environment", name)
        if not any(field.is_required() for field in world.model_fields.values()):
            landscape = world().start(np.random.default_rng(0))
            assert not list(find_near_misses(landscape, LANDSCAPE_HOOKS)), name


# Hooks are protocols.


class Everything(GappyLandscape):
    def observe(self, points: Points, time: float, rng: Generator) -> Values:
        return self.rewards(points, time)


@pytest.mark.parametrize("hook", [Observing, WithGaps, Coarsening, WithCellCount])
def test_a_shared_landscape_has_the_hooks_of_its_landscape(hook: type) -> None:
    assert isinstance(SharedLandscape(Everything()), hook)
    assert not isinstance(SharedLandscape(Ground()), hook)


def test_a_coarse_landscape_as_experts_see_it_has_its_cells_and_no_other_hook() -> None:
    seen: list[Landscape] = []

    class Looking:
        async def answer(self, query: Query, world: World) -> Estimate:
            raise AssertionError("nobody asks")

        async def broadcast(self, world: World) -> None:
            seen.append(world.coarse(0.5))

    played(GappyLandscape, source=Looking)
    assert isinstance(seen[0], WithCellCount)
    assert not isinstance(seen[0], Observing | WithGaps | Coarsening)
    assert isinstance(Looking(), Broadcasting)
