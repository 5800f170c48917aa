"""Dark twins of figures: an SVG in the colours of a dark page, for the built documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

__all__ = ["PAPER", "darken", "write_twin"]

PAPER = "#131416"
"""The colour of a dark page, as the theme of the documentation has it."""
_INK = "#e3e4e6"
"""What nothing gives a colour to, such as black letters."""
_LEAST_CONTRAST = 4.5
"""Of lines against the page, as WCAG 2.2 defines it for text."""
_GREY = 12
"""By how much the channels of a colour may differ that counts as a grey."""
_COLOUR = re.compile(r"(?<=: )#[0-9a-f]{6}\b|(?<=\")#[0-9a-f]{6}(?=\")", re.IGNORECASE)


def write_twin(svg: Path, folder: Path) -> Path:
    """Write the dark twin of a figure, unless it is there already.

    Args:
        svg: The figure, light.
        folder: Where its twin goes.

    Returns:
        The file of the twin.
    """
    twin = folder / svg.name
    text = darken(svg.read_text(encoding="utf-8"))
    if not twin.is_file() or twin.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        twin.write_text(text, encoding="utf-8")
    return twin


def darken(svg: str) -> str:
    """Return a figure in the colours of a dark page.

    Greys are mirrored, white becoming the page; other colours keep their hue, and are made brighter
    where they would be hard to see. Pictures within, such as heat maps, stay as they are.

    Args:
        svg: A figure on white, as matplotlib writes it.
    """
    coloured = _COLOUR.sub(lambda found: _find_dark(found[0].lower()), svg)
    return coloured.replace("<svg ", f'<svg fill="{_INK}" ', 1)


@cache
def _find_dark(colour: str) -> str:
    """Return what a colour becomes on a dark page."""
    channels = _read(colour)
    if max(channels) - min(channels) <= _GREY:
        share = sum(channels) / (3 * 255)
        ends = zip(_read(_INK), _read(PAPER), strict=True)
        return _write(black + share * (white - black) for black, white in ends)
    for share in range(0, 100, 4):
        brighter = [each + (255 - each) * share / 100 for each in channels]
        if _contrast(brighter) >= _LEAST_CONTRAST:
            return _write(brighter)
    return _INK


def _read(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def _write(channels: Iterable[float]) -> str:
    return "#" + "".join(f"{round(each):02x}" for each in channels)


def _contrast(channels: Iterable[float]) -> float:
    """Compute the contrast of a bright colour against the page."""
    return (_luminance(channels) + 0.05) / (_luminance(_read(PAPER)) + 0.05)


def _luminance(channels: Iterable[float]) -> float:
    """Compute the relative luminance of a colour in sRGB."""
    parts = [each / 255 for each in channels]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
