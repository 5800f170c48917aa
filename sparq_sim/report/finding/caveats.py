"""Caveats: what makes a finding uncertain, each in a short sentence."""

from __future__ import annotations

from collections.abc import Iterable

from sparq_sim.analysis.intervals import FEWEST
from sparq_sim.analysis.standings import Standings
from sparq_sim.report.phrases import count_things, format_number, join_names

__all__ = ["tell_caveats"]

_MOST_NAMED = 3
"""Optimizers that are named; of more, they are counted."""


def tell_caveats(standings: Standings) -> list[str]:
    """Return, in words, how little is certain: few plays, stuck or ended early, rows left out.

    Args:
        standings: The rows of a study, ranked.

    Returns:
        A sentence for each; none where all is well.
    """
    planned, done = sum(standings.planned.values()), len(standings.found)
    rows = [place.row for ranking in standings.rankings for place in ranking.places]
    told = []
    if done < planned:
        told.append(f"Only {done} of {planned} plays are finished.")
    if impossible := [row.optimizer for row in standings.rows if row.impossible]:
        who = _names(impossible)
        told.append(f"{who} cannot be ranked: regret below 0 is impossible, see the notes.")
    most = max(row.judged.count for row in rows)
    if 1 < most < FEWEST:
        told.append(f"With at most {most} plays each, this is a first look: play more.")
    elif most == 1 and len(standings.rankings) > 1:
        told.append("With one play each, chance may have decided: play more.")
    stuck = {id(row): row for row in rows if row.stuck > 0}.values()
    if stuck and standings.criterion.is_regret:
        count = sum(round(row.stuck * row.plays) for row in stuck)
        played = sum(row.plays for row in stuck)
        who = _names(row.optimizer for row in stuck)
        told.append(
            f"{count} of {count_things(played, 'play')} of {who} stuck, so means and intervals "
            "there may be far off."
        )
    early = {id(row): row for row in rows if row.ended_early}.values()
    if early:
        count = sum(row.ended_early for row in early)
        played = sum(row.plays for row in early)
        who = _names(row.optimizer for row in early)
        lasted = format_number(sum(row.rounds * row.plays for row in early) / played)
        told.append(
            f"{count} of {count_things(played, 'play')} of {who} ended early, after {lasted} "
            "rounds in the mean."
        )
    return told


def _names(names: Iterable[str]) -> str:
    unique = list(dict.fromkeys(names))
    return (
        join_names(unique) if len(unique) <= _MOST_NAMED else count_things(len(unique), "optimizer")
    )
