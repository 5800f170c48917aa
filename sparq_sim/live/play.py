"""Play a scenario live: by real time, with a journal, and with a safe state whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from sparq_sim.errors import JournalError, ScenarioError, SparqError
from sparq_sim.journal.header import make_header
from sparq_sim.journal.reader import Journal
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.live.folder import LiveFolder
from sparq_sim.live.pause import PauseCondition, Pauser, make_condition
from sparq_sim.live.resume import FAILED, SAFE, STOPPED, check_open, check_same, is_over, list_holds
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.exits import refuse_exits
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.steered import SafeMoment, Steered
from sparq_sim.scenario.model import Scenario
from sparq_sim.scenario.programs import check_programs
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.clock.realtime import LiveClock
from sparq_sim.simulation.engine import Engine
from sparq_sim.simulation.garbage import collect_rarely
from sparq_sim.simulation.lifetime import Resources
from sparq_sim.simulation.past import Past
from sparq_sim.simulation.play import Played
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.records import Record, Turn
from sparq_sim.simulation.supervision import Supervision
from sparq_sim.simulation.trace import Trace

__all__ = ["LiveWatch", "UnsafeError", "live"]

LiveWatch: TypeAlias = Callable[[Turn | Record | str], None]
"""Called with each round, each reply, and each line of news, as they come."""

SAFE_TRIES = 3
"""How often it is tried to reach a safe state."""
SAFE_TIMEOUT = 60.0
"""Seconds after which a try is given up, if it is not by itself."""
SAFE_WAIT = 1.0
"""Seconds between two tries."""


class UnsafeError(SparqError):
    """The safe state of a system could not be reached: somebody must see to it."""


async def live(
    scenario: Scenario,
    optimizer: str | None = None,
    *,
    folder: Path | str,
    resume: bool = False,
    speed: float = 1.0,
    replication: int = 0,
    pause: PauseCondition | None = None,
    watch: LiveWatch | None = None,
    allow_programs: bool = False,
) -> Trace:
    """Play a scenario in real time, and return the trace.

    Every move and every question is in the journal before it is applied or sent, every answer as
    it comes. Of the channel to a real source only capacity, patience, cost, `split` and policy
    apply. A system that is steered is brought into its safe state at the start, at the end, when
    the play is cancelled and when it fails. Cancelled, as by Ctrl-C, it ends its journal and
    raises CancelledError; it can then go on by *resume*.

    Args:
        scenario: What is played, without a sweep.
        optimizer: The name of the one that plays; it may be left out where there is only one.
        folder: Where the journal is written, and the trace when the play has ended.
        resume: Whether to go on with the play in the folder, from where it was interrupted. Its
            clock stood still meanwhile.
        speed: How many times faster than the scenario says the play goes, as for a rehearsal.
        replication: Which of several plays with the seed of the scenario it is, from 0.
        pause: The condition under which it pauses; by default that of the scenario.
        watch: Called with each round, each reply, and each line of news.
        allow_programs: Whether programs that the scenario names may be run: sources, systems, safe
            states and conditions of pauses.

    Returns:
        What happened, from the beginning of the play.

    Raises:
        SparqError: The scenario cannot be played, or the play cannot go on.
        UnsafeError: The safe state could not be reached.
        asyncio.CancelledError: The play was cancelled; all is recorded.
    """
    name = _choose_optimizer(scenario, optimizer)
    parts: dict[str, object] = {
        "environment": scenario.environment,
        "live.pause": scenario.live.pause,
        **{f"experts.{each}": entry.expert for each, entry in scenario.experts.items()},
    }
    check_programs(parts, allowed=allow_programs)
    if not (speed > 0 and isfinite(speed)):
        raise SparqError(f"a speed must be a number above 0, not {speed!r}")
    home = LiveFolder(folder)
    seconds = scenario.live.seconds / speed
    before = home.read() if resume else None
    if before is None:
        home.refuse_used()  # Before anything real is touched.
    else:
        check_same(before, scenario, name)
        check_open(before)
        replication = before.header.replication
        if speed != 1.0 and seconds != before.header.seconds:
            raise SparqError(
                f"speed {speed:g}: a play goes on at the speed at which it began, a clock unit in "
                f"{before.header.seconds:g} s; leave --speed out"
            )
        seconds = before.header.seconds or seconds
    played = replace(scenario.prepare(name, replication), live=True)
    streams = Streams(played.seed, played.replication)
    async with Resources() as resources:
        with one_thread():
            landscape = await resources.start_landscape(played.environment, streams)
        header = make_header(
            played,
            landscape.domain,
            seconds=seconds,
            scenario=scenario.fingerprint(name),
            title=scenario.title,
        )
        with home.begin(header) if before is None else JournalWriter.append_to(before) as journal:
            clock = LiveClock(
                played.rules.period,
                seconds=seconds,
                begins_at=0.0 if before is None else before.past().now,
            )
            for hold in () if before is None else list_holds(before):
                clock.add_hold(*hold)
            session = _Session(played, clock, journal, landscape, watch)
            condition = pause
            if condition is None and scenario.live.pause is not None:
                condition = make_condition(scenario.live.pause)
            try:
                if before is not None and is_over(before):
                    return await session.make_safe_at_last(before)
                return await session.play(resources, streams, before, condition)
            finally:
                if session.trace is not None:
                    home.keep(session.trace, scenario, name, journal.header)


def _choose_optimizer(scenario: Scenario, name: str | None) -> str:
    """Return the name of the optimizer that plays."""
    if scenario.sweep:
        raise ScenarioError(
            "a live play has one setting, and this scenario has a sweep: leave it out, or give "
            "its fields a value by --set"
        )
    if name is None and len(scenario.optimizers) > 1:
        raise ScenarioError(
            f"several optimizers: choose one by --optimizer: {', '.join(scenario.optimizers)}"
        )
    return next(iter(scenario.optimizers)) if name is None else name


class _Session:
    """One run of a live play, from its start or from where it was interrupted, to its end."""

    def __init__(
        self,
        played: Played,
        clock: LiveClock,
        journal: JournalWriter,
        landscape: Landscape,
        watch: LiveWatch | None,
    ) -> None:
        self.trace: Trace | None = None
        """What happened, as soon as the play has ended in whatever way."""
        self._played = played
        self._clock = clock
        self._journal = journal
        self._landscape = landscape
        self._watch = watch
        self._past = Past()
        self._engine: Engine
        journal.listener = watch

    async def play(
        self,
        resources: Resources,
        streams: Streams,
        before: Journal | None,
        condition: PauseCondition | None,
    ) -> Trace:
        """Play to the end, and bring what is steered into its safe state, whatever happens."""
        domain, clock = self._landscape.domain, self._clock
        pauser = None
        if condition is not None:
            pauser = Pauser(condition, clock, domain, self._journal, self._tell)
        if before is not None:
            self._past = before.past()
        supervision = Supervision(
            journal=self._journal,
            past=None if before is None else self._past,
            before_round=None if pauser is None else pauser.before_round,
            play_id=self._journal.play_id,
        )
        self._engine = Engine(
            self._played, clock, streams, self._landscape, self._watch, supervision
        )
        moment: SafeMoment = "failure"
        try:
            with refuse_exits():
                await self._start(resources, before)
                # Again, for the libraries that the plug-ins have loaded meanwhile.
                with one_thread(), collect_rarely():
                    self.trace = await clock.run(self._engine.play())
            moment = "end"
        except asyncio.CancelledError:
            moment = "interrupt"
            self._finish(STOPPED)
            raise
        except Exception as error:
            self._finish(f"{FAILED}{describe_error(error)}"[:200])
            raise
        finally:
            await _shield(self._make_safe(moment))
        return replace(self.trace, played=self._played)

    async def make_safe_at_last(self, before: Journal) -> Trace:
        """Reach the safe state of a play that ended, and was killed before it was reached."""
        self._journal.event("resumed", "to reach the safe state", at=before.past().now)
        await _shield(self._make_safe("end"))
        past = before.past()
        self._journal.end(past.ended or STOPPED, at=past.now, spent=past.spent)
        return before.to_trace()

    async def _start(self, resources: Resources, before: Journal | None) -> None:
        past = self._past
        if before is not None:
            told = f"resumed after round {past.turns[-1].round if past.turns else 0}"
            self._journal.event("resumed", told, at=past.now, cut_bytes=before.cut_bytes)
            self._tell(told)
        with one_thread():
            await self._engine.start(resources)
            # In a thread, so that connections are kept alive meanwhile.
            await asyncio.to_thread(self._engine.recall)
        if not past.thoughts:  # Nothing was applied yet.
            await self._make_safe("start")

    def _finish(self, ended: str) -> None:
        """Record all that is open, where the play may go on some time."""
        if self._clock.has_begun:
            self.trace = self._engine.finish(ended, interrupted=True)
        else:
            self._journal.end(ended, at=self._clock.now, spent=self._past.spent)
        self._tell(ended)

    async def _make_safe(self, moment: SafeMoment) -> None:
        """Bring a system into its safe state, and say so before and after."""
        system = self._landscape
        if not isinstance(system, Steered) or (action := system.safe_action(moment)) == "hold":
            return
        at = self._clock.now
        self._write("safe", f"{moment}: {action}", at=at, moment=moment)
        self._tell(f"bringing the system into its safe state ({moment}): {action}")
        for attempt in range(1, SAFE_TRIES + 1):
            try:
                async with asyncio.timeout(SAFE_TIMEOUT):
                    await system.make_safe(moment)
            except Exception as error:
                told = f"the safe state ({action}) was not reached: {describe_error(error)}"
                self._write("unsafe", told, at=at, attempt=attempt)
                self._tell(told)
                if attempt == SAFE_TRIES:
                    raise UnsafeError(
                        f"{told}. It was tried {SAFE_TRIES} times; see to the system yourself"
                    ) from error
                await asyncio.sleep(SAFE_WAIT)
            else:
                self._write(SAFE, f"{moment}: {action}", at=at, moment=moment)
                self._tell(f"safe state ({moment}) reached: {action}")
                return

    def _write(self, what: str, text: str, *, at: float, **numbers: object) -> None:
        """Write down what is done for safety; it is also done where that cannot be written."""
        try:
            self._journal.event(what, text, at=at, **numbers)
            self._journal.sync()
        except JournalError as error:
            self._tell(str(error))

    def _tell(self, text: str) -> None:
        if self._watch is not None:
            with suppress(Exception):  # A terminal that was closed must not keep from safety.
                self._watch(text)


async def _shield(work: Coroutine[Any, Any, None]) -> None:
    """Do some work to its end; a cancellation meanwhile is heeded afterwards."""
    task = asyncio.ensure_future(work)
    stopped: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            stopped = error
    task.result()
    if stopped is not None:
        raise stopped
