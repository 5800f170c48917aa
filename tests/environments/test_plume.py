from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose
from pydantic import ValidationError

from sparq_environments._plume_solver import PlumeSolver
from sparq_environments._transport import average_normal
from sparq_environments.plume import (
    Circle,
    Cycle,
    Fixed,
    Gusts,
    Plume,
    Source,
    Spells,
    Steady,
    Wall,
)
from sparq_sim.arrays import Values
from sparq_sim.landscapes.snapshots import CellGrid, InterpolatedLandscape, State

SILENT = (Source(path=Fixed(place=(2.0, 7.0)), rate=0.0),)
SMALL = Plume(cells=16, spin_up=5.0, step=0.5)
WALLED = Plume(
    cells=16,
    spin_up=5.0,
    sources=(Source(path=Fixed(place=(2.0, 7.0))),),
    walls=(Wall(lower=(4.0, 0.0), upper=(5.5, 6.0)), Wall(lower=(8.0, 3.0), upper=(8.0, 9.0))),
)


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(model: Plume, seed: int = 0) -> InterpolatedLandscape:
    landscape = model.start(stream(seed))
    assert isinstance(landscape, InterpolatedLandscape)
    return landscape


def solver(model: Plume, seed: int = 0) -> PlumeSolver:
    rng = stream(seed)
    flows = tuple(wind.draw(rng) for wind in model.wind)
    sources = tuple(
        (source, source.path.draw(rng), source.schedule.draw(rng)) for source in model.sources
    )
    return PlumeSolver(model, flows, sources, CellGrid(model.domain(), model.cells))


def orders(errors: list[float]) -> Values:
    falls: Values = -np.diff(np.log2(errors))
    return falls


# The equation


def puff(cells: int, *, wind: tuple[float, float], step: float) -> float:
    """Return the mean error of a Gaussian puff, carried and spread for 10 clock units."""
    model = Plume(
        cells=cells,
        diffusion=0.01,
        decay=0.05,
        wind=(Steady(velocity=wind),),
        sources=SILENT,
        step=step,
        snapshot=10.0,
    )
    run = solver(model)

    def exact(time: float) -> State:
        width = math.sqrt(2 * 0.01 * (10.0 + time))
        along = average_normal(run.grid, 0, 4.0 + wind[0] * time, width)
        across = average_normal(run.grid, 1, 4.5 + wind[1] * time, width)
        return math.exp(-0.05 * time) * np.outer(along, across)

    return float(abs(run.advance(exact(0.0), 0.0) - exact(10.0)).mean())


def test_a_spreading_puff_converges_at_second_order() -> None:
    errors = [puff(cells, wind=(0.0, 0.0), step=10.0 / cells) for cells in (32, 64, 128)]
    assert (orders(errors) > 1.9).all(), orders(errors)


def test_a_puff_in_the_wind_converges_at_second_order_in_the_mean() -> None:
    errors = [puff(cells, wind=(0.23, 0.11), step=10.0 / cells) for cells in (32, 64, 128)]
    assert (orders(errors) > 1.75).all(), orders(errors)


@pytest.mark.parametrize("walls", [(), WALLED.walls], ids=["open", "walled"])
def test_without_sources_and_decay_mass_is_conserved(walls: tuple[Wall, ...]) -> None:
    run = solver(Plume(cells=24, decay=0.0, sources=SILENT, walls=walls))
    # A state to begin with, which is nowhere within a wall.
    state = solver(Plume(cells=24, walls=walls, sources=WALLED.sources)).advance(
        np.zeros((24, 24)), 0.0
    )
    mass = state.sum()
    for number in range(300):
        state = run.advance(state, float(number))
    assert mass > 0.0
    assert abs(state.sum() / mass - 1.0) < 1e-10


