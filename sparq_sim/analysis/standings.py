"""Standings: who is best in each setting, who is worse, and what may be chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan
from typing import Literal, TypeAlias

import numpy as np

from sparq_sim.analysis.criteria import Criterion, choose_criterion
from sparq_sim.analysis.intervals import CONFIDENCE, find_p_value
from sparq_sim.analysis.pairs import pair_plays
from sparq_sim.analysis.summary import UNKNOWN, Spread, Summary, group, spread, summarize
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting, agree, keep_fullest
from sparq_sim.study.store import Label, StoredSummary, canonical

__all__ = [
    "Place",
    "Ranking",
    "Standings",
    "Verdict",
    "compare_rows",
    "find_standings",
    "label_of",
    "rank_plays",
]

Verdict: TypeAlias = Literal["best", "worse", "equal", "unclear", ""]
"""What is known of a row beside the best of its setting; "" where there is nothing to compare."""


@dataclass(frozen=True)
class Place:
    """The place of an optimizer in a setting."""

    row: Summary
    """What its plays come to."""
    verdict: Verdict
    """Beside the best: "worse" is beyond chance, "unclear" may be chance, "equal" is the same in
    every pair."""
    behind: Spread = UNKNOWN
    """How much worse it is than the best, replication by replication: positive where it is."""
    beaten: float = nan
    """Share of the pairs in which the best is better."""
    gaps: Sequence[float] = ()
    """How much worse it is in each pair."""


@dataclass(frozen=True)
class Ranking:
    """The optimizers of one setting, the best first."""

    setting: Setting
    """Swept values."""
    places: Sequence[Place]
    """At least one; rows with an impossible regret, or nothing to judge by, have none."""

    @property
    def best(self) -> Place:
        """The one with the lowest average regret, or the best by another criterion."""
        return self.places[0]

    @property
    def rivals(self) -> Sequence[Place]:
        """All others."""
        return self.places[1:]

    @property
    def is_sure(self) -> bool:
        """Whether the best is better than each rival beyond chance; without a rival, it is not."""
        return bool(self.rivals) and all(each.verdict == "worse" for each in self.rivals)


@dataclass(frozen=True)
class Standings:
    """What the plays of a study come to, ranked."""

    rows: Sequence[Summary]
    """By setting, and in each the best first."""
    rankings: Sequence[Ranking]
    """One per setting in which something can be judged."""
    planned: Mapping[Label, int]
    """How many plays of each row there are to be."""
    found: Sequence[StoredSummary]
    """The plays."""
    criterion: Criterion
    """What they are compared by."""

    def judge(self, row: Summary) -> Verdict:
        """Return the verdict on a row; "" where that depends on a setting that it does not name.

        Args:
            row: One of the rows.
        """
        told = {
            place.verdict
            for ranking in self.rankings
            for place in ranking.places
            if ranking.rivals and place.row is row
        }
        return told.pop() if len(told) == 1 else ""


def find_standings(study: Results, *, best_seen: bool = False) -> Standings:
    """Rank the rows of a study's summary in each setting, as `rank_plays` does.

    Args:
        study: A study; what is not finished is left out.
        best_seen: Whether plays are compared by their regret against the best reward seen in each,
            where the best reward is not known.

    Returns:
        The standings.

    Raises:
        SparqError: Regret against the best seen is wished for, and all plays know the best.
    """
    found = study.finished()
    criterion = choose_criterion(found, best_seen=best_seen)
    return rank_plays(found, criterion, planned=study.count_planned())


def rank_plays(
    found: Sequence[StoredSummary],
    criterion: Criterion,
    *,
    planned: Mapping[Label, int] | None = None,
) -> Standings:
    """Rank the optimizers of each setting.

    The verdicts of a setting hold together with 95 % confidence: paired t tests of all pairs of
    optimizers, with the levels of Holm (1979). Those against the best alone would not do, as the
    best is chosen after a look at the plays.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        criterion: What they are compared by.
        planned: How many plays of each row there are to be; by default, those found.

    Returns:
        The standings.
    """
    plays = group(found)
    settings = keep_fullest(each[0].setting for each in plays.values())
    places = {canonical(dict(setting)): place for place, setting in enumerate(settings)}
    rows = sorted(
        summarize(found, criterion),
        key=lambda row: (places.get(canonical(dict(row.setting)), -1), row.loss),
    )
    rankings = [
        _rank(setting, here, plays, criterion)
        for setting in settings
        if (
            here := [
                row
                for row in rows
                if agree(row.setting, setting) and row.judged.count and not row.impossible
            ]
        )
    ]
    counts = {label: len(each) for label, each in plays.items()}
    return Standings(rows, rankings, counts if planned is None else planned, found, criterion)


def compare_rows(
    worse: Sequence[StoredSummary], better: Sequence[StoredSummary], criterion: Criterion
) -> Spread:
    """Compute how much worse plays are than others that met the same chance.

    Args:
        worse: Plays of one row.
        better: Those of the other.
        criterion: What they are compared by.

    Returns:
        The spread over the pairs; positive where *better* are.
    """
    return spread(_list_gaps(worse, better, criterion))


def label_of(row: Summary) -> Label:
    """Return which plays a row is about.

    Args:
        row: The row.
    """
    return row.optimizer, canonical(dict(row.setting))


def _list_gaps(
    worse: Sequence[StoredSummary], better: Sequence[StoredSummary], criterion: Criterion
) -> list[float]:
    return [
        criterion.to_loss(mine) - criterion.to_loss(theirs)
        for one, other in pair_plays(worse, better)
        if (mine := criterion.of(one)) is not None and (theirs := criterion.of(other)) is not None
    ]


def _rank(
    setting: Setting,
    rows: Sequence[Summary],
    plays: Mapping[Label, Sequence[StoredSummary]],
    criterion: Criterion,
) -> Ranking:
    ordered = sorted(rows, key=lambda row: row.loss)
    pairs = list(combinations(range(len(ordered)), 2))
    gaps = [
        _list_gaps(plays[label_of(ordered[worse])], plays[label_of(ordered[better])], criterion)
        for better, worse in pairs
    ]
    spreads = [spread(each) for each in gaps]
    sure = _reject([find_p_value(each.mean, each.std, each.count) for each in spreads])
    # Pairs with the best come first.
    places = [
        Place(
            row,
            "worse"
            if certain and behind.mean > 0
            else "equal"
            if each and not any(each)
            else "unclear",
            behind,
            float(np.mean(np.array(each) > 0)) if each else nan,
            each,
        )
        for row, each, behind, certain in zip(ordered[1:], gaps, spreads, sure, strict=False)
    ]
    return Ranking(setting, [Place(ordered[0], "best"), *places])


def _reject(chances: Sequence[float]) -> list[bool]:
    """Return which hypotheses are rejected together, by Holm's (1979) procedure."""
    rejected = [False] * len(chances)
    order = sorted(range(len(chances)), key=lambda place: chances[place])
    for done, place in enumerate(order):
        if chances[place] > (1 - CONFIDENCE) / (len(chances) - done):
            break
        rejected[place] = True
    return rejected
