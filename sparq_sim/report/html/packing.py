"""Packing: columns of numbers as JSON for the scripts of a page, thinned and quantised."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Packed", "mark_shown", "pack_codes", "pack_numbers", "pack_words"]

Packed: TypeAlias = dict[str, Any]
"""What the script unpacks: a shape, and bytes as base64."""
Floats: TypeAlias = NDArray[np.float64]
"""A column of numbers."""


def pack_numbers(numbers: NDArray[Any], kind: Literal["u1", "u2", "f4"]) -> Packed:
    """Pack numbers as base64: single floats, or whole numbers k for low + k step, the last NaN.

    Numbers that are all equal are written once.

    Args:
        numbers: Of any shape.
        kind: How: as numpy names the type.

    Returns:
        What the script unpacks.
    """
    array = np.asarray(numbers, dtype=float)
    shape = list(array.shape)
    if array.size and np.isfinite(array.flat[0]) and (array == array.flat[0]).all():
        return {"shape": shape, "same": float(array.flat[0])}
    if kind == "f4":
        return {"shape": shape, "kind": kind, "bytes": _base64(array.astype("<f4"))}
    known = array[np.isfinite(array)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    absent = 2 ** (8 * int(kind[1])) - 1
    step = (high - low) / (absent - 1) or 1.0
    codes = np.where(np.isfinite(array), (array - low) / step, absent)
    bytes_ = _base64(codes.round().astype(f"<{kind}"))
    return {"shape": shape, "kind": kind, "low": low, "step": step, "bytes": bytes_}


def _base64(array: NDArray[Any]) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()


def pack_words(words: NDArray[Any], known: Sequence[str]) -> Packed:
    """Pack words as their numbers among those that are known.

    Args:
        words: A column.
        known: All that occur.

    Returns:
        What the script unpacks.
    """
    order = np.argsort(known)
    return pack_codes(order[np.searchsorted(np.array(known)[order], words)])


def pack_codes(numbers: NDArray[np.intp]) -> Packed:
    """Pack small whole numbers as they are.

    Args:
        numbers: From 0 to 254.

    Returns:
        What the script unpacks.
    """
    return {
        "shape": [len(numbers)],
        "kind": "u1",
        "low": 0,
        "step": 1,
        "bytes": _base64(numbers.astype("<u1")),
    }


def mark_shown(
    starts: Floats, ends: Floats, times: Floats, *, before: float, after: float
) -> NDArray[np.bool_]:
    """Mark the spans of which some frame shows a part.

    Args:
        starts: Where each begins, in clock units.
        ends: Where each ends.
        times: The moments of the frames, growing.
        before: How much time a frame shows before its moment.
        after: How much it shows after it.

    Returns:
        One truth value per span.
    """
    next_frame = np.searchsorted(times, starts - after)
    return np.append(times, inf)[next_frame] <= ends + before
