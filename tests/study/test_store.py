from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparq_sim.analysis.summary import summary
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import WALL
from sparq_sim.study.results import Results
from sparq_sim.study.store import FORMAT, FolderStore, StoreError, encode, keys
from sparq_sim.study.store.files import temporary_name
from sparq_sim.study.store.folder import compact
from sparq_sim.study.store.keys import list_plugins, name_family, name_play
from sparq_sim.study.store.protocol import read_play
from sparq_sim.study.store.provenance import describe_play


def scenario(**fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "title": "tiny",
        "rounds": 25,
        "environment": {"kind": "synthetic"},
        "feedback": {"noise": 0.1},
        "experts": {"sage": {"kind": "truth", "channel": {"noise": 0.1, "cost": 0.1, "loss": 0.2}}},
        "optimizers": ["uniform", "sparq-gp-ucb"],
        "record": "full",
    }
    return Scenario(**{**chosen, **fields})


def stored(
    folder: Path, replication: int = 0, optimizer: str = "sparq-gp-ucb", **fields: Any
) -> tuple[str, str]:
    """Play and store; give the key and the digest."""
    played = scenario(**fields)
    trace = played.play(optimizer, replication)
    told = describe_play(played, optimizer, replication, trace, setting={"a.b": 1.5})
    home = FolderStore(folder)
    home.prepare()
    home.keep(encode(trace, told))
    return told.play.key, trace.digest()


# There and back


@pytest.mark.parametrize("record", ["rounds", "full"])
def test_a_play_comes_back_to_the_last_bit(tmp_path: Path, record: str) -> None:
    key, digest = stored(tmp_path, 3, record=record)
    again = read_play(FolderStore(tmp_path), key)
    trace = scenario().play("sparq-gp-ucb", 3)
    for name in trace.rounds.keys() - {WALL}:
        np.testing.assert_array_equal(again.trace.rounds[name], trace.rounds[name])
    assert again.provenance.summary.digest == digest
    assert (again.trace.digest() == digest) == (record == "full")
    assert (tmp_path / "replies" / f"{key}.parquet").exists() == (record == "full")


def test_odd_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    played = scenario()
    trace = played.play("uniform")
    odd = np.array([-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324] + [0.1] * 18)
    odd[3] = np.array([0x7FF8_0000_0000_0007]).view(float)[0]
    trace.rounds["reward"][:] = odd
    told = describe_play(played, "uniform", 0, trace, setting={})
    FolderStore(tmp_path).prepare()
    FolderStore(tmp_path).keep(encode(trace, told))
    again = read_play(FolderStore(tmp_path), told.play.key).trace
    assert again.rounds["reward"].tobytes() == odd.tobytes()
    assert again.digest() == trace.digest()


def test_every_row_tells_its_scenario_optimizer_setting_seed_and_replication(
    tmp_path: Path,
) -> None:
    key, _ = stored(tmp_path, 2, seed=7)
    for kind in ("rounds", "replies"):
        table = pq.read_table(tmp_path / kind / f"{key}.parquet")
        told = {
            "scenario": scenario().identity(),
            "optimizer": "sparq-gp-ucb",
            "setting": '{"a.b":1.5}',
            "seed": 7,
            "replication": 2,
            "a.b": 1.5,
        }
        assert table.select([*told]).slice(0, 1).to_pylist() == [told]
        assert len(table.select([*told]).group_by([*told]).aggregate([])) == 1


@pytest.mark.parametrize("name", ["scenario", "setting", "seed", "optimizer", "a.b"])
def test_a_coordinate_called_as_a_column_of_labels_is_refused(name: str) -> None:
    played = scenario()
    trace = played.play("uniform")
    told = describe_play(played, "uniform", 0, trace, setting={"a.b": 1.5})
    trace = replace(trace, rounds={**trace.rounds, name: trace.rounds["reward"]})
    with pytest.raises(StoreError, match=f"two columns would be called '{name}'"):
        encode(trace, told)


