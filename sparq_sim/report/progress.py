"""Progress bars in the terminal, drawn by rich."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
)
from rich.text import Text

from sparq_sim.errors import mask_invisible

if TYPE_CHECKING:
    from sparq_sim.simulation.references import WatchLevels
    from sparq_sim.study.progress import Progress as StudyProgress
    from sparq_sim.study.progress import Watch

__all__ = ["LEVELS_UNSEEN", "show_level_progress", "show_progress"]

LEVELS_UNSEEN = 1.0
"""Seconds that reference levels may take before it is shown how far they have come."""


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
def show_progress(console: Console) -> Iterator[Watch | None]:
    """Show a bar and the average regrets so far, while a study runs; rewards where none is known.

    Args:
        console: Where to show them.

    Yields:
        What to give to `Study.run` as `watch`; None where the console is no terminal.
    """
    if not console.is_terminal:
        yield None
        return
    bar = Progress(
        TextColumn("plays"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        console=console,
    )
    task: TaskID = bar.add_task("", total=None, pace="")
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def watch(progress: StudyProgress) -> None:
            left = progress.remaining
            pace = f"{progress.rate:.1f} per second"
            pace += "" if left is None else f", {left:.0f} s to go"
            bar.update(task, completed=progress.done, total=progress.total, pace=pace)
            live.update(Group(bar, _running(progress)))

        yield watch


def _running(progress: StudyProgress) -> Text:
    told = [
        (label, f"{what}{number:.4f}")
        for what, numbers in (
            ("", progress.average_regrets),
            ("mean reward ", progress.mean_rewards),
        )
        for label, number in sorted(numbers.items())
    ]
    lines = [
        f"  {name} {setting if setting != '{}' else ''}: {number}"
        for (name, setting), number in told[:20]
    ]
    return Text(mask_invisible("\n".join(lines)), style="dim")
