"""Summaries: what the plays of each optimizer in each setting come to, over replications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf, isfinite, log2, nan
from typing import TYPE_CHECKING

import numpy as np

from sparq_sim.analysis.criteria import BEST_SEEN, REGRET, REWARD, Criterion, choose_criterion
from sparq_sim.analysis.intervals import find_roots_in_mean, reach
from sparq_sim.errors import SparqError
from sparq_sim.simulation.trace import METER
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting
from sparq_sim.study.store import Label, StoredSummary

if TYPE_CHECKING:
    from sparq_sim.analysis.monitoring import Monitored

__all__ = [
    "STUCK_FACTOR",
    "UNKNOWN",
    "AnalysisError",
    "Spread",
    "Summary",
    "count_stuck",
    "finite",
    "flat",
    "group",
    "spread",
    "spread_exponents",
    "summarize",
    "summary",
]


class AnalysisError(SparqError):
    """A question about a study that its plays cannot answer; the message says why."""


@dataclass(frozen=True)
class Spread:
    """A mean over replications, their standard deviation, and the mean's 95 % interval.

    The interval is Student's, mean ± t s / sqrt(n), but for exponents (`spread_exponents`). It is
    unknown (NaN) for one replication.
    """

    mean: float
    """Over the replications; NaN where there is none."""
    std: float
    """Of the single replications."""
    low: float
    """Lower end of the interval of the mean."""
    high: float
    """Upper end of it."""
    count: int
    """How many replications there are."""
    least: float = nan
    """The least of the replications; NaN where that is not told."""
    most: float = nan
    """The most of them."""

    def __neg__(self) -> Spread:
        return Spread(
            -self.mean, self.std, -self.high, -self.low, self.count, -self.most, -self.least
        )


UNKNOWN = Spread(nan, nan, nan, nan, 0)
"""Of no numbers."""
_OF_UNKNOWN_BEST = {"knows_best", "mean_reward", "regret_to_best_seen", "unobserved"}
"""Fields of a summary that are of use where the best reward is not known."""
_COMPARED = {REGRET.name, REWARD.name, BEST_SEEN.name}
"""Fields whose least and most play are told."""
STUCK_FACTOR = 5.0
"""How many times the median regret, in the last quarter, makes a play one that stuck."""


def spread(numbers: Iterable[float | None]) -> Spread:
    """Compute mean, standard deviation and interval of some numbers.

    Args:
        numbers: One per replication; what is None or not finite is left out.

    Returns:
        Their spread: NaN and a count of 0 where no number is known.
    """
    known = np.array([n for n in numbers if n is not None and isfinite(n)], dtype=float)
    if not len(known):
        return UNKNOWN
    mean = float(known.mean())
    std = float(known.std(ddof=1)) if len(known) > 1 else nan
    half = float(reach(np.array([std]), np.array([len(known)]))[0])
    ends = float(known.min()), float(known.max())
    return Spread(mean, std, mean - half, mean + half, len(known), *ends)


def spread_exponents(octaves: Iterable[tuple[float | None, float | None]]) -> Spread:
    """Compute how the regret of plays falls in the end: a in r_t ~ t^(a-1).

    a = 1 + log2(late / early), of the mean regrets of all plays in the last two octaves of rounds:
    the mean of the plays' own exponents would be biased, as the logarithm of a noisy mean is. Its
    interval is that of the ratio late / early (Fieller 1954): all ratios that a paired t test does
    not tell from the one found.

    Args:
        octaves: By play, the mean regrets that `measures.octaves` returns; plays in which one is
            unknown are left out.

    Returns:
        The exponent as mean, the standard deviation of the plays' own, and the interval. NaN where
        all regret of an octave is 0; the interval also where there are fewer than two plays, or
        where they differ so much that they bound it from one side at most.
    """
    pairs = [(a, b) for a, b in octaves if a is not None and b is not None]
    known = np.array(pairs, dtype=float).reshape(-1, 2)
    early, late = known.mean(axis=0) if len(known) else (nan, nan)
    if not (early > 0 and late > 0):
        return UNKNOWN
    own = spread(1 + log2(b / a) for a, b in known.tolist() if a > 0 and b > 0)
    low = high = nan
    match find_roots_in_mean(known[:, ::-1] * [1, -1]):
        case ((least, most),) if least > 0 and isfinite(most):
            low, high = 1 + log2(least), 1 + log2(most)
    return Spread(1 + log2(late / early), own.std, low, high, len(known))


@dataclass(frozen=True)
class Summary:
    """What the plays of one optimizer in one swept setting come to."""

    optimizer: str
    """Name of the optimizer."""
    setting: Setting
    """Swept values of the plays, by path."""
    plays: int
    """How many plays there are."""
    average_regret: Spread
    """R_T / T of each play."""
    stuck: float
    """Share of the plays that stuck, as `count_stuck` says; NaN where that is not known."""
    exponent: Spread
    """a in r_t ~ t^(a-1), how regret falls in the end: as `spread_exponents` computes it."""
    rounds: float
    """Rounds played, per play; fewer than planned where plays ended early."""
    asked_per_round: float
    """Points that the agent asked experts about, each counted once."""
    retries_per_round: float
    """Further attempts at these points."""
    pushed_per_round: float
    """Readings that experts sent without being asked."""
    spent: Spread
    """Cost of all queries of each play."""
    answered: float
    """Share of the points asked that were answered; NaN where nothing was asked, as for those
    below. The seven shares sum to 1."""
    late: float
    """Share answered after the agent stopped waiting."""
    lost: float
    """Share lost on the way."""
    refused: float
    """Share refused by an outage, a budget, the access rule or a rate."""
    invalid: float
    """Share with an answer of no use, or an error."""
    unavailable: float
    """Share about which the expert had no reading."""
    open: float
    """Share not answered when the play ended."""
    staleness: float
    """Mean age of experts' answers on arrival, in clock units."""
    idle: float
    """Share of the rounds without a move, in which the point before stayed in force."""
    ended_early: int
    """How many plays ended before their last round."""
    impossible: int
    """How many plays have a regret below 0, which a wrong `best` of the environment causes."""
    wall: float
    """Seconds that the agent computed, per play."""
    meters: Mapping[str, Spread] = field(default_factory=dict)
    """What the meters of experts showed in the last round, by `<expert>_<name>`."""
    criterion: Criterion = REGRET
    """What the plays of the study are compared by."""
    knows_best: bool = True
    """Whether all plays know the best reward; where they do not, their regret is unknown."""
    mean_reward: Spread = UNKNOWN
    """Mean reward of each play; as observed where the best reward is not known."""
    regret_to_best_seen: Spread = UNKNOWN
    """How far the mean reward of each play lies below its highest; known where it is asked for."""
    unobserved: float = 0.0
    """Share of the rounds whose reward was not observed."""

    @property
    def judged(self) -> Spread:
        """What the plays are compared by: one of the spreads above."""
        found: Spread = getattr(self, self.criterion.name)
        return found

    @property
    def loss(self) -> float:
        """The mean of what they are compared by, such that less is better; inf where unknown."""
        mean = self.judged.mean
        return self.criterion.to_loss(mean) if isfinite(mean) else inf

    def flat(self) -> dict[str, object]:
        """Return one row of a table, as the function `flat` does."""
        return flat(self)


