"""The command `live`: play a scenario in real time, against real things or simulated ones."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparq_sim.cli.options import AllowImport, Overrides, Source, load_scenario
from sparq_sim.cli.output import say

if TYPE_CHECKING:
    from sparq_sim.live.folder import LiveFolder

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
) -> None:
    """Play a scenario live: in real time, against real devices and services, with a journal.

    Ctrl-C stops it cleanly: everything is recorded, and --resume goes on.
    """
    from rich.console import Console

    from sparq_sim.live.folder import LiveFolder
    from sparq_sim.live.play import live as play_live
    from sparq_sim.live.terminal import show_live

    loaded = load_scenario(scenario, overrides, allow_import=allow_import, check_data=True)
    name = Path(scenario)
    folder = out or Path("live") / (name.stem if name.suffix or name.is_absolute() else name)
    console = Console()
    rounds = loaded.rules.most_rounds

    async def play() -> None:
        task = asyncio.current_task()
        assert task is not None
        with show_live(console, rounds=rounds, title=loaded.title) as watch, _ends_by_sigterm(task):
            await play_live(
                loaded, optimizer, folder=folder, resume=resume, speed=speed, watch=watch
            )

    try:
        asyncio.run(play())
    except (KeyboardInterrupt, asyncio.CancelledError) as stop:
        say(
            f"Stopped. All that happened is in {folder / 'journal.jsonl'}; the same command with "
            "--resume goes on.",
            err=True,
        )
        _sum_up(LiveFolder(folder))
        raise typer.Exit(130 if isinstance(stop, KeyboardInterrupt) else 143) from None
    _sum_up(LiveFolder(folder))


@contextmanager
def _ends_by_sigterm(task: asyncio.Task[None]) -> Iterator[None]:
    """Have SIGTERM cancel a *task*, so that it ends as cleanly as by Ctrl-C."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _sum_up(folder: LiveFolder) -> None:
    """Print what a play came to, from its journal."""
    from sparq_sim.journal.reader import read_journal
    from sparq_sim.simulation.measures import tally

    if not folder.journal.exists():
        return
    trace = read_journal(folder.journal).to_trace()
    counts = tally(trace)
    say(
        f"{len(trace)} rounds; {counts.asked} points asked, {counts.answered} answered; spent "
        f"{trace.spent:g}; ended: {trace.ended}"
    )
    say(f"Journal: {folder.journal}")
    say(f"Table and report: sparq-sim compare {folder.path}; sparq-sim report {folder.path}")
