"""Regret against meters, for print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer

from sparq_sim.analysis.summary import spread
from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.gather import gather
from sparq_sim.report.print import draw, kinds
from tests.report.conftest import played


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> ChartData:
    """A study with a meter that shows more in each row than in the one before."""
    data = gather(played(tmp_path_factory.mktemp("study")), replays=False).charts
    rows = [
        replace(
            row, meters={"net_energy": spread([place, place + 1.0]), "net_alive": spread([3.0])}
        )
        for place, row in enumerate(data.summaries)
    ]
    return replace(data, summaries=rows)


def _points(data: ChartData, kind: str) -> Mapping[str, int]:
    """How many points each line has, by its name."""
    (axes,) = draw(data, kind).axes
    return {
        str(each.get_label()): len(np.asarray(each.lines[0].get_xdata()))
        for each in axes.containers
        if isinstance(each, ErrorbarContainer)
    }


def test_regret_is_drawn_against_meters_that_are_not_always_the_same(material: ChartData) -> None:
    assert "by-net_energy" in kinds(material)
    assert "by-net_alive" not in kinds(material)


def test_a_meter_that_is_always_the_same_is_refused_with_the_reason(material: ChartData) -> None:
    with pytest.raises(SparqError, match=r"^net_alive is the same for all optimizers and settings"):
        draw(material, "by-net_alive")


def test_a_misspelt_meter_is_told_with_another_figure_of_its_sort(material: ChartData) -> None:
    with pytest.raises(SparqError, match=r"'by-net_enrgy': did you mean 'by-net_energy'"):
        draw(material, "by-net_enrgy")


def test_each_optimizer_has_a_point_for_each_setting(material: ChartData) -> None:
    found = _points(material, "by-net_energy")
    assert sum(found.values()) == len(material.summaries)
    for name in material.optimizers:
        own = sum(count for line, count in found.items() if line.partition(",")[0] == name)
        assert own == sum(row.optimizer == name for row in material.summaries)


def test_points_are_marked_with_what_is_swept(material: ChartData) -> None:
    (axes,) = draw(material, "by-net_energy").axes
    texts = {text.get_text() for text in axes.texts}
    assert len(texts) > 1
    assert axes.get_xlabel() == "net, energy"


def test_more_rounds_are_better_and_more_energy_is_worse(material: ChartData) -> None:
    rows = [replace(row, rounds=10.0 + i) for i, row in enumerate(material.summaries)]
    ends = {"by-rounds": max(row.rounds for row in rows), "by-net_energy": 0.5}
    for kind, end in ends.items():
        (axes,) = draw(replace(material, summaries=rows), kind).axes
        (front,) = (line for line in axes.lines if line.get_label() == "Pareto front")
        assert np.asarray(front.get_xdata())[0] == pytest.approx(end)


def test_settings_without_a_field_are_a_line_of_their_own(
    material: ChartData,
) -> None:
    path = material.varied_paths[0]
    (first, *_) = material.values(path)
    found = [
        replace(play, play=replace(play.play, setting={**play.setting, path: "unset"}))
        if play.setting.get(path) == first
        else play
        for play in material.found
    ]
    rows = [
        replace(row, setting={**row.setting, path: "unset"})
        if row.setting.get(path) == first
        else row
        for row in material.summaries
    ]
    names = _points(replace(material, found=found, summaries=rows), "by-net_energy")
    assert any("without" in name for name in names)
    assert any(" with " in name for name in names)
