"""Plays whose laws are checked compared with the same plays without: CPU time of whole plays.

The laws are checked once, on the trace of a play that has ended. The plays are those of bundled
optimizers with an expert, the cheapest of them among them, and one whose channel does all that a
channel can do; times are for one round.

Run it from the root of the repository: `python -m benchmarks.laws [--check] [--json]`.
"""

from __future__ import annotations

from functools import partial

from benchmarks.compare import Pair, at_most, main
from sparq_environments.synthetic import Synthetic
from sparq_experts.sensors import Sensors
from sparq_experts.truth import Truth
from sparq_sim import Channel, Optimizer, Rules, Trace, play
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.optimizers.gp_ucb import GPUCB
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.uniform import Uniform
from sparq_sim.plugin.expert import Expert
from sparq_sim.simulation.channel.faults import Fault
from sparq_sim.simulation.channel.policy import Policy, Rate
from sparq_sim.simulation.play import Experts
from sparq_sim.testing import Asker, Slope

ROUNDS = 500
BUSY = Channel(
    service=0.4,
    capacity=1,
    cost=0.1,
    transit=0.5,
    noise=0.1,
    loss=0.1,
    patience=3.0,
    outages=((20.0, 25.0),),
    policy=Policy(retries=1, rate=Rate(points=5), remember=2.0),
    faults=(Fault(kind="nan"),),
)
KERNEL = SquaredExponential(length_scale=5.7, variance=0.23)


def play_paper(optimizer: Optimizer, channel: Channel, *, laws: bool) -> Trace:
    """Play the paper's function with one expert."""
    experts: Experts = {"expert": (Truth(), channel)}
    rules = Rules(rounds=ROUNDS)
    return play(optimizer, Synthetic(), rules, experts=experts, feedback=channel, laws=laws)


def play_slope(expert: Expert, channel: Channel, *, laws: bool) -> Trace:
    """Play what costs next to nothing: the toys of `sparq_sim.testing`, and an expert."""
    experts: Experts = {"expert": (expert, channel)}
    rules = Rules(rounds=ROUNDS)
    return play(Asker(batch=1), Slope(place="sites"), rules, experts=experts, laws=laws)


WORKS = {
    "uniform, no expert asked": partial(play_paper, Uniform(), Channel(noise=0.1)),
    "gp-ucb": partial(play_paper, GPUCB(kernel=KERNEL), Channel(noise=0.1)),
    "sparq-gp-ucb, busy channel": partial(play_paper, SparQGPUCB(kernel=KERNEL), BUSY),
    "sensors asked each round": partial(play_slope, Sensors(), Channel(split=True)),
    "toys, busy channel": partial(play_slope, Truth(), BUSY),
}

if __name__ == "__main__":
    main(
        "Laws of plays, for one round",
        (
            Pair(
                f"{name}; without laws",
                partial(work, laws=True),
                partial(work, laws=False),
                goal=at_most(1.05),
                units=ROUNDS,
            )
            for name, work in WORKS.items()
        ),
        repetitions=21,
    )
