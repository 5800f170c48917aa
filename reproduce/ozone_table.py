"""Print what the real and the synthetic network have in common, as a table in Markdown.

`python -m reproduce.ozone_table [nyc28_ozone_2016_2017.csv]`; without a file, only the
synthetic one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from sparq_environments.recorded import Recorded, RecordedLandscape
from sparq_environments.sensor_network import SensorNetwork
from sparq_sim.domain import Sites
from sparq_sim.plugin.contract import Landscape
from sparq_sim.simulation.lifetime import open_landscape
from sparq_sim.simulation.references import compute_references

DAYS, SEEDS = 731, 10
APART = ((0, 25), (25, 50), (50, 100), (150, 250))
"""Kilometres between sites."""
EARTH = 6371.0


def compute_figures(landscape: Landscape, days: int = DAYS) -> dict[str, float]:
    """Compute the figures of the first *days* of a network; levels in ppb."""
    domain = landscape.domain
    assert isinstance(domain, Sites)
    values = np.stack([landscape.rewards(domain.points, float(day)) for day in range(days)])
    means = values.mean(axis=1)
    anomalies = values - means[:, None]
    tied = values == values.max(axis=1, keepdims=True)
    chances = tied / tied.sum(axis=1, keepdims=True)
    levels = compute_references(landscape, range(days))
    found = {
        "mean": values.mean(),
        "std": values.std(),
        "std across sites within a day": values.std(axis=1).mean(),
        "sup-variation from day to day": abs(np.diff(values, axis=0)).max(axis=1).mean(),
        "the same, network mean removed": abs(np.diff(anomalies, axis=0)).max(axis=1).mean(),
    }
    distances = _distances(domain.points)
    for name, data in (("values", values), ("anomalies", anomalies)):
        correlations = np.asarray(np.corrcoef(data.T))
        for low, high in APART:
            pairs = np.triu((distances >= low) & (distances < high), 1)
            found[f"correlation of {name}, {low}-{high} km"] = correlations[pairs].mean()
    for lag in (1, 2, 3, 7, 30):
        found[f"autocorrelation of the network mean, lag {lag}"] = _memory(means[:, None], lag)
    found["autocorrelation of a site's anomaly, lag 1"] = _memory(anomalies, 1)
    found |= {
        "share of days on which the best site changes": 1
        - (chances[1:] * chances[:-1]).sum(axis=1).mean(),
        "share of days with tied maxima": (tied.sum(axis=1) > 1).mean(),
        "regret of uniform play": levels.uniform,
        "regret of the best fixed site": levels.fixed,
        "regret of yesterday's best site": levels.late,
    }
    return {name: float(number) for name, number in found.items()}


def average_synthetic(seeds: int = SEEDS, days: int = DAYS) -> dict[str, float]:
    """Average the figures of the synthetic network over *seeds*."""
    network = SensorNetwork()
    each = []
    for seed in range(seeds):
        with open_landscape(network, rng=Generator(Philox(key=seed))) as landscape:
            each.append(compute_figures(landscape, days))
    return {name: float(np.mean([one[name] for one in each])) for name in each[0]}


def format_table(columns: dict[str, dict[str, float]]) -> str:
    """Return *columns* of figures as a Markdown table."""
    lines = [f"| figure | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for name in next(iter(columns.values())):
        cells = " | ".join(f"{column[name]:.2f}" for column in columns.values())
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def _memory(paths: NDArray[np.float64], lag: int) -> float:
    """Correlate each column with itself *lag* days later; give the mean."""
    centred = paths - paths.mean(axis=0)
    return float(((centred[lag:] * centred[:-lag]).mean(axis=0) / centred.var(axis=0)).mean())


def _distances(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the great-circle distances in kilometres (haversine formula)."""
    latitude, longitude = np.radians(places).T
    square = np.sin((latitude[:, None] - latitude) / 2) ** 2
    square += (
        np.cos(latitude[:, None])
        * np.cos(latitude)
        * np.sin((longitude[:, None] - longitude) / 2) ** 2
    )
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(square)))


def main(arguments: Sequence[str]) -> None:
    """Print the table, with the real figures if a file is given."""
    columns = {}
    if arguments:
        with open_landscape(Recorded(files=tuple(arguments))) as real:
            assert isinstance(real, RecordedLandscape)
            columns["real"] = compute_figures(real, real.steps)
    columns["synthetic"] = average_synthetic()
    print(format_table(columns))


if __name__ == "__main__":
    main(sys.argv[1:])
