"""Sweeps make settings, and settings make scenarios."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_environments.synthetic import Synthetic
from sparq_sim import Channel, from_process
from sparq_sim.limits import MOST_SETTINGS
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.scenario.sweep import Sweep
from tests.scenario.samples import (
    SENSOR,
    SMALL,
    problem,
    problems,
    write,
)

MISROUTED = """\
rounds = 5
environment.kind = "synthetic"
experts = { a = { kind = "truth" }, b = { kind = "truth" } }
optimizers.s = { kind = "sparq-gp-ucb", routing = { kind = "cheapst" } }
"""


@pytest.mark.parametrize("swept", ["experts.a.channel.noise", "optimizers.s.retain"])
def test_what_is_wrong_outside_a_sweep_is_not_told_of_the_sweep(tmp_path: Path, swept: str) -> None:
    file = write(tmp_path, f"{MISROUTED}sweep.{swept} = [1, 2]")
    assert problem(file).startswith(f"{file}:4: optimizers.s.routing.kind: 'cheapst': no routing")


def test_a_swept_path_that_is_none_is_told_with_what_is_wrong_elsewhere(tmp_path: Path) -> None:
    _, path = problems(write(tmp_path, f"{MISROUTED}sweep.experts.c.channel.noise = [1, 2]"))
    assert "no expert is called 'c'" in path


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("optimizer_defaults.kernel.length_scale = -1", "-1: should be greater than 0"),
        (
            "optimizer_defaults.kernel.length_scale = [1, -1]",
            "scale.1: -1: should be greater than 0",
        ),
        ("sweep.optimizers.gp-ucb.kernel.length_scale = [1, -1]", "]: should be greater than 0"),
        (
            'sweep.optimizer_defaults.kernel = [{ kind = "matern-5/2", length_scale = -1 }]',
            "length_scale: should be greater than 0",
        ),
    ],
)
def test_a_wrong_number_is_not_told_that_it_could_have_been_a_list(
    tmp_path: Path, field: str, words: str
) -> None:
    base = SMALL.replace("uniform", "gp-ucb")
    kind = 'optimizer_defaults.kernel.kind = "matern-3/2"'
    assert problem(write(tmp_path, f"{base}{kind}\n{field}")).endswith(words)


def test_without_a_sweep_there_is_one_setting() -> None:
    scenario = Scenario(environment=Synthetic(), optimizers={"u": Uniform()}, rounds=1)
    assert scenario.settings() == [({}, scenario)]


def swept(tmp_path: Path, sweep: str) -> list[tuple[dict[str, object], Scenario]]:
    return Scenario.load(write(tmp_path, f"{SMALL}{SENSOR}[sweep]\n{sweep}")).settings()


def test_a_grid_has_all_combinations(tmp_path: Path) -> None:
    found = swept(tmp_path, '"experts.sensor.channel.loss" = [0, 0.5]\nrounds = [1, 2]\n')
    losses = "experts.sensor.channel.loss"
    assert [values for values, _ in found] == [
        {losses: loss, "rounds": rounds} for loss in (0, 0.5) for rounds in (1, 2)
    ]
    for values, scenario in found:
        channel = scenario.experts["sensor"].channel
        assert channel == Channel(noise=0.1, loss=values[losses])
        assert scenario.rounds == values["rounds"]
        assert not scenario.sweep


def test_a_zip_goes_through_all_lists_together(tmp_path: Path) -> None:
    found = swept(tmp_path, 'way = "zip"\nseed = [5, 6]\nrounds = [1, 2]\n')
    assert [values for values, _ in found] == [{"seed": 5, "rounds": 1}, {"seed": 6, "rounds": 2}]


def test_a_list_gives_the_settings_with_the_scenarios_own_values_of_the_others(
    tmp_path: Path,
) -> None:
    text = (
        "settings = [{ rounds = 2 }, "
        '{ seed = 3, feedback.service = { kind = "exponential", mean = 2 } }]\n'
    )
    (first, one), (second, two) = swept(tmp_path, text)
    service = {"kind": "exponential", "mean": 2}
    assert first == {"rounds": 2, "seed": 0, "feedback.service": 0.0}
    assert second == {"rounds": two.rounds, "seed": 3, "feedback.service": service}
    assert (one.rounds, one.seed, one.feedback.service.expected) == (2, 0, 0.0)
    assert (two.seed, two.feedback.service.expected) == (3, 2.0)


def test_what_only_some_settings_of_a_list_have_is_unset_in_the_others(tmp_path: Path) -> None:
    text = (
        'settings = [{ "feedback.service" = { kind = "exponential", mean = 2 } }, '
        '{ "feedback.service.value" = 3 }]\n'
    )
    (first, _), (second, _) = swept(tmp_path, text)
    assert first["feedback.service.value"] == "unset"
    assert second == {"feedback.service": 3.0, "feedback.service.value": 3}


def test_paths_may_be_written_as_tables_and_reach_fields_not_in_the_file(tmp_path: Path) -> None:
    found = swept(tmp_path, "experts.sensor.channel.noise.std = [0.2]\nfeedback.cost.value = [3]\n")
    assert found[0][1].experts["sensor"].channel == Channel(noise=0.2)
    assert found[0][1].feedback == Channel(cost=3)


def test_fields_that_depend_on_each_other_are_set_at_once() -> None:
    scenario = Scenario(
        environment=Synthetic(),
        optimizers={"u": Uniform()},
        rounds=1,
        thinking={"kind": "uniform", "low": 0, "high": 1},
        sweep={"way": "zip", "thinking.low": [2, 4], "thinking.high": [3, 5]},
    )
    assert [each.thinking.expected for _, each in scenario.settings()] == [2.5, 4.5]


def test_kinds_can_be_swept(tmp_path: Path) -> None:
    found = swept(tmp_path, 'optimizers.uniform.kind = ["uniform", "gp-ucb"]\n')
    kinds = [type(each.optimizers["uniform"]).__name__ for _, each in found]
    assert kinds == ["Uniform", "GPUCB"]


def test_models_that_cannot_be_written_can_be_swept_around() -> None:
    expert = from_process(lambda env, query, world: iter(()))  # type: ignore[arg-type, return-value]
    scenario = Scenario(
        environment=Synthetic(),
        optimizers={"u": Uniform()},
        experts={"odd": ExpertEntry(expert=expert)},
        rounds=1,
        sweep={"experts.odd.channel.loss": [0.1, 0.2]},
    )
    assert all(each.experts["odd"].expert is expert for _, each in scenario.settings())


@pytest.mark.parametrize(
    ("sweep", "told"),
    [
        (
            '"experts.sensor.channel.los" = [1]',
            "9: sweep.\"experts.sensor.channel.los\": [1]: no field 'los' in "
            "experts.sensor.channel; did you mean 'loss'?",
        ),
        (
            "experts.senzor.channel.loss = [1]",
            "9: sweep.experts.senzor.channel.loss: [1]: no expert is called 'senzor': "
            "did you mean 'sensor'?",
        ),
        (
            '"optimizers.x.window" = [1]',
            "9: sweep.\"optimizers.x.window\": [1]: no optimizer is called 'x': there are: ",
        ),
        ("round = [1]", "9: sweep.round: [1]: no such field; did you mean 'rounds'?"),
        ("rounds = [1, -1]", "9: sweep.rounds: [1, -1]: should be greater than 0"),
        ("rounds = 3", "9: sweep.rounds: 3: should be a list, in [ ]"),
        ("rounds = []", "9: sweep.rounds: []: has no values; give some, or take it out"),
        (
            'way = "zip"\nrounds = [1]\nseed = [1, 2]',
            "8: sweep: {'way': 'zip', 'rounds': [1], 'seed': [1, 2]}: fields swept together need "
            "equally many values; rounds has 1, seed has 2",
        ),
        (
            'way = "sip"\nrounds = [1]',
            "9: sweep.way: 'sip': should be 'grid', 'zip' or 'list'; did you mean 'zip'?",
        ),
        ("sweep.rounds = [1]", "9: sweep.sweep.rounds: [1]: no such field; "),
        (
            "rounds.x = [1]",
            "9: sweep.rounds.x: [1]: rounds is a single value; sweep it, without .x",
        ),
        (
            '"feedback.policy.rate.points" = [1]',
            '9: sweep."feedback.policy.rate.points": [1]: feedback.policy.rate is not set, so '
            "'points' in it cannot be swept; set it first",
        ),
        (
            '"environmnet.lag" = [1]',
            "9: sweep.\"environmnet.lag\": [1]: no such field; did you mean 'environment'?",
        ),
        (
            '"environment.place.x" = [1]',
            "9: sweep.\"environment.place.x\": [1]: no field 'place' in environment; "
            "there are: kind",
        ),
        (
            "settings = [{ rounds = 1 },\n { round = 2 }]",
            "10: sweep.settings.1.round: 2: no such field; did you mean 'rounds'?",
        ),
    ],
)
def test_a_sweep_that_does_not_fit_is_told_with_its_line(
    tmp_path: Path, sweep: str, told: str
) -> None:
    file = write(tmp_path, f"{SMALL}{SENSOR}[sweep]\n{sweep}\n")
    assert problem(file).startswith(f"{file}:{told}")


def test_a_sweep_of_an_expert_where_there_is_none_says_so(tmp_path: Path) -> None:
    file = write(tmp_path, f'{SMALL}[sweep]\n"experts.sensor.channel.loss" = [1]\n')
    assert problem(file).endswith("no expert is called 'sensor': there are none")


def test_a_sweep_of_too_many_settings_is_refused(tmp_path: Path) -> None:
    many = list(range(1, 102))
    file = write(tmp_path, f"{SMALL}[sweep]\nrounds = {many}\nseed = {many}\n")
    assert f"makes {101 * 101} settings; at most {MOST_SETTINGS}" in problem(file)


def test_a_long_sweep_is_counted_and_not_made(tmp_path: Path) -> None:
    many = list(range(1, 1001))
    axes = "".join(f'"{path}" = {many}\n' for path in ("rounds", "seed", "replications"))
    assert "makes 1000000000 settings; at most" in problem(
        write(tmp_path, f"{SMALL}[sweep]\n{axes}")
    )


def test_some_settings_of_many_are_spread_from_the_first_to_the_last() -> None:
    sweep = Sweep(values={"a": (1, 2, 3), "b": tuple(range(100))})
    every = list(sweep.each())
    some = list(sweep.each(4))
    assert sweep.count() == len(every) == 300
    assert every[:2] == [{"a": 1, "b": 0}, {"a": 1, "b": 1}]
    assert some == [every[0], every[99], every[199], every[299]]


def test_some_edges_of_a_grid_begin_with_its_first_setting() -> None:
    sweep = Sweep(values={"a": (1, 2, 3), "b": (1, 2, 3)})
    assert len(list(sweep.samples())) == 5
    assert list(sweep.samples(2)) == [{"a": 1, "b": 1}, {"a": 1, "b": 3}]
