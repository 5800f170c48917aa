from __future__ import annotations

import re
from itertools import combinations, product

import pytest

from sparq_sim.report.html.page import TEMPLATES
from sparq_sim.report.looks import BUNDLED
from sparq_sim.report.palette import BEST, DRIFT, MEAN, MEANINGS, SERIES
from tests.report.vision import VISIONS, Lab, contrast, difference, see

APART = 10.0
"""So far apart, by CIEDE2000, two colours are told apart side by side."""
SEEN = 3.0
"""The least contrast of what is drawn: WCAG 2.2, criterion 1.4.11."""
THEMES = ("light", "dark")


def read_colours(theme: str) -> dict[str, str]:
    """Read the colours of a theme, by their properties."""
    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    light, _, dark = style.partition("@media screen")
    return dict(re.findall(r"--([a-z]+(?:-\d+)?): (#\w{6});", light if theme == "light" else dark))


def list_colours(theme: str, group: str) -> list[str]:
    colours = read_colours(theme)
    return [colours[f"{group}-{number}"] for number in range(1, 9)]


def find_least(one: str, other: str) -> float:
    """Find how far apart two colours are for those who tell them apart the worst."""
    return min(difference(see(one, vision), see(other, vision)) for vision in VISIONS)


# Sharma, Wu and Dalal (2005), table 1: pairs 1, 7, 10, 17, 20 and 30.
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, -0.001, 2.49), (50.0, 0.0011, -2.49), 4.7461),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (58.0, 24.0, 15.0), 19.4535),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ],
)
def test_the_difference_is_that_of_its_authors(one: Lab, other: Lab, expected: float) -> None:
    assert difference(one, other) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("vision", VISIONS)
def test_greys_look_the_same_to_all(vision: str) -> None:
    assert difference(see("#808080", vision), see("#808080")) < 0.1


def test_red_and_green_are_near_for_those_who_cannot_see_red() -> None:
    red, green = "#b02020", "#5c5c00"
    assert difference(see(red), see(green)) > 40
    assert find_least(red, green) < 15


# The page


def test_print_has_the_colours_of_the_light_page() -> None:
    assert tuple(list_colours("light", "series")) == SERIES
    assert tuple(list_colours("light", "meaning")) == MEANINGS


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("group", ["series", "meaning"])
def test_all_readers_tell_colours_apart(theme: str, group: str) -> None:
    for one, other in combinations(list_colours(theme, group), 2):
        assert find_least(one, other) >= APART, (one, other)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("group", ["series", "meaning"])
def test_colours_stand_out_from_the_paper(theme: str, group: str) -> None:
    paper = read_colours(theme)["paper"]
    for colour in list_colours(theme, group):
        assert contrast(colour, paper) >= SEEN, colour


@pytest.mark.parametrize("theme", THEMES)
def test_a_meaning_has_the_colour_of_no_optimizer(theme: str) -> None:
    for one, other in product(list_colours(theme, "series"), list_colours(theme, "meaning")):
        assert difference(see(one), see(other)) >= APART, (one, other)


# Where colours are used


def test_these_kinds_rest_on_dashes_and_markers() -> None:
    near = {
        (one, other)
        for one, other in combinations(BUNDLED, 2)
        for theme in THEMES
        if BUNDLED[one].colour == BUNDLED[other].colour
        or find_least(
            *(list_colours(theme, "series")[BUNDLED[kind].colour] for kind in (one, other))
        )
        < APART
    }
    assert near == {
        ("sw-gp-ucb", "et-gp-ucb"),
        ("w-gp-ucb", "gp-ucb-sdf"),
        ("gp-ucb", "ui-tvbo"),
        ("r-gp-ucb", "ui-gp-ucb"),
        ("sparq-memory", "fixed"),
    }
    for one, other in near:
        assert BUNDLED[one].dash != BUNDLED[other].dash
        assert BUNDLED[one].marker != BUNDLED[other].marker


def test_the_replay_has_no_colour_of_an_optimizer() -> None:
    for script in [*TEMPLATES.glob("replay*"), *TEMPLATES.glob("replay/*")]:
        if script.is_file():
            assert "--series" not in script.read_text(encoding="utf-8"), script.name


def test_marks_of_the_replay_that_mean_unlike_things_have_unlike_colours() -> None:
    style = (TEMPLATES / "replay.css").read_text(encoding="utf-8")
    marks = dict(re.findall(r"--mark-([a-z0-9-]+): var\((--[a-z0-9-]+)", style))
    scene = [
        marks[name]
        for name in ("true", "belief", "own", "expert-1", "expert-2", "expert-3", "best", "waiting")
    ]
    assert len(set(scene)) == len(scene)


def test_an_environment_is_drawn_in_the_colours_of_the_replay() -> None:
    assert {BEST, MEAN, DRIFT} <= set(MEANINGS)
