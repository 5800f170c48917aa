"""Measures: regret, how it falls, reward, spending, staleness and fates of queries, of traces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log2, nan

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.simulation.records import REFUSALS, UNASKED, Fate
from sparq_sim.simulation.trace import METER, Trace

__all__ = [
    "FEWEST_ROUNDS",
    "LOW_ANSWERED",
    "Tally",
    "average_regret",
    "average_reward",
    "best_seen",
    "count_by_expert",
    "cumulative_regret",
    "exponent",
    "idle_rounds",
    "impossible_rounds",
    "last_meters",
    "mark_asked",
    "mark_impossible",
    "mark_pushed",
    "mark_retried",
    "octaves",
    "regret",
    "regret_to_best_seen",
    "reward",
    "spent",
    "staleness",
    "tally",
    "unobserved_rounds",
]

FEWEST_ROUNDS = 20
"""That have an exponent of regret."""
LOW_ANSWERED = 0.5
"""The share of points asked, below which an expert's answers are few enough to warn about."""

_SLACK = 1e-6
"""How far below the best reward a maximum found numerically may lie, relative to the reward."""


def regret(trace: Trace) -> Values:
    """Return the regret of each round, best minus reward at the time of playing: (rounds,).

    Args:
        trace: A play; where it does not know the best reward, all regrets are NaN.
    """
    return np.asarray(trace.rounds["regret"], dtype=float)


def cumulative_regret(trace: Trace) -> Values:
    """Return the sum of regrets up to each round, R_t: (rounds,).

    Args:
        trace: A play.
    """
    return np.cumsum(regret(trace))


def average_regret(trace: Trace) -> Values:
    """Return the mean of regrets up to each round, R_t / t: (rounds,).

    Args:
        trace: A play.
    """
    return cumulative_regret(trace) / np.arange(1, len(trace) + 1)


def reward(trace: Trace) -> Values:
    """Return the reward of each round: (rounds,).

    Args:
        trace: A play; where it knows the best reward, rewards are without noise, otherwise as
            observed, and NaN in rounds without an observation.
    """
    return np.asarray(trace.rounds["reward"], dtype=float)


def average_reward(trace: Trace) -> Values:
    """Return the mean of the rewards up to each round, over those observed: (rounds,).

    Args:
        trace: A play.

    Returns:
        The means; NaN before the first reward.
    """
    rewards = reward(trace)
    known = np.isfinite(rewards)
    counts = np.cumsum(known)
    means = np.full(len(trace), nan)
    np.divide(np.cumsum(np.where(known, rewards, 0.0)), counts, out=means, where=counts > 0)
    return means


def unobserved_rounds(trace: Trace) -> int:
    """Count the rounds whose reward was not observed.

    Args:
        trace: A play.
    """
    return int(np.count_nonzero(~np.isfinite(reward(trace))))


def best_seen(trace: Trace) -> float:
    """Return the highest reward of all rounds of a play; NaN where none was observed.

    Args:
        trace: A play.
    """
    rewards = reward(trace)
    return float(np.nanmax(rewards)) if np.isfinite(rewards).any() else nan


def regret_to_best_seen(trace: Trace) -> Values:
    """Return how far each reward lies below the highest of the same play: (rounds,).

    It bounds regret from neither side: noise raises the highest reward that is observed, and so
    does a time at which more could be had; a better point that was never played lowers it.

    Args:
        trace: A play; in rounds without an observed reward, the result is NaN.
    """
    return best_seen(trace) - reward(trace)


def spent(trace: Trace) -> Values:
    """Return what had been spent when each round was played, with its own queries: (rounds,).

    Args:
        trace: A play.
    """
    return np.asarray(trace.rounds["spent"], dtype=float)


def staleness(trace: Trace, source: str | None = None) -> Values:
    """Compute how old each answer that the agent asked for was on arrival: arrived - measured.

    Args:
        trace: A play, with its replies.
        source: The expert whose answers; by default, all experts.

    Returns:
        The ages in clock units, (answers,), in the order of arrival.
    """
    answered = mark_asked(trace, source) & (trace.replies["fate"] == Fate.ANSWERED)
    ages: Values = trace.replies["arrived_at"][answered] - trace.replies["measured_at"][answered]
    return ages


