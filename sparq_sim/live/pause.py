"""Pauses: a condition is looked at before each round, and holds the play and its clock."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.scenario.live_table import AnyPause, PauseFile
from sparq_sim.simulation.clock.realtime import LiveClock
from sparq_sim.simulation.journaling import Journaling

__all__ = ["MOST_NOTICE", "Notice", "PauseCondition", "Pauser", "make_condition", "read_notice"]

CHECK_EVERY = 0.5
"""How many seconds pass between two looks at the condition of a play that is paused."""
MOST_NOTICE = 100_000
"""How many bytes are read of what a file or a command says."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Why a play is paused, and within which bounds it is to go on."""

    reason: str = ""
    """Why, for people."""
    bounds: object = None
    """A pair of numbers for each coordinate; None for those of before."""


PauseCondition: TypeAlias = Callable[[], Awaitable[Notice | None]]
"""Returns why a play must stand still now; None where it may go on."""


def make_condition(pause: AnyPause) -> PauseCondition:
    """Return the condition that a scenario states.

    Args:
        pause: The table of the scenario.
    """

    async def look_at_file() -> Notice | None:
        assert isinstance(pause, PauseFile)
        try:
            with pause.file.open("rb") as file:
                content = file.read(MOST_NOTICE + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Notice(f"{pause.file}: {error.strerror}")
        return read_notice(content, default=f"{pause.file} exists")

    async def run_command() -> Notice | None:
        assert not isinstance(pause, PauseFile)
        return await _run(pause.command, pause.timeout)

    return look_at_file if isinstance(pause, PauseFile) else run_command


async def _run(command: tuple[str, ...], timeout: float) -> Notice | None:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        return Notice(f"{command[0]} cannot be run: {error.strerror}")
    try:
        output = await asyncio.wait_for(_read_to_end(process), timeout)
    except TimeoutError:
        return Notice(f"{command[0]} did not end within {timeout:g} s")
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode == 0:
        return None
    told = f"{command[0]} ended with code {process.returncode}"
    return read_notice(output, default=told)


async def _read_to_end(process: asyncio.subprocess.Process) -> bytes:
    """Return the beginning of what a command prints, once it has ended."""
    assert process.stdout is not None
    output = b""
    while more := await process.stdout.read(MOST_NOTICE):
        output = (output + more)[: MOST_NOTICE + 1]
    await process.wait()
    return output


def read_notice(content: bytes, *, default: str) -> Notice:
    """Read what a file or a command says of a pause.

    Args:
        content: TOML with `reason` and `bounds`, or any other text, whose first line is the
            reason; of what is longer than `MOST_NOTICE` bytes, the beginning is such a text.
        default: The reason, where the text gives none.
    """
    text = content.decode(errors="replace")
    try:
        if len(content) > MOST_NOTICE:
            raise ValueError
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError):  # Of numbers and dates that are none, too.
        lines = text.strip().splitlines()
        return Notice(lines[0][:200] if lines else default)
    return Notice(str(data.get("reason", default))[:200], data.get("bounds"))


class Pauser:
    """Holds a play before a round while a condition says so.

    Args:
        condition: Says whether the play must stand still.
        clock: Its clock, which stands still meanwhile.
        domain: Where points may lie.
        journal: Is told of it.
        tell: Called with a line for the terminal.
    """

    def __init__(
        self,
        condition: PauseCondition,
        clock: LiveClock,
        domain: Domain,
        journal: Journaling,
        tell: Callable[[str], None],
    ) -> None:
        self._condition = condition
        self._clock = clock
        self._domain = domain
        self._journal = journal
        self._tell = tell

    async def before_round(self, number: int) -> Box | None:
        """Wait until the play may go on.

        Args:
            number: That of the round that is about to begin.

        Returns:
            The bounds within which points must lie from now on; None for those of before.
        """
        notice = await self._condition()
        if notice is None:
            return None
        self._clock.hold()
        self._report("paused", f"paused before round {number}: {notice.reason}")
        bounds: Box | None = None
        told = ""
        while notice is not None:
            bounds, wrong = self._read_bounds(notice.bounds)
            if wrong and wrong != told:
                self._report("bounds refused", f"{wrong}; those of before stay")
            told = wrong
            await asyncio.sleep(CHECK_EVERY)
            notice = await self._condition()
        held = self._clock.go_on()
        self._report("continued", f"continued after {held:.1f} s", seconds=held)
        return bounds

    def _report(self, what: str, text: str, **numbers: object) -> None:
        self._journal.event(what, text, at=self._clock.now, **numbers)
        self._journal.sync()
        self._tell(text)

    def _read_bounds(self, given: Any) -> tuple[Box | None, str]:
        """Return the bounds that a notice gives, and what is wrong with them."""
        if given is None:
            return None, ""
        domain = self._domain
        try:
            pairs = [(float(low), float(high)) for low, high in given]
            bounds = Box([low for low, _ in pairs], [high for _, high in pairs], domain.names)
        except (TypeError, ValueError) as error:
            wanted = ", ".join(f"[low, high] of {name}" for name in domain.names)
            return None, f"bounds {given!r:.80} cannot be used ({error}); expected [{wanted}]"
        if isinstance(domain, Sites):
            inside = bool(bounds.contains(domain.points).any())
            wrong = "hold none of the sites"
        else:
            inside = bool(
                domain.contains(bounds.lower[None]) and domain.contains(bounds.upper[None])
            )
            wrong = f"reach beyond the domain, {domain.lower.tolist()} to {domain.upper.tolist()}"
        if not inside:
            return None, f"bounds {given!r:.80} {wrong}"
        return bounds, ""
