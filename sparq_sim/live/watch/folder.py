"""The folder of a study while others fill it: each file is read once, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from sparq_sim.analysis.criteria import choose_criterion
from sparq_sim.analysis.curves import Curves, CurveSums
from sparq_sim.study.folder_contents import read_holdings
from sparq_sim.study.store import FolderStore, PlayFiles, Provenance, StoredSummary, StoreError
from sparq_sim.study.store.archive import Archive
from sparq_sim.study.store.errors import UnfitError
from sparq_sim.study.store.layout import SCENARIO, check_name

__all__ = ["WatchedFolder"]

_Signature: TypeAlias = tuple[int, int, int]
"""By which a file is known to be the one that was read: its time, its size and its number."""
_MOST_DATES = 60
"""How many of the newest files tell how fast plays are finished."""


@dataclass(frozen=True)
class _Description:
    """Which plays a folder says that its study has."""

    signature: _Signature | None = None
    """Of the file that says it."""
    families: frozenset[str] = frozenset()
    """Of the plays; none where the folder does not say."""
    notes: tuple[str, ...] = ()
    """What is wrong with the file."""


class WatchedFolder(FolderStore):
    """A study's folder as a store that only reads, and reads each file once.

    `refresh` looks for new files; all else tells what was read by then.
    """

    def __init__(self, folder: Path) -> None:
        """Name a folder; nothing is read yet.

        Args:
            folder: It need not be there yet.
        """
        super().__init__(folder)
        self.newest: list[float] = []
        """When the newest plays were finished, in seconds of the Unix epoch, ascending."""
        self.unread = 0
        """How many files have not been read yet."""
        self._forget()

    def _forget(self) -> None:
        self._files: dict[str, _Signature] = {}
        self._unfit: dict[str, str] = {}
        self._described = _Description()
        self._found: dict[str, StoredSummary] = {}
        self._provenances: dict[object, Provenance] = {}
        self._sums = CurveSums()
        self.layout.archives = {name: [] for name in self.layout.archives}

    def keep(self, files: PlayFiles) -> None:
        raise StoreError(f"{self.folder} is watched, and not written to")

    def finished(self, verify: Iterable[str] = ()) -> dict[str, StoredSummary]:
        return dict(self._found)

    def refresh(self, seconds: float) -> bool:
        """Read what is new in the folder, for a limited time.

        Args:
            seconds: After which the rest is left for the next time.

        Returns:
            Whether anything has changed.

        Raises:
            StoreError: The folder is gone, or cannot be read.
        """
        until = monotonic() + seconds
        files = dict(self._list())
        described = self._describe()
        changed = described != self._described
        if changed or any(files.get(name) != known for name, known in self._files.items()):
            # What was merged into an archive, set aside or relabelled cannot be subtracted.
            self._forget()
            self._described, changed = described, True
        for name in sorted(files.keys() - self._files.keys(), key=lambda name: files[name]):
            if monotonic() > until:
                break
            self._read(name)
            self._files[name], changed = files[name], True
        self.unread = len(files.keys() - self._files.keys())
        self.layout.notes[:] = [*self._described.notes, *self._unfit.values()]
        return changed

    def curves(self, most_points: int) -> Curves:
        """Return the curves of all plays that were read.

        Args:
            most_points: How many points a curve may have.
        """
        families = self._described.families
        found = [
            each for each in self._found.values() if not families or each.play.family in families
        ]
        criterion = choose_criterion(found)
        return Curves(
            found=found,
            provenances=list(self._provenances.values()),
            bands=self._sums.bands(most_points, criterion),
            series=self._sums.series(most_points, criterion),
            criterion=criterion,
        )

    def _list(self) -> Iterator[tuple[str, _Signature]]:
        """List the files of plays, oldest first, and note when the newest were finished."""
        home = self.folder / "rounds"
        dates = []
        try:
            if not self.folder.is_dir():
                raise StoreError(f"there is no folder {self.folder} any more: was it moved?")
            with os.scandir(home) as entries:
                for entry in entries:
                    if not entry.name.startswith(".") and entry.name.endswith(".parquet"):
                        state = entry.stat()
                        dates.append(state.st_mtime)
                        yield entry.name, _sign(state)
        except FileNotFoundError:
            return
        except OSError as error:
            raise StoreError(f"cannot list {home}: {error.strerror or error}") from error
        self.newest = sorted(dates)[-_MOST_DATES:]

    def _describe(self) -> _Description:
        """Return what the folder says that its study has."""
        try:
            signature = _sign((self.folder / SCENARIO).stat())
        except OSError:
            return _Description()
        if self._described.signature == signature:
            return self._described
        home = FolderStore(self.folder)
        held = read_holdings(home)[:1]
        families = frozenset(play["family"] for each in held for play in each.plays)
        return _Description(signature, families, tuple(home.notes))

    def _read(self, name: str) -> None:
        path = self.folder / "rounds" / name
        try:
            if name.startswith("compact-"):
                self.layout.archives["rounds"].append(archive := Archive(path))
                for other in ("replies", "accounts"):
                    self.layout.archives[other] = self.layout.open_archives(other)
                for key in archive.keys:
                    self._add(key)
            else:
                check_name(path)
                self._add(path.stem)
        except (UnfitError, StoreError) as error:
            self._unfit[name] = f"{name} is left out: {error}"

    def _add(self, key: str) -> None:
        if key in self._found:
            return
        stored = self.layout.read(key)
        provenance = stored.provenance
        play = provenance.summary
        self._found[key] = play
        families = self._described.families
        if families and play.play.family not in families:
            return
        self._sums.add(play, stored.trace)
        # Of the many that are alike, one of each optimizer and setting, and of each machine.
        self._provenances.setdefault(play.label, provenance)
        self._provenances.setdefault(repr(provenance.machine), provenance)


def _sign(state: os.stat_result) -> _Signature:
    return state.st_mtime_ns, state.st_size, state.st_ino
