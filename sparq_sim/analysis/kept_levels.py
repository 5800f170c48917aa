"""Kept levels: the reference levels of a study, beside its plays.

To compute them, landscapes are started and searched, which may take longer than to read a study. So
`run`, which computes them, keeps them, and `compare` shows those that are of the plays it finds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from math import nan
from typing import Any

from sparq_sim.analysis.levels import Level, Levels
from sparq_sim.analysis.summary import finite
from sparq_sim.documents import read_json_file
from sparq_sim.study.results import Results
from sparq_sim.study.store import StoreError, write_whole
from sparq_sim.study.store.checksums import seal, unseal
from sparq_sim.study.store.errors import UnfitError, explain_content_errors
from sparq_sim.study.store.keys import hash_json

__all__ = ["KEPT", "keep_levels", "read_levels"]

KEPT = "levels.json"
"""The file in the folder of a study; without it, nothing but these levels is lost."""


def keep_levels(study: Results, levels: Sequence[Level]) -> None:
    """Write down reference levels in the folder of a study; where that fails, there are none.

    Args:
        study: The study, of whose finished plays the levels are.
        levels: The levels of its settings.
    """
    described = [
        {
            "setting": dict(setting),
            **{name: finite(value) for name, value in asdict(level).items()},
        }
        for setting, level in levels
    ]
    content = seal({"plays": _name_plays(study), "levels": described})
    with suppress(StoreError):
        write_whole(study.folder / KEPT, json.dumps(content, indent=1).encode())


def read_levels(study: Results) -> list[Level]:
    """Read the reference levels that were kept in the folder of a study.

    Args:
        study: The study.

    Returns:
        The levels; none where none were kept, or other plays are finished by now. A file that is
        damaged is noted.
    """
    path = study.folder / KEPT
    if not path.is_file():
        return []
    try:
        with explain_content_errors("they cannot be read"):
            content = unseal(read_json_file(path))
            if content["plays"] != _name_plays(study):
                return []
            return [_read_level(each) for each in content["levels"]]
    except (UnfitError, StoreError) as error:
        study.note(f"no reference levels: {path}: {error}; run the scenario again")
        return []


def _read_level(described: dict[str, Any]) -> Level:
    setting = described.pop("setting")
    known: dict[str, Any] = {
        name: nan if value is None else value for name, value in described.items()
    }
    return setting, Levels(**known)


def _name_plays(study: Results) -> str:
    """Return a name of the plays that are finished: of their scenario, code, seeds and number."""
    return hash_json(sorted(play.key for play in study.finished()))
