"""Studies compared with the plays they consist of, two processes with one, and start-up times.

Run it from the root of the repository: `python -m benchmarks.study [--check] [--json]`. Two
processes are timed by the wall clock, start-up included, and need two free cores.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from benchmarks.compare import Pair, Row, at_most, main
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess, Processes
from sparq_sim.study.study import Study

PLAYS = 20


def load_scenario(replications: int) -> Scenario:
    """Return a scenario whose plays take about a tenth of a second."""
    return Scenario.load(
        "synthetic",
        overrides=["rounds=170", f"replications={replications}", "optimizers=['sparq-gp-ucb']"],
    )


def play_only() -> None:
    """Play, and store nothing."""
    plays = load_scenario(PLAYS)
    for replication in range(PLAYS):
        plays.play("sparq-gp-ucb", replication)


def play_and_store() -> None:
    """Play, and store the rounds."""
    with TemporaryDirectory() as folder:
        Study(load_scenario(PLAYS), Path(folder) / "study").run(InProcess())


def compare_processes() -> Row:
    """Compare two processes with one."""
    times = {}
    for jobs in (1, 2):
        with TemporaryDirectory() as folder:
            began = perf_counter()
            Study(load_scenario(8 * PLAYS), Path(folder) / "study").run(Processes(jobs))
            times[jobs] = perf_counter() - began
    ratio = times[1] / times[2]
    what = f"{8 * PLAYS} plays, two processes; one"
    return Row(what, times[2], times[1], ratio, "at least 1.8 x", ratio >= 1.8)


def time_command(what: str, *arguments: str, seconds: float) -> Callable[[], Row]:
    """Return what compares the CPU time of a command with the *seconds* that it may take."""

    def row() -> Row:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(5):
            subprocess.run(
                [sys.executable, "-m", "sparq_sim", *arguments], check=True, capture_output=True
            )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 5
        ratio = taken / seconds
        return Row(what, taken, seconds, ratio, "at most 1 x", ratio <= 1)

    return row


ROWS: list[Pair | Callable[[], Row]] = [
    Pair(
        "a play kept as rounds; a bare play",
        play_and_store,
        play_only,
        at_most(1.05),
        units=PLAYS,
        repetitions=15,
    ),
    compare_processes,
    time_command("sparq-sim --help; 0.25 s of CPU", "--help", seconds=0.25),
    time_command("sparq-sim check; 0.6 s of CPU", "check", "synthetic", seconds=0.6),
]

if __name__ == "__main__":
    main("Studies", ROWS, repetitions=5)
