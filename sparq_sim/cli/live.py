"""The command `live`: play a scenario in real time, against real things or simulated ones."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import (
    AllowImport,
    AllowOutside,
    AllowPrograms,
    Overrides,
    Source,
    load_scenario,
)
from sparq_sim.cli.output import say

if TYPE_CHECKING:
    from sparq_sim.live.folder import LiveFolder
    from sparq_sim.live.play import LiveWatch
    from sparq_sim.simulation.trace import Trace

__all__ = ["live"]


def live(
    scenario: Source,
    optimizer: Annotated[
        str | None, typer.Option(help="Which optimizer plays; needed where there are several.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the play; live/NAME by default.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the play in the folder.")
    ] = False,
    speed: Annotated[
        float, typer.Option(help="How many times faster than the scenario says.")
    ] = 1.0,
    overrides: Overrides = None,
    allow_import: AllowImport = False,
    allow_programs: AllowPrograms = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Play a scenario live: in real time, against real devices and services, with a journal.

    Ctrl-C stops it cleanly: everything is recorded, and --resume goes on.
    """
    from sparq_sim.cli.console import make_console
    from sparq_sim.live.folder import LiveFolder
    from sparq_sim.live.play import live as play_live
    from sparq_sim.live.terminal import show_live

    loaded = load_scenario(
        scenario, overrides, allow_import=allow_import, allow_outside=allow_outside, check_data=True
    )
    name = Path(scenario)
    folder = out or Path("live") / (name.stem if name.suffix or name.is_absolute() else name)
    console = make_console()
    rounds = loaded.rules.most_rounds

    stops: list[signal.Signals] = []

    async def play() -> None:
        task = asyncio.current_task()
        assert task is not None
        showing = show_live(console, rounds=rounds, title=loaded.title)
        with showing as watch, _stops_by_signal(task, stops, watch), _shows_warnings(watch):
            await play_live(
                loaded,
                optimizer,
                folder=folder,
                resume=resume,
                speed=speed,
                watch=watch,
                allow_programs=allow_programs,
            )

    try:
        asyncio.run(play())
    except asyncio.CancelledError:
        say(
            f"Stopped. All that happened is in {folder / 'journal.jsonl'}; the same command with "
            "--resume goes on.",
            err=True,
        )
        _sum_up(LiveFolder(folder))
        raise typer.Exit(128 + stops[0] if stops else 130) from None
    _sum_up(LiveFolder(folder))


@contextmanager
def _stops_by_signal(
    task: asyncio.Task[None], stops: list[signal.Signals], watch: LiveWatch
) -> Iterator[None]:
    """Have Ctrl-C, SIGTERM and a terminal that is closed cancel a *task*, each cleanly.

    Further signals do not: a safe state that is being reached must not be given up.
    """
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        if not stops:
            task.cancel()
        else:
            with suppress(Exception):  # The terminal may be closed.
                watch("still ending the play; kill -9 would leave the system as it is")
        stops.append(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


@contextmanager
def _shows_warnings(watch: LiveWatch) -> Iterator[None]:
    """Show on the terminal what sources warn of, as of a broker that cannot be reached."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            watch(record.getMessage())

    logger, handler = logging.getLogger("sparq_sim"), Handler(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _sum_up(folder: LiveFolder) -> None:
    """Print what a play came to, from its journal."""
    from sparq_sim.journal.reader import read_journal
    from sparq_sim.simulation.measures import count_by_expert, tally

    if not folder.journal.exists():
        return
    trace = read_journal(folder.journal).to_trace()
    counts = tally(trace)
    say(
        f"{len(trace)} rounds; {counts.asked} points asked, {counts.answered} answered; spent "
        f"{trace.spent:g}; ended: {trace.ended}"
    )
    for source, told in count_by_expert(trace).items():
        failed = told["asked"] - told.get("answered", 0)
        if failed > 0:
            say(f"Note: {source}: {failed} of {told['asked']} points failed: {_why(trace, source)}")
    say(f"Journal: {folder.journal}")
    say(f"Table and report: sparq-sim compare {folder.path}; sparq-sim report {folder.path}")


def _why(trace: Trace, source: str) -> str:
    """Return the commonest reason for which points asked of a source have failed."""
    replies = trace.replies
    failed = (replies["source"] == source) & (replies["reason"] != "")
    reasons = Counter(replies["reason"][failed].tolist())
    return str(reasons.most_common(1)[0][0]) if reasons else "no reason is known"
