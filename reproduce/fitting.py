"""Compare ways to find a kernel, over worlds of the scenarios memory/ with another seed.

The kernel of the scenario, fitted to 200 points of other starts; one fitted once, by maximum
likelihood, to 10 plays at random; and the default, fitted on a grid with a prior as observations
grow. To docs/results/fitting.json, by `python -m reproduce fitting`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np

from reproduce.memory import WORLDS, Comparison, judge, tell
from reproduce.studies import Row, write
from sparq_sim import Rules, Scenario, play
from sparq_sim.arrays import Point
from sparq_sim.domain import Box
from sparq_sim.optimizers.shared.opening import Opening
from sparq_sim.optimizers.shared.prior import Fitting
from sparq_sim.simulation.measures import regret

SEED = 90817
REPLICATIONS = 10
ROUNDS = 100
OPTIMIZERS = {"tv": "tv-gp-ucb", "w": "w-gp-ucb", "sparq": "sparq-gp-ucb"}
"""By their names in the scenarios."""
WAYS = ("given", "once", "grown")

Job = tuple[str, str, str, int]
"""World, optimizer, way to find the kernel, and replication."""


class _Chance(Opening):
    """Plays at random, each independent of the others."""

    def choose(self, bounds: Box | None = None) -> Point:
        point: Point = self._rng.choice(self._candidates)
        return point


def play_one(job: Job) -> float:
    """Return the average regret of one play."""
    world, name, way, replication = job
    scenario = Scenario.load(f"memory/{world}")
    optimizer = scenario.optimizers[name]
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        if way != "given":
            fitting = Fitting(search="climb", plays=10) if way == "once" else Fitting()
            unknown = {"kernel": None, "mean": None, "fitting": fitting}
            optimizer = optimizer.model_copy(update=unknown)
        if way == "once":
            stack.enter_context(patch("sparq_sim.optimizers.shared.ucb.Opening", _Chance))
        experts = {
            expert: (entry.expert, entry.channel) for expert, entry in scenario.experts.items()
        }
        trace = play(
            optimizer,
            scenario.environment,
            Rules(rounds=ROUNDS),
            experts=experts if name == "sparq" else {},
            feedback=scenario.feedback,
            seed=SEED,
            replication=replication,
        )
    return float(regret(trace).mean())


def list_jobs() -> list[Job]:
    """Return all plays."""
    return [
        (world, name, way, replication)
        for world in WORLDS
        for name in OPTIMIZERS
        for way in WAYS
        for replication in range(REPLICATIONS)
    ]


def compare(played: Mapping[Job, float]) -> dict[str, list[Row]]:
    """Return average regrets by world and optimizer, and geometric means of ratios.

    Args:
        played: The average regret of each play.
    """
    pairs = [(world, name) for world in WORLDS for name in OPTIMIZERS]
    regrets = {
        (world, name, way): [played[world, name, way, each] for each in range(REPLICATIONS)]
        for world, name in pairs
        for way in WAYS
    }
    grown = [
        Comparison(world, regrets[world, name, "grown"], regrets[world, name, "once"])
        for world, name in pairs
    ]
    rows: list[Row] = [
        {"world": WORLDS[world], "optimizer": OPTIMIZERS[name]}
        | {way: tell(regrets[world, name, way]) for way in WAYS}
        | {"ratio": round(each.ratio, 2), "verdict": verdict}
        for (world, name), each, verdict in zip(pairs, grown, judge(grown), strict=True)
    ]
    return {"worlds": rows, "means": list(_summarise(regrets))}


def _summarise(regrets: Mapping[tuple[str, str, str], list[float]]) -> Iterator[Row]:
    for name, kind in OPTIMIZERS.items():
        row: dict[str, object] = {"optimizer": kind}
        for way in ("given", "grown"):
            ratios = [
                np.mean(regrets[world, name, way]) / np.mean(regrets[world, name, "once"])
                for world in WORLDS
            ]
            row[way] = round(float(np.exp(np.log(ratios).mean())), 2)
        yield row


def make() -> None:
    """Play in all worlds, and write what comes of it."""
    jobs = list_jobs()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        write("fitting", compare(dict(zip(jobs, pool.map(play_one, jobs), strict=True))))
