"""Draw every environment for its page: `python -m reproduce.pictures [kind ...]`.

Pictures go to docs/pictures/environments, each of the environment with its defaults. What is
recorded is drawn from a file that is made of the synthetic network.
"""

from __future__ import annotations

import io
import sys
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.random import Generator, Philox
from PIL import Image
from threadpoolctl import threadpool_limits

from reproduce import DOCS
from sparq_environments.sensor_network import SensorNetwork
from sparq_sim.domain import Sites
from sparq_sim.plugin import registry as plugins
from sparq_sim.report.environment import draw_figure, sample
from sparq_sim.simulation.lifetime import open_landscape

FOLDER = DOCS / "pictures" / "environments"
HORIZON, SEED, DOTS_PER_INCH = 100.0, 0, 110
RECORD = "network.csv"
REQUIRED = {"recorded": {"files": (RECORD,)}}
"""Fields that an environment cannot do without."""


def draw(kind: str) -> Path:
    """Draw an environment with its defaults."""
    environment = plugins.load("environment", kind)(**REQUIRED.get(kind, {}))
    page = io.BytesIO()
    with open_landscape(environment, SEED) as landscape:
        draw_figure(sample(landscape, HORIZON, name=kind)).savefig(page, dpi=DOTS_PER_INCH)
    path = FOLDER / f"{kind}.png"
    # 256 colours serve one colour scale, and take a third of the room; without a round of k-means
    # the lines would lose their colours to it.
    Image.open(page).convert("RGB").quantize(256, kmeans=1).save(path, optimize=True)
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
