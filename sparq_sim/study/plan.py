"""Plans: which plays a study has, each optimizer in each setting once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import Task
from sparq_sim.study.folder_contents import Holding
from sparq_sim.study.store import Label, PlayId, Setting, StoredSummary, canonical
from sparq_sim.study.store.keys import list_plugins, name_code, name_family, name_play

__all__ = ["Plan", "Recipe"]


@dataclass(frozen=True)
class Recipe:
    """What the plays of one optimizer in one setting have in common."""

    scenario: Scenario
    """What is played, without a sweep."""
    optimizer: str
    """The name of the one that plays."""
    family: str
    """Names all that fixes the plays but seed and replication."""
    code: str
    """Names the code that computes them."""
    identity: str
    """Of the whole scenario, its sweep included."""
    setting: Setting
    """The swept values that make a difference to the optimizer."""

    def plays(self) -> Iterator[PlayId]:
        """Name the plays.

        Yields:
            One play a replication.
        """
        for replication in range(self.scenario.replications):
            yield PlayId(
                key=name_play(self.family, self.scenario.seed, replication),
                family=self.family,
                optimizer=self.optimizer,
                setting=self.setting,
                seed=self.scenario.seed,
                replication=replication,
                scenario=self.identity,
            )

    @property
    def landscape(self) -> str:
        """A hint on which plays share a landscape; workers compare the environments."""
        return repr((type(self.scenario.environment), self.scenario.environment))


@dataclass(frozen=True)
class Plan:
    """All that a study plays."""

    identity: str
    """Twelve digits that stand for the scenario with its sweep."""
    title: str
    """What the study is called."""
    recipes: Mapping[Label, Recipe]
    """What is played, by optimizer and setting."""

    @classmethod
    def of_settings(
        cls, settings: Sequence[tuple[Setting, Scenario]], *, identity: str, title: str
    ) -> Plan:
        """Return the plan of scenarios that are told apart by their settings.

        A swept value that makes no difference to an optimizer is left out of its setting.

        Args:
            settings: The values that tell the scenarios apart, by path, and the scenarios.
            identity: Stands for all of them, as by `Scenario.identity`.
            title: What the study is called.
        """
        kin: dict[tuple[str, str, str, int], list[tuple[Setting, Scenario]]] = {}
        for values, variant in _comparable(settings):
            for optimizer in variant.optimizers:
                fingerprint = variant.fingerprint(optimizer)
                used = list_plugins(variant, optimizer)
                family = name_family(optimizer, fingerprint, used)
                like = optimizer, family, name_code(used), variant.seed
                kin.setdefault(like, []).append((values, variant))
        recipes: dict[Label, Recipe] = {}
        for (optimizer, family, code, _), variants in kin.items():
            first, *others = (values for values, _ in variants)
            same = {
                path: value
                for path, value in first.items()
                if all(path in values and values[path] == value for values in others)
            }
            if (optimizer, canonical(same)) in recipes:
                same = dict(first)
            chosen = max((variant for _, variant in variants), key=lambda each: each.replications)
            recipe = Recipe(chosen, optimizer, family, code, identity, same)
            recipes[optimizer, canonical(same)] = recipe
        return cls(identity, title, recipes)

    def plays(self) -> list[PlayId]:
        """List all plays, each once."""
        plays = {play.key: play for recipe in self.recipes.values() for play in recipe.plays()}
        return list(plays.values())

    def unfinished(self, finished: Mapping[str, StoredSummary]) -> list[PlayId]:
        """List the plays that are missing, or recorded less fully than planned.

        Args:
            finished: What is stored, by key.
        """
        full = {name for name, each in self.recipes.items() if each.scenario.record == "full"}
        return [
            play
            for play in self.plays()
            if (there := finished.get(play.key)) is None
            or (there.record != "full" and play.label in full)
        ]

    def tasks(self, plays: Sequence[PlayId], *, laws: bool = False) -> deque[deque[Task]]:
        """Return what is to be computed, in groups that share a landscape.

        Args:
            plays: Those of the plan that are to be computed.
            laws: Whether the laws of plays are checked.
        """
        hints = {name: recipe.landscape for name, recipe in self.recipes.items()}
        groups: dict[tuple[str, int, int], deque[Task]] = {}
        for play in plays:
            recipe = self.recipes[play.label]
            shared = hints[play.label], play.seed, play.replication
            task = Task(play, recipe.scenario, recipe.code, laws)
            groups.setdefault(shared, deque()).append(task)
        return deque(groups.values())

    def holding(self) -> Holding:
        """Return the plan as a folder describes what it holds."""
        plays: list[dict[str, Any]] = [
            {
                "family": recipe.family,
                "optimizer": recipe.optimizer,
                "setting": recipe.setting,
                "seed": recipe.scenario.seed,
                "replications": recipe.scenario.replications,
                "levels": recipe.scenario.levels,
                "play": recipe.scenario.fingerprint(recipe.optimizer),
            }
            for recipe in self.recipes.values()
        ]
        return Holding(self.identity, self.title, plays)


def _comparable(
    settings: Sequence[tuple[Setting, Scenario]],
) -> Iterator[tuple[Setting, Scenario]]:
    """Convert the values of one path to one type, so that they make a column."""
    columns: dict[str, list[object]] = {}
    for values, _ in settings:
        for path, value in values.items():
            columns.setdefault(path, []).append(value)
    casts = {path: _cast(column) for path, column in columns.items()}
    for values, variant in settings:
        yield {path: casts[path](value) for path, value in values.items()}, variant


def _cast(column: Sequence[object]) -> Callable[[Any], object]:
    kinds = {type(value) for value in column}
    if kinds in ({bool}, {int}, {str}):
        return kinds.pop()
    if kinds <= {int, float}:
        return float
    return lambda value: value if isinstance(value, str) else canonical(value)
