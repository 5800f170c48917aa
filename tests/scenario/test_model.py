from __future__ import annotations

import json
import pickle
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Channel, Estimate, Expert, Query, Rules, World, from_process, play
from sparq_sim.cli.main import main
from sparq_sim.errors import ScenarioError, SparqError
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.tv_gp_ucb import TVGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.registry import list_names
from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.scenario.lines import find_lines
from sparq_sim.scenario.loading import make_environment
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.plugins import ExpertEntry
from sparq_sim.scenario.schema import build_schema
from sparq_sim.scenario.sweep import MOST_SETTINGS
from sparq_sim.scenario.tables import join_path, split_path

FULL = Path(__file__).parents[1] / "scenarios" / "full.toml"
SMALL = """\
rounds = 5
optimizers = ["uniform"]
environment = { kind = "synthetic" }
"""
SENSOR = """
[experts.sensor]
kind = "truth"
channel = { noise = 0.1 }
"""


class Lagged(Expert):
    """Knows the reward as it was *lag* ago."""

    lag: float = 2.0

    async def answer(self, query: Query, world: World) -> Estimate:
        then = max(0.0, world.clock.now - self.lag)
        return Estimate(world.rewards(query.points, then), measured_at=then)


class Librarian(Expert):
    """Names files in fields of its own."""

    book: Path
    shelf: tuple[Path, ...] = ()

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.full(len(query.points), float(self.book.read_text(encoding="utf-8"))))


def write(folder: Path, text: str | bytes, name: str = "scenario.toml") -> Path:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def problems(source: str | Path, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(ScenarioError) as refused:
        Scenario.load(source, overrides=overrides)
    return refused.value.problems


def problem(source: str | Path, *overrides: str) -> str:
    (only,) = problems(source, *overrides)
    return only


# One model, in a file and in Python


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


def test_a_number_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    huge = f"0x{'f' * 5000}"
    said = problem(write(tmp_path, f"{SMALL}thinking = {{ kind = {huge} }}\n"))
    assert "scenario.toml:4: thinking.kind: a whole number of hundreds of digits" in said
    said = problem(write(tmp_path, SMALL), f"sweep.seed=[1, {huge}]")
    assert "sweep.seed: a whole number of hundreds of digits" in said


def test_a_sweep_over_experts_is_sound_if_each_of_its_settings_is(tmp_path: Path) -> None:
    swept = f'{ASKING}[sweep]\n"optimizers.asking.expert" = ["sensor", "radar"]\n'
    assert len(list(Scenario.load(write(tmp_path, swept)).settings())) == 2
    assert "did you mean 'radar'" in problem(write(tmp_path, swept.replace('"radar"]', '"rader"]')))


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


# Bundled scenarios


def test_the_bundled_scenario_is_loaded_by_its_name() -> None:
    scenario = Scenario.load("synthetic")
    assert [*scenario.optimizers] == ["uniform", "gp-ucb", "tv-gp-ucb", "sparq-gp-ucb"]
    assert (scenario.rounds, scenario.replications) == (500, 4)
    assert scenario.experts["expert"].channel.terms.std == 0.1
    assert scenario.experts["expert"].channel.terms.cost_per_point > 0
    assert find_bundled()["synthetic"].name == "synthetic.toml"


# Widths of theory warn where few queries are asked, as in the first rounds.
@pytest.mark.filterwarnings("ignore::sparq_sim.optimizers.shared.prior.PriorWarning")
@pytest.mark.parametrize("name", sorted(find_bundled()))
def test_each_bundled_scenario_loads_and_plays(name: str, tmp_path: Path) -> None:
    rounds = 11  # So many that even the slowest expert can answer.
    overrides = [f"rounds={rounds}"]
    if name == "paper/ozone":  # Its files are the user's.
        days = range(1, rounds + 2)
        rows = [f"2020-01-{d:02},{s},40.{s},-73.{s},{d + s}" for d in days for s in range(9)]
        (tmp_path / "day.csv").write_text("\n".join(["date,site,lat,lon,value", *rows]))
        overrides.append(f"environment.files=['{tmp_path / 'day.csv'}']")
    scenario = Scenario.load(name, overrides=overrides)
    # Of a search, some will do.
    for optimizer in list(scenario.optimizers)[:8]:
        assert len(scenario.play(optimizer)) == rounds


def test_a_folder_of_results_hides_no_bundled_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "synthetic").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Scenario.load("synthetic").rounds == 500


def test_an_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    assert problem("sinthetic") == (
        "sinthetic: no such file, and no scenario is called so; did you mean 'synthetic'?"
    )


