"""Explanation: why a point was played in a round, and what was asked, by playing it again."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.summary import AnalysisError, finite
from sparq_sim.arrays import Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.errors import SparqError
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.plugin.environment import Landscape
from sparq_sim.plugin.optimizer import Agent, Belief, Believing
from sparq_sim.simulation.beliefs import Watched, describe_difference, find_play
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import NOTE, Trace

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played
    from sparq_sim.study.store import StoredPlay

__all__ = ["AskedPoint", "Explanation", "Heard", "Place", "explain", "is_told"]

_COVER = {1: 501, 2: 41}
"""Points per dimension of the grid that is looked at; those on which optimizers search unless told
otherwise."""
_MOST_PLACES = 2000
"""Places that are looked at where there are more dimensions."""
_APART = 0.05
"""How far the runner-up lies from the point played at least, in extents of the domain."""


@dataclass(frozen=True)
class Heard:
    """What the agent had heard of a source when it chose the point."""

    source: str
    """The name of the expert, or "reward" for its own observations."""
    answered: int
    """How many points it had answers about."""
    new: int
    """How many of them came since the move before."""
    newest_age: float
    """How old the newest of these measurements was, in clock units; NaN where there is none."""
    failed: Mapping[str, int]
    """How many points had failed since the move before, by what became of them."""
    awaited: int
    """How many points were still on their way."""


@dataclass(frozen=True)
class Place:
    """What was believed and true at one place when the point was played."""

    what: str
    """Why it is looked at, as "played" or "best"."""
    point: Mapping[str, float]
    """Its coordinates, by name."""
    site: str
    """Its name, where it has one."""
    truth: float
    """The noise-free reward."""
    mean: float
    """The believed reward; NaN where there is no belief, as below."""
    std: float
    """How uncertain the belief was."""
    ucb: float
    """The upper confidence bound: mean + width x std."""


@dataclass(frozen=True)
class AskedPoint:
    """A point that an expert was asked about in the round, and what became of it."""

    source: str
    """The name of the expert."""
    point: Mapping[str, float]
    """Its coordinates, by name."""
    site: str
    """Its name, where it has one."""
    fate: str
    """What became of it, as "answered"."""
    reason: str
    """Why it failed; empty if it did not."""
    value: float
    """The answer; NaN if none came, as below."""
    std: float
    """How exact it was said to be."""
    latency: float
    """How long the reply took, in clock units."""
    cost: float
    """What the query cost, if it is the first point of one; else 0."""


@dataclass(frozen=True)
class Explanation:
    """Why a point was played in a round, and what was asked."""

    number: int
    """The number of the round."""
    rounds: int
    """How many rounds the play has."""
    chosen_at: float
    """When the point was chosen, in clock units."""
    played_at: float
    """When it was played."""
    moved: bool
    """Whether it was chosen for this round; if not, the point of a round before was in force."""
    reward: float
    """The noise-free reward; as observed, where no more is known."""
    regret: float
    """How far it was below the best; NaN where the best is not known."""
    width: float
    """How many stds above the mean the agent's bound lay; NaN without a belief."""
    places: Sequence[Place]
    """What was believed and true where it matters."""
    heard: Sequence[Heard]
    """What the agent knew, by source."""
    asked: Sequence[AskedPoint]
    """What was asked of experts in the round."""
    notes: Mapping[str, float]
    """What the agent noted in the round."""
    spent: float
    """What was spent in the round."""
    spent_in_all: float
    """What was spent in the play so far."""
    remarks: Sequence[str]
    """What a reader must know: why there is no belief, or that the play came out otherwise."""

    def find(self, what: str) -> Place | None:
        """Return the place that is looked at for a reason, if there is one.

        Args:
            what: As in `Place.what`.
        """
        return next((place for place in self.places if place.what == what), None)

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON-able data, with null for what is not known."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def _plain(value: Any) -> Any:
    match value:
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
    return finite(value)


def explain(stored: StoredPlay, number: int, *, allow_import: bool = False) -> Explanation:
    """Return why a point was played in a round, and what was asked.

    The play is played again, with its agent watched. Where it cannot be, what is stored is told
    without beliefs, and a remark says why.

    Args:
        stored: The play.
        number: The number of the round, from 1.
        allow_import: Whether the play may name code to run, as `module:Class`.

    Raises:
        AnalysisError: There is no such round.
    """
    trace = stored.trace
    if not 1 <= number <= len(trace):
        raise AnalysisError(f"there is no round {number}; the play has rounds 1 to {len(trace)}")
    try:
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")  # They were given when it was played first.
            played = find_play(trace, allow_import=allow_import)
            with open_landscape(played.environment, played.seed, played.replication) as landscape:
                return _explain_again(trace, number, played, landscape)
    except SparqError as error:
        chosen_at = float(trace.rounds["started_at"][number - 1])
        remarks = [f"what it believed is not known: {error}"]
        if "source" not in trace.replies:
            remarks.append("nor what it heard and asked: only rounds were recorded")
        return _put_together(trace, number, chosen_at, None, remarks)


