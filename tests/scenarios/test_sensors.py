"""The bundled scenarios of sensor networks can be played, and their networks work."""

from __future__ import annotations

import pytest

from sparq_sim import Scenario, play
from sparq_sim.scenario.bundled import find_bundled

NAMES = sorted(name for name in find_bundled() if name.startswith("sensors/"))


def test_there_are_six_studies_of_sensors() -> None:
    assert len(NAMES) == 6


# In sensors/loss, some nodes are out of reach at the one data rate of all.
@pytest.mark.filterwarnings("ignore:out of reach")
@pytest.mark.parametrize("name", NAMES)
def test_the_network_of_a_study_delivers_packets(name: str) -> None:
    *_, (_, one) = Scenario.load(name, overrides=["rounds=9"]).settings()
    ((expert, entry),) = one.experts.items()
    trace = play(
        next(iter(one.optimizers.values())),
        one.environment,
        one.rules,
        experts={expert: (entry.expert, entry.channel)},
        feedback=one.feedback,
    )
    assert trace.rounds["meter_network_energy"][-1] > 0
    assert trace.rounds["meter_network_delivered"][-1] > 0
