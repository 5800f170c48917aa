from __future__ import annotations

import asyncio
import gc
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any, ClassVar

import numpy as np
import pytest
from numpy.random import Generator

from sparq_sim import (
    Briefing,
    Environment,
    Estimate,
    Expert,
    Move,
    Optimizer,
    PluginError,
    Query,
    Rules,
    Trace,
    World,
    play,
    play_live,
)
from sparq_sim.analysis.levels import compute_levels
from sparq_sim.errors import LiveOnlyError
from sparq_sim.messages import Reply
from sparq_sim.optimizers.fixed import Fixed
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.contract import Agent, Answering, Landscape
from sparq_sim.plugin.frames import describe_error
from sparq_sim.report.environment import portray
from sparq_sim.report.replay import play_again
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.beliefs import Watched
from sparq_sim.simulation.lifetime import close_all, open_landscape
from sparq_sim.study.executors import InProcess
from sparq_sim.study.study import Study
from sparq_sim.testing import (
    Asker,
    LawError,
    Slope,
    Teller,
    WaitlessLoop,
    check_environment,
    check_expert,
    check_optimizer,
)

LOG: list[str] = []
"""What has happened in the test at hand."""


@pytest.fixture(autouse=True)
def _empty_log() -> None:
    LOG.clear()


def virtually(**parts: Any) -> Trace:
    return play(**{"optimizer": Asker(), "environment": Slope(), "rules": Rules(rounds=3)} | parts)


def live(**parts: Any) -> Trace:
    defaults = {"optimizer": Asker(), "environment": Slope(), "rules": Rules(rounds=3)}
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        return runner.run(play_live(**defaults | parts))


Played = Callable[..., Trace]


@pytest.fixture(params=[virtually, live], ids=["virtual", "live"])
def played(request: pytest.FixtureRequest) -> Played:
    """Play under either clock."""
    chosen: Played = request.param
    return chosen


