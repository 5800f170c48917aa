"""The store: finished plays as Parquet files in a study's folder, and how they are read back."""

from sparq_sim.study.store.codec import (
    PlayFiles,
    StoredPlay,
    TableName,
    decode,
    encode,
    load_table,
    summarize,
)
from sparq_sim.study.store.errors import StoreError
from sparq_sim.study.store.files import write_whole
from sparq_sim.study.store.folder import FolderStore
from sparq_sim.study.store.keys import FORMAT, Label, PlayId, Setting, canonical
from sparq_sim.study.store.protocol import PlayStore
from sparq_sim.study.store.provenance import Provenance
from sparq_sim.study.store.summary import StoredSummary
from sparq_sim.study.store.trace_files import load_trace, save_trace

__all__ = [
    "FORMAT",
    "FolderStore",
    "Label",
    "PlayFiles",
    "PlayId",
    "PlayStore",
    "Provenance",
    "Setting",
    "StoreError",
    "StoredPlay",
    "StoredSummary",
    "TableName",
    "canonical",
    "decode",
    "encode",
    "load_table",
    "load_trace",
    "save_trace",
    "summarize",
    "write_whole",
]
