"""A child may do anything: each exchange ends with a reply, or with the reason."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sparq_sim.errors import PeerError, SparqError
from sparq_sim.fields import ScenarioString
from sparq_sim.remote import program
from sparq_sim.remote.peer import Peer
from sparq_sim.remote.program import ProgramAddress
from sparq_sim.remote.secrets import HIDDEN
from tests.remote.children import ANSWERING, compile_lab, for_each_message, python

pytestmark = pytest.mark.asyncio

ASK = {
    "sparq": 1,
    "type": "ask",
    "id": "play/lab/1/0",
    "source": "lab",
    "names": ["x"],
    "points": [[0.25]],
    "asked_at": 1.7e9,
    "play_time": 3.0,
    "unit": 1.0,
}
ANSWER = {"type": "answer", "id": ASK["id"], "values": [0.5]}


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less before a child is started again."""
    monkeypatch.setattr(program, "FIRST_PAUSE", 0.01)


@asynccontextmanager
async def running(command: tuple[str, ...], **fields: Any) -> AsyncIterator[Peer]:
    address = ProgramAddress(command=command, **({"timeout": 20.0, "restarts": 0} | fields))
    async with address.open() as peer:
        yield peer


async def exchange(command: tuple[str, ...], **fields: Any) -> Mapping[str, Any]:
    async with running(command, **fields) as peer:
        return await peer.exchange(ASK)


async def failure(command: tuple[str, ...], **fields: Any) -> str:
    with pytest.raises(PeerError) as caught:
        await exchange(command, **fields)
    return str(caught.value)


