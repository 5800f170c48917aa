from __future__ import annotations

import asyncio

import pytest

from sparq_sim.remote import tasks

pytestmark = pytest.mark.asyncio


async def test_a_task_that_swallows_a_cancellation_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "_PATIENCE", 0.01)
    swallowed: list[BaseException] = []

    async def run() -> None:
        while len(swallowed) < 2:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError as error:
                swallowed.append(error)
        await asyncio.Event().wait()

    async def fail() -> None:
        raise ValueError("ended before")

    stubborn, ended = asyncio.create_task(run()), asyncio.create_task(fail())
    await asyncio.sleep(0)
    await tasks.end_tasks([stubborn, ended])
    assert stubborn.cancelled()
    assert len(swallowed) == 2
    assert str(ended.exception()) == "ended before"
