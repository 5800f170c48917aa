"""Programs: other programs that an expert calls, killed with all they started if given up."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from sparq_sim.errors import ProgramError
from sparq_sim.simulation.clock.protocol import Clock

__all__ = ["Command", "Program", "compute", "kill_all"]

T = TypeVar("T")

Command: TypeAlias = Sequence[str | Path]
"""A program and its arguments."""

LAST_LINES = 3
"""Of what a program that fails has written to stderr, shown in the error."""
MOST_CHARACTERS = 200
"""Of these."""
GRACE = 1.0
"""Seconds until the pipes of a program that was killed are left to whoever has them."""

_running: set[Program] = set()


class Program:
    """A *command* to run once, for at most *timeout* seconds.

    Args:
        command: The program and its arguments.
        input: What it reads from stdin; nothing by default.
        timeout: The longest time it may take, in seconds; by default without limit.
        environment: The environment variables that it is given; by default those of this process.
    """

    def __init__(
        self,
        command: Command,
        *,
        input: str | bytes | None = None,  # noqa: A002 - as subprocess.run calls it
        timeout: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(command, str | bytes) or not command:
            raise ProgramError(
                "expected a list of a program and its arguments, as in ['solver', '-n', '3'], not "
                f"{command!r:.80}"
            )
        self._command = [os.fspath(each) for each in command]
        self._name = Path(self._command[0]).name
        self._input = input.encode() if isinstance(input, str) else input
        self._timeout = timeout
        self._environment = environment
        self._child: subprocess.Popen[bytes] | None = None
        self._given_up = False
        self._lock = threading.RLock()  # A handler of signals may come in between.

    def run(self) -> str:
        """Run it to its end and return what it writes to stdout.

        Raises:
            ProgramError: It cannot be run, does not end in time, or ends with another code than 0.
        """
        child = self._start()
        try:
            output, errors = child.communicate(self._input, self._timeout)
        except BaseException as error:
            self.kill()
            _reap(child)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise ProgramError(
                f"{self._name} did not end within {self._timeout:g} s, and was killed"
            ) from None
        finally:
            _running.discard(self)
        if child.returncode:
            raise ProgramError(f"{self._name} ended with {_code(child.returncode)}{_last(errors)}")
        return output.decode(errors="replace")

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._given_up:
                raise ProgramError(f"{self._name} was given up before it began")
            try:
                self._child = subprocess.Popen(
                    self._command,
                    stdin=subprocess.DEVNULL if self._input is None else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=self._environment,
                    # Ctrl-C is for us to hear; and what it starts is killed with it.
                    start_new_session=True,
                )
            except FileNotFoundError:
                raise ProgramError(
                    f"no program {self._command[0]!r} is found; install it, or give its full path"
                ) from None
            except OSError as error:
                raise ProgramError(
                    f"{self._command[0]!r} cannot be run: {error.strerror}"
                ) from None
            _running.add(self)
            return self._child

    def kill(self) -> None:
        """End it and what it has started, if `run` waits for it; let it not begin otherwise."""
        with self._lock:
            self._given_up = True
            # Not poll: it may have ended, and what it has started still write for it. Until
            # somebody has waited for it, its number is that of nobody else.
            if self._child is not None and self._child.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    if hasattr(os, "killpg"):
                        os.killpg(self._child.pid, signal.SIGKILL)
                    else:
                        self._child.kill()


def _reap(child: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a *child* that was killed; what got away may keep its pipes open."""
    with suppress(subprocess.TimeoutExpired):
        child.communicate(timeout=GRACE)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    child.wait()


def kill_all() -> None:
    """End all that run."""
    for program in list(_running):
        program.kill()


def _code(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"signal {-code}"


def _last(errors: bytes) -> str:
    """Return the last lines of what a program has written to stderr, to put behind a message."""
    lines = [line.strip() for line in errors.decode(errors="replace").splitlines() if line.strip()]
    told = " / ".join(lines[-LAST_LINES:])[-MOST_CHARACTERS:]
    return f": {told}" if told else ", and nothing on stderr"


async def compute(
    clock: Clock, function: Callable[..., T], arguments: Sequence[Any], *, takes: float
) -> T:
    """Call a *function* that computes for long, or blocks, and return its result.

    Args:
        clock: By which the time passes.
        function: Not an `async def`.
        arguments: What it is called with.
        takes: How long that is declared to last, in clock units, also if it fails.

    Raises:
        ValueError: The declared time is not a finite number, 0 or more.
        TypeError: The function is asynchronous.
    """
    if not 0 <= takes < inf:
        raise ValueError(f"takes must be a finite number, 0 or more, not {takes!r}")
    ends = (began := clock.now) + takes
    try:
        result = await clock.compute(lambda _: function(*arguments), began)
    except Exception:
        await clock.until(ends)
        raise
    if inspect.iscoroutine(result):
        result.close()
        name = getattr(function, "__qualname__", type(function).__name__)
        raise TypeError(f"world.compute calls plain functions; await {name} itself")
    await clock.until(ends)
    return result
