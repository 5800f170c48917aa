"""Threads that a plug-in leaves behind keep no process from ending, and are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import PATIENCE

LEAVING = '''
"""Optimizers that start threads and forget them."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from sparq_sim.optimizers.uniform import Uniform

pool = ThreadPoolExecutor(1)


def poll():
    while True:
        time.sleep(600)


class Polling(Uniform):
    def start(self, briefing, rng):
        threading.Thread(target=poll, name="poller").start()
        return super().start(briefing, rng)


class Pooling(Uniform):
    def start(self, briefing, rng):
        pool.submit(poll)
        return super().start(briefing, rng)


class Tidy(Uniform):
    def start(self, briefing, rng):
        pool.submit(int)
        return super().start(briefing, rng)
'''


def play(folder: Path, optimizer: str, executor: str) -> subprocess.CompletedProcess[str]:
    (folder / "leaving.py").write_text(LEAVING)
    (folder / "leaving.toml").write_text(
        'rounds = 2\nreplications = 1\nlevels = false\nenvironment.kind = "synthetic"\n'
        f'optimizers.a.kind = "leaving:{optimizer}"\n'
    )
    run = ["run", "leaving.toml", "--allow-import", "--no-report", "--executor", executor]
    return subprocess.run(
        [sys.executable, "-m", "sparq_sim", *run, "--quiet"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize(
    ("optimizer", "executor", "told"),
    [
        ("Polling", "in-process", "Note: the thread 'poller' of leaving still ran 3 s after"),
        (
            "Pooling",
            "processes",
            "Note: in a worker, the thread 'ThreadPoolExecutor-0_0' of leaving",
        ),
    ],
)
def test_a_thread_that_never_ends_is_named_and_the_process_ends(
    tmp_path: Path, optimizer: str, executor: str, told: str
) -> None:
    done = play(tmp_path, optimizer, executor)
    assert told in done.stderr
    assert "start such a thread with daemon=True" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("studies/leaving/rounds/*.parquet"))) == 1


def test_a_pool_of_threads_that_is_idle_is_nothing_to_speak_of(tmp_path: Path) -> None:
    done = play(tmp_path, "Tidy", "in-process")
    assert (done.stderr, done.returncode) == ("", 0)
