from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator
from numpy.testing import assert_allclose, assert_array_equal

from sparq_sim import Environment, SparqError
from sparq_sim.arrays import Point, Points, Values
from sparq_sim.domain import Box, Domain, Sites
from sparq_sim.plugin.contract import Landscape
from sparq_sim.report.environment import Portrait, draw_figure, portray, sample, write_html
from sparq_sim.report.environment.data import FRAMES, Fields, Places, Slices
from sparq_sim.report.environment.layout import layout, make_snapshot
from sparq_sim.report.palette import SNAPSHOTS
from sparq_sim.testing import Slope

HOSTILE = '</script><script src="https://evil.example/x.js"></script><b>$x^{'


class Hill:
    """1 minus the squared distance from a top that travels along the diagonal."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def rewards(self, points: Points, time: float) -> Values:
        squares: Values = ((points - time / 100) ** 2).sum(axis=1)
        return 1.0 - squares

    def best(self, time: float) -> tuple[Point, float]:
        if isinstance(self.domain, Sites):
            rewards = self.rewards(self.domain.points, time)
            return self.domain.points[rewards.argmax()], float(rewards.max())
        return np.full(self.domain.dimensions, time / 100), 1.0


class HillWorld(Environment):
    """A hill in a cube."""

    dimensions: int = 1

    def start(self, rng: Generator) -> Landscape:
        return Hill(Box([0.0] * self.dimensions, [1.0] * self.dimensions))


def cube(dimensions: int) -> Hill:
    return Hill(Box(np.zeros(dimensions), np.ones(dimensions)))


def sites(dimensions: int = 2) -> Hill:
    points = Box(np.zeros(dimensions), np.ones(dimensions)).grid(3)
    return Hill(Sites(points, [f"site <{i}>" for i in range(len(points))]))


WORLDS = {
    "line": cube(1),
    "plane": cube(2),
    "space": cube(4),
    "sites": sites(),
    "sites on a line": sites(1),
    "sites in space": sites(3),
}
each_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())


# The numbers.


@each_world
@pytest.mark.parametrize("horizon", [0.5, 100.0, 20_000.0])
def test_times_are_even_from_zero_to_the_horizon_and_frames_are_among_them(
    world: Hill, horizon: float
) -> None:
    portrait = sample(world, horizon)
    assert_allclose(portrait.times, np.linspace(0, horizon, len(portrait.times)))
    frames = portrait.times[portrait.frames]
    assert_allclose(frames, horizon * np.arange(1, FRAMES + 1) / FRAMES)


@each_world
def test_the_best_curve_is_the_landscapes(world: Hill) -> None:
    portrait = sample(world, 100.0)
    for time, point, reward in zip(
        portrait.times.tolist(), portrait.best_points, portrait.best_rewards, strict=True
    ):
        assert_array_equal(point, world.best(time)[0])
        assert reward == world.best(time)[1]


def test_mean_and_drift_are_those_of_the_formula() -> None:
    portrait = sample(cube(1), 100.0)
    tops = portrait.times / 100
    # The mean of (x - top)^2 over [0, 1] is 1/3 - top + top^2.
    assert_allclose(portrait.mean_rewards, 1 - (1 / 3 - tops + tops**2), atol=1e-5)
    # From a to b it changes most at an end: |(x - b)^2 - (x - a)^2| = (b - a) |2x - a - b|.
    middle = tops[1:] + tops[:-1]
    assert_allclose(portrait.drift, 0.01 * np.maximum(middle, 2 - middle), rtol=1e-9)


def test_a_line_shows_the_whole_function() -> None:
    world = cube(1)
    portrait = sample(world, 100.0)
    assert isinstance(portrait.view, Slices)
    (axis,), (rewards,) = portrait.view.axes, portrait.view.rewards
    assert rewards.shape == (len(portrait.times), len(axis))
    assert_array_equal(rewards[37], world.rewards(axis[:, None], portrait.times[37]))


def test_a_plane_is_shown_at_each_frame_with_the_first_coordinate_across() -> None:
    world = Hill(Box([0.0, 0.0], [1.0, 2.0], ["a", "b"]))
    portrait = sample(world, 100.0)
    assert isinstance(portrait.view, Fields)
    across, up = portrait.view.axes
    assert (across[-1], up[-1]) == (1.0, 2.0)
    assert portrait.view.rewards.shape == (FRAMES, len(up), len(across))
    time = float(portrait.times[portrait.frames[7]])
    (reward,) = world.rewards(np.array([[across[5], up[40]]]), time)
    assert portrait.view.rewards[7, 40, 5] == reward


def test_in_space_each_coordinate_is_sliced_through_the_best_point() -> None:
    world = cube(4)
    portrait = sample(world, 100.0)
    assert isinstance(portrait.view, Slices)
    assert len(portrait.view.rewards) == 4
    for axis, rewards in zip(portrait.view.axes, portrait.view.rewards, strict=True):
        assert_allclose(rewards[30], 1 - (axis - portrait.times[30] / 100) ** 2)


def test_all_sites_are_shown_at_all_times() -> None:
    portrait = sample(sites(), 100.0)
    assert isinstance(portrait.view, Places)
    assert portrait.view.rewards.shape == (len(portrait.times), 9)
    assert_array_equal(portrait.view.rewards.max(axis=1), portrait.best_rewards)


# The panels.


def test_maps_have_north_up() -> None:
    domain = Sites([[40.0, -74.0], [41.0, -75.0]], coordinates=["lat", "lon"])
    panel = make_snapshot(sample(Hill(domain), 10.0), 3)
    assert panel.labels == ("lon", "lat")
    assert panel.places is not None
    assert panel.places.points.tolist() == [[-74.0, 40.0], [-75.0, 41.0]]


@pytest.mark.parametrize(
    ("world", "panels"),
    [
        (cube(1), [1, 1, 2]),
        (cube(2), [len(SNAPSHOTS), 2]),
        (cube(4), [3, 1, 2]),
        (sites(), [4, 1, 2]),
    ],
)
def test_every_view_ends_with_rewards_and_drift(world: Hill, panels: list[int]) -> None:
    rows = layout(sample(world, 100.0))
    assert [len(row.panels) for row in rows] == panels
    assert [panel.labels[1] for panel in rows[-1].panels] == ["reward", "drift"]


def test_the_snapshots_are_at_quarters_of_the_horizon() -> None:
    first, *_ = layout(sample(cube(2), 200.0))
    assert [panel.title for panel in first.panels] == ["t = 50", "t = 100", "t = 150", "t = 200"]


# The pages.


class Tags(HTMLParser):
    """Gathers tags with their attributes, and the text of the title and headings."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = [("doctype", {})]
        self.texts: dict[str, str] = {}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts[self.tags[-1][0]] = self.texts.get(self.tags[-1][0], "") + data


