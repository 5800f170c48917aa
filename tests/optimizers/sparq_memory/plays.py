"""Short plays of SparQ with memory, on a line of 51 points."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparq_environments.function import from_function
from sparq_environments.markov_gp import MarkovGP
from sparq_sim import Box, Briefing, Channel, Environment, Expert, Rules, Trace, play
from sparq_sim.arrays import Points, Values
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.shared.prior import GPPrior
from sparq_sim.optimizers.shared.widths import ConstantWidth
from sparq_sim.optimizers.sparq_memory import SparQMemory
from sparq_sim.optimizers.sparq_memory.memory import DriftMemory
from sparq_sim.testing import Teller

KERNEL = SquaredExponential(variance=1.0, length_scale=0.2)
FIELDS: Mapping[str, Any] = {"kernel": KERNEL, "mean": 0.0, "acquisition": {"grid": 51}}
MODEL = SparQMemory(**FIELDS)
ALONE = SparQMemory(**FIELDS, queries=0)
LINE = Box(0.0, 1.0)
GRID: Points = LINE.grid(51)
CHANGING = MarkovGP(epsilon=0.03, dimensions=1)
"""A reward of variance 1 that forgets 3 % in each round."""
HONEST = Channel(noise=0.1)
Experts = Mapping[str, Expert | tuple[Expert, Channel]]


def hill(points: Points, time: float, *, top: float = 0.6) -> Values:
    heights: Values = np.exp(-0.5 * ((points - top) ** 2).sum(axis=1) / 0.2**2)
    return heights


STILL = from_function(hill, LINE, best=lambda time: ([0.6], 1.0))
"""A reward that does not change."""


def teller(**channel: Any) -> Experts:
    """Return an expert who knows the reward, with another channel."""
    return {"expert": (Teller(), Channel(**{"noise": 0.1, **channel}))}


def played(
    model: SparQMemory = MODEL,
    world: Environment = CHANGING,
    rounds: int = 60,
    *,
    experts: Experts | None = None,
    seed: int = 0,
    **rules: Any,
) -> Trace:
    """Play, by default with an honest expert."""
    return play(
        model,
        world,
        Rules(rounds=rounds, **rules),
        experts=teller() if experts is None else experts,
        feedback=HONEST,
        seed=seed,
    )


def asked(trace: Trace, source: str = "expert") -> NDArray[np.intp]:
    """Return how many points a source was asked about in each round."""
    rows = trace.replies["source"] == source
    return np.bincount(trace.replies["round"][rows], minlength=len(trace) + 1)[1:]


def start_memory(model: SparQMemory = MODEL, **briefing: Any) -> DriftMemory:
    """Return a memory at the beginning of a play."""
    prior = GPPrior(KERNEL, 0.0, None, ConstantWidth(value=1.5), GRID, True)
    given = partial(Briefing, LINE, rounds=100)
    memory = model.start_memory(prior, given(**briefing), np.random.default_rng(0))
    assert isinstance(memory, DriftMemory)
    return memory
