"""Attacks by the folder of a study that somebody else has made."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparq_sim.documents import MOST_LEVELS
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import Trace
from sparq_sim.study.executors import InProcess
from sparq_sim.study.store import FolderStore, StoreError, encode, load_trace
from sparq_sim.study.store.codec import from_bytes
from sparq_sim.study.store.errors import UnfitError
from sparq_sim.study.study import Study
from tests.cli.invoking import ends_with
from tests.security.watchmen import watch


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest") / "study"
    scenario = Scenario(
        title="Honest",
        rounds=4,
        levels=False,
        environment={"kind": "synthetic"},
        optimizers={"calm": {"kind": "uniform"}},
    )
    Study(scenario, folder).run(executor=InProcess())
    return folder


@pytest.fixture
def study(honest: Path, tmp_path: Path) -> Path:
    shutil.copytree(honest, tmp_path / "study")
    return tmp_path / "study"


def find_play(study: Path) -> Path:
    (file,) = (study / "rounds").glob("*.parquet")
    return file


def forge(study: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Have the play of a study say that it was another, with digests and sums that are right."""
    store = FolderStore(study)
    (key,) = store.finished()
    stored = store.layout.read(key)
    forged = replace(stored.provenance, fingerprint=change(dict(stored.provenance.fingerprint)))
    store.keep(encode(stored.trace, forged))


ASKING = (
    "compare study",
    "report study",
    "export study rounds.csv --what rounds",
    "export study timeline.json --what timeline --play calm,0",
    "plot study regret -o regret.png",
    "plot study belief -o belief.png --play calm,0 --round 2",
    "explain study --play calm,0 --round 2",
    "diff study/rounds/{0} study/rounds/{0}",
    "reproduce study/rounds/{0}",
)
"""Commands that read a study, and play it again where they need what it does not hold."""


@pytest.mark.parametrize("part", ["environment", "optimizer", "experts"])
def test_a_study_cannot_name_code_to_import(study: Path, part: str) -> None:
    def change(fingerprint: dict[str, Any]) -> dict[str, Any]:
        named = {"kind": "canary:Canary"}
        return fingerprint | {part: {"a": {"expert": named}} if part == "experts" else named}

    forge(study, change)
    name = find_play(study).name
    seen, codes, text = watch(*(each.format(name) for each in ASKING), cwd=study.parent)
    assert seen == []
    assert set(codes) <= {0, 2}
    assert "Traceback" not in text


def test_a_study_cannot_name_programs_to_run(study: Path) -> None:
    mark = study.parent / "mark"
    real = {"kind": "program", "command": ["touch", str(mark)]}
    forge(
        study,
        lambda told: (
            told
            | {
                "environment": {**real, "bounds": [[0.0, 1.0]]},
                "experts": {"lab": {"expert": real, "channel": {}}},
            }
        ),
    )
    name = find_play(study).name
    seen, codes, text = watch(*(each.format(name) for each in ASKING), cwd=study.parent)
    assert seen == []
    assert not mark.exists()
    assert set(codes) <= {0, 2}
    assert "Traceback" not in text


def test_nothing_in_a_study_is_unpickled(study: Path) -> None:
    """A pickle in the place of each file, which would leave a mark."""
    mark = study.parent / "mark"
    pickle = f"cos\nsystem\n(S'touch {mark}'\ntR.".encode()
    (study / "rounds" / f"{'0' * 32}.parquet").write_bytes(pickle)
    (study / "levels.json").write_bytes(pickle)
    (study / "scenario.json").write_bytes(pickle)
    (study / "scenario.pkl").write_bytes(pickle)
    seen, codes, _ = watch("compare study", "report study", cwd=study.parent)
    assert seen == []
    assert codes == [0, 0]
    assert not mark.exists()


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 900, 100_000])
def test_provenance_that_is_nested_deeply_is_set_aside(study: Path, levels: int) -> None:
    file = find_play(study)
    table = pq.read_table(file)
    text = f'{{"format": 2, "key": "{file.stem}", "play": {nested(levels)}}}'
    pq.write_table(table.replace_schema_metadata({b"sparq_sim": text.encode()}), file)
    told = ends_with(2, "compare", str(study))
    assert "there is no finished play" in told


