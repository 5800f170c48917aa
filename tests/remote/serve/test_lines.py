from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import Any

import pytest

from sparq_sim.messages import Estimate
from sparq_sim.remote.serve import lines
from sparq_sim.remote.serve.lines import serve_lines
from sparq_sim.remote.wire import ApplyMessage, AskMessage
from tests.remote.serve.asks import add_up, ask

pytestmark = pytest.mark.asyncio


async def serve(data: bytes, answer: Any = add_up, **options: Any) -> list[dict[str, Any]]:
    """Return what is replied to some lines."""
    into, source = os.pipe()
    results, out = os.pipe()

    def write() -> None:
        with os.fdopen(into, "rb"), os.fdopen(source, "wb", 0) as pipe:
            pipe.write(data)
            pipe.close()
            done.wait()

    def read() -> bytes:
        with os.fdopen(results, "rb") as pipe:
            return pipe.read()

    done = threading.Event()
    reading = asyncio.create_task(asyncio.to_thread(read))
    writing = asyncio.create_task(asyncio.to_thread(write))
    try:
        await serve_lines(answer, read_from=into, write_to=out, **options)
    finally:
        done.set()
        os.close(out)
        await writing
    return [json.loads(line) for line in (await reading).splitlines()]


def line(**fields: Any) -> bytes:
    return json.dumps(ask(**fields)).encode() + b"\n"


async def test_each_line_gets_its_reply() -> None:
    asked = b"".join(line(key=str(i), points=[[float(i)]]) for i in range(100))
    told = await serve(asked)
    assert {each["id"]: each["values"] for each in told} == {str(i): [float(i)] for i in range(100)}


async def test_an_answer_that_takes_long_comes_after_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "PATIENCE", 0.1)

    async def answer(message: AskMessage | ApplyMessage) -> Estimate:
        await asyncio.sleep(0.25 if message.id == "slow" else 0.0)
        return await add_up(message)

    told = await serve(line(key="slow") + line(key="quick"), answer)
    kinds = [(each["id"], each["type"]) for each in told]
    assert kinds[0] == ("quick", "answer")
    assert kinds[1] == ("slow", "later")
    assert kinds[-1] == ("slow", "answer")


async def test_wrong_lines_are_refused_and_the_next_is_answered() -> None:
    long = b"x" * 300_000 + b"\n"
    told = await serve(b"hello\n\n" + long + line()[:-1], largest=1000)
    assert [each["type"] for each in told] == ["failure", "failure", "answer"]
    assert "no JSON" in told[0]["reason"]
    assert "at most 1000 are read" in told[1]["reason"]


async def test_what_code_prints_is_no_reply(capsys: pytest.CaptureFixture[str]) -> None:
    async def answer(message: AskMessage | ApplyMessage) -> Estimate:
        print("thinking")
        return await add_up(message)

    told = await serve(line(), answer)
    assert [each["type"] for each in told] == ["answer"]
    assert capsys.readouterr().err == "thinking\n"
