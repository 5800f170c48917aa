"""Links: the road of a question from an asker to a source, one small part for each concern."""

from __future__ import annotations

from typing import Protocol

from sparq_sim.messages import AGENT_NAME
from sparq_sim.simulation.delivery.request import Question, Request

__all__ = ["Carrier", "Link", "name_asker"]


class Link(Protocol):
    """A part of the road to a source: it answers a question itself, or passes it on."""

    def ask(self, question: Question) -> None:
        """Have a *question* answered; `question.on_record` is told what becomes of each row.

        Args:
            question: Rows of a query, and who is told what becomes of them.
        """


class Carrier(Protocol):
    """The part of the road below retries: it carries one attempt."""

    def send(self, request: Request) -> None:
        """Send a *request* to the source, now or as soon as it may go.

        Args:
            request: The request.
        """


def name_asker(source: str, path: str) -> str:
    """Return the path of a *source* that asks another one, having been asked by *path* itself.

    Args:
        source: The name of the source that asks.
        path: The path by which it was asked.
    """
    return source if path in (AGENT_NAME, source) else f"{path}>{source}"