def is_running(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_request_is_a_line_and_its_reply_another() -> None:
    async with running(ANSWERING) as peer:
        assert await peer.exchange(ASK) == ANSWER
        assert await peer.exchange(ASK | {"points": [[2.0]]}) == ANSWER | {"values": [4.0]}


async def test_a_program_in_c_answers(tmp_path: Path) -> None:
    async with running(compile_lab(tmp_path)) as peer:
        points = [[0.25, 0.5], [-1e-3, 3.0]]
        reply = await peer.exchange(ASK | {"names": ["x", "y"], "points": points})
        expected = [1 - (x - 0.3) * (x - 0.3) - (y - 0.3) * (y - 0.3) for x, y in points]
        assert reply["values"] == pytest.approx(expected, rel=1e-15)


async def test_replies_come_in_any_order_while_many_requests_are_under_way() -> None:
    child = python("""
    lines = [sys.stdin.readline() for _ in range(64)]
    for line in reversed(lines):
        message = json.loads(line)
        print(json.dumps({"type": "answer", "id": message["id"], "values": message["points"][0]}))
    sys.stdin.read()
    """)
    async with running(child) as peer:
        asks = [ASK | {"id": str(number), "points": [[number]]} for number in range(64)]
        replies = await asyncio.gather(*map(peer.exchange, asks))
    assert [each["values"] for each in replies] == [[number] for number in range(64)]


async def test_readings_come_unasked_between_replies() -> None:
    child = for_each_message("""
    print(json.dumps({"type": "reading", "points": [[0.1]], "values": [7.0]}))
    reply()
    """)
    async with running(child) as peer:
        assert await peer.exchange(ASK) == ANSWER
        async for reading in peer.readings():
            assert reading["values"] == [7.0]
            break


async def test_an_answer_may_come_later_than_the_timeout_if_that_is_said() -> None:
    child = for_each_message("""
    reply(type="later", seconds=20.0)
    time.sleep(0.5)
    reply()
    """)
    async with running(child, timeout=20.0) as peer:
        assert await peer.exchange(ASK) == ANSWER  # Once, as Python takes some time to start.
        peer.exchanges._timeout = 0.3  # type: ignore[attr-defined] # of a peer that is a program
        assert await peer.exchange(ASK) == ANSWER


# Misbehaviours


async def test_a_line_that_is_no_json_is_told_of() -> None:
    told = await failure(for_each_message("print('value = 0.5')"))
    assert told == "sent no JSON: 'value = 0.5'"


async def test_half_a_line_then_silence_ends_by_the_timeout() -> None:
    child = for_each_message("""sys.stdout.write('{"type": "answer", "id": ')""")
    assert await failure(child, timeout=0.5) == "did not reply within 0.5 s"


async def test_silence_ends_by_the_timeout() -> None:
    assert await failure(for_each_message("pass"), timeout=0.3) == "did not reply within 0.3 s"


async def test_a_reply_to_another_request_is_told_of() -> None:
    told = await failure(for_each_message("reply(id='other')"), timeout=1.0)
    assert "did not reply within 1 s; it sent a reply to another request, of id 'other'" in told


async def test_a_line_that_is_too_long_is_forgotten_and_the_next_is_read() -> None:
    child = for_each_message("""
    if message["id"] == "long":
        sys.stdout.write("x" * 5_000_000)
    print()
    reply()
    """)
    async with running(child, largest=1000) as peer:
        with pytest.raises(
            PeerError, match=r"^wrote a line of more than 1000 bytes; see the field"
        ):
            await peer.exchange(ASK | {"id": "long"})
        assert await peer.exchange(ASK) == ANSWER


async def test_a_child_that_dies_fails_what_is_under_way_with_its_last_words() -> None:
    child = for_each_message("print('no more paper', file=sys.stderr); sys.exit(3)")
    assert await failure(child) == "ended with exit code 3: no more paper"


async def test_a_child_that_is_killed_is_told_of() -> None:
    assert await failure(for_each_message("os.kill(os.getpid(), 9)")) == "ended with signal 9"


async def test_a_child_that_answers_and_ends_has_answered() -> None:
    assert await exchange(for_each_message("reply(); sys.exit(1)")) == ANSWER


async def test_a_child_that_dies_is_started_again_and_again_as_long_as_it_speaks() -> None:
    child = for_each_message("sys.exit(1) if message['id'] == 'die' else reply(pid=os.getpid())")
    numbers = set()
    async with running(child, restarts=1) as peer:
        for _ in range(3):
            numbers.add((await peer.exchange(ASK))["pid"])
            with pytest.raises(PeerError, match="ended with exit code 1"):
                await peer.exchange(ASK | {"id": "die"})
    assert len(numbers) == 3


async def test_a_child_that_dies_too_often_is_given_up() -> None:
    async with running(python("sys.exit('no licence')"), restarts=2) as peer:
        reasons: list[str] = []
        while len(reasons) < 5:
            with pytest.raises(PeerError) as caught:
                await peer.exchange(ASK)
            reasons.append(str(caught.value))
    assert {each.split(", and")[0] for each in reasons} == {"ended with exit code 1: no licence"}
    assert reasons[-1].endswith(": no licence, and was started 2 times again")


async def test_a_program_that_is_not_there_is_told_of() -> None:
    told = await failure(("no-such-program",))
    assert told == "cannot be started: 'no-such-program': No such file or directory"


async def test_a_file_that_is_no_program_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "lab").write_text("0.5")
    told = await failure((str(tmp_path / "lab"),))
    assert told.endswith("lab': Permission denied")


async def test_a_child_that_floods_stderr_still_answers() -> None:
    child = for_each_message("sys.stderr.write('x' * 1_000_000); reply()")
    assert await exchange(child) == ANSWER


async def test_a_child_that_does_not_read_its_input_is_told_of() -> None:
    async with running(python("time.sleep(60)"), timeout=0.3, largest=1000) as peer:
        many = ASK | {"points": [[0.25]] * 20_000}
        for told in ("did not reply within", "does not read its input"):
            with pytest.raises(PeerError, match=told):
                await peer.exchange(many)


async def test_a_child_that_closes_its_output_is_ended() -> None:
    child = for_each_message("os.close(1); time.sleep(60)")
    assert await failure(child) == "closed its output, and was ended"


async def test_a_child_that_ignores_everything_is_killed_when_the_door_closes() -> None:
    child = python("""
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    message = json.loads(sys.stdin.readline())
    print(json.dumps({"type": "answer", "id": message["id"], "values": [0.5], "pid": os.getpid()}))
    time.sleep(60)
    """)
    reply = await exchange(child)
    assert not is_running(reply["pid"])


async def test_what_a_child_has_started_ends_with_it() -> None:
    child = for_each_message("""
    import subprocess
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    reply(pid=started.pid)
    """)
    reply = await exchange(child)
    for _ in range(100):  # Until whoever inherits it has noticed.
        if not is_running(reply["pid"]):
            break
        await asyncio.sleep(0.05)
    else:
        state = Path(f"/proc/{reply['pid']}/stat").read_text()
        assert state.rsplit(")", 1)[1].split()[0] == "Z"


