from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose
from pydantic import ValidationError
from scipy.integrate import quad

from sparq_environments._transport import Waves
from sparq_environments.rod import Rod, _Heater, _RodSolver
from sparq_sim.arrays import Values
from sparq_sim.landscapes.snapshots import CellGrid, InterpolatedLandscape, State


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def started(model: Rod, seed: int = 0) -> InterpolatedLandscape:
    landscape = model.start(stream(seed))
    assert isinstance(landscape, InterpolatedLandscape)
    return landscape


def solver(model: Rod) -> _RodSolver:
    return _RodSolver(
        model, _Heater(model, Waves(model.cycle, stream())), CellGrid(model.domain(), model.cells)
    )


def orders(errors: list[float]) -> Values:
    falls: Values = -np.diff(np.log2(errors))
    return falls


# The equation


@pytest.mark.parametrize("ends", ["insulated", "cooled"])
def test_a_heater_at_rest_gives_the_closed_form(ends: Any) -> None:
    model = Rod(ends=ends, reach=0.0, length=6.0, cells=300, width=0.3, spin_up=200.0)
    points = np.linspace(0.3, 5.7, 19)[:, None]
    decay = math.sqrt(model.cooling / model.diffusion)
    sign = 1.0 if ends == "insulated" else -1.0

    def response(x: float, heater: float) -> float:
        """Green's function of the steady state, by images of the heater in both ends."""
        total = 0.0
        for turn in range(-4, 5):
            total += math.exp(-decay * abs(x - heater - 12.0 * turn))
            total += sign * math.exp(-decay * abs(x + heater - 12.0 * turn))
        return total / (2.0 * math.sqrt(model.cooling * model.diffusion))

    def temperature(x: float) -> float:
        def heated(heater: float) -> float:
            spread = math.exp(-0.5 * ((heater - 3.0) / 0.3) ** 2) / (0.3 * math.sqrt(2 * math.pi))
            return model.power * spread * response(x, heater)

        return float(quad(heated, 0.0, 6.0, points=[3.0, x])[0])

    expected = [temperature(x) for x in points[:, 0]]
    assert_allclose(started(model).rewards(points, 0.0), expected, rtol=2e-3)


def test_a_decaying_wave_converges_at_second_order() -> None:
    # Insulated ends: cos(k x) with k = 2 pi / length decays at the rate diffusion k^2 + cooling.
    errors = []
    for cells in (32, 64, 128):
        model = Rod(cells=cells, power=0.0, diffusion=0.02, step=10.0 / cells, snapshot=10.0)
        wave = 2.0 * math.pi / 10.0
        faces = np.linspace(0.0, 10.0, cells + 1)
        shape: State = 1.0 + np.diff(np.sin(wave * faces)) / (wave * 10.0 / cells)
        after = solver(model).advance(shape, 0.0)
        exact = (1.0 + (shape - 1.0) * math.exp(-0.02 * wave**2 * 10.0)) * math.exp(-1.0)
        errors.append(float(abs(after - exact).max()))
    assert (orders(errors) > 1.9).all(), orders(errors)


def test_without_heat_and_cooling_what_is_in_an_insulated_rod_stays() -> None:
    run = solver(Rod(power=0.0, cooling=0.0, snapshot=250.0))
    state = stream(1).random(200)
    assert abs(run.advance(state, 0.0).sum() / state.sum() - 1.0) < 1e-10


@settings(max_examples=30)
@given(
    st.floats(1e-6, 100.0),
    st.floats(0.0, 5.0),
    st.sampled_from(["insulated", "cooled"]),
    st.floats(0.0, 5.0),
)
def test_the_rod_is_never_colder_than_its_surroundings(
    diffusion: float, cooling: float, ends: Any, reach: float
) -> None:
    model = Rod(
        cells=40, diffusion=diffusion, cooling=cooling, ends=ends, reach=reach, snapshot=20.0
    )
    state = solver(model).advance(np.zeros(40), 0.0)
    assert np.isfinite(state).all()
    assert state.min() >= 0.0


def test_a_regular_heater_goes_to_and_fro_as_written() -> None:
    model = Rod(wander=0.0, phase=0.25, reach=3.0, cycle=40.0)
    heater = _Heater(model, Waves(40.0, stream()))
    assert_allclose([heater.at(time) for time in (0.0, 10.0, 20.0)], [8.0, 5.0, 2.0])


# The landscape


def test_the_warmest_place_follows_the_heater() -> None:
    model = Rod(wander=0.0, phase=0.0, cooling=0.5, cycle=80.0)
    landscape = started(model)
    heater = _Heater(model, Waves(80.0, stream()))
    for time in np.arange(0.0, 80.0, 5.0):
        assert abs(landscape.best(time)[0][0] - heater.at(time)) < 1.0


def test_rewards_are_finite_after_twenty_thousand_rounds() -> None:
    landscape = started(Rod(cells=8, step=1.0))
    assert 0.0 < landscape.best(20_000.0)[1] < 100.0


def test_the_error_of_the_coarse_rod_falls_at_second_order() -> None:
    landscape = started(Rod(cells=512))
    points = landscape.domain.sample(stream(1), 400)
    exact = landscape.rewards(points, 10.0)
    errors = [
        float(abs(landscape.coarse(share).rewards(points, 10.0) - exact).mean())
        for share in (1 / 16, 1 / 8, 1 / 4)
    ]
    assert (orders(errors) > 1.8).all(), orders(errors)
    assert landscape.coarse(1 / 16).cell_count == 32


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"diffusion": -0.1}, "diffusion -0.1 must lie above 0: a negative one is unstable"),
        ({"cooling": -1.0}, "cooling -1.0 would heat for ever; take 0 or more"),
        ({"reach": 6.0}, "take at most half its length, 5.0"),
        ({"step": 0.3}, "take step = 0.25"),
        ({"ends": "open"}, "insulated"),
    ],
)
def test_a_rod_that_cannot_be_is_refused_with_the_remedy(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        Rod(**fields)
