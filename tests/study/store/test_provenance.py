from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sparq_sim.study.store import FolderStore, Provenance
from sparq_sim.study.store.codec import read_metadata
from sparq_sim.study.store.protocol import read_play
from sparq_sim.study.store.provenance import describe_play
from tests.study.plays import Useless, scenario, stored


def as_written(path: Path) -> dict[str, Any]:
    return read_metadata(pq.read_schema(path).metadata)


def test_provenance_tells_what_was_played_and_with_what(tmp_path: Path) -> None:
    key, _ = stored(tmp_path, 1)
    told = read_play(FolderStore(tmp_path), key).provenance
    assert told.fingerprint == json.loads(json.dumps(scenario().fingerprint("sparq-gp-ucb")))
    assert (told.play.seed, told.play.replication) == (0, 1)
    assert {"python", "numpy", "sparq-sim"} <= told.machine.versions.keys()
    assert told.machine.cpu
    assert told.machine.blas
    assert all(library["internal_api"] for library in told.machine.blas)
    assert {each["class"].split(":")[1] for each in told.plugins} >= {"Synthetic", "Truth"}
    assert all(each["distribution"] == "sparq-sim" for each in told.plugins)


def test_a_file_has_the_names_that_files_of_before_have(tmp_path: Path) -> None:
    key, _ = stored(tmp_path)
    written = as_written(tmp_path / "rounds" / f"{key}.parquet")
    assert " ".join(sorted(written)) == (
        "blas broken checksums columns coordinates core cpu digest ended experts family format key "
        "measures optimizer platform play plugins record replication rounds_digest rounds_planned "
        "scenario seed setting spent title versions warnings"
    )


def test_a_provenance_is_written_as_it_was_read_whoever_wrote_it(
    of_before: Path, tmp_path: Path
) -> None:
    key, _ = stored(tmp_path)
    now = as_written(tmp_path / "rounds" / f"{key}.parquet")
    before = [as_written(path) for path in (of_before / "rounds").glob("[0-9a-f]*.parquet")]
    before = [each for each in before if "key" in each]
    later = {**now, "weather": {"sunny": True}}
    assert before
    assert not before[0].keys() & {"core", "experts", "scenario"}
    for each in (now, later, *before):
        assert Provenance.from_json(each).to_json() == each


@pytest.mark.parametrize("name", ["key", "measures", "columns"])
def test_what_every_version_has_written_may_not_be_missing(tmp_path: Path, name: str) -> None:
    key, _ = stored(tmp_path)
    written = as_written(tmp_path / "rounds" / f"{key}.parquet")
    del written[name]
    with pytest.raises(KeyError, match=name):
        Provenance.from_json(written)


def test_under_another_identity_all_else_is_the_same() -> None:
    played = scenario()
    one = describe_play(played, "uniform", 0, played.play("uniform"), setting={"a.b": 1.5})
    other = one.with_play(replace(one.play, setting={"a.b": 2.5}, scenario="another"))
    changed = {"setting": {"a.b": 2.5}, "scenario": "another"}
    assert other.to_json() == {**one.to_json(), **changed}


@pytest.mark.parametrize(("faults", "blamed"), [([], {"sage"}), ([{"kind": "nan"}], set())])
def test_a_source_is_blamed_for_what_is_useless_but_not_for_faults_that_were_injected(
    faults: list[dict[str, Any]], blamed: set[str]
) -> None:
    channel = {"faults": [{**fault, "share": 1.0} for fault in faults]}
    played = scenario(experts={"sage": {"expert": Useless(), "channel": channel}})
    trace = played.play("sparq-gp-ucb")
    assert "invalid" in trace.replies["fate"]
    told = describe_play(played, "sparq-gp-ucb", 0, trace, setting={})
    assert told.summary.broken.keys() == blamed
