from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from numpy.random import Generator

from sparq_environments.synthetic import Synthetic
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing, Landscape, Optimizer
from sparq_sim.study.executors import (
    Batch,
    Dask,
    ExecutorError,
    InProcess,
    Processes,
    landscapes,
    lane,
    pooled,
    worker,
)
from sparq_sim.study.progress import Progress
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.study.plays import scenario


class Dawdling(Optimizer):
    """Chooses at random, after *seconds*; *why* makes another of it."""

    seconds: float = 0.05
    why: int = 0

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        time.sleep(self.seconds)
        return Uniform().start(briefing, rng)


class Deadly(Optimizer):
    """Kills its process, by a *signal*, as many *times* as it can count in a *folder*."""

    folder: str
    times: int
    signal: int = signal.SIGKILL

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        deaths = len(list(Path(self.folder).iterdir()))
        if deaths < self.times:
            # A name of its own, for another worker may have counted at the same time.
            (Path(self.folder) / str(os.getpid())).touch()
            os.kill(os.getpid(), self.signal)
        return Uniform().start(briefing, rng)


class Logging(Optimizer):
    """Writes a file that it names as if it read it."""

    log: Path

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        self.log.write_text("begun", encoding="utf-8")
        return Uniform().start(briefing, rng)


class Broken(Optimizer):
    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        raise ZeroDivisionError("one over nothing")


class Counted(Synthetic):
    """Leaves a file in *folder* each time that it is started."""

    folder: str

    def start(self, rng: Generator) -> Landscape:
        (Path(self.folder) / f"{os.getpid()}-{time.time_ns()}").touch()
        return super().start(rng)


class Opened(Synthetic):
    """A landscape that must be entered; a *log* tells when it is, and when it is left."""

    log: str
    closes: bool = True

    def start(self, rng: Generator) -> Landscape:
        return OpenedLandscape(self, super().start(rng))


class OpenedLandscape:
    def __init__(self, model: Opened, inner: Landscape) -> None:
        self.domain, self.best = inner.domain, inner.best
        self._model, self._inner = model, inner
        self._open = False

    def rewards(self, points: Points, time: float) -> Values:
        assert self._open
        return self._inner.rewards(points, time)

    def __enter__(self) -> None:
        self._open = True
        self._write("entered")

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._write("left")
        if not self._model.closes:
            raise OSError("the disk is full")

    def _write(self, what: str) -> None:
        with Path(self._model.log).open("a", encoding="utf-8") as file:
            file.write(f"{what} {os.getpid()} {id(self)}\n")


def entered_and_left(log: Path) -> list[int]:
    """Count how often landscapes were entered, each of which was left once."""
    lines = log.read_text(encoding="utf-8").splitlines()
    times = [sum(line.startswith(what) for line in lines) for what in ("entered", "left")]
    for line in lines:
        what, _, who = line.partition(" ")
        other = "left" if what == "entered" else "entered"
        assert lines.count(line) == lines.count(f"{other} {who}"), lines
    return times


def digests(folder: Path) -> dict[str, str]:
    return {each.key: each.digest for each in Results.open(folder).finished()}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("expected")
    Study(small(), folder).run(InProcess())
    return digests(folder)


def small(**fields: Any) -> Any:
    return scenario(replications=4, sweep={"feedback.noise": [0.1, 0.3]}, **fields)


# The same plays, wherever


@pytest.mark.parametrize("jobs", [1, 2])
def test_processes_play_as_one(tmp_path: Path, expected: dict[str, str], jobs: int) -> None:
    report = Study(small(), tmp_path).run(Processes(jobs))
    assert (report.done, report.failed_plays, report.notes) == (16, (), ())
    assert digests(tmp_path) == expected


def test_any_executor_will_do_and_stays_open(tmp_path: Path, expected: dict[str, str]) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        Study(small(), tmp_path).run(pool)
        assert pool.submit(abs, -1).result() == 1
    assert digests(tmp_path) == expected


def test_workers_that_do_not_see_the_folder_send_their_files_home(
    tmp_path: Path, expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = worker.perform
    monkeypatch.setattr(
        pooled,
        "perform",
        lambda batch: seen(Batch("/nowhere", batch.mark, batch.steps)),
    )
    with ThreadPoolExecutor(1) as pool:
        Study(small(), tmp_path).run(pool)
    assert digests(tmp_path) == expected


@pytest.fixture
def cluster() -> Iterator[Any]:
    dask: Any = import_module("distributed")
    address = "127.0.0.1:0"  # Others may have a cluster at the usual port.
    with dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=address) as made:
        yield made


