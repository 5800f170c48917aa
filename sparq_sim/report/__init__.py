"""The report: a study as one HTML file, which needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparq_sim.report.html.page import FindLevels
    from sparq_sim.study.results import Results


def write(
    study: Results,
    to: Path,
    *,
    replays: bool = True,
    allow_import: bool = False,
    levels: FindLevels | None = None,
) -> Path:
    """Write the report of a study to a file, and give its path.

    A study that is not finished, or not begun, gives a page that says so. *replays* plays one
    play of each optimizer again, for the reader to watch. With *allow_import*, the study may name
    code to run for that, as `module:Class`. *levels* finds the reference levels of a scenario, by
    default `sparq_sim.report.terminal.levels`.
    """
    from sparq_sim.report.html import page
    from sparq_sim.study.store import write_whole

    # What no file can hold, such as half a character, is replaced and does no further harm.
    told = page.gathered(study, replays=replays, allow_import=allow_import, levels=levels)
    write_whole(Path(to).absolute(), page.rendered(told).encode("utf-8", "replace"))
    return Path(to)