@dataclass(frozen=True)
class Tally:
    """How many points the agent asked experts about, and what became of them.

    A point counts once, whatever was tried for it, so that
    asked = answered + late + lost + refused + invalid + unavailable + open.
    """

    asked: int
    """Points that the agent asked experts about."""
    answered: int = 0
    """Values that could be used."""
    late: int = 0
    """No answer had arrived when patience ended."""
    lost: int = 0
    """The answer was lost on its way."""
    refused: int = 0
    """By an outage, a budget, the access rule or a rate."""
    invalid: int = 0
    """Answered by what is of no use, or by an error."""
    unavailable: int = 0
    """The expert had nothing there."""
    open: int = 0
    """Still on their way when the play ended."""
    retries: int = 0
    """Attempts after the first ones."""
    relayed: int = 0
    """Points that experts asked each other about."""
    pushed: int = 0
    """Readings that reached the agent without being asked for."""

    @property
    def failed(self) -> int:
        """How many points got no answer."""
        return self.asked - self.answered


def tally(trace: Trace, source: str | None = None) -> Tally:
    """Count the points that the agent asked about, and what became of them.

    Args:
        trace: A play, with its replies.
        source: The expert to count; by default, all experts. A point that went on to a fallback
            counts there.
    """
    replies = trace.replies
    fates = Counter(replies["fate"][mark_asked(trace, source)].tolist())
    by_agent, own = _askers(trace)
    relayed = _chosen(trace, source) & ~by_agent & ~own & _final(trace)
    return Tally(
        asked=fates.total(),
        answered=fates[Fate.ANSWERED],
        late=fates[Fate.LATE],
        lost=fates[Fate.LOST],
        refused=sum(fates[fate] for fate in REFUSALS),
        invalid=fates[Fate.INVALID],
        unavailable=fates[Fate.UNAVAILABLE],
        open=fates[Fate.UNANSWERED],
        retries=int(np.count_nonzero(mark_retried(trace, source))),
        relayed=int(np.count_nonzero(relayed)),
        pushed=int(np.count_nonzero(mark_pushed(trace, source))),
    )


def mark_asked(trace: Trace, source: str | None = None) -> NDArray[np.bool_]:
    """Mark the replies that tell what became of the points that the agent asked about.

    This is what `asked` counts everywhere: a point counts once, also where it was tried again;
    what experts ask each other, and what they send unasked, does not count.

    Args:
        trace: A play, with its replies.
        source: The expert whose replies; by default, all experts.

    Returns:
        Whether each row of the replies is one of them, (replies,).
    """
    by_agent, _ = _askers(trace)
    return _chosen(trace, source) & by_agent & _final(trace)


def mark_retried(trace: Trace, source: str | None = None) -> NDArray[np.bool_]:
    """Mark the replies to further attempts at points that the agent asked about.

    Args:
        trace: A play, with its replies.
        source: The expert whose replies; by default, all experts.

    Returns:
        Whether each row of the replies is one of them, (replies,).
    """
    by_agent, _ = _askers(trace)
    again = (trace.replies["attempt"] > 1) & ~np.isin(trace.replies["fate"], UNASKED)
    return np.asarray(_chosen(trace, source) & by_agent & again, dtype=bool)


def mark_pushed(trace: Trace, source: str | None = None) -> NDArray[np.bool_]:
    """Mark the readings that reached the agent without being asked for.

    Args:
        trace: A play, with its replies.
        source: The expert whose readings; by default, all experts.

    Returns:
        Whether each row of the replies is one of them, (replies,).
    """
    _, own = _askers(trace)
    return np.asarray(
        _chosen(trace, source) & own & (trace.replies["fate"] == Fate.ANSWERED), dtype=bool
    )


