"""Curves: what is known of each round, averaged over the plays of an optimizer in a setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparq_sim.analysis.averages import (
    Means,
    Running,
    bin_rounds,
    choose_window,
    smooth,
    thin_rounds,
)
from sparq_sim.analysis.criteria import BEST_SEEN, REGRET, REWARD, Criterion, choose_criterion
from sparq_sim.analysis.summary import AnalysisError, group
from sparq_sim.errors import did_you_mean
from sparq_sim.simulation import measures
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.trace import METER, NOTE, Columns, Trace
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting
from sparq_sim.study.store import Label, Provenance, StoredSummary, StoreError

__all__ = [
    "ROUND_REGRET",
    "Band",
    "Curve",
    "CurveSums",
    "Curves",
    "Series",
    "bands",
    "read_curves",
    "read_series",
]

ROUND_REGRET = "round-regret"
"""The name of the series of the regrets of the rounds, smoothed."""

Curve: TypeAlias = Literal[
    "average_regret", "cumulative_regret", "regret", "spent", "average_reward", "reward"
]
"""What `bands` can show over the rounds."""

_NOTED_QUERIES = f"{NOTE}queries"
"""The column of how many points an optimizer has asked about."""
_CURVES = {
    "average_regret": measures.average_regret,
    "cumulative_regret": measures.cumulative_regret,
    "regret": measures.regret,
    "spent": measures.spent,
    "average_reward": measures.average_reward,
    "reward": measures.reward,
}


@dataclass(frozen=True)
class Band:
    """A curve over the rounds: mean over replications, and its 95 % interval; all (rounds,)."""

    optimizer: str
    """Name of the optimizer."""
    setting: Setting
    """Swept values of its plays."""
    rounds: NDArray[np.int64]
    """Numbers of the rounds, from 1."""
    mean: NDArray[np.float64]
    """Mean over the plays."""
    low: NDArray[np.float64]
    """Lower end of the interval of the mean; NaN where one play lasted that long."""
    high: NDArray[np.float64]
    """Upper end of it."""
    plays: NDArray[np.int64]
    """How many plays lasted that long, and had a reward by then."""
    singles: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    """The curves of the plays, (plays, rounds), where they are fewer than five; otherwise none."""


@dataclass(frozen=True)
class Series:
    """A quantity over the rounds: its mean over the plays of an optimizer in a setting."""

    name: str
    """What it is: "round-regret", or "reward" where the best is not known, "spent", "asked",
    "retries", "pushed", "staleness", or "note X", "reply X" and "meter X" for a number X that an
    optimizer noted, or a source with its replies, or that a meter of an expert showed."""
    optimizer: str
    """Name of the optimizer."""
    setting: Setting
    """Swept values of its plays."""
    rounds: NDArray[np.float64]
    """Middles of the bins of rounds that are averaged over, from 1: (bins,)."""
    means: NDArray[np.float64]
    """Mean over each bin and the plays: (bins,)."""
    window: int = 1
    """Over how many rounds the means move; 1 where they are those of the bins."""


@dataclass
class Curves:
    """All curves of a study's plays, each play read once."""

    found: list[StoredSummary] = field(default_factory=list)
    """Plays that could be read."""
    provenances: list[Provenance] = field(default_factory=list)
    """What is stored about each of them."""
    bands: list[Band] = field(default_factory=list)
    """Cumulative regret, one per optimizer and setting; otherwise, the criterion times the
    rounds so far."""
    series: list[Series] = field(default_factory=list)
    """Everything else that is known of each round."""
    unreadable: list[str] = field(default_factory=list)
    """Keys of plays whose files are damaged."""
    criterion: Criterion = REGRET
    """What plays are compared by, and the bands show."""


def bands(study: Results, curve: Curve = "average_regret") -> list[Band]:
    """Compute a curve with its band for each optimizer and setting of a study.

    Args:
        study: A study with finished plays.
        curve: What is shown over the rounds.

    Returns:
        One band per optimizer and setting, with all their rounds.

    Raises:
        AnalysisError: There is no curve of this name.
    """
    if curve not in _CURVES:
        raise AnalysisError(f"no curve is called {curve!r}: {did_you_mean(curve, _CURVES)}")
    made = []
    for plays in group(study.finished()).values():
        running = Running()
        for play in plays:
            running.add(_CURVES[curve](study.read(play.key).trace))
        made.append(_band(plays[0], running))
    return made


