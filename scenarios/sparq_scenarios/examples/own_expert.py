"""An expert of one's own: a sensor that sleeps to save its battery, and what that costs.

It answers at most every *rest* clock units; asked more often, it repeats its last reading, with
the time at which that was measured. Its state lives in what `start` gives, not on the model.
"""

from __future__ import annotations

from sparq_environments.synthetic import Synthetic
from sparq_sim import Briefing, Channel, Estimate, Expert, Query, Rules, World, play
from sparq_sim.arrays import Values
from sparq_sim.fields import Positive
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.plugin.contract import Answering
from sparq_sim.simulation.measures import average_regret, staleness
from sparq_sim.testing import check_expert


class Sleepy(Expert):
    """Measures at most every *rest* clock units; in between, repeats itself."""

    rest: Positive = 3.0

    def start(self, briefing: Briefing) -> Answering:
        """Give a sensor that has not measured yet."""
        return _Sensor(self.rest)


class _Sensor:
    def __init__(self, rest: float) -> None:
        self._rest = rest
        self._woke_at = -rest
        self._energy = 0.0

    async def answer(self, query: Query, world: World) -> Estimate:
        """Give the rewards as they were when it last woke."""
        now = world.clock.now
        if now >= self._woke_at + self._rest:
            self._woke_at = now
            self._energy += 1.0
        world.note(energy=self._energy)
        values: Values = world.rewards(query.points, self._woke_at)
        return Estimate(values, measured_at=self._woke_at)


def main(rounds: int = 200) -> dict[float, float]:
    """Print average regret, staleness and energy for each length of rest."""
    found = {}
    for rest in (1.0, 3.0, 10.0):
        check_expert(Sleepy(rest=rest))
        trace = play(
            SparQGPUCB(),
            Synthetic(),
            Rules(rounds=rounds, design=30),
            experts={"sensor": (Sleepy(rest=rest), Channel(noise=0.1))},
            feedback=Channel(noise=0.1),
        )
        found[rest] = float(average_regret(trace)[-1])
        print(
            f"rest {rest:4.1f}: regret {found[rest]:.3f}, staleness {staleness(trace).mean():.1f}, "
            f"energy {trace.replies['note_energy'][-1]:.0f}"
        )
    return found


if __name__ == "__main__":
    main()
