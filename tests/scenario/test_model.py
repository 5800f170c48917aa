"""A scenario in a file and in Python is one and the same."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Channel, Rules, play
from sparq_sim.errors import ScenarioError, SparqError
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.plugins import ExpertEntry
from tests.scenario.samples import (
    FULL,
    SENSOR,
    SMALL,
    write,
)


def test_a_file_and_python_make_the_same_scenario(tmp_path: Path) -> None:
    written = Scenario.load(write(tmp_path, SMALL + SENSOR))
    made = Scenario(
        environment=Synthetic(),
        optimizers={"uniform": Uniform()},
        experts={"sensor": ExpertEntry(expert=Truth(), channel=Channel(noise=0.1))},
        rounds=5,
    )
    assert written == made
    assert written.fingerprint("uniform") == made.fingerprint("uniform")
    assert written.play("uniform").digest() == made.play("uniform").digest()


def test_a_scenario_plays_as_the_loop_does() -> None:
    road = Channel(noise=0.1, transit=1.0)
    scenario = Scenario(
        environment=Synthetic(),
        optimizers={"sparq": SparQGPUCB()},
        experts={"sensor": ExpertEntry(expert=Truth(), channel=road)},
        feedback=Channel(noise=0.1),
        rounds=15,
        seed=3,
    )
    trace = play(
        SparQGPUCB(),
        Synthetic(),
        Rules(rounds=15),
        experts={"sensor": (Truth(), road)},
        feedback=Channel(noise=0.1),
        seed=3,
        replication=2,
    )
    assert scenario.play("sparq", 2).digest() == trace.digest()
    assert scenario.play(SparQGPUCB(), 2).digest() == trace.digest()
    assert scenario.play("sparq", 1).digest() != trace.digest()


def test_an_expert_is_given_alone_with_its_channel_or_as_a_table() -> None:
    made: list[Any] = [
        Truth(),
        (Truth(), Channel()),
        {"kind": "truth"},
        {"expert": Truth()},
        {"kind": "truth", "channel": {}},
    ]
    for expert in made:
        scenario = Scenario.model_validate(
            {
                "environment": Synthetic(),
                "optimizers": ["uniform"],
                "rounds": 1,
                "experts": {"sensor": expert},
            }
        )
        assert scenario.experts == {"sensor": ExpertEntry(expert=Truth())}


def test_rules_stand_at_the_top_level() -> None:
    scenario = Scenario.load(FULL)
    assert scenario.rules == Rules(
        rounds=12,
        period=0.5,
        horizon=100.0,
        budget=50.0,
        budget_per_round=5.0,
        ends_when_spent=True,
        design=2,
        thinking={"kind": "uniform", "high": 0.1},
    )
    assert set(Rules.model_fields) <= set(Scenario.model_fields)


def test_an_unknown_optimizer_is_answered_with_the_one_that_was_meant() -> None:
    scenario = Scenario(environment=Synthetic(), optimizers={"sparq": Uniform()}, rounds=1)
    with pytest.raises(ScenarioError, match="did you mean 'sparq'"):
        scenario.play("sprq")
    with pytest.raises(ScenarioError, match="did you mean 'sparq'"):
        scenario.fingerprint("sprq")


def test_bad_fields_in_python_are_validation_errors() -> None:
    with pytest.raises(ValidationError, match="needs rounds or a horizon"):
        Scenario(environment=Synthetic(), optimizers={"u": Uniform()})
    with pytest.raises(ValidationError, match="no such field; did you mean 'rounds'"):
        Scenario.model_validate(
            {
                "environment": Synthetic(),
                "optimizers": {"u": Uniform()},
                "rounds": 1,
                "sweep": {"round": [1]},
            }
        )


def test_a_scenario_can_be_pickled() -> None:
    scenario = Scenario.load(FULL)
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_a_scenario_error_can_be_pickled_and_mended() -> None:
    error = ScenarioError("one", "two")
    again = pickle.loads(pickle.dumps(error))
    assert (again.problems, str(again)) == (("one", "two"), "one\ntwo")
    assert isinstance(error, SparqError)


def test_importing_scenarios_loads_no_scipy() -> None:
    code = "import sys, sparq_sim.scenario; assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
