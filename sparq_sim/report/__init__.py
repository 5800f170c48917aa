"""The report of a study: one HTML file, tables in the terminal, and figures for print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparq_sim.report.gather import FindLevels
    from sparq_sim.study.results import Results

__all__ = ["write"]


def write(
    study: Results,
    to: Path,
    *,
    replays: bool = True,
    films: Sequence[str] = (),
    allow_import: bool = False,
    levels: FindLevels | None = None,
    best_seen: bool = False,
) -> Path:
    """Write the report of a study as one HTML file, which needs no network.

    A study that is not finished, or not begun, gives a page that says so.

    Args:
        study: The study.
        to: The file.
        replays: Whether some plays are played again, for the reader to watch: the first of each
            optimizer, and the more telling of the others, as long as that is quick.
        films: Plays to watch in any case, each named by its key, or by its optimizer and, after
            commas, its replication and values of swept fields, as in "sparq-gp-ucb,transit=2,1".
        allow_import: Whether the study may name code to run for that, as `module:Class`.
        levels: Computes the reference levels of a scenario; by default,
            `sparq_sim.analysis.levels.compute_levels`.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known.

    Returns:
        The file.

    Raises:
        SparqError: Regret against the best seen is wished for, and all plays know the best; or a
            play that is named is not there.
    """
    from sparq_sim.report.gather import gather
    from sparq_sim.report.html.page import render
    from sparq_sim.study.store import write_whole

    data = gather(
        study,
        replays=replays,
        films=films,
        allow_import=allow_import,
        levels=levels,
        best_seen=best_seen,
        places=True,
    )
    # What no file can hold, such as half a character, is replaced and does no further harm.
    write_whole(Path(to).absolute(), render(data).encode("utf-8", "replace"))
    return Path(to)
