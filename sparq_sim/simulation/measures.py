"""Measures: regret and its growth, reward, spending, staleness and fates of queries, of traces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_sim.arrays import Values
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.simulation.records import REFUSALS, UNASKED, Fate
from sparq_sim.simulation.trace import METER, Trace

__all__ = [
    "LOW_ANSWERED",
    "Exponent",
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
    "mark_pushed",
    "mark_retried",
    "regret",
    "regret_to_best_seen",
    "reward",
    "spent",
    "staleness",
    "tally",
    "unobserved_rounds",
]

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
    slack = _SLACK * np.maximum(1.0, np.abs(trace.rounds["best"]))
    return int(np.count_nonzero(trace.rounds["regret"] < -slack))


def idle_rounds(trace: Trace) -> int:
    """Count the rounds without a move, in which the point before stayed in force.

    Args:
        trace: A play.
    """
    return int(np.count_nonzero(~trace.rounds["moved"]))


@dataclass(frozen=True)
class Exponent:
    """The growth R_t ~ t^*value*, with a confidence interval from *low* to *high*."""

    value: float
    """The fitted exponent a."""
    low: float
    """The lower end of its interval."""
    high: float
    """The upper end of its interval."""


def exponent(regrets: Values, *, confidence: float = 0.95, resamples: int = 200) -> Exponent:
    """Fit R_t ~ c t^a to the cumulative sum of *regrets*, by least squares in logarithms.

    The first tenth of the rounds is left out. Neighbouring regrets are alike, so the interval
    comes from a moving-block bootstrap of r_t / (c a t^(a-1)) with blocks of sqrt(T) rounds.

    Args:
        regrets: Of each round, (rounds,).
        confidence: The probability with which the interval shall hold the exponent.
        resamples: How often the bootstrap draws.

    Returns:
        The exponent a and its interval; NaN where there is no regret to fit.

    Raises:
        ValueError: If there are fewer than 20 rounds.
    """
    regrets = np.asarray(regrets, dtype=float)
    rounds = len(regrets)
    if rounds < 20:
        raise ValueError(f"an exponent needs at least 20 rounds, not {rounds}")
    first = rounds // 10
    chosen = np.unique(np.geomspace(first + 1, rounds, 60).astype(int)) - 1
    logs = np.log(chosen + 1.0)
    centred = logs - logs.mean()

    def slopes(cumulative: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(cumulative[..., chosen]) @ centred / (centred @ centred))

    total = np.cumsum(regrets)
    if not total[chosen[0]] > 0:
        return Exponent(nan, nan, nan)
    value = float(slopes(total))
    trend = np.diff(np.arange(rounds + 1.0) ** max(value, 1e-3))
    residuals = regrets / trend
    block = max(2, round(rounds**0.5))
    rng = Generator(Philox(key=0))
    starts = rng.integers(rounds - block + 1, size=(resamples, -(-rounds // block)))
    picks = (starts[..., None] + np.arange(block)).reshape(resamples, -1)[:, :rounds]
    resampled = np.cumsum(residuals[picks] * trend, axis=1)
    usable = resampled[resampled[:, chosen[0]] > 0]
    if len(usable) < resamples / 2:
        return Exponent(value, nan, nan)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    spread = np.quantile(slopes(usable) - value, tails)
    return Exponent(value, value - float(spread[1]), value - float(spread[0]))
