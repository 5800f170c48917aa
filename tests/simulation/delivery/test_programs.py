from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparq_sim import Channel, Estimate, Expert, Query, Rules, Trace, World, play, play_live
from sparq_sim.errors import LiveOnlyError, ProgramError
from sparq_sim.simulation.delivery.programs import Program, kill_all
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop
from tests.conftest import PATIENCE, wait_until

ENDLESS = "import time\nwhile True: time.sleep(1)"
WRITES_PID = (
    "import os, sys, pathlib\npathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n" + ENDLESS
)


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Whoever was killed, and whose parent is gone, may wait to be reaped.
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return not Path("/proc/self/stat").exists()
    return state != "Z"


# By itself.


def test_a_program_is_given_the_environment_that_was_chosen() -> None:
    code = "import os\nprint(os.environ.get('LAB'), 'HOME' in os.environ)"
    assert Program(python(code), environment={"LAB": "north"}).run() == "north False\n"


def test_a_program_reads_its_input_and_gives_its_output() -> None:
    double = "import sys\nprint(2 * float(sys.stdin.read()), sys.argv[1])"
    assert Program(python(double, "units"), input="21").run() == "42.0 units\n"
    assert Program(python(double, "units"), input=b"21").run() == "42.0 units\n"


def test_a_program_without_input_reads_nothing() -> None:
    assert Program(python("import sys\nprint(repr(sys.stdin.read()))")).run() == "''\n"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            "import sys\nfor i in range(9): print('line', i, file=sys.stderr)\nsys.exit(3)",
            r"^python\S* ended with exit code 3: line 6 / line 7 / line 8$",
        ),
        ("raise SystemExit(4)", "ended with exit code 4, and nothing on stderr$"),
        ("import os\nos.kill(os.getpid(), 9)", "ended with signal 9, and nothing on stderr$"),
        ("import sys\nsys.exit('x' * 999)", r"ended with exit code 1: x{200}$"),
    ],
)
def test_a_program_that_fails_is_named_with_its_code_and_its_last_lines(
    program: str, message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        Program(python(program)).run()


def test_a_program_that_is_missing_is_named() -> None:
    with pytest.raises(ProgramError, match="no program 'no-such-solver' is found; install it, or"):
        Program(["no-such-solver", "-n", "3"]).run()


def test_a_file_that_is_no_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"cannot be run: Permission denied"):
        Program([tmp_path]).run()


@pytest.mark.parametrize("command", ["ls -l", [], b"ls"])
def test_a_command_that_is_no_list_is_refused(command: Any) -> None:
    with pytest.raises(ProgramError, match=r"expected a list of a program and its arguments"):
        Program(command)


def test_a_program_that_does_not_end_in_time_is_killed() -> None:
    with pytest.raises(
        ProgramError, match=r"^python\S* did not end within 0\.1 s, and was killed$"
    ):
        Program(python(ENDLESS), timeout=0.1).run()


def test_a_program_is_killed_with_what_it_has_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    starts = (
        "import pathlib, subprocess, sys\n"
        f"child = subprocess.Popen([sys.executable, '-c', {ENDLESS!r}])\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "child.wait()"
    )
    program = Program(python(starts, str(file)))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(program.run)
        wait_until(lambda: file.exists() and bool(file.read_text()))
        program.kill()
        with pytest.raises(ProgramError, match="ended with signal 9"):
            running.result()
    wait_until(lambda: not is_alive(int(file.read_text())))


