"""The environment `program` in a scenario file."""

from __future__ import annotations

from pathlib import Path

from sparq_environments.program import Program
from sparq_sim import Scenario
from sparq_sim.remote.system import SafeCommand

PROGRAM = """
rounds = 3
optimizers = ["uniform"]

[environment]
kind = "program"
command = ["./plant"]
sites = [[0.0], [0.5]]
safe_state = { start = [0.5], end = "hold", failure = { command = ["./stop.sh"], timeout = 5 } }
"""


def load(folder: Path, text: str) -> Scenario:
    file = folder / "live.toml"
    file.write_text(text, encoding="utf-8")
    return Scenario.load(file)


def test_it_is_read_from_a_scenario_file(tmp_path: Path) -> None:
    environment = load(tmp_path, PROGRAM).environment
    assert isinstance(environment, Program)
    assert environment.command == (str(tmp_path / "plant"),)
    safe = environment.safe_states
    stop = SafeCommand(command=(str(tmp_path / "stop.sh"),), timeout=5.0)
    assert (safe.start, safe.end, safe.interrupt, safe.failure) == ((0.5,), "hold", "hold", stop)
