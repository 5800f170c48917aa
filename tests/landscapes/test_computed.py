from __future__ import annotations

import math
import tracemalloc
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pytest
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp
from scipy.ndimage import laplace
from typer.testing import CliRunner

from sparq_experts.simulator import Simulator
from sparq_sim import Box, Environment, PluginError, Rules, Scenario, Sites, Study, play
from sparq_sim.arrays import Points, Values
from sparq_sim.cli.main import app
from sparq_sim.landscapes.computed import (
    ComputedEnvironment,
    ComputedLandscape,
    TabulatedEnvironment,
    TabulatedLandscape,
)
from sparq_sim.landscapes.evolving import EvolvingEnvironment
from sparq_sim.landscapes.snapshots import CellGrid, InterpolatedLandscape, State
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.study.executors import InProcess, Processes
from sparq_sim.testing import Asker, LawError, check_environment
from tests.chemostat import Chemostat
from tests.study.test_executors import digests


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def tabulated(model: TabulatedEnvironment) -> TabulatedLandscape:
    landscape = model.start(stream())
    assert isinstance(landscape, TabulatedLandscape)
    return landscape


def computed(model: ComputedEnvironment) -> ComputedLandscape:
    landscape = model.start(stream())
    assert isinstance(landscape, ComputedLandscape)
    return landscape


def evolving(model: EvolvingEnvironment) -> InterpolatedLandscape:
    landscape = model.start(stream())
    assert isinstance(landscape, InterpolatedLandscape)
    return landscape


def hills(points: Points, time: float) -> Values:
    """Two smooth hills, which take turns at being the higher."""
    tops = np.array([[0.27, 0.61], [0.74, 0.33]])
    heights = 1.0 + 0.3 * np.array([math.sin(time), math.cos(time)])
    squares = ((points[:, None] - tops) ** 2).sum(axis=2)
    return np.asarray(np.exp(-10.0 * squares) @ heights, dtype=float)


class Hills(ComputedEnvironment):
    """Hills that are looked at from further off, the lower the resolution is."""

    def domain(self) -> Box | Sites:
        return Box([0.0, 0.0], [1.0, 1.0])

    def simulate(self, points: Points, time: float, resolution: float) -> Values:
        return hills(points, time) * resolution


class HillsOnSites(Hills):
    """The same on three sites."""

    def domain(self) -> Box | Sites:
        return Sites([[0.2, 0.6], [0.7, 0.3], [0.5, 0.5]], ["left", "right", "between"])


class CountedHills(TabulatedEnvironment):
    """Hills that note each time, and the number of points, at which they are simulated."""

    tolerance = 0.005
    asked: ClassVar[list[tuple[float, int]]] = []

    def domain(self) -> Box | Sites:
        return Box([0.0, 0.0], [1.0, 1.0])

    def simulate(self, points: Points, time: float, resolution: float) -> Values:
        self.asked.append((time, len(points)))
        return hills(points, time)


class TabulatedSites(CountedHills):
    """The same on three sites."""

    def domain(self) -> Box | Sites:
        return HillsOnSites().domain()


class Pond(EvolvingEnvironment):
    """Warmth that spreads from a sun which goes round, and is lost to the air."""

    cells: int = 16
    phase: float | None = None

    def domain(self) -> Box:
        return Box([-5.0, 0.0], [5.0, 10.0], ["x", "y"])

    def settle(self, rng: Generator) -> Self:
        return self.model_copy(update={"phase": rng.random()}) if self.phase is None else self

    def advance(self, state: State, grid: CellGrid, begin: float, end: float) -> State:
        def rates(time: float, flat: Values) -> Values:
            angle = 2 * np.pi * (time / 40.0 + (self.phase or 0.0))
            sun = np.array([3 * np.cos(angle), 5 + 3 * np.sin(angle)])
            warmth = np.exp(-((grid.points - sun) ** 2).sum(axis=1))
            spread = (
                laplace(flat.reshape(grid.shape), mode="nearest").ravel() / grid.spacings[0] ** 2
            )
            return np.asarray(0.1 * spread - 0.2 * flat + warmth, dtype=float)

        run = solve_ivp(rates, (begin, end), state.ravel(), rtol=1e-6)
        return np.asarray(run.y[:, -1].reshape(grid.shape), dtype=float)


