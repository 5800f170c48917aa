from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.study.store import FORMAT, FolderStore, StoreError, keys
from sparq_sim.study.store.keys import list_plugins, name_family, name_play
from tests.study.plays import scenario, stored


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


def test_another_format_is_refused_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, _ = stored(tmp_path)
    monkeypatch.setattr(keys, "FORMAT", FORMAT + 1)
    with pytest.raises(
        StoreError, match=rf"{key}.*format 3.*reads formats 2 and 4.*another folder"
    ):
        FolderStore(tmp_path).finished()
    assert (tmp_path / "rounds" / f"{key}.parquet").exists()
