from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparq_sim import PluginError, __version__
from sparq_sim.cli.main import app, main

runner = CliRunner()
SMALL = ["--set", "rounds=30", "--set", "replications=2", "--executor", "in-process"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies") / "small"
    result = runner.invoke(app, ["run", "synthetic", "--out", str(folder), *SMALL])
    assert result.exit_code == 0, result.output
    assert "8 plays in" in result.output
    for words in ("uniform", "sparq-gp-ucb", "best fixed point", "one round late"):
        assert words in result.output
    return folder


def ends_with(code: int, *arguments: str) -> str:
    """Run the command as a user does, and give what it said."""
    ran = subprocess.run(
        [sys.executable, "-m", "sparq_sim", *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    return ran.stdout + ran.stderr


def test_what_was_played_is_found_again(study: Path) -> None:
    result = runner.invoke(app, ["run", "synthetic", "--out", str(study), *SMALL])
    assert "0 plays in" in result.output
    assert "8 reused" in result.output


def test_compare_gives_one_object_an_optimizer(study: Path) -> None:
    rows = json.loads(runner.invoke(app, ["compare", str(study), "--json"]).output)
    assert {row["optimizer"] for row in rows} == {"uniform", "gp-ucb", "tv-gp-ucb", "sparq-gp-ucb"}
    for row in rows:
        assert row["average_regret_low"] <= row["average_regret"] <= row["average_regret_high"]
        assert row.keys() >= {"exponent", "asked_per_round", "spent", "plays"}
    assert "sparq-gp-ucb" in runner.invoke(app, ["compare", str(study)]).output


def test_reference_levels_can_be_left_out_of_table_and_report(tmp_path: Path) -> None:
    out = ["--out", str(tmp_path), "--set", "optimizers=['uniform']"]
    with_levels = runner.invoke(app, ["run", "synthetic", *out, *SMALL])
    assert "best fixed point" in with_levels.output
    shown = (tmp_path / "report.html").read_text(encoding="utf-8")
    without = runner.invoke(app, ["run", "synthetic", *out, *SMALL, "--set", "levels=false"])
    assert without.exit_code == 0, without.output
    assert "2 reused" in without.output
    assert "best fixed point" not in without.output
    assert runner.invoke(app, ["report", str(tmp_path)]).exit_code == 0
    left_out = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert shown.count("best fixed point") > left_out.count("best fixed point")


def test_reference_levels_of_a_part_are_told_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dear.py").write_text(
        "from sparq_sim.testing import Slope\n\n\n"
        'class Dear(Slope):\n    """A slope that is dear to evaluate."""\n'
        "    level_evaluations = 1000\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "dear.toml"
    file.write_text('rounds = 30\nenvironment.kind = "dear:Dear"\noptimizers = ["uniform"]\n')
    out = ["--out", str(tmp_path / "out"), "--allow-import", "--executor", "in-process"]
    said = runner.invoke(app, ["run", str(file), *out]).output
    told = "reference levels are estimated from 3 of 30 rounds at 268 points"
    assert f"Note: {told}" in said
    assert told in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_sweep_gives_a_row_a_setting(tmp_path: Path) -> None:
    overrides = ["--set", "sweep.'feedback.noise'=[0.1, 0.2]", "--set", "optimizers=['uniform']"]
    out = ["--out", str(tmp_path / "swept")]
    result = runner.invoke(app, ["run", "synthetic", *out, *SMALL, *overrides])
    assert result.exit_code == 0, result.output
    rows = json.loads(runner.invoke(app, ["compare", str(tmp_path / "swept"), "--json"]).output)
    assert [row["feedback.noise"] for row in rows] == [0.1, 0.2]


def test_another_scenario_into_the_same_folder_is_refused_unless_it_is_meant(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "study"
    command = ["run", "synthetic", "--out", str(folder), "--executor", "in-process", "--no-report"]
    command += ["--set", "replications=1", "--set", "optimizers=['uniform']"]
    ends_with(0, *command, "--set", "rounds=25")
    said = ends_with(2, *command, "--set", "rounds=30")
    assert said.startswith(f"Error: {folder} holds another scenario")
    assert "rounds was 25 then and is 30 now" in said
    left_out = "Note: left out 1 play of other scenarios"
    assert left_out in ends_with(0, *command, "--set", "rounds=30", "--into")
    for reading in (
        ["compare", str(folder)],
        ["compare", str(folder), "--json"],
        ["export", str(folder), str(tmp_path / "table.csv")],
    ):
        result = runner.invoke(app, reading)
        assert left_out in result.stderr
        assert left_out not in result.stdout
    (row,) = json.loads(runner.invoke(app, ["compare", str(folder), "--json"]).stdout)
    assert row["plays"] == 1
    runner.invoke(app, ["report", str(folder), "--no-replays"])
    assert "left out 1 play of other scenarios" in (folder / "report.html").read_text()


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_a_study_is_exported(study: Path, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"table.{ending}"
    result = runner.invoke(app, ["export", str(study), str(file), "--what", "rounds"])
    assert result.exit_code == 0, result.output
    assert file.stat().st_size > 1000


def test_a_play_is_reproduced_to_the_last_bit(study: Path) -> None:
    file = next((study / "rounds").glob("*.parquet"))
    result = runner.invoke(app, ["reproduce", str(file)])
    assert result.exit_code == 0, result.output
    assert "identical" in result.output


def test_a_play_is_found_from_within_its_folder(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = next((study / "rounds").glob("*.parquet"))
    monkeypatch.chdir(study / "rounds")
    assert runner.invoke(app, ["diff", file.name, file.name]).output.strip() == "identical"


def test_a_file_that_is_no_play_is_refused(study: Path, tmp_path: Path) -> None:
    script = tmp_path / "t.sh"
    script.touch()
    for file in (script, study / "scenario.json"):
        assert f"{file} is not a stored play" in ends_with(2, "reproduce", str(file))


def test_an_export_to_no_folder_is_refused(study: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "none" / "a.csv")
    assert f"cannot write {file}: No such file" in ends_with(2, "export", str(study), file)


def test_two_plays_are_compared_record_by_record(study: Path) -> None:
    one, other, *_ = sorted((study / "rounds").glob("*.parquet"))
    assert runner.invoke(app, ["diff", str(one), str(one)]).output.strip() == "identical"
    result = runner.invoke(app, ["diff", str(one), str(other)])
    assert result.exit_code == 1
    assert re.search(r"rounds, row \d+ \(round \d+\): |only one has the column", result.output)


def test_list_names_what_is_installed() -> None:
    everything = runner.invoke(app, ["list"]).output
    for words in ("environments: ", "synthetic", "truth", "sparq-gp-ucb", "draws: constant"):
        assert words in everything


@pytest.mark.parametrize(
    ("sort", "name", "about"),
    [
        ("scenarios", "synthetic", "The paper's synthetic function"),
        ("experts", "truth", "Knows the current reward"),
        ("draws", "constant", "The same *value* each time."),
        ("losses", "bursts", "Loss in bursts"),
        ("kernels", "matern-1/2", "A kernel of rough rewards"),
    ],
)
def test_a_list_of_one_sort_has_a_line_about_each(sort: str, name: str, about: str) -> None:
    lines = runner.invoke(app, ["list", sort]).output.splitlines()
    width = max(len(line.split()[0]) for line in lines)
    assert any(line.startswith(f"{name:{width}}  {about}") for line in lines)


def test_show_tells_the_fields_of_a_plugin_and_the_whole_of_a_scenario() -> None:
    shown = runner.invoke(app, ["show", "optimizer", "sparq-gp-ucb"]).output
    assert "Algorithm 1" in shown
    assert "schedule = " in shown
    assert "how many points to ask about" in shown
    resolved = json.loads(runner.invoke(app, ["show", "synthetic", "--set", "rounds=7"]).output)
    assert resolved["rounds"] == 7
    assert resolved["period"] == 1.0
    assert runner.invoke(app, ["show", "optimizers", "sparq-gp-ucb"]).output == shown
    assert "length_scale = 1.0" in runner.invoke(app, ["show", "kernel", "matern-5/2"]).output
    assert "lost_in_bad = 1.0" in runner.invoke(app, ["show", "losses", "bursts"]).output


def test_check_accepts_what_is_valid_and_tells_all_that_is_wrong(tmp_path: Path) -> None:
    assert ends_with(0, "check", "synthetic") == "synthetic: valid, 1 setting\n"
    broken = tmp_path / "broken.toml"
    broken.write_text(
        'rounds = 5\nenvironment.kind = "synthetik"\noptimizers = ["uniform"]\nfeedback.nois = 1\n'
    )
    said = ends_with(2, "check", str(broken))
    assert f"{broken}:2" in said
    assert "did you mean 'synthetic'" in said
    assert f"{broken}:4" in said
    assert "did you mean 'noise'" in said


def test_code_that_a_file_names_is_checked_and_shown_where_allowed(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    code = "sparq_sim.optimizers.uniform:Uniform"
    file.write_text(
        f'rounds = 5\nenvironment.kind = "synthetic"\noptimizers.own.kind = "{code}"\n'
        "sweep.rounds = [5, 6]\n"
    )
    assert "add --allow-import" in ends_with(2, "check", str(file))
    assert "valid, 2 settings" in ends_with(0, "check", str(file), "--allow-import")
    assert '"own"' in ends_with(0, "show", str(file), "--allow-import")
    assert "drawn uniformly" in ends_with(0, "show", "optimizer", code, "--allow-import")
    with file.open("a") as more:
        more.write("optimizers.own.x = 1\n")
    assert "no such field; there are: kind" in ends_with(2, "check", str(file), "--allow-import")


def test_the_schema_is_json() -> None:
    assert "environment" in json.loads(runner.invoke(app, ["schema"]).output)["properties"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "synthetik"], "did you mean 'synthetic'"),
        (["run", "synthetic.toml"], "the bundled scenario is called 'synthetic', without .toml"),
        (["run", "synthetic", "--executor", "daks"], "did you mean 'dask'"),
        (["show", "optimizer"], "say which optimizer"),
        (["show", "optimizer", "sparq"], "no optimizer is called 'sparq'"),
        (["compare", "no-such-folder"], "no-such-folder"),
        (["reproduce", "no-such-file"], "give one from the folder `rounds`"),
    ],
)
def test_what_a_user_can_mend_is_said_plainly_with_exit_code_2(
    arguments: list[str], words: str
) -> None:
    assert words in ends_with(2, *arguments)


def test_the_version_is_that_of_the_package() -> None:
    from importlib.metadata import version

    assert runner.invoke(app, ["--version"]).output.strip() == __version__ == version("sparq-sim")


def test_an_error_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(arguments: object) -> None:
        raise PluginError("no expert is called 'thruth'")

    monkeypatch.setattr("sparq_sim.cli.main.app", refuse)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "Error: no expert is called 'thruth'\n"


def test_a_new_expert_is_made_installed_and_played_in_three_commands(tmp_path: Path) -> None:
    site = tmp_path / "site"
    environment = {**os.environ, "PYTHONPATH": str(site)}
    sparq_sim = [sys.executable, "-m", "sparq_sim"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    commands = [
        [*sparq_sim, "new", "expert", "my-expert"],
        [*pip, "--no-index", "--target", str(site), "./my-expert"],
        [*sparq_sim, "run", "my-expert/scenario.toml", "--set", "rounds=30"],
    ]
    for command in commands:
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert "average regret" in ran.stdout
    assert list((tmp_path / "studies" / "scenario" / "rounds").glob("*.parquet"))
