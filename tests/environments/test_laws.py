"""The laws of environments, for every plug-in and several settings of the richer ones."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from sparq_environments.function import FunctionEnvironment, from_function
from sparq_environments.markov_gp import MarkovGP
from sparq_environments.moving_peaks import MovingPeaks
from sparq_environments.online_tuning import OnlineTuning
from sparq_environments.plume import Fixed, Plume, Source, Wall
from sparq_environments.recorded import Recorded
from sparq_environments.rkhs_walk import RKHSWalk
from sparq_environments.rod import Rod
from sparq_environments.sensor_network import SensorNetwork
from sparq_environments.shifting import Shifting
from sparq_environments.switching import Switching
from sparq_environments.synthetic import Synthetic
from sparq_sim import Environment, Rules, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Sites
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin import registry as plugins
from sparq_sim.plugin.contract import Landscape
from sparq_sim.testing import check_environment
from tests.environments.test_markov_gp import WORLDS as MARKOV_GPS
from tests.environments.test_rkhs_walk import WORLDS as RKHS_WALKS

FILE, DAYS = "network.csv", 40


def swaying(points: Points, time: float) -> Values:
    """A bowl turned over, whose top goes round."""
    top = 0.5 * np.array([math.sin(time), math.cos(time)])
    values: Values = -((points - top) ** 2).sum(axis=1)
    return values


WORLDS: list[Environment] = [
    Synthetic(),
    from_function(swaying, Box([-1.0, -1.0], [1.0, 1.0])),
    from_function(swaying, Sites([[0.0, 0.0], [0.5, -0.5], [1.0, 0.2]])),
    *RKHS_WALKS,
    *MARKOV_GPS,
    MovingPeaks(),
    MovingPeaks(shape="hill", dimensions=5, movement="smooth", correlation=0.5),
    MovingPeaks(dimensions=1, every=3.0, correlation=0.5, movement="smooth"),
    MovingPeaks(shape="hill", heights=(1.0, 2.0), widths=(0.1, 0.1), move_length=300.0),
    *(
        Shifting(function=function, drift=drift)
        for function in ("branin", "ackley", "hartmann")
        for drift in ("line", "circle", "rotate")
    ),
    Shifting(function="ackley", dimensions=1),
    Shifting(function="ackley", dimensions=4),
    Switching(),
    Switching(dimensions=1, dwell={"kind": "exponential", "mean": 7.0}, order="random"),
    Switching(dimensions=4, functions=2, bumps=20, dwell=0.3, width=0.3),
    SensorNetwork(),
    SensorNetwork(rounding=0.0),
    Recorded(files=(FILE,)),
    Recorded(files=(FILE,), gaps="anomaly"),
    Plume(cells=16, spin_up=5.0, step=0.5),
    Plume(
        cells=16,
        spin_up=5.0,
        sources=(Source(path=Fixed(place=(2.0, 7.0))),),
        walls=(Wall(lower=(4.0, 0.0), upper=(5.5, 6.0)), Wall(lower=(8.0, 3.0), upper=(8.0, 9.0))),
    ),
    Rod(),
    Rod(cells=20, ends="cooled", spin_up=3.0),
    OnlineTuning(),
    OnlineTuning(rotation=0.05, switch_every=math.inf),
    OnlineTuning(rotation=0.0, switch_every=17.5, samples=1, noise=0.1),
    OnlineTuning(features=2, half_lives=(0.1, 4.0), ridges=(1e-4, 1e4)),
]
FATED = (Synthetic, FunctionEnvironment, Recorded)
"""Nothing about them is left to chance."""
SOUGHT = (FunctionEnvironment, RKHSWalk, MarkovGP, Switching, OnlineTuning)
"""Their best point is searched for, to 1e-9 of the reward's range; others know it."""
LATEST = {Plume: 30.0, Rod: 60.0, Recorded: float(DAYS), RKHSWalk: 2_000.0, MarkovGP: 2_000.0}
"""Until when they are asked here: what is marched takes time, and a record ends."""


def title(world: Environment) -> str:
    return f"{type(world).__name__}-{WORLDS.index(world)}"


each_world = pytest.mark.parametrize("world", WORLDS, ids=title)
seeds = st.integers(0, 2**32)
shares = st.floats(0.0, 1.0)


