from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from sparq_sim import SparqError
from sparq_sim.report.data import ChartData
from sparq_sim.report.html.sweeps import sweep_charts
from sparq_sim.report.print import draw
from sparq_sim.report.sweeps import find_along, find_axes
from sparq_sim.study.settings import Setting
from sparq_sim.study.store import StoredSummary
from tests.analysis.results import make_plays

ONCE, AGAIN, SLOW = "experts.once.loss", "experts.again.loss", "experts.once.transit"


def chart_data(plays: Sequence[tuple[str, Setting, list[float]]]) -> ChartData:
    found: list[StoredSummary] = []
    for optimizer, setting, numbers in plays:
        found += make_plays(optimizer, numbers, setting=setting)
    return ChartData(optimizers=list(dict.fromkeys(name for name, *_ in plays)), found=found)


ZIPPED = chart_data(
    [
        (name, {SLOW: slow, ONCE: loss, AGAIN: loss}, [loss + extra] * 5)
        for name, extra in (("one", 1.0), ("other", 2.0))
        for loss, slow in ((0.0, "short"), (0.3, "long"), (0.6, "longer"))
    ]
)
GRID = chart_data(
    [("one", {ONCE: x, SLOW: y}, [1.0 + x + y] * 5) for x in (0.0, 0.5) for y in (1.0, 2.0)]
)
OWN = chart_data(
    [
        (name, {f"optimizers.{name}.width": width}, [width * factor] * 5)
        for name, factor in (("one", 1.0), ("other", 2.0))
        for width in (1.0, 3.0)
    ]
    + [("still", {}, [7.0] * 5)]
)


def test_fields_that_are_swept_side_by_side_are_one_axis() -> None:
    (axis,) = find_axes(ZIPPED)
    assert axis.values == [0.0, 0.3, 0.6]
    assert axis.points[1] == {SLOW: "long", ONCE: 0.3, AGAIN: 0.3}
    assert axis.label == "loss, and with it transit"
    assert len(sweep_charts(ZIPPED)[0].figures) == len(draw(ZIPPED, "sweep").axes) == 1


def test_side_by_side_there_is_no_heat_map() -> None:
    assert [chart.name for chart in sweep_charts(ZIPPED)] == ["swept"]
    with pytest.raises(SparqError, match="crossed"):
        draw(ZIPPED, "heat-map")


def test_crossed_fields_are_two_axes_and_a_heat_map() -> None:
    assert [axis.label for axis in find_axes(GRID)] == ["loss", "transit"]
    assert [chart.name for chart in sweep_charts(GRID)] == ["swept", "map-0"]


def test_the_same_field_of_several_optimizers_is_one_axis() -> None:
    (axis,) = find_axes(OWN)
    assert (axis.label, axis.values) == ("width", [1.0, 3.0])
    means = {each.optimizer: [s.mean for s in each.spreads] for each in find_along(OWN, axis)}
    assert means == {"one": [1.0, 3.0], "other": [2.0, 6.0], "still": [7.0, 7.0]}


def test_few_plays_along_an_axis_are_dots() -> None:
    few = chart_data([("one", {ONCE: loss}, [1.0, 1.5, 2.0]) for loss in (0.0, 0.5)])
    (figure,) = sweep_charts(few)[0].figures
    dots, mean = figure["data"]
    assert sorted(zip(dots["x"], dots["y"], strict=True)) == [
        (x, y) for x in (0.0, 0.5) for y in (1.0, 1.5, 2.0)
    ]
    assert not any(mean["error_y"]["array"])
    (axes,) = draw(few, "sweep").axes
    drawn = [np.asarray(line.get_ydata()) for line in axes.get_lines()]
    assert sum(list(ys) == [1.0, 1.5, 2.0] for ys in drawn) == 2
