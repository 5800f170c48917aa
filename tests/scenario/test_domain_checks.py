from __future__ import annotations

import warnings

import pytest

from sparq_sim import Estimate, Expert, Query, World
from sparq_sim.domain import Box, Domain
from sparq_sim.errors import PluginError, ScenarioError
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from sparq_sim.testing import Slope


class Placed(Expert):
    """Answers from places that must lie within the field."""

    at: float = 0.5

    def check_domain(self, domain: Domain) -> None:
        warnings.warn("told in the play", stacklevel=1)
        assert isinstance(domain, Box)
        if self.at > domain.upper[0]:
            raise PluginError(f"at: {self.at} lies outside; move it")

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(world.rewards(query.points, world.clock.now))


def make_scenario(at: float, **fields: object) -> Scenario:
    return Scenario.model_validate(
        {
            "rounds": 2,
            "environment": Slope(),
            "experts": {"placed": Placed(at=at)},
            "optimizers": {"uniform": Uniform()},
            **fields,
        },
        context={"played": True},
    )


def test_an_expert_that_does_not_fit_the_domain_is_refused_before_the_play() -> None:
    with pytest.raises(ScenarioError, match=r"experts\.placed: at: 50.0 lies outside; move it"):
        make_scenario(50.0).check_data()


def test_an_expert_that_fits_is_not_refused_and_warns_in_the_play_only() -> None:
    make_scenario(0.5).check_data()


def test_each_setting_is_checked() -> None:
    scenario = make_scenario(0.5, sweep={"experts.placed.at": [0.5, 50.0]})
    with pytest.raises(ScenarioError, match=r"lies outside; move it \(where .*at = 50.0"):
        scenario.check_data()