def test_what_a_program_that_has_ended_left_behind_is_killed_in_time(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    began = time.monotonic()
    with pytest.raises(ProgramError, match=r"^sh did not end within 0\.2 s, and was killed$"):
        Program(["sh", "-c", f"sleep 60 & echo $! > {file}"], timeout=0.2).run()
    assert time.monotonic() - began < 30.0
    wait_until(lambda: not is_alive(int(file.read_text())))


@pytest.mark.skipif(shutil.which("setsid") is None, reason="there is no setsid")
def test_what_has_got_away_from_a_program_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparq_sim.simulation.delivery.programs.GRACE", 0.1)
    file = tmp_path / "pid"
    began = time.monotonic()
    with pytest.raises(ProgramError, match="did not end within"):
        Program(["sh", "-c", f"setsid sleep 60 & echo $! > {file}"], timeout=0.2).run()
    assert time.monotonic() - began < 30.0
    with suppress(ProcessLookupError):
        os.kill(int(file.read_text()), signal.SIGKILL)


def test_a_program_that_was_given_up_does_not_begin() -> None:
    program = Program(["no-such-solver"])
    program.kill()
    with pytest.raises(ProgramError, match="given up before it began"):
        program.run()


def test_all_that_run_can_be_killed() -> None:
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(Program(python(ENDLESS)).run) for _ in range(2)]
        while not all(each.done() for each in running):
            kill_all()
            time.sleep(0.01)
    assert all("ended with signal 9" in str(each.exception()) for each in running)


# In a play.


class Solver(Expert):
    """Calls a program, which doubles what it reads."""

    program: str = "import sys\nprint(2 * float(sys.stdin.read()))"
    takes: float = 0.4
    timeout: float | None = None

    async def answer(self, query: Query, world: World) -> Estimate:
        asked = str(query.points[0, 0])
        command = python(self.program)
        output = await world.run(command, input=asked, takes=self.takes, timeout=self.timeout)
        return Estimate(np.full(len(query.points), float(output)))


def virtually(expert: Expert, **fields: Any) -> Trace:
    rules = Rules(rounds=fields.pop("rounds", 3))
    return play(Asker(batch=1), Slope(), rules, experts={"it": (expert, Channel(**fields))})


def live(expert: Expert, **fields: Any) -> Trace:
    rules = Rules(rounds=fields.pop("rounds", 3))
    experts = {"it": (expert, Channel(**fields))}
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(play_live(Asker(batch=1), Slope(), rules, experts=experts))


def answers(trace: Trace, column: str) -> list[Any]:
    values: list[Any] = trace.replies[column][trace.replies["source"] == "it"].tolist()
    return values


def test_a_program_takes_the_time_that_is_declared_under_both_clocks() -> None:
    virtual, real = virtually(Solver()), live(Solver())
    assert answers(virtual, "fate") == ["answered"] * 3
    assert answers(virtual, "arrived_at") == [1.4, 2.4, 3.4]
    assert answers(virtual, "value") == (2 * virtual.points[:, 0]).tolist()
    assert virtual.digest() == real.digest()


@pytest.mark.parametrize("played", [virtually, live])
def test_a_program_that_fails_fails_the_query_by_name(played: Callable[..., Trace]) -> None:
    failing = Solver(program="import sys\nsys.exit('singular matrix ' + 200 * '.' + ' at row 3')")
    trace = played(failing, rounds=1)
    assert answers(trace, "fate") == ["invalid"]
    assert answers(trace, "arrived_at") == [1.4]
    (reason,) = answers(trace, "reason")
    assert reason.startswith("it raised ProgramError: python")
    assert "ended with exit code 1: " in reason
    assert re.search(r"at row 3 \(test_programs\.py:\d+ in answer\)$", reason)


class Heavy(Expert):
    """Computes for long; says in which thread."""

    takes: float = 0.4
    fails: bool = False

    async def answer(self, query: Query, world: World) -> Estimate:
        value = await world.compute(self._work, 3.0, takes=self.takes)
        return Estimate(np.full(len(query.points), value))

    def _work(self, base: float) -> float:
        if self.fails:
            raise ZeroDivisionError("too heavy")
        return base**2


def test_a_function_takes_the_time_that_is_declared_under_both_clocks() -> None:
    virtual, real = virtually(Heavy()), live(Heavy())
    assert answers(virtual, "value") == [9.0] * 3
    assert answers(virtual, "arrived_at") == [1.4, 2.4, 3.4]
    assert virtual.digest() == real.digest()


@pytest.mark.parametrize("played", [virtually, live])
def test_a_function_that_fails_takes_its_time_too(played: Callable[..., Trace]) -> None:
    trace = played(Heavy(fails=True), rounds=1)
    assert answers(trace, "fate") == ["invalid"]
    assert answers(trace, "arrived_at") == [1.4]
    assert answers(trace, "reason")[0].startswith("it raised ZeroDivisionError: too heavy")


