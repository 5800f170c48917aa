"""`compare` prints tables, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

from sparq_sim.cli.main import app
from tests.cli.invoking import runner


def test_compare_gives_one_object_an_optimizer(study: Path) -> None:
    rows = json.loads(runner.invoke(app, ["compare", str(study), "--json"]).output)
    assert {row["optimizer"] for row in rows} == {"uniform", "gp-ucb", "tv-gp-ucb", "sparq-gp-ucb"}
    for row in rows:
        assert row["average_regret_low"] <= row["average_regret"] <= row["average_regret_high"]
        assert row.keys() >= {"exponent", "asked_per_round", "spent", "plays"}
    assert "sparq-gp-ucb" in runner.invoke(app, ["compare", str(study)]).output
