"""Measures: regret, spending, staleness and growth, computed from traces; and reference levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.messages import AGENT_NAME, REWARD
from sparq_sim.plugin.environment import Landscape
from sparq_sim.simulation.records import REFUSALS, UNASKED, Fate
from sparq_sim.simulation.trace import Trace

TIE = 1e-9
"""Relative distance within which two rewards are as good as each other."""
HALF = 0.5
"""An expert that answers a smaller share of what it is asked is worth a word."""
SLACK = 1e-6
"""Relative to the best reward: by so much a maximum found numerically may be too low."""


def regret(trace: Trace) -> Values:
    """Give best minus reward at the time of playing, a round."""
    return np.asarray(trace.rounds["regret"], dtype=float)


def cumulative_regret(trace: Trace) -> Values:
    """Give the sum of regrets up to each round: R_t."""
    return np.cumsum(regret(trace))


def average_regret(trace: Trace) -> Values:
    """Give the mean of regrets up to each round: R_t / t."""
    return cumulative_regret(trace) / np.arange(1, len(trace) + 1)


def spent(trace: Trace) -> Values:
    """Give what had been spent when each round was played."""
    return np.asarray(trace.rounds["spent"], dtype=float)


def staleness(trace: Trace, source: str | None = None) -> Values:
    """Compute how old each answer that the agent asked for was on arrival: arrived - measured.

    Args:
        trace: A play, with its replies.
        source: Whose answers; by default, those of all experts.
    """
    answered = asked_points(trace, source) & (trace.replies["fate"] == Fate.ANSWERED)
    ages: Values = trace.replies["arrived_at"][answered] - trace.replies["measured_at"][answered]
    return ages


@dataclass(frozen=True)
class Tally:
    """How many points the agent asked experts about, and what became of them.

    A point counts once, whatever was tried for it, so that
    asked = answered + late + lost + refused + invalid + unavailable + open.
    """

    asked: int
    answered: int = 0
    late: int = 0
    lost: int = 0
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
    """Count what was asked of all experts, or of *source*, and what came of it.

    Args:
        trace: A play, with its replies.
        source: Whom to count; a point that a fallback answered or failed at last counts there.
    """
    replies = trace.replies
    fates = Counter(replies["fate"][asked_points(trace, source)].tolist())
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
        retries=int(np.count_nonzero(retried_points(trace, source))),
        relayed=int(np.count_nonzero(relayed)),
        pushed=int(np.count_nonzero(pushed_points(trace, source))),
    )


def asked_points(trace: Trace, source: str | None = None) -> NDArray[np.bool_]:
    """Mark the replies that tell what became of the points that the agent asked about.

    This is what "queries" are everywhere: a point counts once, also where it was tried again;
    what experts ask each other, and what they send unasked, does not count.

    Args:
        trace: A play, with its replies.
        source: Whose replies; by default, those of all experts.

    Returns:
        Whether each row of the replies is one, (replies,).
    """
    by_agent, _ = _askers(trace)
    return _chosen(trace, source) & by_agent & _final(trace)


def retried_points(trace: Trace, source: str | None = None) -> NDArray[np.bool_]:
    """Mark the replies to further attempts at points that the agent asked about.

    Args:
        trace: A play, with its replies.
        source: Whose replies; by default, those of all experts.

    Returns:
        Whether each row of the replies is one, (replies,).
    """
    by_agent, _ = _askers(trace)
    again = (trace.replies["attempt"] > 1) & ~np.isin(trace.replies["fate"], UNASKED)
    return np.asarray(_chosen(trace, source) & by_agent & again, dtype=bool)


def pushed_points(trace: Trace, source: str | None = None) -> NDArray[np.bool_]:
    """Mark the readings that reached the agent without being asked for.

    Args:
        trace: A play, with its replies.
        source: Whose readings; by default, those of all experts.

    Returns:
        Whether each row of the replies is one, (replies,).
    """
    _, own = _askers(trace)
    return np.asarray(
        _chosen(trace, source) & own & (trace.replies["fate"] == Fate.ANSWERED), dtype=bool
    )


def by_expert(trace: Trace) -> dict[str, dict[str, int]]:
    """Count, for each expert, the points put to it by anybody and what became of each attempt.

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


