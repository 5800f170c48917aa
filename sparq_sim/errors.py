"""Errors that a user can mend, the hints they carry, and text that is safe to show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "HookError",
    "LiveOnlyError",
    "PluginError",
    "ProgramError",
    "ScenarioError",
    "SparqError",
    "StuckError",
    "Unavailable",
]


class SparqError(Exception):
    """Something a user can mend; the command line prints it without a traceback."""


class PluginError(SparqError):
    """A plug-in is missing, broken, claimed twice, or breaks the rules of its kind."""


class HookError(PluginError):
    """A method of a started plug-in cannot be called as it must be, or gives what it must not."""


class Unavailable(SparqError):  # noqa: N818 - what an expert says, not what went wrong with it
    """An expert that knows nothing of a query raises this: the query fails, and says why."""


class ProgramError(SparqError):
    """A program that an expert calls cannot be run, fails, or does not end in time."""


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


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, those that turn the direction of text, and halves of characters."""


def visible(text: str) -> str:
    """Put a mark in the place of each character that shows nothing but changes what is shown."""
    return _UNSEEN.sub("\ufffd", text)
