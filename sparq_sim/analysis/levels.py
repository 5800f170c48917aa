"""Reference levels of a scenario: what simple policies would get in each of its settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.randomness import Streams
from sparq_sim.simulation.references import (
    References,
    WatchLevels,
    compute_references,
    count_worlds,
)
from sparq_sim.study.settings import Setting, agree

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["Level", "Levels", "compute_levels", "find_levels", "note_estimates"]

_COMPARED_POINTS = 16
"""At which two landscapes are compared."""


@dataclass(frozen=True)
class Levels:
    """Average regrets of simple policies with full knowledge, over the worlds of replications.

    A world is the landscape of a replication. Where an environment draws no random numbers, all
    replications have one world.
    """

    uniform: float
    """That of points drawn uniformly from the domain: mean over the worlds."""
    fixed: float
    """That of the one point of each world which is best in hindsight, played in all rounds."""
    late: float
    """That of the optimum of one round before, in expectation where several points tie."""
    uniform_std: float = 0.0
    """Standard deviation of the worlds; NaN where one of several was looked at."""
    fixed_std: float = 0.0
    """The same for the best fixed point."""
    late_std: float = 0.0
    """The same for one round late."""
    worlds: int = 1
    """How many worlds were looked at."""
    different_worlds: int = 1
    """How many there are; 1 where all replications have the same."""
    estimated_from: str = ""
    """How many rounds, points and worlds were evaluated, where a budget did not suffice for all."""


Level: TypeAlias = tuple[Setting, Levels]
"""A swept setting, and the reference levels in it."""


def compute_levels(
    scenario: Scenario,
    *,
    replications: Sequence[int] | None = None,
    known: dict[str, Levels] | None = None,
    watch: WatchLevels | None = None,
    whole: bool = False,
) -> list[Level]:
    """Compute the reference levels of a scenario, one for each setting with other landscapes.

    Args:
        scenario: What is played; where its `levels` is false, there are no levels.
        replications: Numbers of those whose worlds count; by default, all that are planned.
        known: Levels computed before, by landscapes and rounds; new ones are added to it, so that
            nothing is computed twice.
        watch: Called with the progress of each computation, as by `compute_references`.
        whole: Whether all rounds and worlds are evaluated, whatever the environment allows.

    Returns:
        The first setting of each environment, and its levels.
    """
    known = {} if known is None else known
    found: dict[str, Level] = {}
    for setting, one in scenario.settings():
        rules, environment = one.rules, one.environment
        numbers = list(range(one.replications)) if replications is None else list(replications)
        world = repr((environment, one.seed, rules.period, rules.most_rounds, numbers, whole))
        if not one.levels or world in found:
            continue
        if world not in known:
            times = [t * rules.period for t in range(1, rules.most_rounds + 1)]
            known[world] = _Worlds(environment, one.seed, times).compute(
                numbers, budget=None if whole else environment.level_evaluations, watch=watch
            )
        found[world] = setting, known[world]
    return list(found.values())


class _Worlds:
    """The landscapes that an environment has in the replications of a seed, at some *times*."""

    def __init__(self, environment: Environment, seed: int, times: Sequence[float]) -> None:
        self._environment = environment
        self._seed = seed
        self._times = times

    def compute(
        self, numbers: Sequence[int], *, budget: int | None, watch: WatchLevels | None
    ) -> Levels:
        """Compute the levels of the replications with these *numbers*, which share the budget."""
        found: list[References] = []
        different, most = 1, 1
        for number in numbers:
            if len(found) == most:
                break
            rng = Streams(self._seed, number).generator("environment")
            untouched = repr(rng.bit_generator.state)
            with open_landscape(self._environment, rng=rng) as landscape:
                drawn = repr(rng.bit_generator.state) != untouched
                if not found and (drawn or self._differs(landscape, numbers[1:2])):
                    different = most = len(numbers)
                    if budget is not None:
                        domain, rounds = landscape.domain, len(self._times)
                        most = min(different, count_worlds(domain, rounds, budget))
                        budget //= most
                told = None if watch is None else _part_of(watch, len(found), most)
                found.append(compute_references(landscape, self._times, budget=budget, watch=told))
        return _average(found, different)

    def _differs(self, landscape: Landscape, others: Sequence[int]) -> bool:
        """Return whether another world has other rewards, though no number was drawn for it.

        An environment may draw from a copy of the generator, against its contract.
        """
        points = landscape.domain.cover(_COMPARED_POINTS)[:_COMPARED_POINTS]
        moments = (self._times[0], self._times[len(self._times) // 2], self._times[-1])
        for number in others:
            with open_landscape(self._environment, self._seed, number) as other:
                for time in moments:
                    mine, theirs = (each.rewards(points, time) for each in (landscape, other))
                    if not np.array_equal(mine, theirs, equal_nan=True):
                        return True
        return False


def _part_of(watch: WatchLevels, before: int, worlds: int) -> WatchLevels:
    """Return what tells the progress of one world as that of all."""
    return lambda done, total: watch(before * total + min(done, total), worlds * total)


def _average(found: Sequence[References], different: int) -> Levels:
    numbers = np.array([(each.uniform, each.fixed, each.late) for each in found])
    uniform, fixed, late = numbers.mean(axis=0).tolist()
    stds = [0.0 if different == 1 else nan] * 3
    if len(found) > 1:
        stds = numbers.std(axis=0, ddof=1).tolist()
    part = len(found) < different
    where = f"{len(found)} of {different} worlds" if part else f"each of {different} worlds"
    told = found[0].estimated_from
    if told and different > 1:
        told = f"{told} in {where}"
    elif part:
        told = where
    return Levels(
        uniform=uniform,
        fixed=fixed,
        late=late,
        uniform_std=stds[0],
        fixed_std=stds[1],
        late_std=stds[2],
        worlds=len(found),
        different_worlds=different,
        estimated_from=told,
    )


def find_levels(levels: Sequence[Level], setting: Setting) -> dict[str, float]:
    """Return the levels in a setting, by the names of the fields of `Levels`.

    Args:
        levels: Those of the settings of a study.
        setting: Swept values; those that it lacks are averaged over.

    Returns:
        Means over the levels that agree with the setting; none where there is none, or where it is
        not known.
    """
    known = [level for where, level in levels if agree(where, setting)]
    means = {
        name: float(np.mean([getattr(level, name) for level in known]))
        for name in ("uniform", "fixed", "late")
        if known
    }
    return {name: mean for name, mean in means.items() if isfinite(mean)}


def note_estimates(levels: Iterable[Levels]) -> list[str]:
    """Return a note for each way in which levels were estimated from a part of rounds or worlds.

    Args:
        levels: Those of the settings of a study; equal notes are given once.
    """
    return [
        f"reference levels are estimated from {told}"
        for told in dict.fromkeys(level.estimated_from for level in levels)
        if told
    ]
