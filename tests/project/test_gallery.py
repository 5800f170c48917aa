"""The gallery shows every simulated environment and names every bundled scenario."""

from __future__ import annotations

import re

import pytest

from reproduce import DOCS, gallery
from sparq_sim.plugin.registry import list_simulated
from sparq_sim.scenario.bundled import find_bundled

PAGE = (DOCS / "gallery.md").read_text(encoding="utf-8")


def test_every_simulated_environment_has_a_card() -> None:
    cards = re.findall(
        r"^:::\{grid-item-card\} (\S+)$", gallery.format_gallery("environments"), re.M
    )
    assert sorted(cards) == sorted(list_simulated("environment"))


def test_every_bundled_scenario_is_named_once() -> None:
    named = re.findall(r"`([^`]+)`", gallery.format_gallery("studies"))
    assert sorted(named) == sorted(find_bundled())


def test_cards_lead_to_headings_that_are_there() -> None:
    for page, place in re.findall(r"^:link: (\S+)\.html#?(\S*)$", PAGE, re.M):
        text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
        slugs = {gallery.make_slug(each) for each in re.findall(r"^#+ (.+)$", text, re.M)}
        assert not place or place in slugs


def test_there_is_no_other_gallery() -> None:
    with pytest.raises(ValueError, match="no gallery of 'experts'"):
        gallery.format_gallery("experts")
