"""Dark twins of figures: what is drawn on white can be seen on a dark page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reproduce import DOCS, dark

FIGURES = sorted((DOCS / "pictures").rglob("*.svg"))


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_white_becomes_the_page_and_letters_become_bright() -> None:
    drawn = '<svg x="1"><path style="fill: #ffffff"/><path style="fill: #222222"/></svg>'
    twin = dark.darken(drawn)
    assert f"fill: {dark.PAPER}" in twin
    letters = re.findall(r"fill: (#\w{6})", twin)[1]
    assert luminance(letters) > 0.5


@pytest.mark.parametrize("colour", ["#0072b2", "#440154", "#d55e00", "#00785a", "#0000ff"])
def test_lines_of_any_colour_stand_out_from_a_dark_page(colour: str) -> None:
    (found,) = re.findall(r"stroke: (#\w{6})", dark.darken(f'<g style="stroke: {colour}"/>'))
    assert (luminance(found) + 0.05) / (luminance(dark.PAPER) + 0.05) >= 4.5


@pytest.mark.parametrize("colour", ["#56b4e9", "#ffbb00"])
def test_a_colour_that_is_bright_enough_stays(colour: str) -> None:
    assert colour in dark.darken(f'<g style="stroke: {colour}"/>')


@pytest.mark.parametrize("figure", FIGURES, ids=lambda path: path.stem)
def test_a_twin_has_the_shapes_and_pictures_of_its_figure(figure: Path, tmp_path: Path) -> None:
    light, twin = (ET.parse(path) for path in (figure, dark.write_twin(figure, tmp_path)))
    assert [each.tag for each in light.iter()] == [each.tag for each in twin.iter()]
    link = "{http://www.w3.org/1999/xlink}href"
    assert [each.get(link) for each in light.iter()] == [each.get(link) for each in twin.iter()]
    text = twin.getroot()
    assert text.get("fill")
    assert "#ffffff" not in (tmp_path / figure.name).read_text(encoding="utf-8")