class Logged:
    """A context manager that logs when it is entered and left."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Logged:
        LOG.append(f"{self.name} entered")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        LOG.append(f"{self.name} left" + (f" by {kind.__name__}" if kind else ""))


class Held(Logged):
    """Answers, and may fail in some way."""

    def __init__(self, model: Holding, name: str) -> None:
        super().__init__(name)
        self._fails_in = model.fails_in

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self._fails_in == "close":
            raise OSError("the disk is full")

    async def answer(self, query: Query, world: World) -> Estimate:
        LOG.append(f"{self.name} asked")
        return Estimate(np.ones(len(query.points)))

    async def broadcast(self, world: World) -> None:
        try:
            await world.clock.sleep(1.5)
            if self._fails_in == "play":
                raise PluginError("the pipe broke")
            await world.clock.sleep(100)
        finally:
            LOG.append(f"{self.name} under way")


class Holding(Expert):
    """Holds something while a play lasts."""

    name: str = "expert"
    fails_in: str = ""

    def start(self, briefing: Briefing) -> Answering:
        if self.fails_in == "start":
            raise OSError("no such device")
        return Held(self, self.name)


class HeldWorld(Environment):
    """A slope that holds something."""

    def start(self, rng: Generator) -> Landscape:
        return HeldSlope(Slope().start(rng))


class HeldSlope(Logged):
    def __init__(self, inner: Landscape) -> None:
        super().__init__("world")
        self.domain, self.rewards, self.best = inner.domain, inner.rewards, inner.best


class HeldAsker(Optimizer):
    """Asks, and holds something."""

    fails_at: float = 100.0

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        return HeldAgent(self, Asker(batch=1).start(briefing, rng))


class HeldAgent(Logged):
    def __init__(self, model: HeldAsker, inner: Agent) -> None:
        super().__init__("agent")
        self._model, self._inner = model, inner

    def ask(self, now: float) -> Move:
        if now >= self._model.fails_at:
            raise ZeroDivisionError("a bug of the agent")
        return self._inner.ask(now)

    def tell(self, reply: Reply) -> None:
        self._inner.tell(reply)


def parts(**given: Any) -> dict[str, Any]:
    experts = {"one": Holding(name="one"), "two": Holding(name="two", **given)}
    return {"environment": HeldWorld(), "optimizer": HeldAsker(), "experts": experts}


ENTERED = ["world entered", "one entered", "two entered", "agent entered"]


def test_all_that_is_held_is_entered_in_order_and_left_in_reverse_order(played: Played) -> None:
    played(**parts(), rules=Rules(rounds=1))
    assert LOG[:4] == ENTERED
    assert set(LOG[4:6]) == {"one asked", "two asked"}
    # Processes under way end first.
    assert LOG[6:8] == ["one under way", "two under way"]
    assert LOG[8:] == ["agent left", "two left", "one left", "world left"]


def test_a_play_that_fails_in_the_middle_leaves_all(played: Played) -> None:
    with pytest.raises(ZeroDivisionError):
        played(**parts() | {"optimizer": HeldAsker(fails_at=2.0)})
    assert LOG[-6:-4] == ["one under way", "two under way"]
    assert LOG[-4:] == [
        f"{who} left by ZeroDivisionError" for who in ["agent", "two", "one", "world"]
    ]


def test_a_process_that_fails_leaves_all(played: Played) -> None:
    with pytest.raises(PluginError, match="the pipe broke"):
        played(**parts(fails_in="play"))
    assert LOG[-4:] == [f"{who} left by PluginError" for who in ["agent", "two", "one", "world"]]


def test_a_start_that_fails_leaves_what_was_entered_before(played: Played) -> None:
    with pytest.raises(OSError, match="no such device"):
        played(**parts(fails_in="start"))
    assert LOG == ["world entered", "one entered", "one left by OSError", "world left by OSError"]


def test_who_could_not_be_started_is_named(played: Played) -> None:
    with pytest.raises(OSError, match="no such device") as caught:
        played(**parts(fails_in="start"))
    assert describe_error(caught.value).endswith("; expert 'two' (Holding) could not be started")


class Undecorated(Teller):
    """Has a start that lacks its decorator, or is async."""

    how: str

    def start(self, briefing: Briefing) -> Any:
        return {"generator": self._generator, "coroutine": self._coroutine}[self.how]()

    def _generator(self) -> Iterator[Answering]:
        yield self

    async def _coroutine(self) -> Answering:
        return self


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("generator", r"start is a generator; write @contextmanager \(of contextlib\) above it"),
        ("coroutine", r"start must be a method that is not async: `def start`; what takes time"),
    ],
)
def test_a_start_that_has_not_run_is_refused_with_its_remedy(
    played: Played, how: str, told: str
) -> None:
    with pytest.raises(PluginError, match=rf"^expert 'it' \(Undecorated\): {told}"):
        played(experts={"it": Undecorated(how=how)})


def test_what_cannot_be_closed_is_named_and_the_others_are_left(played: Played) -> None:
    with pytest.raises(PluginError, match=r"expert 'two' \(Holding\) could not be closed: OSError"):
        played(**parts(fails_in="close"))
    assert LOG[-3:] == ["two left", "one left", "world left"]


def test_what_cannot_be_closed_does_not_hide_why_the_play_failed(played: Played) -> None:
    with pytest.raises(ZeroDivisionError, match="a bug of the agent") as caught:
        played(**parts(fails_in="close") | {"optimizer": HeldAsker(fails_at=2.0)})
    assert LOG[-1] == "world left by ZeroDivisionError"
    told = describe_error(caught.value)
    assert told.startswith("ZeroDivisionError: a bug of the agent")
    assert "; expert 'two' (Holding) could not be closed: OSError: the disk is full" in told


def test_a_play_that_is_cancelled_leaves_all() -> None:
    async def main() -> None:
        task = asyncio.create_task(
            play_live(HeldAsker(), HeldWorld(), Rules(rounds=9), experts={"one": Holding()})
        )
        await asyncio.sleep(2.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        runner.run(main())
    assert LOG[-3:] == [f"{who} left by CancelledError" for who in ["agent", "expert", "world"]]


def test_ctrl_c_in_a_play_leaves_all() -> None:
    def interrupt(_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    # A shell's background ignores Ctrl-C.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            virtually(**parts(), watch=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert LOG[-1] == "world left by KeyboardInterrupt"


def test_a_landscape_handed_in_is_left_to_its_owner(played: Played) -> None:
    with open_landscape(HeldWorld(), seed=0) as landscape:
        played(environment=HeldWorld(), landscape=landscape)
        played(environment=HeldWorld(), landscape=landscape)
        assert LOG == ["world entered"]
    assert LOG == ["world entered", "world left"]


# What one may hold.


class Reader(Expert):
    """Reads its answers from a *file*, which it keeps open."""

    file: Path

    @contextmanager
    def start(self, briefing: Briefing) -> Iterator[Answering]:
        with self.file.open() as file:
            yield ReaderAtWork(file)
        LOG.append(f"closed: {file.closed}")


class ReaderAtWork:
    def __init__(self, file: IO[str]) -> None:
        self._file = file

    async def answer(self, query: Query, world: World) -> Estimate:
        return Estimate(np.array([float(self._file.readline()) for _ in query.points]))


def test_a_start_may_be_a_context_manager_that_yields_what_answers(
    played: Played, tmp_path: Path
) -> None:
    file = tmp_path / "answers.txt"
    file.write_text("1.5\n2.5\n3.5\n")
    trace = played(optimizer=Asker(batch=1), experts={"reader": Reader(file=file)})
    answers = trace.replies["value"][trace.replies["source"] == "reader"]
    assert answers.tolist() == [1.5, 2.5, 3.5]
    assert LOG == ["closed: True"]


class Echo(Expert):
    """Answers by a child process, which lives as long as the play."""

    async def answer(self, query: Query, world: World) -> Estimate:
        child = self._children[-1]
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{world.clock.now}\n")
        child.stdin.flush()
        return Estimate(np.full(len(query.points), float(child.stdout.readline())))

    _children: ClassVar[list[subprocess.Popen[str]]] = []

    def __enter__(self) -> None:
        program = "import sys\nfor line in sys.stdin: print(2 * float(line), flush=True)"
        command = [sys.executable, "-c", program]
        self._children.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )

    def __exit__(self, *_: object) -> None:
        with self._children[-1] as child:
            child.terminate()


def test_a_model_that_answers_itself_may_hold_a_child_process(played: Played) -> None:
    trace = played(optimizer=Asker(batch=1), experts={"echo": Echo()})
    assert trace.replies["value"][trace.replies["source"] == "echo"].tolist() == [2.0, 4.0, 6.0]
    assert Echo._children[-1].returncode is not None


class Client(Expert):
    """Asks by a client that takes time to connect."""

    def start(self, briefing: Briefing) -> Answering:
        return ClientAtWork()


class ClientAtWork(Teller):
    async def __aenter__(self) -> ClientAtWork:
        await asyncio.sleep(30)
        LOG.append("connected")
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(30)
        LOG.append("disconnected")


def test_an_asynchronous_client_connects_before_a_live_play_begins() -> None:
    trace = live(experts={"client": Client()})
    assert LOG == ["connected", "disconnected"]
    assert trace.rounds["played_at"].tolist() == [1.0, 2.0, 3.0]
    assert trace.digest() == virtually(experts={"client": Teller()}).digest()


def test_a_client_that_takes_real_time_is_refused_in_virtual_time() -> None:
    with pytest.raises(
        LiveOnlyError, match=r"expert 'client' \(Client\)\.__aenter__ calls asyncio"
    ):
        virtually(experts={"one": Holding(), "client": Client()})
    assert LOG == ["expert entered", "expert left by LiveOnlyError"]


@pytest.mark.asyncio
async def test_also_within_a_running_loop_that_is_said_by_name() -> None:
    with pytest.raises(LiveOnlyError, match=r"'client' \(Client\)\.__aenter__ awaits <Future"):
        virtually(experts={"client": Client()})


class Prompt(Teller):
    """Is entered asynchronously, and waits for nothing."""

    async def __aenter__(self) -> None:
        LOG.append("entered")

    async def __aexit__(self, *_: object) -> None:
        LOG.append("left")


def test_an_asynchronous_context_manager_that_does_not_wait_serves_both_clocks(
    played: Played,
) -> None:
    played(experts={"prompt": Prompt()})
    assert LOG == ["entered", "left"]


class HeldBothWays(HeldSlope):
    """Is both kinds of context manager."""

    async def __aenter__(self) -> None:
        raise AssertionError

    async def __aexit__(self, *_: object) -> None:
        raise AssertionError


class BothWays(Environment):
    """A landscape that is both kinds of context manager."""

    def start(self, rng: Generator) -> Landscape:
        return HeldBothWays(Slope().start(rng))


def test_who_may_not_wait_is_left_as_it_was_entered(played: Played) -> None:
    played(environment=BothWays())
    assert LOG == ["world entered", "world left"]


class AsyncAsker(Asker):
    """An optimizer whose agent is an asynchronous context manager."""

    def start(self, briefing: Briefing, rng: Generator) -> Agent:
        agent: Any = Prompt()
        return agent  # type: ignore[no-any-return] # what it is does not matter


def test_only_experts_may_be_asynchronous_context_managers(played: Played) -> None:
    with pytest.raises(PluginError, match=r"AsyncAsker: .* as only experts may; define __enter__"):
        played(optimizer=AsyncAsker())


def test_a_process_that_must_end_leaves_all_that_it_holds() -> None:
    with open_landscape(HeldWorld(), seed=0), open_landscape(HeldWorld(), seed=1):
        close_all(KeyboardInterrupt())
        assert LOG == ["world entered"] * 2 + ["world left by KeyboardInterrupt"] * 2
    assert len(LOG) == 4


# Wherever a landscape is started, it is closed.


def test_a_landscape_that_is_portrayed_is_closed(tmp_path: Path) -> None:
    portray(HeldWorld(), tmp_path / "world.html", name="held", horizon=3.0)
    assert LOG == ["world entered", "world left"]


def test_a_landscape_whose_levels_are_computed_is_closed() -> None:
    scenario = Scenario(environment=HeldWorld(), optimizers={"a": Uniform()}, rounds=2)
    assert len(compute_levels(scenario)) == 1
    assert LOG == ["world entered", "world left"]


def test_an_agent_that_is_watched_for_the_report_is_left_by_its_own_name() -> None:
    watched = Watched(optimizer=HeldAsker(), looks=lambda agent, now: LOG.append(f"at {now:g}"))
    virtually(optimizer=watched, rules=Rules(rounds=2))
    assert LOG == ["agent entered", "at 1", "at 2", "agent left"]


def test_replays_of_a_study_enter_and_leave_its_landscapes(tmp_path: Path) -> None:
    scenario = Scenario(
        environment=HeldWorld(),
        optimizers={"a": Uniform(), "b": Fixed(point=(0.5,))},
        rounds=2,
        replications=1,
    )
    study = Study(scenario, tmp_path)
    study.run(InProcess())
    LOG.clear()
    shown = play_again(study.results, allow_import=True)
    assert [replay.missing for replay in shown] == ["", ""]
    assert LOG == ["world entered", "world left"]


def test_the_laws_are_checked_on_a_landscape_that_is_entered_and_left() -> None:
    check_environment(HeldWorld())
    assert (LOG.count("world entered"), LOG.count("world left")) == (3, 3)


class Stuck:
    """A context manager around what plays, which is impossible left."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __enter__(self) -> Any:
        return self._inner

    def __exit__(self, *_: object) -> None:
        raise OSError("the disk is full")


class StuckWorld(Slope):
    """A landscape that cannot be closed."""

    def start(self, rng: Generator) -> Any:
        return Stuck(super().start(rng))


class StuckExpert(Teller):
    """An expert that cannot be closed."""

    def start(self, briefing: Briefing) -> Any:
        return Stuck(super().start(briefing))


class StuckAsker(Asker):
    """An agent that cannot be closed."""

    def start(self, briefing: Briefing, rng: Generator) -> Any:
        return Stuck(super().start(briefing, rng))


@pytest.mark.parametrize(
    "check",
    [
        partial(check_environment, StuckWorld()),
        partial(check_expert, StuckExpert()),
        partial(check_optimizer, StuckAsker()),
    ],
)
def test_what_cannot_be_closed_breaks_a_law_and_is_left_in_quiet(
    check: Callable[[], None], capfd: pytest.CaptureFixture[str]
) -> None:
    told = (
        r"can be entered and left; seen: .*Stuck\w+ could not be closed: OSError: the disk is full"
    )
    with pytest.raises(LawError, match=told):
        check()
    gc.collect()
    assert capfd.readouterr().err == ""
