"""A folder holds one scenario, or several that were meant; what is out of date is set aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import sparq_sim
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.differences import find_difference
from sparq_sim.study.executors import InProcess
from sparq_sim.study.progress import Progress, RunReport
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study


def scenario(**fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "title": "small",
        "rounds": 3,
        "environment": {"kind": "synthetic"},
        "optimizers": {"careless": {"kind": "uniform"}, "still": {"kind": "fixed", "point": [0.5]}},
    }
    return Scenario(**chosen | fields)


def run(folder: Path, *, into: bool = False, **fields: Any) -> RunReport:
    return Study(scenario(**fields), folder, into=into).run(InProcess())


def rows(folder: Path, *columns: str) -> set[tuple[object, ...]]:
    """Give what a reader of all files finds in *columns*, each combination once."""
    files = sorted((folder / "rounds").glob("*.parquet"))
    return {
        tuple(row.get(name) for name in columns)
        for file in files
        for row in pq.read_table(file).to_pylist()
    }


# What is refused


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"rounds": 4}, "scenario: rounds was 3 then and is 4 now"),
        ({"rounds": 4, "title": "long"}, "scenario, 'small': rounds was 3 then and is 4 now"),
        (
            {"environment": {"kind": "moving-peaks"}},
            "environment.kind was 'synthetic' then and is 'moving-peaks' now",
        ),
        ({"experts": {"sage": {"kind": "truth"}}}, "experts.sage was absent then and is {'kind'"),
        ({"feedback": {"loss": 0.5}}, "feedback.loss"),
        ({"rounds": 4, "optimizers": {"new": {"kind": "uniform"}}}, "rounds was 3 then"),
        ({"rounds": 4, "sweep": {"feedback.noise": [0.1, 0.2]}}, "rounds was 3 then"),
    ],
)
def test_another_scenario_is_refused_and_nothing_is_written(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    run(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    with pytest.raises(StoreError) as refused:
        run(tmp_path, **fields)
    said = str(refused.value)
    assert said.startswith(f"{tmp_path} holds another scenario")
    assert told in said
    assert "--out" in said
    assert "--into (in Python, Study(..., into=True))" in said
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == before


def test_a_folder_without_a_description_refuses_too(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "scenario.json").unlink()
    with pytest.raises(StoreError, match="rounds was 3 then and is 4 now"):
        run(tmp_path, rounds=4)
    assert run(tmp_path).resumed == 2


def test_one_play_without_a_description_tells_its_scenario(tmp_path: Path) -> None:
    alone: dict[str, Any] = {"optimizers": {"careless": {"kind": "uniform"}}}
    run(tmp_path, **alone)
    described = json.loads((tmp_path / "scenario.json").read_text())
    assert described["version"] == sparq_sim.__version__
    (tmp_path / "scenario.json").unlink()
    with pytest.raises(StoreError, match="'small': rounds was 3 then and is 4 now"):
        run(tmp_path, rounds=4, title="long", **alone)


def test_another_parameter_of_an_optimizer_is_refused_unless_it_has_a_name_of_its_own(
    tmp_path: Path,
) -> None:
    run(tmp_path)
    moved = {"kind": "fixed", "point": [0.75]}
    with pytest.raises(
        StoreError, match=r"'still' with other parameters.* a name of its own"
    ) as no:
        run(tmp_path, optimizers={"still": moved})
    assert "optimizers.still.point.0 was 0.5 then and is 0.75 now" in str(no.value)
    assert run(tmp_path, optimizers={"still-there": moved}).done == 1


def test_a_file_of_another_content_is_another_scenario(tmp_path: Path) -> None:
    file = tmp_path / "record.csv"

    def readings(value: int) -> dict[str, Any]:
        days = [
            f"2020-01-{day:02},{site},1,{site},{value}" for day in range(1, 9) for site in (1, 2)
        ]
        file.write_text("\n".join(["date,site,lat,lon,value", *days]))
        recorded = {"kind": "recorded", "files": [str(file)]}
        return {"environment": recorded, "optimizers": ["uniform"]}

    run(tmp_path / "study", **readings(1))
    with pytest.raises(StoreError, match=r"what is in \S*record\.csv has changed"):
        run(tmp_path / "study", **readings(2))


# What belongs there


def test_a_folder_in_which_nothing_was_finished_takes_another_scenario(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Study(scenario(), tmp_path).run(InProcess(), watch=interrupt)
    assert (tmp_path / "scenario.json").exists()
    assert run(tmp_path, rounds=4).done == 2


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"replications": 2},
        {"seed": 5},
        {"title": "other words"},
        {"record": "full"},
        {"optimizers": {"careless": {"kind": "uniform"}}},
        {"optimizers": {"careless": {"kind": "uniform"}, "new": {"kind": "uniform"}}},
        {"optimizers": {"new": {"kind": "uniform"}}},
        {"sweep": {"feedback.noise": [0.0, 0.2]}},
    ],
)
def test_the_same_scenario_goes_on(tmp_path: Path, fields: dict[str, Any]) -> None:
    run(tmp_path)
    study = Study(scenario(**fields), tmp_path)
    study.run(InProcess())
    assert study.missing() == []


@pytest.mark.parametrize(
    "values",
    [[0.1, 0.2, 0.3], [0.3, 0.1], [0.3], [{"kind": "bounded", "std": 0.1}]],
)
def test_other_values_of_a_sweep_belong_to_the_same_scenario(
    tmp_path: Path, values: list[object]
) -> None:
    run(tmp_path, sweep={"feedback.noise": [0.1, 0.2]})
    assert run(tmp_path, sweep={"feedback.noise": values}).done == 2 * len(values)
    assert len(rows(tmp_path, "scenario")) == 1


def test_a_field_that_is_new_since_makes_no_other_scenario() -> None:
    here = scenario().fingerprint("careless")
    there = json.loads(json.dumps(here))
    del there["feedback"]["loss"]
    assert find_difference(there, here) is None
    there["feedback"]["loss"] = 0.5
    found = find_difference(there, here)
    assert found is not None
    assert found.keys[:2] == ("feedback", "loss")


# Both in one folder


def test_two_scenarios_that_are_meant_live_in_one_folder_and_are_told_apart(tmp_path: Path) -> None:
    run(tmp_path)
    report = run(tmp_path, rounds=4, into=True)
    left_out = (
        f"left out 2 plays of other scenarios, optimizers, settings or versions in {tmp_path}"
    )
    assert (report.done, report.resumed, report.notes) == (2, 0, (left_out,))
    study = Results.open(tmp_path)
    assert (len(study.plays()), study.notes) == (2, (left_out,))
    both = {scenario().identity(), scenario(rounds=4).identity()}
    assert rows(tmp_path, "scenario") == {(name,) for name in both}
    table = ds.dataset(tmp_path / "rounds").to_table(columns=["scenario", "round"])
    longest = table.group_by("scenario").aggregate([("round", "max")]).to_pydict()
    assert sorted(longest["round_max"]) == [3, 4]


def test_what_was_meant_once_needs_not_be_said_again(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path, rounds=4, into=True)
    assert run(tmp_path).resumed == 2
    assert run(tmp_path, rounds=4, replications=2).resumed == 2
    with pytest.raises(StoreError, match="another scenario"):
        run(tmp_path, rounds=5)


def test_other_parameters_that_are_meant_set_the_plays_of_before_aside(tmp_path: Path) -> None:
    run(tmp_path)
    report = run(tmp_path, optimizers={"still": {"kind": "fixed", "point": [0.75]}}, into=True)
    assert report.notes[0] == (
        "set aside 1 play: optimizers.still.point.0 was 0.5 then and is 0.75 now"
    )
    points = {x for optimizer, x in rows(tmp_path, "optimizer", "x") if optimizer == "still"}
    assert points == {0.75}


def test_a_play_that_a_new_sweep_takes_over_has_its_labels(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"feedback": {"noise": 0.1}, "record": "full"}
    swept: dict[str, Any] = {**fields, "sweep": {"feedback.noise": [0.1, 0.2]}}
    for folder in (tmp_path / "small", tmp_path / "compacted"):
        run(folder, **fields)
        if folder.name == "compacted":
            Results.open(folder).compact()
        report = run(folder, **swept)
        assert (report.done, report.resumed, report.notes) == (4, 2, ())
        labels = {(f'{{"feedback.noise":{noise}}}', noise) for noise in (0.1, 0.2)}
        assert rows(folder, "setting", "feedback.noise") == labels
        assert rows(folder, "scenario") == {(scenario(**swept).identity(),)}
        assert sum(len(pq.read_table(file)) for file in (folder / "rounds").iterdir()) == 4 * 3
        assert {play.setting["feedback.noise"] for play in Results.open(folder).plays()} == {
            0.1,
            0.2,
        }


# What is out of date


def test_plays_of_another_version_are_set_aside_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, record="full", replications=2)
    before = sorted(path.read_bytes() for path in tmp_path.rglob("*.parquet"))
    monkeypatch.setattr(sparq_sim, "__version__", "9.9")
    report = run(tmp_path, record="full")
    assert (report.done, report.resumed) == (2, 0)
    version = "sparq-sim was 0.1.0 then and is 9.9 now"
    assert report.notes == (f"set aside 4 plays: {version}",)
    assert sorted(path.read_bytes() for path in (tmp_path / "set-aside").iterdir()) == before
    assert len(list((tmp_path / "rounds").iterdir())) == 2
    assert Results.open(tmp_path).notes == ()
    assert run(tmp_path, record="full").notes == ()


def test_a_compacted_file_is_set_aside_if_all_its_plays_are_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    Results.open(tmp_path).compact()
    monkeypatch.setattr(sparq_sim, "__version__", "9.9")
    assert run(tmp_path).notes[0].startswith("set aside 2 plays: ")
    (name,) = (path.name for path in (tmp_path / "set-aside").iterdir())
    assert name.startswith("rounds-compact-")


def test_a_compacted_file_that_holds_others_too_stays_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    run(tmp_path, rounds=4, into=True)
    Results.open(tmp_path).compact()
    monkeypatch.setattr(sparq_sim, "__version__", "9.9")
    report = run(tmp_path, rounds=4)
    assert report.notes[0].startswith("left out 2 plays in compacted files, which hold others too")
    assert report.notes[1].startswith("left out 2 plays of other scenarios")
    assert report.done == len(Results.open(tmp_path).plays()) == 2


def test_plays_that_do_not_tell_their_source_are_set_aside(of_before: Path) -> None:
    sweep = {"feedback.noise": [0.1, 0.2, 0.3]}
    again = scenario(title="of before", optimizers=["uniform"], sweep=sweep)
    report = Study(again, of_before).run(InProcess())
    reason = "the source of the code that played them was not noted then"
    assert (report.done, report.notes) == (3, (f"set aside 3 plays: {reason}",))
    assert len(list((of_before / "set-aside").iterdir())) == 2