@dataclass
class _View:
    """The places that are looked at in a round, the point played and the best first."""

    domain: Domain
    points: Points
    truth: Values
    belief: Belief | None = None


def _explain_again(trace: Trace, number: int, played: Played, landscape: Landscape) -> Explanation:
    """Play again with the agent watched, and explain the round."""
    move = int(np.cumsum(trace.rounds["moved"])[number - 1]) - 1
    seen = _look_at(trace, number, landscape)
    moments: list[float] = []
    believes = True
    numbers = count()

    def look(agent: Agent, now: float) -> None:
        nonlocal believes
        moments.append(now)
        if next(numbers) == move:
            believes = isinstance(agent, Believing)
            if isinstance(agent, Believing):
                seen.belief = agent.belief(seen.points, now)

    optimizer = played.optimizer
    while isinstance(optimizer, Watched):
        optimizer = optimizer.optimizer
    watched = Watched(optimizer=optimizer, looks=look)
    again = replace(played, optimizer=watched).again(landscape=landscape)
    remarks = []
    if again.digests()[0] != trace.digests()[0]:
        remarks.append(
            "played again, it is not the play that was stored, as happens with another version, "
            f"processor or library; first difference: {describe_difference(trace, again)}"
        )
        if len(again) < number or move >= len(moments):
            raise SparqError("played again, it ended before this round")
    if not believes:
        remarks.append(f"{played.optimizer_name} states no belief, so only the truth is told")
    elif seen.belief is None:
        remarks.append("it believed nothing yet")
    chosen_at = moments[move] if move >= 0 else float(again.rounds["started_at"][number - 1])
    return _put_together(again, number, chosen_at, seen, remarks)


def _look_at(trace: Trace, number: int, landscape: Landscape) -> _View:
    """Choose the places to look at: a cover of the domain, the point played, and the best."""
    domain, time = landscape.domain, float(trace.rounds["played_at"][number - 1])
    if isinstance(domain, Sites):
        cover = domain.points
    elif domain.dimensions in _COVER:
        cover = domain.grid(_COVER[domain.dimensions])
    else:
        cover = domain.cover(_MOST_PLACES)
    best = np.asarray(landscape.best(time)[0], dtype=float)
    points = np.vstack([trace.points[number - 1], best, cover])
    truth = np.asarray(landscape.rewards(points, time), dtype=float)
    return _View(domain, points, truth)


def _put_together(
    trace: Trace, number: int, chosen_at: float, seen: _View | None, remarks: Sequence[str]
) -> Explanation:
    row = number - 1
    rounds = trace.rounds
    spent = rounds["spent"]
    return Explanation(
        number=number,
        rounds=len(trace),
        chosen_at=chosen_at,
        played_at=float(rounds["played_at"][row]),
        moved=bool(rounds["moved"][row]),
        reward=float(rounds["reward"][row]),
        regret=float(rounds["regret"][row]),
        width=float(seen.belief.width) if seen and seen.belief else np.nan,
        places=[_tell_reward(trace, row)] if seen is None else _list_places(trace, seen),
        heard=_list_heard(trace, row, chosen_at),
        asked=_list_asked(trace, number, None if seen is None else seen.domain),
        notes={
            name.removeprefix(NOTE): float(column[row])
            for name, column in rounds.items()
            if name.startswith(NOTE) and np.isfinite(column[row])
        },
        spent=float(spent[row] - (spent[row - 1] if row else 0.0)),
        spent_in_all=float(spent[row]),
        remarks=remarks,
    )


def _tell_reward(trace: Trace, row: int) -> Place:
    """Return the point played where nothing is known but what it came to."""
    point = _name_coordinates(trace.coordinates, trace.points[row])
    return Place("played", point, "", float(trace.rounds["reward"][row]), np.nan, np.nan, np.nan)


