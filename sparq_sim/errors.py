"""Errors that a user can mend, and the hints they carry."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class SparqError(Exception):
    """Something a user can mend; the command line prints it without a traceback."""


class PluginError(SparqError):
    """A plug-in is missing, broken, claimed twice, or breaks the rules of its kind."""


class LiveOnlyError(SparqError):
    """A process awaited something that only passes in real time, under virtual time."""


class StuckError(SparqError):
    """Nothing is left to happen, yet somebody waits."""


class ScenarioError(SparqError):
    """A scenario that cannot be played; *problems* are all that is wrong with it, a line each."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Say which known word was meant, or which there are."""
    names = sorted(known)
    if close := get_close_matches(word, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"
