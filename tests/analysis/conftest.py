"""A study that the tests of analysis share, and the traces of its plays."""

from __future__ import annotations

from typing import Any

import pytest

from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.plants import Plant, steer
from tests.study.plays import scenario


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("study")
    played = scenario(replications=4, sweep={"feedback.noise": [0.1, 0.3]})
    Study(played, folder).run(InProcess())
    return Results.open(folder)


@pytest.fixture(scope="session")
def steered(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Plays that do not know the best reward, in some rounds not even their own."""
    sweep = {"environment.opening": [0.3, 0.6]}
    return steer(tmp_path_factory.mktemp("steered"), environment=Plant(silent=0.3), sweep=sweep)


def traces(optimizer: str, noise: float = 0.1) -> list[Any]:
    played = scenario(feedback={"noise": noise})
    return [played.play(optimizer, replication) for replication in range(4)]
