"""A study on a watched page, while it runs and when its files are in a bad way."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from sparq_sim.analysis.curves import read_curves
from sparq_sim.live.watch.folder import WatchedFolder
from sparq_sim.live.watch.screen import Screen
from sparq_sim.live.watch.study import WatchedStudy
from sparq_sim.study.executors import InProcess
from sparq_sim.study.progress import Progress
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoredPlay, StoreError
from sparq_sim.study.study import Study
from tests.conftest import wait_until
from tests.live.watch.pages import ask, small, watching


def run(folder: Path, **fields: object) -> None:
    Study(small(**fields), folder).run(InProcess())


def text_of(screen: Screen) -> str:
    return screen.now().body.decode()


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_plays_are_counted_while_a_study_runs(tmp_path: Path) -> None:
    seen: list[str] = []
    with watching(tmp_path) as server:

        def look(progress: Progress) -> None:
            # A large study is not summed up at every question.
            wait_until(lambda: f'<b id="done">{progress.done}</b> of 4 plays' in ask(server)[1])
            state = re.search(r'role="status">(.*?)<', ask(server)[1])
            assert state is not None
            seen.append(state[1])

        Study(small(replications=4), tmp_path).run(InProcess(), watch=look)
        _, last = ask(server)
    assert seen == ["Not begun", "Running", "Running", "Running", "Finished"]
    assert "calm" in last
    assert 'id="average-regret"' in last


def test_the_numbers_are_those_of_the_report(tmp_path: Path) -> None:
    run(tmp_path, replications=3, sweep={"feedback.noise": [0.1, 0.3]})
    watched = WatchedFolder(tmp_path)
    while watched.refresh(60.0):
        pass
    mine, study = watched.curves(250), Results.open(tmp_path)
    theirs = read_curves(study, most_points=250)
    assert [each.key for each in Results.open(watched).finished()] == [
        each.key for each in study.finished()
    ]
    for one, other in zip(sorted(mine.bands, key=str), sorted(theirs.bands, key=str), strict=True):
        assert one.setting == other.setting
        assert one.mean == pytest.approx(other.mean)
        assert one.high == pytest.approx(other.high)


def test_a_study_is_only_read(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "rounds" / f"{'0' * 32}.parquet").write_bytes(b"damaged")
    (tmp_path / "rounds" / "note.parquet").write_bytes(b"not a play")
    before = snapshot(tmp_path)
    text = text_of(Screen(WatchedStudy(tmp_path)))
    assert snapshot(tmp_path) == before
    assert f"{'0' * 32}.parquet is left out: it cannot be read" in text
    assert "note.parquet is left out: it is not a play" in text
    with pytest.raises(StoreError, match="not written to"):
        WatchedFolder(tmp_path).keep(None)  # type: ignore[arg-type] # nothing to be written


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path / "small", replications=2)
    run(tmp_path / "large", replications=3)
    folder = tmp_path / "small"
    watched = WatchedFolder(folder)
    read: list[str] = []
    plain = watched.layout.read

    def count(key: str) -> StoredPlay:
        read.append(key)
        return plain(key)

    monkeypatch.setattr(watched.layout, "read", count)
    assert watched.refresh(60.0)
    assert not watched.refresh(60.0)
    assert len(read) == 2
    for path in (tmp_path / "large" / "rounds").iterdir():
        if not (folder / "rounds" / path.name).exists():
            shutil.copy(path, folder / "rounds")
    assert watched.refresh(60.0)
    assert len(read) == 3
    assert watched.finished().keys() == set(read)


def test_reading_stops_when_its_time_is_over_and_goes_on(tmp_path: Path) -> None:
    run(tmp_path, replications=3)
    watched = WatchedFolder(tmp_path)
    watched.refresh(-1.0)
    assert watched.unread == 3
    assert not watched.finished()
    watched.refresh(60.0)
    assert watched.unread == 0
    assert len(watched.finished()) == 3


def test_merged_files_are_the_same_plays(tmp_path: Path) -> None:
    run(tmp_path, replications=3)
    watched = WatchedFolder(tmp_path)
    watched.refresh(60.0)
    before = watched.finished().keys()
    Results.open(tmp_path).compact()
    assert watched.refresh(60.0)
    assert watched.finished().keys() == before
    assert int(watched.curves(10).bands[0].plays[0]) == 3


def test_a_folder_that_vanishes_is_told_and_may_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    run(folder)
    screen = Screen(WatchedStudy(folder))
    assert "1</b> of 1 play finished" in text_of(screen)
    shutil.move(folder, tmp_path / "elsewhere")
    text = text_of(screen)
    assert "there is no folder" in text
    assert "Cannot be read" in text
    assert "1</b> of 1 play finished" in text
    tag = screen.now().tag
    assert screen.now().tag == tag
    shutil.move(tmp_path / "elsewhere", folder)
    assert "there is no folder" not in text_of(screen)


def test_a_description_of_another_format_is_told(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "scenario.json").write_text('{"format": 99, "plays": []}')
    text = text_of(Screen(WatchedStudy(tmp_path)))
    assert "Cannot be read" in text
    assert "format" in text


def test_a_study_that_has_not_begun_waits(tmp_path: Path) -> None:
    text = text_of(Screen(WatchedStudy(tmp_path)))
    assert "Not begun" in text
    assert "No play is finished yet" in text


def test_a_study_that_was_stopped_is_not_running(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        if progress.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Study(small(replications=3), tmp_path).run(InProcess(), watch=stop)
    text = text_of(Screen(WatchedStudy(tmp_path)))
    assert "Not running" in text
    assert "1</b> of 3 plays finished" in text
