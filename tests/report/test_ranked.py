from __future__ import annotations

from collections.abc import Sequence
from math import isclose

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparq_sim.analysis.criteria import choose_criterion
from sparq_sim.analysis.levels import Level, Levels
from sparq_sim.analysis.standings import rank_plays
from sparq_sim.report.data import ChartData
from sparq_sim.report.html.ranked import RankedChart, make_ranked_chart
from sparq_sim.report.html.track import make_track
from sparq_sim.study.store import StoredSummary
from tests.analysis.results import make_plays

LEVELS: list[Level] = [({}, Levels(uniform=1.0, fixed=0.3, late=0.001))]
FEW, MANY = [0.1, 0.2, 0.15], [0.4, 0.5, 0.45, 0.35, 0.42]


def drawn(*rows: list[StoredSummary], levels: Sequence[Level] = ()) -> RankedChart:
    found = [play for plays in rows for play in plays]
    standings = rank_plays(found, criterion := choose_criterion(found))
    names = list(dict.fromkeys(play.optimizer for play in found))
    data = ChartData(optimizers=names, found=found, levels=levels, criterion=criterion)
    chart = make_ranked_chart(data, standings)
    assert chart is not None
    return chart


def test_optimizers_and_levels_stand_in_their_ranks() -> None:
    chart = drawn(make_plays("slow", MANY), make_plays("fast", FEW), levels=LEVELS)
    assert [(row.name, row.number, row.leads) for row in chart.rows] == [
        ("one round late", "0.001", False),
        ("fast", "0.150", True),
        ("best fixed point", "0.300", False),
        ("slow", "0.424", False),
        ("uniform, expected", "1.000", False),
    ]


def test_levels_do_not_set_the_range() -> None:
    near = drawn(make_plays("slow", MANY), make_plays("fast", FEW), levels=LEVELS)
    alone = drawn(make_plays("slow", MANY), make_plays("fast", FEW))
    assert near.ticks == alone.ticks
    outside = [row.level[1] for row in near.rows if row.level]
    assert outside[0] < 0 < outside[1] < 100 < outside[2]
    assert len(near.lines) == 1


def test_of_few_plays_each_is_drawn_and_of_more_their_interval() -> None:
    chart = drawn(make_plays("slow", MANY), make_plays("fast", FEW))
    (few,), (many,) = (row.marks for row in chart.rows)
    assert (len(few.plays), few.ends) == (3, None)
    assert many.plays == ()
    assert many.ends is not None
    assert many.ends[0] < many.at < many.ends[1]


def test_a_row_per_setting_names_its_best() -> None:
    swept = [
        play
        for value, numbers in ((0, FEW), (2, [0.9, 0.8, 0.7]))
        for play in make_plays("moving", numbers, setting={"a.x": value})
    ]
    chart = drawn(make_plays("still", MANY), swept)
    assert [(row.name, row.by) for row in chart.rows] == [("x 0", "moving"), ("x 2", "still")]
    assert [name for name, _ in chart.key] == ["still", "moving"]
    assert all(len(row.marks) == 2 for row in chart.rows)


def test_where_nothing_can_be_judged_there_is_no_chart() -> None:
    found = make_plays("silent", [None], reward=True)
    standings = rank_plays(found, choose_criterion(found))
    assert make_ranked_chart(ChartData(found=found), standings) is None
    assert make_ranked_chart(ChartData(), None) is None


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6),
    st.floats(0, 1e9),
    st.booleans(),
)
@example(means=[31698.0, 5e-324], around=0.0, from_zero=True)
def test_every_mean_lies_on_the_track_between_round_numbers(
    means: list[float], around: float, from_zero: bool
) -> None:
    means = [abs(mean) for mean in means] if from_zero else means
    track = make_track(
        [(mean, mean - around, mean + around) for mean in means], from_zero=from_zero
    )
    places = [track.place(mean) for mean in sorted(means)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert all(0 <= place <= 100 for place, _ in track.ticks)


@pytest.mark.parametrize(("most", "is_log"), [(0.49, False), (0.51, True)])
def test_means_that_differ_by_more_than_five_times_make_it_logarithmic(
    most: float, is_log: bool
) -> None:
    track = make_track([(0.1, 0.09, 0.11), (most, most, most)], from_zero=True)
    assert track.scale.logarithmic == is_log
    if is_log:
        first, second = (track.place(number) for number in (0.1, 0.2))
        assert isclose(track.place(0.4) - second, second - first)
