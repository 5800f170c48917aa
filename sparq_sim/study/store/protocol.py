"""What a study needs of a store; a class of three short methods can take the folder's place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from sparq_sim.study.store.codec import PlayFiles, StoredPlay, TableName, make_play
from sparq_sim.study.store.errors import SET_RIGHT, StoreError, UnfitError
from sparq_sim.study.store.summary import StoredSummary

__all__ = ["PlayStore", "read_play"]


class PlayStore(Protocol):
    """Keeps finished plays, and gives them back.

    A run needs `finished` and `keep`, reading also `load`. `FolderStore` is the one that comes with
    sparq-sim; `encode`, `decode`, `summarize` and `load_table` help to write another.
    """

    def keep(self, files: PlayFiles) -> None:
        """Keep a finished play, in place of one of the same key.

        Args:
            files: The play, as `encode` writes it.
        """

    def finished(self) -> Mapping[str, StoredSummary]:
        """Return what is known of each play that is kept, by key."""

    def load(self, key: str, table: TableName) -> pa.Table:
        """Return one table of a play, with its provenance in the metadata.

        Args:
            key: Which play.
            table: Its rounds, its replies, or its accounts.

        Raises:
            StoreError: It is not there, or damaged.
        """


def read_play(store: PlayStore, key: str) -> StoredPlay:
    """Read a play back from any store.

    Args:
        store: Where it is kept.
        key: Which play.

    Raises:
        StoreError: It is not there, or not as it was written.
    """
    try:
        return make_play(lambda table: store.load(key, table))
    except UnfitError as unfit:
        raise StoreError(f"{key}.parquet in {store}: {unfit}; {SET_RIGHT}") from unfit
