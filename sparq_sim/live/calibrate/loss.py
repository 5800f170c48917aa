"""Loss: how many answers never came, and whether they were lost in bursts."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from sparq_sim.arrays import Values
from sparq_sim.live.calibrate.families import Interval, minimise, numeric_intervals
from sparq_sim.live.calibrate.fits import (
    Fit,
    format_interval,
    format_number,
    format_share,
    wilson_interval,
)
from sparq_sim.live.calibrate.latency import Latency
from sparq_sim.live.calibrate.requests import Requests
from sparq_sim.simulation.channel.noise import Bursts, Random
from sparq_sim.simulation.records import Fate

__all__ = ["fit_bursts", "fit_loss"]

_DEPENDENT = 0.001
"""Losses come in bursts where independent ones would have so few runs with this probability."""
_FEWEST_LOST = 20
"""So many must be lost before bursts are fitted."""
_MOST_LATE = 0.8
"""Where latency explains less than the rest of what never came, all of it counts as lost."""
_MOST = 4000
"""To so many requests, the latest, bursts are fitted."""


def fit_loss(requests: Requests, latency: Latency) -> Fit:
    """Return the loss of a channel fitted to what was asked of one source.

    Args:
        requests: What was asked of it.
        latency: Its latency, which tells what is late from what is lost.
    """
    settled = requests.settled
    lost = requests.having(Fate.LOST) & settled
    late = requests.having(Fate.LATE) & settled
    came = requests.having(Fate.ANSWERED, Fate.INVALID, Fate.UNAVAILABLE) & settled
    if latency.split_by == "measured_at":
        # Late in which part is not known; what was given up counts as lost.
        return _fit(requests, lost | late, came, "lost or given up")
    share = latency.doubtful.lost
    if latency.split_by == "sent_at":
        came |= late & np.isfinite(requests.sent_at)
    if not latency.is_complete:
        # What was given up is in no draw of the latency, so it must be here.
        lost |= late & ~came
        return _fit(requests, lost, came, "lost, or given up, which no fitted latency explains")
    if lost.any() or (not share and not (late & ~came).any()):
        return _fit(requests, lost, came, "lost")
    late = (late & ~came) | (requests.having(Fate.UNANSWERED) & settled)
    count, total = int(late.sum()), int((late | came).sum())
    if not share:
        told = f"{count} of {total} were given up, as many as latency and patience explain; so "
        told += "none is lost"
        return Fit(None, (told,), {"probability": (0.0, wilson_interval(count, total)[1])})
    if share * total > _MOST_LATE * count:
        return _fit(
            requests, late, came, "never came, more than latency explains, so they are lost"
        )
    interval = latency.doubtful.lost_interval
    told = (
        f"{count} of {total} never came; latency explains only some of them, so "
        f"{format_share(share)} of all are lost (95 % {_tell(interval)}), the others late"
    )
    return Fit(Random(probability=_round(share)), (told,), {"probability": interval})


def _fit(requests: Requests, lost: NDArray[np.bool_], came: NDArray[np.bool_], word: str) -> Fit:
    known = lost | came
    count, total = int(lost.sum()), int(known.sum())
    if not total:
        return Fit(None, ("left out: of no request it is known whether it was lost",))
    interval = wilson_interval(count, total)
    intervals = {"probability": interval}
    if not count:
        return Fit(
            None, (f"0 of {total} {word}: below {format_share(interval[1])} (95 %)",), intervals
        )
    shares = f"{format_share(count / total)}, 95 % {_tell(interval)}"
    told = f"{count} of {total} {word}: {shares}"
    random = Random(probability=_round(count / total))
    sequence = lost[known]
    p_value = _compute_runs_p_value(sequence)
    if p_value >= _DEPENDENT:
        alone = "; the order shows no bursts" if count >= _FEWEST_LOST else ""
        return Fit(random, (told + alone,), intervals)
    if count < _FEWEST_LOST:
        few = f"probably in bursts; at least {_FEWEST_LOST} losses are needed to fit these"
        return Fit(random, (told, few), intervals)
    fitted = fit_bursts(requests.tried_at[known], sequence)
    if fitted is None:
        why = "many in a row, but bursts in time fit no better than independent losses"
        return Fit(random, (told, why), intervals)
    bursts, parameters = fitted
    tells = ", ".join(
        f"{name.replace('_', ' ')} {format_interval(each)}" for name, each in parameters.items()
    )
    runs = f"in bursts: as many in a row by chance have p = {max(p_value, 1e-9):.2g}"
    return Fit(bursts, (told, runs, f"95 %: {tells}"), {**intervals, **parameters})


def _compute_runs_p_value(sequence: NDArray[np.bool_]) -> float:
    """Return how likely so few runs are if all orders are (Wald and Wolfowitz 1940).

    Args:
        sequence: Whether each was lost, in the order of asking.
    """
    ones, total = int(sequence.sum()), len(sequence)
    zeros = total - ones
    if not ones or not zeros:
        return 1.0
    runs = 1 + int((sequence[1:] != sequence[:-1]).sum())
    mean = 1 + 2 * ones * zeros / total
    variance = (mean - 1) * (mean - 2) / (total - 1)
    return float(stats.norm.cdf((runs + 0.5 - mean) / max(variance, 1e-12) ** 0.5))


def fit_bursts(
    moments: Values, lost: NDArray[np.bool_]
) -> tuple[Bursts, dict[str, Interval]] | None:
    """Fit good and bad spells to losses by maximum likelihood.

    Args:
        moments: When each was asked, in clock units, in rising order, (n,).
        lost: Whether each was lost, (n,).

    Returns:
        The loss with 95 % intervals by parameter; None where chance alone fits as well by AIC.
    """
    moments, lost = moments[-_MOST:], lost[-_MOST:]
    gaps = np.diff(moments)
    share = float(lost.mean())
    chance = len(lost) * (share * log(share) + (1 - share) * log(1 - share))
    runs = max(1, int((lost[1:] & ~lost[:-1]).sum()))
    length = max(float(moments[-1] - moments[0]), 1e-9)
    start = np.log([length / runs * (1 - share), length / runs * share])
    best: tuple[float, Values, int] = (2 - 2 * chance - 2.0, start, -1)
    for free in (0, 1, 2):
        cost = _make_cost(gaps, lost)
        begin = np.append(start, [2.0, -3.0][:free])
        found = minimise(cost, begin)
        aic = 2 * len(begin) + 2 * cost(found)
        if aic < best[0]:
            best = aic, found, free
    _, found, free = best
    if free < 0:
        return None
    ends = numeric_intervals(_make_cost(gaps, lost), found)
    fields = ("good_spell", "bad_spell", "lost_in_bad", "lost_in_good")[: 2 + free]
    backs: list[Callable[[float], float]] = [_exp, _exp, _expit, _expit]
    values = {name: _round(back(at)) for name, back, at in zip(fields, backs, found, strict=False)}
    intervals = {
        name: (back(low), back(high))
        for name, back, (low, high) in zip(fields, backs, ends, strict=False)
    }
    return Bursts(**values), intervals


def _make_cost(gaps: Values, lost: NDArray[np.bool_]) -> Callable[[Values], float]:
    """Return the negative log-likelihood of two kinds of spells that only losses show.

    Its variables are the logarithms of both lengths, and, where they are not 1 and 0, the logits
    of the probabilities to be lost in bad and in good spells.
    """

    def cost(variables: Values) -> float:
        good, bad = (_exp(each) for each in variables[:2])
        in_bad = _expit(variables[2]) if len(variables) > 2 else 1.0
        in_good = _expit(variables[3]) if len(variables) > 3 else 0.0
        if in_good > in_bad:
            return inf
        rate, share = 1 / good + 1 / bad, bad / (good + bad)
        kept = np.exp(-np.minimum(rate * gaps, 700.0))
        # From a spell (rows: good, bad) to the next request (columns), times the chance of what
        # became of that; the first begins as the long run has it.
        steps = np.empty((len(lost), 2, 2))
        to_bad = np.stack([share * (1 - kept), share + (1 - share) * kept], axis=1)
        steps[0, :, 1], steps[1:, :, 1] = share, to_bad
        steps[:, :, 0] = 1 - steps[:, :, 1]
        steps[:, :, 0] *= np.where(lost, in_good, 1 - in_good)[:, None]
        steps[:, :, 1] *= np.where(lost, in_bad, 1 - in_bad)[:, None]
        return -_log_product(steps)

    return cost


def _log_product(matrices: NDArray[np.float64]) -> float:
    """Return the logarithm of the sum of the first row of a product, two by two to stay fast."""
    total = 0.0
    while len(matrices) > 1:
        if len(matrices) % 2:
            matrices = np.concatenate([matrices, np.eye(2)[None]])
        matrices = matrices[0::2] @ matrices[1::2]
        sizes = matrices.max(axis=(1, 2))
        if (sizes <= 0).any():
            return -inf
        matrices = matrices / sizes[:, None, None]
        total += float(np.log(sizes).sum())
    last = float(matrices[0, 0].sum())
    return total + log(last) if last > 0 else -inf


def _exp(number: float) -> float:
    return exp(min(max(float(number), -300.0), 300.0))


def _expit(number: float) -> float:
    return float(special.expit(number))


def _round(number: float) -> float:
    return float(format_number(number))


def _tell(interval: Interval) -> str:
    return f"{format_share(interval[0])} to {format_share(interval[1])}"
