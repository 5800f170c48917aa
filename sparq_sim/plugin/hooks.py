"""Hooks: the methods and attributes by which a started plug-in is used, checked before a play."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from types import MethodType
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sparq_sim.arrays import Points, Values, all_finite
from sparq_sim.errors import HookError, LiveOnlyError, Unavailable
from sparq_sim.fields import is_whole
from sparq_sim.plugin.environment import (
    Coarsening,
    Environment,
    Landscape,
    Observing,
    WithCellCount,
    WithGaps,
)
from sparq_sim.plugin.expert import Accounting, Answering, Broadcasting, Expert, Metered
from sparq_sim.plugin.frames import describe_error
from sparq_sim.plugin.optimizer import Agent, Believing, Optimizer, Restrictable
from sparq_sim.plugin.steered import Steered

__all__ = [
    "AGENT_HOOKS",
    "EXPERT_HOOKS",
    "LANDSCAPE_HOOKS",
    "STEERED_HOOKS",
    "Hook",
    "NearMissWarning",
    "Readings",
    "check_hooks",
    "describe_near_miss",
    "find_mismatch",
    "find_near_misses",
    "has_hook",
]

_CLOSE = 0.82
"""How alike two names must be for one to be a misspelling: "anwser" is, "asked" is not "ask"."""


class NearMissWarning(UserWarning):
    """A plug-in has a method that nobody calls, with nearly the name of one that is called."""


@dataclass(frozen=True, slots=True)
class Hook:
    """A method or an attribute by which a started plug-in is used, as its protocol has it."""

    name: str
    """Of the method or attribute."""
    arguments: tuple[str, ...] | None
    """The names of a method's arguments, without self; None for an attribute."""
    is_async: bool
    """Whether it is an `async def`."""
    optional: bool
    """Whether a plug-in may do without it."""

    def __str__(self) -> str:
        if self.arguments is None:
            return self.name
        arguments = ", ".join(("self", *self.arguments))
        return f"{'async ' if self.is_async else ''}def {self.name}({arguments})"


def _hooks_of(protocol: type, *, optional: bool = False) -> Iterator[Hook]:
    """Read the hooks off a *protocol*."""
    for name, member in vars(protocol).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            arguments = tuple(inspect.signature(member).parameters)[1:]
            yield Hook(name, arguments, inspect.iscoroutinefunction(member), optional)
        elif isinstance(member, property):
            yield Hook(name, None, False, optional)


def _read_hooks(required: type, *optional: type) -> tuple[Hook, ...]:
    needed = tuple(_hooks_of(required))
    names = {hook.name for hook in needed}
    more = (hook for each in optional for hook in _hooks_of(each, optional=True))
    return (*needed, *(hook for hook in more if hook.name not in names))


LANDSCAPE_HOOKS = _read_hooks(Landscape, Observing, WithGaps, Coarsening, WithCellCount, Steered)
"""By which a started environment is used."""
STEERED_HOOKS = _read_hooks(Steered)
"""By which a system is used that can only be tried."""
EXPERT_HOOKS = _read_hooks(Answering, Broadcasting, Metered, Accounting)
"""By which a started expert is used."""
AGENT_HOOKS = _read_hooks(Agent, Believing, Restrictable)
"""By which a started optimizer is used."""

_BASES = frozenset(name for base in (Environment, Expert, Optimizer) for name in dir(base))
"""Names that models inherit from their bases, none of which is a misspelling."""


def has_hook(started: object, hook: Hook) -> bool:
    """Return whether a started plug-in has a hook; an attribute that is None does not count.

    Args:
        started: What `start` returned.
        hook: Which hook.
    """
    found = getattr(started, hook.name, None)
    # The base of experts has an `answer` that only raises an error.
    return found is not None and getattr(found, "__func__", None) is not Expert.answer


def find_mismatch(started: object, hook: Hook) -> str | None:
    """Return how a started plug-in differs from what a hook must be; None where it does not.

    Args:
        started: What `start` returned.
        hook: Which hook.

    Returns:
        A sentence with the signature that is expected.
    """
    found = getattr(started, hook.name, None)
    if found is None:
        return None if hook.optional else f"{hook.name} is missing: `{hook}`"
    # isinstance looks for hooks in the object and its class, and nowhere else.
    if hook.optional and inspect.getattr_static(started, hook.name, None) is None:
        return f"{hook.name} must be defined, not found by __getattr__: `{hook}`"
    if hook.arguments is None:
        sound = not hook.optional or _is_count(found)
        return None if sound else f"{hook.name} must be a whole number above 0, not {found!r:.80}"
    if not callable(found):
        return f"{hook.name} must be a method: `{hook}`, not {found!r:.80}"
    if inspect.iscoroutinefunction(found) != hook.is_async or inspect.isasyncgenfunction(found):
        kind = "an async method" if hook.is_async else "a method that is not async"
        return f"{hook.name} must be {kind}: `{hook}`"
    wrong = _signature_error(found, hook.arguments)
    return wrong and f"{hook.name} must be callable as `{hook}`: {wrong}"


def _is_count(value: Any) -> bool:
    return is_whole(value) and bool(value >= 1)


def _signature_error(method: Callable[..., object], arguments: tuple[str, ...]) -> str | None:
    """Return why a *method* cannot be called with *arguments* in this order, if it cannot."""
    if isinstance(method, MethodType):
        return _find_signature_error_once(method.__func__, ("self", *arguments))
    return _find_signature_error(method, arguments)


def _find_signature_error(
    function: Callable[..., object], arguments: tuple[str, ...]
) -> str | None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Of what is written in C there may be none.
        return None
    try:
        signature.bind(*arguments)
    except TypeError as error:
        return str(error)
    return None


