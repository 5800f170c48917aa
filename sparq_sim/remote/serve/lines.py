"""A server over pipes: one message is one line, from the standard input to the standard output."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from sparq_sim.remote.serve.responder import Answerer, Responder

__all__ = ["serve_lines"]

PATIENCE = 10.0
"""Seconds after which an asker is told that an answer comes later, each time."""
_CHUNK = 65536


async def serve_lines(
    answer: Answerer, *, read_from: int = 0, write_to: int = 1, largest: int = 1_000_000
) -> None:
    """Answer each line that comes, until there are no more.

    Answers come in the order in which they are ready. What Python code prints meanwhile would be
    taken for answers, so it goes to the standard error.

    Args:
        answer: Who answers.
        read_from: The file descriptor of what is read.
        write_to: The file descriptor to which replies are written.
        largest: The largest line that is read, in bytes.
    """
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def put(line: bytes | None) -> None:
        with suppress(RuntimeError):  # The loop is closed: nobody serves any more.
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # A thread, because a file and a terminal cannot be awaited; one that does not keep the
    # program from ending.
    reading = threading.Thread(target=_read, args=(read_from, largest, put), daemon=True)
    printed, sys.stdout = sys.stdout, sys.stderr
    tasks: set[asyncio.Task[None]] = set()
    try:
        async with Responder(answer, largest=largest) as responder:
            reading.start()
            while (line := await lines.get()) is not None:
                if line.strip():
                    task = asyncio.create_task(_reply(responder, line, write_to))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)
            if tasks:
                await asyncio.wait(tasks)
    finally:
        sys.stdout = printed
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def _read(descriptor: int, largest: int, put: Callable[[bytes | None], None]) -> None:
    """Hand over each line; of one that is too long, as much as shows that it is."""
    rest = b""
    is_skipping = False
    while chunk := _read_chunk(descriptor):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if not is_skipping:
                put(line)
            is_skipping = False
        if len(rest) > largest:
            if not is_skipping:
                put(rest)
            rest, is_skipping = b"", True
    if rest and not is_skipping:
        put(rest)
    put(None)


def _read_chunk(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # Whoever has the other end is gone.
        return b""


async def _reply(responder: Responder, line: bytes, descriptor: int) -> None:
    while True:
        response = await responder.respond(line, within=PATIENCE)
        with suppress(BrokenPipeError):  # Nobody reads any more.
            _write(descriptor, response.payload + b"\n")
        if not response.is_later:
            return


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
