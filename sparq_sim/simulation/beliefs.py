"""Beliefs: what an agent believed in a play, found by playing it again and watching the agent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from sparq_sim.arrays import Matrix, Points, Values
from sparq_sim.errors import PluginError, SparqError
from sparq_sim.messages import Move, Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Landscape, WithGaps
from sparq_sim.plugin.optimizer import Agent, Belief, Believing, Optimizer
from sparq_sim.simulation.blas import one_thread
from sparq_sim.simulation.lifetime import Resources, open_landscape, run_at_once
from sparq_sim.simulation.trace import WALL, Trace, first_difference

if TYPE_CHECKING:
    from sparq_sim.simulation.play import Played

__all__ = [
    "BeliefError",
    "BeliefMap",
    "NoBeliefError",
    "Watched",
    "belief_at",
    "belief_map",
    "describe_difference",
    "find_play",
    "is_same_play",
    "replay_beliefs",
]

_COVER = 200
"""How many points of a box are looked at unless others are given."""
_CLOSE = 1e-6
"""How much numbers of the same play may differ, relative to the largest of their column, where
they were computed on another processor."""


class BeliefError(SparqError):
    """What an agent believed cannot be found out; the message tells why."""


class NoBeliefError(PluginError):
    """An optimizer's agent has no `belief`."""


class Watched(Optimizer):
    """An optimizer whose agent is watched while it plays, in virtual or in real time.

    It plays as the optimizer does without it.
    """

    optimizer: Optimizer
    """The optimizer that plays."""
    looks: Callable[[Agent, float], None]
    """Called after each move, with the agent and the present moment in clock units."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Start the optimizer's own agent, and watch it."""
        return _WatchedAgent(self, self.optimizer.start(briefing, rng))


class _WatchedAgent:
    def __init__(self, model: Watched, agent: Agent) -> None:
        self._model = model
        self._agent = agent
        self._looks = model.looks
        self._resources = Resources()

    def __enter__(self) -> None:
        who = f"optimizer {type(self._model.optimizer).__name__}"
        self._agent = run_at_once(self._resources.enter(who, self._agent))

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        run_at_once(self._resources.close(error))

    def ask(self, now: float) -> Move:
        move = self._agent.ask(now)
        if isinstance(move, Move) and move.point is not None:
            self._looks(self._agent, now)
        return move

    def tell(self, reply: Reply) -> None:
        self._agent.tell(reply)


@dataclass(frozen=True, eq=False)
class BeliefMap:
    """What was believed at some places, beside what was true there, round by round.

    The belief of a round is that by which its move was chosen; in a round without a move, that of
    the move before. It is NaN while the agent believes nothing yet. What was true is the noise-free
    reward when the round was played, NaN where the environment has no reading.
    """

    rounds: NDArray[np.int64]
    """The numbers of the rounds, from 1: (rounds,)."""
    times: Values
    """When each round was played, in clock units: (rounds,)."""
    places: Points
    """The places, (n, d)."""
    truth: Matrix
    """The noise-free rewards, (rounds, n)."""
    mean: Matrix
    """The believed rewards, (rounds, n)."""
    std: Matrix
    """The believed standard deviations, (rounds, n)."""


def belief_at(
    trace: Trace,
    number: int,
    points: ArrayLike,
    *,
    allow_import: bool = False,
) -> Belief:
    """Return what the agent believed in a round: see `Trace.belief_at`.

    Args:
        trace: A trace whose play is known.
        number: The number of the round, from 1.
        points: Where to evaluate the belief, (n, d), within the domain.
        allow_import: Whether the file that the trace comes from may name code to run, as
            `module:Class`.

    Raises:
        SparqError: As `Trace.belief_at` does.
    """
    with _replay(trace, points, [number], allow_import=allow_import) as again:
        (belief,) = again.beliefs
    nothing = np.full(len(again.points), np.nan)
    return Belief(nothing, nothing, np.nan) if belief is None else belief


