"""Studies: a scenario's optimizers, settings and replications, played once each and kept."""

from __future__ import annotations

import json
import pickle
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

import sparq_sim
from sparq_sim.study import store
from sparq_sim.study.executors import (
    InProcess,
    Order,
    Outcome,
    Play,
    PlayExecutor,
    Pooled,
    Processes,
    Work,
)
from sparq_sim.study.holdings import Holding, admit, replaced
from sparq_sim.study.store import Found, Store, StoredPlay, StoreError, Values

if TYPE_CHECKING:
    from sparq_sim.scenario.model import Scenario

_NUMBERS = re.compile(r"(?<!\S)[-+.\d][-+.\de]*")
"""Numbers that stand alone, in which warnings of several plays may differ."""
Label: TypeAlias = tuple[str, str]
"""An optimizer, and its swept setting as canonical JSON: what a row of a table is about."""


def _mixed(found: Iterable[Found]) -> bool:
    """Tell whether plays of one name come from unlike scenarios."""
    kin: dict[Label, set[str]] = {}
    for each in found:
        kin.setdefault((each.optimizer, store.canonical(each.setting)), set()).add(each.family)
    return any(len(families) > 1 for families in kin.values())


def _order(play: Play) -> tuple[str, tuple[tuple[str, bool, float, str], ...]]:
    """Order plays by optimizer and setting, numbers by their size."""
    values = sorted(play.setting.items())
    return play.optimizer, tuple(
        (path, False, float(value), "")
        if isinstance(value, int | float)
        else (path, True, 0.0, store.canonical(value))
        for path, value in values
    )


def label(play: Play | Found) -> Label:
    """Give the row of a table that a play belongs to."""
    return play.optimizer, store.canonical(play.setting)


def _plays(count: int) -> str:
    return "1 play" if count == 1 else f"{count} plays"


@dataclass(frozen=True)
class Trouble:
    """A play that did not finish, and why."""

    play: Play
    reason: str


@dataclass(frozen=True)
class Progress:
    """How far a run has come."""

    done: int
    total: int
    resumed: int
    """How many of those done had been finished before this run."""
    failed: int
    elapsed: float
    notes: Sequence[str]
    """What a user should be told: files set aside, a scenario that cannot be sent to workers."""
    last: Play | None
    sums: Mapping[Label, tuple[int, float]] = field(repr=False)
    """How many plays there are of each optimizer and setting, and the sum of average regrets."""

    @property
    def average_regrets(self) -> dict[Label, float]:
        """Means over the plays finished so far, of each optimizer and setting."""
        return {name: total / count for name, (count, total) in self.sums.items()}

    @property
    def rate(self) -> float:
        """Plays a second, in this run."""
        return (self.done - self.resumed + self.failed) / self.elapsed if self.elapsed else 0.0

    @property
    def remaining(self) -> float | None:
        """Seconds to go, at the rate so far; None while there is none."""
        left = self.total - self.done - self.failed
        return left / self.rate if self.rate else None


@dataclass(frozen=True)
class Report:
    """What a run has come to."""

    done: int
    resumed: int
    elapsed: float
    troubles: tuple[Trouble, ...]
    notes: tuple[str, ...]


Watch: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True)
class _Recipe:
    """What the plays of one optimizer in one setting have in common."""

    scenario: Scenario
    optimizer: str
    family: str
    code: str
    identity: str
    """Of the whole scenario, its sweep included."""
    setting: Values

    @property
    def landscape(self) -> str:
        """A hint on which plays share a landscape; workers compare the environments."""
        return repr((type(self.scenario.environment), self.scenario.environment))

    def plays(self) -> Iterator[Play]:
        for replication in range(self.scenario.replications):
            key = store.key(self.family, self.scenario.seed, replication)
            yield Play(
                key=key,
                optimizer=self.optimizer,
                setting=self.setting,
                replication=replication,
                seed=self.scenario.seed,
                family=self.family,
                code=self.code,
                scenario=self.identity,
            )


