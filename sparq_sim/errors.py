"""Errors that a user can fix, the hints they carry, and text that is safe to show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "AnswerLost",
    "HookError",
    "JournalError",
    "LiveOnlyError",
    "PeerError",
    "PluginError",
    "ProgramError",
    "ScenarioError",
    "SparqError",
    "StuckError",
    "Unaffordable",
    "Unavailable",
    "did_you_mean",
    "escape_surrogates",
    "mask_invisible",
]


class SparqError(Exception):
    """An error that a user can fix; the command line prints it without a traceback."""


class PluginError(SparqError):
    """A plug-in is missing or broken, two have one name, or one breaks the rules of its kind."""


class HookError(PluginError):
    """A method of a started plug-in cannot be called as it must be, or returns something wrong."""


class Unavailable(SparqError):  # noqa: N818 - what an expert says, not what went wrong with it
    """An expert raises this where it knows nothing of a query: `raise Unavailable("closed")`.

    The query fails as unavailable, and its message is the reason.
    """


class AnswerLost(Unavailable):
    """An expert raises this where its answer was lost on a way of its own, as in its network.

    The query fails as lost, the asker hears of it, and its message is the reason.
    """


class Unaffordable(Unavailable):
    """What an expert would charge by `world.charge` cannot be paid.

    A query that the expert does not answer for this reason fails as refused by the budget.
    """


class ProgramError(SparqError):
    """A program that an expert calls cannot be run, fails, or does not end in time."""


class PeerError(SparqError):
    """A real thing gave no usable reply: it was silent, unreachable, or sent something wrong.

    The message tells what it did, without naming it: "sent no JSON: 'hello'". Whoever shows it
    puts the name of the source before it.
    """


class JournalError(SparqError):
    """The journal of a play cannot be written or read, or does not fit the play."""


class LiveOnlyError(SparqError):
    """A process in virtual time awaited something that happens in real time only, or vice versa."""


class StuckError(SparqError):
    """A process waits for something that can no longer happen, as nothing is left to happen."""


class ScenarioError(SparqError):
    """A scenario cannot be played.

    Args:
        problems: All that is wrong with it, a line each.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown word: the known word that was probably meant, or all of them.

    Args:
        word: What was written.
        known: All words that could be written there.

    Returns:
        Text for the end of an error message, as "did you mean 'gp-ucb'?".
    """
    names = sorted(known)
    if close := get_close_matches(word, names, n=1):
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(names)}" if names else "there are none"


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
"""Control characters, those that turn the direction of text, and halves of characters."""


def mask_invisible(text: str) -> str:
    """Return *text* with a mark in place of each character that is not shown.

    Such characters could hide or reorder other text in a terminal or in a browser.

    Args:
        text: Of any origin.
    """
    return _UNSEEN.sub("\ufffd", text)


def escape_surrogates(text: str) -> str:
    r"""Return *text* of a plug-in with halves of characters written out, as "\udc80".

    Such halves come of bytes that are no text; no file and no terminal takes them.

    Args:
        text: Of any origin.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