def test_provenance_tells_what_was_played_and_with_what(tmp_path: Path) -> None:
    key, _ = stored(tmp_path, 1)
    told = read_play(FolderStore(tmp_path), key).provenance
    assert told.fingerprint == json.loads(json.dumps(scenario().fingerprint("sparq-gp-ucb")))
    assert (told.play.seed, told.play.replication) == (0, 1)
    assert {"python", "numpy", "sparq-sim"} <= told.machine.versions.keys()
    assert told.machine.cpu
    assert {each["class"].split(":")[1] for each in told.plugins} >= {"Synthetic", "Truth"}
    assert all(each["distribution"] == "sparq-sim" for each in told.plugins)


def test_keys_differ_by_all_that_makes_another_play() -> None:
    plugins = list_plugins(scenario(), "uniform")
    told = scenario().fingerprint("uniform")
    one = name_family("uniform", told, plugins)
    assert one == name_family("uniform", scenario().fingerprint("uniform"), plugins)
    others = {
        name_family("another", told, plugins),
        name_family("uniform", scenario(rounds=26).fingerprint("uniform"), plugins),
        name_family("uniform", told, plugins[:1]),
        name_family("uniform", told, [{**plugins[0], "version": "9"}]),
    }
    assert len(others | {one}) == 5
    assert len({name_play(one, 0, 0), name_play(one, 0, 1), name_play(one, 1, 0)}) == 3


# What does not belong there


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    """Change the last byte of the last column."""
    chunk = pq.read_metadata(path).row_group(0)
    last = chunk.column(chunk.num_columns - 1)
    content = bytearray(path.read_bytes())
    content[last.data_page_offset + last.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def replace_by_foreign_table(path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), path)


def take_away_provenance(path: Path) -> None:
    pq.write_table(pq.read_table(path).replace_schema_metadata({"sparq_sim": "[]"}), path)


@pytest.mark.parametrize("kind", ["rounds", "replies"])
@pytest.mark.parametrize(
    "damage", [truncate, flip, empty, replace_by_foreign_table, take_away_provenance]
)
def test_an_unfit_file_is_named_and_set_aside(
    tmp_path: Path, damage: Callable[[Path], None], kind: str
) -> None:
    key, _ = stored(tmp_path)
    good, _ = stored(tmp_path, 1)
    path = tmp_path / kind / f"{key}.parquet"
    damage(path)
    spoilt = path.read_bytes()
    home = FolderStore(tmp_path)
    with pytest.raises(StoreError, match=key):
        read_play(home, key)
    assert home.finished(verify=[key, good]).keys() == {good}
    assert any(str(path) in note for note in home.notes)
    kept = [each.read_bytes() for each in (tmp_path / "set-aside").iterdir()]
    assert spoilt in kept


