"""Studies: a scenario's optimizers, settings and replications, played once each and kept."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sparq_sim
from sparq_sim.study import store
from sparq_sim.study.executors import (
    Batch,
    InProcess,
    PlayExecutor,
    Pooled,
    Processes,
    Step,
    Task,
    Work,
)
from sparq_sim.study.holdings import admit, infer_holdings, read_holdings, replaced
from sparq_sim.study.plan import Plan
from sparq_sim.study.progress import RunReport, Tally, Watch, count_plays
from sparq_sim.study.results import Results, note_left_out
from sparq_sim.study.store import Label, PlayId, Setting, Store, StoredSummary

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["Study"]


class Study:
    """All plays of a scenario, kept in a folder: what is there is not played again.

    Make it, `run` it, and look at its `results`; run it again to go on after an interruption. A
    folder without its scenario is opened by `Results.open`.
    """

    def __init__(self, scenario: Scenario, folder: Path | str, *, into: bool = False) -> None:
        """Plan the plays of a scenario; nothing is played or written yet.

        Args:
            scenario: What is played.
            folder: Where plays are kept; it need not be there yet.
            into: Whether the folder may hold other scenarios too; otherwise `run` refuses one
                that does.
        """
        identity = scenario.identity()
        self._plan = Plan.of_settings(scenario.settings(), identity=identity, title=scenario.title)
        self._scenario: Scenario | None = scenario
        self._into = into
        self.store = Store(folder)

    @classmethod
    def of(
        cls,
        settings: Sequence[tuple[Setting, Scenario]],
        folder: Path | str,
        *,
        identity: str,
        title: str = "",
    ) -> Study:
        """Return a study of scenarios that need not be those of one sweep, beside what is there.

        Args:
            settings: The values that tell them apart, by path, and the scenarios.
            folder: That of the study.
            identity: Twelve digits that stand for all of them, as by `Scenario.identity`.
            title: What to call it.
        """
        study = cls.__new__(cls)
        study._plan = Plan.of_settings(settings, identity=identity, title=title)
        study._scenario = None
        study._into = True
        study.store = Store(folder)
        return study

    @property
    def folder(self) -> Path:
        """The folder that plays are kept in."""
        return self.store.folder

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self._plan.title

    @property
    def scenarios(self) -> dict[Label, Scenario]:
        """What is played, by optimizer and setting."""
        return {name: recipe.scenario for name, recipe in self._plan.recipes.items()}

    @property
    def notes(self) -> Sequence[str]:
        """What a user should be told of the folder: files set aside, plays left out."""
        return tuple(self.store.notes)

    @property
    def results(self) -> Results:
        """The finished plays, for tables, curves and reports."""
        return Results(self.store, self.plays(), title=self.title)

    def plays(self) -> list[PlayId]:
        """List all plays, whether they are finished or not."""
        return self._plan.plays()

    def missing(self) -> list[PlayId]:
        """List the plays that are not finished."""
        return self._plan.unfinished(self.store.survey())

    # Playing

    def run(
        self, executor: PlayExecutor | Executor | None = None, *, watch: Watch | None = None
    ) -> RunReport:
        """Play what is missing; each play is kept as it finishes.

        Run it again to go on after an interruption of whatever kind. Where data are missing,
        unreadable or too short, nothing is played: see `Scenario.check_data`.

        Args:
            executor: Where plays are computed; by default, on all cores of this machine.
            watch: Called at the beginning and after each play.

        Returns:
            How many plays are finished, which are not, and what a user should be told.

        Raises:
            StoreError: The folder holds another scenario, or cannot be written.
            ExecutorError: Plays cannot be computed where they were sent.
            ScenarioError: Data that the scenario names cannot be played.
        """
        if self._scenario is not None:
            self._scenario.check_data()
        self.store.prepare()
        self._describe()
        plays = self.plays()
        found = self.store.survey(verify=[play.key for play in plays])
        self._set_aside(found)
        self._relabel(plays, found)
        missing = self._plan.unfinished(found)
        tally = Tally(len(plays), self.store.notes, watch)
        for key in {play.key for play in plays} - {play.key for play in missing}:
            tally.resume(found[key])
        del found
        tally.inform(None)
        if missing:
            with self.store.marked() as mark:
                self._play(missing, self._executor(executor, tally), mark, tally)
        return tally.report()

    def _play(
        self, plays: Sequence[PlayId], executor: PlayExecutor, mark: str, tally: Tally
    ) -> None:
        stuck: list[PlayId] = []
        pickles = _Pickles()
        work = Work(
            groups=self._plan.tasks(plays),
            pack=lambda tasks: Batch(
                str(self.folder.absolute()),
                mark,
                tuple(Step(each.play, pickles.of(each), each.code) for each in tasks),
            ),
            home=self.store,
        )
        # Closed at once, also by Ctrl-C: what has begun is finished, nothing else is started.
        with closing(executor.outcomes(work)) as outcomes:
            for outcome in outcomes:
                if outcome.status == "unreadable":
                    stuck.append(outcome.play)
                    continue
                if outcome.files is not None:
                    self.store.put(outcome.files)
                tally.take(outcome)
        if stuck:
            tally.notes.append(
                "workers cannot rebuild the scenario (is it made of things defined in a script "
                f"or a notebook?), so {len(stuck)} plays are computed in this process"
            )
            self._play(stuck, InProcess(), mark, tally)

    def _executor(self, executor: PlayExecutor | Executor | None, tally: Tally) -> PlayExecutor:
        if isinstance(executor, Executor):
            executor = Pooled(executor)
        executor = executor or Processes()
        if not isinstance(executor, InProcess):
            try:
                for scenario in self.scenarios.values():
                    pickle.dumps(scenario)
            except Exception as error:
                tally.notes.append(
                    "the scenario cannot be pickled, so all plays are computed in this process "
                    f"({type(error).__name__}: {error})"
                )
                return InProcess()
        return executor

    # What is in the folder already

    def _describe(self) -> None:
        """Write down what is played; a folder that holds something else is refused."""
        new = self._plan.holding()
        held = read_holdings(self.store) or infer_holdings(self.store)
        # What was begun there and has come to nothing is in nobody's way.
        others = admit(self.folder, held, new, into=self._into or self.store.empty)
        if unwritten := {path for play in new.plays for path in play["play"].get("unwritten", ())}:
            self.store.notes.append(
                f"{', '.join(sorted(unwritten))}: cannot be written to a file, so the plays may "
                "not be known again in another session"
            )
        described = {
            "format": store.FORMAT,
            "version": sparq_sim.__version__,
            **new.described(),
            "others": [each.described() for each in others],
        }
        store.write_whole(self.folder / store.SCENARIO, json.dumps(described, indent=1).encode())

    def _set_aside(self, found: dict[str, StoredSummary]) -> None:
        """Move plays out of the way that this study has too, by other code or parameters."""
        families = {recipe.family for recipe in self._plan.recipes.values()}
        others: dict[tuple[Label, str], list[str]] = {}
        for key, each in found.items():
            if each.play.family not in families:
                others.setdefault((each.label, each.play.family), []).append(key)
        reasons: dict[str, list[str]] = {}
        for (name, _), keys in others.items():
            if recipe := self._plan.recipes.get(name):
                told = self.store.provenance(keys[0])
                if why := replaced(told, recipe.scenario, recipe.optimizer):
                    reasons.setdefault(why, []).extend(keys)
        for why, keys in reasons.items():
            gone = self.store.retire(keys)
            for key in gone:
                del found[key]
            if gone:
                self.store.notes.append(f"set aside {count_plays(len(gone))}: {why}")
            if stay := len(keys) - len(gone):
                self.store.notes.append(
                    f"left out {count_plays(stay)} in compacted files, which hold others too: {why}"
                )
        told_of = sum(len(keys) for keys in reasons.values())
        note_left_out(self.store, sum(len(keys) for keys in others.values()) - told_of)

    def _relabel(self, plays: Sequence[PlayId], found: dict[str, StoredSummary]) -> None:
        """Bring up to date how plays are labelled that an earlier sweep has left."""
        labels: dict[str, Mapping[str, Any]] = {}
        for play in plays:
            there = found.get(play.key)
            if there and there.play != play:
                labels[play.key] = {"setting": dict(play.setting), "scenario": play.scenario}
                found[play.key] = replace(there, play=play)
        self.store.relabel(labels)


class _Pickles:
    """Pickled scenarios, each once while it is in use."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def of(self, task: Task) -> bytes:
        name = id(task.scenario)
        if name not in self._known:
            if len(self._known) >= 32:
                self._known.clear()
            self._known[name] = pickle.dumps(task.scenario)
        return self._known[name]
