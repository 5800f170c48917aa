"""Long runs: `make soak`."""

from __future__ import annotations

import asyncio
import tracemalloc

import numpy as np
import pytest

from sparq_environments.synthetic import Synthetic
from sparq_sim import Briefing, Channel, Query, Rules, play, play_live
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.contract import SourceTerms
from sparq_sim.simulation.measures import exponent, regret
from sparq_sim.testing import Asker, Slope, Teller, WaitlessLoop

pytestmark = pytest.mark.slow

KERNEL = SquaredExponential(variance=0.23, length_scale=5.7)


def test_two_clocks_give_one_trace_over_ten_thousand_rounds() -> None:
    experts = {
        "far": (Teller(), Channel(transit=2, loss=0.2, patience=3, noise=0.1)),
        "busy": (
            Teller(),
            Channel(service={"kind": "exponential", "mean": 0.8}, capacity=2, split=True),
        ),
    }
    rules = Rules(rounds=10_000)
    virtual = play(Asker(), Slope(), rules, experts=experts, seed=5)
    with asyncio.Runner(loop_factory=WaitlessLoop) as runner:
        real = runner.run(play_live(Asker(), Slope(), rules, experts=experts, seed=5))
    assert virtual.digest() == real.digest()


def test_the_memory_of_sparq_gp_ucb_does_not_grow_with_rounds() -> None:
    landscape = Synthetic().start(np.random.default_rng(0))
    briefing = Briefing(landscape.domain, experts={"expert": SourceTerms()}, rounds=9_000)
    agent = SparQGPUCB(kernel=KERNEL, mean=1.5).start(briefing, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    sizes = []
    tracemalloc.start()
    for t in range(1, 9_001):
        now = float(t)
        move = agent.ask(now)
        assert move.point is not None
        observed = Query(t, "reward", move.point[None], now)
        for query in (observed, *move.queries):
            values = landscape.rewards(query.points, now) + rng.normal(0, 0.1, len(query.points))
            agent.tell(query.answer(values, stds=0.1))
        if t % 3_000 == 0:
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # Distinct points still trickle in; the best curve of the landscape is not asked for here.
    assert sizes[2] - sizes[1] < 300_000


def test_the_regret_of_sparq_gp_ucb_falls_to_the_end_of_a_long_play() -> None:
    noise = Channel(noise=0.1)
    trace = play(
        SparQGPUCB(kernel=KERNEL, mean=1.5),
        Synthetic(),
        Rules(rounds=5_000),
        experts={"expert": (Teller(), noise)},
        feedback=noise,
    )
    assert exponent(regret(trace)) < 0.95
