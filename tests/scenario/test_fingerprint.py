"""What fixes a play is written, and known again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sparq_environments.synthetic import Synthetic
from sparq_sim import from_process
from sparq_sim.errors import ScenarioError
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.plugins import ExpertEntry
from tests.scenario.samples import (
    FULL,
    LIBRARIAN,
    SENSOR,
    SMALL,
    Lagged,
    write,
)


def test_a_fingerprint_has_kinds_and_defaults_and_is_json() -> None:
    found: Any = Scenario.load(FULL).fingerprint("sparq")
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["environment"] == {"kind": "synthetic"}
    assert (found["optimizer"]["kind"], found["optimizer"]["steps"]) == ("sparq-gp-ucb", 1000)
    assert found["experts"]["sensor"]["kind"] == "truth"
    assert found["feedback"]["patience"] == "inf"
    assert not found.keys() & {"seed", "replications", "title", "sweep", "optimizers", "record"}


def test_a_fingerprint_makes_the_same_play_again() -> None:
    scenario = Scenario.load(FULL)
    stored = json.loads(json.dumps(scenario.fingerprint("sparq")))
    again = Scenario.from_fingerprint(stored, seed=scenario.seed, name="any")
    assert again.play("any", 1).digest() == scenario.play("sparq", 1).digest()
    assert again.fingerprint("any") == stored


def test_a_class_without_an_entry_point_is_known_by_its_module() -> None:
    scenario = Scenario(
        environment=Synthetic(),
        optimizers={"u": Uniform()},
        experts={"late": ExpertEntry(expert=Lagged(lag=3.0))},
        rounds=1,
    )
    found: Any = scenario.fingerprint("u")
    assert found["experts"]["late"]["kind"] == f"{Lagged.__module__}:Lagged"
    assert found["experts"]["late"]["lag"] == 3.0
    assert "unwritten" not in found


def test_what_cannot_be_written_is_said_so() -> None:
    scenario = Scenario(
        environment=Synthetic(),
        optimizers={"u": Uniform()},
        experts={"odd": ExpertEntry(expert=from_process(print))},  # type: ignore[arg-type]
        rounds=1,
    )
    found = scenario.fingerprint("u")
    assert found["unwritten"] == ["experts.odd.function"]
    with pytest.raises(ScenarioError, match=r"experts\.odd\.function: could not be written"):
        Scenario.from_fingerprint(found, seed=0, name="u")


def test_a_resolved_scenario_is_the_scenario() -> None:
    scenario = Scenario.load(FULL)
    assert Scenario.model_validate(json.loads(json.dumps(scenario.resolve()))) == scenario


def identity(folder: Path, *overrides: str, text: str = SMALL + SENSOR) -> str:
    return Scenario.load(write(folder, text), overrides=overrides).identity()


@pytest.mark.parametrize(
    "override",
    [
        "title='another'",
        "seed=7",
        "replications=3",
        "record='full'",
        "optimizers=['uniform', 'gp-ucb']",
        "optimizers=['gp-ucb']",
    ],
)
def test_the_identity_of_a_scenario_does_not_depend_on(tmp_path: Path, override: str) -> None:
    assert identity(tmp_path, override) == identity(tmp_path)


@pytest.mark.parametrize(
    "override",
    ["rounds=6", "environment.kind='rod'", "feedback.loss=0.1", "experts.sensor.channel.cost=1"],
)
def test_the_identity_of_a_scenario_depends_on(tmp_path: Path, override: str) -> None:
    assert identity(tmp_path, override) != identity(tmp_path)


def test_swept_values_may_come_and_go_and_the_identity_stays(tmp_path: Path) -> None:
    swept = [f"{SMALL}{SENSOR}[sweep]\nfeedback.noise = {values}" for values in ("[1]", "[2, 3]")]
    one, other = (identity(tmp_path, text=text) for text in swept)
    assert one == other != identity(tmp_path)
    assert identity(tmp_path, "rounds=6", text=swept[0]) != one


def test_what_cannot_be_written_is_not_in_the_identity() -> None:
    one, other = (
        Scenario(
            environment=Synthetic(),
            optimizers={"u": Uniform()},
            # Any function will do, as it is never called.
            experts={"odd": ExpertEntry(expert=from_process(function))},  # type: ignore[arg-type]
            rounds=1,
        )
        for function in (print, repr)
    )
    assert one.fingerprint("u") != other.fingerprint("u")
    assert one.identity() == other.identity()


def test_a_play_is_known_by_what_is_in_the_files_of_any_field(tmp_path: Path) -> None:
    book = write(tmp_path, "1.0", "book.txt")
    scenario = Scenario.load(
        write(tmp_path, SMALL + LIBRARIAN), allow_import=True, allow_outside=True
    )
    first: Any = scenario.fingerprint("uniform")
    assert list(first["contents"]) == [str(book)]
    book.write_text("2.00", encoding="utf-8")
    assert scenario.fingerprint("uniform")["contents"] != first["contents"]


def test_a_play_is_known_by_what_is_in_the_files_it_names_not_by_their_names(
    tmp_path: Path,
) -> None:
    table = tmp_path / "table.csv"
    scenario = Scenario.model_validate(
        {
            "rounds": 3,
            "environment": {"kind": "recorded", "files": [str(tmp_path / "*.csv")]},
            "optimizers": {"uniform": {"kind": "uniform"}},
        }
    )
    prints = []
    for value in (1.0, 2.0, 1.0):
        table.write_text(f"date,site,lat,lon,value\n2020-01-01,a,1,1,{value}\n")
        prints.append(scenario.fingerprint("uniform"))
    assert prints[0] == prints[2] != prints[1]
    again = Scenario.from_fingerprint(prints[0], seed=0, name="uniform")
    assert again.environment == scenario.environment
