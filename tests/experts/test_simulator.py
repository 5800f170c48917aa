from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from pydantic import ValidationError

from sparq_environments.plume import Plume
from sparq_environments.rod import Rod
from sparq_experts.simulator import Simulator
from sparq_sim import PluginError, Rules, play
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Environment, Landscape
from sparq_sim.testing import Slope, check_expert
from tests.conftest import Run
from tests.experts import Heard, consult

ROD = Rod(cells=1024, phase=0.1, wander=0.0, spin_up=10.0)
SMALL = Rod(cells=64, spin_up=4.0)
PLACES = np.random.default_rng(2).uniform(0, 10, 300)


class Countless(Environment):
    """The slope, which is its own coarse version, of nobody knows how many cells."""

    def start(self, rng: Generator) -> Landscape:
        landscape = Slope().start(rng)
        landscape.coarse = lambda resolution: landscape  # type: ignore[attr-defined]
        return landscape


def run_at(resolution: float) -> Heard:
    return consult(Simulator(resolution=resolution), [3.0], PLACES.tolist(), environment=ROD)


@pytest.mark.parametrize("world", [SMALL, Plume(cells=16, spin_up=4.0)], ids=["rod", "plume"])
def test_it_obeys_the_laws(world: Environment) -> None:
    check_expert(Simulator(), world)


def test_its_error_falls_with_the_square_of_resolution_as_the_rod_says() -> None:
    # From 128 cells on, when the heater is four cells wide.
    resolutions = np.array([1 / 8, 1 / 4, 1 / 2])
    errors = [np.sqrt(np.mean(np.square(run_at(share).errors))) for share in resolutions]
    # Against the rod itself, whose own error is of the same order: e(r) ~ r^-2 - 1.
    slopes = np.diff(np.log(errors)) / np.diff(np.log(resolutions**-2 - 1))
    assert slopes == pytest.approx([1.0, 1.0], abs=0.1)


def test_at_full_resolution_it_knows_the_world() -> None:
    assert run_at(1.0).errors == [0.0] * 300


@pytest.mark.parametrize(("resolution", "cells"), [(1.0, 64), (0.5, 32), (0.25, 16)])
def test_a_run_lasts_as_long_as_its_cells_take(resolution: float, cells: int) -> None:
    expert = Simulator(resolution=resolution, service_per_cell=0.125)
    (answer,) = consult(expert, [1.0], environment=SMALL).answers
    assert answer.arrived_at == 1.0 + 0.125 * cells


def test_in_two_dimensions_all_cells_count() -> None:
    expert = Simulator(resolution=0.5, service_per_cell=0.125)
    world = Plume(cells=32, spin_up=2.0)
    (answer,) = consult(expert, [1.0], np.array([[5.0, 5.0]]), environment=world).answers
    assert answer.arrived_at == 1.0 + 0.125 * 16 * 16


def test_what_comes_out_is_as_old_as_the_run_was_long() -> None:
    heard = consult(Simulator(resolution=1.0, service_per_cell=0.125), [2.0], environment=SMALL)
    assert (heard.answers[0].measured_at, heard.answers[0].arrived_at) == (2.0, 10.0)
    assert heard.errors == [0.0]


@pytest.mark.parametrize(("processors", "arrivals"), [(1, [9, 17, 25]), (2, [9, 9, 17])])
def test_runs_queue_for_processors(run: Run, processors: int, arrivals: list[float]) -> None:
    expert = Simulator(resolution=1.0, service_per_cell=0.125, processors=processors)
    heard = consult(expert, [1.0, 1.0, 1.0], environment=SMALL, run=run)
    assert [answer.arrived_at for answer in heard.answers] == arrivals
    assert [answer.measured_at for answer in heard.answers] == [a - 8 for a in arrivals]


def test_it_claims_what_it_is_told_to_claim() -> None:
    (answer,) = consult(Simulator(std=0.02), [1.0], environment=SMALL).answers
    assert answer.stds.tolist() == [0.02]


def test_an_environment_that_cannot_be_computed_coarsely_is_refused_at_once() -> None:
    with pytest.raises(PluginError, match="simulator: this environment has no coarser version"):
        play(Uniform(), Slope(), Rules(rounds=3), experts={"expert": Simulator()})


def test_a_coarse_model_that_does_not_count_its_cells_is_refused() -> None:
    with pytest.raises(PluginError, match="has no `cell_count`"):
        play(Uniform(), Countless(), Rules(rounds=3), experts={"expert": Simulator()})


@pytest.mark.parametrize("resolution", [0.0, 1.5])
def test_a_resolution_that_is_no_share_is_refused(resolution: float) -> None:
    with pytest.raises(ValidationError, match="resolution"):
        Simulator(resolution=resolution)
