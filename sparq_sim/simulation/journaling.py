"""Journaling: what a play reports of itself as it happens, before anything is sent or applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sparq_sim.messages import Move
from sparq_sim.simulation.delivery.request import Request
from sparq_sim.simulation.records import Record, Turn

__all__ = ["Journaling"]


class Journaling(Protocol):
    """Writes down what happens in a play; all moments are in clock units.

    What a play does in one step is written entry by entry and made durable once, by `sync`, before
    any of it leaves the process.
    """

    @property
    def play_id(self) -> str:
        """What names the play in all the world."""

    def move(
        self, move: Move, *, number: int, now: float, at: float, heard: Sequence[Record]
    ) -> None:
        """Write a move that is about to be carried out.

        Args:
            move: What the agent does.
            number: The number of the round.
            now: When the agent was asked for it.
            at: The present moment.
            heard: What the agent was told before it was asked, in this order.
        """

    def ask(self, request: Request, *, at: float, key: str) -> None:
        """Write a request that is about to be sent to a source.

        Args:
            request: What is asked, by whom, and which attempt it is.
            at: The present moment.
            key: What names the request in all the world.
        """

    def reply(self, record: Record, *, superseded: bool, at: float) -> None:
        """Write what became of a request, or what a source has sent of its own accord.

        Args:
            record: The record of it.
            superseded: Whether another attempt follows, so that nobody hears of this one.
            at: The present moment.
        """

    def turn(self, turn: Turn, *, at: float) -> None:
        """Write what a round came to.

        Args:
            turn: The round.
            at: The present moment.
        """

    def event(self, what: str, text: str, *, at: float, **numbers: object) -> None:
        """Write something else that happened.

        Args:
            what: A word for its kind, as "paused".
            text: What happened, for people.
            at: The present moment.
            numbers: What belongs to it, JSON-able, by name.
        """

    def end(self, ended: str, *, at: float, spent: float) -> None:
        """Write that the play is over.

        Args:
            ended: Why.
            at: The present moment.
            spent: What was spent in all.
        """

    def sync(self) -> None:
        """Make all that was written durable, also against the loss of power."""
