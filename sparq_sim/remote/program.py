"""Peers that are programs: one child for a whole play, and a message a line over its pipes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any, Self

from pydantic import NonNegativeInt, model_validator

from sparq_sim.errors import PeerError, SparqError, mask_invisible
from sparq_sim.fields import Command
from sparq_sim.remote.peer import Address, Exchanges, Peer
from sparq_sim.remote.secrets import read_secret, redact
from sparq_sim.remote.wire import encode

__all__ = ["ProgramAddress", "choose_environment"]

STDERR_KEPT = 2000
"""How many bytes of what a child writes last to stderr are kept."""
STDERR_SHOWN = 200
"""How many characters of these an error shows."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a child that died is started again: doubled each time, up to the longest."""
GRACE = 1.0
"""Seconds that a child has to end by itself, and again after it was told to terminate."""
INHERITED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TERM", "TZ", "LANG", "LANGUAGE"),
        *("TMPDIR", "TEMP", "TMP", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONPATH"),
        *("VIRTUAL_ENV", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    }
)
"""The environment variables that a child is given in any case, with all that begin with LC_."""


def choose_environment() -> dict[str, str]:
    """Return the environment variables that any program may be given, as they hold no secrets."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in INHERITED or name.startswith("LC_")
    }


class ProgramAddress(Address):
    """A program that reads a message from each line of stdin, and writes replies to stdout.

    One child runs for the whole play. Several requests may be under way at once; it replies to
    them in any order, each with the `id` of its request, and may write readings in between. It
    must flush stdout after each line, and write to stderr what is not for us. It ends when stdin
    is closed.
    """

    command: Command
    """The program and its arguments, as ["./lab", "--fast"]; no shell is involved. A relative path
    of the program starts from the working directory or, in a scenario file, from the folder of
    that file; a bare name is looked for on the PATH."""
    folder: Path | None = None
    """The working directory of the program; by default that of this process."""
    pass_env: tuple[str, ...] = ()
    """The environment variables that the program is given besides PATH, HOME and the like; what
    they hold is treated as secret."""
    restarts: NonNegativeInt = 3
    """How often it is started again if it ends, in a row without a message in between."""

    @model_validator(mode="after")
    def _has_a_program(self) -> Self:
        if not self.command[0] or any("\0" in each for each in self.command):
            raise ValueError(f"command {list(self.command)} needs a program as its first item")
        return self

    @property
    def sends_readings(self) -> bool:
        return True

    def check_ready(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise SparqError(f"folder {str(self.folder)!r} of program {self.name} is none")
        program = self.program
        if os.sep in program and Path(program).is_file() and not os.access(program, os.X_OK):
            raise SparqError(
                f"program {self.command[0]!r} is not executable: chmod +x {quote(program)}"
            )
        if shutil.which(program) is None:
            raise SparqError(
                f"no program {self.command[0]!r} is found that can be run; install it, or give its "
                "full path"
            )
        self._read_secrets()

    @property
    def name(self) -> str:
        """The name of the program, without its folder."""
        return Path(self.command[0]).name

    @property
    def program(self) -> str:
        """The program with its full path, or as a bare name, which is looked for on the PATH."""
        program = os.path.expanduser(self.command[0])
        return os.path.abspath(program) if os.sep in program else program

    def _read_secrets(self) -> dict[str, str]:
        return {name: read_secret(name) for name in self.pass_env}

    def open(self) -> AbstractAsyncContextManager[Peer]:
        return self._opened()

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Peer]:
        secrets = self._read_secrets()
        peer = _ProgramPeer(
            self,
            [self.program, *self.command[1:]],
            choose_environment() | secrets,
            [*secrets.values()],
        )
        keeper = asyncio.create_task(peer.keep_running())
        try:
            yield peer
        finally:
            keeper.cancel()
            await asyncio.wait([keeper])
            if not keeper.cancelled() and (error := keeper.exception()) is not None:
                raise error


class _ProgramPeer:
    """A child that is started again when it ends."""

    def __init__(
        self,
        address: ProgramAddress,
        command: list[str],
        variables: dict[str, str],
        secrets: list[str],
    ) -> None:
        self._address, self._command, self._variables = address, command, variables
        self._secrets = secrets
        self.exchanges = Exchanges(timeout=address.timeout, secrets=secrets)
        self._child: _Child | None = None
        self._changed = asyncio.Condition()
        self._over = ""

    async def exchange(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self.exchanges.run(message, self._send)

    def readings(self) -> AsyncIterator[Mapping[str, Any]]:
        return self.exchanges.readings()

    @property
    def dropped(self) -> Counter[str]:
        return self.exchanges.dropped

    async def _send(self, message: Mapping[str, Any]) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._child is not None or self._over)
        if (child := self._child) is None:
            raise PeerError(self._over)
        if child.is_deaf and await _happens(child.ended):  # How it ended says more.
            raise PeerError(redact(child.how, self._secrets))
        child.write(encode(message) + b"\n", self._address.largest)

    async def keep_running(self) -> None:
        """Start the child, and again when it has ended, until it has ended too often."""
        left, pause = self._address.restarts, FIRST_PAUSE
        while True:
            spoke, reason = await self._run_once()
            if spoke:
                left, pause = self._address.restarts, FIRST_PAUSE
            reason = redact(reason, self._secrets)
            if not left:
                again = self._address.restarts
                tried = f", and was started {again} times again" if again else ""
                reason += tried
            async with self._changed:
                self._child = None
                self._over = "" if left else reason
                self._changed.notify_all()
            self.exchanges.fail(reason)
            if not left:
                return
            left -= 1
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _run_once(self) -> tuple[bool, str]:
        """Run the child to its end; return whether it sent anything, and how it ended."""
        child = _Child(self.exchanges, self._address.largest, self._secrets)
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *self._command,
                cwd=self._address.folder,
                env=self._variables,
                start_new_session=True,  # Ctrl-C is for us; and what it starts ends with it.
            )
        except OSError as error:
            return False, f"cannot be started: {self._command[0]!r}: {error.strerror}"
        try:
            async with self._changed:
                self._child = child
                self._changed.notify_all()
            await child.silent.wait()
            return child.spoke, await child.end("closed its output")
        finally:
            # Also when the play is over and this is cancelled.
            self._child = None
            await asyncio.shield(asyncio.ensure_future(child.end()))


class _Child(asyncio.SubprocessProtocol):
    """A running program: splits what it writes into lines, and keeps the end of its stderr."""

    def __init__(self, exchanges: Exchanges, largest: int, secrets: list[str]) -> None:
        self._exchanges, self._largest, self._secrets = exchanges, largest, secrets
        self._line, self._errors = bytearray(), b""
        self._skips = False
        self.spoke = False
        self.silent = asyncio.Event()
        """Set when it has ended, or closed its stdout."""
        self._exited, self._closed = asyncio.Event(), asyncio.Event()
        self.ended = asyncio.Event()
        """Set when it has ended, and all that it wrote was read."""
        self.how = ""
        """How it ended."""

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._keep_errors(data)
            return
        *ended, rest = data.split(b"\n")
        for line in ended:
            self._line += line
            self._take_line()
        self._line += rest
        if len(self._line) > self._largest:
            # What is still to come of the line is forgotten too.
            if not self._skips:
                self._refuse()
            self._skips = True
            self._line.clear()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self.silent.set()

    def process_exited(self) -> None:
        self._exited.set()
        # What it wrote last is read first: usually its pipes end in the same instant.
        asyncio.get_running_loop().call_later(GRACE, self.silent.set)

    def connection_lost(self, exc: Exception | None) -> None:
        self.silent.set()
        self._closed.set()

    # Lines

    def _take_line(self) -> None:
        line, skips = bytes(self._line), self._skips
        self._line.clear()
        self._skips = False
        if skips or not line.strip():
            return
        if len(line) > self._largest:
            self._refuse()
            return
        self.spoke = True
        self._exchanges.take(line)

    def _refuse(self) -> None:
        self._exchanges.fail(
            f"wrote a line of more than {self._largest} bytes; see the field largest"
        )

    @property
    def is_deaf(self) -> bool:
        """Whether it has closed its stdin, as when it ends."""
        pipe = self._transport.get_pipe_transport(0)
        return pipe is None or pipe.is_closing()

    def write(self, line: bytes, most: int) -> None:
        """Write a line to its stdin; unless *most* bytes wait there already."""
        pipe = self._transport.get_pipe_transport(0)
        if not isinstance(pipe, asyncio.WriteTransport) or pipe.is_closing():
            raise PeerError("closed its input")
        if pipe.get_write_buffer_size() > most:
            raise PeerError("does not read its input")
        pipe.write(line)

    # Its end

    async def end(self, did: str = "") -> str:
        """Close its stdin, wait for its end, and force it if need be; return how it ended."""
        if not self.how:
            try:
                self.how = await self._end(did)
                self.ended.set()
            except asyncio.CancelledError:  # There is no time left.
                self._signal(signal.SIGKILL)
                self._transport.close()
                raise
        return self.how

    async def _end(self, did: str) -> str:
        pipe = self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport):
            pipe.close()
        is_forced = False
        for number in (signal.SIGTERM, signal.SIGKILL):
            if await _happens(self._exited):
                break
            is_forced = True
            self._signal(number)
        await self._exited.wait()
        self._signal(signal.SIGKILL)  # What it has started, and left behind.
        await _happens(self._closed)  # All that it wrote has been read then.
        self._transport.close()
        code = self._transport.get_returncode() or 0
        told = f"exit code {code}" if code >= 0 else f"signal {-code}"
        ended = f"{did}, and was ended" if is_forced else f"ended with {told}"
        return ended + self._last_words()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._transport.get_pid(), number)

    def _keep_errors(self, data: bytes) -> None:
        """Keep the end of stderr, in which no secret is cut: it is hidden before."""
        text = (self._errors + data).decode("utf-8", "surrogateescape")
        kept = redact(text, self._secrets).encode("utf-8", "surrogateescape")
        # Of a secret that is still to be written to its end, all that has come is kept.
        self._errors = kept[-max([STDERR_KEPT, *(8 * len(each) for each in self._secrets)]) :]

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._errors.decode(errors="replace").splitlines()]
        told = mask_invisible(" / ".join(filter(None, lines)))
        return f": {told[-STDERR_SHOWN:]}" if told else ""


async def _happens(event: asyncio.Event) -> bool:
    """Return whether an event happens soon."""
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE):
            await event.wait()
    return event.is_set()
