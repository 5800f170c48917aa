"""Entries: the lines of a journal, each a JSON object, and what they mean.

A journal is a text file in UTF-8. Its first line is the header; every other line is an entry, and
`n` counts them from 1. All moments are in clock units, but for `unix`, which is in seconds since
the epoch of Unix. Null stands for NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import nan
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from pydantic import BeforeValidator, PlainValidator

from sparq_sim.domain import Box, Domain, Sites

__all__ = [
    "FORMAT",
    "AskEntry",
    "EndEntry",
    "Entry",
    "EventEntry",
    "Header",
    "MoveEntry",
    "QueryData",
    "ReplyEntry",
    "SourceTraits",
    "TurnEntry",
]

FORMAT: Final = 1
"""The number of the format of journals that this version writes and reads."""

Number: TypeAlias = Annotated[float, BeforeValidator(lambda given: nan if given is None else given)]
"""A number, NaN where the file has null."""


def _read_domain(given: object) -> Domain:
    """Return the domain that a header describes."""
    match given:
        case Box() | Sites():
            return given
        case {"kind": "box", "lower": lower, "upper": upper, "names": names}:
            return Box(lower, upper, names)
        case {"kind": "sites", "points": points, "site_names": sites, "names": names}:
            return Sites(points, sites, names)
    raise ValueError("expected a box with lower, upper and names, or sites with points and names")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTraits:
    """What a journal says of a source."""

    real: bool = False
    """Whether it is a real thing, reached in real time only."""
    idempotent: bool = False
    """Whether it answers a request with a key that it has had with the same answer, and does
    nothing twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line of a journal: which play it is of."""

    type: ClassVar[str] = "play"
    """What stands under `type` in the file."""

    play: str
    """What names the play in all the world: 32 hexadecimal digits."""
    unix: float
    """When the play was made, in seconds since the epoch of Unix."""
    seconds: float | None
    """How long a clock unit lasts, in seconds; None in virtual time."""
    optimizer: str
    """The name of the optimizer."""
    seed: int
    """The number from which all chance is made."""
    replication: int
    """Which of several plays with this seed it is, from 0."""
    period: float
    """How long a round lasts, in clock units."""
    rounds: int
    """How many rounds there are at most."""
    domain: Annotated[Domain, PlainValidator(_read_domain)]
    """Where points may lie when the play begins."""
    scenario: dict[str, Any] = field(default_factory=dict)
    """What fixes the play, as `Scenario.fingerprint` gives it; empty where that is not known."""
    title: str = ""
    """What the play is called."""
    sources: dict[str, SourceTraits] = field(default_factory=dict)
    """The reward and the experts, by name."""
    versions: dict[str, str] = field(default_factory=dict)
    """The versions of the packages that played it."""
    journal: int = FORMAT
    """The number of the format."""

    @property
    def coordinates(self) -> tuple[str, ...]:
        """The names of the coordinates of a point."""
        return self.domain.names

    @property
    def optimizer_kind(self) -> str:
        """The kind of the optimizer; its name where that is not known."""
        match self.scenario:
            case {"optimizer": {"kind": str(kind)}}:
                return kind
        return self.optimizer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Numbered:
    n: int
    """The number of the entry, from 1."""
    unix: float
    """When it was written, in seconds since the epoch of Unix."""
    at: float
    """When it was written, in clock units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryData:
    """A query of a move."""

    id: int
    """Its id."""
    source: str
    """Who is asked."""
    points: list[list[float]]
    """Where: q rows of d coordinates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveEntry(_Numbered):
    """A move that is about to be carried out."""

    type: ClassVar[str] = "move"
    """What stands under `type` in the file."""

    round: int
    """The number of the round."""
    now: float
    """When the agent was asked for it."""
    heard: list[int]
    """The numbers of the replies that the agent was told before it was asked, in this order."""
    point: list[float] | None
    """The point to play; None to wait."""
    queries: list[QueryData]
    """What experts are asked."""
    notes: dict[str, Number] = field(default_factory=dict)
    """Numbers that the agent adds to the trace, by name."""
    effort: Number = 0.0
    """How much work the move was, in units of the agent's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskEntry(_Numbered):
    """A request that is about to be sent to a source, or a point that is about to be applied."""

    type: ClassVar[str] = "ask"
    """What stands under `type` in the file."""

    source: str
    """Who is asked."""
    query: int
    """The id of the query."""
    points: list[list[float]]
    """Where is asked: the points of `rows`, in this order, each with d coordinates."""
    rows: list[int]
    """Which points of the query these are."""
    asked_at: float
    """When the query was put."""
    attempt: int
    """Which attempt it is, from 1."""
    asker: str
    """Who asks: the agent or an expert."""
    path: str
    """Through whom it is asked."""
    round: int
    """The number of the round."""
    cost: float
    """What was charged when it was sent, in units of the budget."""
    owed: float = 0.0
    """What is charged later, in units of the budget."""
    key: str
    """What names the request in all the world."""
    query_points: list[list[float]] | None = None
    """All points of the query; None where `points` are all, or a move or an entry before this one
    has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyEntry(_Numbered):
    """What became of a request, or what a source has sent of its own accord."""

    type: ClassVar[str] = "reply"
    """What stands under `type` in the file."""

    source: str
    """Who was asked."""
    query: int
    """The id of the query; negative where the source sends of its own accord or another asks."""
    points: list[list[float]]
    """What the reply is about: the points of `rows`, in this order, each with d coordinates."""
    rows: list[int]
    """Which points of the query these are: n."""
    fate: str
    """What became of them, as `Fate` has it."""
    reason: str
    """Why there is no answer; empty where there is one."""
    heard: bool
    """Whether the asker is told."""
    superseded: bool
    """Whether another attempt follows, so that nobody hears of this one."""
    attempt: int
    """The number of the attempt, from 1; 0 where an earlier or a shared answer served."""
    fault: str
    """The name of the fault that was injected, if any."""
    asker: str
    """Who asked: the agent or an expert."""
    round: int
    """The round in which it was sent."""
    values: list[Number] | None
    """The answer: n numbers; None where there is none."""
    stds: list[Number] | None
    """How uncertain they are: n numbers; None where there is no answer."""
    asked_at: float
    """When the query was put."""
    served_at: Number
    """When service began; NaN where it did not."""
    sent_at: Number
    """When the answer was sent; NaN where none was."""
    measured_at: Number
    """The time that the values are about; NaN where there are none."""
    arrived_at: float
    """When the answer or the failure came."""
    cost: float
    """What was charged, in units of the budget."""
    notes: dict[str, Number] = field(default_factory=dict)
    """Numbers that the source adds to the trace, by name."""
    query_points: list[list[float]] | None = None
    """All points of the query; None where `points` are all, or a move or an entry before this one
    has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEntry(_Numbered):
    """What a round came to."""

    type: ClassVar[str] = "turn"
    """What stands under `type` in the file."""

    round: int
    """Its number, from 1."""
    started_at: float
    """When the agent was asked first."""
    played_at: float
    """When the point was played."""
    moved: bool
    """Whether a point was played; if not, the one still in force is charged."""
    point: list[float]
    """The point played, or still in force."""
    reward: Number
    """Its reward: without noise where the play is simulated, else as observed, NaN if none came."""
    best: Number
    """The highest reward of any point at that moment; NaN where it is not known."""
    spent: float
    """What was spent in all up to the moment of playing."""
    wall: Number
    """Seconds that the agent computed."""
    notes: dict[str, Number] = field(default_factory=dict)
    """Numbers that the agent adds to the trace, by name."""
    meters: dict[str, Number] = field(default_factory=dict)
    """Numbers of experts at the end of the round, as `<expert>_<name>`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventEntry(_Numbered):
    """Something else that happened."""

    type: ClassVar[str] = "event"
    """What stands under `type` in the file."""

    what: str
    """A word for its kind: "paused", "bounds", "resumed" and others."""
    text: str
    """What happened, for people."""
    numbers: dict[str, Any] = field(default_factory=dict)
    """What belongs to it, by name; new bounds are `lower` and `upper`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEntry(_Numbered):
    """The end of the play."""

    type: ClassVar[str] = "end"
    """What stands under `type` in the file."""

    ended: str
    """Why it ended: `rounds` or `horizon` if as planned."""
    spent: float
    """What was spent in all."""


Entry: TypeAlias = MoveEntry | AskEntry | ReplyEntry | TurnEntry | EventEntry | EndEntry
"""A line of a journal after the first."""
