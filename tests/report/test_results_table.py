from __future__ import annotations

from pathlib import Path

import pytest

from sparq_sim.analysis.criteria import REGRET
from sparq_sim.analysis.levels import Level, Levels
from sparq_sim.analysis.standings import rank_plays
from sparq_sim.analysis.summary import summary
from sparq_sim.report.gather import gather
from sparq_sim.report.html.page import render
from sparq_sim.report.results_table import make_results_table
from sparq_sim.report.terminal import summary_table
from tests.analysis.results import make_plays
from tests.report.conftest import played

LEVELS: list[Level] = [({}, Levels(uniform=1.0, fixed=0.3, late=0.01))]
FAST = [0.10, 0.11, 0.09, 0.12, 0.10, 0.08]
SLOW = [0.40, 0.38, 0.45, 0.41, 0.39, 0.36]


def test_levels_stand_in_their_ranks_and_rivals_have_verdicts() -> None:
    plays = [*make_plays("slow", SLOW), *make_plays("fast", FAST), *make_plays("also", FAST)]
    told = make_results_table(rank_plays(plays, REGRET), LEVELS)
    assert [(line.name, line.cells.get("verdict")) for line in told.lines if line.is_level] == [
        ("one round late", None),
        ("best fixed point", None),
        ("uniform, expected", None),
    ]
    verdicts = {line.name: line.cells["verdict"].text for line in told.lines if not line.is_level}
    assert sorted(verdicts.values()) == ["best", "equal", "worse"]
    assert verdicts["slow"] == "worse"


def test_below_five_plays_there_is_no_interval() -> None:
    plays = [*make_plays("few", FAST[:4]), *make_plays("many", SLOW)]
    many, few = sorted(
        make_results_table(rank_plays(plays, REGRET)).lines, key=lambda line: line.name == "few"
    )
    assert many.cells["average regret"].reach
    assert not few.cells["average regret"].reach


def test_numbers_of_a_column_have_the_digits_that_the_least_mean_needs() -> None:
    plays = [*make_plays("small", [0.00123] * 5), *make_plays("large", [12.0] * 5)]
    lines = make_results_table(rank_plays(plays, REGRET)).lines
    assert [line.cells["average regret"].text for line in lines] == ["0.00123", "12.00000"]


def test_paths_that_are_swept_side_by_side_are_one_column() -> None:
    plays = [
        play
        for loss in (0.0, 0.5)
        for play in make_plays(
            "any", FAST, setting={"x.loss": loss, "y.loss": loss, "z.a": loss + 1}
        )
    ]
    assert make_results_table(rank_plays(plays, REGRET)).paths == {"x.loss": "loss", "z.a": "a"}


def test_terminal_page_and_summary_have_the_same_numbers(tmp_path: Path) -> None:
    study = played(tmp_path, sweep={}, replications=2)
    told = gather(study, replays=False, levels=False)
    assert told.standings is not None
    table = summary_table("", told.standings)
    page = " ".join(render(told).split())
    for row, asked in zip(
        told.standings.rows,
        next(column.cells for column in table.columns if column.header == "asked"),
        strict=True,
    ):
        (same,) = [each for each in summary(study) if each.optimizer == row.optimizer]
        assert asked == f"{same.asked_per_round:.1f}"
        assert f'<td class="n">{asked}</td>' in page
    (noted,) = [each for each in told.charts.series if each.name == "asked"]
    (curious,) = [row for row in told.standings.rows if row.optimizer == noted.optimizer]
    assert noted.means.mean() == pytest.approx(curious.asked_per_round)
    for column in table.columns:
        assert str(column.header) in page
