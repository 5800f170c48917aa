"""Ask how late side information may be before it is worthless.

The same optimizer against the same luck, while the expert's answers take ever longer.
"""

from __future__ import annotations

from sparq_environments.synthetic import Synthetic
from sparq_experts.truth import Truth
from sparq_sim import Channel, Rules, play
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.simulation.measures import regret


def main(rounds: int = 200) -> dict[float, float]:
    """Print the regret of the second half of the play for each transit, in rounds."""
    found = {}
    for transit in (0.0, 1.0, 2.0, 5.0, 10.0):
        trace = play(
            SparQGPUCB(),
            Synthetic(),
            Rules(rounds=rounds, design=30),
            experts={"sensor": (Truth(), Channel(transit=transit, noise=0.1))},
            feedback=Channel(noise=0.1),
        )
        found[transit] = float(regret(trace)[rounds // 2 :].mean())
        print(f"transit {transit:4.1f}: regret {found[transit]:.3f}")
    return found


if __name__ == "__main__":
    main()