@pytest.mark.parametrize("name", ["scenario.json", "levels.json"])
@pytest.mark.parametrize("levels", [900, 100_000])
def test_descriptions_that_are_nested_deeply_are_left_out(
    study: Path, name: str, levels: int
) -> None:
    (study / name).write_text(f'{{"plays": {nested(levels)}, "levels": {nested(levels)}}}')
    ends_with(0, "compare", str(study))
    ends_with(0, "report", str(study), "--no-replays")


def test_a_small_file_of_many_cells_is_not_unpacked() -> None:
    sink = pa.BufferOutputStream()
    column = pa.nulls(30_000_000, pa.int8())
    pq.write_table(pa.table({f"c{i}": column for i in range(8)}), sink)
    content = sink.getvalue().to_pybytes()
    assert len(content) < 1_000_000
    with pytest.raises(UnfitError, match="30000000 rows of 8 columns"):
        from_bytes(content)


def test_a_small_file_of_long_texts_is_not_unpacked() -> None:
    sink = pa.BufferOutputStream()
    text = pa.DictionaryArray.from_arrays(np.zeros(100_000, np.int32), ["x" * 1_000_000])
    pq.write_table(pa.table({"reason": text}), sink)
    content = sink.getvalue().to_pybytes()
    assert len(content) < 2_000_000
    with pytest.raises(UnfitError, match="100000 texts, one of them of 1000000 bytes"):
        from_bytes(content)


def test_long_texts_that_memory_can_hold_are_read() -> None:
    sink = pa.BufferOutputStream()
    texts = ["y" * 300_000, *["x"] * 999]
    pq.write_table(pa.table({"reason": texts}), sink)
    assert from_bytes(sink.getvalue().to_pybytes()).column("reason").to_pylist() == texts


@pytest.mark.parametrize("name", ["../../kept", "/tmp/kept", "x" * 32])
def test_an_archive_cannot_name_files_elsewhere(study: Path, name: str) -> None:
    """To compact a study removes the files that its archives are made of."""
    ends_with(0, "compact", str(study))
    (archive,) = (study / "rounds").glob("compact-*.parquet")
    table = pq.read_table(archive)
    told = json.loads(table.schema.metadata[b"sparq_sim"])
    told["plays"].append({**told["plays"][0], "key": name})
    forged = json.dumps(told).encode()
    pq.write_table(table.replace_schema_metadata({b"sparq_sim": forged}), archive)
    kept = study.parent / "kept.parquet"
    kept.write_bytes(b"of somebody else")
    told_of = ends_with(2, "compare", str(study)) + ends_with(2, "compact", str(study))
    assert "there is no finished play" in told_of
    assert kept.read_bytes() == b"of somebody else"


@pytest.mark.parametrize("name", ["scenario.json", "levels.json"])
def test_a_pipe_in_the_place_of_a_description_holds_nobody_up(study: Path, name: str) -> None:
    (study / name).unlink(missing_ok=True)
    os.mkfifo(study / name)
    ends_with(0, "compare", str(study))
    ends_with(0, "report", str(study), "--no-replays")


def test_a_trace_that_is_packed_is_not_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "bomb.zip"
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("rounds.parquet", b"\0" * 50_000_000)
    assert file.stat().st_size < 100_000
    with pytest.raises(StoreError, match="its tables are packed"):
        load_trace(file)


def test_a_trace_is_read_as_it_was_written(tmp_path: Path, honest: Path) -> None:
    store = FolderStore(honest)
    (key,) = store.finished()
    trace = store.layout.read(key).trace
    trace.save(tmp_path / "trace.zip")
    assert Trace.load(tmp_path / "trace.zip").digest() == trace.digest()
