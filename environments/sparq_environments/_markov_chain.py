"""A Markov chain of random states whose states can be read in any order."""

from __future__ import annotations

from collections.abc import Callable
from math import floor

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim.arrays import Matrix, Values

__all__ = ["Follow", "MarkovChain"]

_BLOCK = 256  # steps of a chain that are drawn at once
_KEPT = 4  # blocks of a chain that are remembered

Follow = Callable[[Matrix, Generator], None]
"""Fills in the states (n, m) after the first of them, with draws of a generator."""


class MarkovChain:
    """States s_0, s_1, ..., each drawn given the one before.

    Steps are drawn in blocks of 256, each from its own part of one Philox stream, and the state at
    the beginning of each block is kept. So a state does not depend on what was read before, and
    only these states and the latest four blocks are in memory.

    Args:
        first: The state s_0, (m,).
        follow: Fills in the states after a given one.
        rng: The generator to draw the key of the stream from.
    """

    def __init__(self, first: Values, follow: Follow, rng: Generator) -> None:
        self._follow = follow
        self._key = rng.integers(2**63, size=2, dtype=np.uint64)
        self._beginnings = [first]
        self._blocks: dict[int, Matrix] = {}

    def at(self, number: int) -> Values:
        """Return the state s_number, (m,)."""
        block, step = divmod(number, _BLOCK)
        state: Values = self._block(block)[step]
        return state

    def interpolate(self, time: float) -> Values:
        """Return the state at *time*, (m,), linear between the two whole times around it."""
        number = floor(time)
        block, step = divmod(number, _BLOCK)
        before, after = self._block(block)[step : step + 2]
        share = time - number
        state: Values = (1 - share) * before + share * after
        return state

    def _block(self, number: int) -> Matrix:
        while len(self._beginnings) <= number:
            self._beginnings.append(self._march(len(self._beginnings) - 1)[-1].copy())
        return self._march(number)

    def _march(self, number: int) -> Matrix:
        if number not in self._blocks:
            if len(self._blocks) == _KEPT:
                del self._blocks[next(iter(self._blocks))]
            first = self._beginnings[number]
            states = np.empty((_BLOCK + 1, len(first)))
            states[0] = first
            self._follow(states, Generator(Philox(key=self._key, counter=[0, 0, number, 0])))
            self._blocks[number] = states
        return self._blocks[number]
