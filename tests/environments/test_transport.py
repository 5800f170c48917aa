from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.linalg import expm

from sparq_environments._transport import Diffusion, Waves, advect, average_normal
from sparq_sim.arrays import Values
from sparq_sim.domain import Box
from sparq_sim.landscapes.snapshots import CellGrid, State


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def column(values: Values) -> State:
    return values[:, None]


def orders(errors: list[float]) -> Values:
    """Return the order between refinements that double the cells."""
    falls: Values = -np.diff(np.log2(errors))
    return falls


fields = arrays(float, (9, 3), elements=st.floats(0.0, 1e6))
walls = arrays(float, (8, 3), elements=st.sampled_from([0.0, 1.0]))
travels = st.floats(-30.0, 30.0)


# Advection


@given(fields, walls, travels)
def test_advection_conserves_each_line_and_is_never_negative(
    state: State, links: State, travel: float
) -> None:
    after = advect(state, travel, links)
    assert after.min() >= 0.0
    assert_allclose(after.sum(axis=0), state.sum(axis=0), rtol=1e-12, atol=1e-300)


@given(fields, st.integers(-8, 8))
def test_a_travel_of_whole_cells_shifts_and_heaps_up_at_the_end(state: State, cells: int) -> None:
    expected = np.zeros_like(state)
    for cell, row in enumerate(state):
        expected[np.clip(cell + cells, 0, 8)] += row
    assert_allclose(advect(state, float(cells), np.ones((8, 3))), expected, rtol=1e-12, atol=1e-9)


def test_what_is_carried_against_a_wall_stays_before_it() -> None:
    state = column(np.array([0.0, 2.0, 0.0, 0.0, 0.0, 4.0]))
    links = column(np.array([1.0, 1.0, 0.0, 1.0, 1.0]))
    forth, back = advect(state, 3.7, links), advect(state, -3.7, links)
    assert_array_equal(forth[:, 0], [0.0, 0.0, 2.0, 0.0, 0.0, 4.0])
    assert_array_equal(back[:, 0], [2.0, 0.0, 0.0, 4.0, 0.0, 0.0])


@given(fields, walls, travels)
def test_advection_back_is_advection_forth_in_a_mirror(
    state: State, links: State, travel: float
) -> None:
    mirrored = advect(state[::-1], -travel, links[::-1])[::-1]
    assert_array_equal(advect(state, travel, links), mirrored)


@given(fields, walls, travels)
def test_a_line_is_carried_alike_alone_and_among_others(
    state: State, links: State, travel: float
) -> None:
    alone = [advect(state[:, [line]], travel, links[:, [line]]) for line in range(3)]
    assert_array_equal(advect(state, travel, links), np.hstack(alone))


@pytest.mark.parametrize("travel", [0.37, 2.37])
def test_advection_is_second_order_in_the_mean(travel: float) -> None:
    errors = []
    for cells in (64, 128, 256, 512):
        grid = CellGrid(Box(0.0, 10.0), cells)
        state = column(average_normal(grid, 0, 3.0, 0.5))
        steps = round(0.4 * cells / travel)
        for _ in range(steps):
            state = advect(state, travel, np.ones((cells - 1, 1)))
        exact = average_normal(grid, 0, 3.0 + steps * travel * 10.0 / cells, 0.5)
        errors.append(float(abs(state[:, 0] - exact).mean()))
    assert (orders(errors) > 1.8).all(), orders(errors)


# Diffusion


@given(
    arrays(float, 9, elements=st.floats(0.0, 1e6)),
    arrays(float, 8, elements=st.floats(0.0, 1e3)),
    st.floats(1e-3, 1e3),
)
def test_diffusion_conserves_and_is_never_negative(
    state: Values, links: Values, step: float
) -> None:
    after = Diffusion(links, step)(state)
    assert after.min() >= 0.0
    assert_allclose(after.sum(), state.sum(), rtol=1e-10, atol=1e-300)


@given(
    arrays(float, 9, elements=st.floats(0.0, 1e6)),
    arrays(float, 9, elements=st.floats(0.0, 1e3)),
    st.floats(1e-3, 1e3),
)
def test_diffusion_with_leaks_only_loses_and_is_never_negative(
    state: Values, leaks: Values, step: float
) -> None:
    after = Diffusion(np.full(8, 2.0), step, leaks=leaks)(state)
    assert after.min() >= 0.0
    assert after.sum() <= state.sum() * (1 + 1e-12)


