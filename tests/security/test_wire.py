"""Attacks by real things that send what no message should be."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from sparq_sim.documents import MOST_LEVELS
from sparq_sim.errors import PeerError
from sparq_sim.live.pause import MOST_NOTICE, Notice, make_condition
from sparq_sim.remote.peer import Exchanges
from sparq_sim.remote.program import ProgramAddress
from sparq_sim.remote.wire import decode
from sparq_sim.scenario.live_table import PauseCommand, PauseFile
from tests.conftest import PATIENCE
from tests.remote.serve.asks import ask

_HOSTILE = """
import json, sys

for line in sys.stdin:
    key = json.loads(line)["id"]
    if key == "deep":
        print('{"type": "answer", "id": "deep", "values": ' + "[" * LEVELS + "]" * LEVELS + "}")
    else:
        print(json.dumps({"type": "answer", "id": key, "values": [0.5]}))
    sys.stdout.flush()
"""


@pytest.mark.asyncio
@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 900, 100_000])
async def test_a_message_that_is_nested_deeply_fails_its_request_alone(
    monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    monkeypatch.setenv("SPARQ_TEST_SECRET", "hidden")
    command = (sys.executable, "-c", _HOSTILE.replace("LEVELS", str(levels)))
    address = ProgramAddress(command=command, timeout=PATIENCE, pass_env=("SPARQ_TEST_SECRET",))
    async with address.open() as peer:
        with pytest.raises(PeerError, match="nested too deeply"):
            await peer.exchange(ask("deep"))
        assert (await peer.exchange(ask("flat")))["values"] == [0.5]


def test_a_message_may_be_nested_as_deep_as_messages_are() -> None:
    text = b'{"a":' * MOST_LEVELS + b"1" + b"}" * MOST_LEVELS
    assert decode(text)


@pytest.mark.asyncio
async def test_readings_that_nobody_takes_do_not_fill_the_memory() -> None:
    exchanges = Exchanges(timeout=1.0)
    for i in range(3000):
        exchanges.take(b'{"type": "reading", "id": "%d", "points": [[1]], "values": [1]}' % i)
    assert exchanges.dropped == {"a reading that nobody took in time": 2000}


async def _look(pause: PauseFile | PauseCommand) -> Notice | None:
    return await make_condition(pause)()


def test_a_long_notice_of_a_pause_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "PAUSE"
    with file.open("wb") as stream:
        stream.truncate(20 * MOST_NOTICE)
        stream.write(b'reason = "r"\n#')
    notice = asyncio.run(_look(PauseFile(file=file)))
    assert notice is not None
    assert len(notice.reason) <= 200


def test_a_command_that_prints_without_measure_is_heard_in_part() -> None:
    command = (sys.executable, "-c", f"print('x' * {50 * MOST_NOTICE}); raise SystemExit(3)")
    notice = asyncio.run(_look(PauseCommand(command=command, timeout=PATIENCE)))
    assert notice is not None
    assert notice.reason == "x" * 200


@pytest.mark.parametrize("content", [b"a = " + b"[" * 100_000, b"a = 1" + b"0" * 10_000, b"\xff"])
def test_a_notice_that_is_no_toml_pauses_nonetheless(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "PAUSE"
    file.write_bytes(content)
    assert asyncio.run(_look(PauseFile(file=file))) is not None
