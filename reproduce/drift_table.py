"""Print how fast each environment drifts, as a table in Markdown.

`python -m reproduce.drift_table [row ...]`, by default all rows. Each is measured at times 0 to
500 by ones, over three starts: the greatest change of all, and the means of the others.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from sparq_environments.markov_gp import MarkovGP
from sparq_environments.moving_peaks import MovingPeaks
from sparq_environments.online_tuning import OnlineTuning
from sparq_environments.plume import Plume
from sparq_environments.rkhs_walk import RKHSWalk
from sparq_environments.rod import Rod
from sparq_environments.sensor_network import SensorNetwork
from sparq_environments.shifting import Shifting
from sparq_environments.switching import Switching
from sparq_environments.synthetic import Synthetic
from sparq_sim import Environment
from sparq_sim.landscapes.drift import measure_drift
from sparq_sim.simulation.lifetime import open_landscape

UNITS, STARTS = 500, 3
SOUGHT, EXACT = "1e-9 of the range", "exact"
ROWS: dict[str, tuple[Environment, str]] = {
    "synthetic": (Synthetic(), "1e-12"),
    "rkhs-walk": (RKHSWalk(), SOUGHT),
    "rkhs-walk, periodic": (RKHSWalk(drift="periodic"), SOUGHT),
    "rkhs-walk, abrupt": (RKHSWalk(drift="abrupt"), SOUGHT),
    "rkhs-walk, seasonal": (RKHSWalk(drift="seasonal"), SOUGHT),
    "markov-gp": (MarkovGP(), EXACT),
    "markov-gp, 100 features": (MarkovGP(features=100), SOUGHT),
    "moving-peaks": (MovingPeaks(), EXACT),
    "moving-peaks, smooth": (MovingPeaks(movement="smooth"), EXACT),
    "moving-peaks, hills": (MovingPeaks(shape="hill"), EXACT),
    "shifting, branin": (Shifting(), "1e-12"),
    "shifting, ackley": (Shifting(function="ackley"), "1e-12"),
    "shifting, hartmann": (Shifting(function="hartmann"), "1e-12"),
    "switching": (Switching(), SOUGHT),
    "sensor-network": (SensorNetwork(), EXACT),
    "plume": (Plume(), EXACT),
    "rod": (Rod(), EXACT),
    "online-tuning": (OnlineTuning(), SOUGHT),
}
"""What is measured, and how well its best point is known."""


class Measured(NamedTuple):
    """The drift of an environment, in reward units."""

    largest: float
    mean: float
    budget: float


def measure(environment: Environment) -> Measured:
    """Measure the drift over all starts: replications 0, 1 and 2 of plays with seed 0."""
    with threadpool_limits(limits=1):
        found = []
        for number in range(STARTS):
            with open_landscape(environment, 0, number) as landscape:
                found.append(measure_drift(landscape, np.arange(UNITS + 1.0)))
    return Measured(
        largest=max(each.largest for each in found),
        mean=float(np.mean([each.mean for each in found])),
        budget=float(np.mean([each.budget for each in found])),
    )


def format_line(name: str) -> str:
    """Measure one row, and lay it out."""
    environment, tolerance = ROWS[name]
    numbers = " | ".join(_short(number) for number in measure(environment))
    return f"| {name} | {numbers} | {tolerance} |"


def _short(number: float) -> str:
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def main(names: list[str]) -> None:
    """Print the rows called *names*, or all."""
    print("| environment | largest | mean | budget | best to |\n|---|---:|---:|---:|---|")
    for name in names or ROWS:
        print(format_line(name))


if __name__ == "__main__":
    main(sys.argv[1:])