def belief_map(
    trace: Trace,
    places: ArrayLike | None = None,
    *,
    rounds: Sequence[int] | None = None,
    allow_import: bool = False,
) -> BeliefMap:
    """Return what the agent believed at some places, beside what was true there, round by round.

    The play is played again once, with its experts, however many rounds are asked for.

    Args:
        trace: A trace, as `play`, `Scenario.play`, `Results.read` or `Trace.load` return it.
        places: Where to look, (n, d), within the domain; by default all sites, or 200 points that
            cover a box.
        rounds: The numbers of the rounds to look at, from 1; by default, all.
        allow_import: Whether the file that the trace comes from may name code to run, as
            `module:Class`.

    Returns:
        A row for each round and a column for each place.

    Raises:
        SparqError: As `Trace.belief_at` does.
    """
    chosen = range(1, len(trace) + 1) if rounds is None else rounds
    numbers = np.array(chosen, dtype=np.int64)
    with _replay(trace, places, chosen, allow_import=allow_import) as again, one_thread():
        times = trace.rounds["played_at"][numbers - 1]
        truth = [_readings(again.landscape, again.points, time) for time in times.tolist()]
    nothing = np.full(len(again.points), np.nan)
    shape = (len(numbers), len(again.points))
    return BeliefMap(
        rounds=numbers,
        times=times,
        places=again.points,
        truth=np.array(truth).reshape(shape),
        mean=np.array([nothing if b is None else b.mean for b in again.beliefs]).reshape(shape),
        std=np.array([nothing if b is None else b.std for b in again.beliefs]).reshape(shape),
    )


def _readings(landscape: Landscape, points: Points, time: float) -> Values:
    """Return the rewards, but for points of which there is no reading."""
    rewards = np.asarray(landscape.rewards(points, time), dtype=float)
    if not isinstance(landscape, WithGaps):
        return rewards
    return np.where(landscape.available(points, time), rewards, np.nan)


@dataclass(frozen=True, eq=False)
class _Rerun:
    """A play that was played again, and what was believed at *points* in it."""

    landscape: Landscape
    points: Points
    beliefs: list[Belief | None]


@contextmanager
def _replay(
    trace: Trace, points: ArrayLike | None, rounds: Sequence[int], *, allow_import: bool
) -> Iterator[_Rerun]:
    """Play again, and yield what was believed; the landscape is open within the block."""
    numbers = range(1, len(trace) + 1)
    if wrong := [number for number in rounds if number not in numbers]:
        raise BeliefError(f"there is no round {wrong[0]}; the trace has rounds 1 to {len(trace)}")
    played = find_play(trace, allow_import=allow_import)
    with ExitStack() as stack:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # They were given when it was played first.
            landscape = stack.enter_context(
                open_landscape(played.environment, played.seed, played.replication)
            )
            where = _places(landscape, points)
            rows = np.array(rounds, dtype=np.intp) - 1
            again, beliefs = replay_beliefs(
                played, where, rows, like=trace, landscape=landscape, strict=True
            )
        if not is_same_play(trace, again):
            raise BeliefError(
                f"played again, optimizer {played.optimizer_name!r} does not play as in the trace, "
                "so what it believed cannot be told: its code, its data or a library has changed "
                "since, or it is not the same each time. First difference: "
                f"{describe_difference(trace, again)}"
            )
        yield _Rerun(landscape, where, beliefs)


def _places(landscape: Landscape, points: ArrayLike | None) -> Points:
    """Return the *points* to look at, or a cover of the domain where none are given."""
    try:
        given = landscape.domain.cover(_COVER) if points is None else points
        return landscape.domain.check(given, "points of a belief")
    except ValueError as error:
        raise BeliefError(str(error)) from error


def find_play(trace: Trace, *, allow_import: bool = False) -> Played:
    """Return what was played, as a trace knows it or as its provenance tells it.

    Args:
        trace: A trace.
        allow_import: Whether the file that the trace comes from may name code to run, as
            `module:Class`.

    Raises:
        SparqError: If it is not known, or cannot be played again.
    """
    told = trace.provenance
    if trace.played is None and "play" not in told:
        reason = f" ({told['unplayable']})" if "unplayable" in told else ""
        raise BeliefError(
            f"the trace does not tell what was played{reason}, so that it cannot be played again: "
            "take one from play, Scenario.play or Results.read, or a file saved from such"
        )
    if told.get("live", False) or (trace.played is not None and trace.played.live):
        raise BeliefError(
            "it was played in real time, which never comes out twice the same: to know what the "
            "agent believes, watch it while it plays, by sparq_sim.simulation.beliefs.Watched"
        )
    if trace.played is not None:
        return trace.played
    from sparq_sim.scenario.model import Scenario  # Not needed for what has just been played.

    scenario = Scenario.from_fingerprint(
        told["play"], seed=told["seed"], name=told["optimizer"], allow_import=allow_import
    )
    _check_contents(told["play"], scenario.fingerprint(told["optimizer"]))
    return scenario.prepare(told["optimizer"], told["replication"])


