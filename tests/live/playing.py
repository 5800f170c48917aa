"""How tests play live: with no waiting, as a coroutine, or as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from sparq_sim.journal.entries import Entry
from sparq_sim.journal.reader import read_journal
from sparq_sim.live.play import live
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import Trace
from sparq_sim.testing import WaitlessLoop
from tests.conftest import PATIENCE

ROOT = Path(__file__).parents[2]
T = TypeVar("T")


def without_waiting(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* on a loop whose time jumps to the next timer."""
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(work)


def plan(folder: Path, **fields: Any) -> Scenario:
    """Return a scenario of a prober, a plant and a laboratory, which log into a folder."""
    chosen: dict[str, Any] = {
        "rounds": 6,
        "seed": 3,
        "access": "domain",
        "environment": {"kind": "tests.live.plant:Plant", "log": str(folder / "log")},
        "experts": {
            "lab": {
                "kind": "tests.live.plant:Lab",
                "log": str(folder / "log"),
                "channel": {"cost": 0.5},
            }
        },
        "optimizers": {"prober": {"kind": "tests.live.plant:Prober"}},
    }
    for name, value in fields.items():
        before = chosen.get(name)
        is_table = isinstance(before, dict) and isinstance(value, dict)
        chosen[name] = {**before, **value} if is_table else value  # type: ignore[dict-item] # a dict
    return Scenario.model_validate(chosen, context={"allow_import": True})


def play(scenario: Scenario, folder: Path, **more: Any) -> Trace:
    """Play live without waiting."""
    return without_waiting(live(scenario, folder=folder, **more))


def entries(folder: Path, kind: type[T]) -> list[T]:
    """Return the entries of one kind in the journal of a folder."""
    found: list[Entry] = read_journal(folder / "journal.jsonl").entries
    return [entry for entry in found if isinstance(entry, kind)]


def cut_journal(folder: Path, lines: int) -> None:
    """Leave the header and so many entries of a journal, as a crash would."""
    file = folder / "journal.jsonl"
    kept = file.read_bytes().splitlines(keepends=True)[: lines + 1]
    file.write_bytes(b"".join(kept))


class Process:
    """A process of `sparq-sim live`; it ends with the `with` block."""

    def __init__(self, *arguments: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sparq_sim", "live", *arguments, "--allow-import"],
            cwd=ROOT,
            env={**kept, "OPENBLAS_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """Send a signal; return the exit code and all that was printed."""
        self.process.send_signal(number)
        return self.end()

    def end(self) -> tuple[int, str]:
        """Wait for its end; return the exit code and all that was printed."""
        told, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, told