def count_by_expert(trace: Trace) -> dict[str, dict[str, int]]:
    """Count, for each expert, the points put to it by anybody and what became of each attempt.

    Args:
        trace: A play, with its replies.

    Returns:
        By expert, how many points were `asked` of it, and how many attempts had each fate.
    """
    replies = trace.replies
    counts: dict[str, dict[str, int]] = {}
    _, own = _askers(trace)
    put = (replies["source"] != REWARD) & ~own & ~np.isin(replies["fate"], UNASKED)
    for name in np.unique(replies["source"][put]).tolist():
        rows = put & (replies["source"] == name)
        asked = int(np.count_nonzero(replies["attempt"][rows] <= 1))
        counts[name] = {"asked": asked, **Counter(replies["fate"][rows].tolist())}
    return counts


def _chosen(trace: Trace, source: str | None) -> NDArray[np.bool_]:
    sources = trace.replies["source"]
    return np.asarray(sources != REWARD if source is None else sources == source, dtype=bool)


def _askers(trace: Trace) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Mark what the agent asked for, and what sources sent of their own accord."""
    askers = trace.replies["asker"]
    by_agent = np.asarray(askers == AGENT_NAME, dtype=bool)
    return by_agent, np.asarray(askers == trace.replies["source"], dtype=bool)


def _final(trace: Trace) -> NDArray[np.bool_]:
    """Mark what tells what became of a point at last: no earlier attempt, and nothing besides."""
    once = ~np.isin(trace.replies["fate"], UNASKED) & ~trace.replies["superseded"]
    return np.asarray(once, dtype=bool)


def last_meters(trace: Trace) -> dict[str, float]:
    """Return what each meter of an expert showed in the last round, by `<expert>_<name>`.

    Args:
        trace: A play.
    """
    return {
        name.removeprefix(METER): float(column[-1])
        for name, column in trace.rounds.items()
        if name.startswith(METER) and len(column)
    }


def impossible_rounds(trace: Trace) -> int:
    """Count the rounds whose regret is below 0, where the environment's `best` is not the best.

    Args:
        trace: A play.
    """
    return int(np.count_nonzero(mark_impossible(trace)))


def mark_impossible(trace: Trace) -> NDArray[np.bool_]:
    """Mark the rounds whose regret is below 0, but for what a numerical search may miss.

    Args:
        trace: A play.

    Returns:
        Whether each round is one of them, (rounds,).
    """
    slack = _SLACK * np.maximum(1.0, np.abs(trace.rounds["best"]))
    return np.asarray(trace.rounds["regret"] < -slack, dtype=bool)


def idle_rounds(trace: Trace) -> int:
    """Count the rounds without a move, in which the point before stayed in force.

    Args:
        trace: A play.
    """
    return int(np.count_nonzero(~trace.rounds["moved"]))


def octaves(regrets: Values) -> tuple[float, float]:
    """Return the mean regret of the last two octaves of rounds: (T/4, T/2], and (T/2, T].

    Args:
        regrets: Of each round, (rounds,).

    Raises:
        ValueError: If there are fewer than 20 rounds.
    """
    rounds = len(regrets)
    if rounds < FEWEST_ROUNDS:
        raise ValueError(f"an exponent needs at least {FEWEST_ROUNDS} rounds, not {rounds}")
    half = rounds // 2
    return float(np.mean(regrets[rounds // 4 : half])), float(np.mean(regrets[half:]))


def exponent(regrets: Values) -> float:
    """Compute how regret falls in the end: a in r_t ~ t^(a-1).

    a = 1 + log2(late / early), of the mean regrets of the last two octaves. So cumulative regret
    in the end grows as t^a, whatever came in the first quarter of the rounds: a = 1/2 is sqrt(T),
    a = 1 a constant level, less than 1 falling and more than 1 rising. One play does not tell how
    sure that is, for its rounds are alike over an unknown time: the interval comes from
    replications, by `sparq_sim.analysis.summary.spread_exponents`.

    Args:
        regrets: Of each round, (rounds,).

    Returns:
        The exponent a; NaN where an octave has no regret, or an unknown one.

    Raises:
        ValueError: If there are fewer than 20 rounds.
    """
    early, late = octaves(regrets)
    return 1 + log2(late / early) if early > 0 and late > 0 else nan
