"""A play that takes longer than its limit is ended and named, and its neighbours go on."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from numpy.random import Generator

from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Briefing, Optimizer
from sparq_sim.study.executors import (
    ExecutorError,
    InProcess,
    PlayExecutor,
    Processes,
    lane,
    pooled,
)
from sparq_sim.study.executors.limit import PlayTooLong, limit_play
from sparq_sim.study.study import Study
from tests.conftest import PATIENCE
from tests.study.plays import scenario
from tests.study.test_executors import Dawdling

LIMITS = (3.0, 30.0, 300.0)
"""Seconds, of which the last are longer than a sound play takes on the busiest machine."""


class Busy(Optimizer):
    """Computes without end, and has a hearing for nothing that is an error."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        while True:
            try:
                time.sleep(0.001)
            except Exception:
                continue


class Asleep(Optimizer):
    """Waits without end in native code, and lets nobody else compute meanwhile if *holds*."""

    holds: bool = False

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        if self.holds:  # A library that keeps Python's lock: no other thread goes on either.
            while True:
                ctypes.PyDLL(None).sleep(600)
        while True:
            ctypes.CDLL(None).sleep(600)


class Deaf(Optimizer):
    """Waits without end, and ignores who tells it to end."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(600)


def hanging(hung: Optimizer) -> Any:
    """A play that hangs, between two that do not."""
    optimizers = {"before": Uniform(), "hung": hung, "later": Dawdling(seconds=0.0)}
    return scenario(rounds=2, optimizers=optimizers, replications=1)


def check_all_but_hung(study: Study, executor: PlayExecutor | Executor) -> None:
    """Run a study until no play but those that hang has failed; a busy machine takes longer."""
    hung = [play for play in study.plays() if play.optimizer == "hung"]
    for limit in LIMITS:
        done = study.run(executor, limit=limit)
        assert set(hung) <= {failed.play for failed in done.failed_plays}
        for failed in done.failed_plays:
            assert f"it took longer than {limit:g} s" in failed.reason
            assert "--limit SECONDS, 0 for no limit" in failed.reason
        if len(done.failed_plays) == len(hung):
            break
    assert study.missing() == hung


@pytest.mark.parametrize(
    "hung", [pytest.param(Asleep(), marks=pytest.mark.slow), Asleep(holds=True), Deaf()]
)
def test_a_worker_that_hangs_is_ended_and_no_play_beside_it_suffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hung: Optimizer
) -> None:
    monkeypatch.setattr(lane, "GRACE", 0.5)
    # After a quick one, the worker is given two: the last waits behind the one that hangs.
    study = Study(hanging(hung), tmp_path)
    check_all_but_hung(study, Processes(1))


def test_a_play_in_this_process_that_computes_without_end_is_ended(tmp_path: Path) -> None:
    study = Study(hanging(Busy()), tmp_path)
    check_all_but_hung(study, InProcess())


def test_a_play_in_a_thread_that_computes_without_end_is_ended(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        study = Study(hanging(Busy()), tmp_path)
        check_all_but_hung(study, pool)


def test_what_cannot_be_ended_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pooled, "MARGIN", 0.0)
    with ThreadPoolExecutor(1) as pool:
        # Longer than its limit, in a call of native code that ends after all.
        study = Study(
            scenario(optimizers={"hung": Dawdling(seconds=3.0)}, replications=1), tmp_path
        )
        done = study.run(pool, limit=0.5)
    assert [failed.play for failed in done.failed_plays] == study.plays()
    said = capsys.readouterr().err
    assert said.startswith("Note: no worker has returned a play for 0 s. Native code that")
    assert said.count("Note: ") == 1


@pytest.mark.parametrize("limit", [-1.0, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, limit: float) -> None:
    with pytest.raises(ExecutorError, match="a number of seconds above 0, or 0 for none, not"):
        Study(scenario(), tmp_path).run(InProcess(), limit=limit)
    assert not list(tmp_path.iterdir())


def test_waiting_in_the_main_thread_is_ended_and_the_alarm_is_given_back() -> None:
    assert threading.current_thread() is threading.main_thread()
    began = time.monotonic()
    with pytest.raises(PlayTooLong), limit_play(0.1):
        time.sleep(PATIENCE)
    assert time.monotonic() - began < PATIENCE / 2
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


UNDER_A_PROFILER = """
import sys, threading
from sparq_sim.study.executors.limit import PlayTooLong, limit_play

ended = []

def play(limit):
    try:
        with limit_play(limit):
            while limit < 1:
                pass
    except PlayTooLong:
        ended.append(limit)

for limit in (60.0, 0.05, 60.0):
    thread = threading.Thread(target=play, args=(limit,))
    thread.start()
    thread.join()
sys.setprofile(lambda *_: None)
play(60.0)
print(ended)
"""


def test_a_play_in_a_thread_leaves_nothing_behind_on_which_a_profiler_hangs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_PROFILER],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, "[0.05]\n"), done.stderr
