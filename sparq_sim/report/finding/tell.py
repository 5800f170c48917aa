"""Telling: the sentences of a finding, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparq_sim.analysis.axis import find_axis
from sparq_sim.analysis.levels import Level
from sparq_sim.analysis.standings import Standings
from sparq_sim.report.finding.caveats import tell_caveats
from sparq_sim.report.finding.lead import tell_lead
from sparq_sim.report.finding.movement import tell_movement
from sparq_sim.report.finding.winners import tell_winners
from sparq_sim.report.finding.yardsticks import tell_levels, tell_price

__all__ = ["Finding", "tell_finding"]


@dataclass(frozen=True)
class Finding:
    """What a study shows."""

    sentence: str = ""
    """Who is best, by how much and how surely; of one optimizer, what the settings change."""
    more: Sequence[str] = ()
    """Further sentences: on reference levels, on prices, and on what makes all this uncertain."""

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join((self.sentence, *self.more))


def tell_finding(standings: Standings, levels: Sequence[Level] = ()) -> Finding:
    """Return, in words, what a study shows.

    Args:
        standings: Its rows, ranked.
        levels: What simple policies would get, as far as that is known.

    Returns:
        The finding; of a study without plays, that there is none.
    """
    if not standings.rows:
        return Finding("No play is finished yet, so there are no results.")
    if not standings.rankings:
        why = (
            "regret is below 0, which is impossible"
            if standings.criterion.is_regret
            else "no reward was observed"
        )
        return Finding(f"No optimizer can be called the best: {why}. See the notes.")
    first, *more = _tell_best(standings)
    more += [*tell_levels(standings, levels), *tell_price(standings), *tell_caveats(standings)]
    return Finding(first, more)


def _tell_best(standings: Standings) -> list[str]:
    """Return, in words, who is best, or what the settings change; in a sentence or two."""
    rankings = standings.rankings
    if len(rankings) == 1:
        return tell_lead(rankings[0])
    axis = find_axis([each.setting for each in rankings])
    names = [place.row.optimizer for each in rankings for place in each.places]
    if len(set(names)) > 1:
        return tell_winners(standings, axis)
    told = tell_movement(standings, names[0], axis)
    return [f"{told}."] if told else tell_lead(rankings[0])
