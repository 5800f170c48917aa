"""The bundled scenarios of the paper: its numbers, its figures, and what users may get wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from math import ceil, log, sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator, Philox
from typer.testing import CliRunner

from sparq_environments.sensor_network import SensorNetwork
from sparq_sim.analysis.pairs import compare_optimizers
from sparq_sim.analysis.summary import summary
from sparq_sim.cli.main import app
from sparq_sim.errors import PluginError
from sparq_sim.gp.kernels import SquaredExponential
from sparq_sim.landscapes.drift import measure_drift
from sparq_sim.messages import REWARD, Query
from sparq_sim.optimizers.r_gp_ucb import RGPUCB
from sparq_sim.optimizers.shared.lengths import VariationLength
from sparq_sim.optimizers.shared.prior import GPPrior, find_prior
from sparq_sim.optimizers.shared.ucb import GPOptimizer
from sparq_sim.optimizers.shared.widths import LogarithmicWidth
from sparq_sim.optimizers.sparq_gp_ucb import SparQGPUCB
from sparq_sim.optimizers.sw_gp_ucb import SWGPUCB
from sparq_sim.optimizers.w_gp_ucb import WGPUCB
from sparq_sim.plugin.contract import Briefing
from sparq_sim.scenario.model import Scenario
from sparq_sim.simulation.channel.noise import Gaussian
from sparq_sim.study.executors import InProcess
from sparq_sim.study.results import Results
from sparq_sim.study.study import Study
from tests.environments.ozone import ozone_file
from tests.environments.test_readings import NEW, OLD, epa, two_days

SPARQ = "sparq-gp-ucb"
BASELINES = ("gp-ucb", "r-gp-ucb", "sw-gp-ucb", "w-gp-ucb", "tv-gp-ucb")
BUDGET = 30.4
SEARCHED = Path(__file__).resolve().parents[2] / "docs/results/paper-synthetic-search.json"


@cache
def paper(name: str) -> Scenario:
    return Scenario.load(f"paper/{name}")


def rng() -> Generator:
    return Generator(Philox(key=0))


# Figure 1: what the paper says


def test_figure_1_is_played_with_the_numbers_of_the_paper() -> None:
    scenario = paper("synthetic")
    assert (scenario.rounds, scenario.replications) == (500, 40)
    roads = (scenario.feedback, scenario.experts["expert"].channel)
    assert [road.noise for road in roads] == [Gaussian(std=sqrt(0.01))] * 2
    assert set(scenario.optimizers) == {SPARQ, *BASELINES}
    for optimizer in scenario.optimizers.values():
        assert isinstance(optimizer, GPOptimizer)
        assert optimizer.width.theoretical
        assert optimizer.width.model_dump()["delta"] == 0.05
    sparq = scenario.optimizers[SPARQ]
    assert isinstance(sparq, SparQGPUCB)
    assert [sparq.schedule(t) for t in (1, 100, 500)] == [0, ceil(6 * log(100)), ceil(6 * log(500))]


def test_the_budget_that_baselines_are_told_is_the_true_one() -> None:
    scenario = paper("synthetic")
    measured = measure_drift(scenario.environment.start(rng()), np.arange(501.0)).budget
    assert measured == pytest.approx(BUDGET, abs=0.05)
    told = scenario.optimizers
    assert isinstance(told["r-gp-ucb"], RGPUCB)
    assert isinstance(told["sw-gp-ucb"], SWGPUCB)
    assert isinstance(told["w-gp-ucb"], WGPUCB)
    assert told["r-gp-ucb"].block == told["sw-gp-ucb"].window == VariationLength(budget=BUDGET)
    assert told["w-gp-ucb"].budget == BUDGET


def test_windows_and_weights_are_those_of_their_authors_formulas() -> None:
    kernel = SquaredExponential(length_scale=5.7, variance=0.23)
    landscape = paper("synthetic").environment.start(rng())
    briefing = Briefing(landscape.domain, rounds=500)
    # By hand: gamma_T^(1/4) (T / B_T)^(1/2), with gamma_T = log^2 500.
    assert VariationLength(budget=BUDGET)(kernel, briefing) == ceil(2.4929 * 4.0555) == 11
    weighted = paper("synthetic").optimizers["w-gp-ucb"]
    assert isinstance(weighted, GPOptimizer)
    prior = GPPrior(kernel, 1.5, None, LogarithmicWidth(), np.zeros((1, 1)), True)
    memory = weighted.start_memory(prior, briefing, rng())
    assert memory.weight == pytest.approx(1 - 0.24658 / 2.4929, abs=1e-4)  # type: ignore[attr-defined] # of its own kind


def test_the_kernel_fitted_to_the_design_is_that_of_another_implementation() -> None:
    # A prototype found length 5.7, variance 0.23 and mean 1.5 on 200 uniform points, centred.
    scenario = paper("synthetic")
    chance = rng()
    points = chance.uniform(-50.0, 50.0, (scenario.design, 1))
    rewards = scenario.environment.start(chance).rewards(points, 0.0)
    design = Query(1, REWARD, points, 0.0).answer(
        rewards + chance.normal(0.0, 0.1, len(points)), stds=0.1
    )
    optimizer = scenario.optimizers[SPARQ]
    assert isinstance(optimizer, GPOptimizer)
    fitted = find_prior(optimizer, design, chance)
    assert isinstance(fitted.kernel, SquaredExponential)
    assert fitted.kernel.length_scale == pytest.approx(5.7, abs=1.0)
    assert fitted.kernel.variance == pytest.approx(0.23, abs=0.1)
    assert fitted.mean == pytest.approx(1.5, abs=0.15)


def test_tuning_changes_neither_the_world_nor_shares_its_seeds() -> None:
    theory, tuned, search = map(paper, ("synthetic", "synthetic-tuned", "synthetic-search"))
    for other in (tuned, search):
        for field in ("environment", "feedback", "experts", "rounds", "design"):
            assert getattr(other, field) == getattr(theory, field)
    assert search.seed not in (theory.seed, tuned.seed)
    assert set(tuned.optimizers) == set(theory.optimizers)


@pytest.mark.parametrize("name", [SPARQ, *BASELINES])
def test_what_is_tuned_did_best_in_the_search(name: str) -> None:
    rows = json.loads(SEARCHED.read_text(encoding="utf-8"))["rows"]
    method = f"{name.partition('-')[0]}, "
    tried = {row["optimizer"]: row["average_regret"] for row in rows}
    best = min((each for each in tried if each.startswith(method)), key=tried.__getitem__)
    chosen = paper("synthetic-tuned").optimizers[name].model_dump()
    # A weight that is given needs no budget.
    expected = paper("synthetic-search").optimizers[best].model_dump()
    assert chosen | {"budget": None} == expected | {"budget": None}


# Figure 2


OZONE = ["ozone", "ozone-synthetic"]
SIX_A_DAY = ["ozone-six", "ozone-six-synthetic"]


def sparqs(scenario: Scenario) -> tuple[SparQGPUCB, SparQGPUCB]:
    """Give the one that waits, and Algorithm 1."""
    waiting, clocked = scenario.optimizers["sparq-waiting"], scenario.optimizers[SPARQ]
    assert isinstance(waiting, SparQGPUCB)
    assert isinstance(clocked, SparQGPUCB)
    return waiting, clocked


@pytest.mark.parametrize("name", [*OZONE, *SIX_A_DAY])
def test_figure_2_has_two_years_of_28_sites_and_sparq_both_clocked_and_waiting(name: str) -> None:
    scenario = paper(name)
    assert scenario.rounds == 730
    assert [sparq.waits for sparq in sparqs(scenario)] == [True, False]
    assert {*BASELINES} < {*scenario.optimizers}
    assert len(SensorNetwork().start(rng()).domain.points) == 28


@pytest.mark.parametrize("name", OZONE)
def test_figure_2_follows_the_papers_protocol(name: str) -> None:
    scenario = paper(name)
    for sparq in sparqs(scenario):
        assert [sparq.schedule(t) for t in (2, 100, 730)] == [5, 28, 40]  # 6 log t
        assert sparq.rate is None  # sigma^2
    for optimizer in scenario.optimizers.values():
        assert isinstance(optimizer, GPOptimizer)
        assert optimizer.kernel is None  # by likelihood
        assert optimizer.width.model_dump()["delta"] == 0.05


@pytest.mark.parametrize("name", SIX_A_DAY)
def test_of_its_second_version_six_sites_are_asked_a_day(name: str) -> None:
    for sparq in sparqs(paper(name)):
        assert {sparq.schedule(t) for t in range(1, 731)} == {6}


# Bad input, as users meet it


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["run", *arguments, "--executor", "in-process"])
    assert result.exit_code, result.output
    return " ".join(f"{result.output} {result.exception}".split())


@pytest.mark.parametrize(
    ("header", "units", "years", "told"),
    [
        (OLD.replace("Max 8-hour Ozone", "Mean PM2.5"), "ug/m3 LC", "[2016]", "holds no Ozone"),
        (NEW.replace("Ozone Conc", "CO Conc"), "ppm", "[2016]", "holds no Ozone"),
        (OLD, "ppm", "[2017]", "01/01/2016 is of 2016, not of 2017"),
        (OLD, "parts", "[2016]", "'parts' is none of ppm, ppb"),
    ],
    ids=["particles", "carbon monoxide", "year", "unit"],
)
def test_epas_files_of_another_kind_stop_figure_2_with_file_line_and_column(
    tmp_path: Path, header: str, units: str, years: str, told: str
) -> None:
    kind = NEW if "Local Site Name" in header else OLD
    file = epa(tmp_path / "epa.csv", two_days(kind, units=units), header)
    given = [f"environment.files=['{file}']", f"environment.years={years}", "replications=1"]
    said = run(
        *("paper/ozone", "--out", str(tmp_path / "out")),
        *(word for each in given for word in ("--set", each)),
    )
    assert told in said
    assert re.search(r"epa\.csv, line \d, column", said)
    assert not list(tmp_path.glob("out/rounds/*"))


def test_a_kernel_that_does_not_fit_the_domain_is_refused_with_the_remedy() -> None:
    kernel = "optimizers.gp-ucb.kernel={kind='squared-exponential', length_scale=[1.0, 2.0]}"
    scenario = Scenario.load("paper/synthetic-tuned", overrides=["rounds=2", kernel])
    told = "length_scale has 2 entries and the points have 1 coordinates: give one number"
    with pytest.raises(PluginError, match=told):
        scenario.play("gp-ucb")


def test_other_settings_in_the_same_folder_are_played_and_told_apart(tmp_path: Path) -> None:
    for rounds in (3, 4):
        short = [f"rounds={rounds}", "replications=1", "optimizers=['gp-ucb', 'tv-gp-ucb']"]
        scenario = Scenario.load("paper/synthetic-tuned", overrides=short)
        assert Study(scenario, tmp_path, into=True).run(InProcess()).resumed == 0
    study = Results.open(tmp_path)
    assert [row.plays for row in summary(study)] == [1, 1]
    assert "left out 2 plays of other scenarios" in study.notes[0]


# What the figures must show


def played(scenario: Scenario, folder: Path) -> tuple[Results, Mapping[str, float]]:
    """Play a study; give it with the average regret of each optimizer."""
    study = Study(scenario, folder)
    report = study.run(InProcess())
    assert not report.failed_plays
    results = study.results
    return results, {row.optimizer: row.average_regret.mean for row in summary(results)}


def assert_best(study: Results, optimizer: str, others: tuple[str, ...]) -> None:
    """Check that it beats each of the others, replication by replication, with 95 % confidence."""
    for other in others:
        (gap,) = compare_optimizers(study, optimizer, other)
        assert gap.difference.high < 0, gap


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparq_sim.optimizers.shared.prior.PriorWarning")
def test_under_widths_of_theory_sparq_is_best_and_windows_play_at_random(tmp_path: Path) -> None:
    scenario = Scenario.load("paper/synthetic", overrides=["replications=12"])
    study, regret = played(scenario, tmp_path)
    assert regret[SPARQ] < 0.16
    assert_best(study, SPARQ, BASELINES)
    assert 1.1 <= regret["r-gp-ucb"] <= 1.4
    assert 1.1 <= regret["sw-gp-ucb"] <= 1.4


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparq_sim.optimizers.shared.prior.PriorWarning")
def test_tuned_baselines_come_near_and_sparq_stays_best(tmp_path: Path) -> None:
    scenario = Scenario.load("paper/synthetic-tuned", overrides=["replications=12"])
    study, regret = played(scenario, tmp_path)
    assert regret[SPARQ] <= 0.040
    assert min(regret[name] for name in BASELINES) <= 0.14
    assert_best(study, SPARQ, BASELINES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparq_sim.optimizers.shared.prior.PriorWarning")
def test_on_ozone_sparq_beats_all_baselines_and_not_the_best_fixed_site(tmp_path: Path) -> None:
    files = f"environment.files=['{ozone_file()}']"
    study, regret = played(Scenario.load("paper/ozone", overrides=[files]), tmp_path)
    assert_best(study, SPARQ, BASELINES)
    assert regret["sparq-waiting"] < 6.01 < regret[SPARQ]


@pytest.mark.slow
def test_with_six_answers_a_day_waiting_sparq_beats_the_best_fixed_site_and_all_baselines(
    tmp_path: Path,
) -> None:
    files = f"environment.files=['{ozone_file()}']"
    scenario = Scenario.load("paper/ozone-six", overrides=["replications=4", files])
    study, regret = played(scenario, tmp_path)
    assert regret["sparq-waiting"] < 6.01
    assert_best(study, "sparq-waiting", (SPARQ, *BASELINES))