def test_foreign_files_are_set_aside_unharmed_and_under_names_of_their_own(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    for _ in range(2):
        (tmp_path / "rounds" / "diary.txt").write_text("dear diary")
        (tmp_path / "rounds" / "folder.parquet").mkdir()
        home = FolderStore(tmp_path)
        assert home.finished().keys() == {key}
        assert "diary.txt" in home.notes[0]
    aside = sorted((tmp_path / "set-aside").iterdir())
    assert len(aside) == 4
    assert [p.read_text() for p in aside if p.is_file()] == ["dear diary"] * 2


def test_a_file_under_another_play_s_name_is_set_aside(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    other = tmp_path / "rounds" / f"{'0' * 32}.parquet"
    other.write_bytes((tmp_path / "rounds" / f"{key}.parquet").read_bytes())
    home = FolderStore(tmp_path)
    assert home.finished().keys() == {key}
    assert "not the one it is called after" in home.notes[0]


def test_another_format_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = stored(tmp_path)
    monkeypatch.setattr(keys, "FORMAT", FORMAT + 1)
    with pytest.raises(StoreError, match=rf"{key}.*format 2.*reads format 3.*another folder"):
        FolderStore(tmp_path).finished()
    assert (tmp_path / "rounds" / f"{key}.parquet").exists()


def test_a_study_of_before_reads_as_those_of_now(of_before: Path) -> None:
    study = Results.open(of_before)
    assert (study.title, study.notes) == ("of before", ())
    assert [row.setting["feedback.noise"] for row in summary(study)] == [0.1, 0.2, 0.3]
    for play in study.plays():
        assert study.read(play).trace.digest() == study.read(play).provenance.contents.rounds_digest
    rows = study.table().select(["scenario", "setting", "seed", "round", "feedback.noise"])
    assert rows.slice(0, 1).to_pylist() == [
        {"scenario": "", "setting": '{"feedback.noise":0.1}', "seed": 0}
        | {"round": 1, "feedback.noise": 0.1}
    ]


def test_a_study_of_before_is_compacted_with_the_columns_of_now(of_before: Path) -> None:
    before = Results.open(of_before).table()
    Results.open(of_before).compact()
    (file,) = (of_before / "rounds").iterdir()
    assert {"scenario", "setting", "seed"} <= set(pq.read_schema(file).names)
    assert Results.open(of_before).table().equals(before)


# Disks


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_trouble_with_the_disk_is_named_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, call: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(StoreError, match=errno.errorcode[number]):
        stored(tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("no folder")
    with pytest.raises(StoreError, match=r"study.*(NOTDIR|EXIST)"):
        FolderStore(tmp_path / "study").prepare()
    with pytest.raises(StoreError, match="not a folder"):
        FolderStore(tmp_path / "study").finished()


def test_leftovers_of_dead_writers_are_removed_and_of_living_ones_kept(tmp_path: Path) -> None:
    home = FolderStore(tmp_path)
    home.prepare()
    mine = temporary_name(tmp_path / "rounds" / "x.parquet")
    dead = mine.with_name(mine.name.replace(f".{os.getpid()}.", ".4194305."))
    for path in (mine, dead):
        path.touch()
    home.prepare()
    assert (mine.exists(), dead.exists()) == (True, False)


# Compacting


def test_compacted_plays_read_as_before(tmp_path: Path) -> None:
    plays = [stored(tmp_path, r, name) for r in range(3) for name in ("uniform", "sparq-gp-ucb")]
    tables = [FolderStore(tmp_path).load(key, "replies") for key, _ in plays]
    compact(home := FolderStore(tmp_path))
    assert home.notes == []
    assert [len(list((tmp_path / kind).iterdir())) for kind in ("rounds", "replies")] == [1, 1]
    home = FolderStore(tmp_path)
    found = home.finished(verify=[key for key, _ in plays])
    assert {key: found[key].digest for key in found} == dict(plays)
    for (key, digest), table in zip(plays, tables, strict=True):
        assert read_play(home, key).trace.digest() == digest
        again = home.load(key, "replies")
        assert again.schema == table.schema
        assert repr(again.to_pydict()) == repr(table.to_pydict())
    (file,) = (tmp_path / "rounds").iterdir()
    assert pq.ParquetFile(file).num_row_groups == len(plays)
    assert home.notes == []


def test_compacting_again_takes_in_what_came_later_and_repeats_nothing(tmp_path: Path) -> None:
    plays = dict([stored(tmp_path, 0), stored(tmp_path, 1)])
    compact(FolderStore(tmp_path))
    plays |= dict([stored(tmp_path, 1), stored(tmp_path, 2, record="rounds")])
    compact(FolderStore(tmp_path))
    compact(FolderStore(tmp_path))
    found = FolderStore(tmp_path).finished(verify=plays)
    assert {key: each.digest for key, each in found.items()} == plays
    (file,) = (tmp_path / "rounds").iterdir()
    assert len(pq.read_table(file)) == 3 * 25


def test_a_spoilt_compacted_file_is_set_aside(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    compact(FolderStore(tmp_path))
    (file,) = (tmp_path / "rounds").iterdir()
    flip(file)
    home = FolderStore(tmp_path)
    assert home.finished(verify=[key]) == {}
    assert file.name in home.notes[0]
