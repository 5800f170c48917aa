from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.random import Generator, Philox
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.interpolate import RegularGridInterpolator
from scipy.linalg import expm

from sparq_environments.transport import Diffusion, Grid, Snapshots, State, Waves, advect
from sparq_sim.messages import Values


def stream(seed: int = 0) -> Generator:
    return Generator(Philox(key=seed))


def column(values: Values) -> State:
    return values[:, None]


def orders(errors: list[float]) -> Values:
    """Give the order between refinements that double the cells."""
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
        grid = Grid((10.0,), cells)
        state = column(grid.bump(0, 3.0, 0.5))
        steps = round(0.4 * cells / travel)
        for _ in range(steps):
            state = advect(state, travel, np.ones((cells - 1, 1)))
        exact = grid.bump(0, 3.0 + steps * travel * 10.0 / cells, 0.5)
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
        grid = Grid((10.0,), cells)
        steps = round(cells * share)  # With 0.1, diffusion step / spacing^2 goes from 1.4 to 5.
        diffusion, begin, end = 0.02, 10.0, 20.0
        links = np.full(cells - 1, diffusion / grid.spacings[0] ** 2)
        diffuse = Diffusion(links, (end - begin) / steps)
        state = grid.bump(0, 5.0, (2 * diffusion * begin) ** 0.5)
        for _ in range(steps):
            state = diffuse(state)
        exact = grid.bump(0, 5.0, (2 * diffusion * end) ** 0.5)
        errors.append(float(abs(state - exact).max()))
    assert (orders(errors) > 1.9).all(), orders(errors)


# Grids


@given(arrays(float, (12, 2), elements=st.floats(0.0, 1.0)), st.integers(0, 9))
def test_between_middles_of_cells_states_are_interpolated_linearly(unit: State, seed: int) -> None:
    grid = Grid((2.0, 3.0), 5)
    state = stream(seed).random((5, 5))
    middles = [np.array([0.2, 0.6, 1.0, 1.4, 1.8]), np.array([0.3, 0.9, 1.5, 2.1, 2.7])]
    points = unit * grid.sides
    within = np.clip(points, [0.2, 0.3], [1.8, 2.7])
    expected = RegularGridInterpolator(middles, state)(within)
    assert_allclose(grid.sample(state, points), expected, atol=1e-12)


def test_a_bump_is_the_average_of_the_normal_density_over_each_cell() -> None:
    grid = Grid((3.0,), 4)

    def density(x: float) -> float:
        return float(np.exp(-((x - 1.0) ** 2) / 0.5) / np.sqrt(0.5 * np.pi))

    expected = [quad(density, 0.75 * i, 0.75 * (i + 1))[0] / 0.75 for i in range(4)]
    assert_allclose(grid.bump(0, 1.0, 0.5), expected, rtol=1e-10)


# Snapshots


class Counting:
    """A march of one number, which counts how often it is made to go."""

    def __init__(self) -> None:
        self.steps = 0

    def __call__(self, state: State, number: int) -> State:
        self.steps += 1
        return (state * 1.7 + number) % 1.0


def march(kept: int = 8) -> tuple[Snapshots, Counting]:
    counting = Counting()
    return Snapshots(np.array([0.5]), counting, kept=kept), counting


@settings(max_examples=50)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=30))
def test_a_snapshot_is_the_same_whatever_was_asked_before(numbers: list[int]) -> None:
    snapshots, counting = march()
    states = [np.array([0.5])]
    for number in range(max(numbers)):
        states.append(counting(states[-1], number))
    for number in numbers:
        assert_array_equal(snapshots[number], states[number])
    assert len(snapshots) <= 16


def test_few_snapshots_are_kept_however_far_the_march_goes() -> None:
    snapshots, _ = march(kept=8)
    for number in (5_000, 3, 12_345, 7):
        snapshots[number]
        assert len(snapshots) <= 16


def test_the_way_forth_makes_each_snapshot_once() -> None:
    snapshots, counting = march()
    for number in range(1_000):
        snapshots[number], snapshots[number + 1]
    assert counting.steps == 1_000


def test_the_way_back_does_not_begin_anew_each_time() -> None:
    snapshots, counting = march(kept=64)
    snapshots[4_000]
    counting.steps = 0
    for number in reversed(range(4_001)):
        snapshots[number]
    assert counting.steps <= 2 * 4_000  # From the beginning each time it would be 8,000,000.


def test_nobody_can_change_a_snapshot() -> None:
    snapshots, _ = march()
    with pytest.raises(ValueError, match="read-only"):
        snapshots[3][0] = 1.0


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
