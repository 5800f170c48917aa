"""Monitoring: how well an agent knew what happened at some places, beside regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparq_sim.analysis.summary import AnalysisError, Spread, flat, group, spread
from sparq_sim.arrays import Values
from sparq_sim.errors import did_you_mean
from sparq_sim.simulation.beliefs import BeliefMap, NoBeliefError, belief_map
from sparq_sim.simulation.trace import Trace

if TYPE_CHECKING:
    from sparq_sim.study.results import Results
    from sparq_sim.study.store import StoredSummary

__all__ = [
    "Alarms",
    "Exceedances",
    "Monitored",
    "Survival",
    "alarms",
    "exceedances",
    "map_rmse",
    "monitor",
    "survival",
]

_Marks: TypeAlias = NDArray[np.bool_]
"""Whether something is so, in each round at each place: (rounds, n)."""


def map_rmse(seen: BeliefMap) -> Values:
    """Compute the root mean square error of the believed mean over the places, in each round.

    Places without a reading in that round are left out.

    Args:
        seen: What was believed and what was true.

    Returns:
        In units of the reward, (rounds,); NaN where nothing is believed yet, or there is no
        reading at all.
    """
    squares = (seen.mean - seen.truth) ** 2
    return np.array([_root_mean(row[~np.isnan(row)]) for row in squares])


def _root_mean(squares: Values) -> float:
    return float(np.sqrt(squares.mean())) if len(squares) else nan


@dataclass(frozen=True)
class Exceedances:
    """In how many rounds, over all places, the truth was above a threshold and who knew.

    What has no reading is not counted in any number but *unknown*.
    """

    exceeded: int
    """The truth was above."""
    believed: int
    """The agent believed it to be above."""
    missed: int
    """The truth was above, and the agent did not believe so, or nothing yet."""
    false: int
    """The agent believed it to be above, and the truth was not."""
    known: int
    """Rounds with a reading, over all places."""
    unknown: int
    """Rounds without a reading, over all places."""

    @property
    def missed_share(self) -> float:
        """Of what exceeded, the share that was missed; NaN where nothing exceeded."""
        return self.missed / self.exceeded if self.exceeded else nan

    @property
    def false_share(self) -> float:
        """Of what was believed to exceed, the share that did not; NaN where nothing was."""
        return self.false / self.believed if self.believed else nan


def exceedances(seen: BeliefMap, threshold: float, *, quantile: float = 0.5) -> Exceedances:
    """Count where and when the reward was above a threshold, and what the agent knew of it.

    Args:
        seen: What was believed and what was true.
        threshold: In units of the reward; what is equal to it is not above.
        quantile: The agent believes that a place exceeds where this quantile of its belief,
            mean + z std, is above the threshold. At 0.5 that is the mean; a higher one warns
            sooner, and falsely more often.

    Returns:
        The counts over all rounds and places.

    Raises:
        AnalysisError: The threshold is not finite, or the quantile not between 0 and 1.
    """
    known, above, said = _mark(seen, threshold, quantile)
    said = said & known
    return Exceedances(
        exceeded=int(above.sum()),
        believed=int(said.sum()),
        missed=int((above & ~said).sum()),
        false=int((said & ~above).sum()),
        known=int(known.sum()),
        unknown=int((~known).sum()),
    )


def _mark(seen: BeliefMap, threshold: float, quantile: float) -> tuple[_Marks, _Marks, _Marks]:
    """Mark what is known, what of it is above the threshold, and what is believed to be."""
    if not isfinite(threshold):
        raise AnalysisError(f"threshold: expected a finite number, not {threshold!r}")
    if not 0 < quantile < 1:
        raise AnalysisError(
            f"quantile: expected a number between 0 and 1, such as 0.9, not {quantile!r}"
        )
    # What is NaN is above nothing.
    bound = seen.mean + NormalDist().inv_cdf(quantile) * seen.std
    return ~np.isnan(seen.truth), seen.truth > threshold, bound > threshold


@dataclass(frozen=True, eq=False)
class Alarms:
    """How long it took until an agent knew of each time that a threshold was exceeded.

    Each exceedance is raised, missed or open: exceedances = len(delays) + missed + open.
    """

    delays: Values
    """Of those that the agent came to believe while they lasted."""
    exceedances: int
    """Unbroken times above the threshold, over all places."""
    missed: int
    """Those that were over before the agent believed them."""
    open: int
    """Those that lasted to the last round, and were not believed until then: how long their alarm
    would have taken is unknown, but longer than that."""

    @property
    def mean_delay(self) -> float:
        """Of those believed; NaN where none was."""
        return float(self.delays.mean()) if len(self.delays) else nan


def alarms(
    seen: BeliefMap,
    threshold: float,
    *,
    quantile: float = 0.5,
    unit: Literal["rounds", "clock"] = "rounds",
    anywhere: bool = False,
) -> Alarms:
    """Measure the delay from the first round above a threshold to the first that believes it.

    An exceedance lasts from the first round in which the truth at a place is above until the next
    one in which it is known not to be. Its delay is 0 where the agent believes it at once, or did
    so before.

    Args:
        seen: What was believed and what was true, in the order of the rounds.
        threshold: In units of the reward; what is equal to it is not above.
        quantile: Of the belief, as in `exceedances`.
        unit: Of the delays: rounds, or the clock's, between the moments of playing.
        anywhere: Whether all places are one, which exceeds where any does, and is believed to
            where any is; by default, each has its own alarm.

    Returns:
        The delays, and how many exceedances were missed or still open.

    Raises:
        AnalysisError: The rounds are not in their order, or an argument is not as described.
    """
    if (np.diff(seen.rounds) <= 0).any():
        raise AnalysisError("alarms need the rounds in their order; give belief_map ordered rounds")
    units: dict[str, NDArray[Any]] = {"rounds": seen.rounds, "clock": seen.times}
    if unit not in units:
        raise AnalysisError(f"no unit of delays is called {unit!r}: {did_you_mean(unit, units)}")
    known, above, said = _mark(seen, threshold, quantile)
    if anywhere:
        above, said = (np.any(marks, axis=1, keepdims=True) for marks in (above, said))
        # That no place exceeds is known where all are.
        known = np.all(known, axis=1, keepdims=True) | above
    moments = units[unit]
    delays: list[float] = []
    missed = still_open = 0
    for place in range(above.shape[1]):
        for start, end in _spells(known[:, place], above[:, place]):
            raised = np.flatnonzero(said[start:end, place])
            if len(raised):
                delays.append(float(moments[start + raised[0]] - moments[start]))
            elif end == len(above):
                still_open += 1
            else:
                missed += 1
    total = len(delays) + missed + still_open
    return Alarms(np.array(delays, dtype=float), total, missed, still_open)


def _spells(known: _Marks, above: _Marks) -> list[tuple[int, int]]:
    """List from which row to which, the last excluded, one place is above; gaps end nothing."""
    spells: list[tuple[int, int]] = []
    start: int | None = None
    for row in np.flatnonzero(known).tolist():
        if above[row] and start is None:
            start = row
        elif not above[row] and start is not None:
            spells.append((start, row))
            start = None
    return spells if start is None else [*spells, (start, len(above))]


@dataclass(frozen=True)
class Survival:
    """How long a play lasted."""

    rounds: int
    """How many were played."""
    planned: int | None
    """How many there would have been; None where that is not known."""
    ended: str
    """Why it ended: by its "rounds" or its "horizon" where it survived; by its "budget", or by
    the reason that a source gave for stopping it."""
    survived: bool
    """Whether it lasted to the end; if so, how long it could have lasted is unknown."""


def survival(trace: Trace) -> Survival:
    """Return how many rounds a play survived, of how many, and what ended it.

    Args:
        trace: The play.
    """
    planned = trace.provenance.get("rounds_planned")
    if trace.played is not None:
        planned = trace.played.rules.most_rounds
    return Survival(len(trace), planned, trace.ended, not trace.ended_early)


# Studies


@dataclass(frozen=True)
class Monitored:
    """What the plays of one optimizer in one swept setting knew of the places.

    Without a threshold, or where an optimizer has no belief, what needs it is NaN or 0.
    """

    optimizer: str
    """Its name in the scenario."""
    setting: Mapping[str, object]
    """The swept values by path; empty without a sweep."""
    plays: int
    """How many plays were monitored."""
    believing: int
    """How many of them have a belief."""
    rmse: Spread
    """Root mean square error of the map over the rounds and places of a play."""
    missed_share: Spread
    """As in `Exceedances`, of a play; plays in which nothing exceeded are left out."""
    false_share: Spread
    """As in `Exceedances`, of a play; plays without an alarm are left out."""
    delay: Spread
    """Mean delay of the alarms of a play, in rounds; plays without an alarm are left out."""
    exceedances: int
    """Unbroken times above the threshold, over all plays and places, as in `Alarms`."""
    missed: int
    """Those that were over before they were believed."""
    open: int
    """Those that lasted to the end, and were not believed."""
    rounds: Spread
    """How many a play survived."""
    ended_early: int
    """How many plays did not last to their end."""

    def flat(self) -> dict[str, object]:
        """Return one row of a table, as `sparq_sim.analysis.summary.flat` does."""
        return flat(self)


def monitor(
    study: Results,
    places: ArrayLike | None = None,
    *,
    threshold: float | None = None,
    quantile: float = 0.5,
    allow_import: bool = False,
) -> list[Monitored]:
    """Compute what the agents of all finished plays knew, per optimizer and setting.

    Each play is played again, in this process.

    Args:
        study: One with finished plays.
        places: Where, (n, d); by default as in `belief_map`.
        threshold: Above which alarms are due; by default, none are.
        quantile: Of the belief, as in `exceedances`.
        allow_import: Whether the plays may name code to run, as `module:Class`.

    Returns:
        A row per optimizer and setting.

    Raises:
        SparqError: A play cannot be played again, or comes out otherwise.
    """

    def measure(play: StoredSummary) -> _Measured:
        trace = study.read(play.key).trace
        try:
            seen = belief_map(trace, places, allow_import=allow_import)
        except NoBeliefError:
            return _Measured(survival(trace))
        if threshold is None:
            return _Measured(survival(trace), seen)
        return _Measured(
            survival(trace),
            seen,
            exceedances(seen, threshold, quantile=quantile),
            alarms(seen, threshold, quantile=quantile),
        )

    return [
        _summarize(plays, [measure(play) for play in plays])
        for plays in group(study.finished()).values()
    ]


@dataclass(frozen=True, eq=False)
class _Measured:
    """What is known of one play."""

    survival: Survival
    seen: BeliefMap | None = None
    exceedances: Exceedances | None = None
    alarms: Alarms | None = None

    @property
    def rmse(self) -> float:
        if self.seen is None:
            return nan
        squares = (self.seen.mean - self.seen.truth) ** 2
        return _root_mean(squares[~np.isnan(squares)])


def _summarize(plays: Sequence[StoredSummary], measured: Sequence[_Measured]) -> Monitored:
    counts = [play.exceedances for play in measured if play.exceedances is not None]
    raised = [play.alarms for play in measured if play.alarms is not None]
    return Monitored(
        optimizer=plays[0].optimizer,
        setting=plays[0].setting,
        plays=len(plays),
        believing=sum(play.seen is not None for play in measured),
        rmse=spread(play.rmse for play in measured),
        missed_share=spread(count.missed_share for count in counts),
        false_share=spread(count.false_share for count in counts),
        delay=spread(each.mean_delay for each in raised),
        exceedances=sum(each.exceedances for each in raised),
        missed=sum(each.missed for each in raised),
        open=sum(each.open for each in raised),
        rounds=spread(float(play.survival.rounds) for play in measured),
        ended_early=sum(not play.survival.survived for play in measured),
    )
