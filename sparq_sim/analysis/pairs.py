"""Pairs: two optimizers compared replication by replication, where both meet the same chance."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from sparq_sim.analysis.criteria import REGRET, Criterion, choose_criterion
from sparq_sim.analysis.summary import AnalysisError, Spread, group, spread
from sparq_sim.errors import did_you_mean
from sparq_sim.study.results import Results
from sparq_sim.study.settings import Setting, agree
from sparq_sim.study.store import StoredSummary

__all__ = ["Difference", "compare_optimizers", "pair_plays"]


@dataclass(frozen=True)
class Difference:
    """How much more *a* comes to than *b* when both meet the same chance.

    What they come to is their average regret; where the best reward is not known, their mean
    reward, or their regret against the best seen.
    """

    a: str
    """Name of the first optimizer."""
    b: str
    """Name of the second optimizer."""
    setting: Setting
    """Swept values at which both played."""
    difference: Spread
    """That of *a* minus that of *b*, over the paired replications."""
    better: float
    """Share of replications in which *a* is better than *b*."""
    criterion: Criterion = REGRET
    """What is compared."""

    @property
    def gain(self) -> Spread:
        """By how much *a* is better than *b*: positive where it is."""
        return self.difference if self.criterion.more_is_better else -self.difference


def compare_optimizers(
    study: Results, a: str, b: str, *, best_seen: bool = False
) -> list[Difference]:
    """Compare two optimizers, replication by replication, in each setting that both played.

    Common chance cancels, so the interval is narrower than that of two separate means. A setting
    that makes no difference to one of them is compared with each of the other's.

    Args:
        study: A study with finished plays.
        a: Name of the first optimizer.
        b: Name of the second optimizer.
        best_seen: Whether to compare regret against the best reward seen in each play, where the
            best reward is not known.

    Returns:
        One difference per setting; settings without a common replication are left out.

    Raises:
        AnalysisError: The study has no plays of an optimizer with one of these names.
        SparqError: Regret against the best seen is wished for, and all plays know the best.
    """
    found = study.finished()
    criterion = choose_criterion(found, best_seen=best_seen)
    names = {each.optimizer for each in found}
    for name in (a, b):
        if name not in names:
            raise AnalysisError(f"no optimizer is called {name!r}: {did_you_mean(name, names)}")
    groups = group(found)
    compared = []
    for first in (plays for plays in groups.values() if plays[0].optimizer == a):
        for second in (plays for plays in groups.values() if plays[0].optimizer == b):
            if agree(first[0].setting, second[0].setting):
                compared.append(_difference(first, second, criterion))
    return [each for each in compared if each.difference.count]


def _difference(
    first: Sequence[StoredSummary], second: Sequence[StoredSummary], criterion: Criterion
) -> Difference:
    gaps = [
        mine - theirs
        for one, other in pair_plays(first, second)
        if (mine := criterion.of(one)) is not None and (theirs := criterion.of(other)) is not None
    ]
    return Difference(
        a=first[0].optimizer,
        b=second[0].optimizer,
        setting={**second[0].setting, **first[0].setting},
        difference=spread(gaps),
        better=float(np.mean([criterion.to_loss(gap) < 0 for gap in gaps])) if gaps else nan,
        criterion=criterion,
    )


def pair_plays(
    first: Iterable[StoredSummary], second: Iterable[StoredSummary]
) -> list[tuple[StoredSummary, StoredSummary]]:
    """Pair plays that met the same chance: those with the same seed and replication.

    Args:
        first: Plays of one optimizer in one setting.
        second: Plays of another optimizer or setting.

    Returns:
        A pair for each play of *first* that has a partner in *second*, in the order of *first*.
    """
    theirs = {(play.seed, play.replication): play for play in second}
    return [
        (play, theirs[play.seed, play.replication])
        for play in first
        if (play.seed, play.replication) in theirs
    ]
