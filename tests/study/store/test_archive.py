from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from sparq_sim.study.results import Results
from sparq_sim.study.store import FolderStore
from sparq_sim.study.store.folder import compact
from sparq_sim.study.store.protocol import read_play
from tests.study.plays import flip, stored


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
    assert home.tidy(verify=[key]) == {}
    assert file.name in home.notes[0]
    assert not file.exists()


def test_a_study_of_before_is_compacted_with_the_columns_of_now(of_before: Path) -> None:
    before = Results.open(of_before).table()
    Results.open(of_before).compact()
    (file,) = (of_before / "rounds").iterdir()
    assert {"scenario", "setting", "seed"} <= set(pq.read_schema(file).names)
    assert Results.open(of_before).table().equals(before)