@settings(max_examples=25)
@given(
    st.floats(1e-6, 100.0),
    st.tuples(st.floats(-7.0, 7.0), st.floats(-7.0, 7.0)),
    st.floats(0.0, 1.0),
    st.floats(0.0, 5.0),
    st.booleans(),
)
def test_concentrations_are_never_negative(
    diffusion: float, velocity: tuple[float, float], gusts: float, decay: float, walled: bool
) -> None:
    model = Plume(
        cells=12,
        diffusion=diffusion,
        decay=decay,
        wind=(Steady(velocity=velocity), Gusts(std=gusts)),
        sources=WALLED.sources,
        walls=WALLED.walls if walled else (),
        snapshot=10.0,
    )
    state = solver(model).advance(np.zeros((12, 12)), 0.0)
    assert np.isfinite(state).all()
    assert state.min() >= 0.0


def test_a_moving_source_converges_at_second_order_in_time() -> None:
    source = Source(path=Circle(cycle=20.0, phase=0.0), schedule=Cycle(on=8.0, off=2.0, phase=0.0))
    ends = []
    for step in (1.0, 0.5, 0.25, 0.0625):
        model = Plume(
            cells=16, diffusion=0.2, decay=0.3, wind=(), sources=(source,), step=step, snapshot=10.0
        )
        ends.append(solver(model).advance(np.zeros((16, 16)), 0.0))
    errors = [float(abs(end - ends[-1]).mean()) for end in ends[:-1]]
    assert (orders(errors) > 1.8).all(), orders(errors)


def test_in_the_end_mass_is_rate_over_decay() -> None:
    model = Plume(cells=24, decay=0.2, sources=(Source(rate=3.0),), snapshot=100.0)
    state = solver(model).advance(np.zeros((24, 24)), 0.0)
    assert state.sum() * (10.0 / 24) ** 2 == pytest.approx(15.0, rel=1e-3)


def test_a_closed_room_keeps_what_is_in_it() -> None:
    corners = {
        "below": ((2.0, 3.0), (7.0, 3.0)),
        "above": ((2.0, 6.0), (7.0, 6.0)),
        "left": ((2.0, 3.0), (2.0, 6.0)),
        "right": ((7.0, 3.0), (7.0, 6.0)),
    }
    model = Plume(
        cells=30,
        walls=tuple(Wall(lower=lower, upper=upper) for lower, upper in corners.values()),
        sources=(Source(path=Fixed(place=(4.5, 4.5)), width=0.15),),
    )
    landscape = started(model)
    x, y = landscape.domain.sample(stream(1), 500).T
    # Further than a cell from the fence, between whose sides values are interpolated.
    inside = (abs(x - 4.5) < 2.1) & (abs(y - 4.5) < 1.1)
    outside = (abs(x - 4.5) > 2.9) | (abs(y - 4.5) > 1.9)
    rewards = landscape.rewards(np.column_stack([x, y]), 50.0)
    assert rewards[inside].min() > 1e-5
    assert rewards[outside].max() < 1e-15


def test_the_wind_heaps_pollutant_up_before_a_wall_and_leaves_none_in_it() -> None:
    wall = Wall(lower=(6.0, 0.0), upper=(7.0, 10.0))
    model = Plume(
        cells=40,
        wind=(Steady(velocity=(0.3, 0.0)),),
        walls=(wall,),
        sources=(Source(path=Fixed(place=(3.0, 5.0))),),
    )
    point, _ = started(model).best(50.0)
    assert 5.5 < point[0] < 6.0
    assert started(model).rewards(np.array([[6.5, 5.0], [8.0, 5.0]]), 50.0).max() == 0.0


# The landscape


def test_between_snapshots_rewards_are_interpolated_linearly_in_time() -> None:
    landscape = started(SMALL)
    points = landscape.domain.sample(stream(1), 20)
    before, after = (landscape.rewards(points, time) for time in (4.0, 5.0))
    assert_allclose(landscape.rewards(points, 4.25), 0.75 * before + 0.25 * after, rtol=1e-12)


# The same world, more cheaply