class Growth(EvolvingEnvironment):
    """Two numbers in each cell, of which the second is the reward; each snapshot adds 1 and 2."""

    cells: int = 4

    def domain(self) -> Box:
        return Box(0.0, 1.0)

    def first(self, grid: CellGrid) -> State:
        return np.stack([np.zeros(grid.shape), grid.axes[0]])

    def advance(self, state: State, grid: CellGrid, begin: float, end: float) -> State:
        return state + np.array([[1.0], [2.0]]) * (end - begin)

    def read(self, state: State, grid: CellGrid) -> State:
        reward: State = state[1]
        return reward


# The laws

FINE = CountedHills(nodes=65, snapshot=0.1)


@pytest.mark.parametrize(
    "world",
    [Chemostat(), Hills(), HillsOnSites(), FINE, TabulatedSites(snapshot=0.1), Pond(), Growth()],
    ids=lambda world: type(world).__name__,
)
def test_a_world_of_each_base_obeys_the_laws(world: Environment) -> None:
    check_environment(world)


def test_a_tolerance_that_is_not_kept_is_broken_by_name() -> None:
    with pytest.raises(LawError, match=r"Chemostat: .* tolerance of 0\.02: .* more nodes"):
        check_environment(Chemostat(nodes=9))


# The best


def test_the_best_of_the_chemostat_is_that_of_a_dense_simulation_to_its_tolerance() -> None:
    landscape = tabulated(Chemostat())
    dense = landscape.domain.grid(101)
    for time in (0.0, 7.3, 25.0):
        point, value = landscape.best(time)
        anew = landscape.simulate(dense, time)
        assert abs(anew.max() - value) <= Chemostat.tolerance
        assert anew.max() - landscape.simulate(point[None], time)[0] <= 2 * Chemostat.tolerance
        assert landscape.rewards(dense, time).max() <= value + 1e-12


def test_the_best_of_what_is_computed_is_searched_for_beyond_any_grid() -> None:
    for time in (0.0, 1.5, 3.0):
        point, value = computed(Hills()).best(time)
        near = point + np.random.default_rng(0).normal(0.0, 0.01, (10_000, 2))
        assert hills(near, time).max() <= value + 1e-9
        assert hills(Box([0, 0], [1, 1]).grid(201), time).max() <= value


def test_of_sites_the_best_is_the_highest() -> None:
    for landscape in (computed(HillsOnSites()), tabulated(TabulatedSites())):
        values = landscape.rewards(landscape.domain.grid(2), 2.0)
        point, value = landscape.best(2.0)
        assert value == values.max()
        assert_array_equal(point, landscape.domain.grid(2)[values.argmax()])


# Snapshots


def test_each_snapshot_is_simulated_once_for_a_time_and_a_resolution() -> None:
    CountedHills.asked.clear()
    landscape = tabulated(CountedHills(nodes=9))
    points = landscape.domain.sample(stream(), 20)
    for _ in range(3):
        for time in (1.0, 2.0, 2.5):
            landscape.rewards(points, time)
            landscape.best(time)
            landscape.coarse(0.5).rewards(points, time)
    assert sorted(CountedHills.asked) == [(t, n) for t in (1.0, 2.0, 3.0) for n in (16, 81)]


def test_the_snapshots_used_longest_ago_are_dropped() -> None:
    class Forgetful(CountedHills):
        memory = 3 * 8 * 81

    Forgetful.asked.clear()
    landscape = tabulated(Forgetful(nodes=9))
    for time in (1.0, 2.0, 3.0, 1.0, 4.0, 2.0):
        landscape.rewards(np.array([[0.5, 0.5]]), time)
    assert [time for time, _ in Forgetful.asked] == [1.0, 2.0, 3.0, 4.0, 2.0]


