"""The environment `replay`: the rewards of a recorded play, given again."""

from __future__ import annotations

from pathlib import Path

from numpy.random import Generator
from pydantic import FiniteFloat

from sparq_sim.domain import Domain
from sparq_sim.fields import Amount
from sparq_sim.journal.cassette import Cassette, read_cassette
from sparq_sim.messages import REWARD, Estimate, Query
from sparq_sim.plugin.contract import World
from sparq_sim.plugin.steered import SafeMoment, Steered, SteeredEnvironment

__all__ = ["Replay"]


class Replay(SteeredEnvironment):
    """The system of a live or simulated play, as its journal has it.

    A point has the reward that the same point had when it was played at the nearest time; it comes
    as long after the move as then. What failed fails again, and what was lost is lost. A point that
    was not played within *reach* has no reward. Nothing is known of other points, so a play has no
    regret, whatever was known in the recorded one. Of the channel of the reward only costs apply,
    because all else was recorded.
    """

    file: Path
    """A journal, as `sparq-sim live` writes it. A relative path starts from the working directory
    or, in a scenario file, from the folder of that file; `~` is the home directory."""
    reach: Amount = 0.0
    """The largest Euclidean distance from a point to the one whose reward it has; 0 requires the
    same point."""
    begins_at: FiniteFloat = 0.0
    """The moment of the journal at which the play begins, in clock units; what was played earlier
    is left out."""
    latency: bool = True
    """Whether rewards come as late as then, and not at once."""

    def is_recording(self) -> bool:
        return True

    def check_play(self, until: float) -> None:
        """Check that the journal can be read and has rewards.

        Args:
            until: The time at which the play ends, in clock units.

        Raises:
            JournalError: It is missing, damaged, or has none.
        """
        self._read()

    def connect(self, rng: Generator) -> Steered:
        return self._read()

    def _read(self) -> _Played:
        cassette, journal = read_cassette(
            self.file.expanduser(),
            REWARD,
            reach=self.reach,
            begins_at=self.begins_at,
            latency=self.latency,
        )
        return _Played(cassette, journal.header.domain)


class _Played:
    """A system whose every reward is in a journal."""

    def __init__(self, cassette: Cassette, domain: Domain) -> None:
        self._cassette = cassette
        self.domain = domain

    async def apply(self, query: Query, world: World) -> Estimate:
        return await self._cassette.answer(query, world)

    async def make_safe(self, moment: SafeMoment) -> None:
        """Do nothing: there is no system."""

    def safe_action(self, moment: SafeMoment) -> str:
        return "hold"
