"""Damage to a study's folder, and what readers make of it: the same as before, or a word.

`python -m tests.study.store.damage --flips 2000` flips so many bits, one at a time, and counts.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa

from sparq_sim import Channel
from sparq_sim.analysis.cautions import rows_with_notes
from sparq_sim.analysis.kept_levels import keep_levels, read_levels
from sparq_sim.analysis.levels import Levels
from sparq_sim.analysis.summary import summary
from sparq_sim.errors import SparqError
from sparq_sim.report.gather import gather
from sparq_sim.report.html.page import render
from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from sparq_sim.testing import Asker, Slope
from tests.bookkeeping import Battery

__all__ = ["READERS", "Exhibit", "Seen", "exhibit_scenario", "flip_bit", "judge", "list_files"]

Reader = Callable[[Results], object]


def exhibit_scenario(**fields: object) -> Scenario:
    """Return a scenario with several optimizers, a sweep, replies and accounts."""
    chosen: dict[str, object] = {
        "title": "exhibit",
        "rounds": 12,
        "environment": Slope(),
        "feedback": {"noise": 0.1},
        "experts": {"battery": (Battery(), Channel(cost=0.1, loss=0.2))},
        "optimizers": {"asker": Asker(), "keen": Asker(batch=3)},
        "sweep": {"feedback.noise": [0.1, 0.2]},
        "record": "full",
    }
    return Scenario.model_validate(chosen | fields)


class Exhibit:
    """A study in two folders, of which one is compacted, and what readers see of it."""

    def __init__(self, home: Path) -> None:
        self.folders = [home / "single", home / "compacted"]
        single, compacted = self.folders
        study = Study(exhibit_scenario(), single)
        study.run(InProcess())
        told = {"feedback.noise": 0.1}, Levels(1.0, 0.5, 0.1)
        keep_levels(study.results, [told])
        shutil.copytree(single, compacted)
        Results.open(compacted).compact()
        self.truth = {
            folder: {name: look(folder, name) for name in READERS} for folder in self.folders
        }
        assert not any(seen.said for told in self.truth.values() for seen in told.values())

    def files(self) -> list[Path]:
        """List all files of the study."""
        return [path for folder in self.folders for path in list_files(folder)]

    def folder_of(self, path: Path) -> Path:
        return next(folder for folder in self.folders if folder in path.parents)


@dataclass(frozen=True)
class Seen:
    """What a reader has shown of a study, and what was said beside it."""

    shown: str | None
    said: str
    traceback: str = ""


def list_files(folder: Path) -> list[Path]:
    """List the files of a study's folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def look(folder: Path, name: str) -> Seen:
    """Let a reader look at a study."""
    study: Results | None = None
    try:
        study = Results.open(folder)
        shown = repr(READERS[name](study))
    except SparqError as error:
        return Seen(None, "\n".join([*(study.notes if study else ()), str(error)]))
    except Exception as error:
        return Seen(None, "", f"{type(error).__name__}: {error}")
    return Seen(shown, "\n".join(study.notes))


def judge(seen: Seen, truth: Seen, names: set[str]) -> str:
    """Return what to think of what a reader has shown: same, said, wrong, or traceback.

    Args:
        seen: What it has shown of the study, with the damage.
        truth: What it has shown of it before.
        names: Of which a word must have one: the damaged file, or the play that it is of.
    """
    if seen.traceback:
        return "traceback"
    if any(name in seen.said for name in names):
        return "said"
    return "same" if (seen.shown, seen.said) == (truth.shown, truth.said) else "wrong"


def flip_bit(path: Path, chance: Random) -> Callable[[], None]:
    """Flip a bit of a file, half of the time near its end, and return what undoes it."""
    whole = path.read_bytes()
    tail = max(1, min(len(whole), 6000))
    place = (
        len(whole) - 1 - chance.randrange(tail)
        if chance.random() < 0.5
        else chance.randrange(len(whole))
    )
    damaged = bytearray(whole)
    damaged[place] ^= 1 << chance.randrange(8)
    path.write_bytes(damaged)

    def undo() -> None:
        path.write_bytes(whole)

    return undo


def _read_plays(study: Results) -> object:
    plays = [study.read(play) for play in study.plays()]
    return [
        (each.trace.digest(), each.trace.rounds["wall"].tolist(), each.provenance.to_json())
        for each in plays
    ]


def _tell(table: pa.Table) -> object:
    return table.schema.remove_metadata(), [
        str(column.to_pylist() if not pa.types.is_floating(column.type) else np.asarray(column))
        for column in table.columns
    ]


def _report(study: Results) -> str:
    data = gather(study, replays=False, levels=False)
    return re.sub("<time>[^<]*</time>", "", render(data))


READERS: dict[str, Reader] = {
    "compare": lambda study: json.dumps(rows_with_notes(study)),
    "levels": read_levels,
    "summary": lambda study: [study.title, study.count_planned(), summary(study)],
    "rounds": lambda study: _tell(study.table("rounds")),
    "replies": lambda study: _tell(study.table("replies")),
    "accounts": lambda study: [_tell(study.accounts(f"battery/{n}")) for n in ("uses", "cells")],
    "plays": _read_plays,
    "report": _report,
}
"""What is shown of a study, by the way in which it is read."""


def _damage(exhibit: Exhibit, flips: int, seed: int) -> Iterator[tuple[str, str, Path]]:
    """Flip bits, one at a time; yield verdicts, with the reader and the file."""
    chance = Random(seed)
    files = exhibit.files()
    for number in range(flips):
        path = chance.choice(files)
        folder = exhibit.folder_of(path)
        undo = flip_bit(path, chance)
        try:
            for name in READERS:
                # To write a page takes long.
                if name != "report" or number % 10 == 0:
                    seen = look(folder, name)
                    yield (
                        judge(seen, exhibit.truth[folder][name], {path.name, path.stem}),
                        name,
                        path,
                    )
        finally:
            undo()


def count_verdicts(exhibit: Exhibit, flips: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Flip bits, and return how often readers did what, and which went wrong."""
    counts: Counter[str] = Counter()
    bad: list[str] = []
    for verdict, name, path in _damage(exhibit, flips, seed):
        counts[verdict] += 1
        if verdict in ("wrong", "traceback"):
            bad.append(f"{verdict}: {name} of {path.relative_to(exhibit.folders[0].parent)}")
    return counts, bad


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with TemporaryDirectory() as home:
        counts, bad = count_verdicts(Exhibit(Path(home)), given.flips, given.seed)
    print(f"{given.flips} flips, seed {given.seed}:", dict(counts))
    print(*bad, sep="\n")


if __name__ == "__main__":
    _main()
