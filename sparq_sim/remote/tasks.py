"""Tasks: how those that exchange messages are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

__all__ = ["end_tasks"]

_PATIENCE = 1.0
"""Seconds after which a task that was cancelled is cancelled again."""


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until all of them have ended; what they raise is left to the caller.

    Before Python 3.12, `asyncio.wait_for`, which aiomqtt uses, may swallow a cancellation: a task
    that is cancelled only once might then run for ever.

    Args:
        tasks: Those to end; one that has ended already is left alone.
    """
    running = {task for task in tasks if not task.done()}
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=_PATIENCE)
