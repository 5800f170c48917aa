"""Digests of small plays, as they were recorded and as they are here.

`python -m reproduce.digests` plays all of them again and compares; `--record` writes them anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from reproduce import ROOT
from sparq_environments.function import from_function
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.measures import regret
from sparq_sim.study.store.provenance import Machine
from sparq_sim.testing.samples import Asker

__all__ = ["CLOSE", "EQUAL", "FILE", "TOLERANCE", "main", "play_again", "read"]

FILE = ROOT / "tests" / "data" / "digests.json"
"""What was recorded, and with what it was computed."""
TOLERANCE = 0.25
"""By how much of itself a mean regret may differ where digests may."""


def _measure_top(time: float) -> float:
    return 0.25 + (time % 64.0) / 128.0


def _reward(points: Points, time: float) -> Values:
    """Return a hill that moves: of sums and products alone, which all machines round alike."""
    distances = points[:, 0] - _measure_top(time)
    return 1.0 - distances * distances


def _best(time: float) -> tuple[Point, float]:
    return np.array([_measure_top(time)]), 1.0


_HILL = from_function(_reward, Box(0.0, 1.0), best=_best)
_LATE = {"kind": "truth", "channel": {"transit": 1.5, "cost": 0.25}}
_CROWDED = {
    "kind": "biased",
    "bias": 0.25,
    "channel": {
        "service": {"kind": "uniform", "low": 0.5, "high": 2.0},
        "capacity": 1,
        "patience": 3.0,
        "noise": 0.125,
        "split": True,
    },
}
_LOSSY = {
    "kind": "lagged",
    "lag": 2.0,
    "channel": {
        "transit": {"kind": "exponential", "mean": 0.75},
        "loss": 0.25,
        "patience": 1.0,
        "policy": {"retries": 2, "timeout": 3.0, "merge": True},
    },
}
_LATE_REWARDS = {"transit": 2.5, "noise": 0.125, "loss": 0.125}

EQUAL: dict[str, Mapping[str, Any]] = {
    "uniform": {"player": {"kind": "uniform"}},
    "fixed": {"player": {"kind": "fixed", "point": [0.25]}},
    "late rewards": {"player": {"kind": "uniform"}, "feedback": _LATE_REWARDS},
    "late answers": {"player": Asker(), "experts": {"late": _LATE}},
    "a queue": {"player": Asker(batch=3), "experts": {"crowded": _CROWDED}},
    "losses and retries": {"player": Asker(), "experts": {"lossy": _LOSSY}},
    "a budget": {"player": Asker(), "experts": {"late": _LATE}, "budget": 4.0},
    "three experts": {
        "player": Asker(),
        "experts": {"late": _LATE, "crowded": _CROWDED, "lossy": _LOSSY},
        "feedback": _LATE_REWARDS,
    },
}
"""Plays of which digests are equal everywhere: they add, multiply and draw, and no more."""

_ALONE = (
    *("gp-ucb", "r-gp-ucb", "sw-gp-ucb", "w-gp-ucb", "tv-gp-ucb", "ui-gp-ucb", "et-gp-ucb"),
    *("ui-tvbo", "gp-ucb-sdf"),
)
_ENVIRONMENTS = ("synthetic", "rkhs-walk", "markov-gp", "moving-peaks", "shifting", "switching")
CLOSE: dict[str, Mapping[str, Any]] = {
    **{kind: {"player": {"kind": kind}} for kind in _ALONE},
    "gp-ucb, late rewards": {"player": {"kind": "gp-ucb"}, "feedback": _LATE_REWARDS},
    **{
        f"{kind}, {name} answers": {"player": {"kind": kind}, "experts": {name: expert}}
        for kind in ("sparq-gp-ucb", "sparq-memory")
        for name, expert in (("late", _LATE), ("lossy", _LOSSY))
    },
    **{
        f"uniform in {kind}": {"player": {"kind": "uniform"}, "environment": {"kind": kind}}
        for kind in _ENVIRONMENTS
    },
}
"""Plays of which the last digits, and so digests, depend on BLAS, on the processor, and on the
versions of numpy and scipy."""


def play_again(name: str) -> dict[str, Any]:
    """Play one of the plays, and return its digest and what it came to.

    Args:
        name: A key of `EQUAL` or `CLOSE`.
    """
    fields = dict((EQUAL | CLOSE)[name])
    player = fields.pop("player")
    scenario = Scenario(
        **{"rounds": 40, "seed": 7, "environment": _HILL, "optimizers": {"it": player}} | fields
    )
    trace = scenario.play("it")
    return {
        "digest": trace.digest(),
        "average_regret": float(regret(trace).mean()),
        "spent": trace.spent,
    }


def read() -> dict[str, Any]:
    """Return what was recorded: the machine, and what each play came to."""
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded


def main(record: bool) -> None:
    """Play all plays; print which digests are another than was recorded, or record them.

    Args:
        record: Whether to record them.
    """
    here = Machine.here().to_json()
    machine = {name: here[name] for name in ("versions", "blas", "cpu")}
    found = {name: play_again(name) for name in EQUAL | CLOSE}
    if record:
        FILE.write_text(
            json.dumps({"machine": machine, "plays": found}, indent=1) + "\n", encoding="utf-8"
        )
        print(f"{FILE}: written")
        return
    recorded = read()
    print(f"recorded with {json.dumps(recorded['machine'])}")
    print(f"played with   {json.dumps(machine)}")
    wrong = 0
    for name, each in found.items():
        then = recorded["plays"][name]
        same = each["digest"] == then["digest"]
        wrong += name in EQUAL and not same
        told = "equal" if same else "ANOTHER" if name in EQUAL else "another, as it may be"
        by = abs(each["average_regret"] - then["average_regret"]) / then["average_regret"]
        print(f"{name}: {told}" + ("" if same else f"; mean regret differs by {by:.2g} of itself"))
    if wrong:
        sys.exit(f"{wrong} digests are others that must be equal")


if __name__ == "__main__":
    main("--record" in sys.argv[1:])
