from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sparq_sim.simulation.trace import WALL
from sparq_sim.study.store import FolderStore, StoreError, encode
from sparq_sim.study.store.codec import unify_schemas
from sparq_sim.study.store.protocol import read_play
from sparq_sim.study.store.provenance import describe_play
from tests.study.plays import scenario, stored


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


def test_columns_of_whole_numbers_and_others_are_numbers_and_all_else_is_text() -> None:
    whole, real, text = (
        pa.schema([("a", kind)]) for kind in (pa.int64(), pa.float64(), pa.string())
    )
    joined = [unify_schemas(each).field("a").type for each in ([whole, whole], [whole, real])]
    assert joined == [pa.int64(), pa.float64()]
    assert unify_schemas([whole, text]).field("a").type == pa.string()
