"""A study that others are compared with that are killed, cut off or hurt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from sparq_sim.scenario.model import Scenario
from sparq_sim.study.executors import InProcess
from sparq_sim.study.study import Study
from tests.study.test_executors import digests

DAWDLER = '''
"""An optimizer that takes its time, in a module of its own: nobody edits it meanwhile."""

import time

from sparq_sim.optimizers.uniform import Uniform


class Dawdler(Uniform):
    seconds: float = 0.1

    def start(self, briefing, rng):
        time.sleep(self.seconds)
        return super().start(briefing, rng)
'''

SCENARIO = """
rounds = 3
replications = 16
levels = false
environment.kind = "synthetic"
feedback.noise = 0.1
optimizers.a = { kind = "dawdler:Dawdler", seconds = 0.1 }
optimizers.b = { kind = "dawdler:Dawdler", seconds = 0.05 }
"""


@dataclass(frozen=True)
class Untouched:
    """A study that nobody has hurt."""

    code: Path
    """The folder of its scenario, study.toml, and of its optimizer."""
    digests: dict[str, str]
    """Of its plays, by key."""


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Untouched:
    home = tmp_path_factory.mktemp("untouched")
    (home / "dawdler.py").write_text(DAWDLER, encoding="utf-8")
    (home / "study.toml").write_text(SCENARIO, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        patch.setattr("time.sleep", lambda _: None)
        loaded = Scenario.load(str(home / "study.toml"), allow_import=True)
        Study(loaded, home / "out").run(InProcess())
    return Untouched(home, digests(home / "out"))
