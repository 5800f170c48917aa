from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparq_sim.report.data import ReportData
from sparq_sim.report.gather import gather
from sparq_sim.report.html.figure import Chart, Figure
from sparq_sim.report.html.network import network_charts
from sparq_sim.report.html.page import render
from sparq_sim.report.network import ShownNetwork, read_networks
from sparq_sim.report.palette import MEANINGS, colour_of
from tests.report.conftest import HOSTILE, RUN, Browser, played
from tests.report.networks import make_accounts, make_network
from tests.report.test_page import Parsed


def charts(*sizes: int, **fields: Any) -> dict[str, Chart]:
    shown = [ShownNetwork(f"play {n}", "seed 0", make_network(n, **fields)) for n in sizes]
    return {chart.name: chart for chart in network_charts(shown)}


def named(figure: Figure, name: str) -> dict[str, Any]:
    (trace,) = [trace for trace in figure["data"] if trace.get("name") == name]
    return dict(trace)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    """A report of two plays, with networks that were put in."""
    told = gather(played(tmp_path_factory.mktemp("study"), sweep={}, replications=1, rounds=8))
    return with_networks(told, 12, 28)


def with_networks(told: ReportData, *sizes: int, name: str = "node ") -> ReportData:
    shown = [
        ShownNetwork(replay.title, replay.play, make_network(size, name=name))
        for replay, size in zip(told.replays, sizes, strict=True)
    ]
    return replace(told, networks=shown)


# Figures


def test_there_is_a_figure_of_each_network_to_choose_from() -> None:
    found = charts(12, 28)
    assert list(found) == [
        *("network-map", "network-batteries", "network-energy"),
        *("network-nodes", "network-packets"),
    ]
    assert {len(chart.figures) for chart in found.values() if chart.by == "network"} == {2}
    assert (found["network-energy"].by, len(found["network-energy"].figures)) == ("", 1)


def test_a_map_has_equal_scales_and_tells_nodes_by_their_state() -> None:
    (figure,) = charts(12)["network-map"].figures
    assert figure["layout"]["yaxis"]["scaleanchor"] == "x"
    network = make_network(12)
    battery, mains, dead = (
        named(figure, name) for name in ("node with battery", "node on mains", "dead node")
    )
    assert (len(battery["x"]), len(mains["x"]), len(dead["x"])) == (9, 1, 2)
    assert battery["marker"]["color"] == pytest.approx(network.shares[2:-1], rel=1e-4)
    assert "died at 30.5" in dead["customdata"][0]
    assert "on mains" in mains["customdata"][0]
    assert "J left (" in battery["customdata"][0]


def test_each_link_tells_distance_margin_rate_and_packets() -> None:
    (figure,) = charts(12)["network-map"].figures
    (links,) = [t for t in figure["data"] if t["mode"] == "markers" and "name" not in t]
    nodes = make_network(12).nodes
    assert len(links["text"]) == 12
    text = links["text"][3]
    for part in (
        f"{nodes['distance'][3]:.0f} m",
        f"margin {nodes['margin'][3]:.1f} dB",
        f"SF {nodes['rate'][3]}",
        f"{nodes['sent'][3]} sent, {nodes['delivered'][3]} delivered",
        f"{nodes['refused'][3]} refused",
    ):
        assert part in text
    lines = [trace for trace in figure["data"] if trace["mode"] == "lines"]
    assert sum(trace["x"].count(None) for trace in lines) == 12


def test_lines_of_batteries_end_with_the_death_of_their_node() -> None:
    (figure,) = charts(12)["network-batteries"].figures
    lines = [trace for trace in figure["data"] if trace["name"] == "one node"]
    assert len(lines) == 11
    deaths = named(figure, "death")
    assert deaths["x"] == [30.5, 35.5]
    assert [line["x"][-1] for line in lines[:3]] == [30.5, 35.5, 50.0]
    assert len(named(figure, "median")["x"]) == 101


def test_many_batteries_are_one_line_of_few_points() -> None:
    (figure,) = charts(500)["network-batteries"].figures
    line = named(figure, "one node")
    assert len(line["x"]) < 8000
    assert line["x"].count(None) == 499


