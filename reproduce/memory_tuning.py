"""The worlds on which `sparq-memory` was tuned, and what each of its parts is worth on them.

None of these worlds is among those of the scenarios memory/, and the seed is another one. Each part
is switched off in turn; the oracle knows the kernel of the drift, where a kernel tells it. To
docs/results/memory_tuning.json, by `python -m reproduce memory_tuning`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from math import exp, log
from unittest.mock import patch

import numpy as np

from reproduce.studies import Row, write
from sparq_environments.function import FunctionEnvironment
from sparq_environments.markov_gp import MarkovGP
from sparq_environments.rkhs_walk import RKHSWalk
from sparq_environments.shifting import Shifting
from sparq_environments.switching import Switching
from sparq_experts.truth import Truth
from sparq_sim import Channel, Environment, Optimizer, Rules, play
from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import Kernel, SquaredExponential
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sparq_memory import SparQMemory
from sparq_sim.optimizers.sparq_memory.members import MEMBERS, Member
from sparq_sim.simulation.measures import regret

SEED = 777
REPLICATIONS = 8
_PACKAGE = "sparq_sim.optimizers.sparq_memory"


def hill(points: Points, time: float) -> Values:
    """Return rewards of a hill that moves far and slowly over a wave."""
    x = points[:, 0]
    centre = 12 * np.sin(0.045 * time) + 4 * np.sin(0.017 * time + 1)
    rewards: Values = 1.4 * np.exp(-0.03 * (x - centre) ** 2) + 0.3 * np.cos(0.15 * x) + 0.6
    return rewards


def sway(points: Points, time: float) -> Values:
    """Return rewards of a hill that moves fast over a wave."""
    x = points[:, 0]
    centre = 9 * np.sin(0.13 * time + 1)
    rewards: Values = np.exp(-0.04 * (x - centre) ** 2) + 0.45 * np.cos(0.22 * x + 0.4) + 3
    return rewards


@dataclass(frozen=True)
class World:
    """A world to tune on, with the kernel that all optimizers are given."""

    environment: Environment
    kernel: Kernel
    mean: float
    rounds: int = 300
    noise: float = 0.1
    epsilon: float | None = None
    """The share that is new in each round, where that is the whole drift."""


def _function(function: object) -> FunctionEnvironment:
    return FunctionEnvironment.model_validate(
        {"function": function, "lower": (-40.0,), "upper": (40.0,)}
    )


def _markov(epsilon: float) -> World:
    return World(
        MarkovGP(epsilon=epsilon, kernel=SquaredExponential(length_scale=0.15)),
        SquaredExponential(length_scale=0.147, variance=0.6),
        -0.13,
        epsilon=epsilon,
    )


WORLDS: Mapping[str, World] = {
    "hill": World(_function(hill), SquaredExponential(length_scale=6.33, variance=0.26), 0.8, 400),
    "sway": World(
        _function(sway), SquaredExponential(length_scale=5.07, variance=0.138), 3.07, 400
    ),
    "Markov, 1 %": _markov(0.01),
    "Markov, 10 %": _markov(0.1),
    "seasons": World(
        RKHSWalk(drift="seasonal", change=0.15),
        SquaredExponential(length_scale=0.285, variance=0.179),
        -0.04,
    ),
    "switches": World(
        Switching.model_validate(
            {"dimensions": 1, "functions": 4, "bumps": 4, "width": 0.08, "dwell": 70.0}
        ),
        SquaredExponential(length_scale=0.113, variance=0.226),
        0.5,
    ),
    "Ackley": World(
        Shifting(function="ackley", dimensions=2, drift="line", speed=0.006),
        SquaredExponential(length_scale=3.5, variance=0.031),
        0.22,
        noise=0.05,
    ),
}


def _without(*drifts: str) -> tuple[Member, ...]:
    return tuple(member for member in MEMBERS if member.drift not in drifts)


VARIANTS: Mapping[str, Mapping[str, object]] = {
    "all parts": {},
    "nothing is carried": {"memory.MEMBERS": _without("carried")},
    "no velocity": {"memory.MEMBERS": _without("carried", "velocity")},
    "one time scale, 30": {
        "memory.MEMBERS": (Member("jitter", 30.0, 0.8),),
        "memory.SENTINEL": 0,
    },
    "the same change everywhere": {
        "memory.MEMBERS": tuple(member._replace(local=False) for member in MEMBERS)
    },
    "nothing stays": {
        "memory.MEMBERS": tuple(member._replace(changing=0.999) for member in _without("carried"))
    },
    "all is explored by plays": {"offers._HOPED": 1.0},
    "no wide query": {"asking._WIDELY": 10**9},
    "no restart": {"memory._SHOCK": 1e9},
}
"""Parts that are switched off, as other values in the modules of the optimizer."""


def play_one(job: tuple[str, str, int]) -> float:
    """Return the average regret of one play; a job is world, variant and replication."""
    name, variant, replication = job
    world = WORLDS[name]
    parts: Mapping[str, object] = VARIANTS.get(variant, {})
    if variant == "oracle" and world.epsilon is not None:
        scale = -2 / log(1 - world.epsilon)
        alone = Member("jitter", scale, 0.999, local=False)
        parts = {"memory.MEMBERS": (alone,), "memory.SENTINEL": 0}
    optimizer: Optimizer = SparQMemory(kernel=world.kernel, mean=world.mean)
    if variant == "sparq-gp-ucb":
        optimizer = SparQGPUCB(kernel=world.kernel, mean=world.mean)
    channel = Channel(noise=world.noise)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for path, value in parts.items():
            stack.enter_context(patch(f"{_PACKAGE}.{path}", value))
        trace = play(
            optimizer,
            world.environment,
            Rules(rounds=world.rounds),
            experts={"expert": (Truth(), channel)},
            feedback=channel,
            seed=SEED,
            replication=replication,
        )
    return float(regret(trace).mean())


def compare() -> dict[str, list[Row]]:
    """Return average regrets, and their geometric means over the worlds beside all parts."""
    names = [*VARIANTS, "sparq-gp-ucb", "oracle"]
    jobs = [
        (world, variant, replication)
        for world in WORLDS
        for variant in names
        if variant != "oracle" or WORLDS[world].epsilon is not None
        for replication in range(REPLICATIONS)
    ]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        played = dict(zip(jobs, pool.map(play_one, jobs), strict=True))
    rows: list[Row] = []
    for variant in names:
        row: dict[str, object] = {"variant": variant}
        ratios = []
        for world in WORLDS:
            plays = [played.get((world, variant, each)) for each in range(REPLICATIONS)]
            if any(each is None for each in plays):
                row[world] = ""
                continue
            mean = float(np.mean(np.array(plays, dtype=float)))
            whole = np.mean([played[world, "all parts", each] for each in range(REPLICATIONS)])
            ratios.append(log(mean / whole))
            row[world] = f"{mean:.3f}"
        row["beside all parts"] = f"{exp(float(np.mean(ratios))):.2f}"
        rows.append(row)
    return {"parts": rows}


def make() -> None:
    """Play all variants in all worlds, and write what they come to."""
    write("memory_tuning", compare())
