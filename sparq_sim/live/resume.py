"""Taking up a live play again: what its journal says about whether and how it can go on."""

from __future__ import annotations

import time

from sparq_sim.errors import SparqError
from sparq_sim.journal.entries import EventEntry, MoveEntry
from sparq_sim.journal.reader import Journal
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.trace import AS_PLANNED

__all__ = [
    "FAILED",
    "SAFE",
    "STOPPED",
    "check_open",
    "check_same",
    "is_made_safe",
    "is_over",
    "list_holds",
]

STOPPED = "interrupted"
"""How a play ended that somebody stopped."""
FAILED = "failed: "
"""How the reason of a play begins that failed."""
SAFE = "safe reached"
"""The event of a safe state that was reached."""


def is_over(journal: Journal) -> bool:
    """Return whether a play has ended, and was neither stopped nor failed.

    Args:
        journal: That of the play.
    """
    ended = journal.past().ended
    return ended is not None and ended != STOPPED and not ended.startswith(FAILED)


def is_made_safe(journal: Journal) -> bool:
    """Return whether a safe state was reached after the last move.

    Args:
        journal: That of the play.
    """
    for entry in reversed(journal.entries):
        if isinstance(entry, EventEntry) and entry.what == SAFE:
            return True
        if isinstance(entry, MoveEntry):
            return False
    return True  # Nothing was applied.


def check_open(journal: Journal) -> None:
    """Raise SparqError where a play is over and nothing is left to be done.

    What is left may be the safe state of a steered system, where the play was killed in between.

    Args:
        journal: That of the play; its scenario was checked.
    """
    past, header = journal.past(), journal.header
    if header.seconds is None:
        raise SparqError(f"{journal.path} is of a play in virtual time; it cannot go on live")
    has_begun = any(isinstance(e, EventEntry) and e.what == "safe" for e in journal.entries)
    if is_over(journal) and (is_made_safe(journal) or not has_begun):
        told = " as planned" if past.ended in AS_PLANNED else ""
        raise SparqError(
            f"{journal.path}: the play ended{told} ({past.ended}), so there is nothing to go on "
            "with; give another folder by --out to play anew"
        )


def check_same(journal: Journal, scenario: Scenario, optimizer: str) -> None:
    """Raise SparqError where a journal is of another play than a scenario describes.

    Args:
        journal: That of the play.
        scenario: What is to be played.
        optimizer: The name of the one that plays.
    """
    header = journal.header
    now, then = scenario.fingerprint(optimizer), header.scenario
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key))
    if "contents" in changed:
        files = now.get("contents", {}).items() ^ then.get("contents", {}).items()
        changed[changed.index("contents")] = f"the content of {min(files)[0]}"
    if header.optimizer != optimizer:
        changed.append("the name of the optimizer")
    if header.seed != scenario.seed:
        changed.append("seed")
    if changed:
        raise SparqError(
            f"{journal.path}: the play was begun with another scenario; it differs in "
            f"{', '.join(changed)}. Go on with the scenario of before, or play anew in another "
            "folder, by --out"
        )


def list_holds(journal: Journal) -> list[tuple[float, float]]:
    """Return when the clock of a play stood still: in pauses, and while nobody played.

    Args:
        journal: That of the play, which is taken up now.

    Returns:
        Beginnings and ends, in seconds since 1970.
    """
    holds = []
    last = journal.header.unix
    for entry in journal.entries:
        if isinstance(entry, EventEntry) and entry.what == "resumed":
            holds.append((last, entry.unix))
        elif isinstance(entry, EventEntry) and entry.what == "continued":
            seconds = entry.numbers.get("seconds", 0.0)
            holds.append((entry.unix - float(seconds), entry.unix))
        last = entry.unix
    return [*holds, (last, time.time())]
