"""One expert, simulated and real, by every door: the same answers, and the same moves."""

from __future__ import annotations

import asyncio
import sys
from math import floor
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np

from sparq_experts.http import Http
from sparq_experts.mqtt import Mqtt
from sparq_experts.program import Program
from sparq_sim import Box, Channel, Environment, Estimate, Expert, Query, Rules, World, play
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.shared.acquisition import Acquisition
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.briefing import Briefing
from sparq_sim.plugin.environment import Landscape
from sparq_sim.remote.serve.hosting import HostedExpert
from sparq_sim.remote.serve.http import serve_http
from sparq_sim.remote.serve.mqtt import serve_mqtt
from sparq_sim.remote.source import RemoteSource
from sparq_sim.simulation.play import play_live
from sparq_sim.simulation.trace import Trace
from sparq_sim.testing import WaitlessLoop
from tests.conftest import PATIENCE
from tests.remote.brokers import Broker
from tests.remote.children import compile_lab

Answers: TypeAlias = list[tuple[int, int, float]]

RULES = Rules(rounds=8, access="domain")
OPTIMIZER = SparQGPUCB(
    kernel=SquaredExponential(length_scale=0.2),
    acquisition=Acquisition(grid=41),
    noise_variance=0.01,
)
ROAD = Channel(transit=0.3, patience=0.95)
HOME = Path(__file__).parents[2]
SECONDS = 0.25
"""How long a round lasts in real time: far longer than any of the doors needs."""


class Stepping(Environment):
    """A parabola whose top jumps when a round begins, so that milliseconds make no difference."""

    def start(self, rng: np.random.Generator) -> Landscape:
        return SteppingLandscape()


class SteppingLandscape:
    domain = Box(0.0, 1.0)

    def _top(self, time: float) -> float:
        return 0.1 + 0.8 * (7 * floor(time + 1e-9) % 10) / 10

    def rewards(self, points: Points, time: float) -> Values:
        shifted = points[:, 0] - self._top(time)
        return 1.0 - shifted * shifted

    def best(self, time: float) -> tuple[Point, float]:
        return np.array([self._top(time)]), 1.0


class Lab(Expert):
    """What tests/remote/lab.c answers, too."""

    async def answer(self, query: Query, world: World) -> Estimate:
        shifted = query.points[:, 0] - 0.3
        return Estimate(1.0 - shifted * shifted)


def simulated() -> Trace:
    return play(OPTIMIZER, Stepping(), RULES, experts={"lab": (Lab(), ROAD)})


async def played_live(expert: Expert) -> Trace:
    return await play_live(
        OPTIMIZER, Stepping(), RULES, experts={"lab": (expert, ROAD)}, seconds=SECONDS
    )


def answers(trace: Trace) -> Answers:
    replies = trace.replies
    chosen = (replies["source"] == "lab") & (replies["fate"] == "answered")
    columns = [replies[name][chosen].tolist() for name in ("query", "row", "value")]
    return sorted(zip(*columns, strict=True))


def assert_same(trace: Trace) -> None:
    known = simulated()
    assert len(known) == RULES.rounds
    assert len(answers(known)) > RULES.rounds
    assert answers(trace) == answers(known)
    assert trace.points.tolist() == known.points.tolist()


def hosted() -> HostedExpert:
    return HostedExpert("lab", Lab(), Stepping())


def test_on_a_loop_that_does_not_wait() -> None:
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        trace = runner.run(played_live(Lab()))
    assert_same(trace)
    assert trace.digest() == simulated().digest()


def test_in_real_time() -> None:
    assert_same(asyncio.run(played_live(Lab())))


def test_behind_a_web_server() -> None:
    async def main() -> Trace:
        async with hosted() as lab, serve_http(lab.answer) as url:
            return await played_live(Http(url=url))

    assert_same(asyncio.run(main()))


def test_as_a_program_in_c(tmp_path: Path) -> None:
    assert_same(asyncio.run(played_live(Program(command=compile_lab(tmp_path)))))


SERVING = """
import asyncio, sys
from pathlib import Path
from sparq_sim.remote.serve.lines import serve_lines
from tests.live.test_same_everywhere import hosted

async def main():
    async with hosted() as lab:
        Path(sys.argv[1]).touch()
        await serve_lines(lab.answer)

asyncio.run(main())
"""


class Patient(Program):
    """Begins when the child is ready, which imports for longer than a round lasts."""

    def start(self, briefing: Briefing) -> PatientSource:
        return PatientSource(self, briefing.domain.names)


class PatientSource(RemoteSource):
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        assert isinstance(self._address, Patient)
        ready = Path(self._address.command[-1])
        async with asyncio.timeout(PATIENCE):
            while not ready.exists():
                await asyncio.sleep(0.02)
        return self


def test_as_a_program_in_python(tmp_path: Path) -> None:
    command = (sys.executable, "-c", SERVING, str(tmp_path / "ready"))
    assert_same(asyncio.run(played_live(Patient(command=command, folder=HOME))))


def test_behind_a_broker(broker: Broker) -> None:
    fields: dict[str, Any] = {
        "host": broker.host,
        "port": broker.port,
        "topic": "lab",
        "version": broker.version,
    }

    async def main() -> Trace:
        async with hosted() as lab, serve_mqtt(lab.answer, Mqtt(**fields)) as link:
            assert link.is_connected
            return await played_live(Mqtt(**fields))

    assert_same(asyncio.run(main()))
