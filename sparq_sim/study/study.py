"""Studies: a scenario's optimizers, settings and replications, played once each and kept."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sparq_sim.limits import MOST_PLAYS
from sparq_sim.simulation.play import refuse_real
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
from sparq_sim.study.executors.holding import hold_signals
from sparq_sim.study.executors.limit import LIMIT, check_limit
from sparq_sim.study.folder_claim import admit_into, claim
from sparq_sim.study.plan import Plan
from sparq_sim.study.progress import RunCounter, RunReport, Watch
from sparq_sim.study.results import Results
from sparq_sim.study.store import FolderStore, Label, PlayId, PlayStore, Setting, StoreError

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

__all__ = ["Study"]


class Study:
    """All plays of a scenario, kept in a folder: what is there is not played again.

    Make it, `run` it, and look at its `results`; run it again to go on after an interruption. A
    folder without its scenario is opened by `Results.open`.
    """

    def __init__(
        self,
        scenario: Scenario,
        folder: Path | str | PlayStore,
        *,
        into: bool = False,
        most_plays: int = MOST_PLAYS,
    ) -> None:
        """Plan the plays of a scenario; nothing is played or written yet.

        Args:
            scenario: What is played.
            folder: Where plays are kept: a folder, which need not be there yet, or another store.
            into: Whether the folder may hold other scenarios too; otherwise `run` refuses one
                that does.
            most_plays: How many plays there may be.

        Raises:
            ScenarioError: A setting makes no valid scenario, or there are more plays.
        """
        scenario.check_plays(most_plays)
        plan = Plan.of_settings(
            scenario.settings(), identity=scenario.identity(), title=scenario.title
        )
        self._begin(plan, folder, into=into)
        self._scenario: Scenario | None = scenario

    @classmethod
    def of(
        cls,
        settings: Sequence[tuple[Setting, Scenario]],
        folder: Path | str | PlayStore,
        *,
        identity: str,
        title: str = "",
    ) -> Study:
        """Return a study of scenarios that need not be those of one sweep, beside what is there.

        Args:
            settings: The values that tell them apart, by path, and the scenarios.
            folder: Where plays are kept: a folder, or another store.
            identity: Twelve digits that stand for all of them, as by `Scenario.identity`.
            title: What to call it.
        """
        study = cls.__new__(cls)
        study._begin(Plan.of_settings(settings, identity=identity, title=title), folder, into=True)
        study._scenario = None
        return study

    def _begin(self, plan: Plan, folder: Path | str | PlayStore, *, into: bool) -> None:
        self._plan = plan
        self._into = into
        self.store = FolderStore(folder) if isinstance(folder, str | Path) else folder
        self.notes: list[str] = self.store.notes if isinstance(self.store, FolderStore) else []

    @property
    def folder(self) -> Path:
        """The folder that plays are kept in."""
        return self.results.folder

    @property
    def title(self) -> str:
        """The title of the scenario."""
        return self._plan.title

    @property
    def scenarios(self) -> dict[Label, Scenario]:
        """What is played, by optimizer and setting."""
        return {name: recipe.scenario for name, recipe in self._plan.recipes.items()}

    @property
    def results(self) -> Results:
        """The finished plays, for tables, curves and reports."""
        return Results(self.store, self.plays(), title=self.title)

    def plays(self) -> list[PlayId]:
        """List all plays, whether they are finished or not."""
        return self._plan.plays()

    def missing(self) -> list[PlayId]:
        """List the plays that are not finished."""
        return self._plan.unfinished(self.store.finished())

    def check_folder(self) -> None:
        """Refuse a folder that holds another scenario, as `run` does; nothing is written.

        Raises:
            StoreError: The folder holds another scenario, or cannot be read.
        """
        if isinstance(self.store, FolderStore):
            admit_into(self.store, self._plan, into=self._into)

    def run(
        self,
        executor: PlayExecutor | Executor | None = None,
        *,
        watch: Watch | None = None,
        laws: bool = False,
        limit: float | None = LIMIT,
    ) -> RunReport:
        """Play what is missing; each play is kept as it finishes.

        Run it again to go on after an interruption of whatever kind. Where data are missing,
        unreadable or too short, nothing is played: see `Scenario.check_data`.

        Args:
            executor: Where plays are computed; by default, on all cores of this machine.
            watch: Called at the beginning and after each play.
            laws: Whether each play that is computed is checked against the laws that every play
                must obey; one that breaks a law fails and is not kept.
            limit: Seconds of real time that a play may take, from when a worker begins it; one
                that takes longer is ended, and has failed. None or 0 for no limit.

        Returns:
            How many plays are finished, which are not, and what a user should be told.

        Raises:
            StoreError: The folder holds another scenario, or cannot be written.
            ExecutorError: Plays cannot be computed where they were sent.
            ScenarioError: Data that the scenario names cannot be played.
            LiveOnlyError: Something real takes part; nothing is played.
        """
        limit = check_limit(limit)
        for recipe in self._plan.recipes.values():
            refuse_real(recipe.scenario.prepare(recipe.optimizer))
        if self._scenario is not None:
            self._scenario.check_data()
        if isinstance(self.store, FolderStore):
            finished = claim(self.store, self._plan, into=self._into)
        else:
            finished = dict(self.store.finished())
        plays, missing = self.plays(), self._plan.unfinished(finished)
        counter = RunCounter(len(plays), self.notes, watch)
        for key in {play.key for play in plays} - {play.key for play in missing}:
            counter.resume(finished[key])
        del finished
        counter.inform(None)
        if missing:
            with _marked(self.store) as mark:
                chosen = _choose(executor, self.scenarios.values(), self.notes)
                self._play(missing, chosen, mark, counter, limit=limit, laws=laws)
        return counter.report()

    def _play(
        self,
        plays: Sequence[PlayId],
        executor: PlayExecutor,
        mark: str,
        counter: RunCounter,
        *,
        laws: bool,
        limit: float | None,
    ) -> None:
        stuck: list[PlayId] = []
        pickles = _Pickles()
        home = self.store if isinstance(self.store, FolderStore) else None
        work = Work(
            groups=self._plan.tasks(plays, laws=laws),
            pack=lambda tasks: Batch(
                str(home.folder.absolute()) if home else None,
                mark,
                tuple(Step(each.play, pickles.of(each), each.code, each.laws) for each in tasks),
            ),
            home=home,
            limit=limit,
        )
        # Closed at once, also by Ctrl-C: what has begun is finished, nothing else is started.
        with closing(executor.outcomes(work)) as outcomes:
            for outcome in outcomes:
                if outcome.status == "unreadable":
                    stuck.append(outcome.play)
                    continue
                if outcome.files is not None:
                    with hold_signals():
                        self.store.keep(outcome.files)
                counter.take(outcome)
        if stuck:
            self.notes.append(
                "workers cannot rebuild the scenario (is it made of things defined in a script "
                f"or a notebook?), so {len(stuck)} plays are computed in this process"
            )
            self._play(stuck, InProcess(), mark, counter, limit=limit, laws=laws)


def _choose(
    executor: PlayExecutor | Executor | None, scenarios: Iterable[Scenario], notes: list[str]
) -> PlayExecutor:
    """Return where to play; what cannot be pickled is played in this process, which is noted."""
    if isinstance(executor, Executor):
        executor = Pooled(executor)
    executor = executor or Processes()
    if not isinstance(executor, InProcess):
        try:
            for scenario in scenarios:
                pickle.dumps(scenario)
        except Exception as error:
            notes.append(
                "the scenario cannot be pickled, so all plays are computed in this process "
                f"({type(error).__name__}: {error})"
            )
            return InProcess()
    return executor


@contextmanager
def _marked(store: PlayStore) -> Iterator[str]:
    """Mark a folder, so that workers know whether they see it; other stores they never see."""
    if isinstance(store, FolderStore):
        try:
            with store.put_mark() as mark:
                yield mark
        finally:
            # Workers that were killed have left files that are not whole.
            with suppress(StoreError):
                store.prepare()
    else:
        yield ""


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
