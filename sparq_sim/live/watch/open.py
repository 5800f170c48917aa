"""Find out what is to be watched: the folder of a study, or the journal of a play."""

from __future__ import annotations

from pathlib import Path

from sparq_sim.errors import SparqError
from sparq_sim.live.folder import JOURNAL
from sparq_sim.live.watch.journal import WatchedJournal
from sparq_sim.live.watch.screen import Watched
from sparq_sim.live.watch.study import WatchedStudy

__all__ = ["open_watched"]


def open_watched(path: Path, *, allow_import: bool = False) -> Watched:
    """Return what shows a study or a journal; nothing of it is read yet.

    Args:
        path: The folder of a study or of a live play, or the file of a journal.
        allow_import: Whether what it holds may name code to run, as `module:Class`.

    Raises:
        SparqError: There is no such folder or file.
    """
    if path.is_file() or (path / JOURNAL).is_file():
        journal = path if path.is_file() else path / JOURNAL
        return WatchedJournal(journal, allow_import=allow_import)
    if path.is_dir():
        return WatchedStudy(path, allow_import=allow_import)
    raise SparqError(
        f"there is no study or journal {path}: give the folder of a study that has begun "
        "(sparq-sim run SCENARIO --out FOLDER), or that of a live play, or its journal"
    )
