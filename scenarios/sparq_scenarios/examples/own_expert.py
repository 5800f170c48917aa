"""An example: your own expert, a sensor that sleeps to save its battery.

It measures at most once in *rest* clock units. If it is asked earlier, it repeats its last reading,
with the time at which that was measured. Its state is in the object that `start` returns, not in
the model.
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

__all__ = ["Sleepy", "main"]


class Sleepy(Expert):
    """Measures at most once in *rest* clock units, and repeats its last reading in between."""

    rest: Positive = 3.0
    """The shortest time between two measurements, in clock units."""

    def start(self, briefing: Briefing) -> Answering:
        """Return a sensor that has not measured yet."""
        return _Sensor(self.rest)


class _Sensor:
    def __init__(self, rest: float) -> None:
        self._rest = rest
        self._woke_at = -rest
        self._energy = 0.0

    async def answer(self, query: Query, world: World) -> Estimate:
        """Return the rewards as they were when the sensor last measured."""
        now = world.clock.now
        if now >= self._woke_at + self._rest:
            self._woke_at = now
            self._energy += 1.0
        world.note(energy=self._energy)
        values: Values = world.rewards(query.points, self._woke_at)
        return Estimate(values, measured_at=self._woke_at)


def main(rounds: int = 200) -> dict[float, float]:
    """Print average regret, staleness and energy for several lengths of rest.

    Args:
        rounds: The number of rounds of each play.

    Returns:
        The average regret by length of rest; a rest is in clock units.
    """
    regrets = {}
    for rest in (1.0, 3.0, 10.0):
        check_expert(Sleepy(rest=rest))
        trace = play(
            SparQGPUCB(),
            Synthetic(),
            Rules(rounds=rounds, design=30),
            experts={"sensor": (Sleepy(rest=rest), Channel(noise=0.1))},
            feedback=Channel(noise=0.1),
        )
        regrets[rest] = float(average_regret(trace)[-1])
        print(
            f"rest {rest:4.1f}: regret {regrets[rest]:.3f}, "
            f"staleness {staleness(trace).mean():.1f}, "
            f"energy {trace.replies['note_energy'][-1]:.0f}"
        )
    return regrets


if __name__ == "__main__":
    main()
