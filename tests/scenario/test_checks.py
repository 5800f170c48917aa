"""What a scenario cannot mean is refused before it is played."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from sparq_sim import Scenario
from sparq_sim.errors import ScenarioError
from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker
from tests.scenario.samples import SENSOR, SMALL, problem, problems, write

BASE = """rounds = 20
[environment]
kind = "synthetic"
[experts.sensor]
kind = "truth"
channel = { transit = 1.0 }
[optimizers]
sparq-gp-ucb.kind = "sparq-gp-ucb"
"""


def refusals(folder: Path, old: str, new: str, text: str = BASE) -> str:
    file = folder / "scenario.toml"
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ScenarioError) as refused:
        Scenario.load(file)
    return str(refused.value).replace(f"{file}", "FILE")


@pytest.mark.parametrize(
    ("channel", "told"),
    [
        (
            "{ transit = 3.0, patience = 2.0 }",
            "FILE:6: experts.sensor.channel.patience: 2.0: ends before any answer can come: "
            "service and transit take at least 3; give more patience, or shorten them",
        ),
        (
            '{ service = { kind = "uniform", low = 2, high = 9 }, transit = 1, patience = 2 }',
            "FILE:6: experts.sensor.channel.patience: 2: ends before any answer can come: "
            "service and transit take at least 3; give more patience, or shorten them",
        ),
        (
            "{ transit = 3.0, policy = { timeout = 2.5 } }",
            "FILE:6: experts.sensor.channel.policy.timeout: 2.5: ends before any answer can come: "
            "service and transit take at least 3; allow more time, or shorten them",
        ),
        (
            "{ transit = 30.0 }",
            "FILE:6: experts.sensor.channel.transit: 30.0: no answer can come before the play "
            "ends: service and transit take at least 30, and the play lasts 20; shorten them, or "
            "play more rounds",
        ),
    ],
)
def test_answers_that_can_never_come_are_refused_with_the_line(
    tmp_path: Path, channel: str, told: str
) -> None:
    assert refusals(tmp_path, "{ transit = 1.0 }", channel) == told


def test_an_answer_that_may_come_in_time_is_not_refused() -> None:
    quick = {"kind": "exponential", "mean": 50.0}
    for channel in ({"transit": quick, "patience": 0.1}, {"transit": 2.0, "patience": 2.0}):
        Scenario(
            rounds=20,
            environment={"kind": "synthetic"},
            experts={"sensor": {"kind": "truth", "channel": channel}},
            optimizers=["sparq-gp-ucb"],
        )


def test_feedback_that_never_comes_is_refused(tmp_path: Path) -> None:
    told = refusals(tmp_path, "[optimizers]", "[feedback]\ntransit = 21\n[optimizers]")
    assert told.startswith("FILE:8: feedback.transit: 21: no answer can come before the play ends")


def test_in_a_sweep_the_setting_in_which_nothing_can_come_is_named(tmp_path: Path) -> None:
    sweep = '[sweep]\n"experts.sensor.channel.transit" = [1.0, 50.0]\n[optimizers]'
    told = refusals(tmp_path, "[optimizers]", sweep)
    assert told.startswith('FILE:8: sweep."experts.sensor.channel.transit": [1.0, 50.0]: ')
    assert "no answer can come before the play ends" in told


def test_an_optimizer_that_asks_needs_an_expert(tmp_path: Path) -> None:
    without = BASE.replace('[experts.sensor]\nkind = "truth"\nchannel = { transit = 1.0 }\n', "")
    told = refusals(tmp_path, "rounds = 20", "rounds = 20", without)
    assert told == (
        "FILE:5: optimizers.sparq-gp-ucb: {'kind': 'sparq-gp-ucb'}: asks experts, and the scenario "
        "has none; add a table [experts.NAME], or take another optimizer"
    )


@pytest.mark.parametrize("optimizer", ["uniform", "gp-ucb", "tv-gp-ucb"])
def test_access_to_the_domain_of_which_nobody_makes_use_is_refused(
    tmp_path: Path, optimizer: str
) -> None:
    other = BASE.replace("sparq-gp-ucb", optimizer)
    told = refusals(tmp_path, "rounds = 20", 'rounds = 20\naccess = "domain"', other)
    assert told.startswith("FILE:2: access: 'domain': no optimizer of this scenario asks beyond ")


def test_access_to_the_domain_is_for_those_who_make_use_of_it_or_may() -> None:
    rest = {
        "rounds": 5,
        "access": "domain",
        "environment": {"kind": "synthetic"},
        "experts": {"sensor": {"kind": "truth"}},
    }
    Scenario(**rest, optimizers=["gp-ucb", "sparq-gp-ucb"])

    class Unsaid(Asker):
        """Does not say whether it asks."""

        asks = None

    Scenario(**rest, optimizers={"unsaid": Unsaid()})
    with pytest.raises(ValidationError, match="asks beyond the points already played"):
        Scenario(**rest, optimizers={"asker": Asker()})


def test_any_optimizer_that_asks_needs_an_expert_and_may_use_access_to_the_domain() -> None:
    tracking = {"kind": "tv-gp-ucb", "asking": {}}
    rest = {"rounds": 5, "environment": {"kind": "synthetic"}, "optimizers": {"tv": tracking}}
    with pytest.raises(ValidationError, match="asks experts, and the scenario has none"):
        Scenario(**rest)
    Scenario(**rest, access="domain", experts={"sensor": {"kind": "truth"}})
    with pytest.raises(ValidationError, match="no expert of this play is called 'wizard'"):
        Scenario(
            **{**rest, "optimizers": {"tv": {**tracking, "asking": {"expert": "wizard"}}}},
            experts={"sensor": {"kind": "truth"}},
        )


def test_points_never_played_are_not_chosen_where_only_played_ones_may_be_asked(
    tmp_path: Path,
) -> None:
    grid = BASE + 'sparq-gp-ucb.selection = "grid"\n'
    told = refusals(tmp_path, "rounds = 20", "rounds = 20", grid)
    assert "optimizers.sparq-gp-ucb: " in told
    assert told.endswith(
        "selection = 'grid' asks about points that were never played: set "
        '`access = "domain"`, or choose greedy, chain, exact, random or newest'
    )
    swept = grid + '[sweep]\naccess = ["domain", "past"]\n'
    told = refusals(tmp_path, "rounds = 20", "rounds = 20", swept)
    assert "selection = 'grid' asks about points that were never played" in told
    sound = Scenario.model_validate(
        {
            "rounds": 5,
            "access": "domain",
            "environment": {"kind": "synthetic"},
            "experts": {"sensor": {"kind": "truth"}},
            "optimizers": {"tv": {"kind": "tv-gp-ucb", "asking": {"selection": "grid"}}},
        }
    )
    assert len(sound.play("tv")) == 5


def test_what_was_played_before_it_made_no_sense_is_still_read() -> None:
    sound = Scenario.load("synthetic", overrides=["rounds=5"])
    play = sound.fingerprint("sparq-gp-ucb")
    again = Scenario.from_fingerprint({**play, "experts": {}}, seed=0, name="sparq")
    assert again.experts == {}


def test_all_bundled_scenarios_make_sense() -> None:
    for name in find_bundled():
        assert Scenario.load(name).settings()


ASKING = """\
rounds = 5
environment = { kind = "synthetic" }
[experts]
sensor = { kind = "truth" }
radar = { kind = "truth" }
[optimizers.asking]
kind = "sparq-gp-ucb"
"""


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('expert = "senser"', "did you mean 'sensor'"),
        ("", "there are several experts"),
        ('routing = { kind = "shares", shares = { sonar = 1 } }', "no expert .* 'sonar'"),
    ],
)
def test_an_expert_who_is_not_there_is_missed_before_anything_is_played(
    tmp_path: Path, line: str, reason: str
) -> None:
    said = problem(write(tmp_path, f"{ASKING}{line}\n"))
    assert re.search(rf"scenario\.toml:6: optimizers\.asking.*{reason}", said)
    Scenario.load(write(tmp_path, f'{ASKING}expert = "radar"\n'))


def test_an_expert_whose_members_are_unknown_is_found_before_a_play(tmp_path: Path) -> None:
    board = '[experts.board]\nkind = "committee"\nmembers = ["sensor", "senzor"]\n'
    file = write(tmp_path, f"{SMALL}{SENSOR}{board}")
    words = "experts.board: {'kind': 'committee', 'members': ['sensor', 'senzor']}: committee: "
    assert f"{words}no expert is called 'senzor': did you mean 'sensor'?" in problem(file)


@pytest.mark.parametrize("name", ["reward", '"a>b"', "agent"])
def test_experts_cannot_take_names_of_the_house(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, f'{SMALL}[experts.{name}]\nkind = "truth"\n')
    assert problem(file).startswith(f"{file}:4: experts.{name}: ")


def test_a_sweep_over_experts_is_valid_if_each_of_its_settings_is(tmp_path: Path) -> None:
    swept = f'{ASKING}[sweep]\n"optimizers.asking.expert" = ["sensor", "radar"]\n'
    assert len(list(Scenario.load(write(tmp_path, swept)).settings())) == 2
    assert "did you mean 'radar'" in problem(write(tmp_path, swept.replace('"radar"]', '"rader"]')))


def test_plays_are_counted_before_any_is_made(tmp_path: Path) -> None:
    scenario = Scenario.load(write(tmp_path, f"{SMALL}replications = 1000000000\n"))
    with pytest.raises(ScenarioError, match="are 1,000,000,000 plays; at most 1,000,000 make"):
        Study(scenario, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_more_plays_can_be_allowed(tmp_path: Path) -> None:
    scenario = Scenario.load(write(tmp_path, f"{SMALL}replications = 3\n"))
    with pytest.raises(ScenarioError, match="--most-plays 3"):
        Study(scenario, tmp_path / "out", most_plays=2)
    assert len(Study(scenario, tmp_path / "out", most_plays=3).plays()) == 3


def test_a_scenario_with_thousands_of_optimizers_is_refused(tmp_path: Path) -> None:
    some = "".join(f"[optimizers.o{i}]\nkind = 'uniform'\n" for i in range(1001))
    text = f"rounds = 2\nenvironment.kind = 'synthetic'\n{some}"
    assert "optimizers: {" in (said := problem(write(tmp_path, text)))
    assert "are 1,001; at most 1,000" in said


def test_of_thousands_of_errors_some_are_told_and_the_others_counted(tmp_path: Path) -> None:
    text = "".join(f"x{i} = 1\n" for i in range(5_000))
    *some, last = problems(write(tmp_path, text + SMALL))
    assert len(some) == 200
    assert last.startswith("and 4,800 more")