def test_a_dask_cluster_plays_on_when_a_worker_is_killed(
    tmp_path: Path, expected: dict[str, str], cluster: Any
) -> None:
    dask: Any = import_module("distributed")
    with dask.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())

    def watch(progress: Progress) -> None:
        if progress.done >= 2 and pids:
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()

    report = Study(small(), tmp_path).run(Dask(cluster.scheduler_address), watch=watch)
    assert not pids
    assert (report.done, report.failed_plays) == (16, ())
    assert digests(tmp_path) == expected


class Cancelling(ThreadPoolExecutor):
    """Cancels what it is given, as Dask does when its scheduler has died."""

    def submit(self, *_: Any, **__: Any) -> Future[Any]:
        given: Future[Any] = Future()
        given.cancel()
        given.set_running_or_notify_cancel()
        return given


def test_an_executor_that_cancels_plays_is_said_to_be_broken(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match=r"run again with a new one: finished plays are kept"):
        Study(small(), tmp_path).run(Cancelling(1))


def test_a_dask_cluster_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExecutorError, match=r"no Dask cluster answers at nonsense"):
        Study(small(), tmp_path).run(Dask("nonsense://here"))


def test_a_missing_dask_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExecutorError, match=r"extra `dask`: pip install 'sparq-sim\[dask\]'"):
        Study(small(), tmp_path).run(Dask())


# Workers that die


def deadly(tmp_path: Path, times: int) -> Any:
    (tmp_path / "deaths").mkdir()
    killer = Deadly(folder=str(tmp_path / "deaths"), times=times)
    return scenario(replications=2, optimizers={"deadly": killer, "calm": Dawdling(seconds=0.02)})


def test_a_play_whose_worker_dies_once_is_played_again(tmp_path: Path) -> None:
    report = Study(deadly(tmp_path, times=1), tmp_path / "study").run(Processes(2))
    assert (report.done, report.failed_plays) == (4, ())


def test_a_play_that_kills_its_worker_twice_is_reported_and_skipped(tmp_path: Path) -> None:
    study = Study(deadly(tmp_path, times=99), tmp_path / "study")
    report = study.run(Processes(2))
    assert report.done == 2
    assert {trouble.play.optimizer for trouble in report.failed_plays} == {"deadly"}
    assert len(report.failed_plays) == 2
    assert all("killed" in trouble.reason for trouble in report.failed_plays)
    assert len(list((tmp_path / "deaths").iterdir())) == 4
    assert {play.optimizer for play in study.missing()} == {"deadly"}


def test_workers_that_cannot_start_are_an_error_and_not_the_plays_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "settle_worker", os.abort)
    with pytest.raises(ExecutorError, match="die as soon as they start"):
        Study(small(), tmp_path).run(Processes(1))


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)], ids=["here", "process"])
def test_a_play_that_fails_is_reported_and_the_others_go_on(
    tmp_path: Path, executor: InProcess | Processes
) -> None:
    fallible = scenario(replications=2, optimizers={"broken": Broken(), "calm": Uniform()})
    report = Study(fallible, tmp_path).run(executor)
    assert report.done == 2
    assert [trouble.play.optimizer for trouble in report.failed_plays] == ["broken"] * 2
    assert "ZeroDivisionError: one over nothing" in report.failed_plays[0].reason


# Landscapes


@pytest.mark.parametrize(("jobs", "most"), [(1, 3), (2, 6)])
def test_landscapes_are_started_once_a_replication_and_worker(
    tmp_path: Path, jobs: int, most: int
) -> None:
    (tmp_path / "starts").mkdir()
    counted = Counted(folder=str(tmp_path / "starts"))
    optimizers = {f"dawdling-{n}": Dawdling(seconds=0.0, why=n) for n in range(4)}
    played = scenario(replications=3, environment=counted, optimizers=optimizers)
    assert Study(played, tmp_path / "study").run(Processes(jobs)).done == 12
    assert 3 <= len(list((tmp_path / "starts").iterdir())) <= most


