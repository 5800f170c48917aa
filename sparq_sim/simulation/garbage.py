"""Garbage collection: rarer while a play runs, which makes many objects and hardly any cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collect_rarely"]

_OBJECTS = 10_000
"""New objects after which Python looks for cycles; its own default is 700."""


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Have Python look for cycles of objects less often within the `with` block.

    A trace keeps some objects for each reply. To look through them again and again took a fifth
    of the time of a play with many replies.
    """
    before = gc.get_threshold()
    # A user who has switched collections off, or made them rarer, is left alone.
    if 0 < before[0] < _OBJECTS:
        gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