async def test_an_exchange_that_is_cancelled_leaves_the_peer_usable() -> None:
    async with running(for_each_message("time.sleep(0.2); reply()")) as peer:
        task = asyncio.create_task(peer.exchange(ASK | {"id": "first"}))
        await asyncio.sleep(0.05)
        task.cancel()
        assert await peer.exchange(ASK) == ANSWER


async def test_a_play_that_ends_while_a_child_waits_to_be_started_again_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "FIRST_PAUSE", 1000.0)
    async with running(for_each_message("sys.exit(1)"), restarts=3) as peer:
        with pytest.raises(PeerError, match="ended with exit code 1"):
            await peer.exchange(ASK)


# What a child is given


async def test_a_child_is_given_no_variable_that_it_does_not_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BANK_TOKEN", "s3cret")
    monkeypatch.setenv("LAB_KEY", "0ther")
    child = for_each_message("reply(variables=dict(os.environ))")
    variables = (await exchange(child, pass_env=("LAB_KEY",)))["variables"]
    assert "BANK_TOKEN" not in variables
    assert variables["LAB_KEY"] == HIDDEN  # It was given the secret, and showed it.
    assert variables["PATH"] == os.environ["PATH"]


async def test_a_secret_that_a_child_shows_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_KEY", "0ther")
    child = for_each_message("sys.exit('bad key ' + os.environ['LAB_KEY'])")
    told = await failure(child, pass_env=("LAB_KEY",))
    assert told == f"ended with exit code 1: bad key {HIDDEN}"


@pytest.mark.parametrize("more", [155, 1900])
async def test_a_secret_is_hidden_also_where_what_a_child_wrote_is_cut(
    monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    monkeypatch.setenv("LAB_KEY", "0123456789" * 12)
    child = for_each_message(f"""
    sys.stderr.write("login with " + os.environ["LAB_KEY"] + " fails; ")
    sys.stderr.flush()
    sys.exit("x" * {more} + os.environ["LAB_KEY"] * 30)
    """)
    told = await failure(child, pass_env=("LAB_KEY",))
    assert HIDDEN in told
    assert "0123" not in told
    assert "6789" not in told


async def test_a_child_runs_in_its_folder(tmp_path: Path) -> None:
    child = for_each_message("reply(folder=os.getcwd())")
    assert (await exchange(child, folder=tmp_path))["folder"] == str(tmp_path)


async def test_a_program_that_is_not_executable_is_told_with_the_remedy(tmp_path: Path) -> None:
    script = tmp_path / "my lab"
    script.write_text("#!/bin/sh")
    with pytest.raises(SparqError, match=r"my lab' is not executable: chmod \+x '.*my lab'$"):
        ProgramAddress(command=(str(script),)).check_ready()


async def test_a_relative_program_in_a_scenario_file_starts_from_its_folder(
    tmp_path: Path,
) -> None:
    script = tmp_path / "lab"
    script.write_text(f"#!{sys.executable}\n{ANSWERING[-1]}")
    script.chmod(0o700)
    address = ProgramAddress(command=[ScenarioString.within(tmp_path, "./lab"), "--fast"])
    address.check_ready()
    assert address.command == (str(script), "--fast")
    async with address.open() as peer:
        assert await peer.exchange(ASK) == ANSWER


async def test_a_missing_program_is_found_before_anything_is_played(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match="no program 'no-such-program' is found"):
        ProgramAddress(command=("no-such-program",)).check_ready()
    with pytest.raises(SparqError, match=r"folder .*absent' of program lab is none"):
        ProgramAddress(command=("./lab",), folder=tmp_path / "absent").check_ready()
    with pytest.raises(SparqError, match="NO_SUCH_VARIABLE is not set"):
        ProgramAddress(command=("true",), pass_env=("NO_SUCH_VARIABLE",)).check_ready()


@pytest.mark.parametrize("command", [(), ("",), ("a", "b\0c")])
async def test_a_command_needs_a_program(command: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match=r"command"):
        ProgramAddress(command=command)
