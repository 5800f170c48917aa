"""Reference levels of a scenario: what simple policies would get in each of its settings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.references import References, WatchLevels, compute_references
from sparq_sim.study.settings import Setting

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["Level", "compute_levels", "note_estimates"]

Level: TypeAlias = tuple[Setting, References]
"""A swept setting, and the reference levels in it."""


def compute_levels(
    scenario: Scenario,
    *,
    known: dict[str, References] | None = None,
    watch: WatchLevels | None = None,
) -> list[Level]:
    """Compute the reference levels of a scenario, one for each setting with another landscape.

    Args:
        scenario: What is played; where its `levels` is false, there are no levels.
        known: Levels computed before, by landscape and rounds; new ones are added to it, so that
            nothing is computed twice.
        watch: Called with the progress of each computation, as by `compute_references`.

    Returns:
        The first setting of each landscape, and its levels.
    """
    known = {} if known is None else known
    found: dict[str, Level] = {}
    for setting, one in scenario.settings():
        rules, environment = one.rules, one.environment
        world = repr((environment, one.seed, rules.period, rules.most_rounds))
        if not one.levels or world in found:
            continue
        if world not in known:
            times = [t * rules.period for t in range(1, rules.most_rounds + 1)]
            budget = environment.level_evaluations
            with open_landscape(environment, one.seed) as landscape:
                known[world] = compute_references(landscape, times, budget=budget, watch=watch)
        found[world] = setting, known[world]
    return list(found.values())


def note_estimates(levels: Iterable[References]) -> list[str]:
    """Return a note for each way in which levels were estimated from a part of the rounds.

    Args:
        levels: Those of the settings of a study; equal notes are given once.
    """
    return [
        f"reference levels are estimated from {told}"
        for told in dict.fromkeys(level.estimated_from for level in levels)
        if told
    ]