@pytest.fixture(scope="module", autouse=True)
def _beside_a_record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Work in a folder with a tidy file of five sites, which has ties, and gaps on day 7."""
    folder: Path = tmp_path_factory.mktemp("record")
    rows = [
        f"{np.datetime64('2020-01-01') + day},s{site},{site},{-site},{(7 * day + 3 * site) % 10}"
        for day in range(DAYS)
        for site in range(5)
        if (day, site) not in {(7, 0), (7, 3)}
    ]
    text = "\n".join(["date,site,lat,lon,value", *rows])
    (folder / FILE).write_text(text, encoding="utf-8")
    with chdir(folder):
        yield


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def latest(world: Environment) -> float:
    return LATEST.get(type(world), 20_000.0)


def seen(world: Environment, seed: int) -> list[list[float]]:
    """Return the rewards of a few points at a few times."""
    landscape = world.start(stream(seed))
    points = landscape.domain.cover(20)
    return [landscape.rewards(points, time).tolist() for time in (0.0, 3.5, 17.0)]


def climbed(landscape: Landscape, starts: Points, time: float) -> float:
    """Return the highest reward that climbs reach, and from the first start one without slopes."""
    domain = landscape.domain
    assert isinstance(domain, Box)

    def depth(at: Point) -> float:
        return -float(landscape.rewards(at[None], time)[0])

    bounds = list(zip(domain.lower, domain.upper, strict=True))
    ends = [minimize(depth, start, method="L-BFGS-B", bounds=bounds) for start in starts]
    ends.append(
        minimize(depth, starts[0], method="Nelder-Mead", bounds=bounds, options={"maxfev": 300})
    )
    return max(-float(end.fun) for end in ends)


def test_every_plug_in_is_among_the_worlds() -> None:
    shipped = {plugins.load("environment", name) for name in plugins.list_simulated("environment")}
    assert shipped <= {type(world) for world in WORLDS}


@each_world
def test_each_passes_the_check_for_plug_in_authors_and_can_be_played(world: Environment) -> None:
    check_environment(world)
    trace = play(Uniform(), world, Rules(rounds=6), seed=1)
    assert (trace.rounds["regret"] >= -1e-9).all()


@each_world
@settings(max_examples=4)
@given(seed=seeds, moments=st.lists(shares, min_size=2, max_size=5), cut=st.integers(1, 6))
def test_rewards_are_finite_and_depend_on_points_and_time_alone(
    world: Environment, seed: int, moments: list[float], cut: int
) -> None:
    times = [share * latest(world) for share in moments]
    landscape, other = world.start(stream(seed)), world.start(stream(seed))
    points = landscape.domain.sample(stream(seed + 1), 7)
    forth = [landscape.rewards(points, time) for time in times]
    assert np.isfinite(forth).all()
    other.best(times[0])
    for time, first in reversed(list(zip(times, forth, strict=True))):
        # From the last to the first, after another question, and asked twice.
        assert other.rewards(points, time).tolist() == first.tolist()
        assert other.rewards(points, time).tolist() == first.tolist()
        # In other batches sums may be rounded otherwise.
        rounding = 1e-12 * (1 + abs(first).max())
        halves = [other.rewards(part, time) for part in (points[:cut], points[cut:])]
        alone = [other.rewards(row[None], time)[0] for row in points]
        assert_allclose(np.concatenate(halves), first, rtol=0, atol=rounding)
        assert_allclose(alone, first, rtol=0, atol=rounding)


@each_world
@settings(max_examples=3)
@given(seed=seeds, share=shares)
def test_best_is_beaten_neither_by_10_000_points_nor_by_climbs_from_the_highest(
    world: Environment, seed: int, share: float
) -> None:
    time = share * latest(world)
    landscape = world.start(stream(seed))
    domain = landscape.domain
    point, value = landscape.best(time)
    assert domain.contains(point[None]).all()
    points = domain.sample(stream(seed + 1), 10_000) if isinstance(domain, Box) else domain.points
    rewards = landscape.rewards(points, time)
    spread = float(np.ptp(rewards))
    rounding = 1e-12 * (spread + abs(value)) + (1e-9 * spread if isinstance(world, SOUGHT) else 0)
    assert landscape.rewards(point[None], time)[0] == pytest.approx(value, rel=1e-12, abs=1e-12)
    assert rewards.max() <= value + rounding
    if isinstance(domain, Box):
        tops = points[np.argsort(rewards)[:-4:-1]]
        assert climbed(landscape, tops, time) <= value + rounding


@each_world
def test_equal_chance_gives_equal_worlds_also_after_pickling_and_other_chance_others(
    world: Environment,
) -> None:
    once = seen(world, 1)
    for copy in (pickle.loads(pickle.dumps(world)), type(world)(**world.model_dump())):
        assert copy == world
        assert seen(copy, 1) == once
    assert (seen(world, 2) == once) == isinstance(world, FATED)
