"""A study that is watched: the page of its report, made again as plays are finished."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from sparq_sim.live.watch.folder import WatchedFolder
from sparq_sim.live.watch.screen import Look, Mood
from sparq_sim.report.data import ReportData
from sparq_sim.report.gather import MOST_POINTS, gather
from sparq_sim.report.html.page import describe
from sparq_sim.study.results import Results
from sparq_sim.study.store.files import list_writers
from sparq_sim.study.store.layout import SCENARIO

__all__ = ["WatchedStudy", "is_study"]

_READING = 0.4
"""Seconds of each refresh that may be spent on reading files."""
_REST = 4.0
"""How many times as long as it takes to make a page, nothing is made: large studies leave the
machine to those who play."""
_SHORT = 0.2
"""Seconds that a page may take without a rest after it."""
_MARK = "run"
"""The name of the file by which workers know a folder: it is there while a study runs."""


def is_study(folder: Path) -> bool:
    """Return whether a folder is that of a study, be it without a finished play.

    Args:
        folder: Any folder.
    """
    return (folder / SCENARIO).is_file() or (folder / "rounds").is_dir()


class WatchedStudy:
    """A study as its report shows it, without what must be played again for that."""

    def __init__(self, folder: Path, *, allow_import: bool = False) -> None:
        """Watch the folder of a study.

        Args:
            folder: It need not hold a play yet.
            allow_import: Whether the study may name code to run, as `module:Class`.
        """
        self._folder = WatchedFolder(folder)
        self._allow_import = allow_import
        self._changed = False
        self._rests_until = 0.0
        self._look: Look | None = None
        self._report: ReportData | None = None

    def refresh(self) -> Look:
        self._changed |= self._folder.refresh(_READING)
        runs = bool(list_writers(self._folder.folder, _MARK))
        began = monotonic()
        if self._report is None or (self._changed and began >= self._rests_until):
            self._report = self._gather()
            self._look, self._changed = None, False
            took = monotonic() - began
            self._rests_until = began + (_REST * took if took > _SHORT else 0.0)
        state, mood = self._state(self._report, runs=runs)
        if self._look is None or self._look.state != state:
            self._look = self._describe(self._report, state, mood)
        return self._look

    def blank(self) -> Look:
        return self._describe(ReportData(folder=str(self._folder.folder)), "Waiting", "waiting")

    def close(self) -> None:
        pass

    def _gather(self) -> ReportData:
        folder = self._folder
        if not folder.finished() and not is_study(folder.folder):
            return ReportData(folder=str(folder.folder))
        study = Results.open(folder, begun=True)
        return gather(
            study,
            replays=False,
            allow_import=self._allow_import,
            levels=False,
            curves=folder.curves(MOST_POINTS),
        )

    def _state(self, report: ReportData, *, runs: bool) -> tuple[str, Mood]:
        if self._folder.unread:
            return "Reading", "running"
        if report.finished and report.finished >= report.planned:
            return "Finished", "ended"
        if runs:
            return "Running", "running"
        if self._changed:
            return "Reading", "running"
        return ("Not running", "ended") if report.finished else ("Not begun", "waiting")

    def _describe(self, report: ReportData, state: str, mood: Mood) -> Look:
        newest = self._folder.newest
        left = max(0, report.planned - report.finished)
        return Look(
            template="study.html.j2",
            context=describe(report)
            | {
                "title": _title(report),
                "unread": self._folder.unread,
                "to_go": _estimate(newest, left) if state == "Running" else "",
            },
            state=state,
            mood=mood,
            news_at=newest[-1] if newest else None,
            hurries=bool(self._folder.unread),
        )


def _title(report: ReportData) -> str:
    """Return the title of the page, which tells how far the study is where tabs are many."""
    return f"{report.finished}/{report.planned or '?'} {report.title or report.folder}"


def _estimate(newest: Sequence[float], left: int) -> str:
    """Return in words how long the rest takes, at the pace of the newest plays."""
    if len(newest) < 3 or newest[-1] <= newest[0]:
        return ""
    seconds = left * (newest[-1] - newest[0]) / (len(newest) - 1)
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