def test_few_states_are_kept_of_a_field_however_far_it_goes() -> None:
    landscape = evolving(Growth(cells=1_000))
    tracemalloc.start()
    try:
        landscape.best(3_000.0)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 5_000_000  # All of them would be 48 MB.


def test_between_snapshots_rewards_are_interpolated_linearly_in_time() -> None:
    landscape = tabulated(Chemostat(snapshot=2.0))
    points = landscape.domain.sample(stream(), 20)
    before, after = (landscape.rewards(points, time) for time in (4.0, 6.0))
    assert_allclose(landscape.rewards(points, 4.5), 0.75 * before + 0.25 * after, rtol=1e-12)


# Fields


def test_a_field_begins_as_it_says_and_is_read_as_it_says() -> None:
    landscape = evolving(Growth(spin_up=2.5))
    middles = np.array([[0.125], [0.375], [0.625], [0.875]])
    assert_allclose(landscape.rewards(middles, 4.0), middles[:, 0] + 2.0 * (3 + 4))
    assert landscape.best(4.0)[1] == pytest.approx(14.875)


def test_chance_is_drawn_once_when_a_world_begins() -> None:
    points = Pond().domain().grid(5)
    first, again, other = (Pond().start(stream(seed)).rewards(points, 5.0) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert abs(first - other).max() > 0.1
    assert_array_equal(first, Pond(phase=stream(1).random()).start(stream(7)).rewards(points, 5.0))


# The same world, more cheaply


@pytest.mark.parametrize("world", [Chemostat(), Pond()], ids=["chemostat", "pond"])
def test_the_coarse_world_has_fewer_places_and_a_larger_error(world: Environment) -> None:
    landscape = world.start(stream())
    assert isinstance(landscape, InterpolatedLandscape)
    points = landscape.domain.sample(stream(1), 200)
    fine = landscape.rewards(points, 10.0)
    errors = [
        float(abs(landscape.coarse(share).rewards(points, 10.0) - fine).max())
        for share in (0.25, 0.5, 1.0)
    ]
    assert errors[0] > errors[1] > errors[2] == 0.0
    assert landscape.coarse(0.5).cell_count < 0.3 * landscape.cell_count


def test_what_is_computed_where_it_is_asked_gets_the_resolution() -> None:
    landscape = computed(Hills())
    points = landscape.domain.sample(stream(), 5)
    assert_allclose(landscape.coarse(0.5).rewards(points, 1.0), 0.5 * hills(points, 1.0))
    assert landscape.coarse(0.5) is landscape.coarse(0.5)
    assert landscape.coarse(1.0) is landscape
    with pytest.raises(ValueError, match="above 0 and at most 1, not 0"):
        landscape.coarse(0)


@pytest.mark.parametrize(
    "world", [Chemostat(), Hills(), Pond()], ids=["tabulated", "computed", "evolving"]
)
def test_a_simulator_expert_can_run_it_coarsely(world: Environment) -> None:
    simulator = Simulator(resolution=0.5, service_per_cell=0.0)
    replies = play(Asker(), world, Rules(rounds=3), experts={"model": simulator}, seed=1).replies
    answered = replies["fate"][replies["source"] == "model"] == "answered"
    assert answered.size
    assert answered.all()


# What is refused


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones((2, 3)), r"gives an array of shape \(2, 3\); expected 3 finite numbers"),
        (np.ones(1), r"gives an array of shape \(1,\); expected 3 finite numbers"),
        ([1.0, math.nan, 2.0], r"gives nan at \[1\.0\]; expected 3 finite numbers"),
        (None, "gives None; expected 3 finite numbers, one for each row of points"),
    ],
)
def test_what_simulate_gives_is_refused_by_name(given: Any, words: str) -> None:
    class Wrong(ComputedEnvironment):
        def domain(self) -> Sites:
            return Sites([[0.0], [1.0], [2.0]])

        def simulate(self, points: Points, time: float, resolution: float) -> Any:
            return given

    with pytest.raises(PluginError, match=rf"Wrong\.simulate\(points, 2\.0, 1\.0\) {words}"):
        computed(Wrong()).best(2.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.ones(5), r"gives an array of shape \(5,\); expected numbers of shape \(4,\)"),
        (np.full(4, np.inf), "gives inf, in 4 of 4 numbers; .* needs smaller steps"),
        (None, r"gives None; expected numbers of shape \(4,\)"),
    ],
)
def test_what_advance_gives_is_refused_by_name(given: Any, words: str) -> None:
    class Wrong(EvolvingEnvironment):
        cells: int = 4

        def domain(self) -> Box:
            return Box(0.0, 1.0)

        def advance(self, state: State, grid: CellGrid, begin: float, end: float) -> Any:
            return given

    with pytest.raises(PluginError, match=rf"Wrong\.advance\(state, grid, 0\.0, 1\.0\) {words}"):
        evolving(Wrong()).best(1.0)