def read_curves(study: Results, *, most_points: int, best_seen: bool = False) -> Curves:
    """Read all plays of a study, and average what is known of each round.

    Args:
        study: A study with finished plays.
        most_points: How many points a curve may have: a band has so many of its rounds, evenly
            spread, and a series the means of so many bins.
        best_seen: Whether regret is against the best reward seen in each play, where the best
            reward is not known.

    Returns:
        The curves; plays that cannot be read are listed as unreadable and left out.

    Raises:
        SparqError: Regret against the best seen is wished for, and all plays know the best.
    """
    found = study.finished()
    criterion = choose_criterion(found, best_seen=best_seen)
    sums, made = CurveSums(best_seen=best_seen), Curves(criterion=criterion)
    for plays in group(found).values():
        for play in plays:
            try:
                stored = study.read(play.key)
            except StoreError:
                made.unreadable.append(play.key)
                continue
            made.found.append(play)
            made.provenances.append(stored.provenance)
            sums.add(play, stored.trace)
    made.bands = sums.bands(most_points, criterion)
    made.series = sums.series(most_points, criterion)
    return made


def read_series(trace: Trace, *, optimizer: str, most_points: int) -> list[Series]:
    """Return what is known of each round of one play, but for rewards and regrets.

    Args:
        trace: What happened, be it not to the end.
        optimizer: What the series are called after.
        most_points: How many points a curve may have, as for `read_curves`.
    """
    quantities: dict[str, Means] = {}
    for name, values in _quantities(trace):
        if name not in ("reward", ROUND_REGRET):
            quantities.setdefault(name, Means()).add(values)
    return list(_series(optimizer, {}, quantities, most_points))


class CurveSums:
    """Sums of what is known of each round, for curves of plays that come one by one."""

    def __init__(self, *, best_seen: bool = False) -> None:
        """Begin without a play.

        Args:
            best_seen: Whether regret is against the best reward seen in each play, where the best
                reward is not known.
        """
        self._groups: dict[Label, _Sums] = {}
        self._blind = BEST_SEEN if best_seen else REWARD

    def add(self, play: StoredSummary, trace: Trace) -> None:
        """Add a play to the curves of its optimizer and setting.

        Args:
            play: Which play it is.
            trace: What happened in it.
        """
        self._groups.setdefault(play.label, _Sums(play, self._blind)).add(trace)

    def bands(self, most_points: int, criterion: Criterion = REGRET) -> list[Band]:
        """Return what the plays so far are compared by, one band per optimizer and setting.

        Args:
            most_points: How many points a curve may have, as for `read_curves`.
            criterion: Cumulative regret, or what `choose_criterion` says of the plays.
        """
        return [
            _band(each.first, curve, most_points=most_points)
            for each in self._groups.values()
            if (curve := each.regret if criterion.is_regret else each.blind).counts.any()
        ]

    def series(self, most_points: int, criterion: Criterion = REGRET) -> list[Series]:
        """Return everything else that is known of each round of the plays so far.

        Args:
            most_points: How many points a curve may have, as for `read_curves`.
            criterion: What plays are compared by; regrets of the rounds are among the series where
                it is regret, and rewards where it is not.
        """
        left_out = "reward" if criterion.is_regret else ROUND_REGRET
        return [
            series
            for each in self._groups.values()
            for series in _series(
                each.first.optimizer, each.first.setting, each.quantities, most_points
            )
            if series.name != left_out
        ]