class Exhausted(Teller):
    """Looks for the first of nothing."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return await world.compute(next, iter(()))


def test_a_function_that_finds_no_next_fails_the_query_alike_under_both_clocks() -> None:
    virtual, real = virtually(Exhausted(), rounds=1), live(Exhausted(), rounds=1)
    (reason,) = answers(virtual, "reason")
    told = "it raised RuntimeError: a function that was called raised StopIteration"
    assert reason.startswith(told)
    assert virtual.digest() == real.digest()


class Swift(Teller):
    """Computes, and does not say for how long."""

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(await world.compute(np.zeros, len(query.points)))


def test_a_function_takes_no_time_unless_some_is_declared() -> None:
    assert answers(virtually(Swift()), "arrived_at") == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("takes", [-1.0, nan, inf])
def test_a_time_that_is_none_is_refused(takes: float) -> None:
    (reason,) = answers(virtually(Heavy(takes=takes), rounds=1), "reason")
    assert f"takes must be a finite number, 0 or more, not {takes!r}" in reason


class Mistaken(Teller):
    """Computes an asynchronous function."""

    async def answer(self, query: Query, world: World) -> Estimate:
        answer: Any = super().answer
        estimate: Estimate = await world.compute(answer, query, world)
        return estimate


def test_an_asynchronous_function_is_no_heavy_one() -> None:
    (reason,) = answers(virtually(Mistaken(), rounds=1), "reason")
    assert "world.compute calls plain functions; await Teller.answer itself" in reason


class Endless(Teller):
    """Runs a program that does not end, until one of the ways in which it *ends* has come.

    The program leaves its number in a *file*.
    """

    file: str
    ends: str

    async def answer(self, query: Query, world: World) -> Estimate:
        running = world.clock.start(world.run(python(WRITES_PID, self.file)))
        while not self.pid():
            await world.clock.sleep(0.2)
        match self.ends:
            case "over":
                world.stop("enough")
            case "failed":
                raise LiveOnlyError("ends a play")
            case "given up":
                running.cancel()
        await running
        return await super().answer(query, world)

    def pid(self) -> int:
        file = Path(self.file)
        return int(file.read_text() or "0") if file.exists() else 0


@pytest.mark.asyncio
@pytest.mark.filterwarnings("ignore::sparq_sim.simulation.clock.realtime.SlowStartWarning")
@pytest.mark.parametrize("ends", ["given up", "over", "failed", "cancelled"])
async def test_a_program_is_killed_when_it_is_not_waited_for_any_more(
    tmp_path: Path, ends: str
) -> None:
    expert = Endless(file=str(tmp_path / "pid"), ends=ends)
    experts = {"it": (expert, Channel(capacity=1))}
    rules = Rules(horizon=PATIENCE / 0.05)
    playing = asyncio.create_task(
        play_live(Asker(batch=1), Slope(), rules, experts=experts, seconds=0.05)
    )
    while not expert.pid():
        await asyncio.sleep(0.01)
    if ends == "cancelled":
        playing.cancel()
    if ends == "given up":
        await asyncio.to_thread(wait_until, lambda: not is_alive(expert.pid()))
        playing.cancel()
    await asyncio.wait([playing])
    wait_until(lambda: not is_alive(expert.pid()))


def test_a_worker_that_is_told_to_end_kills_its_programs(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    worker = (
        "import sys\n"
        "from sparq_sim.study.executors.signals import settle_worker\n"
        "from sparq_sim.simulation.delivery.programs import Program\n"
        "settle_worker()\n"
        f"Program({python(WRITES_PID, str(file))!r}).run()\n"
    )
    with subprocess.Popen(python(worker)) as working:
        wait_until(lambda: file.exists() and file.read_text())
        working.terminate()
        assert working.wait(timeout=PATIENCE) == -signal.SIGTERM
    wait_until(lambda: not is_alive(int(file.read_text())))
