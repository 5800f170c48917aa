"""What `run --dry-run` prints: the plays of a study, and how many of them are there already."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from sparq_sim.cli.console import make_console
from sparq_sim.cli.output import say

if TYPE_CHECKING:
    from sparq_sim.study.study import Study

__all__ = ["print_plan"]


def print_plan(study: Study) -> None:
    """Print what a run would play: a row for each optimizer and setting. Nothing is written.

    Args:
        study: The study.

    Raises:
        StoreError: The folder holds another scenario, which a run would refuse.
    """
    from rich.markup import escape

    from sparq_sim.errors import mask_invisible
    from sparq_sim.study.progress import count_plays
    from sparq_sim.study.settings import format_value, list_paths, shorten_paths

    study.check_folder()
    planned, missing = study.plays(), study.missing()
    names = shorten_paths(list_paths(play.setting for play in planned))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("optimizer")
    for heading in (*names.values(), "rounds", "plays", "there", "to play"):
        table.add_column(escape(mask_invisible(heading)), justify="right")
    lacking = Counter(play.label for play in missing)
    scenarios = study.scenarios
    for label, plays in Counter(play.label for play in planned).items():
        setting = next(play.setting for play in planned if play.label == label)
        cells = [
            label[0],
            *(format_value(setting[path]) if path in setting else "" for path in names),
            f"{scenarios[label].rules.most_rounds}",
            f"{plays}",
            f"{plays - lacking[label]}",
            f"{lacking[label]}",
        ]
        table.add_row(*(escape(mask_invisible(cell)) for cell in cells))
    make_console().print(table)
    say(
        f"{count_plays(len(planned))}: {len(planned) - len(missing)} there already, "
        f"{len(missing)} to play, into {study.folder}. Nothing was played (--dry-run)."
    )
    for note in study.notes:
        say(f"Note: {note}", err=True)
