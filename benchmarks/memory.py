"""SparQ with memory compared with SparQ-GP-UCB, which remembers nothing: CPU time of whole plays.

Times are for one round of a play of 500, of `sparq-memory` with at most 2 queries a round and of
`sparq-gp-ucb` with its 6 log t and the greedy choice, on the paper's function, in two dimensions
and on sites. Computing the true reward and its optimum is part of both. The last row is the growth
of the time with the number of rounds.

Run it from the root of the repository: `python -m benchmarks.memory [--check] [--json]`.
"""

from __future__ import annotations

from benchmarks.compare import Pair, at_most, growth, main
from sparq_environments.sensor_network import SensorNetwork
from sparq_environments.switching import Switching
from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Channel, Environment, Optimizer, Rules, Trace, play
from sparq_sim.gp.kernels import Kernel, Matern32, SquaredExponential
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sparq_memory import SparQMemory

ROUNDS = 500
LONG = 4000
WORLDS: dict[str, tuple[Environment, Kernel, float]] = {
    "paper's function": (Synthetic(), SquaredExponential(length_scale=5.7, variance=0.23), 1.5),
    "switches in 2-d": (Switching(), SquaredExponential(length_scale=0.21, variance=0.235), 0.45),
    "28 sites": (SensorNetwork(), Matern32(length_scale=0.5, variance=195.0), 37.0),
}


def play_world(optimizer: Optimizer, world: str, rounds: int = ROUNDS) -> Trace:
    """Play one world for some rounds."""
    channel = Channel(noise=0.1)
    experts = {"expert": (Truth(), channel)}
    return play(
        optimizer, WORLDS[world][0], Rules(rounds=rounds), experts=experts, feedback=channel
    )


def remember(world: str) -> SparQMemory:
    """Return SparQ with memory, with the kernel of a world."""
    _, kernel, mean = WORLDS[world]
    return SparQMemory(kernel=kernel, mean=mean)


def forget(world: str) -> SparQGPUCB:
    """Return SparQ-GP-UCB, with the kernel of a world."""
    _, kernel, mean = WORLDS[world]
    return SparQGPUCB(kernel=kernel, mean=mean)


def pairs() -> list[Pair]:
    """Return the rows that compare optimizers."""
    return [
        Pair(
            f"memory; SparQ, {world}",
            lambda world=world: play_world(remember(world), world),  # type: ignore[misc] # bound now
            lambda world=world: play_world(forget(world), world),  # type: ignore[misc]
            at_most(2),
            units=ROUNDS,
        )
        for world in WORLDS
    ]


if __name__ == "__main__":
    world = "paper's function"
    main(
        "Memory",
        [
            *pairs(),
            lambda: growth(
                f"memory, T = {LONG}; {ROUNDS}",
                lambda rounds: play_world(remember(world), world, rounds),
                sizes=(ROUNDS, LONG),
                most=1.05,
            ),
        ],
        repetitions=5,
    )
