"""Reference levels: what simple policies that know a landscape would get in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.plugin.environment import Landscape

__all__ = ["References", "WatchLevels", "compute_references", "count_worlds"]

WatchLevels: TypeAlias = Callable[[int, int], None]
"""Called with the number of points evaluated so far, and with about how many there will be."""

_TIE = 1e-9
"""Relative distance within which two rewards are as good as each other."""
_CANDIDATES, _FEWEST = 2000, 200
"""How many points of a box are compared; with a budget, fewer of them, before fewer rounds."""
_REFINEMENTS, _NEAR = 4, 16
"""How often the best fixed point is looked for nearby, and at how many points a dimension."""
_LEAST_ROUNDS = 10
"""Of a world that is one of several: of fewer, a fixed point would seem too good."""


@dataclass(frozen=True)
class References:
    """Average regrets of simple policies with full knowledge, which tables show for comparison."""

    uniform: float
    """That of points drawn uniformly from the domain."""
    fixed: float
    """That of the one point which is best in hindsight, played in all rounds."""
    late: float
    """That of the optimum of one round before, in expectation where several points tie."""
    estimated_from: str = ""
    """How many rounds and points were evaluated, where a budget did not suffice for all."""


def compute_references(
    landscape: Landscape,
    times: Sequence[float] | Values,
    *,
    budget: int | None = None,
    watch: WatchLevels | None = None,
) -> References:
    """Compute the reference levels for rounds played at *times*.

    Args:
        landscape: The landscape that is played.
        times: When each round is played, in clock units, (rounds,).
        budget: How many points may be evaluated, at one time each; by default, any number. Where
            that is too few, fewer points are compared, and then fewer rounds, spread over all.
        watch: Called after each evaluation, to show progress.

    Returns:
        The levels, in reward units.
    """
    moments, domain = [float(time) for time in times], landscape.domain
    size = len(domain.cover(_CANDIDATES))
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


def count_worlds(domain: Domain, rounds: int, budget: int) -> int:
    """Count the landscapes among which a budget can be shared, at least one.

    Each gets enough for all its rounds, or for 10 of them, at few points.

    Args:
        domain: Of the landscapes.
        rounds: That are played in each.
        budget: How many points may be evaluated, at one time each, in all landscapes together.
    """
    size = len(domain.cover(_CANDIDATES))
    points = 2 * size if isinstance(domain, Sites) else min(size, _FEWEST) + _besides(domain)
    return max(1, budget // (min(rounds, _LEAST_ROUNDS) * points))


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
    kept = min(rounds, max(1, budget // (_FEWEST + besides)))
    return kept, min(candidates, max(1, budget // kept - besides))


def _besides(domain: Domain) -> int:
    """Count the points of a round that are looked at beside the candidates."""
    return 0 if isinstance(domain, Sites) else _REFINEMENTS * _NEAR * domain.dimensions + 1


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

    def __init__(self, landscape: Landscape, watch: WatchLevels | None, *, total: int) -> None:
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
    """Return the highest mean reward of one point, refined around the best of the candidates."""
    means = rewards.mean(axis=0)
    champion, mean = candidates[means.argmax()], float(means.max())
    domain = landscape.domain
    if isinstance(domain, Sites):
        return mean
    reach = (domain.upper - domain.lower) / len(candidates) ** (1 / domain.dimensions)
    for _ in range(_REFINEMENTS):
        near = Box(
            np.maximum(champion - reach, domain.lower), np.minimum(champion + reach, domain.upper)
        ).cover(_NEAR * domain.dimensions)
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
            chosen = then >= then.max() - _TIE * max(1.0, abs(then.max()))
            rewards = landscape.rewards(domain.points, now)[chosen]
        else:
            rewards = landscape.rewards(landscape.best(before)[0][None], now)
        regrets.append(landscape.best(now)[1] - rewards.mean())
    return float(np.mean(regrets))
