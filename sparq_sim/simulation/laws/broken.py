"""What breaks a law: where it was seen, and which values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparq_sim.errors import SparqError

__all__ = ["Broken", "BrokenLawError"]

_MOST_SHOWN = 3
"""Of the places that break laws, named in an error."""


@dataclass(frozen=True, slots=True)
class Broken:
    """One place in a trace that breaks a law."""

    law: str
    """What should hold, in words."""
    seen: str
    """The values that break it."""
    source: str = ""
    """Whose replies they are; empty where it is about the play."""
    round: int = 0
    """In which round; 0 where it is about the play."""

    def __str__(self) -> str:
        places = [f"source {self.source}"] * bool(self.source)
        places += [f"round {self.round}"] * bool(self.round)
        where = f" ({', '.join(places)})" if places else ""
        return f"{self.law}{where}: {self.seen}"


class BrokenLawError(SparqError):
    """A play broke a law that every play must obey: the simulator or a plug-in has a mistake."""

    def __init__(self, broken: Sequence[Broken]) -> None:
        """Name what was broken.

        Args:
            broken: All that was found; the first few are named.
        """
        shown = "; ".join(map(str, broken[:_MOST_SHOWN]))
        more = len(broken) - _MOST_SHOWN
        super().__init__(
            f"the play breaks a law: {shown}{f'; and {more} more' if more > 0 else ''}"
        )
        self.broken = tuple(broken)
        """All that was found."""

    def __reduce__(self) -> tuple[type[BrokenLawError], tuple[Sequence[Broken]]]:
        return type(self), (self.broken,)
