"""The numbers of the documentation are those of its studies, and of the code as it is."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sparq_sim.analysis import summary
from sparq_sim.errors import SparqError
from sparq_sim.executors import InProcess
from sparq_sim.scenario import Scenario
from sparq_sim.scenario_files import bundled
from sparq_sim.store import canonical
from sparq_sim.study import Study

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("regenerate", DOCS / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["regenerate"] = module  # Dataclasses look there for their annotations.
    spec.loader.exec_module(module)
    return module


regenerate = _script()
STUDIES: Mapping[str, Any] = regenerate.listed()
PAGES = {str(page.relative_to(ROOT)): page for page in regenerate.pages()}


# Pages, numbers and studies fit together


@pytest.mark.parametrize("page", PAGES)
def test_every_marked_part_of_a_page_is_what_the_results_render_to(page: str) -> None:
    text = PAGES[page].read_text(encoding="utf-8")
    assert regenerate.rendered(text) == text


@pytest.mark.parametrize("page", PAGES)
def test_every_marker_is_closed(page: str) -> None:
    text = PAGES[page].read_text(encoding="utf-8")
    assert text.count("<!-- ") == 2 * len(regenerate.MARKED.findall(text))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_of_a_bundled_scenario_and_has_its_figures(name: str) -> None:
    one = STUDIES[name]
    assert one.scenario in bundled()
    files = [figure.get("file", name) for figure in one.figures]
    assert len(set(files)) == len(files)
    for file in files:
        assert (regenerate.PICTURES / f"{file}.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("name", STUDIES)
def test_results_have_a_row_for_all_that_the_scenario_plays(name: str, tmp_path: Path) -> None:
    one, told = STUDIES[name], regenerate.results(name)
    assert (told["scenario"], told["overrides"]) == (one.scenario, list(one.overrides))
    rows = {(row["optimizer"], canonical(row["setting"])): row for row in told["rows"]}
    assert len(rows) == len(told["rows"])
    for row in rows.values():
        low, mean, high = (row[f"average_regret{end}"] for end in ("_low", "", "_high"))
        assert low <= mean <= high
        assert row["average_regret_std"] >= 0
        assert row["plays"] == told["replications"]
    assert all(level[each] >= 0 for level in told["levels"] for each in regenerate.LEVELS)
    if not one.missing:
        plays = Study(one.load(), tmp_path).plays()
        assert {(play.optimizer, canonical(play.setting)) for play in plays} == rows.keys()
        assert len(plays) == sum(row["plays"] for row in rows.values())


def test_every_result_and_every_picture_is_of_a_listed_study() -> None:
    listed = {figure.get("file", name) for name, one in STUDIES.items() for figure in one.figures}
    results = {path.stem for path in regenerate.RESULTS.glob("*.json")}
    assert results - {"theory"} == set(STUDIES)  # Which docs/theory.py writes.
    assert {path.stem for path in regenerate.PICTURES.glob("*.svg")} == listed


def test_every_study_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES.values())
    shown = set(re.findall(r"<!-- (?:results|number|levels): ([\w-]+)", text))
    shown |= {Path(picture).stem for picture in re.findall(r"pictures/results/([\w.-]+)\)", text)}
    assert shown >= set(STUDIES)


# Markers


@pytest.mark.parametrize(
    ("marker", "reason"),
    [
        ("results: questions-lat", "did you mean 'questions-late'"),
        ("results: questions-late | optimiser", "did you mean 'optimizer'"),
        ("results: questions-late | | tv-gp-ucbb", "did you mean 'tv-gp-ucb'"),
        ("results: questions-late | | transit=4", "no row with 'transit=4'"),
    ],
)
def test_a_marker_that_asks_for_what_is_not_there_is_refused(marker: str, reason: str) -> None:
    with pytest.raises(SparqError, match=reason):
        regenerate.rendered(f"<!-- {marker} -->\n<!-- end -->")


def test_a_marked_number_is_that_of_its_row() -> None:
    rows = regenerate.results("questions-late")["rows"]
    (row,) = (r for r in rows if r["optimizer"] == "sparq-gp-ucb" and 11 in r["setting"].values())
    marker = "<!-- number: questions-late | average_regret | sparq-gp-ucb; transit=11 -->"
    text = regenerate.rendered(f"of {marker}?<!-- end -->.")
    assert text == f"of {marker}{row['average_regret']:.3f}<!-- end -->."


def test_what_a_script_prints_is_set_between_its_markers_and_kept_otherwise() -> None:
    page = "<!-- drift table -->\nold\n<!-- end -->"
    assert regenerate.rendered(page) == page
    new = regenerate.rendered(page, {"drift table": "| new |\n"})
    assert new == "<!-- drift table -->\n\n| new |\n\n<!-- end -->"


# The figures of the README come from commands that stand beside them


@pytest.mark.parametrize(
    ("figures", "command"),
    [
        ("The paper's synthetic function", "make demo"),
        ("The kernel beside bare SimPy", "python -m benchmarks.kernel"),
        ("The engine beside its peers", "python -m benchmarks.engine"),
    ],
)
def test_the_readme_names_the_command_of_its_figures(figures: str, command: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (found,) = (match.start() for match in re.finditer(re.escape(f" {figures}\n"), text))
    assert command in "\n".join(text[:found].splitlines()[-20:])


def test_all_that_the_readme_shows_as_printed_has_a_command_before_it() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    before = [part.splitlines()[-8:] for part in text.split("```text\n")[:-1]]
    assert before
    for lines in before:
        named = re.findall(r"\bmake ([a-z]+)", "\n".join(lines))
        assert {*named} & {*targets}, lines


# The code as it is still gives the committed numbers


@pytest.mark.slow
def test_the_demo_of_the_readme_agrees_with_plays_of_now(tmp_path: Path) -> None:
    study = Study(Scenario.load("synthetic"), tmp_path)
    assert not study.run(InProcess()).troubles
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for now in summary(study):
        shown = re.search(rf"^ {now.optimizer} +([\d.]+) ±", text, re.MULTILINE)
        assert shown is not None, now.optimizer
        error = now.average_regret.std / sqrt(now.plays)
        assert abs(float(shown[1]) - now.average_regret.mean) <= 2 * error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sparq_sim.optimizers.ucb.PriorWarning")  # Which is studied.
@pytest.mark.parametrize("name", [name for name, one in STUDIES.items() if one.sample])
def test_plays_with_other_seeds_agree_with_the_committed_means(name: str, tmp_path: Path) -> None:
    """Compare the means of a fresh sample with those committed, in standard errors.

    The standard error of a difference is s sqrt(1/n + 1/m), s being the committed deviation over n
    plays, and m the plays of the sample. Of one mean, two of them are a 95 % interval. Here it is
    Bonferroni's over all rows of the study, of Student's distribution, for s is an estimate.
    """
    from scipy.special import stdtrit

    one, told = STUDIES[name], regenerate.results(name)
    if one.missing:
        pytest.skip(f"{', '.join(one.missing)} is not there")
    place = list(STUDIES).index(name)
    scenario = one.load(f"seed={1_000_000 + place}", f"replications={one.sample}")
    study = Study(scenario, tmp_path)
    assert not study.run(InProcess()).troubles
    committed = {(row["optimizer"], canonical(row["setting"])): row for row in told["rows"]}
    apart: dict[object, float] = {}
    for fresh in summary(study):
        key = fresh.optimizer, canonical(fresh.setting)
        row = committed[key]
        error = row["average_regret_std"] * sqrt(1 / row["plays"] + 1 / fresh.plays)
        apart[key] = abs(fresh.average_regret.mean - row["average_regret"]) / error
    assert apart.keys() == committed.keys()
    limit = stdtrit(told["replications"] - 1, 1 - 0.05 / 2 / len(apart))
    assert max(apart.values()) <= limit, apart
