"""Damage to a study's folder changes nothing that is shown, or is told."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparq_sim.analysis.summary import summary
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study
from tests.study.store.damage import (
    READERS,
    Exhibit,
    count_verdicts,
    exhibit_scenario,
    judge,
    list_files,
    look,
)


@pytest.fixture(scope="module")
def exhibit(tmp_path_factory: pytest.TempPathFactory) -> Exhibit:
    return Exhibit(tmp_path_factory.mktemp("exhibit"))


@pytest.fixture
def folder(exhibit: Exhibit, tmp_path: Path) -> Path:
    return Path(shutil.copytree(exhibit.folders[0], tmp_path / "study"))


def snapshot(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in list_files(folder)}


def test_a_flipped_bit_changes_nothing_without_a_word(exhibit: Exhibit) -> None:
    counts, bad = count_verdicts(exhibit, flips=12, seed=1)
    assert bad == []
    assert counts["said"] > 12


@pytest.mark.slow
def test_two_thousand_flipped_bits_change_nothing_without_a_word(exhibit: Exhibit) -> None:
    counts, bad = count_verdicts(exhibit, flips=2000, seed=0)
    assert bad == []
    assert counts["said"] > 2000


def test_a_file_cut_short_is_told(exhibit: Exhibit) -> None:
    chance = Random(0)
    for path in exhibit.files()[::2]:
        folder, whole = exhibit.folder_of(path), path.read_bytes()
        path.write_bytes(whole[: chance.randrange(len(whole))])
        try:
            for name in ("compare", "levels", "plays"):
                seen, truth = look(folder, name), exhibit.truth[folder][name]
                assert judge(seen, truth, {path.name, path.stem}) in ("said", "same"), (path, name)
        finally:
            path.write_bytes(whole)


@pytest.mark.parametrize("table", ["rounds", "replies", "accounts"])
def test_the_file_of_another_play_is_not_taken_for_that_of_this(folder: Path, table: str) -> None:
    one, other, *_ = sorted((folder / table).iterdir())
    shutil.copy(other, one)
    study = Results.open(folder)
    assert one.stem not in {play.key for play in study.plays()}
    assert any(one.name in note and other.stem in note for note in study.notes)


def test_a_play_of_a_study_with_other_settings_is_not_shown_under_these(
    folder: Path, tmp_path: Path
) -> None:
    older = Study(exhibit_scenario(sweep={}, feedback={"noise": 0.1}), tmp_path / "older")
    older.run(InProcess())
    for path in (tmp_path / "older" / "replies").iterdir():
        assert (folder / "replies" / path.name).exists()
        shutil.copy(path, folder / "replies")
    with pytest.raises(StoreError, match="not those of its rounds; run the scenario into"):
        Results.open(folder).table("replies")


def change(column: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def changed(table: pa.Table) -> pa.Table:
        place = table.column_names.index(column)
        kind = table.schema.field(column).type
        return table.set_column(place, column, pa.array([value] * len(table), kind))

    return changed


@pytest.mark.parametrize(
    "edit",
    [
        change("optimizer", "keener"),
        change("feedback.noise", 0.3),
        change("setting", "{}"),
        change("seed", 7),
        change("replication", 1),
        change("wall", 0.0),
        change("regret", 0.0),
        lambda table: table.append_column("mine", pa.array(np.zeros(len(table)))),
        lambda table: table.drop_columns(["wall"]),
        lambda table: table.rename_columns(
            ["optimiser" if n == "optimizer" else n for n in table.column_names]
        ),
    ],
)
def test_a_table_that_was_written_again_with_a_change_is_refused(
    folder: Path, edit: Callable[[pa.Table], pa.Table]
) -> None:
    path, *_ = (folder / "rounds").iterdir()
    table = pq.read_table(path)
    pq.write_table(edit(table).replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(StoreError, match=f"{path.name}: .*; run the scenario into this folder"):
        Results.open(folder).table()
    with pytest.raises(StoreError, match=path.name):
        Results.open(folder).read(path.stem)


def test_a_play_whose_summary_was_changed_is_left_out_of_what_is_compared(folder: Path) -> None:
    path, *_ = (folder / "rounds").iterdir()
    table = pq.read_table(path)
    kept = table.schema.metadata
    told = kept[b"sparq_sim"].replace(b'"average_regret":0.', b'"average_regret":9.')
    assert told != kept[b"sparq_sim"]
    pq.write_table(table.replace_schema_metadata({**kept, b"sparq_sim": told}), path)
    study = Results.open(folder)
    assert sum(row.plays for row in summary(study)) == 3
    assert any(path.name in note and "checksum" in note for note in study.notes)


def test_who_reads_moves_nothing_and_who_runs_sets_right(folder: Path, exhibit: Exhibit) -> None:
    path, *_ = (folder / "rounds").iterdir()
    content = bytearray(path.read_bytes())
    content[-20] ^= 1
    path.write_bytes(content)
    before = snapshot(folder)
    for name in READERS:
        assert path.name in look(folder, name).said
    assert snapshot(folder) == before
    report = Study(exhibit_scenario(), folder).run(InProcess())
    assert (report.done, report.resumed) == (4, 3)
    # Its replies and its accounts go along with its rounds.
    assert [path.name in note and "set aside" in note for note in report.notes] == [True] * 3
    digests = [
        {p: s.read(p).trace.digest() for p in s.plays()}
        for s in map(Results.open, (folder, exhibit.folders[0]))
    ]
    assert digests[0] == digests[1]


def test_damaged_rounds_are_left_out_of_the_report_and_named(folder: Path) -> None:
    path, *_ = (folder / "rounds").iterdir()
    pq.write_table(change("regret", 0.0)(pq.read_table(path)), path)
    seen = look(folder, "report")
    assert path.name in seen.said
    assert seen.shown
    assert "3 of 4 plays finished" in seen.shown
    assert path.name in seen.shown
    assert path.exists()


def test_damaged_levels_and_descriptions_are_told(folder: Path) -> None:
    for name in ("levels.json", "scenario.json"):
        path = folder / name
        whole = path.read_bytes()
        path.write_bytes(whole.replace(b"0.1", b"0.7", 1))
        assert path.read_bytes() != whole
        assert f"{path}" in look(folder, "levels").said
        path.write_bytes(whole)


def test_what_is_damaged_is_read_again_when_it_is_whole(folder: Path) -> None:
    path, *_ = (folder / "rounds").iterdir()
    whole = path.read_bytes()
    pq.write_table(change("regret", 0.0)(pq.read_table(path)), path)
    study = Results.open(folder)
    assert len(study.finished()) == 4
    study.verify([path.stem])
    assert len(study.finished()) == 3
    path.write_bytes(whole)
    assert len(study.finished()) == 4
