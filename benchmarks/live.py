"""Live play compared with bare clients, a bare event loop and bare files, and with what is allowed.

Answers are counted over loopback, with 64 questions in flight, from a server that is a process of
its own: at least 500 a second by HTTP and 300 by MQTT. At 20 rounds a second, a round may start
late by 5 % of its period. A record of the journal may cost 1 ms.

Times are of the wall, because others wait for them. Run it from the root of the repository:
`python -m benchmarks.live [--check] [--json]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.random import Generator

from benchmarks.compare import Row, main
from sparq_sim import Channel, Estimate, Move, Rules, play
from sparq_sim.domain import Box
from sparq_sim.journal.header import make_header
from sparq_sim.journal.writer import JournalWriter
from sparq_sim.live.play import live
from sparq_sim.messages import Reply
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.optimizer import Agent, Optimizer
from sparq_sim.remote.http import HttpAddress
from sparq_sim.remote.mqtt import MqttAddress
from sparq_sim.remote.serve.http import serve_http
from sparq_sim.remote.serve.mqtt import serve_mqtt
from sparq_sim.remote.wire import ApplyMessage, AskMessage
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.play import Played
from sparq_sim.testing.samples import Asker, Slope, Teller
from tests.remote.brokers import Broker, find_mosquitto

IN_FLIGHT = 64
ANSWERS = 1280
"""How many answers are timed at a time."""
REPETITIONS = 3
HTTP_RATE = 500.0
"""Answers a second."""
MQTT_RATE = 300.0
"""Answers a second."""
ROUND_RATE = 20.0
"""Rounds a second."""
LATENESS = 0.05
"""By what share of its period a round may start late."""
ROUNDS = 60
RECORD = 1e-3
"""Seconds that a record of the journal may cost."""

Exchange = Callable[[dict[str, Any]], Awaitable[object]]
"""Puts a question, and returns when it is answered."""

_numbers = count()


# Answers


def make_question() -> dict[str, Any]:
    """Return a question about one point that nobody has put before."""
    return {
        "sparq": 1,
        "type": "ask",
        "id": f"{os.getpid()}-{next(_numbers)}",
        "source": "lab",
        "names": ["x"],
        "points": [[0.5]],
        "asked_at": time.time(),
        "play_time": 1.0,
        "unit": 1.0,
    }


async def answer(message: AskMessage | ApplyMessage) -> Estimate:
    """Answer at once."""
    return Estimate(np.array([sum(point) for point in message.points]))


async def time_answers(exchange: Exchange, answers: int) -> float:
    """Return the seconds that an answer takes while as many questions as wanted are in flight."""

    async def ask(times: int) -> None:
        for _ in range(times):
            await exchange(make_question())

    async def ask_all(times: int) -> None:
        await asyncio.gather(*(ask(times) for _ in range(IN_FLIGHT)))

    await ask_all(1)  # Connections are opened before the clock runs.
    times = max(1, answers // IN_FLIGHT)
    began = time.perf_counter()
    await ask_all(times)
    return (time.perf_counter() - began) / (times * IN_FLIGHT)


async def ask_by_http(url: str, answers: int) -> float:
    """Time our client."""
    async with HttpAddress(url=url).open() as peer:
        return await time_answers(peer.exchange, answers)


async def ask_by_bare_httpx(url: str, answers: int) -> float:
    """Time httpx alone, which posts and reads JSON and checks nothing.

    It has a client for each connection: one client with 64 connections takes several times as
    long, because the time that its pool takes for a request grows with its connections.
    """
    import httpx

    one = httpx.Limits(max_connections=1)
    async with AsyncExitStack() as stack:
        free = [
            await stack.enter_async_context(
                httpx.AsyncClient(limits=one, timeout=30.0, trust_env=False, verify=False)
            )
            for _ in range(IN_FLIGHT)
        ]

        async def exchange(question: dict[str, Any]) -> None:
            client = free.pop()
            try:
                reply = await client.post(url, content=json.dumps(question).encode())
            finally:
                free.append(client)
            reply.raise_for_status()
            reply.json()

        return await time_answers(exchange, answers)


async def ask_by_mqtt(address: MqttAddress, answers: int) -> float:
    """Time our client."""
    async with address.open() as peer:
        return await time_answers(peer.exchange, answers)


async def ask_by_bare_aiomqtt(address: MqttAddress, answers: int) -> float:
    """Time aiomqtt alone, which publishes and waits for the echo of each message."""
    import aiomqtt

    waiting: dict[str, asyncio.Future[None]] = {}
    async with aiomqtt.Client(address.host, address.port or 1883) as client:
        await client.subscribe("bare/reply")

        async def listen() -> None:
            async for message in client.messages:
                waiting.pop(json.loads(bytes(message.payload))["id"]).set_result(None)

        async def exchange(question: dict[str, Any]) -> None:
            done = waiting[question["id"]] = asyncio.get_running_loop().create_future()
            await client.publish("bare/ask", json.dumps(question).encode(), qos=address.qos)
            await done

        client.pending_calls_threshold = 1000
        listening = asyncio.create_task(listen())
        try:
            return await time_answers(exchange, answers)
        finally:
            listening.cancel()
            await asyncio.wait([listening])


# Servers, each a process of its own


async def _until_stdin_ends() -> None:
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


async def run_http_server() -> None:
    """Serve over HTTP until nobody writes to this process any more."""
    async with serve_http(answer) as url:
        print(url, flush=True)
        await _until_stdin_ends()


async def run_mqtt_server(port: int, version: str) -> None:
    """Serve over MQTT, with our server and with a bare echo on another topic."""
    async with serve_mqtt(answer, make_address(port, version)), _echo(port):
        print("serving", flush=True)
        await _until_stdin_ends()


@asynccontextmanager
async def _echo(port: int) -> AsyncIterator[None]:
    import aiomqtt

    async with aiomqtt.Client("127.0.0.1", port) as client:
        client.pending_calls_threshold = 1000
        await client.subscribe("bare/ask")

        async def echo() -> None:
            async for message in client.messages:
                await client.publish("bare/reply", message.payload, qos=message.qos)

        echoing = asyncio.create_task(echo())
        try:
            yield
        finally:
            echoing.cancel()
            await asyncio.wait([echoing])


def make_address(port: int, version: str) -> MqttAddress:
    """Return where our server of MQTT is asked."""
    return MqttAddress.model_validate(
        {"host": "127.0.0.1", "port": port, "topic": "lab/ask", "version": version}
    )


@contextmanager
def start_server(call: str) -> Iterator[str]:
    """Run a server of this module in a process, and yield the line that it prints when ready."""
    code = f"import asyncio; from benchmarks import live; asyncio.run(live.{call})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            line = server.stdout.readline().strip()
            if not line:
                raise RuntimeError(f"the server did not start: {call}")
            yield line
        finally:
            server.stdin.close()


def compare_answers(
    protocol: str,
    ours: Callable[[int], Awaitable[float]],
    bare: Callable[[int], Awaitable[float]],
    *,
    rate: float,
    peer: str,
    most: float,
    answers: int,
) -> list[Row]:
    """Time our client and a bare one in turn, and compare both with each other and with a rate."""

    async def time_both() -> list[tuple[float, float]]:
        return [(await ours(answers), await bare(answers)) for _ in range(REPETITIONS)]

    times = asyncio.run(time_both())
    our_time, bare_time = (median(each) for each in zip(*times, strict=True))
    what = f"{protocol}, {IN_FLIGHT} in flight"
    return [
        _allow(f"{what}; {rate:g} a second", our_time, 1 / rate),
        _row(f"{what}; {peer}", our_time, bare_time, most=most),
    ]


def measure_http(answers: int = ANSWERS) -> list[Row]:
    """Measure answers by HTTP."""
    with start_server("run_http_server()") as url:
        return compare_answers(
            "HTTP answer",
            partial(ask_by_http, url),
            partial(ask_by_bare_httpx, url),
            rate=HTTP_RATE,
            peer="bare httpx",
            most=2.0,
            answers=answers,
        )


def measure_mqtt(answers: int = ANSWERS) -> list[Row]:
    """Measure answers by MQTT, over mosquitto where it is installed, else over amqtt."""
    kind = "mosquitto" if find_mosquitto() else "amqtt"
    with TemporaryDirectory() as folder:
        broker = Broker(kind, Path(folder)).start()  # type: ignore[arg-type] # one of its kinds
        try:
            with start_server(f"run_mqtt_server({broker.port}, {broker.version!r})"):
                address = make_address(broker.port, broker.version)
                return compare_answers(
                    f"MQTT answer, {kind}",
                    partial(ask_by_mqtt, address),
                    partial(ask_by_bare_aiomqtt, address),
                    rate=MQTT_RATE,
                    peer="bare aiomqtt",
                    # The bare echo reads no question, and checks no answer.
                    most=4.0,
                    answers=answers,
                )
        finally:
            broker.stop()


# Rounds


class Punctual(Optimizer):
    """Plays one point, and notes when it was asked."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        """Return an agent that notes the time."""
        return _PunctualAgent(briefing.domain.sample(rng, 1)[0])


ASKED: dict[int, float] = {}
"""When a `Punctual` agent was asked, by the number of the round, by `time.perf_counter`."""


class _PunctualAgent:
    def __init__(self, point: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        self._point = point

    def ask(self, now: float) -> Move:
        """Note the time."""
        ASKED[round(now)] = time.perf_counter()
        return Move(self._point)

    def tell(self, reply: Reply) -> None:
        """Ignore the reply."""


def find_lateness(moments: dict[int, float], rounds: int) -> float:
    """Return by how many seconds rounds begin late: the 95th percentile, after the earliest.

    A round that did not begin at all counts as late by a whole period. The first is left out, as
    its move is made before the clock runs.
    """
    numbers = range(2, rounds + 1)
    starts = {n: moments[n] - n / ROUND_RATE for n in numbers if n in moments}
    earliest = min(starts.values())
    late = [starts[n] - earliest if n in starts else 1 / ROUND_RATE for n in numbers]
    return float(np.quantile(late, 0.95))


def time_rounds(rounds: int) -> float:
    """Return how late the rounds of a live play begin, which keeps a journal."""
    scenario = Scenario.model_validate(
        {
            "environment": Slope(),
            "optimizers": {"punctual": Punctual()},
            "rounds": rounds,
            "levels": False,
        }
    )
    ASKED.clear()
    with TemporaryDirectory() as folder:
        asyncio.run(live(scenario, "punctual", folder=Path(folder) / "play", speed=ROUND_RATE))
    return find_lateness(ASKED, rounds)


def time_bare_rounds(rounds: int) -> float:
    """Return how late a bare loop of asyncio wakes up."""

    async def tick() -> dict[int, float]:
        loop = asyncio.get_running_loop()
        began, moments = loop.time(), {}
        for number in range(1, rounds + 1):
            await asyncio.sleep(began + number / ROUND_RATE - loop.time())
            moments[number] = time.perf_counter()
        return moments

    return find_lateness(asyncio.run(tick()), rounds)


def measure_rounds(rounds: int = ROUNDS) -> list[Row]:
    """Measure how late rounds begin, in turn with a bare loop."""
    times = [(time_rounds(rounds), time_bare_rounds(rounds)) for _ in range(REPETITIONS)]
    ours, bare = (median(each) for each in zip(*times, strict=True))
    what = f"a round is late, {ROUND_RATE:g} a second"
    allowed = LATENESS / ROUND_RATE
    return [
        _allow(f"{what}; 5 % of it", ours, allowed),
        _row(f"{what}; bare asyncio", ours, bare, most=10.0),
    ]


# The journal


def play_with(journal: JournalWriter | None, rounds: int) -> None:
    """Play, with a journal or without."""
    experts = {"lab": (Teller(), Channel(noise=0.1))}
    play(Asker(), Slope(), Rules(rounds=rounds), experts=experts, journal=journal)


def open_journal(path: Path, rounds: int) -> JournalWriter:
    """Open the journal of such a play."""
    experts = {"lab": (Teller(), Channel(noise=0.1))}
    played = Played(Asker(), Slope(), Rules(rounds=rounds), experts, Channel(), 0, 0)
    return JournalWriter.create(path, make_header(played, Box(0.0, 1.0)))


def time_journal(path: Path, rounds: int) -> tuple[float, list[bytes], int]:
    """Return the seconds that a record costs a play, the lines, and how often they were synced."""
    began = time.perf_counter()
    play_with(None, rounds)
    without = time.perf_counter() - began
    syncs = 0
    with open_journal(path, rounds) as journal:
        sync = journal.sync

        def count_sync() -> None:
            nonlocal syncs
            syncs += 1
            sync()

        journal.sync = count_sync  # type: ignore[method-assign] # to count them
        began = time.perf_counter()
        play_with(journal, rounds)
        taken = time.perf_counter() - began
    lines = path.read_bytes().splitlines(keepends=True)
    return (taken - without) / len(lines), lines, syncs


def time_bare_file(path: Path, lines: list[bytes], syncs: int) -> float:
    """Return the seconds that a line costs which is written, and synced as often, by itself."""
    every = max(1, len(lines) // max(1, syncs))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        began = time.perf_counter()
        for number, line in enumerate(lines):
            os.write(descriptor, line)
            if number % every == 0:
                os.fsync(descriptor)
        return (time.perf_counter() - began) / len(lines)
    finally:
        os.close(descriptor)


def measure_journal(rounds: int = 300) -> list[Row]:
    """Measure what a record of the journal costs, in turn with a bare file."""
    ours, bare = [], []
    # Beside the code, as journals are: a temporary folder may be in memory.
    with TemporaryDirectory(dir=Path.cwd()) as folder:
        for number in range(REPETITIONS):
            cost, lines, syncs = time_journal(Path(folder) / f"{number}.jsonl", rounds)
            ours.append(cost)
            bare.append(time_bare_file(Path(folder) / f"{number}.bare", lines, syncs))
    what = "a journal record"
    return [
        _allow(f"{what}; 1 ms", median(ours), RECORD),
        _row(f"{what}; write and fsync", median(ours), median(bare), most=10.0),
    ]


def _allow(what: str, ours: float, allowed: float) -> Row:
    return _row(what, ours, allowed, most=1.0)


def _row(what: str, ours: float, peer: float, *, most: float) -> Row:
    ratio = ours / peer
    return Row(what, ours, peer, ratio, f"at most {most:g} x", ratio <= most)


def rows() -> list[Callable[[], Row]]:
    """Measure all, and return the rows of this benchmark."""
    measured = [
        row
        for measure in (measure_http, measure_mqtt, measure_rounds, measure_journal)
        for row in measure()
    ]
    return [partial(_same, row) for row in measured]


def _same(row: Row) -> Row:
    return row


if __name__ == "__main__":
    main("Live play", rows())
