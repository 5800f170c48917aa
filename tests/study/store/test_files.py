from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from sparq_sim.study.store import FolderStore, StoreError
from sparq_sim.study.store.files import remove_parts, temporary_name
from tests.study.plays import stored


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


def test_leftovers_of_dead_writers_are_removed_and_of_living_ones_kept(tmp_path: Path) -> None:
    home = FolderStore(tmp_path)
    home.prepare()
    mine = temporary_name(tmp_path / "rounds" / "x.parquet")
    dead = mine.with_name(mine.name.replace(f".{os.getpid()}.", ".4194305."))
    for path in (mine, dead):
        path.touch()
    home.prepare()
    assert (mine.exists(), dead.exists()) == (True, False)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_writer_that_is_buried_while_it_is_looked_at_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "kill", lambda *_: None)  # It was there a moment ago.
    dead = tmp_path / temporary_name(Path("x")).name.replace(f".{os.getpid()}.", ".4194305.")
    dead.touch()
    remove_parts(tmp_path)
    assert not dead.exists()