class _Sums:
    """The sums of the plays of one optimizer in one setting."""

    def __init__(self, first: StoredSummary, criterion: Criterion) -> None:
        self.first = first
        self.regret, self.blind = Running(), Running()
        self._criterion = criterion
        self.quantities: dict[str, Means] = {}

    def add(self, trace: Trace) -> None:
        self.regret.add(measures.cumulative_regret(trace))
        # One play that does not know the best may still come, and decide for all.
        self.blind.add(self._criterion.over_rounds(trace))
        for name, values in _quantities(trace):
            self.quantities.setdefault(name, Means()).add(values)


def _series(
    optimizer: str, setting: Setting, quantities: dict[str, Means], most_points: int
) -> Iterable[Series]:
    for name, means in quantities.items():
        if name == ROUND_REGRET:
            yield from _moving(optimizer, setting, means.means, most_points)
            continue
        rounds, values = bin_rounds(means.means, most_points)
        if len(rounds) and (name != "spent" or values.any()):
            yield Series(name, optimizer, setting, rounds, values)


def _moving(
    optimizer: str, setting: Setting, regrets: NDArray[np.float64], most_points: int
) -> Iterable[Series]:
    """Yield the regrets of the rounds, smoothed; not where none is known."""
    window = choose_window(len(regrets))
    means = smooth(regrets, window)
    places = thin_rounds(len(means), most_points)
    if np.isfinite(means).any():
        yield Series(
            ROUND_REGRET, optimizer, setting, (places + 1).astype(float), means[places], window
        )


def _band(play: StoredSummary, curves: Running, *, most_points: int | None = None) -> Band:
    """Return the band of curves, which are of plays like *play*."""
    places = thin_rounds(len(curves.counts), most_points)
    low, high = curves.interval()
    return Band(
        optimizer=play.optimizer,
        setting=play.setting,
        rounds=places + 1,
        mean=np.where(curves.counts[places] > 0, curves.means[places], np.nan),
        low=low[places],
        high=high[places],
        plays=curves.counts[places],
        singles=curves.singles[:, places],
    )


# What is known of each round


def _quantities(trace: Trace) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield what is known of each round, by the names of `Series`."""
    yield ROUND_REGRET, measures.regret(trace)
    yield "reward", measures.reward(trace)
    yield "spent", trace.rounds["spent"]
    for name, column in trace.rounds.items():
        # The points asked are counted below, for every optimizer, where replies are kept.
        if name == _NOTED_QUERIES:
            if not trace.replies:
                # A round in which nothing was noted is one in which nothing was asked.
                yield "note queries", np.nan_to_num(column)
        elif name.startswith(NOTE):
            yield f"note {name.removeprefix(NOTE)}", column
        elif name.startswith(METER):
            yield f"meter {name.removeprefix(METER)}", column
    if not trace.replies:
        return
    replies, rounds = trace.replies, len(trace)
    asked = measures.mark_asked(trace)
    for name, counted in (
        ("asked", asked),
        ("retries", measures.mark_retried(trace)),
        ("pushed", measures.mark_pushed(trace)),
    ):
        if counted.any():
            yield name, _sum_by_round(replies, counted, rounds)
    answered = asked & (replies["fate"] == Fate.ANSWERED)
    if answered.any():
        ages = replies["arrived_at"] - replies["measured_at"]
        yield "staleness", _mean_by_round(replies, ages, answered, rounds)
    for name, column in replies.items():
        if name.startswith(NOTE):
            noted = np.isfinite(column)
            yield (
                f"reply {name.removeprefix(NOTE)}",
                _mean_by_round(replies, column, noted, rounds),
            )


def _sum_by_round(
    replies: Columns,
    chosen: NDArray[np.bool_],
    rounds: int,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Count the chosen rows of each round, or sum their weights; not those before the first."""
    places = replies["round"] - 1
    chosen = chosen & (places >= 0) & (places < rounds)
    own = None if weights is None else weights[chosen]
    return np.bincount(places[chosen], own, minlength=rounds).astype(float)


def _mean_by_round(
    replies: Columns, values: NDArray[np.float64], chosen: NDArray[np.bool_], rounds: int
) -> NDArray[np.float64]:
    counts = _sum_by_round(replies, chosen, rounds)
    sums = _sum_by_round(replies, chosen, rounds, values)
    means = np.full(rounds, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means
