"""Scenarios that installed packages bring are found by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.scenario.bundled import find_bundled
from sparq_sim.scenario.model import Scenario
from tests.scenario.samples import (
    SMALL,
    problem,
    write,
)


def test_the_bundled_scenario_is_loaded_by_its_name() -> None:
    scenario = Scenario.load("synthetic")
    assert [*scenario.optimizers] == ["uniform", "gp-ucb", "tv-gp-ucb", "sparq-gp-ucb"]
    assert (scenario.rounds, scenario.replications) == (500, 12)
    assert scenario.experts["expert"].channel.terms.std == 0.1
    assert scenario.experts["expert"].channel.terms.cost_per_point > 0
    assert find_bundled()["synthetic"].name == "synthetic.toml"


# Widths of theory warn where few queries are asked, as in the first rounds.
@pytest.mark.filterwarnings("ignore::sparq_sim.optimizers.shared.prior.PriorWarning")
# In sensors/loss, some nodes are out of reach at the one data rate of all.
@pytest.mark.filterwarnings("ignore:out of reach")
@pytest.mark.parametrize("name", sorted(find_bundled()))
def test_each_bundled_scenario_loads_and_plays(name: str, tmp_path: Path) -> None:
    rounds = 11  # So many that even the slowest expert can answer.
    overrides = [f"rounds={rounds}"]
    if name in ("paper/ozone", "paper/ozone-six"):  # Their files are the user's.
        days = range(1, rounds + 2)
        rows = [f"2020-01-{d:02},{s},40.{s},-73.{s},{d + s}" for d in days for s in range(9)]
        (tmp_path / "day.csv").write_text("\n".join(["date,site,lat,lon,value", *rows]))
        overrides.append(f"environment.files=['{tmp_path / 'day.csv'}']")
    scenario = Scenario.load(name, overrides=overrides)
    # Of a search, some will do.
    for optimizer in list(scenario.optimizers)[:8]:
        assert len(scenario.play(optimizer)) == rounds


def test_a_folder_of_results_hides_no_bundled_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "synthetic").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Scenario.load("synthetic").rounds == 500


def test_an_unknown_name_is_answered_with_the_one_that_was_meant() -> None:
    assert problem("sinthetic") == (
        "sinthetic: no such file, and no scenario has this name; did you mean 'synthetic'?"
    )


def install(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """Install a package of scenarios as pip would, on the path."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[sparq_sim.scenarios]\n{package} = {package}\n")
    if files:
        (folder / package).mkdir()
    for name, text in {"__init__.py": "", **files}.items() if files else ():
        write(folder / package, text, name if "." in name else f"{name}.toml")
    monkeypatch.syspath_prepend(folder)


def test_other_packages_can_bring_scenarios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "tidal_scenarios", monkeypatch, tide=SMALL)
    assert {"tide", "synthetic"} <= find_bundled().keys()
    assert Scenario.load("tide").rounds == 5


def test_a_name_claimed_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "rival_scenarios", monkeypatch, synthetic=SMALL)
    assert problem("synthetic").startswith("synthetic: is claimed twice: ")


def test_a_broken_package_breaks_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "absent_scenarios", monkeypatch)
    assert Scenario.load("synthetic").rounds == 500
    assert "absent_scenarios cannot be loaded: ModuleNotFoundError" in problem("tide")
