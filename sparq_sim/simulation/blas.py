"""Linear algebra on one thread, so that results are repeatable and plays share the processors."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which all BLAS libraries that are loaded now run on one thread.

    What is loaded within the context is not limited; enter another one for it.
    """
    limited: AbstractContextManager[object] = _controller(len(sys.modules)).limit(limits=1)
    return limited


@lru_cache(maxsize=1)
def _controller(modules: int) -> ThreadpoolController:
    """Find the libraries, which takes a millisecond; a new import may bring others."""
    return ThreadpoolController()
