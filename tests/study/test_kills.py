"""Studies that are killed again and again come out as if nobody had touched them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from numpy.random import Generator, Philox

from tests.conftest import wait_until
from tests.study.conftest import Untouched
from tests.study.test_executors import digests

Target: TypeAlias = Literal["worker", "coordinator", "group"]
TARGETS: tuple[Target, ...] = ("worker", "coordinator", "group")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


def list_tree(pid: int) -> list[int]:
    """Give the processes that a process has started, and those that they have."""
    found = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            children = [int(each) for each in (task / "children").read_text().split()]
            found += [each for child in children for each in (child, *list_tree(child))]
    except OSError:
        pass  # It has ended meanwhile.
    return found


def is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@dataclass
class Chain:
    """One study, whose command is hurt and started again until it is finished."""

    code: Path
    """Where the scenario is, and its optimizer."""
    home: Path
    executor: str
    rng: Generator
    kills: int
    """How many kills are left."""
    told: list[str] = field(default_factory=list)
    """What was done, for who reads of a failure."""
    sent: set[int] = field(default_factory=set)
    """The signals that the command itself got last."""

    @property
    def folder(self) -> Path:
        return self.home / "out"

    @property
    def story(self) -> str:
        return "\n".join(self.told[-4:])

    def finished(self) -> dict[str, bytes]:
        """Give what is finished, each play with the hash of its file."""
        files = self.folder.glob("rounds/*.parquet")
        return {file.stem: blake2b(file.read_bytes()).digest() for file in files}

    def start(self) -> subprocess.Popen[str]:
        options = ["--out", str(self.folder), "--jobs", "2", "--executor", self.executor]
        run = [
            "run",
            "study.toml",
            *options,
            "--no-report",
            "--allow-import",
            "-q",
        ]
        return subprocess.Popen(
            # As in a terminal: a shell's background would ignore Ctrl-C.
            [sys.executable, "-c", START, *run],
            cwd=self.code,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def go(self) -> None:
        """Run the command until it is finished, and hurt it as often as is left."""
        for _ in range(self.kills + 5):
            with self.start() as command:
                hurt = self.hurt(command) if self.kills else None
                assert command.stderr is not None
                said = command.stderr.read()
            self.told.append(f"ended with {command.returncode}: {said!r}")
            self.check_end(command.returncode, said, hurt)
            if command.returncode == 0:
                return
        raise AssertionError("it is not finished after many tries")

    def hurt(self, command: subprocess.Popen[str]) -> tuple[Target, int] | None:
        """Kill something at a random moment, unless the command is faster; tell what and how."""
        before, more = len(self.finished()), self.rng.integers(0, 8)
        # Its own mark: earlier, a signal hits Python as it starts.
        mark = f".run.*.{command.pid}.*.part"
        wait_until(
            lambda: (
                command.poll() is not None
                or (any(self.folder.glob(mark)) and len(self.finished()) >= before + more)
            )
        )
        time.sleep(self.rng.uniform(0.0, 0.3))
        target = TARGETS[self.rng.integers(len(TARGETS))]
        number = SIGNALS[self.rng.integers(len(SIGNALS))]
        tree = list_tree(command.pid)
        workers = [pid for pid in tree if is_worker(pid)]
        if command.poll() is not None or (target == "worker" and not workers):
            return None
        self.known, self.tree = self.finished(), tree
        self.told.append(f"{number.name} to {target}, {len(self.known)} plays finished")
        self.kills -= 1
        self.sent = set() if target == "worker" else {number}
        match target:
            case "worker":
                os.kill(workers[self.rng.integers(len(workers))], number)
            case "coordinator":
                command.send_signal(number)
            case "group":
                os.killpg(command.pid, number)
        if number in (signal.SIGTERM, signal.SIGHUP) and self.rng.random() < 0.5:
            # Whoever asked is in a hurry, and asks again in another way.
            time.sleep(self.rng.uniform(0.0, 0.2))
            again = SIGNALS[1 + self.rng.integers(3)]
            if target != "worker" and command.poll() is None:
                self.told.append(f"and {again.name} to coordinator")
                self.sent.add(again)
                command.send_signal(again)
        return target, number

    def check_end(self, code: int, said: str, hurt: tuple[Target, int] | None) -> None:
        """Check how the command ended, and that nothing is lost."""
        if hurt is None:
            assert code == 0, self.story
            return
        target, number = hurt
        wait_until(lambda: not any(map(runs, self.tree)))
        assert self.known.items() <= self.finished().items(), self.story
        # Of a coordinator that was killed, Python itself removes the locks, and says so; a worker
        # of Dask's that Ctrl-C reaches says so as well.
        interrupted = number == signal.SIGINT and self.executor == "dask"
        if number != signal.SIGKILL and not interrupted:
            assert "Traceback" not in said, self.story
            assert "leaked" not in said, self.story
        if target == "worker":
            assert code == 0, self.story
        elif code and number == signal.SIGKILL:
            assert code == -number, self.story
        elif code:
            # Of two that are pending at once, Python hears the one with the lower number first.
            assert code in {128 + each for each in self.sent}, self.story
            assert said.endswith(STOPPED.format(self.folder)), self.story
            if signal.SIGINT not in self.sent:
                assert said == STOPPED.format(self.folder), self.story
        if number != signal.SIGKILL or target == "worker":
            assert not list(self.folder.rglob(".*.part")), self.story


START = """
import signal, sys
from sparq_sim.cli.main import main
signal.signal(signal.SIGINT, signal.default_int_handler)
if __name__ == "__main__":
    main()
"""
STOPPED = "Stopped. Finished plays are in {}; run the same command to continue.\n"


def check(home: Path, executor: str, seed: int, kills: int, untouched: Untouched) -> None:
    """Hurt studies until all kills are spent, and compare each with the one that nobody hurt."""
    chain = Chain(untouched.code, home, executor, Generator(Philox(key=seed)), kills)
    for number in range(kills):
        if not chain.kills:
            return
        chain.home = home / str(number)
        chain.home.mkdir()
        chain.go()
        assert len(untouched.digests) == 32
        assert digests(chain.folder) == untouched.digests, chain.story
        assert not list(chain.folder.rglob(".*.part")), chain.story
    assert not chain.kills


def test_three_kills_change_nothing(tmp_path: Path, untouched: Untouched) -> None:
    check(tmp_path, "processes", seed=0, kills=3, untouched=untouched)


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "dask"])
@pytest.mark.parametrize("seed", range(1, 11))
def test_two_hundred_kills_change_nothing(
    tmp_path: Path, untouched: Untouched, executor: str, seed: int
) -> None:
    check(tmp_path, executor, seed, kills=10, untouched=untouched)
