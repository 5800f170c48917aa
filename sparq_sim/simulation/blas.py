"""Threads: every play has one, so that plays side by side do not get in each other's way."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Hold linear algebra to one thread, in all libraries that are loaded now."""
    limited: AbstractContextManager[object] = _controller(len(sys.modules)).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Find the libraries, which takes a millisecond; others come with imports."""
    return ThreadpoolController()
