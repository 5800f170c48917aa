"""What experts leave is kept beside replies, and comes back as it was."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sparq_sim import Channel, Rules, Trace, play
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import FolderStore, StoreError, decode, encode
from sparq_sim.study.store.folder import compact, relabel, retire
from sparq_sim.study.store.protocol import read_play
from sparq_sim.study.store.provenance import describe_play
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope
from tests.bookkeeping import Battery
from tests.study.plays import flip


def scenario(**fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "rounds": 6,
        "environment": Slope(),
        "experts": {"battery": (Battery(), Channel(cost=0.1))},
        "optimizers": {"asker": Asker(), "keen": Asker(batch=9)},
        "record": "full",
    }
    chosen["experts"]["other"] = (Battery(draw=0.0), Channel())
    return Scenario(**{**chosen, **fields})


def stored(folder: Path, replication: int = 0, **fields: Any) -> tuple[str, Trace]:
    """Play and store; give the key and the trace."""
    played = scenario(**fields)
    trace = played.play("asker", replication)
    told = describe_play(played, "asker", replication, trace, setting={"a.b": 1.5})
    home = FolderStore(folder)
    home.prepare()
    home.keep(encode(trace, told))
    return told.play.key, trace


def assert_same_accounts(one: Trace, other: Trace) -> None:
    assert one.accounts.keys() == other.accounts.keys()
    for name, columns in one.accounts.items():
        assert list(columns) == list(other.accounts[name])
        for column, values in columns.items():
            assert values.dtype == other.accounts[name][column].dtype
            assert_array_equal(values, other.accounts[name][column])


def test_accounts_come_back_as_they_were(tmp_path: Path) -> None:
    key, trace = stored(tmp_path)
    again = read_play(FolderStore(tmp_path), key).trace
    assert list(trace.accounts) == ["battery/uses", "battery/cells", "other/uses", "other/cells"]
    assert_same_accounts(again, trace)
    assert again.digest() == trace.digest()


def test_accounts_of_any_store_come_back(tmp_path: Path) -> None:
    played = scenario()
    trace = played.play("asker", 0)
    files = encode(trace, describe_play(played, "asker", 0, trace, setting={}))
    assert_same_accounts(decode(files).trace, trace)


def test_where_only_rounds_are_recorded_there_are_no_accounts(tmp_path: Path) -> None:
    key, trace = stored(tmp_path, record="rounds")
    again = read_play(FolderStore(tmp_path), key).trace
    assert (again.accounts, again.replies) == ({}, {})
    assert again.digest() == trace.digests()[0]
    assert not (tmp_path / "accounts").exists()


def test_plays_without_accounts_write_no_file_of_them(tmp_path: Path) -> None:
    trace = play(Asker(), Slope(), Rules(rounds=3), experts={})
    assert trace.accounts == {}
    trace.save(tmp_path / "play.zip")
    assert Trace.load(tmp_path / "play.zip").digest() == trace.digest()
    Study(scenario(experts={}, optimizers=["uniform"]), tmp_path / "study").run(InProcess())
    assert sorted(path.name for path in (tmp_path / "study").iterdir() if path.is_dir()) == [
        "replies",
        "rounds",
    ]


def test_a_file_of_one_trace_keeps_its_accounts(tmp_path: Path) -> None:
    trace = scenario().play("asker", 0)
    trace.save(tmp_path / "play.zip")
    again = Trace.load(tmp_path / "play.zip")
    assert_same_accounts(again, trace)
    assert again.digest() == trace.digest()
    first = (tmp_path / "play.zip").read_bytes()
    again.save(tmp_path / "again.zip")
    third = Trace.load(tmp_path / "again.zip")
    assert third.digest() == trace.digest()
    assert len((tmp_path / "again.zip").read_bytes()) == pytest.approx(len(first), rel=0.2)


def test_compacted_accounts_come_back_as_they_were(tmp_path: Path) -> None:
    plays = dict([stored(tmp_path, 0), stored(tmp_path, 1), stored(tmp_path, 2, record="rounds")])
    compact(home := FolderStore(tmp_path))
    assert home.notes == []
    files = [len(list((tmp_path / name).iterdir())) for name in ("rounds", "replies", "accounts")]
    assert files == [1, 1, 1]
    home = FolderStore(tmp_path)
    assert home.finished(verify=plays).keys() == plays.keys()
    for key, trace in plays.items():
        again = read_play(home, key).trace
        if again.replies:
            assert_same_accounts(again, trace)
            assert again.digest() == trace.digest()
    assert sum(bool(read_play(home, key).trace.accounts) for key in plays) == 2


def test_a_play_whose_accounts_are_missing_or_damaged_is_set_aside(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    other, _ = stored(tmp_path, 1)
    (tmp_path / "accounts" / f"{key}.parquet").unlink()
    home = FolderStore(tmp_path)
    assert home.peek(key) is not None
    assert home.peek(key, "full") is None
    assert home.peek(other, "full") is not None
    assert home.tidy().keys() == {other}
    assert "its accounts are missing" in home.notes[0]
    flip(tmp_path / "accounts" / f"{other}.parquet")
    home = FolderStore(tmp_path)
    assert home.tidy(verify=[other]) == {}
    assert not list((tmp_path / "accounts").iterdir())


def test_plays_that_retire_take_their_accounts_along(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    home = FolderStore(tmp_path)
    home.finished()
    assert retire(home, [key]) == {key}
    assert not list((tmp_path / "accounts").iterdir())


def test_accounts_stay_with_plays_that_stay_in_an_archive(tmp_path: Path) -> None:
    key, trace = stored(tmp_path)
    other, _ = stored(tmp_path, 1, record="rounds")
    compact(FolderStore(tmp_path))
    home = FolderStore(tmp_path)
    home.finished()
    # The archive of rounds holds both plays, those of replies and accounts only this one.
    assert retire(home, [key]) == set()
    home = FolderStore(tmp_path)
    assert home.finished(verify=[key, other]).keys() == {key, other}
    assert_same_accounts(read_play(home, key).trace, trace)


def test_plays_under_another_setting_keep_their_accounts(tmp_path: Path) -> None:
    key, trace = stored(tmp_path)
    home = FolderStore(tmp_path)
    found = home.finished()[key].play
    relabel(home, [replace(found, setting={"a.b": 2.5})])
    assert home.load(key, "accounts").column("a.b").to_pylist() == [2.5] * 4
    assert_same_accounts(read_play(home, key).trace, trace)


def test_the_accounts_of_a_study_are_one_table(tmp_path: Path) -> None:
    Study(scenario(replications=2), tmp_path).run(InProcess())
    study = Results.open(tmp_path)
    table = study.accounts("battery/cells")
    assert table.column_names == [
        "scenario",
        "optimizer",
        "setting",
        "seed",
        "replication",
        "capacity",
        "died_at",
    ]
    assert table.column("replication").to_pylist() == [0, 0, 1, 1] * 2
    assert table.column("capacity").to_pylist() == [np.inf, 100.0] * 4
    with pytest.raises(StoreError, match="did you mean 'battery/cells'"):
        study.accounts("battery/cell")
    with pytest.raises(StoreError, match="there are: rounds, replies; for those of experts"):
        study.table("accounts")


def test_accounts_that_were_not_recorded_are_told(tmp_path: Path) -> None:
    Study(scenario(record="rounds"), tmp_path).run(InProcess())
    with pytest.raises(StoreError, match="accounts were not recorded; run the scenario with"):
        Results.open(tmp_path).accounts("battery/cells")


def test_a_study_with_accounts_is_complete_when_it_is_run_again(tmp_path: Path) -> None:
    Study(scenario(), tmp_path).run(InProcess())
    assert Study(scenario(), tmp_path).run(InProcess()).resumed == 2
    shutil.rmtree(tmp_path / "accounts")
    assert Study(scenario(), tmp_path).run(InProcess()).resumed == 0