def impossible_rounds(trace: Trace) -> int:
    """Count the rounds whose regret is below 0: the environment's `best` is not the best."""
    slack = SLACK * np.maximum(1.0, np.abs(trace.rounds["best"]))
    return int(np.count_nonzero(trace.rounds["regret"] < -slack))


def idle_rounds(trace: Trace) -> int:
    """Count the rounds without a move, in which the point before stayed in force."""
    return int(np.count_nonzero(~trace.rounds["moved"]))


@dataclass(frozen=True)
class Exponent:
    """The growth R_t ~ t^*value*, with a confidence interval from *low* to *high*."""

    value: float
    low: float
    high: float


def exponent(regrets: Values, *, confidence: float = 0.95, resamples: int = 200) -> Exponent:
    """Fit R_t ~ c t^a to the cumulative sum of *regrets*, by least squares in logarithms.

    The first tenth of the rounds is left out. Neighbouring regrets are alike, so the interval
    comes from a moving-block bootstrap of r_t / (c a t^(a-1)) with blocks of sqrt(T) rounds.
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


@dataclass(frozen=True)
class References:
    """What simple policies would get: average regrets that every table shows for comparison."""

    uniform: float
    """Points drawn uniformly from the domain."""
    fixed: float
    """The best point to play for ever, in hindsight."""
    late: float
    """The optimum of one round before, expected over ties."""
    estimated_from: str = ""
    """How many rounds and points it comes from, where a budget did not suffice for all."""


Watch: TypeAlias = Callable[[int, int], None]
"""Called with how many points have been evaluated, and how many there are about."""

CANDIDATES, FEWEST = 2000, 200
"""How many points of a box are compared; with a budget, fewer of them, before fewer rounds."""
REFINEMENTS, NEAR = 4, 16
"""How often the best fixed point is looked for nearby, and at how many points a dimension."""


def references(
    landscape: Landscape,
    times: Sequence[float] | Values,
    *,
    budget: int | None = None,
    watch: Watch | None = None,
) -> References:
    """Compute the reference levels for rounds played at *times*.

    Args:
        landscape: What is played.
        times: When each round is played, in clock units.
        budget: How many points may be evaluated, at one time each; by default, any number. Where
            that is too few, fewer points are compared, and then fewer rounds, spread over all.
        watch: Hears how far it has come.
    """
    moments, domain = [float(time) for time in times], landscape.domain
    size = len(domain.cover(CANDIDATES))
    rounds, points = _affordable(domain, len(moments), size, budget)
    looked_at = _Evaluations(landscape, watch, total=rounds * (points + _besides(domain)))
    candidates = domain.cover(points)
    if len(candidates) > points:  # Of sites, a cover gives all.
        candidates = candidates[_spread(len(candidates), points)]
    chosen = _spread(len(moments), rounds)
    now = [moments[i] for i in chosen]
    best = np.array([looked_at.best(time)[1] for time in now])
    rewards = np.stack([looked_at.rewards(candidates, time) for time in now])
    pairs = [(moments[i - 1], moments[i]) for i in chosen if i]
    used = f"{len(chosen)} of {len(moments)} rounds at {points} points"
    return References(
        uniform=float(np.mean(best - rewards.mean(axis=1))),
        fixed=float(best.mean() - _best_fixed(looked_at, now, candidates, rewards)),
        late=_late(looked_at, pairs, every_site=points == size) if pairs else nan,
        estimated_from="" if (rounds, points) == (len(moments), size) else used,
    )


def _affordable(
    domain: Domain, rounds: int, candidates: int, budget: int | None
) -> tuple[int, int]:
    """Find how many of the rounds and how many candidates a budget pays for, at least one each."""
    besides = _besides(domain)
    if budget is None or rounds * (candidates + besides) <= budget:
        return rounds, candidates
    if isinstance(domain, Sites):
        # Of each round that is chosen, the one before is looked at as well.
        kept = max(1, budget // (2 * candidates))
        return kept, min(candidates, max(1, budget // (2 * kept)))
    kept = min(rounds, max(1, budget // (FEWEST + besides)))
    return kept, min(candidates, max(1, budget // kept - besides))


def _besides(domain: Domain) -> int:
    """Count the points of a round that are looked at beside the candidates."""
    return 0 if isinstance(domain, Sites) else REFINEMENTS * NEAR * domain.dimensions + 1


def _spread(count: int, chosen: int) -> list[int]:
    """Choose some of *count* places in order, one in each of equal parts.

    Where in its part differs from one to the next, by the golden ratio: at even distances, what
    comes round again, as a week does, would be seen always on the same day.
    """
    if chosen == count:
        return list(range(count))
    parts = np.arange(chosen)
    within = np.modf(parts * (np.sqrt(5) - 1) / 2)[0]
    places: list[int] = np.unique(((parts + within) * count / chosen).astype(int)).tolist()
    return places


class _Evaluations:
    """A landscape, each time of which is looked at once, while somebody watches."""

    def __init__(self, landscape: Landscape, watch: Watch | None, *, total: int) -> None:
        self.domain = landscape.domain
        self._landscape = landscape
        self._watch = watch
        self._total = total
        self._done = 0
        self._bests: dict[float, tuple[Point, float]] = {}
        self._sites: dict[float, Values] = {}

    def best(self, time: float) -> tuple[Point, float]:
        """Return the best point of a *time* and its reward."""
        if time not in self._bests:
            self._bests[time] = self._landscape.best(time)
        return self._bests[time]

    def rewards(self, points: Points, time: float) -> Values:
        """Return the rewards of *points*; those of all sites are kept."""
        all_sites = isinstance(self.domain, Sites) and points is self.domain.points
        if all_sites and time in self._sites:
            return self._sites[time]
        rewards = self._landscape.rewards(points, time)
        if all_sites:
            self._sites[time] = rewards
        self._done += len(points)
        if self._watch is not None:
            self._watch(self._done, self._total)
        return rewards


def _best_fixed(
    landscape: _Evaluations, moments: list[float], candidates: Points, rewards: NDArray[np.float64]
) -> float:
    """Give the highest mean reward of one point, refined around the best of the candidates."""
    means = rewards.mean(axis=0)
    champion, mean = candidates[means.argmax()], float(means.max())
    domain = landscape.domain
    if isinstance(domain, Sites):
        return mean
    reach = (domain.upper - domain.lower) / len(candidates) ** (1 / domain.dimensions)
    for _ in range(REFINEMENTS):
        near = Box(
            np.maximum(champion - reach, domain.lower), np.minimum(champion + reach, domain.upper)
        ).cover(NEAR * domain.dimensions)
        means = np.mean([landscape.rewards(near, time) for time in moments], axis=0)
        if means.max() > mean:
            champion, mean = near[means.argmax()], float(means.max())
        reach = reach / 4
    return mean


def _late(
    landscape: _Evaluations, pairs: Sequence[tuple[float, float]], *, every_site: bool
) -> float:
    """Compute the mean regret of playing the optimum of the time before, for *pairs* of times."""
    domain = landscape.domain
    regrets = []
    for before, now in pairs:
        if isinstance(domain, Sites) and every_site:
            then = landscape.rewards(domain.points, before)
            chosen = then >= then.max() - TIE * max(1.0, abs(then.max()))
            rewards = landscape.rewards(domain.points, now)[chosen]
        else:
            rewards = landscape.rewards(landscape.best(before)[0][None], now)
        regrets.append(landscape.best(now)[1] - rewards.mean())
    return float(np.mean(regrets))
