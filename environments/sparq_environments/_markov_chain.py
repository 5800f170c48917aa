"""Chains: random states in time that can be asked for in any order."""

from __future__ import annotations

from collections.abc import Callable
from math import floor

import numpy as np
from numpy.random import Generator, Philox

from sparq_sim.arrays import Matrix, Values

_BLOCK = 256  # steps of a chain that are drawn at once
_KEPT = 4  # blocks of a chain that are remembered

Follow = Callable[[Matrix, Generator], None]
"""Fill in the states (n, m) that follow the first of them, by the chance of a generator."""


class Chain:
    """States s_0, s_1, ... (m,), each made by chance from the one before, to be asked at any time.

    Chance comes in blocks of 256 steps, each from its own part of one Philox stream, and the
    state at the beginning of each block is kept. So a state does not depend on what was asked
    before, and beyond one state in 256 only the latest four blocks are in memory.
    """

    def __init__(self, first: Values, follow: Follow, rng: Generator) -> None:
        self._follow = follow
        self._key = rng.integers(2**63, size=2, dtype=np.uint64)
        self._beginnings = [first]
        self._blocks: dict[int, Matrix] = {}

    def at(self, number: int) -> Values:
        """Give the state of this *number*."""
        block, step = divmod(number, _BLOCK)
        state: Values = self._block(block)[step]
        return state

    def between(self, time: float) -> Values:
        """Give the state at *time*, straight between those of the whole times about it."""
        number = floor(time)
        block, step = divmod(number, _BLOCK)
        before, after = self._block(block)[step : step + 2]
        share = time - number
        state: Values = (1 - share) * before + share * after
        return state

    def _block(self, number: int) -> Matrix:
        while len(self._beginnings) <= number:
            self._beginnings.append(self._marched(len(self._beginnings) - 1)[-1].copy())
        return self._marched(number)

    def _marched(self, number: int) -> Matrix:
        if number not in self._blocks:
            if len(self._blocks) == _KEPT:
                del self._blocks[next(iter(self._blocks))]
            first = self._beginnings[number]
            states = np.empty((_BLOCK + 1, len(first)))
            states[0] = first
            self._follow(states, Generator(Philox(key=self._key, counter=[0, 0, number, 0])))
            self._blocks[number] = states
        return self._blocks[number]
