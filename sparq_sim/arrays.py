"""Arrays: the shapes that points and values have, and arrays that nobody can change."""

from __future__ import annotations

from functools import lru_cache
from math import isfinite
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Matrix", "Point", "Points", "Values", "all_finite", "all_rows", "freeze_array"]

Point: TypeAlias = NDArray[np.float64]
"""One place: (d,)."""
Points: TypeAlias = NDArray[np.float64]
"""Places: (n, d)."""
Values: TypeAlias = NDArray[np.float64]
"""One number a place: (n,)."""
Matrix: TypeAlias = NDArray[np.float64]
"""Numbers for pairs: (n, m)."""


def freeze_array(numbers: ArrayLike) -> NDArray[np.float64]:
    """Return a copy of *numbers* as an array that nobody can change.

    Args:
        numbers: Whatever numpy can make an array of.
    """
    array = np.array(numbers, dtype=np.float64)
    array.setflags(write=False)
    return array


def all_finite(array: NDArray[np.float64]) -> bool:
    """Return whether an array holds neither NaN nor infinity.

    Args:
        array: Of any shape.
    """
    if array.size == 1:
        return isfinite(array.item())
    # To count takes half the time of `all` where arrays are small, as they are here.
    return bool(np.count_nonzero(np.isfinite(array)) == array.size)


@lru_cache(maxsize=1024)
def all_rows(count: int) -> NDArray[np.intp]:
    """Return the numbers 0, 1, ..., *count* - 1, as an array that nobody can change.

    All messages with that many rows share it.

    Args:
        count: How many.
    """
    numbers = np.arange(count)
    numbers.setflags(write=False)
    return numbers
