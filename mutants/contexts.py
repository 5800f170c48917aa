"""Contexts: which tests run a line of the core, measured once and kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterable
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

from mutants.operators import Mutant
from mutants.workshop import Workshop

__all__ = ["TESTS", "Contexts", "find_mirrors", "measure_contexts"]

TESTS = (
    "tests/simulation/**/test_*.py",
    "tests/study/**/test_*.py",
    "tests/gp/**/test_*.py",
    "tests/test_*.py",
    "tests/live/test_resumption.py",
    "tests/plugin/test_steered.py",
    "tests/testing/test_checks.py",
    "tests/analysis/test_contrasts.py",
)
"""The tests of the rooms of the core, and of what other rooms ask of it: that plays go on after an
interruption, what is steered, what can take no part in a play, and plays without an expert."""

_LIMIT = 3600.0
"""How much CPU time all tests may take together, in seconds."""


class Contexts:
    """Which tests run which line, and how long each takes.

    Args:
        folder: Where it was kept.
    """

    def __init__(self, folder: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(folder / "coverage")
        self._data.read()
        self.notes = folder / "tests.json"
        """The file that tells how long tests take."""
        self.seconds: dict[str, float] = json.loads(self.notes.read_text(encoding="utf-8"))[
            "seconds"
        ]
        """How long each test that passes takes, in seconds."""

    def choose(self, mutant: Mutant, mirrors: Collection[str], *, most: float) -> list[str]:
        """Return the tests that may tell a mutant: those of its room and the quickest first.

        Args:
            mutant: The mutant.
            mirrors: The files of tests of its module.
            most: How many seconds of tests at most.
        """
        of_line = self._data.contexts_by_lineno(mutant.file)
        of_mutant = {
            test
            for number in range(mutant.number, mutant.last + 1)
            for test in of_line.get(number, ())
        }
        # What runs when a module is imported (its tests are those of ""), or in a process of its
        # own (it has none), belongs to no test: all of its mirrors may tell.
        if not of_mutant or "" in of_mutant:
            of_mutant |= {test for test in self.seconds if test.split("::")[0] in mirrors}
            of_mutant |= {test for tests in of_line.values() for test in tests}
        ordered = self._order(of_mutant, set(mirrors))
        taken = accumulate(self.seconds[test] for test in ordered)
        return [test for test, sum_ in zip(ordered, taken, strict=True) if sum_ < most]

    def _order(self, tests: Iterable[str], mirrors: set[str]) -> list[str]:
        known = (test for test in tests if test in self.seconds)
        return sorted(
            known, key=lambda test: (test.split("::")[0] not in mirrors, self.seconds[test], test)
        )


def find_mirrors(root: Path, file: str) -> list[str]:
    """Return the files of tests that mirror a *file* of the core, as named from *root*.

    Args:
        root: Of the project.
        file: Relative to it.
    """
    path = Path(file)
    folder = root / "tests" / Path(*path.parent.parts[1:])
    found = [folder / f"test_{path.stem}.py"]
    if not found[0].exists():
        room = folder.parent / f"test_{folder.name}.py"
        found = [room] if room.exists() else sorted(folder.glob("test_*.py"))
    return [each.relative_to(root).as_posix() for each in found]


def measure_contexts(workshop: Workshop, folder: Path, *, fresh: bool = False) -> Contexts:
    """Return which tests run which line; what has not changed since is not measured again.

    Args:
        workshop: Where the tests are run.
        folder: Where it is kept.
        fresh: Whether all is measured again.
    """
    root = workshop.root
    tests = _name_all(root, TESTS)
    code = _digest(root, _name_all(root, ["sparq_sim/**/*.py"]))
    now = {test: _digest(root, [test]) for test in sorted(tests)}
    note = folder / "tests.json"
    kept = json.loads(note.read_text(encoding="utf-8")) if note.exists() else {}
    if fresh or kept.get("code") != code:
        kept = {"code": code, "files": {}, "seconds": {}}
    changed = sorted(test for test in tests if kept["files"].get(test) != now[test])
    if changed:
        seconds = _measure(workshop, folder, changed, is_first=not kept["files"])
        old = kept["seconds"].items()
        seconds |= {test: taken for test, taken in old if test.split("::")[0] not in changed}
        note.write_text(
            json.dumps({"code": code, "files": now, "seconds": seconds}), encoding="utf-8"
        )
    return Contexts(folder)


def _measure(
    workshop: Workshop, folder: Path, files: list[str], *, is_first: bool
) -> dict[str, float]:
    """Run *files* of tests, and add what they run to what is kept; return how long each takes."""
    folder.mkdir(parents=True, exist_ok=True)
    data, settings = workshop.root / ".coverage", workshop.root / ".coveragerc-of-mutants"
    settings.write_text("[run]\nrelative_files = true\nsource = sparq_sim\n", encoding="utf-8")
    if not is_first:
        shutil.copy(folder / "coverage", data)
    notes = workshop.root / ".outcomes.json"
    run = workshop.run_tests(
        files,
        limit=_LIMIT,
        program=("-m", "coverage", "run", "--append", f"--rcfile={settings}"),
        notes=notes,
        options=("--maxfail=100",),
    )
    if run.code not in (0, 1) or not notes.exists():
        raise SystemExit(f"the tests could not be run:\n{run.said[-4000:]}")
    if run.code:
        print(f"some tests fail without any mutant, and are left out:\n{run.said[-2000:]}")
    shutil.copy(data, folder / "coverage")
    passed: dict[str, float] = json.loads(notes.read_text(encoding="utf-8"))
    return passed


def _name_all(root: Path, patterns: Iterable[str]) -> set[str]:
    paths = (path for pattern in patterns for path in root.glob(pattern))
    return {path.relative_to(root).as_posix() for path in paths}


def _digest(root: Path, names: Iterable[str]) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (root / name).read_bytes())
    return digest.hexdigest()
