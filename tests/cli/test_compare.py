"""`compare` prints tables, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

from sparq_sim.cli.main import app
from tests.bookkeeping import run_metered
from tests.cli.invoking import runner


def test_compare_gives_one_object_an_optimizer(study: Path) -> None:
    rows = json.loads(runner.invoke(app, ["compare", str(study), "--json"]).output)
    assert {row["optimizer"] for row in rows} == {"uniform", "gp-ucb", "tv-gp-ucb", "sparq-gp-ucb"}
    for row in rows:
        assert row["average_regret_low"] <= row["average_regret"] <= row["average_regret_high"]
        assert row.keys() >= {"exponent", "asked_per_round", "spent", "plays"}
    assert "sparq-gp-ucb" in runner.invoke(app, ["compare", str(study)]).output


def test_compare_prints_meters_at_the_end_of_a_play(tmp_path: Path) -> None:
    run_metered(tmp_path)
    text = runner.invoke(app, ["compare", str(tmp_path)]).output
    assert "Meters, in the last round" in text
    rows = json.loads(runner.invoke(app, ["compare", str(tmp_path), "--json"]).output)
    assert {row["optimizer"]: row["meter_battery_left"] for row in rows} == {
        "asker": 91.0,
        "uniform": 100.0,
    }