# To read a signature takes longer than a round of a small play.
_find_signature_error_once = lru_cache(maxsize=256)(_find_signature_error)


def find_near_misses(started: object, hooks: Sequence[Hook]) -> Iterator[tuple[str, str]]:
    """Yield each public name that is probably a misspelt hook, and the hook that was meant.

    The hook that was meant is absent, and what has the name could be used in its place: a helper
    with a similar name and other arguments is no misspelling.

    Args:
        started: What `start` returned.
        hooks: By which it is used.

    Yields:
        The name that is there, and the name of the hook.
    """
    absent = {hook.name: hook for hook in hooks if not has_hook(started, hook)}
    for given in dir(started) if absent else ():
        if given.startswith("_") or given in _BASES:
            continue
        meant = _close(given, tuple(absent))
        if meant is not None and _stands_for(getattr(started, given, None), absent[meant]):
            yield given, meant


@lru_cache(maxsize=4096)
def _close(given: str, names: tuple[str, ...]) -> str | None:
    if given in names:
        return None
    return next(iter(get_close_matches(given, names, n=1, cutoff=_CLOSE)), None)


def _stands_for(found: Any, hook: Hook) -> bool:
    if hook.arguments is None:
        return _is_count(found) if hook.optional else not callable(found)
    return callable(found) and _signature_error(found, hook.arguments) is None


def describe_near_miss(given: str, meant: str) -> str:
    """Return the warning about a misspelt hook.

    Args:
        given: The name that is there.
        meant: The name of the hook.
    """
    return f"{given!r} is not the name of a hook, so it is never called: did you mean {meant!r}?"


def check_hooks(who: str, started: object, hooks: Sequence[Hook]) -> None:
    """Check that all hooks of a started plug-in can be used; warn of names nearly those of hooks.

    Args:
        who: Whose hooks they are, as "environment Plume".
        started: What its `start` returned.
        hooks: `LANDSCAPE_HOOKS`, `EXPERT_HOOKS` or `AGENT_HOOKS`.

    Raises:
        HookError: A hook is missing, or differs from its protocol.
    """
    for hook in hooks:
        if (wrong := find_mismatch(started, hook)) is not None:
            raise HookError(f"{who}: {wrong}")
    for given, meant in find_near_misses(started, hooks):
        warnings.warn(f"{who}: {describe_near_miss(given, meant)}", NearMissWarning, stacklevel=2)


class Readings:
    """Readings of a landscape by its optional hooks `observe` and `available`, checked.

    A mistake in one of these hooks is a HookError, which ends the play, whoever it is that asks.

    Args:
        who: The environment, as messages name it.
        landscape: What its `start` returned.
    """

    def __init__(self, who: str, landscape: Landscape) -> None:
        self._who = who
        self._landscape = landscape
        # Looked up once, not for each query.
        self._observe = landscape.observe if isinstance(landscape, Observing) else None
        self._available = landscape.available if isinstance(landscape, WithGaps) else None
        self.has_gaps = self._available is not None
        """Whether there may be points without a reading."""

    def available(self, points: Points, time: float) -> NDArray[np.bool_]:
        """Return for each row of *points* whether there is a reading of it: (n,).

        Args:
            points: Where: (n, d).
            time: When, in clock units.

        Raises:
            HookError: The landscape's `available` raises an error, or returns something wrong.
        """
        if self._available is None:
            return np.ones(len(points), dtype=bool)
        return self._call(self._available, points, time, kinds="b")

    def observe(self, points: Points, time: float, rng: Callable[[], Generator]) -> Values:
        """Return an observation of each row of *points*: (n,); in a gap it may be anything.

        Args:
            points: Where: (n, d).
            time: When, in clock units.
            rng: Returns the source of chance for the landscape's own noise; called only if the
                landscape has such noise.

        Raises:
            HookError: The landscape's `observe` raises an error, or returns something wrong.
        """
        if self._observe is None:
            return self._landscape.rewards(points, time)
        values = self._call(self._observe, points, time, rng(), kinds="iuf")
        if not all_finite(values):
            wrong = self.available(points, time) & ~np.isfinite(values)
            if wrong.any():
                row = int(wrong.argmax())
                raise self._make_error(
                    self._observe,
                    f"gives {values[row]} at {points[row].tolist()}, time {time}; expected a "
                    "finite number wherever there is a reading",
                )
        return values

    def _call(
        self, hook: Callable[..., object], points: Points, *arguments: Any, kinds: str
    ) -> NDArray[Any]:
        """Return the array that a *hook* returns for *points*, of one of the *kinds* of dtypes."""
        try:
            given = np.asarray(hook(points, *arguments))
        except (HookError, LiveOnlyError, Unavailable):
            raise
        except Exception as error:
            self._check_points(points)
            raise self._make_error(hook, f"raised {describe_error(error)}") from error
        if given.shape != (len(points),):
            self._check_points(points)
            raise self._make_error(
                hook,
                f"gives an array of shape {given.shape}; expected ({len(points)},), one for each "
                "point",
            )
        if given.dtype.kind not in kinds:
            wanted = "bools" if kinds == "b" else "real numbers"
            raise self._make_error(hook, f"gives an array of type {given.dtype}; expected {wanted}")
        return given

    def _check_points(self, points: Points) -> None:
        """Raise a ValueError for *points* outside the domain, for which no hook is to blame."""
        self._landscape.domain.check(points)

    def _make_error(self, hook: Callable[..., object], what: str) -> HookError:
        return HookError(f"{self._who}: {getattr(hook, '__qualname__', hook)} {what}")
