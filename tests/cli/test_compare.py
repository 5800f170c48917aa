"""`compare` prints tables, and JSON."""

from __future__ import annotations

import json
from pathlib import Path

from sparq_sim.cli.main import app
from sparq_sim.errors import SparqError
from tests.bookkeeping import run_metered
from tests.cli.invoking import runner
from tests.plants import steer


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


def test_rewards_are_compared_where_the_best_is_not_known(tmp_path: Path) -> None:
    steer(tmp_path, sweep={"environment.opening": [0.3, 0.6]})
    text = runner.invoke(app, ["compare", str(tmp_path)]).output
    assert "mean reward" in text
    assert text.count("so there is no regret") == 1
    assert "Note: exponents of regret and reference levels are left out" in text
    priced = runner.invoke(app, ["compare", str(tmp_path), "--price", "0.1"]).output
    assert "mean reward minus the spending per round" in priced
    between = runner.invoke(app, ["compare", str(tmp_path), "--between", "opening"]).output
    assert "so there is no regret" in " ".join(between.split())
    assert "nan" not in text + priced + between


def test_compare_shows_regret_against_the_best_seen_besides_a_value(tmp_path: Path) -> None:
    steer(tmp_path, sweep={"environment.opening": [0.3, 0.6]})
    asked = ["--between", "opening", "--against", "0.6", "--against", "best-seen"]
    rows = json.loads(runner.invoke(app, ["compare", str(tmp_path), *asked, "--json"]).stdout)
    assert {row["criterion"] for row in rows} == {"regret_to_best_seen"}
    assert {row["against"] for row in rows} == {0.6}
    assert all("bounds regret from neither side" in row["notes"][1] for row in rows)


def test_two_values_to_compare_with_are_refused(study: Path) -> None:
    told = runner.invoke(app, ["compare", str(study), "--against", "1", "--against", "2"])
    assert isinstance(told.exception, SparqError)
    assert "choose one" in str(told.exception)
