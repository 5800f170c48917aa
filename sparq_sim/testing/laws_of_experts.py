"""Laws of experts: one answers what it is asked, in time of the clock, and keeps no state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar
from warnings import catch_warnings, simplefilter

from pydantic import ValidationError

from sparq_sim.errors import HookError, PluginError
from sparq_sim.plugin.briefing import Briefing, SourceTerms
from sparq_sim.plugin.environment import Environment
from sparq_sim.plugin.expert import Answering, Expert
from sparq_sim.plugin.expert_results import read_accounts, read_meters
from sparq_sim.plugin.hooks import EXPERT_HOOKS
from sparq_sim.plugin.registry import load
from sparq_sim.simulation.clock.expert_clock import NotAwaitedWarning
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.play import Experts, play
from sparq_sim.simulation.records import Fate
from sparq_sim.simulation.rules import Rules
from sparq_sim.simulation.trace import METER, Trace, first_difference
from sparq_sim.testing.blocking import record_blocking_calls
from sparq_sim.testing.law import Law, UncheckedError, make_law
from sparq_sim.testing.laws_of_plugins import (
    enter,
    hook_laws,
    model_laws,
    resource_laws,
    usability_law,
)
from sparq_sim.testing.samples import Asker, Slope

__all__ = ["choose_environment", "expert_laws"]

_ROUNDS = 12
"""Of a play that tries an expert."""
_READ: Mapping[str, Callable[[str, Any, float], object]] = {
    "meters": read_meters,
    "accounts": read_accounts,
}
"""What reads the books of an expert."""


def expert_laws(
    expert: Expert,
    environment: Environment | str | None = None,
    *,
    others: Experts | None = None,
) -> Iterator[Law]:
    """Yield the laws of experts.

    Args:
        expert: Whose laws they are.
        environment: What it is asked about, or the name of an installed one, as "plume"; by
            default a small one.
        others: Experts that it asks, by name.

    Yields:
        Laws in an order in which each comes after those that it rests on.
    """
    trial = _ExpertTrial(expert, choose_environment(environment), others or {})
    yield from model_laws(expert)
    yield (starts := make_law(expert, "starts", trial.find_start_error))
    hooks = hook_laws(expert, lambda: trial.started, EXPERT_HOOKS, starts)
    yield from hooks.values()
    yield from resource_laws(expert, trial, trial.start, starts, may_await=True)
    books = [
        make_law(
            expert,
            f"{name} gives {given}, and the same when it is called again",
            partial(trial.find_wrong_books, name),
            hooks[name],
        )
        for name, given in trial.books.items()
        if name in hooks
    ]
    yield from books
    bases = (starts, hooks["spelling"], *books)
    usable = usability_law(expert, lambda: trial.started, EXPERT_HOOKS, *bases)
    whole = f"takes part in a play of {_ROUNDS} rounds"
    yield (whole_plays := make_law(expert, whole, trial.find_play_error, usable))
    remedy = "`await world.clock.sleep(...)`"
    yield (
        plays := make_law(
            expert, "awaits every wait", trial.find_forgotten_await, whole_plays, remedy=remedy
        )
    )
    yield make_law(
        expert, "blocks nobody", trial.find_blocking_calls, plays, remedy=trial.describe_remedies
    )
    for batch in trial.batches:
        sound = f"answers an Estimate of {batch} finite values, measured by now"
        yield make_law(expert, sound, partial(trial.find_invalid_answer, batch), plays)
    if "broadcast" in hooks:
        sent = "broadcasts Estimates of finite values, measured by now"
        yield make_law(expert, sent, trial.find_invalid_broadcast, plays, hooks["broadcast"])
    yield make_law(expert, f"answers at least once in {_ROUNDS} rounds", trial.find_silence, plays)
    same = "the same play gives the same answers"
    chance = "chance from world.rng only, state from start"
    yield make_law(expert, same, trial.find_unequal_plays, plays, remedy=chance)
    if books:
        same = "the same play gives the same meters and accounts"
        yield make_law(expert, same, trial.find_unequal_books, plays, remedy=chance)
    yield make_law(expert, "keeps no state on the model", trial.find_changed_model, plays)


def choose_environment(given: Environment | str | None) -> Environment:
    """Return the environment that an expert is asked about.

    Args:
        given: An environment; or the name of one, which is made with its defaults; or None for a
            small one.

    Raises:
        PluginError: No environment has that name, or a field of it has no default.
    """
    if given is None:
        return Slope()
    if not isinstance(given, str):
        return given
    model = load("environment", given)
    try:
        return model()
    except ValidationError as error:
        raise PluginError(
            f"environment {given!r} has no default for: "
            f"{', '.join(str(each['loc'][0]) for each in error.errors() if each['loc'])}; "
            f"give {model.__name__}(…) in place of its name"
        ) from error


@dataclass
class _ExpertTrial:
    """An expert, played with twice for each size of a query."""

    expert: Expert
    environment: Environment
    others: Experts
    batches: ClassVar = (1, 4)
    books: ClassVar = {
        "meters": "finite numbers or NaN, by name",
        "accounts": "tables of columns of equal length, by name",
    }
    """What the optional hooks of an expert that keeps books give."""
    blocks: dict[str, str] = field(default_factory=dict)
    """What it was seen to do in real time while it answered, by the remedy."""
    before: Expert | None = None
    holds: bool = False
    """Whether what answers is a context manager."""

    def start(self) -> object:
        """Start the expert anew."""
        with open_landscape(self.environment, 1) as landscape:
            domain = landscape.domain
        names = [*self.others, "expert"]
        briefing = Briefing(domain, experts=dict.fromkeys(names, SourceTerms()))
        return self.expert.start(briefing)

    @cached_property
    def started(self) -> Answering:
        """What answers, outside of a play."""
        source: Answering = enter(self, "expert", self.start(), may_await=True)
        return source

    @cached_property
    def _traces(self) -> dict[int, list[Trace]]:
        self.before = self.expert.model_copy(deep=True)
        return {batch: [self._play(batch) for _ in range(2)] for batch in self.batches}

    def _play(self, batch: int) -> Trace:
        with record_blocking_calls() as blocks, _refuse_unawaited():
            trace = play(
                Asker(batch=batch),
                self.environment,
                Rules(rounds=_ROUNDS),
                experts={**self.others, "expert": self.expert},
                seed=3,
            )
        self.blocks |= blocks
        return trace

    def find_start_error(self) -> object:
        """Start the expert, and let errors through."""
        return None if self.started is not None else "None"

    def find_play_error(self) -> object:
        """Play, and let errors through."""
        return None if self.find_forgotten_await() or self._traces else "no play"

    def find_forgotten_await(self) -> object:
        """Return the wait that it does not await, if there is one."""
        try:
            return None if self._traces else "no play"
        except NotAwaitedWarning as warning:
            return warning

    def find_blocking_calls(self) -> object:
        """Return the calls that block others in real time, if there are any."""
        return [*self.blocks.values()] or None

    def describe_remedies(self) -> str:
        """Return what to do instead of what blocks others."""
        return "; ".join(self.blocks)

    def _outcomes(self, batch: int, *, own: bool) -> tuple[set[str], list[str]]:
        """Return fates and reasons of its answers, or of its *own* broadcasts."""
        replies = self._traces[batch][0].replies
        rows = (replies["source"] == "expert") & ((replies["asker"] == "expert") == own)
        reasons = {str(reason) for reason in replies["reason"][rows] if reason}
        return set(map(str, replies["fate"][rows])), sorted(reasons)

    def find_invalid_answer(self, batch: int) -> object:
        """Return why answers to queries of *batch* points are invalid, if some are."""
        fates, reasons = self._outcomes(batch, own=False)
        return reasons if Fate.INVALID in fates else None

    def find_invalid_broadcast(self) -> object:
        """Return why readings that it sent are invalid, if some are."""
        fates, reasons = self._outcomes(1, own=True)
        return reasons if Fate.INVALID in fates else None

    def find_silence(self) -> object:
        """Return the fates of all queries, if none was answered."""
        for batch in self.batches:
            fates, _ = self._outcomes(batch, own=False)
            if Fate.ANSWERED not in fates:
                return sorted(fates)
        return None

    def find_unequal_plays(self) -> object:
        """Return the digests of two plays that should be the same, if they differ."""
        for traces in self._traces.values():
            digests = [_split_books(trace)[0].digest() for trace in traces]
            if len(set(digests)) > 1:
                return digests
        return None

    def find_wrong_books(self, name: str) -> object:
        """Return what is wrong with its meters or accounts at the beginning of a play."""
        if getattr(self.started, name, None) is None:
            raise UncheckedError(f"there is no {name}")
        try:
            shown = [repr(_READ[name]("expert", self.started, 0.0)) for _ in range(2)]
        except HookError as error:
            return error
        return None if shown[0] == shown[1] else shown

    def find_unequal_books(self) -> object:
        """Return how meters and accounts of two plays that should be the same differ, if so."""
        for traces in self._traces.values():
            difference = first_difference(*(_split_books(trace)[1] for trace in traces))
            if difference is not None:
                return difference
        return None

    def find_changed_model(self) -> object:
        """Return the expert, if the plays have changed it."""
        return None if self._traces and self.expert == self.before else self.expert


def _split_books(trace: Trace) -> tuple[Trace, Trace]:
    """Return a trace without meters and accounts, and one with nothing else."""
    rounds = trace.rounds
    meters = {name: column for name, column in rounds.items() if name.startswith(METER)}
    others = {name: column for name, column in rounds.items() if name not in meters}
    books = replace(trace, rounds={"round": rounds["round"], **meters}, replies={})
    return replace(trace, rounds=others, accounts={}), books


@contextmanager
def _refuse_unawaited() -> Iterator[None]:
    """Raise an error where a wait is made and not awaited."""
    with catch_warnings():
        simplefilter("error", NotAwaitedWarning)
        yield
