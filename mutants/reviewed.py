"""The reviewed list: mutants that survive, and what was thought of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from mutants.operators import OPERATORS, Mutant

__all__ = ["LIST", "Reviewed", "Verdict", "read_reviewed"]

LIST = "mutants/survivors.toml"
"""The file of the list, relative to the root of the project."""

Verdict: TypeAlias = Literal["equivalent", "accepted"]
"""Of a mutant: it does the same as the original, or nobody wants a test of what it does."""


@dataclass(frozen=True)
class Reviewed:
    """A mutant that survives, known by its text: line numbers move."""

    file: str
    """The file that it is in, relative to the root of the project."""
    within: str
    """The class and function that it is in; empty outside of both."""
    operator: str
    """What kind of mistake it is."""
    before: str
    """The first line that differs, without indentation, as it is."""
    after: str
    """The same line with the mistake."""
    verdict: Verdict
    """What it is taken for."""
    reason: str
    """Why."""

    def means(self, mutant: Mutant) -> bool:
        """Return whether it is about a *mutant*.

        Args:
            mutant: Any mutant.
        """
        told = mutant.file, mutant.within, mutant.operator, mutant.before, mutant.after
        return told == (self.file, self.within, self.operator, self.before, self.after)

    def is_stale(self, root: Path) -> bool:
        """Return whether the file has no such line any more.

        Args:
            root: Of the project.
        """
        path = root / self.file
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return self.before not in (line.strip() for line in lines)


def read_reviewed(path: Path) -> list[Reviewed]:
    """Return all entries of the list.

    Args:
        path: Of the list.

    Raises:
        ValueError: If an entry lacks a field, or has one that cannot be.
    """
    with path.open("rb") as file:
        entries = tomllib.load(file).get("survivor", [])
    return [_read_entry(entry, number, path) for number, entry in enumerate(entries, 1)]


def _read_entry(entry: dict[str, Any], number: int, path: Path) -> Reviewed:
    where = f"{path}: survivor {number}"
    fields = Reviewed.__dataclass_fields__.keys()
    if entry.keys() != fields:
        raise ValueError(f"{where} has {sorted(entry)}; expected {sorted(fields)}")
    for field, expected in (("verdict", get_args(Verdict)), ("operator", OPERATORS)):
        if entry[field] not in expected:
            raise ValueError(f"{where}: {field} is {entry[field]!r}; expected one of {expected}")
    if not str(entry["reason"]).strip():
        raise ValueError(f"{where} has no reason; state why it may survive")
    return Reviewed(**entry)
