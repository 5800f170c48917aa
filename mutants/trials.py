"""Trials: whether the tests notice a mutant."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from mutants.contexts import Contexts, find_mirrors
from mutants.operators import Mutant
from mutants.workshop import TestRun, Workshop

__all__ = ["Fate", "Trial", "read_trials", "try_mutant"]

Fate: TypeAlias = Literal["failed", "broken", "time", "survived"]
"""A test failed, nothing could be imported, it took too long; or no test noticed."""

_LIMIT = 300.0
"""CPU seconds that a trial may take in all; each test has a limit of its own."""
_PASSED, _FAILED, _NOT_FOUND, _NONE = 0, 1, 4, 5
"""Exit codes of pytest."""


@dataclass(frozen=True)
class Trial:
    """What became of one mutant."""

    mutant: Mutant
    """The mutant."""
    fate: Fate
    """What became of it."""
    told_by: str
    """The test that noticed; empty if none did."""
    tests: int
    """How many tests were chosen for it."""
    seconds: float
    """The CPU time that it took, in seconds."""

    @property
    def is_killed(self) -> bool:
        """Whether the tests noticed."""
        return self.fate != "survived"

    def to_json(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps(asdict(self))


def read_trials(path: Path) -> list[Trial]:
    """Return the trials of a file of lines of JSON.

    Args:
        path: Of the file.
    """
    entries = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Trial(**{**entry, "mutant": Mutant(**entry["mutant"])}) for entry in entries]


def try_mutant(workshop: Workshop, contexts: Contexts, mutant: Mutant, *, most: float) -> Trial:
    """Plant a mutant, and run the tests that run its line.

    What runs in processes of its own belongs to no test: then, those that mirror the module.

    Args:
        workshop: Where.
        contexts: Which tests run which line.
        mutant: The mutant.
        most: How many seconds of tests at most, the quickest first.
    """
    mirrors = find_mirrors(workshop.root, mutant.file)
    tests = contexts.choose(mutant, mirrors, most=most) or mirrors
    with workshop.planted(mutant):
        run = workshop.run_tests(tests, limit=_LIMIT, known=contexts.notes)
        seconds = run.seconds
        if run.code == _NOT_FOUND and "not found" in run.said:  # Named after what was changed.
            files = [*dict.fromkeys(test.split("::")[0] for test in tests)]
            run = workshop.run_tests(files, limit=_LIMIT, known=contexts.notes)
            seconds += run.seconds
    fate = _judge(run)
    killer = "" if fate == "survived" else _find_killer(run)
    return Trial(mutant, fate, killer, len(tests), seconds)


def _judge(run: TestRun) -> Fate:
    if run.code is None:
        return "time"
    if run.code in (_PASSED, _NONE):
        return "survived"
    return "failed" if run.code == _FAILED else "broken"


def _find_killer(run: TestRun) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", run.said, re.MULTILINE)
    return found[1] if found else run.said.strip().rpartition("\n")[2][:200]