def install(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """Install a package of scenarios as pip would, on the path."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[sparq_sim.scenarios]\n{package} = {package}\n")
    if files:
        (folder / package).mkdir()
    for name, text in {"__init__.py": "", **files}.items() if files else ():
        write(folder / package, text, name if "." in name else f"{name}.toml")
    monkeypatch.syspath_prepend(folder)


def test_other_packages_can_bring_scenarios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "tidal_scenarios", monkeypatch, tide=SMALL)
    assert {"tide", "synthetic"} <= find_bundled().keys()
    assert Scenario.load("tide").rounds == 5


def test_a_name_claimed_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "rival_scenarios", monkeypatch, synthetic=SMALL)
    assert problem("synthetic").startswith("synthetic: is claimed twice: ")


def test_a_broken_package_breaks_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "absent_scenarios", monkeypatch)
    assert Scenario.load("synthetic").rounds == 500
    assert "absent_scenarios cannot be loaded: ModuleNotFoundError" in problem("tide")


# Extending


def test_tables_merge_deeply_and_the_child_wins(tmp_path: Path) -> None:
    write(tmp_path, SMALL + SENSOR, "base.toml")
    child = 'extends = "base.toml"\nrounds = 9\n[experts.sensor.channel]\nloss = 0.3\n'
    scenario = Scenario.load(write(tmp_path, child))
    assert scenario.rounds == 9
    assert scenario.experts["sensor"].channel == Channel(noise=0.1, loss=0.3)


def test_another_kind_replaces_the_table_but_keeps_the_channel(tmp_path: Path) -> None:
    base = SMALL + SENSOR + '[feedback]\nservice = { kind = "gamma", shape = 1, scale = 2 }\n'
    write(tmp_path, base, "base.toml")
    child = (
        'extends = "base.toml"\n[feedback]\nservice = { kind = "exponential", mean = 3 }\n'
        '[experts.sensor]\nkind = "tests.scenario.test_model:Lagged"\n'
    )
    scenario = Scenario.load(write(tmp_path, child), allow_import=True)
    assert scenario.feedback == Channel(service={"kind": "exponential", "mean": 3})
    assert scenario.experts["sensor"].channel == Channel(noise=0.1)
    assert type(scenario.experts["sensor"].expert).__name__ == "Lagged"


def test_a_bundled_scenario_can_be_extended(tmp_path: Path) -> None:
    scenario = Scenario.load(write(tmp_path, 'extends = "synthetic"\nrounds = 7\n'))
    assert (scenario.rounds, scenario.replications) == (7, 4)


def test_a_list_of_optimizers_replaces_and_a_table_adds(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "base.toml")
    listed = write(tmp_path, 'extends = "base.toml"\noptimizers = ["gp-ucb"]\n', "listed.toml")
    added = 'extends = "base.toml"\n[optimizers.mine]\nkind = "gp-ucb"\n'
    assert [*Scenario.load(listed).optimizers] == ["gp-ucb"]
    assert [*Scenario.load(write(tmp_path, added)).optimizers] == ["uniform", "mine"]


def test_an_error_in_an_extended_file_is_told_with_that_file_and_its_line(tmp_path: Path) -> None:
    base = write(tmp_path, SMALL + "perod = 3\n", "base.toml")
    child = write(tmp_path, '# first\nextends = "base.toml"\nseed = -1\n')
    assert problems(child) == (
        f"{base}:4: perod: 3: no such field; did you mean 'period'?",
        f"{child}:3: seed: -1: should be greater than or equal to 0",
    )


def test_files_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path, 'extends = "two.toml"\n', "one.toml")
    two = write(tmp_path, '\nextends = "one.toml"\n', "two.toml")
    assert problem(one).startswith(f"{two}:2: extends: 'one.toml': extends itself; ")


@pytest.mark.parametrize("extends", ['"nowhere.toml"', '"nowhere"', "3", '""', "[]", r'"a\u0000"'])
def test_what_cannot_be_extended_is_told_with_the_line(tmp_path: Path, extends: str) -> None:
    file = write(tmp_path, f"{SMALL}extends = {extends}\n")
    assert problem(file).startswith(f"{file}:4: extends: ")


# Taking out what is extended

SWEPT = """
[optimizers]
one.kind = "gp-ucb"
two.kind = "uniform"
[sweep]
"feedback.noise" = [0.1, 0.2]
feedback.loss = [0.0, 0.5]
"""


def test_a_sweep_axis_and_an_optimizer_of_a_base_can_be_taken_out(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace('optimizers = ["uniform"]\n', "") + SWEPT, "base.toml")
    child = 'extends = "base.toml"\nwithout = ["optimizers.one", "sweep.feedback.{}"]\n'
    for axis, left in (("noise", "feedback.loss"), ("loss", "feedback.noise")):
        scenario = Scenario.load(write(tmp_path, child.format(axis)))
        assert [*scenario.optimizers] == ["two"]
        assert [*scenario.sweep.values] == [left]


def test_all_axes_of_a_sweep_can_be_taken_out(tmp_path: Path) -> None:
    write(tmp_path, SMALL.replace('optimizers = ["uniform"]\n', "") + SWEPT, "base.toml")
    for paths in ('"sweep"', '"sweep.feedback.loss", "sweep.feedback.noise"'):
        child = f'extends = "base.toml"\nwithout = [{paths}]\n'
        assert len(Scenario.load(write(tmp_path, child)).settings()) == 1


def test_what_is_taken_out_can_be_given_anew(tmp_path: Path) -> None:
    write(tmp_path, SMALL + "[feedback]\nnoise = 0.1\nloss = 0.5\n", "base.toml")
    child = 'extends = "base.toml"\nwithout = ["feedback"]\n[feedback]\ntransit = 2\n'
    assert Scenario.load(write(tmp_path, child)).feedback == Channel(transit=2)


def test_one_of_a_list_of_kinds_can_be_taken_out_also_for_one_run(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL.replace('["uniform"]', '["uniform", "gp-ucb"]'))
    scenario = Scenario.load(file, overrides=['without=["optimizers.uniform"]'])
    assert [*scenario.optimizers] == ["gp-ucb"]


@pytest.mark.parametrize(
    ("without", "words"),
    [
        ('["optimizers.tow"]', ":2: without: 'optimizers.tow': is not in what is extended; did "),
        ('["rounds",\n"sweep.feedback.nois"]', ":3: without: 'sweep.feedback.nois': is not in "),
        ('["optimizers.tow"]', "did you mean 'optimizers.two'?"),
        ('["sweep.feedback.nois"]', "did you mean 'sweep.feedback.noise'?"),
        ('"optimizers.one"', ":2: without: 'optimizers.one': expected a list of paths, as in ["),
        ("[3]", ":2: without: [3]: expected a list of paths"),
    ],
)
def test_what_cannot_be_taken_out_is_told_with_the_line(
    tmp_path: Path, without: str, words: str
) -> None:
    write(tmp_path, SMALL.replace('optimizers = ["uniform"]\n', "") + SWEPT, "base.toml")
    file = write(tmp_path, f'extends = "base.toml"\nwithout = {without}\n')
    assert words in problem(file)


def test_what_a_list_of_settings_sweeps_is_taken_out_with_the_list(tmp_path: Path) -> None:
    write(tmp_path, f"{SMALL}sweep.settings = [{{ feedback.transit = 1 }}]\n", "base.toml")
    child = 'extends = "base.toml"\nwithout = ["sweep.{}"]\n'
    file = write(tmp_path, child.format("feedback.transit"))
    assert problem(file).endswith("is not in what is extended; there are: sweep.settings")
    assert not Scenario.load(write(tmp_path, child.format("settings"))).sweep


def test_nothing_can_be_taken_out_where_nothing_is_extended(tmp_path: Path) -> None:
    file = write(tmp_path, f'{SMALL}without = ["optimizers.uniform"]\n')
    assert problem(file) == (
        f"{file}:4: without: goes with `extends`; there is nothing to take out of"
    )


# Defaults that optimizers share

SHARED = """
rounds = 5
environment = { kind = "synthetic" }
[optimizer_defaults]
width = 2.0
epsilon = 0.2
[optimizers]
gp.kind = "gp-ucb"
tv = { kind = "tv-gp-ucb", width = 3.0 }
uniform.kind = "uniform"
"""
WRITTEN = """
rounds = 5
environment = { kind = "synthetic" }
[optimizers]
gp = { kind = "gp-ucb", width = 2.0 }
tv = { kind = "tv-gp-ucb", width = 3.0, epsilon = 0.2 }
uniform.kind = "uniform"
"""


def test_a_default_is_that_of_each_optimizer_that_has_the_field_and_does_not_set_it(
    tmp_path: Path,
) -> None:
    shared = Scenario.load(write(tmp_path, SHARED))
    written = Scenario.load(write(tmp_path, WRITTEN))
    assert shared.optimizers == written.optimizers
    assert shared.fingerprint("tv") == written.fingerprint("tv")
    assert shared.resolve()["optimizers"] == written.resolve()["optimizers"]


def test_defaults_go_to_models_and_to_lists_of_kinds_too() -> None:
    world = {"rounds": 5, "environment": Synthetic(), "optimizer_defaults": {"width": 2.0}}
    given = Scenario(**world, optimizers={"gp-ucb": GPUCB()})
    listed = Scenario(**world, optimizers=["gp-ucb"])
    assert given.optimizers == listed.optimizers == {"gp-ucb": GPUCB(width=2.0)}


def test_defaults_can_be_extended_overridden_and_swept(tmp_path: Path) -> None:
    write(tmp_path, SHARED, "base.toml")
    child = (
        'extends = "base.toml"\n[optimizer_defaults]\nmean = 1.5\n'
        '[sweep]\n"optimizer_defaults.width" = [1.0, 4.0]\n"optimizers.tv.mean" = [0.0]\n'
    )
    scenario = Scenario.load(write(tmp_path, child), overrides=["optimizer_defaults.epsilon=0.4"])
    found = [each.optimizers for _, each in scenario.settings()]
    assert found == [
        {
            "gp": GPUCB(width=width, mean=1.5),
            "tv": TVGPUCB(width=3.0, mean=0.0, epsilon=0.4),
            "uniform": Uniform(),
        }
        for width in (1.0, 4.0)
    ]


def test_a_table_of_an_optimizer_is_laid_over_that_of_the_defaults(tmp_path: Path) -> None:
    kernel = 'kernel = { kind = "matern-3/2", length_scale = 2.0, variance = 4.0 }'
    file = write(tmp_path, SHARED.replace("width = 2.0", kernel))
    scenario = Scenario.load(file, overrides=["optimizers.gp.kernel.length_scale=3"])
    kernels = [scenario.resolve()["optimizers"][name]["kernel"] for name in ("gp", "tv")]  # type: ignore[index] # JSON
    assert [each["length_scale"] for each in kernels] == [3.0, 2.0]
    assert [each["variance"] for each in kernels] == [4.0, 4.0]


def test_a_default_that_is_wrong_is_told_once_and_where_it_is_given(tmp_path: Path) -> None:
    text = SHARED.replace("width = 2.0", "width = -2.0") + 'more.kind = "gp-ucb"\n'
    file = write(tmp_path, text.lstrip())
    assert problem(file).startswith(f"{file}:4: optimizer_defaults.width: -2.0: ")


def test_a_default_that_no_optimizer_has_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, SHARED.replace("epsilon", "epsilom").lstrip())
    assert problem(file) == (
        f"{file}:5: optimizer_defaults.epsilom: 0.2: no optimizer of this scenario has such a "
        "field; did you mean 'epsilon'?"
    )


def test_a_kind_that_is_wrong_does_not_make_its_defaults_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, SHARED.replace('"tv-gp-ucb"', '"tv-gp-ucp"').lstrip())
    (told,) = problems(file)
    assert "did you mean 'tv-gp-ucb'?" in told


def test_a_swept_default_that_is_wrong_is_told_with_its_path(tmp_path: Path) -> None:
    sweep = '[sweep]\n"feedback.noise" = [0.1]\n"optimizer_defaults.epsilon" = [0.1, 7]\n'
    file = write(tmp_path, SHARED.lstrip() + sweep)
    assert problem(file).startswith(f'{file}:12: sweep."optimizer_defaults.epsilon": [0.1, 7]: ')


def test_a_swept_default_that_does_not_reach_a_table_of_an_optimizers_own_is_refused(
    tmp_path: Path,
) -> None:
    kernels = """
[optimizer_defaults.kernel]
kind = "matern-5/2"
length_scale = 5.0
variance = 0.3
[optimizers]
own = { kind = "gp-ucb", kernel = { length_scale = 7.0 } }
whole = { kind = "gp-ucb", kernel = { kind = "squared-exponential" } }
shared.kind = "gp-ucb"
[sweep]
"optimizer_defaults.kernel.variance" = [0.1, 0.9]
"""
    text = f'rounds = 5\nenvironment = {{ kind = "synthetic" }}{kernels}'
    file = write(tmp_path, text)
    assert problem(file) == (
        f'{file}:12: sweep."optimizer_defaults.kernel.variance": [0.1, 0.9]: does not reach the '
        "optimizer 'own', which has a part of 'kernel' itself: sweep "
        "optimizers.own.kernel.variance beside it, by way = 'zip', or leave 'kernel' to the "
        "defaults"
    )
    scenario = Scenario.load(write(tmp_path, text.replace("own = {", "# own = {")))
    kept, swept = (
        [each.optimizers[name] for _, each in scenario.settings()] for name in ("whole", "shared")
    )
    assert kept[0] == kept[1]
    assert swept[0] != swept[1]


# Overrides


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("rounds=7", "rounds", 7),
        ("record=full", "record", "full"),
        ("title=two words", "title", "two words"),
        ("title=", "title", ""),
        ('title="3"', "title", "3"),
        ("ends_when_spent=true", "ends_when_spent", True),
        ("experts.sensor.channel.capacity=3", "experts.sensor.channel.capacity", 3),
        ("experts.sensor.channel={split=true}", "experts.sensor.channel.split", True),
        ("optimizers.uniform.kind=uniform", "optimizers.uniform.kind", "uniform"),
    ],
)
def test_an_override_wins_over_the_file(
    tmp_path: Path, override: str, path: str, value: object
) -> None:
    found: Any = Scenario.load(write(tmp_path, SMALL + SENSOR), overrides=[override]).resolve()
    assert found["experts"]["sensor"]["channel"]["noise"]["std"] == 0.1
    for key in path.split("."):
        found = found[key]
    assert found == value


def test_the_last_override_wins_and_reaches_into_lists() -> None:
    changed = ["rounds=3", "rounds=4", "experts.sensor.channel.outages.1.0=3.25"]
    scenario = Scenario.load(FULL, overrides=changed)
    assert scenario.rounds == 4
    assert scenario.experts["sensor"].channel.outages == ((1.0, 2.0), (3.25, 3.5))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("rounds=-1", "rounds: -1: should be greater than 0"),
        ("acces=past", "acces: 'past': no such field; did you mean 'access'?"),
        (
            "experts.senzor.channel.loss=0.3",
            f"experts.senzor.kind: missing; say which expert: {', '.join(list_names('expert'))}; "
            "or did you mean 'sensor'?",
        ),
        ("rounds", "expected FIELD=VALUE, as in seed=3"),
        ("=3", "expected FIELD=VALUE, as in seed=3"),
        ("rounds=[1", "not TOML: Unclosed array (at end of document)"),
    ],
)
def test_a_wrong_override_is_named_itself(tmp_path: Path, override: str, told: str) -> None:
    assert problem(write(tmp_path, SMALL + SENSOR), override) == f"--set {override}: {told}"


# Sweeps


def test_an_expert_whose_members_are_unknown_is_found_before_a_play(tmp_path: Path) -> None:
    board = '[experts.board]\nkind = "committee"\nmembers = ["sensor", "senzor"]\n'
    file = write(tmp_path, f"{SMALL}{SENSOR}{board}")
    words = "experts.board: {'kind': 'committee', 'members': ['sensor', 'senzor']}: committee: "
    assert f"{words}no expert is called 'senzor': did you mean 'sensor'?" in problem(file)


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


# Fingerprints


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


# Errors


def test_all_errors_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    text = """\
perod = 2
seed = "x"
environment = { kind = "synthetic", size = 3 }
[experts.sensor]
kind = "trut"
[experts.other]
kind = "truth"
channel = { loss = 3, service = { kind = "exponentail", mean = 3 } }
[optimizers.a]
kind = "tv-gp-ucb"
epsilom = 0.1
[optimizers.b]
[sweep]
"experts.other.channel.nois" = [1]
"""
    file = write(tmp_path, text)
    told = [
        "1: scenario: a play needs rounds or a horizon, or it never ends",
        "1: perod: 2: no such field; did you mean 'period'?",
        "2: seed: 'x': should be a whole number",
        "3: environment.size: 3: no such field; there are: kind",
        "5: experts.sensor.kind: 'trut': no expert is called 'trut': did you mean 'truth'?",
        "8: experts.other.channel.loss: 3: should be less than or equal to 1",
        "8: experts.other.channel.service.kind: 'exponentail': "
        "no draw is called 'exponentail': did you mean 'exponential'?",
        "11: optimizers.a.epsilom: 0.1: no such field; did you mean 'epsilon'?",
        "12: optimizers.b.kind: missing; say which optimizer: ",
    ]
    found = problems(file)
    for line in told:
        assert any(each.startswith(f"{file}:{line}") for each in found), (line, found)
    assert len(found) == len(told)


def test_a_wrong_sweep_is_told_beside_other_errors(tmp_path: Path) -> None:
    file = write(tmp_path, f"{SMALL}seed = -1\n[sweep]\nround = [3]\n")
    assert [line.split(": ")[1] for line in problems(file)] == ["seed", "sweep.round"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"rounds = 3\nseed = = 4\n", ":2: not TOML: Invalid value at column 8"),
        (b"rounds = [1,\n", ":2: not TOML: "),
        (b"rounds = " + b"9" * 5000, ":1: not TOML: "),
        (b"a = 1\nb = '\xff'\n", ":2: not a text in UTF-8 (byte 0xff); save it in that encoding"),
        (b"#" * 1_000_001, ": is larger than 1 MB"),
        (b"\na = " + b"[" * 100_000, ":2: nested deeper than 50 levels; make it flatter"),
        (b".".join([b"a"] * 100_000) + b" = 1", ":1: nested deeper than 50 levels"),
        (b"[" + b".".join([b"a"] * 100_000) + b"]", ":1: nested deeper than 50 levels"),
        (b"a = " + b"{b=" * 100, ":1: nested deeper than 50 levels; make it flatter"),
    ],
)
def test_what_is_no_scenario_file_gives_one_clear_error(
    tmp_path: Path, content: bytes, told: str
) -> None:
    file = write(tmp_path, content)
    assert problem(file).startswith(f"{file}{told}")


def test_a_missing_file_and_a_folder_give_one_clear_error(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    assert problem(missing) == (
        f"{missing}: cannot be read: No such file or directory; check the path"
    )
    assert problem(tmp_path) == f"{tmp_path}: is a folder; name a file in it"
    assert "null" in problem("a\0.toml")


def test_an_empty_file_is_told_what_is_missing(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    assert problems(file) == (
        f"{file}:1: environment: missing; add it",
        f"{file}:1: optimizers: missing; add it",
    )


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    text = "\ufeff" + SMALL.replace("\n", "\r\n") + "perod = 1\r\n"
    file = write(tmp_path, text)
    assert problem(file).startswith(f"{file}:4: perod: 1: ")


def test_code_named_in_a_file_runs_only_if_allowed(tmp_path: Path) -> None:
    text = f'{SMALL}[experts.late]\nkind = "tests.scenario.test_model:Lagged"\nlag = 5\n'
    file = write(tmp_path, text)
    assert problem(file).startswith(
        f"{file}:5: experts.late.kind: 'tests.scenario.test_model:Lagged': "
    )
    scenario = Scenario.load(file, allow_import=True)
    assert scenario.experts["late"].expert.model_dump() == {"lag": 5.0}


@pytest.mark.parametrize("name", ["reward", '"a>b"', "agent"])
def test_experts_cannot_take_names_of_the_house(tmp_path: Path, name: str) -> None:
    file = write(tmp_path, f'{SMALL}[experts.{name}]\nkind = "truth"\n')
    assert problem(file).startswith(f"{file}:4: experts.{name}: ")


def test_an_optimizer_listed_twice_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL.replace('["uniform"]', '["uniform", "uniform"]'))
    assert problem(file).startswith(f"{file}:2: optimizers: ")
    assert "named twice" in problem(file)


# Files named in a scenario


def test_a_file_in_a_scenario_is_sought_beside_it(tmp_path: Path) -> None:
    write(tmp_path, "delay\n1.5\n2.5\n", "delays.csv")
    service = '{ kind = "empirical", file = "delays.csv", column = "delay" }'
    write(tmp_path, f"{SMALL}[feedback]\nservice = {service}\n", "base.toml")
    (tmp_path / "inner").mkdir()
    child = write(tmp_path / "inner", 'extends = "../base.toml"\n')
    scenario = Scenario.load(child)
    assert scenario.feedback.service.expected == 2.0


def test_a_swept_file_is_sought_beside_the_scenario(tmp_path: Path) -> None:
    write(tmp_path, "delay\n1.5\n", "delays.csv")
    service = '{ kind = "empirical", file = "delays.csv", column = "delay" }'
    file = write(tmp_path, f"{SMALL}[sweep]\nfeedback.service = [{service}]\n")
    ((_, scenario),) = Scenario.load(file).settings()
    assert scenario.feedback.service.expected == 1.5


LIBRARIAN = """
[experts.librarian]
kind = "tests.scenario.test_model:Librarian"
book = "book.txt"
shelf = ["shelf/one.txt", "/two.txt"]
"""


def librarian(scenario: Scenario) -> Librarian:
    expert = scenario.experts["librarian"].expert
    assert isinstance(expert, Librarian)
    return expert


def test_a_path_in_a_field_of_any_name_is_sought_beside_the_scenario(tmp_path: Path) -> None:
    found = librarian(Scenario.load(write(tmp_path, SMALL + LIBRARIAN), allow_import=True))
    assert found.book == tmp_path / "book.txt"
    assert found.shelf == (tmp_path / "shelf/one.txt", Path("/two.txt"))


def test_a_path_is_sought_from_the_file_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, SMALL + LIBRARIAN, "base.toml")
    inner = tmp_path / "inner"
    inner.mkdir()
    text = 'extends = "../base.toml"\n[experts.librarian]\nshelf = ["three.txt"]\n'
    found = librarian(Scenario.load(write(inner, text), allow_import=True))
    assert found.book.resolve() == tmp_path.resolve() / "book.txt"
    assert found.shelf == (inner / "three.txt",)


def test_a_path_of_an_override_is_one_from_the_working_directory(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL + LIBRARIAN)
    override = "experts.librarian.book=other.txt"
    found = librarian(Scenario.load(file, overrides=[override], allow_import=True))
    assert found.book == Path("other.txt")


def test_a_swept_path_is_sought_beside_the_scenario(tmp_path: Path) -> None:
    sweep = '[sweep]\n"experts.librarian.book" = ["a.txt", "b.txt"]\n'
    file = write(tmp_path, SMALL + LIBRARIAN + sweep)
    settings = Scenario.load(file, allow_import=True).settings()
    assert [librarian(each).book for _, each in settings] == [
        tmp_path / "a.txt",
        tmp_path / "b.txt",
    ]
    assert [setting["experts.librarian.book"] for setting, _ in settings] == ["a.txt", "b.txt"]


def test_a_play_is_known_by_what_is_in_the_files_of_any_field(tmp_path: Path) -> None:
    book = write(tmp_path, "1.0", "book.txt")
    scenario = Scenario.load(write(tmp_path, SMALL + LIBRARIAN), allow_import=True)
    first: Any = scenario.fingerprint("uniform")
    assert list(first["contents"]) == [str(book)]
    book.write_text("2.00", encoding="utf-8")
    assert scenario.fingerprint("uniform")["contents"] != first["contents"]


# Strict files


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('rounds = "5"', "rounds: '5': should be a whole number; write 5 without quotes"),
        ("replications = true", "replications: true: should be a whole number, not true or false"),
        ('feedback.split = "yes"', "feedback.split: 'yes': should be true or false, without quote"),
        ("feedback.capacity = 2.0", "feedback.capacity: 2.0: should be a whole number; write 2"),
        (
            'feedback.transit = { kind = "exponential", mean = "3" }',
            "feedback.transit.mean: '3': should be a number; write 3 without quotes",
        ),
        (
            'feedback.noise = { kind = "gaussian", std = true }',
            "feedback.noise.std: true: should be a number, not true or false",
        ),
        (
            "feedback.policy.retries = true",
            "feedback.policy.retries: true: should be a whole number, not true or false",
        ),
        (
            'experts.a = { kind = "lagged", lag = "2" }',
            "experts.a.lag: '2': should be a number; write 2 without quotes",
        ),
        (
            'optimizers.a = { kind = "gp-ucb", kernel = { kind = "matern-3/2", variance = "1" } }',
            "optimizers.a.kernel.variance: '1': should be a number; write 1 without quotes",
        ),
        ("environment = 5", "environment: 5: should be a table with a kind; the kinds are: "),
        ("experts.a = 5", "experts.a: 5: should be a table with a kind; the kinds are: "),
        ("optimizers.a = 5", "optimizers.a: 5: should be a table with a kind; the kinds are: "),
        ("feedback = 5", "feedback: 5: should be a table; its fields are: service, "),
        (
            'optimizers.a = { kind = "sparq-gp-ucb", schedule = 5 }',
            "optimizers.a.schedule: 5: should be a table with a kind; the kinds are: logarithmic, ",
        ),
        (
            'environment = { kind = "plume", wind = [{ kind = "gust" }] }',
            "environment.wind.0.kind: 'gust': no such kind; did you mean 'gusts'?",
        ),
    ],
)
def test_what_would_be_read_as_another_thing_is_refused_with_its_line(
    tmp_path: Path, line: str, told: str
) -> None:
    name = re.match(r"\w+", line)
    assert name
    fields = {
        "rounds": "rounds = 5",
        "optimizers": "optimizers.u.kind = 'uniform'",
        "environment": "environment.kind = 'synthetic'",
    }
    others = [text for field, text in fields.items() if field != name[0]]
    file = write(tmp_path, "\n".join([*others, line]))
    assert problem(file).startswith(f"{file}:{len(others) + 1}: {told}")
    override = problem(write(tmp_path, "\n".join(others)), line)
    assert override.startswith(f"--set {line}: {told}")


def test_a_swept_value_is_not_read_as_another_thing(tmp_path: Path) -> None:
    file = write(tmp_path, f'{SMALL}[sweep]\n"feedback.capacity" = [1, 2.0]\nrounds = ["5"]\n')
    assert problems(file) == (
        f'{file}:5: sweep."feedback.capacity": [1, 2.0]: should be a whole number; write 2',
        f"{file}:6: sweep.rounds: ['5']: should be a whole number; write 5 without quotes",
    )


def test_fields_of_a_lone_environment_are_strict_too() -> None:
    with pytest.raises(ScenarioError, match="--set centres='5': centres: '5': should be a whole n"):
        make_environment("rkhs-walk", ["centres='5'"])


# Lines

RICH = '''\
top = 1
"quoted.key" = 2
a.b.c = 3
text = """
not.a.key = 4
[nor.a.table] \\"""
""""
literal = \'\'\'
[neither]
\'\'\'
inline = { x = 1, y.z = [1, { deep = "}" }] } # comment = 5
many = [ # ]
  1,
  [2, 3],
  { in = 4 },
]
[table]
key = 'a # b'
[table."in ner".more]
date = 1979-05-27 07:32:00
[[array]]
one = 1
[[array.sub]]
two = 2
[[array.sub]]
two = 3
[[array]]
one = 4
[array.plain]
three = 5
'''


def leaves(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*keys, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*keys, str(place)))
    else:
        yield keys


def test_each_key_is_found_in_its_line() -> None:
    found = find_lines(RICH, "text")
    assert set(leaves(tomllib.loads(RICH))) <= found.keys()
    expected = {
        "top": 1,
        '"quoted.key"': 2,
        "a.b": 3,
        "text": 4,
        "literal": 8,
        "inline.y.z.1.deep": 11,
        "many.0": 13,
        "many.1.1": 14,
        "many.2.in": 15,
        "table.key": 18,
        'table."in ner".more.date': 20,
        "array.0.one": 22,
        "array.0.sub.1.two": 26,
        "array.1.one": 28,
        "array.1.plain.three": 30,
    }
    assert {path: found[split_path(path)] for path in expected} == expected
    assert not any("nor" in keys or "neither" in keys for keys in found)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_paths_are_read_as_they_are_written(keys: list[str]) -> None:
    keys = [key for key in keys if "\x7f" not in key] or ["a"]
    assert split_path(join_path(keys)) == tuple(keys)


TOML = st.recursive(
    st.integers() | st.booleans() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{join_path([k])} = {as_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(as_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@given(st.dictionaries(st.text(), TOML, max_size=5))
def test_whatever_tomllib_reads_the_scanner_has_lines_for(table: dict[str, Any]) -> None:
    text = "".join(f"{join_path([key])} = {as_toml(value)}\n" for key, value in table.items())
    text = text.replace("\x7f", "")
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:  # Two keys that differed in what was taken out.
        return
    assert set(leaves(read)) <= find_lines(text, "text").keys()


# The schema


def test_the_schema_knows_the_plug_ins_and_is_json() -> None:
    found = json.loads(json.dumps(build_schema(), allow_nan=False))
    assert found["$defs"]["optimizer: tv-gp-ucb"]["properties"]["kind"]["const"] == "tv-gp-ucb"
    assert "channel" in found["$defs"]["expert: truth"]["properties"]
    choices = found["properties"]["environment"]["anyOf"]
    assert {"$ref": "#/$defs/part of environment: synthetic"} in choices
    assert set(Scenario.model_fields) | {"extends", "without"} == found["properties"].keys()


def test_each_reference_of_the_schema_leads_somewhere() -> None:
    found = build_schema()
    references = re.findall(r'"\$ref": "#/\$defs/([^"]*)"', json.dumps(found))
    assert references
    assert set(references) <= found["$defs"].keys()


def test_the_schema_allows_a_bare_number_only_where_one_is_read() -> None:
    found: Any = build_schema()["$defs"]
    transit = found["Channel"]["properties"]["transit"]
    assert {"type": "number"} in transit["anyOf"]
    schedule = found["optimizer: sparq-gp-ucb"]["properties"]["schedule"]
    assert "number" not in json.dumps(schedule)


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    found = build_schema()
    jsonschema.Draft202012Validator.check_schema(found)
    return jsonschema.Draft202012Validator(found)


@pytest.mark.parametrize("file", [FULL, *find_bundled().values()], ids=lambda file: file.stem)
def test_a_scenario_that_plays_fits_the_schema(validator: Any, file: Path) -> None:
    validator.validate(tomllib.loads(file.read_text(encoding="utf-8")))


EXTENDING = f"extends = {json.dumps(str(FULL))}\n"
PARTIAL = SMALL.replace('["uniform"]', '{ a = { kind = "gp-ucb", kernel = { variance = 2 } } }')
SHARING = f"""{PARTIAL}
optimizer_defaults.kernel = {{ kind = "matern-5/2", length_scale = 2 }}
"""


@pytest.mark.parametrize(
    "text",
    [
        EXTENDING + "experts.sensor.channel.noise = 0.3",
        EXTENDING + "experts.sensor.channel.service.sigma = 0.3",
        EXTENDING + "experts.sensor.channel.outages.1.0 = 2.5",
        EXTENDING + 'experts."a second".channel.cost_per_point.values.0 = 0.3',
        EXTENDING + "optimizers.sparq.schedule.factor = 2.0",
        EXTENDING + 'optimizers = ["uniform"]\nwithout = ["sweep"]',
        SHARING,
        SHARING.replace('kind = "matern-5/2", ', "").replace("var", 'kind = "matern-3/2", var'),
        SMALL.replace('kind = "synthetic"', 'kind = "recorded", files = "a.csv", years = 2016'),
    ],
)
def test_a_table_that_is_laid_over_another_fits_the_schema_in_part(
    validator: Any, tmp_path: Path, text: str
) -> None:
    Scenario.load(write(tmp_path, text))
    validator.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        EXTENDING + "experts.sensor.channel.nois = 0.3",
        EXTENDING + "experts.sensor.channel.service.sigmas = 0.3",
        EXTENDING + 'experts.sensor.channel.outages.1.0 = "late"',
        EXTENDING + 'experts.sensor.channel.noise = "much"',
        EXTENDING + 'experts.sensor.kind = "trooth"',
        EXTENDING + 'optimizers.sparq.schedule.factor = "x"',
        EXTENDING + 'optimizers = ["unifrom"]',
        EXTENDING + "round = 5",
        EXTENDING + 'rounds = "5"',
        SHARING.replace("variance", "varianse"),
        SHARING.replace("length_scale", "length_scales"),
        SHARING.replace("matern-5/2", "matern-6/2"),
        SHARING.replace('kind = "gp-ucb", ', ""),
        SHARING.replace("optimizer_defaults.kernel", "thinking"),
        SMALL.replace('{ kind = "synthetic" }', "{ variance = 2 }"),
        PARTIAL,
        SMALL.replace("optimizers", "optimizer"),
        SMALL + 'experts.a = { kind = "truth", channel.transit = { high = 2 } }',
        SMALL + "experts.a.channel.noise = 2",
    ],
)
def test_a_mistake_does_not_fit_the_schema(validator: Any, tmp_path: Path, text: str) -> None:
    assert problems(write(tmp_path, text))
    assert not validator.is_valid(tomllib.loads(text))


# Mutations

TEXT = FULL.read_text(encoding="utf-8")
WORDS = st.sampled_from(
    [
        *("-1", "0", "1e400", "nan", "inf", '""', '"x"', "true", "[]", "{}", "1979-05-27"),
        *('{ kind = "constant" }', "{ kind = 3 }", '["a", "a"]', "[[1]]", '"\\u0000"'),
        "0x" + "f" * 5000,
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    rows = TEXT.splitlines()
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(rows) - 1))
        row = rows[place]
        way = draw(st.sampled_from(["delete", "repeat", "rename", "value", "swap", "key", "inner"]))
        match way:
            case "delete":
                del rows[place]
            case "repeat":
                rows.insert(draw(st.integers(0, len(rows))), row)
            case "rename":
                at = draw(st.integers(0, len(row)))
                rows[place] = row[:at] + draw(st.text(max_size=3)) + row[at + 1 :]
            case "value":
                rows[place] = f"{row.partition('=')[0]} = {draw(WORDS)}"
            case "inner":
                spots = list(re.finditer(r"= ([^,={}]+)(?=[,}])", row))
                if spots:
                    spot = draw(st.sampled_from(spots))
                    rows[place] = row[: spot.start(1)] + draw(WORDS) + row[spot.end(1) :]
            case "swap":
                other = draw(st.integers(0, len(rows) - 1))
                rows[place], rows[other] = rows[other], row
            case "key":
                rows.insert(place, f"{draw(st.sampled_from(KEYS))} = {draw(WORDS)}")
        rows = rows or [""]
    content = "\n".join(rows).encode(errors="replace")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(max_size=5)) + content[at:]
    return content


KEYS = ["kind", "extends", "sweep", "experts", "optimizers", "channel", "feedback.noise", "a.b.c"]


def accepted_or_told(folder: Path, content: bytes) -> None:
    file = write(folder, content)
    told: tuple[str, ...] = ()
    try:
        scenario = Scenario.load(file)
    except ScenarioError as error:
        told = error.problems or ("nothing is told",)
    for line in told:
        assert re.fullmatch(rf"{re.escape(str(file))}:\d+: .+", line), line
    if not told:
        for _, each in scenario.settings():
            for name in each.optimizers:
                json.dumps(each.fingerprint(name), allow_nan=False)


@settings(max_examples=100)
@given(content=mutated())
def test_a_mutated_file_is_accepted_or_told_with_file_and_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    accepted_or_told(tmp_path_factory.getbasetemp(), content)


@pytest.mark.slow
@settings(max_examples=2000, derandomize=False)
@given(content=mutated() | st.binary(max_size=300))
def test_of_two_thousand_mutated_files_check_accepts_or_explains_each(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = write(tmp_path_factory.getbasetemp(), content)
    said = StringIO()
    with redirect_stderr(said), redirect_stdout(StringIO()), pytest.raises(SystemExit) as ended:
        main(["check", str(file)])
    assert ended.value.code in (0, None, 2)
    if ended.value.code == 2:
        for line in said.getvalue().removeprefix("Error: ").splitlines():
            assert re.match(rf"{re.escape(str(file))}:\d+: ", line), line


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


def test_files_are_sought_beside_the_scenario(tmp_path: Path) -> None:
    file = tmp_path / "record.toml"
    file.write_text(
        'rounds = 3\nenvironment = { kind = "recorded", files = ["a.csv", "b/*.csv"] }\n'
        'optimizers = ["uniform"]\n'
    )
    files = Scenario.load(file).resolve()["environment"]["files"]  # type: ignore[index]
    assert files == [str(tmp_path / "a.csv"), str(tmp_path / "b/*.csv")]