def flat(row: Summary | Monitored) -> dict[str, object]:
    """Return a row of a table: names of columns and their values.

    Args:
        row: What the plays of an optimizer in a setting come to.

    Returns:
        The optimizer, each swept value under its path, and each field; a spread X becomes X,
        X_std, X_low and X_high, and what is compared also X_least and X_most. A meter X is called
        meter_X. What is not finite is None. Where
        a play of the study does not know the best reward, there are columns of rewards, and
        `criterion` says what is compared.
    """
    told: dict[str, object] = {"optimizer": row.optimizer, **row.setting}
    values = {each.name: getattr(row, each.name) for each in fields(row)[2:]}
    if (criterion := values.pop("criterion", None)) is not None:
        unused = _OF_UNKNOWN_BEST if criterion.is_regret else {"regret_to_best_seen"}
        values = {k: v for k, v in values.items() if k not in unused - {criterion.name}}
        if not criterion.is_regret:
            values["criterion"] = criterion.name
    meters = values.pop("meters", {})
    values |= {f"{METER}{name}": value for name, value in meters.items()}
    for name, value in values.items():
        if isinstance(value, Spread):
            told[name] = value.mean
            ends = ("least", "most") if name in _COMPARED else ()
            parts = ("std", "low", "high", *ends)
            told |= {f"{name}_{part}": getattr(value, part) for part in parts}
        else:
            told[name] = value
    return {name: finite(value) for name, value in told.items()}