@pytest.mark.parametrize("link", [5.0, 10.0])
@pytest.mark.parametrize("leak", [0.0, 3.0])
def test_a_spike_that_the_linear_scheme_would_make_negative_is_not(
    link: float, leak: float
) -> None:
    links, leaks = np.full(8, link), np.zeros(9)
    leaks[4] = leak
    matrix = np.diag(links, 1) + np.diag(links, -1)
    matrix -= np.diag(matrix.sum(axis=1) + leaks)
    gamma = 1 - np.sqrt(0.5)
    inverse = np.linalg.inv(np.eye(9) - gamma * matrix)
    spike = np.eye(9)[4]
    linear = (np.eye(9) + (1 - 2 * gamma) * matrix) @ inverse @ inverse @ spike
    after = Diffusion(links, 1.0, leaks=leaks)(spike)
    assert linear.min() < -1e-3
    assert after.min() >= 0.0
    if leak == 0.0:
        assert after.sum() == pytest.approx(1.0, abs=1e-14)


def test_small_steps_of_diffusion_are_the_matrix_exponential() -> None:
    links, leaks = np.array([1.0, 0.0, 2.0, 3.0]), np.array([0.5, 0.0, 0.0, 0.0, 1.0])
    matrix = np.diag(links, 1) + np.diag(links, -1)
    matrix -= np.diag(matrix.sum(axis=1) + leaks)
    state = np.arange(1.0, 6.0)
    diffuse = Diffusion(links, 1e-3, leaks=leaks)
    after = state
    for _ in range(700):
        after = diffuse(after)
    assert_allclose(after, expm(0.7 * matrix) @ state, rtol=1e-6)


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_diffusion_is_second_order_in_space_and_time_against_the_puff(share: float) -> None:
    errors = []
    for cells in (64, 128, 256):
        grid = CellGrid(Box(0.0, 10.0), cells)
        steps = round(cells * share)  # With 0.1, diffusion step / spacing^2 goes from 1.4 to 5.
        diffusion, begin, end = 0.02, 10.0, 20.0
        links = np.full(cells - 1, diffusion / grid.spacings[0] ** 2)
        diffuse = Diffusion(links, (end - begin) / steps)
        state = average_normal(grid, 0, 5.0, (2 * diffusion * begin) ** 0.5)
        for _ in range(steps):
            state = diffuse(state)
        exact = average_normal(grid, 0, 5.0, (2 * diffusion * end) ** 0.5)
        errors.append(float(abs(state - exact).max()))
    assert (orders(errors) > 1.9).all(), orders(errors)


# Bumps


def test_a_bump_is_the_average_of_the_normal_density_over_each_cell() -> None:
    grid = CellGrid(Box(0.0, 3.0), 4)

    def density(x: float) -> float:
        return float(np.exp(-((x - 1.0) ** 2) / 0.5) / np.sqrt(0.5 * np.pi))

    expected = [quad(density, 0.75 * i, 0.75 * (i + 1))[0] / 0.75 for i in range(4)]
    assert_allclose(average_normal(grid, 0, 1.0, 0.5), expected, rtol=1e-10)


# Waves


def test_waves_have_mean_zero_and_variance_one_over_chance() -> None:
    values = np.array([Waves(10.0, stream(seed)).at(3.0) for seed in range(2_000)])
    assert abs(values.mean()) < 4 / np.sqrt(2_000)
    assert abs((values**2).mean() - 1) < 4 * (values**2).std() / np.sqrt(2_000)


@given(st.integers(0, 99), st.floats(-50.0, 50.0), st.floats(0.0, 9.0))
def test_the_integral_of_waves_is_their_integral(seed: int, begin: float, length: float) -> None:
    waves = Waves(7.0, stream(seed))
    expected = quad(waves.at, begin, begin + length)[0]
    assert waves.integral(begin, begin + length) == pytest.approx(expected, abs=1e-8)
    assert abs(waves.at(begin)) <= Waves.BOUND
