"""Yardsticks: who does worse than simple policies would, and who is best at which price."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite

from sparq_sim.analysis.axis import find_axis
from sparq_sim.analysis.levels import Level, find_levels
from sparq_sim.analysis.prices import PRICE_FIELDS
from sparq_sim.analysis.standings import Place, Standings
from sparq_sim.analysis.summary import Summary
from sparq_sim.report.phrases import count_all, format_number, join_names, quote
from sparq_sim.report.uncertainty import find_interval

__all__ = ["tell_levels", "tell_price"]

_POLICIES = {"fixed": "the best fixed point", "uniform": "points drawn at random"}
"""Those that are told, by the fields of `Levels`."""
_MOST_NAMED = 3
"""Optimizers that are named in a sentence; of more, they are counted."""


def tell_levels(standings: Standings, levels: Sequence[Level]) -> list[str]:
    """Return, in words, who does worse than the best fixed point, and than points drawn at random.

    Worse is whose whole interval is; of few plays, whose mean is.

    Args:
        standings: The rows of the study, ranked.
        levels: What simple policies would get; may be none.

    Returns:
        A sentence for each policy that somebody does worse than, or all do better than.
    """
    told = [_tell_level(field, standings, levels) for field in _POLICIES]
    return [each for each in told if each]


def _tell_level(field: str, standings: Standings, levels: Sequence[Level]) -> str:
    heights: set[float] = set()
    seen, worse, better = Counter[str](), Counter[str](), Counter[str]()
    for ranking in standings.rankings:
        height = find_levels(levels, ranking.setting).get(field)
        if height is None:
            continue
        heights.add(height)
        for row in (place.row for place in ranking.places):
            low, high = _find_ends(row)
            seen[row.optimizer] += 1
            worse[row.optimizer] += low > height
            better[row.optimizer] += high < height
    policy = _POLICIES[field]
    if len(heights) == 1:
        policy += f" ({format_number(heights.pop())})"
    if seen and seen == worse:
        return f"{'Even the best' if len(seen) > 1 else quote(*seen)} does worse than {policy}."
    if seen and seen == better and field == "fixed":
        who = quote(*seen) if len(seen) == 1 else "Every optimizer"
        several = len(standings.rankings)
        where = f" in {count_all(several, 'settings')}" if several > 1 else ""
        return f"{who} does better than {policy}{where}."
    kept = [name for name in seen if not worse[name]]
    always = [name for name in seen if worse[name] == seen[name]]
    if len(kept) == 1 and len(always) == len(seen) - 1 > 1:
        return f"All but {quote(*kept)} do worse than {policy}."
    return _name_worse({name: (worse[name], seen[name]) for name in seen if worse[name]}, policy)


def _name_worse(worse: Mapping[str, tuple[int, int]], policy: str) -> str:
    """Return, in words, who does worse, and in how many settings if not in all."""
    always = [name for name, (count, seen) in worse.items() if count == seen]
    parts: list[str] = []
    if always:
        named = len(always) <= _MOST_NAMED
        who = join_names(always) if named else f"{len(always)} optimizers"
        parts.append(f"{who} {'does' if len(always) == 1 else 'do'} worse than {policy}")
    rest = [name for name in worse if name not in always]
    for name in rest[:_MOST_NAMED]:
        what = "" if parts else f" does worse than {policy}"
        parts.append(f"{quote(name)}{what} in {worse[name][0]} of {worse[name][1]} settings")
    return f"{', '.join(parts)}." if parts else ""


def _find_ends(row: Summary) -> tuple[float, float]:
    """Return between which numbers the mean of a row lies; of few plays, the mean itself."""
    low, high = find_interval(row.judged, positive=row.criterion.from_zero)
    return (low, high) if isfinite(low) else (row.judged.mean, row.judged.mean)


def tell_price(standings: Standings) -> list[str]:
    """Return, in words, who is best below and above the break-even price, where one is swept.

    Args:
        standings: The rows of the study, ranked.

    Returns:
        A sentence; none where no price is swept, or the best changes to and fro.
    """
    rankings = standings.rankings
    axis = find_axis([each.setting for each in rankings])
    if axis is None or not axis.is_numeric or axis.path.rpartition(".")[2] not in PRICE_FIELDS:
        return []
    if any(not each.rivals for each in rankings):
        return []
    best = [min(each.places, key=_add_spending).row.optimizer for each in rankings]
    counting = f"Counting a unit of cost as a unit of {standings.criterion.word}"
    changes = [place for place in range(1, len(best)) if best[place] != best[place - 1]]
    if not changes:
        return [f"{counting}, {quote(best[0])} is best at every {axis.name} in the mean."]
    if len(changes) > 1:
        return []
    before, after = (axis.describe(rankings[changes[0] - k].setting) for k in (1, 0))
    return [
        f"{counting}, {quote(best[0])} is best in the mean up to {before}, and {quote(best[-1])} "
        f"from {after} on: the break-even price lies between."
    ]


def _add_spending(place: Place) -> float:
    """Return the regret of a round, or minus its reward, and what is spent in it."""
    row = place.row
    return row.loss + (row.spent.mean / row.rounds if row.rounds else 0.0)
