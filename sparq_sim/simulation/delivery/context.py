"""The context of a play: what all connections to its sources share."""

from __future__ import annotations

from dataclasses import dataclass, field

from sparq_sim.messages import AGENT_NAME
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.hooks import Readings
from sparq_sim.simulation.clock.protocol import Clock
from sparq_sim.simulation.delivery.budget import Budget
from sparq_sim.simulation.delivery.link import Link
from sparq_sim.simulation.delivery.request import OnRecord, Request
from sparq_sim.simulation.journaling import Journaling
from sparq_sim.simulation.past import Past
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.recorder import Recorder
from sparq_sim.simulation.records import Fate

__all__ = ["INTERRUPTED", "PlayContext"]

INTERRUPTED = "interrupted"
"""Why there is no answer where the play was interrupted."""


@dataclass(slots=True, eq=False)
class PlayContext:
    """The clock, chance, world, money and trace of one play, and all that is under way in it."""

    clock: Clock
    """The time of the play."""
    streams: Streams
    """All its random numbers, by name."""
    landscape: Landscape
    """The started environment."""
    recorder: Recorder
    """Keeps every record for the trace."""
    to_agent: OnRecord
    """Takes the records of what sources send to the agent of their own accord."""
    budget: Budget = field(default_factory=Budget)
    """What queries may cost, and what they have cost."""
    environment: str = "the environment"
    """How messages name the environment."""
    play_id: str = ""
    """What names the play in all the world; empty where nobody outside hears of it."""
    journal: Journaling | None = None
    """Writes down what happens, before anything is sent; None where nobody does."""
    past: Past | None = None
    """What happened before the play was interrupted, if it was."""
    round: int = 0
    """The number of the round that is played; 0 before the first."""
    stop_reason: str | None = None
    """Why a source ended the play, if one did."""
    links: dict[str, Link] = field(default_factory=dict)
    """How each source is asked, by its name."""
    in_flight: dict[Request, None] = field(default_factory=dict)
    """Requests that are sent or held and not done, in that order."""
    readings: Readings = field(init=False)
    """The landscape as sources may read it."""
    _own_queries: int = 0

    def __post_init__(self) -> None:
        self.readings = Readings(self.environment, self.landscape)

    def next_own_query(self) -> int:
        """Return the next number for a query that no agent asked; they count down from -1."""
        self._own_queries += 1
        return -self._own_queries

    def skip_own_queries(self, count: int) -> None:
        """Leave out numbers that were used before an interruption.

        Args:
            count: How many.
        """
        self._own_queries += count

    def hold(self, request: Request) -> None:
        """Keep a request back: if the play ends now it is unanswered, and has cost nothing.

        Args:
            request: The request.
        """
        self.in_flight[request] = None
        request.cost = 0.0

    def let_go(self, request: Request) -> bool:
        """Hold a request no longer; it belongs to the round of now.

        Args:
            request: The request.

        Returns:
            Whether it is still to be sent; not if it was given up meanwhile.
        """
        if request.open:
            del self.in_flight[request]
            request.round, request.cost = self.round, request.drawn.cost
        return request.open

    def close(self, *, interrupted: bool = False) -> None:
        """Record all requests that are still under way as unanswered.

        Args:
            interrupted: Whether the play may go on some time, and the agent then hears of it.
        """
        reason = INTERRUPTED if interrupted else Fate.UNANSWERED
        for request in list(self.in_flight):
            is_told = interrupted and request.question.asker == AGENT_NAME
            if interrupted:  # No policy takes it up: nothing may be sent any more.
                sink = self.to_agent if is_told else self.recorder.add
                request.question = request.question.told_to(sink)
            request.fail(Fate.UNANSWERED, reason, now=self.clock.now, heard=is_told)
        self.in_flight.clear()
