"""Noise: the error of values, by how much answers about one point differ."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt

import numpy as np
from scipy import stats

from sparq_sim.arrays import Values
from sparq_sim.live.calibrate.families import Interval, chi_square_ends, minimise, search_edge
from sparq_sim.live.calibrate.fits import Fit, format_interval, format_number
from sparq_sim.live.calibrate.requests import Measurements
from sparq_sim.simulation.channel.noise import Gaussian

__all__ = ["fit_noise"]

_FEWEST = 10
"""So many pairs must be there to estimate a std from."""
_FEWEST_APART = 30
"""So many pairs, at several distances in time, to take drift out of their differences."""
_CONTRADICTED = 0.01
"""A claimed std is contradicted where the differences have this probability under it."""
_LIKELIHOOD_DROP = 1.92
"""By how much the logarithm of the likelihood falls towards the ends of a 95 % interval."""
_NEGLIGIBLE = 1e-9
"""Errors below this share of the values are rounding."""


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Pairs of values about one point, each value in one pair only."""

    apart: Values
    """How much later the second was measured than the first, in clock units, (n,)."""
    squares: Values
    """Half the squared difference, whose mean is the variance of the noise, (n,)."""
    claimed: Values
    """The claimed variance: the mean of both, (n,)."""


def fit_noise(measurements: Measurements, *, tolerance: float) -> Fit:
    """Return the noise of a channel fitted to what one source has answered.

    Args:
        measurements: What it has answered.
        tolerance: Moments that differ by no more are one moment, in clock units.
    """
    pairs = _pair_up(measurements)
    count = len(pairs.apart)
    if count < _FEWEST:
        missing = f"the data have {count} pairs of values about the same point, and {_FEWEST} are "
        return _fit_claimed(measurements, f"{missing}needed: ask about a point twice, soon")
    size = _NEGLIGIBLE * float(np.abs(measurements.values).max())
    at_once = pairs.apart <= tolerance
    if at_once.sum() >= _FEWEST:
        used = pairs.squares[at_once]
        std, interval = _estimate(used)
        how = f"{len(used)} pairs of values about the same point at the same time"
        is_bound = False
    elif count >= _FEWEST_APART and np.ptp(pairs.apart) > 0.5 * float(np.median(pairs.apart)):
        std, interval = _extrapolate(pairs)
        used = pairs.squares
        how = f"{count} pairs of values about the same point; the effect of drift is removed"
        is_bound = False
    else:
        # The closest ones, in which there is least drift.
        order = np.argsort(pairs.apart, kind="stable")
        closest = order[: max(_FEWEST, count // 2)]
        used = pairs.squares[closest]
        std, interval = _estimate(used)
        apart = format_number(float(pairs.apart[closest].max()))
        how = f"{len(used)} pairs of values about the same point, up to {apart} apart in time"
        is_bound = True
    if std <= size:
        return Fit(None, (f"none, by {how}",), {"std": (0.0, size)})
    if is_bound:
        how += "; this includes drift, so the noise may be smaller"
    elif interval[0] == 0 and _claim(measurements) <= _widen(std, interval)[1]:
        return _fit_claimed(measurements, f"{how}: at most {format_number(interval[1])} (95 %)")
    told = [f"by {how}; 95 % {format_interval(interval)}"]
    claim, words = _judge_claims(measurements, std, interval, is_bound=is_bound)
    if words:
        told.append(words)
    noise = Gaussian(std=float(format_number(std)), claimed=claim)
    return Fit(noise, tuple(told), {"std": interval})


def _pair_up(measurements: Measurements) -> _Pairs:
    """Return pairs of values about one point, the closest in time first.

    Args:
        measurements: What was answered.

    Returns:
        Pairs that share no value, so that they are independent.
    """
    points, moments = measurements.points, measurements.moments
    if not len(moments):
        return _Pairs(np.empty(0), np.empty(0), np.empty(0))
    _, place = np.unique(points, axis=0, return_inverse=True)
    place = place.ravel()
    order = np.lexsort((moments, place))
    same = np.flatnonzero(place[order][1:] == place[order][:-1])
    gaps = np.diff(moments[order])[same]
    taken = np.zeros(len(order), dtype=bool)
    chosen: list[int] = []
    for at in same[np.argsort(gaps, kind="stable")].tolist():
        if not taken[at] and not taken[at + 1]:
            taken[at] = taken[at + 1] = True
            chosen.append(at)
    first, second = order[chosen], order[np.array(chosen, dtype=np.intp) + 1]
    values, stds = measurements.values, measurements.stds
    return _Pairs(
        moments[second] - moments[first],
        (values[second] - values[first]) ** 2 / 2,
        (stds[second] ** 2 + stds[first] ** 2) / 2,
    )


def _estimate(squares: Values) -> tuple[float, Interval]:
    """Return the std, and its interval by the chi-square distribution."""
    count, variance = len(squares), float(squares.mean())
    high, low = (count / end for end in chi_square_ends(count))
    return sqrt(variance), (sqrt(variance * low), sqrt(variance * high))


def _extrapolate(pairs: _Pairs) -> tuple[float, Interval]:
    """Return the std without drift, and its interval by the profile of the likelihood.

    The mean of half a squared difference is std^2 + drift apart^power: power 2 where the reward
    drifts smoothly, 1 where it drifts as a random walk does.
    """
    scale = float(pairs.squares.mean())
    if scale == 0:
        return 0.0, (0.0, 0.0)
    squares, apart = pairs.squares / scale, pairs.apart / float(np.median(pairs.apart))

    def make_cost(power: int, variance: float | None = None) -> tuple[float, Values]:
        steps = apart**power

        def cost(logs: Values) -> float:
            own = variance if variance is not None else exp(min(logs[1], 50.0))
            # Above 0, also where no time has passed.
            means = np.maximum(own + exp(min(logs[0], 50.0)) * steps, 1e-12)
            return float(0.5 * (np.log(means) + squares / means).sum())

        start = np.log([0.5] if variance is not None else [0.5, 0.5])
        found = minimise(cost, start)
        return cost(found), found

    power = min((1, 2), key=lambda each: make_cost(each)[0])
    least, found = make_cost(power)
    best = exp(found[1])

    def is_likely(variance: float) -> bool:
        return make_cost(power, variance)[0] <= least + _LIKELIHOOD_DROP

    low = search_edge(is_likely, best, 0.0)
    high = search_edge(is_likely, best, 4 * max(best, 1.0))
    return sqrt(best * scale), (sqrt(low * scale), sqrt(high * scale))


def _judge_claims(
    measurements: Measurements, std: float, interval: Interval, *, is_bound: bool
) -> tuple[float | None, str]:
    """Return the std to be claimed, where it differs from the true one, and what to say of it."""
    claimed = _claim(measurements)
    if not claimed:
        return None, ""
    # An interval as wide as it takes to be wrong once in a hundred times.
    low, high = _widen(std, interval)
    said = f"claimed: {format_number(claimed)}"
    if is_bound:
        if claimed > high:
            return _rounded(claimed), f"{said}, but the values differ by less"
        more = claimed < low
        return None, f"{said}; drift may explain why values differ by more" if more else said
    if low <= claimed <= high:
        return None, f"{said}, which agrees"
    than = "more" if claimed < std else "less"
    return _rounded(claimed), f"{said}, but the values differ by {than}"


def _widen(std: float, interval: Interval) -> Interval:
    """Return the 99 % interval that goes with a 95 % interval of a std, on its logarithm."""
    factor = float(stats.norm.ppf(1 - _CONTRADICTED / 2) / stats.norm.ppf(0.975))
    low, high = interval
    return (
        std * exp(factor * log(low / std)) if low > 0 else 0.0,
        std * exp(factor * log(high / std)) if high < inf else inf,
    )


def _fit_claimed(measurements: Measurements, found: str) -> Fit:
    """Return the noise that is claimed; *found* says why it was not estimated."""
    claimed, claims = _claim(measurements), measurements.stds
    if not claimed:
        return Fit(None, (f"left out: no std is claimed; {found}",))
    low, high = float(np.nanmin(claims)), float(np.nanmax(claims))
    how = "the mean of the claimed stds" if high > low * (1 + 1e-9) else "as all answers claim"
    return Fit(Gaussian(std=_rounded(claimed)), (f"{how}; {found}",), {"std": (low, high)})


def _claim(measurements: Measurements) -> float:
    """Return the claimed std, as the root of the mean square; 0 where none is claimed."""
    claims = measurements.stds[np.isfinite(measurements.stds)]
    return float(np.sqrt((claims**2).mean())) if len(claims) else 0.0


def _rounded(number: float) -> float:
    return float(format_number(number))
