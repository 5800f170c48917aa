"""Whatever fails where files are written: nothing finished is lost, nothing wrong is read."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sparq_sim.analysis.kept_levels import keep_levels, read_levels
from sparq_sim.analysis.levels import Level, Levels
from sparq_sim.errors import SparqError
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope
from tests.bookkeeping import Battery
from tests.study.store.faults import Faults, Span

_MOST_CALLS = 400
"""More than any command here makes."""
_TOML = """
rounds = 5
replications = 4
optimizers = ["uniform"]
environment = { kind = "synthetic" }
"""


_EVERY = pytest.mark.parametrize(
    ("span", "step"),
    [
        ("once", 15),
        pytest.param("once", 1, marks=pytest.mark.slow),
        pytest.param("on", 1, marks=pytest.mark.slow),
    ],
)
"""Which calls fail: by default one in fifteen, each alone."""


def small(**fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "rounds": 3,
        "environment": Slope(),
        "experts": {"battery": Battery()},
        "optimizers": {"asker": Asker()},
        "replications": 2,
        "record": "full",
    }
    return Scenario(**{**chosen, **fields})


def digests(folder: Path) -> dict[str, str]:
    """Return the digests of all plays of a study, each read in full."""
    study = Results.open(folder)
    assert study.notes == ()
    return {play.key: study.read(play).trace.digest() for play in study.plays()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    Study(small(), folder).run(InProcess())
    return digests(folder)


def fail_everywhere(
    folder: Path,
    act: Callable[[], object],
    prepare: Callable[[], object],
    *,
    span: Span = "once",
    step: int = 1,
) -> Iterator[Faults]:
    """Act in a folder again and again, and let another call fail each time, until none is left.

    Yields:
        After each time, the faults.
    """
    for at in range(1, _MOST_CALLS, step):
        shutil.rmtree(folder, ignore_errors=True)
        prepare()
        with Faults(folder, at, span).inject() as faults:
            said = None
            try:
                act()
            except StoreError as error:
                said = str(error)
            if not faults.met:
                assert said is None
                return
        assert str(folder) in (said or str(folder))
        yield faults
    raise AssertionError("the faults never end")


def assert_only_true_plays(folder: Path, expected: dict[str, str]) -> None:
    with suppress(SparqError):  # Of a folder without a play, that there is none.
        assert digests(folder).items() <= expected.items()


@_EVERY
def test_a_run_of_which_any_call_fails_keeps_what_is_finished_and_can_go_on(
    tmp_path: Path, expected: dict[str, str], span: Span, step: int
) -> None:
    folder = tmp_path / "study"

    def begin() -> None:
        Study(small(replications=1), folder).run(InProcess())

    calls: set[str] = set()
    for faults in fail_everywhere(
        folder, lambda: Study(small(), folder).run(InProcess()), begin, span=span, step=step
    ):
        calls.add(faults.failed)
        left = digests(folder)
        assert len(left) >= 1
        assert left.items() <= expected.items()
        report = Study(small(), folder).run(InProcess())
        assert (report.done, report.resumed, report.notes) == (2, len(left), ())
        assert digests(folder) == expected
        if span == "once":
            # The mark of a run is removed when its process has ended.
            assert not [each for each in folder.rglob("*.part") if ".run." not in each.name]
    assert step > 1 or {"open", "write", "fsync", "replace", "unlink"} <= calls


@_EVERY
def test_the_first_run_into_a_folder_survives_any_fault(
    tmp_path: Path, expected: dict[str, str], span: Span, step: int
) -> None:
    folder = tmp_path / "study"
    for _ in fail_everywhere(
        folder, lambda: Study(small(), folder).run(InProcess()), lambda: None, span=span, step=step
    ):
        assert_only_true_plays(folder, expected)
        Study(small(), folder).run(InProcess())
        assert digests(folder) == expected


@_EVERY
def test_compacting_never_loses_what_it_merges(
    tmp_path: Path, expected: dict[str, str], span: Span, step: int
) -> None:
    folder = tmp_path / "study"

    def begin() -> None:
        Study(small(replications=1), folder).run(InProcess())
        Results.open(folder).compact()
        Study(small(), folder).run(InProcess())

    for _ in fail_everywhere(
        folder, lambda: Results.open(folder).compact(), begin, span=span, step=step
    ):
        assert digests(folder) == expected
        Results.open(folder).compact()
        assert digests(folder) == expected
        assert [len(list((folder / name).glob("[!.]*"))) for name in ("rounds", "replies")] == [
            1,
            1,
        ]


@_EVERY
def test_plays_that_are_labelled_anew_are_not_lost_by_any_fault(
    tmp_path: Path, span: Span, step: int
) -> None:
    folder = tmp_path / "study"
    wide = small(replications=1, sweep={"feedback.noise": [0.0, 0.1]})
    Study(wide, tmp_path / "other").run(InProcess())
    expected = digests(tmp_path / "other")

    def begin() -> None:
        Study(small(replications=1, feedback={"noise": 0.1}), folder).run(InProcess())

    begin()
    (kept,) = digests(folder)
    for _ in fail_everywhere(
        folder, lambda: Study(wide, folder).run(InProcess()), begin, span=span, step=step
    ):
        report = Study(wide, folder).run(InProcess())
        assert kept in expected
        assert report.resumed >= 1
        assert not (folder / "set-aside").exists()
        assert digests(folder) == expected


@_EVERY
def test_what_is_set_aside_is_not_lost_by_any_fault(
    tmp_path: Path, expected: dict[str, str], span: Span, step: int
) -> None:
    folder = tmp_path / "study"

    def begin() -> None:
        Study(small(), folder).run(InProcess())
        (folder / "rounds" / "diary.txt").write_text("dear diary")
        spoilt = folder / "rounds" / f"{min(expected)}.parquet"
        spoilt.write_bytes(spoilt.read_bytes()[:-50])

    for _ in fail_everywhere(
        folder, lambda: Study(small(), folder).run(InProcess()), begin, span=span, step=step
    ):
        contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        assert contents.count(b"dear diary") == 1
        Study(small(), folder).run(InProcess())
        assert digests(folder) == expected


def test_levels_that_cannot_be_kept_leave_those_of_before(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    levels: list[Level] = [({}, Levels(1.0, 0.5, 0.1))]

    def begin() -> None:
        Study(small(replications=1), folder).run(InProcess())
        keep_levels(Results.open(folder), levels)

    for _ in fail_everywhere(folder, lambda: keep_levels(Results.open(folder), levels), begin):
        assert read_levels(Results.open(folder)) == levels


def test_an_export_that_fails_leaves_the_file_of_before(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    from sparq_sim.analysis.export import export

    Study(small(), tmp_path / "study").run(InProcess())
    study = Results.open(tmp_path / "study")
    folder = tmp_path / "tables"
    for name in ("table.csv", "table.json", "table.parquet"):
        path = folder / name
        folder.mkdir(exist_ok=True)
        export(study, path, "rounds")
        whole = path.read_bytes()
        for at in range(1, 30):
            with Faults(folder, at).inject() as faults:
                with suppress(SparqError):
                    export(study, path, "rounds")
                if not faults.met:
                    break
            assert path.read_bytes() == whole
            assert [each.name for each in folder.iterdir()] == [name]
        path.unlink()


def test_a_file_system_that_takes_no_more_bytes_is_told_and_the_run_goes_on_later(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, before[1]))
    try:
        with pytest.raises(StoreError, match=r"cannot write .*EFBIG"):
            Study(small(), tmp_path).run(InProcess())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.part"))
    Study(small(), tmp_path).run(InProcess())
    assert digests(tmp_path) == expected


# Who else is there


def test_two_runs_into_one_folder_at_once_both_finish_and_lose_nothing(tmp_path: Path) -> None:
    (tmp_path / "both.toml").write_text(_TOML)
    command = [sys.executable, "-m", "sparq_sim", "run", "both.toml", "--out", "both", "--quiet"]
    command += ["--executor", "in-process", "--no-report"]
    runs = [
        subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert not [text for text in said if "aside" in text or "left out" in text]
    folder = tmp_path / "both"
    assert len(digests(folder)) == 4
    assert not list(folder.rglob("*.part"))
    assert not (folder / "set-aside").exists()


def test_foreign_things_in_the_folder_are_noted_and_kept(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    folder, target = tmp_path / "study", tmp_path / "target.txt"
    Study(small(), folder).run(InProcess())
    home = folder / "rounds"
    target.write_text("not of this study")
    (home / f"{'0' * 32}.parquet").mkdir()
    (home / f"{'0' * 32}.parquet" / "inside.txt").write_text("mine")
    (home / f"{'1' * 32}.parquet").symlink_to(target)
    (home / f"{'2' * 32}.parquet").symlink_to(tmp_path / "nowhere")
    os.mkfifo(home / f"{'3' * 32}.parquet")
    os.mkfifo(home / f"compact-{'4' * 16}.parquet")
    os.mkfifo(folder / "levels.json")
    (home / ("long" * 61 + ".parquet")).write_text("long")
    (home / b"no\xfftext.parquet".decode(errors="surrogateescape")).write_text("odd")
    strange = sorted(path for path in home.iterdir() if path.stem not in expected)
    study = Results.open(folder)
    assert {play.key for play in study.plays()} == expected.keys()
    assert read_levels(study) == []
    for path in strange:
        assert any(path.name in note for note in study.notes)
        assert os.path.lexists(path)
    report = Study(small(), folder).run(InProcess())
    assert (report.done, report.resumed, len(report.notes)) == (2, 2, len(strange))
    assert digests(folder) == expected
    assert len(list((folder / "set-aside").iterdir())) == len(strange)
    assert target.read_text() == "not of this study"
    assert next((folder / "set-aside").rglob("inside.txt")).read_text() == "mine"


@pytest.mark.parametrize("name", ["scenario.json", "rounds", "set-aside"])
def test_a_thing_of_another_kind_under_a_name_of_the_study_is_told(
    tmp_path: Path, name: str
) -> None:
    if name == "scenario.json":
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("mine")
        (tmp_path / "scenario.json").write_text("{")
    try:
        Study(small(), tmp_path).run(InProcess())
    except StoreError as error:
        assert name in str(error)  # noqa: PT017 - it may also go well
        assert (tmp_path / name).read_text() == "mine"
    else:
        assert (tmp_path / "set-aside" / name).exists()


@pytest.mark.parametrize("when", [0, 4_000_000_000])
def test_the_times_of_files_change_nothing(
    tmp_path: Path, expected: dict[str, str], when: int
) -> None:
    Study(small(), tmp_path).run(InProcess())
    for path in tmp_path.rglob("*"):
        os.utime(path, (when, when))
    assert digests(tmp_path) == expected
    assert Study(small(), tmp_path).run(InProcess()).resumed == 2
    Results.open(tmp_path).compact()
    assert digests(tmp_path) == expected


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_rights_is_named(tmp_path: Path, expected: dict[str, str]) -> None:
    Study(small(), tmp_path).run(InProcess())
    path = tmp_path / "rounds" / f"{min(expected)}.parquet"
    path.chmod(0)
    with pytest.raises(StoreError, match=path.name):
        Results.open(tmp_path)
