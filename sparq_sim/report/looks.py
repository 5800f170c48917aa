"""Looks: the colour, dashes and marker of each optimizer, in every chart and medium the same.

A look belongs to a kind of optimizer, so that it is the same in every study. Of several optimizers
of one kind in a study, the first has the look of the kind; the others have colours that nobody in
the study has, as long as there are any, with dashes that belong to no kind that comes with
sparq-sim.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import product
from types import MappingProxyType

from sparq_sim.report.palette import (
    PRINT_DASHES,
    PRINT_MARKERS,
    SCREEN_DASHES,
    SCREEN_MARKERS,
    SERIES,
    SVG_DASHES,
    SVG_MARKERS,
)

__all__ = ["BUNDLED", "Look", "find_look", "find_looks"]


@dataclass(frozen=True)
class Look:
    """How an optimizer is drawn: numbers from 0 that each medium turns into what it draws."""

    colour: int
    """Which of `palette.SERIES`."""
    dash: int
    """Which of `palette.SCREEN_DASHES`, `palette.PRINT_DASHES` and `palette.SVG_DASHES`."""
    marker: int
    """Which of `palette.SCREEN_MARKERS`, `palette.PRINT_MARKERS` and `palette.SVG_MARKERS`."""

    @property
    def line(self) -> tuple[int, int]:
        """What is seen of it where there are no markers: colour and dash."""
        return self.colour, self.dash

    @property
    def ink(self) -> str:
        """The colour in print, as `#rrggbb`."""
        return SERIES[self.colour]

    @property
    def series(self) -> str:
        """The colour in a page, as the property of its style: `--series-1` to `--series-8`."""
        return f"--series-{self.colour + 1}"

    @property
    def screen_dash(self) -> str:
        """The dashes as Plotly names them."""
        return SCREEN_DASHES[self.dash]

    @property
    def screen_marker(self) -> str:
        """The marker as Plotly names it."""
        return SCREEN_MARKERS[self.marker]

    @property
    def svg_dash(self) -> str:
        """The dashes as SVG has them."""
        return SVG_DASHES[self.dash]

    @property
    def svg_marker(self) -> str:
        """The outline of the marker, as SVG has it, in a box of 26 by 12."""
        return SVG_MARKERS[self.marker]

    @property
    def print_dash(self) -> object:
        """The dashes as matplotlib takes them."""
        return PRINT_DASHES[self.dash]

    @property
    def print_marker(self) -> str:
        """The marker as matplotlib names it."""
        return PRINT_MARKERS[self.marker]


# What is often compared has a colour of its own and solid lines; where two kinds share a colour,
# dashes and marker tell them apart. Grey dashes are those of the reference levels.
BUNDLED: Mapping[str, Look] = MappingProxyType(
    {
        "sparq-gp-ucb": Look(0, 0, 0),
        "tv-gp-ucb": Look(1, 0, 1),
        "gp-ucb": Look(2, 0, 2),
        "w-gp-ucb": Look(3, 0, 3),
        "sw-gp-ucb": Look(4, 0, 4),
        "r-gp-ucb": Look(5, 0, 5),
        "sparq-memory": Look(6, 0, 7),
        "uniform": Look(7, 0, 6),
        "et-gp-ucb": Look(4, 1, 3),
        "gp-ucb-sdf": Look(3, 1, 2),
        "ui-tvbo": Look(2, 1, 1),
        "ui-gp-ucb": Look(5, 1, 0),
        "fixed": Look(6, 1, 4),
    }
)
"""The looks of the kinds that come with sparq-sim; no other kind has their colour and dashes."""

_GREY = len(SERIES) - 1
_TAKEN = {look.line for look in BUNDLED.values()}
_FREE = tuple(
    Look(colour, dash, marker)
    for dash, marker, colour in product(
        range(len(SCREEN_DASHES)), range(len(SCREEN_MARKERS)), range(len(SERIES))
    )
    if colour != _GREY and (colour, dash) not in _TAKEN
)


def find_look(kind: str) -> Look:
    """Return the look of a kind of optimizer, which is the same in every study.

    Args:
        kind: As in a scenario; those of other packages have looks that their names fix.
    """
    return BUNDLED.get(kind) or _FREE[_number(kind) % len(_FREE)]


def find_looks(kinds: Mapping[str, str]) -> dict[str, Look]:
    """Return the look of each optimizer of a study, no two alike while there are looks left.

    Args:
        kinds: Of all optimizers, by their names, in the order of the study.
    """
    looks: dict[str, Look] = {}
    seen: set[str] = set()
    for name, kind in kinds.items():
        own = find_look(kind)
        if kind not in seen and own.line not in {look.line for look in looks.values()}:
            looks[name] = own
        seen.add(kind)
    for name in kinds:
        if name not in looks:
            looks[name] = _choose(name, looks)
    return looks


def _choose(name: str, taken: Mapping[str, Look]) -> Look:
    """Choose the look that is least like those that are *taken*; the name decides among equals."""
    looks = Counter(taken.values())
    lines = Counter(look.line for look in taken.values())
    colours = Counter(look.colour for look in taken.values())
    markers = Counter(look.marker for look in taken.values())
    start = _number(name)

    def likeness(place: int) -> tuple[int, ...]:
        look = _FREE[place]
        return (
            looks[look],
            lines[look.line],
            colours[look.colour],
            markers[look.marker],
            (place - start) % len(_FREE),
        )

    return _FREE[min(range(len(_FREE)), key=likeness)]


def _number(name: str) -> int:
    return int.from_bytes(sha256(name.encode("utf-8", "replace")).digest()[:8])
