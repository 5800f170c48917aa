"""Draw every environment for its page: `python -m reproduce.pictures [kind ...]`.

Pictures go to docs/pictures/environments, each of the environment with its defaults. What is
recorded is drawn from a file that is made of the synthetic network.
"""

from __future__ import annotations

import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from matplotlib import rc_context
from numpy.random import Generator, Philox
from threadpoolctl import threadpool_limits

from reproduce import DOCS
from sparq_environments.sensor_network import SensorNetwork
from sparq_sim.domain import Sites
from sparq_sim.plugin import registry as plugins
from sparq_sim.report.environment import draw_figure, sample
from sparq_sim.simulation.lifetime import open_landscape

FOLDER = DOCS / "pictures" / "environments"
HORIZON, SEED = 100.0, 0
RECORD = "network.csv"
STYLE: dict[Any, Any] = {"image.interpolation": "none"}
"""Fields are embedded as coarse as they were sampled: a browser smooths them."""
REQUIRED = {"recorded": {"files": (RECORD,)}}
"""Fields that an environment cannot do without."""


def draw(kind: str) -> Path:
    """Draw an environment with its defaults."""
    environment = plugins.load("environment", kind)(**REQUIRED.get(kind, {}))
    path = FOLDER / f"{kind}.svg"
    with open_landscape(environment, SEED) as landscape, rc_context(STYLE | {"svg.hashsalt": kind}):
        figure = draw_figure(sample(landscape, HORIZON, name=kind))
        figure.savefig(path, metadata={"Date": None})
    return path


def write_record(file: Path, *, days: int, sites: int) -> None:
    """Write the first *days* of some sites of the synthetic network as tidy CSV, from 1 May on."""
    lines = ["date,site,lat,lon,value"]
    with open_landscape(SensorNetwork(), rng=Generator(Philox(key=SEED))) as landscape:
        assert isinstance(landscape.domain, Sites)
        points, names = landscape.domain.points[:sites], landscape.domain.site_names[:sites]
        for day in range(days):
            values = landscape.rewards(points, 120.0 + day)
            date = np.datetime64("2021-05-01") + day
            for (lat, lon), name, value in zip(points, names, values, strict=True):
                lines.append(f"{date},{name},{lat},{lon},{value:g}")
    file.write_text("\n".join(lines), encoding="utf-8")


def main(kinds: list[str]) -> int:
    """Draw the environments called *kinds*, or all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, chdir(folder), threadpool_limits(limits=1):
        write_record(Path(RECORD), days=round(HORIZON) + 1, sites=12)
        for kind in kinds or plugins.list_simulated("environment"):
            path = draw(kind)
            print(f"{path}: {path.stat().st_size // 1024} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
