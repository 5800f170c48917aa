"""Landscapes that a worker has started, and shares among plays of one environment and seed."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sparq_sim.arrays import Point
from sparq_sim.errors import PluginError
from sparq_sim.plugin.environment import Environment, Landscape
from sparq_sim.plugin.hooks import LANDSCAPE_HOOKS
from sparq_sim.plugin.steered import SteeredEnvironment
from sparq_sim.simulation.lifetime import Resources, run_at_once
from sparq_sim.simulation.randomness import Streams

__all__ = ["NotClosedWarning", "SharedLandscape", "close_landscapes", "share_landscape"]

LANDSCAPES = 2
"""How many started landscapes a worker keeps."""
MOST_BESTS = 100_000
"""Of how many times a worker remembers the best point of a landscape: some 30 MB."""


class NotClosedWarning(UserWarning):
    """What a shared landscape holds could not be closed."""


class SharedLandscape:
    """A landscape that several plays share: the best of a time is found once for all of them."""

    def __init__(self, landscape: Landscape) -> None:
        """Share a landscape.

        Args:
            landscape: A started one.
        """
        self._landscape = landscape
        self._bests: dict[float, tuple[Point, float]] = {}
        self.domain = landscape.domain
        self.rewards = landscape.rewards
        # Its hooks are sought in the object itself, where __getattr__ has no say.
        for hook in LANDSCAPE_HOOKS:
            if hook.optional and inspect.getattr_static(landscape, hook.name, None) is not None:
                with suppress(AttributeError):  # Of a property that has nothing to give.
                    setattr(self, hook.name, getattr(landscape, hook.name))

    def __getattr__(self, name: str) -> Any:
        """Return what else the landscape has."""
        return getattr(self._landscape, name)

    def __dir__(self) -> list[str]:
        """List what the landscape has, so that a hook that is misspelt there is found here."""
        return dir(self._landscape)

    def best(self, time: float) -> tuple[Point, float]:
        """Return a point of the highest reward, and that reward; asked for again, the same.

        Args:
            time: In clock units.
        """
        found = self._bests.get(time)
        if found is None:
            if len(self._bests) >= MOST_BESTS:
                del self._bests[next(iter(self._bests))]
            found = self._bests[time] = self._landscape.best(time)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """A started landscape, and what it holds."""

    environment: Environment
    seed: int
    replication: int
    landscape: Landscape
    resources: Resources

    def close(self) -> None:
        """Leave what it holds; that this fails is no fault of the play at hand."""
        try:
            run_at_once(self.resources.close())
        except PluginError as error:
            warnings.warn(str(error), NotClosedWarning, stacklevel=2)


class _Memory(threading.local):
    """The landscapes that a thread keeps from batch to batch, those used first at the front."""

    def __init__(self) -> None:
        self.landscapes: deque[_Kept] = deque()


_memory = _Memory()


def share_landscape(environment: Environment, seed: int, replication: int) -> Landscape | None:
    """Return the landscape of an environment, seed and replication, started once in this thread.

    Args:
        environment: Equal ones have one landscape.
        seed: Of the scenario.
        replication: From 0.

    Returns:
        The landscape; None for a system that can only be tried, since what one play does to it
        another would meet.
    """
    if environment.is_real or isinstance(environment, SteeredEnvironment):
        return None
    known = _memory.landscapes
    for kept in known:
        same = (seed, replication) == (kept.seed, kept.replication)
        if same and _same(kept.environment, environment):
            return kept.landscape
    while len(known) >= LANDSCAPES:
        known.popleft().close()
    resources = Resources()
    started = run_at_once(resources.start_landscape(environment, Streams(seed, replication)))
    # What is no landscape is for the play to refuse, by name.
    shared = SharedLandscape(started) if isinstance(started, Landscape) else started
    known.append(_Kept(environment, seed, replication, shared, resources))
    return shared


def close_landscapes() -> None:
    """Close landscapes that hold something; others may serve again."""
    known = _memory.landscapes
    for kept in [kept for kept in known if kept.resources.holds]:
        known.remove(kept)
        kept.close()


def _same(a: Environment, b: Environment) -> bool:
    try:
        return bool(a == b)
    except Exception:  # Fields such as arrays may refuse to be compared.
        return False