def test_an_error_within_a_solver_names_the_call() -> None:
    class Broken(Growth):
        def advance(self, state: State, grid: CellGrid, begin: float, end: float) -> State:
            state += 1.0
            return state

    with pytest.raises(ValueError, match="read-only") as caught:
        evolving(Broken()).best(1.0)
    assert caught.value.__notes__ == [
        "in Broken.advance(state, grid, 0.0, 1.0), a state of shape (2, 4)"
    ]


def test_a_domain_that_is_none_is_refused_by_name() -> None:
    class Placed(Hills):
        domain: ClassVar[Box] = Box(0.0, 1.0)  # type: ignore[assignment]  # the mistake itself

    class Placeless(Hills):
        def domain(self) -> Any:
            return None

    class OnSites(Pond):
        def domain(self) -> Any:
            return Sites([[0.0, 0.0]])

    with pytest.raises(PluginError, match=r"Placed\.domain is Box\(.*expected a method"):
        Placed().start(stream())
    with pytest.raises(PluginError, match=r"Placeless\.domain\(\) gives None; .* Box or Sites"):
        Placeless().start(stream())
    with pytest.raises(PluginError, match=r"OnSites\.domain\(\) gives Sites.*expected a Box"):
        OnSites().check_play(10.0)


def test_a_model_that_draws_nothing_back_is_refused_by_name() -> None:
    class Drawn(Hills):
        def settle(self, rng: Generator) -> Any:
            rng.random()

    with pytest.raises(PluginError, match=r"Drawn\.settle\(rng\) gives None; .*model_copy"):
        Drawn().start(stream())


def test_a_grid_that_nobody_can_fill_is_refused_with_the_base_that_needs_none() -> None:
    class Wide(CountedHills):
        def domain(self) -> Box:
            return Box(np.zeros(6), np.ones(6))

    for refuse in (lambda: Wide().start(stream()), lambda: Wide().check_play(10.0)):
        with pytest.raises(PluginError, match=r"Wide: 33 nodes .* derive from ComputedEnvironment"):
            refuse()


# Elsewhere


def test_a_study_of_it_is_the_same_in_workers(tmp_path: Path) -> None:
    scenario = Scenario(
        environment=Chemostat(nodes=9), optimizers={"uniform": Uniform()}, rounds=4, replications=2
    )
    found = []
    for name, executor in (("here", InProcess()), ("workers", Processes(2))):
        report = Study(scenario, tmp_path / name).run(executor)
        assert (report.done, report.failed_plays) == (2, ())
        found.append(digests(tmp_path / name))
    assert found[0] == found[1]


def test_the_command_line_shows_and_plays_it_by_its_class(tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, "--allow-import"])
        assert result.exit_code == 0, result.output
        return result.output

    name = "tests.chemostat:Chemostat"
    shown = said("show", "environment", name)
    assert "cycle" in shown
    assert "Clock units from one snapshot to the next" in shown
    file = tmp_path / "bioreactor.toml"
    file.write_text(
        f'rounds = 3\nenvironment = {{ kind = "{name}", nodes = 9 }}\noptimizers = ["uniform"]\n'
        'experts.model = { kind = "simulator", resolution = 0.5 }\n'
    )
    out = ["--out", str(tmp_path / "out"), "--executor", "in-process", "--no-report"]
    assert "best fixed point" in said("run", str(file), *out)
