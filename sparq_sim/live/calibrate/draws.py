"""Fit a draw: choose a family for durations or costs, and say how well it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim.arrays import Values
from sparq_sim.live.calibrate.families import FAMILIES, Amounts, Family, Interval, search_edge
from sparq_sim.live.calibrate.fits import Fit, format_interval, format_number
from sparq_sim.simulation.channel.draws import Constant, Draw, Empirical

__all__ = ["FEWEST", "DrawFit", "fit_draw"]

FEWEST = 20
"""So many amounts must be known before a distribution is fitted."""
_REJECTED = 0.01
"""A family fits where more than this share of its own samples would fit worse."""
_SAMPLES = 199
"""How many samples of a family the goodness of its fit is compared with."""
_QUANTILES = 40
"""How many values an empirical draw has at most."""
_SIMPLER = 2.0
"""A family with more parameters is preferred only where its AIC is lower by more than this."""
_LIKELIHOOD_DROP = 1.92
"""By how much the logarithm of the likelihood falls towards the ends of a 95 % interval."""


@dataclass(frozen=True)
class DrawFit:
    """A draw fitted to amounts."""

    draw: Draw | None
    """The draw; None where too little is known."""
    told: tuple[str, ...]
    """How it was chosen and how well it fits."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """95 % intervals by parameter."""
    p_value: float | None = None
    """How often samples of the draw would fit worse than the data; None if not tested."""
    lost: float = 0.0
    """The share of what would never have come, however long one waits."""
    lost_interval: Interval = (0.0, 0.0)
    """Its 95 % interval."""

    def to_fit(self) -> Fit:
        """Return it as the fit of a field; what is always 0 is left out."""
        is_nothing = isinstance(self.draw, Constant) and self.draw.value == 0
        return Fit(None if is_nothing else self.draw, self.told, self.intervals, self.p_value)


@dataclass(frozen=True, eq=False)
class _Candidate:
    family: Family
    parameters: Values
    lost: float
    log_likelihood: float

    @property
    def size(self) -> int:
        return len(self.parameters) + (self.lost > 0)

    @property
    def aic(self) -> float:
        return 2 * self.size - 2 * self.log_likelihood


def fit_draw(
    amounts: Amounts, *, tolerance: float, may_be_lost: bool = False, what: str = "answers"
) -> DrawFit:
    """Choose a draw for amounts by AIC, and test how well it fits.

    Args:
        amounts: What was observed and what was not.
        tolerance: Amounts that differ by no more are equal.
        may_be_lost: Whether what was not observed may be lost rather than late.
        what: What is counted, for the text.

    Returns:
        The draw. Where no family fits, it is `empirical`.
    """
    observed = amounts.observed
    count, missing = len(observed), len(amounts.bounds)
    if count and np.ptp(observed) <= tolerance:
        return _fit_constant(amounts, tolerance, may_be_lost=may_be_lost, what=what)
    if count < FEWEST:
        return DrawFit(None, (_tell_too_few(observed, what),))
    ranked = _rank(amounts, may_be_lost=may_be_lost)
    if not ranked:
        return _fit_empirical(amounts, f"{count} {what}: no family allows these values")
    best = ranked[0]
    p_value = _test(best, amounts, may_be_lost=may_be_lost)
    censored = f" and {missing} cut short" if missing else ""
    if p_value < _REJECTED:
        why = (
            f"no family fits the {count} {what}{censored}: {best.family.kind} is nearest, but "
            f"p = {p_value:.2g} (Kolmogorov-Smirnov); so these are their quantiles"
        )
        return _fit_empirical(amounts, why)
    intervals = dict(
        zip(
            best.family.names,
            best.family.intervals(best.parameters, amounts, best.lost),
            strict=True,
        )
    )
    told = [
        f"{best.family.kind} fits {count} {what}{censored}: p = {p_value:.2g} (Kolmogorov-Smirnov)",
        "95 %: " + ", ".join(f"{name} {format_interval(each)}" for name, each in intervals.items()),
    ]
    others = [each for each in ranked if each.family is not best.family]
    if others:
        ahead = others[0].aic - best.aic
        words = f"AIC {abs(ahead):.1f} {'higher' if ahead >= 0 else 'lower, but it is less simple'}"
        told.append(f"runner-up: {others[0].family.kind}, {words}")
    rounded = np.array([float(format_number(each)) for each in best.parameters])
    fitted = DrawFit(best.family.make(rounded), tuple(told), intervals, p_value)
    if best.lost:
        return replace(fitted, lost=best.lost, lost_interval=_profile_lost(best, amounts))
    return fitted


def _fit_constant(amounts: Amounts, tolerance: float, *, may_be_lost: bool, what: str) -> DrawFit:
    value = float(np.median(amounts.observed))
    value = 0.0 if value <= tolerance else float(f"{value:.9g}")
    count = len(amounts.observed)
    told = f"the same for all {count} {what}" if value else f"none in {count} {what}"
    # What should have come by then, and has not.
    gone = int((amounts.bounds > value + tolerance).sum()) if may_be_lost else 0
    share = gone / (gone + count)
    return DrawFit(Constant(value=value), (told,), {"value": (value, value)}, lost=share)


def _fit_empirical(amounts: Amounts, why: str) -> DrawFit:
    observed = amounts.observed
    size = min(len(observed), _QUANTILES)
    quantiles = np.quantile(observed, (np.arange(size) + 0.5) / size)
    values = tuple(float(format_number(each)) for each in quantiles)
    missing = len(amounts.bounds)
    share = missing / (missing + len(observed))
    return DrawFit(Empirical(values=values), (why,), lost=share)


def _tell_too_few(observed: Values, what: str) -> str:
    count = len(observed)
    if not count:
        return f"left out: there are no {what}; at least {FEWEST} are needed"
    mean = format_number(float(observed.mean()))
    return f"left out: {count} {what} (mean {mean}) are too few; at least {FEWEST} are needed"


def _rank(amounts: Amounts, *, may_be_lost: bool) -> list[_Candidate]:
    """Return the families that are possible, the best first."""
    found = []
    for family in FAMILIES:
        if not family.fits(amounts.observed):
            continue
        parameters, _ = family.estimate_censored(amounts)
        likely = family.log_likelihood(parameters, amounts)
        best = _Candidate(family, parameters, 0.0, likely)
        if may_be_lost and len(amounts.bounds):
            parameters, lost = family.estimate_censored(amounts, lost=None)
            likely = family.log_likelihood(parameters, amounts, lost)
            with_loss = _Candidate(family, parameters, lost, likely)
            best = with_loss if with_loss.aic < best.aic - _SIMPLER else best
        if best.log_likelihood > -inf and family.has_mean(best.parameters):
            found.append(best)
    found.sort(key=lambda each: each.aic)
    simpler = [
        each
        for each in found[1:]
        if each.size < found[0].size and each.aic < found[0].aic + _SIMPLER
    ]
    return [*simpler[:1], *(each for each in found if each not in simpler[:1])]


def _test(best: _Candidate, amounts: Amounts, *, may_be_lost: bool) -> float:
    """Return the p-value of the greatest gap between distributions, by a parametric bootstrap.

    Parameters are estimated anew from each sample, as they were from the data.
    """
    family = best.family
    rng = Generator(Philox(key=0))
    gap = _gap(family, best.parameters, amounts)
    limits = np.append(amounts.limits, amounts.bounds)
    worse = 0
    for _ in range(_SAMPLES):
        drawn = family.sample(best.parameters, rng, len(limits))
        came = (drawn <= limits) & (rng.random(len(limits)) >= best.lost)
        # Limits that were not reached are not known, and need not be.
        late = ~came & np.isfinite(limits)
        again = Amounts(drawn[came], limits[late], limits[came])
        if not len(again.observed) or not family.fits(again.observed):
            continue
        lost = None if best.lost and may_be_lost else 0.0
        parameters, _ = family.estimate_censored(again, best.parameters, lost, precision=1e-3)
        worse += _gap(family, parameters, again) >= gap
    return (worse + 1) / (_SAMPLES + 1)


def _gap(family: Family, parameters: Values, amounts: Amounts) -> float:
    """Return the greatest gap between the distributions of what was observed and of the family."""
    below = 1 - family.exceed(parameters, amounts.observed)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Given that it came before it would have been given up.
        below = np.sort(below / (1 - family.exceed(parameters, amounts.limits)))
    ranks = np.arange(len(below) + 1) / len(below)
    return float(max((ranks[1:] - below).max(), (below - ranks[:-1]).max()))


def _profile_lost(best: _Candidate, amounts: Amounts) -> Interval:
    """Return the shares lost at which the likelihood is not much below its maximum."""
    family, least = best.family, best.log_likelihood - _LIKELIHOOD_DROP

    def is_likely(lost: float) -> bool:
        parameters, _ = family.estimate_censored(amounts, best.parameters, lost)
        return family.log_likelihood(parameters, amounts, lost) >= least

    missing = len(amounts.bounds)
    most = missing / (missing + len(amounts.observed))
    wide = 0.999 * min(1.0, max(4 * most, best.lost + 0.2))
    return search_edge(is_likely, best.lost, 0.0), search_edge(is_likely, best.lost, wide)