class Study:
    """All plays of a *scenario*, kept in a *folder*: what is there is not played again.

    A folder that holds another scenario is refused by `run`, unless *into* says that both are
    meant to be there. `Study.open` gives a study for looking at a folder without its scenario.
    """

    def __init__(
        self, scenario: Scenario | None, folder: Path | str, *, into: bool = False
    ) -> None:
        self.folder = Path(folder)
        self.store = Store(folder)
        self._into = into
        self._identity = scenario.identity() if scenario is not None else ""
        self._scenario = scenario
        self._recipes = (
            _recipes(scenario.settings(), self._identity) if scenario is not None else {}
        )
        self._title = scenario.title if scenario is not None else ""
        self._opened: list[Play] | None = None

    @classmethod
    def open(cls, folder: Path | str, *, begun: bool = False) -> Study:
        """Open the study in a folder: the finished plays of the scenario last run there.

        One that has *begun* and finished no play yet is opened only where that is asked for.

        They may come from several machines, seeds and numbers of replications. Plays of other
        scenarios or versions in the same folder are left out, which `notes` says.
        """
        study = cls(None, folder)
        described = study._described()
        found = study.store.survey()
        if not found and not (begun and described):
            raise StoreError(f"there is no finished play in {study.folder}")
        families = {play["family"] for held in described[:1] for play in held.plays}
        if not families and _mixed(found.values()):
            raise StoreError(
                f"{study.folder} holds plays of several scenarios, and no {store.SCENARIO} says "
                "which belong together: run the scenario there, or keep them in folders apart"
            )
        chosen = [each for each in found.values() if not families or each.family in families]
        study._leave_out(len(found) - len(chosen))
        if described and described[0].incomplete():
            study.store.notes.append(
                "these plays of a list of settings do not say what the swept fields were that "
                "their setting does not name, so unlike settings may be taken for one: run the "
                "study again before comparing them"
            )
        study._title = described[0].title if described else ""
        study._opened = sorted(
            (
                Play(
                    key=each.key,
                    optimizer=each.optimizer,
                    setting=each.setting,
                    replication=each.replication,
                    seed=each.seed,
                    family=each.family,
                    code="",  # It has been played.
                    scenario=each.scenario,
                )
                for each in chosen
            ),
            key=lambda play: (*_order(play), play.seed, play.replication),
        )
        return study

    @classmethod
    def of(
        cls,
        settings: Sequence[tuple[Mapping[str, object], Scenario]],
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
        study = cls(None, folder, into=True)
        study._identity, study._title = identity, title
        study._recipes = _recipes(settings, identity)
        return study

    @property
    def scenarios(self) -> dict[Label, Scenario]:
        """What is played, by optimizer and setting; nothing in an opened study."""
        return {name: recipe.scenario for name, recipe in self._recipes.items()}

    @property
    def title(self) -> str:
        """The scenario's."""
        return self._title

    @property
    def notes(self) -> Sequence[str]:
        """What a user should be told of the folder: files set aside, plays left out."""
        return tuple(self.store.notes)

    @property
    def warnings(self) -> Sequence[str]:
        """What the finished plays have warned of, each once."""
        warned = _Warned()
        for found in self.found():
            warned.add(found.warnings)
        return warned.told()

    # What there is to play

    def plays(self) -> list[Play]:
        """List all plays; in an opened study, those that are finished."""
        if self._opened is not None:
            return list(self._opened)
        plays = {play.key: play for recipe in self._recipes.values() for play in recipe.plays()}
        return list(plays.values())

    def missing(self) -> list[Play]:
        """List the plays that are not finished."""
        return self._unfinished(self.store.survey())

    def found(self) -> list[Found]:
        """List what is known of this study's finished plays without reading their rounds."""
        finished = self.store.survey()
        return [finished[play.key] for play in self.plays() if play.key in finished]

    def _unfinished(self, found: Mapping[str, Found]) -> list[Play]:
        full = {name for name, recipe in self._recipes.items() if recipe.scenario.record == "full"}
        return [
            play
            for play in self.plays()
            if (there := found.get(play.key)) is None
            or (there.record != "full" and label(play) in full)
        ]

    # Playing

    def run(
        self, executor: PlayExecutor | Executor | None = None, *, watch: Watch | None = None
    ) -> Report:
        """Play what is missing, by default on all cores; each play is kept as it finishes.

        Run it again to go on after an interruption of whatever kind. *watch* is called at the
        beginning and after each play. Where data are missing, unreadable or too short, nothing is
        played: see `Scenario.check_data`.
        """
        if not self._recipes:
            raise StoreError("a study opened without its scenario cannot be run")
        if self._scenario is not None:
            self._scenario.check_data()
        self.store.prepare()
        self._describe()
        plays = self.plays()
        found = self.store.survey(verify=[play.key for play in plays])
        self._set_aside(found)
        self._relabel(plays, found)
        missing = self._unfinished(found)
        tally = _Tally(len(plays), self.store.notes, watch)
        for key in {play.key for play in plays} - {play.key for play in missing}:
            tally.resume(found[key])
        del found
        tally.tell(None)
        if missing:
            with self.store.marked() as mark:
                self._play(missing, self._executor(executor, tally), mark, tally)
        return tally.report()

    def _set_aside(self, found: dict[str, Found]) -> None:
        """Move plays out of the way that this study has too, by other code or parameters."""
        families = {recipe.family for recipe in self._recipes.values()}
        others: dict[tuple[Label, str], list[str]] = {}
        for key, each in found.items():
            if each.family not in families:
                others.setdefault((label(each), each.family), []).append(key)
        reasons: dict[str, list[str]] = {}
        for (name, _), keys in others.items():
            if recipe := self._recipes.get(name):
                told = self.store.provenance(keys[0])
                if why := replaced(told, recipe.scenario, recipe.optimizer):
                    reasons.setdefault(why, []).extend(keys)
        for why, keys in reasons.items():
            gone = self.store.retire(keys)
            for key in gone:
                del found[key]
            if gone:
                self.store.notes.append(f"set aside {_plays(len(gone))}: {why}")
            if stay := len(keys) - len(gone):
                self.store.notes.append(
                    f"left out {_plays(stay)} in compacted files, which hold others too: {why}"
                )
        told_of = sum(len(keys) for keys in reasons.values())
        self._leave_out(sum(len(keys) for keys in others.values()) - told_of)

    def _leave_out(self, count: int) -> None:
        if count:
            self.store.notes.append(
                f"left out {_plays(count)} of other scenarios, optimizers, settings or versions in "
                f"{self.folder}"
            )

    def _relabel(self, plays: Sequence[Play], found: dict[str, Found]) -> None:
        """Bring up to date how plays are labelled that an earlier sweep has left."""
        labels: dict[str, dict[str, Any]] = {}
        for play in plays:
            there = found.get(play.key)
            now: dict[str, Any] = {"setting": dict(play.setting), "scenario": play.scenario}
            if there and now != {"setting": there.setting, "scenario": there.scenario}:
                labels[play.key] = now
                found[play.key] = replace(there, **now)
        self.store.relabel(labels)

    def _play(
        self, plays: Sequence[Play], executor: PlayExecutor, mark: str, tally: _Tally
    ) -> None:
        stuck: list[Play] = []
        packed = _Packed()
        work = Work(
            groups=self._groups(plays),
            scenario=lambda play: self._recipes[label(play)].scenario,
            order=lambda some: Order(
                str(self.folder.absolute()),
                mark,
                tuple((play, packed.of(self._recipes[label(play)])) for play in some),
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

    def _executor(self, executor: PlayExecutor | Executor | None, tally: _Tally) -> PlayExecutor:
        if isinstance(executor, Executor):
            executor = Pooled(executor)
        executor = executor or Processes()
        if not isinstance(executor, InProcess):
            try:
                for recipe in self._recipes.values():
                    pickle.dumps(recipe.scenario)
            except Exception as error:
                tally.notes.append(
                    "the scenario cannot be pickled, so all plays are computed in this process "
                    f"({type(error).__name__}: {error})"
                )
                return InProcess()
        return executor

    def _groups(self, plays: Sequence[Play]) -> deque[deque[Play]]:
        """Put together what shares a landscape."""
        hints = {name: recipe.landscape for name, recipe in self._recipes.items()}
        groups: dict[tuple[str, int, int], deque[Play]] = {}
        for play in plays:
            shared = hints[label(play)], play.seed, play.replication
            groups.setdefault(shared, deque()).append(play)
        return deque(groups.values())

    # The description of what is played

    def _describe(self) -> None:
        """Write down what is played; a folder that holds something else is refused."""
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
            for recipe in self._recipes.values()
        ]
        new = Holding(self._identity, self._title, plays)
        held = self._described() or self._undescribed()
        # What was begun there and has come to nothing is in nobody's way.
        others = admit(self.folder, held, new, into=self._into or self.store.empty)
        if unwritten := {path for play in plays for path in play["play"].get("unwritten", ())}:
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

    def _described(self) -> list[Holding]:
        """List the scenarios that the folder is said to hold, the one last run first."""
        path = self.folder / store.SCENARIO
        if not path.is_file():
            return []
        try:
            described: dict[str, Any] = json.loads(path.read_bytes())
            held = [Holding.read(each) for each in (described, *described.get("others", ()))]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.store.set_aside(path, f"it cannot be read ({type(error).__name__}: {error})")
            return []
        store.check_format(described.get("format"), f"{path} tells of plays")
        return held

    def _undescribed(self) -> list[Holding]:
        """List the scenarios of which there are plays."""
        firsts = {each.family: key for key, each in self.store.survey().items()}
        held: dict[str, list[store.Provenance]] = {}
        for key in firsts.values():
            told = self.store.provenance(key)
            held.setdefault(told.get("scenario", ""), []).append(told)
        return [Holding(name, plays[0]["title"], plays) for name, plays in held.items()]

    # Reading

    def read(self, play: Play | str) -> StoredPlay:
        """Read one play back, with its provenance."""
        return self.store.read(play if isinstance(play, str) else play.key)

    def table(self, what: store.Kind = "rounds") -> pa.Table:
        """Give the rounds or the replies of all finished plays as one Arrow table."""
        if what not in store.KINDS:
            raise StoreError(f"there is no table {what!r}; there are: {', '.join(store.KINDS)}")
        found = self.found()
        if what == "replies" and any(each.record != "full" for each in found):
            raise StoreError("replies were not recorded; run the scenario with record = 'full'")
        tables = [self.store.table(what, each.key) for each in found]
        if not tables:
            raise StoreError(f"there is no finished play in {self.folder}")
        schema = store.unified([table.schema for table in tables])
        return pa.concat_tables([store.conformed(table, schema) for table in tables])

    def compact(self) -> None:
        """Merge the many small files into one of rounds and one of replies."""
        self.store.compact()


class _Packed:
    """Pickled scenarios, each once while it is in use."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def of(self, recipe: _Recipe) -> bytes:
        name = id(recipe.scenario)
        if name not in self._known:
            if len(self._known) >= 32:
                self._known.clear()
            self._known[name] = pickle.dumps(recipe.scenario)
        return self._known[name]


class _Warned:
    """What plays have warned of; texts that differ by numbers alone are one."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[str, int]] = {}

    def add(self, texts: Sequence[str]) -> None:
        """Add the warnings of one more play."""
        for kind, text in {_NUMBERS.sub("#", text): text for text in texts}.items():
            first, count = self._texts.get(kind, (text, 0))
            self._texts[kind] = first, count + 1

    def told(self) -> list[str]:
        """Return each once, with the number of plays that it came from."""
        return [
            text if count == 1 else f"{text} (in {count} plays)"
            for text, count in self._texts.values()
        ]


@dataclass
class _Tally:
    """Counts what a run has come to."""

    total: int
    notes: list[str]
    watch: Watch | None
    resumed: int = 0
    done: int = 0
    troubles: list[Trouble] = field(default_factory=list)
    began: float = field(default_factory=perf_counter)
    sums: dict[Label, tuple[int, float]] = field(default_factory=dict)
    warned: _Warned = field(default_factory=_Warned)

    def resume(self, found: Found) -> None:
        self.resumed += 1
        self.warned.add(found.warnings)
        self._add(label(found), found.measures["average_regret"])

    def take(self, outcome: Outcome) -> None:
        self.warned.add(outcome.warnings)
        if outcome.status == "done":
            self._add(label(outcome.play), outcome.average_regret)
        else:
            self.troubles.append(Trouble(outcome.play, outcome.message))
        self.tell(outcome.play)

    def _add(self, name: Label, average_regret: float | None) -> None:
        self.done += 1
        if average_regret is not None:
            count, total = self.sums.get(name, (0, 0.0))
            self.sums[name] = count + 1, total + average_regret

    def tell(self, play: Play | None) -> None:
        if self.watch is not None:
            self.watch(
                Progress(
                    done=self.done,
                    total=self.total,
                    resumed=self.resumed,
                    failed=len(self.troubles),
                    elapsed=perf_counter() - self.began,
                    sums=self.sums,
                    notes=tuple(self.notes),
                    last=play,
                )
            )

    def report(self) -> Report:
        return Report(
            done=self.done,
            resumed=self.resumed,
            elapsed=perf_counter() - self.began,
            troubles=tuple(self.troubles),
            notes=(*self.notes, *self.warned.told()),
        )


# From a scenario to plays


def _recipes(
    settings: Sequence[tuple[Mapping[str, object], Scenario]], identity: str
) -> dict[Label, _Recipe]:
    """Give what is to be played in the *settings* of a scenario, each once.

    A swept value that makes no difference to an optimizer is left out of its setting.
    """
    kin: dict[tuple[str, str, str, int], list[tuple[Values, Scenario]]] = {}
    for values, variant in _comparable(settings):
        for optimizer in variant.optimizers:
            fingerprint = variant.fingerprint(optimizer)
            used = store.plugins_used(variant, optimizer)
            name = store.family(optimizer, fingerprint, used)
            like = optimizer, name, store.code(used), variant.seed
            kin.setdefault(like, []).append((values, variant))
    recipes: dict[Label, _Recipe] = {}
    for (optimizer, name, code, _), variants in kin.items():
        first, *others = (values for values, _ in variants)
        same = {
            path: value
            for path, value in first.items()
            if all(path in values and values[path] == value for values in others)
        }
        if (optimizer, store.canonical(same)) in recipes:
            same = dict(first)
        chosen = max((variant for _, variant in variants), key=lambda each: each.replications)
        recipe = _Recipe(chosen, optimizer, name, code, identity, same)
        recipes[optimizer, store.canonical(same)] = recipe
    return recipes


def _comparable(
    settings: Sequence[tuple[Mapping[str, object], Scenario]],
) -> Iterator[tuple[Values, Scenario]]:
    """Give the values of one path one type, so that they make a column."""
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
    return lambda value: value if isinstance(value, str) else store.canonical(value)
