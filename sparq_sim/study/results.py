"""Results: the finished plays of a study, read from where they are kept.

`Results` is long because each way to read a study explains its arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from sparq_sim.errors import did_you_mean
from sparq_sim.study.folder_contents import Holding, read_holdings
from sparq_sim.study.progress import WarningCount, count_plays
from sparq_sim.study.store import (
    FolderStore,
    Label,
    PlayId,
    PlayStore,
    Provenance,
    StoredPlay,
    StoredSummary,
    StoreError,
    TableName,
    canonical,
)
from sparq_sim.study.store.codec import join_tables, read_metadata, to_table
from sparq_sim.study.store.errors import SET_RIGHT, explain_no_play
from sparq_sim.study.store.folder import compact
from sparq_sim.study.store.labels import label_table
from sparq_sim.study.store.layout import SCENARIO
from sparq_sim.study.store.protocol import read_play

__all__ = ["Results"]


class Results:
    """The finished plays of a study: listed, summarised and read, but never played.

    `Results.open` reads a folder; `Study.results` is the same of a study at hand. What is finished
    meanwhile, here or by others, is seen at the next call.
    """

    def __init__(
        self,
        home: PlayStore,
        plays: Sequence[PlayId],
        *,
        title: str = "",
        described: Holding | None = None,
    ) -> None:
        """Return the results of some plays.

        Args:
            home: Where the plays are kept.
            plays: Those of the study, whether they are finished or not.
            title: What the study is called.
            described: What the folder says was to be played, if it says so.
        """
        self.store = home
        self.title = title
        self._plays = list(plays)
        self._described = described

    @classmethod
    def open(cls, folder: Path | str | FolderStore, *, begun: bool = False) -> Results:
        """Open a folder: the finished plays of the scenario last run there.

        They may come from several machines, seeds and numbers of replications. Plays of other
        scenarios or versions in the same folder are left out, which `notes` says.

        Args:
            folder: That of a study, or its store.
            begun: Whether a study without a finished play is opened as well.

        Raises:
            StoreError: There is no finished play, the folder cannot be read, or nothing says which
                of the plays in it belong together.
        """
        home = folder if isinstance(folder, FolderStore) else FolderStore(folder)
        described = read_holdings(home)
        found = home.finished()
        if not found and not (begun and described):
            raise StoreError(explain_no_play(home.folder, home.notes))
        families = {play["family"] for held in described[:1] for play in held.plays}
        if not families and _are_mixed(found.values()):
            raise StoreError(
                f"{home.folder} holds plays of several scenarios, and no {SCENARIO} says "
                "which belong together: run the scenario there, or keep them in folders apart"
            )
        chosen = [each for each in found.values() if not families or each.play.family in families]
        note_left_out(home, len(found) - len(chosen))
        if described and described[0].is_incomplete():
            home.notes.append(
                "these plays of a list of settings do not say what the swept fields were that "
                "their setting does not name, so unlike settings may be taken for one: run the "
                "study again before comparing them"
            )
        if count := sum(not each.has_checksum for each in chosen):
            home.notes.append(
                f"{count_plays(count)} of an earlier version {'has' if count == 1 else 'have'} no "
                "checksum: damage to a file may change what is shown of them without a word; to "
                "be sure, run the scenario again"
            )
        newest = described[0] if described else None
        title = newest.title if newest else ""
        plays = sorted((each.play for each in chosen), key=_order)
        return cls(home, plays, title=title, described=newest)

    @property
    def folder(self) -> Path:
        """The folder that the plays are in."""
        return self._folder.folder

    @property
    def _folder(self) -> FolderStore:
        if not isinstance(self.store, FolderStore):
            raise StoreError(f"the plays are kept in {self.store}, which is no folder")
        return self.store

    @property
    def notes(self) -> Sequence[str]:
        """What a user should be told of the folder: files and plays left out."""
        return tuple(self.store.notes) if isinstance(self.store, FolderStore) else ()

    def note(self, text: str) -> None:
        """Add to what a user should be told of the folder, if it was not said.

        Args:
            text: What to say.
        """
        if text not in self._folder.notes:
            self._folder.notes.append(text)

    @property
    def warnings(self) -> Sequence[str]:
        """What the finished plays have warned of, each once."""
        count = WarningCount()
        for summary in self.finished():
            count.add(summary.warnings)
        return count.texts()

    def plays(self) -> list[PlayId]:
        """List all plays of the study; of an opened folder, those that are finished."""
        return list(self._plays)

    def finished(self) -> list[StoredSummary]:
        """List what is known of the finished plays without reading their rounds."""
        found = self.store.finished()
        return [found[play.key] for play in self._plays if play.key in found]

    def count_planned(self) -> dict[Label, int]:
        """Return how many plays each optimizer is to have in each setting, by its label."""
        counts = Counter(play.label for play in self._plays)
        told: Counter[Label] = Counter()
        for each in self._described.plays if self._described else ():
            label = str(each["optimizer"]), canonical(each["setting"])
            told[label] += int(each.get("replications", 0))
        return dict(counts | told)

    def describe(self) -> Holding | None:
        """Read what the folder says that is played; None where it does not say."""
        return next(iter(read_holdings(self._folder)), None)

    def read(self, play: PlayId | str) -> StoredPlay:
        """Read one play back, with its provenance.

        Args:
            play: Which one, or its key.

        Raises:
            StoreError: It is not there, or its files are damaged.
        """
        return read_play(self.store, play if isinstance(play, str) else play.key)

    def provenance(self, play: PlayId | str) -> Provenance:
        """Read what a play was, how it ended, and with what it was computed.

        Args:
            play: Which one, or its key.

        Raises:
            StoreError: It is not there, or its files are damaged.
        """
        key = play if isinstance(play, str) else play.key
        table = self.store.load(key, "rounds")
        return Provenance.from_json(read_metadata(table.schema.metadata))

    def table(self, what: TableName = "rounds") -> pa.Table:
        """Return the rounds or the replies of all finished plays as one Arrow table.

        Args:
            what: Which of both.

        Raises:
            StoreError: No play is finished, replies were not recorded, or a file is damaged.
        """
        if what not in ("rounds", "replies"):
            hint = "; for those of experts, see accounts" if what == "accounts" else ""
            raise StoreError(f"there is no table {what!r}; there are: rounds, replies{hint}")
        finished = self._some_finished()
        if what == "replies":
            _check_recorded(what, finished)
        return join_tables([self._load(each, what) for each in finished])

    def _load(self, play: StoredSummary, what: TableName) -> pa.Table:
        """Return a table of a play, which may be in another file than what is known of it."""
        table = self.store.load(play.key, what)
        told = StoredSummary.from_json(read_metadata(table.schema.metadata))
        if (told.play, told.digest) != (play.play, play.digest):
            raise StoreError(
                f"the {what} of {play.key} in {self.store} are not those of its rounds; {SET_RIGHT}"
            )
        return table

    def accounts(self, name: str) -> pa.Table:
        """Return a table that an expert leaves at the end of each play, of all finished plays.

        Args:
            name: `<expert>/<table>`, as in `Trace.accounts`.

        Returns:
            The rows of all plays that have it, with the columns that tell plays apart.

        Raises:
            StoreError: No play is finished or has such a table, replies and accounts were not
                recorded, or a file is damaged.
        """
        finished = self._some_finished()
        _check_recorded("accounts", finished)
        tables: list[pa.Table] = []
        known: set[str] = set()
        for each in finished:
            accounts = self.read(each.key).trace.accounts
            known |= accounts.keys()
            if name in accounts:
                tables.append(label_table(to_table(accounts[name]), each.play))
        if not tables:
            raise StoreError(f"no expert left a table {name!r}: {did_you_mean(name, known)}")
        return join_tables(tables)

    def _some_finished(self) -> list[StoredSummary]:
        """Return what is known of the finished plays; raise StoreError if there are none."""
        finished = self.finished()
        if not finished:
            place = self.store.folder if isinstance(self.store, FolderStore) else self.store
            raise StoreError(explain_no_play(place, self.notes))
        return finished

    def compact(self) -> None:
        """Merge the many small files into one each of rounds, replies and accounts.

        Raises:
            StoreError: A file cannot be read or written.
        """
        compact(self._folder)

    def verify(self, keys: Iterable[str]) -> None:
        """Read plays of a folder in full; those that are damaged are left out, which `notes` says.

        Args:
            keys: Those of the plays.

        Raises:
            StoreError: The folder cannot be read, or the plays are in none.
        """
        self._folder.finished(verify=keys)


def _check_recorded(what: TableName, finished: Iterable[StoredSummary]) -> None:
    if any(each.record != "full" for each in finished):
        raise StoreError(f"{what} were not recorded; run the scenario with record = 'full'")


def note_left_out(home: FolderStore, count: int) -> None:
    """Note how many plays of a folder do not belong to a study, if there are any.

    Args:
        home: The folder.
        count: How many they are.
    """
    if count:
        home.notes.append(
            f"left out {count_plays(count)} of other scenarios, optimizers, settings or versions "
            f"in {home.folder}"
        )


def _are_mixed(found: Iterable[StoredSummary]) -> bool:
    """Return whether plays of one label come from unlike scenarios."""
    families: dict[Label, set[str]] = {}
    for each in found:
        families.setdefault(each.label, set()).add(each.play.family)
    return any(len(some) > 1 for some in families.values())


def _order(play: PlayId) -> tuple[str, tuple[tuple[str, bool, float, str], ...], int, int]:
    """Order plays by optimizer and setting, numbers by their size."""
    values = tuple(
        (path, False, float(value), "")
        if isinstance(value, int | float)
        else (path, True, 0.0, canonical(value))
        for path, value in sorted(play.setting.items())
    )
    return play.optimizer, values, play.seed, play.replication