def _check_contents(then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to play again on files whose content is another than it was."""
    there = now.get("contents", {})
    for file, content in then.get("contents", {}).items():
        if there.get(file) != content:
            raise BeliefError(
                f"{file} has changed since the play, so what was true and believed then cannot be "
                "told; put the file of then in its place"
            )


def replay_beliefs(
    played: Played,
    points: Points,
    rows: NDArray[np.intp],
    *,
    like: Trace,
    landscape: Landscape,
    strict: bool = False,
) -> tuple[Trace, list[Belief | None]]:
    """Play again, and look at what is believed in some rounds.

    Args:
        played: What is played.
        points: Where to look, (n, d).
        rows: The rounds to look at, as rows of the trace.
        like: The trace of the first time, which tells in which rounds there was a move.
        landscape: The started environment of the play.
        strict: Whether an agent without a belief is refused.

    Returns:
        The new trace, and for each row the belief by which its move was chosen; in a round without
        a move, that of the move before. None where there was none.

    Raises:
        NoBeliefError: If *strict*, and the agent has no belief.
    """
    # Moves are played in the order in which they were chosen, be it in a later round.
    chosen = np.cumsum(like.rounds["moved"]) - 1
    wanted = set(chosen[rows].tolist())
    seen: dict[int, Belief | None] = {}
    numbers = count()

    def look(agent: Agent, now: float) -> None:
        number = next(numbers)
        if strict and not isinstance(agent, Believing):
            raise NoBeliefError(
                f"optimizer {played.optimizer_name!r} has no belief: its agent, a "
                f"{type(agent).__name__}, does not define belief(points, now)"
            )
        if number in wanted and len(points):
            seen[number] = _belief(agent, points, now)

    optimizer = played.optimizer
    while isinstance(optimizer, Watched):  # Who looked the first time does not look again.
        optimizer = optimizer.optimizer
    watched = replace(played, optimizer=Watched(optimizer=optimizer, looks=look))
    again = watched.again(landscape=landscape)
    return again, [seen.get(number) for number in chosen[rows].tolist()]


def _belief(agent: Agent, points: Points, now: float) -> Belief | None:
    """Ask an agent for its belief, if it has any, and refuse one of another shape."""
    belief = agent.belief(points, now) if isinstance(agent, Believing) else None
    if belief is not None:
        for name in ("mean", "std"):
            shape = np.shape(getattr(belief, name))
            if shape != (len(points),):
                raise PluginError(
                    f"{type(agent).__name__}.belief gives a {name} of shape {shape} for "
                    f"{len(points)} points; expected ({len(points)},)"
                )
    return belief


def describe_difference(trace: Trace, again: Trace) -> str:
    """Return, in words, where two plays differ first, even if the first has no replies.

    Args:
        trace: The trace of the first time.
        again: That of the play when it was played again.
    """
    if not trace.replies:
        empty = {"round": np.empty(0)}
        parts = [replace(each, replies=empty, accounts={}) for each in (trace, again)]
        return first_difference(parts[0], parts[1]) or "in its replies, which were not kept"
    return first_difference(trace, again) or "in the form of its columns"


def is_same_play(trace: Trace, again: Trace) -> bool:
    """Return whether two plays are the same, up to rounding.

    Args:
        trace: The one that was stored; of its replies and accounts, only what it has is compared.
        again: The other.
    """
    again = again if trace.replies else replace(again, replies={}, accounts={})
    if trace.digest() == again.digest():
        return True
    if trace.ended != again.ended or trace.accounts.keys() != again.accounts.keys():
        return False
    pairs = [
        (trace.rounds, again.rounds),
        (trace.replies, again.replies),
        *((columns, again.accounts[name]) for name, columns in trace.accounts.items()),
    ]
    return all(
        one.keys() == other.keys()
        and all(_close(one[name], other[name]) for name in one.keys() - {WALL})
        for one, other in pairs
    )


def _close(one: NDArray[Any], other: NDArray[Any]) -> bool:
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return False
    if one.dtype.kind != "f":
        return bool((one == other).all())
    room = _CLOSE * float(np.max(np.abs(one), initial=0.0, where=np.isfinite(one)))
    return bool(np.isclose(one, other, rtol=0.0, atol=room, equal_nan=True).all())
