from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sparq_sim.analysis.summary import summary
from sparq_sim.study.executors import InProcess, PlayExecutor, Processes
from sparq_sim.study.results import Results
from sparq_sim.study.store import (
    PlayFiles,
    StoredSummary,
    StoreError,
    TableName,
    load_table,
    summarize,
)
from sparq_sim.study.study import Study
from tests.study.plays import scenario


class InMemory:
    """A store that is a dictionary."""

    def __init__(self) -> None:
        self.plays: dict[str, PlayFiles] = {}

    def keep(self, files: PlayFiles) -> None:
        self.plays[files.key] = files

    def finished(self) -> dict[str, StoredSummary]:
        return {key: summarize(files) for key, files in self.plays.items()}

    def load(self, key: str, table: TableName) -> pa.Table:
        return load_table(self.plays[key], table)


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)])
def test_a_study_runs_on_another_store_as_in_a_folder(
    tmp_path: Path, executor: PlayExecutor
) -> None:
    home = InMemory()
    study = Study(scenario(replications=2), home)
    report = study.run(executor)
    assert (report.done, report.resumed, report.notes, study.missing()) == (4, 0, (), [])
    assert Study(scenario(replications=2), home).run(executor).resumed == 4
    Study(scenario(replications=2), tmp_path).run(InProcess())
    there = Results.open(tmp_path)
    assert {play.key for play in there.plays()} == home.plays.keys()
    for play in there.plays():
        assert study.results.read(play).trace == there.read(play).trace
    regrets = [
        {row.optimizer: row.average_regret for row in summary(each)}
        for each in (study.results, there)
    ]
    assert regrets[0] == regrets[1]
    rows = [each.table("replies").to_pylist() for each in (study.results, there)]
    assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))


def test_what_needs_a_folder_says_so() -> None:
    study = Study(scenario(), InMemory())
    with pytest.raises(StoreError, match="which is no folder"):
        _ = study.folder
    with pytest.raises(StoreError, match="which is no folder"):
        study.results.compact()
    with pytest.raises(StoreError, match="there is no finished play in"):
        study.results.table()


class Forging(InMemory):
    """A store that loses the last round of each play."""

    def load(self, key: str, table: TableName) -> pa.Table:
        whole = super().load(key, table)
        return whole.slice(0, len(whole) - 1)


def test_what_another_store_gives_back_is_checked() -> None:
    study = Study(scenario(), Forging())
    study.run(InProcess())
    play = study.results.plays()[0]
    with pytest.raises(StoreError, match=rf"{play.key}\.parquet in "):
        study.results.read(play)
