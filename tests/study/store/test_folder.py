from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparq_sim.analysis.summary import summary
from sparq_sim.study.results import Results
from sparq_sim.study.store import FolderStore, StoreError
from sparq_sim.study.store.protocol import read_play
from tests.study.plays import flip, stored, truncate


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
    assert home.tidy(verify=[key, good]).keys() == {good}
    assert any(str(path) in note for note in home.notes)
    kept = [each.read_bytes() for each in (tmp_path / "set-aside").iterdir()]
    assert spoilt in kept


def test_foreign_files_are_set_aside_unharmed_and_under_names_of_their_own(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    for _ in range(2):
        (tmp_path / "rounds" / "diary.txt").write_text("dear diary")
        (tmp_path / "rounds" / "folder.parquet").mkdir()
        home = FolderStore(tmp_path)
        assert home.tidy().keys() == {key}
        assert "diary.txt" in home.notes[0]
    aside = sorted((tmp_path / "set-aside").iterdir())
    assert len(aside) == 4
    assert [p.read_text() for p in aside if p.is_file()] == ["dear diary"] * 2


def test_a_file_under_another_play_s_name_is_left_out(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    other = tmp_path / "rounds" / f"{'0' * 32}.parquet"
    other.write_bytes((tmp_path / "rounds" / f"{key}.parquet").read_bytes())
    home = FolderStore(tmp_path)
    assert home.finished().keys() == {key}
    assert "not the one it is called after" in home.notes[0]


def test_a_study_of_before_reads_as_those_of_now(of_before: Path) -> None:
    study = Results.open(of_before)
    assert study.title == "of before"
    assert [note.partition(":")[0] for note in study.notes] == [
        "3 plays of an earlier version have no checksum"
    ]
    assert [row.setting["feedback.noise"] for row in summary(study)] == [0.1, 0.2, 0.3]
    for play in study.plays():
        assert study.read(play).trace.digest() == study.read(play).provenance.contents.rounds_digest
    rows = study.table().select(["scenario", "setting", "seed", "round", "feedback.noise"])
    assert rows.slice(0, 1).to_pylist() == [
        {"scenario": "", "setting": '{"feedback.noise":0.1}', "seed": 0}
        | {"round": 1, "feedback.noise": 0.1}
    ]


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study").write_text("no folder")
    with pytest.raises(StoreError, match=r"study.*(NOTDIR|EXIST)"):
        FolderStore(tmp_path / "study").prepare()
    with pytest.raises(StoreError, match="not a folder"):
        FolderStore(tmp_path / "study").finished()
