"""Trials: one file, one command, in a process of its own, and what is wrong with how it ended."""

from __future__ import annotations

import gc
import os
import re
import resource
import select
import shutil
import signal
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from sparq_sim.cli.main import main

__all__ = ["Outcome", "attempt"]

_WALL = 120.0
"""Seconds after which a trial that does not end is stopped: it waits for something."""
_MEMORY = 3 * 2**30
"""Bytes of address space that a trial may use beyond those of the process that it comes from."""
_RAW = re.compile(r"\b[A-Z][A-Za-z]*(?:Error|Exception|Interrupt): .*")
"""The name of an error: a user is told in words."""
_PLACE = re.compile(r"\.toml:\d+: ")
"""Where a message begins that is about a file that is extended."""
_TOO_MUCH = 99
"""The exit code of a trial that needs more memory than it may use."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    """Its exit code; minus the signal that ended it."""
    printed: str
    """What it wrote to stdout and stderr, and the traceback if it ended in one."""
    cpu: float
    """Seconds of computing."""
    memory: int
    """The most bytes that it used beyond those of the process that it comes from."""
    stopped: bool
    """Whether it used no computing time, and did not end."""

    def find_faults(self, file: Path, *, most_cpu: float) -> list[str]:
        """Return what is wrong with the outcome, a word each with the reason.

        Args:
            file: What the command was about.
            most_cpu: How many seconds of computing it may take.
        """
        faults: list[str] = []
        if self.stopped:
            faults.append("hangs")
        elif self.code == -signal.SIGPROF or self.cpu > most_cpu:
            faults.append(f"slow: {self.cpu:.1f} s")
        elif self.code == _TOO_MUCH or "MemoryError" in self.printed:
            faults.append("memory")
        elif self.code < 0:
            faults.append(f"ended by signal {-self.code}")
        elif self.code not in (0, 1, 2):
            faults.append(f"traceback: {self.printed.strip().splitlines()[-1][:200]}")
        elif raw := _RAW.search(self.printed):
            faults.append(f"raw: {raw[0][:200]}")
        elif self.code == 2 and not (
            str(file.parent) in self.printed or _PLACE.search(self.printed)
        ):
            faults.append("no file named")
        return faults


def attempt(
    arguments: Sequence[str], *, folder: Path, most_cpu: float, wall: float = _WALL
) -> Outcome:
    """Run the command line in a child of this process, which is stopped if it takes too long.

    Args:
        arguments: The command and its arguments.
        folder: The working directory.
        most_cpu: After how many seconds of computing the child is ended.
        wall: After how many seconds it is ended in any case.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        os.close(reading)
        _be_child(arguments, folder, most_cpu, writing)
    os.close(writing)
    content, stopped = _read_all(reading, child, wall)
    _, status, used = os.wait4(child, 0)
    return Outcome(
        os.waitstatus_to_exitcode(status),
        content,
        used.ru_utime + used.ru_stime,
        used.ru_maxrss * 1024,
        stopped,
    )


def _read_all(reading: int, child: int, wall: float) -> tuple[str, bool]:
    ends, stopped, parts = time.monotonic() + wall, False, []
    with os.fdopen(reading, "rb") as pipe:
        while True:
            ready, _, _ = select.select([pipe], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                os.kill(child, signal.SIGKILL)
                stopped = True
                break
            if not (part := os.read(pipe.fileno(), 65_536)):
                break
            parts.append(part)
    return b"".join(parts).decode(errors="replace"), stopped


def _be_child(arguments: Sequence[str], folder: Path, most_cpu: float, writing: int) -> None:
    """Run the command, write what it prints to the pipe, and end this process."""
    code = 3
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[0])
        limit = pages * resource.getpagesize() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.chdir(folder)
        signal.setitimer(signal.ITIMER_PROF, most_cpu)
        code, told = _run(arguments)
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        content = memoryview(told[-100_000:].encode(errors="replace"))
        while content:
            content = content[os.write(writing, content) :]
    finally:
        os._exit(code)


def _run(arguments: Sequence[str]) -> tuple[int, str]:
    told = StringIO()
    try:
        with redirect_stdout(told), redirect_stderr(told):
            main(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 3
        return (3 if code not in (0, 1, 2) else code), told.getvalue()
    except MemoryError:
        gc.collect()
        return _TOO_MUCH, told.getvalue() + "\nMemoryError"
    except BaseException:
        return 3, told.getvalue() + traceback.format_exc()
    return 0, told.getvalue()


def clear(folder: Path) -> None:
    """Remove a folder that a trial has made, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)