def finite(value: object) -> object:
    """Return a value as JSON can write it.

    Args:
        value: Anything.

    Returns:
        The value; None in place of a number that is not finite.
    """
    return None if isinstance(value, float) and not isfinite(value) else value


def summary(study: Results, *, best_seen: bool = False) -> list[Summary]:
    """Compute what a study's finished plays come to.

    Args:
        study: A study; what is not finished is left out.
        best_seen: Whether plays are compared by their regret against the best reward seen in each,
            where the best reward is not known.

    Returns:
        A row per optimizer and setting.

    Raises:
        SparqError: Regret against the best seen is wished for, and all plays know the best.
    """
    found = study.finished()
    return summarize(found, choose_criterion(found, best_seen=best_seen))


def summarize(found: Iterable[StoredSummary], criterion: Criterion) -> list[Summary]:
    """Compute what plays come to.

    Args:
        found: Plays, as `Results.finished` lists them.
        criterion: What they are compared by.

    Returns:
        A row per optimizer and setting.
    """
    return [_summarize(plays, criterion) for plays in group(found).values()]


def count_stuck(plays: Sequence[StoredSummary]) -> int | None:
    """Count the plays that stuck.

    A play is stuck if its mean regret over the last quarter of the rounds is more than 5 times the
    median of these plays. So it needs no level, and no play is stuck where most of them are.

    Args:
        plays: Those of one optimizer in one setting.

    Returns:
        How many; None where the regret of the last quarter is not known, or the median is 0.
    """
    ends = [play.measures.get("last_quarter_regret") for play in plays]
    known = np.array([end for end in ends if end is not None])
    if not len(known) or not np.median(known) > 0:
        return None
    return int(np.count_nonzero(known > STUCK_FACTOR * np.median(known)))


def _share_stuck(plays: Sequence[StoredSummary]) -> float:
    count = count_stuck(plays)
    return nan if count is None else count / len(plays)


def group(found: Iterable[StoredSummary]) -> dict[Label, list[StoredSummary]]:
    """Sort plays into the rows of a table: by optimizer and swept setting.

    Args:
        found: Plays, as `Results.finished` lists them.

    Returns:
        The plays of each row, in the order in which the rows first occur.
    """
    groups: dict[Label, list[StoredSummary]] = {}
    for each in found:
        groups.setdefault(each.label, []).append(each)
    return groups


def _summarize(plays: Sequence[StoredSummary], criterion: Criterion) -> Summary:
    def total(name: str) -> float:
        return sum(play.measures.get(name) or 0.0 for play in plays)

    def share(name: str) -> float:
        return total(name) / total("asked") if total("asked") else nan

    def per_round(name: str) -> float:
        return total(name) / total("rounds") if total("rounds") else nan

    answered = [(play.measures["answered"] or 0.0, play.measures["staleness"]) for play in plays]
    return Summary(
        optimizer=plays[0].optimizer,
        setting=plays[0].setting,
        plays=len(plays),
        average_regret=spread(play.measures["average_regret"] for play in plays),
        stuck=_share_stuck(plays),
        exponent=spread_exponents(
            (play.measures.get("second_quarter_regret"), play.measures.get("second_half_regret"))
            for play in plays
        ),
        rounds=total("rounds") / len(plays),
        asked_per_round=per_round("asked"),
        retries_per_round=per_round("retries"),
        pushed_per_round=per_round("pushed"),
        spent=spread(play.measures["spent"] for play in plays),
        answered=share("answered"),
        late=share("late"),
        lost=share("lost"),
        refused=share("refused"),
        invalid=share("invalid"),
        unavailable=share("unavailable"),
        open=share("open"),
        staleness=(
            sum(count * age for count, age in answered if age is not None) / total("answered")
            if total("answered")
            else nan
        ),
        idle=per_round("idle_rounds"),
        ended_early=sum(play.ended_early for play in plays),
        impossible=sum(bool(play.measures.get("impossible_rounds")) for play in plays),
        wall=total("wall") / len(plays),
        meters={
            name: spread(play.meters.get(name) for play in plays)
            for name in sorted({name for play in plays for name in play.meters})
        },
        criterion=criterion,
        knows_best=all(play.knows_best for play in plays),
        mean_reward=spread(REWARD.of(play) for play in plays),
        regret_to_best_seen=spread(BEST_SEEN.of(play) for play in plays),
        unobserved=per_round("unobserved_rounds"),
    )
