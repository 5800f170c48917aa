"""Make scenario files wrong, and see what `check` and `run` say: `python -m tests.fuzz --help`."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from sparq_sim.cli.main import main as command_line
from sparq_sim.plugin.registry import GROUPS, list_names, load
from tests.fuzz.corpus import BESIDE, read_corpus
from tests.fuzz.texts import mutate_text
from tests.fuzz.trial import Outcome, attempt, clear
from tests.fuzz.values import mutate_values

MOST_CHECK_CPU = 2.0
"""Seconds of computing that the check of a file may take."""
MOST_RUN_CPU = 10.0
"""Seconds of computing after which a run is ended, which is no fault of the file."""
SMALL = ("--set", "rounds=5", "--set", "replications=1", "--executor", "in-process")


def write_beside(folder: Path) -> None:
    """Write what lies beside the files: data, a pipe that nobody writes to, a large file."""
    for name, text in BESIDE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    os.mkfifo(folder / "fifo")
    (folder / "link.csv").symlink_to("/etc/passwd")
    with (folder / "large.csv").open("wb") as large:
        large.truncate(50 * 2**30)  # Without blocks on the disk.


def make_cases(seed: int) -> Iterator[tuple[int, bytes]]:
    """Yield mutated files without end, each with its number: the same for the same seed."""
    corpus = read_corpus()
    number = 0
    while True:
        rng = Random(f"{seed}:{number}")
        text, other = rng.choice(corpus), rng.choice(corpus)
        mutate = mutate_text if rng.random() < 0.5 else mutate_values
        yield number, mutate(text, other, rng)
        number += 1


def load_all(folder: Path) -> None:
    """Load all that commands load, so that trials begin with it."""
    for kind in GROUPS.values():
        for name in list_names(kind):
            load(kind, name)
    base = str(folder / "base.toml")
    for arguments in (["check", base], ["run", base, "--out", str(folder / "out"), *SMALL, "-q"]):
        with suppress(SystemExit):
            command_line(arguments)
    gc.collect()
    gc.freeze()


def check(folder: Path, number: int, content: bytes) -> tuple[Path, Outcome, list[str]]:
    file = folder / f"case-{number}.toml"
    file.write_bytes(content)
    outcome = attempt(["check", str(file)], folder=folder, most_cpu=20.0)
    return file, outcome, outcome.find_faults(file, most_cpu=MOST_CHECK_CPU)


def run(folder: Path, file: Path, *, report: bool) -> tuple[Outcome, list[str]]:
    out = folder / "out"
    clear(out)
    more = [] if report else ["--no-report"]
    outcome = attempt(
        ["run", str(file), "--out", str(out), *SMALL, *more],
        folder=folder,
        most_cpu=MOST_RUN_CPU,
        wall=600.0,
    )
    faults = outcome.find_faults(file, most_cpu=MOST_RUN_CPU + 1)
    return outcome, faults


class Tally:
    """What was found so far."""

    def __init__(self, command: str, keep: Path | None) -> None:
        self.command = command
        self.ends: Counter[int] = Counter()
        self.faulty = 0
        self.unfinished = 0
        self.slowest: list[tuple[float, str]] = []
        self.keep = keep

    def take(self, file: Path, outcome: Outcome, faults: list[str]) -> None:
        self.ends[outcome.code] += 1
        self.slowest = sorted([*self.slowest, (outcome.cpu, file.name)])[-5:]
        if self.command == "run" and faults and faults[0].startswith("slow"):
            self.unfinished += 1
            faults = []
            print(f"{self.command} {file.name}: not finished", flush=True)
        if faults:
            self.faulty += 1
            print(f"{self.command} {file.name}: {'; '.join(faults)}", flush=True)
            if self.keep:
                self.keep.mkdir(parents=True, exist_ok=True)
                (self.keep / file.name).write_bytes(file.read_bytes())
                told = f"{faults}\n{outcome.printed}"
                (self.keep / f"{file.stem}-{self.command}.txt").write_text(told, errors="replace")

    def __str__(self) -> str:
        ends = ", ".join(f"{count} with {code}" for code, count in sorted(self.ends.items()))
        slowest = ", ".join(f"{cpu:.2f} s ({name})" for cpu, name in reversed(self.slowest))
        return (
            f"{self.command}: {self.ends.total()} files; ended: {ends or 'none'}; "
            f"{self.faulty} wrongly; {self.unfinished} not finished; slowest: {slowest or '-'}"
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--checks", type=int, default=10_000, help="How many files to check.")
    options.add_argument("--runs", type=int, default=1_000, help="How many valid ones to run.")
    options.add_argument("--seed", type=int, default=0, help="Another seed makes other files.")
    options.add_argument("--only", type=int, help="Check and run the file of this number only.")
    options.add_argument("--keep", type=Path, help="Where files that end wrongly are kept.")
    given = options.parse_args()
    warnings.simplefilter("default")
    checks, runs = Tally("check", given.keep), Tally("run", given.keep)
    with TemporaryDirectory() as made:
        folder = Path(made).resolve() / "a" / "b"
        folder.mkdir(parents=True)
        write_beside(folder)
        load_all(folder)
        for number, content in make_cases(given.seed):
            if number % 1000 == 999:
                print(checks, runs, sep="\n", flush=True)
            if given.only is not None and number != given.only:
                continue
            checking = checks.ends.total() < given.checks
            running = runs.ends.total() < given.runs
            if not checking and not running:
                break
            file, outcome, faults = check(folder, number, content)
            if checking:
                checks.take(file, outcome, faults)
            if running and outcome.code == 0 and not faults:
                runs.take(file, *run(folder, file, report=number % 7 == 0))
            if given.only is not None:
                print(outcome.printed)
                break
            file.unlink()
    print(checks, runs, sep="\n")
    sys.exit(1 if checks.faulty or runs.faulty else 0)


if __name__ == "__main__":
    main()
