"""Small plays to be stored, and ways to damage their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from sparq_sim import Estimate, Expert, Query, World
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.store import FolderStore, encode
from sparq_sim.study.store.provenance import describe_play


def scenario(**fields: Any) -> Scenario:
    chosen: dict[str, Any] = {
        "title": "tiny",
        "rounds": 25,
        "environment": {"kind": "synthetic"},
        "feedback": {"noise": 0.1},
        "experts": {"sage": {"kind": "truth", "channel": {"noise": 0.1, "cost": 0.1, "loss": 0.2}}},
        "optimizers": ["uniform", "sparq-gp-ucb"],
        "record": "full",
    }
    return Scenario(**{**chosen, **fields})


class Useless(Expert):
    """Gives no numbers."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.full(len(query.points), np.nan))


def stored(
    folder: Path, replication: int = 0, optimizer: str = "sparq-gp-ucb", **fields: Any
) -> tuple[str, str]:
    """Play and store; give the key and the digest."""
    played = scenario(**fields)
    trace = played.play(optimizer, replication)
    told = describe_play(played, optimizer, replication, trace, setting={"a.b": 1.5})
    home = FolderStore(folder)
    home.prepare()
    home.keep(encode(trace, told))
    return told.play.key, trace.digest()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flip(path: Path) -> None:
    """Change the last byte of the last column."""
    chunk = pq.read_metadata(path).row_group(0)
    last = chunk.column(chunk.num_columns - 1)
    content = bytearray(path.read_bytes())
    content[last.data_page_offset + last.total_compressed_size - 1] ^= 0xFF
    path.write_bytes(content)