def _list_places(trace: Trace, seen: _View) -> list[Place]:
    """List the places where it matters what was believed: played, best, and those next in line."""
    chosen = {"played": 0, "best": 1}
    mean = std = ucb = np.full(len(seen.points), np.nan)
    if seen.belief is not None:
        mean, std = np.asarray(seen.belief.mean), np.asarray(seen.belief.std)
        ucb = mean + seen.belief.width * std
        apart = _distances(seen.domain, seen.points, seen.points[0]) > _APART
        if isinstance(seen.domain, Sites):
            apart = (seen.points != seen.points[0]).any(axis=1)
        if apart.any():
            chosen["runner-up"] = int(np.flatnonzero(apart)[np.argmax(ucb[apart])])
        # No optimizer would have searched at the very best point.
        chosen["highest mean"] = int(np.argmax(np.where(np.arange(len(mean)) == 1, -np.inf, mean)))
    return [
        Place(
            what,
            _name_coordinates(trace.coordinates, seen.points[at]),
            _name_site(seen.domain, seen.points[at]),
            *(float(column[at]) for column in (seen.truth, mean, std, ucb)),
        )
        for what, at in chosen.items()
    ]


def _distances(domain: Domain, points: Points, point: Values) -> Values:
    """Return how far points lie from one, in extents of the domain."""
    extent = domain.upper - domain.lower if isinstance(domain, Box) else np.ptp(points, axis=0)
    steps = (points - point) / np.where(extent > 0, extent, 1.0)
    distances: Values = np.sqrt((steps**2).sum(axis=1))
    return distances


def _name_coordinates(names: Sequence[str], point: Values) -> dict[str, float]:
    return dict(zip(names, point.tolist(), strict=True))


def _name_site(domain: Domain | None, point: Values) -> str:
    if not isinstance(domain, Sites):
        return ""
    return domain.site_names[int(np.argmin(_distances(domain, domain.points, point)))]


def _list_heard(trace: Trace, row: int, now: float) -> list[Heard]:
    """List what the agent had heard of each source when it chose a point."""
    replies = trace.replies
    if "source" not in replies:
        return []
    own = (replies["asker"] == AGENT_NAME) | (replies["asker"] == replies["source"])
    told = own & is_told(trace, row, now)
    answered = told & (replies["fate"] == Fate.ANSWERED)
    before = float(trace.rounds["started_at"][row - 1]) if row else -np.inf
    recent = ~is_told(trace, row - 1, before)
    on_its_way = own & (replies["asked_at"] < now) & (replies["arrived_at"] > now)
    heard = []
    for source in sorted(np.unique(replies["source"][own]), key=lambda name: name != REWARD):
        here = replies["source"] == source
        known = here & answered
        failed = here & told & ~answered & recent
        heard.append(
            Heard(
                source=str(source),
                answered=int(known.sum()),
                new=int((known & recent).sum()),
                newest_age=now - float(replies["measured_at"][known].max())
                if known.any()
                else np.nan,
                failed=dict(Counter(replies["fate"][failed].tolist())),
                awaited=int((here & on_its_way).sum()),
            )
        )
    return [each for each in heard if each.answered or each.failed or each.awaited]


def is_told(trace: Trace, row: int, now: float) -> NDArray[np.bool_]:
    """Return which replies have been heard when the move of a round is chosen: (n,).

    Args:
        trace: The play, with its replies.
        row: The row of the round.
        now: When the move is chosen.
    """
    replies = trace.replies
    # What was asked together with the move is heard after it, be it in the same instant.
    earlier = (replies["round"] <= row) | (replies["asked_at"] < now)
    told: NDArray[np.bool_] = replies["heard"] & (replies["arrived_at"] <= now) & earlier
    return told


def _list_asked(trace: Trace, number: int, domain: Domain | None) -> list[AskedPoint]:
    """List what experts were asked about in a round; of several attempts, the last counts."""
    replies = trace.replies
    if "source" not in replies:
        return []
    asked = (replies["round"] == number) & (replies["asker"] == AGENT_NAME)
    asked &= (replies["source"] != REWARD) & ~np.isin(replies["fate"], (Fate.DUPLICATE, Fate.STRAY))
    last = {
        (replies["source"][at], replies["query"][at], replies["row"][at]): at
        for at in np.flatnonzero(asked)
    }
    points = np.stack([replies[name] for name in trace.coordinates], axis=1)
    return [
        AskedPoint(
            source=str(source),
            point=_name_coordinates(trace.coordinates, points[at]),
            site=_name_site(domain, points[at]),
            fate=str(replies["fate"][at]),
            reason=str(replies["reason"][at]),
            value=float(replies["value"][at]),
            std=float(replies["std"][at]),
            latency=float(replies["arrived_at"][at] - replies["asked_at"][at]),
            cost=float(replies["cost"][at]),
        )
        for (source, _, _), at in sorted(last.items())
    ]