def test_jobs_are_counted_from_one() -> None:
    with pytest.raises(ExecutorError, match="at least 1, not 0"):
        Processes(0)


class Tallied(Synthetic):
    """Notes in a file each time of which the best is asked for."""

    tally: str

    def start(self, rng: Generator) -> Landscape:
        return _TalliedLandscape(super().start(rng), Path(self.tally), started=time.time_ns())


class _TalliedLandscape:
    def __init__(self, landscape: Landscape, file: Path, started: int) -> None:
        self._landscape, self._file, self._started = landscape, file, started
        self.domain, self.rewards = landscape.domain, landscape.rewards

    def best(self, time: float) -> tuple[Point, float]:
        with self._file.open("a") as lines:
            lines.write(f"{os.getpid()} {self._started} {time}\n")
        return self._landscape.best(time)


@pytest.mark.parametrize("executor", [InProcess(), Processes(1)], ids=["here", "process"])
def test_the_best_of_a_time_is_found_once_for_all_optimizers(
    tmp_path: Path, executor: InProcess | Processes
) -> None:
    file = tmp_path / "bests.txt"
    optimizers = {f"dawdling-{n}": Dawdling(seconds=0.0, why=n) for n in range(3)}
    world = Tallied(tally=str(file))
    played = scenario(rounds=10, replications=2, environment=world, optimizers=optimizers)
    assert Study(played, tmp_path / "study").run(executor).done == 6
    asked = file.read_text().splitlines()
    assert len(asked) == 2 * 10
    assert len(set(asked)) == len(asked)


def test_a_file_that_changes_while_it_is_played_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    told = rf"a file that it names has changed since it was loaded .* a str, not a Path.*: {log}"
    with pytest.raises(ExecutorError, match=told):
        Study(scenario(optimizers={"a": Logging(log=log)}), tmp_path / "out").run(InProcess())


# What a landscape holds


def opened(log: Path, **fields: Any) -> Any:
    """Two optimizers against three landscapes that must be entered."""
    environment = Opened(log=str(log), closes=fields.pop("closes", True))
    chosen = {"a": Uniform(), "b": Dawdling(seconds=0.0)}
    return scenario(environment=environment, replications=3, **{"optimizers": chosen} | fields)


def test_a_landscape_that_plays_share_is_entered_once_and_left_after_the_last(
    tmp_path: Path,
) -> None:
    report = Study(opened(tmp_path / "log"), tmp_path / "out").run(InProcess())
    assert (report.done, report.failed_plays, report.notes) == (6, (), ())
    assert entered_and_left(tmp_path / "log") == [3, 3]


def test_workers_leave_the_landscapes_that_they_share(tmp_path: Path) -> None:
    report = Study(opened(tmp_path / "log"), tmp_path / "out").run(Processes(2))
    assert (report.done, report.failed_plays, report.notes) == (6, (), ())
    entered, left = entered_and_left(tmp_path / "log")
    assert 3 <= entered == left <= 6


def test_workers_of_others_leave_a_landscape_with_each_order(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        report = Study(opened(tmp_path / "log"), tmp_path / "out").run(pool)
        entered, left = entered_and_left(tmp_path / "log")
    assert (report.done, report.failed_plays) == (6, ())
    assert 3 <= entered == left <= 6


def test_a_worker_that_is_told_to_end_leaves_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "deaths").mkdir()
    killer = Deadly(folder=str(tmp_path / "deaths"), times=1, signal=signal.SIGTERM)
    study = Study(opened(tmp_path / "log", optimizers={"deadly": killer}), tmp_path / "out")
    report = study.run(Processes(1))
    assert (report.done, report.failed_plays) == (3, ())
    assert len(list((tmp_path / "deaths").iterdir())) == 1
    assert entered_and_left(tmp_path / "log") == [4, 4]


def test_a_shared_landscape_that_cannot_be_closed_fails_no_play(tmp_path: Path) -> None:
    study = Study(opened(tmp_path / "log", closes=False), tmp_path / "out")
    told = r"environment Opened could not be closed: OSError: the disk is full"
    with pytest.warns(landscapes.NotClosedWarning, match=told):
        report = study.run(InProcess())
    assert (report.done, report.failed_plays) == (6, ())
