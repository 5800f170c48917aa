from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from sparq_sim import Results
from tests.study.plays import flip, stored

READ = """
import sys
from sparq_sim import Results
from sparq_sim.analysis.cautions import cautions
from sparq_sim.analysis.summary import summary

results = Results.open(sys.argv[1])
summary(results), cautions(results), results.read(results.plays()[0]), results.table()
print(*sys.modules)
"""


def test_reading_results_loads_neither_what_plays_nor_where_plays_are_computed(
    of_before: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(of_before)], capture_output=True, text=True, check=True
    )
    playing = {"simpy", "asyncio", "multiprocessing"}
    playing |= {f"sparq_sim.{name}" for name in ("simulation.engine", "study.study")}
    playing |= {"sparq_sim.study.executors", "sparq_sim.study.plan", "sparq_sim.scenario.model"}
    assert not playing & set(done.stdout.split())


def test_a_damaged_play_that_is_verified_is_left_out(tmp_path: Path) -> None:
    (bad, _), (good, _) = stored(tmp_path), stored(tmp_path, 1)
    flip(tmp_path / "rounds" / f"{bad}.parquet")
    results = Results.open(tmp_path)
    results.verify([bad, good])
    assert [each.play.key for each in results.finished()] == [good]
