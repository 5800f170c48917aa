"""Contrasts: what a swept setting, a price or an expert changes, paired by replications.

Long because all comparisons share how plays are paired and what their differences tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Literal, TypeAlias

import numpy as np

from sparq_sim.analysis.criteria import REGRET, Criterion, choose_criterion
from sparq_sim.analysis.pairs import pair_plays
from sparq_sim.analysis.prices import BreakEven, break_even
from sparq_sim.analysis.summary import (
    AnalysisError,
    Spread,
    finite,
    group,
    spread,
)
from sparq_sim.errors import did_you_mean
from sparq_sim.study.settings import (
    Setting,
    agree,
    find_path,
    find_value,
    format_value,
    list_paths,
    list_values,
)
from sparq_sim.study.store import Label, StoredSummary, canonical

__all__ = [
    "Contrast",
    "Verdict",
    "compare_at_price",
    "compare_values",
    "compare_without",
    "contrast",
    "find_cheapest",
    "find_linked_paths",
    "find_unpaired",
    "read_loss_and_spending",
]

Verdict: TypeAlias = Literal["better", "worse", "equal", "unclear"]
"""What the 95 % interval of a difference says."""


@dataclass(frozen=True)
class Contrast:
    """How much more the plays of an *optimizer* in a *setting* come to than others.

    What plays come to is their average regret, plus what a *price* makes of what they spend; or,
    where the best reward is not known, their mean reward, minus that.
    """

    optimizer: str
    """Name of the optimizer."""
    setting: Setting
    """Swept values of the plays, by path."""
    against: object
    """With what it is compared: a value of a swept path, an optimizer, or an expert left out."""
    price: float
    """Of a unit of cost, in units of regret or reward."""
    here: float
    """Mean over the pairs."""
    there: float
    """The same of what it is compared with."""
    difference: Spread
    """Of the pairs: here minus there."""
    better: float
    """Share of the pairs in which it is better."""
    break_even: BreakEven
    """At which price both would come to the same."""
    path: str | None = None
    """The swept one of which *against* is a value, if it is one."""
    rows: frozenset[Label] = frozenset()
    """Those of summaries that are compared."""
    criterion: Criterion = REGRET
    """What is compared."""

    @property
    def loss(self) -> Spread:
        """How much worse it is than what it is compared with: below 0 where it is better."""
        return -self.difference if self.criterion.more_is_better else self.difference

    @property
    def verdict(self) -> Verdict:
        """What the 95 % interval of the difference says."""
        if self.loss.low == self.loss.high == 0:
            return "equal"
        if self.loss.high < 0:
            return "better"
        return "worse" if self.loss.low > 0 else "unclear"

    def flat(self) -> dict[str, object]:
        """Return one row of a table: names of columns and their values.

        What is unknown is None, and so is the end of a range of prices that has none.
        """
        numbers = asdict(self.difference)
        row: dict[str, object] = {
            "optimizer": self.optimizer,
            **self.setting,
            "path": self.path,
            "against": self.against,
            "price": self.price,
            "here": self.here,
            "there": self.there,
            "difference": numbers["mean"],
            **{f"difference_{name}": numbers[name] for name in ("std", "low", "high")},
            "pairs": self.difference.count,
            "better": self.better,
            "verdict": self.verdict,
            "break_even": self.break_even.price,
            "break_even_ranges": [[low, finite(high)] for low, high in self.break_even.ranges],
        }
        if not self.criterion.is_regret:
            row["criterion"] = self.criterion.name
        return {name: finite(value) for name, value in row.items()}


# Along a swept path


def compare_values(
    found: Sequence[StoredSummary],
    path: str,
    *,
    against: object = None,
    price: float = 0.0,
    best_seen: bool = False,
) -> list[Contrast]:
    """Compare each value of a swept *path* with one of them, all else being equal.

    Paths that are swept side by side with this one (`way = "zip"`) go along with it.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        path: In full, or its last words.
        against: The value to compare with; if not given, the smallest, or of words the first in
            the alphabet.
        price: Of a unit of cost, in units of regret.
        best_seen: Whether to compare regret against the best reward seen in each play, where the
            best reward is not known.

    Returns:
        A contrast for each row with another value.

    Raises:
        SparqError: The path is not swept, has one value only or never that value.
        AnalysisError: No two settings differ by this path alone, or no two replications can be
            paired.
    """
    _check_price(price)
    criterion = _choose_criterion(found, best_seen=best_seen)
    path = find_path(path, list_paths(play.setting for play in found))
    values = list_values((play.setting for play in found), path)
    if len(values) < 2:
        raise AnalysisError(f"{path} has one value only, {values[0]}: there is nothing to compare")
    reference = values[0] if against is None else find_value(against, values, path)
    concerned = [row for row in group(found).values() if path in row[0].setting]
    made = []
    for rows in _apart_from(path, concerned):
        base = [row for row in rows if canonical(row[0].setting[path]) == canonical(reference)]
        for row in rows:
            if base and row is not base[0]:
                made.append(
                    contrast(
                        row,
                        base[0],
                        against=reference,
                        price=price,
                        path=path,
                        criterion=criterion,
                    )
                )
    if not made:
        raise AnalysisError(_without_partners(concerned, path, reference))
    return _with_pairs(made)


def _without_partners(rows: Sequence[Sequence[StoredSummary]], path: str, reference: object) -> str:
    """Explain why no row can be compared with that of the *reference*."""
    settings = [row[0].setting for row in rows]
    moving = {path, *find_linked_paths([row[0] for row in rows], path)}
    others = [
        p for p in list_paths(settings) if p not in moving and len(list_values(settings, p)) > 1
    ]
    told = f"nothing was played both at {path} = {format_value(reference)} and at another value"
    if not others:
        return f"{told}; run the study to its end, or choose another value by --against"
    return (
        f"{told}, all else being equal: {', '.join(others)} "
        f'{"changes" if len(others) == 1 else "change"} as well; sweep with way = "grid", or ask '
        f"--between {others[0]}"
    )


def find_linked_paths(found: Sequence[StoredSummary], path: str) -> list[str]:
    """Find the paths that are swept side by side with a *path*: its value decides theirs.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        path: A swept path, in full.

    Returns:
        The other paths, in full; none where the sweep is a grid.
    """
    settings = [play.setting for play in found if path in play.setting]
    moving = []
    for other in list_paths(settings):
        pairs = {(canonical(s[path]), canonical(s[other])) for s in settings if other in s}
        mine, theirs = ({pair[i] for pair in pairs} for i in (0, 1))
        if other != path and len(pairs) == len(mine) and len(theirs) > 1:
            moving.append(other)
    return moving


def _apart_from(
    path: str, rows: Sequence[list[StoredSummary]]
) -> Iterable[list[list[StoredSummary]]]:
    """Group rows that differ by the *path*, and what goes along with it, alone."""
    moving = {path, *find_linked_paths([row[0] for row in rows], path)}
    groups: dict[tuple[str, str], list[list[StoredSummary]]] = {}
    for row in rows:
        rest = {key: value for key, value in row[0].setting.items() if key not in moving}
        groups.setdefault((row[0].optimizer, canonical(rest)), []).append(row)
    return groups.values()


# At a price


def compare_at_price(
    found: Sequence[StoredSummary],
    price: float,
    *,
    against: str | None = None,
    best_seen: bool = False,
) -> list[Contrast]:
    """Compare optimizers by regret plus *price*, each with one of them, in each setting.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        price: Of a unit of cost, in units of regret.
        against: The optimizer to compare with; if not given, the one that spends least, and of
            equals the one with least regret, or most reward.
        best_seen: Whether to compare regret against the best reward seen in each play, where the
            best reward is not known.

    Returns:
        A contrast for each row of another optimizer.

    Raises:
        AnalysisError: There is one optimizer only, none has this name, or no two replications can
            be paired.
    """
    _check_price(price)
    names = list(dict.fromkeys(play.optimizer for play in found))
    if against is not None and against not in names:
        raise AnalysisError(f"no optimizer is called {against!r}: {did_you_mean(against, names)}")
    if len(names) < 2:
        has = f"only {names[0]!r}" if names else "none"
        raise AnalysisError(
            f"--price alone compares two or more optimizers, and the study has {has}; "
            "use it with --between FIELD or --without EXPERT"
        )
    criterion = _choose_criterion(found, best_seen=best_seen)
    reference = find_cheapest(found, best_seen=best_seen)[0] if against is None else against
    rows = list(group(found).values())
    return _with_pairs(
        contrast(row, base, against=reference, price=price, criterion=criterion)
        for row in rows
        for base in rows
        if row[0].optimizer != reference == base[0].optimizer
        and agree(row[0].setting, base[0].setting)
    )


def find_cheapest(found: Sequence[StoredSummary], *, best_seen: bool = False) -> list[str]:
    """Find the optimizers that spend least per round.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        best_seen: Whether to compare regret against the best reward seen in each play, where the
            best reward is not known.

    Returns:
        Their names, the one with least regret, or most reward, first; several where they spend the
        same.
    """
    criterion = _choose_criterion(found, best_seen=best_seen)
    numbers: dict[str, list[tuple[float, float]]] = {}
    for play in found:
        if (told := read_loss_and_spending(play, criterion)) is not None:
            numbers.setdefault(play.optimizer, []).append((told[1], told[0]))
    means = {name: tuple(np.mean(column, axis=0)) for name, column in numbers.items()}
    ordered = sorted(means, key=lambda name: means[name])
    return [name for name in ordered if means[name][0] == means[ordered[0]][0]] or [
        found[0].optimizer
    ]


# With and without an expert


def compare_without(
    found: Sequence[StoredSummary],
    without: Sequence[StoredSummary],
    expert: str,
    *,
    price: float = 0.0,
    best_seen: bool = False,
) -> list[Contrast]:
    """Compare plays with an *expert* and the same plays without it.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        without: Those of the study that `sparq_sim.study.ablation.plan_without` makes.
        expert: Its name.
        price: Of a unit of cost, in units of regret.
        best_seen: Whether to compare regret against the best reward seen in each play, where the
            best reward is not known.

    Returns:
        A contrast for each row that was played on both sides.

    Raises:
        AnalysisError: No two replications can be paired.
    """
    _check_price(price)
    criterion = _choose_criterion([*found, *without], best_seen=best_seen)
    others = list(group(without).values())
    return _with_pairs(
        contrast(row, other, against=f"without {expert}", price=price, criterion=criterion)
        for row in group(found).values()
        for other in others
        if row[0].optimizer == other[0].optimizer and agree(row[0].setting, other[0].setting)
    )


# Of two rows


def contrast(
    first: Sequence[StoredSummary],
    second: Sequence[StoredSummary],
    *,
    against: object,
    price: float = 0.0,
    path: str | None = None,
    criterion: Criterion = REGRET,
) -> Contrast:
    """Compare plays with others of the same seeds and replications.

    Args:
        first: Plays of one optimizer in one setting.
        second: Those to compare with.
        against: What the second ones are called in the result.
        price: Of a unit of cost, in units of regret.
        path: The swept path of which *against* is a value, if it is one.
        criterion: What is compared.

    Returns:
        The contrast; its numbers are NaN where no two plays can be paired.
    """
    pairs = [
        (mine, theirs)
        for one, other in pair_plays(first, second)
        if (mine := read_loss_and_spending(one, criterion)) is not None
        and (theirs := read_loss_and_spending(other, criterion)) is not None
    ]
    numbers = np.array(pairs).reshape(-1, 2, 2)
    unit = max(price, 1.0)  # In which squares do not overflow, whatever the price.
    totals = numbers @ np.array([1.0, price]) / unit
    here, there = totals.mean(axis=0) * unit if len(totals) else (np.nan, np.nan)
    gaps = totals[:, 0] - totals[:, 1]
    sign = criterion.to_loss(1.0)
    return Contrast(
        optimizer=first[0].optimizer,
        setting={**second[0].setting, **first[0].setting},
        against=against,
        price=price,
        here=sign * float(here),
        there=sign * float(there),
        difference=_times(spread((sign * gaps).tolist()), unit),
        better=float((gaps < 0).mean()) if len(gaps) else np.nan,
        break_even=break_even(numbers[:, 0] - numbers[:, 1]),
        path=path,
        rows=frozenset((first[0].label, second[0].label)),
        criterion=criterion,
    )


def _times(gap: Spread, unit: float) -> Spread:
    mean, std, low, high = (number * unit for number in (gap.mean, gap.std, gap.low, gap.high))
    return Spread(mean, std, low, high, gap.count)


def find_unpaired(
    found: Sequence[StoredSummary], contrasts: Sequence[Contrast]
) -> list[StoredSummary]:
    """Find the rows that could be compared with no other.

    Args:
        found: Plays of a study, as `Results.finished` lists them.
        contrasts: What was compared.

    Returns:
        The first play of each row that is in no contrast.
    """
    compared = frozenset[Label]().union(*(each.rows for each in contrasts))
    return [row[0] for name, row in group(found).items() if name not in compared]


def read_loss_and_spending(play: StoredSummary, criterion: Criterion) -> tuple[float, float] | None:
    """Return the regret of a play, or minus its reward, and what it spent per round, if known.

    Args:
        play: Any.
        criterion: What is to be low, or high.
    """
    number, spent = criterion.of(play), play.measures["spent"]
    rounds = play.measures["rounds"]
    if number is None or spent is None or not rounds:
        return None
    return criterion.to_loss(number), spent / rounds


def _choose_criterion(found: Sequence[StoredSummary], *, best_seen: bool) -> Criterion:
    """Choose what is compared; refuse where no play has a reward."""
    criterion = choose_criterion(found, best_seen=best_seen)
    if not criterion.is_regret and all(criterion.of(play) is None for play in found):
        raise AnalysisError("no reward was observed in any play: there is nothing to compare")
    return criterion


def _check_price(price: float) -> None:
    if not (isfinite(price) and price >= 0):
        raise AnalysisError(f"the price is {price}; give a finite number, 0 or more")


def _with_pairs(contrasts: Iterable[Contrast]) -> list[Contrast]:
    """Leave out what has nothing to pair; refuse where all have too little for an interval."""
    made = [each for each in contrasts if each.difference.count]
    if all(each.difference.count < 2 for each in made):
        raise AnalysisError(
            "an interval needs two replications that were played with the same seed on both "
            f"sides, and there is {'one' if made else 'none'}: run the study with more, as by "
            "--set replications=8"
        )
    return made