def hostile(world: Hill) -> Portrait:
    """Call the world and its coordinates names that are code."""
    domain = world.domain
    if isinstance(domain, Box):
        named: Domain = Box(domain.lower, domain.upper, [f"{i}{HOSTILE}" for i in domain.names])
    else:
        named = Sites(domain.points, [f"{i}{HOSTILE}" for i in domain.site_names])
    return sample(Hill(named), 10.0, name=HOSTILE)


@each_world
def test_a_page_needs_no_network_and_runs_nobodys_code(world: Hill, tmp_path: Path) -> None:
    page = Tags(write_html(hostile(world), tmp_path / "page.html"))
    assert {tag for tag, _ in page.tags} <= {
        *("doctype", "html", "head", "meta", "title", "style", "body", "h1", "p", "div", "script")
    }
    for _, attributes in page.tags:
        assert not attributes.keys() & {"src", "href", "srcset", "data", "action"}
    assert page.texts["h1"].strip() == page.texts["title"].strip() == HOSTILE
    # Plotly draws text as HTML of its own, links included; so names reach it escaped.
    assert "evil.example" in page.texts["script"]
    assert "<b>$x^{" not in page.texts["script"]
    assert "\\u003cb\\u003e$x^{" not in page.texts["script"]


@pytest.mark.parametrize(
    ("world", "frames"), [(cube(1), 0), (cube(2), FRAMES), (cube(4), 0), (sites(), FRAMES)]
)
def test_a_slider_moves_what_has_moments(world: Hill, frames: int, tmp_path: Path) -> None:
    text = write_html(sample(world, 100.0), tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count('"method":"animate"') == (frames + 1 if frames else 0)


@each_world
def test_a_figure_is_drawn_whatever_the_names(world: Hill) -> None:
    figure = draw_figure(hostile(world))
    figure.canvas.draw()
    titles = {axes.get_title(loc="left") for axes in figure.axes}
    assert {"best and mean", "drift: largest change per unit of time"} <= titles


@pytest.mark.parametrize(
    ("suffix", "begins"),
    [
        (".png", b"\x89PNG\r\n\x1a\n"),
        (".PNG", b"\x89PNG\r\n\x1a\n"),
        (".svg", b"<?xml"),
        (".pdf", b"%PDF-"),
        (".html", b"<!doctype html>"),
    ],
)
def test_the_suffix_says_what_is_written(suffix: str, begins: bytes, tmp_path: Path) -> None:
    path = portray(Slope(place="sites"), tmp_path / f"world{suffix}", name="slope")
    assert path.read_bytes().startswith(begins)


def test_one_seed_gives_one_picture(tmp_path: Path) -> None:
    one, two = (portray(HillWorld(), tmp_path / f"{i}.png", name="hill") for i in (1, 2))
    assert one.read_bytes() == two.read_bytes()


# What is refused.


@pytest.mark.parametrize("name", ["world.jpg", "world", "html"])
def test_other_suffixes_are_refused_with_those_that_serve(name: str, tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"end it in .html, .png, .svg, .pdf"):
        portray(HillWorld(), tmp_path / name, name="hill")
    assert not (tmp_path / name).exists()


def test_a_folder_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SparqError, match=r"there is no folder .*nowhere"):
        portray(HillWorld(), tmp_path / "nowhere" / "world.html", name="hill")


@pytest.mark.parametrize("horizon", [0.0, -1.0, float("inf"), float("nan")])
def test_a_horizon_that_is_none_is_refused(horizon: float) -> None:
    with pytest.raises(SparqError, match="horizon"):
        sample(cube(1), horizon)


def test_without_matplotlib_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SparqError, match=r"pip install 'sparq-sim\[plots\]', or draw to .html"):
        portray(HillWorld(), tmp_path / "world.png", name="hill")
    portray(HillWorld(), tmp_path / "world.html", name="hill")
