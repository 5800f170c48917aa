"""The report: a study as one HTML file, which needs no network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparq_sim.study import Study


def write(study: Study, to: Path, *, replays: bool = True) -> Path:
    """Write the report of a study to a file, and give its path.

    A study that is not finished, or not begun, gives a page that says so. *replays* plays one
    play of each optimizer again, for the reader to watch.
    """
    from sparq_sim.report import page
    from sparq_sim.store import write_whole

    # What no file can hold, such as half a character, is replaced and does no further harm.
    content = page.rendered(page.gathered(study, replays=replays)).encode("utf-8", "replace")
    write_whole(Path(to).absolute(), content)
    return Path(to)
