"""An example: how late may side information be before it is useless?

The same optimizer plays the same random world while the answers of the expert take longer.
"""

from __future__ import annotations

from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Channel, Rules, play
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.simulation.measures import regret

__all__ = ["main"]


def main(rounds: int = 200) -> dict[float, float]:
    """Print the average regret in the second half of a play, for each transit.

    Args:
        rounds: The number of rounds of each play.

    Returns:
        The average regret by transit; a transit is in rounds.
    """
    regrets = {}
    for transit in (0.0, 1.0, 2.0, 5.0, 10.0):
        trace = play(
            SparQGPUCB(),
            Synthetic(),
            Rules(rounds=rounds, design=30),
            experts={"sensor": (Truth(), Channel(transit=transit, noise=0.1))},
            feedback=Channel(noise=0.1),
        )
        regrets[transit] = float(regret(trace)[rounds // 2 :].mean())
        print(f"transit {transit:4.1f}: regret {regrets[transit]:.3f}")
    return regrets


if __name__ == "__main__":
    main()
