"""Measures: regret, spending, staleness and growth, computed from traces; and reference levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_sim.domain import Box, Sites
from sparq_sim.messages import REWARD, Points, Values
from sparq_sim.models import Landscape
from sparq_sim.parcel import ANSWERED, LATE, LOST, UNASKED
from sparq_sim.trace import Trace

TIE = 1e-9
"""Relative distance within which two rewards are as good as each other."""


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
    """Give how old each answer of an expert (or of *source*) was on arrival: arrived - measured."""
    answered = _asked(trace, source) & (trace.replies["fate"] == ANSWERED)
    ages: Values = trace.replies["arrived_at"][answered] - trace.replies["measured_at"][answered]
    return ages


@dataclass(frozen=True)
class Tally:
    """How many points were asked of experts, and what became of them."""

    asked: int
    answered: int
    failed: int
    lost: int
    late: int


def tally(trace: Trace, source: str | None = None) -> Tally:
    """Count the points asked of all experts, or of *source*."""
    fates = trace.replies["fate"][_asked(trace, source)]
    answered = int((fates == ANSWERED).sum())
    return Tally(
        asked=len(fates),
        answered=answered,
        failed=len(fates) - answered,
        lost=int((fates == LOST).sum()),
        late=int((fates == LATE).sum()),
    )


def _asked(trace: Trace, source: str | None) -> NDArray[np.bool_]:
    sources, fates = trace.replies["source"], trace.replies["fate"]
    chosen = sources != REWARD if source is None else sources == source
    # What a source sends of its own accord, nobody asked for.
    unasked = trace.replies["asker"] == sources
    # Of several attempts the last one tells what became of a point.
    once = ~np.isin(fates, UNASKED) & ~trace.replies["superseded"]
    return np.asarray(chosen & ~unasked & once, dtype=bool)


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


def references(landscape: Landscape, times: Sequence[float] | Values) -> References:
    """Compute the reference levels for rounds played at *times*."""
    moments = [float(time) for time in times]
    candidates = landscape.domain.cover(2000)
    best = np.array([landscape.best(time)[1] for time in moments])
    rewards = np.stack([landscape.rewards(candidates, time) for time in moments])
    return References(
        uniform=float(np.mean(best - rewards.mean(axis=1))),
        fixed=float(best.mean() - _best_fixed(landscape, moments, candidates, rewards)),
        late=_late(landscape, moments, best) if len(moments) > 1 else nan,
    )


def _best_fixed(
    landscape: Landscape, moments: list[float], candidates: Points, rewards: NDArray[np.float64]
) -> float:
    """Give the highest mean reward of one point, refined around the best of the candidates."""
    means = rewards.mean(axis=0)
    champion, mean = candidates[means.argmax()], float(means.max())
    domain = landscape.domain
    if isinstance(domain, Sites):
        return mean
    reach = (domain.upper - domain.lower) / len(candidates) ** (1 / domain.dimensions)
    for _ in range(4):
        near = Box(
            np.maximum(champion - reach, domain.lower), np.minimum(champion + reach, domain.upper)
        ).cover(16 * domain.dimensions)
        means = np.mean([landscape.rewards(near, time) for time in moments], axis=0)
        if means.max() > mean:
            champion, mean = near[means.argmax()], float(means.max())
        reach = reach / 4
    return mean


def _late(landscape: Landscape, moments: list[float], best: Values) -> float:
    domain = landscape.domain
    regrets = []
    for before, now, highest in zip(moments, moments[1:], best[1:], strict=False):
        if isinstance(domain, Sites):
            then = landscape.rewards(domain.points, before)
            chosen = domain.points[then >= then.max() - TIE * max(1.0, abs(then.max()))]
        else:
            chosen = landscape.best(before)[0][None]
        regrets.append(highest - landscape.rewards(chosen, now).mean())
    return float(np.mean(regrets))
