"""Laws of plug-ins: what all of them obey, as models, as context managers and in their hooks."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Protocol
from weakref import finalize

from sparq_sim.errors import PluginError
from sparq_sim.plugin.hooks import (
    Hook,
    describe_near_miss,
    find_mismatch,
    find_near_misses,
    has_hook,
)
from sparq_sim.plugin.model import Model
from sparq_sim.simulation.lifetime import Resources, run_at_once
from sparq_sim.testing.law import FindViolation, Law, UncheckedError, full_name, make_law

__all__ = ["Trial", "enter", "hook_laws", "model_laws", "resource_laws", "usability_law"]


def model_laws(model: Model) -> Iterator[Law]:
    """Yield the laws of models: each equals its pickled copy, can be hashed, has a docstring.

    Args:
        model: A plug-in, or a part of one.

    Yields:
        Laws in an order in which each comes after those that it rests on.
    """

    def copy() -> Model:
        copied: Model = pickle.loads(pickle.dumps(model))
        return copied

    def find_copy_error() -> object:
        try:
            hash(copy())
            hash(model)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return None

    yield (basis := make_law(model, "can be pickled and hashed", find_copy_error))
    equal = "equals its pickled self"
    yield make_law(model, equal, lambda: None if copy() == model else copy(), basis)
    hashed = "hashes as its pickled self does"
    yield make_law(model, hashed, lambda: None if hash(copy()) == hash(model) else copy(), basis)
    yield make_law(model, "has a docstring", lambda: None if type(model).__doc__ else "none")


# What is started, and may be a context manager


class Trial(Protocol):
    """What starts a plug-in, once, for laws to look at."""

    holds: bool
    """Whether what was started is a context manager."""


def enter(trial: Trial, who: str, started: Any, *, may_await: bool = False) -> Any:
    """Return what was started, after entering it if it is a context manager.

    Args:
        trial: Who started it; when it is garbage, what was started is left.
        who: Whose it is, as errors name it.
        started: What `start` returned.
        may_await: Whether it may be an asynchronous context manager.
    """
    resources = Resources()
    inside = run_at_once(resources.enter(who, started, may_await=may_await))
    if resources.holds:
        trial.holds = True
        finalize(trial, _close, resources)
    return inside


def _close(resources: Resources) -> None:
    with suppress(Exception):  # The law that it can be left shows the error.
        run_at_once(resources.close())


def resource_laws(
    model: Model,
    trial: Trial,
    start: Callable[[], object],
    basis: Law,
    *,
    may_await: bool = False,
) -> Iterator[Law]:
    """Yield the law that what was started can be entered and left, if it is a context manager.

    Args:
        model: Whose law it is.
        trial: Has entered what was started, if that could be done.
        start: Starts it anew.
        basis: The law that it starts at all.
        may_await: Whether it may be an asynchronous context manager.

    Yields:
        One law, or none where nothing is to be entered.
    """

    def find_error() -> object:
        resources = Resources()
        try:
            run_at_once(resources.enter(full_name(model), start(), may_await=may_await))
            run_at_once(resources.close())
        except PluginError as error:
            return error
        return None

    if trial.holds:
        yield make_law(model, "can be entered and left", find_error, basis)


# Hooks


def hook_laws(
    model: Model, start: Callable[[], object], hooks: Sequence[Hook], basis: Law
) -> dict[str, Law]:
    """Return the laws of how a started plug-in is called.

    Args:
        model: Whose laws they are.
        start: Returns what the model starts.
        hooks: The methods and attributes by which that is used.
        basis: The law that it starts at all.

    Returns:
        A law for each hook that is there, by the hook's name; the last, under "spelling", is that
        no other name is nearly that of a hook.
    """

    def violation_of(hook: Hook) -> FindViolation:
        def find_violation() -> object:
            started = start()
            if hook.optional and not has_hook(started, hook):
                raise UncheckedError(f"there is no {hook.name}")
            return find_mismatch(started, hook)

        return find_violation

    def find_misspellings() -> object:
        found = [describe_near_miss(*pair) for pair in find_near_misses(start(), hooks)]
        return "; ".join(found) or None

    laws = {
        hook.name: make_law(model, _state_law(hook), violation_of(hook), basis)
        for hook in _hooks_with_law(start, hooks)
    }
    spelling = make_law(model, "no name is a misspelt name of a hook", find_misspellings, basis)
    return {**laws, "spelling": spelling}


def _state_law(hook: Hook) -> str:
    if hook.arguments is None:
        return f"{hook.name} is a whole number above 0"
    how = "can be awaited" if hook.is_async else "can be called"
    return f"{hook.name} {how} with ({', '.join(hook.arguments)})"


def _hooks_with_law(start: Callable[[], object], hooks: Sequence[Hook]) -> list[Hook]:
    """Return the hooks that have a law: methods that must be there, and what else is there.

    Where that is not known before laws are checked, it is all.
    """
    lawful = [hook for hook in hooks if hook.optional or hook.arguments is not None]
    try:
        started = start()
    except Exception:  # Whatever it is, the law that it starts shows it.
        return lawful
    return [hook for hook in lawful if not hook.optional or has_hook(started, hook)]


def usability_law(
    model: Model, start: Callable[[], object], hooks: Sequence[Hook], *bases: Law
) -> Law:
    """Return the law that all hooks that are there can be used, on which laws of plays rest.

    Args:
        model: Whose law it is.
        start: Returns what the model starts.
        hooks: The methods and attributes by which that is used.
        bases: The laws that it rests on.
    """

    def find_first_mismatch() -> object:
        return next(filter(None, (find_mismatch(start(), hook) for hook in hooks)), None)

    return make_law(model, "can be called as a play does", find_first_mismatch, *bases)
