from __future__ import annotations

from numpy.random import Generator

from sparq_sim.analysis.levels import compute_levels, note_estimates
from sparq_sim.plugin.contract import Landscape
from sparq_sim.simulation.references import References
from sparq_sim.testing import Slope
from tests.study.plays import scenario


class Dear(Slope):
    """A world that says how much it may be asked; *started* times so far."""

    level_evaluations = 1_000

    def start(self, rng: Generator) -> Landscape:
        STARTED.append(self)
        return super().start(rng)


STARTED: list[Dear] = []


def test_reference_levels_keep_to_the_budget_of_the_environment() -> None:
    ((_, level),) = compute_levels(scenario(environment=Dear(), rounds=500))
    assert level.estimated_from == "3 of 500 rounds at 268 points"
    assert note_estimates([level, level]) == [
        "reference levels are estimated from 3 of 500 rounds at 268 points"
    ]
    assert note_estimates([References(0.0, 0.0, 0.0)]) == []


def test_levels_that_are_not_wanted_are_not_computed() -> None:
    STARTED.clear()
    assert compute_levels(scenario(environment=Dear(), levels=False)) == []
    assert not STARTED


def test_levels_that_are_known_are_not_computed_again() -> None:
    STARTED.clear()
    known: dict[str, References] = {}
    first, again = (compute_levels(scenario(environment=Dear()), known=known) for _ in range(2))
    assert first == again
    assert len(STARTED) == 1
