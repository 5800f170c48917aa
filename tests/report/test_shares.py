"""Parts of a whole that optimizers note: found, charted, drawn for print and replayed."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from sparq_sim.analysis.curves import Series
from sparq_sim.errors import SparqError
from sparq_sim.report.data import ChartData, ReportData, series_order
from sparq_sim.report.gather import gather
from sparq_sim.report.html.charts import all_charts
from sparq_sim.report.html.figure import Figure
from sparq_sim.report.html.page import TEMPLATES, render
from sparq_sim.report.html.replay import pack
from sparq_sim.report.html.shares import share_charts
from sparq_sim.report.palette import SHARES, spread_shares
from sparq_sim.report.print import draw, kinds
from sparq_sim.report.replay import play_again
from sparq_sim.report.shares import Shares, choose_colours, find_shares
from sparq_sim.study.results import Results
from tests.report.test_print import hue
from tests.report.test_replay import unpacked
from tests.report.waverers import SCALES, Waverer, waver


@pytest.fixture(scope="module")
def wavering(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return waver(tmp_path_factory.mktemp("wavering"))


@pytest.fixture(scope="module")
def material(wavering: Results) -> ChartData:
    return gather(wavering, replays=False).charts


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> ChartData:
    """A waverer that begins in the second or the fifth round, and one who believes nothing."""
    sweep = {"optimizers.waverer.begins": [2, 5]}
    return gather(waver(tmp_path_factory.mktemp("swept"), sweep=sweep), replays=False).charts


def noted(name: str, means: list[float], first: int = 1, optimizer: str = "one") -> Series:
    rounds = np.arange(first, first + len(means), dtype=float)
    return Series(name, optimizer, {}, rounds, np.array(means))


def whole(*parts: str, group: str = "scale", optimizer: str = "one") -> Shares:
    return Shares(group, optimizer, {}, parts, np.ones(1), np.ones((len(parts), 1)))


# Data


def test_a_whole_is_the_mean_over_plays_of_its_parts_as_they_were_noted(
    wavering: Results, material: ChartData
) -> None:
    drift, scales = material.shares
    assert (drift.group, drift.parts) == ("drift", ("motion", "jitter"))
    assert (scales.group, scales.parts) == ("time_scale", SCALES)
    plays = [play for play in wavering.finished() if play.optimizer == "waverer"]
    traces = [wavering.read(play.key).trace for play in plays]
    assert len(traces) == 3
    for part, values in zip(SCALES, scales.values, strict=True):
        own = np.mean([trace.rounds[f"note_time_scale/{part}"] for trace in traces], axis=0)
        assert_allclose(values, own[1:])  # It begins in the second round.
    assert list(scales.rounds) == list(range(2, 13))
    assert_allclose(scales.values.sum(axis=0), 1.0)


def test_parts_are_not_among_the_other_notes_and_take_none_of_their_places() -> None:
    parts = [noted(f"note a/{i:02}", [0.0]) for i in range(30)]
    plain = [noted(f"note {name}", [0.0]) for name in ("b", "c/", "/d")]
    replies = [noted("reply e/f", [0.0])]
    kept = [each.name for each in series_order([*parts, *plain, *replies])]
    assert sorted(kept) == ["note /d", "note b", "note c/", "reply e/f"]
    assert [each.parts for each in find_shares([*parts, *plain, *replies])] == [
        tuple(f"{i:02}" for i in range(30))
    ]


def test_a_part_that_is_not_noted_beside_others_has_no_share() -> None:
    (found,) = find_shares([noted("note a/b", [1.0, 0.4, 0.4]), noted("note a/c", [0.6, 0.6], 2)])
    assert found.rounds.tolist() == [1, 2, 3]
    assert found.values.tolist() == [[1.0, 0.4, 0.4], [0.0, 0.6, 0.6]]


def test_each_optimizer_has_a_whole_of_its_own() -> None:
    found = find_shares([noted("note a/b", [1.0], optimizer=name) for name in ("one", "two")])
    assert [each.optimizer for each in found] == ["one", "two"]


# Colours


@given(st.integers(1, 40))
def test_parts_have_colours_in_their_order_and_up_to_twelve_have_different_ones(count: int) -> None:
    found = spread_shares(count)
    assert found == sorted(found)
    assert {1 <= place <= len(SHARES) for place in found} == {True}
    assert len(set(found)) == min(count, len(SHARES))


def test_a_part_has_one_colour_and_numbers_have_theirs_by_their_size() -> None:
    wholes = [whole("3", "30", "300"), whole("10", "30", optimizer="two"), whole("x", group="y")]
    colours = choose_colours(wholes, "scale")
    assert list(colours) == ["3", "10", "30", "300"]
    assert list(colours.values()) == spread_shares(4)


def test_parts_that_are_words_have_colours_in_the_order_in_which_they_were_noted() -> None:
    assert list(choose_colours([whole("motion", "jitter")], "scale")) == ["motion", "jitter"]


def lightness(colour: str) -> float:
    """Compute the relative luminance of WCAG 2."""
    shares = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_colours_grow_lighter_and_stand_out_on_light_and_dark_paper() -> None:
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    found = [colour for _, colour in re.findall(r"--share-(\d+): (#\w+);", style)]
    light, dark = found[:12], found[12:]
    assert tuple(light) == SHARES
    assert len(dark) == 12
    for colours, paper in ((light, "#fdfdfb"), (dark, "#14181b")):
        assert f"--paper: {paper};" in style
        levels = [lightness(colour) for colour in colours]
        assert levels == sorted(levels)
        ground = lightness(paper)
        contrasts = [(max(x, ground) + 0.05) / (min(x, ground) + 0.05) for x in levels]
        assert min(contrasts) > 1.6


# The page


def areas(figure: Figure) -> dict[str, list[float]]:
    return {trace["name"]: trace["y"] for trace in figure["data"]}


def test_each_whole_of_an_optimizer_is_a_chart_of_stacked_areas(material: ChartData) -> None:
    drift, scales = all_charts(material)["shares"]
    assert drift.title == "What waverer believed: drift"
    assert scales.title == "What waverer believed: time scale"
    (figure,) = scales.figures
    assert list(areas(figure)) == list(SCALES)
    assert_allclose(np.sum(list(areas(figure).values()), axis=0), 100, rtol=1e-3)
    assert figure["layout"]["yaxis"]["range"] == [0, 100]
    assert {trace["stackgroup"] for trace in figure["data"]} == {"whole"}
    fills = [trace["fillcolor"] for trace in figure["data"]]
    assert fills == [f"--share-{place}" for place in spread_shares(6)]


def test_a_chart_has_a_figure_for_each_setting(swept: ChartData) -> None:
    assert len(swept.settings) == 2
    for chart in share_charts(swept):
        assert chart.by == "setting"
        assert [figure["data"][0]["x"][0] for figure in chart.figures] == [2, 5]


def test_a_page_has_the_charts_and_none_where_nothing_was_noted(
    wavering: Results, told: ReportData
) -> None:
    page = render(gather(wavering, replays=False))
    assert page.count("What waverer believed: time scale") == 1
    assert "Noted: pace" in page
    assert "Noted: time_scale" not in page
    assert "What calm believed" not in page
    assert not told.charts.shares
    assert "believed: " not in render(told)


# The replay


def test_a_replay_has_the_shares_of_its_frames(wavering: Results) -> None:
    calm, waverer = play_again(wavering, order=["calm", "waverer"], allow_import=True, seconds=0)
    assert pack(calm)["shares"] == []
    for stride in (1, 4):
        drift, scales = pack(waverer, stride=stride)["shares"]
        assert (drift["group"], drift["parts"]) == ("drift", ["motion", "jitter"])
        assert (scales["group"], scales["parts"]) == ("time scale", list(SCALES))
        assert waverer.film is not None
        film = waverer.film.every(stride)
        columns = [film.trace.rounds[f"note_time_scale/{part}"] for part in SCALES]
        expected = np.stack(columns, axis=1)[film.frames]
        assert_allclose(unpacked(scales["values"]), expected, atol=1e-4)


# For print


def test_print_has_a_panel_for_each_optimizer_and_whole(material: ChartData) -> None:
    assert "shares" in kinds(material)
    figure = draw(material, "shares", width=6.8)
    assert [axes.get_title() for axes in figure.axes] == ["waverer: drift", "waverer: time scale"]
    axes = figure.axes[1]
    assert axes.get_ylim() == (0, 100)
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["drift: motion", "drift: jitter", *(f"time scale: {s}" for s in SCALES)]
    tops = np.cumsum(material.shares[1].values, axis=0)
    for place, area in enumerate(axes.collections):
        outline = np.asarray(area.get_paths()[0].vertices)
        assert outline[:, 1].max() == pytest.approx(100 * tops[place].max())
        assert hue(area) == SHARES[spread_shares(6)[place] - 1]


def test_print_has_a_panel_for_each_setting_or_for_the_one_that_is_chosen(swept: ChartData) -> None:
    titles = [axes.get_title() for axes in draw(swept, "shares", width=6.8).axes]
    assert titles == [f"waverer: {w}, begins {n}" for n in (2, 5) for w in ("drift", "time scale")]
    chosen = draw(swept, "shares", width=6.8, where={"begins": 5}).axes
    assert [axes.get_title() for axes in chosen] == ["waverer: drift", "waverer: time scale"]


def test_a_setting_in_which_nothing_was_noted_has_no_shares(tmp_path: Path) -> None:
    data = gather(waver(tmp_path, sweep={"optimizers.waverer.begins": [2, 99]}), replays=False)
    assert len(draw(data.charts, "shares").axes) == 2
    with pytest.raises(SparqError, match="no optimizer noted parts of a whole"):
        draw(data.charts, "shares", where={"begins": 99})


def test_one_whole_needs_no_name_in_the_legend(tmp_path: Path) -> None:
    waverers = {"a": Waverer(scales=("1", "10")), "b": Waverer(scales=("10", "100"))}
    data = gather(waver(tmp_path, optimizers=waverers), replays=False).charts
    scales = [each for each in data.shares if each.group == "time_scale"]
    figure = draw(ChartData(optimizers=["a", "b"], found=data.found, shares=scales), "shares")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["1", "10", "100"]


def test_print_says_why_there_are_no_shares(told: ReportData, material: ChartData) -> None:
    assert "shares" not in kinds(told.charts)
    with pytest.raises(SparqError, match="no optimizer noted parts of a whole"):
        draw(told.charts, "shares")
    with pytest.raises(SparqError, match="a figure of shares has no place for the line 'bound'"):
        draw(material, "shares", lines={"bound": 0.5})