def test_the_error_of_the_coarse_world_falls_at_second_order() -> None:
    landscape = started(Plume(cells=128, spin_up=20.0))
    points = landscape.domain.sample(stream(1), 400)
    exact = landscape.rewards(points, 10.0)
    errors = [
        float(abs(landscape.coarse(share).rewards(points, 10.0) - exact).mean())
        for share in (0.125, 0.25, 0.5)
    ]
    # The finest is itself in error by a quarter of the last error: it flatters, within bounds.
    assert (orders(errors) > 1.5).all(), orders(errors)
    assert errors[0] > 0.01 * exact.mean()


def test_the_coarse_world_says_how_many_cells_it_computes() -> None:
    landscape = started(SMALL)
    assert landscape.cell_count == 256
    assert landscape.coarse(0.5).cell_count == 64
    assert landscape.coarse(0.01).cell_count == 16
    assert landscape.coarse(0.5) is landscape.coarse(0.5)
    assert landscape.coarse(1.0) is landscape


@pytest.mark.parametrize("resolution", [0.0, -0.5, 1.5, math.nan])
def test_a_resolution_that_is_no_share_is_refused(resolution: float) -> None:
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        started(SMALL).coarse(resolution)


# Schedules


def test_gaps_in_the_schedule_let_the_field_decay() -> None:
    source = Source(schedule=Cycle(on=5.0, off=15.0, phase=0.0))
    run = solver(Plume(cells=12, decay=0.2, sources=(source,), wind=(), snapshot=0.25))
    state = np.zeros((12, 12))
    masses = []
    for number in range(60):
        state = run.advance(state, 0.25 * number)
        masses.append(state.sum())
    assert np.argmax(masses) == 19
    assert masses[59] / masses[19] == pytest.approx(math.exp(-0.2 * 10.0), rel=1e-9)


# Bad input


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"diffusion": -0.1}, "diffusion -0.1 must lie above 0: a negative one is unstable"),
        ({"diffusion": 0.0}, "diffusion 0.0 must lie above 0"),
        ({"decay": -1.0}, "decay -1.0 would grow for ever; take 0 or more"),
        ({"step": 0.3}, r"snapshot 1.0 must be a whole number of times step 0.3; take step = 0.25"),
        ({"step": 4.0}, "take step = 1.0"),
        (
            {"wind": (Steady(velocity=(20.0, 0.0)),), "step": 1.0},
            "cross the rectangle at once; take a step of at most 0.5",
        ),
        ({"sources": ()}, "at least 1"),
        ({"sources": (Source(path=Circle(radius=6.0)),)}, r"sources.0 comes to .* move its path"),
        (
            {"walls": (Wall(lower=(2.0, 6.0), upper=(4.0, 8.0)),)},
            r"sources.0 comes to .*within a wall",
        ),
        ({"walls": (Wall(lower=(12.0, 6.0), upper=(14.0, 8.0)),)}, "outside the rectangle"),
        ({"cells": 2}, "greater than or equal to 8"),
    ],
)
def test_a_plume_that_cannot_be_is_refused_with_the_remedy(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        Plume(**fields)


def test_a_wall_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(ValidationError, match="swap them"):
        Wall(lower=(3.0, 1.0), upper=(2.0, 4.0))


def test_a_plume_is_read_from_tables() -> None:
    table = {
        "wind": [{"kind": "steady", "velocity": [0.1, 0.0]}, {"kind": "gusts", "std": 0.05}],
        "sources": [{"path": {"kind": "circle", "radius": 2.0}, "schedule": {"kind": "spells"}}],
        "walls": [{"lower": [1.0, 1.0], "upper": [2.0, 1.5]}],
    }
    model = Plume.model_validate(table)
    assert model.wind == (Steady(velocity=(0.1, 0.0)), Gusts(std=0.05))
    assert model.sources == (Source(path=Circle(radius=2.0), schedule=Spells()),)


def test_the_models_are_loaded_without_scipy() -> None:
    listing = (
        "import sys, sparq_environments.plume, sparq_environments.rod\n"
        "sparq_environments.plume.Plume(), sparq_environments.rod.Rod()\n"
        "assert 'scipy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", listing], check=True)
