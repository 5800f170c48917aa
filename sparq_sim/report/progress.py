"""Progress in words: bars on a terminal, drawn by rich, and lines in a log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)
from rich.text import Text

from sparq_sim.errors import mask_invisible
from sparq_sim.study.settings import Setting, format_setting

if TYPE_CHECKING:
    from sparq_sim.simulation.references import WatchLevels
    from sparq_sim.study.progress import Progress as StudyProgress
    from sparq_sim.study.progress import Watch

__all__ = ["BETWEEN_LINES", "LEVELS_UNSEEN", "show_level_progress", "show_progress"]

LEVELS_UNSEEN = 1.0
"""Seconds that reference levels may take before it is shown how far they have come."""
BETWEEN_LINES = 60.0
"""Seconds between two lines where the output is no terminal."""
_MOST_LINES = 20
"""Optimizers and settings whose results so far are shown."""


@contextmanager
def show_level_progress(console: Console) -> Iterator[WatchLevels | None]:
    """Show how far reference levels have come, where they take longer than a second.

    Args:
        console: Where to show it.

    Yields:
        What to call with the progress; None where the console is no terminal.
    """
    if not console.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("reference levels"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("(levels = false leaves them out)"),
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=None)
    began = perf_counter()

    def watch(done: int, total: int) -> None:
        if perf_counter() - began >= LEVELS_UNSEEN:
            bar.start()
            bar.update(task, completed=min(done, total), total=total)

    try:
        yield watch
    finally:
        bar.stop()


@contextmanager
def show_progress(console: Console) -> Iterator[Watch]:
    """Show how far a study has come: in a picture on a terminal, elsewhere a line now and then.

    The picture has the average regrets so far, or rewards where no best is known.

    Args:
        console: Where to tell it.

    Yields:
        What to give to `Study.run` as `watch`.
    """
    if not console.is_terminal:
        yield _tell_now_and_then(console)
        return
    bar = Progress(
        TextColumn("plays"), BarColumn(), TextColumn("{task.fields[told]}"), console=console
    )
    task: TaskID = bar.add_task("", total=None, told="")
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def watch(progress: StudyProgress) -> None:
            ended = progress.done + progress.failed
            bar.update(task, completed=ended, total=progress.total, told=_describe(progress))
            live.update(Group(bar, _list_so_far(progress)))

        yield watch


def _tell_now_and_then(console: Console) -> Watch:
    """Return what prints a line a minute, so that a log tells that a run goes on."""
    told_at = perf_counter()

    def watch(progress: StudyProgress) -> None:
        nonlocal told_at
        if perf_counter() - told_at >= BETWEEN_LINES:
            told_at = perf_counter()
            line = f"{_describe(progress)}{_name_last(progress)}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    return watch


def _describe(progress: StudyProgress) -> str:
    """Return how far a run is in words: "12 of 48 plays done, about 40 s left"."""
    told = f"{progress.done} of {progress.total} plays done"
    if progress.failed:
        told += f", {progress.failed} failed"
    left = progress.remaining
    return told if not left else f"{told}, about {_write_duration(left)} left"


def _write_duration(seconds: float) -> str:
    """Return a duration as one tells it: in seconds, minutes or hours."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"


def _name_last(progress: StudyProgress) -> str:
    if (play := progress.last) is None:
        return ""
    name = _name_row(play.optimizer, play.setting)
    return mask_invisible(f"; the last was {name}, replication {play.replication}")


def _name_row(optimizer: str, setting: Setting) -> str:
    return f"{optimizer} ({format_setting(setting)})" if setting else optimizer


def _list_so_far(progress: StudyProgress) -> Text:
    """List what the optimizers have come to, and the play that has just ended."""
    told = [
        (label, f"{what} {number:.4f}")
        for what, numbers in (
            ("average regret", progress.average_regrets),
            ("mean reward", progress.mean_rewards),
        )
        for label, number in sorted(numbers.items())
    ]
    lines = [
        f"  {_name_row(name, json.loads(setting))}: {number} so far"
        for (name, setting), number in told[:_MOST_LINES]
    ]
    if len(told) > _MOST_LINES:
        lines.append(f"  and {len(told) - _MOST_LINES} more rows")
    if last := _name_last(progress):
        lines.append(f"  {last.removeprefix('; ')}")
    return Text(mask_invisible("\n".join(lines)), style="dim", no_wrap=True, overflow="ellipsis")