def test_bars_sum_to_the_energy_used_and_fall_from_node_to_node() -> None:
    found, network = charts(28), make_network(28)
    (total,), (nodes,) = found["network-energy"].figures, found["network-nodes"].figures
    assert sum(bar["x"][0] for bar in total["data"]) == pytest.approx(network.used.sum(), rel=1e-4)
    heights = np.sum([bar["y"] for bar in nodes["data"]], axis=0)
    assert heights == pytest.approx(np.sort(network.used)[::-1], rel=1e-4)
    assert nodes["layout"]["xaxis"]["ticktext"][0] == network.names[int(network.used.argmax())]


def test_of_very_many_nodes_those_that_used_most_are_bars_and_the_page_says_so() -> None:
    chart = charts(300)["network-nodes"]
    assert len(chart.figures[0]["data"][0]["x"]) == 200
    assert "of 300 nodes, 200 are shown" in chart.caption


def test_every_packet_is_in_a_bar() -> None:
    (figure,) = charts(12)["network-packets"].figures
    assert sum(int(count) for bar in figure["data"] for count in bar["text"]) == 400
    assert np.sum([bar["x"] for bar in figure["data"]], axis=0) == pytest.approx(1, abs=1e-4)
    assert figure["layout"]["yaxis"]["ticktext"][0] == "query down (80)"
    assert figure["data"][0]["name"] == "delivered"


def test_a_network_that_lacks_what_another_has_says_so() -> None:
    bare = {k: v for k, v in make_accounts(source="bare").items() if k == "bare/nodes"}
    (alone,), _ = read_networks(bare)
    shown = [ShownNetwork("a", "", make_network()), ShownNetwork("b", "", alone)]
    found = {chart.name: chart for chart in network_charts(shown)}
    (note,) = found["network-batteries"].figures[1]["layout"]["annotations"]
    assert note["text"] == "nothing to show in this play"
    assert [chart.name for chart in network_charts(shown[1:])] == [
        *("network-map", "network-energy", "network-nodes")
    ]


def test_each_use_and_each_fate_of_a_network_has_a_colour() -> None:
    names = ("measure", "send", "receive", "listen", "sleep", "compute")
    assert len({colour_of(name) for name in names}) == len(names)
    assert all(0 <= colour_of(name) <= len(MEANINGS) for name in (*names, "unheard of"))


# In the page


def test_a_study_without_a_network_has_no_section_of_it(told: ReportData) -> None:
    assert 'id="network"' not in render(told)
    assert told.networks == []


def test_the_page_says_which_plays_the_networks_are_of(report: ReportData) -> None:
    text = " ".join(Parsed(render(report)).text.split())
    assert "One play of each optimizer, the one in the replay (seed 0, replication 0)." in text
    more = " ".join(Parsed(render(replace(report, finished=9))).text.split())
    assert "(seed 0, replication 0): no mean over the 9 plays of the study." in more


def test_hostile_names_of_nodes_add_no_element(report: ReportData) -> None:
    harmless = Parsed(render(report)).elements
    for text in HOSTILE[::7]:
        page = render(with_networks(report, 12, 28, name=text))
        assert Parsed(page).elements == harmless, text


def test_five_hundred_nodes_take_less_than_a_megabyte() -> None:
    figures = [chart.figures for chart in charts(500, 500).values()]
    assert len(json.dumps(figures)) < 1_000_000


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 1280])
def test_all_charts_are_drawn_at_any_width(
    browser: Browser, report: ReportData, tmp_path: Path, width: int, dark: bool
) -> None:
    page = tmp_path / "page.html"
    hostile = with_networks(report, 6, 28, name=f"<img src=x onerror={RUN}>%{{y}}")
    page.write_text(render(hostile), encoding="utf-8")
    browser.open(page, width=width, height=20_000, dark=dark)
    drawn = (
        "[...document.querySelectorAll('#network .plot')].every(p => p.querySelector('.bglayer'))"
    )
    browser.wait(drawn)
    assert browser.run("return document.querySelectorAll('#network .plot').length") == 5
    assert browser.run("return document.scrollingElement.scrollWidth <= innerWidth")
    count = "return document.querySelector('#network-batteries .plot').data.length"
    before = browser.run(count)
    browser.run(
        "const s = document.getElementById('network-choice'); s.value = 1;"
        " s.dispatchEvent(new Event('change'))"
    )
    browser.wait(f"{count.removeprefix('return ')} > {before}")
    assert browser.run("return window.__hacked") is None
    assert browser.complaints() == []
