"""A Dask cluster of real processes, of which some are killed in the middle of a study."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparq_sim.study.executors.dask import _start_cluster
from sparq_sim.study.executors.protocol import ExecutorError
from tests.conftest import wait_until
from tests.study.conftest import Untouched
from tests.study.test_executors import digests

pytestmark = pytest.mark.slow


@contextmanager
def cluster(folder: Path, code: Path) -> Iterator[tuple[str, subprocess.Popen[str], list[int]]]:
    """Start a scheduler and two workers without nannies; give its address, and all of them."""
    file = folder / "scheduler.json"
    named = ["--scheduler-file", str(file)]
    commands = [["dask_scheduler", *named, "--port", "0", "--no-dashboard"]]
    commands += [["dask_worker", *named, "--no-nanny", "--nthreads", "1", "--no-dashboard"]] * 2
    started: list[subprocess.Popen[str]] = []
    try:
        for command in commands:
            started.append(
                subprocess.Popen(
                    [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]],
                    cwd=code,
                    start_new_session=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            wait_until(file.exists)
        yield json.loads(file.read_text())["address"], started[0], [w.pid for w in started[1:]]
    finally:
        for process in started:
            process.kill()
            process.wait()


def start(untouched: Untouched, out: Path, address: str) -> subprocess.Popen[str]:
    run = ["run", str(untouched.code / "study.toml"), "--out", str(out), "--executor", address]
    return subprocess.Popen(
        [sys.executable, "-m", "sparq_sim", *run, "--no-report", "--allow-import", "-q"],
        cwd=untouched.code,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def count(out: Path) -> int:
    return len(list(out.glob("rounds/*.parquet")))


def test_a_scheduler_that_is_killed_is_said_and_the_same_command_goes_on(
    tmp_path: Path, untouched: Untouched
) -> None:
    out = tmp_path / "out"
    with (
        cluster(tmp_path, untouched.code) as (address, scheduler, _),
        start(untouched, out, address) as command,
    ):
        wait_until(lambda: count(out) >= 5)
        scheduler.kill()
        assert command.stderr is not None
        said = command.stderr.read()
    assert command.returncode == 2, said
    assert "finished plays are kept" in said
    assert "Traceback" not in said, said
    assert 5 <= count(out) < len(untouched.digests)
    assert not list(out.rglob(".*.part"))
    (tmp_path / "again").mkdir()
    with (
        cluster(tmp_path / "again", untouched.code) as (address, _, _),
        start(untouched, out, address) as command,
    ):
        assert command.stderr is not None
        said = command.stderr.read()
    assert (command.returncode, said) == (0, "")
    assert digests(out) == untouched.digests


def test_a_worker_that_is_killed_costs_no_play(tmp_path: Path, untouched: Untouched) -> None:
    out = tmp_path / "out"
    with (
        cluster(tmp_path, untouched.code) as (address, _, workers),
        start(untouched, out, address) as command,
    ):
        wait_until(lambda: count(out) >= 5)
        os.kill(workers[0], signal.SIGKILL)
        assert command.stderr is not None
        said = command.stderr.read()
    assert command.returncode == 0, said
    assert "Traceback" not in said, said
    assert digests(out) == untouched.digests


@pytest.mark.parametrize("fails", [2, 3])
def test_a_local_cluster_whose_worker_is_killed_as_it_starts_is_started_again(fails: int) -> None:
    distributed: Any = import_module("distributed")
    tried: list[int] = []

    def start(**options: Any) -> Any:
        tried.append(1)
        if len(tried) <= fails:
            raise RuntimeError("Nanny failed to start worker process")
        return distributed.LocalCluster(**options)

    dask = SimpleNamespace(LocalCluster=start)
    if fails < 3:
        with _start_cluster(dask, 1) as cluster:
            assert len(cluster.workers) == 1
    else:
        with pytest.raises(ExecutorError, match=r"--jobs 1, does not start: Nanny failed.*; lower"):
            _start_cluster(dask, 1)
    assert len(tried) == 3


def test_a_scheduler_that_is_not_there_is_said(tmp_path: Path, untouched: Untouched) -> None:
    with start(untouched, tmp_path / "out", "tcp://127.0.0.1:9") as command:
        assert command.stderr is not None
        said = command.stderr.read()
    assert command.returncode == 2
    assert said.startswith("Error: no Dask cluster answers at tcp://127.0.0.1:9: ")
    assert "Traceback" not in said, said
