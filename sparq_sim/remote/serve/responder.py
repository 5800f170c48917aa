"""Responders: what came over any protocol is read, answered once, and written as a reply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import isfinite
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from sparq_sim.errors import PeerError, Unavailable
from sparq_sim.messages import Estimate
from sparq_sim.plugin.frames import describe_error
from sparq_sim.remote.wire import (
    WIRE_VERSION,
    ApplyMessage,
    AskMessage,
    CollectMessage,
    decode,
    encode,
    read_message,
)

__all__ = ["MOST_OPEN", "REMEMBERED", "REMEMBERED_BYTES", "Answerer", "Responder", "Response"]

REMEMBERED = 10_000
"""How many answers are kept, to be given again to a question that is sent again."""
REMEMBERED_BYTES = 64_000_000
"""How large they may be together; of larger ones, fewer are kept."""
MOST_OPEN = 1000
"""How many questions may be under way at once; further ones fail, and may be sent again."""

Answerer: TypeAlias = Callable[[AskMessage | ApplyMessage], Awaitable[Estimate]]
"""What answers: it returns an `Estimate`, whose `measured_at` is in clock units of the asker's
play; or raises `Unavailable` where nothing is known, and `PeerError` where the question is wrong.
"""


@dataclass(frozen=True, slots=True)
class Response:
    """A reply, ready to be sent."""

    payload: bytes
    """The message as JSON."""
    is_refusal: bool = False
    """Whether what came was no question that could be answered."""
    is_later: bool = False
    """Whether the answer is not there yet, and another response must follow."""


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """A question that is being answered, or that has been."""

    about: bytes
    """Hashes what is asked, which may be large."""
    task: asyncio.Task[Response]

    @property
    def size(self) -> int:
        """How many bytes the answer has, once it is there."""
        is_there = self.task.done() and not self.task.cancelled()
        return len(self.task.result().payload) if is_there else 0


class Responder:
    """Answers messages of the wire format; an asynchronous context manager.

    A question is answered once: one that comes again, by its id, gets the same answer. A failure
    is not kept, so that asking again may help.

    Args:
        answer: Who answers.
        largest: The largest message that is read, in bytes.
    """

    def __init__(self, answer: Answerer, *, largest: int = 1_000_000) -> None:
        self._answer = answer
        self.largest = largest
        """The largest message that is read, in bytes."""
        self._asked: dict[str, _Asked] = {}
        self._open: set[asyncio.Task[Response]] = set()
        self._bytes = 0  # Of the answers that are kept.

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give up what is being answered; whoever waits for it is told."""
        while self._open:
            for task in self._open:
                task.cancel()
            await asyncio.wait(self._open)
            await asyncio.sleep(0)

    async def respond(self, data: bytes, *, within: float | None = None) -> Response:
        """Return the reply to a message.

        Args:
            data: What came.
            within: After so many seconds a reply says that the answer comes later; by default,
                however long it takes.
        """
        message: Mapping[str, Any] = {}
        try:
            if len(data) > self.largest:
                raise PeerError(f"sent {len(data)} bytes; at most {self.largest} are read")
            message = decode(data)
            request = read_message(message, AskMessage, ApplyMessage, CollectMessage)
            assert isinstance(request, AskMessage | ApplyMessage | CollectMessage)
            task = self._find(request)
        except PeerError as error:
            return _refuse(message.get("id"), error)
        await asyncio.wait([task], timeout=within)
        if not task.done():
            assert within is not None
            return Response(_write("later", message["id"], seconds=max(within, 0.1)), is_later=True)
        if task.cancelled():
            return Response(_write("failure", message["id"], reason="the server ends"))
        return task.result()

    def _find(self, message: AskMessage | ApplyMessage | CollectMessage) -> asyncio.Task[Response]:
        """Return the task that answers a message, which may be under way or done."""
        known = self._asked.get(message.id)
        if isinstance(message, CollectMessage):
            if known is None:
                raise PeerError("collects the answer to a request that is not known here")
            return known.task
        about = blake2b(repr((message.type, message.names, message.points)).encode()).digest()
        if known is None:
            if len(self._open) >= MOST_OPEN:
                raise PeerError(f"has to wait: {MOST_OPEN} questions are being answered")
            task = asyncio.create_task(self._make_response(message))
            self._open.add(task)
            task.add_done_callback(partial(self._end, message.id))
            self._asked[message.id] = _Asked(about, task)
            self._forget()
            return task
        if known.about != about:
            raise PeerError("has used this id for another request")
        return known.task

    def _end(self, key: str, task: asyncio.Task[Response]) -> None:
        """Count a question as answered, and its answer among those that are kept."""
        self._open.discard(task)
        asked = self._asked.get(key)
        if asked is not None and asked.task is task:
            self._bytes += asked.size
            self._forget()

    def _forget(self) -> None:
        """Forget the oldest answers where there are too many, or too large ones."""
        while len(self._asked) > REMEMBERED or self._bytes > REMEMBERED_BYTES:
            self._bytes -= self._asked.pop(next(iter(self._asked))).size

    async def _make_response(self, message: AskMessage | ApplyMessage) -> Response:
        try:
            return Response(_write_answer(message, await self._answer(message)))
        except Exception as error:
            self._asked.pop(message.id, None)
            if isinstance(error, PeerError):
                return _refuse(message.id, error)
            told = str(error) if isinstance(error, Unavailable) else describe_error(error)
            return Response(_write("failure", message.id, reason=told))


def _refuse(key: object, error: PeerError) -> Response:
    return Response(_write("failure", key, reason=f"the asker {error}"), is_refusal=True)


def _write(kind: str, key: object, **fields: Any) -> bytes:
    name = {"id": key} if isinstance(key, str) else {}
    return encode({"sparq": WIRE_VERSION, "type": kind, **name, **fields})


def _write_answer(message: AskMessage | ApplyMessage, estimate: Estimate) -> bytes:
    """Return an estimate as a message; raise ValueError where it cannot be one."""
    values = np.asarray(estimate.values, dtype=float)
    stds = np.broadcast_to(np.asarray(estimate.stds, dtype=float), values.shape)
    if values.shape != (len(message.points),):
        raise ValueError(f"an estimate of {values.shape} values for {len(message.points)} points")
    fields: dict[str, Any] = {"values": [v if isfinite(v) else None for v in values.tolist()]}
    if stds.any():
        fields["stds"] = [s if isfinite(s) else None for s in stds.tolist()]
    if estimate.measured_at is not None:
        ago = (message.play_time - estimate.measured_at) * message.unit
        fields["measured_at"] = message.asked_at - ago
    if notes := {name: float(n) for name, n in estimate.notes.items() if isfinite(n)}:
        fields["notes"] = notes
    if estimate.absent:
        fields["absent"] = estimate.absent
    return _write("answer", message.id, **fields)
