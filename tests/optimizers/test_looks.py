from __future__ import annotations

import pytest

from sparq_environments.synthetic import Synthetic
from sparq_sim import Channel, Rules
from sparq_sim.domain import Domain
from sparq_sim.plugin.optimizer import Agent, Believing
from sparq_sim.plugin.registry import list_names, load
from sparq_sim.simulation.play import Played
from sparq_sim.testing import Teller
from sparq_sim.vopr.playing import overhear

LATE = Channel(service={"kind": "exponential", "mean": 1.5}, noise=0.1)


@pytest.mark.parametrize("kind", sorted({*list_names("optimizer")} - {"fixed", "uniform"}))
def test_to_look_at_beliefs_changes_no_move_however_late_answers_come(kind: str) -> None:
    believed: list[float] = []

    def look(agent: Agent, domain: Domain, now: float) -> None:
        assert isinstance(agent, Believing)
        if belief := agent.belief(domain.cover(5), now):
            believed.append(belief.width)

    rules = Rules(rounds=12, design=3)
    experts = {"expert": (Teller(), LATE)}
    for seed in range(6):
        played = Played(load("optimizer", kind)(), Synthetic(), rules, experts, LATE, seed, 0)
        assert overhear(played, looks=look)[1].digest() == played.again().digest()
    assert believed
