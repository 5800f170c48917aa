"""Print what a study comes to, the same after `run` as by `compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparq_sim.cli.console import find_room, make_console
from sparq_sim.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparq_sim.analysis.levels import Level
    from sparq_sim.analysis.standings import Standings

__all__ = ["print_results"]


def print_results(title: str, standings: Standings, levels: Sequence[Level]) -> None:
    """Print the ranked table of a study, what its columns mean, and the finding.

    Args:
        title: Of the study.
        standings: Its rows, ranked.
        levels: Settings and what simple policies would get in them.
    """
    from rich.text import Text

    from sparq_sim.errors import mask_invisible
    from sparq_sim.report.finding import tell_finding
    from sparq_sim.report.terminal import legend, meter_tables, summary_table

    console = make_console()
    table = summary_table(title, standings, levels, width=find_room(console))
    console.print(table)
    say(legend(table, standings, levels), dim=True)
    for meters in meter_tables(standings.rows, width=find_room(console)):
        console.print(meters)
    found = tell_finding(standings, levels)
    told = Text(mask_invisible(" ".join(found.more)))
    console.print()
    console.print(Text(mask_invisible(found.sentence), style="bold"), highlight=False)
    if found.more:
        console.print(told, highlight=False)
    console.print()
