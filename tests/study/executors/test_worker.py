from __future__ import annotations

import pickle

from sparq_sim.study.executors.protocol import Batch, Step
from sparq_sim.study.executors.worker import perform
from sparq_sim.study.store.keys import PlayId


def test_a_scenario_that_cannot_be_unpacked_is_told_and_the_others_are_received() -> None:
    plays = [
        PlayId(f"{number}" * 32, "", "uniform", {}, seed=0, replication=number)
        for number in range(2)
    ]
    packed = (b"no pickle", pickle.dumps(None)[:-1])
    steps = (Step(play, each, "") for play, each in zip(plays, packed, strict=True))
    outcomes = perform(Batch(None, "", tuple(steps)))
    assert [(each.play, each.status) for each in outcomes] == [
        (play, "unreadable") for play in plays
    ]
    assert outcomes[0].message.startswith("UnpicklingError: ")
